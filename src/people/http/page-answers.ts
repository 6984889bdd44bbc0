/** What page handlers have in common: who asks, what is refused before anything is looked up, and how pages are sent. */

import type { AuditedRequest } from "../../flows/refusal.ts";
import { type Dress, notFound } from "../../http/answers.ts";
import { parameterOf } from "../../http/form.ts";
import {
  auditedRequest,
  type Handler,
  type HttpRequest,
  type HttpResponse,
  type LoggedRefusal,
  type Peer,
  pathOf,
} from "../../http/handler.ts";
import { REQUEST_SECONDS } from "../../limits/people.ts";
import { type BasePorts, StoreUnavailable } from "../../ports.ts";
import { defined } from "../../result.ts";
import type { SchemeColours } from "../../settings/colours.ts";
import type { SignInSettings } from "../../settings/settings.ts";
import type { NoticeKind, Outcome } from "../flows/outcome.ts";
import { textsFor } from "../pages/language.ts";
import { type NoticeView, noticePage } from "../pages/notice-page.ts";
import { frame, type Page, type PageLook } from "../pages/page.ts";
import { styleOf } from "../pages/style.ts";
import type { Texts } from "../pages/texts.ts";
import type { PagePorts, PeoplePorts } from "../ports.ts";
import type { PagePlace } from "../records.ts";
import { readCookie, setCookie } from "./cookies.ts";
import { isForeign } from "./fetch-metadata.ts";

// --- pages and redirects ----------------------------------------------------------------------------------------

/** Browsers apply form-action to every redirect after a form, so the consent page must have none. */
type Kind = "plain" | "consent" | "account";

/** The digests of styles, by their colours. */
const styleDigests = new WeakMap<SchemeColours, string>();

/** Made once for each snapshot of the settings. */
function styleDigest({ hash, settings }: Pick<PeoplePorts, "hash" | "settings">): string {
  const { colours } = settings().pages;
  const digest = styleDigests.get(colours) ?? hash.sha256(styleOf(colours));
  styleDigests.set(colours, digest);
  return Buffer.from(digest, "base64url").toString("base64");
}

function headersOf(ports: Pick<PeoplePorts, "hash" | "settings">, kind: Kind): Record<string, string> {
  // CSP-6.1.3-1, CSP-6.3.1-1, CSP-6.4.2-1, RFC9700-4.16-1, RFC9700-4.16-2: a page loads nothing but logos of this
  // server, and is framed nowhere.
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${styleDigest(ports)}'`,
    // PAGE-D-41
    ...(ports.settings().pages.logos.size > 0 ? ["img-src 'self'"] : []),
    "base-uri 'none'",
    "frame-ancestors 'none'",
    // CSP-6.4.1-1
    ...(kind === "consent" ? [] : ["form-action 'self'"]),
  ];
  return defined<Record<string, string>>({
    "Content-Security-Policy": policy.join("; "),
    "X-Frame-Options": "DENY", // RFC6749-10.13-1
    "Referrer-Policy": "no-referrer", // RFC9700-4.2.4-2
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    // The header is left out on the way to the consent page, because a web client that opened it in a window of its own
    // would lose that window.
    "Cross-Origin-Opener-Policy": kind === "account" ? "same-origin" : undefined,
    "Strict-Transport-Security": ports.settings().production ? "max-age=31536000" : undefined,
  });
}

/** An answer whose page is written last, when its language is known. */
type PageAnswer = HttpResponse & { readonly page?: Page; readonly uiLocales?: string };

/** `uiLocales` are the languages that the client named for this user. */
export const pageAnswer = (
  ports: Pick<PeoplePorts, "hash" | "settings">,
  page: Page,
  kind: Kind = "plain",
  uiLocales?: string,
): PageAnswer => {
  const headers = { ...headersOf(ports, kind), "Content-Type": "text/html; charset=utf-8" };
  return defined<PageAnswer>({ status: page.status, headers, body: "", page, uiLocales });
};

/** PAGE-D-17: the page is in the language of the user, as the client knows it or else the browser. */
function written(
  ports: BasePorts,
  request: HttpRequest,
  { requestId }: Peer,
  answer: PageAnswer,
): HttpResponse {
  const { page, uiLocales, ...rest } = answer;
  if (page === undefined) return rest;
  const named = uiLocales ?? new URL(request.url).searchParams.get("ui_locales") ?? undefined;
  const texts = textsFor(named, request.headers.get("accept-language"));
  return { ...rest, body: frame(page, lookOf(ports, texts, requestId)) };
}

/** PAGE-D-28: each page has the id of its request, which log and trail have, and a way on. */
const lookOf = ({ settings }: Pick<PeoplePorts, "settings">, texts: Texts, requestId: string): PageLook => {
  const { issuer, pages } = settings();
  return { ...pages, texts, requestId, account: pageUrl(issuer, { page: "account" }) };
};

/**
 * PAGE-D-12, RFC9700-4.12-1, RFC9700-4.12-2: the browser follows with a GET, whatever the request was, and sends no
 * body along.
 */
export const redirectAnswer = (ports: BasePorts, location: string): HttpResponse => ({
  status: 303,
  headers: { ...headersOf(ports, "plain"), Location: location },
  body: "",
});

const STATUS: Record<NoticeKind, number> = {
  request_invalid: 400,
  client_unknown: 400,
  client_unreachable: 503,
  redirect_refused: 400,
  request_gone: 400,
  request_decided: 409,
  sign_in_failed: 400,
  sign_in_used: 409,
  account_disabled: 403,
  form_refused: 403,
  session_over: 403,
  taken_back_before: 409,
  job_stopped_before: 409,
  provider_down: 503,
  busy: 503,
  unavailable: 503,
  ask_gone: 400,
  job_over: 409,
  jobs_too_many: 409,
  ask_allowed: 200,
  ask_refused: 200,
  ask_refused_before: 409,
};

/** Answers with what a flow came to. */
export function outcomeAnswer(ports: BasePorts, outcome: Outcome): HttpResponse {
  const { issuer } = ports.settings();
  switch (outcome.next) {
    case "client": {
      const { location, refused: reason, meant } = outcome;
      const answer = redirectAnswer(ports, location);
      return reason === undefined
        ? answer
        : { ...answer, refused: defined<LoggedRefusal>({ reason, meant }) };
    }
    case "provider":
      return redirectAnswer(ports, outcome.location);
    case "place":
      return redirectAnswer(ports, pageUrl(issuer, outcome.place));
    case "sign_in":
      return redirectAnswer(ports, signInUrl(issuer, outcome.place));
    case "notice": {
      const { kind, reason, parameter, meant, back, onwards } = outcome.notice;
      const view = defined<NoticeView>({
        kind,
        status: STATUS[kind],
        back: back === undefined ? undefined : { href: back, host: hostOf(back) },
        onwards: onwards && pageUrl(issuer, onwards),
      });
      const page = pageAnswer(ports, noticePage(view));
      if (STATUS[kind] < 400) return page;
      const refused = defined<LoggedRefusal>({ reason, parameter: parameterOf({ parameter }), meant });
      const answer = { ...page, refused };
      return STATUS[kind] === 503 ? withHeader(answer, "Retry-After", "10") : answer;
    }
  }
}

const PATHS: Record<PagePlace["page"], string> = {
  review: "/authorize/review",
  ask: "/ask",
  account: "/account",
};

export const pageUrl = (issuer: string, place: PagePlace): string =>
  `${issuer}${PATHS[place.page]}${"id" in place ? `?r=${encodeURIComponent(place.id)}` : ""}`;

/** The parameter of /signin that names the page to which it leads; without one that is the account page. */
export const SIGN_IN_FOR = { review: "r", ask: "ask" } as const;

export function signInUrl(issuer: string, place: PagePlace, more: Record<string, string> = {}): string {
  const leadsTo = "id" in place ? { [SIGN_IN_FOR[place.page]]: place.id } : {};
  const query = new URLSearchParams({ ...leadsTo, ...more }).toString();
  return query === "" ? `${issuer}/signin` : `${issuer}/signin?${query}`;
}

/** Host and port as they stand in the URI (PAGE-D-7); of an app's own scheme the scheme. */
export const hostOf = (uri: string): string =>
  /^https?:\/\/([^/?]+)/.exec(uri)?.[1] ?? uri.slice(0, uri.indexOf(":") + 1);

export const withHeader = (answer: PageAnswer, name: string, value: string): PageAnswer => ({
  ...answer,
  headers: { ...answer.headers, [name]: value },
});

// --- answers that no page made ------------------------------------------------------------------------------------

const PAGE_PATHS = ["/authorize", "/ask", "/signin", "/callback", "/signout", "/signed-out", "/account"];

/** At the paths of pages a refusal or fault is a page as well, for a person reads it. Everything else stays as it is. */
export function dressPages(ports: Pick<PeoplePorts, "hash" | "settings">): Dress {
  const base = new URL(ports.settings().issuer).pathname.replace(/\/$/, "");
  const isPage = (path: string): boolean =>
    PAGE_PATHS.some((one) => path === base + one || path.startsWith(`${base}${one}/`));
  return ({ path, acceptLanguage, requestId }, answer) => {
    if (ports.settings().signIn === undefined || !isPage(path)) return answer;
    const { status, headers } = answer;
    const kind = status === 503 ? "unavailable" : status >= 500 ? "fault" : "request_invalid";
    const { Allow, "Retry-After": retryAfter } = headers;
    return {
      status,
      headers: defined<Record<string, string>>({
        ...pageAnswer(ports, noticePage({ kind, status })).headers,
        Allow,
        "Retry-After": retryAfter,
      }),
      body: frame(
        noticePage({ kind, status }),
        lookOf(ports, textsFor(undefined, acceptLanguage), requestId),
      ),
    };
  };
}

// --- requests ---------------------------------------------------------------------------------------------------

type PageRequest = {
  request: HttpRequest;
  peer: Peer;
  audited: AuditedRequest;
  signIn: SignInSettings;
  query: URLSearchParams;
  /** The query as it was sent. */
  rawQuery: string;
};

/** A page handler; without sign-in there are no pages. */
export function onPage(
  ports: PagePorts,
  serve: (asked: PageRequest) => PageAnswer | Promise<PageAnswer>,
): Handler {
  return async (request, peer) => {
    const { signIn } = ports.settings();
    if (signIn === undefined) return notFound();
    const audited = auditedRequest(peer, pathOf(request));
    const attempt = async (): Promise<PageAnswer> => {
      const { search, searchParams: query } = new URL(request.url);
      try {
        return await serve({ request, peer, audited, signIn, query, rawQuery: search.slice(1) });
      } catch (fault) {
        // Pages answer with pages; any other fault is a bug, of which nothing is shown.
        if (fault instanceof StoreUnavailable) return { ...storeLost(ports, request), fault };
        throw fault;
      }
    };
    return written(ports, request, peer, admit(ports, request, audited) ?? (await attempt()));
  };
}

/** Returns the refusal; undefined where the request may go on. */
function admit(ports: PagePorts, request: HttpRequest, audited: AuditedRequest): PageAnswer | undefined {
  const refuse = (kind: NoticeKind, status: number, reason: "cross_site" | "visits_too_many"): PageAnswer => {
    ports.authFailures.note(audited, reason);
    return { ...pageAnswer(ports, noticePage({ kind, status })), refused: { reason } };
  };
  // PAGE-D-18
  const waitSeconds = ports.throttle.visit(audited.source_ip);
  if (waitSeconds > 0) {
    return withHeader(refuse("busy", 429, "visits_too_many"), "Retry-After", String(waitSeconds));
  }
  const { origin } = new URL(ports.settings().issuer);
  return isForeign(request, origin) ? refuse("form_refused", 403, "cross_site") : undefined;
}

/**
 * It is unknown whether the change is on record; the user can ask again, by the page of the form where it was a form.
 */
function storeLost(ports: BasePorts, request: HttpRequest): PageAnswer {
  const { issuer } = ports.settings();
  const isForm = [PATHS.review, PATHS.ask].some((path) => request.url.startsWith(`${issuer}${path}?`));
  const hasPage = request.method === "GET" || isForm;
  const onwards = hasPage ? request.url : pageUrl(issuer, { page: "account" });
  const page = pageAnswer(ports, noticePage({ kind: "unavailable", status: 503, onwards }));
  return withHeader({ ...page, refused: { reason: "store_unavailable" } }, "Retry-After", "10");
}

export const digestOf = (
  ports: Pick<PeoplePorts, "hash">,
  request: HttpRequest,
  name: "browser" | "session",
): string | undefined => {
  const value = readCookie(request, name);
  return value === undefined ? undefined : ports.hash.sha256(value);
};

/** The browser by its cookie, or by a new one; the answer renews it. */
export function knowBrowser(ports: BasePorts, request: HttpRequest) {
  const value = readCookie(request, "browser") ?? ports.random.secret();
  return {
    browser: ports.hash.sha256(value),
    remember: (answer: HttpResponse): HttpResponse =>
      withHeader(answer, "Set-Cookie", setCookie("browser", value, REQUEST_SECONDS)),
  };
}
