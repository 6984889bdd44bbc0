/**
 * GET, PUT, DELETE /register/{client_id} over TLS (RFC 7592): a client reads, changes and deletes its registration, and
 * no other party does; unused clients are removed. What the store decides is tested with both stores.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeKeyPem, publicJwk } from "../../scripts/dev-keys.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { startIdleRegistrations } from "../../src/adapters/clients/idle-registrations.ts";
import { clock, makeClock, timers } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import { loadSettings } from "../../src/config/config.ts";
import { createInitialToken, runClient } from "../support/host.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import {
  API,
  assertChallenge,
  assertError,
  assertion,
  assertRegistered,
  assertToken,
  bearer,
  byBasic,
  CC,
  GRANT_TYPES,
  JSON_TYPE,
  lastEvent,
  type Metadata,
  PATIENT,
  post,
  type Registered,
  reload,
} from "../support/registration.ts";
import { stop } from "../support/stop.ts";
import { ACCESS_TOKEN, EXCHANGE, ISSUER, makeWorld, type World, workload } from "../support/world.ts";

const SECRET = "exchanger-exchanger-exchanger-123";
const DESK = "https://desk.example";
const SECRET_SECONDS = 60;
const HOUR_MS = 3_600_000;

const keyPem = await makeKeyPem();
const jwk = { ...publicJwk(keyPem), kid: "k1" };

const CONFIGURATION = {
  clients: { exchanger: { method: "client_secret_basic", secrets: [SECRET] } },
  registration: { unusedSeconds: 3600, idleSeconds: 7200 },
  targets: [
    { names: [API], scopes: ["read", "write", "admin"] },
    { names: [DESK], scopes: ["read"] },
  ],
  policies: [
    { id: "crew", allow: "client_credentials", classes: ["crew"], targets: [API], scopes: ["read", "write"] },
    { id: "managed", allow: "client_credentials", classes: ["managed"], targets: [API], scopes: ["admin"] },
    {
      id: "registrar",
      allow: "client_credentials",
      clients: ["exchanger"],
      targets: [`${ISSUER}/api`],
      scopes: ["client:manage"],
    },
    {
      id: "exchanger",
      allow: "impersonation",
      clients: ["exchanger"],
      targets: [DESK],
      scopes: ["read"],
      subjects: { issuers: [ISSUER] },
      subjectToken: { scopes: ["read"] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
    },
  ],
  limits: PATIENT,
};

/** Requests in a minute of one client at the second server. */
const AT_SECOND = 15;

let database: SharedPostgres;
let postgres: string;
let world: World;
/** The same on PostgreSQL, with a second server beside it. */
let shared: World;
let second: ServerProcess;
const crew = new Map<World, string>();

before(async () => {
  database = await sharePostgres();
  postgres = await freshDatabase(database);
  [world, shared] = await Promise.all([
    makeWorld(CONFIGURATION, { clock: true }),
    makeWorld(CONFIGURATION, { postgres }),
  ]);
  second = await shared.beside("second", { registrationRequestsPerMinuteByClient: AT_SECOND });
  for (const one of [world, shared]) crew.set(one, await createInitialToken(one, "crew", "--uses", "1000"));
});

after(() => stop(second, world, shared, database));

const stores: readonly (readonly [string, () => World])[] = [
  ["SQLite", () => world],
  ["PostgreSQL", () => shared],
];

// --- by hand ------------------------------------------------------------------------------------------------------

type Client = Registered & { registration_client_uri: string };

const register = async (metadata: Metadata = {}, at = world, port = at.server.port): Promise<Client> =>
  assertRegistered(await post(at, metadata, bearer(crew.get(at) ?? ""), port)) as Client;

type Asked = { method?: string; token?: string; body?: Metadata | string; at?: World; port?: number };

/** A request to registration_client_uri, with the client's registration access token unless another is given. */
function manage(
  client: Client,
  { method = "GET", token, body, at = world, port }: Asked = {},
): Promise<Answer> {
  return at.get(client.registration_client_uri.slice(ISSUER.length), {
    method,
    headers: { ...JSON_TYPE, ...bearer(token ?? client.registration_access_token) },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    connect: { host: "127.0.0.1", port: port ?? at.server.port },
  });
}

/** The members of a response that an update may contain. */
function updatable({
  registration_access_token: _token,
  registration_client_uri: _uri,
  client_id_issued_at: _at,
  client_secret_expires_at: _end,
  client_secret: _secret,
  ...rest
}: Metadata): Metadata & { client_id: string } {
  return rest as Metadata & { client_id: string };
}

const put = (client: Client, body: Metadata | string, rest: Asked = {}): Promise<Answer> =>
  manage(client, { method: "PUT", body, ...rest });

/** Updates a client and returns its new record. */
async function update(client: Client, metadata: Metadata, at = world): Promise<Client> {
  const answer = await put(
    client,
    { client_id: client.client_id, grant_types: GRANT_TYPES, ...metadata },
    { at },
  );
  assert.equal(answer.status, 200, answer.text);
  return answer.body as Client;
}

const remove = (client: Client, rest: Asked = {}): Promise<Answer> =>
  manage(client, { method: "DELETE", ...rest });

// --- reading ------------------------------------------------------------------------------------------------------

for (const [name, at] of stores) {
  test(`RFC7592-2.1-1, RFC7592-2.1-3, RFC7592-3-1, RFC7592-3-5, RFC7592-B-1, RFC7592-B-2 a client reads its complete record at registration_client_uri (${name})`, async () => {
    const client = await register({ client_name: "a", scope: "read", contacts: ["b"] }, at());
    const { client_secret: _, client_secret_expires_at: __, ...rest } = client;
    assert.equal(client.registration_client_uri, `${ISSUER}/register/${client.client_id}`);
    for (let time = 0; time < 2; time++) {
      const answer = await manage(client, { at: at() });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body, rest);
      assert.equal(answer.headers["content-type"], "application/json");
      assert.equal(answer.headers["cache-control"], "no-store");
      assert.equal(answer.headers.pragma, "no-cache");
    }
  });
}

test("RFC6750-5.2-1, RFC7592-5-4, RFC7592-5-1 the registration access token has 256 bits, and the response names no expiry of it", async () => {
  const client = await register();
  assert.match(client.registration_access_token, /^[A-Za-z0-9_-]{43}$/);
  assert.deepEqual(
    Object.keys(client).filter((name) => name.includes("expires")),
    ["client_secret_expires_at"],
  );
});

test("RFC7592-2-3 other methods get 405 with Allow", async () => {
  const client = await register();
  for (const method of ["POST", "PATCH", "OPTIONS"]) {
    const answer = await manage(client, { method });
    assert.deepEqual([answer.status, answer.headers.allow], [405, "GET, HEAD, PUT, DELETE"]);
  }
  assert.equal((await manage(client)).status, 200);
});

// --- access -------------------------------------------------------------------------------------------------------

const KINDS = ["GET", "PUT", "DELETE"] as const;

/** A response without the header fields that differ in every request. */
function seen({ status, headers, text }: Answer): object {
  const { date: _, "x-request-id": __, ...rest } = headers;
  return { status, text, ...rest };
}

const wrongTokens: readonly (readonly [string, (client: Client) => string | Promise<string>])[] = [
  ["RFC7592-B-3 the token of another client", async () => (await register()).registration_access_token],
  ["RFC7592-2.1-4 a longer token", (client) => `${client.registration_access_token}A`],
  ["RFC7592-1.1-1 its token in another case", (client) => client.registration_access_token.toLowerCase()],
  ["RFC7592-2-1 its secret", (client) => client.client_secret],
  [
    "RFC7592-2-1 its access token",
    async (client) => String((await byBasic(client, world)).body.access_token),
  ],
  ["RFC7592-2-1 the initial access token that it registered with", () => crew.get(world) ?? ""],
  ["RFC7592-2-1 an administrator's token", () => obtainAdmin()],
  [
    "RFC7592-A.1-2, RFC7592-5-2 its token before the last update",
    async (client) => {
      const former = client.registration_access_token;
      Object.assign(client, await update(client, {}));
      return former;
    },
  ],
];

async function obtainAdmin(): Promise<string> {
  const form = { ...CC, audience: `${ISSUER}/api` };
  const answer = await world.token(form, { authorization: basic("exchanger", SECRET) });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

for (const [name, make] of wrongTokens) {
  test(`RFC7592-2.1-4, RFC7592-2.2-12, RFC7592-2.3-5, ${name}: 401, and nothing changes`, async () => {
    const client = await register();
    const token = await make(client);
    for (const method of KINDS) {
      const body = method === "PUT" ? { body: { client_id: client.client_id } } : {};
      assertChallenge(await manage(client, { method, token, ...body }), 401, "invalid_token");
    }
    const { body } = await manage(client);
    assert.deepEqual(body.registration_access_token, client.registration_access_token);
  });
}

test("RFC7592-2.1-4, RFC6750-3.1-5 a request without a token gets no error code, and a token in the query is refused", async () => {
  const client = await register();
  const path = client.registration_client_uri.slice(ISSUER.length);
  for (const headers of [{}, { authorization: basic(client.client_id, client.client_secret) }]) {
    assertChallenge(await world.get(path, { headers }), 401, undefined);
  }
  const inQuery = await world.get(`${path}?access_token=${client.registration_access_token}`);
  assertChallenge(inQuery, 400, "invalid_request");
});

test("RFC7592-2.1-5, RFC7592-2.2-14, RFC7592-2.3-6, RFC7592-5-6 the response does not reveal to others whether a client exists or existed", async () => {
  const { client_id: made } = JSON.parse(
    await runClient(world, "create", "--method", "client_secret_basic", "--json"),
  );
  const [client, gone] = [await register(), await register()];
  assert.equal((await remove(gone)).status, 204);
  const { registration_access_token: token } = await register();
  const paths = [client.client_id, gone.client_id, made, "exchanger", "c_AAAAAAAAAAAAAAAAAAAAAA", "a", "%00"];
  for (const method of KINDS) {
    const body = method === "PUT" ? { body: "{}" } : {};
    const answers = [];
    for (const path of paths) {
      const headers = { ...JSON_TYPE, ...bearer(token) };
      answers.push(seen(await world.get(`/register/${path}`, { method, headers, ...body })));
    }
    assert.equal(Object(answers[0]).status, 401);
    for (const [index, answer] of answers.entries()) assert.deepEqual(answer, answers[0], paths[index]);
  }
  assert.equal((await manage(client)).status, 200);
});

test("RFC7592-2.1-5 clients that did not register themselves and other paths get 404", async () => {
  const { registration_access_token: token } = await register();
  for (const path of [`/${workload("agents/planner")}`, "/https://a.example/client.json", "/", "/a/b"]) {
    const { status } = await world.get(`/register${path}`, { headers: bearer(token) });
    assert.equal(status, 404, path);
  }
});

test("PROD-8.3-1, AUDIT-D-2 requests of one client are limited by minute, without an effect on others", async () => {
  const [client, other] = [await register({}, shared), await register({}, shared)];
  const at = { at: shared, port: second.port };
  const body = { client_id: client.client_id, token_endpoint_auth_method: "none" };
  const beganMs = performance.now();
  const answers = await Promise.all(Array.from({ length: AT_SECOND + 7 }, () => put(client, body, at)));
  const passedSeconds = (performance.now() - beganMs) / 1000;
  const waiting = answers.filter(({ status }) => status === 429);
  // One more for each four seconds in which they were asked.
  assert.ok(waiting.length <= 7 && waiting.length >= 7 - Math.ceil(passedSeconds / 4), `${waiting.length}`);
  for (const { headers } of waiting) {
    const seconds = Number(headers["retry-after"]);
    assert.ok(seconds <= 4 && seconds >= Math.max(1, 4 - Math.ceil(passedSeconds)), `${seconds}`);
  }
  assert.equal((await manage(other, at)).status, 200);
  // Requests with a wrong token do not use up the limit.
  const wrong = { token: client.registration_access_token, ...at };
  await Promise.all(Array.from({ length: AT_SECOND + 7 }, () => manage(other, wrong)));
  assert.equal((await manage(other, at)).status, 200);
});

// --- changing -----------------------------------------------------------------------------------------------------

for (const [name, at] of stores) {
  test(`HTTP-D-33, RFC7592-2.2-3, RFC7592-2.2-4, RFC7592-2.2-11, RFC7592-A.1-2 an update replaces the whole record and the registration access token (${name})`, async () => {
    const before = {
      client_name: "a",
      contacts: ["b"],
      scope: "read",
      software_id: "s",
      "client_name#fr": "c",
    };
    const client = await register(before, at());
    const { client_id } = client;
    const answer = await put(client, { client_id, client_uri: "https://a.example/" }, { at: at() });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers["cache-control"], "no-store");
    assert.equal(answer.headers["content-type"], "application/json");
    const { registration_access_token: token, ...rest } = answer.body as Client;
    assert.notEqual(token, client.registration_access_token);
    assert.deepEqual(rest, {
      client_id,
      client_id_issued_at: client.client_id_issued_at,
      client_uri: "https://a.example/",
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: [],
      response_types: [],
      registration_client_uri: client.registration_client_uri,
    });
    assertChallenge(await manage(client, { at: at() }), 401, "invalid_token");
    assert.deepEqual((await manage(client, { token, at: at() })).body, answer.body);
    assertError(await byBasic(client, at()), 400, "unauthorized_client");
  });
}

const records: readonly (readonly [string, Metadata])[] = [
  ["a secret", { client_name: "a" }],
  ["keys", { token_endpoint_auth_method: "private_key_jwt", jwks: { keys: [jwk] } }],
  ["a SPIFFE ID", { token_endpoint_auth_method: "spiffe_jwt", spiffe_id: workload("agents/planner") }],
  ["RFC7591-2-7 no named grant types", { grant_types: undefined }],
  [
    "RFC7591-2-7 redirects and no named grant types",
    { grant_types: undefined, redirect_uris: ["https://a.example/cb"] },
  ],
  ["redirects", { grant_types: ["authorization_code"], redirect_uris: ["https://a.example/cb"] }],
];
for (const [name, metadata] of records) {
  test(`RFC7592-2.2-1, RFC7592-3-3 a record that was read can be written back, for a client with ${name}`, async () => {
    const client = await register(metadata);
    const next = await update(client, updatable((await manage(client)).body));
    assert.deepEqual(updatable(next), updatable(client));
  });
}

const refusedUpdates: readonly (readonly [string, Metadata, string])[] = [
  ["RFC7592-2.2-6 no client_id", { client_id: undefined }, "client_id_differs"],
  ["RFC7592-2.2-6 another client_id", { client_id: "exchanger" }, "client_id_differs"],
  ["RFC7592-2.2-2 the registration access token", { registration_access_token: "a" }, "server_member_sent"],
  [
    "RFC7592-2.2-2 registration_client_uri",
    { registration_client_uri: "https://a.example/" },
    "server_member_sent",
  ],
  ["RFC7592-2.2-2 the expiry of its secret", { client_secret_expires_at: 0 }, "server_member_sent"],
  ["RFC7592-2.2-2 the time of its registration", { client_id_issued_at: 1 }, "server_member_sent"],
  [
    "RFC7592-2.2-7, RFC7592-2.2-8 a secret chosen by the client",
    { client_secret: "mine" },
    "client_secret_differs",
  ],
  ["RFC7592-2.2-7 a secret that is not a string", { client_secret: 1 }, "client_secret_refused"],
  ["RFC7592-2.2-13 metadata that a registration would refuse", { scope: '"' }, "scope_refused"],
  [
    "RFC7592-2.2-13 the method none",
    { token_endpoint_auth_method: "none" },
    "token_endpoint_auth_method_refused",
  ],
  [
    "RFC7592-2.2-13 private_key_jwt without keys",
    { token_endpoint_auth_method: "private_key_jwt" },
    "keys_missing",
  ],
];
for (const [name, metadata, reason] of refusedUpdates) {
  test(`${name}: invalid_client_metadata, and nothing changes`, async () => {
    const client = await register({ client_name: "a" });
    const sent = { client_id: client.client_id, client_name: "b", ...metadata };
    assertError(await put(client, sent), 400, "invalid_client_metadata");
    const event = await lastEvent(world, "client.registration_denied");
    assert.deepEqual([event?.outcome, event?.reason], ["deny", reason]);
    assert.deepEqual([event?.detail.client_id, event?.detail.class], [client.client_id, "crew"]);
    const { body } = await manage(client);
    assert.deepEqual(updatable(body), updatable(client));
    assertToken(await byBasic(client, world), client.client_id);
  });
}

test("RFC7592-2.2-13 a refused redirect URI has its own error code, a malformed body the general one", async () => {
  const client = await register();
  const { client_id } = client;
  assertError(
    await put(client, { client_id, redirect_uris: ["http://a.example/"] }),
    400,
    "invalid_redirect_uri",
  );
  for (const body of ["", "[]", `{"client_id":"${client_id}","client_id":"${client_id}"}`]) {
    assertError(await put(client, body), 400, "invalid_client_metadata");
  }
  assertError(await put(client, "a".repeat(64 * 1024 + 1)), 413, "invalid_request");
});

test("RFC7592-2.2-7 a client may repeat its secret, which stays valid and is not returned", async () => {
  const client = await register();
  const next = await update(client, { client_secret: client.client_secret });
  assert.deepEqual([next.client_secret, next.client_secret_expires_at], [undefined, undefined]);
  assertToken(await byBasic(client, world), client.client_id);
});

test("RFC7592-2.2-7 the secret of another client is refused", async () => {
  const [client, other] = [await register(), await register()];
  const sent = { client_id: client.client_id, client_secret: other.client_secret };
  assertError(await put(client, sent), 400, "invalid_client_metadata");
});

test("PROD-5-4, RFC7592-2.2-3 another authentication method ends the previous one, and old secrets stay invalid", async () => {
  const first = await register();
  const post = { token_endpoint_auth_method: "client_secret_post" };
  const second = await update(first, post);
  assert.match(second.client_secret, /^[A-Za-z0-9_-]{43}$/);
  assert.notEqual(second.client_secret, first.client_secret);
  const { client_id } = first;
  const asForm = ({ client_secret }: Client) =>
    world.token({ ...CC, audience: API, client_id, client_secret });
  assertToken(await asForm(second), client_id);
  assert.equal((await asForm(first)).body.error, "invalid_client");
  assert.equal((await byBasic(first, world)).status, 401);
  assert.equal((await byBasic({ ...second }, world)).status, 401);

  const third = await update(second, {
    token_endpoint_auth_method: "private_key_jwt",
    jwks: { keys: [jwk] },
  });
  assert.equal("client_secret" in third, false);
  assert.equal((await asForm(second)).body.error, "invalid_client");
  assertToken(await world.token({ ...CC, audience: API, ...assertion(client_id, keyPem) }), client_id);

  const fourth = await update(third, {});
  assertToken(await byBasic(fourth, world), client_id);
  for (const former of [first, second]) {
    assert.equal((await byBasic({ ...fourth, client_secret: former.client_secret }, world)).status, 401);
  }
  const keyless = await world.token({ ...CC, audience: API, ...assertion(client_id, keyPem) });
  assert.equal(keyless.body.error, "invalid_client");
});

test("PROD-5-4, RFC7591-3.2.1-7 a secret expires at its time, and an update then issues the next one", async () => {
  await reload(world, ({ registration }) => {
    registration.clientSecretSeconds = SECRET_SECONDS;
  });
  const client = await register();
  const end = Number(client.client_secret_expires_at);
  assert.equal(end, Number(client.client_id_issued_at) + SECRET_SECONDS);
  assertToken(await byBasic(client, world), client.client_id);
  const kept = await update(client, {});
  assert.equal("client_secret" in kept, false);
  world.pass(SECRET_SECONDS);
  assert.equal((await byBasic(client, world)).status, 401);
  const { client_secret } = client;
  assertError(await put(kept, { client_id: kept.client_id, client_secret }), 400, "invalid_client_metadata");
  const next = await update(kept, {});
  assert.ok(Number(next.client_secret_expires_at) > end);
  assertToken(await byBasic(next, world), next.client_id);
  await reload(world, ({ registration }) => {
    Reflect.deleteProperty(registration, "clientSecretSeconds");
  });
});

for (const [name, at] of stores) {
  test(`RFC7592-3-4, RFC7592-2.2-9, RFC7592-2.2-10 an update permits no more than the registration did (${name})`, async () => {
    const words = ["--scope", "read", "--grant-type", CC.grant_type];
    const token = bearer(await createInitialToken(at(), "crew", ...words));
    const client = assertRegistered(await post(at(), { scope: "read" }, token)) as Client;
    const requested = { scope: "read write admin", grant_types: GRANT_TYPES };
    const others = {
      class: "managed",
      registration_class: "managed",
      ceiling: null,
      workload: workload("a"),
    };
    const next = await update(client, { ...requested, ...others }, at());
    assert.deepEqual([next.scope, next.grant_types], ["read", [CC.grant_type]]);
    assert.equal((await lastEvent(at(), "client.updated"))?.detail.class, "crew");
    assertToken(await byBasic(client, at()), client.client_id, "read");
    assertError(await byBasic(client, at(), { scope: "write" }), 400, "invalid_scope");
    assertError(await byBasic(client, at(), { grant_type: EXCHANGE }), 400, "unauthorized_client");
    for (const metadata of [{ scope: "write" }, { grant_types: [EXCHANGE] }]) {
      assertError(
        await put(next, { client_id: client.client_id, ...metadata }, { at: at() }),
        400,
        "invalid_client_metadata",
      );
    }
    // A scope that the client gave up can be requested again.
    assert.equal((await update(next, {}, at())).scope, "read");
  });

  test(`RFC7592-A.1-2, RFC7592-5-2 one of several concurrent updates with one token succeeds (${name})`, async () => {
    const client = await register({}, at());
    const ports = at() === shared ? [shared.server.port, second.port] : [at().server.port];
    const racing = Array.from({ length: 8 }, (_, index) => {
      const body = { client_id: client.client_id, client_name: `name ${index}` };
      const port = ports[index % ports.length] ?? 0;
      return put(client, body, { at: at(), port });
    });
    const answers = await Promise.all(racing);
    const made = answers.filter(({ status }) => status === 200);
    assert.equal(made.length, 1);
    for (const answer of answers) if (answer.status !== 200) assertChallenge(answer, 401, "invalid_token");
    const next = made[0]?.body as Client;
    assert.deepEqual((await manage(next, { at: at() })).body, next);
  });
}

// --- deleting -----------------------------------------------------------------------------------------------------

/** Another client exchanges a token of this client. */
const exchange = (token: unknown, at: World): Promise<Answer> =>
  at.token(
    {
      grant_type: EXCHANGE,
      subject_token: String(token),
      subject_token_type: ACCESS_TOKEN,
      audience: DESK,
    },
    { authorization: basic("exchanger", SECRET) },
  );

for (const [name, at] of stores) {
  test(`RFC7592-2.3-1, RFC7592-2.3-2, RFC7592-2.3-3, RFC7592-5-5, RFC7592-5-6 a client that deletes its registration is refused from then on, and so are its tokens (${name})`, async () => {
    const [client, other] = [await register({}, at()), await register({}, at())];
    const [token, others] = [await byBasic(client, at()), await byBasic(other, at())];
    const before = await exchange(token.body.access_token, at());
    assert.equal(before.status, 200, before.text);

    const answer = await remove(client, { at: at() });
    assert.deepEqual([answer.status, answer.text], [204, ""]);
    assert.equal(answer.headers["cache-control"], "no-store");
    assert.equal(answer.headers.pragma, "no-cache");

    const ports = at() === shared ? [shared.server.port, second.port] : [at().server.port];
    for (const port of ports) {
      const { status, body } = await byBasic(client, at(), {}, port);
      assert.deepEqual([status, body.error], [401, "invalid_client"]);
      for (const method of KINDS) {
        const sent = method === "PUT" ? { body: { client_id: client.client_id } } : {};
        assertChallenge(await manage(client, { method, at: at(), port, ...sent }), 401, "invalid_token");
      }
    }
    // The client's token, and the token that was exchanged for it.
    for (const dead of [token, before]) {
      const { status, body } = await exchange(dead.body.access_token, at());
      assert.deepEqual([status, body.error], [400, "invalid_request"]);
    }
    assert.equal((await lastEvent(at(), "token_exchange.denied"))?.reason, "subject_token_revoked");
    assert.equal((await exchange(others.body.access_token, at())).status, 200);
    assertToken(await byBasic(other, at()), other.client_id);
  });

  test(`RFC7592-2.3-1 a concurrent update and deletion leave no client, or one with a new token (${name})`, async () => {
    for (let round = 0; round < 5; round++) {
      const client = await register({}, at());
      const [updated, removed] = await Promise.all([
        put(client, { client_id: client.client_id, grant_types: GRANT_TYPES }, { at: at() }),
        remove(client, { at: at() }),
      ]);
      const token = updated.status === 200 ? (updated.body as Client).registration_access_token : undefined;
      const { status } = await manage(client, { at: at(), ...(token !== undefined && { token }) });
      assert.equal(status, removed.status === 204 ? 401 : 200);
      assert.equal((await byBasic(client, at())).status, removed.status === 204 ? 401 : 200);
    }
  });
}

test("RFC7592-2.3-1 a change at one instance applies to the other", async () => {
  const client = await register({}, shared, second.port);
  const next = await update(client, { client_name: "a" }, shared);
  const at = { at: shared, port: second.port };
  assert.deepEqual((await manage(next, at)).body, next);
  assertChallenge(await manage(client, at), 401, "invalid_token");
  assertToken(await byBasic(client, shared, {}, second.port), client.client_id);
});

test("RFC7592-2.3-1 an operator can disable a client that registered itself, but not rotate its secret", async () => {
  const client = await register();
  await assert.rejects(runClient(world, "rotate", client.client_id), /only it can change its secret/);
  assertToken(await byBasic(client, world), client.client_id);
  await runClient(world, "disable", client.client_id);
  assert.equal((await byBasic(client, world)).status, 401);
  assertChallenge(await manage(client), 401, "invalid_token");
});

// --- unused clients -----------------------------------------------------------------------------------------------

/** Runs the periodic clean-up of a server with a clock that is later by this time. */
async function cleanUp(at: World, afterMs: number): Promise<Record<string, unknown>[]> {
  const loaded = loadSettings(at.configFile);
  assert.ok(loaded.ok);
  const { settings } = loaded.value;
  const store = await openStore(at === shared ? { postgres } : { sqlite: join(at.folder, "mandate.sqlite") });
  const later = makeClock(() => at.nowMs() + afterMs);
  const log = `later-${afterMs}`;
  const journal = await openJournal({ log, store: store.log, clock, random, onFatal: assert.fail });
  const kept = startIdleRegistrations({
    store,
    journal,
    clock: later,
    timers,
    settings: () => settings,
    onFault: assert.fail,
  });
  await kept.run();
  await kept.close();
  await journal.close();
  const events = await store.log.read({ log, limit: 1000 });
  await store.close();
  return events.map(({ body }) => JSON.parse(body)).filter(({ type }) => type === "client.removed");
}

for (const [name, at] of stores) {
  test(`RFC7591-5-5 clients that never got a token or got none for long are removed, each with an event (${name})`, async () => {
    const [unused, used] = [await register({}, at()), await register({}, at())];
    assertToken(await byBasic(used, at()), used.client_id);
    // The limits are one hour without any token, and two hours plus the recording lag after the last one.
    assert.deepEqual(await cleanUp(at(), HOUR_MS / 2), []);
    assert.equal((await manage(unused, { at: at() })).status, 200);

    const reasonFor = (events: Record<string, unknown>[], { client_id }: Client): unknown =>
      events.find(({ detail }) => Object(detail).client_id === client_id)?.reason;
    const first = await cleanUp(at(), HOUR_MS + 1000);
    assert.deepEqual([reasonFor(first, unused), reasonFor(first, used)], ["unused", undefined]);
    assert.equal((await byBasic(unused, at())).status, 401);
    assertChallenge(await manage(unused, { at: at() }), 401, "invalid_token");
    assertToken(await byBasic(used, at()), used.client_id);

    const last = await cleanUp(at(), 3 * HOUR_MS + 60_000);
    assert.equal(reasonFor(last, used), "idle");
    const { status, body } = await byBasic(used, at());
    assert.deepEqual([status, body.error], [401, "invalid_client"]);
    assertChallenge(await manage(used, { at: at() }), 401, "invalid_token");
    // Clients that the operator created are not removed.
    assert.equal((await exchange("a", at())).body.error, "invalid_request");
  });
}

// --- events -------------------------------------------------------------------------------------------------------

test("AUDIT-D-2, AUDIT-D-4 each change has an event with its author, and without secret, token or contact", async () => {
  const client = await register({ client_name: "Mine", contacts: ["me@a.example"] });
  const known = (await world.events()).length;
  const next = await update(client, { scope: "read", token_endpoint_auth_method: "client_secret_post" });
  await put(next, { client_id: client.client_id, client_secret: "a guess" });
  await remove(next);
  const events = (await world.events()).slice(known);
  const who = { client_id: client.client_id, class: "crew" };
  assert.deepEqual(
    events.map(({ type, outcome, reason, detail }) => ({ type, outcome, reason, detail })),
    [
      {
        type: "client.updated",
        outcome: "allow",
        reason: "by_client",
        detail: {
          ...who,
          token_endpoint_auth_method: "client_secret_post",
          grant_types: GRANT_TYPES,
          scope: "read",
        },
      },
      {
        type: "client.registration_denied",
        outcome: "deny",
        reason: "client_secret_differs",
        detail: who,
      },
      { type: "client.removed", outcome: "allow", reason: "by_client", detail: who },
    ],
  );
  for (const { request, policy, client: caller } of events) {
    assert.equal(Object(request).endpoint, `/register/${client.client_id}`);
    assert.match(Object(policy).digest, /^sha256:[0-9a-f]{64}$/);
    const { client_id } = client;
    assert.deepEqual(caller, { client_id, auth_method: "registration_access_token", source: "registration" });
  }
  const kept = JSON.stringify(await world.events()) + world.server.lines.join("\n");
  const secrets = [client, next].flatMap((one) => [one.client_secret, one.registration_access_token]);
  for (const one of [...secrets, "a guess", "me@a.example"]) assert.ok(!kept.includes(one), one);
});
