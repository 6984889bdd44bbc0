/**
 * Verifies an export of the audit trail offline (AUDIT-D, RFC 9162 2.1): `npm run audit-verify -- --export FILE …`.
 * It names the first bad record of each log, and what nobody can prove with what it was given.
 */
import { createReadStream, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { sha256 } from "../src/adapters/audit/checkpoints.ts";
import { eventHash } from "../src/adapters/audit/journal.ts";
import { verifier } from "../src/adapters/crypto/jose.ts";
import type { Checkpoint, LogHead } from "../src/audit/checkpoint.ts";
import { CHECKPOINT_ALGORITHM, readCheckpoint } from "../src/audit/checkpoint.ts";
import { GENESIS_PREV } from "../src/audit/event.ts";
import type { Tree } from "../src/audit/tree.ts";
import { appendLeaf, EMPTY_TREE, rootOf } from "../src/audit/tree.ts";
import { CLAIMS_DEPTH_MAX } from "../src/limits.ts";
import type { Result } from "../src/result.ts";
import { err } from "../src/result.ts";
import { parseJws } from "../src/spec/rfc7515.ts";
import type { Jwk } from "../src/spec/rfc7517.ts";
import { parseJwkSet, selectKey } from "../src/spec/rfc7517.ts";
import type { Json } from "../src/spec/rfc8259.ts";
import { isJsonObject, parseJson } from "../src/spec/rfc8259.ts";
import { word } from "./admin/text.ts";

export const USAGE = `npm run audit-verify -- --export FILE [--checkpoints FILE] [--witness FILE] [--jwks FILE]

  --export       GET /audit/events as application/x-ndjson, without filters, all its pages
  --checkpoints  GET /audit/checkpoints as application/x-ndjson, all its pages
  --witness      what the witness kept: the file, or the lines of standard output
  --jwks         the keys of checkpoints: GET /audit/checkpoints as application/json, fetched once and kept apart

Take the export last: a checkpoint that is younger than the export vouches for records that are not in it.
Exit code: 0 nothing is wrong, 1 something is, 2 it could not be verified.`;

// --- what vouches ---------------------------------------------------------------------------------------------

type Source = "checkpoint" | "witness";
/** Who says it: for what is printed. */
type Vouched = { source: Source; by: string; head: LogHead; checkpoint?: Checkpoint };
type Vouchers = ReadonlyMap<string, readonly Vouched[]>;

/** Lines end at a line feed and nowhere else: JSON may have U+2028 in it, which readers of lines stumble over. */
async function* readLines(file: string): AsyncGenerator<string, void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file)) {
    rest = Buffer.concat([rest, chunk]);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield rest.subarray(0, end).toString("utf8");
      rest = rest.subarray(end + 1);
    }
  }
  if (rest.length > 0) yield rest.toString("utf8");
}

/** A line is a checkpoint by itself, or a JSON object with one. */
function compactOf(line: string): string | undefined {
  const json = parseJson(line, CLAIMS_DEPTH_MAX);
  if (!json.ok) return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(line) ? line : undefined;
  const value = isJsonObject(json.value) ? json.value.checkpoint : undefined;
  return typeof value === "string" ? value : undefined;
}

async function readVoucher(
  compact: string,
  keys: readonly Jwk[] | undefined,
): Promise<Result<Checkpoint, string>> {
  const jws = parseJws(compact);
  if (!jws.ok) return err("is no JWS");
  const checkpoint = readCheckpoint(jws.value);
  if (!checkpoint.ok) return err("does not say what a checkpoint says");
  if (keys === undefined) return checkpoint;
  const { header } = jws.value;
  const key = header.alg === CHECKPOINT_ALGORITHM ? selectKey(keys, header) : undefined;
  if (!key?.ok) return err(`is signed with a key that is not in the key set (${word(header.kid ?? "none")})`);
  return (await verifier.verify(jws.value, key.value)) ? checkpoint : err("has a wrong signature");
}

// --- one log --------------------------------------------------------------------------------------------------

type Record = {
  seq: number;
  prev: string;
  hash: string;
  genesis: boolean;
  timeMs: number;
  /** What it says of where logs begin. */
  below: readonly (readonly [log: string, seq: number])[];
};

/** One log, record by record in the order of their numbers, whatever the order in which they come. */
class LogProof {
  readonly #vouched: readonly Vouched[];
  readonly #bySize: ReadonlyMap<number, readonly Vouched[]>;
  readonly #waiting = new Map<number, Record>();
  #tree: Tree = EMPTY_TREE;
  #last: Record | undefined;
  /** The record whose hash the last one does not name: one of the two is bad. */
  #suspect: Record | undefined;
  #rooted = true;
  /** Where the records begin, if not at the first. */
  start = 0;
  /** How many of the records a checkpoint has vouched for. */
  proven = 0;
  /** The same, for a checkpoint that the witness has. */
  witnessed = 0;
  failure: string | undefined;

  constructor(vouched: readonly Vouched[]) {
    this.#vouched = vouched;
    this.#bySize = Map.groupBy(vouched, ({ head }) => head.size);
  }

  get size(): number {
    return this.#tree.size;
  }

  take(record: Record): void {
    if (this.failure !== undefined) return;
    const { seq } = record;
    if (this.#waiting.has(seq) || seq < this.size) {
      this.#fail(`record ${seq} is there twice: the log is forked`);
      return;
    }
    this.#waiting.set(seq, record);
    this.#drain();
  }

  /** Every record whose number is the next. */
  #drain(): void {
    for (let next = this.#waiting.get(this.size); next !== undefined; next = this.#waiting.get(this.size)) {
      this.#waiting.delete(this.size);
      this.#append(next);
    }
  }

  /** Goes on at a record that a checkpoint names as the last it vouches for: retention removed what was before. */
  #restart(seq: number): undefined {
    for (const older of this.#waiting.keys()) if (older < seq) this.#waiting.delete(older);
    const record = this.#waiting.get(seq);
    const anchors = (this.#bySize.get(seq + 1) ?? []).filter(({ head }) => head.hash === record?.hash);
    if (record === undefined || anchors.length === 0) {
      return this.#fail(
        `no checkpoint vouches for record ${seq}, where the log begins since the last removal`,
      );
    }
    this.#waiting.delete(seq);
    this.start = seq;
    this.#last = record;
    // Without peaks no root can be computed: such a log signs no checkpoints of its own.
    const peaks = anchors.find(({ checkpoint }) => checkpoint !== undefined)?.checkpoint?.tree.peaks;
    this.#rooted = peaks !== undefined;
    this.#tree = { size: seq + 1, peaks: peaks ?? [] };
    this.#vouch();
    this.#drain();
  }

  #append(record: Record): undefined {
    const { seq, prev, hash, genesis } = record;
    if (genesis !== (seq === 0))
      return this.#fail(
        `record ${seq} ${genesis ? "begins a log in the middle of one" : "is not log.genesis"}`,
      );
    const wrong = prev !== (this.#last?.hash ?? GENESIS_PREV);
    if (this.#suspect !== undefined) {
      // The record between is what this one names: then the one before it was changed.
      const bad = wrong ? this.#last : this.#suspect;
      return this.#fail(`record ${bad?.seq} was changed`);
    }
    if (wrong && this.#last === undefined) return this.#fail(`record ${seq} names a record before it`);
    if (wrong) this.#suspect = this.#last;
    this.#last = record;
    this.#tree = this.#rooted
      ? appendLeaf(this.#tree, Uint8Array.fromHex(hash), sha256)
      : { size: seq + 1, peaks: [] };
    if (this.#suspect === undefined) this.#vouch();
  }

  /** What vouches for exactly the records so far must say what they say. */
  #vouch(): undefined {
    for (const { source, by, head, checkpoint } of this.#bySize.get(this.size) ?? []) {
      const root = checkpoint && this.#rooted ? rootOf(this.#tree, sha256).toHex() : undefined;
      if (
        head.hash !== this.#last?.hash ||
        (checkpoint !== undefined && root !== undefined && root !== checkpoint.root)
      ) {
        const from = Math.max(this.proven, this.start);
        const where =
          from === this.size - 1
            ? `record ${from}`
            : `the first bad one is among records ${from} to ${this.size - 1}`;
        return this.#fail(`${where}: the chain was computed anew or forked, ${by} vouches for another`);
      }
      this.proven = Math.max(this.proven, this.size);
      if (source === "witness") this.witnessed = Math.max(this.witnessed, this.size);
    }
  }

  #fail(words: string): undefined {
    this.failure ??= words;
  }

  /** Everything has come; `below` is where the log begins by the word of its events. */
  end(below: number): undefined {
    if (this.failure === undefined && this.#waiting.size > 0 && this.size < below) this.#restart(below);
    if (this.failure !== undefined) return;
    if (this.#suspect !== undefined) return this.#fail(`record ${this.#suspect.seq} was changed`);
    if (this.#waiting.size > 0) {
      const [missing, last] = [this.size, Math.min(...this.#waiting.keys()) - 1];
      const what = missing === last ? `record ${missing} is` : `records ${missing} to ${last} are`;
      return this.#fail(`${what} missing`);
    }
    const further = this.#vouched.toSorted((a, b) => b.head.size - a.head.size)[0];
    if (further !== undefined && further.head.size > this.size) {
      const { by, head } = further;
      this.#fail(
        this.size === 0
          ? `the whole log is gone, record 0 first: ${by} vouches for ${head.size} records`
          : `record ${this.size} is missing: the log is cut off, ${by} vouches for ${head.size} records`,
      );
    }
  }
}

// --- the whole ------------------------------------------------------------------------------------------------

export type Files = { export: string; checkpoints?: string; witness?: string; jwks?: string };
export type Verdict = { code: 0 | 1 | 2; lines: readonly string[] };

export async function verifyAudit(files: Files): Promise<Verdict> {
  const lines: string[] = [];
  let code: 0 | 1 = 0;
  const bad = (words: string): void => {
    lines.push(words);
    code = 1;
  };

  let keys: readonly Jwk[] | undefined;
  if (files.jwks !== undefined) {
    const set = parseJwkSet(readFileSync(files.jwks, "utf8"));
    if (!set.ok || set.value.length === 0) return { code: 2, lines: [`${files.jwks} has no keys`] };
    keys = set.value;
  }

  const vouchers = new Map<string, Vouched[]>();
  const vouch = (log: string, vouched: Vouched): void => {
    vouchers.set(log, [...(vouchers.get(log) ?? []), vouched]);
  };
  for (const [source, file] of [
    ["checkpoint", files.checkpoints],
    ["witness", files.witness],
  ] as const) {
    if (file === undefined) continue;
    let [number, strange] = [0, 0];
    for await (const line of readLines(file)) {
      number++;
      const compact = compactOf(line);
      if (compact === undefined) {
        strange++;
        continue;
      }
      const read = await readVoucher(compact, keys);
      if (!read.ok) {
        bad(`${file}, line ${number}: this checkpoint ${read.error}`);
        continue;
      }
      const checkpoint = read.value;
      const { log, tree, hash, heads } = checkpoint;
      const by = `the ${source === "witness" ? "witness's checkpoint" : "checkpoint"} of ${word(log)} at ${tree.size}`;
      vouch(log, { source, by, head: { size: tree.size, hash }, checkpoint });
      for (const [name, head] of heads) vouch(name, { source, by, head });
    }
    if (strange > 0) lines.push(`${file}: ${strange} lines are no checkpoints and were passed over`);
  }

  const { proofs, below } = await readExport(files.export, vouchers, bad);
  let records = 0;
  for (const [log, proof] of [...proofs].sort()) {
    proof.end(below.get(log) ?? 0);
    if (proof.failure !== undefined) {
      bad(`${word(log)}: ${proof.failure}`);
      continue;
    }
    records += proof.size - proof.start;
    const from =
      proof.start === 0
        ? "from the first"
        : `from record ${proof.start}, where retention and a checkpoint let it begin`;
    lines.push(`${word(log)}: ${proof.size - proof.start} records, unbroken ${from}`);
    lines.push(...limitsOf(log, proof, files));
  }
  if (proofs.size === 0) return { code: 2, lines: [...lines, `${files.export} has no records`] };
  if (keys === undefined && (files.checkpoints ?? files.witness) !== undefined) {
    lines.push("Not proven: who signed the checkpoints. Without --jwks anybody may have written them.");
  }
  if (files.witness === undefined) {
    lines.push(
      "Not proven, without a witness: that no tail was cut off together with its checkpoints, that no log is gone as a",
      "whole, and that nobody who holds the keys computed it all anew.",
    );
  }
  lines.push(
    code === 0
      ? `Nothing is wrong with these ${records} records.`
      : "The audit trail is not what was written.",
  );
  return { code, lines };
}

/** What of one sound log hangs on its own word. */
function limitsOf(log: string, { size, proven, witnessed }: LogProof, files: Files): string[] {
  const [known, who] =
    files.witness !== undefined
      ? ([witnessed, "witnessed checkpoint"] as const)
      : ([proven, "checkpoint"] as const);
  if (known === size) return [];
  const where = known === 0 ? `no ${who} vouches for it` : `the last ${who} vouches for ${known} records`;
  return [`  Not proven: that ${word(log)} had no more records than these; ${where}.`];
}

async function readExport(
  file: string,
  vouchers: Vouchers,
  bad: (words: string) => void,
): Promise<{ proofs: ReadonlyMap<string, LogProof>; below: ReadonlyMap<string, number> }> {
  // A log that somebody vouches for is expected, even if not one record of it is left.
  const proofs = new Map([...vouchers].map(([log, vouched]) => [log, new LogProof(vouched)]));
  const before = new Map<string, Record>();
  /** Where logs begin since retention removed what was before, as it recorded. */
  const below = new Map<string, number>();
  let number = 0;
  for await (const line of readLines(file)) {
    number++;
    const read = readRecord(line);
    if (read === undefined) {
      bad(`${file}, line ${number}: this is no record of an audit log`);
      continue;
    }
    const [log, record] = read;
    const proof = proofs.get(log) ?? new LogProof([]);
    proofs.set(log, proof);
    const last = before.get(log);
    // RFC8417-5.3-1: an export is in the order of time, and where a clock was set back, of numbers.
    if (last !== undefined && record.seq < last.seq && record.timeMs <= last.timeMs) {
      proof.failure ??= `record ${record.seq} stands behind record ${last.seq}: the records were reordered`;
    }
    before.set(log, record);
    proof.take(record);
    for (const [name, seq] of record.below) below.set(name, Math.max(seq, below.get(name) ?? 0));
  }
  return { proofs, below };
}

const HASH = /^[0-9a-f]{64}$/;

function readRecord(line: string): readonly [string, Record] | undefined {
  const json = parseJson(line, CLAIMS_DEPTH_MAX);
  if (!json.ok || !isJsonObject(json.value)) return undefined;
  const { v, log, seq, prev, type, time } = json.value;
  const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (v !== 1 || typeof log !== "string" || typeof type !== "string" || Number.isNaN(timeMs))
    return undefined;
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  if (typeof prev !== "string" || !HASH.test(prev)) return undefined;
  const below = type === "log.pruned" ? readBelow(json.value.detail) : [];
  return [log, { seq, prev, hash: eventHash(line), genesis: type === "log.genesis", timeMs, below }];
}

function readBelow(detail: Json | undefined): [string, number][] {
  const below = isJsonObject(detail) && isJsonObject(detail.below) ? detail.below : {};
  return Object.entries(below).flatMap(([log, seq]) => (typeof seq === "number" ? [[log, seq]] : []));
}

async function main(): Promise<Verdict> {
  const option = { type: "string" } as const;
  const options = { export: option, checkpoints: option, witness: option, jwks: option };
  try {
    const { values } = parseArgs({ options });
    if (values.export === undefined) return { code: 2, lines: [USAGE] };
    return await verifyAudit({ ...values, export: values.export });
  } catch (fault) {
    // A wrong option or a file that cannot be read.
    if (!(fault instanceof Error && "code" in fault)) throw fault;
    return { code: 2, lines: [fault.message, "", USAGE] };
  }
}

if (import.meta.main) {
  const { code, lines } = await main();
  for (const line of lines) (code === 0 ? process.stdout : process.stderr).write(`${line}\n`);
  process.exitCode = code;
}
