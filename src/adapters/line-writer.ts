/**
 * Writes lines to a file descriptor that may fail, because its pipe is closed or its disk is full. A line that cannot
 * be written waits, in order; while too many wait, new ones are dropped and counted. No failure of the descriptor ends
 * the process or reaches a caller.
 */
import { writeSync } from "node:fs";
import { LOG_PIPE_RETRY_MS, LOG_RETRY_MS, LOG_WAITING_BYTES_MAX } from "../limits/process.ts";

type LineWriter = {
  /** Returns whether the whole line was written now; otherwise it waits, or was dropped. */
  write(line: string): boolean;
  /** Writes at the end of this turn of the event loop, in one piece with the other lines of the turn. */
  writeLater(line: string): void;
  status(): LogStatus;
  /** Tries a last time to write the lines that wait, and writes no more after that. */
  close(): void;
};

export type LogStatus = { waitingBytes: number; lostLines: number };

type LineWriterOptions = {
  /** Writes some of the bytes and returns their number, or throws. */
  writeSome: (bytes: Uint8Array) => number;
  /** Makes a line that says how many were lost, which is written when lines can be written again. */
  recovered: (lines: number) => string;
};

const LINE_FEED = 0x0a;
const EMPTY = Buffer.alloc(0);

/** A pipe is full if its reader is slower than we are, which passes by itself, and soon. */
const isFull = (fault: unknown): boolean =>
  fault instanceof Error && "code" in fault && fault.code === "EAGAIN";

export function makeLineWriter({ writeSome, recovered }: LineWriterOptions): LineWriter {
  let waiting: Buffer[] = [];
  /** The part that is written of the line that was begun last. */
  let begun: Buffer = EMPTY;
  let waitingBytes = 0;
  let lostLines = 0;
  /** The lost lines that `recovered` has not told yet. */
  let untold = 0;
  let timer: NodeJS.Timeout | undefined;
  let planned: NodeJS.Immediate | undefined;

  const enqueue = (line: string): void => {
    const bytes = Buffer.from(`${line}\n`);
    waiting.push(bytes);
    waitingBytes += bytes.length;
  };
  const isLost = (line: string): boolean => {
    if (waitingBytes + Buffer.byteLength(line) < LOG_WAITING_BYTES_MAX) return false;
    lostLines += 1;
    untold += 1;
    return true;
  };

  /**
   * The descriptor may then be of another file, so the part of a line is ended, and the whole line is written again.
   */
  const beginAnew = (): void => {
    waiting.unshift(Buffer.of(LINE_FEED), begun);
    waitingBytes += 1 + begun.length;
    begun = EMPTY;
  };

  /**
   * Writes the waiting lines, as far as that goes. In a pipe that is full, the rest of a line that was begun stays
   * first.
   */
  const flush = (): void => {
    try {
      while (waiting.length > 0) {
        const bytes = Buffer.concat(waiting);
        const written = writeSome(bytes);
        const end = bytes.subarray(0, written).lastIndexOf(LINE_FEED);
        begun =
          end < 0 ? Buffer.concat([begun, bytes.subarray(0, written)]) : bytes.subarray(end + 1, written);
        const rest = bytes.subarray(written);
        waiting = rest.length > 0 ? [rest] : [];
        waitingBytes = rest.length;
        if (rest.length > 0 || untold === 0) continue;
        enqueue(recovered(untold));
        untold = 0;
      }
    } catch (fault) {
      if (!isFull(fault) && begun.length > 0) beginAnew();
      timer ??= setTimeout(retry, isFull(fault) ? LOG_PIPE_RETRY_MS : LOG_RETRY_MS).unref();
    }
  };
  const retry = (): void => {
    timer = undefined;
    flush();
  };

  const flushPlanned = (): void => {
    planned = undefined;
    if (timer === undefined) flush();
  };

  return {
    write(line) {
      if (isLost(line)) return false;
      enqueue(line);
      if (timer === undefined) flush();
      return waiting.length === 0;
    },
    writeLater(line) {
      if (isLost(line)) return;
      enqueue(line);
      if (timer === undefined) planned ??= setImmediate(flushPlanned);
    },
    status: () => ({ waitingBytes, lostLines }),
    close() {
      clearImmediate(planned);
      clearTimeout(timer);
      flush();
      clearTimeout(timer);
    },
  };
}

/** Writes to the descriptor itself, because a stream of Node writes no more after its first error. */
export const writeTo =
  (descriptor: number) =>
  (bytes: Uint8Array): number =>
    writeSync(descriptor, bytes);
