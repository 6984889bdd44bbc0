/** RFC 7592: a registered client replaces or removes its record. Reading needs no flow: the record is the answer. */

import type { AuditEvent } from "../audit/event.ts";
import type { Ports } from "../ports.ts";
import type { Entry, RegisteredClient, RegistrationChange } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { ceilingNow } from "../settings/client-metadata.ts";
import { parseClientUpdate } from "../spec/rfc7592.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import type { AuditedRequest } from "./refusal.ts";
import {
  describeRegistered,
  makeSecret,
  type Registered,
  type RegistrationFailure,
  readRegistration,
} from "./register-client.ts";
import type { StatementPorts } from "./software-statement.ts";

/** RFC7592-2.2-3: the new record replaces the old one, under what the client's class may have now. */
export async function updateClient(
  ports: StatementPorts & Pick<Ports, "journal">,
  client: RegisteredClient,
  request: AuditedRequest,
  json: Json,
): Promise<Result<Registered, RegistrationFailure>> {
  const denied = async (failure: RegistrationFailure) => {
    await record(ports, client, request, {
      type: "client.registration_denied",
      outcome: "deny",
      reason: failure.reason,
    });
    return err(failure);
  };
  if (!isJsonObject(json)) return denied({ kind: "client_metadata_invalid", reason: "not_an_object" });
  const update = parseClientUpdate(json, client);
  if (!update.ok) return denied(update.error);
  const nowSeconds = ports.clock.nowSeconds();
  const inForce = client.secrets.filter(({ expiresAtSeconds: end }) => end === undefined || nowSeconds < end);
  // RFC7592-2.2-7, RFC7592-2.2-8: a client may repeat its secret but not choose another.
  const { clientSecret } = update.value;
  const digest = clientSecret === undefined ? undefined : ports.hash.sha256(clientSecret);
  if (digest !== undefined && !inForce.some((one) => ports.hash.equal(one.digest, digest))) {
    return denied({ kind: "client_metadata_invalid", reason: "client_secret_differs" });
  }
  const ceiling = ceilingNow(client, ports.settings().registration);
  const { registrationClass } = client;
  const read = await readRegistration(ports, update.value.metadata, { registrationClass, ceiling });
  if (!read.ok) return denied(read.error);
  // With another method the secrets of the old one end.
  const same = read.value.method === client.metadata.token_endpoint_auth_method && inForce.length > 0;
  const { secret, secrets } = same ? { secrets: inForce } : makeSecret(ports, read.value, nowSeconds);
  const next: RegisteredClient = {
    ...client,
    version: client.version + 1,
    metadata: read.value.members,
    ceiling,
    tokenGeneration: client.tokenGeneration + 1, // RFC7592-A.1-2: the old registration access token ends
    secrets,
  };
  const recorded = await record(
    ports,
    client,
    request,
    { type: "client.updated", outcome: "allow", reason: "by_client" },
    { update: next, atSeconds: nowSeconds },
    describeRegistered(ports, next),
  );
  // Another update came first, and only its answer holds the token that is valid now.
  if (!recorded) return denied({ kind: "token_invalid", reason: "client_changed" });
  return ok(defined<Registered>({ client: next, secret }));
}

/** RFC7592-2.3-1, RFC7592-2.3-2: its id, its credentials and the tokens issued to it end together. */
export async function removeClient(
  ports: Recording,
  client: RegisteredClient,
  request: AuditedRequest,
): Promise<Result<undefined, RegistrationFailure>> {
  const atSeconds = ports.clock.nowSeconds();
  const event = { type: "client.removed", outcome: "allow", reason: "by_client" } as const;
  const { clientId, version } = client;
  // RFC7592-A.1-2: the token of this request may have been replaced since it was checked.
  const removed = await record(ports, client, request, event, { remove: clientId, version, atSeconds });
  if (removed) return ok(undefined);
  await record(ports, client, request, {
    type: "client.registration_denied",
    outcome: "deny",
    reason: "client_changed",
  });
  return err({ kind: "token_invalid", reason: "client_changed" });
}

type Recording = Pick<Ports, "clock" | "settings" | "journal">;

async function record(
  ports: Recording,
  { clientId, registrationClass }: RegisteredClient,
  request: AuditedRequest,
  event: Pick<AuditEvent, "type" | "outcome" | "reason">,
  registration?: RegistrationChange,
  detail: JsonObject = {},
): Promise<boolean> {
  const entry = defined<Entry>({
    event: {
      ...event,
      request,
      policy: { digest: ports.settings().policy.digest }, // AUDIT-D-4
      client: { client_id: clientId, auth_method: "registration_access_token", source: "registration" },
      detail: { client_id: clientId, class: registrationClass, ...detail },
    },
    registration,
  });
  const recorded = await ports.journal.record(entry);
  return recorded.ok;
}
