/** An order, decided by the policy under the consents on record, and the token that it would give; nothing is written. */
import type { Consent, Denied, Trace } from "../../policy/access.ts";
import { type AskedRequest, decideRequest } from "../../policy/decision.ts";
import type { Ports } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../../result.ts";
import { buildToken, type Decided } from "../build-token.ts";
import type { TokenOption } from "../options/option.ts";
import { claimsOf, concerned, upToNow } from "../options.ts";
import type { FinalFailure } from "../refusal.ts";
import { toFailure } from "../token-request.ts";
import type { Order } from "./order.ts";

/** `missing` is a consent for which the user can be asked; `asked` is there where the policy itself refused. */
export type OrderDenied = { failure: FinalFailure; trace: Trace; asked?: AskedRequest } & Pick<
  Denied,
  "missing" | "notAsked"
>;

export function decideOrder(
  ports: Pick<Ports, "settings" | "facts" | "random" | "hash">,
  order: Order,
  nowSeconds: number,
  options = concerned(ports.settings(), order),
): Awaitable<Result<Decided, OrderDenied>> {
  const asked = upToNow(ports, options, order);
  return whenReady(findConsents(ports, order, nowSeconds), (consents) =>
    whenReady(asked, (one) => decideUnder(ports, one, consents, nowSeconds, options)),
  );
}

function decideUnder(
  ports: Pick<Ports, "settings" | "random" | "hash">,
  order: Order,
  consents: readonly Consent[],
  nowSeconds: number,
  options: readonly TokenOption[],
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
  const jti = order.user?.jti ?? ports.random.id();
  const token = buildToken(
    issuer,
    order,
    decided.value,
    nowSeconds,
    jti,
    claimsOf(ports, options, order, decided.value),
  );
  if (!token.ok) {
    const failure = toFailure(order, { kind: "policy_denied", reason: token.error.reason });
    return err({ failure, trace: decided.value.trace });
  }
  return ok({ allowed: decided.value, token: token.value, asked });
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
