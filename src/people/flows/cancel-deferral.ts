/** A client that waits for its user cancels its code (DTR-8.2); where no other waits, the question is closed. */
import type { AuditEvent } from "../../audit/event.ts";
import { askedUntilNow } from "../../audit/event.ts";
import { describeClient } from "../../flows/audit-fields.ts";
import type { Cancelled } from "../../flows/people.ts";
import type { TokenRequest } from "../../flows/token-request.ts";
import { CANCELS_MAX, REFUSED_SECONDS } from "../../limits/people.ts";
import type { PendingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { PeoplePorts } from "../ports.ts";
import { changeQuestion } from "./ask-user.ts";
import { endsBy, findDeferral, linkOf, threadOf } from "./deferrals.ts";

type CancelPorts = Pick<
  PeoplePorts,
  "settings" | "clock" | "hash" | "journal" | "shortLived" | "pendingConsents"
>;

export async function cancelDeferral(
  ports: CancelPorts,
  { client, request, spends }: Pick<TokenRequest, "client" | "request" | "spends">,
  code: string,
): Promise<Cancelled> {
  const link = linkOf(ports.hash, code);
  const found = await findDeferral(ports, client, link);
  if (!found.ok) {
    // DTR-8.2-2: of a code that is unknown, of another client, used or over, the client learns nothing.
    const { reason } = found.error;
    return reason === "deferral_key_not_proven" ? { refused: found.error } : { nothing: reason };
  }
  const deferral = found.value;
  // The question goes first: after a fault between the two, nothing is given for a question that is closed.
  const left = await leaveQuestion(ports, deferral.question, link);
  const pending = ports.hash.sha256(deferral.question);
  const event = defined<AuditEvent>({
    ...deferral.facts.parties,
    type: "deferral.cancelled",
    outcome: "allow",
    reason: "by_client",
    request,
    client: describeClient(client),
    mode: deferral.access.mode,
    requested: deferral.requested,
    policy: {
      digest: ports.settings().policy.digest,
      // AUDIT-D-13: this event ends the question where it closed it.
      asked: left?.after.closed ? askedUntilNow(pending, left.before) : { pending },
    },
    detail: { deferral: threadOf(ports.hash, link) },
  });
  // DTR-8.2-1: the state changes in one step; DTR-8.2-3, DTR-8.2-4: of a poll and a cancellation one comes first.
  const guards = spends === undefined ? [] : [spends];
  const rows = endsBy("cancelled", link, deferral);
  const recorded = await ports.journal.record({ event, guards, rows });
  if (recorded.ok) return { cancelled: true };
  return recorded.error.includes("proof_fresh")
    ? { refused: { kind: "proof_refused", reason: "proof_replayed" } }
    : { nothing: "deferral_raced" };
}

/** DTR-D-14: the question is closed with the last code that waits for it, unless an agent that asks again has its link. */
const leaveQuestion = (ports: CancelPorts, id: string, link: string) =>
  changeQuestion(ports, id, (found, nowSeconds) => {
    const { codes = [], cancelledAtSeconds = [] } = found;
    const others = codes.filter((one) => one.link !== link && one.endsAtSeconds > nowSeconds);
    const closes = found.unlinked === true && others.length === 0;
    return defined<PendingConsent>({
      ...found,
      codes: others,
      cancelledAtSeconds: [...cancelledAtSeconds, nowSeconds].slice(-CANCELS_MAX),
      closed: closes ? true : undefined,
      pollsRecorded: closes ? found.polls : found.pollsRecorded,
      expiresAtSeconds: Math.max(found.expiresAtSeconds, nowSeconds + REFUSED_SECONDS),
    });
  });
