/** POST /par (RFC 9126): a client leaves its authorization request here, and gets a reference that its user brings. */
import type { AuditEvent, Meant } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { describeClient } from "../../flows/audit-fields.ts";
import type { Authenticated } from "../../flows/authenticate-client.ts";
import { type KeyEvidence, proveKeysOf } from "../../flows/prove-keys.ts";
import type { AuditedRequest, Failure } from "../../flows/refusal.ts";
import { spendProof } from "../../flows/spend-proof.ts";
import { notFound, privateJson } from "../../http/answers.ts";
import { readFormText } from "../../http/body.ts";
import {
  authenticateForm,
  type FormPorts,
  formRequest,
  isChallenged,
  keyEvidenceOf,
  parameterOf,
  recordRefusal,
  refuse,
  withNonce,
} from "../../http/form.ts";
import type { Handler, HttpRequest, HttpResponse, LoggedRefusal, Peer } from "../../http/handler.ts";
import { PUSHED_SECONDS } from "../../limits/people.ts";
import type { KeyProofPorts } from "../../ports.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import { type Form, parseForm } from "../../spec/rfc6749.ts";
import { type AuthorizePorts, pushRequest } from "../flows/authorize.ts";
import { readAuthorizationRequest } from "../flows/read-authorization.ts";
import type { PeoplePorts } from "../ports.ts";
import { type AuthorizationForm, parseAuthorizationForm } from "../spec/rfc6749-authorization.ts";
import { buildPushedAnswer, checkPushed } from "../spec/rfc9126.ts";
import type { AuthorizationError } from "../spec/rfc9207.ts";

const ENDPOINT = "/par";

type PushEndpointPorts = FormPorts & KeyProofPorts & AuthorizePorts & Pick<PeoplePorts, "journal">;

export const pushEndpoint =
  (ports: PushEndpointPorts): Handler =>
  async (request, peer) =>
    ports.settings().signIn === undefined
      ? notFound()
      : withNonce(ports, keyEvidenceOf(request, peer), await answer(ports, request, peer));

async function answer(ports: PushEndpointPorts, request: HttpRequest, peer: Peer): Promise<HttpResponse> {
  const challenged = isChallenged(request);
  const malformed = (reason: Reason, parameter?: string) =>
    refuse(defined<Failure>({ kind: "request_malformed", reason, parameter }), challenged);
  const body = await readFormText(request);
  if (!body.ok) return malformed(body.error.kind);
  // One form, read as a token request for the client's proof, and as an authorization request for the rest.
  const form = parseForm(body.value);
  if (!form.ok) return malformed(form.error.kind, parameterOf(form.error));
  const requested = parseAuthorizationForm(body.value);
  if (!requested.ok) return malformed(requested.error.kind, parameterOf(requested.error));
  // RFC9126-2-5, RFC9126-2.1-3: the client authenticates as at the token endpoint; a public client is known by its
  // client_id.
  const received = formRequest(request, peer, ENDPOINT, form.value);
  const { audited, keys } = received;
  const client = await authenticateForm(ports, received, "public");
  if (!client.ok) return client.error;
  // PAGE-D-18: anyone who knows the name of a public client can be it, so its requests are limited as those for pages
  // are.
  const waitSeconds = client.value.method === "none" ? ports.throttle.visit(peer.address) : 0;
  if (waitSeconds > 0) {
    ports.authFailures.note(audited, "visits_too_many");
    return refuse({ kind: "throttled", reason: "visits_too_many", waitSeconds }, challenged);
  }
  const refuseWith = (failure: Failure, answer = refuse(failure, challenged), meant?: readonly Meant[]) =>
    recordDenied(ports, client.value, audited, failure, meant).then(() => answer);
  const pushed = checkPushed(requested.value);
  if (!pushed.ok) return refuseWith({ kind: "request_malformed", reason: pushed.error.kind });
  const named = nameClientAndKey(ports, form.value, requested.value, client.value, keys);
  if (!named.ok) return refuseWith(named.error);
  const read = await readAuthorizationRequest(ports, named.value, peer.address);
  if (!read.ok) {
    const { reason } = read.error;
    const { error, meant } = "error" in read.error ? read.error : { error: NOT_ITS_OWN };
    const refused = defined<LoggedRefusal>({ reason, meant: meant?.[0]?.known });
    const answer = { ...privateJson(400, error), refused };
    return refuseWith({ kind: "request_malformed", reason }, answer, meant);
  }
  const { reference, rows } = pushRequest(ports, read.value, client.value.method !== "none");
  const { spends } = client.value;
  if (spends === undefined) for (const row of rows) await ports.shortLived.add(row);
  const changes = rows.map((add) => ({ add }));
  const spent = await spendProof(ports, client.value, audited, changes);
  if (!spent.ok) return refuse(await recordRefusal(ports, spent.error, undefined), challenged);
  return privateJson(201, buildPushedAnswer(reference, PUSHED_SECONDS));
}

/** The request as it is read further: of the client that proved itself, and with the key of its proof. */
function nameClientAndKey(
  ports: PushEndpointPorts,
  form: Form,
  requested: AuthorizationForm,
  { clientId }: Authenticated,
  evidence: KeyEvidence,
): Result<AuthorizationForm, Failure> {
  // RFC9449-10.1-1, RFC9449-10.1-2: the key of a proof is read as if the request had named it.
  const proven = proveKeysOf(ports, form, evidence);
  if (!proven.ok) return proven;
  const { jkt: ofProof } = proven.value.keys;
  const { dpop_jkt: jkt = ofProof } = requested;
  // RFC9449-10.1-3: the key that the request names must be that of its proof.
  if (ofProof !== undefined && jkt !== ofProof) {
    return err({ kind: "request_malformed", reason: "dpop_jkt_differs" });
  }
  // RFC9126-2.1-2, RFC9126-2.2-4: the request is of the client that proved itself, which the form must name if it
  // names one.
  return ok(defined<AuthorizationForm>({ ...requested, client_id: clientId, dpop_jkt: jkt }));
}

/** A public client proves nothing, so that what it is refused is counted, and no event. */
async function recordDenied(
  ports: PushEndpointPorts,
  client: Authenticated,
  audited: AuditedRequest,
  failure: Failure,
  meant: readonly Meant[] | undefined,
): Promise<void> {
  const { reason } = failure;
  if (client.method === "none") return ports.authFailures.note(audited, reason);
  const event = defined<AuditEvent>({
    type: "authorization.denied",
    outcome: "deny",
    reason,
    request: audited,
    client: describeClient(client),
    policy: meant && { digest: ports.settings().policy.digest, meant },
  });
  await recordRefusal(ports, { failure, event }, client.spends);
}

const NOT_ITS_OWN: AuthorizationError = {
  error: "invalid_request",
  error_description: "the client or its redirect_uri is not accepted",
};
