/** What a decision comes to: the claims, and which kind of token holds them. The same for a token and for a question. */
import type { Allowed, Ask } from "../policy/ask.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { buildIdJagClaims, ID_JAG_TYP } from "../spec/id-jag.ts";
import { buildGrantClaims, GRANT_TYP, mapSubjectThere, transcribe } from "../spec/identity-chaining.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { ACCESS_TOKEN, ID_JAG, JWT } from "../spec/rfc8693.ts";
import { AT_JWT, buildAccessTokenClaims, fitsIssuedSize } from "../spec/rfc9068.ts";

/** RFC8725-3.11-v1: each has its `typ`; RFC8693-2.2.1-4: only an access token is used as a bearer token. */
export type TokenKind = { typ: string; tokenType: "Bearer" | "N_A"; issuedTokenType: string };

const KINDS = {
  access_token: { typ: AT_JWT, tokenType: "Bearer", issuedTokenType: ACCESS_TOKEN },
  jwt: { typ: GRANT_TYP, tokenType: "N_A", issuedTokenType: JWT },
  "id-jag": { typ: ID_JAG_TYP, tokenType: "N_A", issuedTokenType: ID_JAG },
} as const satisfies Record<string, TokenKind>;

export type BuiltToken = { claims: JsonObject; kind: TokenKind; mayAct?: JsonObject };

type Parties = {
  ask: Pick<Ask, "mode" | "clientId" | "subject">;
  /** Our `sub` of the subject. */
  sub: string;
  chain: Chain;
  subjectClaims?: JsonObject;
};

export function buildToken(
  issuer: string,
  { ask, sub, chain, subjectClaims = {} }: Parties,
  { target, product, audience, scope, expiresAtSeconds }: Allowed,
  nowSeconds: number,
  jti: string,
): Result<BuiltToken, { reason: "subject_unknown_at_partner" | "token_too_large" }> {
  const common = {
    issuer,
    audience,
    scope,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds,
    jti,
    // IDJAG-9.8-1: what the target may see; all of it stays in the row and the trail.
    chain: target.chain === "current" ? chain.slice(0, 1) : chain,
  };
  // RFC8693-1.1-1, PROD-3-9: who impersonates shows nothing of the chain, nor of who else might act.
  const mayAct = ask.mode === "impersonation" ? undefined : ask.subject?.mayAct;
  const carried = mayAct === undefined ? {} : { mayAct };
  const { partner } = target;
  if (product.kind === "access_token" || partner === undefined) {
    const claims = buildAccessTokenClaims({ ...common, subject: sub, clientId: ask.clientId, ...carried });
    return sized({ claims, kind: KINDS.access_token, ...carried });
  }
  // IDC-2.5-3, IDJAG-5-2: the name that the subject has there.
  const there = mapSubjectThere(sub, partner.subjects);
  if (!there.ok) return err({ reason: "subject_unknown_at_partner" });
  const { profile, clientIdThere, resources } = product;
  const claims = transcribe(subjectClaims, partner.claims);
  const grant = { ...common, ...carried, subject: there.value, claims };
  if (profile === "id-jag" && clientIdThere !== undefined) {
    const idJag = buildIdJagClaims({ ...grant, clientIdThere, resources });
    return sized({ claims: idJag, kind: KINDS["id-jag"], ...carried });
  }
  const plain = buildGrantClaims({ ...grant, ...(clientIdThere !== undefined && { clientIdThere }) });
  return sized({ claims: plain, kind: KINDS.jwt, ...carried });
}

function sized(token: BuiltToken): Result<BuiltToken, { reason: "token_too_large" }> {
  return fitsIssuedSize(token.claims) ? ok(token) : err({ reason: "token_too_large" });
}
