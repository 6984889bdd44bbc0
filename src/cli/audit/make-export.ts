/**
 * `mandate audit export`: writes what `mandate audit verify --export` reads, into a folder that is there as a whole or
 * not at all.
 */
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { random } from "../../adapters/crypto/random.ts";
import type { Store } from "../../adapters/store/store.ts";
import { readCheckpoint } from "../../audit/checkpoint.ts";
import type { AuditPosition, EventFilter, Span } from "../../audit/query.ts";
import { AUDIT_PAGE_MAX } from "../../limits/audit.ts";
import { EXIT } from "../../limits/process.ts";
import type { AuditRecord, CheckpointRow } from "../../records.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { Admin } from "../command.ts";
import { word } from "../text.ts";
import { type Auditor, hasLook, recordLook, trailOf } from "./copy.ts";
import { policyLines } from "./policies.ts";

type Times = Pick<EventFilter, "fromMs" | "toMs">;
type Lines = AsyncIterable<readonly string[]>;

export async function exportTrail(
  auditor: Auditor & Pick<Admin, "custody">,
  to: string,
  times: Times,
  asked: JsonObject,
): Promise<number> {
  const { print, printError } = auditor;
  const store = trailOf(auditor);
  const folder = existsSync(to) ? realpathSync(to) : resolve(to);
  if (existsSync(folder) && !(statSync(folder).isDirectory() && readdirSync(folder).length === 0)) {
    printError(`${word(to)} is not an empty folder, and nothing was written: give another name`);
    return EXIT.refused;
  }
  // AUDIT-D-15: the export has at least these records, so that it can be told from one that was truncated later.
  const heads = Object.fromEntries((await store.audit.heads()).map(({ log, seq }) => [log, seq + 1]));
  await recordLook(auditor, { command: "audit export", folder, heads, ...asked }, print);
  if (!(await hasLook(auditor))) printError(UNDATED);
  const making = `${folder}.partial-${random.id()}`;
  mkdirSync(making, { mode: 0o700 });
  try {
    // The heads of the logs are read after the checkpoints, so that the events have all that a checkpoint covers.
    await writeLines(join(making, "checkpoints.ndjson"), checkpointLines(store, times));
    const spans = await spansWithin(store, times);
    if (spans.length === 0) {
      printError("There is no event in this period, and nothing was written.");
      return EXIT.refused;
    }
    await writeLines(join(making, "events.ndjson"), eventLines(store, spans));
    await writeLines(join(making, "policies.ndjson"), policyLines(store));
    await writeLines(join(making, "jwks.json"), keyLines({ store, custody: auditor.custody }));
    syncFolder(making);
    // Succeeds only where there is nothing yet, or an empty folder.
    renameSync(making, folder);
    syncFolder(dirname(folder));
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  const file = (name: string): string => word(join(folder, name));
  const partial = times.fromMs === undefined && times.toMs === undefined ? "" : " --partial";
  print(`Exported to ${word(folder)}, which only this user can read. To verify it:`);
  print(
    `  mandate audit verify --export ${file("events.ndjson")} --checkpoints ${file("checkpoints.ndjson")} --jwks ${file("jwks.json")} --policies ${file("policies.ndjson")}${partial}`,
  );
  print("Add --witness with a copy of the witness's file, which alone shows a tail or a log that is gone.");
  return EXIT.done;
}

const UNDATED =
  "The copy lags, and does not have the record of this export yet: verify it with a witness's file of before, or export again later.";

/** Each write is durable when it returns: the permission model refuses `fsync`, so the file is opened that way. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_DSYNC;

async function writeLines(file: string, pages: Lines): Promise<void> {
  const opened = openSync(file, FLAGS, 0o600);
  try {
    for await (const page of pages) writeAll(opened, Buffer.from(page.map((line) => `${line}\n`).join("")));
  } finally {
    closeSync(opened);
  }
}

function writeAll(file: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
}

/** Makes the names in a folder durable, where the permission model lets it. */
function syncFolder(folder: string): void {
  if (process.permission !== undefined) return;
  const opened = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

async function* checkpointLines({ audit }: Store, { toMs = Number.POSITIVE_INFINITY }: Times): Lines {
  const sizes = new Map<string, number>();
  for (;;) {
    const rows = await audit.checkpoints(sizes, AUDIT_PAGE_MAX);
    for (const { log, treeSize } of rows) sizes.set(log, treeSize);
    yield rows.filter(({ timeMs }) => timeMs < toMs).map(checkpointLine);
    if (rows.length < AUDIT_PAGE_MAX) return;
  }
}

const checkpointLine = ({ log, treeSize, jws }: CheckpointRow): string =>
  JSON.stringify({ log, tree_size: treeSize, checkpoint: jws });

/** In order of time, byte for byte as they are stored. */
async function* eventLines({ audit }: Store, spans: readonly Span[]): Lines {
  // The search begins at the first event of the spans, because most of the trail is older than a part.
  const earliestMs = (await audit.earliestMs(spans)) ?? 0;
  let after: AuditPosition = { timeMs: earliestMs - 1, log: "", seq: -1 };
  for (;;) {
    const page: readonly AuditRecord[] = await audit.find({ terms: [], spans, after, limit: AUDIT_PAGE_MAX });
    yield page.map(({ body }) => body);
    const last = page.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

/** A public key counts only if it belongs to its private half, which is encrypted. */
async function* keyLines({ store, custody }: Pick<Admin, "store" | "custody">): Lines {
  const rows = (await store.keys.list()).filter(({ purpose }) => purpose === "checkpoint");
  const opened = await Promise.all(rows.map((row) => custody.open(row)));
  yield [JSON.stringify({ keys: opened.map(({ publicJwk }) => publicJwk) })];
}

// --- a part of the trail ----------------------------------------------------------------------------------------

/** The part of each log in this period. It begins at the last record of a checkpoint, because it is verified from there. */
async function spansWithin({ audit }: Store, { fromMs, toMs }: Times): Promise<readonly Span[]> {
  const heads = await audit.heads();
  const sizes = fromMs === undefined ? new Map<string, number>() : await sizesAt(audit, heads, fromMs);
  const spans: Span[] = [];
  for (const { log, seq } of heads) {
    const span = { log, afterSeq: Math.max(-1, (sizes.get(log) ?? 0) - 2), toSeq: seq };
    const toSeq = toMs === undefined ? seq : await lastBefore(audit, span, toMs);
    if (toSeq !== undefined) spans.push({ ...span, toSeq });
  }
  return spans;
}

async function lastBefore(audit: Store["audit"], span: Span, toMs: number): Promise<number | undefined> {
  const [last] = await audit.find({ terms: [], spans: [span], toMs, newestFirst: true, limit: 1 });
  return last?.seq;
}

/** The size of each log that a checkpoint of this time or before names. */
async function sizesAt(
  audit: Store["audit"],
  logs: readonly { log: string }[],
  atMs: number,
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  const note = (log: string, size: number) => sizes.set(log, Math.max(size, sizes.get(log) ?? 0));
  for (const { log } of logs) {
    const row = await audit.checkpoint(log, atMs);
    const jws = row && parseJws(row.jws);
    const checkpoint = jws?.ok ? readCheckpoint(jws.value) : undefined;
    if (!checkpoint?.ok) continue;
    note(log, checkpoint.value.tree.size);
    for (const [other, { size }] of checkpoint.value.heads) note(other, size);
  }
  return sizes;
}
