/**
 * Enterprise-managed authorization with the helpers of the Model Context Protocol's TypeScript SDK, between two
 * instances: the company's, which issues the grant for an ID token, and a partner's, which redeems it.
 * Left out, because the SDK's discovery requires an authorization endpoint: `discoverAndRequestJwtAuthGrant`, and
 * `auth` without a `discoveryState`. The helpers send no actor token, so these grants have no `act`.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type AuthorizationServerMetadata,
  auth,
  CrossAppAccessProvider,
  exchangeJwtAuthGrant,
  requestJwtAuthorizationGrant,
} from "@modelcontextprotocol/client";
import { DRAFT as ID_JAG_DRAFT, ID_JAG_PROFILE } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { stop } from "../support/stop.ts";
import { type DocumentServer, type Fetch, fetchAt, LOOPBACK, startDocumentServer } from "../support/web.ts";
import { claimsOf, IDP, ISSUER, makeWorld, type World } from "../support/world.ts";

const PARTNER = "https://partner.example";
const OTHER_API = "https://other-api.partner.example";
const drafts = [SPIFFE_DRAFT, ID_JAG_DRAFT, CHAINING_DRAFT];
const scopes = ["trips.read", "trips.book"];
/** The application's credentials at each of the two servers, and those of another client of the partner. */
const HERE = { clientId: "app", clientSecret: "the-secret-of-the-app-here-1234567" };
const THERE = { clientId: "app-there", clientSecret: "the-secret-of-the-app-there-123456" };
const OTHER = { clientId: "other-there", clientSecret: "the-secret-of-another-there-123456" };
const asked = { consent: "implied", acknowledge: "subjects-not-asked" };

/** The MCP server of the partner. */
let tools: DocumentServer;
let resource: string;
let company: World;
let partner: World;
let fetchFn: Fetch;

before(async () => {
  tools = await startDocumentServer();
  resource = `${tools.origin}/tools`;
  tools.documents.set("/.well-known/oauth-protected-resource/tools", {
    resource,
    authorization_servers: [PARTNER],
    scopes_supported: ["trips.read"],
  });
  company = await makeWorld(
    {
      clients: { app: { method: "client_secret_post", secrets: [HERE.clientSecret] } },
      targets: [
        {
          kind: "partner",
          issuer: PARTNER,
          scopes,
          resources: [resource],
          clients: { app: THERE.clientId },
        },
      ],
      policies: [
        {
          id: "employees-by-app",
          allow: "impersonation",
          issues: "grant",
          clients: ["app"],
          subjects: { issuers: [IDP] },
          // ISSUER is listed so that an ID token for this server is refused for being no ID token of the client.
          subjectToken: { audiences: ["app", ISSUER] },
          ...asked,
          targets: [PARTNER],
          scopes,
        },
      ],
      drafts,
    },
    { idp: { scopes } },
  );
  const guests = {
    allow: "redemption",
    clients: [THERE.clientId, OTHER.clientId],
    ...asked,
    subjects: { issuers: [ISSUER] },
  };
  partner = await makeWorld(
    {
      trustedIssuers: {
        [ISSUER]: {
          keys: {
            url: `https://localhost:${company.server.port}/jwks`,
            ca: { file: "company.pem" },
            privateNetworks: LOOPBACK,
          },
          acceptAs: [],
          subjects: { prefix: "company:" },
          grants: { profiles: ["id-jag"] },
        },
      },
      clients: {
        [THERE.clientId]: { method: "client_secret_basic", secrets: [THERE.clientSecret] },
        [OTHER.clientId]: { method: "client_secret_basic", secrets: [OTHER.clientSecret] },
      },
      targets: [
        { names: [resource], scopes },
        { names: [OTHER_API], scopes },
      ],
      policies: [{ id: "guests", ...guests, targets: [resource, OTHER_API], scopes }],
      drafts,
    },
    { host: "partner.example", files: { "company.pem": company.ca } },
  );
  fetchFn = fetchAt({
    "as.example": { ca: company.ca, port: company.server.port },
    "partner.example": { ca: partner.ca, port: partner.server.port },
    localhost: { ca: tools.ca },
  });
});

after(() => stop(partner, company, tools));

/** The ID token that the application gets when its user signs in. */
const signIn = (aud = HERE.clientId): Promise<string> => company.idp.mintUserToken({ sub: "u-1", aud });

type Wish = Partial<Parameters<typeof requestJwtAuthorizationGrant>[0]>;

const request = async (wish: Wish = {}) =>
  requestJwtAuthorizationGrant({
    tokenEndpoint: `${ISSUER}/token`,
    audience: PARTNER,
    resource,
    scope: "trips.read",
    idToken: await signIn(),
    ...HERE,
    fetchFn,
    ...wish,
  });

const redeem = (jwtAuthGrant: string, by = THERE) =>
  exchangeJwtAuthGrant({ tokenEndpoint: `${PARTNER}/token`, jwtAuthGrant, ...by, fetchFn });

test("IDJAG-4.3.4-1, IDJAG-4.3.4-4, EMA-4-2, EMA-5.1-1 an ID token is exchanged for a grant at one instance and redeemed for a token at the other", async () => {
  const granted = await request();
  assert.deepEqual([granted.expiresIn, granted.scope], [60, "trips.read"]);
  const { iss, sub, aud, client_id, resource: api } = claimsOf(granted.jwtAuthGrant);
  assert.deepEqual([iss, sub, aud, client_id, api], [ISSUER, "u-1", PARTNER, THERE.clientId, resource]);

  const tokens = await redeem(granted.jwtAuthGrant);
  assert.deepEqual([tokens.token_type, tokens.scope, tokens.expires_in], ["Bearer", "trips.read", 300]);
  const there = claimsOf(tokens.access_token);
  assert.deepEqual([there.iss, there.sub, there.aud], [PARTNER, "company:u-1", resource]);
});

/** Supplies what discovery would have found if there were an authorization endpoint. */
class Application extends CrossAppAccessProvider {
  readonly metadata: AuthorizationServerMetadata;
  constructor(metadata: AuthorizationServerMetadata) {
    super({
      ...THERE,
      expectedIssuer: PARTNER,
      fetchFn,
      assertion: async ({ authorizationServerUrl, resourceUrl, scope = "", fetchFn }) => {
        const wish = { audience: authorizationServerUrl, resource: resourceUrl, scope, fetchFn };
        return (await request(wish)).jwtAuthGrant;
      },
    });
    this.metadata = metadata;
  }
  discoveryState() {
    return { authorizationServerUrl: PARTNER, authorizationServerMetadata: this.metadata };
  }
}

test("EMA-5.1-1, EMA-6-1 auth() starts from the resource's metadata document and ends with a token for the resource", async () => {
  const { body } = await partner.get("/.well-known/oauth-authorization-server");
  assert.deepEqual(body.authorization_grant_profiles_supported, [ID_JAG_PROFILE]);
  const provider = new Application(body as AuthorizationServerMetadata);
  assert.equal(await auth(provider, { serverUrl: resource, fetchFn }), "AUTHORIZED");
  const { sub, aud, scope, client_id } = claimsOf(provider.tokens()?.access_token);
  assert.deepEqual([sub, aud, scope, client_id], ["company:u-1", resource, "trips.read", THERE.clientId]);
});

// --- refusals, as the SDK reports them -----------------------------------------------------------------------------

const REFUSED: [string, () => Promise<Wish>, string][] = [
  [
    "IDJAG-4.3.3-2 an ID token for the server instead of the client",
    async () => ({ idToken: await signIn(ISSUER) }),
    "invalid_request",
  ],
  [
    "IDJAG-4.3-2 an unknown audience",
    async () => ({ audience: "https://unknown.example" }),
    "invalid_target",
  ],
  [
    "IDJAG-4.3-2 an audience with an extra slash",
    async () => ({ audience: new URL(PARTNER) }),
    "invalid_target",
  ],
  [
    "EMA-7.6.1-1 a resource that the partner's entry does not list",
    async () => ({ resource: "https://api.example" }),
    "invalid_target",
  ],
  ["IDJAG-4.3.3-5 an unknown scope", async () => ({ scope: "trips.cancel" }), "invalid_scope"],
  ["EMA-7.7-1 a wrong secret", async () => ({ clientSecret: "wrong" }), "invalid_client"],
];
for (const [name, wish, error] of REFUSED) {
  test(`${name} gets no grant`, async () => {
    await assert.rejects(request(await wish()), { message: new RegExp(`^Token exchange failed: ${error} `) });
  });
}

test("EMA-7.4.2-2, IDC-5.5-2 a grant is redeemed once", async () => {
  const { jwtAuthGrant } = await request();
  await redeem(jwtAuthGrant);
  await assert.rejects(redeem(jwtAuthGrant), /invalid_grant/);
});

test("IDJAG-4.4.1-4 a grant presented by another client is refused, and stays valid for its own client", async () => {
  const { jwtAuthGrant } = await request();
  await assert.rejects(redeem(jwtAuthGrant, OTHER), /invalid_grant/);
  await redeem(jwtAuthGrant);
});

test("IDC-2.4.2-4 an ID token is refused as a grant, because its issuer is not trusted for grants", async () => {
  await assert.rejects(redeem(await signIn(THERE.clientId)), /invalid_grant/);
});
