/** Audit trails made by the real journal, signer and checkpoints, in a store in memory. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import {
  type CheckpointOptions,
  type Checkpoints,
  startCheckpoints,
} from "../../src/adapters/audit/checkpoints.ts";
import { type OpenJournal, openJournal } from "../../src/adapters/audit/journal.ts";
import { makeClock } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { verifier } from "../../src/adapters/crypto/verifier.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import type { AuditEvent } from "../../src/audit/event.ts";
import type { Clock, Signer } from "../../src/ports.ts";
import { migratedFile } from "./migrated.ts";
import { openSigner } from "./signer.ts";
import { makeTimers, type TestTimers } from "./timers.ts";

export const EVENT: AuditEvent = { type: "token.issued", outcome: "allow", reason: "rule_match" };
/** The key-encryption key of each trail. */
export const TRAIL_KEY = new Uint8Array(32).fill(7);
export const ISSUER = "https://as.example";
/** Long enough that nothing happens by itself. */
export const NEVER = { events: 1_000_000, seconds: 86_400 };

export type Trail = {
  file: string;
  store: Store;
  signer: Signer;
  /** `set` moves the wall clock alone, `pass` both clocks. */
  clock: Clock & { set(ms: number): void; pass(ms: number): void };
  timers: TestTimers;
  /** What an operator was told. */
  faults: string[];
  /** The same about the witness. */
  witnessed: string[];
  journal(log: string): Promise<OpenJournal>;
  checkpoints(log: string, journal: OpenJournal, options?: Partial<CheckpointOptions>): Checkpoints;
};

export async function makeTrail(t: TestContext, file?: string): Promise<Trail> {
  const sqlite = file ?? (await migratedFile());
  const store = await openStore({ sqlite });
  t.after(() => store.close());
  let nowMs = 1_790_000_000_000;
  let monotonicMs = 0;
  const clock = {
    ...makeClock(
      () => nowMs++,
      () => monotonicMs,
    ),
    set(ms: number) {
      nowMs = ms;
    },
    pass(ms: number) {
      nowMs += ms;
      monotonicMs += ms;
    },
  };
  const signer = await openSigner(store, TRAIL_KEY, ["EdDSA"], clock, "checkpoint");
  const timers = makeTimers();
  const faults: string[] = [];
  const onFault = (words: string): void => void faults.push(words);
  const witnessed: string[] = [];
  const onWitness = (_works: boolean, words: string): void => void witnessed.push(words);
  return {
    ...{ file: sqlite, store, signer, clock, timers, faults, witnessed },
    journal: (log) => openJournal({ log, store: store.log, clock, random, onFatal: assert.fail }),
    checkpoints: (log, journal, options = {}) =>
      startCheckpoints({
        ...{
          log,
          issuer: ISSUER,
          store,
          journal,
          signer,
          verifier,
          clock,
          timers,
          every: NEVER,
          onFault,
          onWitness,
        },
        ...options,
      }),
  };
}

export async function record(journal: OpenJournal, count: number, event: AuditEvent = EVENT): Promise<void> {
  for (let one = 0; one < count; one++) assert.ok((await journal.record({ event })).ok);
}

/** Every body, as `GET /audit/events` exports them. */
export async function exportOf(store: Store): Promise<string[]> {
  const spans = (await store.audit.heads()).map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  const found = await store.audit.find({ terms: [], spans, limit: 100_000 });
  return found.map(({ body }) => body);
}
