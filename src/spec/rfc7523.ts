/**
 * RFC 7523, JWT Profile for OAuth 2.0 Client Authentication: https://www.rfc-editor.org/rfc/rfc7523.html
 * with its update RFC 10070, https://www.rfc-editor.org/rfc/rfc10070.html. Covers 2.1, 2.2 and 3, for client assertions and for authorization
 * grants; the further rules for an ID-JAG are in id-jag.ts.
 * Elsewhere: 2.1 flows/redeem-grant.ts; 2.2 flows/verify-assertion.ts; 3 adapters/audit/journal.ts,
 * adapters/store/encoding.ts, adapters/store/journal-statements.ts, flows/issued-entry.ts, flows/redeem-grant.ts,
 * flows/refusal.ts, flows/spend-proof.ts, flows/still-covers.ts, flows/verify-assertion.ts, records.ts,
 * settings/settings.ts, spec/rfc7515.ts, spec/rfc7517.ts, spec/rfc7519.ts; 3.1 http/errors.ts; 3.2 http/errors.ts; 5
 * config/clients.ts, settings/settings.ts, spec/rfc8725.ts; B7523 4 config/schema.ts, spec/rfc7519.ts,
 * spec/rfc8725.ts; B7523 D cli/callers.ts, config/config.ts, http/counters.ts; D flows/verify-assertion.ts.
 */

import { ASSERTION_SECONDS_MAX } from "../limits/tokens.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { parseScope } from "./rfc6749.ts";
import type { Jws } from "./rfc7515.ts";
import {
  type AudienceFailure,
  type ClaimFailure,
  checkSoleAudience,
  checkTimes,
  stringClaim,
  stringOrUriClaim,
  type TimeFailure,
} from "./rfc7519.ts";
import {
  ASSERTION_ALGORITHMS,
  CLIENT_AUTHENTICATION,
  checkAlgorithm,
  checkKind,
  checkType,
  JWT_TYPES,
  type JwtAlgorithmFailure,
  type JwtKindFailure,
  type JwtTypeFailure,
} from "./rfc8725.ts";

// --- client assertions (2.2, 3) ---------------------------------------------------------------------------------

/** RFC7523-2.2-1: the `client_assertion_type` of a JWT. */
export const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** The claims of an unverified assertion by which keys are selected. */
type ClientAssertion = { issuer: string; subject: string };

type AssertionFailure =
  | JwtAlgorithmFailure
  | JwtTypeFailure
  | JwtKindFailure
  | ClaimFailure
  | AudienceFailure
  | TimeFailure;

/** The result is unverified: it may only be used to select keys. */
export function parseClientAssertion({ header, claims }: Jws): Result<ClientAssertion, AssertionFailure> {
  const algorithm = checkAlgorithm(header, ASSERTION_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // B7523-4-9: `typ` may be absent, but must not be that of another kind of JWT (RFC8725-3.12-v1).
  const type = checkType(header, JWT_TYPES.clientAssertion);
  if (!type.ok) return type;
  const kind = checkKind(claims, "clientAssertion");
  if (!kind.ok) return kind;
  // RFC7523-3-3, RFC7523-3-5: `iss` and `sub` are required.
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  const subject = stringClaim(claims, "sub");
  if (!subject.ok) return subject;
  return ok({ issuer: issuer.value, subject: subject.value });
}

export type AssertionRule = {
  issuer: string;
  /** What an assertion without the type of RFC 10070 may name, `issuer` among them. */
  audiences: readonly string[];
  nowSeconds: number;
  skewSeconds: number;
  /**
   * The greatest age that is accepted, for an issuer whose tokens may live longer than an assertion that the client
   * made itself.
   */
  maxAgeSeconds?: number;
  /** For an assertion with `jti`, which is accepted once; ASSERTION_SECONDS_MAX if absent. */
  singleUseSecondsMax?: number;
};

type CheckedAssertion = { audience: string; jti?: string; expiresAtSeconds: number };

/**
 * Does not check the signature: the result counts only under a key of the assertion's issuer (RFC8725-3.8-1,
 * RFC8725-3.8-v1).
 */
export function checkClientAssertion(
  { header, claims }: Jws,
  { issuer, audiences, nowSeconds, skewSeconds, maxAgeSeconds, singleUseSecondsMax }: AssertionRule,
): Result<CheckedAssertion, AssertionFailure | { kind: "assertion_audience_not_issuer" }> {
  // RFC7523-3-7, B7523-4-6: the only audience is this server.
  const audience = checkSoleAudience(claims, audiences);
  if (!audience.ok) return audience;
  // B7523-D-1: by its type the client says that it follows RFC 10070, where only the issuer is an audience.
  if (checkType(header, [CLIENT_AUTHENTICATION]).ok && audience.value !== issuer) {
    return err({ kind: "assertion_audience_not_issuer" });
  }
  // Without `jti` an assertion can be sent again until it expires, so that only a short one is accepted.
  const ownSecondsMax = claims.jti === undefined ? undefined : singleUseSecondsMax;
  const longestSeconds = maxAgeSeconds ?? ownSecondsMax ?? ASSERTION_SECONDS_MAX;
  // RFC7523-3-10, RFC7523-3-11, RFC7523-3-12, RFC7523-3-13, PROD-8.1-2: an assertion is current, and of limited age and
  // lifetime.
  const times = checkTimes(claims, {
    nowSeconds,
    skewSeconds,
    lifetimeSecondsMax: longestSeconds,
    ageSecondsMax: longestSeconds,
  });
  if (!times.ok) return times;
  // PROD-2.3-5: `jti` may be absent; if present it is a string, because it is recorded as used.
  const jti = claims.jti === undefined ? undefined : stringClaim(claims, "jti");
  if (jti?.ok === false) return jti;
  const expiresAtSeconds = Math.ceil(times.value.exp);
  return ok(defined<CheckedAssertion>({ audience: audience.value, expiresAtSeconds, jti: jti?.value }));
}

// --- authorization grants (2.1, 3) ------------------------------------------------------------------------------

/** RFC7523-2.1-1: the `grant_type` by which a JWT authorization grant is redeemed. */
export const JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** A plain grant as in identity chaining (IDC-2.4.2-1), or an ID-JAG. */
export type GrantProfile = "jwt" | "id-jag";

/** What an unverified grant says; it may only be used to select the keys and the rules that apply. */
export type NamedGrant = { issuer: string; profile: GrantProfile };

export type GrantFailure =
  | AssertionFailure
  | { kind: "grant_self_issued" }
  | { kind: "grant_issuer_is_subject" }
  | { kind: "grant_client_differs" }
  | { kind: "grant_tenant_unsupported" };

/** The result is unverified. `us` is our own issuer identifier. */
export function parseGrant({ header, claims }: Jws, us: string): Result<NamedGrant, GrantFailure> {
  // RFC8725-3.1-v1, EMA-7.4.1-1: only algorithms of our list, never `none`.
  const algorithm = checkAlgorithm(header, ASSERTION_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // RFC8725-3.12-v1: a JWT with any other type is not a grant.
  const type = checkType(header, [...JWT_TYPES.grant, ...JWT_TYPES.idJag]);
  if (!type.ok) return type;
  const kind = checkKind(claims, "grant");
  if (!kind.ok) return kind;
  // IDJAG-4.4.1-2: the type alone makes a grant an ID-JAG.
  const profile = checkType(header, JWT_TYPES.idJag).ok ? "id-jag" : "jwt";
  // RFC7523-3-3: `iss` is required.
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  // IDJAG-9.4-1, PROD-4.1v9-4: our own grants are refused, because exchange and redemption at one server would bypass
  // the policy for a direct exchange.
  if (issuer.value === us) return err({ kind: "grant_self_issued" });
  return ok({ issuer: issuer.value, profile });
}

export type GrantRule = {
  audiences: readonly string[];
  /** The authenticated client, which redeems the grant. */
  clientId: string;
  requireClientId: boolean;
  nowSeconds: number;
  skewSeconds: number;
};

export type CheckedGrant = {
  issuer: string;
  subject: string;
  /** The accepted value of `aud`. */
  audience: string;
  jti: string;
  expiresAtSeconds: number;
  clientId?: string;
  /** Absent: the grant has no `scope`. */
  scope?: readonly string[];
  /** The APIs that an ID-JAG names; empty for a plain grant. */
  resources: readonly string[];
};

/** Does not check the signature: the result counts only under a key of the grant's issuer (RFC8725-3.8-v1). */
export function checkGrant(
  { claims }: Pick<Jws, "claims">,
  { audiences, clientId, requireClientId, nowSeconds, skewSeconds }: GrantRule,
): Result<CheckedGrant, GrantFailure> {
  // RFC7523-3-3, RFC7523-3-5: `iss` and `sub` are required.
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  const subject = stringOrUriClaim(claims, "sub");
  if (!subject.ok) return subject;
  // RFC7521-6.2-1: a JWT about its own issuer is an authentication, not a grant.
  if (issuer.value === subject.value) return err({ kind: "grant_issuer_is_subject" });
  // RFC7523-3-7, B7523-4-2, IDC-2.4.2-2: the only audience is this server.
  const audience = checkSoleAudience(claims, audiences);
  if (!audience.ok) return audience;
  // RFC7523-3-10, RFC7523-3-11, RFC7523-3-12, RFC7523-3-13: a grant is current, and of limited age and lifetime.
  const times = checkTimes(claims, {
    nowSeconds,
    skewSeconds,
    lifetimeSecondsMax: ASSERTION_SECONDS_MAX,
    ageSecondsMax: ASSERTION_SECONDS_MAX,
  });
  if (!times.ok) return times;
  // RFC7523-3-14, IDC-5.5-2: every grant is single use, so it needs a `jti` to be recorded by.
  const jti = stringClaim(claims, "jti");
  if (!jti.ok) return jti;
  // RFC7523-3-2: a grant with `client_id` is redeemed by that client only.
  const named = claims.client_id === undefined ? undefined : stringClaim(claims, "client_id");
  if (named?.ok === false) return named;
  if (named === undefined && requireClientId) return err({ kind: "jwt_claim_missing", claim: "client_id" });
  if (named !== undefined && named.value !== clientId) return err({ kind: "grant_client_differs" });
  // IDJAG-3.1-2: with `tenant`, `sub` is unique only within the tenant, but we map subjects by issuer alone.
  if (claims.tenant !== undefined) return err({ kind: "grant_tenant_unsupported" });
  // RFC8693-4.2-1: `scope` is one string, never an array.
  const scope = typeof claims.scope === "string" ? parseScope(claims.scope) : undefined;
  if (claims.scope !== undefined && !scope?.ok) return err({ kind: "jwt_claim_malformed", claim: "scope" });
  return ok(
    defined<CheckedGrant>({
      issuer: issuer.value,
      subject: subject.value,
      audience: audience.value,
      jti: jti.value,
      expiresAtSeconds: Math.ceil(times.value.exp),
      clientId: named?.value,
      scope: scope?.ok ? scope.value : undefined,
      resources: [],
    }),
  );
}
