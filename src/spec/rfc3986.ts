/**
 * RFC 3986, URI: https://www.rfc-editor.org/rfc/rfc3986.html
 * Covers section 3 for the https URLs that this server fetches: the raw text is checked before a URL parser can repair
 * it, so that every reader of the URL sees the same host and path. Covers 6.2.2 and 6.2.3, the normal form of https URLs
 * that are compared.
 */
import { STRING_BYTES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";

/** One kind for each cause, so that the audit trail shows what was wrong. */
export type UrlFailure = {
  kind:
    | "url_too_long"
    | "url_not_https"
    | "url_character_refused"
    | "url_userinfo"
    | "url_fragment"
    | "url_query_empty"
    | "url_path_missing"
    | "url_dot_segment"
    | "url_malformed"
    | "url_host_refused"
    | "url_port_refused";
};

/** A URL parser drops, replaces or encodes these: white space, control characters and some others. */
const REPAIRED = /[^!-~]|["<>\\^`{|}]/;
const PARTS = /^https:\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(#)?/;
const HOST_AND_PORT = /^(.*?)(?::([0-9]*))?$/;
/** A trailing dot is refused, because it would be a second spelling of the same name. */
const HOST = /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])$/;
const PORT = /^[1-9][0-9]{0,4}$/;
const PATH = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/;
const QUERY = /^(?:[A-Za-z0-9._~!$&()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$/;
/** An encoded dot is refused everywhere, because some servers decode it before they resolve dot segments. */
const DOTS = /\/\.{1,2}(?:[/?]|$)|%2e/i;

declare const CHECKED: unique symbol;
/**
 * Only parseFetchUrl makes this type, and every fetch requires it, so that no URL is fetched whose raw text was not
 * checked.
 */
export type FetchUrl = URL & { readonly [CHECKED]: true };

/** Checks the raw string, then requires that the platform's parser gives it back unchanged. */
export function parseFetchUrl(text: string): Result<FetchUrl, UrlFailure> {
  // Only ASCII is allowed, so the number of characters is the number of bytes.
  if (text.length > STRING_BYTES_MAX) return err({ kind: "url_too_long" });
  if (REPAIRED.test(text)) return err({ kind: "url_character_refused" });
  // CIMD-3-1, PROD-4.3r1-1: https only, in lower case.
  const parts = PARTS.exec(text);
  if (parts === null) return err({ kind: "url_not_https" });

  const [, authority = "", path = "", query, fragment] = parts;
  // CIMD-3-2: no user name or password.
  if (authority.includes("@")) return err({ kind: "url_userinfo" });
  // CIMD-3-7: an empty fragment is a fragment too.
  if (fragment !== undefined) return err({ kind: "url_fragment" });
  if (query === "") return err({ kind: "url_query_empty" });
  if (query !== undefined && path === "") return err({ kind: "url_path_missing" });
  const rest = text.slice("https://".length + authority.length);
  // CIMD-3-5: no `.` and `..` segments.
  if (DOTS.test(rest)) return err({ kind: "url_dot_segment" });
  if (!PATH.test(path) || !QUERY.test(query ?? "")) return err({ kind: "url_malformed" });

  const [, host = "", port] = HOST_AND_PORT.exec(authority) ?? [];
  if (!HOST.test(host)) return err({ kind: "url_host_refused" });
  if (port !== undefined && (!PORT.test(port) || Number(port) > 65535)) {
    return err({ kind: "url_port_refused" });
  }
  // CIMD-3-3, CIMD-3-8: the default port may be written out; dropping it is the only change that the parser may make.
  const expected = port === undefined || port === "443" ? host : authority;
  const url = URL.parse(text);
  const unchanged = url?.href === `https://${expected}${rest || "/"}`;
  return url !== null && unchanged ? ok(url as FetchUrl) : err({ kind: "url_host_refused" });
}

// --- comparison (6.2.2, 6.2.3) ----------------------------------------------------------------------------------

/** The scheme is taken in any case; then come the host and perhaps a port, without a user name. */
const COMPARED = /^https:\/\/[^/?#@]+(?:[/?#]|$)/i;
const UNRESERVED = /[A-Za-z0-9._~-]/;

/**
 * RFC9449-4.3-13, RFC9449-2-1: https only; scheme and host in lower case, without the default port, with `/` for an empty path, dot segments
 * resolved, and every percent-encoding in its one spelling; without query and fragment. Undefined for a text that is no
 * such URL, or that a URL parser would repair.
 */
export function normalizeHttps(text: string): string | undefined {
  if (text.length > STRING_BYTES_MAX || REPAIRED.test(text) || !COMPARED.test(text)) return undefined;
  const url = URL.parse(text);
  if (url === null || !PATH.test(url.pathname)) return undefined;
  const path = url.pathname.replace(/%[0-9A-Fa-f]{2}/g, (triplet) => {
    const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
    return UNRESERVED.test(character) ? character : triplet.toUpperCase();
  });
  return url.origin + path;
}
