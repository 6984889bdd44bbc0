import assert from "node:assert/strict";
import { test } from "node:test";
import { parseForm } from "../../src/spec/rfc6749.ts";
import { claimedClient, parseClientAuthentication } from "../../src/spec/rfc7521.ts";

const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;
const assertion = "client_assertion_type=urn%3Ax&client_assertion=jwt";
const byAssertion = { by: "assertion", type: "urn:x", assertion: "jwt" };

const cases = [
  ["RFC6749-2.3.1-1 Basic is accepted", "", basic("c:s"), { by: "basic", clientId: "c", secret: "s" }],
  [
    "RFC6749-2.3.1-3 name and secret in the body are accepted",
    "client_id=c&client_secret=s",
    undefined,
    { by: "body", clientId: "c", secret: "s" },
  ],
  [
    "RFC7521-4.2-1, RFC7521-4.2-3 an assertion by its two parameters is accepted",
    assertion,
    undefined,
    byAssertion,
  ],
  [
    "RFC7521-4.2-2 the client_id beside an assertion is returned",
    `${assertion}&client_id=c`,
    undefined,
    { ...byAssertion, clientId: "c" },
  ],
  [
    "RFC7521-4.2-1 an assertion without type is refused",
    "client_assertion=jwt",
    undefined,
    "client_refused assertion_type_missing",
  ],
  [
    "RFC7521-4.2-1 a type without assertion is refused",
    "client_assertion_type=urn%3Ax",
    undefined,
    "client_refused assertion_missing",
  ],
  [
    "RFC7521-4.2-1 an empty assertion is refused",
    "client_assertion_type=urn%3Ax&client_assertion=",
    undefined,
    "client_refused assertion_missing",
  ],
  [
    "RFC7521-4.2-1 an empty type is refused",
    "client_assertion_type=&client_assertion=jwt",
    undefined,
    "client_refused assertion_type_missing",
  ],
  [
    "RFC7521-4.2.1-2, PROD-4.1v2-3 an assertion beside a secret is refused",
    `${assertion}&client_id=c&client_secret=s`,
    undefined,
    "client_refused assertion_with_other_mechanism",
  ],
  [
    "RFC7521-4.2.1-2 an assertion beside Basic is refused",
    assertion,
    basic("c:s"),
    "client_refused assertion_with_other_mechanism",
  ],
  [
    "RFC7521-4.2.1-2 an assertion beside an empty Authorization header is refused",
    assertion,
    "",
    "client_refused assertion_with_other_mechanism",
  ],
  [
    "RFC7521-4.2.1-2 an assertion type beside a secret is refused",
    "client_assertion_type=urn%3Ax&client_secret=s",
    undefined,
    "client_refused assertion_with_other_mechanism",
  ],
  [
    "RFC6749-3.2-5 an empty secret beside an assertion is treated as absent",
    `${assertion}&client_secret=`,
    undefined,
    byAssertion,
  ],
  [
    "RFC6749-2.3-4 two secrets are refused",
    "client_id=c&client_secret=s",
    basic("c:s"),
    "request_malformed secrets_several",
  ],
  [
    "RFC6749-2.3-4 a second secret without client_id is refused",
    "client_secret=s",
    basic("c:s"),
    "request_malformed secrets_several",
  ],
  [
    "RFC6749-3.2.1-2 the same client_id beside Basic is accepted",
    "client_id=c",
    basic("c:s"),
    { by: "basic", clientId: "c", secret: "s" },
  ],
  [
    "RFC6749-3.2.1-2 another client_id beside Basic is refused",
    "client_id=d",
    basic("c:s"),
    "request_malformed client_id_differs",
  ],
  [
    "RFC6749-3.2.1-2 names are compared by case",
    "client_id=C",
    basic("c:s"),
    "request_malformed client_id_differs",
  ],
  [
    "RFC6749-2.3.1-2 a malformed Authorization header is refused",
    "",
    "Basic ???",
    "client_refused authorization_malformed",
  ],
  [
    "RFC6749-2.3.1-2 client_id is not used instead if the header is refused",
    "client_id=c",
    "Bearer x",
    "client_refused authorization_malformed",
  ],
  [
    "RFC6749-2.3.1-4 a secret without client_id is refused",
    "client_secret=s",
    undefined,
    "client_refused secret_without_client_id",
  ],
  [
    "RFC6749-2.3.1-4, RFC6749-2.2-2 client_id with an empty secret is treated as authentication by certificate",
    "client_id=c&client_secret=",
    undefined,
    { by: "certificate", clientId: "c" },
  ],
  [
    "RFC6749-2.2-2, PROD-4.1v4-3 a bare client_id is treated as authentication by certificate",
    "client_id=c",
    undefined,
    { by: "certificate", clientId: "c" },
  ],
  [
    "PROD-4.1v4-3 a request without credentials is treated as authentication by certificate",
    "",
    undefined,
    { by: "certificate" },
  ],
] as const;

for (const [name, body, authorization, want] of cases) {
  test(name, () => {
    const form = parseForm(body);
    assert.ok(form.ok);
    const got = parseClientAuthentication(form.value, authorization);
    assert.deepEqual(got.ok ? got.value : `${got.error.kind} ${got.error.reason}`, want);
  });
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = `${part({ alg: "ES256" })}.${part({ sub: "j" })}.AAAA`;
const claims: [what: string, body: string, authorization: string | undefined, want: string | undefined][] = [
  ["Basic", "", basic("c:wrong"), "c"],
  ["the body", "client_id=c&client_secret=wrong", undefined, "c"],
  [
    "the client_id beside an assertion",
    `client_assertion_type=x&client_assertion=${jwt}&client_id=c`,
    undefined,
    "c",
  ],
  ["the subject of an assertion", `client_assertion_type=x&client_assertion=${jwt}`, undefined, "j"],
  ["nothing in an assertion that is no JWT", assertion, undefined, undefined],
  ["the client_id of a request that uses two mechanisms", "client_id=c&client_secret=s", basic("d:s"), "c"],
  ["nothing in a malformed header", "", "Basic ?", undefined],
];
for (const [what, body, authorization, want] of claims) {
  test(`the client that a request names is taken from ${what}`, () => {
    const form = parseForm(body);
    assert.ok(form.ok);
    assert.equal(claimedClient(form.value, parseClientAuthentication(form.value, authorization)), want);
  });
}
