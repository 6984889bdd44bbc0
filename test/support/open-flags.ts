/** The flags with which a process has opened a file, as Linux tells them; undefined elsewhere, and if it has not. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

export function openFlags(pid: number | "self", file: string): number | undefined {
  const folder = `/proc/${pid}`;
  if (!existsSync(`${folder}/fdinfo`)) return undefined;
  const descriptor = readdirSync(`${folder}/fd`).find((one) => {
    try {
      return readlinkSync(`${folder}/fd/${one}`) === file;
    } catch {
      // Closed meanwhile.
      return false;
    }
  });
  if (descriptor === undefined) return undefined;
  const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`${folder}/fdinfo/${descriptor}`, "utf8"))?.[1];
  return flags === undefined ? undefined : Number.parseInt(flags, 8);
}
