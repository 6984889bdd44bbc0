/** What is written of an issued token, as one entry: its event, its row, and what must still hold and is used up then. */
import type { AuditEvent } from "../audit/event.ts";
import { exchanges, MODES } from "../modes.ts";
import type { JobInForce } from "../policy/access.ts";
import type { AskedRequest } from "../policy/decision.ts";
import { type Endable, type EndingKey, endingKeys, selectorKey, subjectEmail } from "../policy/endings.ts";
import { factsOf } from "../policy/facts.ts";
import type { Rule } from "../policy/rules.ts";
import type { Ports } from "../ports.ts";
import type { Entry, Guard, TokenRecord } from "../records.ts";
import { sparse } from "../result.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import type { Detail } from "../spec/rfc9396.ts";
import { describeClient, describeDetails, describeRequest } from "./audit-fields.ts";
import type { Decided } from "./order/decide-order.ts";
import type { FamilyStep, Order } from "./order/order.ts";
import type { Known, TokenRequest } from "./token-request.ts";

/** The key that signs the token, and the digest of what it signs, by which a receipt knows the token. */
type Signing = { kid: string; fingerprint: string };

export function issuedEntry(
  ports: Pick<Ports, "settings" | "hash">,
  request: TokenRequest,
  order: Order,
  decided: Decided,
  key: Signing,
  step: FamilyStep | undefined,
  nowSeconds: number,
): Entry & { token: TokenRecord } {
  const token = rowOf(ports, order, decided, key, nowSeconds);
  const ends = order.resumes?.ends("granted");
  return sparse<Entry & { token: TokenRecord }>({
    event: eventOf(ports, request, order, decided, token, key, step),
    token,
    isUse: request.client.source === "registration",
    guards: [keyStands(ports, key, nowSeconds), ...guardsOf(request, order, decided, token)],
    family: step?.family,
    email: emailOf(ports, order, token),
    rows: ends?.rows,
    question: ends?.question,
  });
}

/** Whether the request is a token exchange, with whatever mode it is decided. */
export const isExchange = ({ access, manner }: Order): boolean =>
  exchanges(access.mode) || manner.sentAs === "exchange";

/** A refusal uses up the code that came with the request. */
export const codeSpentBy = ({ access, spends }: Order): Guard | undefined =>
  MODES[access.mode].brings === "code" ? spends : undefined;

/** What is known of the request for the audit trail, whatever the decision. */
export const knownOf = ({ form }: TokenRequest, { access, job, parties, user, resumes }: Order): Known => {
  const { id, iss } = access.job ?? job?.presented ?? {};
  return sparse<Known>({
    mode: access.mode,
    requested: describeRequest(form),
    ...resumes?.known,
    ...parties,
    job: id === undefined ? undefined : sparse<NonNullable<Known["job"]>>({ id, iss }),
    grant: user && describeGrant(user.grant.id, user.grant.generation),
  });
};

const describeGrant = (id: string, generation: number | undefined) =>
  sparse<NonNullable<AuditEvent["grant"]>>({ generation, id });

function rowOf(
  { settings, hash }: Pick<Ports, "settings" | "hash">,
  { access, sub, chain, ground: { ancestors, root, actorJti, platforms }, job }: Order,
  {
    allowed: { rule, audience, scope, details, consent, confirmation, expiresAtSeconds },
    token: { jti, mayAct },
  }: Decided,
  { kid }: Signing,
  nowSeconds: number,
): TokenRecord {
  const { issuer } = settings();
  const row = sparse<Omit<TokenRecord, "endingKeys">>({
    jti,
    clientId: access.clientId,
    workload: access.workload,
    subject: sub,
    origin: access.subject?.origin ?? { iss: issuer, sub },
    audience,
    scope: scope.join(" "),
    details,
    chain,
    ancestors,
    ruleId: rule.id,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds,
    mayAct,
    consentId: consent?.id,
    ...rowOfJob(access.job),
    confirmation,
  });
  const issued = sparse<Endable>({ ...row, actorJti, jobKeys: job?.keys, kid, platforms });
  return { ...row, endingKeys: endingKeys(hash.ofName, issued, root) };
}

/** DTR-D-15: what ends the parties or what the request brought, before a token is made of it; `jti` names what waits. */
export function keysOfOrder(
  { settings, hash }: Pick<Ports, "settings" | "hash">,
  { access, sub, ground: { actorJti, platforms, root }, job }: Order,
  { id: ruleId }: Rule,
  issuedAtSeconds: number,
  jti = "",
): readonly EndingKey[] {
  const { clientId, workload, subject } = access;
  const origin = subject?.origin ?? { iss: settings().issuer, sub };
  const parties = { jti, clientId, workload, origin, ruleId };
  const endable = sparse<Endable>({ ...parties, actorJti, jobKeys: job?.keys, platforms, issuedAtSeconds });
  return endingKeys(hash.ofName, endable, root);
}

/** PCL-D-12: it is kept until what was issued and what it was issued for have expired. */
const emailOf = (
  { hash }: Pick<Ports, "hash">,
  { ground: { root }, access: { subject } }: Order,
  { origin, expiresAtSeconds }: TokenRecord,
) => subjectEmail(hash.sha256, origin, root, Math.max(expiresAtSeconds, subject?.expiresAtSeconds ?? 0));

/** JOB-D-8: the row has the id itself, whatever the target sees of it. */
function rowOfJob(
  job: JobInForce | undefined,
): Pick<TokenRecord, "jobId" | "jobIssuer" | "jobEndsAtSeconds"> {
  if (job?.iss === undefined) return sparse({ jobId: job?.id });
  return { jobId: job.id, jobIssuer: job.iss, jobEndsAtSeconds: job.bounds.notAfterSeconds };
}

/** Another instance may have withdrawn the key since this one read it. */
const keyStands = ({ hash }: Pick<Ports, "hash">, { kid }: Signing, nowSeconds: number): Guard => ({
  kind: "key_stands",
  keys: [{ key: selectorKey(hash.ofName, { by: "key", kid }), sinceMs: nowSeconds * 1000 }],
});

/** What must still hold when the token is written, and what it uses up. */
function guardsOf(
  request: TokenRequest,
  order: Order,
  { allowed: { consent } }: Decided,
  { endingKeys: keys, issuedAtSeconds: nowSeconds }: TokenRecord,
): readonly Guard[] {
  const guards: Guard[] = [{ kind: "not_ended", keys }, ...spentWith(request, order)];
  if (consent !== undefined) {
    const { id, version } = consent;
    guards.push({ kind: "consent_current", id, version, nowSeconds });
  }
  const { job } = order.access;
  const most = job?.bounds.maxTokens;
  if (job !== undefined && most !== undefined) guards.push({ kind: "job_below", id: job.id, most });
  return guards;
}

/**
 * RFC7523-3-14: the assertion by which the client authenticated is spent, where it is of single use (a JWT-SVID and a
 * reusable assertion are not); IDC-5.5-2: so is the grant that it redeems; RFC9449-11.1-2: so is the proof of the key.
 * PLAT-D-6: a platform's token is spent once for all its roles in one request.
 */
export function spentWith(
  { client, spends: proof }: TokenRequest,
  { spends: grant, ground: { platforms } }: Order,
): readonly Guard[] {
  const spent: Guard[] = [];
  for (const one of [client.spends, grant, proof, ...platforms.map(({ spends }) => spends)]) {
    if (one !== undefined && !spent.includes(one)) spent.push(one);
  }
  return spent;
}

function eventOf(
  ports: Pick<Ports, "settings" | "hash">,
  request: TokenRequest,
  order: Order,
  { allowed: { rule, audience, consent, lapsed }, token: { claims, kind, dropped }, asked }: Decided,
  { jti, scope, details, expiresAtSeconds, chain, ancestors, confirmation }: TokenRecord,
  { kid, fingerprint }: Signing,
  step: FamilyStep | undefined,
): AuditEvent {
  const { hash } = ports;
  const { digest, details: types } = ports.settings().policy;
  const event = sparse<AuditEvent>({
    ...knownOf(request, order),
    // DTR-D-15
    type: order.resumes ? "deferral.granted" : (step?.type ?? MODES[order.access.mode].issued),
    grant: order.user && describeGrant(order.user.grant.id, step?.generation),
    outcome: "allow",
    reason: "rule_match",
    request: request.request,
    client: describeClient(request.client),
    policy: sparse<NonNullable<AuditEvent["policy"]>>({
      acknowledged: "acknowledge" in rule ? rule.acknowledge : undefined,
      asked: order.resumes?.asked,
      consent: consent?.id,
      digest,
      lapsed,
      rule_id: rule.id,
      unbound: order.access.subject?.boundTo !== undefined && confirmation === undefined ? true : undefined,
    }),
    granted: sparse<NonNullable<AuditEvent["granted"]>>({
      act_depth: chain.length,
      aud: audience,
      authorization_details: details && describeDetails(hash, types, details),
      cnf: confirmation,
      context: dropped && contextOf(claims, dropped),
      exp: expiresAtSeconds,
      fingerprint,
      issued_token_type: isExchange(order) ? kind.issuedTokenType : undefined,
      jti,
      kid,
      parent_jti: ancestors,
      scope,
      sub: String(claims.sub),
      token_type: kind.tokenType,
      txn: dropped && String(claims.txn),
    }),
  });
  return withFacts(ports, event, asked);
}

/** TXN-15.1-1: values may be personal data, so that names are enough for the trail. */
const contextOf = ({ rctx, tctx }: JsonObject, dropped: readonly string[]) => ({
  claimed: namesIn(rctx),
  dropped,
  verified: namesIn(tctx),
});

const namesIn = (facts: Json | undefined): readonly string[] =>
  isJsonObject(facts) ? Object.keys(facts) : [];

/** REPL-D-1: the event with what its decision read. */
export function withFacts(
  { settings, hash }: Pick<Ports, "settings" | "hash">,
  event: AuditEvent,
  asked: AskedRequest,
): AuditEvent {
  const { issuer, details: types } = settings().policy;
  const describe = (details: readonly Detail[]) => describeDetails(hash, types, details);
  return { ...event, facts: factsOf(asked, event, issuer, describe) };
}
