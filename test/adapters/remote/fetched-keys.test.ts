/** Key sets at URLs supplied by clients, from a hostile server. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before, type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { makeKeyPem, publicJwk } from "../../../scripts/dev-keys.ts";
import { makeFetchBudget } from "../../../src/adapters/remote/fetch-budget.ts";
import { openFetchedKeys } from "../../../src/adapters/remote/fetched-keys.ts";
import {
  CLIENT_LAST_GOOD_SECONDS,
  EARLY_LOOK_SECONDS,
  FETCHED_SECONDS,
  KEY_SET_BYTES_MAX,
} from "../../../src/limits/fetching.ts";
import type { KeySetPlace } from "../../../src/settings/settings.ts";
import {
  answer,
  countSockets,
  makeUnderworld,
  NAME,
  type Page,
  startNasty,
  supplied,
  type Underworld,
} from "../../support/nasty.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";

const SOURCE = "192.0.2.1";
const PLENTY = { perSecond: 1_000, burst: 10_000 };
const DOWN = answer("", { status: "503 Service Unavailable" });

type PublicKey = { kid: string; [member: string]: unknown };
let underworld: Underworld;
let one: PublicKey;
let two: PublicKey;
let rsa: PublicKey;

before(async () => {
  underworld = await makeUnderworld();
  one = { kid: "one", ...publicJwk(await makeKeyPem()) };
  two = { kid: "two", ...publicJwk(await makeKeyPem()) };
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  rsa = { kid: "rsa", ...publicKey.export({ format: "jwk" }) };
});

async function setUp(t: TestContext, place: Partial<KeySetPlace> = {}) {
  const server = await startNasty(t, underworld.certificates.good);
  const time = makeTime(Date.UTC(2026, 0, 1));
  const timers = makeTimers();
  const { clock } = time;
  const fetched = openFetchedKeys({
    clock,
    timers,
    budget: makeFetchBudget(clock, { fetchesPerMinuteBySource: PLENTY, fetchesPerMinuteByHost: PLENTY }),
    resolver: async () => [{ address: "127.0.0.1", family: 4 }],
  });
  const where = { ...underworld.reach, ...supplied(`https://${NAME}:${server.port}/jwks.json`), ...place };
  return {
    serve: (page: Page) => server.pages.set("/jwks.json", page),
    publish: (...keys: object[]) => server.pages.set("/jwks.json", answer(JSON.stringify({ keys }))),
    requests: () => server.requests.length,
    pass: (seconds: number) => {
      time.nowMs += seconds * 1000;
      timers.pass(seconds * 1000);
    },
    /** The `kid` of the key, or the reason why there is none. */
    async look(kid: string | undefined, alg = "ES256") {
      const header = { alg, members: {}, ...(kid !== undefined && { kid }) };
      const key = await fetched.key(where, header, SOURCE);
      return key.ok ? key.value.kid : key.error.reason;
    },
  };
}

test("CIMD-8.2-3, PROD-2.2-14 a key is found by its kid and algorithm", async (t) => {
  const { look, publish, requests } = await setUp(t);
  publish(one, two, rsa);
  assert.deepEqual([await look("one"), await look("two"), await look("rsa", "RS256")], ["one", "two", "rsa"]);
  assert.equal(await look(undefined, "RS256"), "rsa");
  assert.equal(await look(undefined), "key_ambiguous");
  assert.equal(requests(), 1);
  assert.equal(await look("ONE"), "key_unknown");
});

test("RFC8725-3.1-v4 an RSA key without alg is for RS256 if its client has named no algorithm", async (t) => {
  const { look, publish } = await setUp(t);
  publish(one, rsa);
  assert.deepEqual([await look("rsa", "RS256"), await look("rsa", "PS256")], ["rsa", "key_unsuitable"]);
});

test("RFC8725-3.1-v1 a client that named one algorithm has keys only for that one", async (t) => {
  const { look, publish } = await setUp(t, { algorithm: "PS256" });
  publish(one, rsa);
  assert.deepEqual([await look("rsa", "PS256"), await look("rsa", "RS256")], ["rsa", "key_unsuitable"]);
  assert.equal(await look("one"), "key_unknown");
  const other = await setUp(t, { algorithm: "PS256" });
  other.publish({ ...rsa, alg: "RS256" });
  assert.equal(await other.look("rsa", "PS256"), "key_unknown");
});

test("RFC8725-3.10-v1 a new key is found at once by an early look, and the removed one no longer", async (t) => {
  const { look, publish, pass, requests } = await setUp(t);
  publish(one);
  assert.equal(await look("one"), "one");
  publish(two);
  const found = await Promise.all(Array.from({ length: 100 }, () => look("two")));
  assert.deepEqual(new Set(found), new Set(["two"]));
  assert.equal(requests(), 2);
  const gone = look("one");
  await setImmediate();
  pass(EARLY_LOOK_SECONDS);
  assert.equal(await gone, "key_unknown");
  assert.equal(requests(), 3);
});

test("RFC8725-3.10-v1 a request that fetched the set itself causes no second fetch", async (t) => {
  const { look, publish, requests } = await setUp(t);
  publish(one);
  assert.equal(await look("two"), "key_unknown");
  assert.equal(requests(), 1);
});

test("RFC8725-3.10-v1 a known key for another algorithm causes no early look", async (t) => {
  const { look, publish, requests } = await setUp(t);
  publish(one);
  await look("one");
  assert.equal(await look("one", "ES384"), "key_unsuitable");
  assert.equal(requests(), 1);
});

test("a set that can no longer be fetched is served for one hour", async (t) => {
  const { look, publish, serve, pass } = await setUp(t);
  publish(one);
  assert.equal(await look("one"), "one");
  serve(DOWN);
  pass(FETCHED_SECONDS);
  assert.equal(await look("one"), "one");
  pass(CLIENT_LAST_GOOD_SECONDS - FETCHED_SECONDS);
  assert.equal(await look("one"), "key_set_status");
});

test("an empty set is not a failure and revokes every key", async (t) => {
  const { look, publish, pass } = await setUp(t);
  publish(one);
  assert.equal(await look("one"), "one");
  publish();
  pass(FETCHED_SECONDS);
  assert.equal(await look("one"), "key_unknown");
});

const filled = (bytes: number): string => {
  const text = JSON.stringify({ keys: [one] });
  return text + " ".repeat(bytes - text.length);
};
const REFUSED: [id: string, what: string, page: () => Page, reason: string][] = [
  [
    "CIMD-8.7-1",
    "one byte more than the limit",
    () => answer(filled(KEY_SET_BYTES_MAX + 1)),
    "key_set_too_large",
  ],
  ["CIMD-5-5", "a redirect", () => answer("", { status: "302 Found", location: "/" }), "key_set_redirected"],
  ["CIMD-5-4", "another status", () => DOWN, "key_set_status"],
  ["CIMD-8.7-1", "an encoded set", () => answer("{}", { "content-encoding": "br" }), "key_set_encoded"],
  [
    "CIMD-8.7-1",
    "a set of another type",
    () => answer(filled(1000), { "content-type": "application/ld+json" }),
    "key_set_type_refused",
  ],
  ["RFC7517-5-1", "an array", () => answer(JSON.stringify([one])), "jwk_set_malformed"],
  [
    "RFC7517-9.2-1",
    "a set with a private key",
    () => answer(JSON.stringify({ keys: [one, { ...two, d: "AAAA" }] })),
    "jwk_set_private",
  ],
];
for (const [id, what, page, reason] of REFUSED) {
  test(`${id} ${what} is refused, and the failure is not cached`, async (t) => {
    const { look, publish, serve } = await setUp(t);
    serve(page());
    assert.equal(await look("one"), reason);
    publish(one);
    assert.equal(await look("one"), "one");
  });
}

for (const [what, type] of [
  ["the type of key sets", "application/jwk-set+json"],
  ["the type of JSON", "application/json; charset=utf-8"],
] as const) {
  test(`CIMD-8.7-1 a set of the largest size with ${what} is read`, async (t) => {
    const { look, serve } = await setUp(t);
    serve(answer(filled(KEY_SET_BYTES_MAX), { "content-type": type }));
    assert.equal(await look("one"), "one");
  });
}

const CLOSED: [what: string, place: Partial<KeySetPlace>, reason: string][] = [
  ["an address that is not open", { privateNetworks: [] }, "key_set_address_refused"],
  [
    "a literal of an address that is not open",
    { ...supplied("https://[::ffff:7f00:1]/"), privateNetworks: [] },
    "key_set_address_refused",
  ],
];
for (const [what, place, reason] of CLOSED) {
  test(`CIMD-8.6-1 no socket is opened for keys at ${what}`, async (t) => {
    const { look } = await setUp(t, place);
    const opened = countSockets(t);
    assert.equal(await look("one"), reason);
    assert.equal(opened(), 0);
  });
}

const places = [
  ["at a name that does not resolve: is final", [], {}, undefined],
  ["at a name of a network that the operator opened: is final", [], undefined, undefined],
  ["at an address that is not allowed: is final", [{ address: "127.0.0.1", family: 4 }], {}, undefined],
] as const;
for (const [what, addresses, where, unreachable] of places) {
  test(`MCPC-D-24 a key set that was never fetched ${what}`, async () => {
    const { clock } = makeTime(Date.UTC(2026, 0, 1));
    const fetched = openFetchedKeys({
      clock,
      timers: makeTimers(),
      budget: makeFetchBudget(clock, { fetchesPerMinuteBySource: PLENTY, fetchesPerMinuteByHost: PLENTY }),
      resolver: async () => [...addresses],
    });
    const reach = where === undefined ? underworld.reach : { privateNetworks: [] };
    const place = { ...reach, ...supplied(`https://${NAME}/jwks.json`) };
    const key = await fetched.key(place, { alg: "ES256", members: {} }, SOURCE);
    assert.equal(key.ok ? "" : key.error.unreachable, unreachable);
  });
}

for (const [what, reach, unreachable] of [
  ["a network that the operator opened: is final", undefined, undefined],
  ["a public network: may pass", { privateNetworks: [] }, true],
] as const) {
  test(`MCPC-D-24 a key set that is late for its request, in ${what}`, async () => {
    const { clock } = makeTime(Date.UTC(2026, 0, 1));
    const fetched = openFetchedKeys({
      clock,
      timers: makeTimers(),
      budget: makeFetchBudget(clock, { fetchesPerMinuteBySource: PLENTY, fetchesPerMinuteByHost: PLENTY }),
      resolver: () => Promise.withResolvers<never>().promise,
    });
    const place = { ...(reach ?? underworld.reach), ...supplied(`https://${NAME}/jwks.json`) };
    const late = { ...{ deadline: AbortSignal.abort(), fetched: AbortSignal.abort() }, suspect: false };
    const key = await fetched.key(place, { alg: "ES256", members: {} }, SOURCE, late);
    assert.deepEqual(key.ok || [key.error.reason, key.error.unreachable], ["key_set_timeout", unreachable]);
  });
}
