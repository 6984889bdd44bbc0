/** The account page, as a flow, while the operator changes settings under it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { JOBS_LISTED } from "../../../src/limits/jobs.ts";
import { ACCOUNT_CONSENTS, ACCOUNT_EVENTS } from "../../../src/limits/people.ts";
import { makeFormTokens } from "../../../src/people/adapters/form-tokens.ts";
import { type Account, type AccountQuery, openAccount, takeBack } from "../../../src/people/flows/account.ts";
import { stopOwnJob } from "../../../src/people/flows/own-jobs.ts";
import { findSession } from "../../../src/people/flows/session.ts";
import type { PeoplePorts } from "../../../src/people/ports.ts";
import { buildEnding } from "../../../src/policy/endings.ts";
import { adding, makeJob } from "../../adapters/store/jobs.contract.ts";
import { ALICE, LOGIN, openRefresh, type RefreshFlow, withRefresh } from "../../support/refresh.ts";

const DAY = 24 * 3600;
const NOTE = { id: "r-1", endpoint: "/account", source_ip: "192.0.2.1" };

/** A session of Alice, by its key. */
async function signIn({ ports }: RefreshFlow, key: string): Promise<string> {
  const nowSeconds = ports.clock.nowSeconds();
  const body = { origin: ALICE, sub: "company:alice", provider: "company", startedAtSeconds: nowSeconds };
  const row = { kind: "session", key, version: 1, body, expiresAtSeconds: nowSeconds + 900 } as const;
  await ports.shortLived.add(row);
  return key;
}

async function open(ports: PeoplePorts, key: string, query: AccountQuery = {}): Promise<Account> {
  const account = await openAccount(ports, NOTE, key, () => query);
  return account.next === "page" ? account : assert.fail(`${account.next} instead of the page`);
}

/** The ports before the key-encryption key was replaced, and after. */
async function openTwice(t: TestContext) {
  const [one, other] = [randomBytes(32), randomBytes(32)];
  const flow = await openRefresh(t);
  return {
    flow,
    before: { ...flow.ports, formTokens: makeFormTokens([one]) },
    after: { ...flow.ports, formTokens: makeFormTokens([other, one]) },
  };
}

test("PAGE-D-15, REFRESH-D-13 a shorter time is what the account page tells, and what it cut off is not shown", async (t) => {
  const flow = await openRefresh(t);
  const startedAtSeconds = flow.nowSeconds;
  await flow.start();
  flow.pass(DAY);
  const key = await signIn(flow, "one");
  const shown = async () =>
    (await open(flow.ports, key)).consents.map(({ families }) =>
      families.map(({ endsAtSeconds, idleEndsAtSeconds = Number.NaN }) =>
        [endsAtSeconds, idleEndsAtSeconds].map((end) => (end - startedAtSeconds) / DAY),
      ),
    );
  assert.deepEqual(await shown(), [[[30, 7]]]);
  flow.reload(withRefresh({ days: 3, idleDays: 2 }));
  assert.deepEqual(await shown(), [[[3, 2]]]);
  flow.reload(withRefresh({ days: 1 }));
  assert.deepEqual(await shown(), [[]]);
});

test("PAGE-D-5, PAGE-D-16 what was shown before the key-encryption key was replaced is still good: the forms, and the link to older events", async (t) => {
  const { flow, before, after } = await openTwice(t);
  await flow.start();
  const key = await signIn(flow, "one");
  const subject = { ...ALICE, kind: "user", token: { type: "session", fingerprint: key } } as const;
  const event = { type: "user.signed_in", outcome: "allow", reason: "signed_in", subject } as const;
  await Promise.all(Array.from({ length: ACCOUNT_EVENTS }, () => flow.ports.journal.record({ event })));
  const { consents, takeAllToken, older = assert.fail() } = await open(before, key);
  assert.ok((await open(after, key, { cursor: older })).events.length > 0);
  const [{ id, formToken } = assert.fail()] = consents;
  const taken = await takeBack(after, NOTE, key, { formToken, consent: id });
  assert.deepEqual(taken, { next: "place", place: { page: "account" } });
  const all = await takeBack(after, NOTE, key, { formToken: takeAllToken, all: true, confirmed: true });
  assert.deepEqual(all, { next: "place", place: { page: "account" } });
});

test("JOB-D-13, JOB-D-14 a user stops one job of theirs on the account page, or all with everything else, and none of another user", async (t) => {
  const flow = await openRefresh(t);
  let refused = 0;
  Object.assign(flow.ports, { authFailures: { note: () => refused++ } });
  const key = await signIn(flow, "one");
  const createdAtSeconds = flow.ports.clock.nowSeconds();
  const add = async (id: string, origin = ALICE): Promise<void> => {
    const bounds = { notAfterSeconds: createdAtSeconds + 3600 };
    const job = makeJob({ id, origin, createdAtSeconds, bounds });
    const event = { type: "job.approved", outcome: "allow", reason: "by_subject" } as const;
    assert.ok((await flow.ports.journal.record({ event, ...adding(job) })).ok);
  };
  const isEnded = async (id: string) => (await flow.ports.jobs.find(id))?.ended !== undefined;
  const bob = { ...ALICE, sub: "bob" };
  for (const id of ["job_1", "job_2", "job_3"]) await add(id);
  await add("job_bob", bob);
  const { jobs, takeAllToken } = await open(flow.ports, key);
  assert.deepEqual(new Set(jobs.map(({ id }) => id)), new Set(["job_1", "job_2", "job_3"]));
  const [{ id, formToken } = assert.fail()] = jobs;
  const here = { next: "place", place: { page: "account" } };
  // The token of one job stops no other, and no consent.
  for (const form of [{ job: "job_bob" }, { job: "job_4" }, { consent: id }])
    assert.notDeepEqual(await takeBack(flow.ports, NOTE, key, { formToken, ...form }), here);
  assert.deepEqual([refused, await isEnded("job_bob")], [3, false]);
  const alice = (await findSession(flow.ports, key)) ?? assert.fail();
  assert.equal(await stopOwnJob(flow.ports, alice, NOTE, "job_bob"), "job_unknown");
  assert.deepEqual(await takeBack(flow.ports, NOTE, key, { formToken, job: id }), here);
  assert.equal(await isEnded(id), true);
  const left = (await open(flow.ports, key)).jobs.map((job) => job.id);
  assert.deepEqual([left.length, left.includes(id)], [2, false]);
  const all = { formToken: takeAllToken, all: true, confirmed: true } as const;
  assert.deepEqual(await takeBack(flow.ports, NOTE, key, all), here);
  assert.deepEqual(await Promise.all([...left, "job_bob"].map(isEnded)), [true, true, false]);
});

test("JOB-D-13 a job is shown and stopped behind more newer ones than a page of a list has, ended or living", async (t) => {
  const flow = await openRefresh(t);
  const key = await signIn(flow, "one");
  const createdAtSeconds = flow.ports.clock.nowSeconds();
  const add = async (id: string, seconds: number, lasts = 3600): Promise<void> => {
    const bounds = { notAfterSeconds: createdAtSeconds + lasts };
    const job = makeJob({ id, origin: ALICE, createdAtSeconds: createdAtSeconds + seconds, bounds });
    const event = { type: "job.approved", outcome: "allow", reason: "by_subject" } as const;
    assert.ok((await flow.ports.journal.record({ event, ...adding(job) })).ok);
  };
  await add("job_old", -60);
  for (let one = 0; one < JOBS_LISTED; one++) await add(`job_over_${one}`, -1, 0);
  const shown = async () => (await open(flow.ports, key)).jobs.map(({ id }) => id);
  assert.deepEqual(await shown(), ["job_old"]);
  for (let one = 0; one < JOBS_LISTED; one++) await add(`job_${one}`, -1);
  assert.equal((await shown()).length, JOBS_LISTED + 1);
  const { takeAllToken } = await open(flow.ports, key);
  await takeBack(flow.ports, NOTE, key, { formToken: takeAllToken, all: true, confirmed: true });
  assert.deepEqual(await shown(), []);
  assert.ok((await flow.ports.jobs.find("job_old"))?.ended);
});

test("PAGE-D-34 a page of consents is filled past those of jobs, says what follows, and has none of another server's job that ended", async (t) => {
  const flow = await openRefresh(t);
  const { ports } = flow;
  const key = await signIn(flow, "one");
  const event = { type: "consent.recorded", outcome: "allow", reason: "by_operator" } as const;
  const add = async (id: string, more: object = {}): Promise<void> => {
    const consent = { id, version: 1, origin: ALICE, actor: "a", targets: ["t"], scopes: ["s"], ...more };
    assert.ok((await ports.journal.record({ event, consent: { add: consent } })).ok);
  };
  // By their ids, these stand before what is shown, and more of them than a page has.
  for (let one = 0; one < 2 * ACCOUNT_CONSENTS + 1; one++) await add(`a-${100 + one}`, { jobId: "job_1" });
  await add("b-ended", { jobId: "job_2", jobIssuer: LOGIN });
  await add("b-there", { jobId: "job_3", jobIssuer: LOGIN });
  const shown = async (query: AccountQuery = {}) => {
    const { consents, moreAfter } = await open(ports, key, query);
    return [consents.map(({ id }) => id), moreAfter];
  };
  assert.deepEqual(await shown(), [["b-ended", "b-there"], undefined]);
  const ending = buildEnding(ports.hash.sha256, { by: "job", iss: LOGIN, id: "job_2" }, ports.clock.nowMs());
  const revoked = { type: "token.revoked", outcome: "allow", reason: "by_operator" } as const;
  assert.ok((await ports.journal.record({ event: revoked, ending })).ok);
  assert.deepEqual(await shown(), [["b-there"], undefined]);
  const own = Array.from({ length: ACCOUNT_CONSENTS }, (_, one) => `c-${100 + one}`);
  for (const id of own) await add(id);
  const first = ["b-there", ...own.slice(0, -1)];
  assert.deepEqual(await shown(), [first, first.at(-1)]);
  assert.deepEqual(await shown({ afterConsent: first.at(-1) ?? "" }), [own.slice(-1), undefined]);
  // Where nothing but consents of jobs follows, the list begins again.
  await add("d-1", { jobId: "job_1" });
  assert.deepEqual(await shown({ afterConsent: own.at(-1) ?? "" }), [first, first.at(-1)]);
});
