/**
 * The receipt of an event (C2SP tlog-proof v1, 22 July 2026): https://c2sp.org/tlog-proof
 * Covers the text of it; what `extra` holds is our own design (RCPT-D-1).
 */
import { canonicalizeSparse } from "../spec/rfc8785.ts";

/** A part that a receipt shows, as canonical JSON, with its salt. */
type Shown = { part: string; salt: string };

export type ReceiptOf = {
  /** The commitments of the entry, and the hash of the entry before it. */
  entry: { c: string; r: string; prev: string };
  token: Shown;
  chain?: Shown;
  rest?: Shown;
  index: number;
  /** The siblings on the way from the leaf to the root. */
  proof: readonly Uint8Array[];
  /** The signed note. */
  checkpoint: string;
};

/** TLPR-format-1: the proof's lines, an empty line, and the checkpoint as it is. */
export function receiptText({ entry, token, chain, rest, index, proof, checkpoint }: ReceiptOf): string {
  const extra = canonicalizeSparse({
    ...entry,
    ...shown("c", chain),
    ...shown("r", rest),
    s: token.salt,
    t: JSON.parse(token.part),
    v: 2,
  });
  const lines = [
    "c2sp.org/tlog-proof@v1",
    `extra ${new TextEncoder().encode(extra).toBase64()}`,
    `index ${index}`,
    ...proof.map((hash) => hash.toBase64()),
  ];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

const shown = (name: "c" | "r", one: Shown | undefined) =>
  one && { [`${name}p`]: JSON.parse(one.part), [`${name}s`]: one.salt };
