/**
 * RFC 8252, OAuth 2.0 for Native Apps: https://www.rfc-editor.org/rfc/rfc8252.html
 * Covers 7.1 private-use schemes, 7.2 https, 7.3 loopback, 8.3 and 8.4 which redirect URIs may be registered.
 * Elsewhere: 7.3 people/spec/rfc6749-authorization.ts.
 */

import { STRING_BYTES_MAX } from "../limits/input.ts";
import { err, ok, type Result } from "../result.ts";
import { parseFetchUrl } from "./rfc3986.ts";

type RedirectUriFailure = {
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
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)*$/;
/** Schemes that a browser reads itself, as code, as content or as another protocol: no app is behind them. */
const NO_APP: readonly string[] = [
  "about",
  "blob",
  "data",
  "file",
  "filesystem",
  "ftp",
  "javascript",
  "mailto",
  "vbscript",
  "view-source",
  "ws",
  "wss",
];
/** A path, also behind an authority, which some apps write although there is no naming authority under their scheme. */
const ABSOLUTE_PATH = /^\/(?:\/[^/?]*\/|(?!\/))/;
const PATH_AND_QUERY =
  /^(?:[A-Za-z0-9._~!$&'()+,;=:@/-]|%[0-9A-Fa-f]{2})+(?:\?(?:[A-Za-z0-9._~!$&'()+,;=:@/?-]|%[0-9A-Fa-f]{2})+)?$/;
const DOTS = /\/\.{1,2}(?:[/?]|$)|%2e/i;

const refused = (kind: RedirectUriFailure["kind"]) => err({ kind });

/** What stands behind a redirect URI: a site, a program on the user's computer by address or by name, or an app. */
type RedirectKind = "https" | "loopback" | "localhost" | "private_use";

/** RFC7591-5-3: https, http to the local machine, or a private-use scheme; the URI is stored byte for byte. */
export function readRedirectUri(text: string): Result<RedirectKind, RedirectUriFailure> {
  // A browser would repair such text and follow another URI than the one that was compared here.
  if (text.length > STRING_BYTES_MAX || REPAIRED.test(text)) return refused("redirect_uri_malformed");
  // RFC6749-3.1.2-1: no fragment, not even an empty one.
  if (text.includes("#")) return refused("redirect_uri_fragment");
  // RFC8252-8.4-2: redirect URIs are compared as a whole, so a wildcard would never match.
  if (text.includes("*")) return refused("redirect_uri_wildcard");
  const scheme = SCHEME.exec(text)?.[1];
  if (scheme === undefined) return refused("redirect_uri_malformed");
  if (scheme === "https" || scheme === "http") return readWebUri(text, scheme);
  // MCPC-D-4: nothing that a browser would run or open itself, in whatever list it stands.
  if (!PRIVATE_SCHEME.test(scheme) || NO_APP.includes(scheme)) return refused("redirect_uri_scheme");
  const rest = text.slice(scheme.length + 1);
  if (!rest.startsWith("/")) return refused("redirect_uri_incomplete");
  if (DOTS.test(rest)) return refused("redirect_uri_dot_segment");
  const isReadable = PATH_AND_QUERY.test(rest) && URL.canParse(text);
  return isReadable ? ok("private_use") : refused("redirect_uri_malformed");
}

/** Held to the same grammar as URLs that this server fetches, so that a host, port and path have one spelling. */
function readWebUri(text: string, scheme: "https" | "http"): Result<RedirectKind, RedirectUriFailure> {
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
  const { hostname } = url.value;
  if (scheme === "https") {
    // RFC8252-8.4-2: a path is required.
    return WITH_PATH.test(text) ? ok("https") : refused("redirect_uri_incomplete");
  }
  // RFC7591-5-3: on loopback an empty path counts as a path, and is another one than `/` (MCPC-D-1).
  if (LOOPBACK.includes(hostname)) return ok("loopback");
  // RFC8252-8.3-1: a name may resolve to another machine, so `localhost` is the only name that counts as loopback, if
  // the operator allows it.
  return hostname === "localhost" ? ok("localhost") : refused("redirect_uri_not_loopback");
}

/** What the operator accepts of redirect URIs that several programs may answer. */
export type RedirectRules = {
  /** How `http://localhost` is compared: with any port, as loopback addresses are; as any other URI; or never. */
  localhost: "any-port" | "exact" | "off";
  /** The redirect URIs with a private-use scheme that are accepted, each exactly. */
  privateUse: readonly string[];
};

/** MCPC-D-3: any app may claim a private-use scheme, so only those that the operator lists are accepted. */
export function isAccepted(uri: string, { localhost, privateUse }: RedirectRules): boolean {
  const kind = readRedirectUri(uri);
  if (!kind.ok) return false;
  if (kind.value === "private_use") return privateUse.includes(uri);
  return kind.value !== "localhost" || localhost !== "off";
}

type PrivateUseFailure = { kind: "redirect_uri_not_private_use" | "redirect_uri_incomplete" };

/**
 * RFC8252-8.4-2, RFC8252-8.4-3: a URI that the operator lists; `shared` says that its scheme is no reversed domain
 * name.
 */
export function checkPrivateUse(uri: string): Result<{ shared: boolean }, PrivateUseFailure> {
  const kind = readRedirectUri(uri);
  if (!kind.ok || kind.value !== "private_use") return err({ kind: "redirect_uri_not_private_use" });
  const [scheme = "", rest = ""] = [uri.slice(0, uri.indexOf(":")), uri.slice(uri.indexOf(":") + 1)];
  // RFC8252-8.4-2: a path is required.
  if (!ABSOLUTE_PATH.test(rest)) return err({ kind: "redirect_uri_incomplete" });
  // RFC8252-8.4-3: only with a period is it a reversed domain name, so that two apps do not choose the same by accident.
  return ok({ shared: !scheme.includes(".") });
}
