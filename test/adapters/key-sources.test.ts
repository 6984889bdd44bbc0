import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { after, before, test } from "node:test";
import type { TrustDomain } from "../../scripts/dev-pki.ts";
import {
  bundle,
  derOf,
  issueServerCertificate,
  makeAuthority,
  makeKeyPem,
  makeTrustDomain,
  publicJwk,
} from "../../scripts/dev-pki.ts";
import type { KeySources, SourceChange } from "../../src/adapters/key-sources.ts";
import { bundleSources, freshSeconds, jwksSources } from "../../src/adapters/key-sources.ts";
import type { Clock, RemoteDocument } from "../../src/ports.ts";
import {
  FETCHED_SECONDS,
  FETCHED_SECONDS_MAX,
  FETCHED_SECONDS_MIN,
  KEY_SET_BYTES_MAX,
  LAST_GOOD_SECONDS,
  REFETCH_SECONDS,
} from "../../src/spec/limits.ts";
import type { JwsHeader } from "../../src/spec/rfc7515.ts";

const NOW_MS = 1_790_000_000_000;
const ISSUER = "https://idp.example";

type Page = { status?: number; type?: string; body: string };

/** What the server has at each path; the tests change it. */
const pages = new Map<string, Page>();
const requests: string[] = [];
let reach: Omit<RemoteDocument, "url">;
let origin: string;
let folder: string;
let one: TrustDomain;
let two: TrustDomain;
const server = { close: () => {} };

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate test "));
  const authority = await makeAuthority("Test authority");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
  const https = createServer({ key: keyPem, cert: certPem }, ({ url = "" }, response) => {
    requests.push(url);
    const { status = 200, type = "application/json", body } = pages.get(url) ?? { status: 404, body: "" };
    response.writeHead(status, { "content-type": type }).end(body);
  });
  https.listen(0, "127.0.0.1");
  await once(https, "listening");
  server.close = () => https.close();
  origin = `https://localhost:${(https.address() as AddressInfo).port}`;
  reach = { ca: authority.certPem, privateNetworks: ["127.0.0.0/8", "::1/128"] };
  [one, two] = await Promise.all([makeTrustDomain("one.example"), makeTrustDomain("two.example")]);
});

after(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The sources under test with what they reported, and the clock that they go by. */
function open<T extends KeySources>(t: TestContext, make: (clock: Clock, onChange: SourceChange) => T) {
  const time = { nowMs: NOW_MS };
  const changes: string[] = [];
  const sources = make({ nowMs: () => time.nowMs }, (name, { state, reason }) => {
    changes.push([name, state, ...(reason === undefined ? [] : [reason])].join(" "));
  });
  t.after(() => sources.stop());
  return { sources, changes, time };
}

const header = (kid: string | undefined, alg = "ES256"): JwsHeader => ({
  alg,
  members: {},
  ...(kid !== undefined && { kid }),
});

/** The `x` of the key, or why there is none. */
async function look(sources: KeySources, name: string, kid: string | undefined, alg?: string) {
  const key = await sources.key(name, header(kid, alg));
  if (!key.ok) return key.error;
  assert.ok("x" in key.value);
  return key.value.x;
}

const xOf = (keyPem: string): string => publicJwk(keyPem).x;

/** A trust domain with another key under another name. */
async function rotated(domain: TrustDomain, kid: string): Promise<TrustDomain> {
  return { ...domain, sequence: domain.sequence + 1, jwt: { kid, keyPem: await makeKeyPem() } };
}

let files = 0;
/** Puts a bundle, or anything, where a source finds it; whole, as an operator's tools do. */
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

test("SBN-3-2, SFD-7.3-1, SFD-4.2-4 the key of another trust domain's bundle is never used, though its kid is the same", async (t) => {
  const { sources } = open(t, bundleSources);
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

test("SBN-3-2 a trust domain that is not configured has no keys", async (t) => {
  const { sources } = open(t, bundleSources);
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  for (const name of [two.name, "ONE.example", "", "constructor", "__proto__"]) {
    assert.equal(await look(sources, name, one.jwt.kid), "source_unknown", name);
  }
});

test("a key is found by the name and the algorithm that it has, and by no other", async (t) => {
  const { sources } = open(t, bundleSources);
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  assert.equal(await look(sources, one.name, one.jwt.kid, "RS256"), "key_unknown");
  assert.equal(await look(sources, one.name, one.jwt.kid.toUpperCase()), "key_unknown");
});

for (const [how, publish] of [
  ["a file", (content: object) => ({ file: save(content, join(folder, "rotated.json")) })],
  ["HTTPS", (content: object) => serve("/rotated", content)],
] as const) {
  test(`RFC8725-3.10-v1 a key that is new in ${how} is found by the early look, and the removed one is gone`, async (t) => {
    const { sources, changes, time } = open(t, bundleSources);
    const next = await rotated(one, "next");
    const where = publish(bundle(one));
    sources.configure(new Map([[one.name, where]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    publish(bundle(next));
    assert.equal(await look(sources, one.name, "next"), "key_unknown");
    time.nowMs += REFETCH_SECONDS * 1000;
    assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
    assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
    assert.deepEqual(changes, [`${one.name} updated`, `${one.name} updated`]);
  });
}

test("SFD-4.2-2 a bundle of a lower sequence is not taken", async (t) => {
  const { sources, changes, time } = open(t, bundleSources);
  const next = await rotated(one, "next");
  const file = save(bundle(next));
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
  save(bundle(one), file);
  time.nowMs += REFETCH_SECONDS * 1000;
  assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
  assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
  assert.deepEqual(changes, [`${one.name} updated`, `${one.name} failed an older copy was offered`]);
});

test("SBN-4.1.3-3 an empty bundle is no failure: it revokes every key", async (t) => {
  const { sources, changes, time } = open(t, bundleSources);
  const file = save(bundle(one));
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  save({ spiffe_sequence: one.sequence + 1, keys: [] }, file);
  time.nowMs += REFETCH_SECONDS * 1000;
  assert.equal(await look(sources, one.name, "to look again"), "key_unknown");
  assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
  assert.deepEqual(changes, [`${one.name} updated`, `${one.name} updated`]);
});

const broken: [name: string, content: () => object | string | Buffer, reason: string][] = [
  ["text that is no JSON", () => "{", "jwk_set_malformed"],
  ["an object without keys", () => ({ spiffe_sequence: 2 }), "jwk_set_malformed"],
  ["a sequence that is no number", () => ({ keys: [], spiffe_sequence: "2" }), "bundle_sequence_malformed"],
  ["bytes that are no UTF-8", () => Buffer.of(0x7b, 0xff, 0x7d), "the file is not UTF-8"],
  [
    "one byte more than the cap",
    () => `{"keys":[]}${" ".repeat(KEY_SET_BYTES_MAX - 10)}`,
    "the file is too large",
  ],
];
for (const [name, content, reason] of broken) {
  test(`SFD-4.2-1 ${name} instead of a bundle keeps the last good one, and is reported`, async (t) => {
    const { sources, changes, time } = open(t, bundleSources);
    const file = save(bundle(one));
    sources.configure(new Map([[one.name, { file }]]));
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    save(content(), file);
    time.nowMs += REFETCH_SECONDS * 1000;
    assert.equal(await look(sources, one.name, "to look again"), "key_unknown");
    assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
    assert.deepEqual(changes, [`${one.name} updated`, `${one.name} failed ${reason}`]);
  });
}

test("a bundle of as many bytes as the cap allows is read", async (t) => {
  const { sources } = open(t, bundleSources);
  const text = JSON.stringify(bundle(one));
  const file = save(text + " ".repeat(KEY_SET_BYTES_MAX - text.length));
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
});

test("a trust domain without a bundle is unavailable until there is one, and past its ceiling again", async (t) => {
  const { sources, changes, time } = open(t, bundleSources);
  const file = join(folder, "late.json");
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_unavailable");
  assert.deepEqual(changes, [`${one.name} failed the file cannot be read`]);
  save(bundle(one), file);
  sources.configure(new Map());
  sources.configure(new Map([[one.name, { file }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  time.nowMs += LAST_GOOD_SECONDS * 1000 + 1;
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_unavailable");
});

test("SFD-5.2.1.3-2 a bundle is taken from HTTPS whatever its type is called", async (t) => {
  const { sources } = open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/typed", bundle(one), { type: "text/plain" })]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
});

test("RFC8725-3.10-v1 an unknown kid earns one early fetch, for all who ask and for all that they ask for", async (t) => {
  const { sources, time } = open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/counted", bundle(one))]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  const fetches = () => requests.filter((path) => path === "/counted").length;
  const flood = async () => {
    const asked = Array.from({ length: 100 }, (_, index) => look(sources, one.name, `stranger-${index}`));
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(["key_unknown"]));
  };
  await flood();
  assert.equal(fetches(), 1, "the first load is not long ago");
  time.nowMs += REFETCH_SECONDS * 1000;
  await flood();
  await flood();
  assert.equal(fetches(), 2);
});

test("RFC8725-3.10-v1 a known key of another algorithm earns no early fetch", async (t) => {
  const { sources, time } = open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/unsuitable", bundle(one))]]));
  await look(sources, one.name, one.jwt.kid);
  time.nowMs += REFETCH_SECONDS * 1000;
  assert.equal(await look(sources, one.name, one.jwt.kid, "RS256"), "key_unknown");
  assert.equal(requests.filter((path) => path === "/unsuitable").length, 1);
});

test("SFD-4.2-4, SFD-7.3-1 a trust domain has the authorities of its own bundle, and is looked at again for a new one", async (t) => {
  const { sources, time } = open(t, bundleSources);
  const [mine, theirs] = [one, two].map((domain) => derOf(domain.x509.certPem));
  assert.ok(mine && theirs);
  const anchors = async (name: string) => {
    const found = await sources.anchors(name);
    return found.ok ? found.value.map((der) => Buffer.from(der)) : found.error;
  };
  const file = save(bundle(one));
  sources.configure(
    new Map([
      [one.name, { file }],
      [two.name, { file: save(bundle(two)) }],
    ]),
  );
  assert.deepEqual(await anchors(one.name), [mine]);
  assert.deepEqual(await anchors(two.name), [theirs]);
  assert.equal(await anchors("three.example"), "source_unknown");

  save({ ...bundle({ ...two, sequence: one.sequence + 1 }) }, file);
  await sources.lookAgain(one.name);
  assert.deepEqual(await anchors(one.name), [mine], "too early");
  time.nowMs += REFETCH_SECONDS * 1000;
  await Promise.all([sources.lookAgain(one.name), sources.lookAgain("three.example")]);
  assert.deepEqual(await anchors(one.name), [theirs]);
  sources.configure(new Map());
  assert.equal(await anchors(one.name), "source_unknown");
});

// --- key sets by issuer -------------------------------------------------------------------------------------------

const keySet = (keyPem: string, more: object = {}): object => ({
  keys: [{ ...publicJwk(keyPem), kid: "k1", use: "sig", alg: "ES256", ...more }],
});

const types: [type: string, taken: boolean][] = [
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
for (const [type, taken] of types) {
  test(`RFC8725-3.8-v1 ${taken ? "takes" : "refuses"} an issuer's key set as ${type}`, async (t) => {
    const { sources, changes } = open(t, jwksSources);
    const keyPem = one.jwt.keyPem;
    sources.configure(new Map([[ISSUER, serve(`/type/${types.length}`, keySet(keyPem), { type })]]));
    assert.equal(await look(sources, ISSUER, "k1"), taken ? xOf(keyPem) : "source_unavailable");
    assert.deepEqual(changes, [taken ? `${ISSUER} updated` : `${ISSUER} failed no JSON`]);
  });
}

test("RFC8725-3.8-v1 the key of another issuer is never used, though its kid is the same", async (t) => {
  const { sources } = open(t, jwksSources);
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

test("RFC7517-9.2-1 a key set with a private key in it is refused as a whole", async (t) => {
  const { sources, changes } = open(t, jwksSources);
  sources.configure(new Map([[ISSUER, serve("/private", keySet(one.jwt.keyPem, { d: "AAAA" }))]]));
  assert.equal(await look(sources, ISSUER, "k1"), "source_unavailable");
  assert.deepEqual(changes, [`${ISSUER} failed jwk_set_private`]);
});

test("an issuer's answer that is no success is reported with its status", async (t) => {
  const { sources, changes } = open(t, jwksSources);
  sources.configure(new Map([[ISSUER, serve("/down", "{}", { status: 503 })]]));
  assert.equal(await look(sources, ISSUER, "k1"), "source_unavailable");
  assert.deepEqual(changes, [`${ISSUER} failed the status is 503`]);
});

// --- configured anew ----------------------------------------------------------------------------------------------

test("a source that stays as it was keeps its copy and is not fetched again", async (t) => {
  const { sources, changes } = open(t, bundleSources);
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
  assert.equal(requests.filter((path) => path === "/stays").length, 1);
  assert.deepEqual(changes, [`${one.name} updated`, `${two.name} updated`]);
});

test("a source that is elsewhere now is read from there, and nothing of the old copy is left", async (t) => {
  const { sources } = open(t, bundleSources);
  const next = await rotated({ ...one, sequence: -1 }, "next");
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  sources.configure(new Map([[one.name, serve("/elsewhere", bundle(next))]]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "key_unknown");
  assert.equal(await look(sources, one.name, "next"), xOf(next.jwt.keyPem));
});

test("SFD-6.3-1 a source that is no longer named is gone at once", async (t) => {
  const { sources } = open(t, bundleSources);
  const kept: [string, { file: string }] = [two.name, { file: save(bundle(two)) }];
  sources.configure(new Map([[one.name, { file: save(bundle(one)) }], kept]));
  assert.equal(await look(sources, one.name, one.jwt.kid), xOf(one.jwt.keyPem));
  sources.configure(new Map([kept]));
  assert.equal(await look(sources, one.name, one.jwt.kid), "source_unknown");
  assert.equal(await look(sources, two.name, two.jwt.kid), xOf(two.jwt.keyPem));
});

test("SFD-6.3-1 who still waits for a source that has ended gets no key from it", async (t) => {
  const { sources, changes } = open(t, bundleSources);
  sources.configure(new Map([[one.name, serve("/ending", bundle(one))]]));
  const waiting = look(sources, one.name, one.jwt.kid);
  sources.configure(new Map());
  assert.equal(await waiting, "source_unavailable");
  assert.deepEqual(changes, []);
});

test("SFD-6.3-1 who waits for the early look of a source that ends meanwhile gets no key from it", async (t) => {
  const { sources, time } = open(t, bundleSources);
  const next = await rotated(one, "next");
  sources.configure(new Map([[one.name, serve("/ending-too", bundle(one))]]));
  await look(sources, one.name, one.jwt.kid);
  serve("/ending-too", bundle(next));
  time.nowMs += REFETCH_SECONDS * 1000;
  const waiting = look(sources, one.name, "next");
  await new Promise((resolve) => setImmediate(resolve));
  sources.configure(new Map());
  assert.equal(await waiting, "source_unknown");
});

// --- the pace -----------------------------------------------------------------------------------------------------

const paces: [cacheControl: string, seconds: number][] = [
  ["", FETCHED_SECONDS],
  ["public", FETCHED_SECONDS],
  ["max-age=600", 600],
  ["public, max-age=600", 600],
  ["public,Max-Age=600,immutable", 600],
  ["s-maxage=600", FETCHED_SECONDS],
  ["max-age=soon", FETCHED_SECONDS],
  ["max-age=-1", FETCHED_SECONDS],
  ["max-age=29", FETCHED_SECONDS_MIN],
  ["max-age=30", FETCHED_SECONDS_MIN],
  ["max-age=3600", FETCHED_SECONDS_MAX],
  ["max-age=3601", FETCHED_SECONDS_MAX],
  ["max-age=999999999", FETCHED_SECONDS_MAX],
  ["no-store", FETCHED_SECONDS_MIN],
  ["max-age=600, no-cache", FETCHED_SECONDS_MIN],
];
for (const [cacheControl, seconds] of paces) {
  test(`a key set with Cache-Control "${cacheControl}" is fresh for ${seconds} seconds`, () => {
    assert.equal(freshSeconds(cacheControl), seconds);
  });
}
