/**
 * RFC 4514, String Representation of Distinguished Names: https://www.rfc-editor.org/rfc/rfc4514.html
 * Covers 2 and 3 as far as RFC 8705 2.1.2 needs them: a name as text, and whether a certificate has that name.
 */
import type { Attribute } from "./rfc5280-names.ts";
import { decodeUtf8 } from "./rfc8259.ts";

/** Either text, or the DER of the value in hexadecimal. */
export type ExpectedAttribute = { type: string; text: string } | { type: string; hex: string };

/** The short names of RFC 4514 3; any other attribute is given by its OID. Values of all of these ignore case. */
const ATTRIBUTE_TYPES: ReadonlyMap<string, string> = new Map([
  ["cn", "2.5.4.3"],
  ["l", "2.5.4.7"],
  ["st", "2.5.4.8"],
  ["o", "2.5.4.10"],
  ["ou", "2.5.4.11"],
  ["c", "2.5.4.6"],
  ["street", "2.5.4.9"],
  ["dc", "0.9.2342.19200300.100.1.25"],
  ["uid", "0.9.2342.19200300.100.1.1"],
]);
const KNOWN_TYPES: ReadonlySet<string> = new Set(ATTRIBUTE_TYPES.values());

const TYPE = /([A-Za-z][A-Za-z0-9-]*|(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*))+)=/y;
const HEX_VALUE = /#((?:[0-9A-Fa-f]{2})+)(?=[,+]|$)/y;
/** A plain character, or one behind a backslash: itself, or as two hexadecimal digits an octet. */
const CHARACTER = /([^"+,;<>\\\0])|\\(?:([\\"+,;<>#= ])|([0-9A-Fa-f]{2}))/uy;

/** RFC8705-2.1.2-2: as the certificate has it, so the text, which begins at the end, is turned round. */
export function parseDistinguishedName(text: string): ExpectedAttribute[][] | undefined {
  const rdns: ExpectedAttribute[][] = [[]];
  let at = 0;
  for (;;) {
    const rdn = rdns[0] ?? [];
    TYPE.lastIndex = at;
    const named = TYPE.exec(text);
    if (named === null) return undefined;
    const [whole, name = ""] = named;
    const type = /^[0-9]/.test(name) ? name : ATTRIBUTE_TYPES.get(name.toLowerCase());
    // Twice the same type in one part of the name is no name.
    if (type === undefined || rdn.some((attribute) => attribute.type === type)) return undefined;
    const value = readValue(text, at + whole.length);
    if (value === undefined) return undefined;
    if ("hex" in value) {
      rdn.push({ type, hex: value.hex });
    } else {
      // Of other types we don't know how to compare their text.
      if (!KNOWN_TYPES.has(type)) return undefined;
      rdn.push({ type, text: value.text });
    }
    if (value.end === text.length) return rdns;
    if (text[value.end] === ",") rdns.unshift([]);
    else if (text[value.end] !== "+") return undefined;
    at = value.end + 1;
  }
}

type Value = ({ hex: string } | { text: string }) & { end: number };

function readValue(text: string, start: number): Value | undefined {
  HEX_VALUE.lastIndex = start;
  const hex = HEX_VALUE.exec(text);
  if (hex !== null) return { hex: (hex[1] ?? "").toLowerCase(), end: HEX_VALUE.lastIndex };
  // A plain `#` or blank may not come first, nor a plain blank last.
  if (text[start] === "#" || text[start] === " ") return undefined;

  const octets: number[] = [];
  let end = start;
  let last = "";
  for (;;) {
    CHARACTER.lastIndex = end;
    const match = CHARACTER.exec(text);
    if (match === null) break;
    const [whole, plain, escaped, digits] = match;
    if (digits !== undefined) octets.push(Number.parseInt(digits, 16));
    else octets.push(...new TextEncoder().encode(plain ?? escaped));
    last = whole;
    end = CHARACTER.lastIndex;
  }
  if (last === " ") return undefined;
  const decoded = decodeUtf8(new Uint8Array(octets));
  const normal = decoded.ok ? normalize(decoded.value) : undefined;
  return normal === undefined ? undefined : { text: normal, end };
}

const CONTROL = /\p{C}/u;

/**
 * RFC8705-2.1-3: case (of ASCII) and the number of blanks do not count. Narrower than the directory's own rules, which
 * make more names equal than anybody can see; and no control or invisible characters (RFC8705-7.5-3).
 */
function normalize(text: string): string | undefined {
  if (CONTROL.test(text)) return undefined;
  const folded = lowerCase(text).replace(/ +/g, " ").replace(/^ | $/g, "");
  return folded === "" ? undefined : folded;
}

/** RFC8705-2.1-3: as long, and every part the same set of attributes. */
export function isSameName(
  expected: readonly (readonly ExpectedAttribute[])[],
  rdns: readonly (readonly Attribute[])[],
): boolean {
  return (
    expected.length === rdns.length &&
    expected.every((attributes, index) => {
      const rdn = rdns[index] ?? [];
      // The expected types differ from each other, so no attribute is counted twice.
      return (
        attributes.length === rdn.length &&
        attributes.every((attribute) => rdn.some((actual) => isSameAttribute(attribute, actual)))
      );
    })
  );
}

function isSameAttribute(expected: ExpectedAttribute, { type, text, value }: Attribute): boolean {
  if (expected.type !== type) return false;
  if ("hex" in expected) return value.bytes.toHex() === expected.hex;
  return text !== undefined && normalize(text) === expected.text;
}

export const lowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
