/**
 * RFC 7521, Assertion Framework for OAuth 2.0 Client Authentication: https://www.rfc-editor.org/rfc/rfc7521.html
 * Covers 4.2 assertions as client authentication, and with RFC 6749 2.3 that a request uses one mechanism.
 * Elsewhere: 3 adapters/crypto/verifier.ts; 4.1 policy/judge.ts; 4.2 flows/verify-assertion.ts,
 * flows/verify-platform.ts, spec/spiffe/client-auth.ts; 4.2.1 http/errors.ts; 5.1 spec/rfc7519.ts, spec/rfc9068.ts;
 * 6.2 spec/rfc7523.ts.
 */

import { defined, err, ok, type Result } from "../result.ts";
import { type Form, parseAuthorization } from "./rfc6749.ts";
import { parseJws } from "./rfc7515.ts";

export type PresentedSecret = { by: "basic" | "body"; clientId: string; secret: string };
export type PresentedAssertion = { by: "assertion"; type: string; assertion: string; clientId?: string };
/** The request holds no credential, so only the certificate of the TLS handshake can prove the client. */
export type PresentedCertificate = { by: "certificate"; clientId?: string };
export type Presented = PresentedSecret | PresentedAssertion | PresentedCertificate;

type PresentedFailure =
  | { kind: "request_malformed"; reason: "secrets_several" | "client_id_differs" }
  | {
      kind: "client_refused";
      reason:
        | "secret_without_client_id"
        | "assertion_with_other_mechanism"
        | "assertion_type_missing"
        | "assertion_missing"
        | "authorization_malformed";
    };

const malformed = (reason: Extract<PresentedFailure, { kind: "request_malformed" }>["reason"]) =>
  err({ kind: "request_malformed", reason } as const);
const refused = (reason: Extract<PresentedFailure, { kind: "client_refused" }>["reason"]) =>
  err({ kind: "client_refused", reason } as const);

/** The mechanism by which a request authenticates its client, or why it is none. */
export type PresentedClient = Result<Presented, PresentedFailure>;

/** The one mechanism by which a request authenticates its client; a bare `client_id` is none (RFC6749-2.2-2). */
export function parseClientAuthentication(form: Form, authorization: string | undefined): PresentedClient {
  const { client_id: clientId, client_secret: secret } = form;
  const { client_assertion: assertion, client_assertion_type: type } = form;
  const byAssertion = assertion !== undefined || type !== undefined;
  // RFC7521-4.2.1-2: an assertion beside another mechanism is an invalid client.
  if (byAssertion && (secret !== undefined || authorization !== undefined)) {
    return refused("assertion_with_other_mechanism");
  }
  // RFC6749-2.3-4: two secrets are an invalid request.
  if (secret !== undefined && authorization !== undefined) return malformed("secrets_several");

  if (byAssertion) {
    // RFC7521-4.2-1: the two parameters are required together.
    if (type === undefined) return refused("assertion_type_missing");
    if (assertion === undefined) return refused("assertion_missing");
    return ok(defined<PresentedAssertion>({ by: "assertion", type, assertion, clientId }));
  }
  if (authorization !== undefined) {
    const basic = parseAuthorization(authorization);
    if (!basic.ok) return refused("authorization_malformed");
    // RFC6749-3.2.1-2: the body may name the same client again, and no other.
    if (clientId !== undefined && clientId !== basic.value.clientId) return malformed("client_id_differs");
    return ok({ by: "basic", ...basic.value });
  }
  if (secret === undefined) return ok(defined<PresentedCertificate>({ by: "certificate", clientId }));
  // RFC6749-2.3.1-4: a secret in the body needs its `client_id` there.
  if (clientId === undefined) return refused("secret_without_client_id");
  return ok({ by: "body", clientId, secret });
}

/** The client that the request says it comes from; nothing of it is proven. */
export function claimedClient(form: Form, presented: PresentedClient): string | undefined {
  const named = presented.ok ? presented.value.clientId : form.client_id;
  if (named !== undefined || form.client_assertion === undefined) return named;
  const jws = parseJws(form.client_assertion);
  const subject = jws.ok ? jws.value.claims.sub : undefined;
  return typeof subject === "string" ? subject : undefined;
}
