/** POST /token: the form, the client, the grant; and the event of every refusal, durable before the answer. */

import type { AuditEvent } from "../audit/event.ts";
import { describeClient } from "../flows/audit-fields.ts";
import type { Authenticated } from "../flows/authenticate-client.ts";
import { authenticateClient, chargeStranger } from "../flows/authenticate-client.ts";
import { clientCredentials } from "../flows/client-credentials.ts";
import { redeemGrant } from "../flows/redeem-grant.ts";
import type { Failure, RefusedRequest, RequestNote } from "../flows/refusal.ts";
import { ASSERTION_REPLAYED, assertionReplayed } from "../flows/refusal.ts";
import { exchangeToken } from "../flows/token-exchange.ts";
import { BODY_BYTES_MAX } from "../limits.ts";
import type { Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Result } from "../result.ts";
import { err } from "../result.ts";
import type { Settings } from "../settings/settings.ts";
import type { Form, TokenAnswer } from "../spec/rfc6749.ts";
import { CLIENT_CREDENTIALS, isTokenParameter, parseForm } from "../spec/rfc6749.ts";
import { JWT_BEARER_GRANT } from "../spec/rfc7523.ts";
import { TOKEN_EXCHANGE } from "../spec/rfc8693.ts";
import { privateJson } from "./answers.ts";
import { hasMediaType, readText } from "./body.ts";
import { toOAuthError } from "./errors.ts";
import type { Handler, HttpRequest, HttpResponse } from "./handler.ts";

type Grant = (
  ports: Ports,
  client: Authenticated,
  form: Form,
  request: RequestNote,
) => Promise<Result<TokenAnswer, RefusedRequest>>;

type GrantType = {
  flow: Grant;
  deniedType: AuditEvent["type"];
  /** Absent: always. */
  isOn?: (settings: Settings) => boolean;
};

/** IDC 2.4: off until the operator trusts an issuer for it. */
const redeems = ({ trustedIssuers }: Settings): boolean =>
  [...trustedIssuers.values()].some(({ grants }) => grants !== undefined);

/** RFC6749-4.4.2-1, RFC6749-4.5-1: matched exactly; what is not here, or not on, is unsupported. */
const GRANTS: ReadonlyMap<string, GrantType> = new Map<string, GrantType>([
  [CLIENT_CREDENTIALS, { flow: clientCredentials, deniedType: "token.denied" }],
  [TOKEN_EXCHANGE, { flow: exchangeToken, deniedType: "token_exchange.denied" }],
  [JWT_BEARER_GRANT, { flow: redeemGrant, deniedType: "grant.denied", isOn: redeems }],
]);

const isOn = (known: GrantType | undefined, settings: Settings): known is GrantType =>
  known !== undefined && (known.isOn?.(settings) ?? true);

/** PROD-4.4-12: what is advertised is what is dispatched. */
export const grantTypesOn = (settings: Settings): readonly string[] =>
  [...GRANTS].flatMap(([grantType, known]) => (isOn(known, settings) ? [grantType] : []));

const ENDPOINT = "/token";

export function tokenEndpoint(ports: Ports): Handler {
  return async (request, peer) => {
    const note: RequestNote = { id: peer.requestId, endpoint: ENDPOINT, source_ip: peer.address };
    const authorization = request.headers.get("authorization") ?? undefined;
    const form = await readForm(request);
    if (!form.ok) return refuse(form.error, authorization);
    // RFC6749-5.2-2: before anybody is asked who he is.
    if (form.value.grant_type === undefined) {
      return refuse({ kind: "request_malformed", reason: "grant_type_missing" }, authorization);
    }
    // RFC6749-4.4-1, RFC6749-4.4.2-2, RFC6749-10.1-4, RFC6749-10.2-1: whatever the grant, nothing for who proves nothing.
    const client = await authenticateClient(ports, form.value, authorization, peer);
    if (!client.ok) {
      ports.authFailures.note(peer.address, ENDPOINT, client.error.reason);
      return refuse(client.error, authorization);
    }
    const token = await grant(ports, client.value, form.value, note);
    if (token.ok) return privateJson(200, token.value); // RFC6749-5.1-1
    chargeStranger(ports, client.value, peer);
    return refuse(await recordRefusal(ports, token.error, client.value.spends), authorization);
  };
}

/** AUDIT-D-2: refusals of a known client are durable too, each by itself, and use up what a token would have. */
async function recordRefusal(
  ports: Ports,
  refusal: RefusedRequest,
  spends: Guard | undefined,
): Promise<Failure> {
  const { status, error } = toOAuthError(refusal.failure.kind);
  const event = { ...refusal.event, error: { error, status } };
  // An assertion that was used before has nothing left to use up; with a grant that was, the assertion has.
  const guards = spends === undefined || event.reason === ASSERTION_REPLAYED ? [] : [spends];
  const recorded = await ports.journal.record({ event, guards });
  return recorded.ok ? refusal.failure : recordRefusal(ports, assertionReplayed(event), undefined);
}

async function grant(ports: Ports, client: Authenticated, form: Form, note: RequestNote) {
  const known = GRANTS.get(form.grant_type ?? "");
  const denied = (failure: Failure) =>
    err({
      failure,
      event: {
        type: known?.deniedType ?? "token.denied",
        outcome: "deny",
        reason: failure.reason,
        request: note,
        client: describeClient(client),
      },
    } satisfies RefusedRequest);
  if (!isOn(known, ports.settings())) {
    return denied({ kind: "grant_type_unsupported", reason: "grant_type_unsupported" });
  }
  // RFC9396-5-1: no type of them is known here, and to pass over them would grant more than they do.
  if (form.authorization_details !== undefined) {
    return denied({ kind: "details_refused", reason: "authorization_details_unsupported" });
  }
  // RFC6749-5.2-7: what the client was registered for narrows what rules may allow.
  if (client.grantTypes !== undefined && !client.grantTypes.includes(form.grant_type ?? "")) {
    return denied({ kind: "client_unauthorized", reason: "grant_type_not_registered" });
  }
  return known.flow(ports, client, form, note);
}

async function readForm(request: HttpRequest): Promise<Result<Form, Failure>> {
  const malformed = (reason: string) => err({ kind: "request_malformed", reason } as const);
  // RFC8693-2.1-2
  if (!hasMediaType(request, "application/x-www-form-urlencoded"))
    return malformed("content_type_unsupported");
  // RFC6749-2.3.1-6: a URI is written to logs on its way; what belongs into the body is refused there.
  for (const name of new URL(request.url).searchParams.keys()) {
    if (isTokenParameter(name)) return malformed("parameter_in_uri");
  }
  const body = await readText(request, BODY_BYTES_MAX);
  if (!body.ok) return malformed(body.error.kind);
  const form = parseForm(body.value);
  return form.ok ? form : malformed(form.error.kind);
}

/** RFC6749-5.2-1, RFC6749-5.2-5: a challenge, and 401, only for who tried the Authorization header. */
function refuse({ kind, waitSeconds }: Failure, authorization: string | undefined): HttpResponse {
  const { status, error, description } = toOAuthError(kind);
  const body = { error, error_description: description };
  if (waitSeconds !== undefined) return privateJson(status, body, { "Retry-After": String(waitSeconds) });
  return error === "invalid_client" && authorization !== undefined
    ? privateJson(401, body, { "WWW-Authenticate": 'Basic realm="mandate", charset="UTF-8"' })
    : privateJson(status, body);
}
