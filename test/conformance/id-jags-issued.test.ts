/**
 * ID-JAGs as this server issues them: what is asked for, of which identity assertion, and for which client. What they
 * have in common with plain grants: grants-issued.test.ts.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import type { Travellers } from "../support/travellers.ts";
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
} from "../support/travellers.ts";
import type { Form } from "../support/world.ts";
import { claimsOf, ISSUER, JWT, workload } from "../support/world.ts";

let travellers: Travellers;

before(async () => {
  travellers = await openToTravellers();
});

after(() => travellers?.world.stop());

// --- the request --------------------------------------------------------------------------------------------------

for (const [name, form, want] of [
  ["IDJAG-4.3-2 the issuer of the partner", { audience: PARTNER }, undefined],
  ["IDJAG-4.3-2 an alias of it", { audience: ALIAS }, undefined],
  ["IDJAG-4.3.3-6, EMA-4.3-1, EMA-4-2 an API there", { resource: STAYS }, STAYS],
  ["IDJAG-4.3.3-6, IDJAG-4.3.3-8 two APIs there", { resource: [FLIGHTS, STAYS] }, [FLIGHTS, STAYS]],
] as [string, Form, string | string[] | undefined][]) {
  test(`${name} is named, and the ID-JAG is for the issuer`, async () => {
    const claims = claimsOf(grantOf(await travellers.fromIdToken(form)));
    assert.deepEqual([claims.aud, claims.resource], [PARTNER, want]);
  });
}

const [REQUEST, TARGET] = ["invalid_request", "invalid_target"];
const stranger = "https://stranger.example";
const noQuery = "https://flights.partner.example/v1";

const malformed: [string, Form, string, string][] = [
  ["IDJAG-4.3-1 no audience", { audience: "" }, REQUEST, "id_jag_audience_missing"],
  ["IDJAG-4.3-1 its resource alone", { audience: "", resource: PARTNER }, REQUEST, "id_jag_audience_missing"],
  ["IDJAG-4.3-1 two audiences", { audience: [PARTNER, ALIAS] }, REQUEST, "id_jag_audience_several"],
  ["IDJAG-4.3-1 no subject token", { subject_token: "" }, REQUEST, "subject_token_missing"],
  ["IDJAG-4.3-1 no type of it", { subject_token_type: "" }, REQUEST, "subject_token_type_missing"],
  ["IDJAG-4.3-4 an actor token without type", { actor_token: "x" }, REQUEST, "actor_token_type_missing"],
  ["IDJAG-4.3-4 a type of no actor token", { actor_token_type: JWT }, REQUEST, "actor_token_type_alone"],
  ["IDJAG-4.3-2 an unknown audience", { audience: stranger }, TARGET, "target_unknown"],
  ["EMA-7.6.1-1 an API that is not there", { resource: stranger }, TARGET, "resource_not_allowed"],
  ["EMA-7.6.1-1 one that is not, beside one", { resource: [STAYS, API] }, TARGET, "resource_not_allowed"],
  ["EMA-7.6.1-1 an API without its query", { resource: noQuery }, TARGET, "resource_not_allowed"],
  ["EMA-7.6.1-1 the server as its own API", { resource: PARTNER }, TARGET, "resource_not_allowed"],
  ["IDJAG-4.3.3-6 an API with a fragment", { resource: `${STAYS}#a` }, TARGET, "resource_malformed"],
  ["IDJAG-4.3.3-6 an API that is no URI", { resource: "stays" }, TARGET, "resource_malformed"],
  ["IDJAG-4.3.3-6 a scope that is none", { scope: "read  book" }, "invalid_scope", "scope_malformed"],
];
for (const [name, form, error, reason] of malformed) {
  test(`IDJAG-4.3.4-6, ${name} is refused: ${error}`, async () => {
    await travellers.assertRefused(await travellers.fromIdToken(form), reason, error);
  });
}

test("EMA-7.6.1-1 an API of one partner is none of another, which has none", async () => {
  const subject_token = await travellers.user({ aud: booking });
  const form = { subject_token, subject_token_type: ID_TOKEN, requested_token_type: ID_JAG };
  const answer = await travellers.exchange({ ...form, audience: NARROW, resource: STAYS });
  await travellers.assertRefused(answer, "resource_not_allowed", "invalid_target");
});

test("RFC9396-5-1, RFC9396-5-2, IDJAG-4.3.3-6 authorization details are refused, whatever else is asked for", async () => {
  const reason = "authorization_details_unsupported";
  for (const form of [{}, { resource: STAYS, scope: "trips.read" }]) {
    const details = { ...form, authorization_details: '[{"type":"booking"}]' };
    const answer = await travellers.fromIdToken(details);
    await travellers.assertRefused(answer, reason, "invalid_authorization_details");
    grantOf(await travellers.fromIdToken({ ...details, authorization_details: "" }));
  }
});

// --- the identity assertion ---------------------------------------------------------------------------------------

const AUDIENCE = "subject_jwt_audience_refused";
const both = ["page", "app"];
const asJwt = { subject_token_type: JWT };
const ofOther = { aud: "app", claims: { iss: "https://other.example" } };

const assertions: [string, object, string | undefined, Form?][] = [
  ["for this client", { aud: "app" }, undefined],
  ["for this client and others", { aud: both }, undefined],
  ["for this client and others, issued to it", { aud: both, claims: { azp: "app" } }, undefined],
  ["for this client and others, issued to one of them", { aud: both, claims: { azp: "page" } }, AUDIENCE],
  ["for this client, issued to another", { aud: "app", claims: { azp: "page" } }, AUDIENCE],
  ["for this client, issued to several", { aud: "app", claims: { azp: ["app"] } }, AUDIENCE],
  ["for another client", { aud: "nameless" }, AUDIENCE],
  ["for the client's name at the partner", { aud: "app-there" }, AUDIENCE],
  ["for this server", { aud: ISSUER }, AUDIENCE],
  ["for nobody", { aud: "app", claims: { aud: undefined } }, "subject_jwt_audience_missing"],
  ["that has ended", { aud: "app", expSeconds: -60 }, "subject_jwt_expired"],
  ["of an unknown issuer", ofOther, "subject_issuer_unknown"],
  ["of another type", { aud: "app", header: { typ: "at+jwt" } }, "subject_jwt_type_refused"],
  ["for this client, said to be a JWT", { aud: "app" }, AUDIENCE, asJwt],
  ["for this server, said to be a JWT", { aud: ISSUER }, "subject_token_does_not_permit", asJwt],
];
for (const [name, input, reason, form] of assertions) {
  test(`IDJAG-4.3.3-1, IDJAG-4.3.3-2, IDJAG-4.3-3 an ID token ${name}: ${reason ?? "taken"}`, async () => {
    const answer = await travellers.fromIdToken({ subject_token: await travellers.user(input), ...form });
    if (reason !== undefined) return travellers.assertRefused(answer, reason);
    assert.equal(claimsOf(grantOf(answer)).sub, "u-1");
  });
}

test("IDJAG-4.3.3-1 an ID token whose signature is not its issuer's is refused", async () => {
  const [, payload] = (await travellers.user({ aud: "app", sub: "root" })).split(".");
  const [header, , signature] = (await travellers.user({ aud: "app" })).split(".");
  const answer = await travellers.fromIdToken({ subject_token: [header, payload, signature].join(".") });
  await travellers.assertRefused(answer, "subject_signature_invalid");
});

test("IDJAG-4.3.3-2 a workload is the client by its SPIFFE ID, and its ID token is for that", async () => {
  const ask = async (aud: string[]): Promise<Answer> =>
    travellers.exchange({
      ...{ subject_token: await travellers.user({ aud }), subject_token_type: ID_TOKEN },
      requested_token_type: ID_JAG,
    });
  const { client_id, act } = claimsOf(grantOf(await ask([booking, ISSUER])));
  assert.deepEqual([client_id, act], ["booking-there", { sub: booking }]);
  await travellers.assertRefused(await ask([planner, ISSUER]), AUDIENCE);
  // A rule has to name one of the audiences, and none names the workload's own.
  await travellers.assertRefused(await ask([booking]), "subject_token_does_not_permit");
});

test("IDJAG-4.3-3, PROD-4.1-27 other subject tokens become an ID-JAG only by a rule that says so", async () => {
  const form = { requested_token_type: ID_JAG };
  for (const subject of [{}, await travellers.delegated()]) {
    const answer = await travellers.exchange({ ...form, ...subject });
    await travellers.assertRefused(answer, "subject_token_does_not_permit");
    assert.equal((await travellers.exchange(subject)).body.issued_token_type, JWT);
  }
  const by = { by: "porter" };
  assert.equal(claimsOf(grantOf(await travellers.exchange(form, by))).client_id, "porter-there");
  // Its rule names what it takes, and ID tokens are not among that.
  const subject_token = await travellers.user({ aud: [workload("porter"), ISSUER] });
  const idToken = { subject_token, subject_token_type: ID_TOKEN };
  const answer = await travellers.exchange({ ...form, ...idToken }, by);
  await travellers.assertRefused(answer, "subject_token_does_not_permit");
});

test("IDJAG-3.1-5, IDJAG-5-1 who has no name at the partner has no ID-JAG for it, though a plain grant", async () => {
  const answer = await travellers.fromIdToken({}, "nameless");
  await travellers.assertRefused(answer, "client_unknown_at_partner");
  const plain = await travellers.fromIdToken({ requested_token_type: JWT }, "nameless");
  assert.equal(claimsOf(grantOf(plain)).client_id, undefined);
  const other = await travellers.fromIdToken({ requested_token_type: JWT });
  assert.equal(claimsOf(grantOf(other)).client_id, "app-there");
});

test("IDJAG-4.3.3-9, IDJAG-9.8-1, IDJAG-9.8-2 actor, owner and client stand apart in an ID-JAG, and the actor is the caller", async () => {
  const subject_token = await travellers.user({ aud: [booking, ISSUER] });
  const form = { subject_token, subject_token_type: ID_TOKEN, requested_token_type: ID_JAG };
  const { sub, act, client_id } = claimsOf(grantOf(await travellers.exchange(form)));
  assert.deepEqual([sub, act, client_id], ["u-1", { sub: booking }, "booking-there"]);
  const strangers = await travellers.world.svid("agents/planner");
  const answer = await travellers.exchange({ ...form, actor_token: strangers });
  await travellers.assertRefused(answer, "actor_not_the_caller");
  const nobodys = await travellers.exchange({ ...form, actor_token: await travellers.user() });
  assert.deepEqual([nobodys.status, nobodys.body.error], [400, "invalid_request"]);
});

// --- and why ------------------------------------------------------------------------------------------------------

const wishes: [string, Form, object, string, string?][] = [
  ["an API", { resource: STAYS }, { resources: [STAYS] }, "app"],
  ["a foreign API", { resource: API }, { resources: [API] }, "app"],
  ["no API", {}, {}, "app"],
  ["a client without a name there", {}, {}, "nameless"],
  ["a client that the ID token was not issued to", {}, {}, "app", "page"],
];
for (const [name, form, question, client, azp = client] of wishes) {
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
