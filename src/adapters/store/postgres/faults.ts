/** What the errors of the driver mean here. Only their code is kept, because they hold the statement and its parameters. */
import postgres from "postgres";
import { STORE_RUNS_MAX } from "../../../limits/store.ts";
import { StoreUnavailable } from "../../../ports.ts";
import { mayUseNet, NO_NET } from "../../process.ts";
import { describeCode, unavailable } from "../fault-codes.ts";
import { LogConflict } from "../store.ts";

/** Of a server that does not write. */
const READ_ONLY = "25006";
/** What ends a read there: no statement divides but to prove that it is not there. */
const DIVISION_BY_ZERO = "22012";
const UNIQUE_VIOLATION = "23505";
const SERIALIZATION_FAILURE = "40001";
/** Codes of the classes below that are not bugs of ours: a missing permission, and what a shared session causes. */
const NOT_OURS = ["42501", "42P05"];

const NO_SOCKET = ": nothing listens at this socket: start the database, or correct `store.postgres`";

/** STORE-D-21: of these it is certain that no server answered which writes. */
export const noWriter = (fault: StoreUnavailable): StoreUnavailable =>
  Object.assign(fault, { noWriter: true } as const);

export const onlyReads = (): StoreUnavailable =>
  noWriter(unavailable(`the database answered ${READ_ONLY}${describeCode(READ_ONLY)}`, READ_ONLY));

export const isPostgresError = (error: unknown): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError;

export const isOfReader = (error: unknown): boolean =>
  isPostgresError(error) && [READ_ONLY, DIVISION_BY_ZERO].includes(error.code);

/** Whether a unique key was violated: the row exists already. */
export function isUniqueViolation(error: unknown): error is postgres.PostgresError {
  return isPostgresError(error) && error.code === UNIQUE_VIOLATION;
}

/**
 * STORE-D-10: runs a unit of work again that the database rolled back as a whole, because it does not fit the order of
 * others: nothing of it was done. Below `serializable` PostgreSQL does not end ours so, and other engines do.
 */
export async function untilInOrder<T>(work: () => PromiseLike<T>): Promise<T> {
  for (let run = 1; ; run++) {
    try {
      return await work();
    } catch (error) {
      if (!isPostgresError(error) || error.code !== SERIALIZATION_FAILURE || run === STORE_RUNS_MAX)
        throw error;
    }
  }
}

/** Runs a statement again where another instance has just taken one of its unique keys, and so has gone on. */
export async function untilFree<T>(work: () => Promise<T>): Promise<T> {
  for (let run = 1; ; run++) {
    try {
      return await work();
    } catch (error) {
      if (!isUniqueViolation(error) || run === STORE_RUNS_MAX) throw error;
      if (error.constraint_name === "event_pkey") throw new LogConflict("a position in the log is taken");
    }
  }
}

export function toConnectFault(error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error;
  if (!mayUseNet()) return new StoreUnavailable(`the connection to the database failed: ${NO_NET}`);
  const code = codeOf(error);
  // Of a Unix socket, where it is no file that is missing.
  const description = code === "ENOENT" ? NO_SOCKET : describeCode(code);
  return noWriter(unavailable(`the connection to the database failed (${code})${description}`, code));
}

export function toFault(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof LogConflict) return error;
  if (!isPostgresError(error)) return toConnectFault(error);
  // STORE-D-8: not told as the fault of a statement, because another server answers it.
  if (isOfReader(error)) return onlyReads();
  const { code, constraint_name: constraint = "" } = error;
  // Data errors, constraint violations and invalid SQL are bugs of ours; a retry would fail in the same way.
  if (/^(22|23|42)/.test(code) && !NOT_OURS.includes(code))
    return Object.assign(new Error(`the database refused a statement (${code} ${constraint})`), { code });
  return unavailable(`the database answered ${code}${describeCode(code)}`, code);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "no code";
}
