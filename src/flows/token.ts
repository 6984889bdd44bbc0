/** A token request, once its client is authenticated: it is read by grant type, the policy decides, a token is issued. */

import type { Reason } from "../audit/reasons.ts";
import type { KeyProofPorts } from "../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../result.ts";
import { CLIENT_CREDENTIALS, type TokenAnswer } from "../spec/rfc6749.ts";
import { JWT_BEARER_GRANT } from "../spec/rfc7523.ts";
import { TOKEN_EXCHANGE } from "../spec/rfc8693.ts";
import type { DisabledPorts } from "./endings.ts";
import { type IssuePorts, issue } from "./issue.ts";
import { codeSpentBy, knownOf } from "./issued-entry.ts";
import type { FindPorts, NotFound, TokenOption } from "./options/option.ts";
import { concerned, joined, readEvidence } from "./options.ts";
import { checkGrantType, type GrantType, UNSUPPORTED } from "./order/grant-type.ts";
import type { Order } from "./order/order.ts";
import { refuseDisabled } from "./order/refuse-disabled.ts";
import type { GrantPorts, PeopleGrants, ReadGrant } from "./people.ts";
import type { KeyEvidence } from "./prove-keys.ts";
import { readRedemption } from "./redeem-grant.ts";
import { DEFERRAL_RACED, REFRESH_RACED, type RefusedRequest, type Unrecorded } from "./refusal.ts";
import { readExchange } from "./token-exchange.ts";
import { readRequest, refuseRequest, type TokenRequest } from "./token-request.ts";

type Readers<T extends GrantType> = Readonly<Record<T, ReadGrant>>;

const GRANTS: Partial<Readers<GrantType>> = {
  // RFC 6749 4.4: a token for the client itself; like every other token it needs a rule.
  [CLIENT_CREDENTIALS]: (ports, request) => readRequest(ports, request, { mode: "client_credentials" }),
  [TOKEN_EXCHANGE]: readExchange,
  [JWT_BEARER_GRANT]: readRedemption,
} satisfies Readers<Exclude<GrantType, keyof PeopleGrants["read"]>>;

/** REFRESH-D-4: a refresh token whose family another request used first is read anew; one client has few processes. */
const READS_MAX = 4;
const RACED: readonly Reason[] = [REFRESH_RACED, DEFERRAL_RACED];

export type TokenPorts = GrantPorts & KeyProofPorts & IssuePorts & FindPorts;

/** RFC9449-5-2: after the client's authentication and before anything else of the request, the keys that it shows. */
export async function answerTokenRequest(
  ports: TokenPorts,
  unproven: TokenRequest,
  evidence: KeyEvidence,
  people: PeopleGrants | undefined,
): Promise<Result<TokenAnswer, RefusedRequest | Unrecorded>> {
  const proven = readEvidence(ports, unproven, evidence);
  if (!proven.ok) return proven;
  const request = proven.value;
  const grantType = checkGrantType(ports.settings(), request.client, request.form);
  if (!grantType.ok) return refuseRequest(request, grantType.error);
  const ofPeople: Partial<Readers<GrantType>> = people?.read ?? {};
  const read = GRANTS[grantType.value] ?? ofPeople[grantType.value];
  if (read === undefined) return refuseRequest(request, UNSUPPORTED);
  for (let reads = 1; ; reads++) {
    const found = await whenOk(read(ports, request), (order) =>
      findOptions(ports, request, order, concerned(ports.settings(), order, request.form)),
    );
    if (!found.ok) return found;
    const { order, options } = found.value;
    const issued = await issue(ports, request, order, options, people);
    if (issued.ok) {
      for (const option of options) if (option.issued) await option.issued(order, issued.value);
      return issued;
    }
    if (!RACED.includes(issued.error.failure.reason) || reads === READS_MAX) return issued;
  }
}

type Found = { order: Order; options: readonly TokenOption[] };

/** Each option finds what the request names of it, or the request is refused. */
function findOptions(
  ports: FindPorts & DisabledPorts,
  request: TokenRequest,
  order: Order,
  options: readonly TokenOption[],
): Awaitable<Result<Found, RefusedRequest>> {
  const found = options.reduce<Awaitable<Result<Order, NotFound>>>(
    (before, { find }) => (find ? whenOk(before, (one) => find(ports, request, one)) : before),
    ok(order),
  );
  return whenReady(
    found,
    (one): Awaitable<Result<Found, RefusedRequest>> =>
      one.ok ? ok({ order: one.value, options }) : refuseOrder(ports, request, { order, options }, one.error),
  );
}

async function refuseOrder(
  ports: FindPorts & DisabledPorts,
  request: TokenRequest,
  { order, options }: Found,
  { known: own, ...failure }: NotFound,
): Promise<Result<never, RefusedRequest>> {
  // PAGE-D-33: the subject comes first in the trail; the answer is the same, so that it tells nothing of the subject.
  const disabled = failure.kind === "request_malformed" ? undefined : await refuseDisabled(ports, order);
  const told = { ...failure, reason: disabled?.reason ?? failure.reason };
  const { policy: _, ...known } = knownOf({ request, order, options });
  const refused = refuseRequest(request, told, { ...known, ...own });
  const changes = joined(options.map(({ refuse }) => refuse?.(order)));
  return err(defined<RefusedRequest>({ ...refused.error, spends: codeSpentBy(order), ...changes }));
}
