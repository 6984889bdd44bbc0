/** A client secret, in the Basic scheme or in the body (RFC 6749 2.3.1). */

import type { BasePorts, FetchRefused } from "../ports.ts";
import { err, ok, type Result, whenReady } from "../result.ts";
import { AUTH_METHODS } from "../settings/authentication-methods.ts";
import type { Client, SecretDigest } from "../settings/settings.ts";
import type { PresentedSecret } from "../spec/rfc7521.ts";
import type { MethodVerifier, Proven } from "./verifier.ts";

/** This digest is compared for an unknown client, so that it takes as long as a known one. */
const NO_SECRETS: readonly SecretDigest[] = [{ digest: "A".repeat(43) }];

export const verifySecret: MethodVerifier<PresentedSecret> = (ports, presented) =>
  whenReady(ports.clients.find(presented.clientId), (client) => checkSecret(ports, presented, client));

function checkSecret(
  ports: BasePorts,
  { by, secret }: PresentedSecret,
  client: Client | undefined,
): Result<Proven, FetchRefused> {
  const nowSeconds = ports.clock.nowSeconds();
  const digest = ports.hash.sha256(secret);
  const secrets = client !== undefined && "secrets" in client.auth ? client.auth.secrets : NO_SECRETS;
  let matches = false;
  for (const { digest: one, expiresAtSeconds = Number.POSITIVE_INFINITY } of secrets) {
    if (ports.hash.equal(digest, one) && nowSeconds < expiresAtSeconds) matches = true;
  }
  // RFC6749-5.2-3: the caller gets the same answer for each of these.
  if (client === undefined) return err({ reason: "client_unknown" });
  if (!matches) return err({ reason: "secret_wrong" });
  // RFC6749-2.3.1-5: a client may use only the method that it is registered for.
  const { method } = client.auth;
  const { presented } = AUTH_METHODS[method];
  if (presented !== by && presented !== "basic_or_body") return err({ reason: "method_not_registered" });
  return ok({ clientId: client.clientId, method, record: client });
}
