/** HTML by one template function that escapes: what comes from outside is text, never markup (PAGE-D-6, PAGE-D-7). */

/** Finished markup. Only `html` makes it; the private member keeps a plain string from passing for it. */
class Markup {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  toString(): string {
    return this.#text;
  }
}
export type Html = Markup;

type Part = string | number | Html | readonly Html[] | undefined;

/**
 * The template is markup; each part in it is escaped unless it is markup already. A part may stand in text or between
 * the quotes of an attribute value, and nowhere else.
 */
export const html = (template: TemplateStringsArray, ...parts: readonly Part[]): Html =>
  new Markup(template.reduce((sofar, piece, index) => sofar + escaped(parts[index - 1]) + piece));

function escaped(part: Part): string {
  if (part === undefined) return "";
  if (part instanceof Markup) return part.toString();
  if (typeof part === "object") return part.map(escaped).join("");
  return String(part).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Schemes that a browser itself acts on, with our page as their origin or by files of the computer. */
const ACTIVE = /^(?:javascript|data|vbscript|blob|filesystem|file|about|view-source):/i;

/** Makes a link; where a browser would act on the URL by itself, only the words are shown. */
export const link = (href: string, words: Html): Html =>
  /^[a-z][a-z0-9+.-]*:/i.test(href) && !ACTIVE.test(href) ? html`<a href="${href}">${words}</a>` : words;
