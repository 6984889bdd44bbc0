/**
 * One line of JSON for each request. It says what happened and never what was sent: no query, no header field,
 * no body (RFC6749-10.3-1).
 */

export type LogEntry = {
  time: string;
  level: "info" | "error";
  requestId: string;
  /** Empty when the request could not be parsed. */
  method: string;
  path: string;
  /** 0: the peer left before there was an answer. */
  status: number;
  durationMs: number;
  address: string;
  /** Of a 500 or 503 only. */
  fault?: string;
};

const CAUSES_MAX = 4;
const FAULT_CHARS_MAX = 4096;

/** The line without its end. Pure ASCII, so that neither a control character nor a bidi mark can break or bend it. */
export function formatLogEntry(entry: LogEntry | FetchEntry): string {
  return JSON.stringify(entry).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** One request of ours (SFD-7.6-1), of what kind and to whom: of a URL that a client brought, so much. */
export type FetchEntry = {
  time: string;
  fetched: string;
  name: string;
  durationMs: number;
  failure?: string;
};

/** Classes, codes and stack frames of a fault and its causes, without their messages: libraries quote their input in them. */
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
  // A stack without its message has been rewritten: where the message ends in it is unknown.
  if (start === -1) return [];
  const rest = stack.slice(start + error.message.length);
  return rest.split("\n").filter((line) => line.startsWith("    at "));
}
