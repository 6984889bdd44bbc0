import assert from "node:assert/strict";
import { test } from "node:test";
import { removePaced } from "../../../src/adapters/store/paced-removal.ts";
import { openDatabase } from "../../../src/adapters/store/sqlite/database.ts";
import { SLICE_ROWS_MIN, STORE_SWEEP_MAX } from "../../../src/limits/store.ts";

const SLICE = { sliceMs: 4 };

/** The sizes of the slices of a removal of `rows` rows, each of which takes `msEach`. */
async function slicesOf(rows: number, msEach: (rest: number) => number): Promise<readonly number[]> {
  const sizes: number[] = [];
  let [nowMs, rest] = [0, rows];
  await removePaced(
    SLICE,
    () => false,
    async (limit) => {
      const gone = Math.min(limit, rest);
      if (gone > 0) sizes.push(gone);
      nowMs += gone * msEach(rest);
      rest -= gone;
      return gone;
    },
    () => nowMs,
  );
  return sizes;
}

test("slices grow up to the limit while rows go quickly, and all rows go", async () => {
  const sizes = await slicesOf(5_000, () => 0.0001);
  assert.deepEqual(sizes.slice(0, 3), [SLICE_ROWS_MIN, 2 * SLICE_ROWS_MIN, 4 * SLICE_ROWS_MIN]);
  assert.equal(Math.max(...sizes), STORE_SWEEP_MAX);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    5_000,
  );
});

test("where rows take longer, later slices keep to their time, down to the fewest", async () => {
  const msEach = (rest: number) => (rest > 500 ? 0.1 : SLICE.sliceMs);
  const sizes = await slicesOf(600, msEach);
  assert.ok(sizes.slice(1, 3).every((size) => size * 0.1 <= SLICE.sliceMs + 1e-9));
  assert.ok(sizes.slice(-20, -1).every((size) => size === SLICE_ROWS_MIN));
});

test("other work comes between two slices, and a closing server ends the removal after the slice under way", async () => {
  let [slices, turns] = [0, 0];
  const count = setInterval(() => turns++, 0);
  await removePaced(
    SLICE,
    () => slices === 3,
    async () => ++slices,
    () => 10 * slices,
  );
  clearInterval(count);
  assert.equal(slices, 3);
  assert.ok(turns >= 2, `${turns} turns`);
});

test("AUDIT-D-1 after a removal, also one that fails, the next commit waits for the disk again", async () => {
  const { db, remove } = openDatabase(":memory:", { timeoutMs: 1, mustExist: false, mustBeCurrent: false });
  const level = () => db.prepare("pragma synchronous").get()?.synchronous;
  assert.equal(await remove(level), 1);
  assert.equal(level(), 2);
  assert.throws(() => {
    remove(() => {
      throw new Error("a fault");
    });
  }, /a fault/);
  assert.equal(level(), 2);
  db.close();
});
