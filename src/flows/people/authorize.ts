/** GET /authorize: a request becomes a row that waits for its user; and POST /par, by which a client leaves one beforehand. */
import { PUSHED_SECONDS, REQUEST_SECONDS, ROWS_IN_ALL_MAX, ROWS_PER_BROWSER_MAX } from "../../limits.ts";
import type { Ports } from "../../ports.ts";
import type { PendingRequest, ShortLived } from "../../records.ts";
import { defined } from "../../result.ts";
import type { AuthorizationForm } from "../../spec/rfc6749-authorization.ts";
import { parseAuthorizationForm } from "../../spec/rfc6749-authorization.ts";
import { parseRequestUri } from "../../spec/rfc9126.ts";
import type { AuthorizationErrorCode, AuthorizationResponse } from "../../spec/rfc9207.ts";
import { buildRedirect } from "../../spec/rfc9207.ts";
import type { AuditedRequest } from "../refusal.ts";
import type { NoticeKind, Outcome } from "./outcome.ts";
import { notice } from "./outcome.ts";
import type { RequestRefused, Wrong } from "./read-authorization.ts";
import { readAuthorizationRequest } from "./read-authorization.ts";

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
  if (!form.ok) return refuse(notice("request_invalid", form.error.kind));
  if (form.value.request_uri !== undefined) {
    const opened = await openPushed(ports, form.value, browser);
    return opened ?? refuse(notice("request_gone", "request_uri_unknown"));
  }
  const read = await readAuthorizationRequest(ports, form.value, note.source_ip);
  if (!read.ok) {
    ports.authFailures.note(note, read.error.reason);
    return refusedRequest(ports, read.error);
  }
  const key = await addRequest(ports, read.value.request, REQUEST_SECONDS, browser);
  return key === undefined ? refuse(notice("busy", "rows_too_many")) : { next: "review", request: key };
}

const NOTICES = {
  client: "client_unknown",
  document: "client_unreachable",
  redirect: "redirect_refused",
} as const satisfies Record<Wrong, NoticeKind>;

function refusedRequest(ports: Ports, { reason, wrong, error, told }: RequestRefused): Outcome {
  // PAGE-D-2, RFC6749-4.1.2.1-4: the user is told, and nothing leads on.
  if (told === undefined) return notice(NOTICES[wrong ?? "client"], reason);
  const location = locationAtClient(ports, told, error);
  // PAGE-D-3, RFC9700-4.11.2-1, RFC9700-4.11.2-2: to clients of the operator at once; for any other the user decides.
  if (told.client.source === "configuration") return { next: "client", location };
  return { next: "notice", notice: { kind: "request_invalid", reason, back: location } };
}

/** RFC6749-4.1.2-6: with the state of the request, as it was. */
export function locationAtClient(
  { settings }: Pick<Ports, "settings">,
  { redirectUri, state }: { redirectUri: string; state?: string },
  result: AuthorizationErrorCode | { code: string },
): string {
  const said = typeof result === "string" ? { error: result } : result;
  const response = defined<AuthorizationResponse>({ ...said, state });
  return buildRedirect(redirectUri, settings().issuer, response);
}

// --- pushed requests (RFC 9126) ---------------------------------------------------------------------------------

/** RFC9126-2.2-1, RFC9126-2.2-4: the reference of the row, which is bound to its client; undefined without room. */
export const pushRequest = (ports: Ports, request: PendingRequest): Promise<string | undefined> =>
  addRequest(ports, { ...request, pushed: true }, PUSHED_SECONDS, undefined);

/** RFC9126-4-1, RFC9126-4-5: opened by one browser, which may load it again until the user has decided. */
async function openPushed(
  ports: Ports,
  form: AuthorizationForm,
  browser: string,
): Promise<Outcome | undefined> {
  const key = parseRequestUri(form.request_uri ?? "");
  // RFC9126-4-2
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
