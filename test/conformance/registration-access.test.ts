/**
 * POST /register over TLS (RFC 7591): who may register, what a registration permits, its limits, and its events. What
 * the store decides is tested with both stores.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { type Answer, basic, type Form } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { createInitialToken, runClient } from "../support/host.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import {
  API,
  assertChallenge,
  assertError,
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
import { claimsOf, EXCHANGE, IDP, ISSUER, JWT, makeWorld, type World, workload } from "../support/world.ts";

const OWN_API = `${ISSUER}/api`;
const SECRET = "registrar-registrar-registrar-123";
/** The limit of the server on PostgreSQL. */
const CLIENTS_MAX = 40;
const REGISTRATIONS_MAX = 8;

const configuration = (registration: object = {}, limits: object = {}) => ({
  clients: {
    registrar: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: OWN_API },
  },
  registration,
  targets: [{ names: [API], scopes: ["read", "write", "admin"] }],
  policies: [
    { id: "crew", allow: "client_credentials", classes: ["crew"], targets: [API], scopes: ["read", "write"] },
    { id: "managed", allow: "client_credentials", classes: ["managed"], targets: [API], scopes: ["read"] },
    { id: "open", allow: "client_credentials", classes: ["open"], targets: [API], scopes: ["read", "write"] },
    {
      id: "registrar",
      allow: "client_credentials",
      clients: ["registrar"],
      targets: [OWN_API],
      scopes: ["client:manage", "policy:explain"],
    },
    {
      id: "on-behalf",
      allow: "delegation",
      actors: [workload("agents/registrar")],
      subjects: { issuers: [IDP] },
      subjectToken: { audiences: [ISSUER] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: [OWN_API],
      scopes: ["client:manage"],
    },
  ],
  limits: { ...PATIENT, registrationsPerHourBySource: REGISTRATIONS_MAX, ...limits },
});
const OPEN = { mode: "open", open: { scopes: ["read"] } };

let database: SharedPostgres;
/** Registration requires an initial access token, and is opened for some of the tests. */
let world: World;
/** The same on PostgreSQL, with a second instance. */
let shared: World;
let second: ServerProcess;
/** Registration is open, and attempts with one initial access token are limited. */
let strict: World;
const crew = new Map<World, string>();

before(async () => {
  database = await sharePostgres();
  const postgres = await freshDatabase(database);
  [world, shared, strict] = await Promise.all([
    makeWorld(configuration(), { clock: true }),
    makeWorld(configuration({ clientsMax: CLIENTS_MAX }), { postgres, clock: true }),
    makeWorld(configuration(OPEN, { registrationRequestsPerMinuteByClient: 5 })),
  ]);
  second = await shared.beside("second");
  for (const one of [world, shared]) crew.set(one, await createInitialToken(one, "crew", "--uses", "1000"));
});

after(() => stop(second, world, shared, strict, database));

const stores: readonly (readonly [string, () => World])[] = [
  ["SQLite", () => world],
  ["PostgreSQL", () => shared],
];

const asCrew = (at = world): Record<string, string> => bearer(crew.get(at) ?? "");
/** Secrets, tokens and contacts that must not be in logs. */
const given = new Map<World, string[]>();
const CONTACT = "someone@crew.example";

async function register(metadata: Metadata, at = world): Promise<Registered> {
  const client = assertRegistered(await post(at, { contacts: [CONTACT], ...metadata }, asCrew(at)));
  const secrets = [client.client_secret, client.registration_access_token, crew.get(at) ?? "", CONTACT];
  given.set(at, [...(given.get(at) ?? []), ...secrets]);
  return client;
}

// --- access -------------------------------------------------------------------------------------------------------

const NO_METHOD = { token_endpoint_auth_method: "none" };

const obtain = async (at: World, scope: string): Promise<string> => {
  const authorization = basic("registrar", SECRET);
  const answer = await at.token({ ...CC, scope }, { authorization });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
};

const refusals: readonly (readonly [string, () => Promise<object>, number, string?])[] = [
  ["RFC7591-3-3 nothing", async () => ({}), 401],
  ["RFC6750-3.1-5 another scheme", async () => ({ authorization: basic("registrar", SECRET) }), 401],
  ["RFC6750-3.1-1 two tokens", async () => bearer("iat_a iat_b"), 400, "invalid_request"],
  ["RFC7591-3.2.2-1 a longer token", async () => bearer(`${crew.get(world)}A`), 401, "invalid_token"],
  [
    "RFC7591-3.2.2-1 the token in another case",
    async () => bearer(String(crew.get(world)?.toLowerCase())),
    ...([401, "invalid_token"] as const),
  ],
  [
    "RFC7591-3.2.2-1 the token without its first letters",
    async () => bearer(String(crew.get(world)?.slice("iat_".length))),
    ...([401, "invalid_token"] as const),
  ],
  ["RFC7591-3.2.2-1 the token of another server", async () => asCrew(shared), 401, "invalid_token"],
  [
    "RFC7592-2-1 the token that manages a client",
    async () => bearer((await register({})).registration_access_token),
    ...([401, "invalid_token"] as const),
  ],
  [
    "RFC9068-4-8 a token of another issuer for our endpoints",
    async () => bearer(await world.idp.mintUserToken({ sub: "u-1", aud: OWN_API, scope: "client:manage" })),
    ...([401, "invalid_token"] as const),
  ],
];
for (const [name, make, status, error] of refusals) {
  test(`PROD-5r3-1, PROD-7.5-1, ${name}: ${status}, and no client is registered`, async () => {
    const answer = await post(world, {}, (await make()) as Record<string, string>);
    assertChallenge(answer, status, error);
    assert.equal("client_id" in answer.body, false);
  });
}

test("RFC6750-2.3-2 a token in the URI is refused, also beside a valid one", async () => {
  const path = `/register?access_token=${crew.get(world)}`;
  for (const headers of [JSON_TYPE, { ...JSON_TYPE, ...asCrew() }]) {
    const answer = await world.get(path, { method: "POST", headers, body: "{}" });
    assertChallenge(answer, 400, "invalid_request");
  }
});

for (const [name, at] of stores) {
  test(`RFC7591-3-3 an initial access token permits its number of registrations, and refused ones do not count (${name})`, async () => {
    const token = bearer(await createInitialToken(at(), "crew", "--uses", "2"));
    assertRegistered(await post(at(), {}, token));
    assertError(await post(at(), NO_METHOD, token), 400, "invalid_client_metadata");
    assertRegistered(await post(at(), {}, token));
    assertChallenge(await post(at(), {}, token), 401, "invalid_token");
  });

  test(`RFC7591-3-3 one of many concurrent registrations with a single use succeeds (${name})`, async () => {
    const token = bearer(await createInitialToken(at(), "crew"));
    const ports = at() === shared ? [shared.server.port, second.port] : [at().server.port];
    const racing = Array.from({ length: 12 }, (_, index) =>
      post(at(), {}, token, ports[index % ports.length]),
    );
    const answers = await Promise.all(racing);
    const made = answers.filter(({ status }) => status === 201);
    assert.equal(made.length, 1);
    for (const answer of answers) if (answer.status !== 201) assertChallenge(answer, 401, "invalid_token");
    assertToken(await byBasic(made[0]?.body as Registered, at()), String(made[0]?.body.client_id));
  });

  test(`RFC7591-3-3 an initial access token ends when it expires or is revoked; its clients stay (${name})`, async () => {
    const ending = await createInitialToken(at(), "crew", "--uses", "5", "--expires", "20");
    const made = await runClient(at(), "initial-token", "create", "--class", "crew", "--uses", "5", "--json");
    const { id, initial_access_token: revoked } = JSON.parse(made);
    const clients = [];
    for (const token of [ending, revoked])
      clients.push(assertRegistered(await post(at(), {}, bearer(token))));
    await runClient(at(), "initial-token", "revoke", id);
    assertChallenge(await post(at(), {}, bearer(revoked)), 401, "invalid_token");
    at().pass(20);
    assertChallenge(await post(at(), {}, bearer(ending)), 401, "invalid_token");
    for (const client of clients) assertToken(await byBasic(client, at()), client.client_id);
  });
}

test("PROD-8.3-1 attempts with an initial access token are limited by minute", async () => {
  const [one, other] = [await createInitialToken(strict, "crew"), await createInitialToken(strict, "crew")];
  const refused = () => post(strict, NO_METHOD, bearer(one));
  const beganMs = performance.now();
  const answers = await Promise.all(Array.from({ length: 12 }, refused));
  const passedSeconds = (performance.now() - beganMs) / 1000;
  const waiting = answers.filter(({ status }) => status === 429);
  // One more for each twelve seconds in which they were asked.
  assert.ok(waiting.length <= 7 && waiting.length >= 7 - Math.ceil(passedSeconds / 12), `${waiting.length}`);
  for (const { headers, body } of waiting) {
    const seconds = Number(headers["retry-after"]);
    assert.ok(seconds <= 12 && seconds >= 12 - Math.ceil(passedSeconds), `${seconds}`);
    assert.equal(body.error, "temporarily_unavailable");
  }
  assertRegistered(await post(strict, {}, bearer(other)));
});

test("PROD-5r4-1 an administrator registers a client with its own token, and the event names the administrator", async () => {
  const token = await obtain(world, "client:manage");
  const client = assertRegistered(await post(world, { scope: "read write" }, bearer(token)));
  assert.deepEqual([client.grant_types, client.scope], [GRANT_TYPES, "read write"]);
  const event = await lastEvent(world, "client.registered");
  assert.deepEqual([event?.reason, event?.detail.class], ["by_administrator", "managed"]);
  assert.deepEqual(event?.client, {
    client_id: "registrar",
    auth_method: "bearer",
    jti: claimsOf(token).jti,
  });
  assertToken(await byBasic(client, world), client.client_id, "read");
});

test("PROD-5r4-1 a delegated token is refused for registration, whatever its scope", async () => {
  const svid = await world.svid("agents/registrar");
  const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "client:manage" });
  const exchanged = await world.token({
    grant_type: EXCHANGE,
    subject_token: user,
    subject_token_type: JWT,
    audience: OWN_API,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
  });
  assert.equal(exchanged.status, 200, exchanged.text);
  const answer = await post(world, {}, bearer(String(exchanged.body.access_token)));
  assert.equal(answer.status, 401, answer.text);
  assert.match(answer.headers["www-authenticate"] ?? "", /invalid_token/);
});

test("RFC6750-3.1-3, PROD-7.5-1 a token of ours with another scope is insufficient for registration", async () => {
  const token = await obtain(world, "policy:explain");
  assertChallenge(await post(world, {}, bearer(token)), 403, "insufficient_scope");
  const event = await lastEvent(world, "admin.access");
  assert.deepEqual([event?.outcome, event?.reason], ["deny", "scope_insufficient"]);
});

// --- what a registration permits ----------------------------------------------------------------------------------

test("RFC7591-5-7, PROD-2.2-5 a client gets no token until a rule names it or its class", async () => {
  const token = bearer(await createInitialToken(world, "passengers"));
  const client = assertRegistered(await post(world, { client_name: "crew", software_id: "crew" }, token));
  assertError(await byBasic(client, world), 400, "unauthorized_client");
  await reload(world, ({ policies }) => {
    const named = { clients: [client.client_id], targets: [API], scopes: ["admin"] };
    policies.push({ id: "named", allow: "client_credentials", ...named });
  });
  assertToken(await byBasic(client, world), client.client_id, "admin");
  await reload(world, ({ policies }) => {
    Object.assign(policies.at(-1) ?? {}, { clients: undefined, classes: ["passengers"], scopes: ["read"] });
  });
  assertToken(await byBasic(client, world), client.client_id, "read");
  await reload(world, ({ policies }) => {
    policies.pop();
  });
});

test("PROD-5r4-1 explain and the token endpoint agree about registered clients", async () => {
  const [mine, otherClass] = [
    await register({ scope: "read" }),
    bearer(await createInitialToken(world, "others")),
  ];
  const unnamed = assertRegistered(await post(world, {}, otherClass));
  const headers = { ...JSON_TYPE, ...bearer(await obtain(world, "policy:explain")) };
  const explain = async ({ client_id: client }: Registered): Promise<Metadata> => {
    const body = JSON.stringify({ client, target: API });
    return (await world.get("/policy/explain", { method: "POST", headers, body })).body;
  };
  assertToken(await byBasic(mine, world), mine.client_id, "read");
  const { sub, scope } = Object((await explain(mine)).would_issue).claims;
  assert.deepEqual([sub, scope], [mine.client_id, "read"]);
  assertError(await byBasic(unnamed, world), 400, "unauthorized_client");
  assert.equal((await explain(unnamed)).error, "unauthorized_client");
});

const scopes: readonly (readonly [string, Metadata, string | undefined, string | undefined, string])[] = [
  ["RFC7591-2-14 without a requested scope, all that is permitted", {}, undefined, "read admin", "read"],
  [
    "RFC7591-3.2.1-9 a scope that is not permitted is left out",
    { scope: "read write admin" },
    undefined,
    "read admin",
    "read",
  ],
  ["RFC7591-2-21 a narrower scope as requested", { scope: "read" }, "read", "read", "read"],
];
for (const [name, metadata, requested, registered, granted] of scopes) {
  test(`${name}: is recorded and limits the scope of tokens`, async () => {
    const token = bearer(await createInitialToken(world, "crew", "--scope", "read admin"));
    const client = assertRegistered(await post(world, metadata, token));
    assert.equal(client.scope, registered);
    const form: Form = requested === undefined ? {} : { scope: "read write" };
    assertToken(await byBasic(client, world, form), client.client_id, granted);
    assertError(await byBasic(client, world, { scope: "write" }), 400, "invalid_scope");
  });
}

test("RFC7591-3.2.1-9 a client gets the grant types that its initial access token permits, and is refused if that is none", async () => {
  const token = bearer(
    await createInitialToken(world, "crew", "--grant-type", EXCHANGE, "--scope", "read", "--uses", "9"),
  );
  for (const metadata of [{ grant_types: GRANT_TYPES }, { grant_types: [EXCHANGE] }]) {
    assert.deepEqual(assertRegistered(await post(world, metadata, token)).grant_types, [EXCHANGE]);
  }
  const client = assertRegistered(await post(world, {}, token));
  assertError(await byBasic(client, world), 400, "unauthorized_client");
  for (const metadata of [{ grant_types: [CC.grant_type] }, { scope: "write admin" }]) {
    assertError(await post(world, metadata, token), 400, "invalid_client_metadata");
  }
});

// --- open registration --------------------------------------------------------------------------------------------

const advertised = async (at: World): Promise<unknown> =>
  (await at.get("/.well-known/oauth-authorization-server")).body.registration_endpoint;

test("PROD-4.4-2, RFC7591-3-4 the metadata have registration_endpoint while registration is enabled, in every mode", async () => {
  for (const at of [world, strict]) assert.equal(await advertised(at), `${ISSUER}/register`);
});

describe("where registration is open", () => {
  let openClient: Registered;
  before(async () => {
    await reload(world, ({ registration }) => void Object.assign(registration, OPEN));
    openClient = assertRegistered(await post(world, { scope: "read write admin", grant_types: GRANT_TYPES }));
  });

  test("RFC7591-3-4, RFC7591-5-7 open registration permits no more than its configured scopes and grant types", async () => {
    assert.deepEqual([openClient.scope, openClient.grant_types], ["read", [CC.grant_type]]);
    assertToken(await byBasic(openClient, world), openClient.client_id, "read");
    assertError(await byBasic(openClient, world, { scope: "write" }), 400, "invalid_scope");
    const event = await lastEvent(world, "client.registered");
    assert.deepEqual([event?.reason, event?.detail.class], ["by_anybody", "open"]);
  });

  test("HTTP-D-22, RFC7591-5-7 a narrower ceiling of open registration reaches its clients at their next request, and no others", async () => {
    const client = await register({ scope: "read write" }, world);
    const narrow = (scopes: string[], grantTypes: string[]) =>
      reload(world, ({ registration }) => {
        registration.open = { scopes, grantTypes };
      });
    await narrow(["write"], [CC.grant_type]);
    assertError(await byBasic(openClient, world, { scope: "read" }), 400, "invalid_scope");
    assertError(await byBasic(openClient, world, { scope: "write" }), 400, "invalid_scope");
    assertToken(await byBasic(client, world), client.client_id);
    await narrow(["read"], [EXCHANGE]);
    assertError(await byBasic(openClient, world), 400, "unauthorized_client");
    assertError(await byBasic(openClient, world, { grant_type: EXCHANGE }), 400, "unauthorized_client");
    await narrow(["read"], [CC.grant_type]);
    assertToken(await byBasic(openClient, world), openClient.client_id, "read");
  });

  test("RFC7591-5-7, RFC7592-3-4 an update of an openly registered client is recorded under what its class may have now", async (t) => {
    const { registration: before } = JSON.parse(readFileSync(world.configFile, "utf8"));
    t.after(() => reload(world, ({ registration }) => void Object.assign(registration, before)));
    const permit = (scopes: readonly string[], grantTypes: readonly string[]) =>
      reload(world, ({ registration }) => {
        registration.open = { scopes, grantTypes };
      });
    const update = async (client: Registered, members: object): Promise<Registered> => {
      const body = JSON.stringify({ client_id: client.client_id, ...members });
      const headers = { ...JSON_TYPE, ...bearer(client.registration_access_token) };
      const answer = await world.get(`/register/${client.client_id}`, { method: "PUT", headers, body });
      assert.equal(answer.status, 200, answer.text);
      return { client_secret: client.client_secret, ...answer.body } as Registered;
    };
    const all = { scope: "read write", grant_types: [CC.grant_type, EXCHANGE] };
    await permit(["read", "write"], all.grant_types);
    const client = assertRegistered(await post(world, all));
    const silent = assertRegistered(await post(world, {}));
    assert.deepEqual([client.scope, client.grant_types], [all.scope, all.grant_types]);

    await permit(["read"], [CC.grant_type]);
    const narrowed = await update(client, all);
    assert.deepEqual([narrowed.scope, narrowed.grant_types], ["read", [CC.grant_type]]);
    await permit(["admin"], [CC.grant_type]);
    const without = await update(silent, { grant_types: [CC.grant_type] });
    assert.equal(without.scope, undefined);

    // A class that is widened again adds nothing to what was recorded, nor to what a later update may ask for.
    await permit(["read", "write"], all.grant_types);
    assertToken(await byBasic(narrowed, world), client.client_id, "read");
    assertError(await byBasic(narrowed, world, { scope: "write" }), 400, "invalid_scope");
    assertError(await byBasic(without, world, { scope: "read" }), 400, "invalid_scope");
    const later = await update(narrowed, all);
    assert.deepEqual([later.scope, later.grant_types], ["read", [CC.grant_type]]);
  });

  for (const mode of ["off", "initial-access-token"]) {
    test(`HTTP-D-22, RFC7591-5-7 mode "${mode}" widens no client that registered openly: the last ceiling stands, also after a start`, async (t) => {
      const { registration: before } = JSON.parse(readFileSync(world.configFile, "utf8"));
      t.after(() => reload(world, ({ registration }) => void Object.assign(registration, before)));
      const set = (values: object) =>
        reload(world, (config) => {
          const { open: _, ...rest } = config.registration;
          config.registration = { ...rest, ...values };
        });
      const permits = (scopes: string[]) => ({ open: { scopes, grantTypes: [CC.grant_type] } });
      const readsAlone = async (client: Registered, port?: number) => {
        assertToken(await byBasic(client, world, { scope: "read" }, port), client.client_id, "read");
        assertError(await byBasic(client, world, { scope: "write" }, port), 400, "invalid_scope");
      };
      await set({ mode: "open", ...permits(["read", "write"]) });
      const client = assertRegistered(await post(world, { scope: "read write" }));
      assertToken(await byBasic(client, world, { scope: "write" }), client.client_id, "write");
      await set({ mode: "open", ...permits(["read"]) });
      await readsAlone(client);
      await set({ mode });
      await readsAlone(client);
      const later = await world.beside(`later-${mode}`);
      t.after(() => later.stop());
      await readsAlone(client, later.port);
      // What the configuration says in this mode limits them too.
      await set({ mode, ...permits(["write"]) });
      assertError(await byBasic(client, world, { scope: "read" }), 400, "invalid_scope");
      assertToken(await byBasic(client, world, { scope: "write" }), client.client_id, "write");
    });
  }

  test("HTTP-D-24, RFC6750-3.1-5, RFC7591-3.2.2-1 a registration with credentials of another scheme is refused, also where registration is open", async () => {
    for (const authorization of ["Basic YTpi", "Digest abc", "Negotiate", "x"]) {
      for (const at of [world, shared])
        assertChallenge(await post(at, {}, { authorization }), 401, undefined);
    }
  });

  test("RFC7591-3.2.1-9 open registration refuses grant types, scopes and methods that it does not permit", async () => {
    for (const metadata of [{ grant_types: [EXCHANGE] }, { scope: "write" }, NO_METHOD]) {
      assertError(await post(world, metadata), 400, "invalid_client_metadata");
    }
  });

  test("RFC7591-3.2.2-1 open registration refuses a wrong initial access token", async () => {
    assertChallenge(await post(world, {}, bearer("iat_wrong")), 401, "invalid_token");
    assertChallenge(await post(world, {}, { authorization: "Bearer" }), 400, "invalid_request");
    const client = await register({ scope: "write" }, world);
    assertToken(await byBasic(client, world), client.client_id, "write");
  });

  test("RFC7591-3-5, PROD-8.3-1 open registrations are limited by source and hour; those with an initial access token are not counted", async () => {
    let answer = await post(world, {});
    for (let more = REGISTRATIONS_MAX; answer.status === 201 && more > 0; more--)
      answer = await post(world, {});
    assert.deepEqual([answer.status, answer.body.error], [429, "temporarily_unavailable"]);
    const seconds = Number(answer.headers["retry-after"]);
    assert.ok(seconds > 3600 / REGISTRATIONS_MAX - 60 && seconds <= 3600 / REGISTRATIONS_MAX, `${seconds}`);
    await register({}, world);
  });

  test("PROD-5r3-1, PROD-4.4-12 another mode applies from the next request on, and existing clients and tokens stay valid", async () => {
    const early = bearer(await createInitialToken(world, "crew", "--uses", "2"));
    const manage = (client: Registered): Promise<Answer> =>
      world.get(`/register/${client.client_id}`, { headers: bearer(client.registration_access_token) });
    const client = assertRegistered(await post(world, {}, early));

    await reload(world, (config) => {
      config.registration = { ...config.registration, mode: "off", open: undefined };
    });
    assert.equal(await advertised(world), undefined);
    for (const headers of [{}, early, bearer(await obtain(world, "client:manage"))]) {
      assert.equal((await post(world, {}, headers)).status, 404);
    }
    assert.equal((await manage(client)).status, 404);
    assertToken(await byBasic(client, world), client.client_id);
    assertToken(await byBasic(openClient, world), openClient.client_id, "read");

    await reload(world, (config) => {
      config.registration = { ...config.registration, mode: "initial-access-token" };
    });
    assertChallenge(await post(world, {}), 401, undefined);
    assert.equal((await manage(client)).status, 200);
    assertRegistered(await post(world, {}, early));
    assertChallenge(await post(world, {}, early), 401, "invalid_token");
  });
});

// --- limits -------------------------------------------------------------------------------------------------------

for (const [name, at] of stores) {
  test(`RFC7591-3.2.1-9 the number of clients of a class is limited, and the limit can be reached (${name})`, async () => {
    const inForce = async () =>
      (await runClient(at(), "list")).match(/ in-force .*class=crew /g)?.length ?? 0;
    const ports = at() === shared ? [shared.server.port, second.port] : [at().server.port];
    if (at() === world) {
      await reload(at(), ({ registration }) => {
        registration.clientsMax = CLIENTS_MAX;
      });
    }
    const free = CLIENTS_MAX - (await inForce());
    assert.ok(free > 3, `${free}`);
    const made = await Promise.all(
      Array.from({ length: free + 6 }, (_, index) =>
        post(at(), {}, asCrew(at()), ports[index % ports.length]),
      ),
    );
    const taken = made.filter(({ status }) => status === 201).map(({ body }) => body as Registered);
    // Concurrent instances may each register one client beyond the limit.
    const extra = taken.length - free;
    assert.ok(extra >= 0 && extra < ports.length, `${extra}`);
    assert.equal(await inForce(), CLIENTS_MAX + extra);
    const refused = made.filter(({ status }) => status !== 201);
    refused.push(await post(at(), {}, asCrew(at())));
    // Another class has its own limit.
    assertRegistered(await post(at(), {}, bearer(await obtain(at(), "client:manage"))));
    for (const { status, body, headers } of refused) {
      assert.deepEqual([status, body.error], [503, "temporarily_unavailable"]);
      assert.equal(headers["retry-after"], "3600");
    }
    const event = await lastEvent(at(), "client.registration_denied");
    assert.deepEqual([event?.outcome, event?.reason], ["deny", "clients_too_many"]);
    for (const { client_id, registration_access_token } of taken.slice(0, extra + 1)) {
      const headers = bearer(registration_access_token);
      const gone = await at().get(`/register/${client_id}`, { method: "DELETE", headers });
      assert.equal(gone.status, 204);
    }
    await register({}, at());
  });
}

// --- events -------------------------------------------------------------------------------------------------------

test("AUDIT-D-2, AUDIT-D-4, PROD-6.3-1 every outcome has an event with caller, client and reason", async () => {
  const words = ["--class", "told", "--uses", "2", "--scope", "read", "--json"];
  const { id, initial_access_token: token } = JSON.parse(
    await runClient(world, "initial-token", "create", ...words),
  );
  const known = (await world.events()).length;
  const metadata = { client_name: "Mine", contacts: ["me@a.example"], software_id: "s-1" };
  const client = assertRegistered(await post(world, metadata, bearer(token)));
  await post(world, NO_METHOD, bearer(token));
  const [registered, denied, ...more] = (await world.events()).slice(known);
  assert.deepEqual(more, []);
  const common = { class: "told", initial_access_token: id };
  for (const event of [registered, denied]) {
    const { source_ip, endpoint, id: request } = Object(event?.request);
    assert.deepEqual([source_ip, endpoint, typeof request], ["127.0.0.1", "/register", "string"]);
    assert.match(Object(event?.policy).digest, /^sha256:[0-9a-f]{64}$/);
    assert.equal(event?.client, undefined);
  }
  const { type, outcome, reason, detail } = registered ?? assert.fail();
  assert.deepEqual([type, outcome, reason], ["client.registered", "allow", "by_initial_access_token"]);
  assert.deepEqual(detail, {
    client_id: client.client_id,
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: GRANT_TYPES,
    scope: "read",
    software_id: "s-1",
    ...common,
  });
  assert.deepEqual([denied?.type, denied?.outcome], ["client.registration_denied", "deny"]);
  assert.deepEqual(denied?.detail, common);
});

test("AUDIT-D-2 failures without authentication are counted by reason, without an event for each", async () => {
  const known = await strict.events();
  for (let tried = 0; tried < 3; tried++) await post(strict, NO_METHOD);
  await post(strict, {}, bearer("iat_guess"));
  await strict.server.stop();
  const events = (await strict.events()).slice(known.length);
  const failures = events.filter(({ type }) => type === "client.auth_failed");
  assert.deepEqual(
    failures.map(({ reason, count, detail }) => [reason, count, Object(detail).endpoint]),
    [
      ["token_endpoint_auth_method_refused", 3, "/register"],
      ["initial_token_unknown", 1, "/register"],
    ],
  );
  assert.equal(
    events.some(({ type }) => type === "client.registration_denied"),
    false,
  );
});

for (const [name, at] of stores) {
  test(`AUDIT-D-3 log and audit trail contain no secret, token or contact (${name})`, async () => {
    const kept = JSON.stringify(await at().events()) + at().server.lines.join("\n");
    assert.ok(kept.includes("client.registered") && given.get(at())?.length);
    for (const one of given.get(at()) ?? []) assert.ok(!kept.includes(one), one);
  });
}
