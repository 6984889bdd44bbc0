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
import { concernsJob, type FindJobPorts, findJob } from "./order/find-job.ts";
import { checkGrantType, type GrantType, UNSUPPORTED } from "./order/grant-type.ts";
import type { Order } from "./order/order.ts";
import { refuseDisabled } from "./order/refuse-disabled.ts";
import type { GrantPorts, PeopleGrants, ReadGrant } from "./people.ts";
import { type KeyEvidence, proveKeysOf } from "./prove-keys.ts";
import { readRedemption } from "./redeem-grant.ts";
import { DEFERRAL_RACED, REFRESH_RACED, type RefusedRequest, type Unrecorded } from "./refusal.ts";
import { readExchange } from "./token-exchange.ts";
import { type Known, readRequest, refuseRequest, type TokenRequest } from "./token-request.ts";
import { keyNotProven, provesKey } from "./verify-platform.ts";

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

export type TokenPorts = GrantPorts & KeyProofPorts & IssuePorts & FindJobPorts;

/** RFC9449-5-2: after the client's authentication and before anything else of the request, the keys that it shows. */
export async function answerTokenRequest(
  ports: TokenPorts,
  unproven: TokenRequest,
  evidence: KeyEvidence,
  people: PeopleGrants | undefined,
): Promise<Result<TokenAnswer, RefusedRequest | Unrecorded>> {
  const proven = proveKeysOf(ports, unproven.form, evidence);
  if (!proven.ok) return refuseRequest(unproven, proven.error);
  const { keys, spends } = proven.value;
  const request = defined<TokenRequest>({ ...unproven, client: { ...unproven.client, keys }, spends });
  const { platform } = request.client;
  if (platform !== undefined && !provesKey(platform, keys)) {
    return refuseRequest(request, keyNotProven(platform));
  }
  const grantType = checkGrantType(ports.settings(), request.client, request.form);
  if (!grantType.ok) return refuseRequest(request, grantType.error);
  const ofPeople: Partial<Readers<GrantType>> = people?.read ?? {};
  const read = GRANTS[grantType.value] ?? ofPeople[grantType.value];
  if (read === undefined) return refuseRequest(request, UNSUPPORTED);
  for (let reads = 1; ; reads++) {
    const order = await whenOk(read(ports, request), (own) =>
      concernsJob(request.form, own) ? inItsJob(ports, request, own) : ok(own),
    );
    if (!order.ok) return order;
    const issued = await issue(ports, request, order.value, people);
    if (issued.ok) {
      if (issued.value.refresh_token !== undefined) await order.value.user?.grant.begun?.();
      return issued;
    }
    if (!RACED.includes(issued.error.failure.reason) || reads === READS_MAX) return issued;
  }
}

/** JOB-D-8: whatever it brings, a request is decided in the job of that. */
const inItsJob = (
  ports: FindJobPorts & DisabledPorts,
  request: TokenRequest,
  order: Order,
): Awaitable<Result<Order, RefusedRequest>> =>
  whenReady(findJob(ports, request.form, order), (found) => {
    if (found.ok) return found;
    const { job, ...failure } = found.error;
    // PAGE-D-33: the subject comes first in the trail; the answer is the same, so that it tells nothing of the subject.
    const disabled = failure.kind === "request_malformed" ? undefined : refuseDisabled(ports, order);
    return whenReady(disabled, (out) => {
      const known = knownOf(request, order);
      const told = { ...failure, reason: out?.reason ?? failure.reason };
      const refused = refuseRequest(request, told, defined<Known>({ ...known, job: job ?? known.job }));
      const ends = order.resumes?.ends("refused");
      return err(defined<RefusedRequest>({ ...refused.error, spends: codeSpentBy(order), ...ends }));
    });
  });
