/**
 * RFC 8259, JSON: https://www.rfc-editor.org/rfc/rfc8259.html
 * RFC 7493, I-JSON: https://www.rfc-editor.org/rfc/rfc7493.html
 * Covers the grammar with the restrictions of RFC 7493 2.1 to 2.3, for untrusted text: unique member names, no lone
 * surrogate, finite numbers, bounded nesting.
 */

import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";

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
  const parser = new Parser(text, depthMax);
  const value = parser.document();
  return value === undefined ? err({ kind: parser.failure }) : ok(value);
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A recursive-descent parser; every method returns undefined once the text is refused, and `failure` says why. */
class Parser {
  failure: JsonFailure["kind"] = "json_malformed";
  readonly #text: string;
  readonly #depthMax: number;
  #at = 0;
  #depth = 0;

  constructor(text: string, depthMax: number) {
    this.#text = text;
    this.#depthMax = depthMax;
  }

  document(): Json | undefined {
    const value = this.#value();
    // RFC7515-10.12-v2: only white space may follow the value.
    return this.#next() === undefined ? value : undefined;
  }

  /** The next code unit that is not white space, without consuming it; undefined at the end. */
  #next(): number | undefined {
    for (; this.#at < this.#text.length; this.#at++) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== SPACE && unit !== LINE_FEED && unit !== CARRIAGE_RETURN && unit !== TAB) return unit;
    }
    return undefined;
  }

  #take(unit: number): boolean {
    if (this.#next() !== unit) return false;
    this.#at++;
    return true;
  }

  #refuse(kind: JsonFailure["kind"]): undefined {
    this.failure = kind;
    return undefined;
  }

  #value(): Json | undefined {
    switch (this.#next()) {
      case OPEN_OBJECT:
        return this.#nested(() => this.#object());
      case OPEN_ARRAY:
        return this.#nested(() => this.#array());
      case QUOTE:
        return this.#string();
      case 0x74:
        return this.#literal("true", true);
      case 0x66:
        return this.#literal("false", false);
      case 0x6e:
        return this.#literal("null", null);
      default:
        return this.#number();
    }
  }

  /**
   * The depth is checked before descending, because each level costs the sender a byte and this parser a stack frame.
   */
  #nested<T extends Json>(parse: () => T | undefined): T | undefined {
    if (this.#depth === this.#depthMax) return this.#refuse("json_too_deep");
    this.#depth++;
    this.#at++;
    const value = parse();
    this.#depth--;
    return value;
  }

  #object(): JsonObject | undefined {
    const object: JsonObject = Object.create(null);
    if (this.#take(CLOSE_OBJECT)) return object;
    do {
      if (this.#next() !== QUOTE) return undefined;
      const name = this.#string();
      if (name === undefined || !this.#take(COLON)) return undefined;
      // RFC7515-4-v1, RFC7519-4-v1, RFC7517-4-v1: a repeated name is refused, because parsers differ in which one they
      // use.
      // RFC7515-10.13-v1: names are compared after unescaping.
      if (name in object) return this.#refuse("json_duplicate_member");
      const value = this.#value();
      if (value === undefined) return undefined;
      object[name] = value;
    } while (this.#take(COMMA));
    return this.#take(CLOSE_OBJECT) ? object : undefined;
  }

  #array(): Json[] | undefined {
    const array: Json[] = [];
    if (this.#take(CLOSE_ARRAY)) return array;
    do {
      const value = this.#value();
      if (value === undefined) return undefined;
      array.push(value);
    } while (this.#take(COMMA));
    return this.#take(CLOSE_ARRAY) ? array : undefined;
  }

  #string(): string | undefined {
    const start = this.#at;
    let escaped = false;
    let unit = this.#text.charCodeAt(++this.#at);
    while (unit !== QUOTE) {
      // Control characters must be escaped; NaN means the end of the text.
      if (!(unit >= SPACE)) return undefined;
      if (unit === BACKSLASH) {
        ESCAPE.lastIndex = this.#at;
        if (!ESCAPE.test(this.#text)) return undefined;
        escaped = true;
        this.#at = ESCAPE.lastIndex;
      } else {
        this.#at++;
      }
      unit = this.#text.charCodeAt(this.#at);
    }
    this.#at++;
    // Every escape was checked above, so the platform's parser, which unescapes the string, cannot fail.
    const string: string = escaped
      ? JSON.parse(this.#text.slice(start, this.#at))
      : this.#text.slice(start + 1, this.#at - 1);
    // RFC7515-10.13-v2: a lone surrogate is refused, because it cannot be encoded as UTF-8.
    return string.isWellFormed() ? string : undefined;
  }

  #literal<T extends Json>(word: string, value: T): T | undefined {
    if (!this.#text.startsWith(word, this.#at)) return undefined;
    this.#at += word.length;
    return value;
  }

  #number(): number | undefined {
    NUMBER.lastIndex = this.#at;
    if (!NUMBER.test(this.#text)) return undefined;
    const number = Number(this.#text.slice(this.#at, NUMBER.lastIndex));
    this.#at = NUMBER.lastIndex;
    // `1e400` is valid JSON but becomes Infinity, which as an expiry would never be reached.
    return Number.isFinite(number) ? number : this.#refuse("json_number_not_finite");
  }
}
