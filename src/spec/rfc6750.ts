/**
 * RFC 6750, Bearer Token Usage: https://www.rfc-editor.org/rfc/rfc6750.html
 * Covers 2.1 the Authorization header, 3 the challenge, 3.1 its error codes. Tokens in a body or a query are refused.
 * Elsewhere: 3 http/bearer.ts; 3.1 http/bearer.ts; 4 spec/rfc6749.ts; 5.2 adapters/crypto/registration-tokens.ts,
 * adapters/crypto/signer.ts, http/answers.ts, policy/rule-members.ts; 5.3 policy/rule-members.ts.
 */
import { err, ok, type Result } from "../result.ts";

type BearerFailure = { kind: "credentials_missing" | "scheme_unsupported" | "credentials_malformed" };

/** RFC6750-2.1-3: the field holds the scheme in any case, one or more spaces, and a b64token, and nothing else. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;
const SCHEME = /^bearer(?: |$)/i;

/** The token of a request to one of our protected endpoints; `query` holds the names of its query parameters. */
export function parseBearer(
  authorization: string | undefined,
  query: ReadonlySet<string>,
): Result<string, BearerFailure> {
  // RFC6750-2-1, RFC6750-2.3-2: a token is taken from the header only; one in the query is an error even beside a
  // header.
  if (query.has("access_token")) return err({ kind: "credentials_malformed" });
  // RFC6750-3.1-5: without the Bearer scheme the request has no token, so the challenge has no error code.
  if (authorization === undefined) return err({ kind: "credentials_missing" });
  if (!SCHEME.test(authorization)) return err({ kind: "scheme_unsupported" });
  const token = BEARER.exec(authorization)?.[1];
  // RFC6750-1.1-1: the token is taken byte for byte.
  return token === undefined ? err({ kind: "credentials_malformed" }) : ok(token);
}

export type BearerError =
  | "invalid_request"
  | "invalid_token"
  | "insufficient_scope"
  | "invalid_dpop_proof"
  | "use_dpop_nonce";

export type Challenge = {
  realm: string;
  /** RFC6750-3-6, RFC6750-3.1-5: the code is present if, and only if, a token was sent and refused. */
  error?: BearerError;
  description?: string;
  scope?: string;
  /** The URL of the metadata of the resource (RFC9728-5.1-1). */
  resourceMetadata?: string;
  /** The algorithms of proofs, for the scheme `DPoP` (RFC9449-7.1-3). */
  algs?: string;
};

// RFC6750-3-8, RFC6750-3-9: quotation mark and backslash are excluded, so that nothing has to be escaped.
const TEXT = /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * RFC6750-3-3, RFC6750-3-4: the value of `WWW-Authenticate`: the scheme, and each attribute once. Throws if a value
 * holds a character that is not allowed: the texts are our own, so that is a bug.
 */
export function buildChallenge(
  { realm, error, description, scope, resourceMetadata, algs }: Challenge,
  scheme: "Bearer" | "DPoP" = "Bearer",
): string {
  const named = { realm, error, error_description: description, scope };
  const attributes = Object.entries({ ...named, resource_metadata: resourceMetadata, algs });
  const shown = attributes.flatMap(([name, text]) => {
    if (text === undefined) return [];
    if (!TEXT.test(text)) throw new TypeError(`${name} of a challenge holds a character that is not allowed`);
    return [`${name}="${text}"`];
  });
  return `${scheme} ${shown.join(", ")}`;
}
