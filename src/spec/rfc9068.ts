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
import { defined } from "../result.ts";
import type { Confirmation } from "./rfc7800.ts";
import type { JsonObject } from "./rfc8259.ts";
import { fitsBytes } from "./rfc8259.ts";
import type { Chain } from "./rfc8693.ts";
import { buildAct } from "./rfc8693.ts";
import type { Detail } from "./rfc9396.ts";
import { detailsJson } from "./rfc9396.ts";

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

/** The claims of an access token, in the order of the clauses PROD-2.5, and no others (RFC9068-6-2, RFC7519-12-v1). */
export function buildAccessTokenClaims(token: AccessToken): JsonObject {
  return defined<JsonObject>({
    iss: token.issuer, // RFC9068-2.2-1, PROD-2.5-2
    sub: token.subject, // RFC9068-2.2-4, PROD-2.5-3
    act: buildAct(token.chain, token.issuer), // RFC8693-1.1-3, PROD-2.5-5
    may_act: token.mayAct,
    aud: token.audience, // RFC9068-2.2-3, RFC8725-3.9-1, PROD-2.5-8, RFC8725-3.9-v1, B8725-3.9-1
    client_id: token.clientId, // RFC9068-2.2-7, RFC8693-4.3-1, PROD-2.5-12, RFC8693-1-1
    scope: token.scope.join(" "), // RFC9068-2.2.3-1, RFC8693-4.2-1
    authorization_details: detailsJson(token.details), // RFC9396-9.1-1
    iat: token.issuedAtSeconds, // RFC9068-2.2-8
    exp: token.expiresAtSeconds, // RFC9068-2.2-2; RFC8693-2.1-23: does not change when the subject token expires
    jti: token.jti, // RFC9068-2.2-9
    cnf: token.confirmation, // PROD-2.5-13, RFC8705-3.1-1, RFC9449-6.1-1
    auth_time: token.authTimeSeconds,
    acr: token.acr,
    job: token.job,
  });
}

const HEADER_AND_SIGNATURE_BYTES = 1024;
const PAYLOAD_BYTES_MAX = Math.floor(((ISSUED_TOKEN_BYTES_MAX - HEADER_AND_SIGNATURE_BYTES) * 3) / 4);

/** Whether a token with these claims, as JSON, stays within our size limit; an estimate made before signing. */
export function fitsIssuedSize(claims: string): boolean {
  return fitsBytes(claims, PAYLOAD_BYTES_MAX);
}
