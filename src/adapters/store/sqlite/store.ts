/**
 * The embedded store on node:sqlite: one file, one synchronous transaction for each batch, on disk before the caller is
 * answered (AUDIT-D-1). append.ts writes, clients.ts and audit.ts read their parts.
 */
import { existsSync } from "node:fs";
import type { StatementSync } from "node:sqlite";
import { DatabaseSync } from "node:sqlite";
import { SLICE_MS, STORE_WAL_BYTES_MAX } from "../../../limits/store.ts";
import { StoreUnavailable } from "../../../ports.ts";
import { isEncodable } from "../columns.ts";
import type {
  ConsentRow,
  EventRow,
  PolledDocumentRow,
  SigningKeyRow,
  StandingConsentRow,
  StoredConsentRow,
} from "../rows.ts";
import {
  fromConsentRow,
  fromEventRow,
  fromPolledRow,
  fromSigningKeyRow,
  fromStandingConsentRow,
  fromStoredConsentRow,
  toPolledRow,
  toSigningKeyRow,
} from "../rows.ts";
import type { Head, Migration, OpenOptions, Store } from "../store.ts";
import {
  loadMigrations,
  NO_DATABASE,
  noteDone,
  refuseBreaking,
  refuseOlder,
  selectBreaking,
} from "../store.ts";
import { appendOn } from "./append.ts";
import { sqliteAuditRows } from "./audit.ts";
import { sqliteClientRows } from "./clients.ts";
import { sqliteCopies } from "./copies.ts";
import type { Database } from "./database.ts";
import { DURABLE, openDatabase } from "./database.ts";
import { sqliteFamilies } from "./families.ts";
import { sqliteNames } from "./names.ts";
import { sqlitePendingConsents } from "./pending-consents.ts";
import { sqliteShortLived } from "./short-lived.ts";
import { sqliteTokenRows } from "./tokens.ts";

/** A write-ahead log that grew while another process was reading is cut back to this size as soon as it starts again. */
const WAL = `pragma journal_size_limit = ${STORE_WAL_BYTES_MAX}`;

/** `file`: a path, or ":memory:". */
export async function openSqlite(file: string, options: OpenOptions): Promise<Store> {
  const database = openDatabase(file, options);
  const { db, run } = database;
  try {
    if (options.mustExist) await run(() => assertOurs(db, file));
    await run(() => db.exec(`pragma journal_mode = wal; ${DURABLE}; ${WAL}`));
    await migrate(database, options.mustBeCurrent);
    return await run(() => storeOn(database));
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The statements that would bring the tables of the file up to this version, a text for each migration. */
export function sqliteScripts(file: string): readonly string[] {
  const scripts = loadMigrations("sqlite").map((migration) =>
    ["begin;", scriptOf(migration), "commit;"].join("\n"),
  );
  if (!existsSync(file)) return scripts;
  using db = new DatabaseSync(file, { readOnly: true });
  const isNew = db.prepare("select 1 from sqlite_schema where name = 'migration'").get() === undefined;
  return isNew ? scripts : scripts.slice(doneIn(db, scripts.length));
}

/** How many are done; throws for tables of a version that this one does not understand. */
function doneIn(db: DatabaseSync, known: number): number {
  const done = Number(db.prepare("select coalesce(max(number), 0) as done from migration").get()?.done);
  if (done > known) refuseBreaking(known, db.prepare(selectBreaking(known)).get()?.breaking);
  return done;
}

const MAKE = "create table if not exists migration (number integer primary key) strict";

const scriptOf = (migration: Migration): string =>
  `${migration.number === 1 ? `${MAKE};\n` : ""}${migration.text}; ${noteDone(migration)};`;

/** A file that another program made, or an empty one, is not filled with our tables. */
function assertOurs(db: DatabaseSync, file: string): void {
  const found = db.prepare("select 1 from sqlite_schema where name = 'migration'").get();
  if (found === undefined) throw new StoreUnavailable(`${file}: ${NO_DATABASE}`);
}

async function migrate({ db, run, write }: Database, mustBeCurrent: boolean): Promise<void> {
  const migrations = loadMigrations("sqlite");
  await run(() => db.exec(MAKE));
  await write(() => {
    const known = migrations.length;
    const done = doneIn(db, known);
    if (mustBeCurrent) refuseOlder(done, known);
    // SQLite lets the text of a table be changed only without this; migration 17 does that.
    db.enableDefensive(false);
    try {
      for (const migration of migrations.slice(done)) db.exec(scriptOf(migration));
    } finally {
      db.enableDefensive(true);
    }
  });
}

function storeOn(database: Database): Store {
  const { db, run, write } = database;
  const statements = prepareAll(db);
  const { selectHead, selectEvents, selectLogs, selectConsents } = statements;
  const append = appendOn(db);
  const { token, endings } = sqliteTokenRows(database);

  return {
    log: {
      head: async (log) => {
        const row = (await run(() => selectHead.get(log))) as Head | undefined;
        return row && { seq: row.seq, hash: row.hash };
      },
      append: (batch) => write(() => append(batch)),
      read: ({ log, afterSeq = -1, limit }) =>
        run(() => (selectEvents.all(log, afterSeq, limit) as EventRow[]).map(fromEventRow)),
      logs: () => run(() => selectLogs.all().map((row) => String(row.log))),
    },
    audit: sqliteAuditRows(database),
    facts: {
      token,
      consents: async ({ iss, sub }, actor, nowSeconds) => {
        if (![iss, sub, actor].every(isEncodable)) return [];
        const rows = await run(() => selectConsents.all(iss, sub, actor, Math.floor(nowSeconds)));
        return (rows as ConsentRow[]).map(fromConsentRow);
      },
    },
    consents: {
      find: async (id) => {
        if (!isEncodable(id)) return undefined;
        const row = (await run(() => statements.selectConsent.get(id))) as StoredConsentRow | undefined;
        return row && fromStoredConsentRow(row);
      },
      list: async (origin, { afterId = "", limit = -1 } = { limit: -1 }) => {
        if (origin && !(isEncodable(origin.iss) && isEncodable(origin.sub))) return [];
        const rows = await run(() =>
          origin
            ? statements.selectConsentsOf.all(origin.iss, origin.sub, afterId, limit)
            : statements.selectAllConsents.all(afterId, limit),
        );
        return (rows as StoredConsentRow[]).map(fromStoredConsentRow);
      },
      standing: async ({ iss, sub }, { nowSeconds, afterId = "", limit }) => {
        if (![iss, sub, afterId].every(isEncodable)) return [];
        const rows = await run(() =>
          statements.selectStanding.all(iss, sub, Math.floor(nowSeconds), afterId, limit),
        );
        return (rows as StandingConsentRow[]).map(fromStandingConsentRow);
      },
    },
    endings,
    ...sqliteClientRows(database),
    shortLived: sqliteShortLived(database),
    families: sqliteFamilies(database),
    pendingConsents: sqlitePendingConsents(database),
    ...sqliteCopies(database),
    keys: {
      list: () => run(() => (statements.selectKeys.all() as SigningKeyRow[]).map(fromSigningKeyRow)),
      insertIfNone: (key) => run(() => statements.insertKey.run(toSigningKeyRow(key)).changes === 1),
      markUsed: async (kids, atSeconds) =>
        void (await run(() => statements.markKeys.run(atSeconds, JSON.stringify(kids)))),
    },
    polled: {
      find: async (kind, name) => {
        const row = (await run(() => statements.selectPolled.get(kind, name))) as
          | PolledDocumentRow
          | undefined;
        return row && fromPolledRow({ ...row });
      },
      save: async (row) => void (await run(() => statements.savePolled.run(toPolledRow(row)))),
      redate: async (kind, name, fromSeconds, toSeconds) =>
        void (await run(() => statements.redatePolled.run(toSeconds, kind, name, fromSeconds))),
      retain: async (kind, names) =>
        void (await run(() => statements.retainPolled.run(kind, JSON.stringify(names)))),
    },
    names: sqliteNames(database),
    sliceMs: SLICE_MS.sqlite,
    close: async () => {
      if (db.isOpen) db.close();
    },
  };
}

function prepareAll(db: DatabaseSync) {
  return {
    selectHead: db.prepare("select seq, hash from event where log = ? order by seq desc limit 1"),
    selectEvents: db.prepare(
      `select log, seq, id, time_ms, type, body, prev, hash from event
       where log = ? and seq > ? order by seq limit ?`,
    ),
    // Skips from name to name along the key, because there are few logs and many events.
    selectLogs: db.prepare(
      `with recursive name (log) as (
         select min(log) from event
         union all select (select min(e.log) from event e where e.log > n.log) from name n where n.log is not null
       )
       select log from name where log is not null`,
    ),
    selectConsents: db.prepare(
      `select * from consent
       where origin_iss = ? and origin_sub = ? and actor = ?
         and withdrawn_at is null and (expires_at is null or expires_at > ?)
       order by id`,
    ),
    selectConsent: db.prepare("select * from consent where id = ?"),
    selectConsentsOf: db.prepare(
      "select * from consent where origin_iss = ? and origin_sub = ? and id > ? order by id limit ?",
    ),
    selectStanding: db.prepare(
      `select * from consent
       where origin_iss = ? and origin_sub = ?
         and withdrawn_at is null and (expires_at is null or expires_at > ?)
         and id > ? order by id limit ?`,
    ),
    selectAllConsents: db.prepare("select * from consent where id > ? order by id limit ?"),
    selectKeys: db.prepare("select * from signing_key order by created_at, kid"),
    insertKey: db.prepare(
      `insert into signing_key (kid, alg, purpose, state, public_jwk, private_jwe, created_at, since, replace_at,
         used_at)
       values (:kid, :alg, :purpose, :state, :public_jwk, :private_jwe, :created_at, :since, :replace_at, :used_at)
       on conflict do nothing`,
    ),
    markKeys: db.prepare("update signing_key set used_at = ? where kid in (select value from json_each(?))"),
    selectPolled: db.prepare("select * from kept_document where kind = ? and name = ?"),
    savePolled: db.prepare(
      `insert into kept_document (kind, name, location, body, sequence, loaded_at)
       values (:kind, :name, :location, :body, :sequence, :loaded_at)
       on conflict (kind, name) do update
       set location = excluded.location, body = excluded.body, sequence = excluded.sequence,
         loaded_at = excluded.loaded_at
       where kept_document.location <> excluded.location
         or coalesce(excluded.sequence >= kept_document.sequence, true)`,
    ),
    redatePolled: db.prepare(
      "update kept_document set loaded_at = ? where kind = ? and name = ? and loaded_at = ?",
    ),
    retainPolled: db.prepare(
      "delete from kept_document where kind = ? and name not in (select value from json_each(?))",
    ),
  } satisfies Record<string, StatementSync>;
}
