/** Of what kind an input is, by where it was changed, and whether what reads it first takes it all the same. */
import { readDer } from "../../src/spec/x690.ts";
import { chunksOf } from "./bytes.ts";
import { type Change, isToken, type Json, type Shape } from "./mutate.ts";

export const KINDS = [
  "endpoint",
  "document",
  "certificate",
  "JWT",
  "page",
  "cookie",
  "header",
  "event",
] as const;
export type Kind = (typeof KINDS)[number];

const EVENTS = /^\/(signals|backchannel-logout)\//;
const PAGES = /^\/($|account|ask|authorize|callback|logo|sign)/;

export function kindOf({ path, body }: Shape, { place, name, isJwt }: Change): Kind {
  if (EVENTS.test(path) && (isJwt || (place === "body" && body !== undefined))) return "event";
  if (place === "certificate") return "certificate";
  if (isJwt) return "JWT";
  if (place === "body") return "document";
  if (place === "field") return name === "cookie" ? "cookie" : "header";
  return PAGES.test(path) ? "page" : "endpoint";
}

/** The refusals of a router and of the readers of a head and a body. */
const OUTER = [405, 406, 413, 414, 415, 431];

/** The route, the form, the JSON, and each JWT and certificate can be read. */
export function isWholeRequest(changed: Shape, good: Shape, status: number | string): boolean {
  const { method, path, parts, body, certificates = [] } = changed;
  const names = parts.filter(({ place }) => place !== "field").map((part) => `${part.place} ${part.name}`);
  const tokens = new Set(good.parts.filter(({ value }) => isToken(value)).map(({ name }) => name));
  return (
    !OUTER.includes(Number(status)) &&
    method === good.method &&
    path === good.path &&
    new Set(names).size === names.length &&
    parts.every(({ name, value }) => !(isToken(value) || tokens.has(name)) || isWholeJwt(value)) &&
    (!isToken(good.body) || isWholeJwt(body ?? "")) &&
    certificates.every((bytes) => readDer(bytes).ok)
  );
}

export function isWholeDocument(kind: Kind, input: string | Uint8Array): boolean {
  if (typeof input !== "string") return readDer(input).ok || chunksOf(input) !== undefined;
  // A field of HTTP has no control characters.
  return kind === "header" ? /^[\t\x20-\x7e\x80-\xff]*$/.test(input) : parsed(input) !== undefined;
}

const isObject = (value: Json | undefined): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isWholeJwt(value: Json | Exclude<Shape["body"], undefined>): boolean {
  if (isToken(value)) return isObject(value.header) && isObject(value.claims);
  const parts = typeof value === "string" ? value.split(".") : [];
  const read = parts.slice(0, 2).map((part) => parsed(Buffer.from(part, "base64url").toString()));
  return parts.length === 3 && parts.every((part) => /^[\w-]*$/.test(part)) && read.every(isObject);
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
