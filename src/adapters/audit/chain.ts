/**
 * The chain of one log (clauses AUDIT-D), after RFC 9162 2.1.1, written and verified: from `log.genesis` on, every record
 * has the hash of its text, the position that its text says, and the hash of the record before it.
 */

import { hash } from "node:crypto";
import { type AuditEvent, GENESIS_PREV, LOG_END, RECORD_VERSIONS, sealEvent } from "../../audit/event.ts";
import { CLAIMS_DEPTH_MAX } from "../../limits/input.ts";
import { err, ok, type Result } from "../../result.ts";
import { isJsonObject, parseJson } from "../../spec/rfc8259.ts";
import type { Head, StoredEvent } from "../store/store.ts";

/**
 * RFC9162-2.1.1-1: the text is hashed with the prefix of leaves, so that an event cannot be taken for an inner node of
 * the tree; the result is hexadecimal.
 */
export function eventHash(body: string): string {
  return hash("sha256", `\0${body}`, "hex");
}

/** The record of an event that follows `head`, or the first record. */
export function chainEvent(
  log: string,
  head: Head | undefined,
  event: AuditEvent,
  id: string,
  timeMs: number,
): StoredEvent {
  const seq = head === undefined ? 0 : head.seq + 1;
  const prev = head === undefined ? GENESIS_PREV : head.hash;
  const body = sealEvent(event, { log, seq, id, timeMs, prev });
  return { log, seq, id, timeMs, type: event.type, body, prev, hash: eventHash(body) };
}

/** The first invalid record; `seq` is its number in the log. */
export type ChainFailure = { seq: number } & (
  | { kind: "record_missing" | "hash_differs" | "prev_differs" | "body_malformed" | "genesis_misplaced" }
  | { kind: "record_after_end" }
  | { kind: "body_differs"; field: string }
);

/** `ended` says that nothing may follow. */
export type ChainHead = Head & { ended?: boolean };

/** Checks the record that follows `head`, or the first record; returns the head for the next call. */
export function checkRecord(
  head: ChainHead | undefined,
  event: StoredEvent,
): Result<ChainHead, ChainFailure> {
  const seq = head === undefined ? 0 : head.seq + 1;
  // RFC8417-5.3-1: records are ordered by number, not by time, and without gaps.
  if (event.seq !== seq) return err({ kind: "record_missing", seq });
  if (head?.ended) return err({ kind: "record_after_end", seq });
  // RFC9162-2.1.1-1: the hash is that of the text, with the prefix of a leaf.
  const expected = eventHash(event.body);
  if (event.hash !== expected) return err({ kind: "hash_differs", seq });
  const prev = head === undefined ? GENESIS_PREV : head.hash;
  if (event.prev !== prev) return err({ kind: "prev_differs", seq });
  if ((event.type === "log.genesis") !== (seq === 0)) return err({ kind: "genesis_misplaced", seq });
  const body = parseJson(event.body, CLAIMS_DEPTH_MAX);
  if (!body.ok || !isJsonObject(body.value)) return err({ kind: "body_malformed", seq });
  // The columns by which events are searched are not hashed, so they have to equal the hashed text.
  const { log, id, type, timeMs } = event;
  if (!RECORD_VERSIONS.includes(body.value.v)) return err({ kind: "body_differs", seq, field: "v" });
  const columns = { log, seq, id, type, time: new Date(timeMs).toJSON(), prev };
  for (const [field, value] of Object.entries(columns)) {
    if (body.value[field] !== value) return err({ kind: "body_differs", seq, field });
  }
  return ok({ seq, hash: expected, ended: type === LOG_END });
}
