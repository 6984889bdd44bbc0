/**
 * RFC 8259, JSON: https://www.rfc-editor.org/rfc/rfc8259.html, and
 * RFC 7493, I-JSON: https://www.rfc-editor.org/rfc/rfc7493.html
 * Covers the grammar with the restrictions of RFC 7493 2.1 to 2.3, for untrusted text: unique member names, no lone
 * surrogate, finite numbers, bounded nesting.
 */

import { err, ok, type Result } from "../result.ts";

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [name: string]: Json };

export type JsonFailure = {
  kind: "json_malformed" | "json_duplicate_member" | "json_too_deep" | "json_number_not_finite";
};

export type Utf8Failure = { kind: "utf8_malformed" };

/** Whether a parsed value is an object, neither null nor an array. */
export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const ENCODER = new TextEncoder();

/** Whether a text has at most so many bytes in UTF-8; a unit of UTF-16 takes three at most. */
export const fitsBytes = (text: string, bytesMax: number): boolean =>
  3 * text.length <= bytesMax || ENCODER.encode(text).length <= bytesMax;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** RFC8725-3.7-v1, RFC8725-3.7-v2: UTF-8 only; a byte order mark is refused, because it would be a second spelling. */
export function decodeUtf8(bytes: Uint8Array): Result<string, Utf8Failure> {
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    return err({ kind: "utf8_malformed" });
  }
  return text.startsWith("\ufeff") ? err({ kind: "utf8_malformed" }) : ok(text);
}

/**
 * Parses untrusted text with at most `depthMax` nested arrays and objects. Objects have no prototype, so `__proto__`
 * and `constructor` are ordinary member names.
 */
export function parseJson(text: string, depthMax: number): Result<Json, JsonFailure> {
  const members = countMembers(text, depthMax);
  if (members === undefined) return err({ kind: "json_too_deep" });
  let value: Json;
  try {
    // RFC7515-10.12-v1, RFC7515-10.12-v2: the platform's parser takes exactly this grammar, and nothing after the value.
    value = JSON.parse(text);
  } catch {
    return err({ kind: "json_malformed" });
  }
  const check = new Check();
  if (!check.accepts(value)) return err({ kind: check.failure });
  // RFC7515-4-v1, RFC7519-4-v1, RFC7517-4-v1: a repeated name is refused, because parsers differ in which one they use.
  // RFC7515-10.13-v1: names are compared after unescaping. The platform's parser keeps the last member of a name, so
  // that its objects then have fewer members than the text.
  return check.members === members ? ok(value) : err({ kind: "json_duplicate_member" });
}

const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * The members of all objects of a text, if it is JSON: a colon outside of a string always belongs to one. Undefined for
 * a text that is nested too deeply; that is found out before it is parsed, because each level costs the sender a byte.
 */
function countMembers(text: string, depthMax: number): number | undefined {
  let members = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case COLON:
        members++;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++depth > depthMax) return undefined;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--;
    }
  }
  return members;
}

/** The place of the quotation mark that ends the string, or the end of the text. */
function endOfString(text: string, start: number): number {
  // The platform finds a quotation mark much sooner than a loop; it ends the string unless it is escaped.
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** Takes the prototype from every object, counts the members, and checks what the platform's parser does not. */
class Check {
  members = 0;
  failure: JsonFailure["kind"] = "json_malformed";

  accepts(value: Json): boolean {
    if (typeof value === "string") return isWhole(value);
    if (typeof value === "number") {
      // `1e400` is valid JSON but becomes Infinity, which as an expiry would never be reached.
      if (Number.isFinite(value)) return true;
      this.failure = "json_number_not_finite";
      return false;
    }
    if (typeof value !== "object" || value === null) return true;
    if (Array.isArray(value)) return value.every((one) => this.accepts(one));
    for (const name of Object.keys(value)) {
      this.members++;
      if (!isWhole(name) || !this.accepts(value[name] as Json)) return false;
    }
    // At last, because members of an object without a prototype take longer to go through.
    Object.setPrototypeOf(value, null);
    return true;
  }
}

/** RFC7515-10.13-v2: a lone surrogate is refused, because it cannot be encoded as UTF-8. */
const isWhole = (text: string): boolean => text.isWellFormed();
