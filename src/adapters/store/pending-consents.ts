/** Pending consents, in both stores. */
import type { PendingConsent } from "../../records.ts";
import { toRow } from "./columns.ts";
import { type Engine, putAtVersion, readRecords, type Values } from "./engine.ts";
import type { PendingConsentStore } from "./store.ts";
import { PENDING_CONSENT } from "./tables.ts";

/** PAGE-D-23: what its user has answered takes no room of other questions; what an agent cancelled does. */
const WAITING = "decided is null and expires_at > :now";

/** What a change writes: how often it was asked again is counted apart. */
const CHANGED = ["job_id", "body", "expires_at", "polls_recorded", "decided"];

export function pendingConsents(engine: Engine): PendingConsentStore {
  const { change, remove } = engine;
  const read = readRecords(engine);
  const put = putAtVersion(engine, "pending_consent", ["id"], CHANGED);
  return {
    open: openingOn(engine),
    find: async (id, now) => (await read(PENDING_CONSENT, livingBy("id"), { id, now }))[0],
    list: async (subject, now) =>
      read(PENDING_CONSENT, `${livingBy("subject")} order by expires_at, id`, { subject, now }),
    replace: async (pending) => put(rowOf(pending)),
    poll: async ({ id, version }, now) => {
      const counted = await change(
        `update pending_consent set polls = polls + 1, polled_at = cast(:now as bigint)
         where id = :id and version = :version and expires_at > :now`,
        { id, version, now },
      );
      return counted === 1;
    },
    over: async (before, limit) => {
      const over = "from pending_consent where expires_at < :before order by expires_at limit :limit";
      return read(PENDING_CONSENT, over, { before, limit });
    },
    remove: async ({ id }, before) =>
      remove("delete from pending_consent where id = :id and expires_at < :before", { id, before }),
  };
}

const livingBy = (column: "id" | "asked" | "subject"): string =>
  `from pending_consent where ${column} = :${column} and expires_at > :now`;

function openingOn(engine: Engine): PendingConsentStore["open"] {
  const { change, changeInTurn } = engine;
  const living = async (about: Values) =>
    (await readRecords(engine)(PENDING_CONSENT, livingBy("asked"), about))[0];
  return async (pending, { nowSeconds: now, ...caps }) => {
    const row = rowOf(pending);
    const about = { asked: row.asked, now };
    const before = await living(about);
    if (before !== undefined) return before;
    // An expired row about the same keeps what it counted until an event tells it, under a key of its own.
    await change(
      "update pending_consent set asked = asked || ' ' || id where asked = :asked and expires_at <= :now",
      about,
    );
    // PAGE-D-23: two that count at the same time take the same turn, which only one of them gets.
    const added = await changeInTurn(
      `insert into pending_consent
         (asked, id, version, actor, subject, job_id, body, expires_at, actor_turn, subject_turn)
       select :asked, :id, cast(:version as bigint), :actor, :subject, :job_id, :body, cast(:expires_at as bigint),
         (select coalesce(max(actor_turn), 0) + 1 from pending_consent where actor = :actor),
         (select coalesce(max(subject_turn), 0) + 1 from pending_consent where subject = :subject)
       where (select count(*) from pending_consent where actor = :actor and ${WAITING}) < :perActor
         and (select count(*) from pending_consent where subject = :subject and ${WAITING}) < :perSubject
         and (select count(*) from pending_consent
           where actor = :actor and subject = :subject and ${WAITING}) < :perPair
       on conflict (asked) do nothing`,
      { ...row, ...caps, now },
    );
    return added === 1 ? pending : living(about);
  };
}

/** The job of ours in which it is asked, as long as there is no answer. */
function rowOf(pending: PendingConsent) {
  const { ask, decided, closed } = pending;
  const isOpen = !decided && !closed && ask.job?.iss === undefined;
  return { ...toRow(PENDING_CONSENT.columns, pending), job_id: (isOpen ? ask.job?.id : undefined) ?? null };
}
