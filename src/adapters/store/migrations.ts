/**
 * The numbered migrations of both stores, and which tables this version does not use. The first one makes all tables; each
 * later one is additive: the version before it serves on beside the new one, and does not know the new tables, columns
 * (nullable or with a default) and indexes. One that is not has a line that begins with "-- Not additive:" and says why.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StoreUnavailable } from "../../ports.ts";
import { PROGRAM } from "../../program.ts";
import { StoreMisplaced } from "./store.ts";

export type Migration = {
  number: number;
  text: string;
  /** Whether the version before may go on to run on the changed database. */
  additive: boolean;
};

/** The migration files of one store, sorted by number. */
export function loadMigrations(store: "sqlite" | "postgres"): readonly Migration[] {
  const folder = join(PROGRAM, "sql", store);
  const files = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  return files.sort().map((name, index) => {
    const number = Number.parseInt(name, 10);
    if (number !== index + 1) throw new Error(`sql/${store}/${name} should have the number ${index + 1}`);
    const text = readFileSync(join(folder, name), "utf8");
    return { number, text, additive: !/^-- Not additive:/m.test(text) };
  });
}

/** The statement that notes a migration as done. */
export function noteDone({ number, additive }: Migration): string {
  return additive
    ? `insert into migration (number) values (${number})`
    : `insert into migration (number, additive) values (${number}, false)`;
}

/** Selects the last migration beyond `known` beside which this version cannot run. */
export const selectBreaking = (known: number): string =>
  `select max(number) as breaking from migration where number > ${known} and not additive`;

/** A view that databases of versions before the first release have, and no other. */
export const UNRELEASED = "live_token";

/** CONF-D-23: the numbers of such a database are those of other migrations, so that nothing is changed or read. */
export function refuseUnreleased(isFound: boolean): void {
  if (!isFound) return;
  throw new StoreMisplaced(
    "the tables are those of a version before the first release, which this version does not read: name a new database",
  );
}

/** A newer version has changed the database so that this one cannot use it. */
export class DatabaseTooNew extends Error {
  override name = "DatabaseTooNew";
}

/** Throws if a newer version has changed the database so that this one cannot use it. */
export function refuseBreaking(known: number, breaking: unknown): void {
  if (breaking === null) return;
  throw new DatabaseTooNew(
    `the database is at migration ${breaking}, which is not additive, but this version knows only ${known}: use a newer version`,
  );
}

/** Throws if the tables are those of an older version, for openers that must not change them. */
export function refuseOlder(done: number, known: number): void {
  if (done >= known) return;
  throw new StoreUnavailable(
    `the tables are those of an older version (${done} of ${known} migrations): the next start changes them, or "mandate migrate" as their owner`,
  );
}
