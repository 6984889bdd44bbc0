/** Access to our own protected endpoints: the caller, or a refusal with a challenge (RFC 6750 3) that is recorded. */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import type { ApiCaller, ApiRefusal, Bearer } from "../flows/authorize-api.ts";
import { authorizeApi, describeCaller } from "../flows/authorize-api.ts";
import type { AuditedRequest } from "../flows/refusal.ts";
import type { ApiScope } from "../policy/own-target.ts";
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { BearerError } from "../spec/rfc6750.ts";
import { buildChallenge, parseBearer } from "../spec/rfc6750.ts";
import { parseJws } from "../spec/rfc7515.ts";
import { privateJson } from "./answers.ts";
import { toOAuthError } from "./errors.ts";
import type { HttpRequest, HttpResponse, Peer, RefusedAuthentication } from "./handler.ts";
import { pathOf } from "./handler.ts";

export type Admitted<Caller> = { caller: Caller; note: AuditedRequest };

/** The caller, if its token has this scope; otherwise the answer that refuses it. */
export function admit(
  ports: Ports,
  request: HttpRequest,
  peer: Peer,
  scope: ApiScope,
): Promise<Result<Admitted<ApiCaller>, HttpResponse>> {
  return admitBy(ports, request, peer, (bearer) => authorizeApi(ports, bearer, scope));
}

export async function admitBy<Caller>(
  ports: Ports,
  request: HttpRequest,
  peer: Peer,
  authorize: (bearer: Bearer) => Promise<Result<Caller, ApiRefusal>>,
): Promise<Result<Admitted<Caller>, HttpResponse>> {
  const endpoint = pathOf(request);
  const note: AuditedRequest = { id: peer.requestId, endpoint, source_ip: peer.address };
  const bearer = bearerOf(request);
  const caller = await verifyInTurn(ports, peer, bearer, authorize);
  if (caller.ok) return ok({ caller: caller.value, note });
  const { kind, reason } = caller.error;
  if (kind === "scope_insufficient") {
    // AUDIT-D-2: the client is known, so its refusal is an event of its own.
    const client = describeCaller(caller.error.caller);
    await ports.journal.record({ event: { ...denied(reason), request: note, client } });
  } else if (kind !== "throttled") {
    ports.authFailures.note(note, reason);
  }
  const unprovenClient = kind === "scope_insufficient" ? undefined : claimedBy(bearer);
  const refused = defined<RefusedAuthentication>({ reason, unprovenClient });
  // RFC6749-2.3.1-8: the token comes first, so that failures of others at this address refuse no valid one.
  const waitSeconds = kind === "token_invalid" ? ports.throttle.failed(peer.address, undefined) : 0;
  const told: ApiRefusal = waitSeconds > 0 ? { kind: "throttled", reason, waitSeconds } : caller.error;
  return err({ ...refuseBearer(ports, told), refused });
}

/** A request without a token has nothing to verify. */
async function verifyInTurn<Caller>(
  { proofs }: Ports,
  { address }: Peer,
  bearer: Bearer,
  authorize: (bearer: Bearer) => Promise<Result<Caller, ApiRefusal>>,
): Promise<Result<Caller, ApiRefusal>> {
  if (!bearer.ok) return authorize(bearer);
  const caller = await proofs.verify(address, () => authorize(bearer));
  if (caller.ok) return caller;
  const { error } = caller;
  if (!("retrySeconds" in error)) return err(error);
  return err({ kind: "overloaded", reason: error.reason, waitSeconds: error.retrySeconds });
}

/** The client that the token names, whether or not the token is good. */
function claimedBy(bearer: Bearer): string | undefined {
  const jws = bearer.ok ? parseJws(bearer.value) : bearer;
  const claimed = jws.ok ? jws.value.claims.client_id : undefined;
  return typeof claimed === "string" ? claimed : undefined;
}

/** The token from the Authorization header, not yet verified; a query parameter with one is refused. */
function bearerOf({ url, headers }: HttpRequest): Bearer {
  const query = new Set(new URL(url).searchParams.keys());
  const token = parseBearer(headers.get("authorization") ?? undefined, query);
  return token.ok ? token : err({ kind: token.error.kind, reason: token.error.kind });
}

const denied = (reason: Reason): AuditEvent => ({ type: "admin.access", outcome: "deny", reason });

type Told = { status: number; error: BearerError; description: string };

// RFC6750-3-9: fixed texts; none tells which check of a token failed.
const TOLD: Record<"credentials_malformed" | "token_invalid" | "scope_insufficient", Told> = {
  // RFC6750-3.1-1: a malformed credential is an error of the request.
  credentials_malformed: {
    status: 400,
    error: "invalid_request",
    description: "the token must be sent once, in the Authorization header",
  },
  // RFC6750-3.1-2, RFC9068-4-15: one code for every reason that a token is not accepted.
  token_invalid: { status: 401, error: "invalid_token", description: "the token is not valid here" },
  // RFC6750-3.1-3: the token is valid, its scope is too small.
  scope_insufficient: {
    status: 403,
    error: "insufficient_scope",
    description: "the token has too little scope",
  },
};

export function refuseBearer(ports: Ports, refusal: ApiRefusal): HttpResponse {
  const realm = new URL(ports.settings().issuer).host;
  if (refusal.kind === "throttled" || refusal.kind === "overloaded") {
    const { status, error, description } = toOAuthError(refusal.kind);
    const headers = { "Retry-After": String(refusal.waitSeconds) };
    return privateJson(status, { error, error_description: description }, headers);
  }
  // RFC6750-3-1, RFC6750-3.1-5: a request without credentials gets the challenge and no error code.
  if (refusal.kind === "credentials_missing" || refusal.kind === "scheme_unsupported") {
    return privateJson(401, {}, { "WWW-Authenticate": buildChallenge({ realm }) });
  }
  const { status, error, description } = TOLD[refusal.kind];
  // RFC6750-3.1-4: the scope that the endpoint needs.
  const scope = refusal.kind === "scope_insufficient" ? refusal.scope : undefined;
  const challenge = buildChallenge(defined({ realm, error, description, scope }));
  return privateJson(status, { error, error_description: description }, { "WWW-Authenticate": challenge });
}
