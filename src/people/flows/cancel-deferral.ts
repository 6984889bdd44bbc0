/** A client that waits for its user cancels its code (DTR-8.2); where no other waits, the question is closed. */
import { type AuditEvent, askedUntilNow } from "../../audit/event.ts";
import { describeClient } from "../../flows/audit-fields.ts";
import type { Cancelled } from "../../flows/people.ts";
import type { TokenRequest } from "../../flows/token-request.ts";
import { CANCELS_MAX, REFUSED_SECONDS } from "../../limits/people.ts";
import type { Entry, PendingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { PeoplePorts } from "../ports.ts";
import { ATTEMPTS_MAX } from "./ask-user.ts";
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
  const pending = ports.hash.sha256(deferral.question);
  const guards = spends === undefined ? [] : [spends];
  const rows = endsBy("cancelled", link, deferral);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const nowSeconds = ports.clock.nowSeconds();
    const before = await ports.pendingConsents.find(deferral.question, nowSeconds);
    const question = before && withoutCode(before, link, nowSeconds);
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
        // AUDIT-D-13: this event ends the question where it closes it.
        asked: before && question?.closed ? askedUntilNow(pending, before) : { pending },
      },
      detail: { deferral: threadOf(ports.hash, link) },
    });
    // DTR-8.2-1, AUDIT-D-13: one entry, so that no fault closes the question and loses what it counted.
    // DTR-8.2-3, DTR-8.2-4: of a poll and a cancellation one comes first.
    const recorded = await ports.journal.record(defined<Entry>({ event, guards, rows, question }));
    if (recorded.ok) return { cancelled: true };
    if (recorded.error.includes("proof_fresh"))
      return { refused: { kind: "proof_refused", reason: "proof_replayed" } };
    if (!recorded.error.includes("question_current")) break;
  }
  return { nothing: "deferral_raced" };
}

/** DTR-D-14: the question is closed with the last code that waits for it, unless an agent that asks again has its link. */
function withoutCode(found: PendingConsent, link: string, nowSeconds: number): PendingConsent {
  const { codes = [], cancelledAtSeconds = [] } = found;
  const others = codes.filter((one) => one.link !== link && one.endsAtSeconds > nowSeconds);
  const closes = found.unlinked === true && others.length === 0;
  return defined<PendingConsent>({
    ...found,
    version: found.version + 1,
    codes: others,
    cancelledAtSeconds: [...cancelledAtSeconds, nowSeconds].slice(-CANCELS_MAX),
    closed: closes ? true : undefined,
    pollsRecorded: closes ? found.polls : found.pollsRecorded,
    expiresAtSeconds: Math.max(found.expiresAtSeconds, nowSeconds + REFUSED_SECONDS),
  });
}
