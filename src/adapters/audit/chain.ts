/**
 * The chain of one log (clauses AUDIT-D), after RFC 9162 2.1.1, written and verified: from `log.genesis` on, every record
 * has the hash of its text, the position that its text says, and the hash of the record before it.
 */

import { hash } from "node:crypto";
import {
  type AuditEvent,
  GENESIS_PREV,
  LOG_END,
  placeEvent,
  RECORD_VERSION,
  RECORD_VERSIONS,
  sealRecord,
} from "../../audit/event.ts";
import { leafText, type Parts, splitRecord } from "../../audit/parts.ts";
import { CLAIMS_DEPTH_MAX } from "../../limits/input.ts";
import { err, ok, type Result } from "../../result.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../spec/rfc8259.ts";
import { canonicalize } from "../../spec/rfc8785.ts";
import type { Head, StoredEvent } from "../store/store.ts";

/** RFC9162-2.1.1-1: hashed with the prefix of leaves, so that it cannot be taken for an inner node of the tree; hex. */
const leafHash = (text: string): string => hash("sha256", `\0${text}`, "hex");

const SALT_BYTES = 16;

/** RCPT-D-7: the salts of the three parts are drawn from one secret of the record; each tells nothing of the others. */
export function saltsOf(salt: string): Record<keyof Parts, Buffer> {
  const drawn = hash("sha512", Buffer.from(salt, "base64url"), "buffer");
  const [t, c, r] = [0, 1, 2].map((part) => drawn.subarray(part * SALT_BYTES, (part + 1) * SALT_BYTES));
  return { t, c, r } as Record<keyof Parts, Buffer>;
}

/** RCPT-D-1: salted, so that what is in a part cannot be guessed. */
export const commitTo = (salt: Buffer, part: string): string =>
  hash("sha256", Buffer.concat([salt, Buffer.from(part)]), "base64url");

type Sealable = { log: string; prev: string; salt: string; seq: number };

/** The commitments to the parts of a record, whose salts are drawn from its secret. */
export function commitmentsOf({ t, c, r }: Parts, salt: string): Parts {
  const salts = saltsOf(salt);
  return { t: commitTo(salts.t, t), c: commitTo(salts.c, c), r: commitTo(salts.r, r) };
}

function hashParts(parts: Parts, { log, prev, salt, seq }: Sealable): string {
  const before = Buffer.from(prev, "hex").toString("base64url");
  return leafHash(leafText({ ...commitmentsOf(parts, salt), log, prev: before, seq }));
}

/**
 * The hash (hex) of a record as a leaf. A record of version 1 is hashed as one text, and so is every other text, which no
 * record of version 2 has as its hash.
 */
export function eventHash(body: string): string {
  const read = parseJson(body, CLAIMS_DEPTH_MAX);
  return hashRead(body, read.ok && isJsonObject(read.value) ? read.value : {});
}

/** The same of a text that was parsed. What is hashed are its parts, so it has to be the one text that they have. */
export function hashRead(body: string, record: JsonObject): string {
  return isSealed(record) && canonicalize(record) === body
    ? hashParts(splitRecord(record), record)
    : leafHash(body);
}

const HASH = /^[0-9a-f]{64}$/;
const SECRET = /^[\w-]{21}[AQgw]$/;

/** A stored record of version 2, of which a receipt can be made. */
export function readSealed(body: string): (JsonObject & Sealable) | undefined {
  const read = parseJson(body, CLAIMS_DEPTH_MAX);
  return read.ok && isJsonObject(read.value) && isSealed(read.value) ? read.value : undefined;
}

/** Hash and secret have one spelling each, because they are hashed as bytes. */
const isSealed = (record: JsonObject): record is JsonObject & Sealable =>
  record.v === RECORD_VERSION &&
  typeof record.log === "string" &&
  typeof record.seq === "number" &&
  HASH.test(String(record.prev)) &&
  SECRET.test(String(record.salt));

/** The record of an event that follows `head`, or the first record. */
export function chainEvent(
  head: Head | undefined,
  event: AuditEvent,
  place: { log: string; id: string; timeMs: number; salt: string },
): StoredEvent {
  const { log, id, timeMs } = place;
  const seq = head === undefined ? 0 : head.seq + 1;
  const prev = head === undefined ? GENESIS_PREV : head.hash;
  const record = placeEvent(event, { ...place, seq, prev });
  const hash = hashParts(splitRecord(record), record);
  return { log, seq, id, timeMs, type: event.type, body: sealRecord(record), prev, hash };
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
  const read = parseJson(event.body, CLAIMS_DEPTH_MAX);
  const body = read.ok && isJsonObject(read.value) ? read.value : undefined;
  // RFC9162-2.1.1-1: the hash is that of the record, with the prefix of a leaf.
  const expected = hashRead(event.body, body ?? {});
  if (event.hash !== expected) return err({ kind: "hash_differs", seq });
  const prev = head === undefined ? GENESIS_PREV : head.hash;
  if (event.prev !== prev) return err({ kind: "prev_differs", seq });
  if ((event.type === "log.genesis") !== (seq === 0)) return err({ kind: "genesis_misplaced", seq });
  if (body === undefined) return err({ kind: "body_malformed", seq });
  // The columns by which events are searched are not hashed, so they have to equal the hashed text.
  const { log, id, type, timeMs } = event;
  if (!RECORD_VERSIONS.includes(body.v)) return err({ kind: "body_differs", seq, field: "v" });
  const columns = { log, seq, id, type, time: new Date(timeMs).toJSON(), prev };
  for (const [field, value] of Object.entries(columns)) {
    if (body[field] !== value) return err({ kind: "body_differs", seq, field });
  }
  return ok({ seq, hash: expected, ended: type === LOG_END });
}
