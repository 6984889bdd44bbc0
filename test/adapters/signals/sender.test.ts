/** The sender of security events over a store in memory and a receiver on loopback: what is told of many tokens, late ones, and a full stream. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import * as v from "valibot";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { random } from "../../../src/adapters/crypto/random.ts";
import { type SenderOptions, startSender } from "../../../src/adapters/signals/sender.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import {
  SIGNAL_SECOND_LOOK_MS,
  SIGNAL_TEST_SECONDS,
  SIGNAL_TESTS_MISSED,
  SIGNAL_TOKENS_MAX,
  SIGNALS_MADE_MAX,
  SIGNALS_WAITING_MAX,
} from "../../../src/limits/signals.ts";
import { ENDING_STRETCH_MAX, STORE_SWEEP_MAX } from "../../../src/limits/store.ts";
import type { EndingSelector } from "../../../src/policy/endings.ts";
import type { Target } from "../../../src/policy/rules.ts";
import { ResourceServer } from "../../../src/policy/targets.ts";
import type { TokenRecord } from "../../../src/records.ts";
import type { StreamSettings } from "../../../src/settings/settings.ts";
import { SESSION_REVOKED } from "../../../src/spec/ssf.ts";
import { openSigner } from "../../support/signer.ts";
import { ISSUER, makeTrail, TRAIL_KEY } from "../../support/trail.ts";
import { until } from "../../support/until.ts";
import { startWebServer } from "../../support/web.ts";
import { claimsOf } from "../../support/world.ts";
import { endingOf } from "../store/endings.contract.ts";
import { adding, makeJob } from "../store/jobs.contract.ts";
import { makeToken } from "../store/store.contract.ts";

/** A text that the receiver takes for nothing. */
const FILLER = "filler";
const WAITING_MAX = 100;
const API = "https://api.example";
const EVENT = { type: "token.revoked", outcome: "allow", reason: "by_operator" } as const;

type Started = Awaited<ReturnType<typeof start>>;

/** The sender ends before its store is closed. */
const sending =
  (work: (started: Started) => Promise<void>, waitingMax = SIGNALS_WAITING_MAX) =>
  async (t: TestContext): Promise<void> => {
    const started = await start(t, waitingMax);
    await work(started).finally(started.stop);
  };

async function start(t: TestContext, waitingMax: number) {
  const trail = await makeTrail(t);
  const { store, clock, timers } = trail;
  const journal = await trail.journal("own");
  const got: { sub_id: Record<string, string>; events: object }[] = [];
  const receives: { status: number; headers?: Record<string, string> } = { status: 202 };
  const pushed: string[] = [];
  let signed = 0;
  let signedAtFirst: number | undefined;
  const receiver = await startWebServer(async (request) => {
    const set = await request.text();
    if (set !== FILLER && SESSION_REVOKED in (claimsOf(set).events as object)) pushed.push(set);
    if (receives.status === 202 && set !== FILLER) got.push(claimsOf(set) as never);
    signedAtFirst ??= signed;
    return receives.status === 400
      ? Response.json({ err: "invalid_audience" }, { status: 400 })
      : new Response(null, receives);
  });
  const stream: StreamSettings = {
    ...{ name: "api", audience: API, targets: new Set([API]), afterSeconds: 30, alg: "ES256" },
    endpoint: {
      url: `${receiver.origin}/events`,
      ca: receiver.ca,
      privateNetworks: ["127.0.0.0/8", "::1/128"],
    },
  };
  const streams = new Map([["api", stream]]);
  const targets = new Map<string, Target>();
  const recorded: AuditEvent[] = [];
  const signer = await openSigner(store, TRAIL_KEY, ["ES256"], clock, "signal");
  const again = () => startSender(options);
  const options: SenderOptions = {
    ...{ store, clock, timers, journal, hash },
    signer: {
      current: (alg) => signer.current(alg),
      sign: (...what) => {
        signed++;
        return signer.sign(...what);
      },
    },
    settings: () => ({ issuer: ISSUER, streams, policy: { targets } }),
    record: (event) => void recorded.push(event),
    onFault: assert.fail,
    waitingMax,
    random,
  };
  const sender = again();
  const token = (values: Partial<TokenRecord> = {}): TokenRecord => {
    const seconds = clock.nowSeconds();
    const times = { issuedAtSeconds: seconds, expiresAtSeconds: seconds + 3_000 };
    return makeToken({ audience: API, ...times, ...values });
  };
  return {
    ...{ trail, store, clock, journal, sender, again, recorded, token, stream, streams, targets, pushed },
    /** Those about endings. */
    got: () => got.filter(({ sub_id: { format } }) => format !== "opaque"),
    signed: () => signed,
    /** How many were signed when the first was delivered. */
    signedAtFirst: () => signedAtFirst ?? Number.NaN,
    tests: () => got.filter(({ sub_id: { format } }) => format === "opaque").length,
    receives,
    stop: async () => {
      await sender.close();
      await receiver.stop();
    },
    write: async (tokens: readonly TokenRecord[]) => {
      for (const one of await Promise.all(tokens.map((token) => journal.record({ event: EVENT, token }))))
        assert.ok(one.ok);
    },
    end: async (selector: EndingSelector) => {
      const ending = endingOf(selector, clock.nowMs());
      assert.ok((await journal.record({ event: EVENT, ending })).ok);
    },
  };
}

const JOB = "job_0123456789abcdefghijkl";
const TARGET = { ...v.parse(ResourceServer, { names: [API], scopes: ["a"] }), details: new Map() };

for (const [how, shown] of Object.entries({
  shown: () => [{ format: "complex", session: { format: "opaque", id: JOB } }],
  pairwise: () => [
    {
      format: "complex",
      session: { format: "opaque", id: `job_${hash.sha256(JSON.stringify(["salt", API])).slice(0, 22)}` },
    },
  ],
  hidden: (jtis: readonly string[]) => jtis.map((jti) => ({ format: "jwt_id", iss: ISSUER, jti })),
})) {
  test(
    `JOB-D-19 a job that ended is told to a target to which jobs are ${how} as it knows them, and never by its subject`,
    sending(async ({ token, write, end, sender, got, targets, journal, clock }) => {
      targets.set(API, { ...TARGET, job: how as "shown" });
      const job = makeJob({ id: JOB, createdAtSeconds: clock.nowSeconds() });
      assert.ok((await journal.record({ event: EVENT, ...adding(job) })).ok);
      const of = { jobId: JOB, endingKeys: job.endingKeys };
      const tokens = Array.from({ length: SIGNAL_TOKENS_MAX + 1 }, () => token(of));
      await write([...tokens, token({ jobId: "job_of-the-same-subject" })]);
      await end({ by: "job", iss: ISSUER, id: JOB });
      await sender.run();
      const want = shown(tokens.map(({ jti }) => jti));
      await until(() => got().length >= want.length, "the end of the job is told");
      const told = got().map(({ sub_id }) => sub_id);
      const byJti = (one: object): string => ("jti" in one ? String(one.jti) : "");
      assert.deepEqual(
        told.toSorted((a, b) => byJti(a).localeCompare(byJti(b))),
        want.toSorted((a, b) => byJti(a).localeCompare(byJti(b))),
      );
    }),
  );
}

test(
  "SSF-D-3 up to 200 tokens are told one by one, and of more their subjects, each once",
  sending(async ({ token, write, end, sender, got }) => {
    const of = (count: number, ruleId: string) =>
      Array.from({ length: count }, (_, at) => token({ ruleId, subject: `user-${at % 3}` }));
    await write([...of(SIGNAL_TOKENS_MAX, "few"), ...of(SIGNAL_TOKENS_MAX + 1, "many")]);
    await end({ by: "rule", id: "few" });
    await sender.run();
    await until(() => got().length === SIGNAL_TOKENS_MAX, "each of the few tokens is told");
    assert.deepEqual(new Set(got().map(({ sub_id: { format } }) => format)), new Set(["jwt_id"]));
    await end({ by: "rule", id: "many" });
    await sender.run();
    await until(() => got().length === SIGNAL_TOKENS_MAX + 3, "the subjects are told");
    assert.deepEqual(
      got()
        .slice(SIGNAL_TOKENS_MAX)
        .map(({ sub_id }) => sub_id)
        .toSorted((a, b) => ((a.sub ?? "") < (b.sub ?? "") ? -1 : 1)),
      ["user-0", "user-1", "user-2"].map((sub) => ({ format: "iss_sub", iss: ISSUER, sub })),
    );
  }),
);

test(
  "SSF-D-1 a token that was written beside the ending is told of by the second look",
  sending(async ({ token, write, end, sender, got, clock }) => {
    await end({ by: "rule", id: "raced" });
    await sender.run();
    const late = token({ ruleId: "raced" });
    await write([late]);
    await sender.run();
    assert.equal(got().length, 0);
    clock.pass(SIGNAL_SECOND_LOOK_MS);
    await sender.run();
    await until(() => got().length === 1, "the late token is told");
    assert.equal(got()[0]?.sub_id.jti, late.jti);
  }),
);

test(
  "CAEP-3.1-1 an event tells the second of the ending, however much later it is made",
  sending(async ({ token, write, end, sender, got, clock }) => {
    await write([token({ ruleId: "told-late" })]);
    clock.pass(700);
    await end({ by: "rule", id: "told-late" });
    const endedSeconds = clock.nowSeconds();
    clock.pass(9_000);
    await sender.run();
    await until(() => got().length === 1, "the event is told");
    const [payload] = Object.values(got()[0]?.events ?? {});
    assert.equal(payload.event_timestamp, endedSeconds);
  }),
);

test(
  "SSF-D-2 an event that is there already is not signed again by a later look",
  sending(async ({ token, write, end, sender, signed, clock }) => {
    await write([token({ ruleId: "seen" }), token({ ruleId: "seen" })]);
    await end({ by: "rule", id: "seen" });
    await sender.run();
    assert.equal(signed(), 2);
    clock.pass(SIGNAL_SECOND_LOOK_MS);
    await write([token({ ruleId: "seen", issuedAtSeconds: clock.nowSeconds() - 60 })]);
    await sender.run();
    assert.equal(signed(), 3);
  }),
);

test(
  "SSF-D-1 the first events of an ending of many subjects are delivered while the others are signed",
  sending(async ({ token, write, end, sender, signedAtFirst, got }) => {
    const count = 8 * SIGNALS_MADE_MAX;
    await write(Array.from({ length: count }, (_, at) => token({ ruleId: "wide", subject: `user-${at}` })));
    await end({ by: "rule", id: "wide" });
    await sender.run();
    await until(() => got().length > 0, "the first event");
    const early = signedAtFirst();
    assert.ok(early < count, `${early} of ${count} were signed before one was delivered`);
    await until(() => got().length === count, "every subject is told");
  }),
);

test(
  "SSF-D-1 a process that stops while events are signed waits for no more of them, and the next one tells all",
  sending(async ({ token, write, end, sender, again, signed, got }) => {
    const count = 8 * SIGNALS_MADE_MAX;
    await write(Array.from({ length: count }, (_, at) => token({ ruleId: "wide", subject: `user-${at}` })));
    await end({ by: "rule", id: "wide" });
    const run = sender.run();
    await until(() => signed() > 0, "the first is signed");
    await sender.close();
    await run;
    assert.ok(signed() < count, `${signed()} of ${count}`);
    const next = again();
    await next.run();
    await until(() => got().length === count, "every subject is told");
    await next.close();
  }),
);

test(
  "SSF-D-11 a stream has been told of an ending once nothing that is as old waits for it",
  sending(async ({ token, write, end, sender, clock, receives, got }) => {
    const state = () => sender.states().get("api") ?? assert.fail();
    const [first, second] = [token(), token()];
    await write([first, second]);
    receives.status = 503;
    await end({ by: "token", jti: first.jti });
    await sender.run();
    await until(() => state().waiting === 1, "it waits");
    clock.pass(70_000);
    await end({ by: "token", jti: second.jti });
    await sender.run();
    await until(() => state().waiting === 2, "both wait");
    assert.ok(state().oldestSeconds >= 70, `${state().oldestSeconds}`);
    receives.status = 202;
    await until(async () => {
      clock.pass(70_000);
      await sender.run();
      return state().waiting === 0;
    }, "none waits");
    assert.deepEqual([state().oldestSeconds, got().length], [0, 2]);
  }),
);

test(
  "SSF-D-3 of more endings than are looked for one by one, each is told of its own tokens alone",
  sending(async ({ token, write, end, sender, got }) => {
    const rules = Array.from({ length: 12 }, (_, at) => `rule-${at}`);
    const tokens = [...rules, "living"].map((ruleId) => token({ ruleId }));
    await write(tokens);
    for (const id of rules) await end({ by: "rule", id });
    await sender.run();
    await until(() => got().length === rules.length, "each ending is told");
    assert.deepEqual(
      new Set(got().map(({ sub_id }) => sub_id.jti)),
      new Set(tokens.slice(0, rules.length).map(({ jti }) => jti)),
    );
  }),
);

test(
  "SSF-D-7 a stream with too many events gets no more, and is told of all when it has taken half of them",
  sending(async ({ store, token, write, end, sender, got, clock, recorded, receives }) => {
    receives.status = 503;
    const filler = (at: number) => ({
      ...{ stream: "api", jti: `filler-${at}`, body: FILLER, eventId: "e", atMs: clock.nowMs() },
      expiresAtSeconds: clock.nowSeconds() + 3_000,
    });
    await store.signals.add(Array.from({ length: WAITING_MAX }, (_, at) => filler(at)));
    await sender.run();
    const told = token({ ruleId: "late" });
    await write([told]);
    await end({ by: "rule", id: "late" });
    await sender.run();
    await sender.run();
    assert.equal(recorded.filter(({ type }) => type === "signal.delayed").length, 1);
    for (let at = 0; at <= WAITING_MAX / 2; at++)
      await store.signals.settle({ stream: "api", jti: `filler-${at}` }, clock.nowMs());
    receives.status = 202;
    for (let at = WAITING_MAX / 2 + 1; at < WAITING_MAX; at++)
      await store.signals.settle({ stream: "api", jti: `filler-${at}` }, clock.nowMs());
    await until(async () => {
      clock.pass(60_000);
      await sender.run();
      return got().length === 1;
    }, "what was left out is told");
    assert.equal(got()[0]?.sub_id.jti, told.jti);
  }, WAITING_MAX),
);

test(
  "SSF-D-7 no more events wait than the bound, however many subjects one ending reaches, and all are told in the end",
  sending(async ({ store, token, write, end, sender, got, clock, recorded, receives }) => {
    receives.status = 503;
    const subjects = Array.from({ length: SIGNAL_TOKENS_MAX + 50 }, (_, at) => `user-${at}`);
    await write(subjects.map((subject) => token({ ruleId: "wide", subject })));
    await sender.run();
    await end({ by: "rule", id: "wide" });
    await sender.run();
    const { count } = await store.signals.waiting("api", 10 * WAITING_MAX);
    assert.equal(count, WAITING_MAX);
    assert.equal(recorded.filter(({ type }) => type === "signal.delayed").length, 1);
    receives.status = 202;
    clock.pass(60_000);
    const told = () => new Set(got().map(({ sub_id: { sub } }) => sub));
    await until(async () => {
      await sender.run();
      return told().size === subjects.length;
    }, "every subject is told");
    assert.equal(got().length, subjects.length);
  }, WAITING_MAX),
);

const waits = { number: ["120", 120], date: ["", 120], "number beyond the limit": ["86400", 300] } as const;
for (const [name, [field, seconds]] of Object.entries(waits)) {
  test(
    `SSF-D-5 a receiver that asks by Retry-After with a ${name} is sent nothing before ${seconds} seconds`,
    sending(async ({ store, token, write, end, sender, clock, receives, pushed }) => {
      const date = () => new Date(1000 * (clock.nowSeconds() + 120)).toUTCString();
      Object.assign(receives, { status: 503, headers: { "retry-after": field || date() } });
      await write([token({ ruleId: "later" })]);
      await end({ by: "rule", id: "later" });
      await sender.run();
      await until(() => pushed.length === 1, "it is pushed");
      await sender.close();
      const dueIn = (later: number) => {
        const atMs = clock.nowMs() + 1000 * later;
        return store.signals.take("api", atMs, atMs, 1);
      };
      assert.deepEqual(await dueIn(seconds - 5), []);
      assert.equal((await dueIn(seconds + 2)).length, 1);
    }),
  );
}

test(
  "SSF-D-1 a stream that a reload adds or changes is told of what ended before, of what it was not told yet",
  sending(async ({ token, write, end, sender, got, stream, streams }) => {
    streams.clear();
    const before = token({ ruleId: "before" });
    await write([before]);
    await end({ by: "rule", id: "before" });
    await sender.run();
    streams.set("api", { ...stream, targets: new Set(["https://other.example"]) });
    await sender.run();
    await sender.run();
    assert.equal(got().length, 0);
    streams.set("api", { ...stream });
    await sender.run();
    await sender.run();
    await until(() => got().length === 1, "what ended before is told");
    assert.equal(got()[0]?.sub_id.jti, before.jti);
  }),
);

test(
  "JOB-D-20 an event of a job's end that its receiver refuses for good has told it nothing",
  sending(async ({ store, token, write, end, sender, pushed, recorded, receives, clock, journal }) => {
    const job = makeJob({ id: JOB, createdAtSeconds: clock.nowSeconds() });
    assert.ok((await journal.record({ event: EVENT, ...adding(job) })).ok);
    await write([token({ jobId: JOB, endingKeys: job.endingKeys })]);
    receives.status = 400;
    await end({ by: "job", iss: ISSUER, id: JOB });
    await sender.run();
    await until(() => recorded.some(({ type }) => type === "signal.refused"), "the refusal is recorded");
    const ended = (await store.jobs.find(JOB))?.ended ?? assert.fail();
    const at = { nowSeconds: clock.nowSeconds(), codeIssuer: ISSUER, ended };
    assert.deepEqual((await store.jobs.remains(JOB, at)).events, new Map([["api", 1]]));
    await sender.run();
    assert.equal(pushed.length, 1);
  }),
);

test(
  "JOB-D-20 of two jobs that end in the same millisecond, neither report counts the events of the other",
  sending(async ({ store, token, write, sender, clock, journal, receives, pushed, streams, stream }) => {
    const other = "job_0123456789abcdefghijkm";
    streams.set("other", { ...stream, name: "other" });
    const jobs = [JOB, other].map((id) => makeJob({ id, createdAtSeconds: clock.nowSeconds() }));
    for (const add of jobs) assert.ok((await journal.record({ event: EVENT, ...adding(add) })).ok);
    await write(jobs.map(({ id, endingKeys }) => token({ jobId: id, endingKeys })));
    receives.status = 503;
    const atMs = clock.nowMs();
    for (const { id } of jobs) {
      const ending = endingOf({ by: "job", iss: ISSUER, id }, atMs);
      assert.ok((await journal.record({ event: EVENT, ending })).ok);
    }
    const [one, two] = await Promise.all(jobs.map(async ({ id }) => (await store.jobs.find(id))?.ended));
    assert.ok(one && two);
    assert.deepEqual([one.atMs, two.atMs, one.eventId === two.eventId], [atMs, atMs, false]);
    await sender.run();
    await until(() => pushed.length > 0, "the first is tried");
    const nowSeconds = clock.nowSeconds();
    for (const [id, ended] of [
      [JOB, one],
      [other, two],
    ] as const)
      assert.deepEqual(
        (await store.jobs.remains(id, { nowSeconds, codeIssuer: ISSUER, ended })).events,
        new Map([
          ["api", 1],
          ["other", 1],
        ]),
      );
  }),
);

test(
  "SSF-D-2 a stream whose audience was corrected is told again, by its new name",
  sending(async ({ token, write, end, sender, pushed, stream, streams, receives }) => {
    streams.set("api", { ...stream, audience: "https://wrong.example" });
    await write([token({ ruleId: "named" })]);
    receives.status = 400;
    await end({ by: "rule", id: "named" });
    await sender.run();
    await until(() => pushed.length === 1, "the receiver refuses it");
    receives.status = 202;
    streams.set("api", stream);
    await sender.run();
    await sender.run();
    await until(() => pushed.length === 2, "it is told again");
    assert.deepEqual(
      pushed.map((set) => claimsOf(set).aud),
      ["https://wrong.example", API],
    );
  }),
);

test(
  "RFC8935-2.3-1 only 202 says that an event was taken, because a page of a proxy in between is no receiver",
  sending(async ({ token, write, end, sender, clock, receives, pushed }) => {
    receives.status = 200;
    await write([token({ ruleId: "page" })]);
    await end({ by: "rule", id: "page" });
    await until(async () => {
      await sender.run();
      clock.pass(31_000);
      return pushed.length >= 2;
    }, "it comes again");
    assert.equal(new Set(pushed).size, 1);
  }),
);

test(
  "SSF-D-7 events that ended nothing any more leave the store as fast as they come",
  sending(async ({ store, sender, clock, recorded }) => {
    const count = 2 * STORE_SWEEP_MAX + 1;
    const expiresAtSeconds = clock.nowSeconds() + 1;
    const gone = (at: number) => ({
      stream: "gone",
      jti: String(at),
      body: FILLER,
      eventId: "e",
      atMs: 0,
      expiresAtSeconds,
    });
    await store.signals.add(Array.from({ length: count }, (_, at) => gone(at)));
    clock.pass(60_000);
    for (let run = 0; run < 3; run++) await sender.run();
    const expired = recorded.filter(({ type }) => type === "signal.expired");
    assert.equal(
      expired.reduce((sum, event) => sum + Number(event.count), 0),
      count,
    );
  }),
);

test(
  "a process that slept counts no receiver as lost; a receiver that fails is, with the cause",
  sending(async ({ sender, clock, recorded, receives, tests }) => {
    const lost = () => recorded.filter(({ type }) => type === "signal.unreachable");
    await sender.run();
    clock.pass(1000 * SIGNAL_TESTS_MISSED * SIGNAL_TEST_SECONDS);
    await until(async () => {
      await sender.run();
      return tests() === 1;
    }, "a test is taken");
    assert.deepEqual(lost(), []);
    receives.status = 503;
    await until(async () => {
      clock.pass(60_000);
      await sender.run();
      return lost().length > 0;
    }, "it counts as lost");
    assert.deepEqual(
      lost().map(({ detail }) => detail),
      [{ stream: "api", cause: "status_503" }],
    );
  }),
);

test(
  "SSF-D-1 requests are served between the pages of tokens that are looked through for an ending",
  sending(async ({ token, write, end, sender }) => {
    await write(Array.from({ length: 3 * ENDING_STRETCH_MAX }, () => token()));
    await sender.run();
    await end({ by: "rule", id: "of no token" });
    let turns = 0;
    const count = (): void => {
      turns++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    await sender.run();
    clearImmediate(counting);
    assert.ok(turns >= 3, `${turns} turns`);
  }),
);
