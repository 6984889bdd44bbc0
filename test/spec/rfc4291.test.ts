/** RFC 4291: which addresses are one source. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { networkOf } from "../../src/spec/rfc4291.ts";

const same = [
  ["two addresses of a /64", "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true],
  ["one address in two spellings", "2001:db8::1", "2001:0DB8:0:0::0001", true],
  ["two /64 of a /56", "2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["an address of version 4 and itself, mapped", "192.0.2.1", "::ffff:192.0.2.1", true],
  ["two mapped addresses", "::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
  ["two neighbours of version 4", "192.0.2.1", "192.0.2.2", false],
  ["no address, twice", "", "", true],
  ["no address and one", "", "192.0.2.1", false],
] as const;
for (const [what, one, other, want] of same) {
  test(`${what}: ${want ? "are one source" : "are two sources"}`, () =>
    assert.equal(networkOf(one) === networkOf(other), want));
}
