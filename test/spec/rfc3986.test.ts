import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFetchUrl } from "../../src/spec/rfc3986.ts";
import { mutate, prng } from "../support/prng.ts";

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
  test(`${url} is accepted as a URL to fetch`, () => {
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
  test(`CIMD-3-3, CIMD-3-8 the explicit default port of ${url} is accepted`, () => {
    const got = parseFetchUrl(url);
    assert.deepEqual(got.ok ? [got.value.href, got.value.port] : got.error, [href, ""]);
  });
}

const long = (bytes: number) => `https://a.example/${"a".repeat(bytes - "https://a.example/".length)}`;

test("a URL of 2 KiB is accepted", () => assert.ok(parseFetchUrl(long(2048)).ok));

const refused = [
  ["an empty string", "", "url_not_https"],
  ["plain http", "http://a.example/", "url_not_https"],
  ["another scheme", "file:///etc/passwd", "url_not_https"],
  ["an upper-case scheme", "HTTPS://a.example/", "url_not_https"],
  ["a missing scheme", "a.example/", "url_not_https"],
  ["one slash", "https:/a.example/", "url_not_https"],
  ["three slashes", "https:///a.example/", "url_host_refused"],
  ["a missing host", "https:///", "url_host_refused"],
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
  ["an escape of a dot in upper case", "https://a.example/a/%2E/b", "url_dot_segment"],
  ["an encoded dot in a name", "https://a.example/a%2eb", "url_dot_segment"],
  ["two dots of which one is encoded", "https://a.example/a/.%2e/b", "url_dot_segment"],
  ["an incomplete escape", "https://a.example/a%2", "url_malformed"],
  ["an escape that is not hexadecimal", "https://a.example/a%zz", "url_malformed"],
  ["an incomplete escape in the query", "https://a.example/a?b=%", "url_malformed"],
  ["a host in upper case", "https://A.example/", "url_host_refused"],
  ["a host with a non-ASCII letter", "https://bücher.example/", "url_character_refused"],
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
  ["an address written as one hexadecimal number", "https://0x7f000001/", "url_host_refused"],
  ["an address written as one number", "https://2130706433/", "url_host_refused"],
  ["an address of two parts", "https://127.1/", "url_host_refused"],
  ["an address of three parts", "https://127.0.1/", "url_host_refused"],
  ["an address that overflows", "https://127.0.0.256/", "url_host_refused"],
  ["an address with leading zeros", "https://127.000.000.001/", "url_host_refused"],
  ["an uncompressed IPv6 address", "https://[0:0:0:0:0:0:0:1]/", "url_host_refused"],
  ["an IPv6 address with zeros", "https://[2606:4700::0001]/", "url_host_refused"],
  ["an IPv6 address in upper case", "https://[2606:4700::ABCD]/", "url_host_refused"],
  ["an IPv4-mapped address in dotted form", "https://[::ffff:127.0.0.1]/", "url_host_refused"],
  ["an IPv6 address with a zone", "https://[fe80::1%25eth0]/", "url_host_refused"],
  ["an IPv6 address without brackets", "https://2606:4700::1111/", "url_host_refused"],
  ["an unclosed bracket", "https://[::1/", "url_host_refused"],
  ["port 0", "https://a.example:0/", "url_port_refused"],
  ["port 65536", "https://a.example:65536/", "url_port_refused"],
  ["a port of six digits", "https://a.example:100000/", "url_port_refused"],
  ["a port with leading zeros", "https://a.example:08443/", "url_port_refused"],
  ["an empty port", "https://a.example:/", "url_port_refused"],
  ["a port that is not a number", "https://a.example:80a/", "url_host_refused"],
  ["a backslash", "https://a.example\\@b.example/", "url_character_refused"],
  ["a backslash in the path", "https://a.example/a\\b", "url_character_refused"],
  ["a tab", "https://a.exa\tmple/", "url_character_refused"],
  ["a line break", "https://a.example/a\nb", "url_character_refused"],
  ["a line break at the end", "https://a.example/\n", "url_character_refused"],
  ["a leading blank", " https://a.example/", "url_character_refused"],
  ["a trailing blank", "https://a.example/ ", "url_character_refused"],
  ["a blank in the path", "https://a.example/a b", "url_character_refused"],
  ["NUL", "https://a.example/\0", "url_character_refused"],
  ["a quote in the query", "https://a.example/a?'", "url_malformed"],
  ["angle brackets", "https://a.example/<a>", "url_character_refused"],
  ["a circumflex", "https://a.example/a^b", "url_character_refused"],
  ["a vertical bar", "https://a.example/a|b", "url_character_refused"],
  ["braces", "https://a.example/{a}", "url_character_refused"],
  ["a non-ASCII letter in the path", "https://a.example/é", "url_character_refused"],
  ["a bracket in the path", "https://a.example/a[1]", "url_malformed"],
  ["an encoded dot in the query", "https://a.example/a?b=%2e%2e", "url_dot_segment"],
  ["the default port twice", "https://a.example:443:443/", "url_host_refused"],
  ["the default port with a leading zero", "https://a.example:0443/", "url_port_refused"],
  ["a hexadecimal address with the default port", "https://0x7f.0.0.1:443/", "url_host_refused"],
  ["more than 2 KiB", long(2049), "url_too_long"],
  ["non-ASCII characters beyond 2 KiB", `https://a.example/${"é".repeat(2048)}`, "url_too_long"],
] as const;
for (const [name, url, kind] of refused) {
  test(`a URL to fetch is refused: ${name}`, () => {
    assert.deepEqual(parseFetchUrl(url), { ok: false, error: { kind } });
  });
}

test("parseFetchUrl returns random text unchanged or refuses it", () => {
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
