/**
 * The log: one line of JSON for each request, for each fetch of ours, and for each notice of the server about itself.
 * No line has anything that was sent, no query, no header field, no body (RFC6749-10.3-1), but one: the client that a
 * refused request named, without which no operator finds out whose credentials are wrong.
 */
import { FAULT_TOLD_MS } from "../limits/process.ts";
import type { Notice } from "./log-events.ts";

/** ENTRIES says what the members mean. */
export type LogEntry = {
  time: string;
  level: "info" | "error";
  event: "request";
  requestId: string;
  supportNumber?: string;
  traceId?: string;
  parentId?: string;
  method: string;
  path: string;
  status: number;
  grant?: string;
  durationMs: number;
  address: string;
  clientAddress?: string;
  fault?: string;
  unavailable?: string;
  untold?: number;
  refused?: string;
  parameter?: string;
  unprovenClient?: string;
  lacks?: string;
  meant?: string;
};

const CAUSES_MAX = 4;
const FAULT_CHARS_MAX = 4096;

/**
 * Makes the line without its line feed; it is ASCII only, so that no control character or bidi mark can break or
 * disguise it.
 */
export function formatLogEntry(entry: LogEntry | FetchEntry | NoticeEntry | CheckpointEntry): string {
  return JSON.stringify(entry).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** One fetch of ours (SFD-7.6-1). */
export type FetchEntry = {
  time: string;
  level: "info" | "warning";
  event: "fetch";
  fetched: string;
  name: string;
  durationMs: number;
  failure?: string;
};

type NoticeEntry = Notice & { time: string };

/** A signed checkpoint of the audit log, where standard output is its witness. */
export type CheckpointEntry = { time: string; level: "info"; event: "checkpoint"; checkpoint: string };

type OwnMembers<E> = Exclude<keyof E, "time" | "level" | "event">;

/** What each member of a request, fetch or checkpoint entry means; the page of the log is generated from it. */
export const ENTRIES: {
  request: Record<OwnMembers<LogEntry>, string>;
  fetch: Record<OwnMembers<FetchEntry>, string>;
  checkpoint: Record<OwnMembers<CheckpointEntry>, string>;
} = {
  request: {
    requestId:
      "The id of the request, which its events in the audit trail and the header of its answer have too.",
    supportNumber: "The number at the foot of the page that the request was answered with, if it was a page.",
    traceId: "The trace that the request said it belongs to (W3C Trace Context): a claim.",
    parentId: "The caller's span in that trace.",
    method: "The method; empty if the request could not be parsed.",
    path: "The path without the query, truncated.",
    status: "The status of the answer; 0 if the peer left before there was one.",
    grant: 'Of a token request: the grant type, or "other" for one that is not served.',
    durationMs: "Milliseconds from the head of the request to its answer.",
    address: "The address of the peer; on the listener for the proxy, the address of the proxy.",
    clientAddress: "Behind the proxy: the address of the client, if the proxy told it.",
    fault:
      "For 500 and 503 (level error): classes and codes of the fault and, unless it is one of many, stack frames.",
    unavailable:
      "For 503: what was not available (store or key service), its code, and what to do; at most once a second.",
    untold: "Beside `unavailable`: requests since the last line with it that met such a fault too.",
    refused: "Why the request was refused: the precise reason, which no answer tells.",
    parameter:
      'Which parameter of a refused request is malformed: its name, or "other" for one that is not known here.',
    unprovenClient: "The client that a refused request named: a claim that was not proven; truncated.",
    lacks:
      "All that the rule lacks which comes nearest to a refused request, where it is more than one condition.",
    meant: "The known names of a target or scope that are like unknown ones of the request.",
  },
  fetch: {
    fetched: "The kind of the document.",
    name: "A trust domain, an issuer, a client, or the beginning of a URL that a client supplied.",
    durationMs: "Milliseconds until the document was there or the fetch had failed.",
    failure: "Why the fetch failed (level warning).",
  },
  checkpoint: { checkpoint: "The signed checkpoint." },
};

/**
 * HTTP-D-66: while the store is away each request fails in the same way, and what stands in every line fills the disk of
 * the log: the others have only class and code of their fault. `nowMs` is a clock that nothing sets.
 */
export function tellOnceASecond(nowMs: () => number): <E extends LogEntry | FetchEntry>(entry: E) => E {
  let toldMs = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return (entry) => {
    if (entry.event !== "request" || entry.unavailable === undefined) return entry;
    if (nowMs() - toldMs < FAULT_TOLD_MS) {
      untold += 1;
      return { ...entry, fault: entry.fault?.split("\n", 1)[0], unavailable: undefined };
    }
    toldMs = nowMs();
    const told = untold === 0 ? entry : { ...entry, untold };
    untold = 0;
    return told;
  };
}

/**
 * Tells classes, codes and stack frames of a fault and its causes, and no messages, because libraries quote their input
 * in them.
 */
export function describeFault(fault: unknown): string {
  const lines: string[] = [];
  let current = fault;
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth += 1) {
    const code = "code" in current ? String(current.code ?? "") : "";
    lines.push(`${current.constructor.name}${/^\w{1,64}$/.test(code) ? ` ${code}` : ""}`, ...frames(current));
    current = current.cause;
  }
  return (lines.join("\n") || typeof fault).slice(0, FAULT_CHARS_MAX);
}

function frames(error: Error): string[] {
  const stack = error.stack ?? "";
  const start = stack.indexOf(error.message);
  // A stack that was rewritten does not show where the message ends.
  if (start === -1) return [];
  const rest = stack.slice(start + error.message.length);
  return rest.split("\n").filter((line) => line.startsWith("    at "));
}
