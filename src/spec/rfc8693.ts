/**
 * RFC 8693, OAuth 2.0 Token Exchange: https://www.rfc-editor.org/rfc/rfc8693.html
 * Covers 2.1 request, 3 token type identifiers, 4.1 act, 4.4 may_act.
 * Elsewhere: 1 spec/rfc9068.ts; 1.1 flows/build-token.ts, spec/rfc9068.ts; 2.1 flows/issue.ts,
 * flows/order/read-order.ts, flows/order/subject.ts, flows/subject-token.ts, flows/token-exchange.ts, http/form.ts,
 * policy/decide.ts, policy/own-target.ts, policy/rules.ts, spec/rfc8707.ts, spec/rfc9068.ts; 2.1.1 spec/rfc8707.ts;
 * 2.2.1 flows/build-token.ts, flows/issue.ts, spec/rfc6749.ts; 2.2.2 flows/refusal.ts, flows/verify-platform.ts,
 * http/errors.ts, policy/decide.ts; 3 flows/subject-token.ts; 4.1 flows/consents.ts, flows/order/grant.ts,
 * flows/order/read-order.ts, spec/rfc9068.ts; 4.2 flows/order/subject.ts, spec/rfc7523.ts, spec/rfc9068.ts; 4.3
 * spec/rfc9068.ts; 4.4 policy/decide.ts, policy/judge.ts, spec/rfc9068.ts; D flows/subject-token.ts,
 * flows/token-exchange.ts, flows/verify-own-token.ts.
 */

import { ACT_BYTES_MAX, ACT_HOPS_MAX } from "../limits/tokens.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { Form } from "./rfc6749.ts";
import { fitsBytes, isJsonObject, type Json, type JsonObject } from "./rfc8259.ts";
import { isPlatformName } from "./workload-grant.ts";

/** RFC8693-2.1-1: the `grant_type` of a token exchange. */
export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";

// RFC8693-3-1: URIs, compared exactly.
export const ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token";
export const JWT = "urn:ietf:params:oauth:token-type:jwt";
export const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
/** RFC8693-3-2: defined by draft-ietf-oauth-identity-assertion-authz-grant-04. */
export const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

/** TXN-11.1-1: defined by draft-ietf-oauth-transaction-tokens-10. */
export const TXN_TOKEN = "urn:ietf:params:oauth:token-type:txn_token";

// --- request (2.1) ----------------------------------------------------------------------------------------------

type SubjectTokenType = typeof ACCESS_TOKEN | typeof JWT | typeof ID_TOKEN | typeof TXN_TOKEN;

type ActorTokenType = typeof JWT | typeof ACCESS_TOKEN;

/** The type `jwt` stands for a plain authorization grant for another server. */
export type RequestedType = "access_token" | "jwt" | "id-jag" | "txn_token";

export type Exchange = {
  subjectToken: string;
  subjectTokenType: SubjectTokenType;
  /** Without an actor token type the request is for impersonation. A JWT is a JWT-SVID. */
  actor?: { token: string; type: ActorTokenType };
  /** Without a requested type the kind of target decides (RFC8693-2.1-14). */
  requestedType?: RequestedType;
};

type ExchangeFailure =
  | { kind: "subject_token_missing" }
  | { kind: "subject_token_type_missing" }
  | { kind: "subject_token_type_unsupported" }
  | { kind: "actor_token_type_missing" }
  | { kind: "actor_token_type_alone" }
  | { kind: "actor_token_type_unsupported" }
  | { kind: "requested_token_type_unsupported" }
  | { kind: "id_jag_audience_missing" }
  | { kind: "id_jag_audience_several" };

const SUBJECT_TYPES: readonly string[] = [
  ACCESS_TOKEN,
  JWT,
  ID_TOKEN,
  TXN_TOKEN,
] satisfies SubjectTokenType[];
export const REQUESTED_TYPES: ReadonlyMap<string, RequestedType> = new Map([
  [ACCESS_TOKEN, "access_token"],
  [JWT, "jwt"],
  [ID_JAG, "id-jag"],
  [TXN_TOKEN, "txn_token"],
]);

/** Reads the parameters of a token exchange (2.1); tokens in them are not verified. */
export function parseExchange(form: Form): Result<Exchange, ExchangeFailure> {
  const { subject_token: subjectToken, subject_token_type: subjectTokenType } = form;
  const { actor_token: actorToken, actor_token_type: actorTokenType } = form;
  // RFC8693-2.1-15, RFC8693-2.1-16: both are required.
  if (subjectToken === undefined) return err({ kind: "subject_token_missing" });
  if (subjectTokenType === undefined) return err({ kind: "subject_token_type_missing" });
  if (!isSubjectType(subjectTokenType)) return err({ kind: "subject_token_type_unsupported" });
  // RFC8693-2.1-18, RFC8693-2.1-19, PROD-3-11: token and type are sent together or not at all.
  if (actorToken !== undefined && actorTokenType === undefined) {
    return err({ kind: "actor_token_type_missing" });
  }
  if (actorToken === undefined && actorTokenType !== undefined)
    return err({ kind: "actor_token_type_alone" });
  // PROD-4.1-28: an actor is proven by a JWT-SVID or by its own access token.
  if (actorTokenType !== undefined && !isActorType(actorTokenType)) {
    return err({ kind: "actor_token_type_unsupported" });
  }
  const actor =
    actorToken === undefined || actorTokenType === undefined
      ? undefined
      : { token: actorToken, type: actorTokenType };
  const { requested_token_type: requested } = form;
  const requestedType = requested === undefined ? undefined : REQUESTED_TYPES.get(requested);
  // RFC8693-3-1: types are compared exactly.
  if (requested !== undefined && requestedType === undefined) {
    return err({ kind: "requested_token_type_unsupported" });
  }
  // TXN-D-12: it may be replaced by another of its kind, and is exchanged for nothing else.
  if (subjectTokenType === TXN_TOKEN && requestedType !== "txn_token") {
    return err({ kind: "subject_token_type_unsupported" });
  }
  // IDJAG-4.3-1: `resource` names the API, so exactly one `audience` has to name the authorization server.
  if (requestedType === "id-jag" && form.audience.length !== 1) {
    return err({ kind: form.audience.length === 0 ? "id_jag_audience_missing" : "id_jag_audience_several" });
  }
  return ok(defined<Exchange>({ subjectToken, subjectTokenType, actor, requestedType }));
}

const isActorType = (type: string): type is ActorTokenType => type === JWT || type === ACCESS_TOKEN;
const isSubjectType = (type: string): type is SubjectTokenType => SUBJECT_TYPES.includes(type);

// --- act (4.1) --------------------------------------------------------------------------------------------------

/** One actor of a chain: `sub` is a name given by `iss` (RFC8693-4.1-2). */
export type Hop = {
  sub: string;
  iss: string;
  /**
   * The issuer that told of this hop, if a foreign subject token or grant did; absent where this server authenticated
   * the actor.
   */
  claimed?: true;
};
/** A chain, current actor first (RFC8693-4.1-5). */
export type Chain = readonly Hop[];

type ActFailure = { kind: "act_malformed" } | { kind: "act_too_deep" } | { kind: "act_too_large" };

/**
 * Reads the `act` claim of a token issued by `issuer`; without the claim the chain is empty. `us` is this server, whose
 * own tokens show the hops that it authenticated without `iss`; every other hop is only claimed.
 */
export function parseAct(act: Json | undefined, issuer: string, us: string): Result<Chain, ActFailure> {
  const chain: Hop[] = [];
  for (let level = act; level !== undefined; ) {
    if (!isJsonObject(level)) return err({ kind: "act_malformed" });
    const { sub, iss = issuer, act: next } = level;
    if (typeof sub !== "string" || sub === "" || typeof iss !== "string" || iss === "") {
      return err({ kind: "act_malformed" });
    }
    // RFC8693-4.1-3, RFC8693-4.1-4: only the identity of a hop counts; other members are ignored.
    const authenticated = issuer === us && level.iss === undefined;
    chain.push(authenticated ? { iss, sub } : { claimed: true, iss, sub });
    if (chain.length > ACT_HOPS_MAX) return err({ kind: "act_too_deep" });
    level = next;
  }
  return fitsAct(chain) ? ok(chain) : err({ kind: "act_too_large" });
}

/**
 * PROD-4.1v6-6: whether the chain is within the limit in bytes; this is checked on entry, and again with the new hop.
 */
export function fitsAct(chain: Chain): boolean {
  const hops = chain.map(({ sub, iss }) => ({ sub, iss }));
  return fitsBytes(JSON.stringify(hops), ACT_BYTES_MAX);
}

/**
 * The `act` claim of a token issued by `issuer` (RFC8693-4.1-2): only hops that it authenticated stand without `iss`, so
 * that no trusted issuer can put one of our actors into the history.
 */
export function buildAct(chain: Chain, issuer: string): JsonObject | undefined {
  let act: JsonObject | undefined;
  // RFC8693-4.1-5: the current actor is the outermost, the first actor the innermost.
  for (const { sub, iss, claimed = false } of chain.toReversed()) {
    act = defined<JsonObject>({ sub, iss: iss === issuer && !claimed ? undefined : iss, act });
  }
  return act;
}

// --- may_act (4.4) ----------------------------------------------------------------------------------------------

/**
 * Whether `may_act` of a token issued by `tokenIssuer` names this party. RFC8693-4.4-1: the claim is an object of
 * identity claims; any other value names no party. RFC8693-4.4-3: only `sub` and `iss` count.
 */
export function mayActNames(mayAct: Json, party: Pick<Hop, "sub" | "iss">, tokenIssuer: string): boolean {
  if (!isJsonObject(mayAct) || mayAct.sub !== party.sub) return false;
  // URLs and SPIFFE IDs mean the same at every issuer (PROD-2.1-2); a plain client_id means a client only at its own.
  // WAG-4-2: neither does the name of a platform's workload, which is made of our own registration.
  const globallyUnique = party.sub.includes("://") && !isPlatformName(party.sub);
  if (mayAct.iss === undefined) return globallyUnique || tokenIssuer === party.iss;
  return mayAct.iss === party.iss;
}
