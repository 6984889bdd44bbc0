/** What a user reads of the refresh tokens that they gave. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventType } from "../../../src/audit/event.ts";
import type { Reason } from "../../../src/audit/reasons.ts";
import { readOwnEvent, readUse } from "../../../src/people/audit/own-events.ts";

const bodyOf = (type: EventType): string =>
  JSON.stringify({
    type,
    time: "2026-11-22T10:00:00.000Z",
    reason: "rule_match",
    client: { client_id: "desk-app" },
    policy: { consent: "page-1" },
    granted: { aud: "https://notes.example", scope: "notes.read" },
  });

const cases = [
  ["refresh.issued", "token_given", [{ id: "desk-app" }]],
  ["refresh.retried_elsewhere", "renewed_elsewhere", [{ id: "desk-app" }]],
  ["refresh.reuse_detected", "ended", [{ id: "desk-app" }]],
  ["refresh.ended", "ended", []],
] as const;
for (const [type, kind, agents] of cases) {
  test(`REFRESH-D-7, REFRESH-D-19, REFRESH-D-21 the user reads ${type} as ${kind}`, () => {
    const event = readOwnEvent(bodyOf(type));
    assert.deepEqual([event?.kind, event?.agents], [kind, agents]);
  });
}

test("a use of a refresh token is a use of the consent, and no line of its own", () => {
  for (const type of ["token.refreshed", "refresh.retried"] as const) {
    assert.equal(readUse(bodyOf(type)), "page-1");
    assert.equal(readOwnEvent(bodyOf(type)), undefined);
  }
});

const ASKED = [
  ["opens a question is no refusal yet", { pending: "q" }, undefined],
  ["comes after the user's answer is a refusal", { pending: "q", answered: true }, "refused"],
  ["got no link is a refusal", { refused: "pending_consents_too_many" }, "refused"],
] as const;
for (const [name, asked, kind] of ASKED)
  test(`AUDIT-D-13 on the account page a request that ${name}`, () => {
    const body = { ...JSON.parse(bodyOf("token_exchange.denied")), policy: { asked }, granted: undefined };
    assert.equal(readOwnEvent(JSON.stringify(body))?.kind, kind);
  });

const WHYS = [
  ["consent_missing", "not_allowed"],
  ["job_ended", "over"],
  ["subject_token_revoked", "over"],
  ["sign_in_insufficient", "sign_in"],
  ["no_rule", "rules"],
  ["grant_type_missing", "faulty"],
] as const satisfies readonly (readonly [Reason, unknown])[];
for (const [reason, why] of WHYS)
  test(`PAGE-D-36 the user reads of a refusal for ${reason} that it was ${why}, and of what was given no reason`, () => {
    const read = (type: EventType) => readOwnEvent(JSON.stringify({ ...JSON.parse(bodyOf(type)), reason }));
    assert.equal(read("token_exchange.denied")?.refusedFor, why);
    assert.equal(read("token.issued")?.refusedFor, undefined);
  });
