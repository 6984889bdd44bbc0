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

export function makeLineWriter(options: LineWriterOptions): LineWriter {
  const lines = new Lines(options);
  return {
    write: (line) => lines.write(line),
    writeLater: (line) => lines.writeLater(line),
    status: () => lines.status(),
    close: () => lines.close(),
  };
}

class Lines {
  readonly #options: LineWriterOptions;
  #waiting: Buffer[] = [];
  /** The part that is written of the line that was begun last. */
  #begun: Buffer = EMPTY;
  #waitingBytes = 0;
  #lostLines = 0;
  /** The lost lines that `recovered` has not told yet. */
  #untold = 0;
  #timer: NodeJS.Timeout | undefined;
  #planned: NodeJS.Immediate | undefined;

  constructor(options: LineWriterOptions) {
    this.#options = options;
  }

  write(line: string): boolean {
    if (this.#isLost(line)) return false;
    this.#enqueue(line);
    if (this.#timer === undefined) this.#flush();
    return this.#waiting.length === 0;
  }

  writeLater(line: string): void {
    if (this.#isLost(line)) return;
    this.#enqueue(line);
    if (this.#timer === undefined) this.#planned ??= setImmediate(() => this.#flushPlanned());
  }

  status(): LogStatus {
    return { waitingBytes: this.#waitingBytes, lostLines: this.#lostLines };
  }

  close(): void {
    clearImmediate(this.#planned);
    clearTimeout(this.#timer);
    this.#flush();
    clearTimeout(this.#timer);
  }

  #enqueue(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #isLost(line: string): boolean {
    if (this.#waitingBytes + Buffer.byteLength(line) < LOG_WAITING_BYTES_MAX) return false;
    this.#lostLines += 1;
    this.#untold += 1;
    return true;
  }

  #flushPlanned(): void {
    this.#planned = undefined;
    if (this.#timer === undefined) this.#flush();
  }

  /**
   * Writes the waiting lines, as far as that goes. In a pipe that is full, the rest of a line that was begun stays
   * first.
   */
  #flush(): void {
    const { writeSome, recovered } = this.#options;
    try {
      while (this.#waiting.length > 0) {
        const bytes = Buffer.concat(this.#waiting);
        const written = writeSome(bytes);
        const end = bytes.subarray(0, written).lastIndexOf(LINE_FEED);
        const last = bytes.subarray(end + 1, written);
        this.#begun = end < 0 ? Buffer.concat([this.#begun, last]) : last;
        const rest = bytes.subarray(written);
        this.#waiting = rest.length > 0 ? [rest] : [];
        this.#waitingBytes = rest.length;
        if (rest.length > 0 || this.#untold === 0) continue;
        this.#enqueue(recovered(this.#untold));
        this.#untold = 0;
      }
    } catch (fault) {
      if (!isFull(fault) && this.#begun.length > 0) this.#beginAnew();
      const waitMs = isFull(fault) ? LOG_PIPE_RETRY_MS : LOG_RETRY_MS;
      this.#timer ??= setTimeout(() => this.#retry(), waitMs).unref();
    }
  }

  #retry(): void {
    this.#timer = undefined;
    this.#flush();
  }

  /**
   * The descriptor may then be of another file, so the part of a line is ended, and the whole line is written again.
   */
  #beginAnew(): void {
    this.#waiting.unshift(Buffer.of(LINE_FEED), this.#begun);
    this.#waitingBytes += 1 + this.#begun.length;
    this.#begun = EMPTY;
  }
}

/** Writes to the descriptor itself, because a stream of Node writes no more after its first error. */
export const writeTo =
  (descriptor: number) =>
  (bytes: Uint8Array): number =>
    writeSync(descriptor, bytes);
