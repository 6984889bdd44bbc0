/** The name of an instance over a real store with leases: waited for, renewed, lost. */
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type InstanceName,
  NameInUse,
  readWhileHeld,
  takeName,
} from "../../../src/adapters/audit/instance-name.ts";
import type { InstanceNames } from "../../../src/adapters/store/store.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import { until } from "../../support/until.ts";
import { keepSchema } from "../store/postgres/schema.ts";

const NAME = "as-1";
const CRASHED = { host: "node-1", pid: 4711 };
const emptied = keepSchema();

function take(names: InstanceNames, told: string[] = [], leaseSeconds = 0.4): Promise<InstanceName> {
  return takeName({ names, name: NAME, leaseSeconds, onWait: (text) => told.push(text) });
}

test("AUDIT-D-11 the lease of a crashed process is waited for once, and that is told", async () => {
  const { names } = (await emptied()).store;
  await names.take(NAME, CRASHED, 500);
  const told: string[] = [];
  const startMs = performance.now();
  const name = await take(names, told);
  assert.ok(performance.now() - startMs > 200);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? "", /^the name "as-1" is in use: process 4711 on node-1 has it since .*; waiting/);
  assert.ok((await name.ensure()) && name.stands());
  await name.close();
});

test("AUDIT-D-11 a name whose lease is renewed is refused with its holder, which keeps it", async () => {
  const { names } = (await emptied()).store;
  const name = await take(names);
  await assert.rejects(take(names), (fault) => {
    assert.ok(fault instanceof NameInUse);
    assert.match(fault.message, /^the name "as-1" is in use: process \d+ on \S+ has it since \d{4}-/);
    assert.ok(fault.message.includes(`process ${process.pid} on ${hostname()}`));
    return true;
  });
  assert.ok((await name.ensure()) && name.stands());
  await name.close();
  const next = await take(names, [], 60);
  await next.close();
});

test("AUDIT-D-11 a lease that lapses in a far future, because the clock was set back, is waited for no longer than a lease can last", async () => {
  const { names } = (await emptied()).store;
  await names.take(NAME, CRASHED, 3_600_000);
  const startMs = performance.now();
  const name = await takeName({ names, name: NAME, leaseSeconds: 5, onWait: () => {}, deadMs: 500 });
  // By the lease that the table has, it would wait for an hour.
  assert.ok(performance.now() - startMs > 500);
  await name.close();
});

/** The same names, whose store cannot be reached while `away`. */
function faulty(names: InstanceNames) {
  const line = { away: false, names: { ...names } };
  line.names.take = async (...asked) => {
    const taken = await names.take(...asked);
    if (!taken.ok) return taken;
    const { renew } = taken.value;
    const renewIfThere = async (): Promise<boolean> => {
      if (line.away) throw new StoreUnavailable("the store is away");
      return (await renew?.()) ?? true;
    };
    return { ...taken, value: { ...taken.value, renew: renewIfThere } };
  };
  return line;
}

test("AUDIT-D-11 a lease that lapsed while the store was away is renewed before the next write", async () => {
  const line = faulty((await emptied()).store.names);
  const name = await take(line.names);
  line.away = true;
  await until(() => !name.stands(), "the lease lapses");
  await assert.rejects(async () => name.ensure(), StoreUnavailable);
  line.away = false;
  assert.equal(await name.ensure(), true);
  assert.equal(name.stands(), true);
  await name.close();
});

test("AUDIT-D-11 a process whose name was taken meanwhile is told once, and does not write again", async () => {
  const { names } = (await emptied()).store;
  const line = faulty(names);
  const name = await take(line.names);
  let told = 0;
  name.onLost(() => {
    told += 1;
  });
  line.away = true;
  await until(() => !name.stands(), "the lease lapses");
  const next = await take(names, [], 60);
  line.away = false;
  assert.equal(await name.ensure(), false);
  await sleep(300);
  assert.deepEqual([told, name.stands(), await name.ensure()], [1, false, false]);
  await name.close();
  const third = await names.take(NAME, CRASHED, 1);
  assert.equal(third.ok, false, "closing takes nothing from the next process");
  await next.close();
});

test("STORE-D-26 what decides is read while the hold stands, after it was renewed, and not where it cannot be", async () => {
  const { store } = await emptied();
  const ways: [string, InstanceName["ensure"], object | undefined][] = [
    ["it stands", () => true, undefined],
    ["it is renewed", async () => true, undefined],
    [
      "the database commits nothing",
      () => Promise.reject(new StoreUnavailable("away")),
      { message: "away", noWriter: true },
    ],
    [
      "another process has the name",
      async () => false,
      { name: "StoreUnavailable", message: /another process/ },
    ],
  ];
  for (const [when, ensure, refused] of ways) {
    const { facts, families } = readWhileHeld(store, { ensure });
    for (const read of [async () => facts.token("j"), async () => families.find("f")]) {
      if (refused === undefined) assert.equal(await read(), undefined, when);
      else await assert.rejects(read, refused, when);
    }
  }
});
