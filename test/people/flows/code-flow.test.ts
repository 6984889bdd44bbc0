/** The authorization code flow from the first request to the token, within this process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  Browser,
  files,
  formOf,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  NOTES,
  PRIVATE,
  PUBLIC,
  parametersOf,
  redeem,
  request,
  SCOPES,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, ISSUER, type Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  service = await makeService(forPeople(provider), { files: files(provider) });
});
after(() => stop(service, provider));

test("RFC6749-4.1.2-6, RFC9207-2-1, RFC7636-4.4-2, RFC6750-5.3-4, RFC6749-4.1.1-1, RFC6749-3.1.1-1 a user signs in, allows, and the client gets a token of the user", async () => {
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const page = await browser.review(request(verifier));
  assert.equal(page.status, 200, page.text);
  assert.deepEqual(formOf(page).scopes, SCOPES);
  const back = await browser.decide(page);
  assert.equal(back.status, 303, back.text);
  const { code = "", ...rest } = parametersOf(back);
  assert.deepEqual(rest, { state: "the state", iss: ISSUER });
  const answer = await redeem(service, code, verifier);
  assert.equal(answer.status, 200, answer.text);
  const { sub, client_id, aud, scope, act, auth_time } = claimsOf(answer.body.access_token);
  assert.deepEqual(
    { sub, client_id, aud, scope, act },
    { sub: "company:alice", client_id: PRIVATE, aud: NOTES, scope: SCOPES.join(" "), act: undefined },
  );
  assert.equal(typeof auth_time, "number");
});

test("MCPC-D-1, MCPC-D-9, PAGE-D-8, RFC6749-4.1.3-2, MCP-S.4-2 a public client redeems with its verifier alone", async () => {
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const redirect = LOOPBACK_REDIRECT.replace("127.0.0.1", "127.0.0.1:49152");
  const page = await browser.review(request(verifier, { client_id: PUBLIC, redirect_uri: redirect }));
  const unconfirmed = await browser.decide(page, { confirm: "" });
  assert.equal(unconfirmed.status, 400);
  const back = await browser.decide(unconfirmed);
  const { code = "" } = parametersOf(back);
  assert.ok(locationOf(back).startsWith(`${redirect}?`));
  const answer = await redeem(service, code, verifier, { client_id: PUBLIC, redirect_uri: redirect }, {});
  assert.equal(answer.status, 200, answer.text);
});
