/** Addresses that an outbound connection may use: public ones, and the private networks that the operator permits. */
import ipaddr from "ipaddr.js";

/** These are always refused: the addresses of cloud metadata services that no refused range covers. */
const METADATA_NETWORKS: readonly string[] = [
  "100.100.100.200/32",
  "168.63.129.16/32",
  "fd00:42::42/128",
  "fd00:100::100:200/128",
  "fd00:a9fe:a9fe::1/128",
  "fd00:c1::a9fe:a9fe/128",
  "fd00:ec2::/32",
  "fd20:ce::254/128",
];
/** The ranges of which an operator may permit single networks. */
const PERMITTABLE: readonly string[] = ["private", "uniqueLocal", "carrierGradeNat", "loopback"];
/** What ipaddr.js calls unicast includes addresses outside 2000::/3 and the former test network 6bone. */
const IPV6_GLOBAL = ipaddr.parseCIDR("2000::/3");
const IPV6_6BONE = ipaddr.parseCIDR("3ffe::/16");

/** Whether a socket may connect to this address; `networks` are the private networks that are permitted, as CIDR. */
export function mayConnect(address: string, networks: readonly string[]): boolean {
  if (!isPlainAddress(address)) return false;
  const parsed = ipaddr.parse(address);
  if (METADATA_NETWORKS.some((network) => contains(network, parsed))) return false;
  if (PERMITTABLE.includes(parsed.range())) return networks.some((network) => contains(network, parsed));
  if (parsed.range() !== "unicast") return false;
  return parsed.kind() === "ipv4" || (parsed.match(IPV6_GLOBAL) && !parsed.match(IPV6_6BONE));
}

/** Parsers disagree about octal, hexadecimal and shortened forms, and a zone selects an interface. */
const isPlainAddress = (text: string): boolean =>
  ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes("%"));

export function isNetwork(text: string): boolean {
  return ipaddr.isValidCIDR(text) && isPlainAddress(text.slice(0, text.indexOf("/")));
}

/** Whether no address of this network is ever reached, such as link-local ones: to permit it would have no effect. */
export function isNeverReached(network: string): boolean {
  const [base, bits] = ipaddr.parseCIDR(network);
  const within = (one: string): boolean => bits >= ipaddr.parseCIDR(one)[1] && contains(one, base);
  if (METADATA_NETWORKS.some(within)) return true;
  const family = base.kind() === "ipv4" ? ipaddr.IPv4 : ipaddr.IPv6;
  const range = family.networkAddressFromCIDR(network).range();
  if ([...PERMITTABLE, "unicast"].includes(range)) return false;
  return range === family.broadcastAddressFromCIDR(network).range();
}

/** Whether this network contains loopback or a part of it. */
export function opensLoopback(network: string): boolean {
  const [base] = ipaddr.parseCIDR(network);
  if (base.range() === "loopback") return true;
  return ["127.0.0.1", "::1"].some((address) => contains(network, ipaddr.parse(address)));
}

/**
 * Whether every address of this network is loopback: such a network was named on purpose, and did not come along with
 * others.
 */
export function isLoopbackOnly(network: string): boolean {
  const [base, bits] = ipaddr.parseCIDR(network);
  return base.range() === "loopback" && bits >= (base.kind() === "ipv4" ? 8 : 128);
}

function contains(network: string, address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  const [base, bits] = ipaddr.parseCIDR(network);
  return base.kind() === address.kind() && address.match(base, bits);
}
