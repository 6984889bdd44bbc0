/**
 * RFC 8725, JSON Web Token Best Current Practices: https://www.rfc-editor.org/rfc/rfc8725.html, with its update
 * draft-ietf-oauth-rfc8725bis-09. Covers 3.1, 3.2 algorithms, 3.11 explicit typing, 3.12 kinds kept apart.
 * Elsewhere: 3.1 adapters/crypto/verifier.ts, settings/client.ts, spec/rfc7517.ts, spec/rfc7523.ts,
 * spec/rfc7591-members.ts; 3.2 policy/targets.ts; 3.3 adapters/crypto/verifier.ts; 3.4 adapters/crypto/verifier.ts,
 * spec/rfc7517.ts; 3.7 spec/rfc8259.ts; 3.8 adapters/remote/key-sets.ts, flows/order/grant.ts, spec/rfc7523.ts; 3.9
 * spec/rfc7519.ts, spec/rfc9068.ts; 3.10 adapters/remote/early-looks.ts, adapters/remote/fetched-keys.ts,
 * adapters/remote/key-sources.ts, spec/rfc7515.ts; 3.11 audit/checkpoint.ts, flows/build-token.ts,
 * spec/identity-chaining.ts; 3.12 config/issuers.ts, flows/redeem-grant.ts, flows/software-statement.ts,
 * flows/subject-token.ts, spec/rfc7523.ts; B8725 3.1 flows/subject-token.ts, spec/rfc7517.ts; B8725 3.3
 * spec/rfc7515.ts; B8725 3.9 spec/rfc9068.ts; B8725 3.10 adapters/remote/checked-agent.ts,
 * adapters/remote/key-sources.ts; B8725 3.13 spec/rfc7515.ts; B8725 3.14 spec/rfc7515.ts; B8725 3.15
 * spec/rfc7515.ts.
 */

import { err, ok, type Result } from "../result.ts";
import { type JwsHeader, mediaType } from "./rfc7515.ts";
import type { JsonObject } from "./rfc8259.ts";

/** RFC 10070: the type of a JWT by which a client authenticates. */
export const CLIENT_AUTHENTICATION = "client-authentication+jwt";

export type JwtTypeFailure = { kind: "jwt_type_refused"; typ: string | undefined };
export type JwtAlgorithmFailure = { kind: "jwt_algorithm_refused"; alg: string };

/**
 * RFC8725-3.12-v1: the kinds of JWT that this server accepts, with the values of `typ` each may have; undefined means
 * no `typ`. Kinds that share a value differ in their keys and required claims.
 */
export const JWT_TYPES = {
  // RFC9068-4-6: no JWT of another type is an access token, whatever key signed it; RFC9068-D-1: unless it is for a target
  // of ours that has the other type.
  accessToken: ["at+jwt"],
  // B7523-4-9: an assertion without a type is accepted; B8725-3.11-2: one of another type is refused.
  clientAssertion: [undefined, "JWT", CLIENT_AUTHENTICATION],
  // JSV-2.3-1: the two values that the standard allows.
  jwtSvid: [undefined, "JWT", "JOSE"],
  grant: [undefined, "JWT", "authz-grant+jwt"],
  idJag: ["oauth-id-jag+jwt"],
  dpopProof: ["dpop+jwt"],
  // OpenID Connect defines no type for ID tokens; the sender is our provider, and audience and nonce are ours.
  idToken: [undefined, "JWT"],
  // OIDCB-D-1: the type is recommended alone, and providers send none; the event sets it apart from an ID token.
  logoutToken: [undefined, "JWT", "logout+jwt"],
  // RFC7591-2.3-1: the standard defines no type; only issuers with the setting `statements` are accepted.
  softwareStatement: [undefined, "JWT"],
} as const satisfies Record<string, readonly (string | undefined)[]>;

/**
 * RFC8725-3.2-1, RFC8725-3.2-v2: the algorithms of assertions, grants and foreign subject tokens. RFC7523-5-2: RS256
 * has to be among them.
 */
export const ASSERTION_ALGORITHMS = ["ES256", "ES384", "EdDSA", "Ed25519", "PS256", "RS256"] as const;

/** RFC9449-4.3-5, RFC9449-11.6-1: the algorithms of DPoP proofs, unless the operator says otherwise. */
export const PROOF_ALGORITHMS = ["ES256", "ES384", "EdDSA", "Ed25519", "PS256"] as const;

/** JSV-2.1-1: the nine algorithms of a JWT-SVID. */
export const SVID_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "ES256",
  "ES384",
  "ES512",
  "PS256",
  "PS384",
  "PS512",
] as const;

/** RFC9068-2.1-4, RFC9068-4-11: the algorithms that this server signs with, with one key each. */
export const OWN_ALGORITHMS = ["ES256", "EdDSA", "RS256"] as const;

/**
 * Members that make a JWT one of another kind, whatever its `typ` says: providers type all of these as a plain JWT, or not
 * at all.
 */
const TELLING = {
  events: "untyped_event", // RFC8417-4-1: a security event or a logout token says what happened, and not who may act
  nonce: "untyped_id_token",
  at_hash: "untyped_id_token",
  c_hash: "untyped_id_token",
  act: "jwt_of_actor",
  may_act: "jwt_of_actor",
} as const;
type Telling = keyof typeof TELLING;
const MEMBERS = Object.keys(TELLING) as Telling[];

export type JwtKindFailure = { kind: (typeof TELLING)[Telling] };

const ofActor = ["act", "may_act"] as const satisfies Telling[];
const ofIdToken = ["nonce", "at_hash", "c_hash"] as const satisfies Telling[];

/** RFC8725-3.12-v1, CONF-D-7: every place where a JWT of others is taken, with the telling members that are lawful there. */
const PLACES = {
  clientAssertion: [],
  jwtSvid: [],
  workload: [],
  softwareStatement: [],
  // What was exchanged comes with its actors.
  grant: ofActor,
  subjectToken: ofActor,
  // The type of access tokens tells more than a member that some providers add to them.
  typedAccessToken: [...ofActor, ...ofIdToken],
  idToken: [...ofActor, ...ofIdToken],
  // A token that was exchanged is refused there with a reason of its own.
  consentToken: ofActor,
  // OIDC-D-11: with `act` it is not the user who signs in.
  signIn: ["may_act", ...ofIdToken],
  logoutToken: ["events"],
  securityEvent: ["events"],
  dpopProof: ["nonce"],
} as const satisfies Record<string, readonly Telling[]>;

/** RFC8725-3.12-v1, CONF-D-7: no JWT of another kind is taken in this place. */
export function checkKind(claims: JsonObject, place: keyof typeof PLACES): Result<undefined, JwtKindFailure> {
  const lawful: readonly Telling[] = PLACES[place];
  for (const member of MEMBERS) {
    if (claims[member] !== undefined && !lawful.includes(member)) return err({ kind: TELLING[member] });
  }
  return ok(undefined);
}

/** RFC8725-3.11-v1, B8725-3.11-1: explicit typing, so that one kind of JWT is never accepted as another. */
export function checkType(
  header: JwsHeader,
  allowed: readonly (string | undefined)[],
): Result<undefined, JwtTypeFailure> {
  const { typ } = header;
  // Nearly every type is spelled as it is here.
  const fits =
    allowed.includes(typ) ||
    (typ !== undefined && allowed.some((type) => type !== undefined && mediaType(type) === mediaType(typ)));
  return fits ? ok(undefined) : err({ kind: "jwt_type_refused", typ });
}

/**
 * RFC8725-3.1-v1, B8725-3.1-3: `alg` is in the list for this kind of JWT, compared exactly (`noNE` is refused like
 * `none`).
 */
export function checkAlgorithm(
  header: JwsHeader,
  allowed: readonly string[],
): Result<undefined, JwtAlgorithmFailure> {
  const { alg } = header;
  return allowed.includes(alg) ? ok(undefined) : err({ kind: "jwt_algorithm_refused", alg });
}
