/** What the pages of a report are made of: the frame, times, names, links to other pages. */
import { spelledOut } from "../../audit/safe-text.ts";
import type { Use } from "../../audit/uses.ts";
import { type Html, html } from "../../spec/html.ts";
import type { NodeKey } from "./gather.ts";
import { shown } from "./map.ts";
import type { MapNode, Model } from "./model.ts";
import { REPORT_STYLE } from "./style.ts";

/** A page by the name of its file. */
export type ReportPage = { file: string; title: string; body: Html };

/** The page of a node, for those that have one. */
export type Links = ReadonlyMap<NodeKey, string>;

const SECTIONS: readonly (readonly [file: string, title: string])[] = [
  ["index.html", "Map"],
  ["agents.html", "Agents"],
  ["refusals.html", "Refusals"],
  ["people.html", "People"],
  ["rules.html", "Rules and targets"],
];

/** REPORT-D-3: no script, no other file, nothing of elsewhere; `styleDigest` is the SHA-256 of the style in base64. */
export function document({ file, title, body }: ReportPage, model: Model, styleDigest: string): string {
  const policy = `default-src 'none'; style-src 'sha256-${styleDigest}'; base-uri 'none'; form-action 'none'`;
  const sections = SECTIONS.map(([to, name]) =>
    to === file ? html`<a href="${to}" aria-current="page">${name}</a> ` : html`<a href="${to}">${name}</a> `,
  );
  const text = html`<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title} – ${model.issuer}</title>
<style></style>
</head>
<body>
<header><p>${shown(model.issuer)}</p><nav aria-label="Report">${sections}</nav></header>
<main>
${body}
</main>
<footer><p>What the audit trail has ${periodOf(model)}, beside the policy ${model.digest.slice(0, 19)}… that is in force. Made ${at(model.madeMs)} by <code>mandate report</code>; the trail was not verified for it.</p></footer>
</body>
</html>
`;
  // The style must stand there as it is hashed, so it is put in after everything was escaped.
  return `<!doctype html>\n${String(text).replace("<style></style>", () => `<style>${REPORT_STYLE}</style>`)}`;
}

export const at = (ms: number): Html => {
  const iso = new Date(ms).toJSON() ?? "";
  return html`<time datetime="${iso}">${iso.slice(0, 16).replace("T", " ")} UTC</time>`;
};

export const periodOf = ({ fromMs, toMs }: Model): Html =>
  Number.isFinite(fromMs) ? html`from ${at(fromMs)} to ${at(toMs)}` : html`up to ${at(toMs)}`;

export const lastOf = (use: Use | undefined): Html =>
  use === undefined ? html`<span class="idle">never</span>` : at(use.lastMs);

export const digits = (number: number): string => number.toLocaleString("en");

/** `1 agent`, `2 agents`. */
export const some = (number: number, one: string, many = `${one}s`): string =>
  `${digits(number)} ${number === 1 ? one : many}`;

/** An id, below its title where it has one, with a link to its page where that exists. */
export function nameCell(id: string, title: string | undefined, href: string | undefined): Html {
  const top = html`<bdi>${shown(title ?? id)}</bdi>`;
  const first = href === undefined ? top : html`<a href="${href}">${top}</a>`;
  return title === undefined ? first : html`${first}<code class="id">${shown(id)}</code>`;
}

export const table = (heads: readonly (string | Html)[], rows: readonly (readonly Html[])[]): Html =>
  html`<div class="table"><table><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>${rows.map((cells) => html`<tr>${cells}</tr>`)}</tbody></table></div>`;

export const cell = (content: string | Html): Html => html`<td>${content}</td>`;
export const number = (value: number): Html => html`<td class="number">${digits(value)}</td>`;

/** Where a node of the map leads; a group leads to its list. */
export const pageOf =
  (links: Links) =>
  ({ key, kind }: MapNode, members: number): string | undefined => {
    if (members > 1)
      return kind === "person" ? "people.html" : kind === "agent" ? "agents.html" : "rules.html";
    return links.get(key) ?? (kind === "target" ? "rules.html" : undefined);
  };

/** A word of a command line, for a shell; undefined for what no line of text can hold. */
export const shellWord = (text: string): string | undefined => {
  if (spelledOut(text, /[^\S ]/g) !== text) return undefined;
  return /^[\w/.:=@+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
};
