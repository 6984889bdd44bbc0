/**
 * RFC 9068, JWT Profile for OAuth 2.0 Access Tokens: https://www.rfc-editor.org/rfc/rfc9068.html
 * Covers 2.1 header, 2.2 data structure.
 * Elsewhere: 2.1 adapters/crypto/signer.ts, spec/rfc8725.ts; 2.2 flows/order/read-order.ts; 2.2.1
 * people/flows/refresh.ts; 3 policy/decide.ts, spec/rfc8707.ts; 4 config/keys.ts, flows/authorize-api.ts,
 * flows/verify-own-token.ts, http/bearer.ts, policy/own-target.ts, spec/rfc8414.ts, spec/rfc8725.ts; 5
 * config/issuers.ts, flows/order/subject.ts, policy/rules.ts; D flows/build-token.ts, flows/verify-own-token.ts,
 * spec/rfc8725.ts.
 */

import { ISSUED_TOKEN_BYTES_MAX } from "../limits/tokens.ts";
import type { Confirmation } from "./rfc7800.ts";
import { fitsBytes, type Json, type JsonObject } from "./rfc8259.ts";
import { buildAct, type Chain } from "./rfc8693.ts";
import { type Detail, detailsJson } from "./rfc9396.ts";

/** RFC9068-2.1-5, RFC9068-2.1-6: the `typ` of an access token, in its short form. */
export const AT_JWT = "at+jwt";

export type AccessToken = {
  issuer: string;
  subject: string;
  audience: string;
  clientId: string;
  scope: readonly string[];
  /** Those of this audience. */
  details?: readonly Detail[];
  issuedAtSeconds: number;
  expiresAtSeconds: number;
  jti: string;
  /** The part of the chain that the target may see; empty for a token without `act`. */
  chain: Chain;
  mayAct?: JsonObject;
  /** The key that it is bound to. */
  confirmation?: Confirmation;
  /** When and how the user authenticated, by the word of the provider (RFC 9068 2.2.1). */
  authTimeSeconds?: number;
  acr?: string;
  /** JOB-D-17: the job that it was issued for, as the target sees it. */
  job?: JsonObject | undefined;
};

/** What an access token or a grant says; a grant has a client only where that has a name at its audience. */
export type Stated = Omit<AccessToken, "clientId"> & Partial<Pick<AccessToken, "clientId">>;

/** A claim: what it is made from, and where it stands. A new one answers for all three places, or does not compile. */
type Claim = {
  from: (stated: Stated) => Json | undefined;
  inToken: boolean;
  /** RFC7662-2.2-2: whether introspection repeats it, with its type. */
  atIntrospection: boolean;
  inGrant: boolean;
};

const everywhere = { inToken: true, atIntrospection: true, inGrant: true } as const;
/** The word of the user's provider about their sign-in: a grant has it only by agreement with its partner. */
const ofSignIn = { inToken: true, atIntrospection: true, inGrant: false } as const;

/** The claims of all that we issue, in the order of the clauses PROD-2.5, and no others (RFC9068-6-2, RFC7519-12-v1). */
const CLAIMS = {
  iss: { from: (one) => one.issuer, ...everywhere }, // RFC9068-2.2-1, PROD-2.5-2, RFC7521-5.1-5
  sub: { from: (one) => one.subject, ...everywhere }, // RFC9068-2.2-4, PROD-2.5-3, PROD-3-4
  // RFC8693-1.1-3, PROD-2.5-5, PROD-4.1v8-2; RFC8693-4.1-8: introspection shows it as issued, with the part of the chain
  // that the target may see.
  act: { from: (one) => buildAct(one.chain, one.issuer), ...everywhere },
  // RFC8693-4.4-2: `may_act` is carried over, because dropping it would lift the restriction in the other domain;
  // RFC8693-4.4-4.
  may_act: { from: (one) => one.mayAct, ...everywhere },
  // RFC9068-2.2-3, RFC8725-3.9-1, PROD-2.5-8, RFC8725-3.9-v1, B8725-3.9-1; IDC-2.3.3-2, IDC-2.3.3-3: one server, so that
  // it cannot pass a grant on.
  aud: { from: (one) => one.audience, ...everywhere },
  client_id: { from: (one) => one.clientId, ...everywhere }, // RFC9068-2.2-7, RFC8693-4.3-1, PROD-2.5-12, RFC8693-1-1
  scope: { from: (one) => one.scope.join(" "), ...everywhere }, // RFC9068-2.2.3-1, RFC8693-4.2-1
  authorization_details: { from: (one) => detailsJson(one.details), ...everywhere }, // RFC9396-9.1-1, RFC9396-9.2-1
  iat: { from: (one) => one.issuedAtSeconds, ...everywhere }, // RFC9068-2.2-8
  // RFC9068-2.2-2, RFC7662-4-14; RFC8693-2.1-23: does not change when the subject token expires.
  exp: { from: (one) => one.expiresAtSeconds, ...everywhere },
  jti: { from: (one) => one.jti, ...everywhere }, // RFC9068-2.2-9
  // PROD-2.5-13, RFC8705-3.1-1, RFC9449-6.1-1, RFC9449-6.2-1, RFC8705-3.2-1, IDJAG-9.9-2
  cnf: { from: (one) => one.confirmation, ...everywhere },
  auth_time: { from: (one) => one.authTimeSeconds, ...ofSignIn }, // RFC9470-6.1-1, RFC9470-6.2-1
  acr: { from: (one) => one.acr, ...ofSignIn }, // RFC9470-6.1-1, RFC9470-6.2-1
  // RFC7519-4.3-v1, RFC7662-2.2-3: the only claim of our own, with our name in front.
  mandate_job: { from: (one) => one.job, ...everywhere },
} as const satisfies Record<string, Claim>;

type Place = "inToken" | "atIntrospection" | "inGrant";

const rowsOf = (place: Place) => Object.entries<Claim>(CLAIMS).filter(([, row]) => row[place]);

/** The names of the claims that stand in this place. */
export const claimNames = (place: Place): readonly string[] => rowsOf(place).map(([name]) => name);

/** Makes the claims of what is issued for one place. */
export function claimsBuilder(place: Place): (stated: Stated) => JsonObject {
  const rows = rowsOf(place).map(([name, { from }]) => ({ name, from }));
  return (stated) => {
    const claims: JsonObject = {};
    for (const { name, from } of rows) {
      const value = from(stated);
      if (value !== undefined) claims[name] = value;
    }
    return claims;
  };
}

export const buildAccessTokenClaims: (token: AccessToken) => JsonObject = claimsBuilder("inToken");

const HEADER_AND_SIGNATURE_BYTES = 1024;

/** Whether a token with these claims, as JSON, stays within our size limit; an estimate made before signing. */
export const fitsIssuedSize = (claims: string, bytesMax = ISSUED_TOKEN_BYTES_MAX): boolean =>
  fitsBytes(claims, Math.floor(((bytesMax - HEADER_AND_SIGNATURE_BYTES) * 3) / 4));
