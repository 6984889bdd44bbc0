/** POST /token: reads the form, authenticates the client, answers; a refusal is recorded durably before it is told. */

import type { Reason } from "../audit/reasons.ts";
import { authenticateClient, chargeUnnamedClient } from "../flows/authenticate-client.ts";
import type { AuditedRequest, Failure, RefusedRequest } from "../flows/refusal.ts";
import { ASSERTION_REPLAYED, assertionReplayed } from "../flows/refusal.ts";
import { answerTokenRequest } from "../flows/token.ts";
import { BODY_BYTES_MAX } from "../limits.ts";
import type { Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Result } from "../result.ts";
import { defined, err } from "../result.ts";
import type { Form } from "../spec/rfc6749.ts";
import { isTokenParameter, parseForm } from "../spec/rfc6749.ts";
import { claimedClient } from "../spec/rfc7521.ts";
import { privateJson } from "./answers.ts";
import { hasMediaType, readText } from "./body.ts";
import { toOAuthError } from "./errors.ts";
import type { Handler, HttpRequest, HttpResponse, RefusedAuthentication } from "./handler.ts";

const ENDPOINT = "/token";

export function tokenEndpoint(ports: Ports): Handler {
  return async (request, peer) => {
    const audited: AuditedRequest = { id: peer.requestId, endpoint: ENDPOINT, source_ip: peer.address };
    const authorization = request.headers.get("authorization") ?? undefined;
    const form = await readForm(request);
    if (!form.ok) return refuse(form.error, authorization);
    // RFC6749-5.2-2: a request without a grant type is refused before its client is authenticated.
    if (form.value.grant_type === undefined) {
      return refuse({ kind: "request_malformed", reason: "grant_type_missing" }, authorization);
    }
    // RFC6749-4.4-1, RFC6749-4.4.2-2, RFC6749-10.1-4, RFC6749-10.2-1: no token without client authentication, whatever the grant.
    const client = await authenticateClient(ports, form.value, authorization, peer);
    if (!client.ok) {
      const { reason } = client.error;
      ports.authFailures.note(audited, reason);
      const unprovenClient = claimedClient(form.value, authorization);
      const refused = defined<RefusedAuthentication>({ reason, unprovenClient });
      return { ...refuse(client.error, authorization), refused };
    }
    const token = await answerTokenRequest(ports, {
      client: client.value,
      form: form.value,
      request: audited,
    });
    if (token.ok) return privateJson(200, token.value); // RFC6749-5.1-1
    chargeUnnamedClient(ports, client.value, peer);
    return refuse(await recordRefusal(ports, token.error, client.value.spends), authorization);
  };
}

/** AUDIT-D-2: each refusal of an authenticated client is an event, and uses up the assertion as a token would. */
async function recordRefusal(
  ports: Ports,
  refusal: RefusedRequest,
  spends: Guard | undefined,
): Promise<Failure> {
  const { status, error } = toOAuthError(refusal.failure.kind);
  const event = { ...refusal.event, error: { error, status } };
  // A replayed assertion is spent already; where the grant was replayed, the assertion is not.
  const guards = spends === undefined || event.reason === ASSERTION_REPLAYED ? [] : [spends];
  const recorded = await ports.journal.record({ event, guards });
  return recorded.ok ? refusal.failure : recordRefusal(ports, assertionReplayed(event), undefined);
}

async function readForm(request: HttpRequest): Promise<Result<Form, Failure>> {
  const malformed = (reason: Reason) => err({ kind: "request_malformed", reason } as const);
  // RFC8693-2.1-2: a token request is a form.
  if (!hasMediaType(request, "application/x-www-form-urlencoded")) {
    return malformed("content_type_unsupported");
  }
  // RFC6749-2.3.1-6: a URI is written to logs on its way, so a parameter of the body is refused there.
  for (const name of new URL(request.url).searchParams.keys()) {
    if (isTokenParameter(name)) return malformed("parameter_in_uri");
  }
  const body = await readText(request, BODY_BYTES_MAX);
  if (!body.ok) return malformed(body.error.kind);
  const form = parseForm(body.value);
  return form.ok ? form : malformed(form.error.kind);
}

/** RFC6749-5.2-1, RFC6749-5.2-5: 401 with a challenge only where the request has an Authorization header. */
function refuse({ kind, waitSeconds }: Failure, authorization: string | undefined): HttpResponse {
  const { status, error, description } = toOAuthError(kind);
  const body = { error, error_description: description };
  if (waitSeconds !== undefined) return privateJson(status, body, { "Retry-After": String(waitSeconds) });
  return error === "invalid_client" && authorization !== undefined
    ? privateJson(401, body, { "WWW-Authenticate": 'Basic realm="mandate", charset="UTF-8"' })
    : privateJson(status, body);
}
