/**
 * What this instance wrote last, in a file of one line beside the witness's (AUDIT-D-10). Checkpoints are seconds apart;
 * with this line a start notices that the store has lost the records of the last moment.
 */
import { hash } from "node:crypto";
import { constants, type FileHandle, open } from "node:fs/promises";
import * as v from "valibot";
import { parseJson } from "../../spec/rfc8259.ts";
import type { KnownHead } from "./compare-witness.ts";

/** All lines have one length, so that the newest takes the whole place of the one before. */
const LINE_BYTES = 512;
const FLAGS = constants.O_RDWR | constants.O_CREAT;

const Line = v.object({
  issuer: v.string(),
  log: v.string(),
  seq: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  hash: v.string(),
  timeMs: v.pipe(v.number(), v.safeInteger()),
});

export type LastWritten = {
  /** Undefined if nothing was noted, if the line was left incomplete, or if it is about the store of another issuer. */
  read(): Promise<KnownHead | undefined>;
  note(head: KnownHead): void;
  close(): Promise<void>;
};

/** Throws if the file cannot be written. */
export async function openLastWritten(path: string, issuer: string): Promise<LastWritten> {
  // The issuer is written as a digest, because the line has one length.
  const ours = hash("sha256", issuer, "hex");
  const file = await open(path, FLAGS, 0o600);
  let next: KnownHead | undefined;
  let writing: Promise<void> | undefined;

  /**
   * The line is not synchronised with the disk, which would cost as much as the commit: the platform keeps what was
   * written when this process ends, in whatever way it ends.
   */
  const write = async (): Promise<void> => {
    try {
      for (let head = next; head !== undefined; head = next) {
        next = undefined;
        await writeLine(file, ours, head);
      }
    } catch {
      // The next batch tries again, and checkpoints show the loss as well.
    } finally {
      writing = undefined;
    }
  };
  return {
    async read() {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(LINE_BYTES), 0, LINE_BYTES, 0);
      const json = parseJson(buffer.toString("utf8", 0, bytesRead), 2);
      const line = v.safeParse(Line, json.ok ? json.value : undefined);
      if (!line.success) return undefined;
      const { issuer: written, ...head } = line.output;
      return written === ours ? head : undefined;
    },
    note(head) {
      next = head;
      writing ??= write();
    },
    async close() {
      await writing;
      await file.close();
    },
  };
}

async function writeLine(file: FileHandle, issuer: string, head: KnownHead): Promise<void> {
  const { log, seq, hash, timeMs } = head;
  const line = JSON.stringify({ issuer, log, seq, hash, timeMs });
  await file.write(`${line.padEnd(LINE_BYTES - 1)}\n`, 0);
}
