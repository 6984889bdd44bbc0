/** HTML by one template function that escapes: what comes from outside is text, never markup (PAGE-D-2). */

/** Text that is markup already, made here alone. */
export type Html = string & { readonly __html: true };

type Part = string | number | Html | readonly Html[] | undefined;

/** Markup as an object while it is put together, so that a plain string can never pass for it. */
class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const text = strings.reduce((sofar, piece, index) => sofar + shown(parts[index - 1]) + piece);
  return new Markup(text) as unknown as Html;
}

function shown(part: Part): string {
  if (part === undefined) return "";
  if (Array.isArray(part)) return part.map((one: Part) => shown(one)).join("");
  if (part instanceof Markup) return part.text;
  return String(part).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}
