/** The command line of `npm run client`, checked completely before the store is opened. */
import { parseArgs } from "node:util";
import { INITIAL_TOKEN_SECONDS } from "../../limits.ts";
import { isClassName } from "../../policy/rules.ts";
import type { Result } from "../../result.ts";
import { defined, err, ok } from "../../result.ts";
import { methodsWith } from "../../settings/authentication-methods.ts";
import { parseScope } from "../../spec/rfc6749.ts";
import { OWN_CLASSES, SERVED_GRANT_TYPES } from "../../spec/rfc7591.ts";
import type { Command, Run } from "../options.ts";
import { attempt, DEVELOPMENT_CONFIG, findWrongOption, textOption, wholeNumber } from "../options.ts";
import type { NewClient, Rotation } from "./clients.ts";
import { createClient, disableClient, listClients, rotateSecret } from "./clients.ts";
import type { NewInitialToken } from "./initial-tokens.ts";
import { createInitialToken, listInitialTokens, revokeInitialToken } from "./initial-tokens.ts";

const METHODS = methodsWith("secrets", "operator");
const GRANT_TYPES: readonly string[] = SERVED_GRANT_TYPES;
const OVERLAP_SECONDS = 86_400;
const RESERVED: readonly string[] = Object.values(OWN_CLASSES);

export const CLIENT_USAGE = `npm run client -- [--config FILE] COMMAND

  create --method client_secret_basic|client_secret_post [--grant-type TYPE …]
         [--workload SPIFFE_ID] [--default-target NAME] [--expires SECONDS] [--json]
                            creates a client and prints its client_id and secret
  rotate CLIENT_ID [--overlap SECONDS] [--expires SECONDS] [--json]
                            creates another secret and prints it; the older secrets stay valid
                            for the overlap (default: one day; 0 ends them at once)
  disable CLIENT_ID         disables a client permanently, and revokes its tokens
  list                      prints the clients created here or registered, without secrets

  initial-token create --class NAME [--grant-type TYPE …] [--scope "a b"] [--uses N]
         [--expires SECONDS] [--json]
                            creates an initial access token for POST /register and prints it
  initial-token revoke ID   ends registration with this token; registered clients stay
  initial-token list        prints the initial access tokens, without their values

--config defaults to ${DEVELOPMENT_CONFIG}. TYPE is one of the following; without --grant-type, all:
  ${GRANT_TYPES.join("\n  ")}
A secret is printed once and stored as a digest. With --expires it expires after that time,
otherwise it is valid until it is rotated out.
An initial access token is valid for one registration and one day unless --uses or --expires
says otherwise. A client that registers with it gets at most its grant types and scopes, and
policy rules name such clients by --class.
A client gets no token until a policy rule names it, its class or its workload.`;

const OPTIONS = {
  config: textOption,
  method: textOption,
  "grant-type": textOption,
  workload: textOption,
  "default-target": textOption,
  expires: textOption,
  overlap: textOption,
  class: textOption,
  scope: textOption,
  uses: textOption,
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

export function parseClients(args: readonly string[]): Result<Command, string> {
  const parsed = attempt(() => parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true }));
  if (!parsed.ok) return parsed;
  const { values, positionals } = parsed.value;
  const [first = "", ...rest] = positionals;
  const [name, id, ...more] =
    first === "initial-token" ? [`${first} ${rest[0] ?? ""}`.trim(), ...rest.slice(1)] : [first, ...rest];
  const allowed = COMMANDS.get(name);
  if (allowed === undefined) return err(name === "" ? "no command given" : `unknown command "${name}"`);
  const takesId = TAKES_ID.includes(name);
  if (more.length > 0 || (id !== undefined) !== takesId) {
    return err(`"${name}" takes ${takesId ? "one id" : "options only"}`);
  }
  const wrong = findWrongOption(name, values, allowed, ["grant-type"]);
  if (wrong !== undefined) return err(wrong);
  const { config, method, workload, "grant-type": grantTypes = GRANT_TYPES, overlap, json = false } = values;
  const { "default-target": defaultTarget, expires, class: registrationClass, scope, uses } = values;
  const command = (run: Run) => ok({ configFile: config?.[0] ?? DEVELOPMENT_CONFIG, run });

  const lifetime = expires && wholeNumber(expires[0]);
  if (expires && lifetime === undefined) return err("--expires is not a whole number of seconds");
  const unknown = grantTypes.find((one) => !GRANT_TYPES.includes(one));
  const unknownGrantType = `--grant-type ${unknown} is not one of ${GRANT_TYPES.join(", ")}`;
  switch (name) {
    case "create": {
      // No default, because a client that sends its secret by another method would be refused only in operation.
      const known = METHODS.find((one) => one === method?.[0]);
      if (known === undefined) return err(`"create" requires --method ${METHODS.join(" or ")}`);
      if (unknown !== undefined) return err(unknownGrantType);
      const client = defined<NewClient>({
        method: known,
        grantTypes: [...new Set(grantTypes)],
        workload: workload?.[0],
        defaultTarget: defaultTarget?.[0],
        expiresInSeconds: lifetime,
        json,
      });
      return command((admin) => createClient(admin, client));
    }
    case "rotate": {
      const seconds = overlap?.[0] === "0" ? 0 : wholeNumber(overlap?.[0] ?? `${OVERLAP_SECONDS}`);
      if (seconds === undefined) return err("--overlap is not a whole number of seconds");
      const rotation = defined<Rotation>({
        clientId: id ?? "",
        overlapSeconds: seconds,
        expiresInSeconds: lifetime,
        json,
      });
      return command((admin) => rotateSecret(admin, rotation));
    }
    case "disable":
      return command((admin) => disableClient(admin, id ?? ""));
    case "initial-token create": {
      const name = registrationClass?.[0] ?? "";
      if (!isClassName(name))
        return err("--class is not a short name of lower-case letters, digits and hyphens");
      if (RESERVED.includes(name)) {
        return err(`--class ${name} is reserved for clients that register without an initial access token`);
      }
      if (unknown !== undefined) return err(unknownGrantType);
      const scopes = scope?.[0] === undefined ? undefined : parseScope(scope[0]);
      if (scopes?.ok === false) return err("--scope is not a list of scopes separated by single spaces");
      const usesMax = wholeNumber(uses?.[0] ?? "1");
      if (usesMax === undefined) return err("--uses is not a whole number of registrations");
      const token = defined<NewInitialToken>({
        registrationClass: name,
        grantTypes: [...new Set(grantTypes)],
        scopes: scopes?.value,
        usesMax,
        expiresInSeconds: lifetime ?? INITIAL_TOKEN_SECONDS,
        json,
      });
      return command((admin) => createInitialToken(admin, token));
    }
    case "initial-token revoke":
      return command((admin) => revokeInitialToken(admin, id ?? ""));
    case "initial-token list":
      return command(listInitialTokens);
    default:
      return command(listClients);
  }
}
