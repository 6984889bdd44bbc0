import assert from "node:assert/strict";
import { test } from "node:test";
import { modeOf, parseQuestion } from "../../src/policy/question.ts";

const client = "c-portal";
const subjectClaims = { iss: "https://idp.example", sub: "u-4821" };
const grantClaims = { iss: "https://as.partner.example", sub: "p-7", act: { sub: "x" } };
const actor = "spiffe://td.example/agents/planner";
const jag = { client, subjectClaims, issues: "id-jag" };

/** The mode of the question, or the problems. */
const cases: [name: string, question: { [name: string]: unknown }, want: string][] = [
  ["PROD-3-2 a question with a client alone is about client credentials", { client }, "client_credentials"],
  ["PROD-3-7 a question without actor is about an impersonation", { client, subjectClaims }, "impersonation"],
  ["PROD-3-3 a question with an actor is about a delegation", { client, subjectClaims, actor }, "delegation"],
  ["PROD-3-2 a question with a grant is about a redemption", { client, grantClaims }, "redemption"],
  [
    "PROD-3-2 a question with a user who signed in is about a code",
    { client, signedIn: { iss: "https://idp.example", sub: "u" }, target: "api" },
    "authorization_code",
  ],
  [
    "PROD-3-2 a user who signed in beside a subject token is refused",
    { client, subjectClaims, signedIn: { iss: "https://idp.example", sub: "u" } },
    "signedIn: is not for a question with subjectClaims, grantClaims, workload or issues",
  ],
  [
    "PROD-3-2 a user who signed in beside a workload is refused, as a client of people is no actor",
    { client, workload: actor, signedIn: { iss: "https://idp.example", sub: "u" } },
    "signedIn: is not for a question with subjectClaims, grantClaims, workload or issues",
  ],
  [
    "PROD-3-2 target and scope in a question about a redemption are accepted",
    { client, grantClaims, target: "api", scope: "a b" },
    "redemption",
  ],
  [
    "PROD-3-2 a grant beside a subject token is refused",
    { client, grantClaims, subjectClaims },
    "grantClaims: is not for a question with subjectClaims",
  ],
  [
    "PROD-3-2 a grant beside an actor is refused",
    { client, grantClaims, actor },
    "subjectClaims: is missing beside actor, origin or subjectTokenType",
  ],
  [
    "PROD-3-2 a grant beside an origin is refused, because a grant contains its origin",
    { client, grantClaims, origin: { iss: "https://idp.example", sub: "u" } },
    "subjectClaims: is missing beside actor, origin or subjectTokenType",
  ],
  [
    "PROD-2.6-1 an ID token as subject token is accepted",
    { client, subjectClaims, subjectTokenType: "id_token" },
    "impersonation",
  ],
  [
    "PROD-2.6-1 a subject token type without a subject token is refused",
    { client, grantClaims, subjectTokenType: "jwt" },
    "subjectClaims: is missing beside actor, origin or subjectTokenType",
  ],
  [
    "PROD-2.6-1 a subject token type that no exchange takes is refused",
    { client, subjectClaims, subjectTokenType: "refresh_token" },
    'subjectTokenType: is not one of "jwt", "id_token", "access_token"',
  ],
  [
    "PROD-2.6-1 an ID-JAG as grant is accepted",
    { client, grantClaims, grantProfile: "id-jag" },
    "redemption",
  ],
  [
    "PROD-2.6-1 a grant profile without a grant is refused",
    { client, subjectClaims, grantProfile: "jwt" },
    "grantClaims: is missing beside grantProfile",
  ],
  [
    "PROD-3-2 a grant that is not an object is refused",
    { client, grantClaims: ["x"] },
    "grantClaims: is not an object",
  ],
  ...["access_token", "jwt", "id-jag"].map((issues): [string, { [name: string]: unknown }, string] => [
    `PROD-4.1v8-3 ${issues} as requested token type is accepted`,
    { client, subjectClaims, issues },
    "impersonation",
  ]),
  [
    "TXN-D-2 txn_token as requested type is accepted",
    { client, subjectClaims, issues: "txn_token" },
    "transaction",
  ],
  [
    "TXN-D-2 a request for a transaction token without a subject token is refused",
    { client, issues: "txn_token" },
    'issues: "txn_token" is for a question with subjectClaims and without actor',
  ],
  [
    "TXN-D-7 a request for a transaction token with an actor is refused",
    { client, subjectClaims, actor, issues: "txn_token" },
    'issues: "txn_token" is for a question with subjectClaims and without actor',
  ],
  [
    "PROD-4.1v8-3 another requested token type is refused",
    { client, subjectClaims, issues: "saml2" },
    'issues: is not one of "access_token", "jwt", "id-jag", "txn_token"',
  ],
  [
    "PROD-4.1v8-3 resources with an ID-JAG are accepted",
    { ...jag, resources: ["https://api.example"] },
    "impersonation",
  ],
  [
    "PROD-4.1v8-3 a resource that is not a string is refused",
    { ...jag, resources: [7] },
    "resources.0: is not a string: put it into quotes",
  ],
  ...["jwt", undefined].map((issues): [string, { [name: string]: unknown }, string] => [
    `PROD-4.1v8-3 resources with ${issues ?? "no"} requested token type are refused`,
    { client, subjectClaims, resources: ["https://api.example"], ...(issues !== undefined && { issues }) },
    'resources: is only for a question with "issues": "id-jag"',
  ]),
  [
    "PROD-2.6-1 an unknown member is refused",
    { client, tokenType: "jwt" },
    "tokenType: is not a known member",
  ],
];
for (const [name, question, want] of cases) {
  test(name, () => {
    const got = parseQuestion(JSON.parse(JSON.stringify(question)));
    const actual = got.ok ? modeOf(got.value) : got.error.join();
    assert.equal(actual, want);
  });
}
