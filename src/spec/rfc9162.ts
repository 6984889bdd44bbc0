/**
 * RFC 9162, Certificate Transparency Version 2.0: https://www.rfc-editor.org/rfc/rfc9162.html
 * Covers 2.1.1 the Merkle tree, 2.1.3 inclusion proofs, 2.1.4 consistency proofs. SHA-256 itself is an argument,
 * and so are the leaf hashes: who writes the log hashes its entries, each behind a byte of zero.
 */

export type Sha256 = (data: Uint8Array) => Uint8Array;

/** All that a tree of this size needs to grow: the roots of its complete subtrees, the largest first. */
export type Tree = { readonly size: number; readonly peaks: readonly Uint8Array[] };

export const EMPTY_TREE: Tree = { size: 0, peaks: [] };

const HASH_BYTES = 32;

/** RFC9162-2.1.1-1: the node prefix, so that no inner node can pass for an entry. */
function hashNode(left: Uint8Array, right: Uint8Array, sha256: Sha256): Uint8Array {
  const data = new Uint8Array(1 + 2 * HASH_BYTES);
  data[0] = 1;
  data.set(left, 1);
  data.set(right, 1 + HASH_BYTES);
  return sha256(data);
}

const half = (size: number): number => Math.floor(size / 2);
const isOdd = (size: number): boolean => size % 2 === 1;

/** RFC9162-2.1.1-2: complete subtrees of equal size join, so that there is one for each power of two in the size. */
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

export function rootOf({ peaks }: Tree, sha256: Sha256): Uint8Array {
  const [last, ...larger] = peaks.toReversed();
  if (last === undefined) return sha256(new Uint8Array(0));
  return larger.reduce((right, left) => hashNode(left, right, sha256), last);
}

/** Whether these can be the peaks of a tree of this size. */
export function isTree({ size, peaks }: Tree): boolean {
  let count = 0;
  for (let rest = size; rest > 0; rest = half(rest)) if (isOdd(rest)) count++;
  return peaks.length === count && peaks.every(({ length }) => length === HASH_BYTES);
}

/** The root of some leaves. */
export function treeHash(leaves: readonly Uint8Array[], sha256: Sha256): Uint8Array {
  return rootOf(
    leaves.reduce((tree, leaf) => appendLeaf(tree, leaf, sha256), EMPTY_TREE),
    sha256,
  );
}

/** RFC9162-2.1.1-2: the largest power of two below the size. */
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

/** 2.1.3.1: what proves that a tree of these leaves has this one; undefined for an index that is not in it. */
export function inclusionProof(
  leaves: readonly Uint8Array[],
  index: number,
  sha256: Sha256,
): readonly Uint8Array[] | undefined {
  if (!Number.isSafeInteger(index) || index < 0 || index >= leaves.length) return undefined;
  const path: Uint8Array[] = [];
  let [rest, at] = [leaves, index];
  while (rest.length > 1) {
    const split = splitOf(rest.length);
    const [left, right] = [rest.slice(0, split), rest.slice(split)];
    path.push(treeHash(at < split ? right : left, sha256));
    [rest, at] = at < split ? [left, at] : [right, at - split];
  }
  return path.reverse();
}

/** 2.1.4.1: what proves that the first leaves are still those of an older tree of that size, which is not empty. */
export function consistencyProof(
  leaves: readonly Uint8Array[],
  olderSize: number,
  sha256: Sha256,
): readonly Uint8Array[] | undefined {
  if (!Number.isSafeInteger(olderSize) || olderSize < 1 || olderSize > leaves.length) return undefined;
  const path: Uint8Array[] = [];
  let [rest, older, whole] = [leaves, olderSize, true];
  while (older < rest.length) {
    const split = splitOf(rest.length);
    const [left, right] = [rest.slice(0, split), rest.slice(split)];
    if (older <= split) {
      path.push(treeHash(right, sha256));
      rest = left;
    } else {
      path.push(treeHash(left, sha256));
      [rest, older, whole] = [right, older - split, false];
    }
  }
  // The older tree is a complete subtree here; who verifies knows its root only if it is the whole of it.
  if (!whole) path.push(treeHash(rest, sha256));
  return path.reverse();
}

export type InclusionClaim = {
  leaf: Uint8Array;
  index: number;
  size: number;
  root: Uint8Array;
  path: readonly Uint8Array[];
};

/** RFC9162-2.1.3-1 */
export function verifyInclusion(claim: InclusionClaim, sha256: Sha256): boolean {
  const { leaf, index, size, root, path } = claim;
  if (!areSizes(index, size) || index >= size || !areHashes([leaf, root, ...path])) return false;
  let [at, last, hash] = [index, size - 1, leaf];
  for (const sibling of path) {
    // The path is longer than the tree is high.
    if (last === 0) return false;
    if (isOdd(at) || at === last) {
      hash = hashNode(sibling, hash, sha256);
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      hash = hashNode(hash, sibling, sha256);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && areEqual(hash, root);
}

export type ConsistencyClaim = {
  olderSize: number;
  olderRoot: Uint8Array;
  size: number;
  root: Uint8Array;
  path: readonly Uint8Array[];
};

/** RFC9162-2.1.4-1 */
export function verifyConsistency(claim: ConsistencyClaim, sha256: Sha256): boolean {
  const { olderSize, olderRoot, size, root, path } = claim;
  if (!areSizes(olderSize, size) || olderSize < 1 || olderSize > size) return false;
  if (!areHashes([olderRoot, root, ...path])) return false;
  if (olderSize === size) return path.length === 0 && areEqual(olderRoot, root);
  let [at, last] = [olderSize - 1, size - 1];
  while (isOdd(at)) [at, last] = [half(at), half(last)];
  // An older tree that is one complete subtree is not in the path: its root is known.
  const [first, ...others] = at === 0 ? [olderRoot, ...path] : path;
  if (first === undefined || path.length === 0) return false;
  let [older, newer] = [first, first];
  for (const node of others) {
    if (last === 0) return false;
    if (isOdd(at) || at === last) {
      older = hashNode(node, older, sha256);
      newer = hashNode(node, newer, sha256);
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      newer = hashNode(newer, node, sha256);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && areEqual(older, olderRoot) && areEqual(newer, root);
}

const areSizes = (...sizes: number[]): boolean =>
  sizes.every((size) => Number.isSafeInteger(size) && size >= 0);

const areHashes = (hashes: readonly Uint8Array[]): boolean =>
  hashes.every(({ length }) => length === HASH_BYTES);

const areEqual = (one: Uint8Array, other: Uint8Array): boolean => one.toHex() === other.toHex();
