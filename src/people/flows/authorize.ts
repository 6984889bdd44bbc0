/** GET /authorize: a request waits for its user in the browser; and POST /par, by which a client leaves one beforehand. */

import type { AuditedRequest } from "../../flows/refusal.ts";
import { PUSHED_SECONDS, REQUEST_SECONDS } from "../../limits/people.ts";
import type { BasePorts } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { AskingClientPorts, PeoplePorts } from "../ports.ts";
import type { PendingRequest, PeopleRow } from "../records.ts";
import { type AuthorizationForm, parseAuthorizationForm } from "../spec/rfc6749-authorization.ts";
import { isReference, parseRequestUri } from "../spec/rfc9126.ts";
import type { AuthorizationError } from "../spec/rfc9207.ts";
import { type NoticeFacts, type NoticeKind, notice, type Outcome } from "./outcome.ts";
import {
  type ReadRequest,
  type RequestRefused,
  readAuthorizationRequest,
  type Told,
  type Wrong,
} from "./read-authorization.ts";
import { errorOf, locationAtClient } from "./told.ts";

/** `browser` is the digest of the browser's cookie. */
export type AuthorizePorts = AskingClientPorts & Pick<PeoplePorts, "authFailures" | "shortLived" | "waiting">;

export async function authorize(
  ports: AuthorizePorts,
  audited: AuditedRequest,
  query: string,
  browser: string,
): Promise<Outcome> {
  const form = parseAuthorizationForm(query);
  const refuse = (outcome: Outcome & { next: "notice" }): Outcome => {
    ports.authFailures.note(audited, outcome.notice.reason);
    return outcome;
  };
  // RFC6749-3.1-6: a repeated parameter is read differently by different readers, so none of its values is used.
  if (!form.ok) {
    const { kind: reason, parameter } = form.error;
    const facts = defined<NoticeFacts>({ kind: "request_invalid", reason, parameter });
    return refuse({ next: "notice", notice: facts });
  }
  const { request_uri: uri } = form.value;
  const opened = uri && (await openPushed(ports, uri, form.value, browser));
  if (opened) return opened;
  const read = await readAuthorizationRequest(ports, form.value, audited.source_ip);
  if (!read.ok) {
    const isGone = uri !== undefined && isReference(uri);
    const outcome = isGone ? requestGone(ports, read.error) : refusedRequest(ports, read.error);
    ports.authFailures.note(audited, isGone ? "request_uri_unknown" : read.error.reason);
    return outcome;
  }
  return toReview(ports, browser, read.value.request);
}

/** PAGE-D-4: from now on the request waits in this browser. */
const toReview = (
  { waiting }: Pick<PeoplePorts, "waiting">,
  browser: string,
  request: PendingRequest,
): Outcome => ({
  next: "place",
  place: { page: "review", id: waiting.seal("request", browser, request) },
});

const NOTICES = {
  client: "client_unknown",
  document: "client_unreachable",
  redirect: "redirect_refused",
} as const satisfies Record<Wrong, NoticeKind>;

function refusedRequest(ports: BasePorts, refused: RequestRefused): Outcome {
  const { reason } = refused;
  // PAGE-D-2, RFC6749-4.1.2.1-4: the user is told, and no link leads on.
  if ("wrong" in refused) return notice(NOTICES[refused.wrong], reason);
  const meant = refused.meant?.[0]?.known;
  const facts = defined<NoticeFacts>({ kind: "request_invalid", reason, meant });
  return tellClient(ports, refused.told, refused.error, facts);
}

/**
 * RFC9126-4-2: nothing is known any more of a pushed request, not even its state, so the user decides whether to go
 * back.
 */
function requestGone(ports: BasePorts, refused: RequestRefused): Outcome {
  const reason = "request_uri_unknown";
  const back = "told" in refused ? locationAtClient(ports, refused.told, errorOf(reason)) : undefined;
  return { next: "notice", notice: defined<NoticeFacts>({ kind: "request_gone", reason, back }) };
}

/**
 * PAGE-D-3, RFC9700-4.11.2-1, RFC9700-4.11.2-2: before a sign-in only clients of the operator are told at once; for any
 * other client the user decides, on this notice.
 */
export function tellClient(
  ports: BasePorts,
  told: Told,
  error: AuthorizationError,
  otherwise: NoticeFacts,
): Outcome {
  const location = locationAtClient(ports, told, error);
  return told.client.source === "configuration"
    ? defined<Outcome>({ next: "client", location, refused: otherwise.reason, meant: otherwise.meant })
    : { next: "notice", notice: { ...otherwise, back: location } };
}

// --- pushed requests (RFC 9126) ---------------------------------------------------------------------------------

/**
 * RFC9126-2.2-1, RFC9126-2.2-4: makes a reference that is bound to the client. It is that of a row; but where a client
 * only named itself, anyone could fill the store with rows, so there the reference holds the request itself.
 */
export function pushRequest(
  ports: Pick<PeoplePorts, "clock" | "hash" | "waiting">,
  { client, request }: ReadRequest,
  isProven: boolean,
): { reference: string; rows: readonly PeopleRow<"request">[] } {
  const body = { ...request, pushed: true, expiresAtSeconds: ports.clock.nowSeconds() + PUSHED_SECONDS };
  const { id: key, expiresAtSeconds } = body;
  return isProven
    ? { reference: key, rows: [{ kind: "request", key, version: 1, body, expiresAtSeconds }] }
    : { reference: ports.waiting.seal("pushed", ports.hash.sha256(client.clientId), body), rows: [] };
}

/**
 * RFC9126-4-1, RFC9126-4-5: from now on the request waits in this browser, which may load it again until the user has
 * decided; it is the only browser that may open a row.
 */
async function openPushed(
  ports: AuthorizePorts,
  uri: string,
  form: AuthorizationForm,
  browser: string,
): Promise<Outcome | undefined> {
  const reference = parseRequestUri(uri) ?? "";
  const nowSeconds = ports.clock.nowSeconds();
  const client = ports.hash.sha256(form.client_id ?? "");
  const request =
    ports.waiting.open("pushed", client, reference, nowSeconds) ??
    (await takeRow(ports, reference, form, browser));
  if (request === undefined) return undefined;
  if ((await ports.shortLived.find("decision", request.id, nowSeconds)) !== undefined) return undefined;
  return toReview(ports, browser, { ...request, expiresAtSeconds: nowSeconds + REQUEST_SECONDS });
}

async function takeRow(
  { shortLived, clock }: Pick<PeoplePorts, "clock" | "shortLived">,
  key: string,
  form: AuthorizationForm,
  holder: string,
): Promise<PendingRequest | undefined> {
  const row = await shortLived.find("request", key, clock.nowSeconds());
  if (row === undefined || row.body.clientId !== form.client_id) return undefined;
  const request = row.body;
  if (row.holder !== undefined) return row.holder === holder ? request : undefined;
  return (await shortLived.replace({ ...row, version: row.version + 1, holder })) ? request : undefined;
}
