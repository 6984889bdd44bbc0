/** An order, decided by the policy under the consents on record, and the token that it would give; nothing is written. */
import type { Reason } from "../../audit/reasons.ts";
import { MODES, redeems } from "../../modes.ts";
import type { Consent, Denied, Trace } from "../../policy/access.ts";
import { type AskedRequest, decideRequest, type PolicyDecision } from "../../policy/decision.ts";
import { jobIdAt } from "../../policy/jobs.ts";
import type { Ports } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../../result.ts";
import { type BuiltToken, buildToken } from "../build-token.ts";
import type { FinalFailure } from "../refusal.ts";
import type { Order } from "./order.ts";

/** `jobId`: the job as the target sees it; `asked`: what the decision read. */
export type Decided = { allowed: PolicyDecision; token: BuiltToken; jobId?: string; asked: AskedRequest };
/** `missing` is a consent for which the user can be asked; `asked` is there where the policy itself refused. */
export type OrderDenied = { failure: FinalFailure; trace: Trace; asked?: AskedRequest } & Pick<
  Denied,
  "missing" | "notAsked"
>;

export function decideOrder(
  ports: Pick<Ports, "settings" | "facts" | "random" | "hash">,
  order: Order,
  nowSeconds: number,
): Awaitable<Result<Decided, OrderDenied>> {
  return whenReady(findConsents(ports, order, nowSeconds), (consents) =>
    decideUnder(ports, order, consents, nowSeconds),
  );
}

function decideUnder(
  ports: Pick<Ports, "settings" | "random" | "hash">,
  order: Order,
  consents: readonly Consent[],
  nowSeconds: number,
): Result<Decided, OrderDenied> {
  const { issuer, policy, signIn } = ports.settings();
  const { access, sub, job: { proposed } = {} } = order;
  const asked = defined<AskedRequest>({ ...access, consents, nowSeconds, sub, proposes: proposed?.bounds });
  const decided = decideRequest(policy, asked);
  if (!decided.ok) {
    const { trace, missing, notAsked } = decided.error;
    const { iss } = access.subject?.origin ?? {};
    const providers = [...(signIn?.providers.values() ?? [])];
    // Only a user who can sign in here can be asked.
    const canSignIn = providers.some((one) => one.issuer === iss);
    return err(
      defined<OrderDenied>({
        failure: toFailure(order, decided.error),
        trace,
        asked,
        missing: canSignIn ? missing : undefined,
        notAsked: canSignIn || missing === undefined ? notAsked : "user_cannot_sign_in",
      }),
    );
  }
  const { job } = access;
  const jobId = job && jobIdAt(ports.hash.sha256, decided.value.target, job);
  const jti = order.user?.jti ?? ports.random.id();
  const token = buildToken(issuer, order, decided.value, nowSeconds, jti, jobId);
  if (!token.ok) {
    const failure = toFailure(order, { kind: "policy_denied", reason: token.error.reason });
    return err({ failure, trace: decided.value.trace });
  }
  return ok(defined<Decided>({ allowed: decided.value, token: token.value, jobId, asked }));
}

/** PROD-2.6-4: consents are read at every decision, and no cache answers for them. */
function findConsents(
  { facts }: Pick<Ports, "facts">,
  { access: { subject, workload, clientId }, user }: Order,
  nowSeconds: number,
): Awaitable<readonly Consent[]> {
  if (subject === undefined) return [];
  return whenReady(facts.consents(subject.origin, workload ?? clientId, nowSeconds), (found) =>
    user === undefined ? found : found.filter(({ id }) => id === user.consentId),
  );
}

/** The failure that the caller is told of a decision, by the grant type that it used. */
export function toFailure(
  {
    access: { mode },
    manner: { targetFromGrant, sentAs },
    resumes,
  }: Pick<Order, "access" | "manner" | "resumes">,
  { kind, reason }: { kind: Denied["kind"] | "token_refused"; reason: Reason },
): FinalFailure {
  // DTR-11.7-1: what the first request could have does not hold any more.
  if (resumes !== undefined) return { kind: "deferral_ended", reason };
  // RFC6749-5.2-7: no rule lets this client have tokens of its own at all.
  if (MODES[mode].brings === "nothing" && sentAs === undefined && reason === "no_rule")
    return { kind: "client_unauthorized", reason };
  // IDC-2.4.2-5: a denial by the policy is an invalid grant; EMA-7.6.2-1: so is a target that only the grant names.
  // IDJAG-9.9-6: so is a missing proof; a proof that the target excludes is not the grant's fault.
  const others = kind === "scope_refused" || kind === "details_refused" || reason === "binding_excluded";
  const ofGrant = kind === "target_refused" ? targetFromGrant : !others;
  // RFC6749-5.2-6: so is a code whose consent or rule is gone since it was issued.
  // WAG-7-1: and so is the grant of a workload to which no rule gives anything.
  return { kind: (redeems(mode) || sentAs === "grant") && ofGrant ? "grant_refused" : kind, reason };
}
