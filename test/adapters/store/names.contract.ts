/** The contract of both stores for the names of instances. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Held, InstanceNames } from "../../../src/adapters/store/store.ts";
import type { Harness } from "./store.contract.ts";

const LEASE_MS = 60_000;
const FIRST = { host: "node-1", pid: 4711 };
const SECOND = { host: "node-2", pid: 12 };

async function take(names: InstanceNames, name: string, self = FIRST, leaseMs = LEASE_MS): Promise<Held> {
  const taken = await names.take(name, self, leaseMs);
  assert.ok(taken.ok, JSON.stringify(taken));
  return taken.value;
}

export function testNames({ name: store, create }: Harness): void {
  test(`AUDIT-D-11 of several that take one name at the same time, one has it (${store})`, async (t) => {
    const { open } = await create(t);
    const stores = await Promise.all(Array.from({ length: 6 }, () => open()));
    const taken = await Promise.all(stores.map(({ names }) => names.take("as-1", FIRST, LEASE_MS)));
    const held = taken.flatMap((one) => (one.ok ? [one.value] : []));
    assert.equal(held.length, 1);
    await held[0]?.release();
  });

  test(`AUDIT-D-11 a name in use tells which process has it, and since when (${store})`, async (t) => {
    const { open } = await create(t);
    const [one, other] = [await open(), await open()];
    const before = Date.now();
    const held = await take(one.names, "as-1");
    const taken = await other.names.take("as-1", SECOND, LEASE_MS);
    assert.ok(!taken.ok);
    const { host, pid, sinceMs = 0 } = taken.error;
    assert.deepEqual({ host, pid }, FIRST);
    assert.ok(sinceMs >= before && sinceMs <= Date.now());
    assert.deepEqual(await other.names.holder("as-1"), { ...FIRST, sinceMs });
    assert.notEqual(await held.renew?.(), false);
    await held.release();
  });

  test(`AUDIT-D-11 a released name can be taken, and another name at any time (${store})`, async (t) => {
    const { open } = await create(t);
    const { names } = await open();
    const [one, two] = [await take(names, "as-1"), await take(names, "as-2")];
    await one.release();
    const again = await take((await open()).names, "as-1", SECOND);
    for (const held of [two, again]) await held.release();
  });

  test(`STORE-D-9 a running instance notes its clock for the others, and none has that of the holder before (${store})`, async (t) => {
    const { open } = await create(t);
    const { names } = await open();
    const [one, two] = [await take(names, "as-1"), await take(names, "as-2", SECOND)];
    await one.noteClock?.(-250);
    const noted = [{ name: "as-1", host: FIRST.host, aheadMs: -250 }];
    // SQLite has no clock of its own.
    assert.deepEqual(await names.clocks?.(), names.clocks && noted);
    await one.release();
    const again = await take(names, "as-1");
    await one.noteClock?.(9);
    assert.deepEqual(await names.clocks?.(), names.clocks && []);
    for (const held of [two, again]) await held.release();
  });
}
