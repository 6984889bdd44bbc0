/**
 * RFC 7592, OAuth 2.0 Dynamic Client Registration Management: https://www.rfc-editor.org/rfc/rfc7592.html
 * Covers 2.2 the members of an update beside the metadata.
 * Elsewhere: 2 flows/authorize-registration.ts; 2.1 flows/authorize-registration.ts, http/register.ts; 2.2
 * adapters/store/journal-statements.ts, flows/manage-client.ts, http/register.ts, spec/rfc7591.ts; 2.3
 * adapters/store/token-facts.ts, flows/manage-client.ts, http/register.ts; 3 http/register.ts, spec/rfc7591.ts; 5
 * adapters/crypto/registration-tokens.ts, adapters/store/journal-statements.ts, flows/authorize-registration.ts,
 * ports.ts; A.1 flows/manage-client.ts, records.ts; B flows/authorize-registration.ts, http/register.ts.
 */

import { STRING_BYTES_MAX } from "../limits/input.ts";
import { ok, type Result } from "../result.ts";
import { type MetadataFailure, metadataInvalid } from "./rfc7591-errors.ts";
import type { JsonObject } from "./rfc8259.ts";

const OF_SERVER: readonly string[] = [
  "registration_access_token",
  "registration_client_uri",
  "client_secret_expires_at",
  "client_id_issued_at",
];

type ClientUpdate = {
  /** The secret must be a current one (RFC7592-2.2-7), and an update never sets a new one (RFC7592-2.2-8). */
  clientSecret?: string;
  /** The whole new record, read like a registration (RFC7592-2.2-3, RFC7592-2.2-4). */
  metadata: JsonObject;
};

/** A null member is treated as absent (RFC7592-2.2-4). */
export function parseClientUpdate(
  json: JsonObject,
  { clientId }: { clientId: string },
): Result<ClientUpdate, MetadataFailure> {
  // RFC7592-2.2-2: an update must not hold members that only the server sets.
  if (OF_SERVER.some((name) => (json[name] ?? null) !== null)) return metadataInvalid("server_member_sent");
  const { client_id: named, client_secret: secret, ...metadata } = json;
  // RFC7592-2.2-6: the update must name this client.
  if (named !== clientId) return metadataInvalid("client_id_differs");
  if (secret === undefined || secret === null) return ok({ metadata });
  if (typeof secret !== "string" || secret === "" || secret.length > STRING_BYTES_MAX) {
    return metadataInvalid("client_secret_refused");
  }
  return ok({ clientSecret: secret, metadata });
}
