/** A client secret, in the Basic scheme or in the body (RFC 6749 2.3.1). */

import { err, ok } from "../result.ts";
import { AUTH_METHODS } from "../settings/authentication-methods.ts";
import type { SecretDigest } from "../settings/settings.ts";
import type { PresentedSecret } from "../spec/rfc7521.ts";
import type { Verifier } from "./verifier.ts";

/** Compared in place of the secrets of an unknown client, so that it costs what a known one costs. */
const NO_SECRETS: readonly SecretDigest[] = [{ digest: "A".repeat(43) }];
/** With blanks, which neither a configured nor a stored `client_id` has. */
const NO_CLIENT_ID = "no client has this name";

export const verifySecret: Verifier<PresentedSecret> = async (ports, { by, clientId, secret }) => {
  const client = await ports.clients.find(clientId);
  const nowSeconds = ports.clock.nowSeconds();
  const digest = ports.hash.sha256(secret);
  const known = client !== undefined && "secrets" in client.auth ? client.auth.secrets : NO_SECRETS;
  let matches = false;
  for (const { digest: one, expiresAtSeconds = Number.POSITIVE_INFINITY } of known) {
    if (ports.hash.equal(digest, one) && nowSeconds < expiresAtSeconds) matches = true;
  }
  // A configured client was found without the store: a wrong secret for it takes as long as one for an unknown client.
  if (!matches && ports.settings().clients.has(clientId)) await ports.clients.find(NO_CLIENT_ID);
  // RFC6749-5.2-3: one answer for all of these.
  if (client === undefined) return err({ reason: "client_unknown" });
  if (!matches) return err({ reason: "secret_wrong" });
  // RFC6749-2.3.1-5: a client proves itself in the way it is registered for, and no other.
  const { method } = client.auth;
  if (AUTH_METHODS[method].presented !== by) return err({ reason: "method_not_registered" });
  return ok({ clientId: client.clientId, method, record: client });
};
