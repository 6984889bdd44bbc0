/**
 * RFC 9449, OAuth 2.0 Demonstrating Proof of Possession (DPoP): https://www.rfc-editor.org/rfc/rfc9449.html
 * Covers 4.2 the proof, 4.3 its checks, 7.1 the authentication scheme, 10 the key of a code. The signature is verified
 * by the caller, with the key that `parseProof` returns; the thumbprint of the key is RFC 7638's.
 * Elsewhere: 2 spec/rfc3986.ts; 4 flows/prove-keys.ts; 4.1 flows/prove-keys.ts; 4.3 flows/authorize-api.ts,
 * flows/prove-keys.ts, flows/token-exchange.ts, policy/judge.ts, spec/rfc3986.ts, spec/rfc8725.ts, start/listeners.ts;
 * 5 flows/build-token.ts, flows/prove-keys.ts, flows/still-covers.ts, flows/token.ts, http/bearer.ts, http/errors.ts,
 * people/flows/judge-refresh.ts, people/flows/redeem-code.ts, policy/binding.ts; 5.1 policy/checks.ts, spec/rfc8414.ts;
 * 5.2 config/client-schema.ts, flows/still-covers.ts, http/errors.ts, policy/binding.ts, policy/decide.ts,
 * settings/client-metadata.ts, settings/client.ts, settings/settings.ts, spec/rfc7591-members.ts; 6
 * flows/authorize-api.ts; 6.1 flows/prove-keys.ts, spec/rfc9068.ts; 6.2 spec/rfc7662.ts, spec/rfc9068.ts; 7
 * http/bearer.ts; 7.1 flows/authorize-api.ts, http/bearer.ts, spec/rfc6750.ts; 7.2 flows/authorize-api.ts,
 * http/bearer.ts; 8 adapters/crypto/nonces.ts, http/bearer.ts, http/errors.ts, http/form.ts, ports.ts; 8.1
 * adapters/crypto/nonces.ts; 8.2 http/bearer.ts, http/form.ts; 9 adapters/crypto/nonces.ts; 10
 * people/flows/redeem-code.ts; 10.1 people/flows/redeem-code.ts, people/http/par.ts; 11.1
 * adapters/store/journal-statements.ts, flows/issued-entry.ts, flows/prove-keys.ts, flows/refusal.ts, http/bearer.ts,
 * records.ts; 11.2 policy/rule-members.ts; 11.6 spec/rfc8725.ts; D flows/prove-keys.ts, http/errors.ts.
 */
import { PROOF_JTI_CHARS_MAX } from "../limits/input.ts";
import { PROOF_SECONDS_MAX } from "../limits/tokens.ts";
import { err, ok, type Result } from "../result.ts";
import { normalizeHttps } from "./rfc3986.ts";
import { type Jws, type JwsFailure, parseJws } from "./rfc7515.ts";
import { type Jwk, type JwkFailure, parseJwk, SECRET_MEMBERS } from "./rfc7517.ts";
import { type ClaimFailure, numberClaim, stringClaim, type TimeFailure } from "./rfc7519.ts";
import { isJsonObject } from "./rfc8259.ts";
import {
  checkAlgorithm,
  checkKind,
  checkType,
  JWT_TYPES,
  type JwtAlgorithmFailure,
  type JwtKindFailure,
  type JwtTypeFailure,
} from "./rfc8725.ts";

type ProofFailure =
  | { kind: "repeated" }
  | JwsFailure
  | JwtTypeFailure
  | JwtKindFailure
  | JwtAlgorithmFailure
  | JwkFailure
  | ClaimFailure
  | TimeFailure
  | { kind: "method_differs" | "url_differs" | "token_differs" | "jti_too_long" }
  | { kind: "nonce_missing" | "nonce_refused" };

// --- syntax (4.2) -----------------------------------------------------------------------------------------------

/** The key signs for itself: that it made the signature is still to be verified. */
type ParsedProof = { jws: Jws; key: Jwk };

/** RFC9449-4.1-1: the value of the field `DPoP`, byte for byte; several fields arrive joined by commas. */
export function parseProof(value: string, algorithms: readonly string[]): Result<ParsedProof, ProofFailure> {
  // RFC9449-4.3-1: the request has one field, and no list in it.
  if (value.includes(",")) return err({ kind: "repeated" });
  // RFC9449-4.3-2: the field holds one JWT. RFC9449-4.2-8: unknown members are ignored, except for `crit`.
  const jws = parseJws(value, ["jwk"]);
  if (!jws.ok) return jws;
  const { header } = jws.value;
  // RFC9449-4.3-4, RFC9449-4.2-1, RFC9449-11.5-1: no other JWT that the client signed is a proof.
  const type = checkType(header, JWT_TYPES.dpopProof);
  if (!type.ok) return type;
  const kind = checkKind(jws.value.claims, "dpopProof");
  if (!kind.ok) return kind;
  // RFC9449-4.3-5, RFC9449-4.2-2, RFC9449-11.6-1, RFC9449-11.6-2: the algorithm is asymmetric and of our list.
  const algorithm = checkAlgorithm(header, algorithms);
  if (!algorithm.ok) return algorithm;
  const { jwk } = header.members;
  // RFC9449-4.3-7, RFC9449-4.2-3: the key is neither private nor symmetric, under whatever type.
  if (isJsonObject(jwk) && SECRET_MEMBERS.some((name) => name in jwk)) return err({ kind: "jwk_private" });
  const key = parseJwk(jwk ?? null);
  return key.ok ? ok({ jws: jws.value, key: key.value }) : key;
}

// --- checks (4.3) -----------------------------------------------------------------------------------------------

export type ProofRule = {
  /** The request: its method, and the URL that it was served at. */
  method: string;
  url: string;
  nowSeconds: number;
  skewSeconds: number;
  /** The SHA-256 of the access token in base64url, where the request is for a resource. */
  ath?: string;
  /**
   * Present where a nonce is demanded: the time until which the nonce of this proof is accepted; undefined if it is
   * none of ours.
   */
  endOfNonce?: (nonce: string) => number | undefined;
};

/** `endSeconds`: from then on the proof is too old to be accepted. */
type CheckedProof = { jti: string; endSeconds: number };

/** Does not check the signature: the result counts only under the key of the proof. */
export function checkProof({ claims }: Jws, rule: ProofRule): Result<CheckedProof, ProofFailure> {
  // RFC9449-4.3-3, RFC9449-4.2-4: the four claims that every proof has.
  const jti = stringClaim(claims, "jti");
  if (!jti.ok) return jti;
  const htm = stringClaim(claims, "htm");
  if (!htm.ok) return htm;
  const htu = stringClaim(claims, "htu");
  if (!htu.ok) return htu;
  const iat = numberClaim(claims, "iat");
  if (!iat.ok) return iat;
  // RFC9449-11.1-3: this limit is our own, because the `jti` is recorded as used.
  if (jti.value.length > PROOF_JTI_CHARS_MAX) return err({ kind: "jti_too_long" });
  // RFC9449-4.3-8: methods differ by case.
  if (htm.value !== rule.method) return err({ kind: "method_differs" });
  // RFC9449-4.3-9, RFC9449-4.3-13: both URLs are normalised, without query and fragment.
  const url = normalizeHttps(rule.url);
  if (url === undefined || normalizeHttps(htu.value) !== url) return err({ kind: "url_differs" });
  if (rule.ath !== undefined) {
    // RFC9449-4.3-12, RFC9449-4.2-6: the proof was made for this token.
    const ath = stringClaim(claims, "ath");
    if (!ath.ok) return ath;
    if (ath.value !== rule.ath) return err({ kind: "token_differs" });
  }
  const end =
    rule.endOfNonce === undefined ? endByClock(iat.value, rule) : endByNonce(claims.nonce, rule.endOfNonce);
  return end.ok ? ok({ jti: jti.value, endSeconds: end.value }) : end;
}

/**
 * RFC9449-4.3-11, RFC9449-11.1-1: the proof was made within the last minute; RFC9449-11.1-4: the clock of its client
 * may be ahead.
 */
function endByClock(iat: number, { nowSeconds, skewSeconds }: ProofRule): Result<number, ProofFailure> {
  if (iat > nowSeconds + skewSeconds) return err({ kind: "jwt_issued_in_future" });
  if (nowSeconds - iat > PROOF_SECONDS_MAX) return err({ kind: "jwt_too_old" });
  return ok(Math.ceil(iat) + PROOF_SECONDS_MAX + 1);
}

/**
 * RFC9449-4.3-10, RFC9449-8-5, RFC9449-11.3-1: the nonce is one of our latest; RFC9449-11.1-5: its time is that of the
 * proof.
 */
function endByNonce(
  nonce: unknown,
  endOfNonce: NonNullable<ProofRule["endOfNonce"]>,
): Result<number, ProofFailure> {
  if (nonce === undefined) return err({ kind: "nonce_missing" });
  const end = typeof nonce === "string" ? endOfNonce(nonce) : undefined;
  return end === undefined ? err({ kind: "nonce_refused" }) : ok(end);
}

// --- the key of a code (10) -------------------------------------------------------------------------------------

/** A SHA-256 in base64url ends with a character that has four bits. */
const THUMBPRINT = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

export type KeyParameterFailure = { kind: "dpop_jkt_malformed" };

/** RFC9449-10-1: the thumbprint of the key to which the code is to be bound; undefined for a request without it. */
export const parseKeyParameter = (
  jkt: string | undefined,
): Result<string | undefined, KeyParameterFailure> =>
  jkt === undefined || THUMBPRINT.test(jkt) ? ok(jkt) : err({ kind: "dpop_jkt_malformed" });

// --- the authentication scheme (7.1) ----------------------------------------------------------------------------

/** RFC9449-7.1-1: the field holds the scheme in any case, one or more spaces, and a token68. */
const CREDENTIALS = /^dpop +([A-Za-z0-9._~+/-]+=*)$/i;

export const hasDpopScheme = (authorization: string): boolean => /^dpop(?: |$)/i.test(authorization);

/** The access token in an `Authorization` field of this scheme; `query` as for RFC 6750. */
export function parseDpopCredentials(
  authorization = "",
  query: ReadonlySet<string>,
): Result<string, { kind: "credentials_malformed" }> {
  const token = query.has("access_token") ? undefined : CREDENTIALS.exec(authorization)?.[1];
  return token === undefined ? err({ kind: "credentials_malformed" }) : ok(token);
}
