/**
 * ID-JAGs that this server issues: the request, the identity assertion and the client. What they have in common with
 * plain grants: grants-issued.test.ts.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ALIAS,
  API,
  booking,
  FLIGHTS,
  grantOf,
  ID_JAG,
  ID_TOKEN,
  NARROW,
  openToTravellers,
  PARTNER,
  planner,
  SIGNED_IN,
  STAYS,
  type Travellers,
} from "../support/travellers.ts";
import { claimsOf, type Form, ISSUER, JWT, workload } from "../support/world.ts";

let travellers: Travellers;

before(async () => {
  travellers = await openToTravellers(makeService);
});

after(() => stop(travellers?.world));

// --- the request --------------------------------------------------------------------------------------------------

for (const [name, form, want] of [
  ["IDJAG-4.3-2 the issuer of the partner", { audience: PARTNER }, undefined],
  ["IDJAG-4.3-2 an alias of the partner", { audience: ALIAS }, undefined],
  ["IDJAG-4.3.3-6, EMA-4.3-1, EMA-4-2 an API of the partner", { resource: STAYS }, STAYS],
  ["IDJAG-4.3.3-6, IDJAG-4.3.3-8 two APIs of the partner", { resource: [FLIGHTS, STAYS] }, [FLIGHTS, STAYS]],
] as [string, Form, string | string[] | undefined][]) {
  test(`for ${name} the audience of the ID-JAG is the issuer`, async () => {
    const claims = claimsOf(grantOf(await travellers.fromIdToken(form)));
    assert.deepEqual([claims.aud, claims.resource], [PARTNER, want]);
  });
}

const [REQUEST, TARGET] = ["invalid_request", "invalid_target"];
const unknown = "https://unknown.example";
const noQuery = "https://flights.partner.example/v1";

const malformed: [string, Form, string, string][] = [
  ["IDJAG-4.3-1 no audience", { audience: "" }, REQUEST, "id_jag_audience_missing"],
  [
    "IDJAG-4.3-1 the partner as resource alone",
    { audience: "", resource: PARTNER },
    REQUEST,
    "id_jag_audience_missing",
  ],
  ["IDJAG-4.3-1 two audiences", { audience: [PARTNER, ALIAS] }, REQUEST, "id_jag_audience_several"],
  ["IDJAG-4.3-1 no subject token", { subject_token: "" }, REQUEST, "subject_token_missing"],
  [
    "IDJAG-4.3-1 no type of the subject token",
    { subject_token_type: "" },
    REQUEST,
    "subject_token_type_missing",
  ],
  ["IDJAG-4.3-4 an actor token without type", { actor_token: "x" }, REQUEST, "actor_token_type_missing"],
  ["IDJAG-4.3-4 a type without an actor token", { actor_token_type: JWT }, REQUEST, "actor_token_type_alone"],
  ["IDJAG-4.3-2 an unknown audience", { audience: unknown }, TARGET, "target_unknown"],
  ["EMA-7.6.1-1 an unknown API", { resource: unknown }, TARGET, "resource_not_allowed"],
  [
    "EMA-7.6.1-1 an unknown API beside a known one",
    { resource: [STAYS, API] },
    TARGET,
    "resource_not_allowed",
  ],
  ["EMA-7.6.1-1 an API without its query", { resource: noQuery }, TARGET, "resource_not_allowed"],
  ["EMA-7.6.1-1 the server as its own API", { resource: PARTNER }, TARGET, "resource_not_allowed"],
  ["IDJAG-4.3.3-6 an API with a fragment", { resource: `${STAYS}#a` }, TARGET, "resource_malformed"],
  ["IDJAG-4.3.3-6 an API that is not a URI", { resource: "stays" }, TARGET, "resource_malformed"],
  ["IDJAG-4.3.3-6 a malformed scope", { scope: "read  book" }, "invalid_scope", "scope_malformed"],
];
for (const [name, form, error, reason] of malformed) {
  test(`IDJAG-4.3.4-6, ${name} is refused: ${error}`, async () => {
    await travellers.assertRefused(await travellers.fromIdToken(form), reason, error);
  });
}

test("EMA-7.6.1-1 an API of one partner is refused for another", async () => {
  const subject_token = await travellers.user({ aud: booking });
  const form = { subject_token, subject_token_type: ID_TOKEN, requested_token_type: ID_JAG };
  const answer = await travellers.exchange({ ...form, audience: NARROW, resource: STAYS });
  await travellers.assertRefused(answer, "resource_not_allowed", "invalid_target");
});

test("RFC9396-5-1, RFC9396-5-2, IDJAG-4.3.3-6 authorization details are refused", async () => {
  const reason = "details_type_unknown";
  for (const form of [{}, { resource: STAYS, scope: "trips.read" }]) {
    const details = { ...form, authorization_details: '[{"type":"booking"}]' };
    const answer = await travellers.fromIdToken(details);
    await travellers.assertRefused(answer, reason, "invalid_authorization_details");
    grantOf(await travellers.fromIdToken({ ...details, authorization_details: "" }));
  }
});

// --- the identity assertion ---------------------------------------------------------------------------------------

const AUDIENCE = "subject_jwt_audience_refused";
const UNTRUSTED = "subject_jwt_audience_untrusted";
const both = ["page", "app"];
const asJwt = { subject_token_type: JWT };
const ofOther = { aud: "app", claims: { iss: "https://other.example" } };

const assertions: [string, object, string | undefined, Form?][] = [
  ["for this client", { aud: "app" }, undefined],
  // OIDC-D-10: the others hold it too.
  ["for this client and others", { aud: both }, UNTRUSTED],
  ["for this client and others, issued to it", { aud: both, claims: { azp: "app" } }, UNTRUSTED],
  ["for this client and others, issued to one of them", { aud: both, claims: { azp: "page" } }, AUDIENCE],
  ["for this client alone, in a list", { aud: ["app"] }, undefined],
  ["for this client, issued to another", { aud: "app", claims: { azp: "page" } }, AUDIENCE],
  ["for this client, issued to several", { aud: "app", claims: { azp: ["app"] } }, AUDIENCE],
  ["for another client", { aud: "nameless" }, AUDIENCE],
  ["for the client's name at the partner", { aud: "app-there" }, AUDIENCE],
  ["for this server", { aud: ISSUER }, AUDIENCE],
  ["without an audience", { aud: "app", claims: { aud: undefined } }, "subject_jwt_audience_missing"],
  ["that has expired", { aud: "app", expSeconds: -60 }, "subject_jwt_expired"],
  ["of an unknown issuer", ofOther, "subject_issuer_unknown"],
  ["of another type", { aud: "app", header: { typ: "at+jwt" } }, "subject_jwt_type_refused"],
  ["for this client, declared as a JWT", { aud: "app" }, AUDIENCE, asJwt],
  ["for this server, declared as a JWT", { aud: ISSUER }, "subject_token_does_not_permit", asJwt],
];
for (const [name, input, reason, form] of assertions) {
  test(`IDJAG-4.3.3-1, IDJAG-4.3.3-2, IDJAG-4.3-3 an ID token ${name}: ${reason ?? "accepted"}`, async () => {
    const answer = await travellers.fromIdToken({ subject_token: await travellers.user(input), ...form });
    if (reason !== undefined) return travellers.assertRefused(answer, reason);
    assert.equal(claimsOf(grantOf(answer)).sub, "u-1");
  });
}

test("IDJAG-4.3.3-1 an ID token with an invalid signature is refused", async () => {
  const [, payload] = (await travellers.user({ aud: "app", sub: "root" })).split(".");
  const [header, , signature] = (await travellers.user({ aud: "app" })).split(".");
  const answer = await travellers.fromIdToken({ subject_token: [header, payload, signature].join(".") });
  await travellers.assertRefused(answer, "subject_signature_invalid");
});

test("IDJAG-4.3.3-2 the audience of a workload's ID token is its SPIFFE ID", async () => {
  const ask = async (aud: string[]): Promise<Answer> =>
    travellers.exchange({
      subject_token: await travellers.user({ aud }),
      subject_token_type: ID_TOKEN,
      requested_token_type: ID_JAG,
    });
  const { client_id, act } = claimsOf(grantOf(await ask([booking, ISSUER])));
  assert.deepEqual([client_id, act], ["booking-there", { sub: booking }]);
  await travellers.assertRefused(await ask([planner, ISSUER]), AUDIENCE);
  // The rule must also name one of the audiences, and it does not name the workload.
  await travellers.assertRefused(await ask([booking]), "subject_token_does_not_permit");
});

test("IDJAG-4.3-3, PROD-4.1-27 an ID token gets an ID-JAG, and other subject tokens only by a rule that lists their type", async () => {
  assert.equal(claimsOf(grantOf(await travellers.fromIdToken())).client_id, "app-there");
  const form = { requested_token_type: ID_JAG };
  for (const subject of [{}, await travellers.delegated()]) {
    const answer = await travellers.exchange({ ...form, ...subject });
    await travellers.assertRefused(answer, "subject_token_does_not_permit");
    assert.equal((await travellers.exchange(subject)).body.issued_token_type, JWT);
  }
  const by = { by: "porter" };
  assert.equal(claimsOf(grantOf(await travellers.exchange(form, by))).client_id, "porter-there");
  // That rule lists types, and ID tokens are not among them.
  const subject_token = await travellers.user({ aud: [workload("porter"), ISSUER] });
  const idToken = { subject_token, subject_token_type: ID_TOKEN };
  const answer = await travellers.exchange({ ...form, ...idToken }, by);
  await travellers.assertRefused(answer, "subject_token_does_not_permit");
});

test("IDJAG-3.1-5, IDJAG-5-1 a client without a name at the partner gets a plain grant, but no ID-JAG", async () => {
  const answer = await travellers.fromIdToken({}, "nameless");
  await travellers.assertRefused(answer, "client_unknown_at_partner");
  const plain = await travellers.fromIdToken({ requested_token_type: JWT }, "nameless");
  assert.equal(claimsOf(grantOf(plain)).client_id, undefined);
  const other = await travellers.fromIdToken({ requested_token_type: JWT });
  assert.equal(claimsOf(grantOf(other)).client_id, "app-there");
});

test("IDJAG-4.3.3-9, IDJAG-9.8-1, IDJAG-9.8-2 an ID-JAG has subject, actor and client, and the actor is the caller", async () => {
  const subject_token = await travellers.user({ aud: [booking, ISSUER] });
  const form = { subject_token, subject_token_type: ID_TOKEN, requested_token_type: ID_JAG };
  const { sub, act, client_id } = claimsOf(grantOf(await travellers.exchange(form)));
  assert.deepEqual([sub, act, client_id], ["u-1", { sub: booking }, "booking-there"]);
  const ofAnother = await travellers.world.svid("agents/planner");
  const answer = await travellers.exchange({ ...form, actor_token: ofAnother });
  await travellers.assertRefused(answer, "actor_not_the_caller");
  const byUser = await travellers.exchange({ ...form, actor_token: await travellers.user() });
  assert.deepEqual([byUser.status, byUser.body.error], [400, "invalid_request"]);
});

// --- explanations -------------------------------------------------------------------------------------------------

const requests: [string, Form, object, string, string?][] = [
  ["an API", { resource: STAYS }, { resources: [STAYS] }, "app"],
  ["a foreign API", { resource: API }, { resources: [API] }, "app"],
  ["no API", {}, {}, "app"],
  ["a client without a name there", {}, {}, "nameless"],
  ["a client that the ID token was not issued to", {}, {}, "app", "page"],
];
for (const [name, form, question, client, azp = client] of requests) {
  test(`PROD-2.6-1 the explanation of an ID-JAG for ${name} agrees with the answer`, async () => {
    const subject_token = await travellers.user({
      aud: client,
      expSeconds: 900,
      claims: { ...SIGNED_IN, azp },
    });
    const answer = await travellers.fromIdToken({ ...form, subject_token }, client);
    const base = { client, subjectTokenType: "id_token", issues: "id-jag", target: PARTNER };
    await travellers.assertExplained(answer, {
      ...base,
      subjectClaims: claimsOf(subject_token),
      ...question,
    });
  });
}
