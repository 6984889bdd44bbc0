/**
 * RFC 3986, URI: https://www.rfc-editor.org/rfc/rfc3986.html
 * Covers 3 as far as an https URL that this server fetches may use it; the raw text is checked before any parser
 * repairs it, so that every reader of the URL sees the same host and path.
 */
import { STRING_BYTES_MAX } from "../limits.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";

/** One kind for each cause, so that the audit trail says what was wrong. */
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

/** White space, control characters, and what else a parser would drop, turn round or encode. */
const REPAIRED = /[^!-~]|["<>\\^`{|}]/;
const PARTS = /^https:\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(#)?/;
const HOST_AND_PORT = /^(.*?)(?::([0-9]*))?$/;
/** No dot at the end makes another name of it. */
const HOST = /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])$/;
const PORT = /^[1-9][0-9]{0,4}$/;
const PATH = /^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/;
const QUERY = /^(?:[A-Za-z0-9._~!$&()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$/;
/** An encoded dot is refused anywhere: somebody decodes it before he looks for segments. */
const DOTS = /\/\.{1,2}(?:[/?]|$)|%2e/i;

/** The raw string first; then the parser must give back what it was given. */
export function parseFetchUrl(text: string): Result<URL, UrlFailure> {
  // All that is allowed is ASCII, so characters are bytes.
  if (text.length > STRING_BYTES_MAX) return err({ kind: "url_too_long" });
  if (REPAIRED.test(text)) return err({ kind: "url_character_refused" });
  // CIMD-3-1, PROD-4.3r1-1
  const parts = PARTS.exec(text);
  if (parts === null) return err({ kind: "url_not_https" });

  const [, authority = "", path = "", query, fragment] = parts;
  // CIMD-3-2
  if (authority.includes("@")) return err({ kind: "url_userinfo" });
  // CIMD-3-7: an empty one is one too.
  if (fragment !== undefined) return err({ kind: "url_fragment" });
  if (query === "") return err({ kind: "url_query_empty" });
  if (query !== undefined && path === "") return err({ kind: "url_path_missing" });
  const rest = text.slice("https://".length + authority.length);
  // CIMD-3-5
  if (DOTS.test(rest)) return err({ kind: "url_dot_segment" });
  if (!PATH.test(path) || !QUERY.test(query ?? "")) return err({ kind: "url_malformed" });

  const [, host = "", port] = HOST_AND_PORT.exec(authority) ?? [];
  if (!HOST.test(host)) return err({ kind: "url_host_refused" });
  if (port !== undefined && (!PORT.test(port) || Number(port) > 65535)) {
    return err({ kind: "url_port_refused" });
  }
  // CIMD-3-3, CIMD-3-8: the default port may be spelled out, and a parser that drops it has repaired nothing else.
  const spelled = port === undefined || port === "443" ? host : authority;
  const url = URL.parse(text);
  const kept = url?.href === `https://${spelled}${rest || "/"}`;
  return url !== null && kept ? ok(url) : err({ kind: "url_host_refused" });
}
