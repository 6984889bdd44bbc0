/**
 * RFC 9207, OAuth 2.0 Authorization Server Issuer Identification: https://www.rfc-editor.org/rfc/rfc9207.html
 * Covers 2 the parameter `iss`; with it the one place where a redirect to a client is built (RFC 6749 4.1.2).
 * Elsewhere: 2.3 spec/rfc8414.ts.
 */
import { defined } from "../../result.ts";

/** What a redirect tells the client; `state` as it was sent, absent where it was absent. */
export type AuthorizationResponse = ({ code: string } | AuthorizationError) & { state?: string };

/** RFC6749-4.1.2.1-3: the description is a fixed text of ours in printable ASCII without `"` and `\`, and no echo. */
export type AuthorizationError = { error: AuthorizationErrorCode; error_description: string };

/** RFC6749-4.1.2.1-2, RFC6749-4.1.2.1-3: registered codes alone, those of OpenID Connect Core 3.1.2.6 among them. */
type AuthorizationErrorCode =
  | "invalid_request"
  | "unauthorized_client"
  | "access_denied"
  | "unsupported_response_type"
  | "invalid_scope"
  | "invalid_target"
  | "invalid_authorization_details"
  | "interaction_required"
  | "login_required"
  | "request_not_supported"
  | "request_uri_not_supported"
  | "invalid_request_uri"
  | "server_error"
  | "temporarily_unavailable";

/**
 * The URI to redirect to. RFC6749-3.1.2-1, PAGE-D-12: the parameters are appended to the registered URI as it stands,
 * whose own query is kept byte for byte; a registered URI has no fragment, and none is added.
 */
export function buildRedirect(redirectUri: string, issuer: string, response: AuthorizationResponse): string {
  // RFC9207-2-1, RFC9207-2-2, RFC9700-4.4.2-1, MCPC-D-16: in every response, errors included, as in the metadata.
  const { state, ...rest } = response;
  const members = defined<Record<string, string>>({ ...rest, state, iss: issuer });
  const query = Object.entries(members).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  const separator = redirectUri.includes("?") ? (/[?&]$/.test(redirectUri) ? "" : "&") : "?";
  return `${redirectUri}${separator}${query.join("&")}`;
}
