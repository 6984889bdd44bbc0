/** One part of a valid request, document or token changed, so that what is around it stays good: pure, by seed. */
import { encode } from "../../test/support/forge.ts";
import { mutate, type Prng } from "../../test/support/prng.ts";
import { changeBytes } from "./bytes.ts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A JWT that is signed when it is sent, so that its claims can be changed and its signature still be good. */
export type Token = { header: Json; claims: Json; sign(header: Json, claims: Json): string };

/** `proves`: without it, or with another text in its place, the request must not succeed. */
export type Part = {
  place: "query" | "field" | "form";
  name: string;
  value: string | Token;
  proves?: boolean;
};

export type Shape = {
  method: string;
  path: string;
  parts: readonly Part[];
  /** In place of a form. */
  body?: Json | Token;
  /** In DER, the leaf first. */
  certificates?: readonly Uint8Array[];
};

export const isToken = (value: unknown): value is Token =>
  typeof value === "object" && value !== null && "sign" in value;

/** A signature is another one each time, and a token has to stay the same. */
const texts = new WeakMap<Token, string>();
export const textOf = (value: string | Token): string =>
  isToken(value) ? texts.getOrInsertComputed(value, () => value.sign(value.header, value.claims)) : value;

const CHARACTERS = [
  ..."\0\t\n\r \"%&'+,-./:;<=>?@[\\]_`{|}~0aA",
  "é",
  "\u0130",
  "\u202e",
  "\u2028",
  "\ud800",
  "😀",
];
const TEXTS = [
  ...[
    "",
    " ",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "9".repeat(400),
    "0x10",
    "1.5",
    "__proto__",
    "constructor",
  ],
  ...["%00", "%", "%zz", "../..", "\ufeff", "\ud800", "*", "self", "a".repeat(3_000), "é".repeat(1_000)],
  ...[
    "https://[::1",
    "https://a@b/",
    "HTTPS://AS.EXAMPLE",
    "javascript:1",
    "spiffe://",
    "urn:x",
    "http://127.0.0.1:99999",
  ],
  ...[
    "[".repeat(3_000),
    '{"a":'.repeat(600),
    `${"[".repeat(60)}${"]".repeat(60)}`,
    "a,".repeat(1_000),
    "a ".repeat(1_000),
  ],
  ...[
    ";=".repeat(500),
    '"'.repeat(999),
    "\\".repeat(999),
    "=".repeat(999),
    ".".repeat(999),
    "::".repeat(400),
  ],
];
const VALUES: readonly Json[] = [
  ...[null, true, false, 0, -1, 1.5, 1e300, 2 ** 53, 4_102_444_800, "", [], {}, [[]], [null], { "": {} }],
  ...["x", "\ud800", "a".repeat(2_000), Array.from({ length: 300 }, () => "a"), [1, "a", {}]],
];

const ENCODINGS: readonly ((text: string) => string)[] = [
  (text) => encodeURIComponent(text.toWellFormed()),
  (text) => text.toUpperCase(),
  (text) => text.toLowerCase(),
  (text) => Buffer.from(text).toString("base64"),
  (text) => [...text].reverse().join(""),
  (text) => text.normalize("NFD"),
];

/** Some change of this text; JSON and JWTs in it are also changed from within. */
export function changeText(random: Prng, text: string): string {
  switch (random.below(9)) {
    case 0:
      return random.pick(TEXTS);
    case 1:
      return text.slice(0, random.below(text.length + 1));
    case 2:
      return text + random.pick(TEXTS);
    case 3:
      return random.pick(CHARACTERS).repeat(1 + random.below(50)) + text;
    case 4:
      return random.pick(ENCODINGS)(text);
    case 5: {
      const at = random.below(text.length + 1);
      return (
        text.slice(0, at) +
        text.slice(at - random.below(20), at).repeat(1 + random.below(300)) +
        text.slice(at)
      );
    }
    case 6:
      return changeWithin(random, text);
    default:
      return mutate(random, text, CHARACTERS);
  }
}

/** Of a text with parts: JSON, a JWT, or words. */
function changeWithin(random: Prng, text: string): string {
  if (/^[{[]/.test(text)) {
    try {
      return JSON.stringify(changeJson(random, JSON.parse(text)));
    } catch {
      // It only began like JSON.
    }
  }
  const by = [".", " ", ",", "/", ":"].find((one) => text.includes(one)) ?? "";
  const parts = text.split(by);
  if (parts.length === 0) return random.pick(TEXTS);
  const at = random.below(parts.length);
  const part = parts[at] ?? "";
  if (by === "." && parts.length === 3 && at < 2) {
    const inside = Buffer.from(part, "base64url").toString();
    return parts
      .with(at, encode(inside.startsWith("{") ? changeWithin(random, inside) : changeText(random, inside)))
      .join(by);
  }
  return parts
    .with(at, random.below(2) === 0 ? random.pick(parts) : mutate(random, part, CHARACTERS))
    .join(by);
}

/** The same value with one place in it changed; the deeper places are as likely as the outer ones. */
export function changeJson(random: Prng, value: Json, depth = 0): Json {
  const entries: [string, Json][] = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const [name, member = null] = entries[random.below(entries.length || 1)] ?? [];
  if (name !== undefined && random.below(5) > 0) {
    const changed = changeJson(random, member, depth + 1);
    return Array.isArray(value)
      ? value.with(Number(name), changed)
      : { ...(value as object), [name]: changed };
  }
  const kind = random.below(7);
  if (name !== undefined && kind < 4) {
    const [, other = null] = random.pick(entries);
    const last: [string, Json] = [random.pick(TEXTS), random.pick(VALUES)];
    if (Array.isArray(value)) {
      const at = Number(name);
      return (
        [value.toSpliced(at, 1), [...value, ...value], [...value, last[1]], value.with(at, other)][kind] ?? []
      );
    }
    const rest = entries.filter(([one]) => one !== name);
    const changed: [string, Json][][] = [
      [],
      [[changeText(random, name), member]],
      [[name, other]],
      [[name, member], last],
    ];
    return Object.fromEntries<Json>([...rest, ...(changed[kind] ?? [])]);
  }
  if (typeof value === "string" && kind < 5) return changeText(random, value);
  if (typeof value === "number" && kind < 5)
    return [value + 1, -value, value * 1_000, value / 7, `${value}`][kind] ?? 0;
  if (kind < 6) return random.pick(VALUES);
  let wrapped = value;
  for (let levels = 1 + random.below(random.below(20) === 0 ? 2_000 : 20); levels > 0; levels--)
    wrapped = random.below(2) === 0 ? [wrapped] : { a: wrapped };
  return wrapped;
}

/** Claims or header changed and signed again, or the text of the token changed. */
function changeToken(random: Prng, token: Token): string | Token {
  const kind = random.below(4);
  if (kind === 0) return changeText(random, textOf(token));
  return kind === 1
    ? { ...token, header: changeJson(random, token.header) }
    : { ...token, claims: changeJson(random, token.claims) };
}

const FIELDS = [
  "accept",
  "accept-language",
  "origin",
  "cookie",
  "dpop",
  "authorization",
  "content-type",
  "traceparent",
  "host",
];
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "X"];

/** Where a shape was changed. */
export type Change = {
  place: Part["place"] | "body" | "certificate" | "method" | "path";
  name?: string;
  isJwt?: boolean;
};

/** The shape with one change; `lost` is the text of a proof that it has no more. */
export function changeShape(random: Prng, shape: Shape): { shape: Shape; change: Change; lost?: string } {
  const { parts, body, certificates = [] } = shape;
  const chosen = random.below(parts.length + 4);
  const part = parts[chosen];
  if (part !== undefined) return changePart(random, shape, part);
  if (body !== undefined && random.below(3) > 0)
    return {
      shape: { ...shape, body: isToken(body) ? changeToken(random, body) : changeJson(random, body) },
      change: { place: "body", isJwt: isToken(body) },
    };
  const [leaf, ...rest] = certificates;
  if (leaf !== undefined && random.below(4) > 0)
    return {
      shape: { ...shape, certificates: [changeBytes(random, leaf), ...rest] },
      change: { place: "certificate" },
    };
  const added = (place: "field" | "query", name: string) => ({
    shape: { ...shape, parts: [...parts, { place, name, value: random.pick(TEXTS) }] },
    change: { place, name },
  });
  switch (random.below(4)) {
    case 0:
      return { shape: { ...shape, method: random.pick(METHODS) }, change: { place: "method" } };
    case 1: {
      const path = shape.path + changeText(random, random.pick(shape.path.split("/")));
      return { shape: { ...shape, path }, change: { place: "path" } };
    }
    case 2:
      return added("field", random.pick(FIELDS));
    default:
      return added("query", random.pick(TEXTS));
  }
}

function changePart(random: Prng, shape: Shape, part: Part): ReturnType<typeof changeShape> {
  const { parts } = shape;
  const chosen = parts.indexOf(part);
  const replaced = (one: Partial<Part>): Shape => ({
    ...shape,
    parts: parts.with(chosen, { ...part, ...one }),
  });
  const change = { place: part.place, name: part.name, isJwt: isToken(part.value) };
  const lost = part.proves ? { lost: textOf(part.value) } : {};
  switch (random.below(8)) {
    case 0:
      return { shape: { ...shape, parts: parts.toSpliced(chosen, 1) }, change, ...lost };
    case 1:
      return { shape: { ...shape, parts: parts.toSpliced(chosen, 0, part) }, change };
    case 2: {
      const { value } = random.pick(parts);
      return { shape: replaced({ value }), change, ...(isToken(value) ? {} : lost) };
    }
    case 3:
      return { shape: replaced({ name: changeText(random, part.name) }), change };
    default: {
      const value = isToken(part.value) ? changeToken(random, part.value) : changeText(random, part.value);
      return { shape: replaced({ value }), change, ...(isToken(value) ? {} : lost) };
    }
  }
}
