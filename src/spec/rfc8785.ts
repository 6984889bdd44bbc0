/**
 * RFC 8785, JSON Canonicalization Scheme: https://www.rfc-editor.org/rfc/rfc8785.html
 * Covers 3.1, 3.2. The caller encodes the text as UTF-8 (3.2.4).
 * Elsewhere: 3.2.3 audit/event.ts, policy/archive.ts.
 */
import type { Json } from "./rfc8259.ts";

/** For values that this server built itself: throws for a value without a canonical form, because that is a bug. */
export const canonicalize = (value: Json): string => textOf(value, false);

/** The same of a record with optional members: one that is undefined is as good as absent. */
export const canonicalizeSparse = (value: Json): string => textOf(value, true);

const textOf = (value: Json, isSparse: boolean): string =>
  isInOrder(value, isSparse) ? JSON.stringify(value) : sortedText(value, isSparse);

/**
 * Whether the platform writes the value in its canonical form: RFC8785-3.2.2-1 describes just that but for what has no JSON
 * form, and RFC8785-3.2.3-1 holds where the members have been put in order.
 */
function isInOrder(value: Json | undefined, isSparse: boolean): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return value !== undefined;
  if (Array.isArray(value)) {
    for (const element of value) if (!isInOrder(element, isSparse)) return false;
    return true;
  }
  let before = "";
  for (const name in value) {
    const member = value[name];
    if (member === undefined && isSparse) continue;
    if (name < before || !name.isWellFormed() || !isInOrder(member, isSparse)) return false;
    before = name;
  }
  return true;
}

function sortedText(value: Json, isSparse: boolean): string {
  // RFC8785-3.2-1: no white space. RFC8785-3.2.3-1: array elements keep their order.
  if (Array.isArray(value)) return `[${value.map((element) => sortedText(element, isSparse)).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    let members = "";
    // RFC8785-3.2.3-1: members are sorted by UTF-16 code units, as texts are compared.
    for (const name of Object.keys(value).sort()) {
      if (value[name] === undefined && isSparse) continue;
      const text = sortedText(value[name] as Json, isSparse);
      members += `${members === "" ? "" : ","}${scalar(name)}:${text}`;
    }
    return `{${members}}`;
  }
  return scalar(value);
}

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
