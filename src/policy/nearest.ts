/** What was probably meant by a name or URL that is not taken, for the message that refuses it. */
import { parseFetchUrl } from "../spec/rfc3986.ts";

const DISTANCE_MAX = 2;
/** The names on each side that are compared with one of a request, and how long that may be. */
const BESIDE = 4;
const COMPARED_CHARS_MAX = 128;

/** The rest of a message that a name is unknown: the known name that is like it; empty where none is. */
export function meant(name: string, names: Iterable<string>): string {
  const found = nearest(name, names);
  return found === undefined ? "" : `: ${JSON.stringify(found)} is perhaps meant`;
}

const fold = (text: string): string => text.toLowerCase().replace(/[-_]/g, "");

/** Case, hyphens and underscores do not count; in a short name fewer letters may differ. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let least = Math.min(DISTANCE_MAX, Math.floor(name.length / 3)) + 1;
  let found: string | undefined;
  for (const one of names) {
    const far = one === name ? least : distance(fold(name), fold(one));
    if (far < least) [least, found] = [far, one];
  }
  return found;
}

/** Known names, for what a request names: whether it is one of them, and the one that is like it. */
export type KnownNames = {
  has(name: string): boolean;
  /** The names that are compared with this one: those beside it by how names begin, and by how they end. */
  beside(name: string): readonly string[];
};

/** POLICY-D-22: of any number of names a few are compared, found by two sorted lists that the first look-up makes. */
export function knownNames(names: Iterable<string>): KnownNames {
  const all = new Set(names);
  let sorted: readonly Sorted[] | undefined;
  return {
    has: (name) => all.has(name),
    beside(name) {
      if (name.length > COMPARED_CHARS_MAX) return [];
      sorted ??= [sortedBy(all, fold), sortedBy(all, foldBackwards)];
      return [...new Set(sorted.flatMap((one) => around(one, name)))];
    },
  };
}

type Sorted = { keyOf: (name: string) => string; list: readonly (readonly [key: string, name: string])[] };

const foldBackwards = (name: string): string => [...fold(name)].reverse().join("");

const sortedBy = (names: ReadonlySet<string>, keyOf: Sorted["keyOf"]): Sorted => ({
  keyOf,
  list: Array.from(names, (name) => [keyOf(name), name] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
});

function around({ keyOf, list }: Sorted, name: string): readonly string[] {
  const key = keyOf(name);
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle]?.[0] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return list.slice(Math.max(0, low - BESIDE), low + BESIDE).map(([, one]) => one);
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
    if (Math.min(...next) > DISTANCE_MAX) return DISTANCE_MAX + 1;
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
