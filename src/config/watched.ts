/** The files that the configuration names, by what they contained when they were read. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The files by path, each with the SHA-256 of its content, or an empty text where it cannot be read. */
export type FileDigests = ReadonlyMap<string, string>;

export const fileDigest = (content: Uint8Array): string =>
  createHash("sha256").update(content).digest("base64url");

export function digestsOf(files: Iterable<string>): FileDigests {
  const digest = (file: string): string => {
    try {
      return fileDigest(readFileSync(file));
    } catch {
      return "";
    }
  };
  return new Map([...files].map((file) => [file, digest(file)]));
}

export const isSame = (some: FileDigests, other: FileDigests): boolean =>
  some.size === other.size && [...some].every(([file, digest]) => other.get(file) === digest);
