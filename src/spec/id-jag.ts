/**
 * OAuth Identity Assertion JWT Authorization Grant, draft-ietf-oauth-identity-assertion-authz-grant-04, with the
 * Enterprise-Managed Authorization profile of the Model Context Protocol.
 * Covers 3.1 claims, 4.3.3 the audience of the identity assertion, 4.4.1 what is required beyond RFC 7523 section 3.
 * The token type and the request for it are in rfc8693.ts, the choice by `typ` in rfc7523.ts.
 * Elsewhere: EMA 5.1 flows/order/grant.ts; EMA 6 http/discovery.ts, spec/rfc8414.ts; EMA 7.4.1 spec/rfc7523.ts; EMA
 * 7.4.2 flows/order/grant.ts, flows/refusal.ts, policy/rule-members.ts; EMA 7.6.1 policy/decide.ts, policy/targets.ts;
 * EMA 7.6.2 flows/order/grant.ts, flows/token-request.ts; IDJAG 3.1 policy/decide.ts, policy/targets.ts,
 * spec/rfc7523.ts; IDJAG 4.1 flows/order/order.ts; IDJAG 4.3 flows/order/question.ts, policy/decide.ts,
 * policy/judge.ts, policy/rule-members.ts, policy/rules.ts, spec/rfc8693.ts; IDJAG 4.3.3 flows/order/subject.ts,
 * policy/judge.ts; IDJAG 4.3.4 flows/issue.ts, flows/options/details.ts; IDJAG 4.4.1 flows/issue.ts,
 * flows/order/grant.ts, spec/rfc7523.ts; IDJAG 5 policy/checks.ts, policy/decide.ts, policy/decision.ts,
 * policy/targets.ts, spec/identity-chaining.ts; IDJAG 7.1 http/discovery.ts, spec/rfc8414.ts; IDJAG 7.2
 * http/discovery.ts, spec/rfc8414.ts; IDJAG 9.4 flows/order/question.ts, spec/rfc7523.ts; IDJAG 9.5 http/discovery.ts,
 * spec/rfc8414.ts; IDJAG 9.8 flows/build-token.ts; IDJAG 9.9 flows/prove-keys.ts, flows/token-request.ts,
 * policy/binding.ts, policy/decide.ts, spec/rfc9068.ts.
 */

import { err, ok, type Result } from "../result.ts";
import { buildGrantClaims, type Grant } from "./identity-chaining.ts";
import type { Jws } from "./rfc7515.ts";
import { type AudienceFailure, type ClaimFailure, checkAudienceContains } from "./rfc7519.ts";
import { type CheckedGrant, checkGrant, type GrantFailure, type GrantRule } from "./rfc7523.ts";
import type { JsonObject } from "./rfc8259.ts";

export const DRAFT = "draft-ietf-oauth-identity-assertion-authz-grant-04";

/** IDJAG-3.1-7: the `typ` by which an ID-JAG is told from every other JWT. */
export const ID_JAG_TYP = "oauth-id-jag+jwt";

/** IDJAG-7.2-2: how the server metadata announces that ID-JAGs are redeemed. */
export const ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";

export type IdJag = Grant & {
  /** The client's `client_id` at the other server. */
  clientIdThere: string;
  /** Resource identifiers (URIs) of APIs at the other server. */
  resources: readonly string[];
};

/**
 * IDJAG-3.1-1, IDJAG-3.1-4, IDJAG-3.1-5, IDJAG-3.1-6: the claims of a grant, with `client_id` and an optional
 * `resource`.
 */
export function buildIdJagClaims(idJag: IdJag): JsonObject {
  const [first, ...others] = idJag.resources;
  if (first === undefined) return buildGrantClaims(idJag);
  // EMA-4.3-1: a single API is written as a string, several as an array.
  return { ...buildGrantClaims(idJag), resource: others.length === 0 ? first : [first, ...others] };
}

/**
 * IDJAG-4.3.3-2: an identity assertion is accepted only from the client that its `aud` names. With several audiences,
 * `azp` names the one client it was issued to (OpenID Connect Core 3.1.3.7).
 */
export function checkAssertionAudience(
  claims: JsonObject,
  clientId: string,
): Result<string, AudienceFailure> {
  if (claims.azp !== undefined && claims.azp !== clientId) return err({ kind: "jwt_audience_refused" });
  return checkAudienceContains(claims, [clientId]);
}

export type IdJagRule = Omit<GrantRule, "audiences" | "requireClientId"> & {
  /** Our own issuer identifier. */
  issuer: string;
};

/** Does not check the signature: the result counts only under a key of the issuer, as for `checkGrant`. */
export function checkIdJag(
  jws: Pick<Jws, "claims">,
  { issuer, ...rule }: IdJagRule,
): Result<CheckedGrant, GrantFailure> {
  // IDJAG-4.4.1-3, EMA-7.6.2-1: the audience is our issuer identifier; the token endpoint, which an assertion may name,
  // is refused. IDJAG-4.4.1-4: `client_id` is required and is the authenticated client.
  const grant = checkGrant(jws, { ...rule, audiences: [issuer], requireClientId: true });
  if (!grant.ok) return grant;
  // EMA-7.4.1-2: `iat` is required.
  if (jws.claims.iat === undefined) return err({ kind: "jwt_time_missing", claim: "iat" });
  const resources = resourcesOf(jws.claims);
  if (!resources.ok) return resources;
  return ok({ ...grant.value, resources: resources.value });
}

/** IDJAG-4.4.1-6: `resource` is a string or an array of strings; the policy decides which of them are ours. */
function resourcesOf({ resource }: JsonObject): Result<readonly string[], ClaimFailure> {
  if (resource === undefined) return ok([]);
  const values: string[] = [];
  for (const value of Array.isArray(resource) ? resource : [resource]) {
    if (typeof value !== "string" || value === "") {
      return err({ kind: "jwt_claim_malformed", claim: "resource" });
    }
    values.push(value);
  }
  // An empty array is refused, because a reader could take it for "no restriction".
  return values.length === 0 ? err({ kind: "jwt_claim_malformed", claim: "resource" }) : ok(values);
}
