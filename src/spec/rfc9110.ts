/**
 * RFC 9110, HTTP Semantics: https://www.rfc-editor.org/rfc/rfc9110.html
 * Covers 5.6.1 lists, 5.6.3 whitespace, 5.6.4 quoted strings as far as they hold separators, 5.6.7 dates, 10.2.3
 * `Retry-After`, 12.4.2 weights, 12.5.1 the choice of a media type.
 */

/** 5.6.3: blanks are SP and HTAB. What else JavaScript calls white space (U+00A0, VT) is part of a value, or malformed. */
export function stripBlanks(text: string, blanks = " \t"): string {
  let [start, end] = [0, text.length];
  while (start < end && blanks.includes(text.charAt(start))) start++;
  while (end > start && blanks.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** The parts of a field between these separators, without blanks around them; a separator within quotes is none. */
export function splitField(field: string, separator: "," | ";"): readonly string[] {
  const parts: string[] = [];
  let [start, quoted] = [0, false];
  for (let at = 0; at < field.length; at++) {
    const character = field[at];
    if (character === '"') quoted = !quoted;
    else if (quoted && character === "\\") at++;
    else if (!quoted && character === separator) {
      parts.push(stripBlanks(field.slice(start, at)));
      start = at + 1;
    }
  }
  return [...parts, stripBlanks(field.slice(start))];
}

/** 12.4.2: from 0 to 1, with three digits at most; undefined where the text is no weight. */
export function parseWeight(text: string): number | undefined {
  return /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/.test(text) ? Number(text) : undefined;
}

/** 12.4.2: the items of a list with their weights: 1 for an item without one, 0 for one whose weight is malformed. */
export const splitWeighted = (field: string): readonly { item: string; weight: number }[] =>
  splitField(field, ",").flatMap((part) => {
    const [item = "", ...parameters] = splitField(part, ";");
    const weight = parameters.find((one) => /^q=/i.test(one))?.slice(2) ?? "1";
    return item === "" ? [] : [{ item, weight: parseWeight(weight) ?? 0 }];
  });

/**
 * 12.5.1: the one of the offered types that is preferred; of equal ones the one that is named itself, then the first.
 * Undefined if none is accepted. Parameters of a range other than its weight are not compared.
 */
export function chooseMediaType(accept: string, offered: readonly string[]): string | undefined {
  const weights = new Map(splitWeighted(accept.toLowerCase()).map(({ item, weight }) => [item, weight]));
  if (weights.size === 0) return offered[0];
  const weighed = offered.flatMap((type) => {
    // The most specific range that fits has the weight.
    const names = [type, `${type.split("/")[0]}/*`, "*/*"];
    const generality = names.findIndex((name) => weights.has(name));
    const weight = weights.get(names[generality] ?? "") ?? 0;
    return weight > 0 ? [{ type, weight, generality }] : [];
  });
  const [best] = weighed.toSorted((a, b) => b.weight - a.weight || a.generality - b.generality);
  return best?.type;
}

/** RFC 9111, 1.2.2: a number that is too large counts as 2^31. */
export function deltaSeconds(text: string): number | undefined {
  return /^[0-9]+$/.test(text) ? Math.min(Number(text), 2 ** 31) : undefined;
}

/** 5.6.7: IMF-fixdate only, because the two obsolete forms lack the century or the time zone. */
export function dateSeconds(text: string): number | undefined {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toUTCString() === text ? ms / 1000 : undefined;
}

/** 10.2.3: how long `Retry-After` asks to wait, by a number or by a date; undefined where it does not. */
export function retrySeconds(field: string, nowSeconds: number): number | undefined {
  const atSeconds = dateSeconds(field);
  return atSeconds === undefined ? deltaSeconds(field) : Math.max(0, atSeconds - nowSeconds);
}
