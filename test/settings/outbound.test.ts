import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isLoopbackOnly,
  isNetwork,
  isNeverReached,
  mayConnect,
  opensLoopback,
} from "../../src/settings/outbound.ts";

const open = [
  "1.1.1.1",
  "8.8.8.8",
  "100.63.255.255",
  "100.128.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.167.255.255",
  "198.17.255.255",
  "198.20.0.0",
  "203.0.114.0",
  "223.255.255.255",
  "126.255.255.255",
  "2606:4700:4700::1111",
  "2001:4860:4860::8888",
  "2a00:1450::1",
  "2000::1",
  "2003::1",
];
for (const address of open) {
  test(`B8725-3.10-2 ${address} is connected to`, () => assert.equal(mayConnect(address, []), true));
}

/** The first and the last address of each special-purpose block. */
const blocks = [
  ["this network", "0.0.0.0", "0.255.255.255"],
  ["private use 10/8", "10.0.0.0", "10.255.255.255"],
  ["shared address space", "100.64.0.0", "100.127.255.255"],
  ["loopback", "127.0.0.0", "127.255.255.255"],
  ["link local", "169.254.0.0", "169.254.255.255"],
  ["private use 172.16/12", "172.16.0.0", "172.31.255.255"],
  ["protocol assignments", "192.0.0.0", "192.0.0.255"],
  ["documentation 1", "192.0.2.0", "192.0.2.255"],
  ["AS112", "192.31.196.0", "192.31.196.255"],
  ["multicast tunnels", "192.52.193.0", "192.52.193.255"],
  ["6to4 relays", "192.88.99.0", "192.88.99.255"],
  ["private use 192.168/16", "192.168.0.0", "192.168.255.255"],
  ["AS112 direct", "192.175.48.0", "192.175.48.255"],
  ["benchmarking", "198.18.0.0", "198.19.255.255"],
  ["documentation 2", "198.51.100.0", "198.51.100.255"],
  ["documentation 3", "203.0.113.0", "203.0.113.255"],
  ["multicast", "224.0.0.0", "239.255.255.255"],
  ["reserved", "240.0.0.0", "255.255.255.254"],
  ["broadcast", "255.255.255.255", "255.255.255.255"],
  ["unspecified IPv6", "::", "::"],
  ["loopback IPv6", "::1", "::1"],
  ["IPv4-compatible addresses", "::2", "::ffff:ffff"],
  ["IPv4-mapped addresses", "::ffff:0:0", "::ffff:255.255.255.255"],
  ["IPv4-translated addresses", "::ffff:0:0:0", "::ffff:0:ffff:ffff"],
  ["NAT64", "64:ff9b::", "64:ff9b::ffff:ffff"],
  ["local NAT64", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["discard only", "100::", "100::ffff:ffff:ffff:ffff"],
  ["dummy prefix", "100:0:0:1::", "100::1:ffff:ffff:ffff:ffff"],
  ["Teredo", "2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["IETF protocols", "2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["benchmarking IPv6", "2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"],
  ["multicast tunnels IPv6", "2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["AS112 IPv6", "2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"],
  ["ORCHID", "2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["ORCHIDv2", "2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["drone tags", "2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["documentation IPv6", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["6to4", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["AS112 direct IPv6", "2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"],
  ["the old test network", "3ffe::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["documentation 3fff::/20", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["unassigned space", "4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["segment routing", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["more unassigned space", "6000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["unique local", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["link local IPv6", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["site local", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["multicast IPv6", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
] as const;
for (const [name, first, last] of blocks) {
  test(`B8725-3.10-2 ${name} is not connected to`, () => {
    assert.equal(mayConnect(first, []), false);
    assert.equal(mayConnect(last, []), false);
  });
}

const everything = ["0.0.0.0/0", "::/0"];

const wrapped = [
  ["a mapped loopback address", "::ffff:127.0.0.1"],
  ["a mapped loopback address in hexadecimal", "::ffff:7f00:1"],
  ["a mapped private address", "::ffff:10.0.0.1"],
  ["a mapped public address", "::ffff:8.8.8.8"],
  ["a compatible loopback address", "::127.0.0.1"],
  ["a translated private address", "::ffff:0:10.0.0.1"],
  ["a private address behind NAT64", "64:ff9b::10.0.0.1"],
  ["a private address behind 6to4", "2002:a00:1::1"],
  ["a link-local address", "169.254.1.1"],
  ["a link-local IPv6 address", "fe80::1"],
  ["a multicast address", "224.0.0.1"],
  ["the unspecified address", "0.0.0.0"],
  ["the unspecified IPv6 address", "::"],
  ["a documentation address", "192.0.2.1"],
  ["a benchmarking address", "198.18.0.1"],
  ["broadcast", "255.255.255.255"],
] as const;
for (const [name, address] of wrapped) {
  test(`B8725-3.10-2 ${name} is not connected to even if every network is opened`, () => {
    assert.equal(mayConnect(address, everything), false);
  });
}

const metadata = [
  "169.254.169.254",
  "100.100.100.200",
  "192.0.0.192",
  "168.63.129.16",
  "169.254.170.2",
  "169.254.170.23",
  "169.254.42.42",
  "fd00:ec2::254",
  "fd00:ec2:0:0:0:0:0:254",
  "FD00:EC2::254",
  "fd00:ec2::254%eth0",
  "fd00:ec2::23",
  "fd20:ce::254",
  "fd00:c1::a9fe:a9fe",
  "fd00:42::42",
  "fd00:a9fe:a9fe::1",
  "fd00:100::100:200",
  "::ffff:169.254.169.254",
  "::ffff:a9fe:a9fe",
  "64:ff9b::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
];
for (const address of metadata) {
  test(`B8725-3.10-2 never connects to the metadata address ${address}`, () => {
    assert.equal(mayConnect(address, everything), false);
    assert.equal(mayConnect(address, ["fd00::/8", "100.64.0.0/10", "168.63.0.0/16"]), false);
  });
}

const spellings = [
  ["in octal", "010.0.0.1"],
  ["in octal that would be public", "010.8.8.8"],
  ["in hexadecimal", "0x8.8.8.8"],
  ["as one number", "134744072"],
  ["in two parts", "8.8"],
  ["in two parts that would be loopback", "127.1"],
  ["with a port", "8.8.8.8:53"],
  ["with a blank", " 8.8.8.8"],
  ["with a zone", "2606:4700::1111%eth0"],
  ["in brackets", "[2606:4700::1111]"],
  ["as a name", "a.example"],
  ["as a network", "8.8.8.8/32"],
  ["that is empty", ""],
] as const;
for (const [name, address] of spellings) {
  test(`B8725-3.10-2 an address ${name} is not connected to`, () => {
    assert.equal(mayConnect(address, everything), false);
  });
}

const grants = [
  ["a private address in the network", "10.1.2.3", ["10.1.0.0/16"], true],
  ["the first address of the network", "10.1.0.0", ["10.1.0.0/16"], true],
  ["the last address of the network", "10.1.255.255", ["10.1.0.0/16"], true],
  ["the address before the network", "10.0.255.255", ["10.1.0.0/16"], false],
  ["the address after the network", "10.2.0.0", ["10.1.0.0/16"], false],
  ["the only address of the network", "192.168.1.5", ["192.168.1.5/32"], true],
  ["the address next to the network", "192.168.1.6", ["192.168.1.5/32"], false],
  ["a private address in the second network", "172.16.0.9", ["10.0.0.0/8", "172.16.0.0/24"], true],
  ["shared address space", "100.64.1.1", ["100.64.0.0/10"], true],
  ["loopback", "127.0.0.1", ["127.0.0.0/8"], true],
  ["IPv6 loopback", "::1", ["::1/128"], true],
  ["IPv6 loopback by a network of IPv4", "::1", ["127.0.0.0/8"], false],
  ["unique local", "fd12::9", ["fd12::/16"], true],
  ["another unique local network", "fd13::9", ["fd12::/16"], false],
  ["unique local by a network of IPv4", "fd12::9", ["0.0.0.0/0"], false],
  ["a private IPv4 address by a network of IPv6", "10.0.0.1", ["::/0"], false],
  ["a public address outside the network", "8.8.8.8", ["10.0.0.0/8"], true],
] as const;
for (const [name, address, networks, want] of grants) {
  test(`with an opened network ${name} is ${want ? "allowed" : "refused"}`, () => {
    assert.equal(mayConnect(address, networks), want);
  });
}

const networks = [
  ["10.0.0.0/8", true],
  ["10.1.2.3/32", true],
  ["fd12::/16", true],
  ["::1/128", true],
  ["10.0.0.0", false],
  ["10.0.0.0/33", false],
  ["10/8", false],
  ["010.0.0.0/8", false],
  ["0xa.0.0.0/8", false],
  ["10.0.0.0/8 ", false],
  ["fd12::/129", false],
  ["fd12::%eth0/16", false],
  ["localhost/8", false],
  ["", false],
] as const;
for (const [text, want] of networks) {
  test(`the network "${text}" is ${want ? "accepted" : "refused"}`, () => {
    assert.equal(isNetwork(text), want);
  });
}

const reached = [
  ["169.254.0.0/16", false],
  ["169.254.169.254/32", false],
  ["fe80::/10", false],
  ["fe80::1/64", false],
  ["100.100.100.200/32", false],
  ["168.63.129.16/32", false],
  ["fd00:ec2::254/128", false],
  ["224.0.0.0/4", false],
  ["240.0.0.0/8", false],
  ["64:ff9b::/96", false],
  ["168.0.0.0/6", true],
  ["100.64.0.0/10", true],
  ["168.63.129.0/24", true],
  ["fd00::/8", true],
  ["10.0.0.0/8", true],
  ["127.0.0.0/8", true],
  ["8.8.8.0/24", true],
  ["0.0.0.0/0", true],
  ["::/0", true],
] as const;
for (const [network, want] of reached) {
  test(`B8725-3.10-2 of the network ${network} ${want ? "some address" : "no address"} is ever reached`, () => {
    assert.equal(isNeverReached(network), !want);
  });
}

const loopbacks = [
  ["127.0.0.0/8", "only"],
  ["127.0.0.1/32", "only"],
  ["127.0.0.2/32", "only"],
  ["127.5.0.0/16", "only"],
  ["127.0.0.0/7", "also"],
  ["0.0.0.0/0", "also"],
  ["64.0.0.0/2", "also"],
  ["::1/128", "only"],
  ["::1/127", "also"],
  ["::/0", "also"],
  ["10.0.0.0/8", "not"],
  ["126.0.0.0/8", "not"],
  ["128.0.0.0/1", "not"],
  ["fd12::/16", "not"],
  ["::2/127", "not"],
] as const;
for (const [network, want] of loopbacks) {
  test(`the network ${network} includes ${want} loopback`, () => {
    assert.deepEqual([opensLoopback(network), isLoopbackOnly(network)], [want !== "not", want === "only"]);
  });
}
