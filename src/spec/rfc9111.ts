/**
 * RFC 9111, HTTP Caching: https://www.rfc-editor.org/rfc/rfc9111.html
 * Covers 1.2.2 delta-seconds, 4.2 freshness, 5.1 Age, 5.2.2 max-age, no-cache and no-store, 5.3 Expires, as far as a
 * cache that nobody shares needs them.
 */

/** Fields of an answer as they came; absent and empty are the same. */
type Answer = {
  cacheControl?: string | undefined;
  age?: string | undefined;
  expires?: string | undefined;
  date?: string | undefined;
};

/** In seconds; `otherwise` is for an answer that does not say. */
type Bounds = { min: number; max: number; otherwise: number };

/** CIMD-5.2-2, MCP-R.1-3, PROD-4.3-6: how long an answer is fresh from now on, by its own word within our bounds. */
export function freshSeconds(answer: Answer, { min, max, otherwise }: Bounds): number {
  return Math.min(Math.max(ownWord(answer) ?? otherwise, min), max);
}

const FORBIDDEN = /(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/i;
const MAX_AGE = /(?:^|[\s,])max-age(?:=([^\s,]*))?(?:$|[\s,])/i;

/** Undefined: it says nothing that can be understood. No more than 0: it is stale. */
function ownWord({ cacheControl = "", age = "", expires = "", date = "" }: Answer): number | undefined {
  // Narrowed to some fields (`no-cache="…"`) it counts as well.
  if (FORBIDDEN.test(cacheControl)) return 0;
  // 5.1: of several ages the first; what is no age is ignored.
  const [firstAge = ""] = age.split(",");
  const ageSeconds = deltaSeconds(firstAge.trim()) ?? 0;
  const maxAge = MAX_AGE.exec(cacheControl);
  // 5.3: beside max-age, even one that makes no sense, Expires does not count.
  if (maxAge !== null) {
    const maxAgeSeconds = deltaSeconds(maxAge[1] ?? "");
    return maxAgeSeconds === undefined ? undefined : maxAgeSeconds - ageSeconds;
  }
  if (expires === "") return undefined;
  const [endSeconds, sentSeconds] = [dateSeconds(expires), dateSeconds(date)];
  // 5.3: what is no date, `0` above all, is in the past; without the other there is nothing to count from.
  if (endSeconds === undefined || sentSeconds === undefined) return 0;
  return endSeconds - sentSeconds - ageSeconds;
}

/** 1.2.2: a number beyond counting is a large one. */
function deltaSeconds(text: string): number | undefined {
  return /^[0-9]+$/.test(text) ? Math.min(Number(text), 2 ** 31) : undefined;
}

/** Only as it is written today (RFC 9110 5.6.7): the two old forms have no century or no zone. */
function dateSeconds(text: string): number | undefined {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toUTCString() === text ? ms / 1000 : undefined;
}
