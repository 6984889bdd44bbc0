import assert from "node:assert/strict";
import { test } from "node:test";
import { modeOf, parseQuestion } from "../../src/policy/question.ts";

const client = "c-portal";
const subjectClaims = { iss: "https://idp.example", sub: "u-4821" };
const grantClaims = { iss: "https://as.partner.example", sub: "p-7", act: { sub: "x" } };
const actor = "spiffe://td.example/agents/planner";
const jag = { client, subjectClaims, issues: "id-jag" };

/** The mode that it is about, or the problems. */
const cases: [name: string, question: { [name: string]: unknown }, want: string][] = [
  ["PROD-3-2 asks about client credentials with a client alone", { client }, "client_credentials"],
  ["PROD-3-7 asks about an impersonation without actor", { client, subjectClaims }, "impersonation"],
  ["PROD-3-3 asks about a delegation with an actor", { client, subjectClaims, actor }, "delegation"],
  ["PROD-3-2 asks about a redemption with a grant", { client, grantClaims }, "redemption"],
  [
    "PROD-3-2 asks about a redemption at a target",
    { client, grantClaims, target: "api", scope: "a b" },
    "redemption",
  ],
  [
    "PROD-3-2 refuses a grant beside a subject token",
    { client, grantClaims, subjectClaims },
    "grantClaims: is not for a question with subjectClaims",
  ],
  [
    "PROD-3-2 refuses a grant beside an actor",
    { client, grantClaims, actor },
    "subjectClaims: is missing beside actor, origin or subjectTokenType",
  ],
  [
    "PROD-3-2 refuses a grant beside an origin, for it is its own",
    { client, grantClaims, origin: { iss: "https://idp.example", sub: "u" } },
    "subjectClaims: is missing beside actor, origin or subjectTokenType",
  ],
  [
    "PROD-2.6-1 asks about a subject token as an ID token",
    { client, subjectClaims, subjectTokenType: "id_token" },
    "impersonation",
  ],
  [
    "PROD-2.6-1 refuses a type without a subject token",
    { client, grantClaims, subjectTokenType: "jwt" },
    "subjectClaims: is missing beside actor, origin or subjectTokenType",
  ],
  [
    "PROD-2.6-1 refuses an access token as a type, for those are ours",
    { client, subjectClaims, subjectTokenType: "access_token" },
    "subjectTokenType: Invalid",
  ],
  ["PROD-2.6-1 asks about an ID-JAG", { client, grantClaims, grantProfile: "id-jag" }, "redemption"],
  [
    "PROD-2.6-1 refuses a profile without a grant",
    { client, subjectClaims, grantProfile: "jwt" },
    "grantClaims: is missing beside grantProfile",
  ],
  [
    "PROD-3-2 refuses a grant that is no object",
    { client, grantClaims: ["x"] },
    "grantClaims: is not an object",
  ],
  ...["access_token", "jwt", "id-jag"].map((issues): [string, { [name: string]: unknown }, string] => [
    `PROD-4.1v8-3 asks for ${issues}`,
    { client, subjectClaims, issues },
    "impersonation",
  ]),
  [
    "PROD-4.1v8-3 refuses to ask for something else",
    { client, subjectClaims, issues: "saml2" },
    "issues: Invalid",
  ],
  [
    "PROD-4.1v8-3 asks for an ID-JAG for an API",
    { ...jag, resources: ["https://api.example"] },
    "impersonation",
  ],
  ["PROD-4.1v8-3 refuses an API that is no text", { ...jag, resources: [7] }, "resources.0: Invalid"],
  ...["jwt", undefined].map((issues): [string, { [name: string]: unknown }, string] => [
    `PROD-4.1v8-3 refuses an API with ${issues ?? "nothing"} asked for`,
    { client, subjectClaims, resources: ["https://api.example"], ...(issues !== undefined && { issues }) },
    'resources: is only for a question with "issues": "id-jag"',
  ]),
  ["PROD-2.6-1 refuses a name that it does not know", { client, tokenType: "jwt" }, "tokenType: Invalid"],
];
for (const [name, question, want] of cases) {
  test(name, () => {
    const got = parseQuestion(JSON.parse(JSON.stringify(question)));
    // Of the schema library's words, the first.
    const told = got.ok ? modeOf(got.value) : got.error.join().replace(/(: Invalid) .*/, "$1");
    assert.equal(told, want);
  });
}
