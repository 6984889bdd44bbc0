/** The contract of both stores: jobs, and the number of tokens that are issued for one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { JOB_KEPT_SECONDS, JOBS_LISTED } from "../../../src/limits/jobs.ts";
import { CODE_KEPT_SECONDS, CODE_SECONDS, DEFERRAL_KEPT_SECONDS } from "../../../src/limits/people.ts";
import { EXPIRED_GRACE_SECONDS } from "../../../src/limits/store.ts";
import { buildEnding } from "../../../src/policy/endings.ts";
import { jobKeys } from "../../../src/policy/jobs.ts";
import type { Guard, JobRecord } from "../../../src/records.ts";
import { defined } from "../../../src/result.ts";
import { rounds } from "../../support/rounds.ts";
import { endingOf } from "./endings.contract.ts";
import { makeFamily } from "./families.contract.ts";
import { CAPS, pending } from "./pending-consents.contract.ts";
import {
  type Harness,
  ISSUER,
  makeConsent,
  makeEvent,
  makeToken,
  NOW_SECONDS,
  Writer,
} from "./store.contract.ts";

const US = "https://as.example";
const CODES = `${US}/code`;
const AGENT = "spiffe://td.example/agent";

/** Its number of tokens is counted if it has a bound. */
export function makeJob(values: Partial<JobRecord> = {}): JobRecord {
  const job = {
    id: "job_1",
    origin: { iss: ISSUER, sub: "alice" },
    clientId: AGENT,
    actor: AGENT,
    title: "book \u0000 a “trip”",
    bounds: { notAfterSeconds: NOW_SECONDS + 3600 },
    approvedBy: "user" as const,
    createdAtSeconds: NOW_SECONDS,
    salt: "salt",
    ...values,
  };
  const issued = job.bounds.maxTokens === undefined ? undefined : 0;
  return defined<JobRecord>({ issued, ...job, endingKeys: jobKeys(hash.sha256, US, job) });
}

const CAPS_OF_JOBS = { ofPairMax: 999, ofActorMax: 999 };
export const adding = (job: JobRecord, most = CAPS_OF_JOBS) => ({ job: { add: job, consents: [], most } });

const counted = (most: number): JobRecord =>
  makeJob({ bounds: { notAfterSeconds: NOW_SECONDS + 3600, maxTokens: most } });
const below = ({ id, bounds: { maxTokens = 0 } }: JobRecord): Guard => ({
  kind: "job_below",
  id,
  most: maxTokens,
});

export function testJobs({ name, create, shared }: Harness): void {
  test(`JOB-D-1 a job is found as it was approved, with all that ends it (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const job = makeJob({
      bounds: {
        notAfterSeconds: NOW_SECONDS + 60,
        targets: ["https://api.example"],
        scopes: ["a"],
        maxDepth: 2,
      },
      asked: "asked",
    });
    assert.equal(await store.jobs.find(job.id), undefined);
    assert.deepEqual(await writer.write(adding(job)), []);
    assert.deepEqual(await store.jobs.find(job.id), { job });
    assert.equal(await store.jobs.find("job_2"), undefined);
    assert.equal(await store.jobs.find("job_\u0000"), undefined);
    assert.deepEqual(await store.jobs.made("asked", NOW_SECONDS + 59), { job });
    assert.equal(await store.jobs.made("asked", NOW_SECONDS + 60), undefined);
    assert.equal(await store.jobs.made("other", NOW_SECONDS), undefined);
  });

  const endings = {
    "of the job": { by: "job", iss: US, id: "job_1" },
    "of its user": { by: "subject", iss: ISSUER, sub: "alice" },
    "of its client": { by: "client", clientId: AGENT },
    "of everything, as after a restore": { by: "everything" },
  } as const;
  for (const [which, selector] of Object.entries(endings)) {
    test(`JOB-D-12 an ending ${which} is found with the job (${name})`, async (t) => {
      const store = await (await create(t)).open();
      const writer = new Writer(store);
      await writer.write(adding(makeJob()));
      await writer.write(
        adding(makeJob({ id: "job_2", origin: { iss: ISSUER, sub: "bob" }, clientId: "c", actor: "c" })),
      );
      await writer.write({ ending: buildEnding(hash.sha256, selector, NOW_SECONDS * 1000) });
      assert.equal((await store.jobs.find("job_1"))?.ended?.atMs, NOW_SECONDS * 1000);
      assert.equal((await store.jobs.find("job_2"))?.ended === undefined, selector.by !== "everything");
    });
  }

  test(`JOB-D-12 the ending of another server's job of the same id ends none of ours (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    await writer.write(adding(makeJob()));
    const theirs = { by: "job", iss: "https://partner.example", id: "job_1" } as const;
    await writer.write({ ending: buildEnding(hash.sha256, theirs, NOW_SECONDS * 1000) });
    assert.equal((await store.jobs.find("job_1"))?.ended, undefined);
  });

  test(`JOB-D-8 a token comes with the job of ours that it is of, and with none of another server (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const job = counted(5);
    const { issued: _, endingKeys: __, ...unchanged } = job;
    await writer.write(adding(job));
    const first = await writer.token({ jobId: job.id });
    const next = await writer.token({ jobId: job.id, ancestors: [first] });
    const jobOf = async (jti: string) => (await store.facts.token(jti))?.job;
    assert.deepEqual([await jobOf(first), await jobOf(next)], [unchanged, unchanged]);
    const theirs = { jobIssuer: "https://partner.example", jobEndsAtSeconds: NOW_SECONDS + 60 };
    const others = [{}, { jobId: "job_2" }, { jobId: job.id, ...theirs }];
    for (const values of others) assert.equal(await jobOf(await writer.token(values)), undefined);
    // One that is asked for is found as such, also where another one comes from it.
    const { key, cutOffMs } = endingOf({ by: "token", jti: first });
    const { tokens } = await store.endings.next({ key, cutOffMs, nowSeconds: NOW_SECONDS });
    assert.deepEqual(Object.fromEntries(tokens.map((facts) => [facts.record.jti, facts.job])), {
      [first]: unchanged,
      [next]: unchanged,
    });
  });

  test(`the rows of a token, a family and a consent say which job they are of (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const jobId = "job_1";
    const theirs = { jobId, jobIssuer: "https://partner.example", jobEndsAtSeconds: NOW_SECONDS + 60 };
    const { jobIssuer } = theirs;
    const consent = await writer.consent(makeConsent({ jobId, jobIssuer }));
    const jti = await writer.token({ consentId: consent.id, ...theirs });
    await writer.write({ family: { start: makeFamily({ jobId }), digest: "d" } });
    const facts = (await store.facts.token(jti)) ?? assert.fail();
    assert.equal(facts.record.jobId, jobId);
    assert.equal(facts.record.jobIssuer, theirs.jobIssuer);
    assert.equal(facts.record.jobEndsAtSeconds, theirs.jobEndsAtSeconds);
    assert.deepEqual([facts.consents[0]?.jobId, facts.consents[0]?.jobIssuer], [jobId, jobIssuer]);
    assert.equal((await store.families.find("d"))?.family.jobId, jobId);
    assert.equal((await store.facts.consents(consent.origin, consent.actor, NOW_SECONDS))[0]?.jobId, jobId);
  });

  test(`JOB-D-11 no more tokens are issued for a job than it may have, and refused ones do not count (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const job = counted(2);
    await writer.write(adding(job));
    const issue = () => writer.write({ token: makeToken({ jobId: job.id }), guards: [below(job)] });
    assert.deepEqual(await issue(), []);
    const spent: Guard = { kind: "jti_fresh", issuer: "i", jti: "j", expiresAtSeconds: NOW_SECONDS + 60 };
    await writer.write({ guards: [spent] });
    assert.deepEqual(await writer.write({ guards: [spent, below(job)] }), ["jti_fresh"]);
    assert.deepEqual(await issue(), []);
    assert.deepEqual(await issue(), ["job_below"]);
    assert.deepEqual(await issue(), ["job_below"]);
    assert.equal((await store.jobs.find(job.id))?.job.issued, 2);
  });

  test(`JOB-D-11 the tokens of one batch are summed, each with its own verdict (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const [one, other] = [counted(2), { ...counted(5), id: "job_2" }];
    const writer = new Writer(store);
    await writer.write(adding(one));
    await writer.write(adding(other));
    const of = [one, other, one, other, one];
    const batch = of.map((job, index) => ({ event: makeEvent("as-2", index), guards: [below(job)] }));
    assert.deepEqual(await store.log.append(batch), [{ entry: 4, guard: "job_below" }]);
    assert.equal((await store.jobs.find(one.id))?.job.issued, 0);
    assert.deepEqual(await store.log.append(batch.slice(0, 4)), []);
    assert.equal((await store.jobs.find(one.id))?.job.issued, 2);
    assert.equal((await store.jobs.find(other.id))?.job.issued, 2);
  });

  test(`JOB-D-11 a job without this bound has no count (${name})`, async (t) => {
    const store = await (await create(t)).open();
    await new Writer(store).write(adding(makeJob()));
    assert.equal((await store.jobs.find("job_1"))?.job.issued, undefined);
  });

  if (shared)
    test(`JOB-D-11 a counter of one under races over three instances gives one token each (${name})`, async (t) => {
      const opened = await create(t);
      const stores = await Promise.all([opened.open(), opened.open(), opened.open()]);
      const [first = assert.fail()] = stores;
      const setUp = new Writer(first);
      const writers = stores.map((store, index) => new Writer(store, `racer-${index}`));
      for (let round = 0; round < rounds(12); round++) {
        const job = { ...counted(1), id: `job_${round}`, actor: `agent-${round}` };
        await setUp.write(adding(job));
        const failed = await Promise.all(
          writers.map((writer) =>
            writer.write({ token: makeToken({ jobId: job.id }), guards: [below(job)] }),
          ),
        );
        assert.equal(failed.filter((guards) => guards.length === 0).length, 1, `round ${round}`);
        assert.equal((await first.jobs.find(job.id))?.job.issued, 1);
      }
    });

  test(`JOB-D-20 what there is of a job is its tokens by target, and what was given for it, of no other job and no other ending (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const [jobId, nowSeconds] = ["job_1", NOW_SECONDS];
    const until = (seconds: number) => ({ expiresAtSeconds: NOW_SECONDS + seconds });
    const [a, b] = [
      await writer.token({ jobId, audience: "a", issuedAtSeconds: NOW_SECONDS - 2, ...until(60) }),
      await writer.token({ jobId, audience: "b", issuedAtSeconds: NOW_SECONDS - 1, ...until(30) }),
    ];
    const last = await writer.token({ jobId, audience: "a", issuedAtSeconds: NOW_SECONDS, ...until(90) });
    await writer.token({ jobId, audience: "a", ...until(0) });
    await writer.token({ jobId, audience: "c", ...until(1 - EXPIRED_GRACE_SECONDS) });
    await writer.token({ jobId, audience: "d", ...until(-EXPIRED_GRACE_SECONDS) });
    await writer.token({ audience: "a", ...until(60) });
    await writer.token({ jobId: "job_2", audience: "a", ...until(60) });
    // Another server's job of the same id is another one.
    await writer.token({ jobId, jobIssuer: "https://partner.example", audience: "c", ...until(60) });
    const ended = { eventId: "of the job", atMs: NOW_SECONDS * 1000 };
    const signal = { ...ended, body: "x", expiresAtSeconds: NOW_SECONDS + 60 };
    for (const [stream, jti] of [
      ["one", "1"],
      ["one", "2"],
      ["two", "3"],
      ["refusing", "4"],
    ] as const)
      await store.signals.add([{ ...signal, stream, jti }]);
    await store.signals.settle({ ...signal, stream: "two", jti: "3" }, NOW_SECONDS);
    // Zero is the time of one that its receiver refused for good.
    await store.signals.settle({ ...signal, stream: "refusing", jti: "4" }, 0);
    assert.deepEqual(await store.signals.take("refusing", NOW_SECONDS * 1000, NOW_SECONDS * 1000, 1), []);
    // Of another ending in the same millisecond, and of one a moment later.
    await store.signals.add([
      { ...signal, eventId: "of another", stream: "two", jti: "5" },
      { ...signal, eventId: "of another", stream: "other", jti: "6" },
      { ...signal, atMs: ended.atMs + 1, stream: "two", jti: "7" },
    ]);
    const remains = await store.jobs.remains(jobId, { nowSeconds, codeIssuer: CODES, ended });
    assert.deepEqual(remains, {
      tokens: [
        { audience: "a", count: 2, recent: 3, untilSeconds: NOW_SECONDS + 90 },
        { audience: "b", count: 1, recent: 1, untilSeconds: NOW_SECONDS + 30 },
        { audience: "c", count: 0, recent: 1, untilSeconds: NOW_SECONDS + 1 - EXPIRED_GRACE_SECONDS },
      ],
      held: { codes: 0, families: 0, consents: 0, questions: 0, deferrals: 0 },
      events: new Map([
        ["one", 2],
        ["two", 0],
        ["refusing", 1],
      ]),
    });
    assert.deepEqual((await store.jobs.remains(jobId, { nowSeconds, codeIssuer: CODES })).events, new Map());
    const listed = await store.jobs.tokens(jobId, NOW_SECONDS, 10);
    assert.deepEqual(
      listed.map(({ jti }) => jti),
      [a, b, last],
    );
    assert.equal((await store.jobs.tokens(jobId, NOW_SECONDS, 2)).length, 2);
    assert.deepEqual(await store.jobs.tokens("job_\u0000", NOW_SECONDS, 2), []);
  });

  test(`JOB-D-20 what is held for a job is what it could still give something for, and once it has ended what could until then (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    const [jobId, nowSeconds] = ["job_1", NOW_SECONDS];
    const until = (seconds: number) => ({ expiresAtSeconds: NOW_SECONDS + seconds });
    for (const given of [
      { jobId, jobIssuer: "https://partner.example" },
      { jobId },
      { jobId, ...until(1) },
      { jobId, ...until(0) },
      {},
      { jobId: "job_2" },
    ])
      await writer.consent(makeConsent(given));
    await writer.withdraw((await writer.consent(makeConsent({ jobId }))).id);
    const job = makeJob({ id: jobId });
    const families = [
      makeFamily({ id: "lives" }),
      makeFamily({ id: "ended" }),
      makeFamily({ id: "idle", idleEndsAtSeconds: NOW_SECONDS }),
      makeFamily({ id: "over", endsAtSeconds: NOW_SECONDS }),
    ].map((family) => ({ ...family, jobId, endingKeys: [...job.endingKeys, ...family.endingKeys] }));
    for (const start of [...families, makeFamily({ id: "of none" })])
      await writer.write({ family: { start, digest: start.id } });
    const ends = (selector: Parameters<typeof buildEnding>[1], atMs: number) =>
      writer.write({ ending: buildEnding(hash.sha256, selector, atMs) });
    await ends({ by: "grant", id: "ended" }, NOW_SECONDS * 1000 - 1);
    const row = (kind: "code" | "deferral", key: string, of: object, kept: number) =>
      store.shortLived.add({ kind, key, version: 1, body: { jobId }, ...until(kept), ...of });
    const unused = CODE_KEPT_SECONDS - CODE_SECONDS;
    await row("code", "lives", { jobId }, unused + 1);
    await row("code", "over", { jobId }, unused);
    await row("code", "used", { jobId }, unused + 60);
    await row("code", "of none", {}, unused + 60);
    const used: Guard = { kind: "code_fresh", issuer: CODES, jti: "used", ...until(60) };
    assert.deepEqual(await writer.write({ guards: [used] }), []);
    await row("deferral", "waits", { jobId }, DEFERRAL_KEPT_SECONDS + 1);
    await row("deferral", "over", { jobId }, DEFERRAL_KEPT_SECONDS);
    const within = { id: jobId, bounds: { notAfterSeconds: NOW_SECONDS + 60 } };
    const question = async (id: string, extra: object = {}, asking: object = { job: within }) => {
      const asked = pending(id, extra);
      const { ask } = asked;
      const open = { ...asked, ask: { ...ask, ...asking } };
      assert.equal((await store.pendingConsents.open(open, CAPS))?.id, id);
      return open;
    };
    const decided = await question("decided");
    assert.ok(await store.pendingConsents.replace({ ...decided, version: 2, decided: true }));
    const closed = await question("closed");
    assert.ok(await store.pendingConsents.replace({ ...closed, version: 2, closed: true }));
    const renewed = await question("renewed");
    assert.ok(await store.pendingConsents.replace({ ...renewed, version: 2, renewals: 1 }));
    await question("open");
    await question("over", until(0));
    await question("of none", {}, {});
    await question("of another server", {}, { job: { ...within, iss: "https://partner.example" } });
    const held = async (at = {}) =>
      (await store.jobs.remains(jobId, { nowSeconds, codeIssuer: CODES, ...at })).held;
    const all = { codes: 1, families: 1, consents: 2, questions: 2, deferrals: 1 };
    assert.deepEqual(await held(), all);
    await writer.write(adding(job));
    await ends({ by: "job", iss: US, id: jobId }, NOW_SECONDS * 1000);
    const { ended } = (await store.jobs.find(jobId)) ?? {};
    assert.ok(ended);
    assert.deepEqual(await held({ ended }), all);
  });

  test(`jobs are listed the newest first, by user and by agent, page by page (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    for (const [index, sub] of ["alice", "bob", "alice", "alice"].entries())
      await writer.write(
        adding(
          makeJob({
            id: `job_${index}`,
            origin: { iss: ISSUER, sub },
            createdAtSeconds: NOW_SECONDS + (index >> 1),
          }),
        ),
      );
    const list = async (page?: Parameters<typeof store.jobs.list>[0]) =>
      (await store.jobs.list(page)).map(({ job }) => job.id);
    assert.deepEqual(await list(), ["job_3", "job_2", "job_1", "job_0"]);
    assert.deepEqual(await list({ origin: { iss: ISSUER, sub: "alice" } }), ["job_3", "job_2", "job_0"]);
    const before = { id: "job_2", createdAtSeconds: NOW_SECONDS + 1 };
    assert.deepEqual(await list({ actor: AGENT, before }), ["job_1", "job_0"]);
    assert.deepEqual(await list({ actor: "spiffe://td.example/other" }), []);
    for (let index = 4; index <= JOBS_LISTED; index++)
      await writer.write(adding(makeJob({ id: `job_${index}` })));
    assert.equal((await list()).length, JOBS_LISTED);
  });

  test(`jobs that live are counted and listed, without those that are over or ended (${name})`, async (t) => {
    const store = await (await create(t)).open();
    const writer = new Writer(store);
    for (const [index, sub] of ["alice", "bob", "alice"].entries())
      await writer.write(adding(makeJob({ id: `job_${index}`, origin: { iss: ISSUER, sub } })));
    const alice = { iss: ISSUER, sub: "alice" };
    const living = (now = NOW_SECONDS) => store.jobs.living(alice, AGENT, now, CAPS_OF_JOBS);
    assert.deepEqual(await living(), { ofPair: 2, ofActor: 3 });
    const ends = { by: "job", iss: US, id: "job_2" } as const;
    await writer.write({ ending: buildEnding(hash.sha256, ends, NOW_SECONDS * 1000) });
    assert.deepEqual(await living(), { ofPair: 1, ofActor: 2 });
    const listed = async (livingAtSeconds: number) =>
      (await store.jobs.list({ origin: alice, livingAtSeconds })).map(({ job }) => job.id);
    assert.deepEqual([await listed(NOW_SECONDS), await listed(NOW_SECONDS + 3600)], [["job_0"], []]);
    assert.deepEqual(await living(NOW_SECONDS + 3600), { ofPair: 0, ofActor: 0 });
  });

  const caps = [
    ["for one user", { ofPairMax: 2, ofActorMax: 9 }, { origin: { iss: ISSUER, sub: "bob" } }],
    ["in all", { ofPairMax: 9, ofActorMax: 2 }, { actor: "spiffe://td.example/other" }],
  ] as const;
  for (const [which, most, beside] of caps) {
    test(`JOB-D-24 no job is added beyond the most that may live of one agent ${which} (${name})`, async (t) => {
      const store = await (await create(t)).open();
      const writer = new Writer(store);
      const add = (id: string, values: Partial<JobRecord> = {}) =>
        writer.write(adding(makeJob({ id, ...values }), most));
      // One that is over, and one that was stopped, take no room.
      const over = { createdAtSeconds: NOW_SECONDS - 9, bounds: { notAfterSeconds: NOW_SECONDS } };
      assert.deepEqual([await add("job_over", over), await add("job_stopped")], [[], []]);
      const stop = { by: "job", iss: US, id: "job_stopped" } as const;
      await writer.write({ ending: buildEnding(hash.sha256, stop, NOW_SECONDS * 1000) });
      assert.deepEqual(
        [await add("job_1"), await add("job_2"), await add("job_3")],
        [[], [], ["jobs_below"]],
      );
      assert.deepEqual(await add("job_4", beside), []);
      assert.equal(await store.jobs.find("job_3"), undefined);
    });
  }

  if (shared)
    test(`JOB-D-24 of jobs that three instances add at the same time no more live than there may be (${name})`, async (t) => {
      const opened = await create(t);
      const stores = await Promise.all([opened.open(), opened.open(), opened.open()]);
      const writers = stores.map((store, index) => new Writer(store, `adder-${index}`));
      for (let round = 0; round < rounds(8); round++) {
        const actor = `agent-${round}`;
        const failed = await Promise.all(
          writers.map((writer, index) =>
            writer.write(
              adding(makeJob({ id: `job_${round}_${index}`, actor }), { ofPairMax: 2, ofActorMax: 2 }),
            ),
          ),
        );
        assert.deepEqual(failed.flat(), ["jobs_below"], `round ${round}`);
      }
    });

  test(`a job is removed once nothing can be told of it any more (${name})`, async (t) => {
    const store = await (await create(t)).open();
    await new Writer(store).write(adding(makeJob()));
    const over = NOW_SECONDS + 3600 + JOB_KEPT_SECONDS;
    assert.equal(await store.jobs.sweep(over, 10), 0);
    assert.equal(await store.jobs.sweep(over + 1, 10), 1);
    assert.equal(await store.jobs.find("job_1"), undefined);
  });
}
