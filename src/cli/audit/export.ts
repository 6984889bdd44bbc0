/**
 * `mandate audit verify --export FILE …`: verifies an export of the audit trail offline (AUDIT-D-7, RFC 9162 2.1).
 * Prints the first bad record of each log, and what the given files cannot prove.
 */
import { hashRead } from "../../adapters/audit/chain.ts";
import { verifier } from "../../adapters/crypto/verifier.ts";
import { CHECKPOINT_ALGORITHM, type Checkpoint, readCheckpoint } from "../../audit/checkpoint.ts";
import { LOG_END, RECORD_VERSIONS } from "../../audit/event.ts";
import { CLAIMS_DEPTH_MAX } from "../../limits/input.ts";
import { defined, err, type Result } from "../../result.ts";
import { parseJws } from "../../spec/rfc7515.ts";
import { type Jwk, parseJwkSet, selectKey } from "../../spec/rfc7517.ts";
import { isJsonObject, type Json, parseJson } from "../../spec/rfc8259.ts";
import type { Terminal } from "../command.ts";
import { readLines, readNamed } from "../named-file.ts";
import { jsonLine, word } from "../text.ts";
import { type Assertion, type Assertions, LogProof, type LogRecord } from "./log-proof.ts";
import { comparePolicies } from "./policies.ts";

/** A line in which a checkpoint begins that does not end there, because the line is cut or goes on with another one. */
const TORN = /^\{(?:"time":"[^"]{1,64}","level":"info","event":"checkpoint",)?"checkpoint":"/;
const TORN_NAMED_MAX = 10;

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
  return verifier.verify(jws.value, key.value) ? checkpoint : err("has an invalid signature");
}

export type Files = {
  export: string;
  checkpoints?: string;
  witness?: string;
  jwks?: string;
  policies?: string;
  partial?: true;
};
type Verdict = { code: 0 | 1 | 2; lines: readonly string[] };

export async function verifyAudit(files: Files): Promise<Verdict> {
  const lines: string[] = [];
  let code: 0 | 1 = 0;
  const bad = (message: string): void => {
    lines.push(message);
    code = 1;
  };

  const set = files.jwks === undefined ? undefined : parseJwkSet(readNamed(files.jwks));
  const keys = set?.ok ? set.value : undefined;
  if (set !== undefined && !keys?.length)
    return { code: 2, lines: [`${files.jwks} is not a JWK Set with at least one key`] };

  const assertions = new Map<string, Assertion[]>();
  for (const [source, file] of [
    ["checkpoint", files.checkpoints],
    ["witness", files.witness],
  ] as const) {
    if (file !== undefined) lines.push(...(await readCheckpoints(source, file, keys, assertions, bad)));
  }

  const { proofs, below, moment, decidedBy } = await readExport(files.export, assertions, bad);
  let records = 0;
  let undecided = false;
  for (const [log, proof] of [...proofs].sort()) {
    const size = moment?.exported?.get(log) ?? 0;
    proof.end(below.get(log) ?? 0, files.partial, moment && { timeMs: moment.timeMs, size });
    if (proof.failure !== undefined) {
      bad(`${word(log)}: ${proof.failure}`);
      continue;
    }
    undecided ||= proof.undecided !== undefined;
    records += proof.size - proof.start;
    lines.push(...linesOf(log, proof, files));
  }
  if (proofs.size === 0) {
    return { code: 2, lines: code === 0 ? [...lines, `${files.export} has no records`] : lines };
  }
  lines.push(...unprovenBy(files));
  if (files.policies !== undefined && code === 0) {
    const { problems, count } = await comparePolicies(files.policies, decidedBy);
    lines.push(...problems);
    if (problems.length > 0) {
      lines.push(
        "The trail is intact, and the archive of its policies is not: export it again, or find the lost policy.",
      );
      return { code: 1, lines };
    }
    lines.push(`Each of ${count} archived policies has its digest.`);
  }
  if (code === 0 && undecided) {
    lines.push(UNDECIDED);
    return { code: 2, lines };
  }
  lines.push(
    code === 0
      ? `No error found in ${records} records.`
      : "The audit trail was changed. Keep the database and these files as they are.",
  );
  return { code, lines };
}

/** What the proof of one log shows. */
function linesOf(log: string, proof: LogProof, files: Files): readonly string[] {
  const undecided = proof.undecided === undefined ? [] : [`${word(log)}: ${proof.undecided}`];
  if (files.partial && proof.size === 0) return undecided;
  const why = files.partial ? "the part begins there, at" : "retention removed the records before it, up to";
  const from = proof.start === 0 ? "0" : `${proof.start} (${why} a checkpoint)`;
  const end = proof.ended ? ", ended: the log was retired" : "";
  return [
    ...undecided,
    `${word(log)}: ${proof.size - proof.start} records, chain intact from record ${from}${end}`,
    ...limitsOf(log, proof, files),
  ];
}

/** What the files that are not there leave open. */
function unprovenBy({ jwks, checkpoints, witness, partial }: Files): readonly string[] {
  const lines: string[] = [];
  if (jwks === undefined && (checkpoints ?? witness) !== undefined) {
    lines.push("Not proven: the signatures of the checkpoints. Pass --jwks to verify them.");
  }
  if (partial) lines.push("Not proven: what was before and behind the part that was exported.");
  if (witness === undefined) {
    lines.push(
      "Not proven: that no tail was truncated together with its checkpoints, that no log was deleted, and that nothing",
      "was recomputed with the signing keys. Pass --witness to verify it.",
    );
  }
  return lines;
}

/** Adds what the checkpoints of a file say of the logs; returns what is to be told of its other lines. */
async function readCheckpoints(
  source: Assertion["source"],
  file: string,
  keys: readonly Jwk[] | undefined,
  assertions: Map<string, Assertion[]>,
  bad: (message: string) => void,
): Promise<readonly string[]> {
  const add = (log: string, assertion: Assertion): void => {
    assertions.set(log, [...(assertions.get(log) ?? []), assertion]);
  };
  let [number, ignored] = [0, 0];
  const torn: number[] = [];
  for await (const line of readLines(file)) {
    number++;
    const compact = compactOf(line);
    if (compact === undefined) {
      if (TORN.test(line)) torn.push(number);
      else ignored++;
      continue;
    }
    const read = await parseCheckpoint(compact, keys);
    if (!read.ok) {
      bad(`${file}, line ${number}: this checkpoint ${read.error}`);
      continue;
    }
    const checkpoint = read.value;
    const { log, tree, hash, heads, timeMs } = checkpoint;
    const by = `the ${source === "witness" ? "witness's checkpoint" : "checkpoint"} of ${word(log)} at ${tree.size}`;
    add(log, { source, by, head: { size: tree.size, hash }, timeMs, checkpoint });
    for (const [name, head] of heads) add(name, { source, by, head, timeMs });
  }
  const told: string[] = [];
  if (torn.length > 0) {
    const which = torn.slice(0, TORN_NAMED_MAX).join(", ") + (torn.length > TORN_NAMED_MAX ? ", …" : "");
    const why =
      "the disk was full, or the process ended while it wrote; later checkpoints cover the same records";
    told.push(`${file}: skipped ${torn.length} incomplete checkpoints, at line ${which}: ${why}`);
  }
  if (ignored > 0) told.push(`${file}: ignored ${ignored} lines that are not checkpoints`);
  return told;
}

const UNDECIDED =
  "Not decided: what these checkpoints cover may have been written after the export, or be gone. Export again, and verify that with the same witness.";

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
): Promise<{
  proofs: ReadonlyMap<string, LogProof>;
  below: ReadonlyMap<string, number>;
  moment: LogRecord | undefined;
  /** How many events each policy decided. */
  decidedBy: ReadonlyMap<string, number>;
}> {
  // A log that a checkpoint names is expected, even if the export has no record of it.
  const proofs = new Map([...assertions].map(([log, ofLog]) => [log, new LogProof(ofLog)]));
  const before = new Map<string, LogRecord>();
  /** The first sequence number that retention kept of each log, as its events record it. */
  const below = new Map<string, number>();
  /** The record of the export itself, which is the last one of its kind. */
  let moment: LogRecord | undefined;
  const decidedBy = new Map<string, number>();
  let number = 0;
  for await (const line of readLines(file)) {
    number++;
    const read = readRecord(line);
    if (read === undefined && number === 1) {
      bad(`${file} is not an export: its first line is not a record of an audit log`);
      break;
    }
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
    if (record.exported !== undefined) moment = record;
    const { policy } = record;
    if (policy !== undefined) decidedBy.set(policy, (decidedBy.get(policy) ?? 0) + 1);
    for (const [name, seq] of record.below) below.set(name, Math.max(seq, below.get(name) ?? 0));
  }
  return { proofs, below, moment, decidedBy };
}

const HASH = /^[0-9a-f]{64}$/;

function readRecord(line: string): readonly [string, LogRecord] | undefined {
  const json = parseJson(line, CLAIMS_DEPTH_MAX);
  if (!json.ok || !isJsonObject(json.value)) return undefined;
  const { v, log, seq, prev, type, time } = json.value;
  const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (
    !RECORD_VERSIONS.includes(v) ||
    typeof log !== "string" ||
    typeof type !== "string" ||
    Number.isNaN(timeMs)
  )
    return undefined;
  if (typeof seq !== "number" || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  if (typeof prev !== "string" || !HASH.test(prev)) return undefined;
  const { detail } = json.value;
  const below = type === "log.pruned" ? readSizes(detail, "below") : [];
  const isExport = type === "admin.access" && isJsonObject(detail) && detail.command === "audit export";
  return [
    log,
    defined<LogRecord>({
      seq,
      prev,
      hash: hashRead(line, json.value),
      genesis: type === "log.genesis",
      ended: type === LOG_END,
      timeMs,
      below,
      policy: json.value.facts === undefined ? undefined : policyOf(json.value.policy),
      exported: isExport ? new Map(readSizes(detail, "heads")) : undefined,
    }),
  ];
}

const policyOf = (policy: Json | undefined): string | undefined =>
  isJsonObject(policy) && typeof policy.digest === "string" ? policy.digest : undefined;

/** A number for each log, as a detail has them. */
function readSizes(detail: Json | undefined, name: "below" | "heads"): [string, number][] {
  const sizes = isJsonObject(detail) && isJsonObject(detail[name]) ? detail[name] : {};
  return Object.entries(sizes).flatMap(([log, size]) => (typeof size === "number" ? [[log, size]] : []));
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
