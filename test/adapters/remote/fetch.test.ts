import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import type { Authority } from "../../../scripts/dev-keys.ts";
import { issueServerCertificate, makeAuthority, makeIntermediate } from "../../../scripts/dev-pki.ts";
import { CheckedAgent, type Judge, type Resolver } from "../../../src/adapters/remote/checked-agent.ts";
import { type FetchOptions, fetchDocument } from "../../../src/adapters/remote/fetch.ts";
import { FetchFailed, type FetchReason } from "../../../src/adapters/remote/fetch-failed.ts";
import { FETCH_ADDRESSES_MAX, FETCHED_AROUND_BYTES_MAX } from "../../../src/limits/fetching.ts";
import type { RemoteDocument } from "../../../src/settings/settings.ts";

const BYTES_MAX = 1_000;
/** Short for the tests that wait for it, long enough for the others. */
const TIMEOUT_MS = 400;
/** Of what is not about the deadline, on a machine that may do much else. */
const PATIENT_MS = 30_000;
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const NAME = "keys.example";
const TAG = '"v1"';
const HERE: Resolver = async () => [{ address: "127.0.0.1", family: 4 }];

type Site = { server: Server; port: number; connections: Socket[]; requests: string[] };

/** What each path answers; most are answers of a broken or hostile server. */
const pages: Record<string, (response: ServerResponse, request: IncomingMessage) => void> = {
  "/keys": (response) =>
    response
      .writeHead(200, { "content-type": "application/json", "cache-control": "max-age=60" })
      .end('{"keys":[]}'),
  "/plain": (response) => response.end("ä"),
  "/fields": (response) => {
    const fields = { etag: 'W/"v1"', age: "7", expires: "0", date: "Thu, 01 Jan 2026 00:00:00 GMT" };
    response.writeHead(200, fields).end();
  },
  "/tagged": (response, request) => {
    const status = request.headers["if-none-match"] === TAG ? 304 : 200;
    response.writeHead(status, { etag: TAG, "cache-control": "max-age=60" }).end(status === 200 ? "{}" : "");
  },
  "/unchanged": (response) => response.writeHead(304, { etag: TAG }).end(),
  "/headers?of=request": (response, request) => {
    const { servername, getPeerCertificate } = request.socket as TLSSocket;
    const peer = getPeerCertificate.call(request.socket);
    response.end(JSON.stringify({ ...request.headers, method: request.method, servername, peer }));
  },
  "/moved": (response) => response.writeHead(302, { location: "/keys" }).end(),
  "/partial": (response) => response.writeHead(206).end("{}"),
  "/broken": (response) => response.writeHead(500).end("x".repeat(10 * BYTES_MAX)),
  "/full": (response) => response.end("x".repeat(BYTES_MAX)),
  "/over": (response) => response.end("x".repeat(BYTES_MAX + 1)),
  "/endless": (response) => {
    const timer = setInterval(() => response.write("x".repeat(BYTES_MAX)), 1);
    response.on("close", () => clearInterval(timer));
  },
  "/drip": (response) => {
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  },
  "/identity": (response) => response.writeHead(200, { "content-encoding": "identity" }).end("{}"),
  "/chunks-of-gzip": (response) =>
    response.writeHead(200, { "transfer-encoding": "gzip, chunked" }).end(gzipSync("{}")),
  "/gzip": (response) => response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("{}")),
  "/latin": (response) => response.end(Buffer.of(0x22, 0xe4, 0x22)),
  "/mark": (response) => response.end("\ufeff{}"),
  "/short": (response) => {
    response.writeHead(200, { "content-length": "100" }).write("{}");
    setTimeout(() => response.socket?.destroy(), 20);
  },
  "/gone": (response) => response.socket?.destroy(),
  "/silent": () => {},
  "/switch": (response) =>
    response.socket?.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
  "/hints": (response) => flood(response, "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n".repeat(100)),
  "/old": (response) => response.socket?.end(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(BYTES_MAX)}`),
  "/noise": (response) => response.socket?.write("220 mail.example ready\r\n"),
};

/** Sends the text again and again. */
function flood({ socket }: ServerResponse, text: string): void {
  const timer = setInterval(() => socket?.write(text), 1);
  socket?.on("close", () => clearInterval(timer));
}

let authority: Authority;
let site: Site;
let otherName: Site;
let otherAuthority: Site;
let mute: Site;

async function listen(server: Server): Promise<Site> {
  const opened: Site = { server, port: 0, connections: [], requests: [] };
  server.on("connection", (socket) => opened.connections.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.port = (server.address() as AddressInfo).port;
  return opened;
}

async function openSite(signer: Authority, names: string[]): Promise<Site> {
  const { keyPem, certPem } = await issueServerCertificate(signer, names);
  const tls = { key: keyPem, cert: certPem, requestCert: true, rejectUnauthorized: false };
  const opened = await listen(
    createHttpsServer(tls, (request, response) => {
      const { url = "" } = request;
      opened.requests.push(url);
      const page = pages[url];
      if (page === undefined) response.writeHead(404).end();
      else page(response, request);
    }),
  );
  return opened;
}

let close = (): void => {};
before(async () => {
  authority = await makeAuthority("Known authority");
  site = await openSite(authority, ["localhost", "127.0.0.1", NAME]);
  otherName = await openSite(authority, ["other.example"]);
  otherAuthority = await openSite(await makeAuthority("Unknown authority"), ["localhost"]);
  mute = await listen(createTcpServer(() => {}));
  const all = [site, otherName, otherAuthority, mute];
  // Where a pattern of names leaves no test of this file, `after` comes before they are there.
  for (const { server } of all) server.unref();
  close = () => {
    for (const { server, connections } of all) {
      server.close();
      for (const socket of connections) socket.destroy();
    }
  };
});

after(() => close());

type Attempt = Partial<RemoteDocument> & FetchOptions & { at?: () => Site; host?: string; path?: string };

function attempt({ at = () => site, host = "localhost", path = "/keys", ...rest }: Attempt = {}) {
  const { timeoutMs = PATIENT_MS, resolver, judge, ifNoneMatch, ...document } = rest;
  const url = `https://${host}:${at().port}${path}`;
  return fetchDocument({ url, privateNetworks: LOOPBACK, ca: authority.certPem, ...document }, BYTES_MAX, {
    timeoutMs,
    ...(resolver !== undefined && { resolver }),
    ...(judge !== undefined && { judge }),
    ...(ifNoneMatch !== undefined && { ifNoneMatch }),
  });
}

const failsWith =
  (reason: FetchReason, message = /./) =>
  (error: unknown) => {
    assert.ok(error instanceof FetchFailed, String(error));
    assert.equal(error.reason, reason);
    assert.match(error.message, message);
    return true;
  };

test("RFC8414-6.1-2, RFC7515-8-v1, RFC7515-10.3-v1, SFD-5.2.1.4-1 a document from a server with a valid certificate for its name is accepted", async () => {
  const { date, ...rest } = await attempt();
  assert.ok(Date.parse(date));
  assert.deepEqual(rest, {
    status: 200,
    notModified: false,
    text: '{"keys":[]}',
    contentType: "application/json",
    cacheControl: "max-age=60",
    age: "",
    expires: "",
  });
  const { text, contentType, cacheControl } = await attempt({ path: "/plain" });
  assert.deepEqual([text, contentType, cacheControl], ["ä", "", ""]);
  assert.equal((await attempt({ host: "127.0.0.1" })).text, '{"keys":[]}');
});

test("CIMD-5.2-2 the fields that say how long an answer is fresh are returned", async () => {
  const { etag, age, expires, date } = await attempt({ path: "/fields" });
  assert.deepEqual([etag, age, expires, date], ['W/"v1"', "7", "0", "Thu, 01 Jan 2026 00:00:00 GMT"]);
});

test("CIMD-5.2-2 a document with the same tag is not sent again, and one with another tag is", async () => {
  const same = await attempt({ path: "/tagged", ifNoneMatch: TAG });
  assert.deepEqual([same.notModified, same.text, same.cacheControl], [true, "", "max-age=60"]);
  for (const other of [
    await attempt({ path: "/tagged", ifNoneMatch: '"v0"' }),
    await attempt({ path: "/tagged" }),
  ]) {
    assert.deepEqual([other.notModified, other.text, other.etag], [false, "{}", TAG]);
  }
});

const TAGS: [etag: string, kept: boolean][] = [
  [TAG, true],
  [`W/${TAG}`, true],
  ['""', true],
  [`"${"x".repeat(256)}"`, true],
  [`"${"x".repeat(257)}"`, false],
  ["v1", false],
  ['"a"b"', false],
  ['"a b"', false],
  ['"\xe4"', false],
  ['w/"v1"', false],
  [`${TAG}, "v2"`, false],
];
for (const [etag, kept] of TAGS) {
  test(`CIMD-5.2-2 the tag ${etag.slice(0, 20)} is ${kept ? "returned" : "ignored"}`, async () => {
    pages["/tag"] = (response) => response.writeHead(200, { etag }).end("{}");
    assert.equal((await attempt({ path: "/tag" })).etag, kept ? etag : undefined);
  });
}

const untrusted: [name: string, what: Attempt, reason: FetchReason, message: RegExp][] = [
  [
    "RFC8414-6.1-2, SFD-5.2.1.4-1 a certificate for another name is refused",
    { at: () => otherName },
    "certificate_name_wrong",
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
  ],
  [
    "RFC7515-8-v1, RFC7515-10.3-v1 a certificate for another name than the host that was looked up is refused",
    { at: () => otherName, host: NAME, resolver: HERE },
    "certificate_name_wrong",
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
  ],
  [
    "RFC8414-6.1-2, RFC7515-10.3-v1, SFD-5.2.1.4-1 a certificate of an unknown authority is refused",
    { at: () => otherAuthority },
    "certificate_untrusted",
    /^UNABLE_TO_VERIFY_LEAF_SIGNATURE$/,
  ],
  ["a closed port is a failure", { url: "https://localhost:1/keys" }, "connection_failed", /^ECONNREFUSED$/],
];

for (const [name, what, reason, message] of untrusted) {
  test(name, async () => {
    const requests = what.at?.().requests.length;
    await assert.rejects(attempt(what), failsWith(reason, message));
    assert.equal(what.at?.().requests.length, requests, "no request was sent");
  });
}

test("RFC8414-6.1-2 an unknown authority is refused if none is configured", async () => {
  const { port } = site;
  const document = { url: `https://localhost:${port}/keys`, privateNetworks: LOOPBACK };
  const options = { timeoutMs: PATIENT_MS };
  await assert.rejects(fetchDocument(document, BYTES_MAX, options), failsWith("certificate_untrusted"));
});

test("RFC7515-8-v1 the certificate is checked even if NODE_TLS_REJECT_UNAUTHORIZED is 0", async (t) => {
  const old = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  t.after(() => {
    if (old === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = old;
  });
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  await assert.rejects(attempt({ at: () => otherAuthority }), failsWith("certificate_untrusted"));
});

test("SFD-5.2.2.4-1 a custom judge gets the certificates as sent, before any request, and decides", async (t) => {
  const intermediate = await makeIntermediate(authority, "Intermediate");
  const { keyPem, certPem } = await issueServerCertificate(intermediate, ["elsewhere.example"]);
  const sent = [certPem, intermediate.certPem, authority.certPem];
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    const tls = { key: keyPem, cert: sent.join(""), minVersion: version, maxVersion: version };
    const judged = await listen(
      createHttpsServer(tls, ({ url = "" }, response) => {
        judged.requests.push(url);
        response.end("{}");
      }),
    );
    t.after(() => judged.server.close());
    const ask = (judge: Judge) => attempt({ at: () => judged, judge });
    let seen: readonly Uint8Array[] = [];
    const objection = ask((presented) => {
      seen = presented;
      return "not this one";
    });
    await assert.rejects(objection, failsWith("endpoint_refused", /^not this one$/));
    const want = sent.map((pem) => new X509Certificate(pem).raw);
    assert.deepEqual(
      seen.map((der) => Buffer.from(der)),
      want,
      version,
    );
    assert.deepEqual(judged.requests, []);
    assert.equal((await ask(() => undefined)).text, "{}");
    assert.deepEqual(judged.requests, ["/keys"]);
    // Without a judge, certificate authority and name are checked.
    await assert.rejects(attempt({ at: () => judged }), failsWith("certificate_name_wrong"));
  }
});

const answers: [name: string, path: string, reason: FetchReason, message?: RegExp][] = [
  ["CIMD-5-4 the status 404 is a failure", "/nowhere", "status", /^the status is 404$/],
  ["CIMD-5-4 the status 206 is a failure", "/partial", "status", /^the status is 206$/],
  ["CIMD-5-4 the status 500 is a failure even with a body", "/broken", "status"],
  ["CIMD-5-4 the status 304 is a failure if the request had no tag", "/unchanged", "status"],
  ["CIMD-8.7-1 one byte more than the limit is a failure", "/over", "too_large"],
  ["CIMD-8.7-1 an endless answer is aborted at the limit", "/endless", "too_large"],
  ["endless interim answers are aborted at the limit around the content", "/hints", "too_large", /outside/],
  ["an answer that is sent slowly is aborted at the deadline", "/drip", "timeout"],
  ["a missing answer is aborted at the deadline", "/silent", "timeout"],
  ["a compressed answer is a failure", "/gzip", "encoded"],
  ["an answer with any Content-Encoding is a failure", "/identity", "encoded"],
  ["an answer with a compressed transfer coding is a failure", "/chunks-of-gzip", "encoded"],
  ["SFD-5.2.1.3-2 an answer that is not UTF-8 is a failure", "/latin", "not_utf8"],
  ["a byte order mark is a failure", "/mark", "not_utf8"],
  ["a truncated answer is a failure", "/short", "broke_off"],
  ["a connection that closes without an answer is a failure", "/gone", "broke_off", /^ECONNRESET$/],
  ["another protocol instead of an answer is a failure", "/switch", "protocol"],
  ["an answer that is not HTTP is a failure", "/noise", "protocol", /^HPE_/],
];

for (const [name, path, reason, message] of answers) {
  test(name, async () => {
    const timeoutMs = reason === "timeout" ? TIMEOUT_MS : PATIENT_MS;
    await assert.rejects(attempt({ path, timeoutMs }), failsWith(reason, message));
    // An error while the connection closes must be handled too: it would fail this test.
    const last = site.connections.at(-1);
    if (last?.closed === false) await once(last, "close", { signal: AbortSignal.timeout(PATIENT_MS) });
  });
}

test("an answer of the largest size is accepted, with a length or ended by the connection", async () => {
  assert.equal((await attempt({ path: "/old" })).text.length, BYTES_MAX);
  assert.equal((await attempt({ path: "/full" })).text.length, BYTES_MAX);
});

test("CIMD-5-5 a redirect is not followed", async () => {
  site.requests.length = 0;
  await assert.rejects(attempt({ path: "/moved" }), failsWith("redirected"));
  await sleep(20);
  assert.deepEqual(site.requests, ["/moved"]);
});

test("SFD-5.2.1.3-1 no cookie, credential or client certificate is sent, and no compression or lasting connection asked for", async () => {
  const { text } = await attempt({ path: "/headers?of=request", host: NAME, resolver: HERE });
  assert.deepEqual(JSON.parse(text), {
    method: "GET",
    host: `${NAME}:${site.port}`,
    servername: NAME,
    accept: "application/json",
    "accept-encoding": "identity",
    connection: "close",
    peer: {},
  });
});

// --- addresses ---------------------------------------------------------------------------------------------------

const AWAY = "93.184.215.14";
const resolveTo =
  (...addresses: string[]): Resolver =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

const closed: [name: string, what: Attempt, reason?: FetchReason][] = [
  ["a name of a loopback address that is not open", { privateNetworks: [] }],
  ["a name of a loopback address if another network is open", { privateNetworks: ["10.0.0.0/8"] }],
  ["an address literal that is not open", { host: "127.0.0.1", privateNetworks: [] }],
  ["an IPv6 literal that is not open", { host: "[::1]", privateNetworks: [] }],
  ["an IPv6 literal that embeds loopback", { host: "[::ffff:7f00:1]" }],
  [
    "a name with one address that is not open",
    { host: NAME, privateNetworks: ["127.0.0.1/32"], resolver: resolveTo("127.0.0.1", "127.0.0.2") },
  ],
  [
    "a name with a public and a private address",
    { host: NAME, privateNetworks: [], resolver: resolveTo(AWAY, "127.0.0.1") },
  ],
  [
    "a link-local address even if it is open",
    { host: NAME, privateNetworks: ["169.254.0.0/16"], resolver: resolveTo("169.254.7.7") },
  ],
  [
    "a link-local literal even if every network is open",
    { url: "https://169.254.169.254/", privateNetworks: ["0.0.0.0/0", "::/0"] },
  ],
  [
    "a link-local IPv6 address with a zone even if it is open",
    { host: NAME, privateNetworks: ["fe80::/10"], resolver: resolveTo("fe80::1%lo") },
  ],
  ["a name that does not resolve", { host: NAME, resolver: resolveTo() }, "name_unresolved"],
  [
    "a name whose resolution fails",
    {
      host: NAME,
      resolver: async () => {
        throw new Error("SERVFAIL");
      },
    },
    "name_unresolved",
  ],
  ["SFD-5.2.1.1-1 a plain http URL", { url: "http://localhost/keys" }, "url_not_https"],
  ["SFD-5.2.1.1-2 a URL with userinfo", { url: "https://user@localhost/keys" }, "url_userinfo"],
];

for (const [what, how, reason = "address_refused"] of closed) {
  const [, ids = "B8725-3.10-2", target] = /^(SFD-[0-9.-]+)? ?(.*)$/.exec(what) ?? [];
  test(`${ids} no connection is opened to ${target}`, async () => {
    site.connections.length = 0;
    await assert.rejects(attempt(how), failsWith(reason));
    await sleep(20);
    assert.equal(site.connections.length, 0);
  });
}

test("B8725-3.10-2 a name is resolved once, and the checked address is connected to", async () => {
  const asked: string[] = [];
  const resolver: Resolver = async (hostname) => {
    asked.push(hostname);
    return resolveTo(asked.length === 1 ? "127.0.0.1" : "127.0.0.66")(hostname);
  };
  const { text } = await attempt({ host: NAME, privateNetworks: ["127.0.0.1/32"], resolver });
  assert.equal(text, '{"keys":[]}');
  assert.deepEqual(asked, [NAME]);
});

test("any of several addresses is connected to", async () => {
  for (const addresses of [
    ["127.0.0.99", "127.0.0.1"],
    ["::1", "127.0.0.1"],
    ["127.0.0.1", "::1"],
  ]) {
    const { text } = await attempt({ host: NAME, resolver: resolveTo(...addresses) });
    assert.equal(text, '{"keys":[]}', addresses.join());
  }
});

test("only a few addresses of a name are tried", async () => {
  const closed = Array.from({ length: FETCH_ADDRESSES_MAX }, (_, at) => `127.0.0.${at + 90}`);
  const last = resolveTo(...closed, "127.0.0.1");
  await assert.rejects(attempt({ host: NAME, resolver: last }), failsWith("connection_failed"));
  const { text } = await attempt({ host: NAME, resolver: resolveTo(...closed.slice(1), "127.0.0.1") });
  assert.equal(text, '{"keys":[]}');
});

// --- one deadline -----------------------------------------------------------------------------------------------

test("the deadline includes the name look-up, and a late look-up opens no connection", async () => {
  site.connections.length = 0;
  const answered = new EventEmitter();
  const resolver: Resolver = async (hostname) => {
    await sleep(2 * TIMEOUT_MS);
    setImmediate(() => answered.emit("answered"));
    return HERE(hostname);
  };
  const resolved = once(answered, "answered");
  await assert.rejects(attempt({ host: NAME, resolver, timeoutMs: TIMEOUT_MS }), failsWith("timeout"));
  await resolved;
  await sleep(20);
  assert.equal(site.connections.length, 0);
});

test("the deadline covers look-up and fetch together", async () => {
  const resolver: Resolver = async (hostname) => {
    await sleep(TIMEOUT_MS / 2);
    return HERE(hostname);
  };
  // Timers of one process fire in their order, however late. With a deadline for each it would take half as long again.
  const late = sleep(1.4 * TIMEOUT_MS, "late");
  const fetched = attempt({ host: NAME, path: "/drip", resolver, timeoutMs: TIMEOUT_MS });
  await assert.rejects(Promise.race([fetched, late]), failsWith("timeout"));
});

test("the deadline aborts a handshake and closes the connection", async () => {
  mute.connections.length = 0;
  await assert.rejects(attempt({ at: () => mute, timeoutMs: TIMEOUT_MS }), failsWith("timeout"));
  const [socket] = mute.connections;
  assert.ok(socket);
  socket.resume();
  if (!socket.closed) await once(socket, "close", { signal: AbortSignal.timeout(PATIENT_MS) });
});

test("deadline and bytes of earlier requests on a kept connection count for no later one, and no listener of theirs is left", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const aborted = t.mock.method(AbortController.prototype, "abort");
  const reach = { ca: authority.certPem, privateNetworks: LOOPBACK };
  const kept = { ms: PATIENT_MS, clock: { monotonicMs: () => 0 } };
  const agent = new CheckedAgent(reach, { kept });
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", onWarning);
  t.after(() => {
    process.off("warning", onWarning);
    agent.retire();
  });
  const url = `https://localhost:${site.port}/full`;
  const ask = (timeoutMs: number) => fetchDocument({ url, ...reach }, BYTES_MAX, { agent, timeoutMs });
  const before = site.connections.length;
  for (let bytes = 0; bytes <= FETCHED_AROUND_BYTES_MAX + BYTES_MAX; bytes += BYTES_MAX)
    await ask(TIMEOUT_MS);
  t.mock.timers.tick(TIMEOUT_MS);
  await ask(PATIENT_MS);
  assert.equal(site.connections.length, before + 1);
  assert.equal(aborted.mock.callCount(), 0);
  // The platform warns of the eleventh listener on one connection.
  assert.equal(warnings.includes("MaxListenersExceededWarning"), false);
});
