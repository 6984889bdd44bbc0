/** Events as OCSF has them; those of a real trail are in test/cli/policy-replay.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ocsfText } from "../../src/audit/ocsf.ts";

const PLACE = { v: 2, log: "one", seq: 7, id: "e", time: "2026-11-28T12:00:00.000Z", prev: "0" };
const asOcsf = (event: object) =>
  JSON.parse(ocsfText({ body: JSON.stringify({ ...PLACE, ...event }) }) ?? "");

const cases: readonly [what: string, event: object, want: object][] = [
  [
    "a sign-in",
    {
      ...{ type: "user.signed_in", outcome: "allow", reason: "signed_in" },
      detail: { iss: "https://idp.example", sub: "alice" },
    },
    {
      ...{ class_uid: 3002, activity_id: 1, type_uid: 300201, status_id: 1, auth_protocol_id: 4 },
      user: { uid: "alice", name: "alice", domain: "https://idp.example" },
    },
  ],
  [
    "a client whose secret is wrong, more than once",
    {
      ...{ type: "client.auth_failed", outcome: "deny", reason: "secret_wrong", count: 4 },
      client: { client_id: "app", auth_method: "client_secret_basic" },
    },
    {
      ...{ class_uid: 3002, activity_id: 1, status_id: 2, severity_id: 2, count: 4, auth_protocol_id: 11 },
      user: { uid: "app", name: "app" },
    },
  ],
  [
    "a sign-out",
    { type: "user.signed_out", outcome: "allow", reason: "signed_out" },
    { class_uid: 3002, activity_id: 2, type_uid: 300202, user: { name: "unknown" } },
  ],
  [
    "a change of the configuration",
    { type: "config.changed", outcome: "allow", reason: "reloaded" },
    { class_uid: 0, activity_id: 99, type_uid: 99, activity_name: "config.changed" },
  ],
];
for (const [what, event, want] of cases) {
  test(`AUDIT-D-20 ${what} is an event of its class`, () => {
    assert.partialDeepStrictEqual(asOcsf(event), want);
  });
}

test("AUDIT-D-20 what is no event of ours has none", () => {
  assert.equal(ocsfText({ body: "{" }), undefined);
});
