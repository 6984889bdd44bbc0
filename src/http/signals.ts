/**
 * POST /signals/NAME: security events that a trusted issuer pushes.
 * RFC 8935: https://www.rfc-editor.org/rfc/rfc8935.html
 */
import type { Reason } from "../audit/reasons.ts";
import type { SignalPorts } from "../flows/receive-signal.ts";
import { receiveSignal, signalIssuer } from "../flows/receive-signal.ts";
import { SIGNAL_BYTES_MAX } from "../limits/signals.ts";
import type { Ports } from "../ports.ts";
import { StoreUnavailable } from "../ports.ts";
import { SECURITY_EVENT_TYPE } from "../spec/rfc8417.ts";
import { httpError, notFound, privateJson } from "./answers.ts";
import { hasMediaType, readText } from "./body.ts";
import type { Handler, HttpResponse } from "./handler.ts";
import { auditedRequest, pathOf } from "./handler.ts";

const ENDPOINT = "/signals";

/** RFC8935-2-2: the answer says that the event is on record; RFC8935-2.3-1: it has no body. */
const TAKEN: HttpResponse = { status: 202, headers: { "Cache-Control": "no-store" }, body: "" };

export function signalsEndpoint(ports: SignalPorts & Pick<Ports, "authFailures" | "throttle">): Handler {
  return async (request, peer) => {
    const issuer = signalIssuer(ports, pathOf(request).split("/").at(-1) ?? "");
    const { signals } = issuer ?? {};
    if (issuer === undefined || signals === undefined) return notFound();
    const audited = auditedRequest(peer, ENDPOINT);
    const refuse = (status: number, code: string, reason: Reason): HttpResponse => {
      ports.authFailures.note(audited, reason);
      const waitSeconds = ports.throttle.failed(peer.address, undefined);
      const refused = { refused: { reason } };
      if (waitSeconds > 0)
        return { ...privateJson(429, errorOf(code), { "Retry-After": String(waitSeconds) }), ...refused };
      return { ...privateJson(status, errorOf(code)), ...refused };
    };
    const { authorization } = signals;
    const given = ports.hash.sha256(request.headers.get("authorization") ?? "");
    if (authorization !== undefined && !ports.hash.equal(given, authorization))
      return refuse(401, "authentication_failed", "credentials_missing");
    const waitSeconds = ports.throttle.spend(`${ENDPOINT} ${signals.name}`);
    if (waitSeconds > 0)
      return privateJson(429, errorOf("access_denied"), { "Retry-After": String(waitSeconds) });
    if (!hasMediaType(request, SECURITY_EVENT_TYPE))
      return httpError({ status: 415, description: `the content type is not ${SECURITY_EVENT_TYPE}` });
    const text = await readText(request, SIGNAL_BYTES_MAX);
    if (!text.ok) return refuse(400, "invalid_request", text.error.kind);
    const received = await receiveSignal(ports, issuer, text.value, audited);
    if (received.ok) return TAKEN;
    const { reason } = received.error;
    // The keys may be back when the event comes again.
    if (reason === "issuer_source_unavailable")
      throw new StoreUnavailable("the keys of the issuer are not there");
    return refuse(400, ERRORS[reason] ?? "invalid_request", reason);
  };
}

/** RFC8935-2.4-1: the codes of its registry; what is wrong in particular stands in the log. */
const ERRORS: Partial<Record<Reason, string>> = {
  issuer_unknown: "invalid_issuer",
  jwt_audience_missing: "invalid_audience",
  jwt_audience_malformed: "invalid_audience",
  jwt_audience_refused: "invalid_audience",
  issuer_key_unknown: "invalid_key",
  signature_invalid: "invalid_key",
  jwt_algorithm_refused: "invalid_key",
};

const errorOf = (err: string): object => ({ err, description: "the event was not taken" });
