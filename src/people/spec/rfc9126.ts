/**
 * RFC 9126, OAuth 2.0 Pushed Authorization Requests: https://www.rfc-editor.org/rfc/rfc9126.html
 * Covers 2.1 the pushed request, 2.2 the answer, 4 the request that refers to it.
 * Elsewhere: 2 people/http/par.ts, people/spec/rfc6749-authorization.ts, spec/rfc8414.ts; 2.1 people/http/par.ts; 2.2
 * people/flows/authorize.ts, people/http/par.ts, people/spec/rfc6749-authorization.ts; 3 people/flows/told.ts; 4
 * people/flows/authorize.ts, people/flows/decide-review.ts, policy/judge.ts; 7.4 people/flows/decide-review.ts,
 * people/flows/review.ts.
 */
import { err, ok, type Result } from "../../result.ts";
import type { AuthorizationForm } from "./rfc6749-authorization.ts";

/** RFC9126-2.2-3: the form of our request URIs; no other URI is ever looked at, let alone fetched. */
const PREFIX = "urn:ietf:params:oauth:request_uri:";

type PushedAnswer = { request_uri: string; expires_in: number };

/** RFC9126-2.2-1, RFC9126-2.2-2: `reference` is random, or encrypted and authenticated. */
export const buildPushedAnswer = (reference: string, expiresInSeconds: number): PushedAnswer => ({
  request_uri: PREFIX + reference,
  expires_in: expiresInSeconds,
});

export const isReference = (text: string): boolean => text.startsWith(PREFIX);

/** The reference in a request URI of ours; undefined for any other text. */
export function parseRequestUri(text: string): string | undefined {
  const reference = isReference(text) ? text.slice(PREFIX.length) : "";
  return /^[A-Za-z0-9_-]+$/.test(reference) ? reference : undefined;
}

/** RFC9126-2.1-1: a pushed request does not refer to another one. */
export const checkPushed = ({
  request_uri,
}: AuthorizationForm): Result<undefined, { kind: "request_uri_pushed" }> =>
  request_uri === undefined ? ok(undefined) : err({ kind: "request_uri_pushed" });
