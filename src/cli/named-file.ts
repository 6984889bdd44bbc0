/** Files that an operator named: a fault names the file, also where the platform does not. */
import { createReadStream, readFileSync } from "node:fs";

export function readNamed(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (fault) {
    throw withName(fault, file);
  }
}

/** Splits at line feeds only, because JSON may contain U+2028, at which other line readers split too. */
export async function* readLines(file: string): AsyncGenerator<string, void> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of createReadStream(file)) {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        yield rest.subarray(0, end).toString("utf8");
        rest = rest.subarray(end + 1);
      }
    }
  } catch (fault) {
    throw withName(fault, file);
  }
  if (rest.length > 0) yield rest.toString("utf8");
}

/** Of a folder that is read as a file, the platform tells no path. */
const withName = (fault: unknown, path: string): unknown =>
  fault instanceof Error && "syscall" in fault && !("path" in fault) ? Object.assign(fault, { path }) : fault;
