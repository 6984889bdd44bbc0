/**
 * How foreign names and hosts are shown (PAGE-D-7): a name is made harmless and short; a host is shown whole, in ASCII.
 */
import { harmless } from "../../audit/safe-text.ts";
import { ID_CHARS_BRIEF, ID_CHARS_END, NAME_CHARS_MAX } from "../../limits/people.ts";
import { inLanguage, type Worded } from "../../policy/worded.ts";
import { type Html, html } from "../../spec/html.ts";
import type { Texts } from "./texts.ts";

/** A person who signed in. The name is theirs to choose; the id is their subject at the provider, or a mail address of theirs. */
export type ShownUser = { id: string; name?: string };

/** `id` is its name where the title alone does not tell it from another. */
export type ShownTarget = { title: Worded; host?: string; id?: string };

/** What is allowed at a target, in the operator's words. */
export type PermissionView = { target: ShownTarget; sentences: readonly Worded[] };

/** A name stands in quotation marks on our pages, and must not seem to end them. */
export const QUOTES =
  /["\u00ab\u00bb\u201c-\u201f\u2039\u203a\u275d\u275e\u300c-\u300f\u301d-\u301f\uff02]/gu;

/** Makes a name for a page; undefined if nothing visible is left, so that the page goes without. */
export function shownName(raw: string | undefined, charsMax = NAME_CHARS_MAX): string | undefined {
  const text = harmless(raw ?? "").replace(QUOTES, "'");
  const characters = [...text];
  if (text === "") return undefined;
  return characters.length <= charsMax ? text : `${characters.slice(0, charsMax - 1).join("")}…`;
}

/** Shows an identifier, such as a SPIFFE ID, which is never cut, because the end of it may be what matters. */
export const shownId = (raw: string): string => harmless(raw);

/**
 * Shows an identifier where there is room for a few lines, and the whole one stands elsewhere on the page: what names
 * its authority is whole, because a part of a host reads as another host, and so is its end.
 */
export function briefId(raw: string): string {
  const id = shownId(raw);
  if (id.length <= ID_CHARS_BRIEF) return id;
  const [authority = ""] = /^[a-z]+:\/\/[^/]{1,255}\//.exec(id) ?? [];
  return `${authority}…${id.slice(-ID_CHARS_END).toWellFormed()}`;
}

/**
 * Shows host and port as the browser would show them at best, with complete A-labels; for an app's own scheme, the
 * scheme.
 */
export function shownHost(raw: string): string {
  const url = `https://${raw}`;
  const isAuthority = !raw.endsWith(":") && URL.canParse(url);
  return isAuthority ? new URL(url).host : shownId(raw);
}

export function targetName({ title, host, id }: ShownTarget, { language }: Pick<Texts, "language">): Html {
  const beside = id === undefined ? host && shownHost(host) : briefId(id);
  const at = beside === undefined ? undefined : html` (${isolated(beside)})`;
  return html`${isolated(shownId(inLanguage(title, [language])))}${at}`;
}

export const targetNames = (targets: readonly ShownTarget[], texts: Pick<Texts, "language">): Html =>
  html`${targets.map((one, index) => html`${index === 0 ? "" : ", "}${targetName(one, texts)}`)}`;

/** PAGE-D-26: the id stands first, so that no name passes for another person. */
export function userName({ id, name }: ShownUser): Html {
  const chosen = shownName(name);
  const known = shownId(id);
  return chosen === undefined || chosen === known
    ? isolated(known)
    : html`${isolated(known)} (${isolated(chosen)})`;
}

/** The text is inside `bdi`, so that text of another direction changes nothing around it. */
export const isolated = (text: string): Html => html`<bdi>${text}</bdi>`;
