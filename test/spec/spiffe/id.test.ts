import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isTrustDomainName,
  isWorkloadId,
  matchesPattern,
  parsePattern,
  parseSpiffeId,
  prefixesOver,
} from "../../../src/spec/spiffe/id.ts";
import { mutate, prng } from "../../support/prng.ts";

const longPath = (bytes: number) =>
  `spiffe://td.example/${"a".repeat(bytes - "spiffe://td.example/".length)}`;

const ids = [
  ["SID-2-2 accepts a trust domain alone", "spiffe://td.example", ["td.example", ""]],
  [
    "SID-2.2-4, PROD-2.1-5 accepts a path",
    "spiffe://td.example/ns/shop/sa/cart",
    ["td.example", "/ns/shop/sa/cart"],
  ],
  ["SID-2.2-4 accepts every character of a path", "spiffe://td/AZaz09._-", ["td", "/AZaz09._-"]],
  ["SID-2.1-3 accepts every character of a trust domain", "spiffe://az09._-/a", ["az09._-", "/a"]],
  ["SID-2.1-5 accepts a trust domain that looks like an address", "spiffe://10.0.0.1/a", ["10.0.0.1", "/a"]],
  ["SID-2.2-2 accepts three dots", "spiffe://td.example/.../a", ["td.example", "/.../a"]],
  [
    "SID-2.2-2 accepts a segment that begins with a dot",
    "spiffe://td.example/.a/b..",
    ["td.example", "/.a/b.."],
  ],
  [
    "SID-2.3-1 accepts 2048 bytes",
    longPath(2048),
    ["td.example", longPath(2048).slice("spiffe://td.example".length)],
  ],
  ["SID-2.3-3 accepts a trust domain of 255 bytes", `spiffe://${"a".repeat(255)}/b`, ["a".repeat(255), "/b"]],
] as const;

for (const [name, id, [trustDomain, path]] of ids) {
  test(name, () => assert.deepEqual(parseSpiffeId(id), { ok: true, value: { id, trustDomain, path } }));
}

const refused = [
  ["SID-2-1 refuses another scheme", "https://td.example/a"],
  ["SID-2-1 refuses a missing scheme", "td.example/a"],
  ["SID-2-1 refuses one slash", "spiffe:/td.example/a"],
  ["SID-2-1 refuses a leading blank", " spiffe://td.example/a"],
  ["SID-2.1-2 refuses upper case in the scheme", "SPIFFE://td.example/a"],
  ["SID-2.1-2 refuses upper case in the trust domain", "spiffe://TD.example/a"],
  ["SID-2-2, PROD-2.1-5 refuses an empty trust domain", "spiffe:///a"],
  ["SID-2-2 refuses the scheme alone", "spiffe://"],
  ["SID-2.1-1 refuses userinfo", "spiffe://u@td.example/a"],
  ["SID-2.1-1 refuses a port", "spiffe://td.example:8443/a"],
  ["SID-2.1-1 refuses an IPv6 address", "spiffe://[::1]/a"],
  ["SID-2.1-3 refuses other characters in the trust domain", "spiffe://t~d/a"],
  ["SID-2.1-3 refuses non-ASCII letters", "spiffe://tdé/a"],
  ["SID-2.1-4 refuses an escape in the trust domain", "spiffe://td%2eexample/a"],
  ["SID-2-3 refuses a query", "spiffe://td.example/a?x"],
  ["SID-2-3 refuses a fragment", "spiffe://td.example/a#x"],
  ["SID-2-3 refuses a query without path", "spiffe://td.example?x"],
  ["SID-2.2-1 refuses an escape in the path", "spiffe://td.example/a%2fb"],
  ["SID-2.2-2 refuses an empty segment", "spiffe://td.example//a"],
  ["SID-2.2-2 refuses one dot", "spiffe://td.example/a/./b"],
  ["SID-2.2-2 refuses two dots", "spiffe://td.example/a/../b"],
  ["SID-2.2-2 refuses two dots at the end", "spiffe://td.example/a/.."],
  ["SID-2.2-2 refuses one dot alone", "spiffe://td.example/."],
  ["SID-2.2-3 refuses a trailing slash", "spiffe://td.example/a/"],
  ["SID-2.2-3 refuses a path of one slash", "spiffe://td.example/"],
  ["SID-2.2-4 refuses other characters in the path", "spiffe://td.example/a~b"],
  ["SID-2.2-4 refuses a star", "spiffe://td.example/*"],
  ["SID-2.2-4 refuses a line break at the end", "spiffe://td.example/a\n"],
  ["SID-2.2-4 refuses NUL", "spiffe://td.example/a\0"],
  ["SID-2.3-2 refuses 2049 bytes", longPath(2049)],
  ["SID-2.3-3 refuses a trust domain of 256 bytes", `spiffe://${"a".repeat(256)}/b`],
] as const;

for (const [name, text] of refused) {
  test(name, () =>
    assert.deepEqual(parseSpiffeId(text), { ok: false, error: { kind: "spiffe_id_malformed" } }),
  );
}

const names = [
  ["SID-2.1-3 accepts a trust domain name of every character", "az09._-", true],
  ["SID-2.3-3 accepts a trust domain name of 255 bytes", "a".repeat(255), true],
  ["SID-2.3-3 refuses a trust domain name of 256 bytes", "a".repeat(256), false],
  ["SID-2-2 refuses an empty trust domain name", "", false],
  ["SID-2.1-2 refuses upper case in a trust domain name", "TD.example", false],
  ["SID-2.1-1 refuses a port in a trust domain name", "td.example:1", false],
  ["SID-2-1 refuses a whole ID as trust domain name", "spiffe://td.example", false],
] as const;

for (const [name, text, want] of names) test(name, () => assert.equal(isTrustDomainName(text), want));

test("SID-3.1-1 an ID with a path is a workload's, and one without a path is not", () => {
  const workload = parseSpiffeId("spiffe://td.example/a");
  const domain = parseSpiffeId("spiffe://td.example");
  assert(workload.ok && domain.ok);
  assert.deepEqual([isWorkloadId(workload.value), isWorkloadId(domain.value)], [true, false]);
});

const patterns = [
  ["SID-2.4-1 matches the same ID", "spiffe://td.example/pay", "spiffe://td.example/pay", true],
  ["SID-2.4-1 does not match other capitals", "spiffe://td.example/pay", "spiffe://td.example/Pay", false],
  [
    "SID-2.4-1 does not match a path below an exact ID",
    "spiffe://td.example/pay",
    "spiffe://td.example/pay/a",
    false,
  ],
  ["SID-2.2-4 matches whole segments", "spiffe://td.example/pay/*", "spiffe://td.example/pay/a", true],
  ["SID-2.2-4 matches several segments", "spiffe://td.example/pay/*", "spiffe://td.example/pay/a/b", true],
  [
    "SID-2.2-4 does not match a partial segment",
    "spiffe://td.example/pay/*",
    "spiffe://td.example/payroll",
    false,
  ],
  [
    "SID-2.2-4 does not match the prefix itself",
    "spiffe://td.example/pay/*",
    "spiffe://td.example/pay",
    false,
  ],
  [
    "SID-2.2-4 matches every workload of a trust domain",
    "spiffe://td.example/*",
    "spiffe://td.example/a",
    true,
  ],
  ["SID-3.1-1 does not match the trust domain itself", "spiffe://td.example/*", "spiffe://td.example", false],
  [
    "SID-2.1-3 does not match a longer trust domain",
    "spiffe://td.example/*",
    "spiffe://td.example.org/a",
    false,
  ],
  [
    "SID-2.1-3 does not match a subdomain of the trust domain",
    "spiffe://td.example/*",
    "spiffe://a.td.example/a",
    false,
  ],
] as const;

for (const [name, text, id, want] of patterns) {
  test(name, () => {
    const pattern = parsePattern(text);
    const parsed = parseSpiffeId(id);
    assert(pattern.ok && parsed.ok);
    assert.equal(matchesPattern(pattern.value, parsed.value.id), want);
  });
}

const prefixes = [
  ["spiffe://td.example/ns/a", ["spiffe://td.example/ns/*", "spiffe://td.example/*"]],
  ["spiffe://td.example/a", ["spiffe://td.example/*"]],
  ["spiffe://td.example/ns/*", ["spiffe://td.example/ns/*", "spiffe://td.example/*"]],
  ["spiffe://td.example", []],
] as const;

for (const [id, want] of prefixes) {
  test(`PROD-2.6-2 the prefixes over ${id} are those that match it`, () => {
    assert.deepEqual(prefixesOver(id), want);
    for (const prefix of want) assert(matchesPattern(prefix, id));
  });
}

const malformed = [
  ["SID-3.1-1 refuses a trust domain as pattern", "spiffe://td.example"],
  ["SID-2.2-4 refuses a star inside the path", "spiffe://td.example/*/a"],
  ["SID-2.2-4 refuses a star in a segment", "spiffe://td.example/pay*"],
  ["SID-2.2-4 refuses two stars", "spiffe://td.example/*/*"],
  ["SID-2.2-3 refuses an empty segment before the star", "spiffe://td.example//*"],
  ["SID-2-2 refuses a pattern without a trust domain", "spiffe:///*"],
  ["SID-2-2 refuses a star for the trust domain", "spiffe://*/a"],
  ["SID-2-1 refuses a star alone", "*"],
] as const;

for (const [name, text] of malformed) {
  test(name, () =>
    assert.deepEqual(parsePattern(text), { ok: false, error: { kind: "spiffe_pattern_malformed" } }),
  );
}

const SEED = 20261121;
const ROUNDS = 10_000;
const NOISE = [..."aZ09._-/:@?#%*~ \n\0é", "//", "..", "/.", "/..", "a".repeat(250), "b".repeat(1100)];

/** An independent reference: shape, then segments, then length. */
function reference(text: string): boolean {
  if (!/^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/[A-Za-z0-9._-]+)*$/.test(text)) return false;
  return (
    !text
      .slice("spiffe://".length)
      .split("/")
      .slice(1)
      .some((segment) => segment === "." || segment === "..") && Buffer.byteLength(text) <= 2048
  );
}

test("SID-2.2-4 on random text the result is that of the reference", () => {
  const random = prng(SEED);
  const seen = { true: 0, false: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const text = mutate(
      random,
      random.pick(["spiffe://td.example/ns/shop", "spiffe://td", "spiffe://a/b/c/d"]),
      NOISE,
    );
    const want = reference(text);
    assert.equal(parseSpiffeId(text).ok, want, `seed ${SEED}, round ${round}: ${JSON.stringify(text)}`);
    seen[`${want}`]++;
  }
  assert(seen.true > 100 && seen.false > 100);
});
