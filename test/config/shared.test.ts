import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { SharingRule, shareParts } from "../../src/config/shared.ts";
import { SHARED_VALUES_MAX } from "../../src/limits/process.ts";
import type { Rule } from "../../src/policy/rules.ts";

/** What becomes of a part. */
const shared = (part: unknown): unknown => shareParts({ targets: part }).targets;

const input = (id: string) => ({
  id,
  allow: "redemption",
  clients: ["c-stays"],
  subjects: { issuers: ["https://idp.example"], subs: ["u1"] },
  consent: "record",
  targets: ["api", "desk"],
  scopes: ["trips.read"],
});
const rule = (id: string, more: object = {}) => v.parse(SharingRule, { ...input(id), ...more });

for (const part of ["targets", "scopes", "subjects"] as const) {
  test(`rules with equal ${part} have them in common`, () => {
    const of = (one: Rule): unknown =>
      part === "subjects" && "subjects" in one ? one.subjects : one[part as "targets"];
    assert.equal(of(rule("a")), of(rule("b")));
    assert(Object.isFrozen(of(rule("a"))));
  });
}

test("a rule with other parts keeps its own", () => {
  const other = { targets: ["desk", "api"], subjects: { issuers: ["https://idp.example"] } };
  const [a, b] = [rule("a"), rule("b", other)];
  assert.deepEqual(a.targets, ["api", "desk"]);
  assert.deepEqual(b.targets, other.targets);
  assert.deepEqual("subjects" in b && b.subjects, other.subjects);
});

test("a rule has its own list of clients", () => {
  const [a, b] = [rule("a"), rule("b")];
  assert("clients" in a && "clients" in b);
  assert.deepEqual(a.clients, ["c-stays"]);
  assert.notEqual(a.clients, b.clients);
});

test("a part that is wrong hides no other problem of its rule", () => {
  const wrong = { ...input("a"), consent: "implied", targets: [] };
  const texts = v.safeParse(SharingRule, wrong).issues?.map(({ message }) => message.slice(0, 24));
  assert.deepEqual(texts, ["Invalid length: Expected", 'consent "implied" requir']);
});

test("values that differ stay apart, whatever their names contain", () => {
  const values = [
    ["a", "b"],
    ["a,b"],
    ['a","b'],
    ["a\0b"],
    ['["a","b"]'],
    [["a", "b"]],
    { a: ["b"] },
    { b: ["a"] },
    [],
  ];
  const texts = values.map((value) => JSON.stringify(value));
  const kept = [...values, ...structuredClone(values)].map((value) => shared(value));
  assert.deepEqual(
    kept.map((value) => JSON.stringify(value)),
    [...texts, ...texts],
  );
  assert.equal(new Set(kept).size, values.length);
});

test("at the limit all values are forgotten, and stay what they are", () => {
  const first = shared(["first"]);
  const others = Array.from({ length: SHARED_VALUES_MAX }, (_, index) => [`n${index}`]);
  for (const other of others) assert.deepEqual(shared([...other]), other);
  const again = shared(["first"]);
  assert.deepEqual(again, first);
  assert.notEqual(again, first);
});
