/** A library that we did not write runs the code flow with a pushed request, as a confidential client. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as oauth from "oauth4webapi";
import {
  Browser,
  files,
  forPeople,
  locationOf,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  SCOPES,
  WEB_REDIRECT,
} from "../support/people.ts";
import type { TestProvider } from "../support/provider.ts";
import { startProvider } from "../support/provider.ts";
import { fetchAt } from "../support/web.ts";
import type { World } from "../support/world.ts";
import { claimsOf, ISSUER, makeWorld } from "../support/world.ts";

let provider: TestProvider;
let world: World;
before(async () => {
  provider = await startProvider();
  world = await makeWorld(forPeople(provider), { files: files(provider) });
});
after(async () => {
  await world.stop();
  await provider.close();
});

const client: oauth.Client = { client_id: PRIVATE };
const proof = oauth.ClientSecretBasic(PRIVATE_SECRET);

test("RFC9126-2.2-1, RFC9207-2-1, RFC7636-4.6-1 the library discovers, pushes, checks the response and redeems", async () => {
  const options = {
    [oauth.customFetch]: fetchAt({ [new URL(ISSUER).host]: { ca: world.ca, port: world.server.port } }),
  };
  const issuer = new URL(ISSUER);
  const server = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...options }),
  );
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const pushed = await oauth.processPushedAuthorizationResponse(
    server,
    client,
    await oauth.pushedAuthorizationRequest(
      server,
      client,
      proof,
      {
        response_type: "code",
        redirect_uri: WEB_REDIRECT,
        scope: SCOPES.join(" "),
        resource: NOTES,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
        state,
      },
      options,
    ),
  );
  const browser = new Browser(world, provider);
  const page = await browser.review({ client_id: PRIVATE, request_uri: pushed.request_uri });
  const back = await browser.decide(page);
  // It refuses a response without `iss`, or with another, because the metadata say that there is one.
  const response = oauth.validateAuthResponse(server, client, new URL(locationOf(back)), state);
  const answer = await oauth.processAuthorizationCodeResponse(
    server,
    client,
    await oauth.authorizationCodeGrantRequest(
      server,
      client,
      proof,
      response,
      WEB_REDIRECT,
      verifier,
      options,
    ),
  );
  const { sub, client_id, scope } = claimsOf(answer.access_token);
  assert.deepEqual([sub, client_id, scope], ["company:alice", PRIVATE, SCOPES.join(" ")]);
});
