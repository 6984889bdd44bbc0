/** Pending consents on node:sqlite. */
import { isEncodable } from "../columns.ts";
import type { PendingConsentRow } from "../pending-consent-rows.ts";
import { fromPendingConsentRow, toPendingConsentRow } from "../pending-consent-rows.ts";
import type { PendingConsentStore } from "../store.ts";
import type { Database } from "./database.ts";

export function sqlitePendingConsents({ db, run, write, remove }: Database): PendingConsentStore {
  const living = db.prepare("select * from pending_consent where asked = ? and expires_at > ?");
  const room = db.prepare(
    `select
       (select count(*) from pending_consent where actor = :actor and expires_at > :now) < :perActor
       and (select count(*) from pending_consent where subject = :subject and expires_at > :now) < :perSubject
       and (select count(*) from pending_consent
         where actor = :actor and subject = :subject and expires_at > :now) < :perPair as is_left`,
  );
  // An expired row about the same may still be there.
  const insert = db.prepare(
    `insert or replace into pending_consent (asked, id, version, actor, subject, body, expires_at)
     values (:asked, :id, :version, :actor, :subject, :body, :expires_at)`,
  );
  const select = db.prepare("select * from pending_consent where id = ? and expires_at > ?");
  const replace = db.prepare(
    `update pending_consent set version = :version, body = :body, expires_at = :expires_at
     where id = :id and version = :version - 1`,
  );
  const sweep = db.prepare(
    `delete from pending_consent where asked in (
       select asked from pending_consent where expires_at < ? limit ?
     )`,
  );
  return {
    open: (pending, { nowSeconds: now, ...caps }) =>
      write(() => {
        const { asked, actor, subject } = pending;
        const found = living.get(asked, now);
        if (found !== undefined) return fromPendingConsentRow(found as PendingConsentRow);
        if (room.get({ now, actor, subject, ...caps })?.is_left !== 1) return undefined;
        insert.run(toPendingConsentRow(pending));
        return pending;
      }),
    find: async (id, nowSeconds) => {
      if (!isEncodable(id)) return undefined;
      const row = await run(() => select.get(id, nowSeconds));
      return row && fromPendingConsentRow(row as PendingConsentRow);
    },
    replace: (pending) => {
      const { id, version, body, expires_at } = toPendingConsentRow(pending);
      return run(() => replace.run({ id, version, body, expires_at }).changes === 1);
    },
    sweep: (beforeSeconds, limit) => remove(() => Number(sweep.run(beforeSeconds, limit).changes)),
  };
}
