/** From a decision to a token: decide, write event and row durably where the facts still hold, then sign. */

import type { Allowed, Ask, Consent, Denied } from "../policy/decide.ts";
import { decide } from "../policy/decide.ts";
import type { Guard, Ports, TokenRecord } from "../ports.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { AuditEvent } from "../spec/audit.ts";
import type { Json, JsonObject } from "../spec/json.ts";
import type { TokenAnswer } from "../spec/rfc6749.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { ACCESS_TOKEN } from "../spec/rfc8693.ts";
import { AT_JWT, buildAccessTokenClaims, fitsIssuedSize } from "../spec/rfc9068.ts";
import type { Refusal } from "./outcome.ts";
import { replayed } from "./outcome.ts";

export type Order = {
  ask: Omit<Ask, "consents" | "nowSeconds">;
  /** Our `sub` of the subject, or the client itself. */
  sub: string;
  /** The chain of the token to be issued, current actor first. */
  chain: Chain;
  ancestors: readonly string[];
  /** What this request uses up. */
  spends?: Guard;
  /** What is already known for the audit trail. */
  event: Omit<AuditEvent, "type" | "outcome" | "reason">;
  allowedType: AuditEvent["type"];
  deniedType: AuditEvent["type"];
};

/** As often as facts may change between reading and writing before the request is refused. */
const DECISIONS_MAX = 2;
/** Of a long trace, this much goes to the audit trail. */
const TRACE_MAX = 16;

export async function issue(ports: Ports, order: Order): Promise<Result<TokenAnswer, Refusal>> {
  const { policy } = ports.settings();
  const nowSeconds = Math.floor(ports.clock.nowMs() / 1000);
  for (let decisions = 0; decisions < DECISIONS_MAX; decisions++) {
    const consents = await consentsFor(ports, order.ask, nowSeconds);
    const decided = decide(policy, { ...order.ask, consents, nowSeconds });
    if (!decided.ok) return refuse(order, decided.error, policy.digest);
    const issued = draft(ports, order, decided.value, nowSeconds);
    if (!issued.ok) return issued;
    const { claims, token, event, key, guards } = issued.value;
    // AUDIT-D-1, PROD-6.2-1: event and row are durable before there is a token.
    const recorded = await ports.journal.record({ event, token, guards });
    if (recorded.ok) {
      const accessToken = await ports.signer.sign(key, AT_JWT, claims);
      return ok(answer(order, accessToken, token));
    }
    if (recorded.error.includes("jti_fresh")) return err(replayed(event));
    // RFC8693-2.1-25: an input token that was revoked meanwhile; a changed consent is decided anew.
    if (recorded.error.includes("tokens_live")) break;
  }
  return refuse(order, { kind: "token_refused", reason: "facts_changed", trace: [] }, policy.digest);
}

/** PROD-2.6-4: read at every decision, and no cache answers for them. */
export async function consentsFor(
  ports: Pick<Ports, "facts">,
  ask: Order["ask"],
  nowSeconds: number,
): Promise<readonly Consent[]> {
  const { subject } = ask;
  if (subject === undefined) return [];
  return ports.facts.consents(subject.origin, ask.workload ?? ask.clientId, nowSeconds);
}

function draft(ports: Ports, order: Order, allowed: Allowed, nowSeconds: number) {
  const { ask, sub, chain, ancestors } = order;
  const { rule, target, audience, scope, expiresAtSeconds, consent } = allowed;
  const { issuer, policy } = ports.settings();
  const key = ports.signer.current(target.alg);
  const jti = ports.random.id();
  const mayAct = mayActOf(ask);
  const claims = draftClaims(issuer, order, allowed, nowSeconds, jti);
  if (!fitsIssuedSize(claims)) {
    return refuse(
      order,
      { kind: "policy_denied", reason: "token_too_large", trace: allowed.trace },
      policy.digest,
    );
  }
  const token: TokenRecord = {
    jti,
    clientId: ask.clientId,
    subject: sub,
    origin: ask.subject?.origin ?? { iss: issuer, sub },
    audience,
    scope: scope.join(" "),
    chain,
    ancestors,
    ruleId: rule.id,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds,
    ...(mayAct !== undefined && { mayAct }),
    ...(consent !== undefined && { consentId: consent.id }),
  };
  const guards: Guard[] = order.spends === undefined ? [] : [order.spends];
  if (ancestors.length > 0) guards.push({ kind: "tokens_live", jtis: ancestors });
  if (consent !== undefined) guards.push({ kind: "consent_current", ...consent, nowSeconds });
  const event: AuditEvent = {
    ...order.event,
    type: order.allowedType,
    outcome: "allow",
    reason: "rule_match",
    policy: {
      digest: policy.digest,
      rule_id: rule.id,
      ...(consent !== undefined && { consent: consent.id }),
      ...("acknowledge" in rule && rule.acknowledge !== undefined && { acknowledged: rule.acknowledge }),
    },
    granted: {
      jti,
      token_type: "Bearer",
      sub,
      aud: audience,
      scope: token.scope,
      exp: expiresAtSeconds,
      act_depth: chain.length,
      kid: key.kid,
      parent_jti: ancestors,
      ...(ask.subject !== undefined && { issued_token_type: ACCESS_TOKEN }),
    },
  };
  return ok({ claims, token, event, key, guards });
}

/** RFC8693-1.1-1, PROD-3-9: who impersonates shows nothing of the chain, nor of who else might act. */
const mayActOf = ({ mode, subject }: Order["ask"]): JsonObject | undefined =>
  mode === "impersonation" ? undefined : subject?.mayAct;

/** The claims that this decision comes to, under this `jti`. */
export function draftClaims(
  issuer: string,
  { ask, sub, chain }: Pick<Order, "ask" | "sub" | "chain">,
  { target, audience, scope, expiresAtSeconds }: Allowed,
  nowSeconds: number,
  jti: string,
): JsonObject {
  const mayAct = mayActOf(ask);
  return buildAccessTokenClaims({
    issuer,
    subject: sub,
    audience,
    clientId: ask.clientId,
    scope,
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds,
    jti,
    chain: target.chain === "current" ? chain.slice(0, 1) : chain,
    ...(mayAct !== undefined && { mayAct }),
  });
}

/** RFC6749-5.1-2, RFC6749-5.1-4: always with lifetime and scope, both from what was written. */
function answer({ ask }: Order, accessToken: string, token: TokenRecord): TokenAnswer {
  return {
    access_token: accessToken, // RFC8693-2.2.1-2
    ...(ask.subject !== undefined && { issued_token_type: ACCESS_TOKEN }), // RFC8693-2.2.1-3
    token_type: "Bearer",
    expires_in: token.expiresAtSeconds - token.issuedAtSeconds,
    scope: token.scope,
  };
}

type Why = { kind: Denied["kind"] | "token_refused"; reason: string; trace: Denied["trace"] };

function refuse(order: Order, { kind, reason, trace }: Why, digest: string) {
  const shown = trace.slice(0, TRACE_MAX) as unknown as Json;
  const event: AuditEvent = {
    ...order.event,
    type: order.deniedType,
    outcome: "deny",
    reason,
    policy: { digest, ...(trace.length > 0 && { trace: shown }) },
  };
  return err({ failure: { kind, reason }, event } satisfies Refusal);
}
