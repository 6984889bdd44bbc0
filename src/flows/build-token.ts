/** The token that a decision allows: its claims, and the kind of token that holds them; nothing is signed here. */
import { MODES } from "../modes.ts";
import type { Subject } from "../policy/access.ts";
import type { AskedRequest, PolicyDecision } from "../policy/decision.ts";
import type { JobClaim } from "../policy/jobs.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { buildIdJagClaims, ID_JAG_TYP, type IdJag } from "../spec/id-jag.ts";
import { buildGrantClaims, GRANT_TYP, type Grant, transcribe } from "../spec/identity-chaining.ts";
import type { TokenAnswer } from "../spec/rfc6749.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { ACCESS_TOKEN, ID_JAG, JWT, TXN_TOKEN } from "../spec/rfc8693.ts";
import { type AccessToken, AT_JWT, buildAccessTokenClaims, fitsIssuedSize } from "../spec/rfc9068.ts";
import {
  buildTransaction,
  type ContextFailure,
  type DomainRules,
  TRANSACTION_TYP,
  type Transaction,
} from "../spec/transaction-tokens.ts";
import type { Order } from "./order/order.ts";

/** RFC8725-3.11-v1: each kind has its `typ`; RFC8693-2.2.1-4: only an access token is used as one. */
type TokenKind = { typ: string; tokenType: TokenAnswer["token_type"]; issuedTokenType: string };

const KINDS = {
  access_token: { typ: AT_JWT, tokenType: "Bearer", issuedTokenType: ACCESS_TOKEN },
  // RFC9449-5-4: the token is used only with a proof of the key that it is bound to.
  dpop_access_token: { typ: AT_JWT, tokenType: "DPoP", issuedTokenType: ACCESS_TOKEN },
  jwt: { typ: GRANT_TYP, tokenType: "N_A", issuedTokenType: JWT },
  "id-jag": { typ: ID_JAG_TYP, tokenType: "N_A", issuedTokenType: ID_JAG },
  // TXN-11.4-2
  transaction: { typ: TRANSACTION_TYP, tokenType: "N_A", issuedTokenType: TXN_TOKEN },
} as const satisfies Record<string, TokenKind>;

/** `payload`: the claims as they are signed. */
export type BuiltToken = {
  jti: string;
  claims: JsonObject;
  payload: string;
  kind: TokenKind;
  mayAct?: JsonObject;
  /** The members of `request_context` that the trust domain does not have. */
  dropped?: readonly string[];
};

type BuildFailure = ContextFailure;

/** `asked`: what the decision read. */
export type Decided = { allowed: PolicyDecision; token: BuiltToken; asked: AskedRequest };

/** What options say in the token beside the decision. */
export type MoreClaims = { job?: JobClaim };

export function buildToken(
  issuer: string,
  {
    access,
    sub,
    chain,
    subjectClaims = {},
    signIn,
    manner,
  }: Pick<Order, "access" | "sub" | "chain" | "subjectClaims" | "signIn" | "manner">,
  { target, product, audience, scope, details, expiresAtSeconds, confirmation }: PolicyDecision,
  nowSeconds: number,
  jti: string,
  more: MoreClaims,
): Result<BuiltToken, BuildFailure> {
  // RFC8693-1.1-1, PROD-3-9: an impersonation shows neither earlier actors nor the party that may act.
  const mayAct = MODES[access.mode].chain === "hidden" ? undefined : access.subject?.mayAct;
  const common = {
    issuer,
    audience,
    scope,
    details,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds,
    jti,
    // IDJAG-9.8-1: the token has the part of the chain that the target may see; row and audit trail hold the whole
    // chain.
    // TXN-D-6: a trust domain may see none of it.
    chain: target.chain === "all" ? chain : chain.slice(0, target.chain === "current" ? 1 : 0),
    mayAct,
    confirmation,
    ...more,
  };
  const sized = (claims: JsonObject, kind: TokenKind): Result<BuiltToken, BuildFailure> => {
    const payload = JSON.stringify(claims);
    return fitsIssuedSize(payload)
      ? ok(defined<BuiltToken>({ jti, claims, payload, kind, mayAct }))
      : err({ reason: "token_too_large" });
  };

  if (product.kind === "access_token") {
    const token = defined<AccessToken>({ ...common, ...signIn, subject: sub, clientId: access.clientId });
    const byProof = confirmation !== undefined && "jkt" in confirmation;
    const kind = byProof ? KINDS.dpop_access_token : KINDS.access_token;
    // RFC9068-D-1
    return sized(
      buildAccessTokenClaims(token),
      target.typ === kind.typ ? kind : { ...kind, typ: target.typ },
    );
  }
  if (product.kind === "txn_token") {
    const { workload: requester = access.clientId } = access;
    const stated = defined<Transaction>({ ...common, subject: sub, requester, job: more.job?.id });
    const built = buildInside(product.domain, stated, access.subject, subjectClaims, manner);
    return built.ok ? ok(defined<BuiltToken>({ ...built.value, mayAct })) : built;
  }
  const { profile, clientIdThere, resources, subjectThere } = product;
  const claims = transcribe(subjectClaims, target.partner?.claims ?? []);
  const grant = { ...common, subject: subjectThere, claims };
  if (profile === "id-jag" && clientIdThere !== undefined) {
    const idJag = defined<IdJag>({ ...grant, clientIdThere, resources });
    return sized(buildIdJagClaims(idJag), KINDS["id-jag"]);
  }
  return sized(buildGrantClaims(defined<Grant>({ ...grant, clientIdThere })), KINDS.jwt);
}

function buildInside(
  domain: DomainRules,
  token: Transaction,
  subject: Subject | undefined,
  claims: JsonObject,
  { transaction }: Order["manner"],
): Result<BuiltToken, BuildFailure> {
  const grounds = { claims, replaces: subject?.tokenType === "txn_token" };
  const built = buildTransaction(domain, token, grounds, transaction);
  return built.ok ? ok({ ...built.value, jti: token.jti, kind: KINDS.transaction }) : built;
}
