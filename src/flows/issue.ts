/** From a decision to a token: decide, write event and row durably where the facts still hold, then sign. */

import type { AuditEvent } from "../audit/event.ts";
import type { Allowed, Ask, Consent, Denied } from "../policy/ask.ts";
import { decide } from "../policy/decide.ts";
import type { Ports } from "../ports.ts";
import type { Guard, TokenRecord } from "../records.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { TokenAnswer } from "../spec/rfc6749.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import type { Chain } from "../spec/rfc8693.ts";
import type { Authenticated } from "./authenticate-client.ts";
import type { TokenKind } from "./build-token.ts";
import { buildToken } from "./build-token.ts";
import type { RefusedRequest } from "./refusal.ts";
import { assertionReplayed, grantReplayed } from "./refusal.ts";

export type Order = {
  ask: Omit<Ask, "consents" | "nowSeconds">;
  /** Our `sub` of the subject, or the client itself. */
  sub: string;
  /** The chain of the token to be issued, current actor first. */
  chain: Chain;
  ancestors: readonly string[];
  /** What this request uses up. */
  spends: readonly Guard[];
  /** Claims of a foreign subject token, of which a partner may see some. */
  subjectClaims?: JsonObject;
  /** Whether the answer says which API the token is for. */
  tellsResource?: boolean;
  /** What is already known for the audit trail. */
  event: Omit<AuditEvent, "type" | "outcome" | "reason">;
  allowedType: AuditEvent["type"];
  deniedType: AuditEvent["type"];
};

/** Who asks, as the policy knows him. */
export function askingAs(
  client: Asking,
): Pick<Ask, "clientId" | "workload" | "registrationClass" | "clientScopes"> {
  const { clientId, workload, registrationClass, scopes } = client;
  return {
    clientId,
    ...(workload !== undefined && { workload }),
    ...(registrationClass !== undefined && { registrationClass }),
    ...(scopes !== undefined && { clientScopes: scopes }),
  };
}

type Asking = Pick<Authenticated, "clientId" | "workload" | "registrationClass" | "scopes">;

/** RFC7523-3-14: what the authentication of the client uses up, if anything. */
export const spentBy = ({ spends }: Authenticated): readonly Guard[] =>
  spends === undefined ? [] : [spends];

/** As often as facts may change between reading and writing before the request is refused. */
const DECISIONS_MAX = 2;
/** Of a long trace, this much goes to the audit trail. */
const TRACE_MAX = 16;

export async function issue(ports: Ports, order: Order): Promise<Result<TokenAnswer, RefusedRequest>> {
  const { policy } = ports.settings();
  const nowSeconds = ports.clock.nowSeconds();
  for (let decisions = 0; decisions < DECISIONS_MAX; decisions++) {
    const consents = await consentsFor(ports, order.ask, nowSeconds);
    const decided = decide(policy, { ...order.ask, consents, nowSeconds });
    if (!decided.ok) return refuse(order, decided.error, policy.digest);
    const issued = draft(ports, order, decided.value, nowSeconds);
    if (!issued.ok) return issued;
    const { token, event, guards, kind, sign } = issued.value;
    // AUDIT-D-1, PROD-6.2-1: event and row are durable before there is a token.
    const recorded = await ports.journal.record({ event, token, guards });
    if (recorded.ok) return ok(answer(order, kind, await sign(), token));
    if (recorded.error.includes("jti_fresh")) return err(assertionReplayed(event));
    if (recorded.error.includes("grant_fresh")) return err(grantReplayed(event));
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
  const { ask, chain, ancestors } = order;
  const { rule, target, audience, scope, expiresAtSeconds, consent } = allowed;
  const { issuer, policy } = ports.settings();
  const jti = ports.random.id();
  const built = buildToken(issuer, order, allowed, nowSeconds, jti);
  if (!built.ok) {
    const { reason } = built.error;
    return refuse(order, { kind: "policy_denied", reason, trace: allowed.trace }, policy.digest);
  }
  const { claims, mayAct, kind } = built.value;
  const signer = kind.tokenType === "Bearer" ? ports.signer : ports.grantSigner;
  const key = signer.current(target.alg);
  const token: TokenRecord = {
    jti,
    clientId: ask.clientId,
    subject: order.sub,
    origin: ask.subject?.origin ?? { iss: issuer, sub: order.sub },
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
  const guards: Guard[] = [...order.spends];
  if (ancestors.length > 0) guards.push({ kind: "tokens_live", jtis: ancestors });
  if (consent !== undefined) guards.push({ kind: "consent_current", ...consent, nowSeconds });
  const event: AuditEvent = {
    ...order.event,
    type: order.allowedType,
    outcome: "allow",
    reason: "rule_match",
    policy: defined({
      digest: policy.digest,
      rule_id: rule.id,
      consent: consent?.id,
      acknowledged: "acknowledge" in rule ? rule.acknowledge : undefined,
    }),
    granted: {
      jti,
      token_type: kind.tokenType,
      sub: String(claims.sub),
      aud: audience,
      scope: token.scope,
      exp: expiresAtSeconds,
      act_depth: chain.length,
      kid: key.kid,
      parent_jti: ancestors,
      ...(isExchange(ask) && { issued_token_type: kind.issuedTokenType }),
    },
  };
  const sign = () => signer.sign(key, kind.typ, claims);
  return ok({ token, event, guards, kind, sign });
}

const isExchange = ({ mode }: Order["ask"]): boolean => mode === "delegation" || mode === "impersonation";

/** RFC6749-5.1-2, RFC6749-5.1-4: always with lifetime and scope, both from what was written. */
function answer(
  { ask, tellsResource = false }: Order,
  kind: TokenKind,
  signed: string,
  token: TokenRecord,
): TokenAnswer {
  return {
    access_token: signed, // RFC8693-2.2.1-2, IDC-2.3.3-1, IDJAG-4.3.4-1
    ...(isExchange(ask) && { issued_token_type: kind.issuedTokenType }), // RFC8693-2.2.1-3
    token_type: kind.tokenType, // RFC8693-2.2.1-4
    expires_in: token.expiresAtSeconds - token.issuedAtSeconds, // IDJAG-4.3.4-4
    scope: token.scope, // IDJAG-4.3.4-2
    ...(tellsResource && { resource: token.audience }), // IDJAG-4.4.1-7
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
  return err({ failure: { kind, reason }, event } satisfies RefusedRequest);
}
