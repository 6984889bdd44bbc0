/**
 * Outbound URLs and addresses: own decisions (jwks.md, cimd.md and RFC 8725bis 3.10 behind them).
 * Covers what a URL must look like before any parser sees it, and which addresses may be connected to.
 */
import ipaddr from "ipaddr.js";
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

/** Never, whatever the operator grants: where clouds keep their credentials, as far as no refused range has them. */
const METADATA_NETWORKS = [
  "100.100.100.200/32",
  "168.63.129.16/32",
  "fd00:42::42/128",
  "fd00:100::100:200/128",
  "fd00:a9fe:a9fe::1/128",
  "fd00:c1::a9fe:a9fe/128",
  "fd00:ec2::/32",
  "fd20:ce::254/128",
];
/** Ranges that an operator may open, network by network. */
const GRANTABLE = ["private", "uniqueLocal", "carrierGradeNat", "loopback"];
/** Unicast by name, and yet nowhere to go: outside 2000::/3, and the old test network. */
const IPV6_GLOBAL = ipaddr.parseCIDR("2000::/3");
const IPV6_6BONE = ipaddr.parseCIDR("3ffe::/16");

/** Whether a socket may go to this address; `networks` are the private ones that this URL may lead to, as CIDR. */
export function mayConnect(address: string, networks: readonly string[]): boolean {
  if (!isPlainAddress(address)) return false;
  const parsed = ipaddr.parse(address);
  if (METADATA_NETWORKS.some((network) => contains(network, parsed))) return false;
  if (GRANTABLE.includes(parsed.range())) return networks.some((network) => contains(network, parsed));
  if (parsed.range() !== "unicast") return false;
  return parsed.kind() === "ipv4" || (parsed.match(IPV6_GLOBAL) && !parsed.match(IPV6_6BONE));
}

/** Octal, hexadecimal and shortened spellings mean different addresses to different readers; a zone hides one. */
const isPlainAddress = (text: string): boolean =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes("%"));

export function isNetwork(text: string): boolean {
  return ipaddr.isValidCIDR(text) && isPlainAddress(text.slice(0, text.indexOf("/")));
}

/** Whether a grant opens loopback or a part of it, which only a development profile may. */
export function opensLoopback(network: string): boolean {
  const [base] = ipaddr.parseCIDR(network);
  if (base.range() === "loopback") return true;
  return ["127.0.0.1", "::1"].some((address) => contains(network, ipaddr.parse(address)));
}

function contains(network: string, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const [base, bits] = ipaddr.parseCIDR(network);
  return base.kind() === address.kind() && address.match(base, bits);
}
