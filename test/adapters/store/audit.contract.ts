/** The contract of both stores for reading and pruning the audit trail. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Store, StoredEvent } from "../../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import { sealEvent } from "../../../src/audit/event.ts";
import type { Span } from "../../../src/audit/query.ts";
import type { Term } from "../../../src/audit/terms.ts";
import { termsOf } from "../../../src/audit/terms.ts";
import type { AuditQuery, AuditRecord } from "../../../src/records.ts";
import type { Harness } from "./store.contract.ts";
import { makeToken, NOW_SECONDS } from "./store.contract.ts";

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
  const body = sealEvent(event, { log, seq, id, timeMs, prev: "" });
  const stored: StoredEvent = {
    log,
    seq,
    id,
    timeMs,
    type: event.type,
    body,
    prev: "",
    hash: `${log}${seq}`,
  };
  assert.deepEqual(await store.log.append([{ event: stored, terms: termsOf(event) }]), []);
  return { log, seq, timeMs, body };
}

async function spansOf(store: Store): Promise<Span[]> {
  return (await store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
}

async function find(store: Store, query: Partial<AuditQuery> = {}): Promise<readonly AuditRecord[]> {
  return store.audit.find({ terms: [], spans: await spansOf(store), limit: 100, ...query });
}

const granted = (jti: string, parents: string[] = []): Pick<AuditEvent, "granted"> => ({
  granted: {
    jti,
    token_type: "Bearer",
    sub: "alice",
    aud: "api",
    scope: "a",
    exp: 0,
    act_depth: 0,
    kid: "k",
    parent_jti: parents,
  },
});

export function testAuditRows({ name, create }: Harness): void {
  const token = { type: "access_token", jti: "shown", fingerprint: "f" };
  const check = (title: string, body: (store: Store) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body(await (await create(t)).open()));

  check(
    "PROD-6.3-3 finds events of all logs by time, log and number and returns their text",
    async (store) => {
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
    },
  );

  check(
    "PROD-6.3-3 finds the newest events first, and continues with what is older, by one term and by several",
    async (store) => {
      const alice = { subject: { iss: "https://idp.example", sub: "alice", kind: "user", token } } as const;
      const newest = [
        await write(store, ["b", 0, 20], alice),
        await write(store, ["a", 1, 20], { ...alice, type: "token.denied" }),
        await write(store, ["a", 0, 20], alice),
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

  check("PROD-6.3-3 finds only events in the given spans of the logs", async (store) => {
    const a = [];
    for (let seq = 0; seq < 5; seq++) a.push(await write(store, ["a", seq, 100 - seq]));
    await write(store, ["b", 0, 50]);
    const spans = [{ log: "a", afterSeq: 0, toSeq: 3 }];
    assert.deepEqual(await find(store, { spans }), a.slice(1, 4).reverse());
    assert.deepEqual(await find(store, { spans: [] }), []);
    assert.equal(await store.audit.earliestMs(spans), 97);
    assert.equal(await store.audit.earliestMs([{ log: "a", afterSeq: 4, toSeq: 9 }]), undefined);
    assert.equal(await store.audit.earliestMs(await spansOf(store)), 50);
  });

  const planner = "spiffe://td.example/agents/planner";
  const booking = "spiffe://td.example/agents/booking";
  const exchange: Partial<AuditEvent> = {
    type: "token_exchange.delegation",
    client: { client_id: "c-booking", auth_method: "spiffe_jwt", workload: booking },
    subject: { iss: "https://idp.example", sub: "alice", kind: "user", token },
    actor: { iss: "https://as.example", sub: booking, token: { ...token, jti: "svid" } },
    chain: [{ iss: "https://as.example", sub: planner }],
    requested: { audience: ["desk"], resource: ["https://desk.example"] },
    policy: { digest: "d", rule_id: "rule-1" },
    ...granted("issued", ["shown", "older"]),
    detail: { client_id: "c-made" },
  };
  const found: Record<string, Term> = {
    "its type": { name: "type", value: "token_exchange.delegation" },
    "its outcome": { name: "outcome", value: "allow" },
    "its client": { name: "client", value: "c-booking" },
    "the client in its detail": { name: "client", value: "c-made" },
    "the actor": { name: "actor", value: booking },
    "an actor in the chain": { name: "actor", value: planner },
    "the subject with its issuer": { name: "subject", value: "https://idp.example alice" },
    "the granted target": { name: "target", value: "api" },
    "a requested audience": { name: "target", value: "desk" },
    "a requested resource": { name: "target", value: "https://desk.example" },
    "its rule": { name: "rule", value: "rule-1" },
    "the token that it issued": { name: "granted", value: "issued" },
    "a presented token": { name: "presented", value: "shown" },
    "an ancestor": { name: "ancestor", value: "older" },
  };
  for (const [what, term] of Object.entries(found)) {
    check(`PROD-6.3-3 finds an event by ${what} and by no other term`, async (store) => {
      await write(store, ["a", 0, 1], { outcome: "deny" });
      const event = await write(store, ["a", 1, 2], exchange);
      assert.deepEqual(await find(store, { terms: [[term]] }), [event]);
      assert.deepEqual(await find(store, { terms: [[{ ...term, value: `${term.value} ` }]] }), []);
      const other = term.name === "rule" ? "client" : "rule";
      assert.deepEqual(await find(store, { terms: [[{ name: other, value: term.value }]] }), []);
    });
  }

  check("PROD-6.3-3 all of several filters must match, by any choice of each", async (store) => {
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

  const spellings = ["x".repeat(10_000), "\0", "\ud800", "é", "e\u0301", '"', "' or 1=1 --"];
  check(
    "AUDIT-D-7 any client_id in a request is recorded and found only by the same spelling",
    async (store) => {
      for (const [seq, value] of spellings.entries()) {
        const id = randomUUID();
        const event = { log: "a", seq, id, timeMs: seq, type: "t", body: `{"n":${seq}}`, prev: "", hash: "" };
        await store.log.append([{ event, terms: [{ name: "client", value }] }]);
      }
      for (const [seq, value] of spellings.entries()) {
        const [event, ...more] = await find(store, { terms: [[{ name: "client", value }]] });
        assert.deepEqual([event?.seq, more], [seq, []]);
      }
    },
  );

  check("AUDIT-D-7 only a few of the requested targets become terms of the event", async (store) => {
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

  check("prunes the oldest events of one log with their terms", async (store) => {
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
