import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePng } from "../../src/spec/png.ts";
import { chunk, header, png, pngOf } from "../support/png.ts";
import { mutate, prng } from "../support/prng.ts";

const read = (bytes: Uint8Array): unknown => {
  const got = parsePng(bytes);
  return got.ok ? got.value : got.error;
};

const PICTURE = png(120, 40);
const END = chunk("IEND");
const cases: readonly (readonly [name: string, bytes: Uint8Array, want: unknown])[] = [
  ["a picture is accepted, with its size", PICTURE, { width: 120, height: 40 }],
  [
    "a picture with further chunks is accepted",
    pngOf(header(1, 2), chunk("tEXt"), END),
    { width: 1, height: 2 },
  ],
  ["an empty file is refused", Buffer.alloc(0), "not_png"],
  ["another kind of file is refused", Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"), "not_png"],
  ["a signature with a changed line break is refused", Buffer.from("89504e470a0a1a0a", "hex"), "not_png"],
  ["a signature alone is refused", pngOf(), "png_damaged"],
  [
    "a file that does not begin with its header is refused",
    pngOf(chunk("tEXt"), header(1, 1), END),
    "png_damaged",
  ],
  ["a header of another length is refused", pngOf(chunk("IHDR", Buffer.alloc(14, 1)), END), "png_damaged"],
  ["a side of no pixel is refused", pngOf(header(0, 1), END), "png_damaged"],
  ["a chunk that is longer than the file is refused", PICTURE.subarray(0, -1), "png_damaged"],
  ["a file without an end is refused", pngOf(header(1, 1)), "png_damaged"],
  ["what follows the end is refused", Buffer.concat([PICTURE, Buffer.from("<script>")]), "png_damaged"],
];
for (const [name, bytes, want] of cases) {
  test(`PAGE-D-40 ${name}`, () => assert.deepEqual(read(bytes), want));
}

test("WCAG-2.2.2-1 a picture that moves is refused", () => {
  const moving = pngOf(header(1, 1), chunk("acTL", Buffer.from([0, 0, 0, 2, 0, 0, 0, 0])), END);
  assert.equal(read(moving), "png_animated");
});

test("PAGE-D-40 changed files are read or refused, and none is a fault", () => {
  const random = prng(40);
  const bytes = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
  for (let round = 0; round < 2000; round++) {
    const changed = mutate(random, PICTURE.toString("latin1"), bytes);
    assert.ok(read(Buffer.from(changed, "latin1")) !== undefined);
  }
});
