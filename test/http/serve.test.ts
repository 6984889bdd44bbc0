import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import net from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import tls from "node:tls";
import type { Dress } from "../../src/http/answers.ts";
import type { HandshakeCertificates } from "../../src/http/connections.ts";
import type { Handler, HttpResponse, Peer } from "../../src/http/handler.ts";
import { describeFault, formatLogEntry, type LogEntry, tellOnceASecond } from "../../src/http/log.ts";
import { LIMITS, type ServeOptions, type Server, serve } from "../../src/http/serve.ts";
import { entryOf, newTrace } from "../../src/http/trace.ts";
import { StoreUnavailable } from "../../src/ports.ts";
import { inTime } from "../support/in-time.ts";
import { createAuthority } from "../support/tls.ts";
import { until } from "../support/until.ts";

const authority = await createAuthority();
const identity = await authority.issueServer();
const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;

type Running = { server: Server; entries: LogEntry[] };
type Answer = { status: number; headers: Headers; body: string };

const reply = (body = "", status = 200, headers: Record<string, string> = {}): HttpResponse => ({
  status,
  headers,
  body,
});

/** An answer that comes only when the test is over: one that never comes holds the process until its deadline. */
function answerAfter(t: TestContext): Promise<HttpResponse> {
  const late = Promise.withResolvers<HttpResponse>();
  t.after(() => late.resolve(reply()));
  return late.promise;
}

const echo: Handler = async (request, peer) =>
  reply(
    JSON.stringify({
      url: request.url,
      method: request.method,
      body: Buffer.from(await request.bytes()).toString(),
      address: peer.address,
    }),
  );

async function start(
  t: TestContext,
  handler: Handler = echo,
  options: Partial<ServeOptions> = {},
): Promise<Running> {
  const entries: LogEntry[] = [];
  const server = await serve(
    {
      host: "127.0.0.1",
      port: 0,
      key: identity.key,
      cert: identity.cert,
      origin: "https://as.example",
      log: (entry) => entries.push(entry),
      ...options,
      limits: { shutdownTimeoutMs: 100, ...options.limits },
    },
    handler,
  );
  t.after(() => server.shutdown());
  return { server, entries };
}

/** Lets what was sent within this process arrive, however busy the machine is. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await setImmediate();
}

/** For answers of some megabytes, or to many requests, on a busy machine. */
const MANY_MS = 20_000;

/** A client that can send any bytes and reads the response as text. */
class Client {
  readonly socket: tls.TLSSocket;
  received = "";
  closed = false;

  constructor(port: number, options: tls.ConnectionOptions & { localAddress?: string } = {}) {
    this.socket = tls.connect({
      port,
      host: "127.0.0.1",
      servername: "localhost",
      ca: authority.cert,
      ALPNProtocols: ["http/1.1"],
      ...options,
    });
    this.socket.setEncoding("latin1");
    this.socket.on("data", (text: string) => {
      this.received += text;
    });
    this.socket.on("error", () => undefined);
    this.socket.on("close", () => {
      this.closed = true;
    });
  }

  async until(done: () => boolean, deadlineMs = 60_000): Promise<void> {
    const endMs = performance.now() + deadlineMs;
    while (!done() && performance.now() < endMs) await sleep(2);
    assert.ok(done(), `not within ${deadlineMs} ms; received: ${this.received.slice(0, 300)}`);
  }

  /** Sends the text and waits for this many answers. */
  async ask(text: string, count = 1, deadlineMs?: number): Promise<Answer[]> {
    if (this.socket.connecting) await once(this.socket, "secureConnect");
    this.received = "";
    this.socket.write(text, "latin1");
    await this.until(() => parseAnswers(this.received).length >= count || this.closed, deadlineMs);
    return parseAnswers(this.received);
  }

  async gone(): Promise<void> {
    await this.until(() => this.closed);
  }
}

/** The complete answers in the text; it cannot read an answer to HEAD, which has a length and no body. */
function parseAnswers(text: string): Answer[] {
  const answers: Answer[] = [];
  let rest = text;
  for (;;) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) return answers;
    const [first = "", ...fields] = rest.slice(0, end).split("\r\n");
    const headers = new Headers(
      fields.map((field): [string, string] => [
        field.slice(0, field.indexOf(":")),
        field.slice(field.indexOf(":") + 1),
      ]),
    );
    const length = Number(headers.get("content-length") ?? 0);
    rest = rest.slice(end + 4);
    if (rest.length < length) return answers;
    answers.push({ status: Number(first.split(" ")[1]), headers, body: rest.slice(0, length) });
    rest = rest.slice(length);
  }
}

async function ask(running: Running, text: string, options: tls.ConnectionOptions = {}): Promise<Answer> {
  const client = new Client(running.server.port, options);
  try {
    const [answer] = await client.ask(text);
    assert.ok(answer, "the server sent no answer");
    return answer;
  } finally {
    client.socket.destroy();
  }
}

const HOST = "Host: localhost\r\n";
const get = (path = "/", fields = ""): string => `GET ${path} HTTP/1.1\r\n${HOST}${fields}\r\n`;
const post = (body: string, fields = ""): string =>
  `POST / HTTP/1.1\r\n${HOST}${fields}Content-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (body: string): string =>
  `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`;

function assertOAuthError(answer: Answer, status: number, error = "invalid_request"): void {
  assert.equal(answer.status, status);
  assert.equal(JSON.parse(answer.body).error, error);
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.equal(answer.headers.get("pragma"), "no-cache");
  assert.match(answer.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
  assert.match(JSON.parse(answer.body).error_description ?? "", /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
}

// --- TLS ----------------------------------------------------------------------------------------------------

async function handshake(running: Running, options: tls.ConnectionOptions): Promise<string> {
  const client = new Client(running.server.port, options);
  const outcome = await new Promise<string>((resolve) => {
    client.socket.once("secureConnect", () => resolve(client.socket.getProtocol() ?? ""));
    client.socket.once("error", () => resolve("refused"));
  });
  client.socket.destroy();
  return outcome;
}

const suite = (version: tls.SecureVersion, ciphers: string): tls.ConnectionOptions => ({
  minVersion: version,
  maxVersion: version,
  ciphers,
});
const handshakes = [
  [
    "RFC8705-7.3-1 TLS 1.2 with an AEAD suite is accepted",
    suite("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "TLSv1.2",
  ],
  ["RFC8705-7.3-1 TLS 1.3 is accepted", { minVersion: "TLSv1.3" }, "TLSv1.3"],
  [
    "RFC8705-7.3-1, RFC9700-2.6-3, RFC7636-7.5-1 TLS 1.1 is refused",
    suite("TLSv1.1", "ALL:@SECLEVEL=0"),
    "refused",
  ],
  [
    "RFC8705-7.3-1, RFC9700-2.6-3, RFC7636-7.5-1 a CBC suite is refused",
    suite("TLSv1.2", "ECDHE-ECDSA-AES128-SHA"),
    "refused",
  ],
] as const satisfies readonly (readonly [string, tls.ConnectionOptions, string])[];
for (const [name, options, want] of handshakes) {
  test(name, async (t) => {
    const running = await start(t);
    assert.equal(await handshake(running, options), want);
    running.server.replaceCertificate(identity.key, identity.cert);
    assert.equal(await handshake(running, options), want, "after the certificate was replaced");
  });
}

test("RFC6749-3.2-3 a request over TLS is served", async (t) => {
  assert.equal((await ask(await start(t), get())).status, 200);
});

test("RFC6749-3.2-3 a connection without TLS gets no answer", async (t) => {
  const running = await start(t);
  const socket = net.connect(running.server.port, "127.0.0.1");
  let received = "";
  socket.setEncoding("latin1").on("data", (text) => {
    received += text;
  });
  socket.on("error", () => undefined);
  socket.write(get());
  await inTime(once(socket, "close"), "the connection closes");
  assert.doesNotMatch(received, /HTTP/);
  assert.deepEqual(running.entries, []);
});

for (const version of VERSIONS) {
  test(`RFC8705-2-2 no session in ${version} is resumed, not even after the certificate was replaced`, async (t) => {
    const running = await start(t);
    const certificate = await authority.issueClient();
    const options = { maxVersion: version, key: certificate.key, cert: certificate.cert };
    for (const replaced of [false, true]) {
      if (replaced) running.server.replaceCertificate(identity.key, identity.cert);
      const first = new Client(running.server.port, options);
      let session: Buffer | undefined;
      first.socket.on("session", (data: Buffer) => {
        session = data;
      });
      await first.ask(get());
      session ??= first.socket.getSession();
      first.socket.destroy();
      const second = new Client(running.server.port, { ...options, ...(session ? { session } : {}) });
      assert.equal((await second.ask(get()))[0]?.status, 200);
      assert.equal(second.socket.isSessionReused(), false);
      second.socket.destroy();
    }
  });
}

test("RFC8705-2-2 a renegotiation is refused", async (t) => {
  const client = new Client((await start(t)).server.port, { maxVersion: "TLSv1.2" });
  await client.ask(get());
  const refused = new Promise((resolve) => {
    client.socket.once("error", resolve);
    client.socket.renegotiate({}, resolve);
  });
  const failure = await inTime(refused, "the renegotiation ends");
  assert.ok(failure instanceof Error);
  client.socket.destroy();
});

/** The peer that the handler received with one request. */
async function seenPeer(
  t: TestContext,
  options: tls.ConnectionOptions,
  fields = "",
): Promise<{ peer: Peer; certificates: readonly Uint8Array[] }> {
  let seen: { peer: Peer; certificates: readonly Uint8Array[] } | undefined;
  const running = await start(t, (_request, peer) => {
    seen = { peer, certificates: peer.certificates };
    return reply("", 204);
  });
  await ask(running, get("/", fields), { rejectUnauthorized: false, ca: [], ...options });
  assert.ok(seen);
  return seen;
}

const pem = (...parts: { cert: string }[]): string => parts.map((part) => part.cert).join("\n");
const hex = (parts: readonly Uint8Array[]): string[] =>
  parts.map((part) => Buffer.from(part).toString("hex"));

test("RFC8705-6.1-1 a peer without a certificate is served", async (t) => {
  assert.deepEqual((await seenPeer(t, {})).certificates, []);
});

for (const version of VERSIONS) {
  test(`RFC8705-6.1-2 a certificate of no known authority is accepted in ${version}`, async (t) => {
    const alone = await createAuthority("self-signed");
    const seen = await seenPeer(t, { maxVersion: version, key: alone.key, cert: alone.cert });
    assert.deepEqual(hex(seen.certificates), hex([alone.der]));
  });

  test(`the chain is passed on as sent, including unrelated certificates, in ${version}`, async (t) => {
    const intermediate = await authority.issueAuthority("intermediate");
    const leaf = await intermediate.issueClient({ uris: ["spiffe://td.example/agents/planner"] });
    const unrelated = await createAuthority("unrelated");
    const namesake = await unrelated.issueAuthority("intermediate");
    const seen = await seenPeer(t, {
      maxVersion: version,
      key: leaf.key,
      cert: pem(leaf, unrelated, namesake, intermediate),
    });
    assert.deepEqual(hex(seen.certificates), hex([leaf.der, unrelated.der, namesake.der, intermediate.der]));
    assert.equal(new X509Certificate(seen.certificates[0] ?? "").subject, "CN=client");
  });
}

test("RFC8705-2-2 every request of a connection gets its certificate, parsed once", async (t) => {
  const leaf = await authority.issueClient();
  const seen: Peer["leaf"][] = [];
  const running = await start(t, (_request, peer) => {
    seen.push(peer.leaf);
    return reply();
  });
  const client = new Client(running.server.port, { key: leaf.key, cert: leaf.cert });
  await client.ask(get());
  await client.ask(get());
  client.socket.destroy();
  assert.equal(seen.length, 2);
  assert.ok(seen[0]?.ok);
  assert.deepEqual(hex([seen[0].value.der]), hex([leaf.der]));
  assert.equal(seen[1], seen[0]);
});

test("RFC9440-4-1 no certificate is taken from a header field", async (t) => {
  const leaf = await authority.issueClient();
  const field = `Client-Cert: :${Buffer.from(leaf.der).toString("base64")}:\r\n`;
  assert.deepEqual((await seenPeer(t, {}, field)).certificates, []);
});

test("RFC6749-3.2-3 the certificate is replaced for new connections, and open ones are kept", async (t) => {
  const running = await start(t);
  const other = await createAuthority("next year's authority");
  const next = await other.issueServer();
  const standing = new Client(running.server.port);
  await standing.ask(get());
  running.server.replaceCertificate(next.key, next.cert);
  assert.equal((await standing.ask(get()))[0]?.status, 200);
  standing.socket.destroy();
  assert.equal((await ask(running, get(), { ca: other.cert })).status, 200);
  assert.equal(await handshake(running, {}), "refused");
});

test("RFC6749-3.2-3 the old certificate is kept if the new one does not fit its key", async (t) => {
  const running = await start(t);
  const next = await authority.issueServer();
  assert.throws(() => running.server.replaceCertificate(identity.key, next.cert));
  assert.equal((await ask(running, get())).status, 200);
});

// --- the head -----------------------------------------------------------------------------------------------

const fieldsOf = (count: number): string =>
  Array.from({ length: count - 1 }, (_, index) => `X-${index}: v\r\n`).join("");
const heads = [
  ["RFC6749-10.14-1 a plain request is accepted", get(), 200],
  ["RFC6749-10.14-1 a request that is not HTTP is refused", "hello\r\n\r\n", 400],
  ["RFC6749-10.14-1 TRACE is refused", `TRACE / HTTP/1.1\r\n${HOST}\r\n`, 405],
  ["RFC6749-10.14-1 CONNECT is refused", `CONNECT as.example:443 HTTP/1.1\r\n${HOST}\r\n`, 405],
  ["RFC6749-10.14-1 a target with two slashes is refused", get("//other.example/token"), 400],
  ["RFC6749-10.14-1 a target in absolute form is refused", get("https://other.example/token"), 400],
  ["RFC6749-10.14-1 the target * is refused", `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, 400],
  ["RFC6749-10.14-1 a target with a fragment is refused", get("/#x"), 400],
  ["RFC6749-10.14-1 a query is accepted", get("/?a=b"), 200],
  ["RFC6749-10.14-1 a query that the URL parser escapes is accepted", get('/?a="<b>"'), 200],
  ["RFC6749-10.14-1 dot segments are refused", get("/a/../token"), 404],
  ["RFC6749-10.14-1 escaped dot segments are refused", get("/%2e%2E/token"), 404],
  ["RFC6749-10.14-1 a backslash is refused", get("/a\\b"), 404],
  ["RFC6749-10.14-1 a path that the URL parser escapes is refused", get("/<a>"), 404],
  ["RFC6749-10.14-1 a path with non-ASCII octets is refused", get("/\xfc"), 400],
  ["RFC6749-10.14-1 a request without Host is refused", "GET / HTTP/1.1\r\n\r\n", 400],
  ["RFC6749-10.14-1 two Host fields are refused", get("/", "host: other.example\r\n"), 400],
  ...["", "a b", "a/b", "user@a", "a:b", "a:1:2", "[::1", "[a]", "[::1%25e]", "a%2", "a,b:1, c", "ü"].map(
    (host) =>
      [
        `RFC6749-10.14-1 the Host field "${host}" is refused`,
        `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
        400,
      ] as const,
  ),
  ...["a", "A-1.example.", "a_b", "a%20b", "a:", "a:8443", "192.0.2.1", "[::1]", "[2001:DB8::1]:443"].map(
    (host) =>
      [
        `RFC6749-10.14-1 the Host field "${host}" is accepted`,
        `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
        200,
      ] as const,
  ),
  ["RFC6749-10.14-1 HTTP/1.0 without Host is accepted", "GET / HTTP/1.0\r\n\r\n", 200],
  ["RFC6749-10.14-1 the identity coding is accepted", post("a", "Content-Encoding: Identity\r\n"), 200],
  [
    "RFC6749-10.14-1, PROD-7.5-1 another content coding is refused",
    post("a", "Content-Encoding: gzip\r\n"),
    415,
  ],
  [
    "RFC6749-10.14-1 a second content coding is refused",
    post("a", "Content-Encoding: identity\r\nContent-Encoding: br\r\n"),
    415,
  ],
  ["RFC6749-10.14-1 a chunked body is accepted", `${chunked("a")}0\r\n\r\n`, 200],
  [
    "RFC6749-10.14-1 a compressed transfer coding is refused",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ...["gzip", "identity", "chunked, gzip", "chunked, chunked", "xchunked", ""].map(
    (coding) =>
      [
        `RFC6749-10.14-1 the transfer coding "${coding}" is refused`,
        `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`,
        400,
      ] as const,
  ),
  [
    "RFC6749-10.14-1 chunked that is not the last of two transfer codings is refused",
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n`,
    400,
  ],
  [
    "RFC6749-10.14-1 GET with a transfer coding that is not chunked is refused",
    get("/", "Transfer-Encoding: gzip\r\n"),
    400,
  ],
  [
    "RFC6749-10.14-1 a transfer coding in HTTP/1.0 is refused",
    "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  [
    "RFC6749-10.14-1 two different Content-Length fields are refused",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`,
    400,
  ],
  [
    "RFC6749-10.14-1 Content-Length beside a chunked body is refused",
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["RFC6749-10.14-1 GET with a body is refused", get("/", "Content-Length: 1\r\n").concat("a"), 400],
  ["RFC6749-10.14-1 GET with an empty body is accepted", get("/", "Content-Length: 0\r\n"), 200],
  ["RFC6749-10.14-1 Upgrade is ignored", get("/", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), 200],
  ["RFC6749-10.14-1 an unknown expectation is refused", post("a", "Expect: a-miracle\r\n"), 417],
  ["RFC6749-5.2-2 one Authorization field is accepted", get("/", "Authorization: Basic YTpi\r\n"), 200],
  [
    "RFC6749-5.2-2 two Authorization fields are refused",
    get("/", "Authorization: Basic YTpi\r\nauthorization: Bearer x\r\n"),
    400,
  ],
  [
    "RFC6749-10.14-1 a coding with blanks around it is accepted",
    post("a", "Content-Encoding:\t identity \t\r\n"),
    200,
  ],
  [
    "RFC6749-10.14-1 a coding with another byte at its end is refused",
    post("a", "Content-Encoding: identity\xa0\r\n"),
    415,
  ],
  [
    "RFC6749-10.14-1 a Host with a byte that is no blank at its end is refused",
    "GET / HTTP/1.1\r\nHost: as.example\xa0\r\n\r\n",
    400,
  ],
  ["COOKIE-4.2.1-1 one Cookie field is accepted", get("/", "Cookie: a=1; b=2\r\n"), 200],
  ["COOKIE-4.2.1-1 two Cookie fields are refused", get("/", "Cookie: a=1\r\ncookie: b=2\r\n"), 400],
  ["RFC9440-3.2-1 64 fields are accepted", get("/", fieldsOf(64)), 200],
  ["RFC9440-3.2-1 65 fields are refused", get("/", fieldsOf(65)), 431],
  ["RFC9440-3.2-1 3000 fields are refused", get("/", "a:\r\n".repeat(3000)), 431],
  ["RFC9440-3.2-1 a field of 15 KiB is accepted", get("/", `X: ${"a".repeat(15 * 1024)}\r\n`), 200],
  [
    "RFC9440-3.2-1 a field that makes the head exceed 16 KiB is refused",
    get("/", `X: ${"a".repeat(16 * 1024)}\r\n`),
    431,
  ],
  [
    "RFC9440-3.2-1 a field of 4 MiB with an answer is refused",
    get("/", `X: ${"a".repeat(4 * 1024 * 1024)}\r\n`),
    431,
  ],
  ["RFC9440-3.2-1 a target of 16 KiB is refused", get(`/${"a".repeat(16 * 1024)}`), 431],
] as const;

for (const [name, text, status] of heads) {
  test(name, async (t) => {
    const running = await start(t);
    const answer = await ask(running, text);
    if (status === 200) assert.equal(answer.status, 200);
    else assertOAuthError(answer, status);
    if (status === 405) assert.ok(answer.headers.get("allow"));
    assert.deepEqual(
      running.entries.map((entry) => [entry.status, entry.requestId]),
      [[status, answer.headers.get("x-request-id")]],
    );
  });
}

test("RFC6749-10.14-1 a random head never causes a fault", async (t) => {
  const running = await start(t);
  let seed = 20_261_121;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (seed >>> 8) % below;
  };
  const bytes = (): string =>
    String.fromCharCode(...Array.from({ length: 1 + random(8) }, () => random(256)));
  for (let round = 0; round < 150; round += 1) {
    const text = [
      get(`/${bytes()}`),
      get("/", `X: ${bytes()}\r\n`),
      get("/", `${bytes()}: x\r\n`),
      `${bytes()} / HTTP/1.1\r\n${HOST}\r\n`,
    ][round % 4];
    const client = new Client(running.server.port);
    // Some heads are incomplete: the client ends the connection.
    await once(client.socket, "secureConnect");
    client.socket.end(text ?? "", "latin1");
    await client.gone();
  }
  assert.ok(running.entries.length > 75);
  assert.deepEqual(
    running.entries.filter((entry) => entry.level === "error"),
    [],
  );
});

test("RFC6749-10.14-1 the configured origin is used, not Host or Forwarded", async (t) => {
  const answer = await ask(
    await start(t),
    "GET /token?x HTTP/1.1\r\nHost: evil.example\r\nForwarded: host=evil.example\r\n\r\n",
  );
  assert.equal(JSON.parse(answer.body).url, "https://as.example/token?x");
});

test("RFC6749-10.14-1 repeated fields are joined with a comma", async (t) => {
  const running = await start(t, ({ headers }) =>
    reply(JSON.stringify(["content-type", "Content-Type", "Accept"].map((name) => headers.get(name)))),
  );
  const { body } = await ask(running, post("a", "Content-Type: text/a\r\nCONTENT-TYPE: text/b\r\n"));
  assert.deepEqual(JSON.parse(body), ["text/a, text/b", "text/a, text/b", null]);
});

test("RFC6749-10.14-1 an IPv4 peer on an IPv6 listener is reported by its IPv4 address", async (t) => {
  const answer = await ask(await start(t, echo, { host: "::" }), get());
  assert.equal(JSON.parse(answer.body).address, "127.0.0.1");
});

// --- the body -----------------------------------------------------------------------------------------------

const small = { limits: { bodyBytesMax: 1000 } };
const full = "a".repeat(1000);
const over = "a".repeat(1001);
const bodies = [
  ["PROD-8.4-2 a body at the limit is accepted", post(full), 200],
  ["PROD-8.4-2 a body over the limit is refused", post(over), 413],
  ["PROD-8.4-2 a chunked body at the limit is accepted", `${chunked(full)}0\r\n\r\n`, 200],
  ["PROD-8.4-2 a chunked body over the limit before its end is refused", chunked(over), 413],
  ["PROD-8.4-2 a body of 300 KiB with an answer is refused", post("a".repeat(300 * 1024)), 413],
  [
    "PROD-8.4-2 chunk extensions that are too long are refused",
    `${chunked("a")}1;${"x".repeat(20_000)}\r\na\r\n`,
    413,
  ],
  ["RFC6749-10.14-1 a malformed chunk is refused", `${chunked("a")}zz\r\n`, 400],
] as const;
for (const [name, text, status] of bodies) {
  test(name, async (t) => {
    const running = await start(t, echo, small);
    const answer = await ask(running, text);
    if (status === 200) assert.equal(JSON.parse(answer.body).body, full);
    else assertOAuthError(answer, status);
    assert.deepEqual(
      running.entries.map((entry) => [entry.method, entry.status]),
      [["POST", status]],
    );
  });
}

test("PROD-8.4-2 after a body that was too large the connection is kept", async (t) => {
  const client = new Client((await start(t, echo, small)).server.port);
  const answers = await client.ask(`${post(over)}${get()}`, 2);
  client.socket.destroy();
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [413, 200],
  );
});

test("the connection of an upload that does not end is closed", async (t) => {
  const client = new Client((await start(t, echo, small)).server.port);
  await client.ask(chunked(over));
  const piece = `4000\r\n${"a".repeat(0x4000)}\r\n`;
  const pump = (): void => {
    while (!client.closed && client.socket.write(piece, "latin1"));
    if (!client.closed) client.socket.once("drain", pump);
  };
  pump();
  await client.gone();
});

test("an expected body gets 100 Continue", async (t) => {
  const client = new Client((await start(t)).server.port);
  const head = `POST / HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 1\r\n\r\n`;
  assert.equal((await client.ask(head))[0]?.status, 100);
  assert.equal((await client.ask("a"))[0]?.status, 200);
  client.socket.destroy();
});

test("PROD-8.4-2 a body that is too large is refused without 100 Continue", async (t) => {
  const running = await start(t, echo, small);
  const head = `POST / HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n`;
  assertOAuthError(await ask(running, head), 413);
});

// --- timeouts and limits of connections ---------------------------------------------------------------------

/** Timeouts that no test reaches, so that only the one under test can end a connection. */
const patient = {
  handshakeTimeoutMs: 60_000,
  headersTimeoutMs: 60_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
  checkIntervalMs: 20,
};

test("a head that stays incomplete is answered with 408", async (t) => {
  const running = await start(t, echo, { limits: { ...patient, headersTimeoutMs: 100 } });
  assertOAuthError(await ask(running, "GET / HTTP/1.1\r\nHost:"), 408);
});

test("a body that stays incomplete is answered with 408", async (t) => {
  const running = await start(t, echo, {
    limits: { ...patient, headersTimeoutMs: 100, requestTimeoutMs: 100 },
  });
  const answer = await ask(running, `POST / HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\na`);
  assertOAuthError(answer, 408);
  await until(() => running.entries.length > 0, "it is logged");
  assert.deepEqual(
    running.entries.map((entry) => [entry.method, entry.status]),
    [["POST", 408]],
  );
});

test("a connection that is idle after the handshake is closed", async (t) => {
  const running = await start(t, echo, { limits: { ...patient, idleTimeoutMs: 100 } });
  const client = new Client(running.server.port);
  await once(client.socket, "secureConnect");
  await client.gone();
});

test("a connection that is idle after a request is closed", async (t) => {
  const running = await start(t, echo, { limits: { ...patient, idleTimeoutMs: 100 } });
  const client = new Client(running.server.port);
  assert.equal((await client.ask(get()))[0]?.status, 200);
  await client.gone();
});

test("a connection whose handshake does not begin is closed", async (t) => {
  const running = await start(t, echo, { limits: { ...patient, handshakeTimeoutMs: 100 } });
  const socket = net.connect(running.server.port, "127.0.0.1");
  socket.on("error", () => undefined);
  await inTime(once(socket.resume(), "close"), "the connection closes");
});

test("timeouts are checked at least every two seconds by default", () => {
  assert.ok(LIMITS.checkIntervalMs <= 2000);
});

/** Whether each of these simultaneous connections is served. */
async function served(running: Running, localAddresses: readonly string[]): Promise<boolean[]> {
  const clients: Client[] = [];
  const outcomes: boolean[] = [];
  for (const localAddress of localAddresses) {
    const client = new Client(running.server.port, { localAddress });
    clients.push(client);
    outcomes.push(
      await client.ask(get()).then(
        (answers) => answers.length === 1,
        () => false,
      ),
    );
  }
  for (const client of clients) client.socket.destroy();
  await Promise.all(clients.map((client) => client.gone()));
  await settle();
  return outcomes;
}

test("the connections of one source are limited, and closed ones count no more", async (t) => {
  const running = await start(t, echo, { limits: { connectionsPerSourceMax: 2 } });
  for (let round = 0; round < 2; round += 1) {
    const outcomes = await served(running, ["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"]);
    assert.deepEqual(outcomes, [true, true, false, true]);
  }
});

test("the connections of a source that has proven itself are not limited, nor counted for the others", async (t) => {
  const leaf = await authority.issueClient();
  const isProven = ({ certificates: [first] }: HandshakeCertificates): boolean =>
    first !== undefined && Buffer.compare(leaf.der, first) === 0;
  const running = await start(t, echo, { isProven, limits: { connectionsPerSourceMax: 2 } });
  const clients: Client[] = [];
  const statuses: (number | undefined)[] = [];
  const open = async (options: tls.ConnectionOptions): Promise<void> => {
    const client = new Client(running.server.port, options);
    clients.push(client);
    statuses.push((await client.ask(get()).catch(() => []))[0]?.status);
  };
  for (let index = 0; index < 4; index += 1) await open({ key: leaf.key, cert: leaf.cert });
  for (let index = 0; index < 3; index += 1) await open({});
  for (const client of clients) client.socket.destroy();
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, undefined]);
});

test("the number of all connections is limited", async (t) => {
  const running = await start(t, echo, { limits: { connectionsMax: 2 } });
  for (let round = 0; round < 2; round += 1) {
    assert.deepEqual(await served(running, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]), [true, true, false]);
  }
});

test("the number of requests of one connection is limited", async (t) => {
  const running = await start(t, echo, { limits: { requestsPerConnectionMax: 2 } });
  const client = new Client(running.server.port);
  const answers = await client.ask(get("/1") + get("/2") + get("/3"), 3);
  await client.gone();
  assert.deepEqual(
    answers.map((answer) => [JSON.parse(answer.body).url, answer.headers.get("connection")]),
    [
      ["https://as.example/1", "keep-alive"],
      ["https://as.example/2", "close"],
    ],
  );
  assert.equal(running.entries.length, 2);
});

test("a connection of HTTP/1.0 is closed after its answer", async (t) => {
  const client = new Client((await start(t)).server.port);
  await client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  await client.gone();
});

test("RFC8705-2-2 the age of a connection is limited", async (t) => {
  const young = await start(t, echo, { limits: { connectionAgeMaxMs: 3_600_000 } });
  const kept = new Client(young.server.port);
  assert.equal((await kept.ask(get()))[0]?.headers.get("connection"), "keep-alive");
  kept.socket.destroy();
  const old = await start(t, echo, { limits: { connectionAgeMaxMs: 1 } });
  const closed = new Client(old.server.port);
  await once(closed.socket, "secureConnect");
  await sleep(5);
  assert.equal((await closed.ask(get()))[0]?.headers.get("connection"), "close");
  await closed.gone();
});

// --- answers and faults -------------------------------------------------------------------------------------

test("RFC6749-5.1-5 status, fields and body of an answer are sent", async (t) => {
  const running = await start(t, () => reply("grün", 201, { "X-A": "b" }));
  const { status, headers, body } = await ask(running, get());
  assert.equal(status, 201);
  assert.equal(headers.get("x-a"), "b");
  assert.equal(Buffer.from(body, "latin1").toString(), "grün");
});

test("RFC6749-5.1-5 HEAD is answered like GET without the body", async (t) => {
  const client = new Client((await start(t)).server.port);
  const [first] = await client.ask(get());
  await client.ask(`HEAD / HTTP/1.1\r\n${HOST}\r\n${get("/next")}`, 2).catch(() => undefined);
  const [head = "", next = ""] = client.received.split(/(?=HTTP\/1\.1 )/);
  client.socket.destroy();
  // One byte more than for GET, because the handler echoes the method.
  assert.match(
    head,
    new RegExp(`content-length: ${Number(first?.headers.get("content-length")) + 1}\r\n`, "i"),
  );
  assert.match(head, /\r\n\r\n$/);
  assert.match(next, /^HTTP\/1\.1 200 /);
});

test("RFC6749-5.1-5 an answer with 204 has no length", async (t) => {
  const { status, headers } = await ask(await start(t, () => reply("", 204)), get());
  assert.equal(status, 204);
  assert.equal(headers.get("content-length"), null);
});

test("RFC6749-5.1-5 pipelined requests are answered in their order", async (t) => {
  const running = await start(t, async (request, peer) => {
    if (request.url.endsWith("/slow")) await sleep(30);
    return echo(request, peer);
  });
  const client = new Client(running.server.port);
  const answers = await client.ask(get("/slow") + get("/fast"), 2);
  client.socket.destroy();
  assert.deepEqual(
    answers.map((answer) => JSON.parse(answer.body).url),
    ["https://as.example/slow", "https://as.example/fast"],
  );
});

test("RFC6749-5.1-5 many pipelined requests are answered even if the client reads late", async (t) => {
  const running = await start(t, async () => {
    await sleep(1);
    return reply("x".repeat(50_000));
  });
  const client = new Client(running.server.port);
  // The client does not read at first.
  client.socket.pause();
  setTimeout(() => client.socket.resume(), 300);
  const answers = await client.ask(get().repeat(100), 100, MANY_MS);
  client.socket.destroy();
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
});

test("HTTP-D-10, RFC6749-5.1-5 a pipelined request is begun when the one before it is answered", async (t) => {
  const begun: string[] = [];
  const finished = Promise.withResolvers<void>();
  const running = await start(t, async (request, peer) => {
    begun.push(new URL(request.url).pathname);
    if (request.url.endsWith("/1")) await finished.promise;
    return echo(request, peer);
  });
  const client = new Client(running.server.port);
  const paths = ["/1", "/2", "/3", "/4"];
  // Bodies, so that the end of one request and the head of the next come in one piece.
  const text = paths.map((path) => post("a=b").replace("/ ", `${path} `)).join("");
  const answers = client.ask(text, paths.length);
  await client.until(() => begun.length > 0);
  await settle();
  assert.deepEqual(begun, ["/1"]);
  finished.resolve();
  assert.deepEqual(
    (await answers).map(({ body }) => [new URL(JSON.parse(body).url).pathname, JSON.parse(body).body]),
    paths.map((path) => [path, "a=b"]),
  );
  client.socket.destroy();
});

test("the requests that came in whole in one turn of the event loop are handled together, step by step", async (t) => {
  const steps: string[] = [];
  const running = await start(t, async () => {
    steps.push("first");
    await undefined;
    steps.push("second");
    return reply();
  });
  const clients = Array.from({ length: 3 }, () => new Client(running.server.port));
  await Promise.all(clients.map(({ socket }) => once(socket, "secureConnect")));
  await settle();
  for (const { socket } of clients) socket.write(post("a=b"));
  for (const client of clients) await client.until(() => parseAnswers(client.received).length === 1);
  assert.deepEqual(steps, ["first", "first", "first", "second", "second", "second"]);
});

test("RFC6749-5.1-5 between the pipelined requests of many connections another client is served", async (t) => {
  const paths: string[] = [];
  const running = await start(t, (request) => {
    paths.push(new URL(request.url).pathname);
    return reply("x".repeat(500));
  });
  const clients = Array.from({ length: 8 }, () => new Client(running.server.port));
  const other = new Client(running.server.port);
  await Promise.all([other, ...clients].map(({ socket }) => once(socket, "secureConnect")));
  for (const { socket } of clients) socket.write(get().repeat(200));
  other.socket.write(get("/other"));
  await other.until(() => parseAnswers(other.received).length === 1);
  const before = paths.length;
  assert.ok(paths.includes("/other") && before < 400, `${before} of 1600 were handled before the answer`);
  await Promise.all(
    clients.map((client) => client.until(() => client.received.split("HTTP/1.1 200").length > 200, MANY_MS)),
  );
  for (const { socket } of [other, ...clients]) socket.destroy();
});

test("RFC6749-5.1-5 pipelined requests that are cut anywhere are read", async (t) => {
  const running = await start(t);
  const text = [get(), post("a\r\n\r\nb"), chunked("c\r\n\r\n"), "0\r\n\r\n", get()].join("");
  for (let cut = 1; cut < text.length; cut += 3) {
    const client = new Client(running.server.port);
    await once(client.socket, "secureConnect");
    client.socket.write(text.slice(0, cut), "latin1");
    await sleep(1);
    client.socket.write(text.slice(cut), "latin1");
    await client.until(() => parseAnswers(client.received).length === 4);
    client.socket.destroy();
    assert.deepEqual(
      parseAnswers(client.received).map(({ body }) => JSON.parse(body).body),
      ["", "a\r\n\r\nb", "c\r\n\r\n", ""],
      `cut after ${cut}`,
    );
  }
});

test("HTTP-D-10, RFC6749-10.14-1 the answer of a request is sent before the refusal of a malformed next one", async (t) => {
  const begun = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const running = await start(t, async (request, peer) => {
    begun.resolve();
    await finished.promise;
    return echo(request, peer);
  });
  const client = new Client(running.server.port);
  const answers = client.ask(get(), 2);
  await inTime(begun.promise, "the handler is called");
  client.socket.write("garbage\r\n\r\n");
  finished.resolve();
  assert.deepEqual(
    (await answers).map(({ status }) => status),
    [200, 400],
  );
  await client.gone();
});

for (const [what, next] of [
  ["a malformed request", "garbage\r\n\r\n"],
  ["an unknown transfer coding", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n`],
  ["CONNECT", `CONNECT as.example:443 HTTP/1.1\r\n${HOST}\r\n`],
] as const) {
  test(`RFC6749-10.14-1 ${what} in one piece with the end of a request is refused after its answer`, async (t) => {
    const running = await start(t);
    const client = new Client(running.server.port);
    await once(client.socket, "secureConnect");
    client.socket.write(post("a=b") + next);
    await client.gone();
    assert.deepEqual(
      parseAnswers(client.received).map(({ status }) => status),
      [200, what === "CONNECT" ? 405 : 400],
    );
  });
}

test("RFC6749-10.14-1 a request that waits and whose client disconnects is logged and not handled", async (t) => {
  let handled = 0;
  const late = answerAfter(t);
  const running = await start(t, () => {
    handled += 1;
    return late;
  });
  const client = new Client(running.server.port);
  await once(client.socket, "secureConnect");
  client.socket.write(post("a") + get());
  await client.until(() => handled === 1);
  client.socket.destroy();
  await client.until(() => running.entries.length === 1);
  assert.deepEqual([running.entries[0]?.method, running.entries[0]?.status, handled], ["GET", 0, 1]);
});

test("RFC6749-5.2-1, PROD-7.5-1 a lost store is answered with 503", async (t) => {
  const running = await start(t, () => {
    throw new StoreUnavailable("postgres://secret@db");
  });
  const answer = await ask(running, get());
  assertOAuthError(answer, 503, "temporarily_unavailable");
  assert.equal(answer.headers.get("retry-after"), "1");
  assert.doesNotMatch(answer.body, /secret/);
});

test("HTTP-D-9, RFC6749-5.2-1, PROD-7.5-1 steps of a handler that together take too long are answered with 503", async (t) => {
  const steps: boolean[] = [];
  const finished = Promise.withResolvers<void>();
  const running = await start(
    t,
    async (_request, { deadline }) => {
      for (let step = 0; step < 3; step += 1) {
        await sleep(60);
        steps.push(deadline.aborted);
      }
      finished.resolve();
      return reply();
    },
    { limits: { answerTimeoutMs: 100 } },
  );
  const answer = await ask(running, get());
  assertOAuthError(answer, 503, "temporarily_unavailable");
  assert.equal(answer.headers.get("retry-after"), "1");
  assert.ok(steps.length < 3);
  await finished.promise;
  assert.deepEqual([steps[0], steps[2]], [false, true]);
  assert.deepEqual(
    running.entries.map(({ status, fault }) => [status, fault?.split("\n")[0]]),
    [[503, "DeadlinePassed"]],
  );
});

for (const [how, handler] of [
  ["at once", () => reply()],
  ["later", echo],
] satisfies [string, Handler][]) {
  test(`the deadline of a request that is answered ${how} is left to no timer`, async (t) => {
    const running = await start(t, handler);
    const client = new Client(running.server.port);
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    await client.ask(get());
    const before = timers();
    for (let round = 0; round < 20; round++) await client.ask(get());
    assert.ok(timers() < before + 20, `${before} timers became ${timers()}`);
    client.socket.destroy();
  });
}

test("PROD-8.3-1 a handler is told that its peer left, and no answer is written then", async (t) => {
  const waiting = Promise.withResolvers<void>();
  const running = await start(t, async (_request, { gone }) => {
    assert.ok(gone);
    waiting.resolve();
    await new Promise((_resolve, reject) => gone.addEventListener("abort", () => reject(gone.reason)));
    return reply();
  });
  const client = new Client(running.server.port);
  await once(client.socket, "secureConnect");
  client.socket.write(get());
  await waiting.promise;
  client.socket.destroy();
  await client.until(() => running.entries.length > 0);
  assert.deepEqual(
    running.entries.map(({ status, level, fault }) => [status, level, fault]),
    [[0, "info", undefined]],
  );
});

test("RFC6749-5.2-1 the time to answer is counted from the end of the request", async (t) => {
  const running = await start(t, echo, { limits: { answerTimeoutMs: 100 } });
  const client = new Client(running.server.port);
  await once(client.socket, "secureConnect");
  client.socket.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\na`);
  await sleep(150);
  assert.equal((await client.ask("b"))[0]?.status, 200);
  client.socket.destroy();
});

test("the form of an answer that no handler made is that of its path: fault, deadline and refusal", async (t) => {
  const handler: Handler = (request) =>
    request.url.endsWith("/slow") ? new Promise(() => undefined) : Promise.reject(new Error("a bug"));
  const dress: Dress = ({ path, acceptLanguage }, answer) => ({
    ...answer,
    body: `${answer.status} at ${path} for ${acceptLanguage}`,
  });
  const running = await start(t, handler, { limits: { answerTimeoutMs: 100 }, dress });
  const of = async (text: string) => (await ask(running, text)).body;
  assert.equal(await of(get("/bug", "Accept-Language: de\r\n")), "500 at /bug for de");
  assert.equal(await of(get("/slow")), "503 at /slow for null");
  const large = `POST /large HTTP/1.1\r\n${HOST}Content-Length: 100000\r\n\r\n`;
  assert.equal(await of(large + "a".repeat(100_000)), "413 at /large for null");
});

test("a fault in the form of an answer does not cost the answer", async (t) => {
  const dress: Dress = () => assert.fail("a bug");
  const running = await start(t, () => Promise.reject(new Error("a bug")), { dress });
  assertOAuthError(await ask(running, get()), 500, "server_error");
});

const faults: readonly (readonly [string, Handler])[] = [
  ["RFC6749-5.2-1 a thrown error is answered with 500", () => Promise.reject(new TypeError("eyJ.secret"))],
  [
    "RFC6749-5.2-1 an error that is thrown at once is answered with 500",
    () => {
      throw new TypeError("eyJ.secret");
    },
  ],
  ["RFC6749-5.2-1 any thrown value is answered with 500", () => Promise.reject("eyJ.secret")],
  ["RFC6749-5.2-1 a status that cannot be sent is answered with 500", () => reply("", 0)],
  [
    "RFC6749-5.2-1 a field that cannot be sent is answered with 500",
    () => reply("", 200, { "X-A": "secret\n" }),
  ],
];
for (const [name, handler] of faults) {
  test(name, async (t) => {
    const running = await start(t, handler);
    const client = new Client(running.server.port);
    for (let round = 0; round < 2; round += 1) {
      const [answer] = await client.ask(get("/fault"));
      assert.ok(answer);
      assertOAuthError(answer, 500, "server_error");
      const description = "a fault of the server, which its log has under the X-Request-Id";
      assert.deepEqual(JSON.parse(answer.body), { error: "server_error", error_description: description });
      const entry = running.entries[round];
      assert.equal(entry?.level, "error");
      assert.equal(entry?.status, 500);
      assert.ok(entry?.fault);
      assert.doesNotMatch(entry?.fault ?? "", /secret/);
    }
    client.socket.destroy();
  });
}

test("RFC6749-5.2-1 a client that disconnects during its body causes no fault in the log", async (t) => {
  const running = await start(t);
  const client = new Client(running.server.port);
  await once(client.socket, "secureConnect");
  client.socket.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\na`);
  await settle();
  client.socket.destroy();
  await client.until(() => running.entries.length > 0);
  assert.deepEqual(
    running.entries.map((entry) => [entry.level, entry.status]),
    [["info", 0]],
  );
});

test("RFC6749-5.2-1 a client that disconnects before its answer causes no fault in the log", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const running = await start(t, async () => {
    await promise;
    return reply();
  });
  const client = new Client(running.server.port);
  await once(client.socket, "secureConnect");
  client.socket.write(get());
  await settle();
  client.socket.destroy();
  await settle();
  resolve();
  await client.until(() => running.entries.length > 0);
  assert.deepEqual(
    running.entries.map((entry) => [entry.level, entry.status]),
    [["info", 0]],
  );
});

// --- the log ------------------------------------------------------------------------------------------------

test("RFC6749-10.3-1 neither query nor fields nor body are logged", async (t) => {
  const running = await start(t);
  await ask(
    running,
    post("hush-body", "Authorization: Bearer hush-field\r\n").replace("/ ", "/p?q=hush-query "),
  );
  const [entry] = running.entries;
  assert.ok(entry);
  assert.equal(entry.path, "/p");
  assert.doesNotMatch(formatLogEntry(entry), /hush/);
});

test("RFC6749-10.3-1 the class and location of a fault are logged, not its message", () => {
  const cause = Object.assign(new RangeError("hush\n    at hush"), { code: "E_CAUSE" });
  const text = describeFault(new TypeError("hush", { cause }));
  assert.match(text, /^TypeError\n {4}at .*serve\.test\.ts/);
  assert.match(text, /^RangeError E_CAUSE$/m);
  assert.doesNotMatch(text, /hush/);
});

test("HTTP-D-66 a request that the store failed tells code, words and remedy, once a second, and how many were between", () => {
  let nowMs = 0;
  const shorten = tellOnceASecond(() => nowMs);
  const message = "the database answered 53100: the disk of the database is full: free or add space there";
  const fault = Object.assign(new StoreUnavailable(message), { code: "53100" });
  const trace = newTrace("POST", "/token", "192.0.2.1");
  const line = () => JSON.parse(formatLogEntry(shorten(entryOf(trace, 503, { fault }))));
  const [first, ...others] = [line(), line(), line()];
  assert.equal(first.unavailable, message);
  assert.match(first.fault, /^StoreUnavailable 53100\n {4}at /);
  for (const { fault, unavailable, untold } of others)
    assert.deepEqual([fault, unavailable, untold], ["StoreUnavailable 53100", undefined, undefined]);
  nowMs = 1_000;
  const { unavailable, untold } = line();
  assert.deepEqual([unavailable, untold], [message, 2]);
  nowMs = 2_000;
  assert.equal(line().untold, undefined);
});

test("HTTP-D-66 a request that no fault of the store met keeps all of its line", () => {
  const shorten = tellOnceASecond(() => 0);
  const trace = newTrace("POST", "/token", "192.0.2.1");
  for (const fault of [new TypeError("hush"), new TypeError("hush")]) {
    const entry = shorten(entryOf(trace, 500, { fault }));
    assert.match(entry.fault ?? "", /^TypeError\n {4}at /);
    assert.doesNotMatch(formatLogEntry(entry), /hush|unavailable/);
  }
});

const entry: LogEntry = {
  time: "2026-11-21T00:00:00.000Z",
  level: "info",
  event: "request",
  requestId: "id",
  method: "GET",
  path: "/",
  status: 200,
  durationMs: 1.5,
  address: "192.0.2.1",
};
for (const [what, path] of [
  ["line ends", "/a\r\n{}"],
  ["control characters", "/\u0000\u001b[2J\u007f\u0085"],
  ["line separators", "/\u2028\u2029"],
  ["bidi marks", "/\u202e\u2066"],
  ["lone surrogates", "/\ud800"],
] as const) {
  test(`RFC6749-10.14-1 ${what} is escaped in the log`, () => {
    const line = formatLogEntry({ ...entry, path });
    assert.match(line, /^[ -~]+$/);
    assert.deepEqual(JSON.parse(line), { ...entry, path });
  });
}

test("HTTP-D-14, RFC6749-10.14-1 the client that a refused request named is truncated and escaped in the log", async (t) => {
  const refused = { reason: "secret_wrong", unprovenClient: `\n\u202e${"a".repeat(5000)}` } as const;
  const running = await start(t, () => ({ ...reply(), refused }));
  const answer = await ask(running, get("/"));
  assert.doesNotMatch(JSON.stringify(answer), /secret_wrong/);
  const [entry] = running.entries;
  assert.equal(entry?.refused, "secret_wrong");
  assert.equal(entry.unprovenClient?.length, 256);
  assert.match(formatLogEntry(entry), /^[ -~]+$/);
});

test("RFC6749-10.14-1 a long path is truncated in the log", async (t) => {
  const running = await start(t);
  await ask(running, get(`/${"a".repeat(5000)}`));
  assert.equal(running.entries[0]?.path.length, 256);
});

test("RFC6749-10.14-1 each request gets its own id, and the client's is ignored", async (t) => {
  const ids: string[] = [];
  const running = await start(t, (_request, peer) => {
    ids.push(peer.requestId);
    return reply();
  });
  const client = new Client(running.server.port);
  for (let round = 0; round < 2; round += 1) {
    const [answer] = await client.ask(get("/", "X-Request-Id: mine\r\n"));
    assert.equal(answer?.headers.get("x-request-id"), ids[round]);
    assert.equal(running.entries[round]?.requestId, ids[round]);
  }
  client.socket.destroy();
  assert.notEqual(ids[0], ids[1]);
  assert.ok(!ids.includes("mine"));
});

// --- shutdown -----------------------------------------------------------------------------------------------

test("shutdown completes running requests, closes idle connections and accepts no new ones", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = false;
  const running = await start(
    t,
    async (request, peer) => {
      if (request.url.endsWith("/slow")) {
        begun = true;
        await promise;
      }
      return echo(request, peer);
    },
    { limits: { ...patient, shutdownTimeoutMs: 10_000 } },
  );
  const idle = new Client(running.server.port);
  await idle.ask(get());
  const silent = new Client(running.server.port);
  await once(silent.socket, "secureConnect");
  const busy = new Client(running.server.port);
  const answers = busy.ask(get("/slow"));
  await busy.until(() => begun);
  const done = running.server.shutdown();
  await Promise.all([idle.gone(), silent.gone()]);
  assert.equal(await handshake(running, {}), "refused");
  assert.equal(busy.closed, false);
  resolve();
  const [answer] = await answers;
  assert.equal(answer?.status, 200);
  assert.equal(answer?.headers.get("connection"), "close");
  await inTime(done, "the shutdown completes");
});

test("a draining listener serves on, each answer ends its connection, and idle ones end with the shutdown", async (t) => {
  const running = await start(t, echo, { limits: patient });
  const idle = new Client(running.server.port);
  await idle.ask(get());
  running.server.drain();
  const known = new Client(running.server.port);
  for (const client of [known, new Client(running.server.port)]) {
    const [answer] = await client.ask(get());
    assert.deepEqual([answer?.status, answer?.headers.get("connection")], [200, "close"]);
    await client.gone();
  }
  assert.equal(idle.closed, false);
  const [last] = await idle.ask(get());
  assert.equal(last?.headers.get("connection"), "close");
  const silent = new Client(running.server.port);
  await once(silent.socket, "secureConnect");
  await inTime(running.server.shutdown(), "the shutdown completes");
  await silent.gone();
});

test("a connection whose answer did not say that it ends stays open when the drain begins behind that answer", async (t) => {
  let server: Server | undefined;
  // The request is in the log when its answer was written, and not yet sent.
  const running = await start(t, echo, { limits: patient, log: () => server?.drain() });
  server = running.server;
  const client = new Client(running.server.port);
  const [before] = await client.ask(get());
  assert.notEqual(before?.headers.get("connection"), "close");
  await settle();
  const [after] = await client.ask(get());
  assert.deepEqual([after?.status, after?.headers.get("connection")], [200, "close"]);
  await client.gone();
});

test("no handler sees a request behind an answer that ends its connection, also while draining", async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let handled = 0;
  const running = await start(
    t,
    async () => {
      handled += 1;
      await promise;
      return reply("x");
    },
    { limits: patient },
  );
  const client = new Client(running.server.port);
  const answers = client.ask(get() + get(), 2);
  await client.until(() => handled === 1);
  running.server.drain();
  resolve();
  assert.equal((await answers).length, 1);
  await client.gone();
  await settle();
  assert.equal(handled, 1);
});

test("a new connection whose first request is on its way at the shutdown gets its answer", async (t) => {
  const running = await start(t, echo, { limits: patient });
  const early = new Client(running.server.port);
  await once(early.socket, "secureConnect");
  // Known to the server too, behind its half of the handshake.
  await settle();
  const done = running.server.shutdown();
  const [answer] = await early.ask(get());
  assert.deepEqual([answer?.status, answer?.headers.get("connection")], [200, "close"]);
  await inTime(Promise.all([early.gone(), done]), "the shutdown completes");
});

test("a connection that is still in its handshake at the shutdown gets the answer to its first request", async (t) => {
  const running = await start(t, echo, { limits: patient });
  const socket = net.connect(running.server.port, "127.0.0.1");
  await once(socket, "connect");
  await settle();
  const done = running.server.shutdown();
  const late = new Client(running.server.port, { socket });
  await once(late.socket, "secureConnect");
  const [answer] = await late.ask(get());
  assert.deepEqual([answer?.status, answer?.headers.get("connection")], [200, "close"]);
  await inTime(Promise.all([late.gone(), done]), "the shutdown completes");
});

test("shutdown closes connections that do not finish in time", async (t) => {
  const late = answerAfter(t);
  const running = await start(t, () => late, {
    limits: { ...patient, shutdownTimeoutMs: 100 },
  });
  const stuck = new Client(running.server.port);
  void stuck.ask(get());
  const unshaken = net.connect(running.server.port, "127.0.0.1");
  unshaken.on("error", () => undefined);
  await sleep(50);
  await inTime(running.server.shutdown(), "the shutdown completes");
  await stuck.gone();
});

test("shutdown sends an answer that has begun and then closes its connection", async (t) => {
  const size = 8 * 1024 * 1024;
  const running = await start(t, () => reply("x".repeat(size)), {
    limits: { ...patient, shutdownTimeoutMs: 10_000 },
  });
  const slow = new Client(running.server.port);
  await once(slow.socket, "secureConnect");
  slow.socket.pause();
  slow.socket.write(get());
  await slow.until(() => running.entries.length === 1);
  const done = running.server.shutdown();
  slow.socket.resume();
  await inTime(done, "the shutdown completes");
  await slow.gone();
  assert.ok(slow.received.length > size);
});

test("shutdown closes a connection that is still in its handshake", async (t) => {
  const running = await start(t, echo, { limits: { ...patient, shutdownTimeoutMs: 10_000 } });
  const socket = net.connect(running.server.port, "127.0.0.1");
  await once(socket, "connect");
  await settle();
  const done = running.server.shutdown();
  const late = new Client(running.server.port, { socket });
  await inTime(Promise.all([late.gone(), done]), "the shutdown completes");
});
