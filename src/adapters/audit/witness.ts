/**
 * The witness: a place outside of the database to which checkpoints are sent, so that changing the database cannot hide
 * an altered log. An append-only file, standard output (one JSON object for each line), or an HTTPS sink.
 */
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { WITNESS_READ_BYTES_MAX } from "../../limits/audit.ts";
import { CLAIMS_DEPTH_MAX } from "../../limits/input.ts";
import { defined } from "../../result.ts";
import type { WitnessPlace } from "../../settings/settings.ts";
import { isJsonObject, parseJson } from "../../spec/rfc8259.ts";
import { fetchDocument, type Posted } from "../remote/fetch.ts";

/** A place for checkpoints outside of the database. */
export interface Witness {
  /** Resolves when the witness has the checkpoint. */
  deliver(jws: string): Promise<void>;
  /** The last checkpoints that it has, oldest first; absent where it cannot be read. */
  latest?(): Promise<readonly string[]>;
  close(): Promise<void>;
}

const ANSWER_BYTES_MAX = 1024;
const LINE_FEED = 0x0a;

/** The line for one checkpoint in a file or on standard output. */
export const witnessLine = (jws: string): string => `${JSON.stringify({ checkpoint: jws })}\n`;

/** Makes standard output the witness; `print` tells whether the line was written. */
export const printingWitness = (print: (jws: string) => boolean): Witness => ({
  async deliver(jws) {
    if (!print(jws)) throw new Error("standard output cannot be written now");
  },
  close: async () => {},
});

/** Opens the configured witness; throws if its file cannot be written. */
export async function openWitness(place: Exclude<WitnessPlace, "stdout">): Promise<Witness> {
  if ("file" in place) return openFile(place.file);
  const { sink, authorization } = place;
  return {
    async deliver(jws) {
      const post = defined<Posted>({ contentType: "application/jose", text: jws, authorization });
      await fetchDocument(sink, ANSWER_BYTES_MAX, { post });
    },
    close: async () => {},
  };
}

/** Each write is durable when it returns: the permission model refuses `fsync`, so the file is opened that way. */
export const WITNESS_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_DSYNC;

/** The file is opened at the start, so that one that cannot be written stops the start. */
async function openFile(path: string): Promise<Witness> {
  let file = await open(path, WITNESS_FLAGS, 0o600);
  return {
    async deliver(jws) {
      // A line written to a file that was moved or removed would be lost, so this is refused.
      if (!(await isAt(path, file))) {
        const next = await open(path, WITNESS_FLAGS, 0o600);
        await file.close();
        file = next;
        throw new Error(`${path} was moved or removed, and is begun anew`);
      }
      // Begins a new line if a crash left an incomplete one.
      const { size } = await file.stat();
      const last = Buffer.alloc(1, LINE_FEED);
      if (size > 0) await file.read(last, 0, 1, size - 1);
      await file.appendFile((last[0] === LINE_FEED ? "" : "\n") + witnessLine(jws));
    },
    latest: () => readLatest(file),
    close: () => file.close(),
  };
}

async function isAt(path: string, file: FileHandle): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  const { dev, ino } = await file.stat();
  return found?.dev === dev && found.ino === ino;
}

async function readLatest(file: FileHandle): Promise<readonly string[]> {
  const { size } = await file.stat();
  const from = Math.max(0, size - WITNESS_READ_BYTES_MAX);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
  const lines = buffer.subarray(0, bytesRead).toString().split("\n");
  // The first line may be the end of a longer one, and the last one may be incomplete; neither is a checkpoint then.
  return lines.flatMap((line) => {
    const json = parseJson(line, CLAIMS_DEPTH_MAX);
    const jws = json.ok && isJsonObject(json.value) ? json.value.checkpoint : undefined;
    return typeof jws === "string" ? [jws] : [];
  });
}
