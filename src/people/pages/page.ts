/** The frame of every page: whose it is, what it says, a way on, and the number by which support finds the request. */

import { supportNumber } from "../../audit/support-number.ts";
import type { SchemeColours } from "../../settings/colours.ts";
import { type Html, html } from "../../spec/html.ts";
import { styleOf } from "./style.ts";
import type { Texts } from "./texts.ts";

/** A page, before it is known in which language; the title begins with what it is about (WCAG-2.4.2-1). */
export type Page = {
  status: number;
  /** Whether it is the account page, which needs no way to itself. */
  isAccount?: true;
  show: (texts: Texts) => { title: string; body: Html };
};

/** In which language, and in whose name and colours, a page is shown, and beneath it the id of its request. */
export type PageLook = {
  texts: Texts;
  operator: string;
  /** The path of a picture with that name. */
  logo?: string | undefined;
  colours: SchemeColours;
  /** The account page, if there is one. */
  account?: string;
  requestId?: string;
};

/** A term and what is said of it, in a list of them. */
export const fact = (term: string | Html, what: string | Html): Html =>
  html`<div><dt>${term}</dt><dd>${what}</dd></div>`;

export const factList = (term: string | Html, items: readonly Html[]): Html =>
  fact(term, html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`);

/** The document. It has no script, and loads nothing but logos of the operator, from this server. */
export function frame(
  { show, isAccount }: Page,
  { texts, operator, logo, colours, account, requestId }: PageLook,
): string {
  const { title, body } = show({ ...texts, operator });
  // PAGE-D-41
  const name =
    logo === undefined ? html`<bdi>${operator}</bdi>` : html`<img src="${logo}" alt="${operator}">`;
  // WCAG-3.1.1-1
  const document = html`<html lang="${texts.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} – ${operator}</title>
<style></style>
</head>
<body>
<header><p>${name}</p></header>
<main>${body}
</main>
<footer>${account === undefined || isAccount ? undefined : html`<p><a href="${account}">${texts.accountTitle}</a></p>`}${requestId === undefined ? undefined : html`<p>${texts.forSupport} <code>${supportNumber(requestId) ?? requestId}</code></p>`}</footer>
</body>
</html>
`;
  // The style is ours and must stand there as it is hashed, so it is put in after everything was escaped.
  return `<!doctype html>\n${String(document).replace("<style></style>", () => `<style>${styleOf(colours)}</style>`)}`;
}
