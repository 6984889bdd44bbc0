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
  ["RFC8693-2.1-5, RFC8707-2-1 accepts a request without target", [], [], undefined],
  ["RFC8693-2.1-10 accepts an audience that is a name", [], ["trips"], "trips"],
  ["PROD-4.1-16 accepts an audience that is a URL", [], ["https://api.example"], "https://api.example"],
  ["RFC8707-2-2 accepts an absolute URI", ["https://api.example"], [], "https://api.example"],
  ["RFC8707-2-2 accepts a URI of another scheme", ["urn:example:api"], [], "urn:example:api"],
  [
    "RFC8707-2-2 accepts every character of a URI",
    ["x+y-z.1:/?[]@!$&'()*+,;=-._~%41"],
    [],
    "x+y-z.1:/?[]@!$&'()*+,;=-._~%41",
  ],
  ["RFC8707-2-2, RFC8693-2.1-6 refuses a path", ["/api"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a bare host", ["api.example"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses an audience name as resource", ["trips"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a scheme alone", ["https:"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a scheme that begins with a digit", ["1a:b"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a blank", ["https://api.example/a b"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a line break at the end", ["https://api.example\n"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a control character", ["https://api.example/\u0001"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses non-ASCII letters", ["https://api.example/é"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a backslash", ["https://api.example\\a"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses quotes", ['https://api.example/"'], [], "resource_malformed"],
  ["RFC8707-2-2 refuses a lone percent sign", ["https://api.example/%4"], [], "resource_malformed"],
  ["RFC8707-2-2 refuses userinfo", ["https://api.example@other.example"], [], "resource_malformed"],
  ["RFC8707-2-2 accepts an at sign in the path", ["https://api.example/@me"], [], "https://api.example/@me"],
  [
    "RFC8707-2-2 refuses two resources of which one is malformed",
    ["https://api.example", "api"],
    [],
    "resource_malformed",
  ],
  ["RFC8707-2-3, RFC8693-2.1-8 refuses a fragment", ["https://api.example#a"], [], "resource_malformed"],
  ["RFC8707-2-3 refuses an empty fragment", ["https://api.example#"], [], "resource_malformed"],
  [
    "RFC8693-2.1-7 keeps the query",
    ["https://api.example/v2?tenant=1"],
    [],
    "https://api.example/v2?tenant=1",
  ],
  [
    "RFC8707-2-5 accepts the same resource twice",
    ["https://api.example", "https://api.example"],
    [],
    "https://api.example",
  ],
  [
    "RFC8693-2.1-9 accepts two names of one target",
    ["https://api.example", "https://api.example/v2?tenant=1"],
    [],
    "https://api.example",
  ],
  [
    "RFC8693-2.1-12 accepts an audience and a resource of one target",
    ["https://api.example"],
    ["trips"],
    "trips",
  ],
  [
    "RFC8693-2.1.1-2, RFC8707-3-2 refuses two resources",
    ["https://api.example", "https://other.example"],
    [],
    "targets_several",
  ],
  [
    "RFC8693-2.1.1-2 refuses audience and resource that disagree",
    ["https://other.example"],
    ["trips"],
    "targets_several",
  ],
  [
    "RFC8693-2.1.1-2 refuses a known target beside an unknown one",
    [],
    ["trips", "nowhere"],
    "targets_several",
  ],
  [
    "RFC8693-2.1.1-2 refuses an unknown target beside a known one",
    [],
    ["nowhere", "trips"],
    "targets_several",
  ],
  ["RFC8707-2-8 returns an unknown name, which the caller refuses", [], ["nowhere"], "nowhere"],
  ["RFC8707-2-2 accepts 2 KiB", [long(2048)], [], long(2048)],
  ["RFC8707-2-2 refuses more than 2 KiB", [long(2049)], [], "target_malformed"],
  ["RFC8693-2.1-10 refuses an audience of more than 2 KiB", [], ["a".repeat(2049)], "target_malformed"],
  ["RFC8693-2.1-10 measures an audience in bytes", [], ["é".repeat(1025)], "target_malformed"],
];

for (const [name, resource, audience, want] of cases) {
  test(name, () => {
    const got = requestedTarget(resource, audience, registry);
    assert.equal(got.ok ? got.value : got.error.kind, want);
  });
}
