/** PNG pictures of one colour, chunk by chunk. */
import { crc32, deflateSync } from "node:zlib";

const SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");

export function chunk(type: string, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const typed = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [data.length, crc32(typed)].map((number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(number);
    return bytes;
  }) as [Buffer, Buffer];
  return Buffer.concat([length, typed, sum]);
}

export function header(width: number, height: number): Buffer {
  const data = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
  data.writeUInt32BE(width, 0);
  data.writeUInt32BE(height, 4);
  return chunk("IHDR", data);
}

export const pngOf = (...chunks: readonly Uint8Array[]): Buffer => Buffer.concat([SIGNATURE, ...chunks]);

export function png(width: number, height: number, rgb: readonly number[] = [31, 79, 191]): Buffer {
  const row = [0, ...Array.from({ length: width }, () => rgb).flat()];
  const pixels = deflateSync(Buffer.from(Array.from({ length: height }, () => row).flat()));
  return pngOf(header(width, height), chunk("IDAT", pixels), chunk("IEND"));
}
