import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildGrantClaims,
  DRAFT,
  GRANT_TYP,
  type Grant,
  mapSubjectThere,
  type SubjectThere,
  transcribe,
} from "../../src/spec/identity-chaining.ts";
import { type Json, type JsonObject, parseJson } from "../../src/spec/rfc8259.ts";

const issuer = "https://as.example";
const planner = { sub: "spiffe://td.example/agents/planner", iss: issuer };
const booking = { sub: "spiffe://td.example/agents/booking", iss: issuer };
const grant: Grant = {
  issuer,
  subject: "u-4821",
  audience: "https://as.partner.example",
  scope: ["trips.read", "trips.book"],
  issuedAtSeconds: 1790000000,
  expiresAtSeconds: 1790000060,
  jti: "g-1",
  chain: [booking, planner],
  claims: {},
};

test("PROD-9.2-11 the draft is followed at this revision", () => {
  assert.equal(DRAFT, "draft-ietf-oauth-identity-chaining-17");
});

test("RFC8725-3.11-v1 the typ of grants has no application/ prefix", () =>
  assert.equal(GRANT_TYP, "authz-grant+jwt"));

// --- issued -----------------------------------------------------------------------------------------------------

const members: [string, string, Json | undefined][] = [
  ["RFC7521-5.1-5 a grant has our issuer identifier as iss", "iss", issuer],
  ["IDC-2.3.3-2, IDC-2.3.3-3 a grant has one aud: the other server", "aud", "https://as.partner.example"],
  ["RFC8693-4.2-1 a grant has scope as one string", "scope", "trips.read trips.book"],
  [
    "PROD-4.1v8-2, RFC8693-4.1-5 a grant has the chain, the current actor outermost",
    "act",
    { sub: booking.sub, act: { sub: planner.sub } },
  ],
  ["IDC-2.5-2 client_id is omitted if the client has none at the other server", "client_id", undefined],
  ["RFC8693-4.4-2 no may_act is added", "may_act", undefined],
];
for (const [name, claim, want] of members) {
  test(name, () => assert.deepEqual(buildGrantClaims(grant)[claim], want));
}

test("IDC-2.5-2 a grant has these claims in this order and no others", () => {
  const names = ["iss", "sub", "act", "aud", "scope", "iat", "exp", "jti"];
  assert.deepEqual(Object.keys(buildGrantClaims(grant)), names);
  const named = buildGrantClaims({ ...grant, clientIdThere: "c-b" });
  assert.deepEqual(Object.keys(named), names.toSpliced(4, 0, "client_id"));
  assert.equal(named.client_id, "c-b");
});

test("RFC8693-1.1-1 act is omitted if the chain is empty", () => {
  assert.ok(!("act" in buildGrantClaims({ ...grant, chain: [] })));
});

test("RFC8693-4.4-2 may_act is carried into the grant, so that its restriction still holds there", () => {
  const mayAct = { sub: planner.sub };
  assert.deepEqual(buildGrantClaims({ ...grant, mayAct }).may_act, mayAct);
});

test("IDC-2.5-2 transcribed claims are appended, and replace none of the grant's own", () => {
  const claims = { acr: "2", aud: "https://evil.example", sub: "u-1", jti: "x", amr: ["otp"] };
  const built = buildGrantClaims({ ...grant, claims });
  assert.deepEqual(built, { ...buildGrantClaims(grant), acr: "2", amr: ["otp"] });
  assert.deepEqual(Object.keys(built).slice(-3), ["jti", "acr", "amr"]);
});

// --- claims -----------------------------------------------------------------------------------------------------

const long = (bytes: number): string => "a".repeat(bytes);

const transcriptions: [string, JsonObject, readonly string[], JsonObject][] = [
  ["IDC-2.5-4 an agreed claim is carried over", { acr: "2", email: "u@x" }, ["acr"], { acr: "2" }],
  ["IDC-2.5-4 no claim that is not agreed is carried over", { acr: "2" }, [], {}],
  ["IDC-2.5-4 no claim that is absent is carried over", {}, ["acr"], {}],
  ["IDC-2.5-4 claim names are compared exactly", { Acr: "2" }, ["acr"], {}],
  ["IDC-2.5-4 an empty string is carried over", { acr: "" }, ["acr"], { acr: "" }],
  [
    "IDC-2.5-4 numbers are carried over",
    { auth_time: 1.5, zero: 0 },
    ["auth_time", "zero"],
    { auth_time: 1.5, zero: 0 },
  ],
  ["IDC-2.5-4 booleans are carried over", { a: true, b: false }, ["a", "b"], { a: true, b: false }],
  ["IDC-2.5-4 a list of strings is carried over", { amr: ["otp", "pwd"] }, ["amr"], { amr: ["otp", "pwd"] }],
  ["IDC-2.5-4 null is dropped", { a: null }, ["a"], {}],
  ["IDC-2.5-4 an object is dropped", { a: { b: "c" } }, ["a"], {}],
  [
    "IDC-2.5-4 a list with an element that is not a string is dropped",
    { a: ["b", 1], c: [["d"]], e: [null] },
    ["a", "c", "e"],
    {},
  ],
  ["IDC-2.5-4 2 KiB is carried over", { a: long(2048) }, ["a"], { a: long(2048) }],
  ["IDC-2.5-4 a string longer than 2 KiB is dropped", { a: long(2049) }, ["a"], {}],
  ["IDC-2.5-4 strings are measured in bytes", { a: "é".repeat(1025) }, ["a"], {}],
  ["IDC-2.5-4 a list with one string longer than 2 KiB is dropped", { a: ["b", long(2049)] }, ["a"], {}],
  ["IDC-2.5-4 64 strings are carried over", { a: Array(64).fill("b") }, ["a"], { a: Array(64).fill("b") }],
  ["IDC-2.5-4 a list of more than 64 strings is dropped", { a: Array(65).fill("b") }, ["a"], {}],
  ...[
    "iss",
    "sub",
    "aud",
    "exp",
    "nbf",
    "iat",
    "jti",
    "client_id",
    "scope",
    "act",
    "may_act",
    "resource",
    "authorization_details",
    "cnf",
    "requested_cnf",
    "sub_id",
    "aud_sub",
    "tenant",
    "aud_tenant",
    "azp",
    "nonce",
    "at_hash",
    "c_hash",
    "events",
    "htm",
    "htu",
  ].map((name): [string, JsonObject, readonly string[], JsonObject] => [
    `IDC-2.5-4 never carries over ${name}`,
    { [name]: "a" },
    [name],
    {},
  ]),
];
for (const [name, claims, allowed, want] of transcriptions) {
  test(name, () => assert.deepEqual(transcribe(claims, allowed), want));
}

test("IDC-2.5-4 __proto__ and constructor are treated as ordinary claim names", () => {
  const names = ["__proto__", "constructor", "toString"];
  assert.deepEqual(transcribe({}, names), {});
  const parsed = parseJson('{"__proto__":["a"],"constructor":"b"}', 8);
  assert.ok(parsed.ok);
  const carried = buildGrantClaims({ ...grant, claims: transcribe(parsed.value as JsonObject, names) });
  assert.ok(JSON.stringify(carried).endsWith('"jti":"g-1","__proto__":["a"],"constructor":"b"}'));
  assert.equal(Object.getPrototypeOf(carried), Object.prototype);
});

// --- subjects ---------------------------------------------------------------------------------------------------

const table = new Map([["u-4821", "7f3a"]]);
const subjects: [string, string, SubjectThere, string][] = [
  ["IDC-2.5-3 the subject is kept", "u-4821", "keep", "u-4821"],
  ["IDC-2.5-3 the subject is prefixed", "u-4821", { prefix: "acme:" }, "acme:u-4821"],
  ["IDC-2.5-3, IDJAG-5-2 the subject is mapped by a table", "u-4821", { table }, "7f3a"],
  [
    "IDC-2.5-3, IDJAG-5-2 a subject that the table does not contain is refused",
    "u-1",
    { table },
    "subject_unknown_there",
  ],
  [
    "IDC-2.5-3 a subject named like a built-in method is not mapped",
    "constructor",
    { table },
    "subject_unknown_there",
  ],
];
for (const [name, sub, mapping, want] of subjects) {
  test(name, () => {
    const got = mapSubjectThere(sub, mapping);
    assert.equal(got.ok ? got.value : got.error.kind, want);
  });
}
