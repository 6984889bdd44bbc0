/**
 * The two cookies of our pages (PAGE-D-14): random values of which the store has the digests, read by page handlers alone.
 * RFC 6265bis: https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis-22
 */

import type { HttpRequest } from "../../http/handler.ts";
import { stripBlanks } from "../../spec/rfc9110.ts";

/** The two cookies: one of the browser, before and beside any sign-in, and one of the session of a user. */
export const COOKIES = { browser: "__Host-mandate-b", session: "__Host-mandate-s" } as const;
type Name = keyof typeof COOKIES;

/** A value has 256 random bits in base64url. */
const VALUE = /^[A-Za-z0-9_-]{43}$/;

/**
 * COOKIE-8.6-1: one value of our form counts; two of one name, or any other value, count as none. COOKIE-4.2.1-2: the
 * field is read as browsers write it, because the prefix of a name protects it only there: a sibling of this host may
 * set commas and any byte from 0x80.
 */
export function readCookie({ headers }: HttpRequest, name: Name): string | undefined {
  const pairs = (headers.get("cookie") ?? "").split(";").map((pair) => stripBlanks(pair));
  const values = pairs.filter((pair) => pair.startsWith(`${COOKIES[name]}=`));
  const [value] = values.map((pair) => pair.slice(COOKIES[name].length + 1));
  return values.length === 1 && value !== undefined && VALUE.test(value) ? value : undefined;
}

/** COOKIE-4.1.3.2-1, COOKIE-4.1.2.6-1, COOKIE-4.1.2.7-1; `Lax`, because providers and clients send users here. */
export const setCookie = (name: Name, value: string, maxAgeSeconds: number): string =>
  `${COOKIES[name]}=${value}; Path=/; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Lax`;
