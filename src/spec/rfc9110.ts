/**
 * RFC 9110, HTTP Semantics: https://www.rfc-editor.org/rfc/rfc9110.html
 * Covers 5.6.1 lists, 5.6.3 whitespace, 5.6.4 quoted strings as far as they hold separators, 12.4.2 weights.
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
