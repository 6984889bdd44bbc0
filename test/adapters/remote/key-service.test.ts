/** Signing keys at a key service: the reference service of the tests, over TLS. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, type TestContext, test } from "node:test";
import { compactDecrypt, createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import { basic } from "../../../scripts/http-client.ts";
import { clock } from "../../../src/adapters/clock.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import { openCustody } from "../../../src/adapters/remote/key-service.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { Notice } from "../../../src/http/log-events.ts";
import {
  KEY_SERVICE_FAILURES_MAX,
  KEY_SERVICE_LOOK_MS,
  KEY_SERVICE_QUIET_MS,
} from "../../../src/limits/keys.ts";
import type { KeyServicePlace } from "../../../src/settings/settings.ts";
import { parseJws } from "../../../src/spec/rfc7515.ts";
import { OWN_ALGORITHMS } from "../../../src/spec/rfc8725.ts";
import { watchKeyService } from "../../../src/start/key-service.ts";
import { type KeyService, startKeyService } from "../../support/key-service.ts";
import { migratedFile } from "../../support/migrated.ts";
import { openRing } from "../../support/signer.ts";
import { stop } from "../../support/stop.ts";
import { makeTime, makeTimers } from "../../support/timers.ts";
import { until, whilePassing } from "../../support/until.ts";
import { LOOPBACK } from "../../support/web.ts";
import { makeWorld, type WorldOptions } from "../../support/world.ts";

const ENCRYPTION_KEYS = [randomBytes(32)] as const;
let service: KeyService;
let place: KeyServicePlace;

before(async () => {
  service = await startKeyService();
  const { origin, ca, authorization } = service;
  place = { service: { url: `${origin}/v1`, ca, privateNetworks: LOOPBACK }, authorization };
});
after(() => stop(service));

async function open(t: TestContext) {
  const store = await openStore({ sqlite: await migratedFile() });
  t.after(() => store.close());
  const ring = (where: KeyServicePlace | "none" = place) =>
    openRing({
      store,
      encryptionKeys: ENCRYPTION_KEYS,
      custody: openCustody(ENCRYPTION_KEYS, where === "none" ? undefined : where),
      algorithms: OWN_ALGORITHMS,
      clock,
      purposes: ["token"],
    });
  return { store, ring };
}

test("RFC7517-9.2-1 with a key service no private key is in the store, and each algorithm signs", async (t) => {
  const { store, ring } = await open(t);
  const signer = (await ring()).signer("token");
  for (const alg of OWN_ALGORITHMS) {
    const token = parseJws(
      await signer.sign(await signer.current(alg), "at+jwt", JSON.stringify({ sub: "u" })),
    );
    assert.ok(token.ok);
    const key = signer.own(token.value.header);
    assert.ok(key && (await verifier.verify(token.value, key)), alg);
  }
  for (const { kid, privateJwe, publicJwk } of await store.keys.list()) {
    const { plaintext } = await compactDecrypt(privateJwe, ENCRYPTION_KEYS[0]);
    const content = JSON.parse(new TextDecoder().decode(plaintext));
    assert.deepEqual([Object.keys(content).sort(), content.kid], [["keyService", "kid"], kid]);
    assert.deepEqual(
      Object.keys(JSON.parse(publicJwk)).filter((name) => /^(d|p|q|dp|dq|qi)$/.test(name)),
      [],
    );
  }
});

test("RFC7638-3.2.1-v1 another public key under the name of a key at the service fails the start", async (t) => {
  const { store, ring } = await open(t);
  await ring();
  const [row, other] = (await store.keys.list()).filter(({ alg }) => alg === "ES256");
  assert.ok(row && other);
  const planted = { ...row, kid: other.kid, publicJwk: other.publicJwk };
  const custody = openCustody(ENCRYPTION_KEYS, place);
  await assert.rejects(custody.open(planted), { name: "KeysUnusable", message: /is damaged/ });
  assert.ok(await custody.open(row));
});

test("keys that were in the store before a key service sign until they are replaced", async (t) => {
  const { ring } = await open(t);
  const before = await (await ring("none")).signer("token").current("ES256");
  const signer = (await ring()).signer("token");
  assert.deepEqual(await signer.current("ES256"), before);
  assert.ok(await signer.sign(before, "at+jwt", JSON.stringify({})));
});

test("a server without the key service of its keys refuses to start, and says what is missing", async (t) => {
  const { ring } = await open(t);
  await ring();
  await assert.rejects(ring("none"), {
    name: "KeysUnusable",
    message: /^keys\.service is missing: the signing key \S{43} is at a key service$/,
  });
});

const unavailable = (message: RegExp) => ({ name: "KeyServiceUnavailable", message });

test("no token has a signature that the key did not make", async (t) => {
  const { ring } = await open(t);
  const signer = (await ring()).signer("token");
  const key = await signer.current("ES256");
  const other = randomBytes(64).toString("base64url");
  for (const answer of [{ signature: other }, { signature: "%" }, { signature: "" }]) {
    service.bend(() => answer);
    await assert.rejects(
      async () => signer.sign(key, "at+jwt", JSON.stringify({})),
      unavailable(/a signature that its key did not make/),
    );
  }
  for (const answer of [{}, { signature: 5 }, []]) {
    service.bend(() => answer as never);
    await assert.rejects(
      async () => signer.sign(key, "at+jwt", JSON.stringify({})),
      unavailable(/answered \/sign with something else/),
    );
  }
  service.bend((answer) => answer);
  assert.ok(await signer.sign(key, "at+jwt", JSON.stringify({})));
});

test("a key service that refuses, makes another key or shows a private one ends the start", async (t) => {
  const { store, ring } = await open(t);
  await assert.rejects(
    ring({ ...place, authorization: "Bearer wrong" }),
    unavailable(/did not answer \/keys: the status is 401/),
  );
  const another = { kty: "OKP", crv: "Ed25519", x: randomBytes(32).toString("base64url") };
  for (const jwk of [another, { ...another, d: another.x }, {}, undefined]) {
    service.bend(() => ({ id: "one", jwk }));
    await assert.rejects(ring(), unavailable(/made no public key for ES256|something else than it should/));
  }
  service.bend((answer) => answer);
  assert.deepEqual(await store.keys.list(), []);
});

/** A server that signs by this service, its token request, and its health. */
async function openServer(t: TestContext, here: KeyService, options: WorldOptions = {}) {
  const secret = "a secret of the desk at the key service 1";
  const scopes = ["read"];
  const world = await makeWorld(
    {
      operations: { port: 0 },
      keys: {
        encryptionKey: { file: "keys/encryption-key" },
        service: {
          url: `${here.origin}/v1`,
          ca: { file: "service.pem" },
          privateNetworks: LOOPBACK,
          authorization: here.authorization,
        },
      },
      clients: { desk: { method: "client_secret_basic", secrets: [secret] } },
      targets: [{ names: ["https://api.example"], scopes }],
      policies: [
        {
          id: "desk",
          allow: "client_credentials",
          clients: ["desk"],
          targets: ["https://api.example"],
          scopes,
        },
      ],
    },
    { ...options, files: { "service.pem": here.ca } },
  );
  t.after(() => world.stop());
  const [at = ""] = world.server.lines.flatMap(
    (line) => /^Health and metrics are at (.*)$/.exec(line)?.[1] ?? [],
  );
  return {
    world,
    ask: () => world.token({ grant_type: "client_credentials" }, { authorization: basic("desk", secret) }),
    ready: async () => {
      const response = await fetch(`${at}/readyz`);
      const { ready, keyService } = (await response.json()) as Record<string, unknown>;
      return { status: response.status, ready, keyService };
    },
    works: async () =>
      (await (await fetch(`${at}/metrics`)).text())
        .split("\n")
        .filter((line) => line.startsWith('mandate_key_service_works{purpose="token"')),
  };
}

test("RFC7517-7-1 a server with a key service signs by it, and answers 503 while it cannot be reached", async (t) => {
  const here = await startKeyService();
  const { world, ask } = await openServer(t, here);
  const answer = await ask();
  assert.equal(answer.status, 200, answer.text);
  const { keys } = (await world.get("/jwks")).body as unknown as JSONWebKeySet;
  await jwtVerify(String(answer.body.access_token), createLocalJWKSet({ keys }), { typ: "at+jwt" });
  assert.equal(here.asked.at(-1), "/v1/sign");
  await here.stop();
  const { status, body, headers } = await ask();
  assert.deepEqual([status, body.error], [503, "temporarily_unavailable"]);
  assert.ok(Number(headers["retry-after"]) > 0);
});

const READY = { status: 200, ready: true, keyService: "signs" };
const NOT_READY = { status: 503, ready: false, keyService: "fails" };

for (const [what, how] of [
  ["gives signatures of another key", () => ({ signature: randomBytes(64).toString("base64url") })],
  ["gives nothing", () => ({})],
] as const) {
  test(`an instance whose key service ${what} says so and is not ready; it is again when the service signs`, async (t) => {
    const here = await startKeyService();
    t.after(() => here.stop());
    const { world, ask, ready, works } = await openServer(t, here, { clock: true });
    assert.deepEqual(await ready(), READY);
    here.bend(how);
    for (let failures = 1; failures <= KEY_SERVICE_FAILURES_MAX; failures++) {
      assert.deepEqual(await ready(), READY, "one failure may pass");
      assert.equal((await ask()).status, 503);
    }
    assert.deepEqual(await ready(), NOT_READY);
    assert.deepEqual(await works(), ['mandate_key_service_works{purpose="token",alg="ES256"} 0']);
    const told = () =>
      [...world.server.lines, ...world.server.errors].filter((line) => /^The key service/.test(line));
    await until(() => told().length === 1, "it is told once");
    assert.match(told().join(), /^The key service does not sign with the active key for token, ES256/);
    here.bend((answer) => answer);
    world.pass(KEY_SERVICE_LOOK_MS / 1000);
    await until(async () => (await ready()).ready === true, "it is ready again, without a request");
    assert.deepEqual(await ready(), READY);
    await until(() => told().length === 2, "that is told too");
    assert.deepEqual(await works(), ['mandate_key_service_works{purpose="token",alg="ES256"} 1']);
    assert.equal((await ask()).status, 200);
  });
}

test("a key service that no request asks is tried every minute: one that went away is noticed", async (t) => {
  const here = await startKeyService();
  const { world, ready } = await openServer(t, here, { clock: true });
  await here.stop();
  world.pass(KEY_SERVICE_QUIET_MS / 1000);
  const noticed = until(async () => !(await ready()).ready, "it is noticed");
  await whilePassing(world, KEY_SERVICE_LOOK_MS / 1000, noticed, 20);
  assert.deepEqual(await ready(), NOT_READY);
});

test("a key service is tried at the start, where one failure is enough; of several keys each is told", async (t) => {
  const { store } = await open(t);
  const time = makeTime(0);
  const timers = makeTimers();
  const told: string[] = [];
  const log = { tell: ({ event }: Notice) => void told.push(event) };
  const custody = openCustody(ENCRYPTION_KEYS, place);
  const watched = watchKeyService({ custody, clock: time.clock, timers, log });
  const ring = await openRing({
    ...{ store, encryptionKeys: ENCRYPTION_KEYS, custody: watched.custody },
    ...{ algorithms: ["ES256", "EdDSA"], clock, purposes: ["token"] },
  });
  const state = () => {
    const { signsTokens, keys } = watched.state() ?? assert.fail("no key is at the service");
    return [signsTokens, keys.flatMap(({ labels, works }) => (works ? labels.alg : [])).sort()];
  };
  service.bend(() => ({}));
  const work = await watched.begin(ring.facts);
  t.after(() => work.close());
  assert.deepEqual(
    [state(), told],
    [
      [false, []],
      ["key_service_failed", "key_service_failed"],
    ],
  );
  service.bend((answer) => answer);
  timers.pass(KEY_SERVICE_LOOK_MS);
  await until(() => state()[0] === true, "it signs");
  await until(() => told.length === 4, "it is told of both");
  const signer = ring.signer("token");
  const bad = await signer.current("EdDSA");
  service.bend(() => ({}));
  for (let times = 0; times < KEY_SERVICE_FAILURES_MAX; times++)
    await assert.rejects(async () => signer.sign(bad, "at+jwt", JSON.stringify({})), {
      name: "KeyServiceUnavailable",
    });
  assert.deepEqual(state(), [true, ["ES256"]], "another key signs tokens");
  assert.deepEqual(told.slice(2), ["key_service_works", "key_service_works", "key_service_failed"]);
  service.bend((answer) => answer);
});
