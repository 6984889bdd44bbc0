/** One SQLite database: its file, its transactions, and the faults that mean that the store is unavailable. */
import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../../../ports.ts";

// Primary result codes of SQLite that are caused by the disk or by another process.
const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const PROTOCOL = 15;
const NOT_A_DATABASE = 26;
const UNAVAILABLE = new Set([
  BUSY,
  LOCKED,
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

/** Opens a database file readable by its owner only; waits `timeoutMs` for a lock of another process. */
export function openDatabase(file: string, timeoutMs: number): DatabaseSync {
  if (file !== ":memory:") {
    // Created before SQLite opens it, because its journal files get the mode of the database file.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
  }
  return guarded(() => new DatabaseSync(file, { timeout: timeoutMs, enableForeignKeyConstraints: true }));
}

/** Runs synchronous work in a transaction; without `await`, no other work of this process can come between. */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
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
export function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ERR_INVALID_STATE") throw new StoreUnavailable("the database is closed");
    const code = resultCode(error);
    if (code === undefined || !UNAVAILABLE.has(code & 0xff)) throw error;
    throw new StoreUnavailable(`SQLite answered ${code}`);
  }
}

/** Whether a primary key was violated: the row exists already. */
export const isKeyTaken = (error: unknown): boolean => resultCode(error) === PRIMARY_KEY_TAKEN;

function resultCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}
