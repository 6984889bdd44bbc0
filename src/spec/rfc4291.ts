/**
 * RFC 4291, IP Version 6 Addressing Architecture: https://www.rfc-editor.org/rfc/rfc4291.html
 * Covers 2.5.4 the 64 bits of a network, 2.5.5.2 IPv4-mapped addresses.
 */
import ipaddr from "ipaddr.js";

/** One subscriber holds at least a /64 of version 6, and could use an address of it for each request: it is one source. */
export function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.isIPv4MappedAddress()
    ? parsed.toIPv4Address().toString()
    : parsed.parts.slice(0, 4).join(":");
}
