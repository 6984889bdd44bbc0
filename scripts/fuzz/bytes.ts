/** Certificates and pictures with one change: at any byte, or inside so that the form around it stays whole. Pure, by seed. */
import { type Der, readDer } from "../../src/spec/x690.ts";
import { tlv } from "../../test/fixtures/x509/build.ts";
import { chunk, pngOf } from "../../test/support/png.ts";
import type { Prng } from "../../test/support/prng.ts";

export function changeBytes(random: Prng, bytes: Uint8Array): Uint8Array {
  const [der, chunks] = [readDer(bytes), chunksOf(bytes)];
  if (random.below(4) === 0) return changeAnywhere(random, bytes);
  if (der.ok) return changeDer(random, der.value);
  return chunks === undefined ? changeAnywhere(random, bytes) : changePng(random, chunks);
}

function changeAnywhere(random: Prng, bytes: Uint8Array): Uint8Array {
  const at = random.below(bytes.length + 1);
  switch (random.below(4)) {
    case 0:
      return bytes.slice(0, at);
    case 1:
      return Buffer.concat([
        bytes.subarray(0, at),
        Buffer.alloc(1 + random.below(200), random.below(256)),
        bytes.subarray(at),
      ]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(8))]);
    default: {
      const changed = Buffer.from(bytes);
      for (let count = 1 + random.below(3); count > 0 && bytes.length > 0; count--)
        changed[random.below(bytes.length)] = random.below(256);
      return changed;
    }
  }
}

const withAllIn = (node: Der): Der[] => [node, ...node.children.flatMap(withAllIn)];

/** One value of it is another one, or is left out, doubled or moved; the lengths around it are right. */
function changeDer(random: Prng, root: Der): Uint8Array {
  const chosen = random.pick(withAllIn(root));
  const written = (node: Der): Uint8Array => {
    if (node === chosen) return tlv(node.tag, changedContent(random, node));
    return node.children.length === 0 ? node.bytes : tlv(node.tag, ...node.children.map(written));
  };
  return written(root);
}

function changedContent(random: Prng, { content, children }: Der): Uint8Array {
  if (children.length > 0) {
    const parts = children.map(({ bytes }) => bytes);
    const [at, to] = [random.below(parts.length), random.below(parts.length)];
    const part = parts[at] as Uint8Array;
    const without = parts.toSpliced(at, 1);
    const changed = [without, parts.toSpliced(to, 0, part), without.toSpliced(to, 0, part)];
    return Buffer.concat(random.pick(changed));
  }
  // The value of an extension is DER in a string.
  const inner = readDer(content);
  return inner.ok && random.below(4) > 0 ? changeDer(random, inner.value) : changeAnywhere(random, content);
}

type Chunk = { type: string; data: Uint8Array };
const PNG_HEAD = 8;
const CHUNK_FRAME = 12;

/** Undefined for what is no PNG from its signature to its last chunk. */
export function chunksOf(bytes: Uint8Array): Chunk[] | undefined {
  const view = Buffer.from(bytes);
  if (!view.subarray(0, PNG_HEAD).equals(pngOf())) return undefined;
  const chunks: Chunk[] = [];
  for (let at = PNG_HEAD; at < view.length; ) {
    if (at + CHUNK_FRAME > view.length) return undefined;
    const type = view.toString("latin1", at + 4, at + 8);
    const data = view.subarray(at + 8, at + 8 + view.readUInt32BE(at));
    const whole = chunk(type, data);
    if (!whole.equals(view.subarray(at, at + whole.length))) return undefined;
    chunks.push({ type, data });
    at += whole.length;
  }
  return chunks;
}

function changePng(random: Prng, chunks: readonly Chunk[]): Uint8Array {
  const at = random.below(chunks.length);
  const { type, data } = chunks[at] as Chunk;
  const changed = [
    [],
    [chunks[at] as Chunk, chunks[at] as Chunk],
    [{ type: random.pick(["acTL", "IEND", "IHDR", "tEXt"]), data }],
    [{ type, data: changeAnywhere(random, data) }],
  ];
  return pngOf(...chunks.toSpliced(at, 1, ...random.pick(changed)).map((one) => chunk(one.type, one.data)));
}
