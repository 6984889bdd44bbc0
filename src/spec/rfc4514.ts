/**
 * RFC 4514, String Representation of Distinguished Names: https://www.rfc-editor.org/rfc/rfc4514.html
 * Covers 2 and 3 as far as RFC 8705 2.1.2 needs them: a name as text, and its comparison with a certificate's.
 */

import { type Attribute, lowerCase } from "./rfc5280-names.ts";
import { decodeUtf8 } from "./rfc8259.ts";

/** The value is text, or its DER in hexadecimal. */
export type ExpectedAttribute = { type: string; text: string } | { type: string; hex: string };

/** The short names of RFC 4514 3, whose values ignore case; other attributes are named by their OID. */
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
/** A plain character, or an escape: a backslash and the character, or an octet as two hexadecimal digits. */
const CHARACTER = /([^"+,;<>\\\0])|\\(?:([\\"+,;<>#= ])|([0-9A-Fa-f]{2}))/uy;

/** RFC8705-2.1.2-2: the parts are in the order of the certificate, which is the reverse of the text. */
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
    // One relative distinguished name cannot hold the same type twice.
    if (type === undefined || rdn.some((attribute) => attribute.type === type)) return undefined;
    const value = readValue(text, at + whole.length);
    if (value === undefined) return undefined;
    if ("hex" in value) {
      rdn.push({ type, hex: value.hex });
    } else {
      // The comparison of text is known only for these types.
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
  // An unescaped `#` or blank must not be first, and an unescaped blank must not be last.
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
 * RFC8705-2.1-3: ASCII case and the number of blanks are ignored. The directory's own rules would also equate names
 * that look different. Control and invisible characters are refused (RFC8705-7.5-3).
 */
function normalize(text: string): string | undefined {
  if (CONTROL.test(text)) return undefined;
  const folded = lowerCase(text).replace(/ +/g, " ").replace(/^ | $/g, "");
  return folded === "" ? undefined : folded;
}

/** RFC8705-2.1-3: two names are equal if they have equal length and, in every part, the same set of attributes. */
export function isSameName(
  expected: readonly (readonly ExpectedAttribute[])[],
  rdns: readonly (readonly Attribute[])[],
): boolean {
  return (
    expected.length === rdns.length &&
    expected.every((attributes, index) => {
      const rdn = rdns[index] ?? [];
      // The expected types are distinct, so no attribute matches twice.
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
