/** The contract of both stores for reading and pruning the audit trail. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { fill } from "../../../scripts/bench/fill.ts";
import { buildSegment } from "../../../src/adapters/audit/indexing.ts";
import { termKey } from "../../../src/adapters/store/encoding.ts";
import type { Store, StoredEvent } from "../../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import { placeEvent, sealRecord } from "../../../src/audit/event.ts";
import type { Span } from "../../../src/audit/query.ts";
import { subjectTerm, type Term } from "../../../src/audit/terms.ts";
import { AUDIT_SEGMENTS_READ_MIN } from "../../../src/limits/audit.ts";
import type { AuditQuery, AuditRecord } from "../../../src/records.ts";
import { prng } from "../../support/prng.ts";
import { rounds } from "../../support/rounds.ts";
import { type Harness, ISSUER, makeToken, NOW_SECONDS } from "./store.contract.ts";

const EVENT: AuditEvent = { type: "token.issued", outcome: "allow", reason: "rule_match" };
const NOW_MS = NOW_SECONDS * 1000;

/** Writes an event at its place, as the journal would, and returns the record that a query finds. */
async function write(
  store: Store,
  [log, seq, timeMs]: readonly [string, number, number],
  values: Partial<AuditEvent> = {},
): Promise<AuditRecord> {
  const event = { ...EVENT, ...values };
  const id = randomUUID();
  const body = sealRecord(placeEvent(event, { log, seq, id, timeMs, prev: "", salt: "" }));
  const stored: StoredEvent = {
    log,
    seq,
    id,
    timeMs,
    type: event.type,
    body,
    prev: `${log}${seq - 1}`,
    hash: `${log}${seq}`,
  };
  assert.deepEqual(await store.log.append([{ event: stored }]), []);
  return { log, seq, timeMs, body };
}

async function spansOf(store: Store): Promise<Span[]> {
  return (await store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
}

/** Of these stores each query is asked again when segments cover every event, and must find the same. */
const indexed = new WeakSet<Store>();

async function find(store: Store, query: Partial<AuditQuery> = {}): Promise<readonly AuditRecord[]> {
  const asked = { terms: [], spans: await spansOf(store), limit: 100, ...query };
  const found = await store.audit.find(asked);
  if (!indexed.has(store)) return found;
  for (const { log } of asked.spans) await indexLog(store, log);
  assert.deepEqual(await store.audit.find(asked), found);
  return found;
}

/** Covers the events of a log that have no segment with a new one, of `size` events at most; whether there was one. */
async function indexLog(store: Store, log: string, size = 1_000): Promise<boolean> {
  const [first, ...more] = await store.log.read({
    log,
    afterSeq: await store.audit.indexedTo(log),
    limit: size,
  });
  if (first === undefined) return false;
  await buildSegment(store, { log, fromSeq: first.seq, toSeq: more.at(-1)?.seq ?? first.seq });
  return true;
}

const granted = (jti: string, parents: string[] = []): Pick<AuditEvent, "granted"> => ({
  granted: {
    jti,
    token_type: "Bearer",
    sub: "alice",
    aud: "api",
    scope: "a",
    exp: 0,
    fingerprint: "f",
    act_depth: 0,
    kid: "k",
    parent_jti: parents,
  },
});

function eventOf(sub: string): Partial<AuditEvent> {
  return { subject: { iss: ISSUER, sub, kind: "user", token: { type: "t", fingerprint: "f" } } };
}

export function testAuditRows({ name, create }: Harness): void {
  const token = { type: "access_token", jti: "shown", fingerprint: "f" };
  const check = (title: string, body: (store: Store) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body(await (await create(t)).open()));
  const checkSearch = (title: string, body: (store: Store) => Promise<void>) => {
    check(title, body);
    check(`${title}, in segments`, async (store) => {
      indexed.add(store);
      await body(store);
    });
  };

  check("PROD-6.3-3 events of all logs are found by time, log and number, with their text", async (store) => {
    const [b0, a0, a1, b1] = [
      await write(store, ["b", 0, 20]),
      await write(store, ["a", 0, 20], { detail: { text: 'é "\\" \u2028 \u0000' } }),
      await write(store, ["a", 1, 20]),
      await write(store, ["b", 1, 10]),
    ];
    const all = [b1, a0, a1, b0];
    assert.deepEqual(await find(store), all);
    assert.deepEqual(await find(store, { limit: 2 }), all.slice(0, 2));
    for (const [index, after] of all.entries()) {
      assert.deepEqual(await find(store, { after }), all.slice(index + 1));
    }
    assert.deepEqual(await find(store, { fromMs: 20 }), all.slice(1));
    assert.deepEqual(await find(store, { toMs: 20 }), all.slice(0, 1));
    assert.deepEqual(await find(store, { fromMs: 20, toMs: 20 }), []);
  });

  checkSearch(
    "PROD-6.3-3 the newest events are found first, then what is older, by one term and by several",
    async (store) => {
      const alice = { subject: { iss: "https://idp.example", sub: "alice", kind: "user", token } } as const;
      const first = await write(store, ["a", 0, 20], alice);
      const newest = [
        await write(store, ["b", 0, 20], alice),
        await write(store, ["a", 1, 20], { ...alice, type: "token.denied" }),
        first,
        await write(store, ["b", 1, 10], alice),
      ];
      await write(store, ["a", 2, 20], { type: "token.denied" });
      const mine: Term = { name: "subject", value: "https://idp.example alice" };
      const types: Term[] = ["token.issued", "token.denied"].map((value) => ({ name: "type", value }));
      for (const terms of [[[mine]], [[mine], types], [types, [mine]]]) {
        const asked = { terms, newestFirst: true };
        assert.deepEqual(await find(store, asked), newest);
        assert.deepEqual(await find(store, { ...asked, limit: 3 }), newest.slice(0, 3));
        for (const [index, after] of newest.entries()) {
          assert.deepEqual(await find(store, { ...asked, after }), newest.slice(index + 1));
        }
        assert.deepEqual(await find(store, { ...asked, toMs: 20 }), newest.slice(3));
        assert.deepEqual(await find(store, { ...asked, fromMs: 11, toMs: 20 }), []);
      }
    },
  );

  checkSearch("PROD-6.3-3 only events in the given spans of the logs are found", async (store) => {
    const a = [];
    for (let seq = 0; seq < 5; seq++) a.push(await write(store, ["a", seq, 100 - seq]));
    await write(store, ["b", 0, 50]);
    const spans = [{ log: "a", afterSeq: 0, toSeq: 3 }];
    assert.deepEqual(await find(store, { spans }), a.slice(1, 4).reverse());
    assert.deepEqual(await find(store, { spans: [] }), []);
    assert.equal(await store.audit.earliestMs(spans), indexed.has(store) ? 96 : 97);
    assert.equal(await store.audit.earliestMs([{ log: "a", afterSeq: 4, toSeq: 9 }]), undefined);
    assert.equal(await store.audit.earliestMs(await spansOf(store)), 50);
  });

  const planner = "spiffe://td.example/agents/planner";
  const booking = "spiffe://td.example/agents/booking";
  const odd = 'a  b \u00e9\u2028 "c\\ \u0001 😀 "d\u007f';
  const exchange: Partial<AuditEvent> = {
    type: "token_exchange.delegation",
    client: { client_id: "c-booking", auth_method: "spiffe_jwt", workload: booking },
    subject: { iss: "https://idp.example", sub: "alice", kind: "user", token },
    actor: { iss: "https://as.example", sub: booking, token: { ...token, jti: "svid" } },
    chain: [{ iss: "https://as.example", sub: planner }],
    requested: { audience: ["desk"], resource: ["https://desk.example"] },
    policy: { digest: "d", rule_id: "rule-1" },
    ...granted("issued", ["shown", "older"]),
    detail: { client_id: "c-made", iss: "https://a.example", sub: odd, actor: odd },
  };
  const found: Record<string, Term> = {
    "its type": { name: "type", value: "token_exchange.delegation" },
    "its outcome": { name: "outcome", value: "allow" },
    "its client": { name: "client", value: "c-booking" },
    "the client in its detail": { name: "client", value: "c-made" },
    "the actor": { name: "actor", value: booking },
    "an actor in the chain": { name: "actor", value: planner },
    "the subject with its issuer": { name: "subject", value: "https://idp.example alice" },
    "an actor in its detail": { name: "actor", value: odd },
    "a subject in its detail": { name: "subject", value: `https://a.example ${odd}` },
    "the granted target": { name: "target", value: "api" },
    "a requested audience": { name: "target", value: "desk" },
    "a requested resource": { name: "target", value: "https://desk.example" },
    "its rule": { name: "rule", value: "rule-1" },
    "the token that it issued": { name: "granted", value: "issued" },
    "a presented token": { name: "presented", value: "shown" },
    "an ancestor": { name: "ancestor", value: "older" },
  };
  for (const [what, term] of Object.entries(found)) {
    checkSearch(`PROD-6.3-3 an event is found by ${what} and by no other term`, async (store) => {
      await write(store, ["a", 0, 1], { outcome: "deny" });
      const event = await write(store, ["a", 1, 2], exchange);
      assert.deepEqual(await find(store, { terms: [[term]] }), [event]);
      assert.deepEqual(await find(store, { terms: [[{ ...term, value: `${term.value} ` }]] }), []);
      const other = term.name === "rule" ? "client" : "rule";
      assert.deepEqual(await find(store, { terms: [[{ name: other, value: term.value }]] }), []);
    });
  }

  checkSearch("PROD-6.3-3 all of several filters must match, by any choice of each", async (store) => {
    const client = (client_id: string) => ({ client: { client_id, auth_method: "m" } });
    const events = [
      await write(store, ["a", 0, 1], { ...client("x"), ...granted("1") }),
      await write(store, ["a", 1, 2], { ...client("y"), ...granted("2", ["1"]) }),
      await write(store, ["b", 0, 3], { ...client("y"), ...granted("3", ["2", "1"]) }),
    ];
    const one = (name: Term["name"], value: string): Term => ({ name, value });
    const [first, second, third] = events;
    const family = [one("granted", "1"), one("ancestor", "1"), one("granted", "2")];
    assert.deepEqual(await find(store, { terms: [family] }), events);
    assert.deepEqual(await find(store, { terms: [family], limit: 2 }), [first, second]);
    assert.deepEqual(await find(store, { terms: [family, [one("client", "y")]] }), [second, third]);
    const both = [[one("client", "y")], [one("target", "api")], [one("granted", "3"), one("granted", "x")]];
    assert.deepEqual(await find(store, { terms: both }), [third]);
    assert.deepEqual(await find(store, { terms: [[one("client", "x")], [one("granted", "2")]] }), []);
  });

  check(
    "PROD-6.3-3 what is found is what a look at every event finds, whatever segments cover them",
    async (store) => {
      const random = prng(7);
      const next = new Map<string, number>();
      const written: { record: AuditRecord; clientId: string; jti: string }[] = [];
      const write1 = async () => {
        const log = random.pick(["a", "b", "c"]);
        const seq = next.get(log) ?? 0;
        next.set(log, seq + 1);
        const [clientId, jti] = [random.pick(["x", "y", "z"]), `t${random.below(40)}`];
        // Times go back and forth by a little, and once in a while by much.
        const timeMs = 1_000 + written.length * 3 + random.below(20) - (random.below(50) === 0 ? 300 : 0);
        const client = { client_id: clientId, auth_method: "m" };
        written.push({
          record: await write(store, [log, seq, timeMs], { client, ...granted(jti), ...eventOf(clientId) }),
          clientId,
          jti,
        });
      };
      const byPlace = (a: AuditRecord, b: AuditRecord) =>
        a.timeMs - b.timeMs || (a.log < b.log ? -1 : a.log > b.log ? 1 : a.seq - b.seq);
      for (let round = 0; round < rounds(16); round++) {
        for (let count = 0; count < 12; count++) await write1();
        if (random.below(2) === 0) await indexLog(store, random.pick(["a", "b", "c"]), 1 + random.below(20));
        const jti = `t${random.below(40)}`;
        const [clientId, newestFirst] = [random.pick(["x", "y", "z"]), random.below(2) === 0];
        const byClient: Term[] = [{ name: "client", value: clientId }];
        const byToken: Term[] = [{ name: "granted", value: jti }];
        // Of each client there is one user.
        const byUser: Term[] = [subjectTerm(ISSUER, clientId)];
        const [terms, isAsked] = random.pick([
          [[byClient], (one: (typeof written)[0]) => one.clientId === clientId],
          [[byUser], (one: (typeof written)[0]) => one.clientId === clientId],
          [[byToken, byUser], (one: (typeof written)[0]) => one.clientId === clientId && one.jti === jti],
          [
            [[...byClient, ...byToken]],
            (one: (typeof written)[0]) => one.clientId === clientId || one.jti === jti,
          ],
          [[byToken, byClient], (one: (typeof written)[0]) => one.clientId === clientId && one.jti === jti],
        ]);
        const spans = (await spansOf(store)).map((span) => ({
          ...span,
          afterSeq: random.below(span.toSeq + 1) - 1,
        }));
        const inSpans = ({ log, seq }: AuditRecord) =>
          spans.some((span) => span.log === log && seq > span.afterSeq && seq <= span.toSeq);
        const fromMs = 1_000 + random.below(400);
        const sorted = written
          .filter((one) => isAsked(one) && inSpans(one.record) && one.record.timeMs >= fromMs)
          .map(({ record }) => record)
          .sort((a, b) => (newestFirst ? byPlace(b, a) : byPlace(a, b)));
        const found: AuditRecord[] = [];
        for (let after = {}; ; after = { after: found.at(-1) }) {
          const page = await find(store, { terms, spans, fromMs, newestFirst, limit: 25, ...after });
          found.push(...page);
          if (page.length < 25) break;
        }
        assert.deepEqual(found, sorted);
      }
    },
  );

  check(
    "PROD-6.3-3 of two values with the same key in the index only the one asked for is found",
    async (store) => {
      const [value, other] = ["c0018550", "c0025230"];
      const term: Term = { name: "client", value };
      assert.deepEqual(termKey(term), termKey({ ...term, value: other }));
      const client = (client_id: string) => ({ client: { client_id, auth_method: "m" } });
      await write(store, ["a", 0, 1], client(other));
      const event = await write(store, ["a", 1, 2], client(value));
      await indexLog(store, "a");
      assert.deepEqual(await find(store, { terms: [[term]] }), [event]);
    },
  );

  check("PROD-6.3-3 a segment over a long time is in order with many short ones", async (store) => {
    const client = { client: { client_id: "c", auth_method: "m" } };
    const [first, last] = [
      await write(store, ["a", 0, 0], client),
      await write(store, ["a", 1, 100], client),
    ];
    const between = [];
    for (let seq = 0; seq < 2 * AUDIT_SEGMENTS_READ_MIN; seq++) {
      between.push(await write(store, ["b", seq, 10 + seq], client));
      await indexLog(store, "b");
    }
    await indexLog(store, "a");
    // Early, in the last log.
    const early = await write(store, ["c", 0, 5], client);
    const terms: Term[][] = [[{ name: "client", value: "c" }]];
    const all = [first, early, ...between, last];
    assert.deepEqual(await find(store, { terms }), all);
    assert.deepEqual(await find(store, { terms, newestFirst: true }), all.toReversed());
  });

  check("the same segment twice is one segment, and the first one stays", async (store) => {
    const client = { client: { client_id: "c", auth_method: "m" } };
    const events = [await write(store, ["a", 0, 5], client), await write(store, ["a", 1, 6], client)];
    const segment = { log: "a", fromSeq: 0, toSeq: 1 };
    await Promise.all([buildSegment(store, segment), buildSegment(store, segment)]);
    await buildSegment(store, { ...segment, toSeq: 0 });
    assert.equal(await store.audit.indexedTo("a"), 1);
    assert.deepEqual(await find(store, { terms: [[{ name: "client", value: "c" }]] }), events);
  });

  const spellings = ["x".repeat(10_000), "\0", "\ud800", "é", "e\u0301", '"', "' or 1=1 --"];
  checkSearch(
    "AUDIT-D-7 any client_id in a request is recorded and found only by the same spelling",
    async (store) => {
      for (const [seq, value] of spellings.entries()) {
        const id = randomUUID();
        const body = JSON.stringify({ client: { client_id: value } });
        const event = { log: "a", seq, id, timeMs: seq, type: "t", body, prev: "", hash: "" };
        await store.log.append([{ event }]);
      }
      for (const [seq, value] of spellings.entries()) {
        const [event, ...more] = await find(store, { terms: [[{ name: "client", value }]] });
        assert.deepEqual([event?.seq, more], [seq, []]);
      }
    },
  );

  checkSearch("AUDIT-D-7 only a few of the requested targets become terms of the event", async (store) => {
    const audience = Array.from({ length: 1000 }, (_, index) => `t${index}`);
    await write(store, ["a", 0, 1], { requested: { audience, resource: [] } });
    const has = async (value: string) => (await find(store, { terms: [[{ name: "target", value }]] })).length;
    assert.deepEqual([await has("t3"), await has("t4")], [1, 0]);
  });

  check("returns the last record of every log, by name", async (store) => {
    assert.deepEqual(await store.audit.heads(), []);
    for (const place of [
      ["b", 0, 1],
      ["a", 0, 1],
      ["a", 1, 1],
    ] as const)
      await write(store, place);
    assert.deepEqual(await store.audit.heads(), [
      { log: "a", seq: 1, hash: "a1", ended: false },
      { log: "b", seq: 0, hash: "b0", ended: false },
    ]);
  });

  check(
    "RCPT-D-4 a row of a tree's hashes grows, and never shrinks; those of events are read in order",
    async ({ audit, ...store }) => {
      await write({ audit, ...store }, ["a", 0, 20]);
      await write({ audit, ...store }, ["a", 1, 10]);
      assert.deepEqual(await audit.hashes("a", 0, 9), ["a0", "a1"]);
      assert.deepEqual(await audit.hashes("a", 1, 2), ["a1"]);
      const row = { log: "a", level: 0, number: 1, hashes: "AAAA" };
      const longer = { ...row, hashes: "BBBBBBBB" };
      for (const one of [{ ...row, number: 0 }, row, longer, row]) await audit.keepTreeRow(one);
      assert.deepEqual(await audit.treeRow("a", 0), longer);
      assert.deepEqual(await audit.treeRow("a", 0, 0), { ...row, number: 0 });
      assert.equal(await audit.treeRow("a", 1), undefined);
      assert.equal(await audit.treeRow("b", 0), undefined);
    },
  );

  check("stores checkpoints with their events and returns them by log and size", async (store) => {
    const row = (log: string, treeSize: number) => ({
      log,
      treeSize,
      timeMs: treeSize * 10,
      jws: `${log}.${treeSize}`,
    });
    const rows = [row("a", 1), row("a", 2), row("a", 3), row("b", 1)];
    for (const [seq, checkpoint] of [...rows, row("a", 2)].entries()) {
      const event = {
        log: "a",
        seq,
        id: randomUUID(),
        timeMs: seq,
        type: "t",
        body: "{}",
        prev: "",
        hash: "",
      };
      assert.deepEqual(await store.log.append([{ event, checkpoint }]), []);
    }
    const { checkpoints, checkpoint } = store.audit;
    assert.deepEqual(await checkpoints(new Map(), 10), rows);
    assert.deepEqual(await checkpoints(new Map(), 2), rows.slice(0, 2));
    assert.deepEqual(await checkpoints(new Map([["a", 2]]), 10), rows.slice(2));
    assert.deepEqual(
      await checkpoints(
        new Map([
          ["a", 3],
          ["b", 1],
        ]),
        10,
      ),
      [],
    );
    assert.deepEqual(await checkpoint("a", 29), rows[1]);
    assert.deepEqual(await checkpoint("a", 1_000), rows[2]);
    assert.equal(await checkpoint("a", 9), undefined);
    assert.equal(await checkpoint("c", 1_000), undefined);
  });

  checkSearch("prunes the oldest events of one log with their terms", async (store) => {
    const client = { client: { client_id: "c", auth_method: "m" } };
    for (let seq = 0; seq < 5; seq++) await write(store, ["a", seq, seq], client);
    const b = await write(store, ["b", 0, 0], client);
    assert.equal(await store.audit.prune("a", 4, 3), 3);
    assert.equal(await store.audit.prune("a", 4, 3), 1);
    assert.equal(await store.audit.prune("a", 4, 3), 0);
    assert.deepEqual(
      (await store.log.read({ log: "a", limit: 9 })).map(({ seq }) => seq),
      [4],
    );
    const left = await find(store, { terms: [[{ name: "client", value: "c" }]] });
    assert.deepEqual(
      left.map(({ log, seq }) => [log, seq]),
      [
        ["b", b.seq],
        ["a", 4],
      ],
    );
    // A pruned place may be written again and is found only by its new terms.
    await write(store, ["a", 0, 0]);
    assert.equal((await find(store, { terms: [[{ name: "client", value: "c" }]] })).length, 2);
  });

  check("removes expired tokens and spent jti and no others", async (store) => {
    const at = (expiresAtSeconds: number) => makeToken({ expiresAtSeconds });
    const [gone, kept] = [at(NOW_SECONDS - 1), at(NOW_SECONDS)];
    const spent = (jti: string, expiresAtSeconds: number) =>
      ({ kind: "jti_fresh", issuer: "i", jti, expiresAtSeconds }) as const;
    const entries = [
      { token: gone, guards: [spent("old", NOW_SECONDS - 1)] },
      { token: kept, guards: [spent("new", NOW_SECONDS)] },
      { guards: [spent("older", NOW_SECONDS - 2)] },
      { guards: [] },
    ];
    for (const [seq, entry] of entries.entries()) {
      const event = {
        log: "a",
        seq,
        id: randomUUID(),
        timeMs: NOW_MS,
        type: "t",
        body: "{}",
        prev: "",
        hash: "",
      };
      assert.deepEqual(await store.log.append([{ ...entry, event }]), []);
    }
    assert.equal(await store.audit.sweep(NOW_SECONDS, 1), 2);
    assert.equal(await store.audit.sweep(NOW_SECONDS, 10), 1);
    assert.equal(await store.audit.sweep(NOW_SECONDS, 10), 0);
    assert.equal(await store.facts.token(gone.jti), undefined);
    assert.deepEqual((await store.facts.token(kept.jti))?.record, kept);
    const again = {
      log: "a",
      seq: 4,
      id: randomUUID(),
      timeMs: NOW_MS,
      type: "t",
      body: "{}",
      prev: "",
      hash: "",
    };
    const failures = await store.log.append([
      { event: again, guards: [spent("old", NOW_SECONDS), spent("new", NOW_SECONDS)] },
    ]);
    assert.deepEqual(failures, [{ entry: 0, guard: "jti_fresh" }]);
    assert.deepEqual(await store.log.append([{ event: again, guards: [spent("old", NOW_SECONDS + 9)] }]), []);
  });
}

const ALICE = subjectTerm(ISSUER, "alice");
const OF_ALICE = eventOf("alice");

/** What no port shows of the index: its rows. */
export function testIndexRows({ name, create }: Harness): void {
  test(`PROD-6.3-3 a first segment that is lost hides no event, and a log is removed from its beginning (${name})`, async (t) => {
    const { open, execute = assert.fail } = await create(t);
    const store = await open();
    const client = { client: { client_id: "c", auth_method: "m" }, ...OF_ALICE };
    const events = [];
    for (let seq = 0; seq < 6; seq++) events.push(await write(store, ["a", seq, seq], client));
    while (await indexLog(store, "a", 2));
    await execute("delete from event_segment where from_seq = 0");
    assert.deepEqual(await find(store, { terms: [[{ name: "client", value: "c" }]] }), events);
    assert.deepEqual(await find(store, { terms: [[ALICE]] }), events);
    await store.audit.prune("a", 3, 9);
    assert.deepEqual(
      (await store.log.read({ log: "a", limit: 9 })).map(({ seq }) => seq),
      [3, 4, 5],
    );
  });

  test(`after its last event a segment is removed with its lists (${name})`, async (t) => {
    const { open, select = assert.fail } = await create(t);
    const store = await open();
    for (let seq = 0; seq < 6; seq++) await write(store, ["a", seq, seq], OF_ALICE);
    while (await indexLog(store, "a", 2));
    const segmentsIn = async (text: string) => (await select(text)).map(({ id }) => id);
    const all = await segmentsIn("select id from event_segment order by id");
    for (const [belowSeq, gone] of [
      [1, 0],
      [3, 1],
      [4, 2],
    ] as const) {
      await store.audit.prune("a", belowSeq, 9);
      const left = await segmentsIn("select id from event_segment order by id");
      assert.deepEqual(left, all.slice(gone));
      assert.deepEqual(
        await segmentsIn("select distinct segment as id from event_segment_term order by segment"),
        left,
      );
      // AUDIT-D-16: and what is noted of its subjects.
      assert.deepEqual(
        await segmentsIn("select segment as id from event_segment_subject order by segment"),
        left,
      );
    }
  });

  test(`AUDIT-D-16 a segment that two instances build, or with another end, is noted once (${name})`, async (t) => {
    const { open, select = assert.fail } = await create(t);
    const store = await open();
    const events: AuditRecord[] = [];
    for (let seq = 0; seq < 10; seq++) {
      const event = await write(store, ["a", seq, seq], seq % 3 === 0 ? OF_ALICE : {});
      if (seq % 3 === 0) events.push(event);
    }
    while (await indexLog(store, "a", 2));
    const noted = async () => ({
      range: await select("select from_seq, to_seq from event_subject_range"),
      segments: await select("select subject, segment from event_segment_subject order by subject, segment"),
    });
    const once = await noted();
    assert.deepEqual(
      once.range.map((row) => [Number(row.from_seq), Number(row.to_seq)]),
      [[0, 9]],
    );
    for (const toSeq of [9, 8]) await buildSegment(store, { log: "a", fromSeq: 8, toSeq });
    assert.deepEqual(await noted(), once);
    const found = await store.audit.find({ terms: [[ALICE]], spans: await spansOf(store), limit: 100 });
    assert.deepEqual(found, events);
  });

  test(`AUDIT-D-16 subjects are noted from the last segment on that has none before it, and found before it too (${name})`, async (t) => {
    const { open, select = assert.fail } = await create(t);
    const store = await open();
    const events: AuditRecord[] = [];
    for (let seq = 0; seq < 6; seq++) events.push(await write(store, ["a", seq, seq], OF_ALICE));
    for (const fromSeq of [0, 4]) await buildSegment(store, { log: "a", fromSeq, toSeq: fromSeq + 1 });
    const rows = await select("select from_seq, to_seq from event_subject_range");
    assert.deepEqual(
      rows.map((row) => [Number(row.from_seq), Number(row.to_seq)]),
      [[4, 5]],
    );
    const found = await store.audit.find({ terms: [[ALICE]], spans: await spansOf(store), limit: 100 });
    assert.deepEqual(found, events);
  });
}

/** Few events in a segment, so that there are many segments. */
const SHORT = 16;
const [FEW, MANY] = [8, 60];
const SEARCHED = "as-1";

export async function fillSearched(store: Store): Promise<void> {
  await fill(store.log, {
    log: SEARCHED,
    count: MANY * SHORT,
    fromMs: NOW_MS,
    everyMs: 1,
    expiresAtSeconds: NOW_SECONDS,
    issuer: "https://as.example",
    idpIssuer: ISSUER,
  });
  for (let fromSeq = 0; fromSeq < MANY * SHORT; fromSeq += SHORT) {
    await buildSegment(store, { log: SEARCHED, fromSeq, toSeq: fromSeq + SHORT - 1 });
  }
}

type Searched = {
  find: Store["audit"]["find"];
  statements: () => number;
  execute: (sql: string) => Promise<unknown>;
};

/** Compares the statements among few events and among many, all of which have a segment. */
export async function testSearchCosts({ find, statements, execute }: Searched): Promise<void> {
  const [bob, one] = ["bob", "user-7919"].map((sub) => subjectTerm(ISSUER, sub));
  const [allowed, denied] = ["allow", "deny"].map((value): Term => ({ name: "outcome", value }));
  assert.ok(bob && one && allowed && denied);
  type Asked = Partial<AuditQuery> & { found?: number };
  const queries: Readonly<Record<string, Asked>> = {
    "the account of a user without events": { terms: [[bob]], newestFirst: true },
    "the account of a user with an event": { terms: [[one]], newestFirst: true, found: 1 },
    "an operator's subject": { terms: [[bob]] },
    "an operator's subject, and a filter that all match": { terms: [[allowed], [one]], found: 1 },
    "a filter that all match, and one that none matches": { terms: [[allowed], [denied]] },
    "two choices that none matches": { terms: [[bob, denied]] },
  };
  const among = async (segments: number, { found = 0, ...query }: Asked): Promise<number> => {
    const before = statements();
    const spans = [{ log: SEARCHED, afterSeq: -1, toSeq: segments * SHORT - 1 }];
    assert.equal((await find({ terms: [], limit: 50, ...query, spans })).length, found);
    return statements() - before;
  };
  const counts = new Map<string, number>();
  for (const [what, query] of Object.entries(queries)) {
    const [few, many] = [await among(FEW, query), await among(MANY, query)];
    assert.ok(few > 0, what);
    assert.equal(many, few, what);
    counts.set(what, few);
  }
  // Rows that are gone cannot have been read: of the index only what is noted for the subject is, and the first segment.
  await execute("delete from event_segment_term");
  await execute("delete from event_segment where from_seq > 0");
  for (const [what, query] of Object.entries(queries)) {
    if (query.found === undefined && query.terms?.flat().every(({ name }) => name === "subject"))
      assert.equal(await among(MANY, query), counts.get(what), what);
  }
}
