/**
 * RFC 8785, JSON Canonicalization Scheme: https://www.rfc-editor.org/rfc/rfc8785.html
 * Covers 3.1, 3.2. The caller encodes the text as UTF-8 (3.2.4).
 * Elsewhere: 3.2.3 audit/event.ts, config/policy.ts.
 */
import type { Json } from "./rfc8259.ts";

/** For values that this server built itself: throws for a value without a canonical form, because that is a bug. */
export function canonicalize(value: Json): string {
  // RFC8785-3.2-1: no white space. RFC8785-3.2.3-1: array elements keep their order.
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    let members = "";
    // RFC8785-3.2.3-1: members are sorted by UTF-16 code units, as texts are compared.
    for (const name of sorted(Object.keys(value))) {
      members += `${members === "" ? "" : ","}${scalar(name)}:${canonicalize(value[name] as Json)}`;
    }
    return `{${members}}`;
  }
  return scalar(value);
}

/** Most objects have few members, which are put in order where they are: the platform's sort would copy them. */
function sorted(names: string[]): readonly string[] {
  if (names.length > FEW) return names.sort();
  for (let next = 1; next < names.length; next++) {
    const name = names[next] as string;
    let at = next;
    for (let before = names[at - 1]; before !== undefined && before > name; before = names[at - 1])
      names[at--] = before;
    names[at] = name;
  }
  return names;
}

const FEW = 32;

/** These characters need no escape: printable ASCII but quotation mark and backslash. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

/** RFC8785-3.2.2-1: as ECMAScript serializes it; lone surrogates, infinities and undefined have no JSON form. */
function scalar(value: null | boolean | number | string): string {
  // Most strings here need no escape, and the platform's serializer has a fixed cost for each call.
  if (typeof value === "string" && UNESCAPED.test(value)) return `"${value}"`;
  if (typeof value === "string" && !value.isWellFormed()) throw new TypeError("lone surrogate in a string");
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError("number without a JSON form");
    return String(value);
  }
  if (value === undefined) throw new TypeError("undefined has no JSON form");
  return JSON.stringify(value);
}
