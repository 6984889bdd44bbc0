/** Look-ups against a name server whose answers the test sets. */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { makeClock } from "../../../src/adapters/clock.ts";
import { makeDocumentCache } from "../../../src/adapters/remote/cached-document.ts";
import { queryNames } from "../../../src/adapters/remote/dns.ts";
import { makeFetchBudget } from "../../../src/adapters/remote/fetch-budget.ts";
import { ok } from "../../../src/result.ts";
import { startNameServer, supplied } from "../../support/nasty.ts";
import { makeTimers } from "../../support/timers.ts";

const NAME = "client.example";

test("CIMD-8.6-1 every address of a name, of both families, is returned", async (t) => {
  const { zone, address } = await startNameServer(t);
  const resolve = queryNames([address]);
  zone.A = ["93.184.215.14", "127.0.0.1"];
  zone.AAAA = ["2606:4700::1111", "::1"];
  assert.deepEqual(await resolve(NAME), [
    { address: "93.184.215.14", family: 4 },
    { address: "127.0.0.1", family: 4 },
    { address: "2606:4700::1111", family: 6 },
    { address: "::1", family: 6 },
  ]);
  zone.AAAA = [];
  assert.deepEqual((await resolve(NAME)).length, 2);
  zone.A = [];
  assert.deepEqual(await resolve(NAME), []);
});

test("CIMD-8.6-1 each look-up sends one query per family, and nothing is cached", async (t) => {
  const { zone, asked, address } = await startNameServer(t);
  zone.A = ["93.184.215.14"];
  const resolve = queryNames([address]);
  await resolve(NAME);
  assert.deepEqual(asked, { A: 1, AAAA: 1 });
  zone.A = ["127.0.0.1"];
  assert.deepEqual(await resolve(NAME), [{ address: "127.0.0.1", family: 4 }]);
});

test("PROD-4.3r3-1 a silent name server is given up early, and the addresses of the other family are returned", async (t) => {
  const { zone, asked, address } = await startNameServer(t);
  zone.A = ["93.184.215.14"];
  zone.AAAA = "silence";
  // By itself the platform would wait longer than this for one query.
  const late = sleep(4_000, "late", { ref: false });
  const found = await Promise.race([queryNames([address], 100)(NAME), late]);
  assert.deepEqual(found, [{ address: "93.184.215.14", family: 4 }]);
  assert.equal(asked.AAAA, 2);
});

test("PROD-4.3r3-1 names in URLs of clients are looked up without the thread pool; names with opened networks by the system", async (t) => {
  const counts: Record<string, number> = {};
  const hook = createHook({
    init(_id, type) {
      counts[type] = (counts[type] ?? 0) + 1;
    },
  });
  t.after(() => hook.disable());
  const clock = makeClock(() => 0);
  const rate = { perSecond: 1, burst: 10 };
  const things = makeDocumentCache(
    {
      name: "document",
      bytesMax: 1,
      contentType: /^/,
      parse: (_url, text) => ok(text),
      lastGoodSeconds: 0,
    },
    {
      clock,
      timers: makeTimers(),
      budget: makeFetchBudget(clock, { fetchesPerMinuteBySource: rate, fetchesPerMinuteByHost: rate }),
      timeoutMs: 50,
    },
  );
  const look = async (privateNetworks: readonly string[]) => {
    for (const type of ["GETADDRINFOREQWRAP", "QUERYWRAP"]) counts[type] = 0;
    const found = await things.get({ ...supplied("https://name.invalid/"), privateNetworks }, "192.0.2.1");
    assert.ok(!found.ok);
    return [counts.GETADDRINFOREQWRAP, counts.QUERYWRAP];
  };
  hook.enable();
  assert.deepEqual(await look([]), [0, 2]);
  assert.deepEqual(await look(["10.0.0.0/8"]), [1, 0]);
});
