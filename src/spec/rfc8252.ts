/**
 * RFC 8252, OAuth 2.0 for Native Apps: https://www.rfc-editor.org/rfc/rfc8252.html
 * Covers 7.1 private-use schemes, 7.2 https, 7.3 loopback, 8.3 and 8.4 which redirect URIs may be registered.
 * Elsewhere: 7.3 spec/rfc6749-authorization.ts.
 */

import { STRING_BYTES_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { parseFetchUrl } from "./rfc3986.ts";

export type RedirectUriFailure = {
  kind:
    | "redirect_uri_malformed"
    | "redirect_uri_fragment"
    | "redirect_uri_wildcard"
    | "redirect_uri_userinfo"
    | "redirect_uri_dot_segment"
    | "redirect_uri_incomplete"
    | "redirect_uri_not_loopback"
    | "redirect_uri_scheme";
};

/** White space, control characters, characters outside ASCII, and others that a URL parser replaces or encodes. */
const REPAIRED = /[^!-~]|["<>\\^`{|}]/;
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):/;
const WITH_PATH = /^https?:\/\/[^/?]+\//;
const LOOPBACK: readonly string[] = ["127.0.0.1", "[::1]"];
/** RFC8252-8.4-3: a reversed domain name, so that two apps do not choose the same scheme by accident. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+$/;
/** RFC 8252 7.1: there is no naming authority under a private-use scheme, so the path begins with a single slash. */
const ONE_SLASH = /^\/(?!\/)/;
const PATH_AND_QUERY =
  /^(?:[A-Za-z0-9._~!$&'()+,;=:@/-]|%[0-9A-Fa-f]{2})+(?:\?(?:[A-Za-z0-9._~!$&'()+,;=:@/?-]|%[0-9A-Fa-f]{2})+)?$/;
const DOTS = /\/\.{1,2}(?:[/?]|$)|%2e/i;

const refused = (kind: RedirectUriFailure["kind"]) => err({ kind });

/** RFC7591-5-3: https, http to a loopback address, or a private-use scheme; the URI is stored byte for byte. */
export function checkRedirectUri(text: string): Result<undefined, RedirectUriFailure> {
  // A browser would repair such text and follow another URI than the one that was compared here.
  if (text.length > STRING_BYTES_MAX || REPAIRED.test(text)) return refused("redirect_uri_malformed");
  // RFC6749-3.1.2-1: no fragment, not even an empty one.
  if (text.includes("#")) return refused("redirect_uri_fragment");
  // RFC8252-8.4-2: redirect URIs are compared as a whole, so a wildcard would never match.
  if (text.includes("*")) return refused("redirect_uri_wildcard");
  const scheme = SCHEME.exec(text)?.[1];
  if (scheme === undefined) return refused("redirect_uri_malformed");
  if (scheme === "https" || scheme === "http") return checkWebUri(text, scheme);
  // RFC8252-8.4-3: a period is required, which also excludes `javascript`, `data`, `file` and other standard schemes.
  if (!PRIVATE_SCHEME.test(scheme)) return refused("redirect_uri_scheme");
  const rest = text.slice(scheme.length + 1);
  // RFC8252-8.4-2: a path is required.
  if (!ONE_SLASH.test(rest)) return refused("redirect_uri_incomplete");
  if (DOTS.test(rest)) return refused("redirect_uri_dot_segment");
  return PATH_AND_QUERY.test(rest) ? ok(undefined) : refused("redirect_uri_malformed");
}

/** Held to the same grammar as URLs that this server fetches, so that a host, port and path have one spelling. */
function checkWebUri(text: string, scheme: "https" | "http"): Result<undefined, RedirectUriFailure> {
  const url = parseFetchUrl(text.replace(/^http:/, "https:"));
  if (!url.ok) {
    switch (url.error.kind) {
      case "url_userinfo":
        return refused("redirect_uri_userinfo");
      case "url_dot_segment":
        return refused("redirect_uri_dot_segment");
      case "url_path_missing":
        return refused("redirect_uri_incomplete");
      default:
        return refused("redirect_uri_malformed");
    }
  }
  // RFC8252-8.4-2: a path is required.
  if (!WITH_PATH.test(text)) return refused("redirect_uri_incomplete");
  // RFC7591-5-3, RFC8252-8.3-1: a name, even `localhost`, may resolve to another machine, so only the literals count.
  if (scheme === "http" && !LOOPBACK.includes(url.value.hostname))
    return refused("redirect_uri_not_loopback");
  return ok(undefined);
}
