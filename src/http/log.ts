/**
 * The log: one line of JSON for each request, for each fetch of ours, and for each notice of the server about itself.
 * No line has anything that was sent, no query, no header field, no body (RFC6749-10.3-1), but one: the client that a
 * refused request named, without which no operator finds out whose credentials are wrong.
 */

export type LogEntry = {
  time: string;
  level: "info" | "error";
  event: "request";
  requestId: string;
  /** Empty when the request could not be parsed. */
  method: string;
  path: string;
  /** 0: the peer left before there was an answer. */
  status: number;
  /** Of a token request; "other" for one that is not served. */
  grant?: string;
  durationMs: number;
  /** Of the peer: on the listener for the proxy, the proxy's own. */
  address: string;
  /** Behind the proxy: the address of the client, if the proxy told it. */
  clientAddress?: string;
  /** For 500 and 503. */
  fault?: string;
  /** Why an authentication was refused: the precise reason, which no answer tells. */
  refused?: string;
  /** The client that a refused request named: a claim that was not proven; truncated. */
  unprovenClient?: string;
};

const CAUSES_MAX = 4;
const FAULT_CHARS_MAX = 4096;

/** Without the line feed; ASCII only, so that no control character or bidi mark can break or disguise a line. */
export function formatLogEntry(entry: LogEntry | FetchEntry | NoticeEntry | CheckpointEntry): string {
  return JSON.stringify(entry).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** One fetch of ours (SFD-7.6-1). `name` is a trust domain, an issuer, a client, or the beginning of a client's URL. */
export type FetchEntry = {
  time: string;
  level: "info" | "warning";
  event: "fetch";
  fetched: string;
  name: string;
  durationMs: number;
  failure?: string;
};

/** What the server says about itself. `message` is for people, the rest for programs. */
export type Notice = {
  level: "info" | "warning" | "error";
  event:
    | "listening"
    | "config_warning"
    | "reloaded"
    | "reload_refused"
    | "restart_needed"
    | "certificate_renewed"
    | "store_awaited"
    | "store_restored"
    | "ends"
    | "clock_differs"
    | "clock_agrees"
    | "unasked_grants"
    | "client_address_unread"
    | "introspections_uncounted"
    | "stopped"
    | "audit_fault"
    | "key_unusable"
    | "keys_not_read"
    | "draining"
    | "name_awaited"
    | "pairwise_subjects"
    | "log_recovered"
    | "witness_failed"
    | "witness_works"
    | "witness_ahead";
  message: string;
  /** What is listened for, and where. */
  listener?: string;
  address?: string;
  port?: number;
  /** The digest of the policy that is in force after a reload, or after one that was refused. */
  policy?: string;
  /** The path of a setting. */
  setting?: string;
  /** Lines that were lost while the log could not be written. */
  lostLines?: number;
};

export type NoticeEntry = Notice & { time: string };

/** A signed checkpoint of the audit log, where standard output is its witness. */
export type CheckpointEntry = { time: string; level: "info"; event: "checkpoint"; checkpoint: string };

/** Classes, codes and stack frames of a fault and its causes. No messages: libraries quote their input in them. */
export function describeFault(fault: unknown): string {
  const lines: string[] = [];
  let current = fault;
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth += 1) {
    const code = "code" in current ? String(current.code) : "";
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
