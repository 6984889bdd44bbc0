/** Client credentials over time: keys that are published and changed, secrets that expire, clients made on the host. */
import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { after, before, test } from "node:test";
import { exportJWK, exportPKCS8, generateKeyPair } from "jose";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { UNREACHABLE_SECONDS } from "../../src/limits/clients.ts";
import { EARLY_LOOK_SECONDS } from "../../src/limits/fetching.ts";
import { runClient } from "../support/host.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until, whilePassing } from "../support/until.ts";
import {
  claimsOf,
  type Form,
  ISSUER,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials", audience: API };
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const LOOPBACK = ["127.0.0.0/8", "::1/128"];

type Key = { pem: string; jwk: Record<string, unknown>; whole: Record<string, unknown> };

async function makeKey(kid: string): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  return {
    pem: await exportPKCS8(privateKey),
    jwk: { ...(await exportJWK(publicKey)), kid },
    whole: { ...(await exportJWK(privateKey)), kid },
  };
}

const [own, otherKey, newer] = (await Promise.all(["k1", "k1", "k2"].map(makeKey))) as [Key, Key, Key];

// --- where clients publish their keys ---------------------------------------------------------------------------

type Published = { status?: number; type?: string; body: string; headers?: Record<string, string> };

const published = new Map<string, Published>();
const fetches = new Map<string, number>();
const publish = (name: string, keys: readonly object[], rest: Partial<Published> = {}): void => {
  published.set(name, { body: JSON.stringify({ keys }), ...rest });
};
const fetchesOf = (name: string): number => fetches.get(name) ?? 0;

/** Key sets that are refused, by what is wrong with them. */
const BAD: Record<string, Partial<Published>> = {
  html: { type: "text/html" },
  text: { type: "text/plain" },
  private: { body: JSON.stringify({ keys: [own.jwk, newer.whole] }) },
  symmetric: { body: JSON.stringify({ keys: [own.jwk, { kty: "oct", kid: "s", k: "AAAA" }] }) },
  redirect: { status: 302, headers: { location: "/good" } },
  missing: { status: 404 },
  cut: { body: JSON.stringify({ keys: [own.jwk] }).slice(0, -1) },
  twice: { body: `{"keys":[],"keys":[${JSON.stringify(own.jwk)}]}` },
  large: { body: JSON.stringify({ keys: [own.jwk], filling: "a".repeat(256 * 1024) }) },
  encoded: { headers: { "content-encoding": "gzip" } },
};
/** And those that are not there now. */
const PASSING: Record<string, Partial<Published>> = {
  error: { status: 500 },
  busy: { status: 503, headers: { "retry-after": "3600" } },
  throttled: { status: 429 },
  short: { headers: { "content-length": "4096" } },
};
const ONES = ["good", "other", "rotating", "flooded", "down", "unreachable"];

// --- the servers ------------------------------------------------------------------------------------------------

let keyServer: Server;
let database: SharedPostgres;
let world: World;
let second: ServerProcess;

before(async () => {
  const authority = await makeAuthority("Clients' authority");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
  keyServer = createServer({ key: keyPem, cert: certPem }, (request, response) => {
    const name = request.url?.slice(1) ?? "";
    fetches.set(name, fetchesOf(name) + 1);
    const {
      status = 200,
      type = "application/jwk-set+json",
      body = "",
      headers = {},
    } = published.get(name) ?? {};
    response.writeHead(status, { "content-type": type, ...headers });
    // An answer that is shorter than it says ends with its connection.
    if (headers["content-length"] === undefined) response.end(body);
    else response.write(body, () => response.destroy());
  });
  await new Promise<void>((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
  const { port } = Object(keyServer.address());
  for (const name of ONES) publish(name, [own.jwk]);
  publish("other", [otherKey.jwk]);
  publish("down", [own.jwk], { headers: { "cache-control": "max-age=0" } });
  for (const [name, rest] of Object.entries({ ...BAD, ...PASSING })) publish(name, [own.jwk], rest);

  database = await sharePostgres();
  const names = [...ONES, ...Object.keys(BAD), ...Object.keys(PASSING)];
  const remote = (name: string) => ({
    url: `https://localhost:${port}/${name}`,
    ca: { file: "clients.pem" },
    ...(name !== "unreachable" && { privateNetworks: LOOPBACK }),
  });
  world = await makeWorld(
    {
      clients: {
        ...Object.fromEntries(
          names.map((name) => [name, { method: "private_key_jwt", jwksUri: remote(name) }]),
        ),
        inline: { method: "private_key_jwt", jwks: { keys: [own.jwk] } },
        secret: { method: "client_secret_basic", secrets: [{ file: "secret" }] },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "clients",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          clients: [...names, "inline", "secret"],
        },
        {
          id: "workloads",
          allow: "client_credentials",
          targets: [API],
          scopes: ["read"],
          actors: [`spiffe://${TRUST_DOMAIN}/*`],
        },
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    {
      postgres: await freshDatabase(database),
      clock: true,
      files: { "clients.pem": authority.certPem, secret: "the only one", next: "the next one" },
    },
  );
  second = await world.beside("second");
});

after(() => stop(second, world, database, keyServer));

const seconds = (): number => Math.floor(world.nowMs() / 1000);
let jtis = 0;

function assertion(client: string, { pem }: Key = own, claims: object = {}, kid = "k1"): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const usual = { iss: client, sub: client, aud: ISSUER, iat: seconds(), exp: seconds() + 60 };
  const input = `${encode({ alg: "ES256", kid })}.${encode({ ...usual, jti: `j-${++jtis}`, ...claims })}`;
  const key = { key: createPrivateKey(pem), dsaEncoding: "ieee-p1363" } as const;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

const bearer = (client_assertion: string, form: Form = {}): Promise<Answer> =>
  world.token({ ...CC, client_assertion_type: JWT_BEARER, client_assertion, ...form });

function assertClient(answer: Answer, clientId: string): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).client_id, clientId);
}

function assertRefused(answer: Answer, status = 400): void {
  assert.deepEqual([answer.status, answer.body.error], [status, "invalid_client"], answer.text);
}

// --- keys at a URL ----------------------------------------------------------------------------------------------

test("RFC8725-3.8-1, RFC8725-3.8-v1 the keys at a client's URL authenticate that client, and no other", async () => {
  assertClient(await bearer(assertion("good")), "good");
  assertClient(await bearer(assertion("other", otherKey)), "other");
  assertRefused(await bearer(assertion("good", otherKey)));
  assertRefused(await bearer(assertion("other")));
  assertRefused(await bearer(assertion("good", own, { iss: "other" })));
  assertRefused(await bearer(assertion("good", own, { sub: "other" })));
});

for (const name of Object.keys(BAD)) {
  test(`RFC7517-9.2-1 an invalid key set authenticates no client, and that is final: ${name}`, async () => {
    const answer = await bearer(assertion(name));
    assertRefused(answer);
    assert.equal(answer.headers["retry-after"], undefined);
    assert.ok(fetchesOf(name) >= 1);
  });
}

for (const name of Object.keys(PASSING)) {
  test(`MCPC-D-24 a key set that cannot be fetched now is told as such, and its client comes again: ${name}`, async () => {
    const one = assertion(name);
    const answer = await bearer(one);
    assert.deepEqual(
      [answer.status, answer.body.error, answer.headers["retry-after"]],
      [503, "temporarily_unavailable", String(UNREACHABLE_SECONDS)],
    );
    publish(name, [own.jwk]);
    // What has never served is asked for again after five seconds.
    world.pass(5);
    await until(async () => (await bearer(assertion(name))).status === 200, "the set is fetched");
    assertClient(await bearer(one), name);
  });
}

test("RFC7517-9.1-1 keys are not fetched from a private address that the operator did not permit", async () => {
  assertRefused(await bearer(assertion("unreachable")));
  assert.equal(fetchesOf("unreachable"), 0);
});

test("RFC7517-9.1-1 a corrected key set is used without a restart", async () => {
  assertRefused(await bearer(assertion("html")));
  publish("html", [own.jwk]);
  let answer = await bearer(assertion("html"));
  // What has never served is asked for again after five seconds.
  world.pass(5);
  await until(async () => {
    answer = await bearer(assertion("html"));
    return answer.status === 200;
  }, "the set is taken");
  assertClient(answer, "html");
});

// --- what is in an assertion ------------------------------------------------------------------------------------

const NAMES: readonly [string, string][] = [
  ["a NUL", "\0"],
  ["a NUL in the middle", "in\0line"],
  ["a lone surrogate", "\ud800"],
  ["a line end", "inline\n"],
  ["10 KiB", "a".repeat(10_000)],
  ["__proto__", "__proto__"],
  ["constructor", "constructor"],
  ["an SQL injection", "'; drop table client; --"],
  ["the name in capital letters", "INLINE"],
  ["the name with a trailing space", "inline "],
];
for (const [what, name] of NAMES) {
  test(`RFC7523-3-4, RFC7521-5.1-1 a client named ${what} is unknown, and causes no fault`, async () => {
    assertRefused(await bearer(assertion(name)));
    assertRefused(await bearer(assertion("inline", own, { iss: name })));
    assertRefused(await bearer(assertion("inline", own, { sub: name })));
    const header = { authorization: basic(name.toWellFormed(), "a-secret") };
    assertRefused(await world.token(CC, header), 401);
  });
}

for (const [what, jti] of NAMES.filter(([, name]) => name.isWellFormed())) {
  test(`RFC7523-3-14 a jti of ${what} is accepted once, like any other`, async () => {
    const unique = `${++jtis}${jti}`;
    const one = assertion("inline", own, { jti: unique });
    assertClient(await bearer(one), "inline");
    assertRefused(await bearer(one));
    assertRefused(await bearer(assertion("inline", own, { jti: unique })));
    assertClient(await bearer(assertion("inline", own, { jti: `${unique} ` })), "inline");
  });
}

test("RFC8725-3.7-1 a jti with a lone surrogate is refused", async () => {
  assertRefused(await bearer(assertion("inline", own, { jti: "\ud800" })));
});

test("RFC7523-3-14 a jti belongs to one client, and no other client can use it up", async () => {
  const jti = `shared-${++jtis}`;
  assertRefused(await bearer(assertion("inline", otherKey, { jti })));
  assertClient(await bearer(assertion("good", own, { jti })), "good");
  assertClient(await bearer(assertion("inline", own, { jti })), "inline");
  assertRefused(await bearer(assertion("good", own, { jti })));
});

// --- secrets that expire ----------------------------------------------------------------------------------------

/** Replaces the secrets of the configured client by a reload; returns what the server prints about it. */
async function reload(secrets: readonly object[]): Promise<string[]> {
  const file = world.configFile;
  const config = JSON.parse(readFileSync(file, "utf8"));
  config.clients.secret.secrets = secrets;
  writeFileSync(file, JSON.stringify(config));
  return world.server.reload();
}

const bySecret = (secret: string): Promise<Answer> =>
  world.token(CC, { authorization: basic("secret", secret) });
const inSeconds = (count: number, nowMs = Date.now()): string =>
  new Date((Math.floor(nowMs / 1000) + count) * 1000).toISOString();

test("RFC6749-2.3.1-5 a configured secret expires at its time, and the next one is valid beside it before", async () => {
  const expires = inSeconds(20, world.nowMs());
  assert.deepEqual(await reload([{ file: "secret", expires }, { file: "next" }]), []);
  assertClient(await bySecret("the only one"), "secret");
  assertClient(await bySecret("the next one"), "secret");
  assertRefused(await bySecret("another"), 401);
  world.pass(20);
  assertRefused(await bySecret("the only one"), 401);
  assertClient(await bySecret("the next one"), "secret");
});

const TIMES: readonly [string, string, boolean][] = [
  ["a time in another time zone", inSeconds(90_000).replace(".000Z", "+01:00"), true],
  ["a past time in another time zone", inSeconds(3500).replace(".000Z", "+01:00"), false],
];
for (const [what, expires, alive] of TIMES) {
  test(`RFC6749-2.3.1-5 a secret that expires at ${what} is ${alive ? "valid" : "expired"}`, async () => {
    assert.deepEqual(await reload([{ file: "secret", expires }]), []);
    const answer = await bySecret("the only one");
    if (alive) assertClient(answer, "secret");
    else assertRefused(answer, 401);
  });
}

test("RFC6749-2.3.1-5 an expiry of a secret with a day that is not in the calendar is refused and reported", async () => {
  assert.deepEqual(await reload([{ file: "secret" }]), []);
  const said = await reload([{ file: "secret", expires: "2099-02-31T00:00:00Z" }]);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^not reloaded: clients\.secret\.secrets/);
  assertClient(await bySecret("the only one"), "secret");
  assert.deepEqual(await reload([{ file: "secret" }]), []);
});

// --- clients made on the host -----------------------------------------------------------------------------------

type Made = { client_id: string; client_secret: string; client_secret_expires_at: number };

const create = async (...words: string[]): Promise<Made> =>
  JSON.parse(await runClient(world, "create", "--workload", workload("made"), "--json", ...words));
const rotate = async (id: string, ...words: string[]): Promise<Made> =>
  JSON.parse(await runClient(world, "rotate", id, "--json", ...words));

/** The status at both instances. */
async function asBasic({ client_id }: Made, secret: string): Promise<number[]> {
  const headers = { authorization: basic(client_id, secret) };
  const answers = await Promise.all(
    [world.server.port, second.port].map((port) => world.token(CC, headers, {}, port)),
  );
  for (const answer of answers) if (answer.status === 200) assertClient(answer, client_id);
  return answers.map(({ status }) => status);
}

test("RFC6749-2.3.1-1, RFC6749-2.3.1-5 a client made on the host is known at once at every instance, by its own method", async () => {
  const made = await create("--method", "client_secret_basic");
  assert.deepEqual(await asBasic(made, made.client_secret), [200, 200]);
  assert.deepEqual(await asBasic(made, `${made.client_secret}A`), [401, 401]);
  const { client_id, client_secret } = made;
  assertRefused(await world.token({ ...CC, client_id, client_secret }));
  const posted = await create("--method", "client_secret_post");
  assertClient(
    await world.token({ ...CC, client_id: posted.client_id, client_secret: posted.client_secret }),
    posted.client_id,
  );
  assertRefused(await world.token({ ...CC, client_id: posted.client_id, client_secret }));
  assert.deepEqual(await asBasic(posted, posted.client_secret), [401, 401]);
});

test("RFC6749-2.3.1-5 after a rotation both secrets are valid, and after the overlap only the new one", async () => {
  const made = await create("--method", "client_secret_basic");
  // The command on the host goes by the real time.
  const next = await rotate(made.client_id, "--overlap", String(world.passed() + 20));
  assert.notEqual(next.client_secret, made.client_secret);
  assert.deepEqual(await asBasic(made, next.client_secret), [200, 200]);
  assert.deepEqual(await asBasic(made, made.client_secret), [200, 200]);
  world.pass(21);
  assert.deepEqual(await asBasic(made, made.client_secret), [401, 401]);
  assert.deepEqual(await asBasic(made, next.client_secret), [200, 200]);
  const last = await rotate(made.client_id, "--overlap", "0");
  assert.deepEqual(await asBasic(made, next.client_secret), [401, 401]);
  assert.deepEqual(await asBasic(made, last.client_secret), [200, 200]);
});

test("RFC6749-2.3.1-5 a secret with an expiry expires by itself", async () => {
  const made = await create("--method", "client_secret_basic", "--expires", String(world.passed() + 20));
  assert.deepEqual(await asBasic(made, made.client_secret), [200, 200]);
  world.pass(21);
  assert.deepEqual(await asBasic(made, made.client_secret), [401, 401]);
});

test("RFC6749-5.2-3 a disabled client is refused at once at every instance", async () => {
  const made = await create("--method", "client_secret_basic");
  const other = await create("--method", "client_secret_basic");
  assert.deepEqual(await asBasic(made, made.client_secret), [200, 200]);
  await runClient(world, "disable", made.client_id);
  assert.deepEqual(await asBasic(made, made.client_secret), [401, 401]);
  assert.deepEqual(await asBasic(other, other.client_secret), [200, 200]);
});

// --- rotation -----------------------------------------------------------------------------------------------------

test("RFC8725-3.10-v1, RFC7517-4.5-2 a new key is found when it is first used, and no request is refused", async () => {
  const fetched = fetchesOf("rotating");
  publish("rotating", [own.jwk, newer.jwk]);
  const answers = Array.from({ length: 20 }, () => bearer(assertion("rotating", newer, {}, "k2")));
  for (const answer of await whilePassing(world, EARLY_LOOK_SECONDS, Promise.all(answers))) {
    assertClient(answer, "rotating");
  }
  assertClient(await bearer(assertion("rotating")), "rotating");
  assert.equal(fetchesOf("rotating"), fetched + 1);
});

test("RFC8725-3.10-v1 unknown kids cause one fetch in five seconds, however many requests there are, and delay no known one", async () => {
  const fetched = fetchesOf("flooded");
  const passed = world.passed();
  const kids = Array.from({ length: 40 }, (_, index) => `strange-${index}`);
  const flood = Promise.all(kids.map((kid) => bearer(assertion("flooded", own, {}, kid))));
  await until(() => fetchesOf("flooded") > fetched, "an early look");
  assertClient(await bearer(assertion("flooded")), "flooded");
  for (const answer of await whilePassing(world, EARLY_LOOK_SECONDS, flood)) assertRefused(answer);
  const intervals = Math.ceil((world.passed() - passed + 1) / EARLY_LOOK_SECONDS);
  assert.ok(fetchesOf("flooded") <= fetched + intervals, `${fetchesOf("flooded") - fetched} in ${intervals}`);
});

test("RFC7517-9.1-1 keys that cannot be fetched are taken from the last good copy", async () => {
  const fetched = fetchesOf("down");
  published.set("down", { status: 500, body: "" });
  assertRefused(await bearer(assertion("down", newer, {}, "k2")));
  assert.ok(fetchesOf("down") > fetched);
  assertClient(await bearer(assertion("down")), "down");
});
