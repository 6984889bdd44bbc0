/** The choice between several providers. */
import { html } from "./html.ts";
import type { Page } from "./page.ts";

export type SignInView = { providers: readonly { title: string; href: string }[] };

export const signInPage = ({ providers }: SignInView): Page => ({
  status: 200,
  title: "Sign in",
  body: html`
<h1>Sign in</h1>
<p>Choose where you have your account.</p>
<ul>${providers.map(({ title, href }) => html`<li><a class="button" href="${href}">${title}</a></li>`)}</ul>`,
});
