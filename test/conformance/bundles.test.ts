/**
 * Trust bundles in a running server: endpoints that are down, return an older bundle or authenticate with an SVID,
 * restarts during an outage, and a rotation under load.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Authority, bundle, makeKeyPem, mintJwtSvid, type TrustDomain } from "../../scripts/dev-keys.ts";
import {
  issueServerCertificate,
  makeAuthority,
  makeTrustDomain,
  mintX509Svid,
  type X509Svid,
} from "../../scripts/dev-pki.ts";
import type { Answer } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { UNREACHABLE_SECONDS } from "../../src/limits/clients.ts";
import { EARLY_LOOK_SECONDS, LAST_GOOD_SECONDS, UNKNOWN_AGE_SECONDS } from "../../src/limits/fetching.ts";
import { openDatabaseProxy } from "../support/database-proxy.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until, whilePassing } from "../support/until.ts";
import { ISSUER, JWT_SPIFFE, makeWorld, type World, type WorldOptions } from "../support/world.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials", audience: API };
/** Trust domains whose bundle is fetched by https_web, fetched by https_spiffe, and read from a file. */
const [WEB, SPIFFE, FILE] = ["web.example", "spiffe.example", "file.example"];
const NAMES = [WEB, SPIFFE, FILE];
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const BUNDLES = `spiffe://${SPIFFE}/bundles`;

/** An endpoint that can go down and come back at the same port. */
class Endpoint {
  content: object = { keys: [] };
  asked = 0;
  readonly #server: ReturnType<typeof createServer>;
  #port = 0;

  constructor(key: string, cert: string) {
    this.#server = createServer({ key, cert }, (_, response) => {
      this.asked++;
      response.end(JSON.stringify(this.content));
    });
  }

  async up(): Promise<void> {
    if (this.#server.listening) return;
    this.#server.listen(this.#port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async down(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  get url(): string {
    return `https://localhost:${this.#port}/bundle`;
  }
}

let domains: Record<string, TrustDomain>;
let authority: Authority;
let web: Endpoint;
let spiffe: Endpoint;
let database: SharedPostgres;
const worlds: World[] = [];
const servers: ServerProcess[] = [];

const domain = (name: string): TrustDomain => domains[name] ?? assert.fail(name);

before(async () => {
  database = await sharePostgres();
  domains = Object.fromEntries(
    await Promise.all(NAMES.map(async (name) => [name, await makeTrustDomain(name)])),
  );
  authority = await makeAuthority("Bundle endpoints");
  const tls = await issueServerCertificate(authority, ["localhost"]);
  web = new Endpoint(tls.keyPem, tls.certPem);
  const shown = await mintX509Svid(domain(SPIFFE), BUNDLES);
  spiffe = new Endpoint(shown.keyPem, shown.chainPem);
});

after(() =>
  stop(
    ...servers,
    ...worlds,
    () => web.down(),
    () => spiffe.down(),
    database,
  ),
);

/** A server with all three trust domains; a rule permits the same token for the workloads of each. */
async function open(
  options: Pick<WorldOptions, "postgres" | "clock" | "wallAheadSeconds"> = {},
): Promise<World> {
  await web.up();
  await spiffe.up();
  web.content = bundle(domain(WEB));
  spiffe.content = bundle(domain(SPIFFE));
  const extra = {
    operations: { port: 0 },
    trustDomains: {
      [WEB]: { bundle: { url: web.url, ca: { file: "endpoints.pem" }, privateNetworks: LOOPBACK } },
      [SPIFFE]: {
        bundle: {
          url: spiffe.url,
          profile: "https_spiffe",
          endpointSpiffeId: BUNDLES,
          bootstrap: { file: "bootstrap.json" },
          privateNetworks: LOOPBACK,
        },
      },
      [FILE]: { bundle: { file: "file-bundle.json" } },
    },
    trustedIssuers: {},
    targets: [{ names: [API], scopes: ["read"] }],
    policies: [
      {
        id: "workloads",
        allow: "client_credentials",
        actors: NAMES.map((name) => `spiffe://${name}/*`),
        targets: [API],
        scopes: ["read"],
      },
    ],
    limits: {
      failuresPerMinuteBySource: 100_000,
      failuresPerMinuteByClient: 100_000,
      requestsPerSecondByClient: 100_000,
    },
  };
  const files = {
    "endpoints.pem": authority.certPem,
    "bootstrap.json": JSON.stringify(bundle(domain(SPIFFE))),
    "file-bundle.json": JSON.stringify(bundle(domain(FILE))),
  };
  const world = await makeWorld(extra, { ...options, files });
  worlds.push(world);
  return world;
}

/** Stops the server and starts another one with the same configuration and store. */
async function restart(world: World, old: ServerProcess): Promise<ServerProcess> {
  assert.equal(await old.stop(), 0);
  const server = await world.start(world.configFile);
  servers.push(server);
  return server;
}

/** Another instance on the same store. */
async function startSecond(world: World): Promise<ServerProcess> {
  const server = await world.beside("second");
  servers.push(server);
  return server;
}

async function ask(world: World, from: TrustDomain, server = world.server): Promise<Answer> {
  const svid = await mintJwtSvid(from, { sub: `spiffe://${from.name}/agents/planner`, aud: ISSUER });
  const form = { ...CC, client_assertion_type: JWT_SPIFFE, client_assertion: svid };
  return world.token(form, {}, {}, server.port);
}

function assertAdmitted(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text);
}

function assertRefused(answer: Answer): void {
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"], answer.text);
}

/** MCPC-D-24: there is no bundle, or it is too old, and it may be there in a moment. */
function assertUnfetched({ status, body, headers }: Pick<Answer, "status" | "body" | "headers">): void {
  const want = [503, "temporarily_unavailable", String(UNREACHABLE_SECONDS)];
  assert.deepEqual([status, body.error, headers["retry-after"]], want);
}

async function tool(server: ServerProcess, path: string): Promise<{ status: number; text: string }> {
  const origin = server.lines.flatMap((line) => /^Health and metrics are at (\S+)$/.exec(line)?.[1] ?? []);
  assert.equal(origin.length, 1);
  const response = await fetch(origin + path);
  return { status: response.status, text: await response.text() };
}

/** Readiness, and the state of each trust domain's keys. */
async function health(server: ServerProcess): Promise<{ status: number; states: Record<string, string> }> {
  const { status, text } = await tool(server, "/readyz");
  const trustDomains: [string, { state: string }][] = Object.entries(JSON.parse(text).trustDomains);
  return { status, states: Object.fromEntries(trustDomains.map(([name, { state }]) => [name, state])) };
}

const rotated = async (old: TrustDomain): Promise<TrustDomain> => ({
  ...old,
  sequence: old.sequence + 1,
  jwt: { kid: `${old.jwt.kid}+`, keyPem: await makeKeyPem() },
});

test("SFD-4.2-1, SFD-5-1, SFD-5.2.2.4-1, PROD-2.4-4, PROD-2.4-7, PROD-4.4-6 bundles of both profiles are used through an outage and a restart, until the copy is too old", async () => {
  const world = await open();
  for (const name of NAMES) assertAdmitted(await ask(world, domain(name)));
  const all = (state: string) => ({ [WEB]: state, [SPIFFE]: state, [FILE]: "fresh" });
  assert.deepEqual(await health(world.server), { status: 200, states: all("fresh") });
  await Promise.all([web.down(), spiffe.down()]);
  const again = await restart(world, world.server);
  for (const name of NAMES) assertAdmitted(await ask(world, domain(name), again));
  assert.deepEqual(await health(again), { status: 200, states: all("last_good") });

  await again.stop();
  const db = new DatabaseSync(join(world.folder, "mandate.sqlite"));
  db.prepare("update kept_document set loaded_at = loaded_at - ?").run(LAST_GOOD_SECONDS);
  db.close();
  const late = await restart(world, again);
  assertUnfetched(await ask(world, domain(WEB), late));
  assertUnfetched(await ask(world, domain(SPIFFE), late));
  assertAdmitted(await ask(world, domain(FILE), late));
  assert.deepEqual(await health(late), { status: 200, states: all("none") });
  await late.stop();
});

test("MCPC-D-24 a bundle that cannot be fetched now is told as such to workloads with either kind of SVID, and one that is refused is final", async () => {
  const world = await open({ clock: true });
  const { keyPem: key, chainPem: cert } = await mintX509Svid(domain(WEB), `spiffe://${WEB}/agents/planner`);
  const askBoth = () => Promise.all([ask(world, domain(WEB)), world.token(CC, {}, { key, cert })]);
  const reach = (status: number) => {
    const reached = async () => (await ask(world, domain(WEB))).status === status;
    return whilePassing({ pass: world.skip }, 5, until(reached, `the answer is ${status}`));
  };
  for (const answer of await askBoth()) assertAdmitted(answer);
  await Promise.all([web.down(), spiffe.down()]);
  // The wall clock stands still, so that no SVID expires.
  world.setWall(-LAST_GOOD_SECONDS - 1);
  world.pass(LAST_GOOD_SECONDS + 1);
  for (const answer of await askBoth()) assertUnfetched(answer);
  web.content = { keys: "none" };
  await web.up();
  await reach(400);
  for (const answer of await askBoth()) assertRefused(answer);
  web.content = bundle(domain(WEB));
  await reach(200);
  for (const answer of await askBoth()) assertAdmitted(answer);
  await world.server.stop();
});

test("SFD-4.2-2, SBN-4.1.3-3, PROD-2.4-7 after a restart an older bundle is refused, and an empty bundle revokes permanently", async () => {
  const world = await open();
  const old = domain(WEB);
  const next = await rotated(old);
  web.content = bundle(next);
  const second = await restart(world, world.server);
  assertAdmitted(await ask(world, next, second));
  assertRefused(await ask(world, old, second));
  web.content = bundle(old);
  const third = await restart(world, second);
  assertAdmitted(await ask(world, next, third));
  assertRefused(await ask(world, old, third));
  assert.equal((await health(third)).states[WEB], "last_good");

  web.content = { spiffe_sequence: next.sequence + 1, keys: [] };
  const fourth = await restart(world, third);
  assertRefused(await ask(world, next, fourth));
  assert.equal((await health(fourth)).states[WEB], "fresh", "an empty bundle counts as fresh");
  const { withoutTrust, trustDomains } = JSON.parse((await tool(fourth, "/readyz")).text);
  assert.deepEqual([withoutTrust, trustDomains[FILE].keys], [[WEB], 2], "and is named");
  await web.down();
  const fifth = await restart(world, fourth);
  assertRefused(await ask(world, next, fifth));
  assertAdmitted(await ask(world, domain(SPIFFE), fifth));
  await fifth.stop();
  await spiffe.down();
});

test("SFD-4.2-1 an instance that starts during an outage uses what another instance loaded; without the database neither is ready", async (t) => {
  const proxy = await openDatabaseProxy(await freshDatabase(database));
  t.after(() => proxy.close());
  const world = await open({ postgres: proxy.url });
  assertAdmitted(await ask(world, domain(WEB)));
  await Promise.all([web.down(), spiffe.down()]);
  const second = await startSecond(world);
  for (const name of NAMES) assertAdmitted(await ask(world, domain(name), second));
  assert.equal((await health(second)).states[WEB], "last_good");

  proxy.manner = "close";
  proxy.cut();
  const both = [world.server, second];
  for (const server of both) {
    const { status, text } = await tool(server, "/readyz");
    assert.equal(status, 503);
    assert.match(text, /"store":"down"/);
    assert.equal((await tool(server, "/livez")).status, 200);
  }
  proxy.manner = "pass";
  for (const server of both) {
    await until(async () => (await health(server)).status === 200, "the server becomes ready again");
    assertAdmitted(await ask(world, domain(WEB), server));
  }
  await second.stop();
});

// --- clocks -------------------------------------------------------------------------------------------------------

const DAYS = 2 * 86_400;
const STORES: [name: string, place: () => Promise<{ postgres?: string }>][] = [
  ["SQLite", async () => ({})],
  ["PostgreSQL", async () => ({ postgres: await freshDatabase(database) })],
];
for (const [store, place] of STORES) {
  test(`SFD-4.2-1 a bundle that was loaded while the clock was two days ahead (${store}) is used for ${UNKNOWN_AGE_SECONDS} s after the clock was set right, over all instances and starts`, async () => {
    const world = await open({ ...(await place()), clock: true, wallAheadSeconds: DAYS });
    const workloads = domain(WEB);
    const stateOf = async (server: ServerProcess) => (await health(server)).states[WEB];
    await until(async () => (await stateOf(world.server)) === "fresh", "the bundle is loaded");
    await web.down();
    world.setWall(0);
    assertAdmitted(await ask(world, workloads));
    await until(async () => (await stateOf(world.server)) === "last_good", "it is fetched anew at once");
    // A start takes time of its own, which counts.
    world.pass(UNKNOWN_AGE_SECONDS - 65);
    const beganMs = performance.now();
    const second = await startSecond(world);
    world.pass(Math.max(0, 60 - Math.ceil((performance.now() - beganMs) / 1000)));
    for (const server of [world.server, second]) assertAdmitted(await ask(world, workloads, server));
    world.pass(6);
    for (const server of [world.server, second]) assertUnfetched(await ask(world, workloads, server));
    await world.server.stop();
    // The time at which the stored copy would be young.
    world.pass(DAYS - UNKNOWN_AGE_SECONDS);
    const third = await restart(world, second);
    assert.equal(await stateOf(third), "none");
    await web.up();
    await until(async () => {
      world.pass(5);
      return (await stateOf(third)) === "fresh";
    }, "the bundle is fetched again");
    await third.stop();
  });
}

// --- rotation -----------------------------------------------------------------------------------------------------

async function updates(server: ServerProcess): Promise<number> {
  const { text } = await tool(server, "/metrics");
  const line = /^mandate_events_total\{type="trust_bundle.updated",outcome="allow"\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}

/** Writes this file, sends SIGHUP, and waits until the changed bundle is in force, by whichever of them. */
async function reload({ server, folder }: World, file: string, content: object): Promise<void> {
  const known = await updates(server);
  writeFileSync(join(folder, file), JSON.stringify(content));
  server.child.kill("SIGHUP");
  await until(async () => (await updates(server)) > known, "a bundle is reloaded");
}

type Sender = { statuses: number[]; connections: Set<unknown>; stop(): Promise<void> };

/** Between the requests of a sender: the load is to span each change, and not to take all of the machine. */
const PAUSE_MS = 5;

/** Sends requests continuously with this certificate, over as few connections as the server allows. */
function keepAsking(world: World, { keyPem, chainPem }: X509Svid): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: world.ca, key: keyPem, cert: chainPem });
  const sender: Sender = { statuses: [], connections: new Set(), stop };
  const body = new URLSearchParams(CC).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded", host: "as.example" };
  let going = true;
  const one = async (): Promise<number> => {
    const outgoing = request({
      agent,
      headers,
      method: "POST",
      path: "/token",
      host: "127.0.0.1",
      port: world.server.port,
      servername: "as.example",
    });
    outgoing.end(body);
    const [response] = await once(outgoing, "response");
    sender.connections.add(response.socket);
    await response.toArray();
    return response.statusCode;
  };
  const running = (async () => {
    // A failed connection counts as a lost request.
    for (; going; await sleep(PAUSE_MS)) sender.statuses.push(await one().catch(() => 0));
  })();
  async function stop(): Promise<void> {
    going = false;
    await running;
    agent.destroy();
  }
  return sender;
}

/** What the test before left, or a new one: none of these tests depends on a fresh server. */
let leftOne: Promise<World> | undefined;
const left = (): Promise<World> => {
  leftOne ??= open({ clock: true });
  return leftOne;
};

test("PROD-2.3-13, SBN-4.1.3-3 a rotation under load loses no request of an authority in both bundles, and accepts none of a removed one", async () => {
  const world = await left();
  const old = domain(FILE);
  const next: TrustDomain = { ...(await makeTrustDomain(FILE)), sequence: old.sequence + 1 };
  const planner = `spiffe://${FILE}/agents/planner`;
  const senders = {
    old: keepAsking(world, await mintX509Svid(old, planner)),
    next: keepAsking(world, await mintX509Svid(next, planner)),
  };
  /** The number of responses that each sender has received. */
  const mark = () => ({ old: senders.old.statuses.length, next: senders.next.statuses.length });
  /** Waits for so many more responses of each. */
  const more = async (count: number) => {
    const { old, next } = mark();
    const reached = () => mark().old >= old + count && mark().next >= next + count;
    // A request with an unknown authority waits for the next early look.
    const responses = until(reached, `${count} more responses of each`);
    await whilePassing({ pass: world.skip }, EARLY_LOOK_SECONDS, responses, 30);
    return mark();
  };
  /** All that follow were asked for after this moment. */
  const settled = () => more(2);
  const publish = (content: object): Promise<void> => reload(world, "file-bundle.json", content);
  try {
    const begun = await settled();
    const beforeBoth = await more(10);
    await publish({ ...bundle(next), keys: [...bundle(old).keys, ...bundle(next).keys] });
    const both = await settled();
    const beforeGone = await more(10);
    await publish({ ...bundle(next), spiffe_sequence: next.sequence + 1 });
    const gone = await settled();
    const end = await more(10);
    const seen = (who: "old" | "next", from: number, to: number) => {
      const statuses = senders[who].statuses.slice(from, to);
      assert.ok(statuses.length >= 10, `${who}: ${statuses.length} requests are too few for a load`);
      return [...new Set(statuses)];
    };
    assert.deepEqual(seen("next", begun.next, beforeBoth.next), [400], "not in the first bundle");
    assert.deepEqual(seen("old", 0, beforeGone.old), [200], "in both of the first two bundles");
    assert.deepEqual(seen("next", both.next, end.next), [200], "in both of the last two bundles");
    assert.deepEqual(seen("old", gone.old, end.old), [400], "removed from the last bundle");
    // No connection was opened for it, so the certificate was verified on every request.
    assert.ok(senders.old.connections.size <= 1 + senders.old.statuses.length / 500);
  } finally {
    await Promise.all(Object.values(senders).map((sender) => sender.stop()));
  }
});

test("SBN-6.2-1, SFD-7.3-1, PROD-2.4-3 with an authority shared by two trust domains, workloads of one have no rights of the other", async () => {
  const world = await left();
  const shared = { ...domain(FILE), x509: await makeAuthority("Shared root") };
  const other: TrustDomain = { ...shared, name: "other.example" };
  writeFileSync(
    join(world.folder, "file-bundle.json"),
    JSON.stringify({ ...bundle(shared), spiffe_sequence: 10 }),
  );
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  config.trustDomains[other.name] = { bundle: { file: "file-bundle.json" } };
  await reload(world, "config.json", config);
  const present = async (from: TrustDomain) => {
    const { keyPem, chainPem } = await mintX509Svid(from, `spiffe://${from.name}/agents/planner`);
    return world.token(CC, {}, { key: keyPem, cert: chainPem });
  };
  assertAdmitted(await present(shared));
  const { status, body } = await present(other);
  assert.equal(status, 400);
  assert.equal(body.access_token, undefined);
  assert.notEqual(body.error, "invalid_client", "the workload is authenticated, but no rule allows it");
  assertRefused(await present({ ...other, name: "third.example" }));
});

test("SFD-4.2-1 a clock that is set while its endpoint answers refuses no workload, and no copy is used for longer than it may be", async () => {
  const world = await left();
  for (const aheadSeconds of [DAYS, 0, -DAYS, 0]) {
    const { asked } = web;
    world.setWall(aheadSeconds);
    assert.equal((await health(world.server)).states[WEB], "fresh");
    await until(() => web.asked > asked, "the bundle is fetched anew");
  }
  assertAdmitted(await ask(world, domain(WEB)));
  // The wall clock stands still: time passes all the same.
  await Promise.all([web.down(), spiffe.down()]);
  world.setWall(-LAST_GOOD_SECONDS - 1);
  world.pass(LAST_GOOD_SECONDS + 1);
  assertUnfetched(await ask(world, domain(WEB)));
  await world.server.stop();
});
