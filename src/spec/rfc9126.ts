/**
 * RFC 9126, OAuth 2.0 Pushed Authorization Requests: https://www.rfc-editor.org/rfc/rfc9126.html
 * Covers 2.1 the pushed request, 2.2 the answer, 4 the request that refers to it.
 * Elsewhere: 2 http/par.ts, spec/rfc6749-authorization.ts, spec/rfc8414.ts; 2.1 http/par.ts; 2.2
 * flows/people/authorize.ts, http/par.ts; 4 flows/people/authorize.ts, flows/people/review.ts, policy/judge.ts; 7.4
 * flows/people/review.ts.
 */
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { AuthorizationForm } from "./rfc6749-authorization.ts";

/** RFC9126-2.2-3: the form of our request URIs; no other URI is ever looked at, let alone fetched. */
const PREFIX = "urn:ietf:params:oauth:request_uri:";

export type PushedAnswer = { request_uri: string; expires_in: number };

/** RFC9126-2.2-1, RFC9126-2.2-2: `reference` is random. */
export const buildPushedAnswer = (reference: string, expiresInSeconds: number): PushedAnswer => ({
  request_uri: PREFIX + reference,
  expires_in: expiresInSeconds,
});

/** The reference in a request URI of ours; undefined for any other text. */
export function parseRequestUri(text: string): string | undefined {
  const reference = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : "";
  return /^[A-Za-z0-9_-]{22}$/.test(reference) ? reference : undefined;
}

/** RFC9126-2.1-1: a pushed request does not refer to another one. */
export function checkPushed({ request_uri, request }: AuthorizationForm): Result<undefined, PushedFailure> {
  if (request_uri !== undefined) return err({ kind: "request_uri_pushed" });
  return request === undefined ? ok(undefined) : err({ kind: "request_object_unsupported" });
}

export type PushedFailure = { kind: "request_uri_pushed" | "request_object_unsupported" };
