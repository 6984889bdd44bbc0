/** What is written of an issued token, as one entry: its event, its row, and what must still hold and is used up then. */
import type { AuditEvent } from "../audit/event.ts";
import { exchanges, MODES } from "../modes.ts";
import type { AskedRequest } from "../policy/decision.ts";
import { type Endable, type EndingKey, endingKeys, selectorKey, subjectEmail } from "../policy/endings.ts";
import { factsOf } from "../policy/facts.ts";
import type { Rule } from "../policy/rules.ts";
import type { Ports } from "../ports.ts";
import type { Entry, Guard, TokenRecord } from "../records.ts";
import { sparse } from "../result.ts";
import { isJsonObject, type Json, type JsonObject } from "../spec/rfc8259.ts";
import type { Detail } from "../spec/rfc9396.ts";
import { claimDigest, describeClient, describeDetails, describeRequest } from "./audit-fields.ts";
import type { Decided } from "./build-token.ts";
import type { Part, TokenOption } from "./options/option.ts";
import { concerned, endableOf, joined } from "./options.ts";
import type { Order } from "./order/order.ts";
import type { TokenRequest } from "./token-request.ts";

/** A token request on its way: the order that was made of it, and the options that it concerns. */
export type Issuing = {
  request: TokenRequest;
  order: Order;
  options: readonly TokenOption[];
  nowSeconds: number;
};

export type IssuedEntry = Entry & { token: TokenRecord };

/** The key that signs the token, and the digest of what it signs, by which a receipt knows the token. */
type Signing = { kid: string; fingerprint: string };

export function issuedEntry(
  ports: Pick<Ports, "settings" | "hash">,
  issuing: Issuing,
  decided: Decided,
  part: Required<Part>,
  key: Signing,
): IssuedEntry {
  const { request, order, nowSeconds } = issuing;
  const token = rowOf(ports, issuing, decided, part, key);
  const guards = [
    keyStands(ports, key, nowSeconds),
    ...guardsOf(request, order, decided, token),
    ...part.guards,
  ];
  return sparse<IssuedEntry>({
    ...part.entry,
    event: eventOf(ports, issuing, decided, part, token, key),
    token,
    isUse: request.client.source === "registration",
    guards,
    email: emailOf(ports, order, token),
  });
}

/** Whether the request is a token exchange, with whatever mode it is decided. */
export const isExchange = ({ access, manner }: Order): boolean =>
  exchanges(access.mode) || manner.sentAs === "exchange";

/** A refusal uses up the code that came with the request. */
export const codeSpentBy = ({ access, spends }: Order): Guard | undefined =>
  MODES[access.mode].brings === "code" ? spends : undefined;

/** What is known of the request for the audit trail, whatever the decision. */
export const knownOf = ({
  request,
  order,
  options,
}: Omit<Issuing, "nowSeconds">): ReturnType<NonNullable<TokenOption["known"]>> => ({
  mode: order.access.mode,
  requested: describeRequest(request.form),
  ...order.parties,
  ...joined(options.map(({ known }) => known?.(order))),
});

function rowOf(
  { settings, hash }: Pick<Ports, "settings" | "hash">,
  { order, options, nowSeconds }: Issuing,
  { allowed: { rule, audience, scope, consent, expiresAtSeconds }, token: { jti, mayAct } }: Decided,
  part: Required<Part>,
  { kid }: Signing,
): TokenRecord {
  const { issuer } = settings();
  const { access, sub, chain, ground } = order;
  const { ancestors, root, actorJti } = ground;
  const row = sparse<Omit<TokenRecord, "endingKeys">>({
    jti,
    clientId: access.clientId,
    workload: access.workload,
    subject: sub,
    origin: access.subject?.origin ?? { iss: issuer, sub },
    audience,
    scope: scope.join(" "),
    chain,
    ancestors,
    ruleId: rule.id,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds,
    mayAct,
    consentId: consent?.id,
    ...part.row,
  });
  const issued = sparse<Endable>({ ...row, ...endableOf(options, order), ...part.ends, actorJti, kid });
  return { ...row, endingKeys: endingKeys(hash.ofName, issued, root) };
}

/** DTR-D-15: what ends the parties or what the request brought, before a token is made of it; `jti` names what waits. */
export function keysOfOrder(
  { settings, hash }: Pick<Ports, "settings" | "hash">,
  order: Order,
  { id: ruleId }: Rule,
  issuedAtSeconds: number,
  jti = "",
): readonly EndingKey[] {
  const { access, sub, ground } = order;
  const { clientId, workload, subject } = access;
  const { actorJti, root } = ground;
  const origin = subject?.origin ?? { iss: settings().issuer, sub };
  const parties = { jti, clientId, workload, origin, ruleId, actorJti, issuedAtSeconds };
  const endable = sparse<Endable>({ ...parties, ...endableOf(concerned(settings(), order), order) });
  return endingKeys(hash.ofName, endable, root);
}

/** PCL-D-12: it is kept until what was issued and what it was issued for have expired. */
const emailOf = (
  { hash }: Pick<Ports, "hash">,
  { ground: { root }, access: { subject } }: Order,
  { origin, expiresAtSeconds }: TokenRecord,
) => subjectEmail(hash.sha256, origin, root, Math.max(expiresAtSeconds, subject?.expiresAtSeconds ?? 0));

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
  issuing: Issuing,
  { allowed: { rule, audience, consent }, token: { claims, kind, dropped }, asked }: Decided,
  part: Required<Part>,
  { jti, scope, expiresAtSeconds, chain, ancestors }: TokenRecord,
  { kid, fingerprint }: Signing,
): AuditEvent {
  const { request, order } = issuing;
  const known = knownOf(issuing);
  const event = sparse<AuditEvent>({
    ...known,
    type: MODES[order.access.mode].issued,
    outcome: "allow",
    reason: "rule_match",
    request: request.request,
    client: describeClient(request.client),
    ...part.event,
    policy: sparse<NonNullable<AuditEvent["policy"]>>({
      acknowledged: "acknowledge" in rule ? rule.acknowledge : undefined,
      consent: consent?.id,
      digest: ports.settings().policy.digest,
      rule_id: rule.id,
      ...known.policy,
      ...part.policy,
    }),
    granted: sparse<NonNullable<AuditEvent["granted"]>>({
      act_depth: chain.length,
      aud: audience,
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
      ...part.granted,
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
  return { ...event, facts: factsOf(asked, event, issuer, describe, (text) => claimDigest(hash, text)) };
}
