import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { findIssuing, makeReceipt } from "../../../src/adapters/audit/receipts.ts";
import { sha256, TreeHashes } from "../../../src/adapters/audit/tree-hashes.ts";
import { verifier } from "../../../src/adapters/crypto/verifier.ts";
import type { AuditRows, TreeRow } from "../../../src/adapters/store/trail.ts";
import {
  KEY_ID_BYTES,
  keyIdInput,
  noteText,
  signatureOf,
  signedNote,
  verifierKey,
} from "../../../src/audit/note.ts";
import {
  appendLeaf,
  consistencyOf,
  EMPTY_TREE,
  hashNode,
  inclusionOf,
  type Leaves,
  rootOf,
  splitOf,
} from "../../../src/audit/tree.ts";
import { NO_PYTHON, programs } from "../../support/developers.ts";
import { prng } from "../../support/prng.ts";
import {
  alter,
  forget,
  issuing,
  loadVerifier,
  makeReceipts,
  RECEIPT_PROGRAMS,
  type Receipts,
} from "../../support/receipts.ts";

const python = spawnSync("python3", ["-c", "import cryptography"]).status === 0;
const NO_CRYPTOGRAPHY = NO_PYTHON || (python ? false : "python3 has no cryptography");

// --- notes and trees --------------------------------------------------------------------------------------------

test("NOTE-format-1, NOTE-format-2, NOTE-sig-2, TLCP-text-1, TLCP-sig-2, RCPT-D-9 a checkpoint is the published note", () => {
  const { privateKey, raw } = keyPair(7);
  const origin = "as.example/audit/as-1";
  const id = sha256(keyIdInput(origin, raw)).subarray(0, KEY_ID_BYTES);
  const root = Buffer.from("b/piMBm88Q/WtaOX+hzQvCMmpFrYvBkGrABT6GgeyzI=", "base64");
  const text = noteText(origin, 2, root);
  const signature = signatureOf(id, sign(null, Buffer.from(text), privateKey));
  assert.equal(
    verifierKey(origin, id, raw),
    `${origin}+dcc64024+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs`,
  );
  assert.equal(
    signedNote(origin, text, signature),
    `${origin}\n2\nb/piMBm88Q/WtaOX+hzQvCMmpFrYvBkGrABT6GgeyzI=\n\n— ${origin} 3MZAJPbyVwyx0pQvBpigNi1LyPdiTjgDF6vuFqgHtzpkdWHEkqkgq8Xsh5X6qqsMeV9Wqo8kt0xQHJUw8myPmmTAbQA=\n`,
  );
});

const leafOf = (entry: string): Uint8Array => sha256(Buffer.from(`\0${entry}`));
const leaves = Array.from({ length: 70 }, (_, index) => leafOf(`e${index}`));
const rootBetween = ([from, to]: Leaves): Uint8Array =>
  rootOf(
    leaves.slice(from, to).reduce((tree, leaf) => appendLeaf(tree, leaf, sha256), EMPTY_TREE),
    sha256,
  );
const hexOf = (subtrees: readonly Leaves[]): string[] => subtrees.map((one) => rootBetween(one).toHex());

test("RFC9162-2.1.3-1, RFC9162-2.1.4-1 the proofs of five leaves are the published ones", () => {
  const [two, three] = [
    "d5bdb58a19173a6a0111df3f1f62dbaa00e44221e0f09b47489812a010cd5314",
    "8e1f887cfc7c7a5e43f202daf67d99ae8f8fd4b33a6b251bcf9f5d83476303ea",
  ];
  const first = "718fa0369d7475099bc6cb4327e3823a4972285f92bd49971a583c9f08ffb68d";
  assert.deepEqual(hexOf(inclusionOf(2, 5)), [two, first, three]);
  const leaf = "e76eb1b97b06757150f95e06357a7dc404ca511b63a90330a56a94df3d0d66d1";
  assert.deepEqual(hexOf(consistencyOf(3, 5)), [leaf, two, first, three]);
});

/** RFC 9162 2.1.4.2 */
function isConsistent(before: number, size: number, proof: readonly Uint8Array[]): boolean {
  const path = (before & (before - 1)) === 0 ? [rootBetween([0, before]), ...proof] : [...proof];
  let [fn, sn] = [before - 1, size - 1];
  while (fn % 2 === 1) [fn, sn] = [fn >> 1, sn >> 1];
  let [older, newer] = [path[0], path[0]] as [Uint8Array, Uint8Array];
  for (const node of path.slice(1)) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      [older, newer] = [hashNode(node, older, sha256), hashNode(node, newer, sha256)];
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1];
    } else newer = hashNode(newer, node, sha256);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  const roots = [
    older.toHex() === rootBetween([0, before]).toHex(),
    newer.toHex() === rootBetween([0, size]).toHex(),
  ];
  return sn === 0 && roots.every(Boolean);
}

test("RFC9162-2.1.4-1, TLCP-sig-1 each tree is proven to have grown from each smaller one", () => {
  for (let size = 2; size <= 20; size++)
    for (let before = 1; before < size; before++)
      assert.ok(
        isConsistent(before, size, consistencyOf(before, size).map(rootBetween)),
        `${before} ${size}`,
      );
});

test("RCPT-D-4 hashes that are kept in rows give the roots of a tree of any size, above a full row of rows too", async () => {
  const hashes = Array.from({ length: 66_000 }, (_, index) => sha256(Buffer.from(`\0${index}`)));
  const rows = new Map<string, TreeRow>();
  let left = 0;
  const store = {
    hashes: async (_: string, from: number, to: number) =>
      hashes.slice(Math.max(from, left), to).map((one) => one.toHex()),
    async treeRow(_: string, level: number, number?: number) {
      const last = [...rows.values()].filter((row) => row.level === level).at(-1);
      return number === undefined ? last : rows.get(`${level} ${number}`);
    },
    keepTreeRow: async (row: TreeRow) => void rows.set(`${row.level} ${row.number}`, row),
  };
  const tree = () => new TreeHashes(store, "as-1");
  let grown = EMPTY_TREE;
  for (const leaf of hashes.slice(0, 300)) grown = appendLeaf(grown, leaf, sha256);
  await tree().keep(300);
  assert.deepEqual([...rows.keys()], ["1 0", "0 0"]);
  assert.equal((await tree().root([0, 300])).toHex(), rootOf(grown, sha256).toHex());
  await tree().keep(290, true);
  left = 290;
  assert.equal((await tree().root([0, 300])).toHex(), rootOf(grown, sha256).toHex());
  for (const leaf of hashes.slice(300)) grown = appendLeaf(grown, leaf, sha256);
  await tree().keep(66_000, true);
  left = 66_000;
  assert.deepEqual([...rows.values()].filter(({ level }) => level === 2).length, 1);
  assert.equal((await tree().root([0, 66_000])).toHex(), rootOf(grown, sha256).toHex());
  assert.equal(splitOf(66_000), 65_536);
});

// --- receipts ---------------------------------------------------------------------------------------------------

let verify: Awaited<ReturnType<typeof loadVerifier>>["verify"];
let folder: string;
let made: Receipts;
let receipt: string;
const ends: (() => unknown)[] = [];
before(async () => {
  ({ verify, folder } = await loadVerifier());
  made = await makeReceipts({ after: (end: () => unknown) => void ends.push(end) } as TestContext, 600);
  receipt = await made.of("t-300");
});
after(async () => {
  forget(folder);
  for (const end of ends) await end();
});

test("TLPR-format-1, TLPR-verify-1, RFC9162-2.1.3-2 receipts from the whole of a log are accepted, and have at most 2 KB", async () => {
  const { key, of } = made;
  for (const at of [0, 1, 254, 255, 256, 511, 512, 598, 599]) {
    const text = await of(`t-${at}`);
    const { token, chain, rest } = verify(text, { keys: [key] });
    assert.deepEqual(
      [token.jti, token.rule, chain, rest],
      [`t-${at}`, "crew-for-travellers", undefined, undefined],
    );
    assert.ok(text.length <= 1_700, String(text.length));
    assert.ok(!atob(/^extra (\S+)$/m.exec(text)?.[1] ?? "").includes("user-"));
  }
});

test("RCPT-D-1 a receipt for an auditor shows the chain and the rest, and both are proven", async () => {
  const { key, of } = made;
  const { chain, rest } = verify(await of("t-7", { chain: true, rest: true }), { keys: [key] });
  assert.partialDeepStrictEqual(chain, { mode: "delegation", subject: { sub: "user-t-7" } });
  assert.equal(rest?.reason, "rule_match");
});

const other = (): Promise<string> => made.of("t-301");
const swapLines = (of: string, by: string, lines: RegExp): string =>
  of.replace(lines, () => lines.exec(by)?.[0] ?? "");
type Spoil = (text: string) => string | Promise<string>;
const spoiled: readonly (readonly [string, Spoil, RegExp])[] = [
  [
    "the proof of another event",
    async (text) => swapLines(text, await other(), /^index[\s\S]*?\n\n/m),
    /not in the log/,
  ],
  [
    "the part of another event",
    async (text) => swapLines(text, await other(), /^extra .*$/m),
    /not in the log/,
  ],
  ["another index", (text) => text.replace(/^index \d+$/m, "index 299"), /not in the log/],
  ["an index behind the checkpoint", (text) => text.replace(/^index \d+$/m, "index 9999"), /does not cover/],
  ["another size", (text) => text.replace(/(?<=as-1\n)\d+/, "700"), /the signature of \S+ is wrong/],
  ["a hash less", (text) => text.replace(/(?<=^index \d+\n).*\n/m, ""), /too short|not in the log/],
  ["a hash more", (text) => text.replace(/(?<=^index \d+\n)(.*\n)/m, "$1$1"), /too long|not in the log/],
  ["no end", (text) => text.slice(0, -20), /not a receipt/],
  ["more behind it", (text) => `${text}\n`, /not a receipt|malformed/],
  ["nothing", () => "", /not a receipt/],
];
for (const [name, spoil, why] of spoiled) {
  test(`TLPR-verify-1, TLPR-format-2, NOTE-sig-1 a receipt with ${name} is refused as that`, async () => {
    const { key } = made;
    assert.throws(() => verify(receipt, { keys: [] }), /another log/);
    const text = await spoil(receipt);
    assert.throws(() => verify(text, { keys: [key] }), why);
  });
}

test("TLPR-verify-1, NOTE-sig-1 a receipt of another log, and one under a key that is not known, are refused as that", async () => {
  const { key } = made;
  const [, name = "", text = ""] = /^([^+]+)\+[^+]+\+(.+)$/.exec(key) ?? [];
  const bytes = Buffer.from(text, "base64");
  const elsewhere = name.replace("as-1", "as-2");
  const idOf = (origin: string, raw: Uint8Array) => sha256(keyIdInput(origin, raw)).subarray(0, KEY_ID_BYTES);
  const foreign = verifierKey(elsewhere, idOf(elsewhere, bytes.subarray(1)), bytes.subarray(1));
  assert.throws(() => verify(receipt, { keys: [foreign] }), /another log/);
  const { raw } = keyPair(9);
  const former = verifierKey(name, idOf(name, raw), raw);
  assert.throws(() => verify(receipt, { keys: [former] }), /no key that is known/);
  assert.equal(verify(receipt, { keys: [former, key] }).index, 301);
  assert.throws(() => verify(receipt, { keys: [key], witnesses: [former], quorum: 1 }), /too few witnesses/);
});

test("NOTE-sig-1, NOTE-sig-3, TLCO-msg-1 signatures of others are ignored up to 16, and a witness's counts where it is known", () => {
  const { key } = made;
  const note = `${receipt.split("\n\n")[1]}\n`;
  const { name, cosigner, line } = cosign(note, 11);
  const others = Array.from({ length: 14 }, (_, index) => `— w${index} ${"AAAA".repeat(25)}\n`).join("");
  const witnessed = `${receipt}${line}${others}`;
  assert.equal(verify(witnessed, { keys: [key] }).index, 301);
  assert.equal(verify(witnessed, { keys: [key], witnesses: [cosigner], quorum: 1 }).index, 301);
  const wrong = `${receipt}${cosign(`${note}x`, 11).line}`;
  assert.throws(
    () => verify(wrong, { keys: [key], witnesses: [cosigner], quorum: 1 }),
    new RegExp(`${name} is wrong`),
  );
  assert.throws(() => verify(`${witnessed}${others}`, { keys: [key] }), /too many signatures/);
});

const keyPair = (seed: number) => {
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), Buffer.alloc(32, seed)]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return {
    privateKey,
    raw: Buffer.from(createPublicKey(privateKey).export({ format: "jwk" }).x ?? "", "base64url"),
  };
};

/** What a witness says of a checkpoint (C2SP tlog-cosignature), and its key. */
function cosign(note: string, seed: number) {
  const { privateKey, raw } = keyPair(seed);
  const name = "witness.example";
  const id = sha256(Buffer.concat([Buffer.from(`${name}\n\u0004`), raw])).subarray(0, 4);
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(1_790_000_000n);
  const signature = sign(null, Buffer.from(`cosignature/v1\ntime 1790000000\n${note}`), privateKey);
  const cosigner = `${name}+${Buffer.from(id).toString("hex")}+${Buffer.concat([Buffer.of(4), raw]).toString("base64")}`;
  return { name, cosigner, line: `— ${name} ${Buffer.concat([id, time, signature]).toString("base64")}\n` };
}

test("TLPR-verify-1 no altered receipt is accepted", async () => {
  const { key } = made;
  const random = prng(49);
  const full = await made.of("t-301", { chain: true });
  let refused = 0;
  for (let tried = 0; tried < 10_000; tried++) {
    const text = alter(random.pick([receipt, full]), random);
    if (text === undefined) continue;
    assert.throws(() => verify(text, { keys: [key] }), text);
    refused++;
  }
  assert.ok(refused > 9_000);
});

test("TLPR-verify-1 the program in Python accepts the same receipts, and no altered one", {
  skip: NO_CRYPTOGRAPHY,
}, async () => {
  const { key, of } = made;
  const python = (text: string) => {
    writeFileSync(join(folder, "file"), text);
    return spawnSync("python3", ["receipt.py", "file", key], { cwd: folder, encoding: "utf8" });
  };
  const shown = await of("t-8", { chain: true, rest: true });
  const all = python(receipt + (await of("t-0")) + (await of("t-599")) + shown);
  assert.equal(all.status, 0, all.stderr);
  const jtis = all.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).token.jti);
  assert.deepEqual(jtis, ["t-300", "t-0", "t-599", "t-8"]);
  assert.match(python(receipt.replace(/^index \d+$/m, "index 299")).stderr, /not in the log/);
});

test("RCPT-D-2 there is no receipt before a durable checkpoint covers the event", async () => {
  const { trail } = made;
  const journal = await trail.journal("as-2");
  await journal.record({ event: issuing("late") });
  await assert.rejects(made.of("late"), /no receipt of late: pending/);
});

test("RCPT-D-5 no receipt is made of a log that is not the one that was signed", async () => {
  const { store, signer } = made.trail;
  const treeRow: AuditRows["treeRow"] = async (...which) => {
    const row = await store.audit.treeRow(...which);
    return row && { ...row, hashes: row.hashes.replace(/^..../, "AAAA") };
  };
  const event = await findIssuing(store.audit, "t-300");
  assert.ok(event);
  const altered = { audit: { ...store.audit, treeRow } };
  await assert.rejects(
    makeReceipt({ store: altered, signer, verifier }, event),
    /not as its checkpoint says/,
  );
});

test("each verifier is a program of at most 150 lines that needs nothing of this server", () => {
  for (const name of RECEIPT_PROGRAMS) {
    const text = programs().get(name) ?? "";
    assert.ok(text.split("\n").length <= 151, name);
    for (const [, from] of text.matchAll(/from "([^"]+)"/g)) assert.match(from ?? "", /^node:/);
  }
});
