import assert from "node:assert/strict";
import { test } from "node:test";
import { isNetwork, mayConnect, opensLoopback, parseFetchUrl } from "../../src/spec/outbound.ts";
import { mutate, prng } from "../support/prng.ts";

// --- the raw URL ----------------------------------------------------------------------------------------------------

const plain = [
  "https://a.example",
  "https://a.example/",
  "https://a.example/jwks",
  "https://a.example:8443/a/b-c.d_e~f/",
  "https://a.example/.well-known/jwks.json",
  "https://a.example/a..b/...",
  "https://a.example/a%20b",
  "https://a.example/!$&()*+,;=:@",
  "https://a.example/a?b=c&d=%2F?/",
  "https://a.example:65535/",
  "https://xn--bcher-kva.example/",
  "https://8.8.8.8/",
  "https://[2606:4700::1111]:8443/",
];
for (const url of plain) {
  test(`a fetched URL may be ${url}`, () => {
    const got = parseFetchUrl(url);
    assert.ok(got.ok);
    assert.ok(got.value.href === url || got.value.href === `${url}/`);
  });
}

const spelledOut = [
  ["https://a.example:443", "https://a.example/"],
  ["https://a.example:443/", "https://a.example/"],
  ["https://a.example:443/jwks", "https://a.example/jwks"],
  ["https://a.example:443/a:443/?b=:443", "https://a.example/a:443/?b=:443"],
  ["https://8.8.8.8:443/", "https://8.8.8.8/"],
  ["https://[2606::443]:443/", "https://[2606::443]/"],
] as const;
for (const [url, href] of spelledOut) {
  test(`CIMD-3-3, CIMD-3-8 a fetched URL may spell the default port out, as ${url}`, () => {
    const got = parseFetchUrl(url);
    assert.deepEqual(got.ok ? [got.value.href, got.value.port] : got.error, [href, ""]);
  });
}

const long = (bytes: number) => `https://a.example/${"a".repeat(bytes - "https://a.example/".length)}`;

test("a fetched URL may have 2 KiB", () => assert.ok(parseFetchUrl(long(2048)).ok));

const refused = [
  ["nothing", "", "url_not_https"],
  ["plain http", "http://a.example/", "url_not_https"],
  ["another scheme", "file:///etc/passwd", "url_not_https"],
  ["a scheme in upper case", "HTTPS://a.example/", "url_not_https"],
  ["no scheme", "a.example/", "url_not_https"],
  ["one slash", "https:/a.example/", "url_not_https"],
  ["three slashes", "https:///a.example/", "url_host_refused"],
  ["no host", "https:///", "url_host_refused"],
  ["userinfo", "https://a.example@b.example/", "url_userinfo"],
  ["a name and password", "https://u:p@a.example/", "url_userinfo"],
  ["an empty userinfo", "https://@a.example/", "url_userinfo"],
  ["a fragment", "https://a.example/#a", "url_fragment"],
  ["an empty fragment", "https://a.example/#", "url_fragment"],
  ["an empty query", "https://a.example/?", "url_query_empty"],
  ["a query without a path", "https://a.example?a", "url_path_missing"],
  ["one dot as a segment", "https://a.example/./b", "url_dot_segment"],
  ["two dots as a segment", "https://a.example/a/../b", "url_dot_segment"],
  ["two dots at the end", "https://a.example/a/..", "url_dot_segment"],
  ["a dot at the end", "https://a.example/.", "url_dot_segment"],
  ["dots before a query", "https://a.example/a/..?b", "url_dot_segment"],
  ["encoded dots", "https://a.example/a/%2e%2e/b", "url_dot_segment"],
  ["encoded dots in upper case", "https://a.example/a/%2E/b", "url_dot_segment"],
  ["an encoded dot in a name", "https://a.example/a%2eb", "url_dot_segment"],
  ["one dot of two encoded", "https://a.example/a/.%2e/b", "url_dot_segment"],
  ["an escape cut short", "https://a.example/a%2", "url_malformed"],
  ["an escape that is not hexadecimal", "https://a.example/a%zz", "url_malformed"],
  ["such an escape in the query", "https://a.example/a?b=%", "url_malformed"],
  ["a host in upper case", "https://A.example/", "url_host_refused"],
  ["a host with a letter outside ASCII", "https://bücher.example/", "url_character_refused"],
  ["a host with full-width dots", "https://a．example/", "url_character_refused"],
  ["a host with an ideographic full stop", "https://127。0。0。1/", "url_character_refused"],
  ["an encoded host", "https://%61.example/", "url_host_refused"],
  ["a host with a dot at the end", "https://a.example./", "url_host_refused"],
  ["an address with a dot at the end", "https://127.0.0.1./", "url_host_refused"],
  ["a host that begins with a dot", "https://.a.example/", "url_host_refused"],
  ["a host with two dots", "https://a..example/", "url_host_refused"],
  ["a host that is a dot", "https://./", "url_host_refused"],
  ["a host with an underscore", "https://a_b.example/", "url_host_refused"],
  ["an octal address", "https://0177.0.0.1/", "url_host_refused"],
  ["a hexadecimal address", "https://0x7f.0.0.1/", "url_host_refused"],
  ["an address in one hexadecimal number", "https://0x7f000001/", "url_host_refused"],
  ["an address in one number", "https://2130706433/", "url_host_refused"],
  ["an address of two parts", "https://127.1/", "url_host_refused"],
  ["an address of three parts", "https://127.0.1/", "url_host_refused"],
  ["an address that overflows", "https://127.0.0.256/", "url_host_refused"],
  ["an address with leading zeros", "https://127.000.000.001/", "url_host_refused"],
  ["an IPv6 address in long spelling", "https://[0:0:0:0:0:0:0:1]/", "url_host_refused"],
  ["an IPv6 address with zeros", "https://[2606:4700::0001]/", "url_host_refused"],
  ["an IPv6 address in upper case", "https://[2606:4700::ABCD]/", "url_host_refused"],
  ["a mapped address with dots", "https://[::ffff:127.0.0.1]/", "url_host_refused"],
  ["an IPv6 address with a zone", "https://[fe80::1%25eth0]/", "url_host_refused"],
  ["an IPv6 address without brackets", "https://2606:4700::1111/", "url_host_refused"],
  ["half a bracket", "https://[::1/", "url_host_refused"],
  ["port 0", "https://a.example:0/", "url_port_refused"],
  ["port 65536", "https://a.example:65536/", "url_port_refused"],
  ["a port of six digits", "https://a.example:100000/", "url_port_refused"],
  ["a port with leading zeros", "https://a.example:08443/", "url_port_refused"],
  ["an empty port", "https://a.example:/", "url_port_refused"],
  ["a port that is no number", "https://a.example:80a/", "url_host_refused"],
  ["a backslash", "https://a.example\\@b.example/", "url_character_refused"],
  ["a backslash in the path", "https://a.example/a\\b", "url_character_refused"],
  ["a tab", "https://a.exa\tmple/", "url_character_refused"],
  ["a line break", "https://a.example/a\nb", "url_character_refused"],
  ["a line break at the end", "https://a.example/\n", "url_character_refused"],
  ["a blank in front", " https://a.example/", "url_character_refused"],
  ["a blank behind", "https://a.example/ ", "url_character_refused"],
  ["a blank in the path", "https://a.example/a b", "url_character_refused"],
  ["NUL", "https://a.example/\0", "url_character_refused"],
  ["a quote in the query", "https://a.example/a?'", "url_malformed"],
  ["angle brackets", "https://a.example/<a>", "url_character_refused"],
  ["a circumflex", "https://a.example/a^b", "url_character_refused"],
  ["a bar", "https://a.example/a|b", "url_character_refused"],
  ["braces", "https://a.example/{a}", "url_character_refused"],
  ["letters outside ASCII in the path", "https://a.example/é", "url_character_refused"],
  ["a bracket in the path", "https://a.example/a[1]", "url_malformed"],
  ["an encoded dot in the query", "https://a.example/a?b=%2e%2e", "url_dot_segment"],
  ["the default port twice", "https://a.example:443:443/", "url_host_refused"],
  ["the default port with a leading zero", "https://a.example:0443/", "url_port_refused"],
  ["a host that the default port would repair", "https://0x7f.0.0.1:443/", "url_host_refused"],
  ["more than 2 KiB", long(2049), "url_too_long"],
  ["more characters than bytes are allowed", `https://a.example/${"é".repeat(2048)}`, "url_too_long"],
] as const;
for (const [name, url, kind] of refused) {
  test(`a fetched URL is never one with ${name}`, () => {
    assert.deepEqual(parseFetchUrl(url), { ok: false, error: { kind } });
  });
}

test("a fetched URL comes back from the parser as it went in, or not at all", () => {
  const random = prng(3986);
  const pieces = [
    "/",
    ".",
    "..",
    "%2e",
    "%",
    "@",
    ":",
    "?",
    "#",
    "\\",
    "\t",
    "0x7f",
    "[",
    "]",
    "A",
    "é",
    ":443",
    "。",
  ];
  let accepted = 0;
  for (let round = 0; round < 5000; round++) {
    const text = mutate(random, random.pick(plain), pieces);
    const got = parseFetchUrl(text);
    if (!got.ok) continue;
    accepted++;
    const { protocol, username, password, hash, hostname, port, pathname, search } = got.value;
    assert.deepEqual([protocol, username, password, hash], ["https:", "", "", ""], text);
    const again = [port && `:${port}`, ":443"].map((end) => `https://${hostname}${end}${pathname}${search}`);
    assert.ok(again.includes(text) || again.includes(`${text}/`), text);
    assert.doesNotMatch(hostname, /^\.|\.$|\.\./, text);
  }
  assert.ok(accepted > 300, String(accepted));
});

// --- addresses ------------------------------------------------------------------------------------------------------

const open = [
  ...["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0"],
  ...["192.167.255.255", "198.17.255.255", "198.20.0.0", "203.0.114.0", "223.255.255.255", "126.255.255.255"],
  ...["2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "2000::1", "2003::1"],
];
for (const address of open) {
  test(`B8725-3.10-2 connects to ${address}`, () => assert.equal(mayConnect(address, []), true));
}

/** Of each special-purpose block an address at its beginning and one at its end. */
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
  test(`B8725-3.10-2 does not connect to ${name}`, () => {
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
  test(`B8725-3.10-2 does not connect to ${name}, whatever is granted`, () => {
    assert.equal(mayConnect(address, everything), false);
  });
}

const metadata = [
  ...["169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16"],
  ...["169.254.170.2", "169.254.170.23", "169.254.42.42"],
  ...["fd00:ec2::254", "fd00:ec2:0:0:0:0:0:254", "FD00:EC2::254", "fd00:ec2::254%eth0", "fd00:ec2::23"],
  ...["fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200"],
  ...["::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"],
];
for (const address of metadata) {
  test(`B8725-3.10-2 never connects to the metadata address ${address}`, () => {
    assert.equal(mayConnect(address, everything), false);
    assert.equal(mayConnect(address, ["fd00::/8", "100.64.0.0/10", "168.63.0.0/16"]), false);
  });
}

const spellings = [
  ["in octal", "010.0.0.1"],
  ["in octal that is public", "010.8.8.8"],
  ["in hexadecimal", "0x8.8.8.8"],
  ["in one number", "134744072"],
  ["in two parts", "8.8"],
  ["in two parts that are loopback", "127.1"],
  ["with a port", "8.8.8.8:53"],
  ["with a blank", " 8.8.8.8"],
  ["with a zone", "2606:4700::1111%eth0"],
  ["in brackets", "[2606:4700::1111]"],
  ["as a name", "a.example"],
  ["as a network", "8.8.8.8/32"],
  ["as nothing", ""],
] as const;
for (const [name, address] of spellings) {
  test(`B8725-3.10-2 does not connect to an address ${name}`, () => {
    assert.equal(mayConnect(address, everything), false);
  });
}

const grants = [
  ["a private address within the grant", "10.1.2.3", ["10.1.0.0/16"], true],
  ["the first address of the grant", "10.1.0.0", ["10.1.0.0/16"], true],
  ["the last address of the grant", "10.1.255.255", ["10.1.0.0/16"], true],
  ["the address before it", "10.0.255.255", ["10.1.0.0/16"], false],
  ["the address behind it", "10.2.0.0", ["10.1.0.0/16"], false],
  ["the one address of the grant", "192.168.1.5", ["192.168.1.5/32"], true],
  ["its neighbour", "192.168.1.6", ["192.168.1.5/32"], false],
  ["a private address in the second grant", "172.16.0.9", ["10.0.0.0/8", "172.16.0.0/24"], true],
  ["shared address space", "100.64.1.1", ["100.64.0.0/10"], true],
  ["loopback", "127.0.0.1", ["127.0.0.0/8"], true],
  ["IPv6 loopback", "::1", ["::1/128"], true],
  ["IPv6 loopback by the grant of the other family", "::1", ["127.0.0.0/8"], false],
  ["unique local", "fd12::9", ["fd12::/16"], true],
  ["another unique local network", "fd13::9", ["fd12::/16"], false],
  ["unique local by a grant of IPv4", "fd12::9", ["0.0.0.0/0"], false],
  ["private by a grant of IPv6", "10.0.0.1", ["::/0"], false],
  ["what is public anyway", "8.8.8.8", ["10.0.0.0/8"], true],
] as const;
for (const [name, address, networks, want] of grants) {
  test(`a grant ${want ? "opens" : "keeps closed"} ${name}`, () => {
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
  test(`a network in CIDR form ${want ? "is" : "is not"} "${text}"`, () => {
    assert.equal(isNetwork(text), want);
  });
}

const loopbacks = [
  ["127.0.0.0/8", true],
  ["127.0.0.1/32", true],
  ["127.0.0.2/32", true],
  ["127.5.0.0/16", true],
  ["0.0.0.0/0", true],
  ["64.0.0.0/2", true],
  ["::1/128", true],
  ["::/0", true],
  ["10.0.0.0/8", false],
  ["126.0.0.0/8", false],
  ["128.0.0.0/1", false],
  ["fd12::/16", false],
  ["::2/127", false],
] as const;
for (const [network, want] of loopbacks) {
  test(`loopback is ${want ? "" : "not "}open by the grant of ${network}`, () => {
    assert.equal(opensLoopback(network), want);
  });
}
