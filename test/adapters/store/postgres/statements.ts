/**
 * What PostgreSQL plans for the statements that the other tests of a file prepared: none may look expensive, because it
 * compiles what does, and none may read a table that grows from start to end, whatever it knows of the table.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openStore } from "../../../../src/adapters/store/open.ts";
import { makeAttempts } from "../../../../src/adapters/store/postgres/attempts.ts";
import { POSTGRES } from "../../../../src/adapters/store/postgres/engine.ts";
import { openConnections, type Sql } from "../../../../src/adapters/store/postgres/pool.ts";
import { COMBINATIONS, NAMES, recordStatement } from "../../../../src/adapters/store/postgres/record.ts";
import { STORE_TIMEOUT_MS } from "../../../../src/limits/store.ts";
import type { SharedPostgres } from "../../../support/postgres.ts";
import { freshSchema } from "./schema.ts";

const SOURCE = join(import.meta.dirname, "../../../../src/adapters/store");

/** How a statement begins in the sources: for this driver, or for both databases; one of records at its `from`. */
const BEGINNINGS = [
  /sql(?:<[^`]*>)?`\s*((?:select|with|insert|update|delete)\b[^`$]*)/g,
  /\b(?:rows(?:<[^`"(]*>)?|change|remove)\(\s*[`"]\s*((?:select|with|insert|update|delete)\b[^`"$:]*)/g,
  /\b(?:read|readRecords\(engine\))\(\s*\w+,\s*[`"]\s*(from\b[^`"$:]*)/g,
];

const PLANNED = /^\s*(select|with|insert|update|delete)\b/;

/** A quarter of the cost from which PostgreSQL compiles a statement (`jit_above_cost`). */
const COST_MAX = 25_000;

/** What versions up to 17 add for a scan that is switched off, where nothing else can read a small table. */
const SWITCHED_OFF = 1e10;

/** Tables with few rows, however many requests there are. */
const SMALL = [
  "signing_key",
  "initial_token",
  "kept_document",
  "policy_archive",
  "instance",
  "restored",
  "migration",
  "class_ceiling",
];

/** Statements that have to read every row of a kind. */
const WHOLE = {
  "the list of all clients": /from client c\s+order by/,
  "the number of clients of a class, for its maximum": /'registrations_below'/,
};

type Plan = { "Node Type": string; "Total Cost": number; "Relation Name"?: string; Plans?: Plan[] };

/** Statements that write rows into each table, with no content but the numbers up to `count`. */
const filling = (count: number): string => `
  select table_name as name, format('insert into %I (%s) select %s from generate_series(1, ${count}) n', table_name,
    string_agg(quote_ident(column_name), ', '), string_agg(case
      when column_name = 'log' then '''as-'' || n % 3'
      when column_name = 'source' then 'case when n % 2 = 0 then ''registration'' else ''operator'' end'
      when data_type = 'json' then '''[]'''
      when data_type = 'bytea' then ''''''
      when is_nullable = 'YES' then 'case when n % 3 = 0 then n end'
      when data_type = 'smallint' then 'n % 100'
      else 'n' end, ', ')) as text
  from information_schema.columns join pg_tables on schemaname = table_schema and tablename = table_name
  where table_schema = current_schema() and table_name <> all('{${SMALL}}')
  group by table_name order by table_name`;

async function fill(sql: Sql, count: number): Promise<void> {
  const tables = await sql.unsafe<{ name: string; text: string }[]>(filling(count));
  for (const { name, text } of tables) await sql.unsafe(`${text} on conflict do nothing; analyze ${name}`);
}

const STATES: Readonly<Record<string, (sql: Sql) => Promise<void>>> = {
  "of which it knows nothing": async () => {},
  "that were nearly empty when it looked": (sql) => fill(sql, 60),
  "of a million rows": async (sql) => {
    await fill(sql, 2_000);
    await sql.unsafe(`update pg_class set reltuples = 1000000
      where relkind = 'r' and relnamespace = current_schema()::regnamespace and relname <> all('{${SMALL}}')`);
  },
};

export function testStatements(server: () => SharedPostgres, recorded: ReadonlySet<string>): void {
  test("the tests prepare every statement of the store on PostgreSQL", () => {
    const prepared = [...recorded].map(inOneLine);
    // What looks for a pooler reads no table.
    const files = globSync("{*,postgres/*}.ts", { cwd: SOURCE, exclude: ["postgres/pooler.ts"] });
    const begun = files.flatMap((name) => {
      const text = readFileSync(join(SOURCE, name), "utf8");
      return BEGINNINGS.flatMap((beginning) => [...text.matchAll(beginning)]);
    });
    const missed = begun
      .map(([, text = ""]) => inOneLine(POSTGRES.inWords(text)))
      .filter((text) => !prepared.some((one) => one.includes(text)));
    assert.deepEqual(missed, []);
    // The one that writes the journal is composed; each of its parts stands in one that was prepared.
    for (const name of NAMES)
      assert.ok(
        prepared.some((one) => one.includes(` ${name}_in as (`)),
        name,
      );
    assert.ok(begun.length > 50);
  });

  test("STORE-D-10 no statement finds a row by its place in the table", () => {
    const all = [...recorded, ...COMBINATIONS.map(recordStatement)];
    assert.deepEqual(
      all.filter((text) => /\bctid\b/.test(text)),
      [],
    );
  });

  describe("PostgreSQL looks rows up by their keys, and no statement looks expensive", () => {
    let database: ReturnType<typeof openConnections>;
    before(async () => {
      const url = await freshSchema(server());
      await (await openStore({ postgres: url })).close();
      const attempts = makeAttempts();
      database = openConnections({
        url,
        tls: undefined,
        timeoutMs: STORE_TIMEOUT_MS,
        connectionsMax: 1,
        attempts,
      });
    });
    after(() => database.close());

    for (const [state, prepare] of Object.entries(STATES)) {
      test(`in tables ${state}`, async () => {
        await database.call(prepare);
        const found = [];
        for (const text of [...recorded, ...COMBINATIONS.map(recordStatement)]) {
          if (!PLANNED.test(text) || Object.values(WHOLE).some((pattern) => pattern.test(text))) continue;
          const plans = await database.call((sql) => explain(sql, text));
          assert.equal(plans.length, 2);
          const cost = Math.min(...plans.map((plan) => plan["Total Cost"] % SWITCHED_OFF));
          const whole = plans.flatMap((plan) => wholeTables(plan));
          if (cost > COST_MAX || whole.length > 0)
            found.push({ text: inOneLine(text).slice(0, 100), cost, whole: whole.join(", ") });
        }
        assert.deepEqual(found, []);
      });
    }
  });
}

const inOneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

type Explained = { "QUERY PLAN": [{ Plan: Plan }] }[];

/** The plan for any values and one for some: the server uses the cheaper one. */
async function explain(sql: Sql, text: string): Promise<Plan[]> {
  const values = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
  const none = Array.from({ length: Math.max(0, ...values) }, () => "null").join(", ");
  const answers = await sql.unsafe<Explained[]>(`
    prepare planned as ${text};
    set plan_cache_mode = force_generic_plan;
    explain (format json) execute planned${none && `(${none})`};
    reset plan_cache_mode;
    deallocate planned;
    explain (format json) ${text.replace(/\$\d+/g, "'1000'")}`);
  return answers.flat().map((row) => row["QUERY PLAN"][0].Plan);
}

/** Where a part of the plan reads all rows of a table that grows, or of an index of it; a limit ends a scan in time. */
function wholeTables(plan: Plan, above = ""): string[] {
  const { "Relation Name": table = "", "Node Type": type, Plans: parts = [] } = plan;
  const isBounded =
    type === "ModifyTable" ||
    above === "Limit" ||
    ["Index Cond", "TID Cond", "Recheck Cond"].some((condition) => condition in plan);
  const own = table === "" || SMALL.includes(table) || isBounded ? [] : [`${type} of ${table}`];
  return [...own, ...parts.flatMap((part) => wholeTables(part, type))];
}
