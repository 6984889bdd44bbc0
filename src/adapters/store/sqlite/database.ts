/** Work on one SQLite database: its file, its transactions, and which of its faults mean that the store is away. */
import { chmodSync, closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../../../ports.ts";

// Result codes of SQLite, without their extensions: the disk or another process is in the way.
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

export function openDatabase(file: string, timeoutMs: number): DatabaseSync {
  if (file !== ":memory:") {
    // Before SQLite makes it: its journal files take the mode of the database.
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
  }
  return guarded(() => new DatabaseSync(file, { timeout: timeoutMs, enableForeignKeyConstraints: true }));
}

/** No `await` inside: nothing of ours can come between. */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec("begin immediate");
  try {
    const value = work();
    db.exec("commit");
    return value;
  } catch (error) {
    // SQLite itself rolls back after some faults.
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}

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

export const isKeyTaken = (error: unknown): boolean => resultCode(error) === PRIMARY_KEY_TAKEN;

function resultCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}
