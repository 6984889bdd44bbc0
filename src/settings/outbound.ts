/** Addresses that an outbound connection may have: public ones, and the private networks that the operator opens. */
import ipaddr from "ipaddr.js";

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
