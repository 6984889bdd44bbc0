/** RFC 7591: a client registers itself. It gets no permission by that; a policy rule must allow what it does. */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { BasePorts, Ports, RecordPorts } from "../ports.ts";
import type { RegisteredClient, RegistrationChange } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { resembled } from "../settings/agents.ts";
import { type AuthMethod, hasCredential } from "../settings/authentication-methods.ts";
import { type AdmittedBy, claimedName, judgeRegistration } from "../settings/client-metadata.ts";
import type { SecretDigest } from "../settings/settings.ts";
import { CLIENT_ID_PREFIX, isGiven, mergeStatement, type Registration } from "../spec/rfc7591.ts";
import { type MetadataFailure, metadataInvalid } from "../spec/rfc7591-errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import { describeCaller } from "./authorize-api.ts";
import type { Registrar } from "./authorize-registration.ts";
import type { AuditedRequest } from "./refusal.ts";
import {
  readsStatements,
  type StatementFailure,
  type StatementPorts,
  verifyStatement,
} from "./software-statement.ts";

export type RegistrationFailure =
  | MetadataFailure
  | StatementFailure
  /** Before the write, the initial access token was used up, had expired or was revoked, or the client was changed. */
  | { kind: "token_invalid"; reason: Reason }
  | { kind: "clients_too_many"; reason: Reason };

/** The client as recorded, and its secret, which only this answer shows. */
export type Registered = { client: RegisteredClient; secret?: string };

export async function registerClient(
  ports: StatementPorts & RecordPorts,
  registrar: Registrar,
  request: AuditedRequest,
  json: Json,
): Promise<Result<Registered, RegistrationFailure>> {
  const { registrationClass, ceiling, initialTokenId } = registrar;
  const read = await readRegistration(ports, json, registrar);
  if (!read.ok) return refuse(ports, registrar, request, read.error);
  const issuedAtSeconds = ports.clock.nowSeconds();
  const { secret, secrets } = makeSecret(ports, read.value, issuedAtSeconds);
  const client: RegisteredClient = {
    clientId: `${CLIENT_ID_PREFIX}${ports.random.id()}`, // RFC7591-3.1-1, RFC7591-6-1
    version: 1,
    metadata: read.value.members,
    registrationClass,
    ceiling,
    tokenGeneration: 1,
    secrets,
    issuedAtSeconds,
  };
  const { detail, ...event } = describeRegistrar(ports, registrar, request);
  const { clientsMax } = ports.settings().registration;
  const recorded = await ports.journal.record({
    event: {
      type: "client.registered",
      outcome: "allow",
      reason: `by_${registrar.by}`,
      ...event,
      detail: { client_id: client.clientId, ...detail, ...describeRegistered(ports, client) },
    },
    registration: defined<RegistrationChange>({ register: client, clientsMax, initialTokenId }),
  });
  if (recorded.ok) return ok(defined<Registered>({ client, secret }));
  if (recorded.error.includes("registrations_below")) {
    return refuse(ports, registrar, request, { kind: "clients_too_many", reason: "clients_too_many" });
  }
  if (recorded.error.includes("initial_token_usable")) {
    return refuse(ports, registrar, request, { kind: "token_invalid", reason: "initial_token_used_up" });
  }
  throw new Error("a random id is taken");
}

/** Reads the body of a request into what is recorded under this admission. */
export async function readRegistration(
  ports: StatementPorts,
  json: Json,
  admission: AdmittedBy,
): Promise<Result<Registration<AuthMethod>, RegistrationFailure>> {
  if (!isJsonObject(json)) return metadataInvalid("not_an_object");
  const stated = await withStatement(ports, json);
  if (!stated.ok) return stated;
  return judgeRegistration(stated.value, admission, ports.settings());
}

async function withStatement(
  ports: StatementPorts,
  json: JsonObject,
): Promise<Result<JsonObject, StatementFailure>> {
  const { software_statement: statement, ...rest } = json;
  if (!isGiven(statement) || !readsStatements(ports)) return ok(rest);
  if (typeof statement !== "string") {
    return err({ kind: "software_statement_invalid", reason: "software_statement_refused" });
  }
  const claims = await verifyStatement(ports, statement);
  if (!claims.ok) return claims;
  // RFC7591-2-22, RFC7591-5-11, RFC7591-3.2.1-11: the claims of the statement take precedence, and it is recorded as it
  // was sent.
  return ok({ ...mergeStatement(rest, claims.value), software_statement: statement });
}

/** RFC7591-3.2.1-4, RFC6749-10.10-3: the server generates the secret, and stores only its digest. */
export function makeSecret(
  ports: BasePorts,
  { method }: Pick<Registration<AuthMethod>, "method">,
  nowSeconds: number,
): { secret?: string; secrets: RegisteredClient["secrets"] } {
  if (!hasCredential(method, "secrets")) return { secrets: [] };
  const { clientSecretSeconds: secretSeconds } = ports.settings().registration;
  const secret = ports.random.secret();
  const expiresAtSeconds = secretSeconds === undefined ? undefined : nowSeconds + secretSeconds;
  return {
    secret,
    secrets: [defined<SecretDigest>({ digest: ports.hash.sha256(secret), expiresAtSeconds })],
  };
}

/** AUDIT-D-2: a caller known by its token gets an event; others are counted, so that they cannot fill the disk. */
async function refuse(
  ports: RecordPorts,
  registrar: Registrar,
  request: AuditedRequest,
  failure: RegistrationFailure,
): Promise<Result<never, RegistrationFailure>> {
  if (registrar.by === "anybody") {
    ports.authFailures.note(request, failure.reason);
    return err(failure);
  }
  const { reason } = failure;
  const event = describeRegistrar(ports, registrar, request);
  await ports.journal.record({
    event: { type: "client.registration_denied", outcome: "deny", reason, ...event },
  });
  return err(failure);
}

type DescribedRegistrar = Pick<AuditEvent, "request" | "client" | "policy" | "detail">;

/** AUDIT-D-4: the event names the caller, and the digest of the policy in force. */
function describeRegistrar(
  { settings }: Pick<Ports, "settings">,
  { registrationClass, initialTokenId, administrator }: Registrar,
  request: AuditedRequest,
): DescribedRegistrar {
  return defined<DescribedRegistrar>({
    request,
    client: administrator && describeCaller(administrator),
    policy: { digest: settings().policy.digest },
    detail: defined<JsonObject>({ class: registrationClass, initial_access_token: initialTokenId }),
  });
}

/**
 * The members of a registration that are audited; names and contacts are in the record alone. NAME-D-3: `name_like` is the
 * agent of the operator's for which its name could be taken.
 */
export function describeRegistered(
  { settings }: Pick<Ports, "settings">,
  { metadata }: RegisteredClient,
): JsonObject {
  const audited = [
    "token_endpoint_auth_method",
    "grant_types",
    "scope",
    "jwks_uri",
    "spiffe_id",
    "software_id",
  ];
  const claimed = claimedName(metadata);
  return defined<JsonObject>({
    ...Object.fromEntries(audited.map((name) => [name, metadata[name]])),
    name_like: claimed && resembled(settings().agents, claimed),
  });
}
