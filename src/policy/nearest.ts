/** What was probably meant by a name or URL that is not taken, for the message that refuses it. */
import { parseFetchUrl } from "../spec/rfc3986.ts";

const DISTANCE_MAX = 2;

/** The rest of a message that a name is unknown: the known name that is like it; empty where none is. */
export function meant(name: string, known: Iterable<string>): string {
  const found = nearest(name, known);
  return found === undefined ? "" : `: ${JSON.stringify(found)} is perhaps meant`;
}

/** Case, hyphens and underscores do not count; in a short name fewer letters may differ. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const fold = (text: string): string => text.toLowerCase().replace(/[-_]/g, "");
  let least = Math.min(DISTANCE_MAX, Math.floor(name.length / 3)) + 1;
  let found: string | undefined;
  for (const one of known) {
    const far = one === name ? least : distance(fold(name), fold(one));
    if (far < least) [least, found] = [far, one];
  }
  return found;
}

/** How many letters are to be added, removed or replaced; more than DISTANCE_MAX where the lengths tell that already. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > DISTANCE_MAX) return DISTANCE_MAX + 1;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const [left = 0, above = 0, before = 0] = [next[j], row[j + 1], row[j]];
      next.push(Math.min(left + 1, above + 1, before + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** The message about a text that is no https URL as it is compared here, with the URL to write instead if there is one. */
export function notCanonical({ input }: { input: string }): string {
  const text = "is not an https URL in canonical form";
  if (!URL.canParse(input)) return text;
  const { host, pathname, search, protocol } = new URL(input);
  const path = pathname === "/" && !input.endsWith("/") ? "" : pathname;
  const url = `https://${host}${path}${search}`;
  const isOnlyPorted = protocol === "https:" || protocol === "http:";
  return isOnlyPorted && parseFetchUrl(url).ok ? `${text}: write ${url}` : text;
}
