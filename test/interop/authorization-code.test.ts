/** Libraries that we did not write run the code flow with a pushed request, bound to a key or not. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import {
  Browser,
  files,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  PUBLIC,
  SCOPES,
  WEB_REDIRECT,
} from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { fetchAt } from "../support/web.ts";
import { claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";

let provider: TestProvider;
let world: World;
before(async () => {
  provider = await startProvider();
  world = await makeWorld(forPeople(provider), { files: files(provider) });
});
after(() => stop(world, provider));

const client: oauth.Client = { client_id: PRIVATE };
const proof = oauth.ClientSecretBasic(PRIVATE_SECRET);

const byWorld = () => fetchAt({ [new URL(ISSUER).host]: { ca: world.ca, port: world.server.port } });

async function discover(): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(ISSUER);
  const options = { algorithm: "oauth2", [oauth.customFetch]: byWorld() } as const;
  return oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, options));
}

/** The library pushes what is asked for, the user allows it, and the library checks the response and redeems the code. */
async function obtain(
  asked: Record<string, string> = {},
  { atPar, atToken }: { atPar?: oauth.DPoPHandle; atToken?: oauth.DPoPHandle } = {},
): Promise<oauth.TokenEndpointResponse> {
  const server = await discover();
  const by = (DPoP?: oauth.DPoPHandle) => ({ [oauth.customFetch]: byWorld(), ...(DPoP && { DPoP }) });
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const form = {
    response_type: "code",
    redirect_uri: WEB_REDIRECT,
    scope: SCOPES.join(" "),
    resource: NOTES,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...asked,
  };
  const sent = await oauth.pushedAuthorizationRequest(server, client, proof, form, by(atPar));
  const pushed = await oauth.processPushedAuthorizationResponse(server, client, sent);
  const browser = new Browser(world, provider);
  const page = await browser.review({ client_id: PRIVATE, request_uri: pushed.request_uri });
  const back = await browser.decide(page);
  // It refuses a response without `iss`, or with another, because the metadata say that there is one.
  const response = oauth.validateAuthResponse(server, client, new URL(locationOf(back)), state);
  return oauth.processAuthorizationCodeResponse(
    server,
    client,
    await oauth.authorizationCodeGrantRequest(
      server,
      client,
      proof,
      response,
      WEB_REDIRECT,
      verifier,
      by(atToken),
    ),
  );
}

test("RFC9126-2.2-1, RFC9207-2-1, RFC7636-4.6-1 the library discovers, pushes, checks the response and redeems", async () => {
  const { sub, client_id, scope } = claimsOf((await obtain()).access_token);
  assert.deepEqual([sub, client_id, scope], ["company:alice", PRIVATE, SCOPES.join(" ")]);
});

const makeHandle = async () => oauth.DPoP(client, await oauth.generateKeyPair("ES256"));
const REFUSED = { error: "invalid_grant" };

test("RFC9449-10.1-1 the library pushes with a proof and redeems by that key; by another, or without, it is refused", async () => {
  const [own, other] = [await makeHandle(), await makeHandle()];
  const { access_token, token_type } = await obtain({}, { atPar: own, atToken: own });
  assert.equal(token_type, "dpop");
  assert.deepEqual(claimsOf(access_token).cnf, { jkt: await own.calculateThumbprint() });
  await assert.rejects(obtain({}, { atPar: own, atToken: other }), REFUSED);
  await assert.rejects(obtain({}, { atPar: own }), REFUSED);
});

test("RFC9449-10-1, RFC9449-10.1-2 the thumbprint that the library computes binds the code; another key is refused", async () => {
  const [own, other] = [await makeHandle(), await makeHandle()];
  const asked = { dpop_jkt: await own.calculateThumbprint() };
  assert.equal((await obtain(asked, { atToken: own })).token_type, "dpop");
  await assert.rejects(obtain(asked, { atToken: other }), REFUSED);
});

test("RFC9449-10.1-3 the library is told that its proof and dpop_jkt differ, and is refused", async () => {
  const [own, other] = [await makeHandle(), await makeHandle()];
  const asked = { dpop_jkt: await other.calculateThumbprint() };
  await assert.rejects(obtain(asked, { atPar: own, atToken: own }), { error: "invalid_request" });
});

test("RFC9449-10.1-1, RFC9449-5-5 openid-client pushes with a proof as a public client; its code is redeemed by that key, and by no other", async () => {
  const config = await openid.discovery(new URL(ISSUER), PUBLIC, undefined, openid.None(), {
    algorithm: "oauth2",
    [openid.customFetch]: byWorld() as openid.CustomFetch,
  });
  const keyed = async () => ({ DPoP: openid.getDPoPHandle(config, await openid.randomDPoPKeyPair()) });
  const [own, other] = [await keyed(), await keyed()];
  const redeem = async (by: openid.DPoPOptions): Promise<openid.TokenEndpointResponse> => {
    const verifier = openid.randomPKCECodeVerifier();
    const asked = {
      redirect_uri: LOOPBACK_REDIRECT,
      scope: SCOPES.join(" "),
      resource: NOTES,
      code_challenge: await openid.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    };
    const url = await openid.buildAuthorizationUrlWithPAR(config, asked, own);
    const browser = new Browser(world, provider);
    const page = await browser.signIn(await browser.follow(await browser.get(url.href)));
    const back = new URL(locationOf(await browser.decide(page)));
    return openid.authorizationCodeGrant(config, back, { pkceCodeVerifier: verifier }, undefined, by);
  };
  assert.equal((await redeem(own)).token_type, "dpop");
  await assert.rejects(redeem(other), REFUSED);
});
