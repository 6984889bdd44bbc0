/**
 * Authorizes a call of one of our protected endpoints (RFC 6750, PROD-5r4-1): the caller needs an access token of ours
 * for these endpoints, with the scope that the endpoint requires.
 */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason, TokenReason } from "../audit/reasons.ts";
import type { ProvenKeys } from "../policy/access.ts";
import { isProven } from "../policy/binding.ts";
import { ALSO_TAKES, API_PATHS, type ApiPath, type ApiScope, apiAudience } from "../policy/own-target.ts";
import type { OwnTokenPorts, Ports } from "../ports.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { parseJws } from "../spec/rfc7515.ts";
import type { BoundTo } from "../spec/rfc7800.ts";
import { verifyOwnToken } from "./verify-own-token.ts";

export type ApiCaller = {
  clientId: string;
  workload?: string;
  /** `sub` of its token: the client itself, or the subject that it acts for. */
  subject: string;
  jti: string;
  scopes: readonly string[];
  /** Whether the token came from an exchange, and not from the client's own credentials. */
  exchanged: boolean;
};

export type ApiRefusal =
  | { kind: "credentials_missing" | "scheme_unsupported" | "credentials_malformed"; reason: Reason }
  | { kind: "token_invalid" | "proof_refused" | "nonce_demanded"; reason: Reason }
  /** The token is valid, so the caller is known although its scope is too small. */
  | { kind: "scope_insufficient"; reason: Reason; scope: ApiScope; caller: ApiCaller }
  | { kind: "throttled" | "overloaded"; reason: Reason; waitSeconds: number };

/** The token of a request, not verified yet, and the keys that the request proves. */
export type PresentedToken = { token: string; scheme: "Bearer" | "DPoP"; keys: ProvenKeys };

/** The token of the request, or why there is none. */
export type Bearer = Result<PresentedToken, ApiRefusal>;

export type ApiCallerPorts = OwnTokenPorts & Pick<Ports, "throttle">;

export async function authorizeApi(
  ports: ApiCallerPorts,
  bearer: Bearer,
  path: ApiPath,
): Promise<Result<ApiCaller, ApiRefusal>> {
  return bearer.ok ? authorizeToken(ports, bearer.value, path) : bearer;
}

export async function authorizeToken(
  ports: ApiCallerPorts,
  presented: PresentedToken,
  path: ApiPath,
): Promise<Result<ApiCaller, ApiRefusal>> {
  const { issuer } = ports.settings();
  const scope = API_PATHS[path];
  const invalid = (reason: Reason) => err({ kind: "token_invalid", reason } as const);
  const jws = parseJws(presented.token);
  if (!jws.ok) return invalid(jws.error.kind);
  const own = await verifyOwnToken(ports, jws.value);
  if (!own.ok) return invalid(own.error.reason);
  const { record } = own.value;
  const held = checkHolder(presented, record.confirmation);
  if (!held.ok) return invalid(held.error.reason);
  // RFC9068-4-9, RFC9700-2.3-3: tokens of ours for other targets are refused, and those for one endpoint at the others.
  const audiences = [apiAudience(issuer), issuer + path];
  if (!audiences.includes(record.audience)) return invalid("audience_not_ours");
  const caller = defined<ApiCaller>({
    clientId: record.clientId,
    workload: record.workload,
    subject: record.subject,
    jti: record.jti,
    scopes: record.scope.split(" "),
    exchanged: record.origin.iss !== issuer || record.ancestors.length > 0,
  });
  // RFC6749-7-1: the token has to have the scope of the endpoint.
  if (![scope, ALSO_TAKES[path]].some((one) => one !== undefined && caller.scopes.includes(one))) {
    return err({ kind: "scope_insufficient", reason: "scope_insufficient", scope, caller });
  }
  const waitSeconds = ports.throttle.spend(caller.clientId);
  if (waitSeconds > 0) return err({ kind: "throttled", reason: "requests_too_many", waitSeconds });
  return ok(caller);
}

/** Whether the caller may use a token that is bound to this key, or to none. */
export function checkHolder(
  { scheme, keys }: Pick<PresentedToken, "scheme" | "keys">,
  boundTo: BoundTo | undefined,
): Result<undefined, { reason: TokenReason | "token_unbound" }> {
  // RFC9449-7.1-1: under the scheme DPoP the token and its proof belong together.
  if (scheme === "DPoP" && (boundTo === undefined || boundTo === "unknown" || !("jkt" in boundTo))) {
    return err({ reason: "token_unbound" });
  }
  // RFC9449-6-2, RFC9449-7.2-1, RFC9449-4.3-12, RFC8705-3-3, RFC9700-4.10.1-1: under any scheme, the request must prove
  // the key that the token is bound to.
  if (boundTo !== undefined && !isProven(boundTo, keys)) return err({ reason: "key_not_proven" });
  return ok(undefined);
}

export function describeCaller({ clientId, jti }: ApiCaller): NonNullable<AuditEvent["client"]> {
  return { client_id: clientId, auth_method: "bearer", jti };
}
