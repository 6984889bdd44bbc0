/** A library that we did not write refreshes for a public client, bound by DPoP or not, and for a confidential one. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
  const base = forPeople(provider);
  world = await makeWorld(
    { ...base, policies: base.policies.map((rule) => ({ ...rule, refresh: true })) },
    { files: files(provider) },
  );
});
after(() => stop(world, provider));

async function discover(clientId: string, by: openid.ClientAuth): Promise<openid.Configuration> {
  const fetch = fetchAt({ [new URL(ISSUER).host]: { ca: world.ca, port: world.server.port } });
  return openid.discovery(new URL(ISSUER), clientId, undefined, by, {
    algorithm: "oauth2",
    [openid.customFetch]: fetch as openid.CustomFetch,
  });
}

/** The user allows what the library asks for, and the library redeems the code. */
async function obtain(config: openid.Configuration, redirect: string, options?: openid.DPoPOptions) {
  const verifier = openid.randomPKCECodeVerifier();
  const state = openid.randomState();
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirect,
    scope: [...SCOPES, "offline_access"].join(" "),
    resource: NOTES,
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
  });
  const browser = new Browser(world, provider);
  const page = await browser.signIn(await browser.follow(await browser.get(url.href)));
  const back = new URL(locationOf(await browser.decide(page)));
  const checks = { pkceCodeVerifier: verifier, expectedState: state };
  return openid.authorizationCodeGrant(config, back, checks, undefined, options);
}

const tokenIn = ({ refresh_token: token }: openid.TokenEndpointResponse): string =>
  token ?? assert.fail("no refresh token");

test("RFC6749-6-1, RFC6749-6-6, REFRESH-D-3, REFRESH-D-5 the library refreshes, retries and narrows as a public client", async () => {
  const config = await discover(PUBLIC, openid.None());
  const first = await obtain(config, LOOPBACK_REDIRECT);
  const second = await openid.refreshTokenGrant(config, tokenIn(first));
  const lost = await openid.refreshTokenGrant(config, tokenIn(first));
  assert.equal(tokenIn(lost), tokenIn(second));
  const third = await openid.refreshTokenGrant(config, tokenIn(second), { scope: "notes.read" });
  const { sub, scope } = claimsOf(third.access_token);
  assert.deepEqual([sub, scope], ["company:alice", "notes.read"]);
  await openid.tokenRevocation(config, tokenIn(third));
  await assert.rejects(openid.refreshTokenGrant(config, tokenIn(third)), { error: "invalid_grant" });
});

test("RFC9449-5-5, RFC9449-5-7, REFRESH-D-8 the library refreshes with the key of the code, and with no other", async () => {
  const config = await discover(PUBLIC, openid.None());
  const keyed = async (): Promise<openid.DPoPOptions> => ({
    DPoP: openid.getDPoPHandle(config, await openid.randomDPoPKeyPair()),
  });
  const [own, other] = [await keyed(), await keyed()];
  const first = await obtain(config, LOOPBACK_REDIRECT, own);
  await assert.rejects(openid.refreshTokenGrant(config, tokenIn(first), undefined, other), {
    error: "invalid_grant",
  });
  const second = await openid.refreshTokenGrant(config, tokenIn(first), undefined, own);
  assert.equal(second.token_type, "dpop");
});

test("RFC6749-6-3, REFRESH-D-3 the library refreshes again and again as a client with a secret", async () => {
  const config = await discover(PRIVATE, openid.ClientSecretBasic(PRIVATE_SECRET));
  const first = await obtain(config, WEB_REDIRECT);
  for (let time = 0; time < 2; time++) {
    const next = await openid.refreshTokenGrant(config, tokenIn(first));
    assert.equal(next.refresh_token, undefined);
    assert.equal(claimsOf(next.access_token).client_id, PRIVATE);
  }
});
