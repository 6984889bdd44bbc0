/**
 * The witness: a place outside of the database to which checkpoints are sent, so that changing the database cannot hide
 * an altered log. An append-only file, standard output (one JSON object for each line), or an HTTPS sink.
 */
import { open } from "node:fs/promises";
import { defined } from "../../result.ts";
import type { WitnessPlace } from "../../settings/settings.ts";
import type { Posted } from "../remote/fetch.ts";
import { fetchDocument } from "../remote/fetch.ts";

/** A place for checkpoints outside of the database. */
export interface Witness {
  /** Resolves when the witness has the checkpoint. */
  deliver(jws: string): Promise<void>;
  close(): Promise<void>;
}

const ANSWER_BYTES_MAX = 1024;
const LINE_FEED = 0x0a;

/** The line for one checkpoint in a file or on standard output. */
export const witnessLine = (jws: string): string => `${JSON.stringify({ checkpoint: jws })}\n`;

/** Standard output as the witness: `print` tells whether the line was written. */
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

/** Opened at the start, so that a file that cannot be written stops the start. */
async function openFile(path: string): Promise<Witness> {
  const file = await open(path, "a+", 0o600);
  return {
    async deliver(jws) {
      // Begins a new line if a crash left an incomplete one.
      const { size } = await file.stat();
      const last = Buffer.alloc(1, LINE_FEED);
      if (size > 0) await file.read(last, 0, 1, size - 1);
      await file.appendFile((last[0] === LINE_FEED ? "" : "\n") + witnessLine(jws));
      await file.sync();
    },
    close: () => file.close(),
  };
}
