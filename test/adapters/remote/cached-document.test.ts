/** Documents fetched on demand from a real server, under a clock that only the test moves. */
import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type DocumentKind, makeDocumentCache } from "../../../src/adapters/remote/cached-document.ts";
import { makeFetchBudget } from "../../../src/adapters/remote/fetch-budget.ts";
import {
  EARLY_LOOK_SECONDS,
  FETCHED_CACHE_BYTES_MAX,
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
  REFETCH_SECONDS,
  UNKNOWN_AGE_SECONDS,
} from "../../../src/limits/fetching.ts";
import { err, ok } from "../../../src/result.ts";
import type { Rate } from "../../../src/settings/sections.ts";
import type { SuppliedDocument } from "../../../src/settings/settings.ts";
import {
  answer,
  makeUnderworld,
  NAME,
  type Page,
  startNasty,
  supplied,
  type Underworld,
} from "../../support/nasty.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";

const HERE = "192.0.2.1";
const THERE = "192.0.2.2";
const PLENTY: Rate = { perSecond: 1_000, burst: 10_000 };
/** One fetch, and the next after a minute. */
const ONE: Rate = { perSecond: 1 / 60, burst: 1 };
const DOWN = answer("", { status: "503 Service Unavailable" });

let underworld: Underworld;
before(async () => {
  underworld = await makeUnderworld();
});

type Thing = { text: string };
const THING: DocumentKind<Thing> = {
  name: "document",
  bytesMax: 256 * 1024,
  contentType: /^application\/json$/,
  parse: (_url, text) => (text.startsWith("bad") ? err({ kind: "document_not_object" }) : ok({ text })),
  lastGoodSeconds: 0,
};

type SetUp = {
  kind?: Partial<DocumentKind<Thing>>;
  fetchesPerMinuteBySource?: Rate;
  fetchesPerMinuteByHost?: Rate;
  timeoutMs?: number;
};

async function setUp(
  t: TestContext,
  { kind, fetchesPerMinuteBySource = PLENTY, fetchesPerMinuteByHost = PLENTY, timeoutMs = 5_000 }: SetUp = {},
) {
  const server = await startNasty(t, underworld.certificates.good);
  const time = makeTime(Date.UTC(2026, 0, 1));
  const timers = makeTimers();
  const { clock } = time;
  const things = makeDocumentCache(
    { ...THING, ...kind },
    {
      clock,
      timers,
      budget: makeFetchBudget(clock, { fetchesPerMinuteBySource, fetchesPerMinuteByHost }),
      resolver: async () => [{ address: "127.0.0.1", family: 4 }],
      timeoutMs,
    },
  );
  const where = (path = "/"): SuppliedDocument => ({
    ...underworld.reach,
    ...supplied(`https://${NAME}:${server.port}${path}`),
  });
  const put = (page: Page | string, path = "/") =>
    server.pages.set(path, typeof page === "string" ? answer(page) : page);
  const text = ({ ok: good, ...found }: Awaited<ReturnType<typeof things.get>>) =>
    "value" in found ? found.value.text : [found.error.reason, found.error.waitSeconds].join(" ").trim();
  return {
    server,
    things,
    where,
    put,
    requests: () => server.requests.length,
    /** The text, or the reason and the seconds to wait. */
    get: async (path = "/", source = HERE) => text(await things.get(where(path), source)),
    /** The text after each early look that a request waits for. */
    async early(path = "/", source = HERE) {
      const texts: string[] = [];
      for await (const copy of things.copies(where(path), source)) texts.push(text(copy));
      return texts.slice(1).join();
    },
    pass: (seconds: number) => {
      time.nowMs += seconds * 1000;
      timers.pass(seconds * 1000);
    },
    setClock: (seconds: number) => {
      time.wallAheadMs = seconds * 1000;
    },
  };
}

// --- fresh --------------------------------------------------------------------------------------------------------

const SENT = "Thu, 01 Jan 2026 00:00:00 GMT";
const PACES: [fields: Record<string, string>, seconds: number][] = [
  [{}, FETCHED_SECONDS],
  [{ "cache-control": "max-age=600" }, 600],
  [{ "cache-control": "public, max-age=600", age: "500" }, 100],
  [{ "cache-control": "max-age=1" }, FETCHED_SECONDS_MIN],
  [{ "cache-control": "max-age=999999" }, FETCHED_SECONDS_MAX],
  [{ "cache-control": "no-store" }, FETCHED_SECONDS_MIN],
  [{ expires: "Thu, 01 Jan 2026 00:10:00 GMT", date: SENT }, 600],
  [{ expires: "0", date: SENT }, FETCHED_SECONDS_MIN],
];
for (const [fields, seconds] of PACES) {
  test(`CIMD-5-2, CIMD-5.2-1, CIMD-5.2-2, PROD-4.3-6 a document with ${JSON.stringify(fields)} is fresh for ${seconds} s`, async (t) => {
    const { get, put, pass, requests } = await setUp(t);
    put(answer("one", fields));
    assert.equal(await get(), "one");
    put(answer("two", fields));
    pass(seconds - 0.001);
    assert.equal(await get(), "one");
    assert.equal(requests(), 1);
    pass(0.001);
    assert.equal(await get(), "two");
    assert.equal(requests(), 2);
  });
}

for (const days of [-2, 2]) {
  test(`CIMD-5.2-2 a clock that is set by ${days} days neither prolongs nor hides the age of a document`, async (t) => {
    const { get, put, pass, setClock, requests } = await setUp(t, { kind: { lastGoodSeconds: 3600 } });
    put("one");
    assert.equal(await get(), "one");
    put("two");
    setClock(days * 86_400);
    pass(REFETCH_SECONDS);
    assert.equal(await get(), "two", "fetched anew");
    put(DOWN);
    setClock(0);
    pass(UNKNOWN_AGE_SECONDS - 1);
    assert.equal(await get(), "two");
    pass(1);
    assert.equal(await get(), "document_status");
    assert.equal(requests(), 4);
  });
}

test("a document fetched with one set of networks and authorities is not served with another", async (t) => {
  const { things, where, put, requests } = await setUp(t);
  put("one");
  const reaches = [{}, { privateNetworks: ["127.0.0.0/8"] }, { ca: `${underworld.reach.ca}\n` }];
  for (const reach of [...reaches, ...reaches]) {
    assert.ok((await things.get({ ...where(), ...reach }, HERE)).ok);
  }
  assert.equal(requests(), reaches.length);
});

// --- revalidation by ETag -----------------------------------------------------------------------------------------

const tagged =
  (text: string, etag: string, fields: Record<string, string> = {}): Page =>
  (socket, request) => {
    const same = request.fields.get("if-none-match") === etag;
    const page = same
      ? answer("", { status: "304 Not Modified", etag, "content-length": "0", ...fields })
      : answer(text, { etag, ...fields });
    page(socket, request);
  };

test("CIMD-5.2-2 an unchanged document is not sent again and is fresh for as long as the 304 answer says", async (t) => {
  const { things, where, get, put, pass, server, requests } = await setUp(t);
  put(tagged("one", '"1"'));
  const first = await things.get(where(), HERE);
  pass(FETCHED_SECONDS);
  put(tagged("two", '"1"', { "cache-control": "max-age=600" }));
  const second = await things.get(where(), HERE);
  assert.ok(first.ok && second.ok);
  assert.equal(second.value, first.value, "the same object");
  pass(599);
  assert.equal(await get(), "one");
  assert.equal(requests(), 2);
  pass(1);
  put(tagged("three", '"3"'));
  assert.equal(await get(), "three");
  pass(FETCHED_SECONDS);
  assert.equal(await get(), "three");
  const tags = server.requests.map(({ fields }) => fields.get("if-none-match"));
  assert.deepEqual(tags, [undefined, '"1"', '"1"', '"3"']);
});

test("CIMD-5.2-2 the tag is kept if a 304 answer does not repeat it or a fetch fails", async (t) => {
  const { get, put, pass, server } = await setUp(t);
  put(tagged("one", '"1"'));
  await get();
  pass(FETCHED_SECONDS);
  put(answer("", { status: "304 Not Modified" }));
  assert.equal(await get(), "one");
  pass(FETCHED_SECONDS);
  put(DOWN);
  assert.equal(await get(), "document_status");
  put(tagged("one", '"1"'));
  assert.equal(await get(), "one");
  const tags = server.requests.map(({ fields }) => fields.get("if-none-match"));
  assert.deepEqual(tags, [undefined, '"1"', '"1"', '"1"']);
});

test("CIMD-5.2-2 an unchanged document keeps its freshness time if the 304 answer has none", async (t) => {
  const { get, put, pass, requests } = await setUp(t);
  put(answer("one", { etag: '"1"', "cache-control": "max-age=600" }));
  await get();
  for (const [fields, seconds] of [
    [{}, 600],
    [{ "cache-control": "max-age=60" }, 60],
  ] as const) {
    pass(600);
    put(answer("", { status: "304 Not Modified", ...fields }));
    assert.equal(await get(), "one");
    const fetches = requests();
    pass(seconds - 0.001);
    assert.equal(await get(), "one");
    assert.equal(requests(), fetches);
    pass(0.001);
    await get();
    assert.equal(requests(), fetches + 1);
  }
});

test("CIMD-5-4 a 304 answer to a request without a tag is refused", async (t) => {
  const { get, put, pass } = await setUp(t);
  put(answer("", { status: "304 Not Modified" }));
  assert.equal(await get(), "document_status");
  put("one");
  assert.equal(await get(), "one");
  pass(FETCHED_SECONDS);
  put(answer("", { status: "304 Not Modified" }));
  assert.equal(await get(), "document_status");
});

// --- failures -----------------------------------------------------------------------------------------------------

const FAILURES: [what: string, page: Page, reason: string][] = [
  ["the server is down", DOWN, "document_status"],
  ["the content is bad", answer("bad"), "document_not_object"],
  ["the type is wrong", answer("two", { "content-type": "text/html" }), "document_type_refused"],
];
for (const [what, page, reason] of FAILURES) {
  test(`CIMD-5.2-3, CIMD-5.2-4 if ${what}, the failure is not cached and the next request fetches again`, async (t) => {
    const { get, put, requests } = await setUp(t);
    put(page);
    assert.deepEqual([await get(), await get()], [reason, reason]);
    put("three");
    assert.deepEqual([await get(), await get()], ["three", "three"]);
    assert.equal(requests(), 3);
  });

  test(`CIMD-5.1-1 if ${what}, a fresh copy is served and an expired one is not`, async (t) => {
    const { get, put, pass } = await setUp(t);
    put("one");
    assert.equal(await get(), "one");
    put(page);
    pass(FETCHED_SECONDS - 1);
    assert.equal(await get(), "one");
    pass(1);
    assert.deepEqual([await get(), await get()], [reason, reason]);
    put("three");
    assert.equal(await get(), "three");
  });

  test(`if ${what}, a last good copy is served until its limit, with a fetch at intervals`, async (t) => {
    const { get, put, pass, requests } = await setUp(t, { kind: { lastGoodSeconds: 3600 } });
    put("one");
    assert.equal(await get(), "one");
    put(page);
    pass(FETCHED_SECONDS);
    assert.deepEqual([await get(), await get()], ["one", "one"]);
    assert.equal(requests(), 2);
    pass(REFETCH_SECONDS - 0.001);
    assert.equal(await get(), "one");
    assert.equal(requests(), 2);
    pass(0.001);
    assert.equal(await get(), "one");
    assert.equal(requests(), 3);
    pass(3600 - FETCHED_SECONDS - REFETCH_SECONDS - 0.001);
    assert.equal(await get(), "one");
    pass(0.001);
    assert.deepEqual([await get(), await get()], [reason, reason]);
    put("three");
    assert.equal(await get(), "three");
  });
}

test("an exception while parsing reaches every waiting caller and is not cached", async (t) => {
  const parse = (_url: string, text: string) => {
    if (text === "fault") throw new TypeError("a bug");
    return ok({ text });
  };
  const { get, put, requests } = await setUp(t, { kind: { parse } });
  put("fault");
  const all = await Promise.allSettled([get(), get(), get()]);
  assert.ok(all.every((one) => one.status === "rejected" && one.reason instanceof TypeError));
  put("one");
  assert.equal(await get(), "one");
  assert.equal(requests(), 2);
});

// --- early looks --------------------------------------------------------------------------------------------------

test("RFC8725-3.10-v1 an early look is shared by all callers and limited to one per interval, even if it fails", async (t) => {
  const { get, early, put, pass, requests } = await setUp(t);
  const flood = async (seconds = 0) => {
    const texts = Array.from({ length: 100 }, () => early());
    await setImmediate();
    pass(seconds);
    return new Set(await Promise.all(texts));
  };
  put("one");
  assert.equal(await get(), "one");
  put("two");
  assert.deepEqual(await flood(), new Set(["two"]));
  assert.equal(requests(), 2);
  put(DOWN);
  assert.deepEqual(await flood(EARLY_LOOK_SECONDS), new Set(["two"]));
  assert.equal(requests(), 3);
  assert.deepEqual(await flood(EARLY_LOOK_SECONDS), new Set(["two"]));
  assert.equal(requests(), 4);
  assert.equal(await get(), "two");
});

test("RFC8725-3.10-v1 a caller that needs no early look does not wait for another caller's", async (t) => {
  const { get, early, put } = await setUp(t, { timeoutMs: 500 });
  put("one");
  await get();
  put(() => {});
  const waiting = early();
  let done = false;
  void waiting.then(() => {
    done = true;
  });
  await setImmediate();
  assert.equal(await get(), "one");
  assert.equal(done, false);
  assert.equal(await waiting, "one");
});

// --- fetch budget -------------------------------------------------------------------------------------------------

test("CIMD-9.1-1 a fetch counts for the source that starts it, not for sources that wait for it or find its result", async (t) => {
  const { get, put, requests } = await setUp(t, { fetchesPerMinuteBySource: ONE });
  put("one");
  put("two", "/two");
  assert.deepEqual(await Promise.all([get(), get("/", THERE), get("/", THERE)]), ["one", "one", "one"]);
  assert.equal(await get(), "one");
  assert.equal(await get("/two"), "fetches_too_many 60");
  assert.equal(requests(), 1);
  assert.equal(await get("/two", THERE), "two");
});

test("PROD-8.3-1 fetches of a host are limited over all sources and ports, and a refused one does not count for its source", async (t) => {
  const { get, things, put, where } = await setUp(t, { fetchesPerMinuteByHost: ONE });
  put("one");
  assert.equal(await get("/nothing"), "document_status");
  assert.equal(await get("/", THERE), "fetches_too_many 60");
  const elsewhere = await things.get({ ...where(), ...supplied(`https://${NAME}:1/`) }, THERE);
  assert.deepEqual(elsewhere, { ok: false, error: { reason: "fetches_too_many", waitSeconds: 60 } });
});

test("PROD-8.3-1 fetches of other URLs of a host do not use up the renewals of a known document", async (t) => {
  const { get, put, pass } = await setUp(t, { fetchesPerMinuteByHost: ONE });
  put("one");
  assert.equal(await get(), "one");
  assert.equal(await get("/nothing", THERE), "fetches_too_many 60");
  pass(FETCHED_SECONDS);
  assert.equal(await get("/nothing", THERE), "document_status");
  assert.equal(await get("/nothing", THERE), "fetches_too_many 60");
  put("two");
  assert.equal(await get(), "two");
});

test("PROD-8.3-1 without a budget an expired copy is not served, and a last good copy is", async (t) => {
  for (const [lastGoodSeconds, want] of [
    [0, "fetches_too_many 60"],
    [3600, "one"],
  ] as const) {
    const { get, put, pass } = await setUp(t, { kind: { lastGoodSeconds }, fetchesPerMinuteByHost: ONE });
    put("one");
    assert.equal(await get(), "one");
    pass(FETCHED_SECONDS);
    put(DOWN);
    await get();
    put("two");
    assert.equal(await get(), want);
  }
});

test("PROD-8.3-1 renewing a known document does not count for the source that asks first", async (t) => {
  const { get, put, pass } = await setUp(t, { fetchesPerMinuteBySource: ONE });
  put("one");
  assert.equal(await get(), "one");
  pass(FETCHED_SECONDS);
  await get("/nothing");
  assert.equal(await get("/more"), "fetches_too_many 60");
  put("two");
  assert.equal(await get(), "two");
});

// --- size ---------------------------------------------------------------------------------------------------------

test("PROD-8.4-2 the cache is limited in bytes and evicts the least recently used document", async (t) => {
  const { get, put, requests } = await setUp(t);
  const text = "x".repeat(THING.bytesMax);
  const count = FETCHED_CACHE_BYTES_MAX / THING.bytesMax;
  const paths = Array.from({ length: count + 1 }, (_, at) => `/${at}`);
  for (const path of paths) {
    put(text, path);
    assert.equal((await get(path)).length, text.length);
  }
  assert.equal(requests(), count + 1);
  await get("/1");
  assert.equal(requests(), count + 1);
  await get("/0");
  assert.equal(requests(), count + 2);
});
