/**
 * The signed checkpoint of a log: our own design (clauses AUDIT-D), after RFC 9162 2.1. It is a JWS with its own type
 * and its own key, which is not published at `/jwks`: a resource server that ignores `typ` could take a checkpoint for
 * a token.
 */
import * as v from "valibot";
import { defined, err, ok, type Result } from "../result.ts";
import type { Jws } from "../spec/rfc7515.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { checkType } from "../spec/rfc8725.ts";
import { isTree, type Tree } from "./tree.ts";

export const CHECKPOINT_JWT = "audit-checkpoint+jwt";
/** RCPT-D-9: the key signs the checkpoint as a note, too, for which verifiers read Ed25519. */
export const CHECKPOINT_ALGORITHM = "EdDSA";

/** The state of a log: the number of its records, and the hash of the last one (hex). */
export type LogHead = { size: number; hash: string };

export type Checkpoint = {
  issuer: string;
  log: string;
  /** Root (hex) of the Merkle tree over the first `tree.size` records. */
  root: string;
  /**
   * The state from which the tree grows, so that a log can be verified from here on after older records are removed.
   */
  tree: Tree;
  /** The hash (hex) of the last of these records. */
  hash: string;
  timeMs: number;
  /** The state of the store's other logs at that time, by name. */
  heads: ReadonlyMap<string, LogHead>;
  /** The id of the key and its signature over the same as a note (base64). */
  note?: string;
};

type CheckpointFailure = { kind: "checkpoint_type_refused" | "checkpoint_malformed" };

/** The claims of a checkpoint. */
export function buildCheckpoint({
  issuer,
  log,
  root,
  tree,
  hash,
  timeMs,
  heads,
  note,
}: Checkpoint): JsonObject {
  return defined<JsonObject>({
    iss: issuer,
    log,
    tree_size: tree.size,
    root,
    peaks: tree.peaks.map((peak) => peak.toHex()),
    head: hash,
    time: new Date(timeMs).toISOString(),
    heads: Object.fromEntries(
      [...heads].map(([name, head]) => [name, { tree_size: head.size, head: head.hash }]),
    ),
    note,
  });
}

const hash = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const size = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

const Claims = v.object({
  iss: v.string(),
  log: v.string(),
  tree_size: size,
  root: hash,
  peaks: v.array(hash),
  head: hash,
  time: v.pipe(v.string(), v.isoTimestamp()),
  heads: v.record(v.string(), v.object({ tree_size: size, head: hash })),
  note: v.optional(v.string()),
});

/** Reads the claims of a checkpoint; the caller verifies the signature. */
export function readCheckpoint({ header, claims }: Jws): Result<Checkpoint, CheckpointFailure> {
  // RFC8725-3.11-v1: a JWT of another type is not a checkpoint.
  if (!checkType(header, [CHECKPOINT_JWT]).ok) return err({ kind: "checkpoint_type_refused" });
  const parsed = v.safeParse(Claims, claims);
  if (!parsed.success) return err({ kind: "checkpoint_malformed" });
  const { iss, log, tree_size, root, peaks, head, time, heads, note } = parsed.output;
  const tree = { size: tree_size, peaks: peaks.map((peak) => Uint8Array.fromHex(peak)) };
  if (!isTree(tree)) return err({ kind: "checkpoint_malformed" });
  return ok(
    defined<Checkpoint>({
      issuer: iss,
      log,
      root,
      tree,
      hash: head,
      timeMs: Date.parse(time),
      heads: new Map(
        Object.entries(heads).map(([name, one]) => [name, { size: one.tree_size, hash: one.head }]),
      ),
      note,
    }),
  );
}
