/**
 * RFC 7523, JWT Profile for OAuth 2.0 Client Authentication: https://www.rfc-editor.org/rfc/rfc7523.html
 * with its update draft-ietf-oauth-rfc7523bis-11. Covers 2.1, 2.2 and 3, for client assertions and for authorization
 * grants; what an ID-JAG has to be beyond that stands in id-jag.ts.
 */

import { ASSERTION_SECONDS_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import { parseScope } from "./rfc6749.ts";
import type { Jws } from "./rfc7515.ts";
import type { AudienceFailure, ClaimFailure, TimeFailure } from "./rfc7519.ts";
import { checkSoleAudience, checkTimes, stringClaim, stringOrUriClaim } from "./rfc7519.ts";
import type { JwtAlgorithmFailure, JwtTypeFailure } from "./rfc8725.ts";
import { ASSERTION_ALGORITHMS, checkAlgorithm, checkType, JWT_TYPES } from "./rfc8725.ts";

// --- client assertions (2.2, 3) ---------------------------------------------------------------------------------

/** RFC7523-2.2-1 */
export const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/** What an unverified assertion says: enough to choose whose keys to ask for, and no more. */
export type ClientAssertion = { issuer: string; subject: string };

export type AssertionFailure =
  | JwtAlgorithmFailure
  | JwtTypeFailure
  | ClaimFailure
  | AudienceFailure
  | TimeFailure;

export function parseClientAssertion({ header, claims }: Jws): Result<ClientAssertion, AssertionFailure> {
  const algorithm = checkAlgorithm(header, ASSERTION_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // B7523-4-9: no type is fine, another kind's type is not (RFC8725-3.12-v1).
  const type = checkType(header, JWT_TYPES.clientAssertion);
  if (!type.ok) return type;
  // RFC7523-3-3, RFC7523-3-5
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  const subject = stringClaim(claims, "sub");
  if (!subject.ok) return subject;
  return ok({ issuer: issuer.value, subject: subject.value });
}

export type AssertionRule = {
  audiences: readonly string[];
  nowSeconds: number;
  skewSeconds: number;
  /** Of an issuer whose tokens live longer than an assertion of the client itself may. */
  maxAgeSeconds?: number;
};

export type CheckedAssertion = { audience: string; jti?: string; expiresAtSeconds: number };

/** What it answers counts only under a signature that is valid under a key of the assertion's own issuer (RFC8725-3.8-1, RFC8725-3.8-v1). */
export function checkClientAssertion(
  { claims }: Jws,
  { audiences, nowSeconds, skewSeconds, maxAgeSeconds = ASSERTION_SECONDS_MAX }: AssertionRule,
): Result<CheckedAssertion, AssertionFailure> {
  // RFC7523-3-7, B7523-4-6: one audience, ours.
  const audience = checkSoleAudience(claims, audiences);
  if (!audience.ok) return audience;
  // RFC7523-3-10, RFC7523-3-11, RFC7523-3-12, RFC7523-3-13, PROD-8.1-2
  const times = checkTimes(claims, {
    nowSeconds,
    skewSeconds,
    lifetimeSecondsMax: maxAgeSeconds,
    ageSecondsMax: maxAgeSeconds,
  });
  if (!times.ok) return times;
  // PROD-2.3-5: it may be missing; what is there has to be a string, since it is spent.
  const jti = claims.jti === undefined ? undefined : stringClaim(claims, "jti");
  if (jti?.ok === false) return jti;
  const expiresAtSeconds = Math.ceil(times.value.exp);
  return ok(defined<CheckedAssertion>({ audience: audience.value, expiresAtSeconds, jti: jti?.value }));
}

// --- authorization grants (2.1, 3) ------------------------------------------------------------------------------

/** RFC7523-2.1-1 */
export const JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** A plain grant, as identity chaining has it (IDC-2.4.2-1), or an ID-JAG. */
export type GrantProfile = "jwt" | "id-jag";

/** What an unverified grant says: enough to choose whose keys to ask for and whose rules it has to meet. */
export type NamedGrant = { issuer: string; profile: GrantProfile };

export type GrantFailure =
  | AssertionFailure
  | { kind: "grant_self_issued" }
  | { kind: "grant_issuer_is_subject" }
  | { kind: "grant_client_differs" }
  | { kind: "grant_bound" }
  | { kind: "grant_details_unsupported" }
  | { kind: "grant_tenant_unsupported" };

/** `us`: our own issuer identifier. */
export function parseGrant({ header, claims }: Jws, us: string): Result<NamedGrant, GrantFailure> {
  // RFC8725-3.1-v1, EMA-7.4.1-1
  const algorithm = checkAlgorithm(header, ASSERTION_ALGORITHMS);
  if (!algorithm.ok) return algorithm;
  // RFC8725-3.12-v1: with any other type it is another kind of JWT.
  const type = checkType(header, [...JWT_TYPES.grant, ...JWT_TYPES.idJag]);
  if (!type.ok) return type;
  // IDJAG-4.4.1-2: by this type, and only by it, an ID-JAG.
  const profile = checkType(header, JWT_TYPES.idJag).ok ? "id-jag" : "jwt";
  // RFC7523-3-3
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  // IDJAG-9.4-1, PROD-4.1v9-4: exchanged and redeemed at one server, it would go around the policy of both steps.
  if (issuer.value === us) return err({ kind: "grant_self_issued" });
  return ok({ issuer: issuer.value, profile });
}

export type GrantRule = {
  audiences: readonly string[];
  /** The authenticated client. */
  clientId: string;
  requireClientId: boolean;
  nowSeconds: number;
  skewSeconds: number;
};

export type CheckedGrant = {
  issuer: string;
  subject: string;
  /** The value used. */
  audience: string;
  jti: string;
  expiresAtSeconds: number;
  clientId?: string;
  /** Absent: it does not say. */
  scope?: readonly string[];
  /** Of an ID-JAG that names the APIs it is for. */
  resources: readonly string[];
};

/** Says nothing of the signature: the answer counts only under a key of the grant's own issuer (RFC8725-3.8-v1). */
export function checkGrant(
  { claims }: Pick<Jws, "claims">,
  { audiences, clientId, requireClientId, nowSeconds, skewSeconds }: GrantRule,
): Result<CheckedGrant, GrantFailure> {
  // RFC7523-3-3, RFC7523-3-5
  const issuer = stringClaim(claims, "iss");
  if (!issuer.ok) return issuer;
  const subject = stringOrUriClaim(claims, "sub");
  if (!subject.ok) return subject;
  // RFC7521-6.2-1: whoever speaks for itself authenticates itself, and grants nothing.
  if (issuer.value === subject.value) return err({ kind: "grant_issuer_is_subject" });
  // RFC7523-3-7, B7523-4-2, IDC-2.4.2-2: one audience, ours.
  const audience = checkSoleAudience(claims, audiences);
  if (!audience.ok) return audience;
  // RFC7523-3-10, RFC7523-3-11, RFC7523-3-12, RFC7523-3-13
  const times = checkTimes(claims, {
    nowSeconds,
    skewSeconds,
    lifetimeSecondsMax: ASSERTION_SECONDS_MAX,
    ageSecondsMax: ASSERTION_SECONDS_MAX,
  });
  if (!times.ok) return times;
  // RFC7523-3-14, IDC-5.5-2: every grant is spent, so it has a name to be remembered by.
  const jti = stringClaim(claims, "jti");
  if (!jti.ok) return jti;
  // RFC7523-3-2: where it names who may redeem it, nobody else may.
  const named = claims.client_id === undefined ? undefined : stringClaim(claims, "client_id");
  if (named?.ok === false) return named;
  if (named === undefined && requireClientId) return err({ kind: "jwt_claim_missing", claim: "client_id" });
  if (named !== undefined && named.value !== clientId) return err({ kind: "grant_client_differs" });
  // IDJAG-9.9-4: a bound grant needs a proof, and none is taken here.
  if (claims.cnf !== undefined) return err({ kind: "grant_bound" });
  // IDJAG-4.4.1-6: no such details are known here, and to pass over them would grant more than they do.
  if (claims.authorization_details !== undefined) return err({ kind: "grant_details_unsupported" });
  // IDJAG-3.1-2: `sub` is unique only within a tenant there, and we know the issuer as one.
  if (claims.tenant !== undefined) return err({ kind: "grant_tenant_unsupported" });
  // RFC8693-4.2-1: one string, never an array.
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
