/** Pending consents on PostgreSQL, each unit of work one statement. */
import { isEncodable } from "../columns.ts";
import type { PendingConsentRow } from "../pending-consent-rows.ts";
import { fromPendingConsentRow, toPendingConsentRow } from "../pending-consent-rows.ts";
import type { PendingConsentStore } from "../store.ts";
import type { Call } from "./pool.ts";

export function postgresPendingConsents(call: Call): PendingConsentStore {
  const living = async (asked: string, nowSeconds: number): Promise<PendingConsentRow | undefined> => {
    const [row] = await call(
      (sql) => sql<PendingConsentRow[]>`
        select asked, id, version, actor, subject, body, expires_at from pending_consent
        where asked = ${asked} and expires_at > ${nowSeconds}`,
    );
    return row;
  };
  return {
    open: async (pending, { perActor, perSubject, perPair, nowSeconds: now }) => {
      const { asked, id, version, actor, subject, body, expires_at } = toPendingConsentRow(pending);
      const before = await living(asked, now);
      if (before !== undefined) return fromPendingConsentRow(before);
      // Instances that add at the same time may together exceed the caps by a few. An expired row about the same may
      // still be there; a living one that another instance has just added stays.
      const added = await call(
        (sql) => sql`
          insert into pending_consent as p (asked, id, version, actor, subject, body, expires_at)
          select ${asked}, ${id}, ${version}::bigint, ${actor}, ${subject}, ${body}, ${expires_at}::bigint
          where (
              select count(*) from pending_consent where actor = ${actor} and expires_at > ${now}
            ) < ${perActor}
            and (
              select count(*) from pending_consent where subject = ${subject} and expires_at > ${now}
            ) < ${perSubject}
            and (
              select count(*) from pending_consent
              where actor = ${actor} and subject = ${subject} and expires_at > ${now}
            ) < ${perPair}
          on conflict (asked) do update
          set id = excluded.id, version = excluded.version, actor = excluded.actor, subject = excluded.subject,
            body = excluded.body, expires_at = excluded.expires_at
          where p.expires_at <= ${now}`,
      );
      if (added.count === 1) return pending;
      const other = await living(asked, now);
      return other && fromPendingConsentRow(other);
    },
    find: async (id, nowSeconds) => {
      if (!isEncodable(id)) return undefined;
      const [row] = await call(
        (sql) => sql<PendingConsentRow[]>`
          select asked, id, version, actor, subject, body, expires_at from pending_consent
          where id = ${id} and expires_at > ${nowSeconds}`,
      );
      return row && fromPendingConsentRow(row);
    },
    replace: async (pending) => {
      const { id, version, body, expires_at } = toPendingConsentRow(pending);
      const replaced = await call(
        (sql) => sql`
          update pending_consent set version = ${version}, body = ${body}, expires_at = ${expires_at}
          where id = ${id} and version = ${version - 1}`,
      );
      return replaced.count === 1;
    },
    sweep: async (beforeSeconds, limit) => {
      const removed = await call(
        (sql) => sql`
          delete from pending_consent where ctid = any(array(
            select ctid from pending_consent where expires_at < ${beforeSeconds} limit ${limit}
            for update skip locked))`,
      );
      return removed.count;
    },
  };
}
