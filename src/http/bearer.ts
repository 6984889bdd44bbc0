/** Access to our own protected endpoints: the caller, or a refusal with a challenge (RFC 6750 3) that is recorded. */

import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import {
  type ApiCaller,
  type ApiCallerPorts,
  type ApiRefusal,
  authorizeApi,
  type Bearer,
  describeCaller,
  type PresentedToken,
} from "../flows/authorize-api.ts";
import { type KeyEvidence, proveKeys } from "../flows/prove-keys.ts";
import type { AuditedRequest } from "../flows/refusal.ts";
import type { ProvenKeys } from "../policy/access.ts";
import { API_PATHS, type ApiPath, type ApiScope } from "../policy/own-target.ts";
import type { BasePorts, KeyProofPorts, LimitPorts, Ports, RecordPorts } from "../ports.ts";
import type { Guard } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { type BearerError, buildChallenge, type Challenge, parseBearer } from "../spec/rfc6750.ts";
import { parseJws } from "../spec/rfc7515.ts";
import { hasDpopScheme, parseDpopCredentials } from "../spec/rfc9449.ts";
import { resourceMetadataUrl } from "../spec/rfc9728.ts";
import { privateJson } from "./answers.ts";
import { toOAuthError } from "./errors.ts";
import {
  auditedRequest,
  type HttpRequest,
  type HttpResponse,
  type LoggedRefusal,
  type Peer,
  pathOf,
} from "./handler.ts";

/**
 * What a challenge says of the endpoint: an audience of its tokens, and the scope for it. `missing` is what the body tells
 * a request without a token, for callers that show their user the body alone.
 */
export type Wanted = { resource: string; scope?: ApiScope; missing?: string };

export type Admitted<Caller> = { caller: Caller; audited: AuditedRequest };

/** Verifies a token and the key that it is bound to, and records why a caller is refused. */
export type BearerPorts = KeyProofPorts & RecordPorts & LimitPorts;

export type AdmitPorts = BearerPorts & ApiCallerPorts;

/** Returns the caller, if its token has this scope, or else the answer that refuses it. */
export function admit(
  ports: AdmitPorts,
  request: HttpRequest,
  peer: Peer,
  path: ApiPath,
): Promise<Result<Admitted<ApiCaller>, HttpResponse>> {
  const wanted = { resource: ports.settings().issuer + path, scope: API_PATHS[path] };
  return admitBy(ports, request, peer, (bearer) => authorizeApi(ports, bearer, path), wanted);
}

export async function admitBy<Caller>(
  ports: BearerPorts,
  request: HttpRequest,
  peer: Peer,
  authorize: (bearer: Bearer) => Promise<Result<Caller, ApiRefusal>>,
  wanted: Wanted,
): Promise<Result<Admitted<Caller>, HttpResponse>> {
  const endpoint = pathOf(request);
  const audited = auditedRequest(peer, endpoint);
  const scheme = schemeOf(ports, request);
  const sent = tokenOf(request, scheme);
  const admitted = await verifyInTurn(ports, peer, sent, async () => {
    const read = sent.ok ? readKeys(ports, request, peer, { token: sent.value, scheme }) : sent;
    const caller = await authorize(read.ok ? ok(read.value.presented) : read);
    return caller.ok ? ok({ caller: caller.value, proof: read.ok ? read.value.proof : undefined }) : caller;
  });
  if (admitted.ok) {
    const { caller, proof } = admitted.value;
    if (proof === undefined || (await useUp(ports, audited, proof, sent))) return ok({ caller, audited });
    const reason = "proof_replayed";
    const replayed = refuseBearer(ports, { kind: "proof_refused", reason }, scheme, wanted);
    return err({ ...replayed, refused: { reason } });
  }
  const { kind, reason } = admitted.error;
  if (kind === "scope_insufficient") {
    // AUDIT-D-2: the client is known, so its refusal is an event of its own.
    const client = describeCaller(admitted.error.caller);
    await ports.journal.record({ event: { ...denied(reason), request: audited, client } });
  } else if (kind !== "throttled" && kind !== "nonce_demanded") {
    ports.authFailures.note(audited, reason);
  }
  const unprovenClient = kind === "scope_insufficient" ? undefined : claimedBy(sent);
  const refused = defined<LoggedRefusal>({ reason, unprovenClient });
  // RFC6749-2.3.1-8: the token is verified first, so that failures of others at this address refuse no valid one.
  const isFailure = kind === "token_invalid" || kind === "proof_refused";
  const waitSeconds = isFailure ? ports.throttle.failed(peer.address, undefined) : 0;
  const told: ApiRefusal = waitSeconds > 0 ? { kind: "throttled", reason, waitSeconds } : admitted.error;
  return err({ ...refuseBearer(ports, told, scheme, wanted), refused });
}

/** A request without a token has nothing to verify. */
async function verifyInTurn<Proven>(
  { proofs }: Pick<Ports, "proofs">,
  { address }: Peer,
  sent: Result<string, ApiRefusal>,
  authorize: () => Promise<Result<Proven, ApiRefusal>>,
): Promise<Result<Proven, ApiRefusal>> {
  if (!sent.ok) return authorize();
  const caller = await proofs.verify(address, authorize);
  if (caller.ok) return caller;
  const { error } = caller;
  if (!("retrySeconds" in error)) return err(error);
  return err({ kind: "overloaded", reason: error.reason, waitSeconds: error.retrySeconds });
}

/** The client that the token names, whether or not the token is good. */
const claimedBy = (token: Result<string, unknown>): string | undefined => textOf(token, "client_id");

function textOf(token: Result<string, unknown>, claim: "client_id" | "jti"): string | undefined {
  const jws = token.ok ? parseJws(token.value) : token;
  const text = jws.ok ? jws.value.claims[claim] : undefined;
  return typeof text === "string" ? text : undefined;
}

// --- token and keys ---------------------------------------------------------------------------------------------

type Scheme = PresentedToken["scheme"];

const isDpopOn = ({ settings }: BasePorts): boolean => settings().dpop.algorithms.length > 0;

const schemeOf = (ports: BasePorts, { headers }: HttpRequest): Scheme =>
  isDpopOn(ports) && hasDpopScheme(headers.get("authorization") ?? "") ? "DPoP" : "Bearer";

/** Takes the token from the Authorization header, not yet verified; a query parameter with one is refused. */
function tokenOf({ url, headers }: HttpRequest, scheme: Scheme): Result<string, ApiRefusal> {
  const query = new Set(new URL(url).searchParams.keys());
  const authorization = headers.get("authorization") ?? undefined;
  const parse = scheme === "DPoP" ? parseDpopCredentials : parseBearer;
  const token = parse(authorization, query);
  return token.ok ? token : err({ kind: token.error.kind, reason: token.error.kind });
}

type UsedProof = { jkt: string; spends: Guard };
type TokenWithProof = { presented: PresentedToken; proof?: UsedProof };

/**
 * RFC9449-7.1-1, RFC9449-7-1: under the scheme `DPoP` the request needs a valid proof for this token; a certificate
 * counts under both schemes. RFC9449-5-2, RFC9449-7.2-1: under `Bearer` a proof is checked too, but proves no key.
 */
function readKeys(
  ports: KeyProofPorts,
  { method, url, headers }: HttpRequest,
  { leaf }: Peer,
  sent: Pick<PresentedToken, "token" | "scheme">,
): Result<TokenWithProof, ApiRefusal> {
  const { token, scheme } = sent;
  const field = headers.get("dpop") ?? undefined;
  if (scheme === "DPoP" && field === undefined) {
    return err({ kind: "proof_refused", reason: "proof_missing" });
  }
  const evidence = defined<KeyEvidence>({ place: "api", method, url, leaf, token, proof: field });
  const proven = proveKeys(ports, evidence);
  if (!proven.ok) {
    const { kind, reason } = proven.error;
    return err({ kind: kind === "nonce_demanded" ? kind : "proof_refused", reason });
  }
  const { keys, spends } = proven.value;
  const { jkt, certificate } = keys;
  const proof = jkt === undefined || spends === undefined ? undefined : { jkt, spends };
  const presented = { ...sent, keys: scheme === "DPoP" ? keys : defined<ProvenKeys>({ certificate }) };
  return ok(defined<TokenWithProof>({ presented, proof }));
}

/**
 * RFC9449-11.1-2: a proof serves once, on all instances; returns false if it was used before. The token was verified
 * before.
 */
async function useUp(
  { journal }: Pick<Ports, "journal">,
  request: AuditedRequest,
  { jkt, spends }: UsedProof,
  token: Result<string, unknown>,
): Promise<boolean> {
  const clientId = claimedBy(token);
  const client =
    clientId === undefined
      ? undefined
      : defined<NonNullable<AuditEvent["client"]>>({
          client_id: clientId,
          auth_method: "bearer",
          jti: textOf(token, "jti"),
          jkt,
        });
  const about = defined<Pick<AuditEvent, "request" | "client">>({ request, client });
  const event: AuditEvent = { ...about, type: "admin.access", outcome: "allow", reason: "proof_used" };
  const recorded = await journal.record({ event, guards: [spends] });
  if (recorded.ok) return true;
  const replay: AuditEvent = {
    ...about,
    type: "replay.detected",
    outcome: "deny",
    reason: "proof_replayed",
  };
  await journal.record({ event: replay });
  return false;
}

// --- refusals ---------------------------------------------------------------------------------------------------

const denied = (reason: Reason): AuditEvent => ({ type: "admin.access", outcome: "deny", reason });

/** RFC6750-3-1, RFC6750-3.1-5, RFC9449-7.2-2: such a request gets the challenges and no error code. */
type Challenged = "credentials_missing" | "scheme_unsupported";

type Told = readonly [status: number, error: BearerError, description: string];

// RFC6750-3-9: texts are fixed, and none tells which check of a token failed.
const TOLD: Record<Exclude<ApiRefusal["kind"], Challenged | "throttled" | "overloaded">, Told> = {
  // RFC6750-3.1-1: a malformed credential is an error of the request.
  credentials_malformed: [400, "invalid_request", "the token must be sent once, in the Authorization header"],
  // RFC6750-3.1-2, RFC9068-4-15: every reason why a token is not accepted has the same code.
  token_invalid: [401, "invalid_token", "the token is not valid here"],
  // RFC6750-3.1-3: the token is valid, and its scope is too small.
  scope_insufficient: [403, "insufficient_scope", "the token has too little scope"],
  // RFC9449-7.1-2
  proof_refused: [401, "invalid_dpop_proof", "the DPoP proof is not valid"],
  // RFC9449-8-2
  nonce_demanded: [401, "use_dpop_nonce", "the DPoP proof needs the nonce that is sent"],
};

export function refuseBearer(
  ports: BasePorts & Pick<Ports, "nonces">,
  refusal: ApiRefusal,
  scheme: Scheme,
  wanted: Wanted,
): HttpResponse {
  if (refusal.kind === "throttled" || refusal.kind === "overloaded") {
    const { status, error, description } = toOAuthError(refusal.kind);
    const headers = { "Retry-After": String(refusal.waitSeconds) };
    return privateJson(status, { error, error_description: description }, headers);
  }
  // RFC6750-3.1-4: the challenge names the scope that the endpoint needs.
  const scope = refusal.kind === "scope_insufficient" ? refusal.scope : wanted.scope;
  const needs = defined<Wanted>({ ...wanted, scope });
  if (refusal.kind === "credentials_missing" || refusal.kind === "scheme_unsupported") {
    const { missing } = wanted;
    // HTTP-D-64: the challenge has no error code, and the body may have one.
    const body = missing === undefined ? {} : { error: "invalid_token", error_description: missing };
    return privateJson(401, body, { "WWW-Authenticate": challenges(ports, scheme, {}, needs) });
  }
  const [status, error, description] = TOLD[refusal.kind];
  const challenge = challenges(ports, scheme, { error, description }, needs);
  const headers = { "WWW-Authenticate": challenge };
  const body = { error, error_description: description };
  // RFC9449-8-4, RFC9449-8.2-3: the answer has one nonce, and `no-store` as every such answer.
  return refusal.kind === "nonce_demanded"
    ? privateJson(status, body, { ...headers, "DPoP-Nonce": ports.nonces.current() })
    : privateJson(status, body, headers);
}

type Problem = Pick<Challenge, "error" | "description">;

/**
 * RFC9449-7.2-3: there is a challenge for every scheme that is offered; the error stands in that of the scheme which
 * the request used.
 */
function challenges(ports: BasePorts, used: Scheme, problem: Problem, { resource, scope }: Wanted): string {
  const { issuer, dpop } = ports.settings();
  // RFC9728-5.1-1, PRM-D-1: the challenge says where a client learns which tokens are accepted, whichever scheme it
  // uses.
  const resourceMetadata = resourceMetadataUrl(resource);
  const about = defined<Challenge>({ realm: new URL(issuer).host, scope, resourceMetadata });
  const of = (scheme: Scheme): Problem => (scheme === used ? problem : {});
  const bearer = buildChallenge({ ...about, ...of("Bearer") });
  if (!isDpopOn(ports)) return bearer;
  const algs = dpop.algorithms.join(" ");
  return `${bearer}, ${buildChallenge({ ...about, ...of("DPoP"), algs }, "DPoP")}`;
}
