/**
 * Ends the questions to users that expired: an event tells what no event has told of a question, before its row is removed
 * (AUDIT-D-13).
 */
import { type AuditEvent, askedUntilNow } from "../../audit/event.ts";
import type { BasePorts, Journal } from "../../ports.ts";
import type { PendingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Store } from "../store/store.ts";

export type EndOptions = Pick<BasePorts, "hash"> & {
  /** That of the policy in force. */
  digest: () => string;
  store: Pick<Store, "pendingConsents">;
  journal: Pick<Journal, "record">;
};

/** Returns the number of rows that were removed. */
export function endPendingConsents({ store: { pendingConsents }, journal, digest, hash }: EndOptions) {
  const eventOf = (pending: PendingConsent): AuditEvent => {
    const { actor, ask, job, expiresAtSeconds } = pending;
    const { mode, target = "", scope = [], reason: said, subject } = ask;
    return defined<AuditEvent>({
      type: "authorization.expired",
      outcome: "error",
      reason: pending.decided || pending.closed ? "asked_after_answer" : "unanswered",
      mode,
      requested: defined({ audience: [target], resource: [], scope: scope.join(" "), reason: said }),
      policy: { digest: digest(), asked: askedUntilNow(hash.sha256(pending.id), pending) },
      job: ask.job && defined<NonNullable<AuditEvent["job"]>>({ id: ask.job.id, iss: ask.job.iss }),
      detail: defined<NonNullable<AuditEvent["detail"]>>({
        actor,
        iss: subject?.origin.iss,
        sub: subject?.origin.sub,
        title: job?.title,
        ended_at: new Date(expiresAtSeconds * 1000).toISOString(),
      }),
    });
  };
  const end = async (pending: PendingConsent): Promise<void> => {
    const { version, decided, closed, polls, pollsRecorded } = pending;
    if ((decided || closed) && polls === pollsRecorded) return;
    // Of several instances, and of a click that was on its way, one ends the question.
    const question: PendingConsent = { ...pending, version: version + 1, closed: true, pollsRecorded: polls };
    await journal.record({ event: eventOf(pending), question });
  };
  return async (beforeSeconds: number, limit: number): Promise<number> => {
    const over = await pendingConsents.over(beforeSeconds, limit);
    await Promise.all(over.map(end));
    const removed = await Promise.all(over.map((one) => pendingConsents.remove(one, beforeSeconds)));
    return removed.reduce((sum, one) => sum + one, 0);
  };
}
