/** The steps that the endpoints share whose request is a form that authenticates its client. */

import type { Reason } from "../audit/reasons.ts";
import {
  type Admits,
  type Authenticated,
  authenticateClient,
  type ClientEvidence,
  throttleUnnamedClient,
} from "../flows/authenticate-client.ts";
import type { KeyEvidence } from "../flows/prove-keys.ts";
import {
  ASSERTION_REPLAYED,
  type AuditedRequest,
  assertionReplayed,
  CODE_REPLAYED,
  codeReplayed,
  DEFERRAL_RACED,
  exchangeReplayed,
  type Failure,
  GRANT_REPLAYED,
  grantReplayed,
  type RefusedRequest,
  refusedFor,
} from "../flows/refusal.ts";
import { BODY_BYTES_MAX } from "../limits/connections.ts";
import { POLL_SECONDS } from "../limits/people.ts";
import type { ClientAuthPorts, LimitPorts, Ports } from "../ports.ts";
import type { Entry, Guard } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../result.ts";
import {
  type ErrorAnswer,
  type Form,
  isKnownParameter,
  isTokenParameter,
  parseForm,
} from "../spec/rfc6749.ts";
import { claimedClient, parseClientAuthentication } from "../spec/rfc7521.ts";
import { privateJson } from "./answers.ts";
import { hasMediaType, readText } from "./body.ts";
import { describeFailure, toOAuthError } from "./errors.ts";
import {
  auditedRequest,
  type HttpRequest,
  type HttpResponse,
  type LoggedRefusal,
  type Peer,
} from "./handler.ts";

/** A request with a form: what it shows of its client and of its keys, parsed once, and how a refusal of it is told. */
export type FormRequest = ClientEvidence & {
  readonly peer: Peer;
  readonly audited: AuditedRequest;
  readonly keys: KeyEvidence;
  readonly challenged: boolean;
};

const authorizationOf = ({ headers }: HttpRequest): string | undefined =>
  headers.get("authorization") ?? undefined;

/**
 * RFC6749-5.2-1: it is challenged where a client that fails to authenticate is answered with 401 and a challenge, as
 * RFC6749-5.2-5 requires where the request has an Authorization header; otherwise the answer is a 400.
 */
export const isChallenged = (request: HttpRequest): boolean => authorizationOf(request) !== undefined;

export function formRequest(
  request: HttpRequest,
  peer: Peer,
  endpoint: string,
  form: Form,
  challenged = isChallenged(request),
): FormRequest {
  return {
    form,
    presented: parseClientAuthentication(form, authorizationOf(request)),
    peer,
    audited: auditedRequest(peer, endpoint),
    keys: keyEvidenceOf(request, peer),
    challenged,
  };
}

/** The same where nothing else is read of the body, or the answer that refuses it. */
export const receiveForm = (
  request: HttpRequest,
  peer: Peer,
  endpoint: string,
  challenged = isChallenged(request),
): Awaitable<Result<FormRequest, HttpResponse>> =>
  whenReady(readForm(request), (form) =>
    form.ok
      ? ok(formRequest(request, peer, endpoint, form.value, challenged))
      : err(refuse(form.error, challenged)),
  );

function readForm(request: HttpRequest): Awaitable<Result<Form, Failure>> {
  const malformed = (reason: Reason, parameter?: string) =>
    err(defined<Failure>({ kind: "request_malformed", reason, parameter }));
  // RFC8693-2.1-2, RFC7009-2.1-1, RFC7662-2.1-1: the request is a form.
  if (!hasMediaType(request, "application/x-www-form-urlencoded")) {
    return malformed("content_type_unsupported");
  }
  // RFC6749-2.3.1-6: a URI is written to logs on its way, so a parameter of the body is refused there.
  if (request.url.includes("?")) {
    for (const name of new URL(request.url).searchParams.keys()) {
      if (isTokenParameter(name)) return malformed("parameter_in_uri", name);
    }
  }
  return whenReady(readText(request, BODY_BYTES_MAX), (body) => {
    if (!body.ok) return malformed(body.error.kind);
    const form = parseForm(body.value);
    return form.ok ? form : malformed(form.error.kind, parameterOf(form.error));
  });
}

/**
 * The name of a parameter for the log; an unknown one is told as "other", because it may be a secret in the wrong
 * place.
 */
export function parameterOf({ parameter }: { parameter?: string | undefined }): string | undefined {
  return parameter === undefined || isKnownParameter(parameter) ? parameter : "other";
}

export type FormPorts = ClientAuthPorts & LimitPorts & Pick<Ports, "authFailures">;

/** Authenticates the client of the form; a failure is counted, because one event for each could fill the disk. */
export function authenticateForm(
  ports: FormPorts,
  request: FormRequest,
  admits: Admits = "proven",
): Awaitable<Result<Authenticated, HttpResponse>> {
  const { form, presented, peer, audited, challenged } = request;
  const refuseWith = (failure: Failure, unprovenClient?: string) => {
    const { reason, registrations } = failure;
    ports.authFailures.note(audited, reason, registrations);
    const refused = defined<LoggedRefusal>({ reason, unprovenClient });
    return err({ ...refuse(failure, challenged), refused });
  };
  return whenReady(authenticateClient(ports, request, peer, audited.endpoint, admits), (client) => {
    if (!client.ok) return refuseWith(client.error, claimedClient(form, presented));
    const tooMany = throttleUnnamedClient(ports, client.value, peer);
    return tooMany === undefined ? client : refuseWith(tooMany);
  });
}

/** AUDIT-D-2: each refusal of an authenticated client is an event, and uses up the assertion as a token would. */
export async function recordRefusal(
  ports: Pick<Ports, "journal">,
  refusal: RefusedRequest,
  spends: Guard | undefined,
): Promise<Failure> {
  const { status, error } = toOAuthError(refusal.failure.kind);
  const event = { ...refusal.event, error: { error, status } };
  const { spends: code } = refusal;
  // A replayed assertion was spent before; where the grant was replayed, the assertion was not, unless it is the grant.
  const spent = spends?.kind === "grant_fresh" ? GRANT_REPLAYED : ASSERTION_REPLAYED;
  const proof = spends === undefined || event.reason === spent ? [] : [spends];
  const redeemed = code === undefined || event.reason === CODE_REPLAYED ? [] : [code];
  const guards = [...proof, ...redeemed];
  const { ending, rows, question, ...rest } = refusal;
  const recorded = await ports.journal.record(defined<Entry>({ event, guards, ending, rows, question }));
  if (!recorded.ok) {
    // DTR-D-9: the user may have taken their refusal back just now, so that the client is to look once more.
    if (recorded.error.includes("question_current")) {
      const failure = { kind: "polled_too_soon", reason: DEFERRAL_RACED } as const;
      return recordRefusal(ports, { failure, event: refusedFor(event, DEFERRAL_RACED) }, spends);
    }
    // Another poll of the same code was refused first.
    if (recorded.error.includes("row_new")) return recordRefusal(ports, rest, spends);
    const isCode = code !== undefined && recorded.error.includes("code_fresh");
    const ofGrant = event.type === "token_exchange.denied" ? exchangeReplayed : grantReplayed;
    const replayed = recorded.error.includes("grant_fresh") ? ofGrant : assertionReplayed;
    if (!isCode) return recordRefusal(ports, replayed(event), undefined);
    return recordRefusal(ports, { ...codeReplayed(event), spends: code }, spends);
  }
  return refusal.failure;
}

/**
 * AUDIT-D-2: the refusal of a client that proved itself is an event. Anyone who knows its name can be a public client,
 * so its refusal is counted as a failure before authentication, unless it changes something; one for a refresh token is
 * recorded until its source fails too often, and answered in the same way after that.
 */
export async function recordRefusalOf(
  ports: Pick<Ports, "journal" | "authFailures" | "throttle">,
  { method, clientId, spends }: Authenticated,
  refused: RefusedRequest,
  audited: AuditedRequest,
): Promise<Failure> {
  const { failure, event } = refused;
  const changes = refused.spends !== undefined || refused.ending !== undefined;
  if (method !== "none" || changes) return recordRefusal(ports, refused, spends);
  if (failure.kind === "throttled") {
    ports.authFailures.note(audited, failure.reason);
    return failure;
  }
  const waitSeconds = ports.throttle.failed(audited.source_ip, clientId);
  if (event.grant !== undefined && waitSeconds === 0) return recordRefusal(ports, refused, spends);
  ports.authFailures.note(audited, failure.reason);
  // MCPC-D-25: at the address of a company the refusals of many users meet; each has to learn that its own is final.
  if (event.grant !== undefined) return failure;
  return waitSeconds > 0 ? { ...failure, kind: "throttled", waitSeconds } : failure;
}

/** Counts in the same way what a public client ends in vain, which is answered as if it had been something. */
export function throttleVain(
  ports: Pick<Ports, "authFailures" | "throttle">,
  { clientId }: Authenticated,
  reason: Reason,
  audited: AuditedRequest,
): Failure | undefined {
  ports.authFailures.note(audited, reason);
  const waitSeconds = ports.throttle.failed(audited.source_ip, clientId);
  return waitSeconds > 0 ? { kind: "throttled", reason, waitSeconds } : undefined;
}

export function refuse(failure: Failure, challenged: boolean): HttpResponse {
  const { kind, reason, parameter, waitSeconds, errorUri, interactionUri, deferral, jobError } = failure;
  const { lacks, meant } = failure;
  const { status, error } = toOAuthError(kind);
  const error_description = describeFailure(failure);
  const body = defined<ErrorAnswer>({
    error,
    error_description,
    error_uri: errorUri,
    mandate_job_error: jobError,
    interaction_uri: interactionUri,
    // DTR-6.4-1: only the first answer has the code, and how to poll with it.
    deferral_code: deferral?.code,
    expires_in: deferral?.seconds,
    interval: deferral && POLL_SECONDS,
  });
  const refused = defined<LoggedRefusal>({ reason, parameter, lacks, meant });
  if (waitSeconds !== undefined) {
    return { ...privateJson(status, body, { "Retry-After": String(waitSeconds) }), refused };
  }
  return error === "invalid_client" && (challenged || kind === "client_gone")
    ? { ...privateJson(401, body, { "WWW-Authenticate": 'Basic realm="mandate", charset="UTF-8"' }), refused }
    : { ...privateJson(status, body), refused };
}

/** The evidence for keys that a request has, where the client authenticates by a form. */
export function keyEvidenceOf({ method, url, headers }: HttpRequest, { leaf }: Peer): KeyEvidence {
  const proof = headers.get("dpop") ?? undefined;
  return defined<KeyEvidence>({ place: "token", method, url, proof, leaf });
}

/** RFC9449-8-2, RFC9449-8.2-1: where nonces are demanded, a request with a proof is answered with the newest nonce. */
export function withNonce(
  { settings, nonces }: Pick<Ports, "settings" | "nonces">,
  { proof }: KeyEvidence,
  answer: HttpResponse,
): HttpResponse {
  if (!settings().dpop.nonces.includes("token") || proof === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, "DPoP-Nonce": nonces.current() } };
}
