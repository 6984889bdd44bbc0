import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { JsonGeneralName } from "@peculiar/x509";
import {
  type Authority,
  bundle,
  derOf,
  makeKeyPem,
  publicJwk,
  type TrustDomain,
} from "../../../scripts/dev-keys.ts";
import {
  issueServerCertificate,
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  type SvidOptions,
  x509,
} from "../../../scripts/dev-pki.ts";
import type { FetchResult } from "../../../src/adapters/remote/fetch-timer.ts";
import { jwksSources } from "../../../src/adapters/remote/key-sets.ts";
import type { KeySources, SourceOptions } from "../../../src/adapters/remote/key-sources.ts";
import { bundleSources } from "../../../src/adapters/remote/trust-bundles.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { PolledKind, PolledRow, Store } from "../../../src/adapters/store/store.ts";
import {
  CLIENT_LAST_GOOD_SECONDS,
  EARLY_LOOK_SECONDS,
  KEY_SET_BYTES_MAX,
  LAST_GOOD_SECONDS,
  UNKNOWN_AGE_SECONDS,
} from "../../../src/limits/fetching.ts";
import type { RemoteDocument, SpiffeEndpoint } from "../../../src/settings/settings.ts";
import type { JwsHeader } from "../../../src/spec/rfc7515.ts";
import { parseBundle } from "../../../src/spec/spiffe/bundle.ts";
import { migratedFile } from "../../support/migrated.ts";
import { stop } from "../../support/stop.ts";
import { makeTime, makeTimers, type TestTime, type TestTimers } from "../../support/timers.ts";
import { until } from "../../support/until.ts";
import { keepSchema } from "../store/postgres/schema.ts";

const NOW_MS = 1_790_000_000_000;
const ISSUER = "https://idp.example";

type Page = { status?: number; type?: string; body: string; etag?: string };

/** The pages of the server by path; the tests change them. */
const pages = new Map<string, Page>();
const requests: string[] = [];
let authority: Authority;
let reach: Omit<RemoteDocument, "url">;
let origin: string;
let folder: string;
let one: TrustDomain;
let two: TrustDomain;
const server = { close: () => {} };

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate test "));
  authority = await makeAuthority("Test authority");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost", "127.0.0.1"]);
  const https = createServer({ key: keyPem, cert: certPem }, ({ url = "", headers }, response) => {
    requests.push(url);
    const page: Page = pages.get(url) ?? { status: 404, body: "" };
    const { status = 200, type = "application/json", body, etag } = page;
    if (etag !== undefined && headers["if-none-match"] === etag)
      return response.writeHead(304, { etag }).end();
    return response
      .writeHead(status, { "content-type": type, ...(etag !== undefined && { etag }) })
      .end(body);
  });
  https.listen(0, "127.0.0.1");
  await once(https, "listening");
  server.close = () => https.close();
  origin = `https://localhost:${(https.address() as AddressInfo).port}`;
  reach = { ca: authority.certPem, privateNetworks: ["127.0.0.0/8", "::1/128"] };
  [one, two] = await Promise.all([makeTrustDomain("one.example"), makeTrustDomain("two.example")]);
});

after(() => stop(server, () => rmSync(folder, { recursive: true, force: true })));

type Made = {
  changes: string[];
  time: TestTime;
  timers: TestTimers;
  notes: [name: string, FetchResult][];
};

/** The sources under test with their reports, their clock and the store that outlives them. */
async function open<T extends KeySources<never>>(
  t: TestContext,
  make: (options: SourceOptions) => T,
  store?: Store,
): Promise<Made & { sources: T; store: Store }> {
  const time = makeTime(NOW_MS);
  const timers = makeTimers();
  const changes: string[] = [];
  const notes: [string, FetchResult][] = [];
  const kept = store ?? (await openStore({ sqlite: await migratedFile() }));
  const sources = make({
    clock: time.clock,
    timers,
    rows: kept.polled,
    onChange: (name, { state, reason }) => {
      changes.push([name, state, ...(reason === undefined ? [] : [reason])].join(" "));
    },
    onFetch: (name, note) => notes.push([name, note]),
  });
  t.after(() => sources.stop());
  return { sources, changes, time, timers, notes, store: kept };
}

const issuerSources = (options: SourceOptions) => jwksSources("issuer_keys", options);

const header = (kid: string | undefined, alg = "ES256"): JwsHeader => ({
  alg,
  members: {},
  ...(kid !== undefined && { kid }),
});

/** The `x` of the key, or the reason why there is none. */
async function look(
  sources: KeySources<RemoteDocument>,
  name: string,
  kid: string | undefined,
  alg?: string,
) {
  const key = await sources.key(name, header(kid, alg));
  if (!key.ok) return key.error;
  assert.ok("x" in key.value);
  return key.value.x;
}

const xOf = (keyPem: string): string => publicJwk(keyPem).x;

/** The trust domain with another key under another kid. */
async function rotated(domain: TrustDomain, kid: string): Promise<TrustDomain> {
  return { ...domain, sequence: domain.sequence + 1, jwt: { kid, keyPem: await makeKeyPem() } };
}

let files = 0;
/** Replaces a bundle file, or writes anything else there, in one step, as an operator's tools do. */
function save(content: object | string | Buffer, file = join(folder, `bundle-${files++}.json`)): string {
  const data = typeof content === "string" || Buffer.isBuffer(content) ? content : JSON.stringify(content);
  writeFileSync(`${file}.new`, data);
  renameSync(`${file}.new`, file);
  return file;
}

function serve(path: string, content: object | string, page: Partial<Page> = {}): RemoteDocument {
  const body = typeof content === "string" ? content : JSON.stringify(content);
  pages.set(path, { body, ...page });
  return { ...reach, url: `${origin}${path}` };
}

// --- bundles by trust domain --------------------------------------------------------------------------------------

test("SBN-3-2, SFD-7.3-1, SFD-4.2-4, SPCA-6-1 never uses a key of another trust domain's bundle, even with the same kid", async (t) => {
  const { sources } = await open(t, bundleSources);
  const [here, there] = [one, two].map((domain) => ({ ...domain, jwt: { ...domain.jwt, kid: "k1" } }));
  assert.ok(here && there);
  const only = { ...there, jwt: { ...there.jwt, kid: "only-there" } };
  const both = bundle(there);
  both.keys.push(...bundle(only).keys);
  sources.configure(
    new Map<string, { file: string } | RemoteDocument>([
      [one.name, { file: save(bundle(here)) }],
      [two.name, serve("/two", both)],
    ]),
  );
  assert.equal(await look(sources, one.name, "k1"), xOf(one.jwt.keyPem));
  assert.equal(await look(sources, two.name, "k1"), xOf(two.jwt.keyPem));
  assert.equal(await look(sources, two.name, "only-there"), xOf(two.jwt.keyPem));
  assert.equal(await look(sources, one.name, "only-there"), "key_unknown");
});

test("one file of several trust domains is parsed once", async (t) => {
  const { sources } = await open(t, bundleSources);
  const where = { file: save(bundle(one)) };
  sources.configure(new Map([one.name, two.name].map((name) => [name, where])));
  const [here, there] = await Promise.all(
    [one.name, two.name].map((name) => sources.key(name, header(one.jwt.kid))),
  );
  assert.ok(here?.ok && there?.ok);
  assert.equal(there.value, here.value);
});

test("SBN-3-2 a trust domain that is not configured has no keys", async (t) => {
  const { sources } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  for (const name of [two.name, "ONE.example", "", "constructor", "__proto__"]) {
    assert.equal(await look(sources, name, one.jwt.kid), "source_unknown", name);
  }
});

test("a key is found only by its kid and algorithm", async (t) => {
  const { sources } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  assert.equal(await look(sources, one.name, one.jwt.kid, "RS256"), "key_unknown");
  assert.equal(await look(sources, one.name, one.jwt.kid.toUpperCase()), "key_unknown");
});

for (const [how, publish] of [
  ["a file", (content: object) => ({ file: save(content, join(folder, "rotated.json")) })],
  ["HTTPS", (content: object) => serve("/rotated", content)],
] as const) {
  test(`RFC8725-3.10-v1 a new key in ${how} is found at once by an early look, and the removed one no longer`, async (t) => {
    const { sources, changes, time } = await open(t, bundleSources);
    const next = await rotated(one, "next");
    const where = publish(bundle(one));
    sources.configure(new Map([[one.name, where]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    publish(bundle(next));
    assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
    time.nowMs += EARLY_LOOK_SECONDS * 1000;
    assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
    assert.deepEqual(changes, [`${one.name} updated`, `${one.name} updated`]);
  });
}

test("CONF-D-15, SFD-4.2-2 a bundle with a lower sequence is refused", async (t) => {
  const { sources, changes, time } = await open(t, bundleSources);
  const next = await rotated(one, "next");
  const file = save(bundle(next));
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
  save(bundle(one), file);
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
  assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
  assert.deepEqual(changes, [`${one.name} updated`, `${one.name} failed an older copy was offered`]);
});

test("SBN-4.1.3-3 an empty bundle is not a failure and revokes every key", async (t) => {
  const { sources, changes, time } = await open(t, bundleSources);
  const file = save(bundle(one));
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  save({ spiffe_sequence: one.sequence + 1, keys: [] }, file);
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  assert.equal(await look(sources, one.name, "unknown"), "key_unknown");
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
  assert.deepEqual(changes, [`${one.name} updated`, `${one.name} updated`]);
});

const broken: [name: string, content: () => object | string | Buffer, reason: string][] = [
  ["text that is not JSON", () => "{", "jwk_set_malformed"],
  ["an object without keys", () => ({ spiffe_sequence: 2 }), "jwk_set_malformed"],
  [
    "a sequence that is not a number",
    () => ({ keys: [], spiffe_sequence: "2" }),
    "bundle_sequence_malformed",
  ],
  ["bytes that are not UTF-8", () => Buffer.of(0x7b, 0xff, 0x7d), "the file is not UTF-8"],
  [
    "one byte more than the limit",
    () => `{"keys":[]}${" ".repeat(KEY_SET_BYTES_MAX - 10)}`,
    "the file is too large",
  ],
];
for (const [name, content, reason] of broken) {
  test(`SFD-4.2-1 ${name} instead of a bundle is reported, and the last good bundle stays in use`, async (t) => {
    const { sources, changes, time } = await open(t, bundleSources);
    const file = save(bundle(one));
    sources.configure(new Map([[one.name, { file }]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    save(content(), file);
    time.nowMs += EARLY_LOOK_SECONDS * 1000;
    assert.equal(await look(sources, one.name, "unknown"), "key_unknown");
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    assert.deepEqual(changes, [`${one.name} updated`, `${one.name} failed ${reason}`]);
  });
}

test("a bundle of the largest size is read", async (t) => {
  const { sources } = await open(t, bundleSources);
  const text = JSON.stringify(bundle(one));
  const file = save(text + " ".repeat(KEY_SET_BYTES_MAX - text.length));
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
});

test("MCPC-D-24 a trust domain is unavailable until it has a bundle, and again when the bundle is too old", async (t) => {
  const { sources, changes, time } = await open(t, bundleSources);
  const file = join(folder, "late.json");
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_unavailable");
  assert.deepEqual(changes, [`${one.name} failed the file cannot be read`]);
  save(bundle(one), file);
  sources.configure(new Map());
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  time.nowMs += LAST_GOOD_SECONDS * 1000 + 1;
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_silent");
});

test("SFD-5.2.1.3-2 a bundle over HTTPS with any content type is accepted", async (t) => {
  const { sources } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/typed", bundle(one), { type: "text/plain" })]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
});

test("RFC8725-3.10-v1 unknown kids cause one early look in each interval, shared by all callers", async (t) => {
  const { sources, timers } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/counted", bundle(one))]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  const fetches = () => requests.filter((path) => path === "/counted").length;
  const flood = async (seconds: number) => {
    const asked = Array.from({ length: 100 }, (_, index) => look(sources, one.name, `unknown-${index}`));
    await setImmediate();
    timers.pass(seconds * 1000);
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(["key_unknown"]));
  };
  await flood(0);
  assert.equal(fetches(), 2);
  await flood(EARLY_LOOK_SECONDS);
  assert.equal(fetches(), 3);
});

test("RFC8725-3.10-v1 a known key for another algorithm causes no early look", async (t) => {
  const { sources } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/unsuitable", bundle(one))]]));
  await look(sources, one.name, one.jwt.kid);
  assert.equal(await look(sources, one.name, one.jwt.kid, "RS256"), "key_unknown");
  assert.equal(requests.filter((path) => path === "/unsuitable").length, 1);
});

test("SFD-4.2-4, SFD-7.3-1 a trust domain has the authorities of its own bundle, and an early look finds new ones", async (t) => {
  const { sources } = await open(t, bundleSources);
  const [ofOne, ofTwo] = [one, two].map((domain) => derOf(domain.x509.certPem));
  assert.ok(ofOne && ofTwo);
  /** The authorities now, and after each look for others. */
  const anchors = async (name: string) => {
    const found: (readonly Buffer[] | string)[] = [];
    for await (const copy of sources.anchors(name)) {
      found.push(copy.ok ? copy.value.map((der) => Buffer.from(der)) : copy.error);
    }
    return found;
  };
  const file = save(bundle(one));
  sources.configure(
    new Map([
      [one.name, { file }],
      [two.name, { file: save(bundle(two)) }],
    ]),
  );
  assert.deepEqual(await anchors(two.name), [[ofTwo], [ofTwo]]);
  for await (const first of sources.anchors(one.name)) {
    assert.ok(first.ok);
    break;
  }
  save({ ...bundle({ ...two, sequence: one.sequence + 1 }) }, file);
  assert.deepEqual(await anchors(one.name), [[ofOne], [ofTwo]]);
  assert.deepEqual(await anchors("three.example"), ["source_unknown"]);
  sources.configure(new Map());
  assert.deepEqual(await anchors(one.name), ["source_unknown"]);
});

// --- key sets by issuer -------------------------------------------------------------------------------------------

const keySet = (keyPem: string, more: object = {}): object => ({
  keys: [{ ...publicJwk(keyPem), kid: "k1", use: "sig", alg: "ES256", ...more }],
});

const types: [type: string, accepted: boolean][] = [
  ["application/jwk-set+json", true],
  ["application/json", true],
  ["Application/JSON; charset=utf-8", true],
  ["application/json ;charset=utf-8", true],
  ["text/html", false],
  ["text/plain", false],
  ["application/jsonp", false],
  ["application/jwt", false],
  ["text/html, application/json", false],
];
for (const [type, accepted] of types) {
  test(`RFC8725-3.8-v1 an issuer's key set as ${type} is ${accepted ? "accepted" : "refused"}`, async (t) => {
    const { sources, changes } = await open(t, issuerSources);
    const keyPem = one.jwt.keyPem;
    sources.configure(new Map([[ISSUER, serve(`/type/${types.length}`, keySet(keyPem), { type })]]));
    assert.equal(await look(sources, ISSUER, "k1"), accepted ? xOf(keyPem) : "source_unavailable");
    assert.deepEqual(changes, [
      accepted ? `${ISSUER} updated` : `${ISSUER} failed the content type is not JSON`,
    ]);
  });
}

test("RFC8725-3.10-v1 an issuer's keys in a file are read again when a key is unknown, and by a reload", async (t) => {
  const { sources, changes } = await open(t, issuerSources);
  const file = save(keySet(one.jwt.keyPem));
  const where = new Map([[ISSUER, { file }]]);
  sources.configure(where);
  assert.equal(await look(sources, ISSUER, "k1"), xOf(one.jwt.keyPem));
  save(keySet(two.jwt.keyPem, { kid: "k2" }), file);
  assert.equal(await look(sources, ISSUER, "k2"), xOf(two.jwt.keyPem));
  save({ keys: [] }, file);
  sources.configure(where);
  await until(() => changes.length === 3, "the file is read again");
  save("{", file);
  sources.configure(where);
  await until(() => changes.length === 4, "the file is read again");
  assert.deepEqual(changes.slice(2), [`${ISSUER} updated`, `${ISSUER} failed jwk_set_malformed`]);
});

test("RFC8725-3.8-v1 never uses a key of another issuer, even with the same kid", async (t) => {
  const { sources } = await open(t, issuerSources);
  const other = `${ISSUER}/other`;
  sources.configure(
    new Map([
      [ISSUER, serve("/issuer/one", keySet(one.jwt.keyPem))],
      [other, serve("/issuer/two", keySet(two.jwt.keyPem))],
    ]),
  );
  assert.equal(await look(sources, ISSUER, "k1"), xOf(one.jwt.keyPem));
  assert.equal(await look(sources, other, "k1"), xOf(two.jwt.keyPem));
  assert.equal(await look(sources, `${ISSUER}/`, "k1"), "source_unknown");
});

test("RFC7517-9.2-1 a key set that contains a private key is refused", async (t) => {
  const { sources, changes } = await open(t, issuerSources);
  sources.configure(new Map([[ISSUER, serve("/private", keySet(one.jwt.keyPem, { d: "AAAA" }))]]));
  assert.equal(await look(sources, ISSUER, "k1"), "source_unavailable");
  assert.deepEqual(changes, [`${ISSUER} failed jwk_set_private`]);
});

test("the status of an unsuccessful answer is reported", async (t) => {
  const { sources, changes } = await open(t, issuerSources);
  sources.configure(new Map([[ISSUER, serve("/down", "{}", { status: 503 })]]));
  assert.equal(await look(sources, ISSUER, "k1"), "source_silent");
  assert.deepEqual(changes, [`${ISSUER} failed the status is 503`]);
});

// --- reconfiguration ----------------------------------------------------------------------------------------------

test("an unchanged source keeps its copy and is fetched anew in the background", async (t) => {
  const { sources, changes } = await open(t, bundleSources);
  const where = serve("/stays", bundle(one));
  sources.configure(new Map([[one.name, where]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  sources.configure(
    new Map<string, { file: string } | RemoteDocument>([
      [one.name, { ...where }],
      [two.name, { file: save(bundle(two)) }],
    ]),
  );
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  assert.equal(await look(sources, two.name, two.jwt.kid), xOf(two.jwt.keyPem));
  await until(() => requests.filter((path) => path === "/stays").length === 2, "the second fetch");
  assert.deepEqual(changes, [`${one.name} updated`, `${two.name} updated`]);
});

test("a source with another location is read from there, and the old copy is dropped", async (t) => {
  const { sources } = await open(t, bundleSources);
  const next = await rotated({ ...one, sequence: -1 }, "next");
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  sources.configure(new Map([[one.name, serve("/elsewhere", bundle(next))]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
  assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
});

test("SFD-6.3-1 a source that is no longer configured is removed at once", async (t) => {
  const { sources } = await open(t, bundleSources);
  const kept: [string, { file: string }] = [two.name, { file: save(bundle(two)) }];
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }], kept]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  sources.configure(new Map([kept]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_unknown");
  assert.equal(await look(sources, two.name, two.jwt.kid), xOf(two.jwt.keyPem));
});

test("SFD-6.3-1 a caller that waits for a removed source gets no key from it", async (t) => {
  const { sources, changes } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/ending", bundle(one))]]));
  const waiting = look(sources, one.name, one.jwt.kid);
  sources.configure(new Map());
  assert.equal(await waiting, "source_silent");
  assert.deepEqual(changes, []);
});

test("SFD-6.3-1 a caller that waits for the early refetch of a removed source gets no key from it", async (t) => {
  const { sources, time } = await open(t, bundleSources);
  const next = await rotated(one, "next");
  sources.configure(new Map([[one.name, serve("/ending-too", bundle(one))]]));
  await look(sources, one.name, one.jwt.kid);
  serve("/ending-too", bundle(next));
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  const waiting = look(sources, one.name, "next");
  await setImmediate();
  sources.configure(new Map());
  assert.equal(await waiting, "source_unknown");
});

test("CIMD-5.2-2 a key set is revalidated by its tag, kept if unchanged and replaced if changed", async (t) => {
  const { sources, changes, time, notes } = await open(t, issuerSources);
  const [old, next] = [await makeKeyPem(), await makeKeyPem()];
  sources.configure(new Map([[ISSUER, serve("/tagged", keySet(old, { kid: "old" }), { etag: '"1"' })]]));
  assert.equal(await look(sources, ISSUER, "old"), xOf(old));
  // If the set were read again, it would have no keys.
  serve("/tagged", { keys: [] }, { etag: '"1"' });
  for (let round = 0; round < 2; round++) {
    time.nowMs += EARLY_LOOK_SECONDS * 1000;
    assert.equal(await look(sources, ISSUER, "next"), "key_unknown");
    assert.equal(await look(sources, ISSUER, "old"), xOf(old));
  }
  time.nowMs += LAST_GOOD_SECONDS * 1000;
  assert.equal(await look(sources, ISSUER, "next"), "key_unknown");
  assert.equal(await look(sources, ISSUER, "old"), xOf(old), "a revalidated copy is fresh again");
  serve("/tagged", keySet(next, { kid: "next" }), { etag: '"2"' });
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  assert.equal(await look(sources, ISSUER, "next"), xOf(next));
  assert.deepEqual(changes, [`${ISSUER} updated`, `${ISSUER} updated`]);
  assert.deepEqual(new Set(notes.map(([, { failure }]) => failure)), new Set([undefined]));
});

test("CIMD-5.2-2 the tag of one URL is not sent to another", async (t) => {
  const { sources, time } = await open(t, issuerSources);
  const [old, next] = [await makeKeyPem(), await makeKeyPem()];
  const publish = (path: string, kid: string, keyPem: string) => {
    const { url } = serve(path, keySet(keyPem, { kid }), { etag: '"1"' });
    serve("/.well-known/oauth-authorization-server", { issuer: origin, jwks_uri: url });
  };
  publish("/keys/old", "old", old);
  sources.configure(new Map([[origin, { ...reach, discover: origin }]]));
  assert.equal(await look(sources, origin, "old"), xOf(old));
  publish("/keys/next", "next", next);
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  assert.equal(await look(sources, origin, "next"), xOf(next));
});

for (const host of ["localhost", "127.0.0.1"]) {
  test(`FEDC-D-9 what is permitted for an issuer holds for keys at ${host}, where its metadata put them`, async (t) => {
    const { sources } = await open(t, issuerSources);
    const { url } = serve(`/keys/at/${host}`, keySet(one.jwt.keyPem));
    const jwks_uri = url.replace("localhost", host);
    serve("/.well-known/oauth-authorization-server", { issuer: origin, jwks_uri });
    sources.configure(new Map([[origin, { ...reach, discover: origin }]]));
    assert.equal(await look(sources, origin, "k1"), xOf(one.jwt.keyPem));
  });
}

for (const [what, changed, failure] of [
  ["network", { privateNetworks: ["10.0.0.0/8"] }, /the name has an address that is not allowed$/],
  ["authority", { ca: undefined }, /UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED|not trusted|authority/],
] as const) {
  test(`PROD-4.3r2-1, EMA-7.4.1-3 keys at an address outside of the ${what} of its issuer are not fetched`, async (t) => {
    const { sources, notes } = await open(t, issuerSources);
    const path = `/keys/outside/${what}`;
    serve(path, keySet(one.jwt.keyPem));
    const { ca, ...others } = { ...reach, ...changed };
    const where = { ...others, ...(ca !== undefined && { ca }), url: `${origin}${path}` };
    sources.configure(new Map([[origin, where]]));
    assert.equal(await look(sources, origin, "k1"), "source_unavailable");
    assert.match(notes[0]?.[1].failure ?? "", failure);
    assert.equal(requests.includes(path), false);
  });
}

// --- stored copies ------------------------------------------------------------------------------------------------

/** Waits until a copy is stored, which callers that ask for a key do not wait for. */
async function stored(
  store: Store,
  kind: PolledKind,
  name: string,
  isIt: (row: PolledRow) => boolean = () => true,
) {
  let row: PolledRow | undefined;
  await until(async () => {
    row = await store.polled.find(kind, name);
    return row !== undefined && isIt(row);
  }, "the copy is stored");
  assert.ok(row);
  return row;
}

/** Loads once, waits until that is stored, and stops. */
async function loadAndStop(
  t: TestContext,
  make: (options: SourceOptions) => KeySources<RemoteDocument>,
  kind: PolledKind,
  name: string,
  where: RemoteDocument,
): Promise<Store> {
  const { sources, store } = await open(t, make);
  sources.configure(new Map([[name, where]]));
  await sources.key(name, header("any"));
  await stored(store, kind, name);
  sources.stop();
  return store;
}

const down = (path: string): void => void pages.set(path, { status: 503, body: "" });

test("JWKS-D-3 an RSA key without alg verifies PS256 in the key set of an issuer alone", async (t) => {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const where = serve("/rsa", { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "r" }] });
  for (const [kind, want] of [
    ["issuer_keys", true],
    ["client_keys", false],
  ] as const) {
    const { sources } = await open(t, (options) => jwksSources(kind, options));
    sources.configure(new Map([[ISSUER, where]]));
    assert.equal((await sources.key(ISSUER, header("r", "PS256"))).ok, want, kind);
    assert.equal((await sources.key(ISSUER, header("r", "RS256"))).ok, true, kind);
  }
});

const outages: [
  what: string,
  kind: PolledKind,
  make: (options: SourceOptions) => KeySources<RemoteDocument>,
  seconds: number,
][] = [
  ["trust bundle", "trust_bundle", bundleSources, LAST_GOOD_SECONDS],
  ["trusted issuer's key set", "issuer_keys", issuerSources, LAST_GOOD_SECONDS],
  [
    "client's key set",
    "client_keys",
    (options) => jwksSources("client_keys", options),
    CLIENT_LAST_GOOD_SECONDS,
  ],
];
for (const [what, kind, make, seconds] of outages) {
  test(`CONF-D-14, SFD-4.2-1 a stored ${what} is served after a restart in an outage for up to ${seconds} s from its load`, async (t) => {
    const path = `/outage/${kind}`;
    const keys = kind === "trust_bundle" ? bundle(one) : keySet(one.jwt.keyPem, { kid: one.jwt.kid });
    const where = serve(path, keys);
    const store = await loadAndStop(t, make, kind, one.name, where);
    down(path);
    for (const [later, want] of [
      [seconds, xOf(one.jwt.keyPem)],
      [seconds + 1, "source_silent"],
    ] as const) {
      const { sources, time } = await open(t, make, store);
      time.nowMs += later * 1000;
      sources.configure(new Map([[one.name, where]]));
      assert.equal(await look(sources, one.name, one.jwt.kid), want, `${later} s later`);
      sources.stop();
    }
  });
}

test("SBN-3-1, SFD-5.1-2 a stored bundle is served only for its trust domain, even if another has the same URL", async (t) => {
  const where = serve("/named", bundle(one));
  const store = await loadAndStop(t, bundleSources, "trust_bundle", one.name, where);
  down("/named");
  const { sources } = await open(t, bundleSources, store);
  sources.configure(
    new Map([
      [one.name, where],
      [two.name, where],
    ]),
  );
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  assert.equal(await look(sources, two.name, one.jwt.kid), "source_silent");
});

const places: [what: string, change: (where: RemoteDocument) => RemoteDocument, isServed: boolean][] = [
  ["the same URL", (where) => where, true],
  [
    "the same URL with other networks",
    (where) => ({ ...where, privateNetworks: [...where.privateNetworks, "10.0.0.0/8"] }),
    true,
  ],
  ["another URL", (where) => ({ ...where, url: `${where.url}?elsewhere` }), false],
  ["another authority for the same URL", ({ url, privateNetworks }) => ({ url, privateNetworks }), false],
];
for (const [index, [what, change, isServed]] of places.entries()) {
  test(`SFD-4.2-1 a stored copy ${isServed ? "is served" : "is not served"} for ${what}`, async (t) => {
    const path = `/place/${index}`;
    const where = serve(path, bundle(one));
    const store = await loadAndStop(t, bundleSources, "trust_bundle", one.name, where);
    down(path);
    const { sources } = await open(t, bundleSources, store);
    sources.configure(new Map([[one.name, change(where)]]));
    const want = isServed ? xOf(one.jwt.keyPem) : "source_unavailable";
    assert.equal(await look(sources, one.name, one.jwt.kid), want);
  });
}

test("SFD-4.2-2 after a restart every instance refuses a lower sequence and accepts a higher one", async (t) => {
  const next = await rotated(one, "next");
  const where = serve("/back", bundle(next));
  const store = await loadAndStop(t, bundleSources, "trust_bundle", one.name, where);
  serve("/back", bundle(one));
  for (let instance = 0; instance < 2; instance++) {
    const { sources, changes } = await open(t, bundleSources, store);
    sources.configure(new Map([[one.name, where]]));
    assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
    assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
    assert.deepEqual(changes, [
      `${one.name} updated the stored copy is taken`,
      `${one.name} failed an older copy was offered`,
    ]);
    sources.stop();
  }
  const third = await rotated(next, "third");
  serve("/back", bundle(third));
  const { sources } = await open(t, bundleSources, store);
  sources.configure(new Map([[one.name, where]]));
  assert.equal(await look(sources, one.name, "third"), xOf(third.jwt.keyPem));
});

test("SBN-4.1.3-3 keys revoked by an empty bundle stay revoked after a restart", async (t) => {
  const where = serve("/emptied", { spiffe_sequence: one.sequence + 1, keys: [] });
  const store = await loadAndStop(t, bundleSources, "trust_bundle", one.name, where);
  for (const offer of [() => down("/emptied"), () => serve("/emptied", bundle(one))]) {
    offer();
    const { sources } = await open(t, bundleSources, store);
    sources.configure(new Map([[one.name, where]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
    for await (const anchors of sources.anchors(one.name)) {
      assert.deepEqual(anchors, { ok: true, value: [] });
      break;
    }
    sources.stop();
  }
});

test("SFD-6.3-1 removing a trust domain removes its stored bundle and no other", async (t) => {
  const { sources, store } = await open(t, bundleSources);
  const [here, there] = [serve("/ends", bundle(one)), serve("/goes-on", bundle(two))];
  sources.configure(
    new Map([
      [one.name, here],
      [two.name, there],
    ]),
  );
  for (const { name } of [one, two]) {
    await sources.key(name, header("any"));
    await stored(store, "trust_bundle", name);
  }
  sources.configure(new Map([[two.name, there]]));
  const isGone = async () => (await store.polled.find("trust_bundle", one.name)) === undefined;
  await until(isGone, "the stored bundle is removed");
  assert.ok(await store.polled.find("trust_bundle", two.name));
});

test("SFD-4.2-1 a stored copy that is not a bundle is not served", async (t) => {
  const where = serve("/strange", bundle(one));
  const store = await loadAndStop(t, bundleSources, "trust_bundle", one.name, where);
  down("/strange");
  const row = await stored(store, "trust_bundle", one.name);
  await store.polled.save({ ...row, body: "{}" });
  const { sources } = await open(t, bundleSources, store);
  sources.configure(new Map([[one.name, where]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_silent");
  sources.stop();
  await store.polled.save(row);
  const again = await open(t, bundleSources, store);
  again.sources.configure(new Map([[one.name, where]]));
  assert.equal(await look(again.sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
});

const schema = keepSchema();
const STORES: [name: string, open: () => Promise<Store>][] = [
  ["SQLite", async () => openStore({ sqlite: await migratedFile() })],
  ["PostgreSQL", async () => (await schema()).store],
];
for (const [kind, openKept] of STORES) {
  test(`SFD-4.2-1 a copy in ${kind} with a load time in the future is served for ${UNKNOWN_AGE_SECONDS} s, over all starts`, async (t) => {
    const path = `/future/${kind}`;
    const where = serve(path, bundle(one));
    const store = await openKept();
    const first = await open(t, bundleSources, store);
    first.time.wallAheadMs = 2 * LAST_GOOD_SECONDS * 1000;
    first.sources.configure(new Map([[one.name, where]]));
    await first.sources.key(one.name, header("any"));
    await stored(store, "trust_bundle", one.name);
    first.sources.stop();
    down(path);
    for (const [seconds, want] of [
      [60, xOf(one.jwt.keyPem)],
      [UNKNOWN_AGE_SECONDS, xOf(one.jwt.keyPem)],
      [60 + UNKNOWN_AGE_SECONDS + 1, "source_silent"],
      [2 * LAST_GOOD_SECONDS, "source_silent"],
    ] as const) {
      const { sources, time } = await open(t, bundleSources, store);
      time.nowMs += seconds * 1000;
      sources.configure(new Map([[one.name, where]]));
      assert.equal(await look(sources, one.name, one.jwt.kid), want, `${seconds} s later`);
      await stored(store, "trust_bundle", one.name, (row) => row.loadedAtSeconds <= NOW_MS / 1000);
      sources.stop();
    }
  });
}

test("a bundle in a file is not stored", async (t) => {
  const { sources, store } = await open(t, bundleSources);
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  await sleep(20);
  assert.equal(await store.polled.find("trust_bundle", one.name), undefined);
});

test("loading works without the store", async (t) => {
  const { sources, store, changes } = await open(t, bundleSources);
  await store.close();
  sources.configure(new Map([[one.name, serve("/storeless", bundle(one))]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  assert.deepEqual(changes, [`${one.name} updated`]);
});

test("SFD-7.6-1 every request to an endpoint is reported with its failure, and the reading of a file is not", async (t) => {
  const { sources, time, notes } = await open(t, bundleSources);
  sources.configure(
    new Map<string, { file: string } | RemoteDocument>([
      [one.name, serve("/noted", bundle(one))],
      [two.name, { file: save(bundle(two)) }],
    ]),
  );
  await Promise.all([look(sources, one.name, one.jwt.kid), look(sources, two.name, two.jwt.kid)]);
  down("/noted");
  time.nowMs += EARLY_LOOK_SECONDS * 1000;
  await look(sources, one.name, "unknown");
  const seen = notes.map(([name, { failure }]) => [name, failure]);
  assert.deepEqual(seen, [
    [one.name, undefined],
    [one.name, "the status is 503"],
  ]);
});

test("SFD-5.2.1.4-2, PROD-4.4-7, SPCA-6.1-3 a bundle belongs to the trust domain in the configuration, not to one named by its URL or content", async (t) => {
  const { sources } = await open(t, bundleSources);
  const claiming = { ...bundle(two), trust_domain: two.name };
  sources.configure(new Map([[one.name, serve(`/${two.name}`, claiming)]]));
  assert.equal(await look(sources, one.name, two.jwt.kid), xOf(two.jwt.keyPem));
  assert.equal(await look(sources, two.name, two.jwt.kid), "source_unknown");
});

// --- endpoints that authenticate with an SVID ---------------------------------------------------------------------

const ENDPOINT = "spiffe://one.example/bundles";

type Shown = { keyPem: string; chainPem: string };
type Endpoint = { where: SpiffeEndpoint; asked: string[]; show(shown: Shown): void; content: object };

/** A bundle endpoint with this certificate that serves the bundle of its trust domain. */
async function openEndpoint(t: TestContext, shown: Shown, domain = one): Promise<Endpoint> {
  const asked: string[] = [];
  const endpoint = createServer({ key: shown.keyPem, cert: shown.chainPem }, ({ url = "" }, response) => {
    asked.push(url);
    response.end(JSON.stringify(opened.content));
  });
  endpoint.listen(0, "127.0.0.1");
  await once(endpoint, "listening");
  t.after(() => endpoint.close());
  const parsed = parseBundle(JSON.stringify(bundle(domain)));
  assert.ok(parsed.ok);
  const opened: Endpoint = {
    where: {
      url: `https://localhost:${(endpoint.address() as AddressInfo).port}/bundle`,
      privateNetworks: reach.privateNetworks,
      endpointSpiffeId: ENDPOINT,
      bootstrap: parsed.value,
    },
    asked,
    show: ({ keyPem, chainPem }) => endpoint.setSecureContext({ key: keyPem, cert: chainPem }),
    content: bundle(domain),
  };
  return opened;
}

/** With the current time, in which the certificates are valid. */
async function openNow(t: TestContext, store?: Store) {
  const made = await open(t, bundleSources, store);
  made.time.nowMs = Date.now();
  return made;
}

const svid = (options: SvidOptions = {}, id = ENDPOINT, domain = one) => mintX509Svid(domain, id, options);
const flags = x509.KeyUsageFlags;

test("SFD-5-1, SFD-5.2.2.4-1 a bundle from an endpoint that proves its SPIFFE ID is accepted, whatever its host name", async (t) => {
  const intermediate = await makeIntermediate(one.x509, "Intermediate");
  for (const shown of [await svid(), await svid({ issuer: intermediate })]) {
    const endpoint = await openEndpoint(t, shown);
    const { sources } = await openNow(t);
    sources.configure(new Map([[one.name, endpoint.where]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    assert.deepEqual(endpoint.asked, ["/bundle"]);
  }
});

const impostors: [what: string, shown: () => Promise<Shown>, why: string][] = [
  ["another SPIFFE ID", () => svid({}, `${ENDPOINT}/2`), "the endpoint has another SPIFFE ID"],
  [
    "its ID with other capitals",
    () => svid({}, ENDPOINT.replace("bundles", "Bundles")),
    "the endpoint has another SPIFFE ID",
  ],
  ["its ID under the authority of another trust domain", () => svid({}, ENDPOINT, two), "issuer_unknown"],
  [
    "its ID under another authority of the same name",
    async () => svid({}, ENDPOINT, await makeTrustDomain(one.name)),
    "issuer_signature_wrong",
  ],
  [
    "an SVID that has expired",
    () => svid({ notBefore: new Date(Date.now() - 7200_000), expSeconds: -60 }),
    "certificate_expired",
  ],
  ["an SVID that is a CA certificate", () => svid({ ca: true }), "svid_is_ca"],
  ["an SVID that may not sign", () => svid({ keyUsage: flags.keyEncipherment }), "svid_may_not_sign"],
  [
    "two SPIFFE IDs",
    () =>
      svid({
        names: [
          { type: "url", value: ENDPOINT },
          { type: "url", value: `${ENDPOINT}/2` },
        ],
      }),
    "svid_uri_repeated",
  ],
  [
    "a signer that belongs to another trust domain",
    async () => {
      const names: JsonGeneralName[] = [{ type: "url", value: "spiffe://two.example" }];
      return svid({ issuer: await makeIntermediate(one.x509, "Foreign", names) });
    },
    "svid_signer_of_other_domain",
  ],
  [
    "a web certificate for its host",
    async () => {
      const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
      return { keyPem, chainPem: certPem };
    },
    "issuer_unknown",
  ],
];
for (const [what, shown, why] of impostors) {
  test(`SFD-5.2.2.4-1 an endpoint with ${what} is sent no request`, async (t) => {
    const endpoint = await openEndpoint(t, await shown());
    const { sources, changes } = await openNow(t);
    sources.configure(new Map([[one.name, endpoint.where]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), "source_unavailable");
    assert.equal(changes.length, 1);
    assert.ok(changes[0]?.includes(why), changes.join());
    assert.deepEqual(endpoint.asked, []);
  });
}

test("SFD-7.2-1 neither profile falls back to the other", async (t) => {
  const web = serve("/profile", bundle(one));
  const endpoint = await openEndpoint(t, await svid());
  const { endpointSpiffeId, bootstrap } = endpoint.where;
  const ca = one.x509.certPem;
  const cases: [where: RemoteDocument | SpiffeEndpoint, want: string][] = [
    [web, xOf(one.jwt.keyPem)],
    [{ ...web, endpointSpiffeId, bootstrap }, "source_unavailable"],
    [endpoint.where, xOf(one.jwt.keyPem)],
    [{ url: endpoint.where.url, ...reach }, "source_unavailable"],
    [{ url: endpoint.where.url, ...reach, ca }, "source_unavailable"],
  ];
  for (const [where, want] of cases) {
    const { sources } = await openNow(t);
    sources.configure(new Map([[one.name, where]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), want, JSON.stringify(where));
    sources.stop();
  }
});

test("SFD-5.2.2.4-1 the newest bundle authenticates the endpoint, also after a restart, and replaces the bootstrap bundle", async (t) => {
  const next: TrustDomain = { ...(await makeTrustDomain(one.name)), sequence: one.sequence + 1 };
  const old = await svid();
  const young = await svid({}, ENDPOINT, next);
  const endpoint = await openEndpoint(t, old);
  const { sources, time, store, changes } = await openNow(t);
  const lookLater = async (kid: string) => {
    time.nowMs += EARLY_LOOK_SECONDS * 1000;
    await Array.fromAsync(sources.anchors(one.name));
    time.nowMs += EARLY_LOOK_SECONDS * 1000;
    return look(sources, one.name, kid);
  };
  sources.configure(new Map([[one.name, endpoint.where]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  endpoint.show(young);
  assert.equal(await lookLater("next"), "key_unknown");
  assert.match(
    String(changes.at(-1)),
    /issuer_signature_wrong/,
    "no bundle has contained the new authority yet",
  );
  endpoint.show(old);
  endpoint.content = { ...bundle(next), keys: [...bundle(one).keys, ...bundle(next).keys] };
  assert.equal(await lookLater(next.jwt.kid), xOf(next.jwt.keyPem));
  endpoint.show(young);
  endpoint.content = { ...bundle(next), spiffe_sequence: next.sequence + 1 };
  assert.equal(await lookLater(one.jwt.kid), "key_unknown");
  assert.equal(await look(sources, one.name, next.jwt.kid), xOf(next.jwt.keyPem));
  await stored(store, "trust_bundle", one.name, ({ sequence }) => sequence === next.sequence + 1);
  sources.stop();

  endpoint.show(old);
  endpoint.content = { ...bundle(one), spiffe_sequence: next.sequence + 2 };
  const later = await openNow(t, store);
  // After two days the copy is too old for callers but still authenticates the endpoint.
  later.time.nowMs += 2 * LAST_GOOD_SECONDS * 1000;
  endpoint.show(await svid({ expSeconds: 3 * LAST_GOOD_SECONDS }));
  later.sources.configure(new Map([[one.name, endpoint.where]]));
  assert.equal(await look(later.sources, one.name, one.jwt.kid), "source_unavailable");
  assert.match(String(later.changes[0]), /issuer_signature_wrong/);
  endpoint.show(await svid({ expSeconds: 3 * LAST_GOOD_SECONDS }, ENDPOINT, next));
  endpoint.content = { ...bundle(next), spiffe_sequence: next.sequence + 2 };
  later.time.nowMs += EARLY_LOOK_SECONDS * 1000;
  await Array.fromAsync(later.sources.anchors(one.name));
  assert.equal(await look(later.sources, one.name, next.jwt.kid), xOf(next.jwt.keyPem));
});
