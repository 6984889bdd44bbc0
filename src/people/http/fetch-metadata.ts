/**
 * What a browser says of where a request comes from: W3C Fetch Metadata Request Headers, https://www.w3.org/TR/fetch-metadata/
 */
import type { HttpRequest } from "../../http/handler.ts";

/**
 * Whether a request for a page comes from a page of another site, or for something else than to be shown as a page.
 * Browsers that say nothing pass: this only refuses in addition to the form token, which decides (PAGE-D-5).
 */
export function isForeign(
  { method, headers }: Pick<HttpRequest, "method" | "headers">,
  own: string,
): boolean {
  const [site, dest, origin] = ["sec-fetch-site", "sec-fetch-dest", "origin"].map((name) =>
    headers.get(name),
  );
  // FETCHMD-2-1: clients and providers lead users here, but to a page, and into no frame.
  if (method !== "POST") return isOther(dest, ["document"]);
  // Under `no-referrer` our own forms come with the origin "null".
  return isOther(site, ["same-origin"]) || isOther(origin, [own, "null"]);
}

const isOther = (value: string | null | undefined, own: readonly string[]): boolean =>
  typeof value === "string" && !own.includes(value);
