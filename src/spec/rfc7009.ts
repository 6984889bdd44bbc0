/**
 * RFC 7009, OAuth 2.0 Token Revocation: https://www.rfc-editor.org/rfc/rfc7009.html
 * Covers 2.1 request, which is also that of RFC 7662 2.1.
 * Elsewhere: 2 flows/revoke.ts, spec/rfc8414.ts; 2.1 flows/revoke.ts, http/errors.ts, http/form.ts, http/revoke.ts;
 * 2.2 flows/revoke.ts, http/revoke.ts; 2.2.1 flows/revoke.ts, http/errors.ts; 5 http/revoke.ts.
 */

import { err, ok, type Result } from "../result.ts";
import type { Form } from "./rfc6749.ts";

type TokenFormFailure = { kind: "token_missing" };

/**
 * The token that the request is about. RFC7009-2.1-4, RFC7009-2.1-5, RFC7009-2.2-3, RFC7009-5-3, RFC7662-2.1-4,
 * RFC7662-2.1-5: the hint is ignored, because the token itself shows its kind.
 */
export function parseTokenForm({ token }: Pick<Form, "token">): Result<string, TokenFormFailure> {
  // RFC7009-2.1-2, RFC7662-2.1-2
  return token === undefined ? err({ kind: "token_missing" }) : ok(token);
}
