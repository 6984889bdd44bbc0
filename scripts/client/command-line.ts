/** The command line of `npm run client`, judged as a whole before anything is opened. */
import { parseArgs } from "node:util";
import { OWN_CLASSES } from "../../src/flows/authorize-registration.ts";
import { INITIAL_TOKEN_SECONDS } from "../../src/limits.ts";
import { isClassName } from "../../src/policy/rules.ts";
import type { Result } from "../../src/result.ts";
import { err, ok } from "../../src/result.ts";
import { parseScope } from "../../src/spec/rfc6749.ts";
import { SERVED_GRANT_TYPES } from "../../src/spec/rfc7591.ts";
import type { Command, Run } from "../admin/options.ts";
import { attempt, DEVELOPMENT_CONFIG, findWrongOption, text, wholeNumber } from "../admin/options.ts";
import { createClient, disableClient, listClients, rotateSecret } from "./clients.ts";
import { createInitialToken, listInitialTokens, revokeInitialToken } from "./initial-tokens.ts";

const METHODS = ["client_secret_basic", "client_secret_post"] as const;
const GRANT_TYPES: readonly string[] = SERVED_GRANT_TYPES;
const OVERLAP_SECONDS = 86_400;
const RESERVED: readonly string[] = Object.values(OWN_CLASSES);

export const USAGE = `npm run client -- [--config FILE] COMMAND

  create --method client_secret_basic|client_secret_post [--grant-type TYPE …]
         [--workload SPIFFE_ID] [--default-target NAME] [--expires SECONDS] [--json]
                            makes a client and its secret, and prints both
  rotate CLIENT_ID [--overlap SECONDS] [--expires SECONDS] [--json]
                            makes another secret and prints it; the older ones end after
                            the overlap: a day if not given, 0 for at once
  disable CLIENT_ID         for ever, and with it every token that was issued to it
  list                      the clients made here or registered, one line each, without secrets

  initial-token create --class NAME [--grant-type TYPE …] [--scope "a b"] [--uses N]
         [--expires SECONDS] [--json]
                            makes an initial access token for POST /register, and prints it
  initial-token revoke ID   no registration with it any more
  initial-token list        one line each, without the tokens

FILE is data/config.json if not given. TYPE is one of
  ${GRANT_TYPES.join("\n  ")}
and all of them if not given. A client_id is "c_" and 22 characters. A secret has 43, is shown
this once and stored as a digest; with --expires it serves for so long, else until it is rotated.
An initial access token serves once and for a day if not told otherwise; its grant types and
scopes are the most that a client may register for, and rules name such clients by the class.
A client may do nothing until a policy rule names it, its class or its workload.`;

const OPTIONS = {
  config: text,
  method: text,
  "grant-type": text,
  workload: text,
  "default-target": text,
  expires: text,
  overlap: text,
  class: text,
  scope: text,
  uses: text,
  json: { type: "boolean" },
} as const;

const COMMANDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["create", ["method", "grant-type", "workload", "default-target", "expires", "json"]],
  ["rotate", ["overlap", "expires", "json"]],
  ["disable", []],
  ["list", []],
  ["initial-token create", ["class", "grant-type", "scope", "uses", "expires", "json"]],
  ["initial-token revoke", []],
  ["initial-token list", []],
]);
const TAKES_ID = ["rotate", "disable", "initial-token revoke"];

export function parseCommand(args: readonly string[]): Result<Command, string> {
  const parsed = attempt(() => parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true }));
  if (!parsed.ok) return parsed;
  const { values, positionals } = parsed.value;
  const [first = "", ...rest] = positionals;
  const [name, id, ...more] =
    first === "initial-token" ? [`${first} ${rest[0] ?? ""}`.trim(), ...rest.slice(1)] : [first, ...rest];
  const allowed = COMMANDS.get(name);
  if (allowed === undefined) return err(name === "" ? "no command" : `there is no command "${name}"`);
  const takesId = TAKES_ID.includes(name);
  if (more.length > 0 || (id !== undefined) !== takesId) {
    return err(`${name} takes ${takesId ? "one id" : "options only"}`);
  }
  const wrong = findWrongOption(name, values, allowed, ["grant-type"]);
  if (wrong !== undefined) return err(wrong);
  const { config, method, workload, "grant-type": grantTypes = GRANT_TYPES, overlap, json = false } = values;
  const { "default-target": defaultTarget, expires, class: registrationClass, scope, uses } = values;
  const command = (run: Run) => ok({ configFile: config?.[0] ?? DEVELOPMENT_CONFIG, run });

  const lifetime = expires && wholeNumber(expires[0]);
  if (expires && lifetime === undefined) return err("--expires is not a number of seconds");
  const unknown = grantTypes.find((one) => !GRANT_TYPES.includes(one));
  const secret = { json, ...(lifetime !== undefined && { expiresInSeconds: lifetime }) };
  switch (name) {
    case "create": {
      // No default: a client that sends its secret in another way would be refused later, and at work.
      const known = METHODS.find((one) => one === method?.[0]);
      if (known === undefined) return err(`create needs --method ${METHODS.join(" or ")}`);
      if (unknown !== undefined) return err(`--grant-type ${unknown} is not one that is served`);
      const wish = {
        method: known,
        grantTypes: [...new Set(grantTypes)],
        ...secret,
        ...(workload?.[0] !== undefined && { workload: workload[0] }),
        ...(defaultTarget?.[0] !== undefined && { defaultTarget: defaultTarget[0] }),
      };
      return command((admin) => createClient(admin, wish));
    }
    case "rotate": {
      const seconds = overlap?.[0] === "0" ? 0 : wholeNumber(overlap?.[0] ?? `${OVERLAP_SECONDS}`);
      if (seconds === undefined) return err("--overlap is not a number of seconds");
      const wish = { ...secret, clientId: id ?? "", overlapSeconds: seconds };
      return command((admin) => rotateSecret(admin, wish));
    }
    case "disable":
      return command((admin) => disableClient(admin, id ?? ""));
    case "initial-token create": {
      const name = registrationClass?.[0] ?? "";
      if (!isClassName(name)) return err("--class is not a short name of small letters, digits and hyphens");
      if (RESERVED.includes(name)) return err(`--class ${name} is for clients that bring no such token`);
      if (unknown !== undefined) return err(`--grant-type ${unknown} is not one that is served`);
      const scopes = scope?.[0] === undefined ? undefined : parseScope(scope[0]);
      if (scopes?.ok === false) return err("--scope is not a list of scopes");
      const usesMax = wholeNumber(uses?.[0] ?? "1");
      if (usesMax === undefined) return err("--uses is not a number");
      const wish = {
        registrationClass: name,
        grantTypes: [...new Set(grantTypes)],
        usesMax,
        json,
        expiresInSeconds: lifetime ?? INITIAL_TOKEN_SECONDS,
        ...(scopes !== undefined && { scopes: scopes.value }),
      };
      return command((admin) => createInitialToken(admin, wish));
    }
    case "initial-token revoke":
      return command((admin) => revokeInitialToken(admin, id ?? ""));
    case "initial-token list":
      return command(listInitialTokens);
    default:
      return command(listClients);
  }
}
