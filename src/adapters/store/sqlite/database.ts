/**
 * One SQLite database: its file, its transactions, and the faults that mean that the store is unavailable. SQLite
 * itself never waits for another process, because it would stop the event loop for that time: a timer tries again.
 */
import { chmodSync, closeSync, existsSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { STORE_BUSY_RETRY_MS, STORE_WAL_PAGES } from "../../../limits/store.ts";
import { StoreUnavailable } from "../../../ports.ts";
import type { Awaitable } from "../../../result.ts";
import { describeCode, describeFileCode, unavailable } from "../fault-codes.ts";
import { NO_DATABASE, type OpenOptions, StoreBusy } from "../store.ts";

// Primary result codes of SQLite that are caused by the disk or by another process.
const NO_MEMORY = 7;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const PROTOCOL = 15;
const NOT_A_DATABASE = 26;
const BUSY = new Set([5, 6]);
const UNAVAILABLE = new Set([
  ...BUSY,
  NO_MEMORY,
  READ_ONLY,
  IO_ERROR,
  CORRUPT,
  FULL,
  CANNOT_OPEN,
  PROTOCOL,
  NOT_A_DATABASE,
]);
const PRIMARY_KEY_TAKEN = 1555;

/** AUDIT-D-1: a commit is on disk when it returns. */
export const DURABLE = `pragma synchronous = full; pragma wal_autocheckpoint = ${STORE_WAL_PAGES.written}`;

export type Database = {
  db: DatabaseSync;
  /**
   * Runs synchronous work. While another process holds the file, it is tried again until the deadline: that alone makes
   * a promise of the value.
   */
  run<T>(work: () => T): Awaitable<T>;
  /** Runs work in a transaction; it has no `await`, so no other work of this process can come between. */
  write<T>(work: () => T): Awaitable<T>;
  /**
   * Runs a removal without waiting for the disk, because a removal that a power failure undoes is done again.
   * What it wrote is copied back in smaller portions, because that holds the event loop.
   */
  remove<T>(work: () => T): Awaitable<T>;
};

/** Opens a file readable by its owner only. `timeoutMs`: how long one piece of work may wait for another process. */
export function openDatabase(file: string, { timeoutMs, mustExist }: OpenOptions): Database {
  if (mustExist && !existsSync(file)) throw new StoreUnavailable(`${file}: ${NO_DATABASE}`);
  if (file !== ":memory:" && !mustExist) {
    // Created before SQLite opens it, because its journal files get the mode of the database file.
    makeFile(file);
    chmodSync(file, 0o600);
  }
  const db = guarded(
    () =>
      new DatabaseSync(mustExist ? existing(file) : file, { timeout: 0, enableForeignKeyConstraints: true }),
  );
  const tryAgain = async <T>(work: () => T, busy: StoreBusy): Promise<T> => {
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0) throw busy;
      await sleep(Math.min(STORE_BUSY_RETRY_MS, leftMs));
      try {
        return guarded(work);
      } catch (fault) {
        if (!(fault instanceof StoreBusy)) throw fault;
      }
    }
  };
  const run = <T>(work: () => T): Awaitable<T> => {
    try {
      return guarded(work);
    } catch (fault) {
      if (!(fault instanceof StoreBusy)) throw fault;
      return tryAgain(work, fault);
    }
  };
  const write = <T>(work: () => T): Awaitable<T> => run(() => transaction(db, work));
  const remove = <T>(work: () => T): Awaitable<T> =>
    run(() => {
      // The write-ahead log keeps its order, so later writes never survive a power failure without this one.
      db.exec(`pragma synchronous = normal; pragma wal_autocheckpoint = ${STORE_WAL_PAGES.removed}`);
      try {
        return transaction(db, work);
      } finally {
        db.exec(DURABLE);
      }
    });
  return { db, run, write, remove };
}

/** Locks a file of its own until this process ends, or closes what it gets. */
export function lockFile(file: string): DatabaseSync | "taken" {
  // An existing file is not opened here, because closing it would end a lock that this process has on it.
  if (!existsSync(file)) makeFile(file);
  const lock = guarded(() => new DatabaseSync(file, { timeout: 0 }));
  try {
    // Nothing is written to the file, so it needs no journal file.
    guarded(() => lock.exec("pragma journal_mode = memory; begin exclusive"));
    return lock;
  } catch (fault) {
    lock.close();
    if (fault instanceof StoreBusy) return "taken";
    throw fault;
  }
}

/** Makes an empty file that only its owner may read, unless there is one. */
function makeFile(file: string): void {
  try {
    closeSync(openSync(file, "a", 0o600));
  } catch (fault) {
    const code = fault instanceof Error && "code" in fault ? fault.code : "no reason given";
    throw new StoreUnavailable(`${file}: cannot be opened: ${describeFileCode(String(code))}`);
  }
}

/** The name of a file that SQLite opens and never makes. */
function existing(file: string): URL {
  const url = pathToFileURL(file);
  url.searchParams.set("mode", "rw");
  return url;
}

function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec("begin immediate");
  try {
    const value = work();
    db.exec("commit");
    return value;
  } catch (error) {
    // After some faults SQLite has rolled back already.
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}

/** Turns a fault of the database into StoreUnavailable; errors in our own statements pass unchanged. */
function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ERR_INVALID_STATE") throw new StoreUnavailable("the database is closed");
    const code = resultCode(error);
    if (code === undefined || !UNAVAILABLE.has(code & 0xff)) throw error;
    if (BUSY.has(code & 0xff))
      throw new StoreBusy(`another process holds the database (SQLite answered ${code})`);
    throw unavailable(`SQLite answered ${code}${describeCode(code & 0xff)}`, code);
  }
}

/** Whether a primary key was violated: the row exists already. */
export const isKeyTaken = (error: unknown): boolean => resultCode(error) === PRIMARY_KEY_TAKEN;

function resultCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}
