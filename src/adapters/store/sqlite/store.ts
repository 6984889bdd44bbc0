/**
 * The embedded store on node:sqlite: one file, one synchronous transaction for each batch, on disk before the caller is
 * answered (AUDIT-D-1). append.ts writes, clients.ts and audit.ts read their parts.
 */
import { closeSync, existsSync, openSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { SLICE_MS, STORE_WAL_BYTES_MAX } from "../../../limits/store.ts";
import { StoreUnavailable } from "../../../ports.ts";
import {
  loadMigrations,
  type Migration,
  noteDone,
  refuseBreaking,
  refuseOlder,
  refuseUnreleased,
  selectBreaking,
  UNRELEASED,
} from "../migrations.ts";
import { logRows } from "../rows.ts";
import { sharedRows } from "../shared-rows.ts";
import { NO_DATABASE, type OpenOptions, type Store } from "../store.ts";
import { appendOn } from "./append.ts";
import { sqliteAuditRows } from "./audit.ts";
import { type Database, DURABLE, openDatabase } from "./database.ts";
import { sqliteEngine } from "./engine.ts";
import { sqliteNames } from "./instance-names.ts";
import { findSqliteTokens } from "./tokens.ts";

/**
 * A write-ahead log that grew while another process was reading is cut back to this size as soon as it starts again.
 */
const WAL = `pragma journal_size_limit = ${STORE_WAL_BYTES_MAX}`;

/** Opens the store in `file`, a path or ":memory:". */
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

/** Counts the migrations that are done; throws for tables of a version that this one does not understand. */
function doneIn(db: DatabaseSync, known: number): number {
  refuseUnreleased(db.prepare("select 1 from sqlite_schema where name = ?").get(UNRELEASED) !== undefined);
  const done = Number(db.prepare("select coalesce(max(number), 0) as done from migration").get()?.done);
  if (done > known) refuseBreaking(known, db.prepare(selectBreaking(known)).get()?.breaking);
  return done;
}

const MAKE =
  "create table if not exists migration (number integer primary key, additive integer not null default 1) strict";

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
    for (const migration of migrations.slice(done)) db.exec(scriptOf(migration));
  });
}

function storeOn(database: Database): Store {
  const { db, write } = database;
  const append = appendOn(db);
  const engine = sqliteEngine(database);

  return {
    log: { ...logRows(engine), append: (batch) => write(() => append(batch)) },
    audit: sqliteAuditRows(database),
    ...sharedRows(engine, findSqliteTokens, EXPIRED),
    ...sqliteCopies(database),
    names: sqliteNames(database),
    sliceMs: SLICE_MS.sqlite,
    close: async () => {
      if (db.isOpen) db.close();
    },
  };
}

/** Skips from kind to kind along the index, which begins with the kind, because rows that live are many. */
export const EXPIRED = `(kind, key) in (
  with recursive name (kind) as (
    select min(kind) from short_lived
    union all
    select (select min(s.kind) from short_lived s where s.kind > n.kind) from name n where n.kind is not null
  )
  select s.kind, s.key from name n cross join short_lived s indexed by short_lived_by_expiry
  where s.kind = n.kind and s.expires_at < :before limit :limit)`;

const sqliteCopies = ({ db, run }: Database): Required<Pick<Store, "copyTo">> => ({
  async copyTo(file, atMs) {
    // The file is made here, because SQLite would make one that others can read; it fills an empty file.
    closeSync(openSync(file, "wx", 0o600));
    try {
      await run(() => db.prepare("vacuum into ?").run(file));
      markCopy(file, atMs);
    } catch (fault) {
      rmSync(file, { force: true });
      throw fault;
    }
  },
});

/**
 * Marks the copy, whose pages are checked before, because a copy that cannot be read is none. It is durable when this
 * returns.
 */
function markCopy(file: string, atMs: number): void {
  using copy = new DatabaseSync(file);
  const found = copy.prepare("pragma integrity_check(1)").get()?.integrity_check;
  if (found !== "ok") throw new StoreUnavailable(`${file}: the copy is damaged (${String(found)})`);
  copy.exec("pragma synchronous = full");
  copy.prepare("replace into restored (id, marked_at_ms) values (1, ?)").run(atMs);
}
