/**
 * POST /signals/NAME: security events that a trusted issuer pushes.
 * RFC 8935: https://www.rfc-editor.org/rfc/rfc8935.html
 */
import type { Reason } from "../audit/reasons.ts";
import { recordSignal, type SignalPorts, signalIssuer, verifySignal } from "../flows/receive-signal.ts";
import { SIGNAL_BYTES_MAX } from "../limits/signals.ts";
import { type Ports, StoreUnavailable } from "../ports.ts";
import { SECURITY_EVENT_TYPE } from "../spec/rfc8417.ts";
import { httpError, notFound, privateJson } from "./answers.ts";
import { hasMediaType, readText } from "./body.ts";
import { auditedRequest, type Handler, type HttpResponse, pathOf } from "./handler.ts";

const ENDPOINT = "/signals";

/** RFC8935-2-2: the answer says that the event is on record; RFC8935-2.3-1: it has no body. */
const TAKEN: HttpResponse = { status: 202, headers: { "Cache-Control": "no-store" }, body: "" };

export function signalsEndpoint(
  ports: SignalPorts & Pick<Ports, "authFailures" | "proofs" | "throttle">,
): Handler {
  return async (request, peer) => {
    const issuer = signalIssuer(ports, pathOf(request).split("/").at(-1) ?? "");
    const { signals } = issuer ?? {};
    if (issuer === undefined || signals === undefined) return notFound();
    const audited = auditedRequest(peer, ENDPOINT);
    const refuse = (status: number, code: string, reason: Reason): HttpResponse => {
      ports.authFailures.note(audited, reason);
      const waitSeconds = ports.throttle.failed(peer.address, undefined);
      if (waitSeconds > 0) return later(429, waitSeconds, reason);
      return { ...privateJson(status, errorOf(code)), refused: { reason } };
    };
    const { authorization } = signals;
    const given = ports.hash.sha256(request.headers.get("authorization") ?? "");
    if (authorization !== undefined && !ports.hash.equal(given, authorization))
      return refuse(401, "authentication_failed", "credentials_missing");
    if (!hasMediaType(request, SECURITY_EVENT_TYPE))
      return httpError({ status: 415, description: `the content type is not ${SECURITY_EVENT_TYPE}` });
    // SSF-D-10: signatures are not verified for an issuer that sends too many.
    const fullSeconds = ports.throttle.eventWait(signals.name);
    if (fullSeconds > 0) return later(429, fullSeconds, "requests_too_many");
    const text = await readText(request, SIGNAL_BYTES_MAX);
    if (!text.ok) return refuse(400, "invalid_request", text.error.kind);
    // CPU time for what fails is limited, as for every caller without proof.
    const event = await ports.proofs.verify(peer.address, () => verifySignal(ports, issuer, text.value));
    if (!event.ok) {
      if ("retrySeconds" in event.error) return later(503, event.error.retrySeconds, event.error.reason);
      const { reason } = event.error;
      // The keys may be back when the event comes again.
      if (reason === "issuer_source_unavailable" || reason === "issuer_source_silent")
        throw new StoreUnavailable("the keys of the issuer are not there");
      return refuse(400, ERRORS[reason] ?? "invalid_request", reason);
    }
    // SSF-D-10: only events that the issuer signed use up its rate.
    const waitSeconds = ports.throttle.takeEvent(signals.name);
    if (waitSeconds > 0) return later(429, waitSeconds, "requests_too_many");
    const recorded = await recordSignal(ports, issuer, event.value, audited);
    if (recorded.ok) return TAKEN;
    // Its issuer signed it, so that it counts as no failure of its source.
    return { ...privateJson(400, UNSUPPORTED), refused: recorded.error };
  };
}

/** RFC8935-2.4-1: the codes of its registry; what is wrong in particular stands in the log. */
const ERRORS: Partial<Record<Reason, string>> = {
  issuer_unknown: "invalid_issuer",
  jwt_audience_missing: "invalid_audience",
  jwt_audience_malformed: "invalid_audience",
  jwt_audience_refused: "invalid_audience",
  issuer_key_unknown: "invalid_key",
  issuer_key_ambiguous: "invalid_key",
  signature_invalid: "invalid_key",
  jwt_algorithm_refused: "invalid_key",
};

/** The transmitter is to send the event again. */
const later = (status: 429 | 503, seconds: number, reason: Reason): HttpResponse => ({
  ...privateJson(status, errorOf("access_denied"), { "Retry-After": String(seconds) }),
  refused: { reason },
});

const UNSUPPORTED = { err: "invalid_request", description: "the format of the subject is not taken here" };

const errorOf = (err: string): object => ({ err, description: "the event was not taken" });
