/**
 * The policy explains itself: a question is read and decided by the code that reads and decides token requests, and
 * the result is told. Nothing is issued.
 */
import type { Meant, NotAsked } from "../audit/event.ts";
import { REASONS } from "../audit/reasons.ts";
import type { Mode } from "../modes.ts";
import type { Allowed, Fallen, Trace } from "../policy/access.ts";
import type { AskedRequest } from "../policy/decision.ts";
import type { FallenDetail } from "../policy/details.ts";
import { formatTrace, likeUnknown } from "../policy/explanation.ts";
import { modeOf, type Question } from "../policy/question.ts";
import type { Ports } from "../ports.ts";
import { defined } from "../result.ts";
import { type Agents, inWords, namingOf } from "../settings/agents.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { DisabledPorts } from "./endings.ts";
import { decideOrder, type OrderDenied } from "./order/decide-order.ts";
import { readQuestion } from "./order/question.ts";
import { refuseDisabled } from "./order/refuse-disabled.ts";
import type { Failure } from "./refusal.ts";

export type ExplainPorts = DisabledPorts &
  Pick<Ports, "clock" | "settings" | "clients" | "clientDocuments" | "facts" | "random">;

export type Explanation = {
  mode: Mode;
  /** Those of the question that the operator named, by id: who asks, and as whom. */
  agents: readonly { id: string; title: string }[];
  /** The digest of the rules and targets that decided. */
  digest: string;
  /** The failure that the token endpoint would answer with; absent if it would give a token. */
  failure?: Failure;
  /** Every rule that names this caller for this mode, with the first condition that does not hold. */
  trace: Trace;
  /**
   * Each requested scope that was not granted, with the side of the intersection that lacks it, for the rule that
   * decided.
   */
  scopes: readonly { scope: string; fell?: Fallen["at"] }[];
  /** The objects of authorization_details of which nothing was left, for the same rule; absent if there are none. */
  details?: readonly { type: string; index: number; fell: FallenDetail["at"] }[];
  issued?: Issued;
  /**
   * Only the user's consent is missing, and the user can be asked for it: by the link in the refusal, or by asking for
   * another code.
   */
  couldAsk?: { rule: string; scope: readonly string[] };
  /** Why the user is not asked for a consent that lacks (POLICY-D-21). */
  notAsked?: NotAsked;
  /** Names of the question that are unknown, each with the one that is perhaps meant (POLICY-D-22). */
  meant?: readonly Meant[];
};

export type Issued = {
  rule: string;
  consent?: string;
  claims: JsonObject;
  /** What the request has to prove a key by, to which the token is then bound; absent if nothing is demanded. */
  binding?: Exclude<Allowed["demand"], "none">;
};

export const explain = async (ports: ExplainPorts, question: Question): Promise<Explanation> =>
  (await explainRefusal(ports, question)).explanation;

/** `refused`: what the policy itself refused, for the operator, who may change it. */
export async function explainRefusal(
  ports: ExplainPorts,
  question: Question,
): Promise<{ explanation: Explanation; refused?: AskedRequest | undefined }> {
  const mode = modeOf(question);
  const { policy, agents: all } = ports.settings();
  const { digest } = policy;
  const agents = namedIn(all, question);
  const denied = ({
    failure,
    trace,
    missing,
    notAsked,
  }: Omit<OrderDenied, "failure"> & { failure: Failure }): Explanation =>
    defined<Explanation>({
      mode,
      agents,
      digest,
      failure,
      trace,
      scopes: scopesWithoutRule(trace),
      details: fallenOf(trace.find((one) => one.failed === "details")),
      couldAsk: missing && { rule: missing.rule.id, scope: missing.scope },
      notAsked,
    });
  const order = await readQuestion(ports, question);
  if (!order.ok) return { explanation: denied({ failure: order.error, trace: [] }) };
  const disabled = await refuseDisabled(ports, order.value);
  if (disabled !== undefined) return { explanation: denied({ failure: disabled, trace: [] }) };
  const decided = await decideOrder(ports, order.value, ports.clock.nowSeconds());
  if (!decided.ok) {
    const meant = likeUnknown(policy, order.value.access);
    const explanation = defined<Explanation>({ ...denied(decided.error), meant });
    return { explanation, refused: decided.error.asked };
  }
  const { allowed, token } = decided.value;
  const { rule, consent, demand, trace } = allowed;
  // The `jti`, of which `txn` is made, only gives the token its size: there is no token with it.
  const { jti: _, txn: __, ...claims } = token.claims;
  const binding = demand === "none" ? undefined : demand;
  const issued = defined<Issued>({ rule: rule.id, consent: consent?.id, claims, binding });
  const scopes = scopesOfRule(allowed);
  const details = fallenOf(trace.find((one) => one.rule === rule.id));
  return { explanation: defined<Explanation>({ mode, agents, digest, trace, scopes, details, issued }) };
}

const fallenOf = (of: Trace[number] | undefined): Explanation["details"] =>
  of?.fallenDetails?.map(({ type, index, at }) => ({ type, index, fell: at }));

/** NAME-D-1: in the language of the explanation. */
function namedIn(agents: Agents, { client, workload, actor }: Question): Explanation["agents"] {
  const ids = new Set([client, workload, actor].filter((id) => id !== undefined));
  return [...ids].flatMap((id) => {
    const naming = namingOf(agents, id);
    return naming === undefined ? [] : [{ id, title: inWords(naming, ["en"]).title }];
  });
}

function scopesOfRule({ rule, scope, trace }: Allowed): Explanation["scopes"] {
  const fallen = trace.find((one) => one.rule === rule.id)?.fallen ?? [];
  return [...scope.map((one) => ({ scope: one })), ...fallen.map(({ scope, at }) => ({ scope, fell: at }))];
}

/** Where no rule leaves anything of the scope, the first rule that came that far is shown. */
function scopesWithoutRule(trace: Trace): Explanation["scopes"] {
  const fallen = trace.find((one) => one.failed === "scope")?.fallen ?? [];
  return fallen.map(({ scope, at }) => ({ scope, fell: at }));
}

/** Explains the rules in words, then the decision. */
export function formatExplanation({
  agents,
  trace,
  failure,
  issued,
  couldAsk,
  notAsked,
  meant = [],
}: Explanation): readonly string[] {
  const decision =
    issued === undefined
      ? `Denied: ${failure?.reason ?? "no_rule"}.`
      : `Allowed by rule ${issued.rule}, with scope ${String(issued.claims.scope)}.`;
  const { authorization_details: details } = issued?.claims ?? {};
  return [
    ...agents.map(({ id, title }) => `${JSON.stringify(title)} is ${JSON.stringify(id)}.`),
    ...formatTrace(trace),
    ...(notAsked === undefined ? [] : [`The user is not asked: ${REASONS[notAsked]}.`]),
    ...meant.map(({ asked, known }) => `${asked} is unknown: ${JSON.stringify(known)} is perhaps meant.`),
    decision,
    ...(details === undefined ? [] : [`Limited to the details ${JSON.stringify(details)}.`]),
    ...(couldAsk === undefined
      ? []
      : [`The user could be asked, by rule ${couldAsk.rule}, for scope ${couldAsk.scope.join(" ")}.`]),
    ...(issued?.binding === undefined ? [] : [BINDINGS[issued.binding]]),
  ];
}

const BINDINGS: Record<NonNullable<Issued["binding"]>, string> = {
  certificate: "The request has to show a client certificate, to which the token is bound.",
  dpop: "The request needs a DPoP proof, to whose key the token is bound.",
  any: "The request needs a DPoP proof or a client certificate, to whose key the token is bound.",
};

/** What the audit trail keeps of an explanation. */
export function describeExplanation(question: Question, { mode, failure, issued }: Explanation): JsonObject {
  const { client, target, scope, actor, origin, subjectClaims, grantClaims, signedIn } = question;
  const { iss, sub } = subjectClaims ?? grantClaims ?? signedIn ?? {};
  return defined<JsonObject>({
    mode,
    client,
    decision: issued === undefined ? "deny" : "allow",
    reason: failure?.reason,
    rule_id: issued?.rule,
    target,
    scope,
    actor,
    iss: typeof iss === "string" ? (origin?.iss ?? iss) : undefined,
    sub: typeof sub === "string" ? (origin?.sub ?? sub) : undefined,
  });
}
