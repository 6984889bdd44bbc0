/**
 * OAuth SPIFFE Client Authentication, draft-ietf-oauth-spiffe-client-auth-02.
 * Covers 3.1 JWT-SVID as client assertion, and which workloads are clients, with registration and without.
 * Elsewhere: SPCA 3.1 flows/find-client.ts, flows/verify-svid.ts; SPCA 3.2 adapters/crypto/x509.ts,
 * flows/find-client.ts, flows/verify-certificate.ts, spec/spiffe/x509-svid.ts; SPCA 4
 * settings/authentication-methods.ts, spec/rfc8414.ts; SPCA 5 flows/verify-svid.ts; SPCA 5.1 spec/rfc7591-members.ts,
 * spec/rfc7591.ts, spec/spiffe/id.ts; SPCA 6 adapters/remote/trust-bundles.ts; SPCA 6.1
 * adapters/remote/trust-bundles.ts; SPCA 8.1 flows/verify-svid.ts; SPCA D config/bundles.ts, config/workloads.ts,
 * flows/authenticate-client.ts, flows/verify-assertion.ts, spec/spiffe/jwt-svid.ts.
 */

import { err, ok, type Result } from "../../result.ts";
import { matchesPattern } from "./id.ts";

export const DRAFT = "draft-ietf-oauth-spiffe-client-auth-02";

/** SPCA-3.1-1: the type of a JWT-SVID as client assertion. */
export const JWT_SPIFFE = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe";

/** Which workloads of a trust domain are clients without registration. */
export type Admission = "all" | "none" | readonly string[];

type ClientFailure = { kind: "client_id_missing" | "client_id_differs" | "workload_not_admitted" };

/** RFC6749-2.3.2-2, PROD-2.1-6: the `client_id` of a proven workload is its SPIFFE ID, if its trust domain admits it. */
export function resolveClient(
  spiffeId: string,
  requested: string | undefined,
  rule: { admit: Admission; requireClientId: boolean },
): Result<string, ClientFailure> {
  // SPCA-3.1-11: a `client_id` is required only where the operator configures it, since only the newest text requires
  // it.
  if (requested === undefined && rule.requireClientId) return err({ kind: "client_id_missing" });
  // RFC7521-4.2-2, SPCA-3.1-8: a `client_id` in the request must match; the SPIFFE ID is no fallback for it.
  if (requested !== undefined && requested !== spiffeId) return err({ kind: "client_id_differs" });
  return isAdmitted(rule.admit, spiffeId) ? ok(spiffeId) : err({ kind: "workload_not_admitted" });
}

/**
 * SPCA-5.1-5, SPCA-6.1-4: a client that chose its bundle endpoint could vouch for itself, so it may only repeat the one
 * that is configured.
 */
export function fitsBundle(
  { spiffeId, bundleEndpoint }: { spiffeId?: string; bundleEndpoint?: string },
  trustDomains: ReadonlyMap<string, { bundle: object }>,
): boolean {
  if (spiffeId === undefined || bundleEndpoint === undefined) return true;
  const [, , name = ""] = spiffeId.split("/");
  const bundle = trustDomains.get(name)?.bundle;
  return bundle !== undefined && "url" in bundle && bundle.url === bundleEndpoint;
}

export function isAdmitted(admission: Admission, spiffeId: string): boolean {
  if (admission === "all") return true;
  if (admission === "none") return false;
  return admission.some((pattern) => matchesPattern(pattern, spiffeId));
}
