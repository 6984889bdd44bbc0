/** The example of src/policy/details.md is what it says. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as v from "valibot";
import { checkPolicy } from "../../src/policy/checks.ts";
import { decide } from "../../src/policy/decide.ts";
import { NARROWINGS } from "../../src/policy/details.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import { parseDetails } from "../../src/spec/rfc9396.ts";

const PAGE = readFileSync(new URL("../../src/policy/details.md", import.meta.url), "utf8");
const blocks = [...PAGE.matchAll(/```json\n([^`]+)```/g)].map(([, text = ""]) => text);

test("RAR-D-1, RAR-D-2 the target, the rule and the request on the page for operators give what it says", () => {
  const [target = "", written = "", request = "", granted = ""] = blocks;
  const rule = v.parse(Rule, JSON.parse(written));
  const policy = compilePolicy([rule], [v.parse(Target, JSON.parse(target))], "https://as.example", "");
  assert.ok(policy.ok);
  const parties = { trustDomains: {}, trustedIssuers: {}, clients: { clerk: {} } };
  assert.deepEqual(checkPolicy(policy.value, [rule], parties), { problems: [], warnings: [] });
  const details = parseDetails(request);
  assert.ok(details.ok);
  const mode = "client_credentials";
  const asked = { mode, clientId: "clerk", details: details.value, consents: [], nowSeconds: 1 } as const;
  const decided = decide(policy.value, asked);
  assert.ok(decided.ok);
  assert.deepEqual(decided.value.details, JSON.parse(granted));
  assert.deepEqual(decided.value.scope, ["invoices.read", "invoices.pay"]);
  const { details: _, ...without } = asked;
  assert.equal(decide(policy.value, { ...without, scope: ["invoices.pay"] }).ok, true);
});

test("the page for operators has a row for each comparison", () => {
  const rows = PAGE.match(/^\| `.*$/gm)?.join() ?? "";
  for (const narrows of NARROWINGS) assert.ok(rows.includes(`\`${narrows}\``), narrows);
});
