/** Libraries that we did not write discover a server whose issuer has a path, each in the way that it knows. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { discoverAuthorizationServerMetadata } from "@modelcontextprotocol/client";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import { files, forPeople, PRIVATE, PRIVATE_SECRET } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { type Fetch, fetchAt } from "../support/web.ts";
import { claimsOf, ISSUER as HOST, makeWorld, type World } from "../support/world.ts";

const ISSUER = `${HOST}/tenants/one`;
const API = "https://api.example";

let provider: TestProvider;
let world: World;
let fetch: Fetch;
before(async () => {
  provider = await startProvider();
  const people = forPeople(provider);
  const api = { names: [API], scopes: ["read"] };
  const audit = {
    id: "audit",
    allow: "client_credentials",
    clients: [PRIVATE],
    targets: [`${ISSUER}/api`],
    scopes: ["audit:read"],
  };
  const own = {
    id: "own",
    allow: "client_credentials",
    clients: [PRIVATE],
    targets: [API],
    scopes: ["read"],
  };
  world = await makeWorld(
    {
      ...people,
      issuer: ISSUER,
      targets: [...people.targets, api],
      policies: [...people.policies, own, audit],
    },
    { files: files(provider) },
  );
  fetch = fetchAt({ [new URL(HOST).host]: { ca: world.ca, port: world.server.port } });
});
after(() => stop(world, provider));

for (const algorithm of ["oauth2", "oidc"] as const) {
  test(`RFC8414-3-1, MCP-D.3-2, PROD-9.2-6 openid-client discovers it by ${algorithm} and obtains a token`, async () => {
    const config = await openid.discovery(
      new URL(ISSUER),
      PRIVATE,
      {},
      openid.ClientSecretBasic(PRIVATE_SECRET),
      {
        algorithm,
        [openid.customFetch]: fetch as openid.CustomFetch,
      },
    );
    assert.equal(config.serverMetadata().issuer, ISSUER);
    const { access_token } = await openid.clientCredentialsGrant(config, { resource: API });
    assert.deepEqual([claimsOf(access_token).iss, claimsOf(access_token).aud], [ISSUER, API]);
  });

  test(`RFC8414-3-1, MCP-D.3-2, PROD-9.2-6 oauth4webapi discovers it by ${algorithm}`, async () => {
    const issuer = new URL(ISSUER);
    const answer = await oauth.discoveryRequest(issuer, { algorithm, [oauth.customFetch]: fetch });
    const server = await oauth.processDiscoveryResponse(issuer, answer);
    assert.equal(server.token_endpoint, `${ISSUER}/token`);
  });
}

test("RFC9728-3.3-4, RFC9728-5.1-1 a strict client is led from each protected URL to its own document, and uses it with the token that it asks for there, and nowhere else", async () => {
  const transport = { [oauth.customFetch]: fetch };
  const client = { client_id: PRIVATE };
  for (const path of [
    "/audit/events",
    "/audit/checkpoints",
    "/register",
    "/policy/explain",
    "/revocations",
  ]) {
    const url = new URL(ISSUER + path);
    const method = ["/register", "/policy/explain", "/revocations"].includes(path) ? "POST" : "GET";
    const refused = await fetch(url, { method, ...(method === "POST" && { body: "{}" }) });
    const [, led = ""] =
      /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "") ?? [];
    const asked = await oauth.resourceDiscoveryRequest(url, transport);
    const document = await oauth.processResourceDiscoveryResponse(url, asked);
    assert.deepEqual(await (await fetch(led)).json(), document, path);
    assert.equal(document.resource, url.href);
    assert.deepEqual(document.authorization_servers, [ISSUER]);
  }
  const issuer = new URL(ISSUER);
  const found = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...transport });
  const server = await oauth.processDiscoveryResponse(issuer, found);
  const parameters = { resource: `${ISSUER}/audit/events`, scope: "audit:read" };
  const secret = oauth.ClientSecretBasic(PRIVATE_SECRET);
  const answer = await oauth.clientCredentialsGrantRequest(server, client, secret, parameters, transport);
  const { access_token } = await oauth.processClientCredentialsResponse(server, client, answer);
  const headers = { authorization: `Bearer ${access_token}` };
  assert.equal((await fetch(`${ISSUER}/audit/events`, { headers })).status, 200);
  assert.equal((await fetch(`${ISSUER}/audit/checkpoints`, { headers })).status, 401);
});

test("RFC8414-3-1, MCP-D.3-2 the MCP SDK discovers it, with a final slash as well", async () => {
  for (const issuer of [ISSUER, `${ISSUER}/`]) {
    const metadata = await discoverAuthorizationServerMetadata(issuer, {
      fetchFn: fetch as typeof globalThis.fetch,
    });
    assert.equal(metadata?.issuer, ISSUER, issuer);
  }
});

test("PAGE-D-29 a browser reads what this is at the issuer's own URL, and nothing at the root of its host", async () => {
  const headers = { accept: "text/html" };
  const page = await fetch(ISSUER, { headers });
  assert.equal(page.status, 200);
  assert.match(await page.text(), new RegExp(`<a href="${ISSUER}/account">`));
  assert.equal((await fetch(new URL("/", ISSUER), { headers })).status, 404);
});
