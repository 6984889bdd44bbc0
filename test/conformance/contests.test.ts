/** One round of what the trials of contests and endings do in many, with two instances. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createJob } from "../../src/flows/create-job.ts";
import { stopJob } from "../../src/flows/jobs.ts";
import { standing } from "../../src/flows/standing.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { contestAssertion, contestGrant, openInstances } from "../support/contests.ts";
import { openEndingRaces, RACE_KINDS } from "../support/ending-races.ts";
import { AT_TOKEN, formOf, openFlow } from "../support/flow.ts";
import { issuerOf, KINDS, openToGuests, tokenOf } from "../support/guests.ts";
import { freshDatabase, sharePostgres } from "../support/postgres.ts";
import { startProvider } from "../support/provider.ts";
import { DUE, forRecheck, openRecheck } from "../support/recheck.ts";
import { claimsIn, tokenOf as refreshTokenOf } from "../support/refresh.ts";

test("IDC-5.5-2, EMA-7.4.2-2, RFC7523-3-14 of two instances on one database exactly one redeems a grant, and exactly one accepts a client assertion", async (t) => {
  const database = await sharePostgres();
  t.after(() => database.stop());
  const guests = await openToGuests();
  t.after(() => guests.stop());
  const instances = await openInstances(guests, await freshDatabase(database));
  t.after(() => instances.stop());
  for (const kind of KINDS) await contestGrant(instances, kind);
  await contestAssertion(instances);
  const { redeemAt, ports } = instances;
  const [here = 0, there = 0] = ports;
  // Unusual characters in names are stored unchanged.
  const act = { sub: "b\u0000t\ud83d\ude00\u2028" };
  const odd = await guests.grant({ act, jti: "\u0000", sub: "ü-\u{1f600}" });
  const claims = tokenOf(await redeemAt(there, odd));
  assert.deepEqual([claims.sub, claims.act], ["p:ü-\u{1f600}", { ...act, iss: issuerOf("partner") }]);
  assert.equal((await redeemAt(here, odd)).body.error, "invalid_grant");
});

for (const [store, count] of [
  ["PostgreSQL", 2],
  ["SQLite", 1],
] as const) {
  test(`AUDIT-D-5 of what is issued beside an ending of any kind, nothing lives on (${store})`, async (t) => {
    const database = count > 1 ? await sharePostgres() : undefined;
    t.after(() => database?.stop());
    const races = await openEndingRaces(database && (await freshDatabase(database)), count);
    t.after(() => races.stop());
    for (const kind of RACE_KINDS) {
      assert.equal((await races.volley(kind, 2)).living, 0, kind);
    }
  });
}

test("RECHECK-D-2, RECHECK-D-5 of three instances on one database one asks about a user, and what the provider denies ends the user's hundred tokens at all three, and no other user's", async (t) => {
  const database = await sharePostgres();
  t.after(() => database.stop());
  const provider = await startProvider();
  t.after(() => provider.close());
  provider.refreshing = "rotating";
  const place = { postgres: await freshDatabase(database) };
  const shared = { place, encryptionKey: randomBytes(32), startMs: Math.floor(Date.now() / 1000) * 1000 };
  const open = (log: string, user = "alice") =>
    openRecheck(t, provider, forRecheck(provider), { ...shared, log, user });
  const instances = [await open("a"), await open("b"), await open("c")];
  const [first = assert.fail()] = instances;
  const bob = await open("d", "bob");
  await first.signIn(provider.refreshToken("alice"));
  await bob.signIn(provider.refreshToken("bob"));
  const refresh = async (tokens: readonly string[]) =>
    Promise.all(tokens.map((token, index) => (instances[index % 3] ?? first).refresh(token)));
  let tokens = await Promise.all(Array.from({ length: 20 }, () => first.start()));
  const bobs = await bob.start();
  const pass = (seconds: number) => [...instances, bob].map((one) => one.pass(seconds));
  pass(DUE);
  tokens = (await refresh(tokens)).map(refreshTokenOf);
  assert.deepEqual(provider.questions, ["refresh"]);
  pass(DUE - 60);
  const living: string[] = [];
  while (living.length < 100) {
    const answers = await refresh(tokens);
    living.push(...answers.map((answer) => String(claimsIn(answer).jti)));
    tokens = answers.map(refreshTokenOf);
  }
  const ofBob = await bob.refresh(bobs);
  provider.disabled.add("alice");
  pass(60);
  const refused = await refresh(tokens);
  const issued = refused.flatMap((answer) =>
    answer.error === undefined ? [String(claimsIn(answer).jti)] : [],
  );
  assert.deepEqual(provider.questions.length, 3, "one about alice each time, and one about bob");
  const nowSeconds = first.ports.clock.nowSeconds();
  for (const { ports } of instances) {
    const stands = await Promise.all([...living, ...issued].map((jti) => standing(ports, jti, nowSeconds)));
    assert.equal(stands.filter(({ ok }) => ok).length, 0);
  }
  for (const [index, token] of tokens.entries()) {
    const again = await (instances[(index + 1) % 3] ?? first).refresh(token);
    assert.equal(again.error, "grant_refused");
  }
  assert.ok((await standing(first.ports, String(claimsIn(ofBob).jti), nowSeconds)).ok);
  assert.equal((await bob.refresh(refreshTokenOf(ofBob))).error, undefined);
});

test("JOB-D-11 of 100 parallel requests at three instances on one database a job gives the 10 tokens that it may, and counts each", async (t) => {
  const database = await sharePostgres();
  t.after(() => database.stop());
  const api = { targets: ["https://api.example"], scopes: ["read"] };
  const configuration = {
    clients: { desk: { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] } },
    targets: [{ names: api.targets, scopes: api.scopes }],
    policies: [{ id: "own", allow: "client_credentials", clients: ["desk"], ...api }],
  };
  const shared = { place: { postgres: await freshDatabase(database) }, encryptionKey: randomBytes(32) };
  const instances: Awaited<ReturnType<typeof openFlow>>[] = [];
  for (const log of ["a", "b", "c"]) instances.push(await openFlow(t, configuration, {}, { ...shared, log }));
  const [first = assert.fail()] = instances;
  const order = { client: "desk", title: "ten tokens", maxTokens: 10 };
  const job = await createJob(first.ports, order, { reason: "by_operator", as: "operator" });
  assert.ok(job.ok);
  const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
  const form = formOf({ grant_type: "client_credentials", mandate_job: job.value.id });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) => {
      const { ports, people, client } = instances[index % 3] ?? first;
      return answerTokenRequest(ports, { client: client("desk"), form, request }, AT_TOKEN, people);
    }),
  );
  assert.equal(answers.filter(({ ok }) => ok).length, 10);
  const reasons = new Set(answers.flatMap((answer) => (answer.ok ? [] : [answer.error.failure.reason])));
  assert.deepEqual([...reasons], ["job_exhausted"]);
  assert.equal((await first.ports.jobs.find(job.value.id))?.job.issued, 10);
});

test("JOB-D-27 of stops of one job at the same time at two instances on one database one is recorded", async (t) => {
  const database = await sharePostgres();
  t.after(() => database.stop());
  const configuration = {
    clients: { desk: { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] } },
  };
  const shared = { place: { postgres: await freshDatabase(database) }, encryptionKey: randomBytes(32) };
  const instances = [
    await openFlow(t, configuration, {}, { ...shared, log: "a" }),
    await openFlow(t, configuration, {}, { ...shared, log: "b" }),
  ];
  const [first = assert.fail()] = instances;
  for (let round = 0; round < 2; round++) {
    const order = { client: "desk", title: `round ${round}` };
    const job = await createJob(first.ports, order, { reason: "by_operator", as: "operator" });
    assert.ok(job.ok);
    const { value } = job;
    const stops = await Promise.all(
      [0, 1, 0, 1].map((index) => {
        const { ports } = instances[index] ?? first;
        return stopJob(ports, { job: value }, { reason: "by_operator" });
      }),
    );
    assert.equal(stops.filter((stopped) => stopped !== undefined).length, 1, `round ${round}`);
  }
  const logs = await Promise.all(instances.map(({ events }) => events()));
  assert.equal(logs.flat().filter(({ type }) => type === "job.ended").length, 2);
});
