import assert from "node:assert/strict";
import { test } from "node:test";
import { requestedTarget } from "../../src/spec/rfc8707.ts";

const api = {};
const registry = {
  targets: new Map([
    ["https://api.example", api],
    ["https://api.example/v2?tenant=1", api],
    ["trips", api],
    ["https://other.example", {}],
  ]),
};
const long = (bytes: number): string => `https://api.example/${"a".repeat(bytes - 20)}`;

const cases: [string, string[], string[], string | undefined][] = [
  ["RFC8693-2.1-5, RFC8707-2-1 a request without target is accepted", [], [], undefined],
  ["RFC8693-2.1-10 an audience that is a name is accepted", [], ["trips"], "trips"],
  ["PROD-4.1-16 an audience that is a URL is accepted", [], ["https://api.example"], "https://api.example"],
  ["RFC8707-2-2 an absolute URI is accepted", ["https://api.example"], [], "https://api.example"],
  ["RFC8707-2-2 a URI of another scheme is accepted", ["urn:example:api"], [], "urn:example:api"],
  [
    "RFC8707-2-2 every character of a URI is accepted",
    ["x+y-z.1:/?[]@!$&'()*+,;=-._~%41"],
    [],
    "x+y-z.1:/?[]@!$&'()*+,;=-._~%41",
  ],
  ["RFC8707-2-2, RFC8693-2.1-6 a path is refused", ["/api"], [], "resource_malformed"],
  ["RFC8707-2-2 a bare host is refused", ["api.example"], [], "resource_malformed"],
  ["RFC8707-2-2 an audience name as resource is refused", ["trips"], [], "resource_malformed"],
  ["RFC8707-2-2 a scheme alone is refused", ["https:"], [], "resource_malformed"],
  ["RFC8707-2-2 a scheme that begins with a digit is refused", ["1a:b"], [], "resource_malformed"],
  ["RFC8707-2-2 a blank is refused", ["https://api.example/a b"], [], "resource_malformed"],
  ["RFC8707-2-2 a line break at the end is refused", ["https://api.example\n"], [], "resource_malformed"],
  ["RFC8707-2-2 a control character is refused", ["https://api.example/\u0001"], [], "resource_malformed"],
  ["RFC8707-2-2 non-ASCII letters are refused", ["https://api.example/é"], [], "resource_malformed"],
  ["RFC8707-2-2 a backslash is refused", ["https://api.example\\a"], [], "resource_malformed"],
  ["RFC8707-2-2 quotes are refused", ['https://api.example/"'], [], "resource_malformed"],
  ["RFC8707-2-2 a lone percent sign is refused", ["https://api.example/%4"], [], "resource_malformed"],
  ["RFC8707-2-2 userinfo is refused", ["https://api.example@other.example"], [], "resource_malformed"],
  [
    "RFC8707-2-2 an at sign in the path is accepted",
    ["https://api.example/@me"],
    [],
    "https://api.example/@me",
  ],
  [
    "RFC8707-2-2 two resources of which one is malformed are refused",
    ["https://api.example", "api"],
    [],
    "resource_malformed",
  ],
  ["RFC8707-2-3, RFC8693-2.1-8 a fragment is refused", ["https://api.example#a"], [], "resource_malformed"],
  ["RFC8707-2-3 an empty fragment is refused", ["https://api.example#"], [], "resource_malformed"],
  [
    "RFC8693-2.1-7 the query is kept",
    ["https://api.example/v2?tenant=1"],
    [],
    "https://api.example/v2?tenant=1",
  ],
  ["MCP-O.8.1-1 scheme and host in capitals", ["HTTPS://Api.EXAMPLE/"], [], "https://api.example"],
  [
    "MCP-O.8.1-1 scheme and host in capitals before a path",
    ["HTTPS://API.example/v2?tenant=1"],
    [],
    "https://api.example/v2?tenant=1",
  ],
  [
    "MCP-O.8.1-1 no path in capitals",
    ["https://api.example/V2?tenant=1"],
    [],
    "https://api.example/V2?tenant=1",
  ],
  ["MCP-O.8.1-1 no other scheme in capitals", ["URN:trips"], [], "URN:trips"],
  ["MCP-O.8.1-1 no audience in capitals", [], ["https://API.example"], "https://API.example"],
  [
    "RFC8707-2-5 the same resource twice is accepted",
    ["https://api.example", "https://api.example"],
    [],
    "https://api.example",
  ],
  [
    "RFC8693-2.1-9 two names of one target are accepted",
    ["https://api.example", "https://api.example/v2?tenant=1"],
    [],
    "https://api.example",
  ],
  [
    "RFC8693-2.1-12 an audience and a resource of one target are accepted",
    ["https://api.example"],
    ["trips"],
    "trips",
  ],
  [
    "RFC8693-2.1.1-2, RFC8707-3-2 two resources are refused",
    ["https://api.example", "https://other.example"],
    [],
    "targets_several",
  ],
  [
    "RFC8693-2.1.1-2 audience and resource that disagree are refused",
    ["https://other.example"],
    ["trips"],
    "targets_several",
  ],
  [
    "RFC8693-2.1.1-2 a known target beside an unknown one is refused",
    [],
    ["trips", "nowhere"],
    "targets_several",
  ],
  [
    "RFC8693-2.1.1-2 an unknown target beside a known one is refused",
    [],
    ["nowhere", "trips"],
    "targets_several",
  ],
  ["RFC8707-2-8 an unknown name is returned, which the caller refuses", [], ["nowhere"], "nowhere"],
  ["RFC8707-2-2 2 KiB is accepted", [long(2048)], [], long(2048)],
  ["RFC8707-2-2 more than 2 KiB is refused", [long(2049)], [], "target_malformed"],
  ["RFC8693-2.1-10 an audience of more than 2 KiB is refused", [], ["a".repeat(2049)], "target_malformed"],
  ["RFC8693-2.1-10 an audience is measured in bytes", [], ["é".repeat(1025)], "target_malformed"],
];

for (const [name, resource, audience, want] of cases) {
  test(name, () => {
    const got = requestedTarget(resource, audience, registry);
    assert.equal(got.ok ? got.value : got.error.kind, want);
  });
}
