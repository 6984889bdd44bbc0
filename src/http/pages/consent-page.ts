/** The page on which a user allows a client what it asks for, or refuses. */
import { html } from "./html.ts";
import type { Page } from "./page.ts";

export type ConsentView = {
  /** How the client is known: by the host of its document, by when it registered itself, or by the operator's name. */
  client: { host: string } | { registered: true } | { operatorName: string };
  /** What the client calls itself. */
  claimedName?: string;
  /** Host and port of the redirect URI, or the URI where it has none. */
  redirectHost: string;
  loopback: boolean;
  /** Whether the redirect URI is at another host than the client's document. */
  differs: boolean;
  mustConfirm: boolean;
  target: { title: string; host?: string };
  scopes: readonly { value: string; sentence: string }[];
  /** Until when what is allowed lasts. */
  untilSeconds: number;
  /** Workloads that may act further without asking again. */
  agents: readonly string[];
  user: string;
  formToken: string;
  signOutToken: string;
  request: string;
  /** The forms and links of this server begin with it. */
  base: string;
  /** How long the page is good, and whether it can be made to last longer. */
  minutesLeft: number;
  renewable: boolean;
  problem?: "unconfirmed";
};

export function consentPage(view: ConsentView): Page {
  const { client, scopes, base, request } = view;
  const name =
    "host" in client
      ? client.host
      : "operatorName" in client
        ? client.operatorName
        : "A client that registered itself";
  const until = new Intl.DateTimeFormat("en", { dateStyle: "long" }).format(view.untilSeconds * 1000);
  const action = `${base}/authorize/review?r=${request}`;
  return {
    status: view.problem === undefined ? 200 : 400,
    title: `Allow ${name}?`,
    body: html`
<h1><bdi>${name}</bdi> asks for access</h1>
${view.claimedName === undefined ? undefined : html`<p>It calls itself “<bdi>${view.claimedName}</bdi>”.</p>`}
${"registered" in client ? html`<p class="warning">This client registered itself. Its name was not checked.</p>` : undefined}
${view.loopback ? html`<p class="warning">The answer goes to a program on this computer, which may be any program. Go on only if you started this yourself just now.</p>` : undefined}
${view.differs ? html`<p class="warning">The answer goes to another host than the client's: <bdi>${view.redirectHost}</bdi></p>` : html`<p>The answer goes to <bdi>${view.redirectHost}</bdi>.</p>`}
<p>You are signed in as <bdi>${view.user}</bdi>. <a href="${base}/signin?r=${request}&amp;again=1">Not you?</a></p>
${view.problem === undefined ? undefined : html`<p class="warning" role="alert">Tick the box that says that you started this yourself, or refuse.</p>`}
<form method="post" action="${action}">
<input type="hidden" name="token" value="${view.formToken}">
<fieldset><legend>At <bdi>${view.target.title}</bdi>${view.target.host === undefined ? undefined : html` (<bdi>${view.target.host}</bdi>)`} it asks to</legend>
${scopes.map(({ value, sentence }) => html`<label><input type="checkbox" name="scope" value="${value}"> <span>${sentence}</span></label>`)}
<label><input type="checkbox" name="all" value="1"> <span>All of this</span></label>
</fieldset>
<p>What you allow lasts until ${until}. You can take it back before.</p>
${view.agents.length === 0 ? undefined : html`<p>These agents may act further with it, without asking you again:</p><ul>${view.agents.map((agent) => html`<li><bdi>${agent}</bdi></li>`)}</ul>`}
${view.mustConfirm ? html`<label><input type="checkbox" name="confirm" value="1"> <span>I started this myself just now</span></label>` : undefined}
<div class="choices"><button name="decision" value="refuse">Refuse</button><button name="decision" value="allow">Allow</button></div>
</form>
<p>This page is good for ${view.minutesLeft} minutes.${view.renewable ? html` <a href="${action}&amp;renew=1">More time</a>` : undefined}</p>
<form method="post" action="${base}/signout"><input type="hidden" name="token" value="${view.signOutToken}"><button>Sign out</button></form>`,
  };
}
