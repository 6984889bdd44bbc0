/** A journal for tests, at a time that stands still, and its chain as the stored texts tell it. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type JournalEntry,
  type JournalOptions,
  type OpenJournal,
  openJournal,
} from "../../src/adapters/audit/journal.ts";
import { makeClock } from "../../src/adapters/clock.ts";
import type { EventLog, Store, StoredEvent } from "../../src/adapters/store/store.ts";
import { STORE_RETRY_MS } from "../../src/limits/store.ts";
import { StoreUnavailable } from "../../src/ports.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { canonicalizeSparse } from "../../src/spec/rfc8785.ts";

const NOW_MS = 1_790_000_000_000;

export async function open(store: EventLog, options: Partial<JournalOptions> = {}): Promise<OpenJournal> {
  const random = { id: () => randomBytes(16).toString("base64url") };
  const clock = makeClock(() => NOW_MS);
  // The deadline has tests of its own; the others write hundreds of events at once, on whatever machine.
  const timeoutMs = 60_000;
  return openJournal({ log: "as-1", store, clock, random, onFatal: assert.fail, timeoutMs, ...options });
}

async function readAll(store: Store, log = "as-1"): Promise<readonly StoredEvent[]> {
  return store.log.read({ log, limit: 100_000 });
}

const sha256 = (...parts: (string | Buffer)[]): Buffer =>
  createHash("sha256")
    .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
    .digest();

/** RCPT-D-1, RCPT-D-7: the leaf of a record, as another program would make it. */
export function leafOf({
  v,
  log,
  seq,
  prev,
  salt,
  time,
  type,
  actor,
  chain,
  mode,
  subject,
  ...rest
}: JsonObject): string {
  const granted = rest.granted as JsonObject | undefined;
  const policy = rest.policy as JsonObject | undefined;
  const pol = Buffer.from(String(policy?.digest).slice("sha256:".length), "hex").toString("base64url");
  const token = granted && {
    exp: granted.exp,
    fp: granted.fingerprint,
    jti: granted.jti,
    pol,
    rule: policy?.rule_id,
  };
  const common = {
    actor,
    chain,
    consent: policy?.consent,
    mode,
    scope: granted?.scope,
    subject,
    target: granted?.aud,
  };
  const salts = createHash("sha512")
    .update(Buffer.from(String(salt), "base64url"))
    .digest();
  const [t, c, r] = [{ ...token, time, type }, common, rest].map((part, index) =>
    sha256(salts.subarray(16 * index, 16 * index + 16), canonicalizeSparse(part as JsonObject)).toString(
      "base64url",
    ),
  );
  const before = Buffer.from(String(prev), "hex").toString("base64url");
  return sha256("\0", canonicalizeSparse({ c, log, prev: before, r, seq, t, v } as JsonObject)).toString(
    "hex",
  );
}

/** Verifies the chain from its beginning, from the stored texts alone. */
export async function assertChain(store: Store, log = "as-1"): Promise<readonly StoredEvent[]> {
  const events = await readAll(store, log);
  let prev = "0".repeat(64);
  for (const [seq, event] of events.entries()) {
    assert.equal(event.hash, leafOf(JSON.parse(event.body)));
    const { id, type } = event;
    const time = new Date(event.timeMs).toISOString();
    const parsed = JSON.parse(event.body);
    for (const [name, value] of Object.entries({ v: 2, log, seq, id, time, type, prev })) {
      assert.equal(parsed[name], value, `${name} of event ${seq}`);
    }
    assert.deepEqual([event.seq, event.prev], [seq, prev]);
    prev = event.hash;
  }
  assert.equal(events[0]?.type, "log.genesis");
  return events;
}

export async function untilRecorded(journal: OpenJournal, entry: JournalEntry): Promise<string> {
  const deadlineMs = performance.now() + 10 * STORE_RETRY_MS;
  for (;;) {
    try {
      const recorded = await journal.record(entry);
      assert.ok(recorded.ok);
      return recorded.value.eventId;
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || performance.now() > deadlineMs) throw error;
      await sleep(STORE_RETRY_MS / 10);
    }
  }
}
