/**
 * How SQLite finds the rows of the statements that the other tests of a file prepared: none may read a table that grows
 * from its first row on, nor make an index of it, because the event loop waits for it.
 */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { migratedFile } from "../../../support/migrated.ts";

const SOURCE = "/src/adapters/store/";

/** There were 169 when this was written: fewer show that some are not noticed any more. */
const STATEMENTS_MIN = 160;

/** Tables with few rows, however many requests there are. */
const SMALL = ["sqlite_schema", "signing_key", "initial_token", "restored", "policy_archive"];

/** Statements that begin at the first row and soon end, or have to read every row of a kind. */
const EXCEPTIONS = {
  "the newest jobs, by an index with a limit": /order by j\.created_at desc, j\.id desc limit \d+$/,
  "the list of all clients": /from client c\s+order by/,
  "the list of checkpoints, in the order of its key": /from checkpoint c\s/,
};

/** The first log by name: an index with a limit, in which each further log is then found. */
const FIRST_LOG = /\(select log from (event|checkpoint) order by log limit 1\)/g;

/** To be called before the tests; returns what tests the plans of their statements. */
export function watchStatements(): () => void {
  const texts = new Set<string>();
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (text, ...options) {
    if (new Error().stack?.includes(SOURCE)) texts.add(text);
    return prepare.call(this, text, ...options);
  };
  return () =>
    test("no statement on SQLite reads a table that grows from its first row on", async () => {
      using db = new DatabaseSync(await migratedFile());
      const tables = db.prepare("select name from sqlite_schema where type = 'table'").all();
      const growing = tables.map(({ name }) => String(name)).filter((name) => !SMALL.includes(name));
      const whole = [...texts].filter((text) =>
        readsWhole(db, text).some((table) => growing.includes(table)),
      );
      const excepted = Object.values(EXCEPTIONS);
      assert.deepEqual(
        whole.filter((text) => !excepted.some((one) => one.test(text))),
        [],
      );
      for (const [name, one] of Object.entries(EXCEPTIONS)) {
        assert.ok(
          whole.some((text) => one.test(text)),
          `${name}: no exception any more`,
        );
      }
      assert.ok(texts.size > STATEMENTS_MIN, `${texts.size} statements`);
    });
}

/** The tables, or parts of the statement, of which SQLite would read or index all rows. */
function readsWhole(db: DatabaseSync, text: string): string[] {
  const steps = db.prepare(`explain query plan ${text.replaceAll(FIRST_LOG, "('a')")}`).all();
  return steps.flatMap(({ detail }) => {
    const name = /^SCAN (\w+)|^SEARCH (\w+) USING AUTOMATIC /.exec(String(detail))?.slice(1).find(Boolean);
    if (name === undefined) return [];
    // The plan calls a table as the statement does.
    const called = new RegExp(`\\b(?:from|join|update)\\s+(\\w+)\\s+(?:as\\s+)?${name}\\b`).exec(text);
    return called?.[1] ?? name;
  });
}
