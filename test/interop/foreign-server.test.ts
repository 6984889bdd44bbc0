/**
 * An authorization server that we did not write redeems our grants with its own code: Cloudflare's OAuth provider,
 * unmodified, which fetches our keys and has its own JOSE implementation. This file supplies the base class and the
 * key-value store of its platform. It supports ID-JAG only; we know of no server on npm that redeems a plain grant of
 * identity chaining.
 */
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { after, before, test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { OAuthAuthorizationServer } from "@cloudflare/workers-oauth-provider";
import {
  auth,
  CrossAppAccessProvider,
  exchangeJwtAuthGrant,
  requestJwtAuthorizationGrant,
} from "@modelcontextprotocol/client";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { stop } from "../support/stop.ts";
import {
  type DocumentServer,
  type Fetch,
  fetchAt,
  startDocumentServer,
  startWebServer,
  type WebServer,
} from "../support/web.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const OTHER_PARTNER = "https://other-partner.example";
const SECRET = "the-secret-of-the-app-here-1234567";
const scopes = ["trips.read", "trips.book"];
const planner = workload("agents/planner");
const booking = workload("agents/booking");

// --- the foreign server -------------------------------------------------------------------------------------------

type Credentials = { clientId: string; clientSecret: string };
type Peer = WebServer & {
  server: OAuthAuthorizationServer;
  /** Two clients that it registered. */
  clients: [Credentials, Credentials];
  /** The reasons of its refusals, as it names them. */
  reasons: string[];
  validate(token: string): Promise<unknown>;
};

registerHooks({
  resolve: (name, context, next) =>
    name === "cloudflare:workers"
      ? { url: "data:text/javascript,export class WorkerEntrypoint {}", format: "module", shortCircuit: true }
      : next(name, context),
});
const cloudflare = await import("@cloudflare/workers-oauth-provider");

function makeStore(): object {
  const values = new Map<string, string>();
  return {
    async get(key: string, { type = "text" } = {}) {
      const value = values.get(key);
      return type === "json" && value !== undefined ? JSON.parse(value) : (value ?? null);
    },
    put: async (key: string, value: string) => void values.set(key, value),
    delete: async (key: string) => void values.delete(key),
    list: async () => ({ keys: [...values.keys()].map((name) => ({ name })), list_complete: true }),
  };
}

/** Trusts the server at this URL as our issuer, and identifies our users by their `sub`. */
async function startPeer(resource: string, jwksUri: () => string): Promise<Peer> {
  const env = { OAUTH_KV: makeStore() };
  const context = { waitUntil() {}, passThroughOnException() {} };
  const web = await startWebServer((request) => server.fetch(request, env, context));
  const reasons: string[] = [];
  const server = new cloudflare.OAuthAuthorizationServer({
    issuer: web.origin,
    resources: [resource],
    defaultResource: resource,
    tokenEndpoint: "/token",
    enterpriseManagedAuthorization: {
      trustedIssuers: async ({ iss }) =>
        iss === ISSUER ? { issuer: ISSUER, jwksUri: jwksUri(), algorithms: ["ES256"] } : null,
      mapClaims: async ({ claims: { sub, act }, requestedScope }) => ({
        userId: encodeURIComponent(sub),
        scope: requestedScope,
        props: { sub, act },
      }),
    },
    onError: ({ internal }) => void reasons.push(internal?.reason ?? ""),
  });
  const createClient = async (): Promise<Credentials> => {
    const { clientId, clientSecret = "" } = await server.getOAuthApi(env).createClient({
      redirectUris: ["https://app.example/callback"],
      tokenEndpointAuthMethod: "client_secret_basic",
    });
    return { clientId, clientSecret };
  };
  const clients: Peer["clients"] = [await createClient(), await createClient()];
  const validate = (token: string) => server.validateToken(resource, token, env);
  return { ...web, server, clients, reasons, validate };
}

// --- the two sides ------------------------------------------------------------------------------------------------

let tools: DocumentServer;
let resource: string;
let peer: Peer;
let world: World;
let fetchFn: Fetch;

before(async () => {
  tools = await startDocumentServer();
  resource = `${tools.origin}/tools`;
  peer = await startPeer(resource, () => `https://localhost:${world.server.port}/jwks`);
  tools.documents.set("/.well-known/oauth-protected-resource/tools", {
    resource,
    authorization_servers: [peer.origin],
    scopes_supported: ["trips.read"],
  });
  const [{ clientId: there }] = peer.clients;
  const partner = {
    kind: "partner",
    scopes,
    clients: { app: there, [booking]: there },
    resources: [resource, `${tools.origin}/other`],
  };
  const forUsers = {
    subjects: { issuers: [IDP] },
    consent: "implied",
    acknowledge: "subjects-not-asked",
    scopes,
  };
  const partners = [peer.origin, OTHER_PARTNER];
  world = await makeWorld(
    {
      clients: { app: { method: "client_secret_post", secrets: [SECRET] } },
      targets: [
        { ...partner, issuer: peer.origin },
        { ...partner, issuer: OTHER_PARTNER },
        { names: ["booking-agent"], owners: [booking], scopes },
      ],
      policies: [
        {
          id: "planner-to-booking",
          allow: "delegation",
          actors: [planner],
          ...forUsers,
          subjectToken: { audiences: [ISSUER] },
          targets: ["booking-agent"],
        },
        {
          id: "booking-abroad",
          allow: "delegation",
          issues: "grant",
          actors: [booking],
          ...forUsers,
          subjectToken: { audiences: ["self"] },
          targets: partners,
          idJagSubjects: ["access_token"],
        },
        {
          id: "employees-by-app",
          allow: "impersonation",
          issues: "grant",
          clients: ["app"],
          ...forUsers,
          subjectToken: { audiences: ["app"] },
          targets: [peer.origin],
        },
      ],
      drafts: [SPIFFE_DRAFT, ID_JAG_DRAFT, CHAINING_DRAFT],
    },
    { idp: { scopes } },
  );
  // The peer fetches our keys with the global fetch.
  setDefaultCACertificates([...getCACertificates("default"), world.ca]);
  fetchFn = fetchAt({
    "as.example": { ca: world.ca, port: world.server.port },
    localhost: { ca: tools.ca + peer.ca },
  });
});

after(() => stop(world, peer, tools));

async function exchange(actor: string, form: Form): Promise<string> {
  const svid = await world.svid(actor);
  const answer = await world.token({
    grant_type: EXCHANGE,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    ...form,
  });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** The token that the planner obtains for booking: it speaks for the user, with the planner in `act`. */
async function handOn(): Promise<string> {
  const subject_token = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: scopes.join(" ") });
  return exchange("agents/planner", {
    subject_token,
    subject_token_type: JWT,
    audience: "booking-agent",
  });
}

/** Booking's grant for the peer, which names the user and the planner. */
const grant = async (form: Form = {}): Promise<string> =>
  exchange("agents/booking", {
    subject_token: await handOn(),
    subject_token_type: ACCESS_TOKEN,
    requested_token_type: ID_JAG,
    audience: peer.origin,
    resource,
    scope: "trips.read",
    ...form,
  });

const redeem = (jwtAuthGrant: string, by = peer.clients[0]) =>
  exchangeJwtAuthGrant({ tokenEndpoint: `${peer.origin}/token`, jwtAuthGrant, ...by, fetchFn });

test("IDJAG-3.1-4, IDJAG-3.1-5, IDJAG-3.1-6, IDJAG-3.1-7, EMA-4.3-1, IDC-2.3.3-2 the peer redeems our grant and reads the user and the agents from it", async () => {
  const ours = await grant();
  const tokens = await redeem(ours);
  assert.equal(tokens.scope, "trips.read");
  const { act } = claimsOf(ours);
  assert.deepEqual(act, { sub: booking, act: { sub: planner } });
  const { props, scope, audience, clientId } = Object(await peer.validate(tokens.access_token));
  assert.deepEqual(props, { sub: "u-1", act });
  assert.deepEqual([scope, audience, clientId], [["trips.read"], resource, peer.clients[0].clientId]);
});

test("IDJAG-4.3.4-1, EMA-4-2 the MCP SDK completes the flow with three parties, of which one is ours", async () => {
  const provider = new CrossAppAccessProvider({
    ...peer.clients[0],
    expectedIssuer: peer.origin,
    fetchFn,
    async assertion({ authorizationServerUrl, resourceUrl, scope = "", fetchFn }) {
      const idToken = await world.idp.mintUserToken({ sub: "u-2", aud: "app" });
      const granted = await requestJwtAuthorizationGrant({
        tokenEndpoint: `${ISSUER}/token`,
        audience: authorizationServerUrl,
        resource: resourceUrl,
        clientId: "app",
        clientSecret: SECRET,
        idToken,
        scope,
        fetchFn,
      });
      return granted.jwtAuthGrant;
    },
  });
  assert.equal(await auth(provider, { serverUrl: resource, fetchFn }), "AUTHORIZED");
  const found = Object(await peer.validate(provider.tokens()?.access_token ?? ""));
  assert.deepEqual([found.userId, found.audience, found.scope], ["u-2", resource, ["trips.read"]]);
});

// --- refusals by the peer -----------------------------------------------------------------------------------------

const REFUSED: [string, () => Promise<string>, string][] = [
  ["IDC-2.3.3-3 our grant for another partner", () => grant({ audience: OTHER_PARTNER }), "aud_mismatch"],
  [
    "EMA-4.3-1 our grant for another API",
    () => grant({ resource: `${tools.origin}/other` }),
    "resource_mismatch",
  ],
  [
    "EMA-4.3-1 our grant for two APIs at once",
    () => grant({ resource: [resource, `${tools.origin}/other`] }),
    "invalid_claim",
  ],
  [
    "RFC8725-3.11-v1 our plain grant",
    () => grant({ requested_token_type: JWT, resource: [] }),
    "invalid_typ",
  ],
  ["RFC8725-3.11-v1 our access token", handOn, "invalid_typ"],
  ["our grant with a changed sub", async () => forUser(await grant(), "u-9"), "signature_failed"],
];

/** Replaces `sub` and keeps the signature, which is then wrong. */
function forUser(jwt: string, sub: string): string {
  const [header, , signature] = jwt.split(".");
  const claims = Buffer.from(JSON.stringify({ ...claimsOf(jwt), sub })).toString("base64url");
  return `${header}.${claims}.${signature}`;
}

for (const [name, token, reason] of REFUSED) {
  test(`${name} is refused by the peer: ${reason}`, async () => {
    await assertRefused(redeem(await token()), reason);
  });
}

test("EMA-7.4.2-2, IDJAG-3.1-6 our grant a second time is refused by the peer: replayed", async () => {
  const ours = await grant();
  await redeem(ours);
  await assertRefused(redeem(ours), "replayed");
});

test("IDJAG-3.1-5 our grant presented by another client is refused by the peer: client_id_mismatch", async () => {
  await assertRefused(redeem(await grant(), peer.clients[1]), "client_id_mismatch");
});

async function assertRefused(redeemed: Promise<unknown>, reason: string): Promise<void> {
  const known = peer.reasons.length;
  await assert.rejects(redeemed, /invalid_(grant|target)/);
  assert.deepEqual(peer.reasons.slice(known), [reason]);
}
