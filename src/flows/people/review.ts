/** The page on which a user decides about a client's request: who sees it, and what the decision gives. */
import type { AuditEvent } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import {
  CODE_KEPT_SECONDS,
  CODE_SECONDS,
  RENEWALS_MAX,
  REQUEST_SECONDS,
  ROWS_IN_ALL_MAX,
  ROWS_PER_BROWSER_MAX,
  SKEW_SECONDS,
} from "../../limits.ts";
import type { Allowed, Denied } from "../../policy/ask.ts";
import type { Ports } from "../../ports.ts";
import type { CodeRecord, PendingRequest, ShortLived } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Client, SignInSettings } from "../../settings/settings.ts";
import { isOnComputer } from "../../spec/rfc6749-authorization.ts";
import { OFFLINE_ACCESS } from "../../spec/rfc6749-refresh.ts";
import type { AuthorizationError } from "../../spec/rfc9207.ts";
import { findClient } from "../find-client.ts";
import type { AuditedRequest } from "../refusal.ts";
import { recordConsent } from "./consent.ts";
import { comesWithRefresh, offerTo } from "./offer.ts";
import type { Outcome } from "./outcome.ts";
import { notice } from "./outcome.ts";
import { redirectOf } from "./read-authorization.ts";
import type { OpenSession } from "./session.ts";
import { describeAsked, findSession } from "./session.ts";
import { SIGN_OUT } from "./sign-out.ts";
import { DENIED, locationAtClient, SCOPE_DENIED } from "./told.ts";

/** What the browser brings: digests of its two cookies, absent where it has none of our form. */
export type Visitor = { browser?: string; session?: string };

/** What the page shows. */
export type Review = {
  next: "page";
  id: string;
  client: Client;
  redirectUri: string;
  offer: Allowed;
  session: OpenSession;
  /** Bound to session and request (PAGE-D-5). */
  formToken: string;
  /** The same for a sign-out. */
  signOutToken: string;
  /** PAGE-D-8: anything may be behind the client, so the user confirms that they began this themselves. */
  mustConfirm: boolean;
  /** Refresh tokens come of it; `asksOffline`: the client asks to go on without the user. */
  refresh?: { asksOffline: boolean };
  expiresAtSeconds: number;
  renewable: boolean;
  /** The languages of the user, as the client knows them. */
  uiLocales?: string;
};

/** The user has to sign in first. */
type SignInFirst = { next: "sign_in"; request: string };

type Found = {
  row: ShortLived<"request">;
  client: Client;
  session: OpenSession;
};

export async function openReview(
  ports: Ports,
  note: AuditedRequest,
  id: string,
  visitor: Visitor,
  renew: boolean,
): Promise<Review | SignInFirst | Outcome> {
  const found = await find(ports, note, id, visitor);
  if ("next" in found) return found;
  const row = renew ? await renewed(ports, found.row) : found.row;
  const offer = offerTo(ports, found.client, row.body, found.session);
  if (!offer.ok) {
    if (await demandSignIn(ports, row, offer.error)) return { next: "sign_in", request: id };
    // PAGE-D-3, RFC9700-4.11.2-1: the user is signed in, so the client may be told; trap or not, it learns no reason.
    const error = offer.error.kind === "scope_refused" ? SCOPE_DENIED : DENIED;
    return refuse(ports, note, { ...found, row }, offer.error.reason, error);
  }
  return page(ports, { ...found, row }, offer.value);
}

function page(ports: Ports, found: Found, offer: Allowed): Review {
  const { row, client, session } = found;
  const { redirectUri, renewals, wishes, offline = false } = row.body;
  return defined<Review>({
    next: "page",
    id: row.key,
    client,
    redirectUri,
    offer,
    session,
    formToken: [row.key, shownOn(ports, found, offer)]
      .map((about) => ports.formTokens.of(session.key, about))
      .join("."),
    signOutToken: ports.formTokens.of(session.key, SIGN_OUT),
    mustConfirm: mustConfirm(client, redirectUri),
    refresh: comesWithRefresh(client, offer) ? { asksOffline: offline } : undefined,
    expiresAtSeconds: row.expiresAtSeconds,
    renewable: renewals < RENEWALS_MAX,
    uiLocales: wishes.uiLocales,
  });
}

/** PAGE-D-11, REFRESH-D-1: what the user is told that a click gives, and for how long; settings may change before the click. */
function shownOn({ settings }: Ports, { row, client }: Found, offer: Allowed): string {
  const { consentSeconds, refresh } = settings().signIn ?? {};
  const goesOn = comesWithRefresh(client, offer) ? refresh : undefined;
  return JSON.stringify(["shown", row.key, offer.scope, consentSeconds, goesOn]);
}

/** PAGE-D-8, MCPC-D-10 */
const mustConfirm = ({ source }: Client, redirectUri: string): boolean =>
  source === "registration" || isOnComputer(redirectUri);

/** The row, if it is this browser's and undecided, its client as it is now, and the session that may decide about it. */
async function find(
  ports: Ports,
  note: AuditedRequest,
  id: string,
  { browser, session: cookie }: Visitor,
): Promise<Found | SignInFirst | Outcome> {
  const refused = (outcome: Outcome & { next: "notice" }): Outcome => {
    ports.authFailures.note(note, outcome.notice.reason);
    return outcome;
  };
  const row = await ports.shortLived.find("request", id, ports.clock.nowSeconds());
  // PAGE-D-4: the id alone is worth nothing in another browser.
  if (row === undefined || browser === undefined || row.browser !== browser) {
    return refused(notice("request_gone", "request_unknown"));
  }
  if (row.body.decided) return refused(notice("request_decided", "request_decided"));
  const session = await findSession(ports, cookie);
  if (session === undefined || needsSignIn(ports, row, session)) return { next: "sign_in", request: id };
  // RFC9126-7.4-1: as it is now, since it may have been removed or changed meanwhile.
  const client = await findClient(ports, row.body.clientId, note.source_ip);
  if (!client.ok) {
    const { reason, unreachable } = client.error;
    return refused(notice(unreachable ? "client_unreachable" : "client_unknown", reason));
  }
  // PAGE-D-13: the redirect URI as well, because a code must not go to a place that the client no longer has.
  const redirect = redirectOf(ports, client.value, row.body.redirectUri);
  if (!redirect.ok) return refused(notice("redirect_refused", redirect.error.kind));
  return { row, client: client.value, session };
}

/** OIDC-D-5: a sign-in anew, or a recent one, where the client asks for it; once for each request. */
function needsSignIn(ports: Ports, { body }: ShortLived<"request">, session: OpenSession): boolean {
  if (body.session === session.key) return false;
  const { prompt, maxAgeSeconds } = body.wishes;
  if (prompt.includes("login") || prompt.includes("select_account")) return true;
  if (maxAgeSeconds === undefined) return false;
  const { authTimeSeconds } = session;
  return (
    authTimeSeconds === undefined || authTimeSeconds + maxAgeSeconds + SKEW_SECONDS < ports.clock.nowSeconds()
  );
}

/** OIDC-D-7: a sign-in as the rule demands it, once for each request; the provider is asked for what the rule names. */
async function demandSignIn(ports: Ports, row: ShortLived<"request">, { trace }: Denied): Promise<boolean> {
  if (row.body.demanded) return false;
  const { policy } = ports.settings();
  const demanding = trace.find(({ failed }) => failed === "sign_in");
  const rule = policy.rules.get(demanding?.rule ?? "");
  if (rule?.allow !== "authorization_code") return false;
  // The sign-in that was done for this request is not enough, so it does not count as done.
  const { session: _, wishes, ...rest } = row.body;
  const demanded = {
    ...wishes,
    prompt: [...new Set([...wishes.prompt, "login" as const])],
    acrValues: rule.acr ?? wishes.acrValues,
  };
  const body = { ...rest, wishes: demanded, demanded: true };
  return ports.shortLived.replace({ ...row, version: row.version + 1, body });
}

/** WCAG-2.2.1-1: as long again, a limited number of times. */
async function renewed(ports: Ports, row: ShortLived<"request">): Promise<ShortLived<"request">> {
  if (row.body.renewals >= RENEWALS_MAX) return row;
  const next = {
    ...row,
    version: row.version + 1,
    body: { ...row.body, renewals: row.body.renewals + 1 },
    expiresAtSeconds: ports.clock.nowSeconds() + REQUEST_SECONDS,
  };
  return (await ports.shortLived.replace(next)) ? next : row;
}

// --- the decision -----------------------------------------------------------------------------------------------

/** The form of the page, as it was sent. */
export type Decision = {
  allows: boolean;
  scopes: readonly string[];
  /** The box that takes every scope. */
  all: boolean;
  /** The box that PAGE-D-8 requires. */
  confirmed: boolean;
  formToken: string;
};

/** `problem`: the page again, because a required box is not ticked. */
export async function decideReview(
  ports: Ports,
  signIn: SignInSettings,
  note: AuditedRequest,
  id: string,
  visitor: Visitor,
  decision: Decision,
): Promise<(Review & { problem: "unconfirmed" }) | SignInFirst | Outcome> {
  const found = await find(ports, note, id, visitor);
  if ("next" in found) return found;
  const { row, client, session } = found;
  // PAGE-D-5, RFC6749-10.12-1: made for this session and this request, so no other page can have sent it.
  const [formToken = "", shown = ""] = decision.formToken.split(".");
  if (!ports.formTokens.accepts(formToken, session.key, row.key)) {
    ports.authFailures.note(note, "form_token_wrong");
    return notice("form_refused", "form_token_wrong");
  }
  if (!decision.allows) return refuse(ports, note, found, "user_refused", DENIED);
  // RFC9126-4-6, RFC9126-7.4-1: decided anew, as policy and client may have changed since the page was shown.
  const offer = offerTo(ports, client, row.body, session);
  if (!offer.ok) return refuse(ports, note, found, offer.error.reason, DENIED);
  if (!ports.formTokens.accepts(shown, session.key, shownOn(ports, found, offer.value))) {
    ports.authFailures.note(note, "form_token_wrong");
    const onwards = { page: "review", id } as const;
    return { next: "notice", notice: { kind: "form_refused", reason: "form_token_wrong", onwards } };
  }
  if (mustConfirm(client, row.body.redirectUri) && !decision.confirmed) {
    return { ...page(ports, found, offer.value), problem: "unconfirmed" };
  }
  // PAGE-D-11: of what is offered, what was ticked.
  const given = offer.value.scope.filter((one) => decision.all || decision.scopes.includes(one));
  if (given.length === 0) return refuse(ports, note, found, "nothing_ticked", DENIED);
  // PAGE-D-4: of two decisions about one request, on whatever instances, one is made.
  if (!(await close(ports, row))) return notice("request_decided", "request_decided");
  const { rule, target, scope } = offer.value;
  const consent = await recordConsent(ports, {
    session,
    actor: client.clientId,
    target,
    asked: scope,
    given,
    consentSeconds: signIn.consentSeconds,
    event: {
      request: note,
      ...describeAsked(client, session),
      policy: { digest: ports.settings().policy.digest, rule_id: rule.id },
    },
  });
  if (consent === undefined) return notice("request_decided", "version_differs");
  const refresh = comesWithRefresh(client, offer.value)
    ? timesOf(signIn.refresh, row.body, decision, ports.clock.nowSeconds())
    : undefined;
  const code = await makeCode(ports, found, given, consent, refresh);
  if (code === undefined) return notice("busy", "rows_too_many");
  return { next: "client", location: locationAtClient(ports, row.body, { code }) };
}

/** REFRESH-D-2, REFRESH-D-13: from the click on, and as long as the page said. */
function timesOf(
  { seconds, idleSeconds, briefSeconds }: SignInSettings["refresh"],
  asked: PendingRequest,
  { all, scopes }: Decision,
  nowSeconds: number,
): NonNullable<CodeRecord["refresh"]> {
  const offline = asked.offline === true && (all || scopes.includes(OFFLINE_ACCESS));
  return defined<NonNullable<CodeRecord["refresh"]>>({
    offline,
    startedAtSeconds: nowSeconds,
    endsAtSeconds: nowSeconds + (offline ? seconds : briefSeconds),
    idleEndsAtSeconds: offline ? nowSeconds + idleSeconds : undefined,
  });
}

const close = (ports: Ports, row: ShortLived<"request">): Promise<boolean> =>
  ports.shortLived.replace({ ...row, version: row.version + 1, body: { ...row.body, decided: true } });

/** RFC6749-4.1.2.1-2: the client learns that nothing is given; why, the auditor alone. */
async function refuse(
  ports: Ports,
  note: AuditedRequest,
  { row, client, session }: Found,
  reason: Reason,
  error: AuthorizationError,
): Promise<Outcome> {
  if (!(await close(ports, row))) return notice("request_decided", "request_decided");
  const { target, scope } = row.body;
  const event: AuditEvent = defined<AuditEvent>({
    type: "authorization.denied",
    outcome: "deny",
    reason,
    request: note,
    ...describeAsked(client, session),
    requested: defined({ audience: [target], resource: [], scope: scope?.join(" ") }),
    policy: { digest: ports.settings().policy.digest },
  });
  await ports.journal.record({ event });
  return { next: "client", location: locationAtClient(ports, row.body, error), refused: reason };
}

/** RFC6749-4.1.2-5, RFC7636-4.4-1: bound to all that the request said, and to who decided; found by its digest alone. */
async function makeCode(
  ports: Ports,
  { row, client, session }: Found,
  scopes: readonly string[],
  consentId: string,
  refresh: CodeRecord["refresh"],
): Promise<string | undefined> {
  const nowSeconds = ports.clock.nowSeconds();
  const code = ports.random.secret();
  const { redirectUri, redirectUriSent, challenge, jkt, target } = row.body;
  const body = defined<CodeRecord>({
    clientId: client.clientId,
    redirectUri,
    redirectUriSent,
    challenge,
    jkt,
    target,
    scopes,
    origin: session.origin,
    sub: session.sub,
    signedInAtSeconds: session.authTimeSeconds ?? session.startedAtSeconds,
    authTimeSeconds: session.authTimeSeconds,
    acr: session.acr,
    consentId,
    refresh,
    usableUntilSeconds: nowSeconds + CODE_SECONDS,
  });
  const added = await ports.shortLived.add(
    defined<ShortLived<"code">>({
      kind: "code",
      key: ports.hash.sha256(code),
      version: 1,
      browser: row.browser,
      body,
      expiresAtSeconds: nowSeconds + CODE_KEPT_SECONDS,
    }),
    { perBrowser: 4 * ROWS_PER_BROWSER_MAX, inAll: ROWS_IN_ALL_MAX, nowSeconds },
  );
  return added ? code : undefined;
}
