import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setClock } from "../../scripts/clock-file.ts";

test("a server that opened the clock file before the clock was set reads the whole of what was there", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "mandate-clock-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "clock.json");
  const before = { wallMs: 0, monotonicMs: 86_400_000 };
  setClock(file, before);
  const opened = openSync(file, "r");
  t.after(() => closeSync(opened));
  const now = { wallMs: 1, monotonicMs: 2 };
  setClock(file, now);
  assert.deepEqual(JSON.parse(readFileSync(opened, "utf8")), before);
  assert.deepEqual(JSON.parse(readFileSync(file, "utf8")), now);
});
