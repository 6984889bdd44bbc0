import assert from "node:assert/strict";
import { test } from "node:test";
import { buildActiveAnswer, INACTIVE } from "../../src/spec/rfc7662.ts";

const act = {
  sub: "spiffe://td.example/a",
  act: { iss: "https://as.example", sub: "spiffe://td.example/b" },
};
const claims = {
  iss: "https://as.example",
  sub: "alice",
  aud: "https://api.example",
  client_id: "spiffe://td.example/a",
  scope: "trips.read",
  iat: 1790000000,
  exp: 1790000300,
  jti: "kZ1f0",
};

test("RFC7662-2.2-1, RFC7662-2.2-2, RFC7662-4-14 an active token is answered with its claims, each with its type", () => {
  assert.deepEqual(buildActiveAnswer(claims), { ...claims, active: true, token_type: "Bearer" });
});

for (const [name, member] of [
  ["RFC8693-4.1-8 the chain of actors is a member of its own, in the form of the token", { act }],
  [
    "RFC8693-4.4-4 the party that may act is a member of its own, in the form of the token",
    { may_act: { sub: "b" } },
  ],
  ["RFC9470-6.2-1 the time of the user's sign-in is told, as in the token", { auth_time: 1790000000 }],
  [
    "RFC9470-6.2-1 the strength of the user's sign-in is told, as in the token",
    { acr: "urn:example:strong" },
  ],
] as const) {
  test(name, () => {
    const answer = buildActiveAnswer({ ...claims, ...member });
    assert.deepEqual(answer, { ...claims, ...member, active: true, token_type: "Bearer" });
  });
}

test("RFC7662-5-1 claims without a place in the answer are left out, and none can change what we say", () => {
  const answer = buildActiveAnswer({ ...claims, email: "a@b.example", active: false, token_type: "N_A" });
  assert.deepEqual(answer, { ...claims, active: true, token_type: "Bearer" });
});

test("RFC7662-2.2-7, RFC7662-4-12 a token that is not active is answered with nothing else", () => {
  assert.deepEqual(INACTIVE, { active: false });
});
