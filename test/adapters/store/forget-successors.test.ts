import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { startForgetting } from "../../../src/adapters/store/forget-successors.ts";
import { openStore } from "../../../src/adapters/store/open.ts";
import { REFRESH_FORGET_MS, REFRESH_RETRY_SECONDS_MAX } from "../../../src/limits/people.ts";
import { makeTimers } from "../../support/timers.ts";
import { until } from "../../support/until.ts";
import { makeFamily, rotation } from "./families.contract.ts";
import { Writer } from "./store.contract.ts";

test("REFRESH-D-6 a kept successor is gone soon after the longest window", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "mandate-forget-"));
  t.after(() => rm(folder, { recursive: true }));
  const sqlite = join(folder, "store.db");
  const store = await openStore({ sqlite });
  t.after(() => store.close());
  const writer = new Writer(store);
  await writer.write({ family: { start: makeFamily(), digest: "digest-1" } });
  await writer.write({ family: rotation(1) });
  const timers = makeTimers();
  const forgetting = startForgetting(store, timers, assert.fail);
  const sealed = async () => (await store.families.find("digest-1"))?.rotated?.sealed;
  await forgetting.run();
  assert.equal(await sealed(), "sealed-2");
  // The clock of the store cannot be moved, so the rotation is.
  using db = new DatabaseSync(sqlite);
  db.exec(`update refresh_family set rotated_ms = rotated_ms - ${REFRESH_RETRY_SECONDS_MAX * 1000 + 1}`);
  timers.pass(REFRESH_FORGET_MS);
  await until(async () => (await sealed()) === undefined, "the successor is forgotten");
  await forgetting.close();
});
