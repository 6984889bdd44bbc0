import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import {
  appendLeaf,
  consistencyProof,
  EMPTY_TREE,
  inclusionProof,
  isTree,
  rootOf,
  treeHash,
  verifyConsistency,
  verifyInclusion,
} from "../../src/spec/rfc9162.ts";

const sha256 = (data: Uint8Array): Uint8Array => createHash("sha256").update(data).digest();
const leafOf = (entry: string): Uint8Array => sha256(Buffer.concat([Buffer.of(0), Buffer.from(entry)]));
const leavesOf = (count: number): Uint8Array[] =>
  Array.from({ length: count }, (_, index) => leafOf(`e${index}`));
const hex = (hashes: readonly Uint8Array[] | undefined): string[] | undefined =>
  hashes?.map((hash) => hash.toHex());
const bytes = (text: string): Uint8Array => Uint8Array.fromHex(text);

const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "956ae51bd3e285ccb826298dd523dd08824ce5579749994f2e0021737b9dd4b8",
  "718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d",
  "64b249c4e0606e3d9742c49bfd57cd1e3eb170f5ccefa26ea045ca193d64a75f",
  "95669b376bc4e3544da09825e59ae202a35ac0fc5e5809a2ca63d81e89d17d6c",
  "e14e43627e473070de926fe026cc670820e60288089abd1f95f83f42fe81f7ab",
];
const E2_PATH = [
  "d5bdb58a19173a6a0111df3f1f62dbaa00e44221e0f09b47489812a010cd5314",
  "718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d",
  "8e1f887cfc7c7a5e43f202daf67d99ae8f8fd4b33a6b251bcf9f5d83476303ea",
];
const FROM_3 = ["e76eb1b97b06757150f95e06357a7dc404ca511b63a90330a56a94df3d0d66d1", ...E2_PATH];

for (const [size, root] of ROOTS.entries()) {
  test(`RFC9162-2.1.1-1, RFC9162-2.1.1-2 has the published root over ${size} leaves`, () => {
    assert.equal(treeHash(leavesOf(size), sha256).toHex(), root);
  });
}

test("RFC9162-2.1.1-2 grows leaf by leaf to the root of them all, keeping no more than its peaks", () => {
  let tree = EMPTY_TREE;
  for (const [index, leaf] of leavesOf(70).entries()) {
    tree = appendLeaf(tree, leaf, sha256);
    assert.ok(isTree(tree));
    assert.equal(tree.size, index + 1);
    const split = 2 ** Math.floor(Math.log2(tree.size - 1));
    if (tree.size === 1) continue;
    // By the definition: the root joins the roots of its two sides.
    const leaves = leavesOf(tree.size);
    const sides = [leaves.slice(0, split), leaves.slice(split)].map((side) => treeHash(side, sha256));
    assert.deepEqual(rootOf(tree, sha256), sha256(Buffer.concat([Buffer.of(1), ...sides])));
  }
});

test("RFC9162-2.1.1-2 takes no other number of peaks than the size has, and none that is no hash", () => {
  const tree = leavesOf(5).reduce((grown, leaf) => appendLeaf(grown, leaf, sha256), EMPTY_TREE);
  const [large = new Uint8Array(), small = new Uint8Array()] = tree.peaks;
  assert.ok(isTree(tree));
  assert.ok(!isTree({ size: 5, peaks: [large] }));
  assert.ok(!isTree({ size: 4, peaks: [large, small] }));
  assert.ok(!isTree({ size: 5, peaks: [large, small.slice(1)] }));
});

test("RFC9162-2.1.3-1 proves e2 in a tree of five by the published path", () => {
  assert.deepEqual(hex(inclusionProof(leavesOf(5), 2, sha256)), E2_PATH);
});

test("RFC9162-2.1.4-1 proves that five began with three by the published path", () => {
  assert.deepEqual(hex(consistencyProof(leavesOf(5), 3, sha256)), FROM_3);
});

test("RFC9162-2.1.3-1 verifies every leaf of every small tree, and no other leaf, place or size", () => {
  for (let size = 1; size <= 20; size++) {
    const leaves = leavesOf(size);
    const root = treeHash(leaves, sha256);
    for (const [index, leaf] of leaves.entries()) {
      const path = inclusionProof(leaves, index, sha256) ?? [];
      const claim = { leaf, index, size, root, path };
      assert.ok(verifyInclusion(claim, sha256), `${index} of ${size}`);
      assert.ok(!verifyInclusion({ ...claim, leaf: leafOf("other") }, sha256));
      for (let other = 0; other < size; other++) {
        if (other !== index) assert.ok(!verifyInclusion({ ...claim, index: other }, sha256));
      }
    }
  }
});

const e2 = { leaf: leafOf("e2"), index: 2, size: 5, root: bytes(ROOTS[5] ?? ""), path: E2_PATH.map(bytes) };
const badInclusions = {
  "an index at the tree size": { ...e2, index: 5 },
  "a negative index": { ...e2, index: -1 },
  "an index that is no whole number": { ...e2, index: 1.5 },
  "a path that is too long": { ...e2, path: [...e2.path, e2.root] },
  "a path that is too short": { ...e2, path: e2.path.slice(0, -1) },
  "an empty path": { ...e2, path: [] },
  "another root": { ...e2, root: bytes(ROOTS[4] ?? "") },
  "a node of the wrong length": { ...e2, path: [e2.path[0]?.slice(1) ?? e2.root, ...e2.path.slice(1)] },
  "an empty tree": { ...e2, size: 0 },
};
test("RFC9162-2.1.3-1 accepts the published proof", () => assert.ok(verifyInclusion(e2, sha256)));
for (const [what, claim] of Object.entries(badInclusions)) {
  test(`RFC9162-2.1.3-1 refuses ${what}`, () => assert.ok(!verifyInclusion(claim, sha256)));
}

test("RFC9162-2.1.3-1 has no proof for what is not in the tree", () => {
  for (const index of [-1, 5, 0.5]) assert.equal(inclusionProof(leavesOf(5), index, sha256), undefined);
});

test("RFC9162-2.1.4-1 verifies every pair of small trees, and no other history", () => {
  for (let size = 1; size <= 20; size++) {
    const leaves = leavesOf(size);
    const root = treeHash(leaves, sha256);
    const forged = treeHash([leafOf("other"), ...leaves.slice(1)], sha256);
    for (let olderSize = 1; olderSize <= size; olderSize++) {
      const path = consistencyProof(leaves, olderSize, sha256) ?? [];
      const olderRoot = treeHash(leaves.slice(0, olderSize), sha256);
      const claim = { olderSize, olderRoot, size, root, path };
      assert.ok(verifyConsistency(claim, sha256), `${olderSize} of ${size}`);
      assert.ok(!verifyConsistency({ ...claim, root: forged }, sha256));
      assert.ok(!verifyConsistency({ ...claim, olderRoot: forged }, sha256));
      for (let other = 1; other <= size; other++) {
        if (other !== olderSize) assert.ok(!verifyConsistency({ ...claim, olderSize: other }, sha256));
      }
    }
  }
});

const grown = {
  olderSize: 3,
  olderRoot: bytes(ROOTS[3] ?? ""),
  size: 5,
  root: bytes(ROOTS[5] ?? ""),
  path: FROM_3.map(bytes),
};
const badConsistencies = {
  "an older tree that is empty": { ...grown, olderSize: 0, olderRoot: bytes(ROOTS[0] ?? "") },
  "an older tree that is larger": { ...grown, olderSize: 6 },
  "an empty path": { ...grown, path: [] },
  "a path that is too long": { ...grown, path: [...grown.path, grown.root] },
  "a path that is too short": { ...grown, path: grown.path.slice(0, -1) },
  "the older root for the newer": { ...grown, root: grown.olderRoot },
  "a path between equal sizes": { ...grown, olderSize: 5, olderRoot: grown.root },
  "a node of the wrong length": { ...grown, path: [grown.root.slice(1), ...grown.path.slice(1)] },
};
test("RFC9162-2.1.4-1 accepts the published proof", () => assert.ok(verifyConsistency(grown, sha256)));
for (const [what, claim] of Object.entries(badConsistencies)) {
  test(`RFC9162-2.1.4-1 refuses ${what}`, () => assert.ok(!verifyConsistency(claim, sha256)));
}

test("RFC9162-2.1.4-1 has no proof from an empty or a larger tree", () => {
  for (const size of [0, 6, 1.5]) assert.equal(consistencyProof(leavesOf(5), size, sha256), undefined);
});
