/** A request that lacks its user's consent alone: a link for the agent, or a client that waits (DTR-D-3). */
import type { AskedUser, AuditEvent } from "../../audit/event.ts";
import { reasonIn } from "../../flows/audit-fields.ts";
import { keysOfOrder, spentWith } from "../../flows/issued-entry.ts";
import type { Order } from "../../flows/order/order.ts";
import type { LackingConsent, Otherwise } from "../../flows/people.ts";
import type { Failure, RefusedRequest, Unrecorded } from "../../flows/refusal.ts";
import { spendProof } from "../../flows/spend-proof.ts";
import { type TokenRequest, toFailure } from "../../flows/token-request.ts";
import type { RecordPorts } from "../../ports.ts";
import type { Guard } from "../../records.ts";
import { defined, err, type Result } from "../../result.ts";
import { canWait } from "../../spec/deferred-token-response.ts";
import type { TokenAnswer } from "../../spec/rfc6749.ts";
import { type Asking, type AskPorts, askUser, type Link } from "./ask-user.ts";
import { defer } from "./defer.ts";

/** The answer to a client that waits for its user. */
const WAITS = "interaction_required";
const CANCELLED = "deferrals_cancelled";

type Issued = Result<TokenAnswer, RefusedRequest | Unrecorded>;

export async function askInstead(
  ports: AskPorts & Pick<RecordPorts, "journal">,
  request: TokenRequest,
  order: Order,
  { failure, trace, missing }: LackingConsent,
  nowSeconds: number,
  others: Otherwise,
): Promise<Issued> {
  // PAGE-D-33: no user is asked for what an ending would refuse anyway.
  if (await ports.endings.isEnded(keysOfOrder(ports, order, missing.rule, nowSeconds)))
    return others.refuseEnded(trace);
  if (order.resumes !== undefined) {
    const waits = await order.resumes.waits();
    return err(waits ?? others.refusal(failure, trace));
  }
  const refuse = async (told: Failure, asked: AskedUser, count: Link["count"]): Promise<Issued> => {
    if (count === undefined) return err(others.refusal(told, trace, asked));
    const spent = await spendProof(ports, request.client, request.request);
    if (!spent.ok) return spent;
    // AUDIT-D-13: the question is told by the event that opened it and by the one that ends it.
    return err((await count()) ? { failure: told } : others.refusal(told, trace, asked));
  };
  // DTR-5-1, DTR-6.3-1, DTR-D-3: a client is told to wait, or to ask again, as it said itself.
  if (ports.settings().deferral === undefined || !canWait(request.form)) {
    const { access, job } = order;
    const asking = defined<Asking>({ access, job, reason: reasonIn(request.form) });
    const { errorUri, asked, count } = await askUser(ports, asking, missing, nowSeconds);
    return refuse(defined<Failure>({ ...failure, errorUri }), asked, count);
  }
  const { asked, deferral, count } = await defer(ports, request, order, missing, nowSeconds);
  // The client itself did it, so that it is told.
  const isCancelled = "refused" in asked && asked.refused === CANCELLED;
  const told = isCancelled ? toFailure(order, { kind: "policy_denied", reason: CANCELLED }) : failure;
  if (deferral === undefined) return refuse(told, asked, count);
  const { told: waits, rows, endingKeys: keys, thread } = deferral;
  const refused = others.refusal({ ...failure, ...waits, kind: WAITS }, trace, asked);
  const event: AuditEvent = { ...refused.event, type: "deferral.opened", detail: { deferral: thread } };
  // DTR-D-7: what is valid once is used up by the answer that lets the client wait.
  const guards: Guard[] = [{ kind: "not_ended", keys }, ...spentWith(request, order)];
  const recorded = await ports.journal.record({ event, guards, rows });
  return recorded.ok ? err({ failure: refused.failure }) : others.lost(recorded.error, event);
}
