/**
 * The benchmark with a small load: every row on both stores with the ratios that follow from them, a filled store beside an
 * empty one, a release beside its sources.
 */
import assert from "node:assert/strict";
import { freshDatabase, sharePostgres } from "../../test/support/postgres.ts";
import { stop } from "../../test/support/stop.ts";
import { grow } from "../bench/grow.ts";
import { besideRelease } from "../bench/release.ts";
import { bench, formatBeside, formatGrowth, formatReport } from "../bench/run.ts";
import { SCENARIOS } from "../bench/scenarios.ts";

const SMALL = { rules: 20, trustDomains: 3, connections: 2, seconds: 0.1, rounds: 1 };

const BESIDE = [
  ...["secret, 1 connection", "secret, 64 connections", "secret, 250 connections", "secret, new connections"],
  ...["refused", "secret, beside a busy process"],
];
const SKELETON = [
  ...["secret", "secret, beside a busy process", "secret, 1 connection", "secret, new connections"],
  ...["delegation", "handshake"],
].map((name) => `skeleton ${name}`);
const ON_POSTGRES = ["secret", "delegation", "introspection"].map((name) => `PostgreSQL ${name}`);
const WRITES_NOTHING = /^skeleton|introspection$|^metadata$|^jwks$/;

async function checkRows(): Promise<string> {
  const server = await sharePostgres();
  try {
    const postgres = await freshDatabase(server);
    const report = await bench({ seconds: 0.05, rounds: 1, connections: 4, postgres });
    const names = report.rows.map(({ name }) => name);
    assert.deepEqual(names, [...SCENARIOS, ...BESIDE, ...SKELETON, ...ON_POSTGRES]);
    for (const { name, eventsPerCommit, requests, p50Ms, p99Ms, serverCpuMicros } of report.rows) {
      assert.equal(eventsPerCommit >= 1, !WRITES_NOTHING.test(name), `${name}: ${eventsPerCommit}`);
      assert.ok(requests > 0 && serverCpuMicros > 0 && p50Ms > 0 && p50Ms <= p99Ms, name);
    }
    assert.equal(report.ratios.length, 22);
    for (const { name, value } of report.ratios) assert.ok(value > 0, name);
    for (const table of formatReport(report).split("\n\n").slice(0, 2))
      assert.equal(new Set(table.split("\n").map((line) => line.length)).size, 1);
    return `${names.length} rows and ${report.ratios.length} ratios`;
  } finally {
    await stop(server);
  }
}

export async function runBench(): Promise<readonly string[]> {
  const rows = await checkRows();
  const grown = await grow({ ...SMALL, count: 200 });
  assert.equal(grown.length, 15);
  for (const { name, full } of grown) assert.ok(Number.isFinite(full) && full >= 0, `${name}: ${full}`);
  assert.match(formatGrowth(grown), /secret: CPU µs/);
  const released = await besideRelease(SMALL);
  assert.equal(released.length, 21);
  for (const { name, sources, release } of released)
    assert.ok(sources > 0 && release > 0 && Number.isFinite(sources + release), name);
  assert.match(formatBeside(released), /CPU ms to the first token, with signIn/);
  return [rows, `${grown.length} rows of a filled store`, `${released.length} rows of a release`];
}
