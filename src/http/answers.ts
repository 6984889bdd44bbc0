/**
 * Answers shared by the endpoints, and refusals at the level of HTTP, which are OAuth errors too.
 * RFC 6749: https://www.rfc-editor.org/rfc/rfc6749.html, sections 5.1 and 5.2
 */
import { StoreUnavailable } from "../ports.ts";
import type { HttpResponse } from "./handler.ts";

/** RFC6749-5.1-5, RFC6749-5.1-6, RFC6749-5.1-7: the answer is stored nowhere; it sets no cookie (RFC6750-5.2-7). */
export const PRIVATE_JSON = {
  "Content-Type": "application/json",
  "Cache-Control": "no-store",
  Pragma: "no-cache",
};

/** The body of an answer with a token or to a credential. An object has no parameter twice (RFC6749-3.2-8). */
export function privateJson(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  return { status, headers: { ...PRIVATE_JSON, ...headers }, body: JSON.stringify(body) };
}

export type HttpRefusal = { status: number; description: string; headers?: Record<string, string> };

// RFC6749-5.2-11: texts are fixed, in printable ASCII without quote and backslash; nothing of the request is repeated.
export const REFUSALS = {
  syntax: { status: 400, description: "the request is not valid HTTP" },
  target: { status: 400, description: "the request target is not a plain path" },
  host: { status: 400, description: "the request must have exactly one valid Host field" },
  authorization: { status: 400, description: "the request has more than one Authorization field" },
  cookie: { status: 400, description: "the request has more than one Cookie field" },
  transferCoding: { status: 400, description: "the transfer coding is not supported" },
  method: {
    status: 405,
    description: "the method is not supported",
    headers: { Allow: "GET, HEAD, POST, PUT, DELETE" },
  },
  timeout: { status: 408, description: "the request took too long" },
  body: { status: 413, description: "the request body is too large" },
  coding: { status: 415, description: "the content coding is not supported" },
  expectation: { status: 417, description: "the expectation is not supported" },
  head: { status: 431, description: "the request head is too large" },
  bodyUnexpected: { status: 400, description: "the method takes no request body" },
  notFound: { status: 404, description: "there is nothing at this path" },
} satisfies Record<string, HttpRefusal>;

export const refusalBody = ({ description }: HttpRefusal): object => ({
  error: "invalid_request",
  error_description: description,
});

/**
 * RFC6749-5.2-1: refusals at the level of HTTP are OAuth errors too, because clients of a token endpoint expect one.
 */
export function httpError(refusal: HttpRefusal): HttpResponse {
  return privateJson(refusal.status, refusalBody(refusal), refusal.headers);
}

export const notFound = (): HttpResponse => httpError(REFUSALS.notFound);

/** What is known of a request that no handler answered. */
export type Unanswered = {
  requestId: string;
  path: string;
  acceptLanguage: string | null;
  origin: string | null;
};

/** The form of an answer that no handler made: at some paths it is not JSON. */
export type Dress = (request: Unanswered, answer: HttpResponse) => HttpResponse;

/** A request was not answered in time. */
export class DeadlinePassed extends Error {
  override name = "DeadlinePassed";
}

/** The peer left before its request was answered. */
export class PeerGone extends Error {
  override name = "PeerGone";
}

const UNAVAILABLE = {
  error: "temporarily_unavailable",
  error_description: "the server cannot answer at present: send the request again",
};
const FAULT = {
  error: "server_error",
  error_description: "a fault of the server, which its log has under the X-Request-Id",
};

/** A lost store and a deadline that has passed are a 503 that the caller may retry; every other fault is a 500 without details. */
export function faultResponse(fault: unknown): HttpResponse {
  return fault instanceof StoreUnavailable || fault instanceof DeadlinePassed
    ? privateJson(503, UNAVAILABLE, { "Retry-After": "1" })
    : privateJson(500, FAULT);
}
