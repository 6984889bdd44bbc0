/**
 * RFC 6749, The OAuth 2.0 Authorization Framework: https://www.rfc-editor.org/rfc/rfc6749.html
 * Covers 6 refreshing an access token; with the scope `offline_access` of OpenID Connect Core 1.0 section 11.
 */
import { err, ok, type Result } from "../../result.ts";
import { type Form, OFFLINE_ACCESS, parseScope } from "../../spec/rfc6749.ts";

/** The scope of an authorization request without that wish; one that names nothing else names no scope. */
export function splitOffline(scope: readonly string[] | undefined): {
  offline: boolean;
  scope: readonly string[] | undefined;
} {
  const offline = scope?.includes(OFFLINE_ACCESS) ?? false;
  const others = scope?.filter((one) => one !== OFFLINE_ACCESS) ?? [];
  return { offline, scope: others.length === 0 ? undefined : others };
}

type RefreshFailure = { kind: "refresh_token_missing" };

/** RFC6749-6-1 */
export function parseRefresh({ refresh_token: token }: Form): Result<string, RefreshFailure> {
  return token === undefined ? err({ kind: "refresh_token_missing" }) : ok(token);
}

/**
 * RFC6749-6-2: the scopes of the access token that is asked for: those that the user gave, or some of them. Whether the
 * client may go on without the user is no matter of one access token.
 */
export function readNarrowedScope(
  scope: string | undefined,
  granted: readonly string[],
  offline: boolean,
): Result<readonly string[], { kind: "scope_malformed" | "scope_exceeds_grant" }> {
  if (scope === undefined) return ok(granted);
  const parsed = parseScope(scope);
  if (!parsed.ok) return parsed;
  const asked = parsed.value.filter((one) => !(offline && one === OFFLINE_ACCESS));
  if (!asked.every((one) => granted.includes(one))) return err({ kind: "scope_exceeds_grant" });
  return ok(asked.length === 0 ? granted : asked);
}
