/** POST /backchannel-logout/{provider}: a provider says that a user has signed out there. */
import type { Reason } from "../../audit/reasons.ts";
import { notFound, PRIVATE_JSON, privateJson } from "../../http/answers.ts";
import { hasMediaType, readText } from "../../http/body.ts";
import { refuse } from "../../http/form.ts";
import { auditedRequest, type Handler, type HttpResponse, pathOf } from "../../http/handler.ts";
import { BODY_BYTES_MAX } from "../../limits/connections.ts";
import type { LimitPorts } from "../../ports.ts";
import { err } from "../../result.ts";
import { acceptLogout, type ProviderLogoutPorts } from "../flows/provider-logout.ts";
import { parseLogoutForm } from "../spec/oidc-backchannel.ts";

const ENDPOINT = "/backchannel-logout";

export function backchannelLogoutEndpoint(ports: ProviderLogoutPorts & LimitPorts): Handler {
  return async (request, peer) => {
    const provider = ports.settings().signIn?.providers.get(pathOf(request).split("/").at(-1) ?? "");
    if (provider === undefined) return notFound();
    const audited = auditedRequest(peer, ENDPOINT);
    // RFC6749-2.3.1-8: tokens are verified first, so that failures of others at this address refuse no valid one.
    const refused = (reason: Reason): HttpResponse => {
      ports.authFailures.note(audited, reason);
      const waitSeconds = ports.throttle.failed(peer.address, undefined);
      if (waitSeconds > 0) return refuse({ kind: "throttled", reason, waitSeconds }, false);
      return { ...privateJson(400, REFUSED), refused: { reason } };
    };
    if (!hasMediaType(request, "application/x-www-form-urlencoded"))
      return refused("content_type_unsupported");
    const body = await readText(request, BODY_BYTES_MAX);
    const token = body.ok ? parseLogoutForm(body.value) : body;
    if (!token.ok) return refused(token.error.kind);
    const accepted = await ports.proofs.verify(peer.address, async () => {
      const outcome = await acceptLogout(ports, provider, audited, token.value);
      return outcome.ok ? outcome : err({ reason: outcome.error });
    });
    if (accepted.ok) return DONE;
    const { error } = accepted;
    if (!("retrySeconds" in error)) return refused(error.reason);
    const { reason, retrySeconds: waitSeconds } = error;
    return refuse({ kind: "overloaded", reason, waitSeconds }, false);
  };
}

/** OIDCB-2.8-1, OIDCB-2.8-3 */
const DONE: HttpResponse = {
  status: 200,
  headers: { "Cache-Control": PRIVATE_JSON["Cache-Control"] },
  body: "",
};

/** OIDCB-2.8-2: the text does not tell which check failed. */
const REFUSED = { error: "invalid_request", error_description: "the logout token is not accepted" };
