import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { makeCall } from "../../scripts/bench/client.ts";
import { quantile } from "../../scripts/bench/load.ts";
import type { Row } from "../../scripts/bench/run.ts";
import { bench, formatRows } from "../../scripts/bench/run.ts";
import { prepare, SCENARIOS } from "../../scripts/bench/scenarios.ts";
import { openStage } from "../../scripts/bench/stage.ts";
import type { SharedPostgres } from "../support/postgres.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";

const SECONDS = 0.1;
const ROUNDS = 1;
const CONNECTIONS = 4;

let server: SharedPostgres;
before(async () => {
  server = await sharePostgres();
});
after(() => server.stop());

function assertRows(rows: readonly Row[]): void {
  assert.deepEqual(
    rows.map(({ scenario }) => scenario),
    SCENARIOS,
  );
  for (const { scenario, ...numbers } of rows) {
    for (const [name, value] of Object.entries(numbers)) {
      assert.ok(Number.isFinite(value) && value > 0, `${scenario} ${name} is ${value}`);
    }
    assert.ok(numbers.p50Ms <= numbers.p99Ms, scenario);
  }
  assert.equal(rows[0]?.rateRatio, 1);
  assert.equal(rows[0]?.cpuRatio, 1);
}

test("every scenario runs on SQLite, and every row fits the table", async () => {
  const rows = await bench({ seconds: SECONDS, rounds: ROUNDS, connections: CONNECTIONS });
  assertRows(rows);
  const lines = formatRows(rows).split("\n");
  assert.deepEqual(
    lines.slice(1).map((line) => line.split(" ")[0]),
    SCENARIOS,
  );
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
});

test("every scenario runs on PostgreSQL", async () => {
  const postgres = await freshDatabase(server);
  assertRows(await bench({ seconds: SECONDS, rounds: ROUNDS, connections: CONNECTIONS, postgres }));
});

test("a run fails at the first response that is not 200, and the next run is unaffected", async () => {
  const stage = await openStage({ connections: CONNECTIONS });
  try {
    const prepared = await prepare(stage);
    const good = await prepared.calls("secret");
    prepared.close();
    const wrong = makeCall({ grant_type: "client_credentials" }, `Basic ${btoa("nightly-report:wrong")}`);
    // One call for each connection, so that each of them is sent.
    const calls = [...good.slice(1, CONNECTIONS), wrong];
    await assert.rejects(stage.run({ calls, seconds: SECONDS }), /answered 401/);
    const { requests } = await stage.run({ calls: good, seconds: SECONDS });
    assert.ok(requests >= CONNECTIONS);
  } finally {
    await stage.close();
  }
});

test("a quantile is the smallest measured time that at least this part of all times does not exceed", () => {
  const hundred = Float64Array.from({ length: 100 }, (_, index) => index + 1);
  const cases = [
    [hundred, 0.5, 50],
    [hundred, 0.99, 99],
    [hundred, 1, 100],
    [Float64Array.of(7), 0.5, 7],
    [Float64Array.of(1, 2, 3), 0.5, 2],
    [Float64Array.of(), 0.5, Number.NaN],
  ] as const;
  for (const [sorted, part, want] of cases) assert.equal(quantile(sorted, part), want);
});
