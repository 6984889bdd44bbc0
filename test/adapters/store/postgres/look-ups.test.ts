/** What the requests of one turn of the event loop read. */
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { makeAttempts } from "../../../../src/adapters/store/postgres/attempts.ts";
import { postgresEngine } from "../../../../src/adapters/store/postgres/engine.ts";
import { type Call, openConnections } from "../../../../src/adapters/store/postgres/pool.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import { type SharedPostgres, sharePostgres } from "../../../support/postgres.ts";
import { stop } from "../../../support/stop.ts";
import { TIMEOUT_MS } from "./deadlines.ts";

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => stop(server));

/** `calls`: how often the database was asked. */
function openEngine(t: TestContext) {
  const limits = { tls: undefined, timeoutMs: TIMEOUT_MS, connectionsMax: 4, attempts: makeAttempts() };
  const database = openConnections({ url: server.url, ...limits });
  t.after(() => database.close());
  const counted = { calls: 0 };
  const call: Call = (work) => {
    counted.calls++;
    return database.call(work);
  };
  return { engine: postgresEngine(call), counted, close: database.close };
}

const COUNT = "select n, :text::text as text from generate_series(1, :last::int) n order by n desc";

test("reads of one turn with the same words are one statement, and each gets its rows in their order", async (t) => {
  const { engine, counted } = openEngine(t);
  const texts = ["a", "", 'quotes " \\', "é😀", "a"];
  const read = () =>
    Promise.all(texts.map((text, index) => engine.rows(COUNT, { last: 2 * (index % 3), text })));
  const rows = await read();
  assert.equal(counted.calls, 1);
  const wanted = texts.map((text, index) =>
    Array.from({ length: 2 * (index % 3) }, (_, row) => ({ n: 2 * (index % 3) - row, text })),
  );
  assert.deepEqual(
    rows.map((found) => found.map((row) => ({ ...(row as object) }))),
    wanted,
  );
  await Promise.all([read(), engine.rows("select 1 as one where :a = 1", { a: 1 })]);
  assert.equal(counted.calls, 3);
  // Without values there is nothing to join by.
  await Promise.all([engine.rows("select 1 as one"), engine.rows("select 1 as one")]);
  assert.equal(counted.calls, 5);
});

test("a read of a later turn waits for none before it", async (t) => {
  const { engine, counted } = openEngine(t);
  const slow = engine.rows("select pg_sleep(0.3) where :a = 1", { a: 1 });
  await new Promise((resolve) => setImmediate(resolve));
  let isDone = false;
  void Promise.resolve(slow).then(() => {
    isDone = true;
  });
  await engine.rows(COUNT, { text: "a", last: 1 });
  assert.ok(!isDone);
  assert.equal(counted.calls, 2);
  await slow;
});

test("a read that the database refuses fails alone, and the others of its turn are answered", async (t) => {
  const { engine } = openEngine(t);
  const asked = { a: 1, "too many": 2 ** 63, b: 1 };
  const reads = Object.entries(asked).map(([text, last]) =>
    engine.rows<{ text: string }>(COUNT, { text, last }),
  );
  const outcomes = await Promise.allSettled(reads);
  assert.deepEqual(
    outcomes.map((one) => (one.status === "fulfilled" ? one.value[0]?.text : one.reason.message)),
    ["a", "the database refused a statement (22003 )", "b"],
  );
});

test("a text that no row can hold is in no row, and asks nothing of the database", async (t) => {
  const { engine, counted } = openEngine(t);
  for (const text of ["\0", "\ud800"]) assert.deepEqual(await engine.rows(COUNT, { text, last: 1 }), []);
  assert.equal(counted.calls, 0);
});

test("a change that returns rows is asked of the database once, whatever else changes in its turn", async (t) => {
  const { engine, counted } = openEngine(t);
  await engine.change("create table changed (n bigint primary key)", {});
  const add = (n: number) => engine.rows("insert into changed values (:n) returning n", { n });
  const calls = counted.calls;
  assert.deepEqual([...(await Promise.all([add(1), add(2)]))].flat(), [{ n: 1 }, { n: 2 }]);
  // Joined it would be refused, since a change cannot be part of a read, and then be asked for again.
  assert.equal(counted.calls - calls, 2);
});

test("where the store is away each read of a turn is told so", async (t) => {
  const { engine, counted, close } = openEngine(t);
  await close();
  for (const outcome of await Promise.allSettled(
    ["a", "b"].map((text) => engine.rows(COUNT, { text, last: 1 })),
  ))
    assert.ok(outcome.status === "rejected" && outcome.reason instanceof StoreUnavailable);
  assert.equal(counted.calls, 1);
});
