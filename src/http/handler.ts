/**
 * What a handler is given and what it answers: the parts of the web-standard `Request` and `Response` that handlers
 * use, so that a test may hand over the platform's own `Request` and a listener a plain object.
 */

import type { Reason } from "../audit/reasons.ts";
import type { AuditedRequest } from "../flows/refusal.ts";
import { type Awaitable, type Result, sparse } from "../result.ts";
import type { Certificate, CertificateFailure } from "../spec/rfc5280.ts";
import type { TraceContext } from "./trace-context.ts";

export type HttpRequest = {
  readonly method: string;
  /** The URL is absolute, as the URL parser prints it, and has no fragment. */
  readonly url: string;
  readonly headers: {
    /** All lines of a field, joined by commas; null if there is none. */
    get(name: string): string | null;
  };
  /** The body can be read once. It is bytes, because the platform's `text()` hides what is not UTF-8 (RFC6749-B-2). */
  bytes(): Awaitable<Uint8Array>;
};

export type HttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty where the answer has none; bytes where it is a picture. */
  readonly body: string | Uint8Array;
  /** The grant type of a token request, "other" for one that is not served: for log and metrics, never sent. */
  readonly grant?: string | undefined;
  /** What the log tells of a refused request; it is never sent. */
  readonly refused?: LoggedRefusal;
  /** The fault because of which there is no other answer, for the log; it is never sent. */
  readonly fault?: unknown;
  /** The address of the client as the proxy in front of us told it, for the log; it is never sent. */
  readonly clientAddress?: string | undefined;
};

/**
 * `reason` is the precise one. `parameter` is the parameter that is malformed. `unprovenClient` is the client that the
 * request named and did not prove to be. `lacks` is all that the nearest rule lacks (POLICY-D-21), `meant` the known name that is like an unknown
 * one (POLICY-D-22).
 */
export type LoggedRefusal = {
  readonly reason: Reason;
  readonly parameter?: string;
  readonly unprovenClient?: string;
  readonly lacks?: string;
  readonly meant?: string;
};

/** What a listener knows of a peer, for which a web `Request` has no place. */
export type Peer = {
  readonly address: string;
  /**
   * The certificates in DER, as sent and in the order sent, leaf first; empty without a client certificate. Only
   * possession of the leaf's key is proven (RFC8705-1.2-1, RFC8705-6.1-3): the flow that uses the chain validates it.
   */
  readonly certificates: readonly Uint8Array[];
  /** The first certificate in parsed form, parsed once for the connection; absent if there is none. */
  readonly leaf?: Result<Certificate, CertificateFailure> | undefined;
  readonly requestId: string;
  /** The trace that the request says it belongs to. */
  readonly trace?: TraceContext | undefined;
  /** Aborted when the request must be answered: nothing may be recorded for it any more. */
  readonly deadline: AbortSignal;
  /** Aborted when the peer leaves before its answer; absent where that is not known. */
  readonly gone?: AbortSignal | undefined;
};

/** The request as an event records it. */
export function auditedRequest({ requestId, address, trace }: Peer, endpoint: string): AuditedRequest {
  return sparse<AuditedRequest>({
    endpoint,
    id: requestId,
    source_ip: address,
    trace: trace && { parent_id: trace.parentId, trace_id: trace.traceId },
  });
}

export type Handler = (request: HttpRequest, peer: Peer) => Awaitable<HttpResponse>;

/** The path, byte for byte as the client sent it: a listener passes on no path that the URL parser changed. */
export function pathOf({ url }: HttpRequest): string {
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const end = url.indexOf("?", start);
  return url.slice(start, end < 0 ? undefined : end);
}
