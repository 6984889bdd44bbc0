/** The page that says what happened, and what the user can do about it. */
import { inLanguage, type Worded } from "../../policy/worded.ts";
import { type Html, html, link } from "../../spec/html.ts";
import { isolated, shownHost, shownName } from "./display-names.ts";
import type { Page } from "./page.ts";
import type { Texts } from "./texts.ts";

export type NoticeView = {
  kind: keyof Texts["notices"];
  status: number;
  /** PAGE-D-3: a way back to the client, by the host that it leads to. */
  back?: { href: string; host: string };
  /** After a sign-out: where to end the session at the provider too. */
  further?: { href: string; host: Worded };
  /** A way to go on. */
  onwards?: string;
};

export const noticePage = (view: NoticeView): Page => ({
  status: view.status,
  show: (texts) => {
    const { title, text } = texts.notices[view.kind];
    const ways = waysOf(view, texts);
    return {
      title,
      body: html`
<div class="party">${mark(view)}<h1>${title}</h1></div>
<p>${text}</p>
${ways.length === 0 ? undefined : html`<ul class="choices ways">${ways}</ul>`}`,
    };
  },
});

/** WCAG-1.4.1-1: a sign beside the words, which say the same; what the user did before is no fault (409). */
function mark({ kind, status }: NoticeView): Html | undefined {
  if (status >= 400 && status !== 409) return html`<span class="disc mark" aria-hidden="true">!</span>`;
  return kind === "ask_allowed" ? html`<span class="disc done" aria-hidden="true"></span>` : undefined;
}

function waysOf({ onwards, further, back }: NoticeView, texts: Texts): readonly Html[] {
  const provider = inLanguage(further?.host ?? "", [texts.language]);
  const ways = [
    onwards && link(onwards, html`${texts.goOn}`),
    further &&
      link(further.href, html`<span>${texts.signOutAt(isolated(shownName(provider) ?? provider))}</span>`),
    back && link(back.href, html`<span>${texts.backTo(isolated(shownHost(back.host)))}</span>`),
  ];
  return ways.filter((way) => typeof way === "object").map((way) => html`<li>${way}</li>`);
}
