/** What an instance wrote last, in a file beside the witness's. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openLastWritten } from "../../../src/adapters/audit/last-written.ts";

function fileIn(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "mandate-last-written-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "checkpoints.one");
}

const headAt = (seq: number) => ({
  log: "i".repeat(63),
  seq,
  hash: "f".repeat(64),
  timeMs: 1_790_000_000_000,
});

const ISSUER = "https://as.example";

async function readIn(path: string, issuer = ISSUER) {
  const file = await openLastWritten(path, issuer);
  const found = await file.read();
  await file.close();
  return found;
}

test("AUDIT-D-10 of what was noted the last is found by the next process, however large its numbers", async (t) => {
  const path = fileIn(t);
  assert.equal(await readIn(path), undefined, "nothing was noted");
  const file = await openLastWritten(path, ISSUER);
  for (const seq of [Number.MAX_SAFE_INTEGER, 9, 10, 3]) file.note(headAt(seq));
  await file.close();
  assert.deepEqual(await readIn(path), headAt(3));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const { size } = statSync(path);
  const again = await openLastWritten(path, ISSUER);
  again.note(headAt(Number.MAX_SAFE_INTEGER));
  await again.close();
  assert.deepEqual(await readIn(path), headAt(Number.MAX_SAFE_INTEGER));
  assert.equal(statSync(path).size, size, "it does not grow");
});

test("AUDIT-D-10 a line that was left incomplete, or that is no head, is as none", async (t) => {
  const path = fileIn(t);
  const file = await openLastWritten(path, ISSUER);
  file.note(headAt(7));
  await file.close();
  truncateSync(path, 100);
  assert.equal(await readIn(path), undefined);
  for (const text of ["", "null", "[]", '{"log":"one","seq":-1,"hash":"a","timeMs":1}', '{"log":"one"}']) {
    writeFileSync(path, text);
    assert.equal(await readIn(path), undefined, text);
  }
});

test("AUDIT-D-10 the line of another issuer, whose witness was copied, is as none", async (t) => {
  const path = fileIn(t);
  const file = await openLastWritten(path, ISSUER);
  file.note(headAt(7));
  await file.close();
  assert.equal(await readIn(path, "https://staging.example"), undefined);
  assert.deepEqual(await readIn(path), headAt(7));
});

test("a folder that is missing is an error, not a file in another place", async (t) => {
  await assert.rejects(openLastWritten(join(fileIn(t), "none"), ISSUER), { code: /^(ENOENT|ENOTDIR)$/ });
});
