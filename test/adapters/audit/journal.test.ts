import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mock, type TestContext, test } from "node:test";
import { eventHash } from "../../../src/adapters/audit/chain.ts";
import type { LogBehind } from "../../../src/adapters/audit/compare-witness.ts";
import type { JournalEntry } from "../../../src/adapters/audit/journal.ts";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import type { EventLog, Store } from "../../../src/adapters/store/store.ts";
import {
  EMPTY_TURN_MS,
  JOURNAL_BATCH_MAX,
  JOURNAL_COMPANY_MS,
  JOURNAL_PENDING_MAX,
} from "../../../src/limits/store.ts";
import { buildEnding } from "../../../src/policy/endings.ts";
import { StoreUnavailable } from "../../../src/ports.ts";
import type { Guard } from "../../../src/records.ts";
import { assertChain, open, untilRecorded } from "../../support/journal.ts";
import { migratedFile } from "../../support/migrated.ts";
import { EVENT } from "../../support/trail.ts";
import { adding, makeJob } from "../store/jobs.contract.ts";
import { keepSchema } from "../store/postgres/schema.ts";
import { makeInitialToken, makeRegistered } from "../store/registrations.contract.ts";
import { ISSUER, isLive, makeConsent, makeToken, NOW_SECONDS, notEnded } from "../store/store.contract.ts";

const emptied = keepSchema();

const stores: Record<string, (t: TestContext) => Promise<Store>> = {
  SQLite: async (t) => keep(t, openStore({ sqlite: await migratedFile() })),
  PostgreSQL: async () => (await emptied()).store,
};

async function keep(t: TestContext, opening: Promise<Store>): Promise<Store> {
  const store = await opening;
  t.after(() => store.close());
  return store;
}

type Fresh = Extract<Guard, { jti: string }>;

function fresh(jti: string, kind: Fresh["kind"] = "jti_fresh"): Fresh {
  return { kind, issuer: ISSUER, jti, expiresAtSeconds: NOW_SECONDS + 330 };
}

/** One store, and another one in its place as soon as the first is away. */
function swapped(first: EventLog, second: EventLog, isAway: () => boolean): EventLog {
  const now = (): EventLog => (isAway() ? second : first);
  return {
    head: (log) => now().head(log),
    append: (batch) => now().append(batch),
    read: (filter) => now().read(filter),
    logs: () => now().logs(),
  };
}

/** A real store over an unreliable connection: a write without answer arrives at once, or before the next write. */
function unreliable(log: EventLog) {
  let plan: "deliver" | "deliver late" | undefined;
  let late: Parameters<EventLog["append"]>[0] | undefined;
  const line = {
    /** The number of attempted writes. */
    appends: 0,
    /** Runs before each write whose answer is not lost. */
    meanwhile: async () => {},
    loseNext(how: typeof plan) {
      plan = how;
    },
    log: {
      ...log,
      async append(batch) {
        line.appends++;
        const now = plan;
        plan = undefined;
        if (now === "deliver late") late = batch;
        if (now === "deliver") await log.append(batch);
        if (now !== undefined) throw new StoreUnavailable("the answer is lost");
        const older = late;
        late = undefined;
        if (older !== undefined) await log.append(older);
        await line.meanwhile();
        return log.append(batch);
      },
    } satisfies EventLog as EventLog,
  };
  return line;
}

const vectors = [
  [
    '{"prev":"0000000000000000000000000000000000000000000000000000000000000000","seq":0,"time":1790000000,"type":"log.genesis"}',
    "722d8c1444a4b830093c5d854f9d61a7213c96371c43ecab23d9236ea6ced4ca",
  ],
  [
    '{"outcome":"allow","prev":"722d8c1444a4b830093c5d854f9d61a7213c96371c43ecab23d9236ea6ced4ca","seq":1,"time":1790000001,"type":"token_exchange.delegation"}',
    "56deb23184532e27f2a185d9bef6ac5323a934853d8a521ee9b6477037461c87",
  ],
  ["e0", "956ae51bd3e285ccb826298dd523dd08824ce5579749994f2e0021737b9dd4b8"],
] as const;

for (const [body, hash] of vectors) {
  test(`RFC9162-2.1.1-1 a leaf is hashed with the prefix of leaves: ${hash.slice(0, 8)}`, () => {
    assert.equal(eventHash(body), hash);
  });
}

for (const [name, create] of Object.entries(stores)) {
  const check = (title: string, body: (store: Store, t: TestContext) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body(await create(t), t));

  check(
    "RFC9162-2.1.1-1 every event is chained to the previous one, starting with log.genesis",
    async (store) => {
      const journal = await open(store.log);
      const ids = [];
      for (let count = 0; count < 5; count++) ids.push(await untilRecorded(journal, { event: EVENT }));
      const events = await assertChain(store);
      assert.deepEqual(
        events.slice(1).map(({ id }) => id),
        ids,
      );
    },
  );

  check("AUDIT-D-7 text from a request stays inside its own event", async (store) => {
    const journal = await open(store.log);
    const text = '"}\n{"seq":7,"type":"log.genesis"}\r\u2028\u202e\u0000\\';
    await untilRecorded(journal, { event: { ...EVENT, detail: { text } } });
    const events = await assertChain(store);
    assert.equal(events.length, 2);
    assert.equal(JSON.parse(events[1]?.body ?? "").detail.text, text);
  });

  check("AUDIT-D-1 an answered write is durable, and simultaneous writes share a batch", async (store) => {
    const sizes: number[] = [];
    const counted: EventLog = {
      ...store.log,
      append(batch) {
        sizes.push(batch.length);
        return store.log.append(batch);
      },
    };
    const journal = await open(counted);
    const count = 2 * JOURNAL_BATCH_MAX + 10;
    const tokens = Array.from({ length: count }, () => makeToken());
    const outcomes = await Promise.all(
      tokens.map(async (token) => {
        const recorded = await journal.record({ event: EVENT, token, guards: [fresh(token.jti)] });
        return [recorded.ok, isLive(await store.facts.token(token.jti))];
      }),
    );
    assert.ok(outcomes.every(([recorded, live]) => recorded && live));
    assert.deepEqual(sizes, [1, JOURNAL_BATCH_MAX, JOURNAL_BATCH_MAX, 10]);
    assert.equal((await assertChain(store)).length, count + 1);
  });

  check(
    "AUDIT-D-1 a failed guard removes its entry from the batch without a gap and leaves nothing",
    async (store) => {
      const journal = await open(store.log);
      await untilRecorded(journal, { event: EVENT, guards: [fresh("spent")] });
      const gone = makeToken();
      const ending = buildEnding(hash.sha256, { by: "token", jti: gone.jti }, NOW_SECONDS * 1000);
      await untilRecorded(journal, { event: EVENT, ending });
      const tokens = Array.from({ length: 6 }, () => makeToken());
      const guards: Guard[][] = [[fresh("a")], [], [fresh("spent")], [], [], [fresh("b")]];
      guards[4] = [fresh("spent"), notEnded(gone)];
      const outcomes = await Promise.all(
        tokens.map((token, index) => journal.record({ event: EVENT, token, guards: guards[index] ?? [] })),
      );
      const failures = outcomes.map((outcome) => (outcome.ok ? [] : outcome.error));
      assert.deepEqual(failures, [[], [], ["jti_fresh"], [], ["jti_fresh", "not_ended"], []]);
      const rows = await Promise.all(tokens.map(({ jti }) => store.facts.token(jti)));
      assert.deepEqual(
        rows.map((row) => row !== undefined),
        [true, true, false, true, false, true],
      );
      const events = await assertChain(store);
      const ids = outcomes.flatMap((outcome) => (outcome.ok ? [outcome.value.eventId] : []));
      assert.deepEqual(
        events.slice(3).map(({ id }) => id),
        ids,
      );
    },
  );

  check(
    "JOB-D-11 a token that is refused for another reason takes no place in the count of its job",
    async (store) => {
      const journal = await open(store.log);
      await untilRecorded(journal, { event: EVENT, guards: [fresh("spent")] });
      const job = makeJob({ bounds: { notAfterSeconds: NOW_SECONDS + 60, maxTokens: 2 } });
      await untilRecorded(journal, { event: EVENT, ...adding(job) });
      const below: Guard = { kind: "job_below", id: job.id, most: 2 };
      const guards: readonly Guard[][] = [[below], [below, fresh("spent")], [below], [below]];
      const outcomes = await Promise.all(
        guards.map((some) => journal.record({ event: EVENT, guards: some })),
      );
      const failures = outcomes.map((outcome) => (outcome.ok ? [] : outcome.error));
      assert.deepEqual(failures, [[], ["jti_fresh"], [], ["job_below"]]);
      assert.equal((await store.jobs.find(job.id))?.job.issued, 2);
    },
  );

  check("RFC7523-3-14 of many simultaneous requests with one jti, one is recorded", async (store) => {
    const journal = await open(store.log);
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () =>
        journal.record({ event: EVENT, guards: [fresh("a"), fresh(randomUUID())] }),
      ),
    );
    assert.equal(outcomes.filter(({ ok }) => ok).length, 1);
    assert.ok(outcomes[0]?.ok);
    assert.equal((await assertChain(store)).length, 2);
  });

  check("RFC7523-3-14 one request cannot use one jti twice", async (store) => {
    const journal = await open(store.log);
    const twice = await journal.record({ event: EVENT, guards: [fresh("a"), fresh("a")] });
    assert.deepEqual(twice, { ok: false, error: ["jti_fresh"] });
    assert.ok((await journal.record({ event: EVENT, guards: [fresh("a"), fresh("b")] })).ok);
    assert.equal((await assertChain(store)).length, 2);
  });

  const twice = [
    ["as a grant", [fresh("a", "grant_fresh"), fresh("a", "grant_fresh")], ["grant_fresh"]],
    ["as an assertion and a grant", [fresh("a"), fresh("a", "grant_fresh")], ["grant_fresh"]],
    ["as a grant and an assertion", [fresh("a", "grant_fresh"), fresh("b"), fresh("a")], ["jti_fresh"]],
  ] as const;
  for (const [what, guards, want] of twice) {
    check(`IDC-5.5-2 one request cannot use one jti twice ${what}`, async (store) => {
      const journal = await open(store.log);
      assert.deepEqual(await journal.record({ event: EVENT, guards }), { ok: false, error: want });
      assert.ok((await journal.record({ event: EVENT, guards: [fresh("a"), fresh("b", "grant_fresh")] })).ok);
      assert.equal((await assertChain(store)).length, 2);
    });
  }

  check("IDC-5.5-2 of many simultaneous requests with one grant, one is recorded", async (store) => {
    const journal = await open(store.log);
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () =>
        journal.record({ event: EVENT, guards: [fresh(randomUUID()), fresh("g", "grant_fresh")] }),
      ),
    );
    const lost = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]));
    assert.deepEqual(lost, Array(9).fill(["grant_fresh"]));
  });

  check(
    "RFC7591-3-3 of many simultaneous registrations with one initial token, only as many succeed as it has uses",
    async (store) => {
      const journal = await open(store.log);
      const initialToken = makeInitialToken({ usesMax: 3 });
      await untilRecorded(journal, { event: EVENT, initialToken: { add: initialToken } });
      const clients = Array.from({ length: 10 }, () => makeRegistered());
      const outcomes = await Promise.all(
        clients.map((register) =>
          journal.record({
            event: EVENT,
            registration: { register, initialTokenId: initialToken.id, clientsMax: 100 },
          }),
        ),
      );
      assert.equal(outcomes.filter(({ ok }) => ok).length, 3);
      const lost = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]));
      assert.deepEqual(lost, Array(7).fill(["initial_token_usable"]));
      assert.equal((await store.registrations.initialToken(initialToken.digest))?.uses, 3);
      assert.equal((await assertChain(store)).length, 5);
    },
  );

  check(
    "of many simultaneous registrations, only as many succeed as the limit of clients allows",
    async (store) => {
      const journal = await open(store.log);
      const register = () => ({ register: makeRegistered(), clientsMax: 3 });
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, () => journal.record({ event: EVENT, registration: register() })),
      );
      const lost = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]));
      assert.deepEqual(lost, Array(7).fill(["registrations_below"]));
    },
  );

  check(
    "JOB-D-24 of many simultaneous jobs of one agent, only as many are made as may live",
    async (store) => {
      const journal = await open(store.log);
      const most = { ofPairMax: 3, ofActorMax: 9 };
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          journal.record({ event: EVENT, ...adding(makeJob({ id: `job_${index}` }), most) }),
        ),
      );
      const lost = outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]));
      assert.deepEqual(lost, Array(7).fill(["jobs_below"]));
    },
  );

  check(
    "RFC7592-2.3-1 a removal applies to every later write, including those of the same batch",
    async (store) => {
      const journal = await open(store.log);
      const client = makeRegistered();
      await untilRecorded(journal, { event: EVENT, registration: { register: client, clientsMax: 1 } });
      const token = makeToken({ clientId: client.clientId });
      await untilRecorded(journal, { event: EVENT, token });
      const relying = { event: EVENT, guards: [notEnded(token)] };
      const update = { ...client, version: 2 };
      const atSeconds = NOW_SECONDS;
      const entries: JournalEntry[] = [
        relying,
        { event: EVENT, registration: { update, atSeconds } },
        { event: EVENT, registration: { update, atSeconds } },
        { event: EVENT, registration: { remove: client.clientId, atSeconds } },
        relying,
        { event: EVENT, registration: { update: { ...client, version: 3 }, atSeconds } },
        { event: EVENT, registration: { register: makeRegistered(), clientsMax: 1 } },
      ];
      const outcomes = await Promise.all(entries.map((entry) => journal.record(entry)));
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.ok ? [] : outcome.error)),
        [[], [], ["registration_current"], [], ["not_ended"], ["registration_current"], []],
      );
    },
  );

  check("an ending applies to every later write, including those of the same batch", async (store) => {
    const journal = await open(store.log);
    const token = makeToken();
    await untilRecorded(journal, { event: EVENT, token });
    const relying = { event: EVENT, guards: [notEnded(token)] };
    const ending = buildEnding(hash.sha256, { by: "token", jti: token.jti }, NOW_SECONDS * 1000);
    const entries = [relying, { event: EVENT, ending }, relying, relying];
    const outcomes = await Promise.all(entries.map((entry) => journal.record(entry)));
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.ok ? [] : outcome.error)),
      [[], [], ["not_ended"], ["not_ended"]],
    );
  });

  check(
    "a revoked initial token is unusable for every later write, and other writes do not wait for registrations",
    async (store) => {
      const sizes: number[] = [];
      const counted: EventLog = {
        ...store.log,
        append(batch) {
          sizes.push(batch.length);
          return store.log.append(batch);
        },
      };
      const journal = await open(counted);
      const add = makeInitialToken({ usesMax: 9 });
      await untilRecorded(journal, { event: EVENT, initialToken: { add } });
      sizes.length = 0;
      const register = () => ({
        event: EVENT,
        registration: { register: makeRegistered(), initialTokenId: add.id, clientsMax: 100 },
      });
      const outcomes = await Promise.all([
        journal.record(register()),
        journal.record(register()),
        journal.record({ event: EVENT }),
        journal.record({ event: EVENT, initialToken: { revoke: add.id, atSeconds: NOW_SECONDS } }),
        journal.record(register()),
        journal.record({ event: EVENT }),
      ]);
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.ok ? [] : outcome.error)),
        [[], [], [], [], ["initial_token_usable"], []],
      );
      // The first registration shares its batch with the other writes; the one that fails is alone.
      assert.deepEqual(sizes, [3, 1, 1, 1]);
      const { uses, revokedAtSeconds } = (await store.registrations.initialToken(add.digest)) ?? {};
      assert.deepEqual([uses, revokedAtSeconds], [2, NOW_SECONDS]);
    },
  );

  check(
    "PAGE-D-18 of many simultaneous sign-ins of one user, the newest sessions stay, and no more",
    async (store) => {
      const journal = await open(store.log);
      const session = (index: number) => ({
        kind: "session" as const,
        key: `s${index}`,
        version: 1,
        holder: "alice",
        body: {
          origin: { iss: ISSUER, sub: "alice" },
          sub: "alice",
          provider: "company",
          displayName: "Alice",
          startedAtSeconds: NOW_SECONDS,
        },
        expiresAtSeconds: NOW_SECONDS + index,
      });
      const added = Array.from({ length: 9 }, (_, index) => session(index + 1));
      const entries = added.map((add) => ({ event: EVENT, rows: [{ add, most: 3 }] }));
      assert.ok((await Promise.all(entries.map((entry) => journal.record(entry)))).every(({ ok }) => ok));
      const found = await Promise.all(
        added.map(({ key }) => store.shortLived.find("session", key, NOW_SECONDS)),
      );
      assert.deepEqual(
        found.flatMap((row) => row?.key ?? []),
        ["s7", "s8", "s9"],
      );
    },
  );

  check("RECHECK-D-1 of simultaneous sign-ins of one user the word of the last one stays", async (store) => {
    const journal = await open(store.log);
    const origin = { iss: ISSUER, sub: "alice" };
    const word = (sealed: string) => ({
      ...{ origin, version: 1, provider: "company", sealed, expiresAtSeconds: NOW_SECONDS + 60 },
      ...{ confirmedAtSeconds: NOW_SECONDS, askedAtSeconds: NOW_SECONDS },
    });
    const entries = ["first", "second", "last"].map((sealed) => ({ event: EVENT, recheck: word(sealed) }));
    assert.ok((await Promise.all(entries.map((entry) => journal.record(entry)))).every(({ ok }) => ok));
    assert.deepEqual(await store.rechecks.find(origin), { ...word("last"), version: 3 });
  });

  check("a withdrawal applies to every later write, including those of the same batch", async (store) => {
    const journal = await open(store.log);
    const consent = makeConsent();
    await untilRecorded(journal, {
      event: { ...EVENT, type: "consent.recorded" },
      consent: { add: consent },
    });
    const { id, version } = consent;
    const relying = () => ({
      event: EVENT,
      token: makeToken({ consentId: id }),
      guards: [{ kind: "consent_current", id, version, nowSeconds: NOW_SECONDS } as const],
    });
    const withdrawal = {
      event: { ...EVENT, type: "consent.withdrawn" } as const,
      consent: { withdraw: id, atSeconds: NOW_SECONDS },
    };
    const entries = [relying(), withdrawal, withdrawal, relying()];
    const outcomes = await Promise.all(entries.map((entry) => journal.record(entry)));
    assert.deepEqual(
      outcomes.map(({ ok }) => ok),
      [true, true, false, false],
    );
    const types = (await assertChain(store)).map(({ type }) => type);
    assert.deepEqual(types, ["log.genesis", "consent.recorded", "token.issued", "consent.withdrawn"]);
  });

  check("a restart continues the chain from the stored head", async (store) => {
    const first = await open(store.log);
    await untilRecorded(first, { event: EVENT });
    await first.close();
    const second = await open(store.log);
    await untilRecorded(second, { event: EVENT });
    assert.equal((await assertChain(store)).length, 3);
  });

  check("closing writes pending entries and refuses new ones", async (store) => {
    const journal = await open(store.log);
    const pending = Array.from({ length: JOURNAL_BATCH_MAX + 1 }, () => journal.record({ event: EVENT }));
    await journal.close();
    assert.equal((await assertChain(store)).length, JOURNAL_BATCH_MAX + 2);
    assert.ok((await Promise.all(pending)).every(({ ok }) => ok));
    await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
    await journal.close();
  });

  check("a second process with the same log name is stopped permanently and reported once", async (store) => {
    const reasons: string[] = [];
    const first = await open(store.log);
    const second = await open(store.log, { onFatal: (reason) => reasons.push(reason) });
    await untilRecorded(first, { event: EVENT });
    const attempts = Array.from({ length: JOURNAL_BATCH_MAX + 1 }, () => second.record({ event: EVENT }));
    for (const attempt of await Promise.allSettled(attempts)) {
      assert.equal(attempt.status === "rejected" && attempt.reason.name, "StoreUnavailable");
    }
    await assert.rejects(second.record({ event: EVENT }), /another process writes the audit log "as-1"/);
    assert.deepEqual(reasons, [
      'another process writes the audit log "as-1": give each instance its own audit.instance',
    ]);
    await untilRecorded(first, { event: EVENT });
    assert.equal((await assertChain(store)).length, 3);
  });

  check("two processes with different log names do not conflict", async (store) => {
    const journals = [await open(store.log), await open(store.log, { log: "as-2" })];
    const guards = [fresh("a")];
    const all = journals.flatMap((journal) => [
      journal.record({ event: EVENT }),
      journal.record({ event: EVENT, guards }),
      journal.record({ event: EVENT }),
    ]);
    assert.equal((await Promise.all(all)).filter(({ ok }) => ok).length, 5);
    assert.equal((await assertChain(store)).length + (await assertChain(store, "as-2")).length, 7);
  });

  const unfit: [string, JournalEntry][] = [
    ["an unpaired surrogate in the event", { event: { ...EVENT, detail: { text: "\ud800" } } }],
    ["a NUL in a token", { event: EVENT, token: makeToken({ origin: { iss: ISSUER, sub: "a\0" } }) }],
    ["an unpaired surrogate in a token", { event: EVENT, token: makeToken({ scope: "\udc00" }) }],
    ["a fractional second in a token", { event: EVENT, token: makeToken({ expiresAtSeconds: 0.5 }) }],
    ["a NUL in a guard", { event: EVENT, guards: [notEnded({ endingKeys: [{ key: "\0", sinceMs: 0 }] })] }],
    ["a NUL in a consent", { event: EVENT, consent: { add: makeConsent({ actor: "\0" }) } }],
    ["a NUL in a withdrawal", { event: EVENT, consent: { withdraw: "\0", atSeconds: 0 } }],
    ["a NUL in a grant's issuer", { event: EVENT, guards: [{ ...fresh("a", "grant_fresh"), issuer: "\0" }] }],
    ...[
      makeRegistered({ clientId: "\0" }),
      makeRegistered({ secrets: [{ digest: "\0" }] }),
      makeRegistered({ secrets: [{ digest: "a", expiresAtSeconds: 0.5 }] }),
      makeRegistered({ tokenGeneration: Number.NaN }),
    ].flatMap((client, index): [string, JournalEntry][] => [
      [`registration ${index}`, { event: EVENT, registration: { register: client, clientsMax: 1 } }],
      [`update ${index}`, { event: EVENT, registration: { update: client, atSeconds: 0 } }],
    ]),
    // An update does not write these.
    ...[makeRegistered({ registrationClass: "\ud800" }), makeRegistered({ issuedAtSeconds: 0.5 })].map(
      (client, index): [string, JournalEntry] => [
        `class or time of a registration ${index}`,
        { event: EVENT, registration: { register: client, clientsMax: 1 } },
      ],
    ),
    [
      "an infinite limit of clients",
      {
        event: EVENT,
        registration: { register: makeRegistered(), clientsMax: Number.POSITIVE_INFINITY },
      },
    ],
    [
      "a NUL in the id of an initial token",
      { event: EVENT, registration: { register: makeRegistered(), clientsMax: 1, initialTokenId: "\0" } },
    ],
    ["a NUL in a removal", { event: EVENT, registration: { remove: "\0", atSeconds: 0 } }],
    [
      "a fractional second in a removal",
      { event: EVENT, registration: { remove: "c_a", atSeconds: 0, unusedSince: 0.5 } },
    ],
    [
      "a NUL in an initial token",
      { event: EVENT, initialToken: { add: makeInitialToken({ digest: "\0" }) } },
    ],
    [
      "a fractional number of uses",
      { event: EVENT, initialToken: { add: makeInitialToken({ usesMax: 0.5 }) } },
    ],
    ["a NUL in a revocation", { event: EVENT, initialToken: { revoke: "\0", atSeconds: 0 } }],
  ];
  for (const [what, entry] of unfit) {
    check(`an entry that cannot be stored fails alone: ${what}`, async (store) => {
      const journal = await open(store.log);
      const all = [{ event: EVENT }, entry, { event: EVENT }].map((each) => journal.record(each));
      const outcomes = await Promise.allSettled(all);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["fulfilled", "rejected", "fulfilled"],
      );
      await assert.rejects(journal.record(entry), (error) => !(error instanceof StoreUnavailable));
      assert.equal((await assertChain(store)).length, 3);
    });
  }

  check(
    "AUDIT-D-1 after a lost answer the chain continues after the event that was stored",
    async (store) => {
      const line = unreliable(store.log);
      const journal = await open(line.log);
      line.loseNext("deliver");
      await assert.rejects(journal.record({ event: EVENT, guards: [fresh("a")] }), StoreUnavailable);
      line.appends = 0;
      assert.ok((await journal.record({ event: EVENT })).ok);
      assert.equal(line.appends, 1);
      // The write without an answer was stored: its event exists and its jti is spent.
      assert.equal((await assertChain(store)).length, 3);
      const again = await journal.record({ event: EVENT, guards: [fresh("a")] });
      assert.deepEqual(again, { ok: false, error: ["jti_fresh"] });
    },
  );

  check("AUDIT-D-1 an own write that arrives late is not mistaken for a second process", async (store) => {
    const line = unreliable(store.log);
    const journal = await open(line.log);
    line.loseNext("deliver late");
    await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
    assert.ok((await journal.record({ event: EVENT })).ok);
    assert.equal((await assertChain(store)).length, 3);
  });

  for (const how of ["deliver", "deliver late"] as const) {
    check(
      `after the next success, a lost answer no longer excuses a second process (${how})`,
      async (store) => {
        const line = unreliable(store.log);
        const reasons: string[] = [];
        const journal = await open(line.log, { onFatal: (reason) => reasons.push(reason) });
        line.loseNext(how);
        await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
        assert.ok((await journal.record({ event: EVENT })).ok);
        await (await open(store.log)).record({ event: EVENT });
        await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
        assert.equal(reasons.length, 1);
        assert.equal((await assertChain(store)).length, 4);
      },
    );
  }

  check("a lost answer excuses no conflict with the write of another process", async (store) => {
    const line = unreliable(store.log);
    const reasons: string[] = [];
    const journal = await open(line.log, { onFatal: (reason) => reasons.push(reason) });
    line.loseNext("deliver");
    await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
    line.meanwhile = async () => {
      await (await open(store.log)).record({ event: EVENT });
    };
    await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
    assert.equal(reasons.length, 1);
    assert.equal((await assertChain(store)).length, 3);
  });

  for (const how of ["deliver", "deliver late"] as const) {
    check(
      `AUDIT-D-11 after a lost answer the log is not continued behind the record of another process (${how})`,
      async (store) => {
        const line = unreliable(store.log);
        const reasons: string[] = [];
        const journal = await open(line.log, { onFatal: (reason) => reasons.push(reason) });
        line.loseNext(how);
        await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
        await (await open(store.log)).record({ event: EVENT });
        const before = (await assertChain(store)).length;
        await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
        assert.equal(reasons.length, 1);
        assert.equal((await assertChain(store)).length, before);
      },
    );
  }

  const losses: [string, (line: ReturnType<typeof unreliable>, mayWrite: { is: boolean }) => void][] = [
    ["between two writes", () => {}],
    ["with a write whose answer was lost", (line) => line.loseNext("deliver")],
    ["where its name has another holder", (_line, mayWrite) => void Object.assign(mayWrite, { is: false })],
  ];
  for (const [when, lose] of losses) {
    check(
      `AUDIT-D-10 a store that went back ${when} is told as such, and gets no record behind the gap`,
      async (store, t) => {
        const copy = await keep(t, openStore({ sqlite: await migratedFile() }));
        const line = unreliable(store.log);
        const mayWrite = { is: true };
        let isAway = false;
        const told: unknown[] = [];
        const journal = await open(
          swapped(line.log, copy.log, () => isAway),
          {
            onFatal: (reason, behind) => told.push(reason, behind),
            mayWrite: async () => mayWrite.is,
          },
        );
        for (let one = 0; one < 3; one++) await journal.record({ event: EVENT });
        for (const event of await store.log.read({ log: "as-1", limit: 2 }))
          await copy.log.append([{ event }]);
        const { timeMs: knownMs } = journal.head();
        lose(line, mayWrite);
        if (when.startsWith("with")) await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
        isAway = true;
        await assert.rejects(journal.record({ event: EVENT }), /the store has lost records of the audit log/);
        await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
        const [, second] = await copy.log.read({ log: "as-1", limit: 10 });
        assert.deepEqual(told, [
          'the store has lost records of the audit log "as-1"',
          { log: "as-1", known: 4, stored: 2, forked: false, knownMs, storedMs: second?.timeMs },
        ]);
        assert.equal((await assertChain(copy)).length, 2);
      },
    );
  }

  check(
    "AUDIT-D-10 a store that is away while its loss is looked for is asked again by the next write",
    async (store, t) => {
      const copy = await keep(t, openStore({ sqlite: await migratedFile() }));
      let isAway = false;
      let isCut = true;
      const read: EventLog["read"] = async (filter) =>
        isCut ? Promise.reject(new StoreUnavailable("cut off")) : copy.log.read(filter);
      const told: unknown[] = [];
      const onFatal = (_reason: string, behind?: LogBehind) => told.push(behind?.stored);
      const journal = await open(
        swapped(store.log, { ...copy.log, read }, () => isAway),
        { onFatal },
      );
      await journal.record({ event: EVENT });
      isAway = true;
      await assert.rejects(journal.record({ event: EVENT }), /cut off/);
      assert.deepEqual(told, []);
      isCut = false;
      await assert.rejects(journal.record({ event: EVENT }), /the store has lost records/);
      assert.deepEqual(told, [0]);
    },
  );

  check("AUDIT-D-11 a process that another one has replaced writes nothing more", async (store) => {
    const reasons: string[] = [];
    const onFatal = (reason: string) => reasons.push(reason);
    const journal = await open(store.log, { onFatal, mayWrite: async () => false });
    await assert.rejects(journal.record({ event: EVENT }), /another process writes the audit log/);
    await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
    journal.giveUp();
    assert.equal(reasons.length, 1);
    assert.equal((await assertChain(store)).length, 1);
  });

  check("while its name cannot be renewed the journal refuses, and then goes on", async (store) => {
    let away = true;
    const mayWrite = async (): Promise<boolean> => {
      if (away) throw new StoreUnavailable("the store is away");
      return true;
    };
    const journal = await open(store.log, { mayWrite });
    await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
    away = false;
    assert.ok((await journal.record({ event: EVENT })).ok);
    assert.equal((await assertChain(store)).length, 2);
  });
}

test("a full journal refuses at once and writes what it accepted", async (t) => {
  const store = await keep(t, openStore({ sqlite: await migratedFile() }));
  const journal = await open(store.log);
  const accepted = Array.from({ length: JOURNAL_PENDING_MAX }, () => journal.record({ event: EVENT }));
  await assert.rejects(journal.record({ event: EVENT }), /full/);
  assert.ok((await Promise.all(accepted)).every(({ ok }) => ok));
  assert.ok((await journal.record({ event: EVENT })).ok);
  assert.equal((await store.log.head("as-1"))?.seq, JOURNAL_PENDING_MAX + 1);
});

test("HTTP-D-8 after a failed write the store answers only when it has written again", async (t) => {
  const store = await keep(t, openStore({ sqlite: await migratedFile() }));
  let full = false;
  const log: EventLog = {
    ...store.log,
    append: async (batch) => {
      if (full) throw new StoreUnavailable("full");
      return store.log.append(batch);
    },
  };
  const journal = await open(log);
  assert.equal(await journal.storeAnswers(), true);
  full = true;
  await assert.rejects(journal.record({ event: EVENT }), StoreUnavailable);
  assert.equal(await journal.storeAnswers(), false);
  full = false;
  assert.deepEqual(await Promise.all([journal.storeAnswers(), journal.storeAnswers()]), [true, true]);
  // One event for both; while writes succeed, asking writes nothing.
  assert.equal(await journal.storeAnswers(), true);
  const events = await store.log.read({ log: "as-1", limit: 10 });
  assert.deepEqual(
    events.map(({ type }) => type),
    ["log.genesis", "log.resumed"],
  );
});

test("AUDIT-D-1 an entry whose deadline passes is given up at once, and is not written later", async (t) => {
  const store = await keep(t, openStore({ sqlite: await migratedFile() }));
  const journal = await open(store.log);
  const controller = new AbortController();
  const late = new Error("late");
  const abandoned = journal.record({ event: EVENT }, controller.signal);
  const other = journal.record({ event: EVENT }, new AbortController().signal);
  controller.abort(late);
  await assert.rejects(abandoned, late);
  assert.ok((await other).ok);
  await assert.rejects(journal.record({ event: EVENT }, controller.signal), late);
  await journal.close();
  assert.equal((await assertChain(store)).length, 2);
});

test("AUDIT-D-1 an entry that is given up while its batch waits for leave to be written is not written with it", async (t) => {
  const store = await keep(t, openStore({ sqlite: await migratedFile() }));
  const asked = Promise.withResolvers<void>();
  const leave = Promise.withResolvers<boolean>();
  const mayWrite = (): Promise<boolean> => {
    asked.resolve();
    return leave.promise;
  };
  const journal = await open(store.log, { mayWrite });
  const controller = new AbortController();
  const late = new Error("late");
  const abandoned = journal.record({ event: EVENT }, controller.signal);
  const other = journal.record({ event: EVENT });
  await asked.promise;
  controller.abort(late);
  await assert.rejects(abandoned, late);
  leave.resolve(true);
  assert.ok((await other).ok);
  assert.equal((await assertChain(store)).length, 2);
});

test("a listener of the journal may record: its entry follows in the next batch, and everyone is answered", async (t) => {
  const store = await keep(t, openStore({ sqlite: await migratedFile() }));
  const journal = await open(store.log);
  const followed: Promise<unknown>[] = [];
  journal.follow((written) => {
    if (followed.length < 3) followed.push(journal.record({ event: EVENT }));
    assert.equal(written.length, 1);
  });
  assert.ok((await journal.record({ event: EVENT })).ok);
  while (followed.length < 3) await followed.at(-1);
  await Promise.all(followed);
  await journal.close();
  assert.equal((await assertChain(store)).length, 5);
});

test("what other requests still have ready joins the batch, and after a while it is written whatever else there is", async (t) => {
  const store = await keep(t, openStore({ sqlite: await migratedFile() }));
  const line = unreliable(store.log);
  const journal = await open(line.log);
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  line.appends = 0;
  /** Turns of the event loop with work for an entry in each, until a batch is written; how many there were. */
  const turns = async (count: number): Promise<number> => {
    const recorded = [];
    for (let turn = 0; turn < count && line.appends === 0; turn++) {
      recorded.push(journal.record({ event: EVENT }));
      nowMs += 2 * EMPTY_TURN_MS;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(recorded);
    return recorded.length;
  };
  assert.equal(await turns(10), 10);
  assert.equal(line.appends, 1);
  line.appends = 0;
  const beganMs = nowMs;
  assert.ok((await turns(1_000)) < 1_000);
  assert.ok(nowMs - beganMs <= JOURNAL_COMPANY_MS + 4 * EMPTY_TURN_MS, `${nowMs - beganMs} ms`);
});

test("callers that come again are written in one commit with those that waited meanwhile (PostgreSQL)", async () => {
  const { store } = await emptied();
  const journal = await open(store.log);
  const batches: number[] = [];
  journal.follow((written) => batches.push(written.length));
  const record = () => Promise.all(Array.from({ length: 8 }, () => journal.record({ event: EVENT })));
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const rounds = 20;
  for (let round = 0; round < rounds; round++) {
    const first = record();
    // They are being written.
    await turns(3);
    const others = record();
    await first;
    // More than one without work, after which a batch would be written.
    await turns(3);
    await Promise.all([others, record()]);
  }
  await journal.close();
  // A busy machine may bring them too late.
  const together = batches.filter((count) => count === 16).length;
  assert.ok(together > rounds / 2, `${batches}`);
});

test("a caller that is alone waits for no company", async () => {
  const { store } = await emptied();
  const journal = await open(store.log);
  for (let times = 0; times < 3; times++) await journal.record({ event: EVENT });
  const waits = mock.method(globalThis, "setTimeout");
  await journal.record({ event: EVENT });
  waits.mock.restore();
  assert.deepEqual(
    waits.mock.calls.filter(({ arguments: [, ms] }) => (ms ?? 0) < JOURNAL_COMPANY_MS),
    [],
  );
  await journal.close();
});
