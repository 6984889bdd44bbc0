import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildDeferralCode,
  canWait,
  DEFERRED,
  isDeferralCode,
  parsePoll,
} from "../../src/spec/deferred-token-response.ts";
import { type Form, parseForm } from "../../src/spec/rfc6749.ts";

const modes = [
  ["deferred", true],
  ["x deferred", true],
  ["deferred deferred", true],
  ["Deferred", false],
  ["deferred,x", false],
  ["undeferred", false],
  ["", false],
] as const;
for (const [mode, want] of modes) {
  test(`DTR-5.1-1 the mode "${mode}" says that the client can ${want ? "" : "not "}wait`, () =>
    assert.equal(canWait({ completion_mode: mode }), want));
}

test("DTR-5-1 a request without the parameter says that the client cannot wait", () =>
  assert.equal(canWait({}), false));

test("DTR-6.4-2 a code is told from every other text", () => {
  const code = buildDeferralCode("a".repeat(43));
  assert.equal(isDeferralCode(code), true);
  const others = [
    code.slice(1),
    `${code}a`,
    code.slice(0, -1),
    `${code}\n`,
    code.replace("mdc_", "mrt_"),
    "",
  ];
  for (const other of others) assert.equal(isDeferralCode(other), false, other);
});

const POLL = `grant_type=${encodeURIComponent(DEFERRED)}&deferral_code=mdc_x&client_id=c`;
const read = (text: string): Form => {
  const form = parseForm(text);
  assert.ok(form.ok);
  return form.value;
};
const polls = [
  ["a poll", POLL, "mdc_x"],
  ["a poll with a secret", `${POLL}&client_secret=s`, "mdc_x"],
  ["a poll with parameters that are not known", `${POLL}&x=y`, "mdc_x"],
  ["a poll with parameters without a value", `${POLL}&scope=&resource=`, "mdc_x"],
  ["a poll without its code", "grant_type=x", "deferral_code_missing undefined"],
  ["a poll with a mode", `${POLL}&completion_mode=deferred`, "poll_repeats_request completion_mode"],
  ["a poll with a target", `${POLL}&audience=a`, "poll_repeats_request audience"],
  ["a poll with scopes", `${POLL}&scope=a`, "poll_repeats_request scope"],
  ["a poll with details", `${POLL}&authorization_details=[]`, "poll_repeats_request authorization_details"],
] as const;
for (const [name, text, want] of polls) {
  test(`DTR-6.5-4 ${name} is ${want.startsWith("mdc") ? "accepted" : "refused"}`, () => {
    const got = parsePoll(read(text));
    const { kind, parameter } = got.ok ? { kind: got.value } : { parameter: undefined, ...got.error };
    assert.equal(got.ok ? kind : `${kind} ${parameter}`, want);
  });
}
