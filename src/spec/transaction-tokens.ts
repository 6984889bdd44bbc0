/**
 * Transaction Tokens, draft-ietf-oauth-transaction-tokens-10.
 * Covers 9 the claims, 11.1 the two JSON parameters of a request, 13.6 purposes, 13.15 the replacement of a token.
 * The request for one and its token type are in rfc8693.ts.
 */
import {
  CONTEXT_BYTES_MAX,
  CONTEXT_DEPTH_MAX,
  CONTEXT_MEMBERS_MAX,
  TRANSACTION_BYTES_MAX,
} from "../limits/tokens.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { Form } from "./rfc6749.ts";
import { fitsBytes, isJsonObject, type Json, type JsonObject, parseJson } from "./rfc8259.ts";
import { buildAct, type Chain } from "./rfc8693.ts";
import { fitsIssuedSize } from "./rfc9068.ts";
import { type Detail, type DetailValue, detailsJson, hasOddNumber, isDetailValue } from "./rfc9396.ts";
import { matchesPattern } from "./spiffe/id.ts";

export const DRAFT = "draft-ietf-oauth-transaction-tokens-10";

/** TXN-9.1-1, TXN-D-12: by it every other verifier tells it from what it takes. */
export const TRANSACTION_TYP = "txntoken+jwt";

/** TXN-D-10: the member of `tctx` that this server alone writes. */
export const REQUESTERS = "requesters";

// --- the trust domain -------------------------------------------------------------------------------------------

type Shape = { is: "string" | "integer" | "boolean" | "strings"; chars: number };

type Fact = { optional: boolean } & (
  | { from: "token"; claim: string }
  | { from: "authorization_details"; type: string; field: string }
  | { from: "computed"; value: "job" | "acr" | "auth_time" }
  | ({ from: "witness"; workloads: readonly string[] } & Shape)
);

/** What the operator says of the tokens of one trust domain. */
export type DomainRules = {
  purposes: ReadonlyMap<string, readonly string[]>;
  rctx: ReadonlyMap<string, Shape>;
  tctx: ReadonlyMap<string, Fact>;
};

/**
 * TXN-D-4, TXN-13.6-1: the purposes that a subject token with these scopes permits. TXN-13.14-1: one without scopes permits
 * none, because every purpose needs some.
 */
export const purposesOf = ({ purposes }: DomainRules, scopes: readonly string[]): readonly string[] =>
  [...purposes].flatMap(([purpose, needs]) => (needs.every((one) => scopes.includes(one)) ? [purpose] : []));

// --- request (11.1) ---------------------------------------------------------------------------------------------

type Facts = { readonly [name: string]: DetailValue };
/** `request_context` and `request_details`, as sent. */
export type TransactionRequest = { context: Facts; details: Facts };

type RequestFailure = {
  kind:
    | "transaction_audience"
    | "transaction_with_actor"
    | "request_context_malformed"
    | "request_context_too_large"
    | "request_details_malformed"
    | "request_details_too_large";
};
type Kind = RequestFailure["kind"];

/** What a request for such a token has beside the parameters of an exchange. */
export function parseTransactionRequest(form: Form): Result<TransactionRequest, RequestFailure> {
  // TXN-11.1-1, TXN-11.3-3: the request says which trust domain, and it says one.
  if (form.audience.length !== 1) return err({ kind: "transaction_audience" });
  // TXN-D-7: the requester is the client that authenticated, so there is nothing that an actor token could say.
  if (form.actor_token !== undefined) return err({ kind: "transaction_with_actor" });
  const { request_context: sent, request_details: wanted } = form;
  const context = parseFacts(sent, "request_context_malformed", "request_context_too_large");
  if (!context.ok) return context;
  const details = parseFacts(wanted, "request_details_malformed", "request_details_too_large");
  return details.ok ? ok({ context: context.value, details: details.value }) : details;
}

/** TXN-D-8: an object of few, small, flat members; a number with a second spelling is refused. */
function parseFacts(text = "{}", malformed: Kind, tooLarge: Kind): Result<Facts, RequestFailure> {
  if (!fitsBytes(text, CONTEXT_BYTES_MAX)) return err({ kind: tooLarge });
  const json = parseJson(text, CONTEXT_DEPTH_MAX);
  if (!json.ok || !isJsonObject(json.value) || hasOddNumber(text)) return err({ kind: malformed });
  const members = Object.entries(json.value);
  if (members.length > CONTEXT_MEMBERS_MAX) return err({ kind: tooLarge });
  const facts = new Map<string, DetailValue>();
  for (const [member, value] of members) {
    if (member === REQUESTERS || !isDetailValue(value)) return err({ kind: malformed });
    facts.set(member, value);
  }
  return ok(objectOf(facts));
}

/** Without a prototype, so that no name is that of an inherited property. */
const objectOf = (facts: ReadonlyMap<string, DetailValue>): Facts =>
  Object.assign(Object.create(null), Object.fromEntries(facts));

// --- token (9) --------------------------------------------------------------------------------------------------

export type Transaction = {
  issuer: string;
  jti: string;
  audience: string;
  subject: string;
  requester: string;
  scope: readonly string[];
  issuedAtSeconds: number;
  expiresAtSeconds: number;
  /** The part of the chain that the domain shows. */
  chain: Chain;
  details?: readonly Detail[];
  job?: string;
};

/** `replaces`: the subject token is a transaction token, which has these claims. */
export type Grounds = { claims: JsonObject; replaces: boolean };

export type ContextFailure = {
  reason:
    | "request_context_refused"
    | "transaction_fact_unverified"
    | "transaction_fact_missing"
    | "transaction_fact_stands"
    | "token_too_large";
};

/** `dropped`: the members of `request_context` that the domain does not have. */
export type BuiltTransaction = { claims: JsonObject; payload: string; dropped: readonly string[] };

/**
 * `asked` is absent in a question, which states no facts: none is then missed. TXN-13.4-1: of the subject token there are
 * the claims alone that the domain names.
 */
export function buildTransaction(
  domain: DomainRules,
  token: Transaction,
  { claims: before, replaces }: Grounds,
  asked: TransactionRequest | undefined,
): Result<BuiltTransaction, ContextFailure> {
  const rctx = replaces ? keptContext(before, asked) : readContext(domain, asked);
  if (!rctx.ok) return rctx;
  const tctx = readFacts(domain, token, { claims: before, replaces }, asked);
  if (!tctx.ok) return tctx;
  const { issuer: iss, jti, audience: aud, subject: sub, requester: req_wl } = token;
  // TXN-9.2-1, TXN-9.2-2, TXN-9.2-4, TXN-9.2-7, TXN-9.2-9, TXN-13.16-1
  const claims = defined<JsonObject>({
    iss,
    iat: token.issuedAtSeconds,
    exp: token.expiresAtSeconds,
    aud,
    // TXN-11.3-5, TXN-13.2-1: made of the `jti` of its first token, so that it is as unique; TXN-13.15-1: a replacement keeps it.
    txn: replaces ? (before.txn ?? "") : `txn_${jti}`,
    jti,
    sub,
    scope: token.scope.join(" "),
    req_wl,
    act: buildAct(token.chain, iss),
    authorization_details: detailsJson(token.details),
    // TXN-9.2-6: both stand there, so that none of them can be added.
    rctx: rctx.value.kept,
    tctx: tctx.value,
  });
  const payload = JSON.stringify(claims);
  // TXN-D-13
  return fitsIssuedSize(payload, TRANSACTION_BYTES_MAX)
    ? ok({ claims, payload, dropped: rctx.value.dropped })
    : err({ reason: "token_too_large" });
}

type Context = { kept: JsonObject; dropped: readonly string[] };

/** TXN-D-8, TXN-9.2.2-1, TXN-11.3-7: what the requester claims, of which the domain takes what it knows. */
function readContext(
  { rctx }: DomainRules,
  { context }: TransactionRequest = NOTHING,
): Result<Context, ContextFailure> {
  const kept: JsonObject = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(context)) {
    const shape = rctx.get(name);
    if (shape === undefined) dropped.push(name);
    else if (hasShape(value, shape)) kept[name] = value as Json;
    else return err({ reason: "request_context_refused" });
  }
  return ok({ kept, dropped });
}

const NOTHING: TransactionRequest = { context: {}, details: {} };

/** TXN-D-10: the context is that of the first request. */
const keptContext = (
  { rctx }: JsonObject,
  { context }: TransactionRequest = NOTHING,
): Result<Context, ContextFailure> =>
  Object.keys(context).length === 0 && isJsonObject(rctx)
    ? ok({ kept: rctx, dropped: [] })
    : err({ reason: "transaction_fact_stands" });

/** TXN-D-9, TXN-9.2.3-1, TXN-11.3-8: each fact has its source, and what is sent without one is refused. */
function readFacts(
  { tctx }: DomainRules,
  token: Transaction,
  { claims: before, replaces }: Grounds,
  asked: TransactionRequest | undefined,
): Result<JsonObject, ContextFailure> {
  const { details: sent } = asked ?? NOTHING;
  const standing = replaces && isJsonObject(before.tctx) ? before.tctx : {};
  for (const [name, value] of Object.entries(sent)) {
    const fact = tctx.get(name);
    const isWitness = fact?.from === "witness" && matchesAny(fact.workloads, token.requester);
    if (!isWitness || !hasShape(value, fact)) return err({ reason: "transaction_fact_unverified" });
    // TXN-D-10: one that changed or went may have been a limit.
    if (Object.hasOwn(standing, name)) return err({ reason: "transaction_fact_stands" });
  }
  const facts: JsonObject = { ...standing };
  for (const [name, fact] of tctx) {
    if (Object.hasOwn(standing, name)) continue;
    const value = sent[name] ?? (replaces ? undefined : factFrom(fact, token, before));
    if (value !== undefined) facts[name] = value as Json;
    else if (!fact.optional && asked !== undefined) return err({ reason: "transaction_fact_missing" });
  }
  // TXN-D-10, TXN-13.15-1: those that requested the tokens before, oldest first.
  if (replaces) facts[REQUESTERS] = requestersOf(before);
  return ok(facts);
}

/** The requesting workloads of this token and of those that it replaces, oldest first. */
export function requestersOf({ tctx, req_wl }: JsonObject): string[] {
  const earlier = isJsonObject(tctx) && Array.isArray(tctx[REQUESTERS]) ? tctx[REQUESTERS] : [];
  return [...earlier, req_wl ?? ""].map(String);
}

function factFrom(
  fact: Fact,
  { details = [], job }: Transaction,
  claims: JsonObject,
): DetailValue | undefined {
  switch (fact.from) {
    case "token":
      return claimOf(claims, fact.claim);
    case "authorization_details": {
      // Of several objects, which are alternatives, none says how it is.
      const [one, another] = details.filter(({ type }) => type === fact.type);
      return one !== undefined && another === undefined ? one[fact.field] : undefined;
    }
    case "computed":
      return fact.value === "job" ? job : claimOf(claims, fact.value);
    case "witness":
      return undefined;
  }
}

const claimOf = (claims: JsonObject, name: string): DetailValue | undefined => {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  return value !== undefined && isDetailValue(value) ? value : undefined;
};

const matchesAny = (patterns: readonly string[], name: string): boolean =>
  patterns.some((one) => matchesPattern(one, name));

function hasShape(value: DetailValue, { is, chars }: Shape): boolean {
  const fits = (text: unknown): boolean => typeof text === "string" && text.length <= chars;
  if (is === "strings") return Array.isArray(value) && value.every(fits);
  return is === "string" ? fits(value) : is === "integer" ? Number.isSafeInteger(value) : typeof value === is;
}
