/** What is perhaps meant by an unknown name, among few names and among ten thousand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { likeUnknown } from "../../src/policy/explanation.ts";
import { knownNames, nearest } from "../../src/policy/nearest.ts";
import { compilePolicy, Target } from "../../src/policy/rules.ts";
import { prng } from "../support/prng.ts";

const TARGETS = [
  { names: ["https://orders.example.com", "orders"], scopes: ["orders.read", "orders.write"] },
  { names: ["https://billing.example.com"], scopes: ["billing.read"] },
].map((one) => v.parse(Target, one));
const compiled = compilePolicy([], TARGETS, "https://as.example", "sha256:00");
const policy = compiled.ok ? compiled.value : assert.fail();

const cases = [
  ["an unknown target", { target: "https://ordres.example.com" }, ["https://orders.example.com"]],
  ["a target in other case", { target: "https://Billing.example.com" }, ["https://billing.example.com"]],
  ["an unknown scope", { target: "orders", scope: ["orders.raed"] }, ["orders.read"]],
  ["both", { target: "order", scope: ["order.write"] }, ["orders", "orders.write"]],
  ["a scope of another target, which is known", { target: "orders", scope: ["billing.read"] }, []],
  ["a name that is like none", { target: "https://evil.example", scope: ["x"] }, []],
  ["a name of any length", { target: "orders".repeat(10_000) }, []],
] as const;
for (const [name, named, want] of cases)
  test(`POLICY-D-22 the known name is told for ${name}`, () => {
    const got = likeUnknown(policy, named) ?? [];
    assert.deepEqual(
      got.map(({ known }) => known),
      want,
    );
  });

test("POLICY-D-22 of ten thousand names at most sixteen are compared, and the one with an error at its place is found", () => {
  const random = prng(44);
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const word = () => Array.from({ length: 9 }, () => random.pick(letters)).join("");
  const names = Array.from({ length: 10_000 }, () => `https://${word()}.example.com/api`);
  const known = knownNames(names);
  let found = 0;
  for (const name of names.slice(0, 500)) {
    const at = 8 + random.below(9);
    const wrong = `${name.slice(0, at)}${random.pick(letters)}${name.slice(at + 1)}`;
    if (known.has(wrong)) continue;
    const beside = known.beside(wrong);
    assert.ok(beside.length <= 16, wrong);
    if (nearest(wrong, beside) === name) found++;
  }
  assert.ok(found > 450, `${found} of 500`);
});
