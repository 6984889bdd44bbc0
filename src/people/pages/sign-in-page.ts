/** The choice between several providers. */

import { isolated, shownName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html, link } from "./html.ts";
import type { Page } from "./page.ts";

type SignInView = { providers: readonly { title: string; href: string }[] };

export const signInPage = ({ providers }: SignInView): Page => ({
  status: 200,
  show: ({ signInTitle, signInHint }) => ({
    title: signInTitle,
    body: html`
<h1>${signInTitle}</h1>
<p>${signInHint}</p>
<ul class="choices">${providers.map(choice)}</ul>`,
  }),
});

const choice = ({ title, href }: SignInView["providers"][number]): Html =>
  html`<li>${link(href, isolated(shownName(title) ?? title))}</li>`;
