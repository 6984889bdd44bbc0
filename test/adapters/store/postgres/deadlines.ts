/** How long a call to a PostgreSQL that is away may take, and how it ends. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { STORE_RETRY_MS } from "../../../../src/limits/store.ts";
import { StoreUnavailable } from "../../../../src/ports.ts";
import type { Awaitable } from "../../../../src/result.ts";
import { assertShort, stretch } from "../../../support/yardstick.ts";

/** Of every call, for a store under test. */
export const TIMEOUT_MS = 500;
/** What a busy machine may add. */
export const GRACE_MS = 1_000;

export async function assertUnavailable(call: () => Awaitable<unknown>): Promise<void> {
  const waited = stretch();
  await assert.rejects(async () => call(), StoreUnavailable);
  assertShort(waited, TIMEOUT_MS + GRACE_MS, "a call to a PostgreSQL that is away");
}

export async function untilAvailable<T>(call: () => Awaitable<T>): Promise<T> {
  const waited = stretch();
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isLate = waited.tookMs() > 10 * STORE_RETRY_MS && !waited.wasBusy();
      if (!(error instanceof StoreUnavailable) || isLate) throw error;
      await sleep(STORE_RETRY_MS / 10);
    }
  }
}
