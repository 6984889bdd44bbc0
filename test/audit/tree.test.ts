import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { appendLeaf, EMPTY_TREE, isTree, rootOf } from "../../src/audit/tree.ts";

const sha256 = (data: Uint8Array): Uint8Array => createHash("sha256").update(data).digest();
const leafOf = (entry: string): Uint8Array => sha256(Buffer.concat([Buffer.of(0), Buffer.from(entry)]));
const leavesOf = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) => leafOf(`e${index}`));
/** By the definition: the split is the largest power of two below the number of leaves. */
function treeHash(leaves: readonly Uint8Array[]): Uint8Array {
  const [first] = leaves;
  if (first === undefined) return sha256(new Uint8Array(0));
  if (leaves.length === 1) return first;
  const split = 2 ** Math.floor(Math.log2(leaves.length - 1));
  const sides = [leaves.slice(0, split), leaves.slice(split)].map(treeHash);
  return sha256(Buffer.concat([Buffer.of(1), ...sides]));
}

const grow = (leaves: readonly Uint8Array[]) =>
  leaves.reduce((tree, leaf) => appendLeaf(tree, leaf, sha256), EMPTY_TREE);

const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "956ae51bd3e285ccb826298dd523dd08824ce5579749994f2e0021737b9dd4b8",
  "718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d",
  "64b249c4e0606e3d9742c49bfd57cd1e3eb170f5ccefa26ea045ca193d64a75f",
  "95669b376bc4e3544da09825e59ae202a35ac0fc5e5809a2ca63d81e89d17d6c",
  "e14e43627e473070de926fe026cc670820e60288089abd1f95f83f42fe81f7ab",
];
for (const [size, root] of ROOTS.entries()) {
  test(`RFC9162-2.1.1-1, RFC9162-2.1.1-2 the root of ${size} leaves is the published one`, () => {
    assert.equal(rootOf(grow(leavesOf(size)), sha256).toHex(), root);
    assert.equal(Buffer.from(treeHash(leavesOf(size))).toString("hex"), root);
  });
}

test("RFC9162-2.1.1-2 appending leaf by leaf yields the root of all leaves and keeps only the peaks", () => {
  let tree = EMPTY_TREE;
  for (const [index, leaf] of leavesOf(70).entries()) {
    tree = appendLeaf(tree, leaf, sha256);
    assert.ok(isTree(tree));
    assert.equal(tree.size, index + 1);
    assert.deepEqual(Buffer.from(rootOf(tree, sha256)), Buffer.from(treeHash(leavesOf(tree.size))));
  }
});

test("RFC9162-2.1.1-2 a number of peaks that does not fit the size, and a peak that is not a hash, are refused", () => {
  const tree = grow(leavesOf(5));
  const [large = new Uint8Array(), small = new Uint8Array()] = tree.peaks;
  assert.ok(isTree(tree));
  assert.ok(!isTree({ size: 5, peaks: [large] }));
  assert.ok(!isTree({ size: 4, peaks: [large, small] }));
  assert.ok(!isTree({ size: 5, peaks: [large, small.slice(1)] }));
});
