/**
 * RFC 9162, Certificate Transparency Version 2.0: https://www.rfc-editor.org/rfc/rfc9162.html
 * Covers 2.1.1 the Merkle tree. Proofs (2.1.3, 2.1.4) are not offered, because a verifier has every record and computes
 * the whole tree. SHA-256 and the leaf hashes are arguments: the log's writer hashes its entries, each after a zero
 * byte.
 */

export type Sha256 = (data: Uint8Array) => Uint8Array;

/** The state from which a tree grows: its size, and the roots of its complete subtrees, the largest first. */
export type Tree = { readonly size: number; readonly peaks: readonly Uint8Array[] };

export const EMPTY_TREE: Tree = { size: 0, peaks: [] };

const HASH_BYTES = 32;

/** RFC9162-2.1.1-1: an inner node is hashed with its own prefix, so that it cannot be taken for an entry. */
function hashNode(left: Uint8Array, right: Uint8Array, sha256: Sha256): Uint8Array {
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
