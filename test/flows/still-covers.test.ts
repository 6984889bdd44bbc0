/** Whether a record is still within the limits: what no change of a configuration shows in narrowing.test.ts. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { stillCovers } from "../../src/flows/still-covers.ts";
import type { TokenRecord } from "../../src/records.ts";
import { err, ok } from "../../src/result.ts";
import type { Client } from "../../src/settings/settings.ts";
import type { Issued } from "../support/office.ts";
import { kiosk, openOffice } from "../support/office.ts";
import { claimsOf } from "../support/world.ts";

const STANDS = ok(undefined);

/** A new token's record, and whether a record stands, for its client with these changes. */
async function issueOne(t: TestContext, kind: Issued) {
  const { ports, token } = await openOffice(t);
  const facts = await ports.facts.token(String(claimsOf(await token(kind)).jti));
  assert.ok(facts);
  const client = await ports.clients.find(facts.record.clientId);
  assert.ok(client);
  const judge = (record: TokenRecord, ofClient: Partial<Client> = {}) => {
    const current = { client: { ...client, ...ofClient } };
    return stillCovers(record, current, ports.settings(), ports.clock.nowSeconds());
  };
  return { record: facts.record, judge };
}

/** As the version before wrote it. */
const asBefore = ({ workload: _, ...record }: TokenRecord): TokenRecord => record;

test("a client whose registration has fewer scopes keeps no token with the others", async (t) => {
  const { record, judge } = await issueOne(t, "portal");
  assert.deepEqual(judge(record, { scopes: ["write", "read"] }), STANDS);
  assert.deepEqual(judge(record, { scopes: ["read"] }), err("token_client_narrowed"));
});

test("a client that is in another class by now has no token under a rule for its class", async (t) => {
  const { record, judge } = await issueOne(t, "portal");
  const byClass = { ...record, ruleId: "by-class" };
  assert.deepEqual(judge(byClass, { registrationClass: "clerks" }), STANDS);
  assert.deepEqual(judge(byClass, { registrationClass: "guests" }), err("token_rule_narrowed"));
});

test("a row of the version before, which has no workload, stays usable and within the limits", async (t) => {
  const another = { workload: kiosk.replace("kiosk", "another") };
  const kinds = [
    ["kiosk", "token_rule_narrowed"],
    ["invited", "token_workload_changed"],
    ["crew", undefined],
  ] as const;
  for (const [kind, changed] of kinds) {
    const { record, judge } = await issueOne(t, kind);
    assert.notEqual(record.workload, undefined);
    assert.deepEqual(judge(asBefore(record)), STANDS, kind);
    if (changed !== undefined) assert.deepEqual(judge(asBefore(record), another), err(changed), kind);
  }
});

const bound = { confirmation: { jkt: "A".repeat(43) } };
const byCertificate = { confirmation: { "x5t#S256": "A".repeat(43) } };

test("RFC9449-5.2-1, RFC8705-3.4-2 a client that demands bound tokens by now keeps no other", async (t) => {
  const { record, judge } = await issueOne(t, "portal");
  const narrowed = err("token_client_narrowed");
  assert.deepEqual(judge(record, { bindsBy: ["dpop"] }), narrowed);
  assert.deepEqual(judge(record, { bindsBy: ["certificate"] }), narrowed);
  assert.deepEqual(judge({ ...record, ...byCertificate }, { bindsBy: ["dpop"] }), narrowed);
  assert.deepEqual(judge({ ...record, ...byCertificate }, { bindsBy: ["certificate"] }), STANDS);
  assert.deepEqual(judge({ ...record, ...bound }, { bindsBy: ["certificate", "dpop"] }), STANDS);
});
