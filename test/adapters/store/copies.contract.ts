/** The contract of both stores for the mark of a copy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Harness } from "./store.contract.ts";

export function testRestoredMark({ name, create }: Harness): void {
  test(`a store is no copy until it is marked, keeps the last mark, and is none after it was cleared (${name})`, async (t) => {
    const { open } = await create(t);
    const { restored } = await open();
    assert.equal(await restored.find(), undefined);
    for (const atMs of [1_790_000_000_000, 1_790_000_000_001]) await restored.set(atMs);
    assert.equal(await (await open()).restored.find(), 1_790_000_000_001);
    await restored.clear();
    assert.equal(await restored.find(), undefined);
  });
}
