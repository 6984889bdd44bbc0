/** GET /signin, the way to a provider; GET /callback/{provider}, the way back; POST /signout. */

import { readText } from "../../http/body.ts";
import { type Handler, pathOf } from "../../http/handler.ts";
import { BODY_BYTES_MAX } from "../../limits/connections.ts";
import { SESSION_SECONDS_MAX } from "../../limits/people.ts";
import { type BeginPorts, beginSignIn, finishSignIn, type SignInPorts } from "../flows/sign-in.ts";
import { type SignOutPorts, signOut } from "../flows/sign-out.ts";
import { type NoticeView, noticePage } from "../pages/notice-page.ts";
import { signInPage } from "../pages/sign-in-page.ts";
import type { PagePorts, PeoplePorts } from "../ports.ts";
import type { PagePlace } from "../records.ts";
import { buildEndSessionUrl } from "../spec/oidc.ts";
import { setCookie } from "./cookies.ts";
import { MALFORMED } from "./decision-form.ts";
import {
  digestOf,
  knowBrowser,
  onPage,
  outcomeAnswer,
  pageAnswer,
  pageUrl,
  redirectAnswer,
  SIGN_IN_FOR,
  signInUrl,
  withHeader,
} from "./page-answers.ts";

export function signInEndpoint(ports: PagePorts & BeginPorts): Handler {
  return onPage(ports, async ({ request, signIn, query }) => {
    const { issuer } = ports.settings();
    const { browser, remember } = knowBrowser(ports, request);
    const place = placeIn(query);
    const providers = [...signIn.providers.values()];
    const [only, another] = providers;
    const named = query.get("provider");
    const again = query.get("again") === "1";
    const chosen = named === null && another === undefined ? only : signIn.providers.get(named ?? "");
    if (chosen !== undefined) {
      return remember(outcomeAnswer(ports, await beginSignIn(ports, chosen, place, browser, again)));
    }
    const href = (name: string): string =>
      signInUrl(issuer, place, { provider: name, again: again ? "1" : "" });
    const choices = providers.map(({ name, title }) => ({ title, href: href(name) }));
    return remember(pageAnswer(ports, signInPage({ providers: choices })));
  });
}

/** PAGE-D-13: finds one of our own pages, by the parameter that is there. */
function placeIn(query: URLSearchParams): PagePlace {
  for (const page of ["review", "ask"] as const) {
    const id = query.get(SIGN_IN_FOR[page]);
    if (id !== null) return { page, id };
  }
  return { page: "account" };
}

export function callbackEndpoint(ports: PagePorts & SignInPorts): Handler {
  return onPage(ports, async ({ request, audited, signIn, rawQuery }) => {
    const name = pathOf(request).split("/").at(-1) ?? "";
    const [browser, session] = [digestOf(ports, request, "browser"), digestOf(ports, request, "session")];
    const finished = await finishSignIn(ports, signIn, audited, { name, query: rawQuery, browser, session });
    if (finished.next !== "signed_in") return outcomeAnswer(ports, finished);
    const answer = redirectAnswer(ports, pageUrl(ports.settings().issuer, finished.place));
    return withHeader(answer, "Set-Cookie", setCookie("session", finished.secret, SESSION_SECONDS_MAX));
  });
}

/** OIDC-D-9: a session is ended by a form of ours alone. */
export function signOutEndpoint(ports: PagePorts & SignOutPorts): Handler {
  return onPage(ports, async ({ request, audited }) => {
    const body = await readText(request, BODY_BYTES_MAX);
    const token = body.ok ? (new URLSearchParams(body.value).get("token") ?? "") : "";
    const ended = await signOut(ports, audited, digestOf(ports, request, "session"), token);
    if (!ended.ok) return outcomeAnswer(ports, MALFORMED);
    const { provider } = ended.value;
    const at = provider === undefined ? "" : `?provider=${provider}`;
    const answer = redirectAnswer(ports, `${ports.settings().issuer}/signed-out${at}`);
    return withHeader(answer, "Set-Cookie", setCookie("session", "", 0));
  });
}

/** OIDCL-R3-1: this is a page, which ends no session by itself. */
export function signedOutEndpoint(ports: PagePorts & Pick<PeoplePorts, "providers">): Handler {
  return onPage(ports, async ({ signIn, query }) => {
    const provider = signIn.providers.get(query.get("provider") ?? "");
    const view: NoticeView = { kind: "signed_out", status: 200 };
    if (provider === undefined) return pageAnswer(ports, noticePage(view));
    const metadata = await ports.providers.metadata(provider.name);
    const endpoint = metadata.ok ? metadata.value.endSessionEndpoint : undefined;
    if (endpoint === undefined) return pageAnswer(ports, noticePage(view));
    const { issuer } = ports.settings();
    const href = buildEndSessionUrl(endpoint, provider.clientId, `${issuer}/signed-out`);
    return pageAnswer(ports, noticePage({ ...view, further: { href, host: provider.title } }));
  });
}
