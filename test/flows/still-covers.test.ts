/** Whether a record is still within the limits: what no change of a configuration shows in narrowing.test.ts. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import * as v from "valibot";
import { stillCovers } from "../../src/flows/still-covers.ts";
import { declaredTypes, typesOf } from "../../src/policy/detail-types.ts";
import type { Target } from "../../src/policy/rules.ts";
import type { TokenRecord } from "../../src/records.ts";
import { defined, err, ok } from "../../src/result.ts";
import type { Client } from "../../src/settings/settings.ts";
import type { Detail } from "../../src/spec/rfc9396.ts";
import { type Issued, openOffice } from "../support/office.ts";
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

test("RAR-D-11 a token keeps its details only while type, rule and consent still cover them", async (t) => {
  const { ports, token } = await openOffice(t);
  const facts = await ports.facts.token(String(claimsOf(await token("portal")).jti));
  assert.ok(facts);
  const { record } = facts;
  const client = await ports.clients.find(record.clientId);
  assert.ok(client);
  const settings = ports.settings();
  const target = settings.policy.targets.get(record.audience);
  const rule = settings.policy.rules.get(record.ruleId);
  assert.ok(target && rule);
  const file = (fields: object): Detail => ({ type: "file", ...fields });
  const types = (fields: object) =>
    typesOf(v.parse(declaredTypes, { file: { governs: ["read"], fields } }) ?? {});
  const path = { path: { is: "string", narrows: "prefix" } };
  const judge = (details: readonly Detail[] | undefined, limits: object, fields: object | undefined) => {
    const now: Target = { ...target, details: fields === undefined ? new Map() : types(fields) };
    const policy = {
      ...settings.policy,
      targets: new Map([[record.audience, now]]),
      rules: new Map([[rule.id, { ...rule, ...limits }]]),
      byWho: new Map(
        [...settings.policy.byWho].map(([key, { rules }]) => {
          const changed = rules.map((one) => (one === rule ? { ...rule, ...limits } : one));
          return [key, { rules: changed, kinds: changed }];
        }),
      ),
    };
    // The index holds the very rules of the set.
    const inIndex = [...policy.byWho.values()].flatMap(({ rules }) => rules).find(({ id }) => id === rule.id);
    if (inIndex !== undefined) policy.rules.set(rule.id, inIndex);
    const kept = defined<TokenRecord>({ ...record, details });
    return stillCovers(kept, { client }, { ...settings, policy }, ports.clock.nowSeconds());
  };
  const own = [file({ path: "/a/b" })];
  assert.deepEqual(judge(own, {}, path), STANDS);
  assert.deepEqual(judge(own, { details: [file({ path: "/a" })] }, path), STANDS);
  assert.deepEqual(judge(own, { demands: ["file"] }, path), STANDS);
  const ended: readonly (readonly [readonly Detail[] | undefined, object, object | undefined, string])[] = [
    [own, {}, undefined, "token_target_narrowed"],
    [own, {}, { name: path.path }, "token_target_narrowed"],
    [own, {}, { path: { is: "string", narrows: "equal", from: ["/a"] } }, "token_target_narrowed"],
    [own, { details: [file({ path: "/b" })] }, path, "token_rule_narrowed"],
    [own, { details: [file({ path: "/a/b/c" })] }, path, "token_rule_narrowed"],
    [undefined, { details: [file({ path: "/a" })] }, path, "token_rule_narrowed"],
    [undefined, { demands: ["file"] }, path, "token_rule_narrowed"],
  ];
  for (const [details, limits, fields, reason] of ended) {
    assert.deepEqual(judge(details, limits, fields), err(reason), JSON.stringify([details, limits, fields]));
  }
});
