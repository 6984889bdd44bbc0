import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPrivateUse, isAccepted, readRedirectUri } from "../../src/spec/rfc8252.ts";
import { mutate, prng } from "../support/prng.ts";

const verdict = (uri: string): string => {
  const got = readRedirectUri(uri);
  return got.ok ? "ok" : got.error.kind;
};

const accepted = [
  ["RFC7591-5-3", "an https site", "https://app.example/cb"],
  ["RFC7591-5-3", "a bare path", "https://app.example/"],
  ["RFC7591-5-3", "a port", "https://app.example:8443/cb"],
  ["RFC7591-5-3", "an explicit default port", "https://app.example:443/cb"],
  ["RFC6749-3.1.2-1", "a query", "https://app.example/cb?tenant=a%20b"],
  ["RFC7591-5-3", "a name in its ASCII form", "https://xn--bcher-kva.example/cb"],
  ["RFC7591-5-3", "an https site at an address", "https://192.0.2.7/cb"],
  ["RFC7591-5-3", "http to 127.0.0.1", "http://127.0.0.1/cb"],
  ["RFC7591-5-3", "http to 127.0.0.1 at a port", "http://127.0.0.1:51004/cb"],
  ["RFC7591-5-3", "http to port 443 of 127.0.0.1", "http://127.0.0.1:443/cb"],
  ["RFC7591-5-3", "http to port 80 of 127.0.0.1", "http://127.0.0.1:80/cb"],
  ["RFC7591-5-3", "http to [::1]", "http://[::1]:51004/cb?a=b"],
  ["RFC8252-8.4-3", "a private-use scheme", "com.example.app:/oauth2redirect/example-provider"],
  ["RFC8252-8.4-3", "a private-use scheme with the path /", "com.example.app:/"],
  ["RFC8252-8.4-3", "a private-use scheme with a query", "com.example-2.app+b:/cb?a=b/?c"],
  ["MCPC-D-4", "a private-use scheme with an authority", "com.example.app://cb"],
  ["MCPC-D-4", "a private-use scheme without a period", "cursor://anysphere.cursor-mcp/oauth/callback"],
  ["MCPC-D-1", "localhost", "http://localhost/cb"],
  ["MCPC-D-1", "localhost at a port", "http://localhost:51004/cb"],
  ["MCPC-D-1", "loopback with an empty path", "http://127.0.0.1:51004"],
  ["MCPC-D-1", "localhost with an empty path", "http://localhost"],
] as const;
for (const [ids, what, uri] of accepted) {
  test(`${ids} ${what} is accepted`, () => assert.equal(verdict(uri), "ok"));
}

// --- what of that the operator accepts ------------------------------------------------------------------------

const CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback";
const rules = { localhost: "any-port", privateUse: [CURSOR] } as const;
const chosen = [
  ["MCPC-D-3, RFC8252-8.4-3", "the URI of an app that the operator lists", CURSOR, rules, true],
  ["MCPC-D-3", "another path of that app", `${CURSOR}/x`, rules, false],
  ["MCPC-D-3, RFC8252-8.4-3", "the URI of an app that is not listed", "com.example.app:/cb", rules, false],
  [
    "MCPC-D-3",
    "a script, even if it is listed",
    "javascript:/a",
    { ...rules, privateUse: ["javascript:/a"] },
    false,
  ],
  ["MCPC-D-1", "localhost", "http://localhost/cb", rules, true],
  [
    "MCPC-D-1, RFC8252-8.3-1",
    "localhost where it is off",
    "http://localhost/cb",
    { ...rules, localhost: "off" },
    false,
  ],
  [
    "MCPC-D-1",
    "a loopback address where localhost is off",
    "http://127.0.0.1/cb",
    { ...rules, localhost: "off" },
    true,
  ],
  ["MCPC-D-5", "a site", "https://app.example/cb", rules, true],
] as const;
for (const [ids, what, uri, under, want] of chosen) {
  test(`${ids} ${what} is ${want ? "taken" : "refused"}`, () => assert.equal(isAccepted(uri, under), want));
}

const listable = [
  ["com.example.app:/cb", { shared: false }],
  ["com.example.app://host/cb", { shared: false }],
  [CURSOR, { shared: true }],
  ["com.example.app://cb", "redirect_uri_incomplete"],
  ["com.example.app:///cb", { shared: false }],
  ["https://app.example/cb", "redirect_uri_not_private_use"],
  ["http://localhost/cb", "redirect_uri_not_private_use"],
  ["javascript:/a", "redirect_uri_not_private_use"],
] as const;
for (const [uri, want] of listable) {
  test(`MCPC-D-3, RFC8252-8.4-2, RFC8252-8.4-3 an operator lists ${uri}: ${JSON.stringify(want)}`, () => {
    const got = checkPrivateUse(uri);
    assert.deepEqual(got.ok ? got.value : got.error.kind, want);
  });
}

const malformed = "redirect_uri_malformed";
const fragment = "redirect_uri_fragment";
const wildcard = "redirect_uri_wildcard";
const userinfo = "redirect_uri_userinfo";
const dots = "redirect_uri_dot_segment";
const incomplete = "redirect_uri_incomplete";
const elsewhere = "redirect_uri_not_loopback";
const scheme = "redirect_uri_scheme";

const refused = [
  ["RFC6749-3.1.2-1", "a fragment", "https://app.example/cb#a", fragment],
  ["RFC6749-3.1.2-1", "an empty fragment", "https://app.example/cb#", fragment],
  ["RFC6749-3.1.2-1", "a fragment with a private-use scheme", "com.example.app:/cb#a", fragment],
  ["RFC6749-3.1.2-1", "a fragment directly after the host", "https://app.example#@evil.example/", fragment],
  ["RFC8252-8.4-2", "a wildcard in the path", "https://app.example/*", wildcard],
  ["RFC8252-8.4-2", "a wildcard in the host", "https://*.app.example/cb", wildcard],
  ["RFC8252-8.4-2", "a wildcard for the port", "http://127.0.0.1:*/cb", wildcard],
  ["RFC8252-8.4-2", "a wildcard in the query", "https://app.example/cb?*", wildcard],
  ["RFC8252-8.4-2", "a site without a path", "https://app.example", incomplete],
  ["RFC8252-8.4-2", "a query without a path", "https://app.example?a=b/c", incomplete],
  ["RFC8252-8.4-2", "a private-use scheme alone", "com.example.app:", incomplete],
  ["RFC8252-8.4-2", "a private-use scheme without a slash", "com.example.app:cb", incomplete],
  ["RFC8252-8.4-2", "an empty query", "com.example.app:/cb?", malformed],
  ["RFC8252-8.4-2", "an incomplete escape", "com.example.app:/cb%4", malformed],
  ["RFC8252-8.4-2", "dot segments", "https://app.example/cb/../admin", dots],
  ["RFC8252-8.4-2", "a dot segment at the end", "https://app.example/cb/.", dots],
  ["RFC8252-8.4-2", "encoded dot segments", "https://app.example/cb/%2e%2E/admin", dots],
  ["RFC8252-8.4-2", "dot segments on loopback", "http://127.0.0.1/../cb", dots],
  ["RFC8252-8.4-2", "dot segments with a private-use scheme", "com.example.app:/cb/../admin", dots],
  ["RFC8252-8.4-2", "encoded dot segments with a private-use scheme", "com.example.app:/cb/%2e./admin", dots],
  ["RFC7591-5-3", "userinfo", "https://app.example@evil.example/cb", userinfo],
  ["RFC7591-5-3", "a name and password", "https://a:b@app.example/cb", userinfo],
  ["RFC7591-5-3", "an empty userinfo", "https://@app.example/cb", userinfo],
  ["RFC7591-5-3", "a loopback address as userinfo", "http://127.0.0.1@evil.example/cb", userinfo],
  [
    "RFC7591-5-3, RFC9700-2.6-5, RFC6749-10.8-2",
    "http to a host that is not loopback",
    "http://app.example/cb",
    elsewhere,
  ],
  ["MCPC-D-1, RFC8252-8.3-1", "a name that ends in localhost", "http://evil.localhost/cb", elsewhere],
  ["MCPC-D-1, RFC8252-8.3-1", "localhost with a trailing dot", "http://localhost./cb", malformed],
  ["RFC7591-5-3", "a name that begins with localhost", "http://localhost.evil.example/cb", elsewhere],
  ["RFC7591-5-3", "a name that begins with 127.0.0.1", "http://127.0.0.1.evil.example/cb", elsewhere],
  ["RFC7591-5-3", "another loopback address", "http://127.0.0.2/cb", elsewhere],
  ["RFC7591-5-3", "a private address", "http://10.0.0.1/cb", elsewhere],
  ["RFC7591-5-3", "the unspecified address", "http://0.0.0.0/cb", elsewhere],
  ["RFC7591-5-3", "a mapped loopback address", "http://[::ffff:7f00:1]/cb", elsewhere],
  ["RFC7591-5-3", "loopback as one number", "http://2130706433/cb", malformed],
  ["RFC7591-5-3", "loopback in two parts", "http://127.1/cb", malformed],
  ["RFC7591-5-3", "loopback in octal", "http://0177.0.0.1/cb", malformed],
  ["RFC7591-5-3", "loopback in hexadecimal", "http://0x7f.0.0.1/cb", malformed],
  ["RFC7591-5-3", "loopback in uncompressed IPv6", "http://[0:0:0:0:0:0:0:1]/cb", malformed],
  ["RFC7591-5-3", "loopback with a trailing dot", "http://127.0.0.1./cb", malformed],
  ["RFC7591-5-3", "port 0", "http://127.0.0.1:0/cb", malformed],
  ["RFC7591-5-3", "port 65536", "https://app.example:65536/cb", malformed],
  ["RFC7591-5-3", "a backslash", "https://app.example\\@evil.example/cb", malformed],
  ["RFC7591-5-3", "backslashes instead of slashes", "https:\\\\app.example\\cb", malformed],
  ["RFC7591-5-3", "one slash", "https:/app.example/cb", malformed],
  ["RFC7591-5-3", "three slashes", "https:///app.example/cb", malformed],
  ["RFC7591-5-3", "an empty host", "https:///cb", malformed],
  ["RFC7591-5-3", "a host in capitals", "https://App.example/cb", malformed],
  ["RFC7591-5-3", "a host with look-alike letters", "https://аpp.example/cb", malformed],
  ["RFC7591-5-3", "full-width dots", "https://app．example/cb", malformed],
  ["RFC7591-5-3", "non-ASCII letters in the path", "https://app.example/é", malformed],
  ["RFC7591-5-3", "a blank", "https://app.example/c b", malformed],
  ["RFC7591-5-3", "a leading blank", " https://app.example/cb", malformed],
  ["RFC7591-5-3", "a tab in the scheme", "java\tscript:alert(1)", malformed],
  ["RFC7591-5-3", "a line break", "https://app.example/cb\r\nLocation: x", malformed],
  ["RFC7591-5-3", "a line break at the end", "https://app.example/cb\n", malformed],
  ["RFC7591-5-3", "NUL", "https://app.example/cb\0", malformed],
  ["RFC7591-5-3", "a relative reference", "/cb", malformed],
  ["RFC7591-5-3", "a missing scheme", "app.example/cb", malformed],
  ["RFC7591-5-3", "two slashes without a scheme", "//app.example/cb", malformed],
  ["RFC7591-5-3", "an empty string", "", malformed],
  ["RFC7591-5-3", "a scheme that begins with a digit", "1com.example:/cb", malformed],
  ["MCPC-D-4, RFC8252-8.4-3", "javascript", "javascript:alert(1)", scheme],
  ["RFC8252-8.4-3", "javascript with a host", "javascript://app.example/%0aalert(1)", scheme],
  ["MCPC-D-4, RFC8252-8.4-3", "data", "data:text/html,a", scheme],
  ["MCPC-D-4, RFC8252-8.4-3", "file", "file:///etc/passwd", scheme],
  ["RFC8252-8.4-3", "vbscript", "vbscript:a", scheme],
  ["RFC8252-8.4-3", "blob", "blob:https://app.example/a", scheme],
  ["RFC8252-8.4-3", "ftp", "ftp://app.example/cb", scheme],
  ["RFC8252-8.4-3", "a URN", "urn:ietf:wg:oauth:2.0:oob", incomplete],
  ["RFC8252-8.4-3", "a period at the end", "myapp.:/cb", scheme],
  ["RFC8252-8.4-3", "two periods together", "com..app:/cb", scheme],
  ["RFC8252-8.4-3", "a private-use scheme in capitals", "com.Example.app:/cb", scheme],
  ["RFC8252-8.4-3", "https in capitals", "HTTPS://app.example/cb", scheme],
  ["RFC8252-8.4-3", "a host and port without a scheme", "localhost:51004/cb", incomplete],
] as const;
for (const [ids, what, uri, want] of refused) {
  test(`${ids} ${what} is refused`, () => assert.equal(verdict(uri), want));
}

test("RFC7591-5-3 2048 characters are accepted, and 2049 refused", () => {
  for (const start of ["https://app.example/", "com.example.app:/"]) {
    assert.equal(verdict(start.padEnd(2048, "a")), "ok");
    assert.equal(verdict(start.padEnd(2049, "a")), malformed);
  }
});

test("RFC7591-5-3 exactly the allowed characters are accepted in path and query", () => {
  const plain = /[A-Za-z0-9._~!$&'()+,;=:@/-]/;
  for (const start of ["https://app.example/a", "http://127.0.0.1/a", "com.example.app:/a"]) {
    for (let code = 0; code < 0x180; code++) {
      const character = String.fromCharCode(code);
      const place = JSON.stringify(`${start}${character}`);
      assert.equal(
        verdict(`${start}${character}b`) === "ok",
        plain.test(character) || character === "?",
        place,
      );
      // A URL parser encodes a single quote in the query of an http or https URL.
      const encoded = character === "'" && start.startsWith("http");
      const query = (plain.test(character) || character === "?") && !encoded;
      assert.equal(verdict(`${start}?b${character}c`) === "ok", query, `query of ${place}`);
    }
  }
});

test("RFC7591-5-3 never throws on random text, and accepts http only to loopback", () => {
  const random = prng(8252);
  const pieces = [
    "/",
    "//",
    ".",
    "..",
    "%2e",
    "@",
    ":",
    "#",
    "*",
    "\\",
    "\t",
    "A",
    "é",
    "0x7f",
    "[",
    "]",
    "localhost",
  ];
  const plain = accepted.map(([, , uri]) => uri);
  let seen = 0;
  for (let round = 0; round < 5000; round++) {
    const uri = mutate(random, random.pick(plain), pieces);
    if (verdict(uri) !== "ok") continue;
    seen++;
    const { protocol, hostname, username, password, hash } = new URL(uri);
    assert.equal(hash, "", uri);
    if (/^https?:/.test(protocol)) assert.deepEqual([username, password], ["", ""], uri);
    if (protocol === "http:") assert.match(hostname, /^(127\.0\.0\.1|\[::1\]|localhost)$/, uri);
  }
  assert.ok(seen > 300, String(seen));
});
