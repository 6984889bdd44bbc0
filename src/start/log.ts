/**
 * What the process writes: in the production profile one JSON object a line, all on standard output; on a terminal and in
 * the development profile its notices are prose, and errors are on standard error.
 */
import { type LogStatus, makeLineWriter, writeTo } from "../adapters/line-writer.ts";
import {
  type CheckpointEntry,
  type FetchEntry,
  formatLogEntry,
  type LogEntry,
  tellOnceASecond,
} from "../http/log.ts";
import type { Notice } from "../http/log-events.ts";

export type Log = {
  /** Writes one JSON object; returns whether it was written at once. Otherwise it waits, or was lost. */
  entry(entry: CheckpointEntry): boolean;
  /**
   * Does the same for a request, ours too, whose line is written with those that end in the same turn of the event loop.
   */
  request(entry: LogEntry | FetchEntry): void;
  tell(notice: Notice): void;
  status(): LogStatus;
  /** Writes what waits, as far as that is possible now. */
  close(): void;
};

const now = (): string => new Date().toISOString();

const toJson = (notice: Notice): string => formatLogEntry({ time: now(), ...notice });

const toProse = ({ event, message }: Notice): string =>
  event === "config_warning" ? `warning: ${message}` : message;

export function openLog(profile: "production" | "development"): Log {
  // Reading the property makes Node open the stream, which sets a pipe to non-blocking: writing to it never waits.
  const prose = process.stdout.isTTY || profile === "development";
  const format = prose ? toProse : toJson;
  const recovered = (lostLines: number): string =>
    format({
      level: "warning",
      event: "log_recovered",
      message: `The log can be written again; ${lostLines} lines were lost.`,
      lostLines,
    });
  // The lines do not go through the stream itself, whose first error would end the process.
  const out = makeLineWriter({ writeSome: writeTo(1), recovered });
  const shorten = tellOnceASecond(() => performance.now());
  return {
    entry: (entry) => out.write(formatLogEntry(entry)),
    request: (entry) => out.writeLater(formatLogEntry(shorten(entry))),
    tell(notice) {
      if (prose && notice.level === "error") printError(notice.message);
      else out.write(format(notice));
    },
    status: out.status,
    close: out.close,
  };
}

/** Writes to standard error, for a person; a failure is ignored, because there is no other place to tell it. */
export function printError(text: string): void {
  try {
    writeTo(2)(Buffer.from(`${text}\n`));
  } catch {
    // The descriptor is closed or full.
  }
}
