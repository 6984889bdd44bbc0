import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { readOwnCheckpoint } from "../../../src/adapters/audit/checkpoints.ts";
import type { JournalEntry, OpenJournal } from "../../../src/adapters/audit/journal.ts";
import { startPolicyArchive } from "../../../src/adapters/audit/policy-archive.ts";
import { startRetention } from "../../../src/adapters/audit/retention.ts";
import { sha256, TreeHashes } from "../../../src/adapters/audit/tree-hashes.ts";
import { openWitness, type Witness } from "../../../src/adapters/audit/witness.ts";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import type { StoredEvent } from "../../../src/adapters/store/store.ts";
import { buildCheckpoint, type Checkpoint, readCheckpoint } from "../../../src/audit/checkpoint.ts";
import { appendLeaf, EMPTY_TREE, rootOf } from "../../../src/audit/tree.ts";
import { EXPIRED_GRACE_SECONDS } from "../../../src/limits/store.ts";
import type { Entry } from "../../../src/records.ts";
import type { Settings } from "../../../src/settings/settings.ts";
import { parseJws } from "../../../src/spec/rfc7515.ts";
import { openSigner } from "../../support/signer.ts";
import { EVENT, ISSUER, makeTrail, NEVER, record, type Trail } from "../../support/trail.ts";
import { until } from "../../support/until.ts";
import { makeToken } from "../store/store.contract.ts";

const DAY_MS = 86_400_000;

const eventsOf = ({ store }: Trail, log: string): Promise<readonly StoredEvent[]> =>
  store.log.read({ log, limit: 100_000 });

async function checkpointsOf({ store, signer }: Trail): Promise<Checkpoint[]> {
  const rows = await store.audit.checkpoints(new Map(), 1000);
  const read = await Promise.all(rows.map((row) => readOwnCheckpoint(row, signer, verifier)));
  return read.map((one) => one ?? assert.fail("a checkpoint has no valid signature"));
}

const sizesOf = async (trail: Trail, log = "as-1"): Promise<number[]> =>
  (await checkpointsOf(trail)).filter((one) => one.log === log).map(({ tree }) => tree.size);

/** Every checkpoint agrees with the stored events of its log. */
async function assertSound(trail: Trail): Promise<void> {
  for (const { log, tree, root, hash, issuer } of await checkpointsOf(trail)) {
    const events = (await eventsOf(trail, log)).slice(0, tree.size);
    const leaves = events.map((event) => Uint8Array.fromHex(event.hash));
    assert.equal(events.length, tree.size);
    assert.equal(
      rootOf(
        leaves.reduce((tree, leaf) => appendLeaf(tree, leaf, sha256), EMPTY_TREE),
        sha256,
      ).toHex(),
      root,
    );
    assert.equal(events.at(-1)?.hash, hash);
    assert.equal(issuer, ISSUER);
  }
}

test("RFC9162-2.1.1-2 a checkpoint signs the tree of all records so far and is recorded in the log", async (t) => {
  const trail = await makeTrail(t);
  const admin = await trail.journal("admin");
  const journal = await trail.journal("as-1");
  await record(admin, 2);
  await record(journal, 3);
  const checkpoints = trail.checkpoints("as-1", journal);
  await checkpoints.write();
  await record(journal, 7);
  await checkpoints.write();
  await checkpoints.close();
  assert.deepEqual(await sizesOf(trail), [4, 12]);
  await assertSound(trail);
  const [first] = await checkpointsOf(trail);
  const [head] = (await eventsOf(trail, "admin")).slice(-1);
  assert.deepEqual([...(first?.heads ?? [])], [["admin", { size: 3, hash: head?.hash }]]);
  const recorded = (await eventsOf(trail, "as-1")).filter(({ type }) => type === "log.checkpoint");
  assert.deepEqual(
    recorded.map(({ seq, body }) => [seq, JSON.parse(body).detail.tree_size, JSON.parse(body).detail.root]),
    [
      [4, 4, first?.root],
      [12, 12, (await checkpointsOf(trail))[1]?.root],
    ],
  );
});

test("a checkpoint has its own typ, and a key that signs nothing else and is not published with the token keys", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  await trail.checkpoints("as-1", journal).close();
  const [row] = await trail.store.audit.checkpoints(new Map(), 1);
  const jws = parseJws(row?.jws ?? "");
  assert.ok(jws.ok);
  const { header } = jws.value;
  assert.deepEqual([header.typ, header.alg], ["audit-checkpoint+jwt", "EdDSA"]);
  const tokens = await openSigner(trail.store, new Uint8Array(32).fill(7), ["ES256"], trail.clock);
  const kids = (signer: typeof tokens) => signer.published().map(({ kid }) => kid);
  assert.ok(kids(trail.signer).includes(header.kid));
  assert.equal(kids(tokens).length, 2);
  assert.ok(!kids(tokens).includes(header.kid));
  assert.equal(tokens.own(header), undefined);
});

test("a checkpoint is written after the configured number of records", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  const checkpoints = trail.checkpoints("as-1", journal, { every: { ...NEVER, events: 5 } });
  await checkpoints.write();
  await record(journal, 12);
  await until(async () => ((await sizesOf(trail)).at(-1) ?? 0) >= 11, "the expected state is reached");
  const sizes = await sizesOf(trail);
  assert.equal(sizes[0], 1);
  assert.ok(sizes.length >= 3, String(sizes));
  await checkpoints.close();
  await assertSound(trail);
});

/** The journal, where so many events are written together with each checkpoint. */
const withCompany = (journal: OpenJournal, count: number): OpenJournal => ({
  record(entry: JournalEntry) {
    const company = entry.event.reason === "signed" ? count : 0;
    for (let one = 0; one < company; one++) void journal.record({ event: EVENT });
    return journal.record(entry as Entry);
  },
  storeAnswers: () => journal.storeAnswers(),
  outage: journal.outage,
  status: () => journal.status(),
  follow: (listener) => journal.follow(listener),
  head: () => journal.head(),
  giveUp: () => journal.giveUp(),
  close: () => journal.close(),
});

test("a record beside a checkpoint counts for the next one, and does not bring one at once", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  const options = { every: { events: 4, seconds: 86_400 } };
  const checkpoints = trail.checkpoints("as-1", withCompany(journal, 1), options);
  await record(journal, 3);
  await until(async () => (await sizesOf(trail)).length > 0, "the expected state is reached");
  await checkpoints.close();
  // The second one is written by the end.
  assert.deepEqual(await sizesOf(trail), [4, 6]);
});

test("the witness has the last stored checkpoint when the server ends, whatever is recorded beside it", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  const delivered: string[] = [];
  let closed = false;
  const witness: Witness = {
    async deliver(jws) {
      assert.ok(!closed, "the witness is closed");
      delivered.push(jws);
    },
    async close() {
      closed = true;
      // A file is closed by another thread: what is queued goes on meanwhile.
      await sleep(20);
    },
  };
  const options = { witness, every: { events: 4, seconds: 86_400 } };
  const checkpoints = trail.checkpoints("as-1", withCompany(journal, 4), options);
  await record(journal, 1);
  await checkpoints.close();
  await journal.close();
  const stored = await trail.store.audit.checkpoints(new Map(), 10);
  assert.deepEqual(
    stored.map(({ jws }) => jws),
    delivered,
  );
});

test("a checkpoint is written after the configured number of seconds if there are new records", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  await record(journal, 2);
  const checkpoints = trail.checkpoints("as-1", journal, { every: { ...NEVER, seconds: 60 } });
  trail.timers.pass(59_999);
  await record(journal, 1);
  assert.deepEqual(await sizesOf(trail), []);
  trail.timers.pass(1);
  await until(async () => (await sizesOf(trail)).length === 1, "the expected state is reached");
  trail.timers.pass(60_000);
  await checkpoints.close();
  assert.deepEqual(await sizesOf(trail), [4]);
});

test("idle instances write no checkpoints because of each other, and one with new records writes one", async (t) => {
  const trail = await makeTrail(t);
  const [one, two, admin] = [
    await trail.journal("as-1"),
    await trail.journal("as-2"),
    await trail.journal("admin"),
  ];
  const kept = [trail.checkpoints("as-1", one), trail.checkpoints("as-2", two)];
  for (let round = 0; round < 5; round++) for (const checkpoints of kept) await checkpoints.write();
  const count = (await checkpointsOf(trail)).length;
  assert.ok(count <= 3, String(count));
  await record(admin, 1);
  await kept[0]?.write();
  const last = (await checkpointsOf(trail)).filter(({ log }) => log === "as-1").at(-1);
  assert.equal(last?.heads.get("admin")?.size, 2);
  for (const checkpoints of kept) await checkpoints.close();
  await assertSound(trail);
});

test("after a restart checkpoints continue from the last one and cover the records after it", async (t) => {
  const trail = await makeTrail(t);
  const first = await trail.journal("as-1");
  await record(first, 5);
  const checkpoints = trail.checkpoints("as-1", first);
  await checkpoints.write();
  // The process ends without closing its checkpoints.
  await record(first, 4);
  const second = await trail.journal("as-1");
  const again = trail.checkpoints("as-1", second);
  await record(second, 2);
  await again.write();
  await record(second, 3);
  await again.close();
  assert.deepEqual(await sizesOf(trail), [6, 13, 17]);
  await assertSound(trail);
  assert.deepEqual(trail.faults, []);
});

const tamperings = {
  "a record after the checkpoint was changed": [
    "update event set body = replace(body, 'rule_match', 'other') where seq = 8",
    /record 8: hash_differs/,
  ],
  "a record after the checkpoint is missing": ["delete from event where seq = 8", /record 8: record_missing/],
  "the end of the log is missing, including records that the checkpoint covers": [
    "delete from event where seq >= 4",
    /record 4: it is missing, although a checkpoint covers it/,
  ],
  "the last record that the checkpoint covers was changed, and the next one chained to it": [
    "update event set prev = hash || '' where seq = 6; update event set prev = '0' where seq = 6",
    /record 6: prev_differs/,
  ],
  "the checkpoint has a wrong signature": [
    "update checkpoint set jws = substr(jws, 1, length(jws) - 4) || 'AAAA'",
    /record 5: its checkpoint was not signed by this server/,
  ],
} as const;
for (const [what, [sql, message]] of Object.entries(tamperings)) {
  test(`AUDIT-D-7 if ${what}, no further checkpoint is signed and the failure is reported`, async (t) => {
    const file = fileOf(t);
    const trail = await makeTrail(t, file);
    const first = await trail.journal("as-1");
    await record(first, 5);
    await trail.checkpoints("as-1", first).write();
    await record(first, 4);
    using db = new DatabaseSync(file);
    db.exec(sql);
    const second = await trail.journal("as-1");
    const again = trail.checkpoints("as-1", second);
    await again.write();
    await record(second, 1);
    await again.close();
    assert.equal((await trail.store.audit.checkpoints(new Map(), 10)).length, 1);
    assert.match(trail.faults.join("\n"), message);
    assert.equal(trail.faults.length, 1);
    const failures = (await eventsOf(trail, "as-1")).filter(({ type }) => type === "log.verification_failed");
    assert.equal(failures.length, 1);
  });
}

function fileOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "mandate-trail-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "mandate.sqlite");
}

/** A real witness file over an unreliable connection. */
async function unreliable(t: TestContext) {
  const file = `${fileOf(t)}.witness`;
  const witness = await openWitness({ file });
  const line = {
    away: false,
    kept: () =>
      readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((text) => JSON.parse(text).checkpoint),
    witness: {
      ...witness,
      async deliver(jws) {
        if (line.away) throw new Error("away");
        await witness.deliver(jws);
      },
    } satisfies Witness as Witness,
  };
  return line;
}

test("each change of the witness's state is reported once, and it gets the latest checkpoint when it is back", async (t) => {
  const trail = await makeTrail(t);
  const journal = await trail.journal("as-1");
  const line = await unreliable(t);
  const checkpoints = trail.checkpoints("as-1", journal, { witness: line.witness });
  await checkpoints.write();
  line.away = true;
  for (let round = 0; round < 3; round++) {
    await record(journal, 1);
    await checkpoints.write();
  }
  const [works, fails] = ["the witness accepts checkpoints", "the witness does not accept checkpoints: away"];
  assert.deepEqual(trail.witnessed, [works, fails]);
  trail.clock.pass(60_000);
  // A wall clock that is set changes no age.
  trail.clock.set(trail.clock.nowMs() - 2 * DAY_MS);
  assert.deepEqual(checkpoints.witness(), { works: false, ageSeconds: 60 });
  line.away = false;
  await checkpoints.write();
  assert.deepEqual(trail.witnessed, [works, fails, works]);
  assert.deepEqual(checkpoints.witness(), { works: true, ageSeconds: 0 });
  const rows = await trail.store.audit.checkpoints(new Map(), 100);
  assert.deepEqual(line.kept(), [rows[0]?.jws, rows.at(-1)?.jws]);
  const failures = (await eventsOf(trail, "as-1")).filter(({ body }) => body.includes("witness_failed"));
  assert.equal(failures.length, 1);
  await checkpoints.close();
  await assert.rejects(line.witness.deliver("a.b.c"), /closed/);
});

test("after a restart the witness gets the last checkpoint, which it may have missed", async (t) => {
  const trail = await makeTrail(t);
  const first = await trail.journal("as-1");
  await trail.checkpoints("as-1", first).write();
  const [row] = await trail.store.audit.checkpoints(new Map(), 1);
  const line = await unreliable(t);
  const again = trail.checkpoints("as-1", await trail.journal("as-1"), { witness: line.witness });
  await again.write();
  assert.equal(line.kept()[0], row?.jws);
  await again.close();
});

// --- the claims ---------------------------------------------------------------------------------------------------

const CLAIMS = buildCheckpoint({
  issuer: ISSUER,
  log: "as-1",
  tree: { size: 3, peaks: [new Uint8Array(32), new Uint8Array(32)] },
  root: "0".repeat(64),
  hash: "1".repeat(64),
  timeMs: 0,
  heads: new Map([["admin", { size: 1, hash: "2".repeat(64) }]]),
});
const asJws = (claims: object, typ = "audit-checkpoint+jwt") => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const jws = parseJws(`${part({ alg: "ES256", typ })}.${part(claims)}.AAAA`);
  assert.ok(jws.ok);
  return jws.value;
};
const claims: [string, object, string | undefined][] = [
  ["the claims that are issued", CLAIMS, undefined],
  ["a size that its peaks cannot have", { ...CLAIMS, tree_size: 4 }, "checkpoint_malformed"],
  ["an empty tree", { ...CLAIMS, tree_size: 0, peaks: [] }, "checkpoint_malformed"],
  ["a root that is not a hash", { ...CLAIMS, root: "0" }, "checkpoint_malformed"],
  ["a malformed time", { ...CLAIMS, time: "now" }, "checkpoint_malformed"],
  ["a missing log", { ...CLAIMS, log: undefined }, "checkpoint_malformed"],
  ["malformed heads", { ...CLAIMS, heads: { admin: 1 } }, "checkpoint_malformed"],
];
for (const [what, value, want] of claims) {
  test(`AUDIT-D-7 reading a checkpoint: ${what}`, () => {
    const got = readCheckpoint(asJws(value));
    assert.equal(got.ok ? undefined : got.error.kind, want);
    if (got.ok) assert.deepEqual(buildCheckpoint(got.value), CLAIMS);
  });
}
test("RFC8725-3.11-v1 another type of JWT as checkpoint is refused", () => {
  for (const typ of ["at+jwt", "JWT"]) {
    const got = readCheckpoint(asJws(CLAIMS, typ));
    assert.equal(got.ok ? undefined : got.error.kind, "checkpoint_type_refused");
  }
});

// --- retention ----------------------------------------------------------------------------------------------------

async function makeOld(t: TestContext, file?: string) {
  const trail = await makeTrail(t, file);
  const [journal, admin] = [await trail.journal("as-1"), await trail.journal("admin")];
  const checkpoints = trail.checkpoints("as-1", journal);
  await record(admin, 3);
  await record(journal, 5);
  await checkpoints.write();
  await record(journal, 2);
  const { store, signer, clock, timers, faults } = trail;
  const onFault = (words: string): void => void faults.push(words);
  const retention = startRetention({
    store,
    journal,
    signer,
    verifier,
    clock,
    timers,
    hash,
    digest: () => "",
    days: 10,
    onFault,
  });
  t.after(() => retention.close());
  const seqs = async (log: string) => (await eventsOf(trail, log)).map(({ seq }) => seq);
  return { trail, journal, checkpoints, retention, seqs };
}

test("REPL-D-2 the policy in force is archived at the start and by a reload, and goes with the last event that it decided", async (t) => {
  const { trail, journal, retention, checkpoints } = await makeOld(t);
  const { store, clock, timers } = trail;
  const policyOf = (digest: string) => ({ digest, issuer: ISSUER, written: { policies: [], targets: [] } });
  let policy = policyOf("sha256:a") as unknown as Settings["policy"];
  const faults: string[] = [];
  const onFault = (words: string): void => void faults.push(words);
  const archive = startPolicyArchive({ store, settings: () => ({ policy }), clock, timers, onFault });
  t.after(() => archive.close());
  await archive.run();
  const kept = await store.policies.find("sha256:a");
  assert.equal(kept?.body, `{"issuer":"${ISSUER}","policies":[],"targets":[],"v":1}`);
  clock.set(clock.nowMs() + 5 * DAY_MS);
  policy = policyOf("sha256:b") as unknown as Settings["policy"];
  await archive.run();
  await retention.run();
  assert.deepEqual(await store.policies.digests(), ["sha256:a", "sha256:b"]);
  await record(await trail.journal("admin"), 1);
  await record(journal, 1);
  await checkpoints.write();
  clock.set(clock.nowMs() + 11 * DAY_MS);
  await archive.run();
  await retention.run();
  assert.deepEqual(await store.policies.digests(), ["sha256:b"]);
  assert.deepEqual(faults, []);
});

test("only records that are older than the retention and covered by a checkpoint are removed", async (t) => {
  const { trail, retention, seqs } = await makeOld(t);
  await retention.run();
  assert.deepEqual(await seqs("as-1"), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  trail.clock.set(trail.clock.nowMs() + 11 * DAY_MS);
  await retention.run();
  // The records from the one that the checkpoint names; the last one records the removal.
  assert.deepEqual(await seqs("as-1"), [5, 6, 7, 8, 9]);
  assert.deepEqual(await seqs("admin"), [3]);
  const [last] = (await eventsOf(trail, "as-1")).slice(-1);
  assert.equal(last?.type, "log.pruned");
  assert.deepEqual(JSON.parse(last?.body ?? "").detail, { below: { admin: 3, "as-1": 5 } });
  // A second run removes and records nothing.
  await retention.run();
  assert.deepEqual(await seqs("as-1"), [5, 6, 7, 8, 9]);
});

test("RCPT-D-4 a pruned log continues, and so do its checkpoints and its tree", async (t) => {
  const { trail, retention, journal, checkpoints } = await makeOld(t);
  trail.clock.set(trail.clock.nowMs() + 11 * DAY_MS);
  await retention.run();
  await record(journal, 3);
  await checkpoints.close();
  const again = await trail.journal("as-1");
  const kept = trail.checkpoints("as-1", again);
  await record(again, 1);
  await kept.close();
  assert.deepEqual(trail.faults, []);
  assert.deepEqual(await sizesOf(trail), [6, 13, 15]);
  const { store, signer } = trail;
  const row = await store.audit.checkpoint("as-1", Number.MAX_SAFE_INTEGER);
  const last = row && (await readOwnCheckpoint(row, signer, verifier));
  assert.equal((await new TreeHashes(store.audit, "as-1").root([0, 15])).toHex(), last?.root);
});

test("several instances prune at the same time without conflict", async (t) => {
  const { trail, retention, seqs } = await makeOld(t);
  const { store, signer, clock, timers, faults } = trail;
  const journal = await trail.journal("as-2");
  const onFault = (words: string): void => void faults.push(words);
  const other = startRetention({
    store,
    journal,
    signer,
    verifier,
    clock,
    timers,
    hash,
    digest: () => "",
    days: 10,
    onFault,
  });
  clock.set(clock.nowMs() + 11 * DAY_MS);
  await Promise.all([retention.run(), other.run()]);
  await other.close();
  assert.deepEqual((await seqs("as-1")).slice(0, 4), [5, 6, 7, 8]);
  assert.deepEqual(faults, []);
});

test("by a checkpoint with a wrong signature or one that does not fit the log nothing is removed", async (t) => {
  for (const sql of [
    "update checkpoint set jws = substr(jws, 1, length(jws) - 4) || 'AAAA'",
    "update event set body = replace(body, 'rule_match', 'other') where seq = 5 and log = 'as-1'; delete from event where log = 'admin'",
  ]) {
    const file = fileOf(t);
    const { trail, retention, seqs } = await makeOld(t, file);
    using db = new DatabaseSync(file);
    db.exec(sql);
    trail.clock.set(trail.clock.nowMs() + 11 * DAY_MS);
    await retention.run();
    assert.deepEqual(await seqs("as-1"), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  }
});

test("the rows of tokens that expired before the kept period are removed", async (t) => {
  const { trail, journal, retention } = await makeOld(t);
  const nowSeconds = trail.clock.nowSeconds();
  const ages = { gone: EXPIRED_GRACE_SECONDS + 60, kept: EXPIRED_GRACE_SECONDS - 60 };
  for (const [jti, age] of Object.entries(ages)) {
    const token = makeToken({ jti, expiresAtSeconds: nowSeconds - age });
    assert.ok((await journal.record({ event: EVENT, token })).ok);
  }
  await retention.run();
  assert.equal(await trail.store.facts.token("gone"), undefined);
  assert.notEqual(await trail.store.facts.token("kept"), undefined);
});

test("AUDIT-D-12 checkpoints name the end of a retired log once, and then leave its place to others", async (t) => {
  const trail = await makeTrail(t);
  const gone = await trail.journal("as-2");
  const journal = await trail.journal("as-1");
  const checkpoints = trail.checkpoints("as-1", journal);
  const named = async (): Promise<(number | undefined)[]> =>
    (await checkpointsOf(trail)).map(({ heads }) => heads.get("as-2")?.size);
  await checkpoints.write();
  await record(gone, 1, { type: "log.ended", outcome: "allow", reason: "by_operator" });
  await checkpoints.write();
  await record(journal, 1);
  await checkpoints.write();
  assert.deepEqual(await named(), [1, 2, undefined]);
  await checkpoints.close();
  await assertSound(trail);
});
