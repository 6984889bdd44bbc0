/**
 * Authorizes a call of one of our protected endpoints (RFC 6750, PROD-5r4-1): the caller needs an access token of ours
 * for these endpoints, with the scope that the endpoint requires.
 */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { ApiScope } from "../policy/own-target.ts";
import { apiAudience } from "../policy/own-target.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { parseJws } from "../spec/rfc7515.ts";
import { verifyOwnToken } from "./verify-own-token.ts";

export type ApiCaller = {
  clientId: string;
  /** `sub` of its token: the client itself, or the subject that it acts for. */
  subject: string;
  jti: string;
  scopes: readonly string[];
  /** Whether the token came from an exchange, and not from the client's own credentials. */
  exchanged: boolean;
};

export type ApiRefusal =
  | { kind: "credentials_missing" | "scheme_unsupported" | "credentials_malformed"; reason: Reason }
  | { kind: "token_invalid"; reason: Reason }
  /** The token is valid, so the caller is known. */
  | { kind: "scope_insufficient"; reason: Reason; scope: ApiScope; caller: ApiCaller }
  | { kind: "throttled" | "overloaded"; reason: Reason; waitSeconds: number };

/** The token of the request, not verified yet; or why there is none. */
export type Bearer = Result<string, ApiRefusal>;

export async function authorizeApi(
  ports: Ports,
  bearer: Bearer,
  scope: ApiScope,
): Promise<Result<ApiCaller, ApiRefusal>> {
  return bearer.ok ? authorizeToken(ports, bearer.value, scope) : bearer;
}

export async function authorizeToken(
  ports: Ports,
  token: string,
  scope: ApiScope,
): Promise<Result<ApiCaller, ApiRefusal>> {
  const { issuer } = ports.settings();
  const invalid = (reason: Reason) => err({ kind: "token_invalid", reason } as const);
  const jws = parseJws(token);
  if (!jws.ok) return invalid(jws.error.kind);
  const own = await verifyOwnToken(ports, jws.value);
  if (!own.ok) return invalid(own.error.reason);
  const { jti, record } = own.value;
  // RFC9068-4-9, RFC9700-2.3-3: tokens of ours for other targets are refused.
  if (record.audience !== apiAudience(issuer)) return invalid("audience_not_ours");
  const caller: ApiCaller = {
    clientId: record.clientId,
    subject: record.subject,
    jti,
    scopes: record.scope.split(" "),
    exchanged: record.origin.iss !== issuer || record.ancestors.length > 0,
  };
  // RFC6749-7-1: the token has to have the scope of the endpoint.
  if (!caller.scopes.includes(scope)) {
    return err({ kind: "scope_insufficient", reason: "scope_insufficient", scope, caller });
  }
  const waitSeconds = ports.throttle.spend(caller.clientId);
  if (waitSeconds > 0) return err({ kind: "throttled", reason: "requests_too_many", waitSeconds });
  return ok(caller);
}

export function describeCaller({ clientId, jti }: ApiCaller): NonNullable<AuditEvent["client"]> {
  return { client_id: clientId, auth_method: "bearer", jti };
}
