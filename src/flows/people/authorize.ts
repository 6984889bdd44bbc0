/** GET /authorize: a request becomes a row that waits for its user; and POST /par, by which a client leaves one beforehand. */
import { PUSHED_SECONDS, REQUEST_SECONDS, ROWS_IN_ALL_MAX, ROWS_PER_BROWSER_MAX } from "../../limits.ts";
import type { Ports } from "../../ports.ts";
import type { PendingRequest, ShortLived } from "../../records.ts";
import { defined } from "../../result.ts";
import type { AuthorizationForm } from "../../spec/rfc6749-authorization.ts";
import { parseAuthorizationForm } from "../../spec/rfc6749-authorization.ts";
import { isReference, parseRequestUri } from "../../spec/rfc9126.ts";
import type { AuthorizationError } from "../../spec/rfc9207.ts";
import type { AuditedRequest } from "../refusal.ts";
import type { NoticeFacts, NoticeKind, Outcome } from "./outcome.ts";
import { notice } from "./outcome.ts";
import type { RequestRefused, Told, Wrong } from "./read-authorization.ts";
import { readAuthorizationRequest } from "./read-authorization.ts";
import { errorOf, locationAtClient } from "./told.ts";

/** `browser` is the digest of its cookie. */
export async function authorize(
  ports: Ports,
  note: AuditedRequest,
  query: string,
  browser: string,
): Promise<Outcome> {
  const form = parseAuthorizationForm(query);
  const refuse = (outcome: Outcome & { next: "notice" }): Outcome => {
    ports.authFailures.note(note, outcome.notice.reason);
    return outcome;
  };
  // RFC6749-3.1-6: what comes twice is read differently by different readers, so none of it is believed.
  if (!form.ok) {
    const { kind: reason, parameter } = form.error;
    const facts = defined<NoticeFacts>({ kind: "request_invalid", reason, parameter });
    return refuse({ next: "notice", notice: facts });
  }
  const { request_uri: uri } = form.value;
  const opened = uri && (await openPushed(ports, uri, form.value, browser));
  if (opened) return opened;
  const read = await readAuthorizationRequest(ports, form.value, note.source_ip);
  if (!read.ok) {
    const isGone = uri !== undefined && isReference(uri);
    const outcome = isGone ? requestGone(ports, read.error) : refusedRequest(ports, read.error);
    ports.authFailures.note(note, isGone ? "request_uri_unknown" : read.error.reason);
    return outcome;
  }
  const key = await addRequest(ports, read.value.request, REQUEST_SECONDS, browser);
  return key === undefined ? refuse(notice("busy", "rows_too_many")) : { next: "review", request: key };
}

const NOTICES = {
  client: "client_unknown",
  document: "client_unreachable",
  redirect: "redirect_refused",
} as const satisfies Record<Wrong, NoticeKind>;

function refusedRequest(ports: Ports, refused: RequestRefused): Outcome {
  const { reason } = refused;
  // PAGE-D-2, RFC6749-4.1.2.1-4: the user is told, and nothing leads on.
  if ("wrong" in refused) return notice(NOTICES[refused.wrong], reason);
  return tellClient(ports, refused.told, refused.error, { kind: "request_invalid", reason });
}

/** RFC9126-4-2: of what was pushed nothing is known any more, not even a state: the user decides whether to go back. */
function requestGone(ports: Ports, refused: RequestRefused): Outcome {
  const reason = "request_uri_unknown";
  const back = "told" in refused ? locationAtClient(ports, refused.told, errorOf(reason)) : undefined;
  return { next: "notice", notice: defined<NoticeFacts>({ kind: "request_gone", reason, back }) };
}

/**
 * PAGE-D-3, RFC9700-4.11.2-1, RFC9700-4.11.2-2: before a sign-in clients of the operator are told at once; for any other
 * the user decides, on this notice.
 */
export function tellClient(
  ports: Ports,
  told: Told,
  error: AuthorizationError,
  otherwise: NoticeFacts,
): Outcome {
  const location = locationAtClient(ports, told, error);
  return told.client.source === "configuration"
    ? { next: "client", location, refused: otherwise.reason }
    : { next: "notice", notice: { ...otherwise, back: location } };
}

// --- pushed requests (RFC 9126) ---------------------------------------------------------------------------------

/** RFC9126-2.2-1, RFC9126-2.2-4: the reference of the row, which is bound to its client; undefined without room. */
export const pushRequest = (ports: Ports, request: PendingRequest): Promise<string | undefined> =>
  addRequest(ports, { ...request, pushed: true }, PUSHED_SECONDS, undefined);

/** RFC9126-4-1, RFC9126-4-5: opened by one browser, which may load it again until the user has decided. */
async function openPushed(
  ports: Ports,
  uri: string,
  form: AuthorizationForm,
  browser: string,
): Promise<Outcome | undefined> {
  const key = parseRequestUri(uri);
  if (key === undefined) return undefined;
  const row = await ports.shortLived.find("request", key, ports.clock.nowSeconds());
  if (row === undefined || row.body.decided) return undefined;
  if (row.body.clientId !== form.client_id) return undefined;
  if (row.browser === browser) return { next: "review", request: key };
  if (row.browser !== undefined) return undefined;
  const expiresAtSeconds = ports.clock.nowSeconds() + REQUEST_SECONDS;
  const opened = await ports.shortLived.replace({
    ...row,
    version: row.version + 1,
    browser,
    expiresAtSeconds,
  });
  return opened ? { next: "review", request: key } : undefined;
}

// --- rows -------------------------------------------------------------------------------------------------------

async function addRequest(
  ports: Ports,
  body: PendingRequest,
  seconds: number,
  browser: string | undefined,
): Promise<string | undefined> {
  const nowSeconds = ports.clock.nowSeconds();
  const key = ports.random.id();
  const row = defined<ShortLived<"request">>({
    kind: "request",
    key,
    version: 1,
    browser,
    body,
    expiresAtSeconds: nowSeconds + seconds,
  });
  const caps = { perBrowser: ROWS_PER_BROWSER_MAX, inAll: ROWS_IN_ALL_MAX, nowSeconds };
  return (await ports.shortLived.add(row, caps)) ? key : undefined;
}
