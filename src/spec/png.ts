/**
 * Portable Network Graphics, Third Edition: https://www.w3.org/TR/png-3/
 * Covers 5.2 signature, 5.3 chunk layout, 11.2.1 IHDR, 11.2.4 IEND, 11.3.6.1 acTL, without the checksums and the pixels.
 */
import { err, ok, type Result } from "../result.ts";

export type PngFailure = "not_png" | "png_damaged" | "png_animated";
type Size = { width: number; height: number };

const SIGNATURE = "89504e470d0a1a0a";
const LENGTH_AND_TYPE_BYTES = 8;
const CHECKSUM_BYTES = 4;
const IHDR_BYTES = 13;

/** The size of the picture, if the file has the form of one from its first byte to its last. */
export function parsePng(bytes: Uint8Array): Result<Size, PngFailure> {
  if (bytes.subarray(0, SIGNATURE.length / 2).toHex() !== SIGNATURE) return err("not_png");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let size: Size | undefined;
  let at = SIGNATURE.length / 2;
  while (at + LENGTH_AND_TYPE_BYTES + CHECKSUM_BYTES <= bytes.length) {
    const length = view.getUint32(at);
    const data = at + LENGTH_AND_TYPE_BYTES;
    const type = String.fromCharCode(...bytes.subarray(at + 4, data));
    const next = data + length + CHECKSUM_BYTES;
    if (next > bytes.length) break;
    // The header is the first chunk, and no side is zero.
    if (size === undefined) {
      if (type !== "IHDR" || length !== IHDR_BYTES) break;
      size = { width: view.getUint32(data), height: view.getUint32(data + 4) };
      if (size.width === 0 || size.height === 0) break;
    }
    // WCAG-2.2.2-1: nothing moves beside what people read.
    if (type === "acTL") return err("png_animated");
    // PAGE-D-40: nothing follows the end, so that the file is not one of another kind as well.
    if (type === "IEND") return next === bytes.length ? ok(size) : err("png_damaged");
    at = next;
  }
  return err("png_damaged");
}
