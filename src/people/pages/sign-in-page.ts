/** The choice between several providers. */
import { inLanguage, type Worded } from "../../policy/worded.ts";
import { type Html, html, link } from "../../spec/html.ts";
import { isolated, shownName } from "./display-names.ts";
import type { Page } from "./page.ts";

type SignInView = { providers: readonly { title: Worded; href: string }[] };

export const signInPage = ({ providers }: SignInView): Page => ({
  status: 200,
  show: ({ language, signInTitle, signInHint }) => ({
    title: signInTitle,
    body: html`
<h1>${signInTitle}</h1>
<p>${signInHint}</p>
<ul class="choices">${providers.map((one) => choice(one, language))}</ul>`,
  }),
});

function choice({ title, href }: SignInView["providers"][number], language: string): Html {
  const name = inLanguage(title, [language]);
  return html`<li>${link(href, isolated(shownName(name) ?? name))}</li>`;
}
