/**
 * OAuth Identity Assertion JWT Authorization Grant, draft-ietf-oauth-identity-assertion-authz-grant-04, with the
 * Enterprise-Managed Authorization profile of the Model Context Protocol.
 * Covers 3.1 claims, 4.3.3 the audience of the identity assertion, 4.4.1 what is demanded beyond RFC 7523 section 3.
 * The token type and the request for it stand in rfc8693.ts, the choice by `typ` in rfc7523.ts.
 */

import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Grant } from "./identity-chaining.ts";
import { buildGrantClaims } from "./identity-chaining.ts";
import type { Jws } from "./rfc7515.ts";
import type { AudienceFailure, ClaimFailure } from "./rfc7519.ts";
import { checkAudienceContains } from "./rfc7519.ts";
import type { CheckedGrant, GrantFailure, GrantRule } from "./rfc7523.ts";
import { checkGrant } from "./rfc7523.ts";
import type { JsonObject } from "./rfc8259.ts";

export const DRAFT = "draft-ietf-oauth-identity-assertion-authz-grant-04";

/** IDJAG-3.1-7 */
export const ID_JAG_TYP = "oauth-id-jag+jwt";

/** IDJAG-7.2-2 */
export const ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag";

export type IdJag = Grant & {
  clientIdThere: string;
  /** Resource identifiers of APIs at the other server. */
  resources: readonly string[];
};

/** IDJAG-3.1-1, IDJAG-3.1-4, IDJAG-3.1-5, IDJAG-3.1-6: a grant that always names the client, and perhaps an API. */
export function buildIdJagClaims(idJag: IdJag): JsonObject {
  const [first, ...others] = idJag.resources;
  if (first === undefined) return buildGrantClaims(idJag);
  // EMA-4.3-1
  return { ...buildGrantClaims(idJag), resource: others.length === 0 ? first : [first, ...others] };
}

/**
 * IDJAG-4.3.3-2: the identity assertion was made for the client that presents it, by that client's own `client_id`.
 * OpenID Connect Core 3.1.3.7: where it says to whom of several it was issued, that is the one.
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

/** Like `checkGrant`, it says nothing of the signature. */
export function checkIdJag(
  jws: Pick<Jws, "claims">,
  { issuer, ...rule }: IdJagRule,
): Result<CheckedGrant, GrantFailure> {
  // IDJAG-4.4.1-3, EMA-7.6.2-1: the issuer identifier, whatever an assertion may name. IDJAG-4.4.1-4: its own client.
  const grant = checkGrant(jws, { ...rule, audiences: [issuer], requireClientId: true });
  if (!grant.ok) return grant;
  // EMA-7.4.1-2
  if (jws.claims.iat === undefined) return err({ kind: "jwt_time_missing", claim: "iat" });
  const resources = resourcesOf(jws.claims);
  if (!resources.ok) return resources;
  return ok({ ...grant.value, resources: resources.value });
}

/** IDJAG-4.4.1-6: a string or an array of strings; which of them are ours is for the policy to say. */
function resourcesOf({ resource }: JsonObject): Result<readonly string[], ClaimFailure> {
  if (resource === undefined) return ok([]);
  const values: string[] = [];
  for (const value of Array.isArray(resource) ? resource : [resource]) {
    if (typeof value !== "string" || value === "") {
      return err({ kind: "jwt_claim_malformed", claim: "resource" });
    }
    values.push(value);
  }
  // An empty array would read as no restriction at all.
  return values.length === 0 ? err({ kind: "jwt_claim_malformed", claim: "resource" }) : ok(values);
}
