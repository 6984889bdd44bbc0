/**
 * `mandate audit verify --export FILE …`: verifies an export of the audit trail offline (AUDIT-D-7, RFC 9162 2.1).
 * Prints the first bad record of each log, and what the given files cannot prove.
 */
import { createReadStream, readFileSync } from "node:fs";
import { sha256 } from "../../adapters/audit/checkpoints.ts";
import { eventHash } from "../../adapters/audit/journal.ts";
import { verifier } from "../../adapters/crypto/verifier.ts";
import type { Checkpoint, LogHead } from "../../audit/checkpoint.ts";
import { CHECKPOINT_ALGORITHM, readCheckpoint } from "../../audit/checkpoint.ts";
import { GENESIS_PREV, LOG_END } from "../../audit/event.ts";
import type { Tree } from "../../audit/tree.ts";
import { appendLeaf, EMPTY_TREE, rootOf } from "../../audit/tree.ts";
import { CLAIMS_DEPTH_MAX } from "../../limits.ts";
import type { Result } from "../../result.ts";
import { err } from "../../result.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import type { Jwk } from "../../spec/rfc7517.ts";
import { parseJwkSet, selectKey } from "../../spec/rfc7517.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { isJsonObject, parseJson } from "../../spec/rfc8259.ts";
import type { Terminal } from "../command.ts";
import { jsonLine, word } from "../text.ts";

// --- checkpoints ----------------------------------------------------------------------------------------------

type Source = "checkpoint" | "witness";
/** What a checkpoint asserts of a log: its size and the hash of its last record. `by` names the checkpoint in messages. */
type Assertion = { source: Source; by: string; head: LogHead; checkpoint?: Checkpoint };
type Assertions = ReadonlyMap<string, readonly Assertion[]>;

/** Splits at line feeds only, because JSON may contain U+2028, at which other line readers split too. */
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

/** A line is a compact JWS, or a JSON object with the member `checkpoint`. */
function compactOf(line: string): string | undefined {
  const json = parseJson(line, CLAIMS_DEPTH_MAX);
  if (!json.ok) return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(line) ? line : undefined;
  const value = isJsonObject(json.value) ? json.value.checkpoint : undefined;
  return typeof value === "string" ? value : undefined;
}

async function parseCheckpoint(
  compact: string,
  keys: readonly Jwk[] | undefined,
): Promise<Result<Checkpoint, string>> {
  const jws = parseJws(compact);
  if (!jws.ok) return err("is not a JWS");
  const checkpoint = readCheckpoint(jws.value);
  if (!checkpoint.ok) return err("does not have the type or the claims of a checkpoint");
  if (keys === undefined) return checkpoint;
  const { header } = jws.value;
  const key = header.alg === CHECKPOINT_ALGORITHM ? selectKey(keys, header) : undefined;
  if (!key?.ok) return err(`is signed with a key that is not in --jwks (kid ${word(header.kid ?? "none")})`);
  return (await verifier.verify(jws.value, key.value)) ? checkpoint : err("has an invalid signature");
}

// --- one log --------------------------------------------------------------------------------------------------

type Record = {
  seq: number;
  prev: string;
  hash: string;
  genesis: boolean;
  ended: boolean;
  timeMs: number;
  /** The first sequence number that retention kept of each log, if the record is of type log.pruned. */
  below: readonly (readonly [log: string, seq: number])[];
};

/** Verifies one log. Records are taken in any order and checked in the order of their sequence numbers. */
class LogProof {
  readonly #assertions: readonly Assertion[];
  readonly #bySize: ReadonlyMap<number, readonly Assertion[]>;
  readonly #waiting = new Map<number, Record>();
  #tree: Tree = EMPTY_TREE;
  #last: Record | undefined;
  /** The record whose hash the next one does not contain: one of the two was changed. */
  #suspect: Record | undefined;
  #rooted = true;
  /** The first sequence number: above 0 after retention. */
  start = 0;
  /** The number of records that a checkpoint covers. */
  proven = 0;
  /** The number of records that a checkpoint in the witness covers. */
  witnessed = 0;
  failure: string | undefined;

  constructor(assertions: readonly Assertion[]) {
    this.#assertions = assertions;
    this.#bySize = Map.groupBy(assertions, ({ head }) => head.size);
  }

  /** Whether the log was retired, so that nothing may follow its last record. */
  get ended(): boolean {
    return this.#last?.ended ?? false;
  }

  get size(): number {
    return this.#tree.size;
  }

  take(record: Record): void {
    if (this.failure !== undefined) return;
    const { seq } = record;
    if (this.#waiting.has(seq) || seq < this.size) {
      this.#fail(`record ${seq} occurs twice: the log is forked`);
      return;
    }
    this.#waiting.set(seq, record);
    this.#drain();
  }

  /** Appends waiting records for as long as the next sequence number is among them. */
  #drain(): void {
    for (let next = this.#waiting.get(this.size); next !== undefined; next = this.#waiting.get(this.size)) {
      this.#waiting.delete(this.size);
      this.#append(next);
    }
  }

  /** Begins at record `seq`, which must be the last record of a checkpoint: retention removes only what is before it. */
  #restart(seq: number): undefined {
    for (const older of this.#waiting.keys()) if (older < seq) this.#waiting.delete(older);
    const record = this.#waiting.get(seq);
    const anchors = (this.#bySize.get(seq + 1) ?? []).filter(({ head }) => head.hash === record?.hash);
    if (record === undefined || anchors.length === 0) {
      return this.#fail(
        `no checkpoint ends at record ${seq}, where the log begins according to its last removal`,
      );
    }
    this.#waiting.delete(seq);
    this.start = seq;
    this.#last = record;
    // A log without checkpoints of its own has no peaks to continue the tree from, so only hashes are compared.
    const peaks = anchors.find(({ checkpoint }) => checkpoint !== undefined)?.checkpoint?.tree.peaks;
    this.#rooted = peaks !== undefined;
    this.#tree = { size: seq + 1, peaks: peaks ?? [] };
    this.#compare();
    this.#drain();
  }

  #append(record: Record): undefined {
    const { seq, prev, hash, genesis } = record;
    if (genesis !== (seq === 0))
      return this.#fail(`record ${seq} ${genesis ? "is a second log.genesis" : "is not log.genesis"}`);
    // AUDIT-D-12
    if (this.ended) return this.#fail(`record ${seq} follows the end of the log, which was retired`);
    const wrong = prev !== (this.#last?.hash ?? GENESIS_PREV);
    if (this.#suspect !== undefined) {
      // If this record contains the hash of the one before it, that one is intact and the suspect was changed.
      const bad = wrong ? this.#last : this.#suspect;
      return this.#fail(`record ${bad?.seq} was changed`);
    }
    if (wrong && this.#last === undefined) {
      return this.#fail(`record ${seq} contains the hash of a record before it`);
    }
    if (wrong) this.#suspect = this.#last;
    this.#last = record;
    this.#tree = this.#rooted
      ? appendLeaf(this.#tree, Uint8Array.fromHex(hash), sha256)
      : { size: seq + 1, peaks: [] };
    if (this.#suspect === undefined) this.#compare();
  }

  /** Compares hash and root with every checkpoint that covers exactly the records so far. */
  #compare(): undefined {
    for (const { source, by, head, checkpoint } of this.#bySize.get(this.size) ?? []) {
      const root = checkpoint && this.#rooted ? rootOf(this.#tree, sha256).toHex() : undefined;
      if (
        head.hash !== this.#last?.hash ||
        (checkpoint !== undefined && root !== undefined && root !== checkpoint.root)
      ) {
        const from = Math.max(this.proven, this.start);
        const where =
          from === this.size - 1
            ? `record ${from} was changed`
            : `a record from ${from} to ${this.size - 1} was changed`;
        return this.#fail(`${where} and the chain recomputed or forked: ${by} differs`);
      }
      this.proven = Math.max(this.proven, this.size);
      if (source === "witness") this.witnessed = Math.max(this.witnessed, this.size);
    }
  }

  #fail(message: string): undefined {
    this.failure ??= message;
  }

  /** Called after the last record; `below` is the first sequence number that retention kept, by the log's own events. */
  end(below: number): undefined {
    if (this.failure === undefined && this.#waiting.size > 0 && this.size < below) this.#restart(below);
    if (this.failure !== undefined) return;
    if (this.#suspect !== undefined) return this.#fail(`record ${this.#suspect.seq} was changed`);
    if (this.#waiting.size > 0) {
      const [missing, last] = [this.size, Math.min(...this.#waiting.keys()) - 1];
      const what = missing === last ? `record ${missing} is` : `records ${missing} to ${last} are`;
      return this.#fail(`${what} missing`);
    }
    const further = this.#assertions.toSorted((a, b) => b.head.size - a.head.size)[0];
    if (further !== undefined && further.head.size > this.size) {
      const { by, head } = further;
      this.#fail(
        this.size === 0
          ? `the whole log is missing: ${by} covers ${head.size} records`
          : `record ${this.size} is missing: the log was truncated, ${by} covers ${head.size} records`,
      );
    }
  }
}

// --- the export -----------------------------------------------------------------------------------------------

export type Files = { export: string; checkpoints?: string; witness?: string; jwks?: string };
export type Verdict = { code: 0 | 1 | 2; lines: readonly string[] };

export async function verifyAudit(files: Files): Promise<Verdict> {
  const lines: string[] = [];
  let code: 0 | 1 = 0;
  const bad = (message: string): void => {
    lines.push(message);
    code = 1;
  };

  let keys: readonly Jwk[] | undefined;
  if (files.jwks !== undefined) {
    const set = parseJwkSet(readFileSync(files.jwks, "utf8"));
    if (!set.ok || set.value.length === 0) {
      return { code: 2, lines: [`${files.jwks} is not a JWK Set with at least one key`] };
    }
    keys = set.value;
  }

  const assertions = new Map<string, Assertion[]>();
  const add = (log: string, assertion: Assertion): void => {
    assertions.set(log, [...(assertions.get(log) ?? []), assertion]);
  };
  for (const [source, file] of [
    ["checkpoint", files.checkpoints],
    ["witness", files.witness],
  ] as const) {
    if (file === undefined) continue;
    let [number, ignored] = [0, 0];
    for await (const line of readLines(file)) {
      number++;
      const compact = compactOf(line);
      if (compact === undefined) {
        ignored++;
        continue;
      }
      const read = await parseCheckpoint(compact, keys);
      if (!read.ok) {
        bad(`${file}, line ${number}: this checkpoint ${read.error}`);
        continue;
      }
      const checkpoint = read.value;
      const { log, tree, hash, heads } = checkpoint;
      const by = `the ${source === "witness" ? "witness's checkpoint" : "checkpoint"} of ${word(log)} at ${tree.size}`;
      add(log, { source, by, head: { size: tree.size, hash }, checkpoint });
      for (const [name, head] of heads) add(name, { source, by, head });
    }
    if (ignored > 0) lines.push(`${file}: ignored ${ignored} lines that are not checkpoints`);
  }

  const { proofs, below } = await readExport(files.export, assertions, bad);
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
        ? "0"
        : `${proof.start} (retention removed the records before it, up to a checkpoint)`;
    const end = proof.ended ? ", ended: the log was retired" : "";
    lines.push(`${word(log)}: ${proof.size - proof.start} records, chain intact from record ${from}${end}`);
    lines.push(...limitsOf(log, proof, files));
  }
  if (proofs.size === 0) return { code: 2, lines: [...lines, `${files.export} has no records`] };
  if (keys === undefined && (files.checkpoints ?? files.witness) !== undefined) {
    lines.push("Not proven: the signatures of the checkpoints. Pass --jwks to verify them.");
  }
  if (files.witness === undefined) {
    lines.push(
      "Not proven: that no tail was truncated together with its checkpoints, that no log was deleted, and that nothing",
      "was recomputed with the signing keys. Pass --witness to verify it.",
    );
  }
  lines.push(
    code === 0
      ? `No error found in ${records} records.`
      : "The audit trail was changed. Keep the database and these files as they are.",
  );
  return { code, lines };
}

/** The part of an intact log that no checkpoint covers. */
function limitsOf(log: string, { size, proven, witnessed }: LogProof, files: Files): string[] {
  const [covered, kind] =
    files.witness !== undefined
      ? ([witnessed, "witnessed checkpoint"] as const)
      : ([proven, "checkpoint"] as const);
  if (covered === size) return [];
  const extent = covered === 0 ? `no ${kind} covers it` : `the last ${kind} covers ${covered} records`;
  return [`  Not proven: that ${word(log)} had no further records; ${extent}.`];
}

async function readExport(
  file: string,
  assertions: Assertions,
  bad: (message: string) => void,
): Promise<{ proofs: ReadonlyMap<string, LogProof>; below: ReadonlyMap<string, number> }> {
  // A log that a checkpoint names is expected, even if the export has no record of it.
  const proofs = new Map([...assertions].map(([log, ofLog]) => [log, new LogProof(ofLog)]));
  const before = new Map<string, Record>();
  /** The first sequence number that retention kept of each log, as its events record it. */
  const below = new Map<string, number>();
  let number = 0;
  for await (const line of readLines(file)) {
    number++;
    const read = readRecord(line);
    if (read === undefined) {
      bad(`${file}, line ${number}: this is not a record of an audit log`);
      continue;
    }
    const [log, record] = read;
    const proof = proofs.get(log) ?? new LogProof([]);
    proofs.set(log, proof);
    const last = before.get(log);
    // RFC8417-5.3-1: an export is ordered by time; a lower number may only follow where the clock was set back.
    if (last !== undefined && record.seq < last.seq && record.timeMs <= last.timeMs) {
      proof.failure ??= `record ${record.seq} follows record ${last.seq}: the records were reordered`;
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
  return [
    log,
    {
      seq,
      prev,
      hash: eventHash(line),
      genesis: type === "log.genesis",
      ended: type === LOG_END,
      timeMs,
      below,
    },
  ];
}

function readBelow(detail: Json | undefined): [string, number][] {
  const below = isJsonObject(detail) && isJsonObject(detail.below) ? detail.below : {};
  return Object.entries(below).flatMap(([log, seq]) => (typeof seq === "number" ? [[log, seq]] : []));
}

/** Prints the verdict; the exit code is its code. */
export async function verifyExport(
  { print, printError }: Terminal,
  files: Files,
  json: boolean,
): Promise<number> {
  const { code, lines } = await verifyAudit(files);
  const results = ["intact", "changed", "not verified"] as const;
  if (json) print(jsonLine({ result: results[code], findings: lines }));
  if (json) return code;
  for (const line of lines) (code === 0 ? print : printError)(line);
  return code;
}
