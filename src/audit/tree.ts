/**
 * RFC 9162, Certificate Transparency Version 2.0: https://www.rfc-editor.org/rfc/rfc9162.html
 * Covers 2.1.1 the Merkle tree, 2.1.3.1 and 2.1.4.1 what a proof is made of. SHA-256 and the leaf hashes are arguments: the
 * log's writer hashes its entries, each after a zero byte. Their verifiers are programs that are printed.
 */

export type Sha256 = (data: Uint8Array) => Uint8Array;

/** The state from which a tree grows: its size, and the roots of its complete subtrees, the largest first. */
export type Tree = { readonly size: number; readonly peaks: readonly Uint8Array[] };

export const EMPTY_TREE: Tree = { size: 0, peaks: [] };

const HASH_BYTES = 32;

/** RFC9162-2.1.1-1: an inner node is hashed with its own prefix, so that it cannot be taken for an entry. */
export function hashNode(left: Uint8Array, right: Uint8Array, sha256: Sha256): Uint8Array {
  const data = new Uint8Array(1 + 2 * HASH_BYTES);
  data[0] = 1;
  data.set(left, 1);
  data.set(right, 1 + HASH_BYTES);
  return sha256(data);
}

const half = (size: number): number => Math.floor(size / 2);
const isOdd = (size: number): boolean => size % 2 === 1;

/** RFC9162-2.1.1-2: subtrees of equal size are joined, so that one remains for each power of two in the size. */
export function appendLeaf({ size, peaks }: Tree, leaf: Uint8Array, sha256: Sha256): Tree {
  const left = [...peaks];
  let node = leaf;
  for (let rest = size; isOdd(rest); rest = half(rest)) {
    const sibling = left.pop();
    if (sibling === undefined) throw new Error("the tree has fewer peaks than its size needs");
    node = hashNode(sibling, node, sha256);
  }
  return { size: size + 1, peaks: [...left, node] };
}

/** The root hash; that of an empty tree is the hash of the empty string. */
export function rootOf({ peaks }: Tree, sha256: Sha256): Uint8Array {
  const [last, ...larger] = peaks.toReversed();
  if (last === undefined) return sha256(new Uint8Array(0));
  return larger.reduce((right, left) => hashNode(left, right, sha256), last);
}

/** Whether a tree of this size has this number of peaks, each as long as a hash. */
export function isTree({ size, peaks }: Tree): boolean {
  let count = 0;
  for (let rest = size; rest > 0; rest = half(rest)) if (isOdd(rest)) count++;
  return peaks.length === count && peaks.every(({ length }) => length === HASH_BYTES);
}

/** The leaves from one number to before another. */
export type Leaves = readonly [from: number, to: number];

/** RFC9162-2.1.1-2: the largest power of two below the number, of two or more. */
export const splitOf = (size: number): number => 2 ** Math.floor(Math.log2(size - 1));

/** The subtrees whose roots prove a leaf to be in a tree, from the leaf on. */
export function inclusionOf(index: number, size: number): readonly Leaves[] {
  const siblings: Leaves[] = [];
  for (let [from, to] = [0, size]; to - from > 1; ) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      siblings.push([middle, to]);
      to = middle;
    } else {
      siblings.push([from, middle]);
      from = middle;
    }
  }
  return siblings.reverse();
}

/** The subtrees whose roots prove a tree to have grown from the one of its first `before` leaves. */
export function consistencyOf(before: number, size: number): readonly Leaves[] {
  const nodes: Leaves[] = [];
  let [from, to] = [0, size];
  while (to > before) {
    const middle = from + splitOf(to - from);
    if (before <= middle) {
      nodes.push([middle, to]);
      to = middle;
    } else {
      nodes.push([from, middle]);
      from = middle;
    }
  }
  // The verifier has the root of the earlier tree.
  return from === 0 ? nodes.reverse() : [...nodes, [from, to] as const].reverse();
}
