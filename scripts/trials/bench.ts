/** The benchmark's long comparisons, each with a small load: a filled store beside an empty one, a release beside its sources. */
import assert from "node:assert/strict";
import { grow } from "../bench/grow.ts";
import { besideRelease } from "../bench/release.ts";
import { formatBeside, formatGrowth } from "../bench/run.ts";

const SMALL = { rules: 20, trustDomains: 3, connections: 2, seconds: 0.1, rounds: 1 };

export async function runBench(): Promise<readonly string[]> {
  const grown = await grow({ ...SMALL, count: 200 });
  assert.equal(grown.length, 15);
  for (const { name, full } of grown) assert.ok(Number.isFinite(full) && full >= 0, `${name}: ${full}`);
  assert.match(formatGrowth(grown), /secret: CPU µs/);
  const released = await besideRelease(SMALL);
  assert.equal(released.length, 21);
  for (const { name, sources, release } of released)
    assert.ok(sources > 0 && release > 0 && Number.isFinite(sources + release), name);
  assert.match(formatBeside(released), /CPU ms to the first token, with signIn/);
  return [`${grown.length} rows of a filled store`, `${released.length} rows of a release`];
}
