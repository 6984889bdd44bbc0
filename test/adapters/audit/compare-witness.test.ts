import assert from "node:assert/strict";
import { appendFileSync, copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { compareWithWitness, type KnownHead } from "../../../src/adapters/audit/compare-witness.ts";
import { openWitness, witnessLine } from "../../../src/adapters/audit/witness.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import { ISSUER, makeTrail, record, type Trail } from "../../support/trail.ts";

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "mandate-compare-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function compare({ store, signer }: Trail, file: string, lastWritten?: KnownHead) {
  const witness = await openWitness({ file });
  const behind = await compareWithWitness({ witness, lastWritten, issuer: ISSUER, store, signer, verifier });
  await witness.close();
  return behind;
}

/** Two logs, and a checkpoint of as-1 in the witness, which covers six records of it and two of admin. */
async function witnessed(t: TestContext) {
  const folder = folderOf(t);
  const [database, file] = [join(folder, "mandate.sqlite"), join(folder, "witness")];
  const trail = await makeTrail(t, database);
  const admin = await trail.journal("admin");
  const journal = await trail.journal("as-1");
  await record(admin, 1);
  const checkpoints = trail.checkpoints("as-1", journal, { witness: await openWitness({ file }) });
  await record(journal, 1);
  await checkpoints.write();
  await trail.store.audit.heads();
  return { folder, file, database, trail, admin, journal, checkpoints };
}

test("AUDIT-D-10 a store that has what was witnessed, or more, is accepted", async (t) => {
  const { trail, file, journal, admin } = await witnessed(t);
  assert.deepEqual(await compare(trail, file), []);
  await record(journal, 3);
  await record(admin, 1);
  assert.deepEqual(await compare(trail, file), []);
});

test("AUDIT-D-12 a log that was retired is not reported as behind", async (t) => {
  const { file, folder } = await witnessed(t);
  const lost = await makeTrail(t, join(folder, "new.sqlite"));
  const ended = { type: "log.ended", outcome: "allow", reason: "by_operator" } as const;
  // The store was lost, and of its two logs one goes on.
  await lost.journal("admin");
  const gone = await lost.journal("as-1");
  assert.equal((await compare(lost, file)).length, 2);
  await record(gone, 1, ended);
  assert.deepEqual(
    (await compare(lost, file)).map(({ log }) => log),
    ["admin"],
  );
});

test("AUDIT-D-10 a lost store is found although its keys are lost too", async (t) => {
  const { file, folder } = await witnessed(t);
  const lost = await makeTrail(t, join(folder, "new.sqlite"));
  await lost.journal("as-1");
  const checkpointMs = 1_790_000_000_005;
  assert.deepEqual(await compare(lost, file), [
    { log: "admin", known: 2, stored: 0, forked: false, knownMs: checkpointMs },
    {
      ...{ log: "as-1", known: 2, stored: 1, forked: false, knownMs: checkpointMs },
      storedMs: 1_790_000_000_001,
    },
  ]);
});

test("AUDIT-D-10 a restored backup is found, also when it has been written to since", async (t) => {
  const { trail, file, folder, database, journal, checkpoints } = await witnessed(t);
  const copy = join(folder, "backup.sqlite");
  copyFileSync(database, copy);
  copyFileSync(`${database}-wal`, `${copy}-wal`);
  await record(journal, 3);
  await checkpoints.write();
  const restored = await makeTrail(t, copy);
  // The copy ends with the event of the first checkpoint.
  const shown = async () =>
    (await compare(restored, file)).map(({ log, known, stored, forked }) => [log, known, stored, forked]);
  assert.deepEqual(await shown(), [["as-1", 6, 3, false]]);
  await record(await restored.journal("as-1"), 9);
  assert.deepEqual(await shown(), [["as-1", 6, 12, true]]);
  assert.deepEqual(await compare(trail, file), []);
});

test("AUDIT-D-10 what the instance wrote last is missing, although no checkpoint covers it: found", async (t) => {
  const { trail, file, folder, database, journal } = await witnessed(t);
  const copy = join(folder, "replica.sqlite");
  copyFileSync(database, copy);
  copyFileSync(`${database}-wal`, `${copy}-wal`);
  await record(journal, 2);
  const last = journal.head();
  const replica = await makeTrail(t, copy);
  assert.deepEqual(await compare(replica, file), [], "the checkpoints are in the replica");
  const [behind, ...more] = await compare(replica, file, last);
  assert.deepEqual(more, []);
  assert.deepEqual(
    [behind?.log, behind?.known, behind?.stored, behind?.knownMs],
    ["as-1", last.seq + 1, last.seq - 1, last.timeMs],
  );
  assert.deepEqual(await compare(trail, file, last), []);
});

test("AUDIT-D-10 lines that are no checkpoints of this issuer, or not signed by our key, are ignored", async (t) => {
  const { trail, file } = await witnessed(t);
  const other = await makeTrail(t);
  const journal = await other.journal("as-1");
  await record(journal, 5);
  const witness = await openWitness({ file });
  const foreign = other.checkpoints("as-1", journal, { witness, issuer: "https://other.example" });
  await foreign.close();
  const [row] = await trail.store.audit.checkpoints(new Map(), 1);
  const forged = `${row?.jws.slice(0, -4)}AAAA`;
  appendFileSync(file, `\n{}\nnothing\n${witnessLine("a.b.c")}${witnessLine(forged)}{"checkpoint":"a`);
  assert.deepEqual(await compare(trail, file), []);
});
