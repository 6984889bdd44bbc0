/** `mandate clients`: which of its forms was called, and with what. */
import { INITIAL_TOKEN_SECONDS } from "../limits/clients.ts";
import { MACHINE_GRANT_TYPES } from "../modes.ts";
import { isClassName } from "../policy/rule-members.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { methodsWith } from "../settings/authentication-methods.ts";
import { parseScope } from "../spec/rfc6749.ts";
import { OWN_CLASSES } from "../spec/rfc7591.ts";
import { clientsList } from "./callers.ts";
import {
  createInitialToken,
  listInitialTokens,
  type NewInitialToken,
  revokeInitialToken,
} from "./clients/initial-tokens.ts";
import {
  createClient,
  disableClient,
  type NewClient,
  type Rotation,
  rotateSecret,
} from "./clients/secret-clients.ts";
import { type Command, onStore } from "./command.ts";
import { type CommandArguments, readWhole, wholeNumber } from "./options.ts";

const METHODS = methodsWith("secrets", "operator");
const OVERLAP_SECONDS = 86_400;
const RESERVED: readonly string[] = Object.values(OWN_CLASSES);

export function clientsCommand(given: CommandArguments): Result<Command, string> {
  const [id = ""] = given.args;
  switch (given.form) {
    case "create": {
      const client = readClient(given);
      return client.ok ? onStore(given, (admin) => createClient(admin, client.value)) : client;
    }
    case "rotate": {
      const rotation = readRotation(given, id);
      return rotation.ok ? onStore(given, (admin) => rotateSecret(admin, rotation.value)) : rotation;
    }
    case "disable":
      return onStore(given, (admin) => disableClient(admin, id));
    case "initial-token create": {
      const token = readInitialToken(given);
      return token.ok ? onStore(given, (admin) => createInitialToken(admin, token.value)) : token;
    }
    case "initial-token revoke":
      return onStore(given, (admin) => revokeInitialToken(admin, id));
    case "initial-token list":
      return onStore(given, (admin) => listInitialTokens(admin, given.has("json")));
    default:
      return clientsList(given);
  }
}

function readClient(given: CommandArguments): Result<NewClient, string> {
  const [method, workload, defaultTarget] = ["method", "workload", "default-target"].map(given.one);
  // The default accepts the secret in both places, because libraries choose one by themselves.
  const known = METHODS.find((one) => one === (method ?? "client_secret"));
  if (known === undefined) return err(`--method ${method} is not one of ${METHODS.join(", ")}`);
  const grantTypes = readGrantTypes(given);
  if (!grantTypes.ok) return grantTypes;
  const lifetime = readLifetime(given);
  if (!lifetime.ok) return lifetime;
  return ok(
    defined<NewClient>({
      method: known,
      grantTypes: grantTypes.value,
      workload,
      defaultTarget,
      expiresInSeconds: lifetime.value,
      json: given.has("json"),
    }),
  );
}

function readRotation(given: CommandArguments, clientId: string): Result<Rotation, string> {
  const overlap = given.one("overlap") ?? `${OVERLAP_SECONDS}`;
  const overlapSeconds = overlap === "0" ? 0 : wholeNumber(overlap);
  if (overlapSeconds === undefined) return err("--overlap is not a whole number of seconds");
  const lifetime = readLifetime(given);
  if (!lifetime.ok) return lifetime;
  const json = given.has("json");
  return ok(defined<Rotation>({ clientId, overlapSeconds, expiresInSeconds: lifetime.value, json }));
}

function readInitialToken(given: CommandArguments): Result<NewInitialToken, string> {
  const [name = "", scope] = ["class", "scope"].map(given.one);
  if (!isClassName(name)) {
    return err("--class is not a short name of lower-case letters, digits and hyphens");
  }
  if (RESERVED.includes(name)) {
    return err(`--class ${name} is reserved for clients that register without an initial access token`);
  }
  const grantTypes = readGrantTypes(given);
  if (!grantTypes.ok) return grantTypes;
  const lifetime = readLifetime(given);
  if (!lifetime.ok) return lifetime;
  const scopes = scope === undefined ? undefined : parseScope(scope);
  if (scopes?.ok === false) return err("--scope is not a list of scopes separated by single spaces");
  const uses = readWhole(given, "uses", "of registrations");
  if (!uses.ok) return uses;
  return ok(
    defined<NewInitialToken>({
      registrationClass: name,
      grantTypes: grantTypes.value,
      scopes: scopes?.value,
      usesMax: uses.value ?? 1,
      expiresInSeconds: lifetime.value ?? INITIAL_TOKEN_SECONDS,
      json: given.has("json"),
    }),
  );
}

function readGrantTypes(given: CommandArguments): Result<readonly string[], string> {
  const served = MACHINE_GRANT_TYPES;
  const wanted = given.all("grant-type") ?? served;
  const unknown = wanted.find((one) => !served.includes(one));
  if (unknown !== undefined) return err(`--grant-type ${unknown} is not one of ${served.join(", ")}`);
  return ok([...new Set(wanted)]);
}

const readLifetime = (given: CommandArguments): Result<number | undefined, string> =>
  readWhole(given, "expires", "of seconds");
