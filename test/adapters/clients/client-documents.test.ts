/** Metadata documents from hostile servers, over real TLS and real sockets, which are counted. */
import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { before, type TestContext, test } from "node:test";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import { makeKeyPem, publicJwk } from "../../../scripts/dev-keys.ts";
import { openClientDocuments } from "../../../src/adapters/clients/client-documents.ts";
import { makeFetchBudget } from "../../../src/adapters/remote/fetch-budget.ts";
import type { FetchResult } from "../../../src/adapters/remote/fetch-timer.ts";
import { HEADER_BYTES_MAX } from "../../../src/limits/connections.ts";
import { DOCUMENT_BYTES_MAX } from "../../../src/limits/fetching.ts";
import type { KeyWait } from "../../../src/ports.ts";
import { defined } from "../../../src/result.ts";
import type { DocumentSettings } from "../../../src/settings/client-metadata.ts";
import type { TrustDomain } from "../../../src/settings/settings.ts";
import { type DocumentUrl, parseDocumentUrl } from "../../../src/spec/cimd.ts";
import { inTime } from "../../support/in-time.ts";
import {
  answer,
  countSockets,
  drip,
  flood,
  makeUnderworld,
  NAME,
  OK_HEAD,
  type Page,
  raw,
  startNasty,
  supplied,
  type Underworld,
  watchAddress,
} from "../../support/nasty.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";

/** Long enough for every test that does not wait for it. */
const TIMEOUT_MS = 5_000;
/** Long enough for a connection on a busy machine, since what it sends is looked at. */
const SHORT_TIMEOUT_MS = 1_500;
const SOURCE = "192.0.2.1";
const HERE = "127.0.0.1";
const PLENTY = { perSecond: 1_000, burst: 10_000 };

let underworld: Underworld;
let jwk: object;

before(async () => {
  underworld = await makeUnderworld();
  jwk = { kid: "k1", ...publicJwk(await makeKeyPem()) };
});

type SetUp = {
  settings?: Partial<DocumentSettings>;
  certificate?: keyof Underworld["certificates"];
  /** The addresses of the name, look-up by look-up; the last element is repeated. */
  addresses?: readonly (readonly string[])[];
  timeoutMs?: number;
};

async function setUp(
  t: TestContext,
  { settings, certificate = "good", addresses = [[HERE]], timeoutMs = TIMEOUT_MS }: SetUp = {},
) {
  const server = await startNasty(t, underworld.certificates[certificate]);
  const origin = `https://${NAME}:${server.port}`;
  const time = makeTime(1_790_000_000_000);
  const { clock } = time;
  const asked: string[] = [];
  const notes: [url: string, FetchResult][] = [];
  const now: { settings: DocumentSettings } = {
    settings: {
      clientDocuments: { foreignKeys: false },
      clientOrigins: new Map([[origin, underworld.reach]]),
      trustDomains: new Map(),
      takesCertificates: true,
      ...settings,
    },
  };
  const documents = openClientDocuments({
    settings: () => now.settings,
    clock,
    timers: makeTimers(),
    budget: makeFetchBudget(clock, { fetchesPerMinuteBySource: PLENTY, fetchesPerMinuteByHost: PLENTY }),
    timeoutMs,
    async resolver(name) {
      asked.push(name);
      return toAnswers(addresses[asked.length - 1] ?? addresses.at(-1) ?? []);
    },
    onFetch: (url, note) => notes.push([url, note]),
  });
  const url = `${origin}/client.json`;
  const put = (page: Page, path = "/client.json") => server.pages.set(path, page);
  /** The `client_id` that was found, or the reason why there is none. */
  const find = async (one = url) => {
    const parsed = parseDocumentUrl(one);
    if (!parsed.ok) return parsed.error.kind;
    const found = await documents.find(parsed.value, SOURCE);
    return found.ok ? found.value.clientId : found.error.reason;
  };
  return { server, origin, url, put, find, documents, time, asked, notes, now };
}

const parsed = (text: string): DocumentUrl => ({ text, parsed: supplied(text).parsed });

const toAnswers = (addresses: readonly string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

const documentOf = (url: string, more: object = {}): string =>
  JSON.stringify({
    client_id: url,
    client_name: "Cart agent",
    token_endpoint_auth_method: "private_key_jwt",
    jwks: { keys: [jwk] },
    ...more,
  });

const paddedTo = (bytes: number, text: string): string => text + " ".repeat(bytes - Buffer.byteLength(text));

// --- addresses ----------------------------------------------------------------------------------------------------

/** Addresses of IANA's two special-purpose registries, and forms that embed such an address. */
const SPECIAL: [what: string, address: string][] = [
  ["this network", "0.0.0.0"],
  ["this network", "0.1.2.3"],
  ["private use", "10.0.0.1"],
  ["shared address space", "100.64.0.1"],
  ["shared address space", "100.127.255.254"],
  ["loopback", "127.0.0.1"],
  ["loopback", "127.255.255.254"],
  ["link local", "169.254.0.1"],
  ["cloud metadata", "169.254.169.254"],
  ["private use", "172.16.0.1"],
  ["private use", "172.31.255.254"],
  ["IETF protocol assignments", "192.0.0.1"],
  ["IPv4 dummy address", "192.0.0.8"],
  ["port control protocol anycast", "192.0.0.9"],
  ["NAT64 discovery", "192.0.0.170"],
  ["documentation", "192.0.2.1"],
  ["AS112", "192.31.196.1"],
  ["multicast tunnels", "192.52.193.1"],
  ["6to4 relays", "192.88.99.1"],
  ["private use", "192.168.0.1"],
  ["AS112", "192.175.48.1"],
  ["benchmarking", "198.18.0.1"],
  ["benchmarking", "198.19.255.254"],
  ["documentation", "198.51.100.1"],
  ["documentation", "203.0.113.1"],
  ["multicast", "224.0.0.1"],
  ["reserved", "240.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["cloud metadata in ordinary space", "168.63.129.16"],
  ["unspecified", "::"],
  ["loopback", "::1"],
  ["IPv4-compatible", "::7f00:1"],
  ["IPv4-mapped loopback", "::ffff:7f00:1"],
  ["IPv4-mapped ordinary space", "::ffff:808:808"],
  ["IPv4-translated", "::ffff:0:808:808"],
  ["NAT64 of loopback", "64:ff9b::7f00:1"],
  ["NAT64 of ordinary space", "64:ff9b::808:808"],
  ["local NAT64", "64:ff9b:1::808:808"],
  ["discard-only", "100::1"],
  ["dummy prefix", "100:0:0:1::1"],
  ["Teredo", "2001::7f00:1"],
  ["IETF protocol assignments", "2001:1::1"],
  ["benchmarking", "2001:2::1"],
  ["multicast tunnels", "2001:3::1"],
  ["AS112", "2001:4:112::1"],
  ["ORCHID", "2001:10::1"],
  ["ORCHIDv2", "2001:20::1"],
  ["drones", "2001:30::1"],
  ["the rest of the protocol assignments", "2001:1ff::1"],
  ["documentation", "2001:db8::1"],
  ["6to4 of loopback", "2002:7f00:1::1"],
  ["6to4 of ordinary space", "2002:808:808::1"],
  ["AS112", "2620:4f:8000::1"],
  ["documentation", "3fff::1"],
  ["the old test network", "3ffe::1"],
  ["segment routing", "5f00::1"],
  ["unique local", "fc00::1"],
  ["unique local", "fd12:3456:789a::1"],
  ["cloud metadata", "fd00:ec2::254"],
  ["link local", "fe80::1"],
  ["site local", "fec0::1"],
  ["multicast", "ff02::1"],
  ["unassigned space", "4000::1"],
];
for (const [what, address] of SPECIAL) {
  test(`CIMD-8.6-1, PROD-4.3r2-1 to ${address} (${what}), as a literal or by name, no socket is opened`, async (t) => {
    const { find, url, asked, server } = await setUp(t, {
      settings: { clientOrigins: new Map() },
      addresses: [[address]],
    });
    const opened = countSockets(t);
    const host = address.includes(":") ? `[${address}]` : address;
    assert.equal(await find(`https://${host}:${server.port}/client.json`), "document_address_refused");
    assert.deepEqual(asked, []);
    assert.equal(await find(url), "document_address_refused");
    assert.deepEqual(asked, [NAME]);
    assert.deepEqual([opened(), server.connections()], [0, 0]);
  });
}

test("CIMD-8.6-1 a network opened for one origin is not open for another port or another name", async (t) => {
  const { find, put, url, origin, server } = await setUp(t);
  const other = await startNasty(t, underworld.certificates.good);
  put(answer(documentOf(url)));
  const opened = countSockets(t);
  for (const elsewhere of [
    `https://${NAME}:${other.port}`,
    `https://other.example:${server.port}`,
    `https://${HERE}:${server.port}`,
  ]) {
    assert.equal(await find(`${elsewhere}/client.json`), "document_address_refused", elsewhere);
  }
  assert.equal(opened(), 0);
  assert.equal(await find(`${origin}/client.json`), url);
});

const SPELLINGS = [
  ["decimal", "https://2130706433/c", "url_host_refused"],
  ["octal", "https://0177.0.0.1/c", "url_host_refused"],
  ["octal with more zeros", "https://00000177.0.0.01/c", "url_host_refused"],
  ["hexadecimal", "https://0x7f000001/c", "url_host_refused"],
  ["hexadecimal by octet", "https://0x7f.0x0.0x0.0x1/c", "url_host_refused"],
  ["short", "https://127.1/c", "url_host_refused"],
  ["zero", "https://0/c", "url_host_refused"],
  ["with a trailing dot", "https://127.0.0.1./c", "url_host_refused"],
  ["mapped and dotted", "https://[::ffff:127.0.0.1]/c", "url_host_refused"],
  ["not compressed", "https://[0:0:0:0:0:0:0:1]/c", "url_host_refused"],
  ["with a zone", "https://[fe80::1%25lo]/c", "url_host_refused"],
  ["in full-width digits", "https://１２７.0.0.1/c", "url_character_refused"],
  ["with a full-width dot", "https://127。0.0.1/c", "url_character_refused"],
  ["with a soft hyphen", "https://local\u00adhost/c", "url_character_refused"],
  ["percent-encoded", "https://%31%32%37.0.0.1/c", "url_host_refused"],
] as const;
for (const [how, url, reason] of SPELLINGS) {
  test(`CIMD-8.6-1 an address written ${how} is refused`, async (t) => {
    const { find, asked } = await setUp(t);
    const opened = countSockets(t);
    assert.equal(await find(url), reason);
    assert.deepEqual([asked, opened()], [[], 0]);
  });
}

const URLS: [id: string, what: string, path: (origin: string) => string, reason: string][] = [
  ["CIMD-3-1", "plain http", (origin) => `${origin.replace("https", "http")}/c`, "url_not_https"],
  ["CIMD-3-2", "userinfo", (origin) => `${origin.replace("//", "//good.example@")}/c`, "url_userinfo"],
  ["CIMD-3-4", "a missing path", (origin) => origin, "url_path_missing"],
  ["CIMD-3-5", "two dots", (origin) => `${origin}/a/../client.json`, "url_dot_segment"],
  ["CIMD-3-5", "one dot", (origin) => `${origin}/./client.json`, "url_dot_segment"],
  ["CIMD-3-5", "encoded dots", (origin) => `${origin}/a/%2e%2E/client.json`, "url_dot_segment"],
  ["CIMD-3-6", "a query", (origin) => `${origin}/client.json?a=b`, "url_query"],
  ["CIMD-3-7", "a fragment", (origin) => `${origin}/client.json#a`, "url_fragment"],
  ["CIMD-3-9", "the bare path", (origin) => `${origin}/`, "url_path_bare"],
  ["CIMD-3-3", "port 0", () => `https://${NAME}:0/c`, "url_port_refused"],
  ["CIMD-3-3", "port 65536", () => `https://${NAME}:65536/c`, "url_port_refused"],
  ["CIMD-3-3", "an empty port", () => `https://${NAME}:/c`, "url_port_refused"],
  [
    "CIMD-3-8",
    "an upper-case host",
    (origin) => `${origin.replace("client", "Client")}/c`,
    "url_host_refused",
  ],
  ["CIMD-3-8", "a backslash", (origin) => `${origin}\\client.json`, "url_character_refused"],
  ["CIMD-3-8", "a tab", (origin) => `${origin}/cli\tent.json`, "url_character_refused"],
];
for (const [id, what, build, reason] of URLS) {
  test(`${id} a URL with ${what} without look-up and socket is refused`, async (t) => {
    const { find, origin, asked, put } = await setUp(t);
    put(answer(documentOf(build(origin))));
    const opened = countSockets(t);
    assert.equal(await find(build(origin)), reason);
    assert.deepEqual([asked, opened()], [[], 0]);
  });
}

// --- names with changing addresses --------------------------------------------------------------------------------

test("CIMD-8.6-1 the connection goes to the address that was checked, even if the name has another address by then", async (t) => {
  const { find, url, put, asked, server } = await setUp(t, { addresses: [[HERE], ["127.0.0.66"]] });
  const elsewhere = await watchAddress(t, "127.0.0.66", server.port);
  put(answer(documentOf(url)));
  const opened = countSockets(t);
  assert.equal(await find(), url);
  assert.deepEqual([asked.length, opened(), server.connections(), elsewhere()], [1, 1, 1, 0]);
});

test("CIMD-8.6-1 a name whose next look-up has a refused address is refused", async (t) => {
  const { find, url, put, time, asked, server } = await setUp(t, { addresses: [[HERE], ["127.0.0.66"]] });
  const elsewhere = await watchAddress(t, "127.0.0.66", server.port);
  put(answer(documentOf(url)));
  assert.equal(await find(), url);
  time.nowMs += 3600 * 1000;
  const opened = countSockets(t);
  assert.equal(await find(), "document_address_refused");
  assert.deepEqual([asked.length, opened(), elsewhere()], [2, 0, 0]);
});

for (const addresses of [
  [HERE, "127.0.0.66"],
  ["127.0.0.66", HERE],
  [HERE, HERE, HERE, "::1"],
  [HERE, "169.254.169.254"],
]) {
  test(`CIMD-8.6-1 a name is refused if one of its addresses is: ${addresses.join(", ")}`, async (t) => {
    const { find, url, put, server } = await setUp(t, { addresses: [addresses] });
    const elsewhere = await watchAddress(t, "127.0.0.66", server.port);
    put(answer(documentOf(url)));
    const opened = countSockets(t);
    assert.equal(await find(), "document_address_refused");
    assert.deepEqual([opened(), server.connections(), elsewhere()], [0, 0, 0]);
  });
}

test("CIMD-8.6-1 a name without addresses is refused", async (t) => {
  const { find } = await setUp(t, { addresses: [[]] });
  const opened = countSockets(t);
  assert.equal(await find(), "document_name_unresolved");
  assert.equal(opened(), 0);
});

// --- server certificates ------------------------------------------------------------------------------------------

const CERTIFICATES = [
  ["that has expired", "expired", "document_certificate_expired"],
  ["that is not valid yet", "notYetValid", "document_certificate_not_yet_valid"],
  ["of another name", "otherName", "document_certificate_name_wrong"],
  ["signed by itself", "selfSigned", "document_certificate_untrusted"],
  ["of another authority", "foreign", "document_certificate_untrusted"],
  ["of another authority that is sent along", "foreignWithRoot", "document_certificate_untrusted"],
  ["of an intermediate of another authority", "foreignWithIntermediate", "document_certificate_untrusted"],
] as const;
for (const [what, certificate, reason] of CERTIFICATES) {
  test(`PROD-4.3r1-1 a server with a certificate ${what} is sent no request`, async (t) => {
    const { find, url, put, server } = await setUp(t, { certificate });
    put(answer(documentOf(url)));
    assert.equal(await find(), reason);
    assert.deepEqual([server.connections(), server.requests.length], [1, 0]);
  });
}

test("PROD-4.3r1-1 a server without TLS and one that never answers the handshake are refused", async (t) => {
  const sockets: Socket[] = [];
  const plain = createTcpServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
  });
  const mute = createTcpServer((socket) => sockets.push(socket));
  for (const [server, reason] of [
    [plain, "document_tls_failed"],
    [mute, "document_timeout"],
  ] as const) {
    server.listen(0, HERE);
    await once(server, "listening");
    t.after(() => server.close());
    const origin = `https://${NAME}:${(server.address() as AddressInfo).port}`;
    const { find } = await setUp(t, {
      settings: { clientOrigins: new Map([[origin, underworld.reach]]) },
      timeoutMs: SHORT_TIMEOUT_MS,
    });
    assert.equal(await find(`${origin}/client.json`), reason);
  }
  for (const socket of sockets) socket.destroy();
});

// --- refused answers ----------------------------------------------------------------------------------------------

const chunk = (text: string, extension = ""): string =>
  `${text.length.toString(16)}${extension}\r\n${text}\r\n`;
const CHUNKED = OK_HEAD.replace("connection: close", "transfer-encoding: chunked");
const BOMB = Buffer.alloc(10 * 1024 * 1024);
/** A better one takes half a second and makes no other bomb. */
const QUICKLY = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

/** `good` is the valid document. */
const ANSWERS: [id: string, what: string, page: (good: string) => Page, reason: string][] = [
  ...[
    "301 Moved Permanently",
    "302 Found",
    "303 See Other",
    "307 Temporary Redirect",
    "308 Permanent Redirect",
  ].map((status): (typeof ANSWERS)[number] => [
    "CIMD-5-5, PROD-4.3-5",
    `a redirect, ${status}`,
    (good) => answer(good, { status, location: "/elsewhere" }),
    "document_redirected",
  ]),
  ...[
    "201 Created",
    "203 Non-Authoritative Information",
    "204 No Content",
    "206 Partial Content",
    "300 Multiple Choices",
    "304 Not Modified",
    "401 Unauthorized",
    "404 Not Found",
    "500 Internal Server Error",
    "999 Whatever",
  ].map((status): (typeof ANSWERS)[number] => [
    "CIMD-5-4, CIMD-4-3, PROD-4.3-5",
    `the status ${status}`,
    (good) => answer(good, { status }),
    "document_status",
  ]),
  ...[
    "text/html",
    "text/json",
    "text/plain",
    "application/jsonp",
    "application/jwt",
    "application/+json",
    "application/a b+json",
    "json",
    "text/html, application/json",
    "image/json+svg",
  ].map((type): (typeof ANSWERS)[number] => [
    "CIMD-4-4",
    `the type ${type}`,
    (good) => answer(good, { "content-type": type }),
    "document_type_refused",
  ]),
  [
    "CIMD-4-4",
    "a missing type",
    (good) => raw(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${good}`),
    "document_type_refused",
  ],
  [
    "CIMD-8.7-1, PROD-4.3r3-2",
    "5 KiB and one byte",
    (good) => answer(paddedTo(DOCUMENT_BYTES_MAX + 1, good)),
    "document_too_large",
  ],
  [
    "CIMD-8.7-1",
    "5 KiB and one byte, ended by the connection",
    (good) => raw(OK_HEAD + paddedTo(DOCUMENT_BYTES_MAX + 1, good)),
    "document_too_large",
  ],
  [
    "CIMD-8.7-1",
    "5 KiB and one byte in chunks",
    (good) => raw(`${CHUNKED}${chunk(paddedTo(DOCUMENT_BYTES_MAX, good))}${chunk(" ")}0\r\n\r\n`),
    "document_too_large",
  ],
  ["CIMD-8.7-1", "an endless body", (good) => flood(OK_HEAD + good, " ".repeat(1024)), "document_too_large"],
  [
    "CIMD-8.7-1",
    "an endless body in chunks of one byte",
    (good) => flood(CHUNKED + chunk(good), chunk(" ").repeat(1024)),
    "document_too_large",
  ],
  [
    "CIMD-8.7-1",
    "gzip",
    (good) => answer(gzipSync(good), { "content-encoding": "gzip" }),
    "document_encoded",
  ],
  [
    "CIMD-8.7-1",
    "deflate",
    (good) => answer(deflateSync(good), { "content-encoding": "deflate" }),
    "document_encoded",
  ],
  [
    "CIMD-8.7-1",
    "brotli",
    (good) => answer(brotliCompressSync(good), { "content-encoding": "br" }),
    "document_encoded",
  ],
  [
    "CIMD-8.7-1",
    "a gzip bomb",
    () => answer(gzipSync(BOMB), { "content-encoding": "gzip" }),
    "document_encoded",
  ],
  [
    "CIMD-8.7-1",
    "a brotli bomb",
    () => answer(brotliCompressSync(BOMB, QUICKLY), { "content-encoding": "br" }),
    "document_encoded",
  ],
  [
    "CIMD-8.7-1",
    "the encoding identity",
    (good) => answer(good, { "content-encoding": "identity" }),
    "document_encoded",
  ],
  ["CIMD-8.7-1", "an empty encoding", (good) => answer(good, { "content-encoding": "" }), "document_encoded"],
  [
    "CIMD-8.7-1",
    "a compressed transfer coding",
    (good) => answer(gzipSync(good), { "transfer-encoding": "gzip", "content-length": "" }),
    "document_protocol",
  ],
  ["PROD-4.3r3-1", "no answer", () => () => {}, "document_timeout"],
  ["PROD-4.3r3-1", "a body that is sent slowly", (good) => drip(OK_HEAD + good, " "), "document_timeout"],
  [
    "PROD-4.3r3-1",
    "a header that is sent slowly",
    () => drip("HTTP/1.1 200 OK\r\n", "a: b\r\n"),
    "document_timeout",
  ],
  ["PROD-4.3r3-1", "a status line that is sent slowly", () => drip("HTTP/1.1 200 ", "a"), "document_timeout"],
  [
    "PROD-4.3r3-1",
    "interim answers that are sent slowly",
    () => drip("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
    "document_timeout",
  ],
  [
    "PROD-4.3r3-1",
    "a body shorter than its length on an open connection",
    (good) => raw(OK_HEAD.replace("connection: close", "content-length: 4000") + good, { open: true }),
    "document_timeout",
  ],
  [
    "CIMD-8.7-1",
    "endless fields",
    () => flood("HTTP/1.1 200 OK\r\n", "a: b\r\n".repeat(100)),
    "document_headers_too_large",
  ],
  [
    "CIMD-8.7-1",
    "one endless field",
    () => flood("HTTP/1.1 200 OK\r\na: ", "b".repeat(1024)),
    "document_headers_too_large",
  ],
  [
    "CIMD-8.7-1",
    "an endless reason phrase",
    () => flood("HTTP/1.1 200 ", "b".repeat(1024)),
    "document_headers_too_large",
  ],
  [
    "CIMD-8.7-1",
    "a header that is too large",
    (good) => answer(good, { "x-filler": "x".repeat(HEADER_BYTES_MAX) }),
    "document_headers_too_large",
  ],
  ...["100 Continue", "102 Processing", "103 Early Hints", "199 Whatever"].map(
    (status): (typeof ANSWERS)[number] => [
      "CIMD-8.7-1",
      `endless interim answers, ${status}`,
      () => flood("", `HTTP/1.1 ${status}\r\n\r\n`.repeat(100)),
      "document_too_large",
    ],
  ),
  [
    "CIMD-8.7-1",
    "large interim answers",
    () => flood("", `HTTP/1.1 103 Early Hints\r\nlink: ${"x".repeat(8000)}\r\n\r\n`),
    "document_too_large",
  ],
  [
    "CIMD-8.7-1",
    "endless trailers",
    (good) => flood(`${CHUNKED}${chunk(good)}0\r\n`, "a: b\r\n".repeat(100)),
    "document_headers_too_large",
  ],
  [
    "CIMD-8.7-1",
    "large chunk extensions",
    (good) => flood(CHUNKED + chunk(good), chunk(" ", `;${"x".repeat(8000)}`)),
    "document_too_large",
  ],
  [
    "CIMD-8.7-1",
    "an endless chunk extension",
    (good) => flood(`${CHUNKED}${chunk(good)}1;`, "x".repeat(1024)),
    "document_protocol",
  ],
  [
    "CIMD-5.1-1",
    "a body shorter than its length",
    (good) => raw(OK_HEAD.replace("connection: close", "content-length: 4000") + good),
    "document_broke_off",
  ],
  [
    "CIMD-5.1-1",
    "a body that ends within a chunk",
    (good) => raw(`${CHUNKED}ff0\r\n${good}`),
    "document_broke_off",
  ],
  [
    "CIMD-5.1-1",
    "a body longer than its length",
    (good) => answer(`${good}{}`, { "content-length": String(good.length) }),
    "document_protocol",
  ],
  [
    "CIMD-5.1-1",
    "two Content-Length fields",
    (good) => answer(good, { "Content-Length": "2" }),
    "document_protocol",
  ],
  [
    "CIMD-5.1-1",
    "a negative length",
    (good) => answer(good, { "content-length": "-1" }),
    "document_protocol",
  ],
  [
    "CIMD-5.1-1",
    "a length beside a chunked body",
    (good) => answer(chunk(good), { "transfer-encoding": "chunked" }),
    "document_protocol",
  ],
  ["CIMD-5.1-1", "a connection closed without an answer", () => raw(""), "document_broke_off"],
  ["CIMD-5.1-1", "another protocol", () => raw("220 mail.example ready\r\n"), "document_protocol"],
  ["CIMD-5.1-1", "HTTP/0.9", (good) => raw(good), "document_protocol"],
  ["CIMD-5.1-1", "a frame of HTTP/2", () => raw(Buffer.of(0, 0, 0, 4, 0, 0, 0, 0, 0)), "document_protocol"],
  [
    "CIMD-5.1-1",
    "a switch to another protocol",
    () => raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
    "document_protocol",
  ],
  ["CIMD-5.1-1", "a NUL in a field", (good) => answer(good, { a: "b\0c" }), "document_protocol"],
  [
    "PROD-4.3-2",
    "another encoding than UTF-8",
    (good) => answer(Buffer.from(good, "utf16le")),
    "document_json_malformed",
  ],
  ["PROD-4.3-2", "bytes that are not UTF-8", () => answer(Buffer.of(0x22, 0xe4, 0x22)), "document_not_utf8"],
  ["PROD-4.3-2", "a byte order mark", (good) => answer(`\ufeff${good}`), "document_not_utf8"],
  ["PROD-4.3-2", "a body that is not JSON", () => answer("<html>"), "document_json_malformed"],
  [
    "PROD-4.3-2",
    "a repeated member",
    (good) => answer(good.replace("{", '{"client_id":"x",')),
    "document_json_duplicate_member",
  ],
  ["PROD-4.3-2", "an array instead of an object", (good) => answer(`[${good}]`), "document_not_object"],
  [
    "CIMD-4-2",
    "another client's document",
    (good) => answer(good.replace("client.json", "other.json")),
    "document_client_id_differs",
  ],
  [
    "CIMD-4-2",
    "another spelling of its own URL",
    (good) => answer(good.replace("https://", "HTTPS://")),
    "document_client_id_differs",
  ],
  ["CIMD-4-1", "a missing client_id", () => answer("{}"), "document_client_id_missing"],
  ["CIMD-4.1-2", "a secret", (good) => answer(good.replace("{", '{"client_secret":"s",')), "document_secret"],
];
for (const [id, what, build, reason] of ANSWERS) {
  test(`${id} ${what} is refused`, async (t) => {
    const timeoutMs = reason === "document_timeout" ? SHORT_TIMEOUT_MS : TIMEOUT_MS;
    const { find, url, put, server, notes } = await setUp(t, { timeoutMs });
    put(build(documentOf(url)));
    put(answer(documentOf(url)), "/elsewhere");
    assert.equal(await find(), reason);
    assert.deepEqual(
      server.requests.map(({ path }) => path),
      ["/client.json"],
    );
    assert.deepEqual([notes.length, notes[0]?.[0], typeof notes[0]?.[1].failure], [1, url, "string"]);
    // CIMD-5.2-3, CIMD-5.2-4: a failure is not cached, so the next request fetches again.
    put(answer(documentOf(url)));
    assert.equal(await find(), url);
  });
}

// --- accepted answers ---------------------------------------------------------------------------------------------

test("CIMD-5-1, CIMD-7.1-2, CIMD-3-10, PROD-1.6-3, PROD-2.1-4, PROD-4.3-1 a document becomes a client and is fetched at exactly its URL", async (t) => {
  const { documents, url, put, server, notes } = await setUp(t);
  put(
    answer(
      documentOf(url, {
        grant_types: ["client_credentials", "password"],
        scope: "a b",
        workload: "spiffe://td.example/x",
      }),
    ),
  );
  const found = await documents.find(parsed(url), SOURCE);
  assert.deepEqual(found, {
    ok: true,
    value: {
      clientId: url,
      source: "metadata_document",
      claimedName: "Cart agent",
      auth: { method: "private_key_jwt", keys: [jwk] },
      grantTypes: ["client_credentials"],
      scopes: ["a", "b"],
    },
  });
  const [{ method, path, fields } = assert.fail("no request was sent")] = server.requests;
  assert.deepEqual([method, path, fields.get("host")], ["GET", "/client.json", `${NAME}:${server.port}`]);
  assert.equal(fields.get("connection"), "close");
  assert.deepEqual([notes.length, notes[0]?.[1].failure], [1, undefined]);
  const again = await documents.find(parsed(url), SOURCE);
  assert.ok(found.ok && again.ok);
  assert.equal(again.value, found.value, "the client is built once");
});

test("CIMD-4.2-2, PROD-2.2-15, RFC7591-2-7 a document without grant types may use none of the served ones and needs no redirect URI", async (t) => {
  const { documents, url, put } = await setUp(t);
  put(answer(documentOf(url, { client_name: undefined })));
  const found = await documents.find(parsed(url), SOURCE);
  assert.ok(found.ok);
  assert.deepEqual(found.value.grantTypes, []);
  assert.equal(found.value.scopes, undefined);
});

const GOOD: [id: string, what: string, page: (good: string) => Page][] = [
  ["CIMD-8.7-1", "5 KiB", (good) => answer(paddedTo(DOCUMENT_BYTES_MAX, good))],
  [
    "CIMD-8.7-1",
    "5 KiB ended by the connection",
    (good) => raw(OK_HEAD + paddedTo(DOCUMENT_BYTES_MAX, good)),
  ],
  [
    "CIMD-8.7-1",
    "5 KiB in chunks of one byte",
    (good) =>
      raw(
        `${CHUNKED}${Array.from(paddedTo(DOCUMENT_BYTES_MAX, good), (one) => chunk(one)).join("")}0\r\n\r\n`,
      ),
  ],
  ["CIMD-8.7-1", "a few trailers", (good) => raw(`${CHUNKED}${chunk(good)}0\r\na: b\r\n\r\n`)],
  [
    "CIMD-8.7-1",
    "an interim answer before it",
    (good) => raw(`HTTP/1.1 103 Early Hints\r\n\r\n${OK_HEAD}${good}`),
  ],
  ...[
    "application/json; charset=utf-8",
    "Application/JSON ;a=b",
    "application/ld+json",
    "application/vnd.a-b.c+json",
  ].map((type): (typeof GOOD)[number] => [
    "CIMD-4-4, PROD-4.3-4",
    `the type ${type}`,
    (good) => answer(good, { "content-type": type }),
  ]),
];
for (const [id, what, build] of GOOD) {
  test(`${id} ${what} is accepted`, async (t) => {
    const { find, url, put } = await setUp(t);
    put(build(documentOf(url)));
    assert.equal(await find(), url);
  });
}

test("CIMD-8.7-1 the connection is closed even if the server would keep it", async (t) => {
  const { find, url, put } = await setUp(t);
  const closed = Promise.withResolvers<string>();
  put((socket) => {
    socket.on("close", () => closed.resolve("closed"));
    const good = documentOf(url);
    socket.write(OK_HEAD.replace("connection: close", `content-length: ${good.length}`) + good);
  });
  assert.equal(await find(), url);
  assert.equal(await inTime(closed.promise, "the connection closes"), "closed");
});

test("CIMD-9.1-1 a thousand simultaneous look-ups of a new document send one request, and the next thousand none", async (t) => {
  const { find, url, put, server, asked } = await setUp(t);
  put(answer(documentOf(url)));
  const opened = countSockets(t);
  for (let round = 0; round < 2; round++) {
    const found = await Promise.all(Array.from({ length: 1_000 }, () => find()));
    assert.deepEqual(new Set(found), new Set([url]));
  }
  assert.deepEqual([server.requests.length, asked.length, opened()], [1, 1, 1]);
});

test("CIMD-5.2-3 a thousand simultaneous look-ups of a failing document send one request, and the failure is not cached", async (t) => {
  const { find, url, put, server } = await setUp(t);
  const found = await Promise.all(Array.from({ length: 1_000 }, () => find()));
  assert.deepEqual([new Set(found), server.requests.length], [new Set(["document_status"]), 1]);
  put(answer(documentOf(url)));
  assert.equal(await find(), url);
});

test("CIMD-8.3-1 two URLs of one origin are two clients, each with its own document", async (t) => {
  const { find, url, origin, put } = await setUp(t);
  const other = `${origin}/other.json`;
  put(answer(documentOf(url)));
  put(answer(documentOf(url)), "/other.json");
  assert.equal(await find(), url);
  assert.equal(await find(other), "document_client_id_differs");
  put(answer(documentOf(other)), "/other.json");
  assert.equal(await find(other), other);
});

// --- settings -----------------------------------------------------------------------------------------------------

test("CIMD-8.9-1 only documents of allowed origins are accepted, and none if documents are off", async (t) => {
  const { find, url, origin, put, now, server } = await setUp(t);
  put(answer(documentOf(url)));
  const allow = (clientDocuments: DocumentSettings["clientDocuments"]) => {
    const { clientDocuments: _, ...rest } = now.settings;
    now.settings = { ...rest, ...(clientDocuments !== undefined && { clientDocuments }) };
  };
  const opened = countSockets(t);
  allow(undefined);
  assert.equal(await find(), "documents_off");
  allow({ foreignKeys: false, origins: new Set(["https://other.example"]) });
  assert.equal(await find(), "document_origin_refused");
  assert.equal(opened(), 0);
  allow({ foreignKeys: false, origins: new Set([origin]) });
  assert.equal(await find(), url);
  // CIMD-8.9-1: a document that is no longer allowed is refused at once, even if it is cached.
  allow({ foreignKeys: false, origins: new Set() });
  assert.equal(await find(), "document_origin_refused");
  allow(undefined);
  assert.equal(await find(), "documents_off");
  assert.equal(server.requests.length, 1);
});

test("CIMD-8.6-1 a cached document is refused while its network is not open", async (t) => {
  const { find, url, put, now, server } = await setUp(t);
  put(answer(documentOf(url)));
  assert.equal(await find(), url);
  const { clientOrigins } = now.settings;
  now.settings = { ...now.settings, clientOrigins: new Map() };
  assert.equal(await find(), "document_address_refused");
  now.settings = { ...now.settings, clientOrigins };
  assert.equal(await find(), url);
  assert.equal(server.requests.length, 1);
});

test("CIMD-8.2-3, CIMD-8.6-1 keys of another origin than the document's are accepted only if the operator allows them", async (t) => {
  const { documents, url, put, now, server } = await setUp(t);
  const keysAt = async (jwksUri: string) => {
    put(answer(documentOf(url, { jwks: undefined, jwks_uri: jwksUri })));
    const found = await documents.find(parsed(url), SOURCE);
    return found.ok ? found.value.auth : found.error.reason;
  };
  const elsewhere = "https://keys.example/jwks.json";
  assert.equal(await keysAt(elsewhere), "document_keys_foreign");
  now.settings = { ...now.settings, clientDocuments: { foreignKeys: true } };
  // A network opened for the document's origin is not open for keys of another origin.
  const keySet = { ...supplied(elsewhere), privateNetworks: [] };
  assert.deepEqual(await keysAt(elsewhere), { method: "private_key_jwt", keySet });
  assert.equal(server.requests.length, 1);

  const other = await setUp(t);
  other.put(answer(documentOf(other.url, { jwks: undefined, jwks_uri: `${other.origin}/jwks.json` })));
  const found = await other.documents.find(parsed(other.url), SOURCE);
  assert.ok(found.ok && "keySet" in found.value.auth);
  assert.deepEqual(found.value.auth.keySet, {
    ...supplied(`${other.origin}/jwks.json`),
    ...underworld.reach,
  });
});

const BUNDLE = "https://td.example/bundle";
const DOMAINS: [what: string, bundle: TrustDomain["bundle"] | undefined, found: boolean][] = [
  ["the configured one", { url: BUNDLE, privateNetworks: [] }, true],
  ["another than the configured one", { url: `${BUNDLE}/`, privateNetworks: [] }, false],
  ["one although a file is configured", { file: "/etc/bundle.json" }, false],
  ["one although the trust domain is not configured", undefined, false],
];
for (const [what, bundle, isFound] of DOMAINS) {
  test(`SPCA-5.1-5 a bundle endpoint in the document is ${isFound ? "accepted" : "refused"}: ${what}`, async (t) => {
    const domain = { name: "td.example", admit: "all", requireClientId: false } as const;
    // The other trust domain, so that the method is served.
    const other = { ...domain, name: "other.example", bundle: { url: BUNDLE, privateNetworks: [] } };
    const configured = bundle === undefined ? [] : [{ ...domain, bundle }];
    const trustDomains = new Map([other, ...configured].map((one) => [one.name, one]));
    const { find, url, put } = await setUp(t, { settings: { trustDomains } });
    const spiffe = {
      token_endpoint_auth_method: "spiffe_jwt",
      spiffe_id: "spiffe://td.example/a/*",
      jwks: undefined,
    };
    put(answer(documentOf(url, { ...spiffe, spiffe_bundle_endpoint: BUNDLE })));
    assert.equal(await find(), isFound ? url : "document_bundle_endpoint_differs");
  });
}

// --- documents that were good before ------------------------------------------------------------------------------

/** The client of the document, or why there is none. */
const failureOf = async (
  { documents }: Awaited<ReturnType<typeof setUp>>,
  url: string,
  fetched?: AbortSignal,
) => {
  const deadline = new AbortController().signal;
  const found = await documents.find(parsed(url), SOURCE, defined<KeyWait>({ deadline, fetched }));
  return found.ok ? found.value.clientId : found.error;
};

test("MCPC-D-17 a document that was good before and cannot be fetched is told apart from one that never was", async (t) => {
  const set = await setUp(t);
  const { put, url, origin, time } = set;
  const never = `${origin}/never.json`;
  assert.deepEqual(await failureOf(set, never), { reason: "document_status", failed: "always" });
  put(answer(documentOf(url)));
  assert.equal(await failureOf(set, url), url);
  time.nowMs += 3601 * 1000;
  put(raw("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"));
  assert.deepEqual(await failureOf(set, url), {
    reason: "document_status",
    failed: "always",
    unreachable: true,
  });
  // What can be fetched and is wrong now is refused as ever.
  put(answer(documentOf(url, { client_id: never })));
  assert.deepEqual(await failureOf(set, url), { reason: "document_client_id_differs" });
  put(answer(documentOf(url)));
  assert.equal(await failureOf(set, url), url);
});

test("MCPC-D-21 a request waits for its fetches no longer than it may, and the fetch goes on for the next one", async (t) => {
  const set = await setUp(t);
  const { put, url, server } = set;
  const { promise: after, resolve } = Promise.withResolvers<void>();
  put((socket, request) => void after.then(() => answer(documentOf(url))(socket, request)));
  // MCPC-D-24: it lives in a network that the operator opened.
  assert.deepEqual(await failureOf(set, url, AbortSignal.timeout(20)), {
    reason: "document_timeout",
    failed: "always",
  });
  const next = failureOf(set, url);
  resolve();
  assert.equal(await next, url);
  assert.equal(server.requests.length, 1);
  // A cached document needs no fetch, whatever time is left.
  assert.equal(await failureOf(set, url, AbortSignal.abort()), url);
});
