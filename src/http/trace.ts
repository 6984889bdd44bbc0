/** What is known of a request from its first byte on, and the log entry that it leads to. */

import { randomUUID } from "node:crypto";
import { supportNumber } from "../audit/support-number.ts";
import { LOG_PATH_CHARS_MAX } from "../limits/process.ts";
import { StoreUnavailable } from "../ports.ts";
import { sparse } from "../result.ts";
import type { HttpResponse } from "./handler.ts";
import { describeFault, type LogEntry } from "./log.ts";
import type { TraceContext } from "./trace-context.ts";

export type RequestTrace = {
  requestId: string;
  method: string;
  path: string;
  startMs: number;
  address: string;
  context?: TraceContext | undefined;
};

/** `method` and `path` are empty for a request that could not be parsed. */
export const newTrace = (
  method: string,
  path: string,
  address: string,
  context?: TraceContext,
): RequestTrace => ({
  requestId: randomUUID(),
  method,
  path: path.slice(0, LOG_PATH_CHARS_MAX),
  startMs: performance.now(),
  address,
  context,
});

/** A `status` of 0 says that the peer left before there was an answer. */
export function entryOf(
  trace: RequestTrace,
  status: number,
  {
    fault,
    grant,
    refused,
    clientAddress,
    headers = {},
  }: Partial<Pick<HttpResponse, "headers" | "fault" | "grant" | "refused" | "clientAddress">> = {},
): LogEntry {
  const isPage = headers["Content-Type"]?.startsWith("text/html");
  return sparse<LogEntry>({
    time: new Date().toISOString(),
    level: fault === undefined ? "info" : "error",
    event: "request",
    requestId: trace.requestId,
    // PAGE-D-39: no other answer shows it.
    supportNumber: isPage ? supportNumber(trace.requestId) : undefined,
    traceId: trace.context?.traceId,
    parentId: trace.context?.parentId,
    method: trace.method,
    path: trace.path,
    status,
    grant,
    durationMs: Math.round((performance.now() - trace.startMs) * 1000) / 1000,
    address: trace.address,
    clientAddress,
    fault: fault === undefined ? undefined : describeFault(fault),
    unavailable: fault instanceof StoreUnavailable ? fault.message : undefined,
    refused: refused?.reason,
    parameter: refused?.parameter,
    unprovenClient: refused?.unprovenClient?.slice(0, LOG_PATH_CHARS_MAX),
    lacks: refused?.lacks,
    meant: refused?.meant,
  });
}
