/**
 * RFC 9111, HTTP Caching: https://www.rfc-editor.org/rfc/rfc9111.html
 * Covers 1.2.2 delta-seconds, 4.2 freshness, 5.1 Age, 5.2.2 max-age, no-cache and no-store, 5.3 Expires, as far as a
 * private cache needs them.
 */
import { dateSeconds, deltaSeconds, stripBlanks } from "./rfc9110.ts";

/** Header fields of a response as received; an absent field is the same as an empty one. */
type Answer = {
  cacheControl?: string | undefined;
  age?: string | undefined;
  expires?: string | undefined;
  date?: string | undefined;
};

/** In seconds; `otherwise` is for a response without explicit freshness. */
type Bounds = { min: number; max: number; otherwise: number };

/** CIMD-5.2-2, MCP-R.1-3, PROD-4.3-6: how many seconds a response stays fresh, as it says itself, within our bounds. */
export function freshSeconds(answer: Answer, { min, max, otherwise }: Bounds): number {
  return Math.min(Math.max(explicitFreshness(answer) ?? otherwise, min), max);
}

const FORBIDDEN = /(?:^|[ \t,])no-(?:store|cache)(?:$|[ \t,=])/i;
const MAX_AGE = /(?:^|[ \t,])max-age(?:=([^ \t,]*))?(?:$|[ \t,])/i;

/** The remaining freshness in seconds: undefined if the response does not say, 0 or less if it is stale already. */
function explicitFreshness({
  cacheControl = "",
  age = "",
  expires = "",
  date = "",
}: Answer): number | undefined {
  // `no-cache="…"`, which is limited to some fields, is taken for the whole response.
  if (FORBIDDEN.test(cacheControl)) return 0;
  // 5.1: of several ages the first counts; an invalid one is ignored.
  const [firstAge = ""] = age.split(",");
  const ageSeconds = deltaSeconds(stripBlanks(firstAge)) ?? 0;
  const maxAge = MAX_AGE.exec(cacheControl);
  // 5.3: Expires is ignored beside max-age, even beside an invalid one.
  if (maxAge !== null) {
    const maxAgeSeconds = deltaSeconds(maxAge[1] ?? "");
    return maxAgeSeconds === undefined ? undefined : maxAgeSeconds - ageSeconds;
  }
  if (expires === "") return undefined;
  const [endSeconds, sentSeconds] = [dateSeconds(expires), dateSeconds(date)];
  // 5.3: an invalid date, `0` in particular, is in the past; without a valid Date nothing can be computed.
  if (endSeconds === undefined || sentSeconds === undefined) return 0;
  return endSeconds - sentSeconds - ageSeconds;
}
