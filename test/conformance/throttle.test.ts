/** The throttle over real sockets: too many failures get 429, and a valid proof is never refused for them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { generateKeyPair, SignJWT } from "jose";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { type DatabaseProxy, openDatabaseProxy } from "../support/database-proxy.ts";
import {
  bearer,
  byKey,
  makeKey,
  openTo,
  type Publisher,
  publish,
  startPublisher,
} from "../support/documents.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { assertRegistered, post, reload } from "../support/registration.ts";
import { stop } from "../support/stop.ts";
import { until, whilePassing } from "../support/until.ts";
import { type Form, ISSUER, JWT_SPIFFE, makeWorld, TRUST_DOMAIN, type World } from "../support/world.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials", audience: API };
const AUDIT = { audience: `${ISSUER}/api`, scope: "audit:read" };
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const CLIENTS = ["first", "second", "third", "fourth", "busy"];
/** Failures in a minute; so many are in a full bucket. */
const BY_SOURCE = 12;
const BY_CLIENT = 5;
const key = await makeKey("k1");

const configuration = (limits: object) => ({
  clients: Object.fromEntries(
    CLIENTS.map((name) => [name, { method: "client_secret_post", secrets: [`secret of ${name}`] }]),
  ),
  targets: [{ names: [API], scopes: ["read"] }],
  policies: [
    { id: "a", allow: "client_credentials", clients: CLIENTS, targets: [API], scopes: ["read"] },
    {
      id: "b",
      allow: "client_credentials",
      targets: [API],
      scopes: ["read"],
      actors: [`spiffe://${TRUST_DOMAIN}/*`],
    },
    {
      id: "c",
      allow: "client_credentials",
      clients: ["first"],
      targets: [AUDIT.audience],
      scopes: [AUDIT.scope],
    },
  ],
  limits,
});

let world: World;
let database: SharedPostgres;
let proxy: DatabaseProxy;
/** A server on PostgreSQL with open registration, and with metadata documents of `publisher`. */
let open: World;
let publisher: Publisher;
/** A server whose budget is three failures, and three more each second. */
let tight: World;

before(async () => {
  database = await sharePostgres();
  proxy = await openDatabaseProxy(await freshDatabase(database));
  publisher = await startPublisher();
  const { clientOrigins, files } = openTo({ publisher });
  [world, open, tight] = await Promise.all([
    makeWorld(
      configuration({
        failuresPerMinuteBySource: BY_SOURCE,
        failuresPerMinuteByClient: BY_CLIENT,
        requestsPerSecondByClient: 3,
      }),
      { clock: true },
    ),
    makeWorld(
      {
        ...configuration({ failuresPerMinuteBySource: BY_SOURCE, requestsPerSecondByClient: 1000 }),
        registration: { mode: "open", open: { scopes: ["read"] } },
        clientMetadataDocuments: { origins: [publisher.origin] },
        clientOrigins,
        drafts: [SPIFFE_DRAFT, DRAFT],
      },
      { files, postgres: proxy.url },
    ),
    makeWorld(configuration({ proofMillisecondsPerSecond: 1, failuresPerMinuteBySource: 1000 }), {
      clock: true,
    }),
  ]);
});

const dropIdle = (): void => {
  for (const { socket } of [...idle.values()].flat()) socket.destroy();
};
after(() => stop(dropIdle, world, tight, open, proxy, database, publisher));

type Answer = { status: number; retryAfter: string | undefined; error: unknown; text: string };

/** Each test uses its own addresses, so that its buckets are full. */
let addresses = 1;
const newAddress = (): string => `127.0.0.${++addresses}`;

function dial(localAddress: string, { server, ca }: World): TLSSocket {
  const at: ConnectionOptions & { localAddress: string } = { port: server.port, localAddress };
  const socket = connect({ ...at, host: "127.0.0.1", servername: "as.example", ca });
  return socket.setEncoding("latin1").on("error", () => undefined);
}

function tokenRequest(form: Form): string {
  const body = new URLSearchParams(form as Record<string, string>).toString();
  const type = "Content-Type: application/x-www-form-urlencoded";
  const length = `Content-Length: ${body.length}`;
  return ["POST /token HTTP/1.1", "Host: as.example", type, length, "", body].join("\r\n");
}

/** Sends all requests at once on one connection; returns the responses in the same order. */
const sendAll = (from: string, forms: readonly Form[], to = world): Promise<Answer[]> =>
  talk(from, forms.map(tokenRequest), to);

type Connection = { socket: TLSSocket; received: string };
/** Connections without a request, by address and server: a handshake costs more than a request. */
const idle = new Map<string, Connection[]>();

function connectFrom(from: string, to: World): Connection {
  const known = idle.get(`${from} ${to.server.port}`)?.pop();
  if (known !== undefined) return known;
  const connection = { socket: dial(from, to), received: "" };
  connection.socket.on("data", (text: string) => {
    connection.received += text;
  });
  return connection;
}

async function talk(from: string, requests: readonly string[], to: World): Promise<Answer[]> {
  const connection = connectFrom(from, to);
  const { socket } = connection;
  const answers: Answer[] = [];
  const signal = AbortSignal.timeout(5000);
  socket.write(requests.join(""));
  while (answers.length < requests.length) {
    const { received } = connection;
    const end = received.indexOf("\r\n\r\n");
    const head = received.slice(0, end);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
    if (end < 0 || received.length < end + 4 + length) {
      // Rejects when not every request is answered in time.
      await once(socket, "data", { signal });
      continue;
    }
    const text = received.slice(end + 4, end + 4 + length);
    connection.received = received.slice(end + 4 + length);
    const retryAfter = /^retry-after: (.*)$/im.exec(head)?.[1];
    answers.push({ status: Number(head.slice(9, 12)), retryAfter, error: JSON.parse(text).error, text });
  }
  const place = `${from} ${to.server.port}`;
  idle.set(place, [...(idle.get(place) ?? []), connection]);
  return answers;
}

async function sendOne(from: string, form: Form, to = world): Promise<Answer> {
  const [answer] = await sendAll(from, [form], to);
  assert.ok(answer);
  return answer;
}

/** A request of one of our own endpoints with this access token. */
async function read(from: string, path: string, token: string): Promise<Answer> {
  const head = [`GET ${path} HTTP/1.1`, "Host: as.example", `Authorization: Bearer ${token}`];
  const [answer] = await talk(from, [[...head, "", ""].join("\r\n")], world);
  assert.ok(answer);
  return answer;
}

/** Guesses one after the other until the response is 429; their number must fit the bucket and its refill. */
async function guess(
  from: string,
  form: (index: number) => Form,
  perMinute: number,
  left = perMinute,
  { to = world, error = "invalid_client" } = {},
) {
  const startMs = performance.now();
  for (let tried = 0; ; tried++) {
    const answer = await sendOne(from, form(tried), to);
    const most = left + Math.ceil(((performance.now() - startMs) * perMinute) / 60_000);
    assert.ok(tried <= most, `${tried} guesses`);
    if (answer.status === 429) {
      assert.ok(tried >= left, `${tried} guesses`);
      return answer;
    }
    assert.deepEqual([answer.status, answer.error], [400, error]);
  }
}

const right = (name: string): Form => ({ ...CC, client_id: name, client_secret: `secret of ${name}` });
const wrong = (name: string): Form => ({ ...CC, client_id: name, client_secret: "a guess" });
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

test("RFC6749-2.3.1-8, PROD-8.3-1, PROD-7.5-1, EMA-7.5.1-1 too many guesses get 429 with Retry-After", async () => {
  const guesser = newAddress();
  const { status, error, retryAfter } = await guess(guesser, () => wrong("first"), BY_CLIENT);
  assert.deepEqual([status, error], [429, "temporarily_unavailable"]);
  assert.match(retryAfter ?? "", /^([1-9]|1[0-2])$/);
});

test("HTTP-D-2, RFC6749-2.3.1-8 guesses lock out no client: a right secret is served at the guesser's own address too", async () => {
  const [guesser, elsewhere] = [newAddress(), newAddress()];
  await guess(guesser, () => wrong("second"), BY_CLIENT);
  for (const from of [guesser, elsewhere]) {
    assert.equal((await sendOne(from, right("second"))).status, 200);
    assert.equal((await sendOne(from, right("third"))).status, 200);
  }
});

test("RFC6749-2.3.1-8 successful requests in between do not permit more guesses", async () => {
  const guesser = newAddress();
  for (let i = 1; i < BY_CLIENT; i++) assert.equal((await sendOne(guesser, wrong("third"))).status, 400);
  for (let i = 0; i < 2; i++) assert.equal((await sendOne(guesser, right("third"))).status, 200);
  await guess(guesser, () => wrong("third"), BY_CLIENT, 1);
});

test("RFC6749-2.3.1-8, PROD-8.3-1 after Retry-After exactly one more guess is permitted", async () => {
  const guesser = newAddress();
  const { retryAfter } = await guess(guesser, () => wrong("fourth"), BY_CLIENT);
  world.pass(Number(retryAfter));
  assert.equal((await sendOne(guesser, wrong("fourth"))).status, 400);
  assert.equal((await sendOne(guesser, wrong("fourth"))).status, 429);
});

test("PROD-8.3-1 the failures of a source count together, whatever client_ids it names, and not for other sources", async () => {
  const [guesser, neighbour] = [newAddress(), newAddress()];
  await guess(guesser, (index) => wrong(`unknown-${index}`), BY_SOURCE);
  assert.equal((await sendOne(guesser, wrong("first"))).status, 429);
  assert.equal((await sendOne(guesser, right("first"))).status, 200);
  assert.equal((await sendOne(neighbour, wrong("first"))).status, 400);
});

test("PROD-8.3-1 the failures of a source do not refuse an access token that is valid", async () => {
  const guesser = newAddress();
  const ask = (token: string) => read(guesser, "/audit/events?limit=1", token);
  const { access_token } = JSON.parse((await sendOne(guesser, { ...right("first"), ...AUDIT })).text);
  for (let tried = 0; (await ask("not.a.token")).status !== 429; tried++)
    assert.ok(tried <= BY_SOURCE + 3, `${tried} tries`);
  assert.match((await ask("not.a.token")).retryAfter ?? "", /^[1-5]$/);
  assert.equal((await ask(access_token)).status, 200);
});

test("RFC6749-2.3.1-8 throttling does not reveal whether a client exists", async () => {
  const [one, other] = [newAddress(), newAddress()];
  const known = await guess(one, () => wrong("first"), BY_CLIENT);
  const unknown = await guess(other, () => wrong("unknown"), BY_CLIENT);
  assert.deepEqual([known.status, known.text], [unknown.status, unknown.text]);
});

const guesses: readonly [string, () => Promise<Form>][] = [
  ["an assertion", async () => ({ client_assertion_type: JWT_BEARER, client_assertion: await forge() })],
  ["an SVID", async () => ({ client_assertion_type: JWT_SPIFFE, client_assertion: await forge() })],
  ["missing credentials", async () => ({})],
];
for (const [name, make] of guesses) {
  test(`RFC6749-2.3.1-8 guesses by ${name} are counted too, by client_id and by source`, async () => {
    const guesser = newAddress();
    const form = { ...CC, ...(await make()) };
    await guess(guesser, () => ({ ...form, client_id: "first" }), BY_CLIENT);
    // What was told to wait was not counted.
    await guess(guesser, () => form, BY_SOURCE, BY_SOURCE - BY_CLIENT);
  });
}

/** A well-formed assertion that is signed with an unknown key. */
async function forge(): Promise<string> {
  const { privateKey } = await generateKeyPair("ES256");
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ iss: "first", sub: "first", aud: ISSUER, iat: now, exp: now + 60 })
    .setProtectedHeader({ alg: "ES256" })
    .sign(privateKey);
}

test("RFC6749-2.3.1-8 refusals that reveal nothing about credentials are not counted", async () => {
  const client = newAddress();
  const wrongScope = { ...right("first"), scope: "write" };
  const malformed = { ...right("first"), grant_type: "" };
  for (let i = 0; i < 3; i++) {
    const answers = await sendAll(client, [wrongScope, ...times(8, malformed)]);
    assert.deepEqual(
      answers.map(({ error }) => error),
      ["invalid_scope", ...times(8, "invalid_request")],
    );
    world.pass(1);
  }
  assert.equal((await sendOne(client, right("first"))).status, 200);
});

test("PROD-8.3-1 requests of an authenticated client are limited by second, over all sources", async () => {
  const [one, other] = [newAddress(), newAddress()];
  const [here, there] = await Promise.all([
    sendAll(one, times(8, right("busy"))),
    sendAll(other, times(8, right("busy"))),
  ]);
  const answers = [...here, ...there];
  // Six in the bucket, and the refill while these requests were in progress.
  const served = answers.filter(({ status }) => status === 200).length;
  assert.ok(served >= 6 && served <= 9, `${served} served`);
  for (const { status, retryAfter, error } of answers.filter(({ status }) => status !== 200)) {
    assert.deepEqual([status, retryAfter, error], [429, "1", "temporarily_unavailable"]);
  }
  assert.equal((await sendOne(one, right("first"))).status, 200);
  world.pass(1);
  assert.equal((await sendOne(other, right("busy"))).status, 200);
});

test("RFC6749-2.3.1-8 guesses of others do not use up a client's own requests", async () => {
  const [guesser, client] = [newAddress(), newAddress()];
  world.pass(3);
  await guess(guesser, () => wrong("busy"), BY_CLIENT);
  for (let i = 0; i < 4; i++) assert.equal((await sendOne(client, right("busy"))).status, 200);
});

// --- the budget for verification ----------------------------------------------------------------------------------

test("PROD-8.3-1 while the budget for verification is short, sources without failures go first", async () => {
  const [guesser, client] = [newAddress(), newAddress()];
  // The connection is open before the budget runs out, so that each step of the clock finds the request in the queue.
  assert.equal((await sendOne(client, right("second"), tight)).status, 200);
  // Guesses before the first failure of their source queue like its other requests.
  assert.equal((await sendOne(guesser, wrong("first"), tight)).status, 400);
  let failed = 0;
  const guesses = times(16, wrong("first")).map(async (form) => {
    const answer = await sendOne(guesser, form, tight);
    failed += 1;
    return answer;
  });
  await until(() => failed >= 2, "the budget is used up");
  for (let asked = 0; asked < 2; asked++) {
    // As long as one failure takes of the budget.
    const answer = await whilePassing(tight, 0.3, sendOne(client, right("second"), tight), 60);
    assert.equal(answer.status, 200);
  }
  assert.ok(failed < 16, "all guesses were verified before them");
  tight.pass(60);
  for (const { status } of await Promise.all(guesses)) assert.ok(status === 400 || status === 429);
});

test("PROD-8.3-1 a caller that leaves the queue is not verified", async (t) => {
  tight.pass(60);
  const [leaver, client] = [newAddress(), newAddress()];
  await Promise.all(times(4, wrong("first")).map((form) => sendOne(client, form, tight)));
  const requests = () => tight.server.lines.filter((line) => line.includes('"path":"/token"'));
  const known = requests().length;
  const sockets = times(20, undefined).map(() => dial(leaver, tight));
  const beganMs = performance.now();
  const written = (socket: (typeof sockets)[number]) =>
    new Promise<unknown>((resolve) => socket.write(tokenRequest(wrong("third")), resolve));
  await Promise.all(sockets.map(written));
  // Their requests are in the queue: its caller is behind them.
  await sleep(100);
  for (const socket of sockets) socket.destroy();
  // The budget lets twenty failures through in six seconds and two at once; two more before the server sees them leave.
  const verifiedMax = 4 + Math.ceil((20 * (performance.now() - beganMs)) / 6_000);
  await until(() => requests().length >= known + 20, "every request has its line in the log");
  const verified = requests()
    .slice(known)
    .filter((line) => JSON.parse(line).status !== 0);
  // A queue that kept their places would verify all.
  if (verifiedMax >= 20)
    return t.skip("this machine was too busy to send twenty requests before they were verified");
  assert.ok(verified.length <= verifiedMax, `${verified.length} verified, of ${verifiedMax} at most`);
  assert.equal((await sendOne(client, right("second"), tight)).status, 200);
});

// --- refusals -----------------------------------------------------------------------------------------------------

let documents = 0;

/** Clients that the operator did not create. */
const unconfigured: readonly [string, () => Promise<[clientId: string, prove: () => Form]>][] = [
  [
    "that registered itself",
    async () => {
      const method = { token_endpoint_auth_method: "client_secret_post" };
      const metadata = { ...method, grant_types: ["client_credentials"], scope: "read" };
      const { client_id, client_secret } = assertRegistered(await post(open, metadata));
      return [client_id, () => ({ client_id, client_secret })];
    },
  ],
  [
    "of a metadata document",
    async () => {
      const clientId = publish(publisher, `/${++documents}`, byKey({ jwks: { keys: [key.jwk] } }));
      return [clientId, () => bearer(clientId, key)];
    },
  ],
];

for (const [how, make] of unconfigured) {
  test(`HTTP-D-12, PROD-8.3-1 refusals of a client ${how} that no rule names count as failures of its source, with one event each`, async () => {
    const [source, another] = [newAddress(), newAddress()];
    const [clientId, prove] = await make();
    const ask = (): Form => ({ ...CC, ...prove() });
    const refusals = async (): Promise<number> =>
      (await open.events()).filter(
        ({ type, client }) =>
          type === "token.denied" && (client as { client_id?: string } | undefined)?.client_id === clientId,
      ).length;
    await guess(source, ask, BY_SOURCE, BY_SOURCE, { to: open, error: "unauthorized_client" });
    const written = await refusals();
    assert.ok(written >= BY_SOURCE, `${written} events`);
    for (const { status } of await sendAll(source, [ask(), ask(), ask()], open)) assert.equal(status, 429);
    assert.equal(await refusals(), written);
    // A client that a rule names is served beside it, and another source has its own bucket.
    assert.equal((await sendOne(source, right("first"), open)).status, 200);
    assert.equal((await sendOne(another, ask(), open)).error, "unauthorized_client");
  });

  test(`PROD-8.3-1 a client ${how} that a rule names is not throttled for its refusals`, async () => {
    const [clientId, prove] = await make();
    await reload(open, ({ policies }) => {
      const common = { allow: "client_credentials", targets: [API], scopes: ["read"] };
      policies.push({ id: `named-${policies.length}`, clients: [clientId], ...common });
    });
    const source = newAddress();
    const refused = Array.from({ length: 2 * BY_SOURCE }, () => ({ ...CC, ...prove(), scope: "write" }));
    for (const { error } of await sendAll(source, refused, open)) assert.equal(error, "invalid_scope");
    assert.equal((await sendOne(source, { ...CC, ...prove() }, open)).status, 200);
  });
}

// --- with PostgreSQL ----------------------------------------------------------------------------------------------

test("RFC6749-2.3.1-8 concurrent guesses are charged one by one", async () => {
  const guesser = newAddress();
  const sent = times(3 * BY_SOURCE, wrong("unknown")).map((form) => sendOne(guesser, form, open));
  const answers = await Promise.all([...sent, sendOne(guesser, right("first"), open)]);
  assert.equal(answers.pop()?.status, 200);
  const refused = answers.filter(({ status }) => status === 400).length;
  // The bucket gets another one every five seconds.
  assert.ok(refused === BY_SOURCE || refused === BY_SOURCE + 1, `${refused} guesses`);
  for (const { retryAfter } of answers.filter(({ status }) => status !== 400)) {
    assert.match(retryAfter ?? "", /^[1-5]$/);
  }
});

test("RFC6749-5.2-3 the cost of a guess does not reveal whether a client is configured: the store is asked for neither", async () => {
  const guesser = newAddress();
  const ask = async (): Promise<Answer[]> => [
    await sendOne(guesser, wrong("first"), open),
    await sendOne(guesser, wrong("unknown"), open),
  ];
  const states = (answers: readonly Answer[]) => answers.map(({ status, text }) => `${status} ${text}`);
  const [known, unknown] = states(await ask());
  assert.equal(known, unknown);
  proxy.manner = "close";
  proxy.cut();
  try {
    const [known, unknown] = states(await ask());
    assert.match(unknown ?? "", /^400 .*"invalid_client"/);
    assert.equal(known, unknown);
  } finally {
    proxy.manner = "pass";
  }
});
