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
  ["SID-2-2 a trust domain alone is accepted", "spiffe://td.example", ["td.example", ""]],
  [
    "SID-2.2-4, PROD-2.1-5 a path is accepted",
    "spiffe://td.example/ns/shop/sa/cart",
    ["td.example", "/ns/shop/sa/cart"],
  ],
  ["SID-2.2-4 every character of a path is accepted", "spiffe://td/AZaz09._-", ["td", "/AZaz09._-"]],
  ["SID-2.1-3 every character of a trust domain is accepted", "spiffe://az09._-/a", ["az09._-", "/a"]],
  [
    "SID-2.1-5 a trust domain that looks like an address is accepted",
    "spiffe://10.0.0.1/a",
    ["10.0.0.1", "/a"],
  ],
  ["SID-2.2-2 three dots are accepted", "spiffe://td.example/.../a", ["td.example", "/.../a"]],
  [
    "SID-2.2-2 a segment that begins with a dot is accepted",
    "spiffe://td.example/.a/b..",
    ["td.example", "/.a/b.."],
  ],
  [
    "SID-2.3-1 2048 bytes are accepted",
    longPath(2048),
    ["td.example", longPath(2048).slice("spiffe://td.example".length)],
  ],
  [
    "SID-2.3-3 a trust domain of 255 bytes is accepted",
    `spiffe://${"a".repeat(255)}/b`,
    ["a".repeat(255), "/b"],
  ],
] as const;

for (const [name, id, [trustDomain, path]] of ids) {
  test(name, () => assert.deepEqual(parseSpiffeId(id), { ok: true, value: { id, trustDomain, path } }));
}

const refused = [
  ["SID-2-1 another scheme is refused", "https://td.example/a"],
  ["SID-2-1 a missing scheme is refused", "td.example/a"],
  ["SID-2-1 one slash is refused", "spiffe:/td.example/a"],
  ["SID-2-1 a leading blank is refused", " spiffe://td.example/a"],
  ["SID-2.1-2 upper case in the scheme is refused", "SPIFFE://td.example/a"],
  ["SID-2.1-2 upper case in the trust domain is refused", "spiffe://TD.example/a"],
  ["SID-2-2, PROD-2.1-5 an empty trust domain is refused", "spiffe:///a"],
  ["SID-2-2 the scheme alone is refused", "spiffe://"],
  ["SID-2.1-1 userinfo is refused", "spiffe://u@td.example/a"],
  ["SID-2.1-1 a port is refused", "spiffe://td.example:8443/a"],
  ["SID-2.1-1 an IPv6 address is refused", "spiffe://[::1]/a"],
  ["SID-2.1-3 other characters in the trust domain are refused", "spiffe://t~d/a"],
  ["SID-2.1-3 non-ASCII letters are refused", "spiffe://tdé/a"],
  ["SID-2.1-4 an escape in the trust domain is refused", "spiffe://td%2eexample/a"],
  ["SID-2-3 a query is refused", "spiffe://td.example/a?x"],
  ["SID-2-3 a fragment is refused", "spiffe://td.example/a#x"],
  ["SID-2-3 a query without path is refused", "spiffe://td.example?x"],
  ["SID-2.2-1 an escape in the path is refused", "spiffe://td.example/a%2fb"],
  ["SID-2.2-2 an empty segment is refused", "spiffe://td.example//a"],
  ["SID-2.2-2 one dot is refused", "spiffe://td.example/a/./b"],
  ["SID-2.2-2 two dots are refused", "spiffe://td.example/a/../b"],
  ["SID-2.2-2 two dots at the end are refused", "spiffe://td.example/a/.."],
  ["SID-2.2-2 one dot alone is refused", "spiffe://td.example/."],
  ["SID-2.2-3 a trailing slash is refused", "spiffe://td.example/a/"],
  ["SID-2.2-3 a path of one slash is refused", "spiffe://td.example/"],
  ["SID-2.2-4 other characters in the path are refused", "spiffe://td.example/a~b"],
  ["SID-2.2-4 a star is refused", "spiffe://td.example/*"],
  ["SID-2.2-4 a line break at the end is refused", "spiffe://td.example/a\n"],
  ["SID-2.2-4 NUL is refused", "spiffe://td.example/a\0"],
  ["SID-2.3-2 2049 bytes are refused", longPath(2049)],
  ["SID-2.3-3 a trust domain of 256 bytes is refused", `spiffe://${"a".repeat(256)}/b`],
] as const;

for (const [name, text] of refused) {
  test(name, () =>
    assert.deepEqual(parseSpiffeId(text), { ok: false, error: { kind: "spiffe_id_malformed" } }),
  );
}

const names = [
  ["SID-2.1-3 a trust domain name of every character is accepted", "az09._-", true],
  ["SID-2.3-3 a trust domain name of 255 bytes is accepted", "a".repeat(255), true],
  ["SID-2.3-3 a trust domain name of 256 bytes is refused", "a".repeat(256), false],
  ["SID-2-2 an empty trust domain name is refused", "", false],
  ["SID-2.1-2 upper case in a trust domain name is refused", "TD.example", false],
  ["SID-2.1-1 a port in a trust domain name is refused", "td.example:1", false],
  ["SID-2-1 a whole ID as trust domain name is refused", "spiffe://td.example", false],
] as const;

for (const [name, text, want] of names) test(name, () => assert.equal(isTrustDomainName(text), want));

test("SID-3.1-1 an ID with a path is a workload's, and one without a path is not", () => {
  const workload = parseSpiffeId("spiffe://td.example/a");
  const domain = parseSpiffeId("spiffe://td.example");
  assert(workload.ok && domain.ok);
  assert.deepEqual([isWorkloadId(workload.value), isWorkloadId(domain.value)], [true, false]);
});

const patterns = [
  ["SID-2.4-1 the same ID matches", "spiffe://td.example/pay", "spiffe://td.example/pay", true],
  ["SID-2.4-1 other capitals do not match", "spiffe://td.example/pay", "spiffe://td.example/Pay", false],
  [
    "SID-2.4-1 a path below an exact ID does not match",
    "spiffe://td.example/pay",
    "spiffe://td.example/pay/a",
    false,
  ],
  ["SID-2.2-4 whole segments match", "spiffe://td.example/pay/*", "spiffe://td.example/pay/a", true],
  ["SID-2.2-4 several segments match", "spiffe://td.example/pay/*", "spiffe://td.example/pay/a/b", true],
  [
    "SID-2.2-4 a partial segment does not match",
    "spiffe://td.example/pay/*",
    "spiffe://td.example/payroll",
    false,
  ],
  [
    "SID-2.2-4 the prefix itself does not match",
    "spiffe://td.example/pay/*",
    "spiffe://td.example/pay",
    false,
  ],
  [
    "SID-2.2-4 every workload of a trust domain matches",
    "spiffe://td.example/*",
    "spiffe://td.example/a",
    true,
  ],
  ["SPCA-5.1-4 the same ID matches", "spiffe://td.example/a", "spiffe://td.example/a", true],
  ["SPCA-5.1-4 other capitals do not match", "spiffe://td.example/a", "spiffe://td.example/A", false],
  ["SPCA-5.1-4 a longer ID does not match", "spiffe://td.example/a", "spiffe://td.example/a/b", false],
  ["SID-3.1-1 the trust domain itself does not match", "spiffe://td.example/*", "spiffe://td.example", false],
  [
    "SID-2.1-3 a longer trust domain does not match",
    "spiffe://td.example/*",
    "spiffe://td.example.org/a",
    false,
  ],
  [
    "SID-2.1-3 a subdomain of the trust domain does not match",
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
  ["SID-3.1-1 a trust domain as pattern is refused", "spiffe://td.example"],
  ["SID-2.2-4 a star inside the path is refused", "spiffe://td.example/*/a"],
  ["SID-2.2-4 a star in a segment is refused", "spiffe://td.example/pay*"],
  ["SID-2.2-4 two stars are refused", "spiffe://td.example/*/*"],
  ["SID-2.2-3 an empty segment before the star is refused", "spiffe://td.example//*"],
  ["SID-2-2 a pattern without a trust domain is refused", "spiffe:///*"],
  ["SID-2-2 a star for the trust domain is refused", "spiffe://*/a"],
  ["SID-2-1 a star alone is refused", "*"],
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
