/**
 * The hashes of the trees in the store (RCPT-D-4), and the proofs that are made of them: our own design, after RFC 9162
 * 2.1. Hashes stand in rows of 256: a proof reads a few rows, and none of the records.
 */
import { hash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { hashNode, type Leaves, type Sha256, splitOf } from "../../audit/tree.ts";
import type { AuditRows } from "../store/trail.ts";

export const sha256: Sha256 = (data) => hash("sha256", data, "buffer");

const ROW = 256;
const ROW_HEIGHT = 8;
const HASH_BYTES = 32;

type Rows = Pick<AuditRows, "hashes" | "treeRow" | "keepTreeRow">;

const rootOfAll = (hashes: readonly Uint8Array[]): Uint8Array => {
  let level = hashes;
  while (level.length > 1)
    level = Array.from({ length: level.length / 2 }, (_, at) =>
      hashNode(level[2 * at] as Uint8Array, level[2 * at + 1] as Uint8Array, sha256),
    );
  return level[0] as Uint8Array;
};

function split(hashes: string): Uint8Array[] {
  const bytes = Uint8Array.fromBase64(hashes);
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, at) =>
    bytes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
}

export class TreeHashes {
  readonly #store: Rows;
  readonly #log: string;
  /** What this look has read. */
  readonly #read = new Map<string, Promise<readonly Uint8Array[]>>();

  constructor(store: Rows, log: string) {
    this.#store = store;
    this.#log = log;
  }

  /**
   * Keeps the hashes of the first `size` records: of whole rows, and with `begun` those of the last one too. Of several
   * instances that do it at the same time each writes the same.
   */
  async keep(size: number, begun = false): Promise<void> {
    const last = await this.#store.treeRow(this.#log, 0);
    for (let number = last?.number ?? 0; number * ROW < size; number++) {
      const upTo = Math.min((number + 1) * ROW, size);
      if (upTo % ROW !== 0 && !begun) return;
      const hashes = (await this.#leaves(number)).slice(0, upTo - number * ROW);
      // The row above comes first, so that one that ends early is made again.
      if (hashes.length === ROW) await this.#add(1, number, rootOfAll(hashes));
      await this.#write(0, number, hashes);
      await turn();
    }
  }

  async #add(level: number, index: number, hash: Uint8Array): Promise<void> {
    const number = Math.floor(index / ROW);
    const hashes = [...(await this.#kept(level, number)).slice(0, index % ROW), hash];
    if (hashes.length === ROW) await this.#add(level + 1, number, rootOfAll(hashes));
    await this.#write(level, number, hashes);
  }

  async #write(level: number, number: number, hashes: readonly Uint8Array[]): Promise<void> {
    await this.#store.keepTreeRow({
      log: this.#log,
      level,
      number,
      hashes: Buffer.concat(hashes).toString("base64"),
    });
  }

  async #kept(level: number, number: number): Promise<readonly Uint8Array[]> {
    const row = await this.#store.treeRow(this.#log, level, number);
    return row === undefined ? [] : split(row.hashes);
  }

  /** Those of removed records are in their row, those of the newest may be with their events alone. */
  async #leaves(number: number): Promise<readonly Uint8Array[]> {
    const kept = await this.#kept(0, number);
    if (kept.length === ROW) return kept;
    const from = number * ROW + kept.length;
    const found = await this.#store.hashes(this.#log, from, (number + 1) * ROW);
    return [...kept, ...found.map((one) => Uint8Array.fromHex(one))];
  }

  /** The roots of these subtrees of a tree whose hashes are kept. */
  roots(subtrees: readonly Leaves[]): Promise<readonly Uint8Array[]> {
    return Promise.all(subtrees.map((one) => this.root(one)));
  }

  async root([from, to]: Leaves): Promise<Uint8Array> {
    const size = to - from;
    const height = Math.log2(size);
    if (Number.isInteger(height)) return this.#node(height, from / size);
    const middle = from + splitOf(size);
    return hashNode(await this.root([from, middle]), await this.root([middle, to]), sha256);
  }

  async #node(height: number, index: number): Promise<Uint8Array> {
    const level = Math.floor(height / ROW_HEIGHT);
    const width = 2 ** (height % ROW_HEIGHT);
    const number = Math.floor((index * width) / ROW);
    const at = (index * width) % ROW;
    const read = () => (level === 0 ? this.#leaves(number) : this.#kept(level, number));
    const hashes = (await this.#read.getOrInsertComputed(`${level} ${number}`, read)).slice(at, at + width);
    if (hashes.length !== width) throw new Error(`the log ${this.#log} lacks hashes of its tree`);
    return rootOfAll(hashes);
  }
}
