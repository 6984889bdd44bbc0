/**
 * A server to which the grants of other domains come: how each of their issuers is trusted, who may redeem what, and
 * what a test does with it.
 */
import assert from "node:assert/strict";
import { exportJWK, generateKeyPair } from "jose";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { type Claims, type Foreign, makeForeign } from "./foreign.ts";
import { makeService } from "./service.ts";
import { LOOPBACK, startDocumentServer } from "./web.ts";
import {
  claimsOf,
  type Event,
  type Form,
  ISSUER,
  makeWorld,
  type Service,
  type World,
  workload,
} from "./world.ts";

export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
export const SECRET = "the-secret-of-all-clients-12345678";
export const STAYS = "https://stays.example";
export const ROOMS = "https://rooms.example/v1";
/** Where tokens have to be bound to a key. */
export const SAFE = "https://safe.example/v1";
/** A partner of ours, the next server on the way. */
export const FAR = "https://far.example";
export const SCOPES = ["stays.read", "stays.book"];
export const booking = workload("agents/booking");
export const tool = workload("tools/stays");

// --- configuration ------------------------------------------------------------------------------------------------

const ISSUERS = {
  /** For grants alone, of both kinds. */
  partner: { acceptAs: [], subjects: { prefix: "p:" }, grants: {} },
  /** Its subjects have a name for us alone; its grants need not name a client, nor a scope. */
  pairwise: {
    ...{ acceptAs: [], subjects: { table: { "7f3a": "anna" } } },
    grants: { profiles: ["jwt"], requireClientId: false, scopes: ["stays.read"] },
  },
  /** For ID-JAGs alone; the subjects of both servers are the same. */
  enterprise: { acceptAs: ["id_token"], subjects: "keep", grants: { profiles: ["id-jag"] } },
  /** Its tokens count here too, and it vouches for a client. */
  both: { acceptAs: ["jwt"], subjects: { prefix: "b:" }, vouches: {}, grants: {} },
  /** Its software statements count too. */
  stated: { acceptAs: [], subjects: { prefix: "s:" }, statements: true, grants: {} },
  /** For subject tokens, and no grants. */
  closed: { acceptAs: ["jwt"], subjects: { prefix: "c:" } },
};
export type IssuerName = keyof typeof ISSUERS;
const NAMES = Object.keys(ISSUERS) as IssuerName[];
export const issuerOf = (name: IssuerName): string => `https://${name}.example`;
export const ALL = NAMES.map(issuerOf);

const asked = { consent: "implied", acknowledge: "subjects-not-asked" };
const guests = { allow: "redemption", subjects: { issuers: ALL }, scopes: SCOPES, ...asked };
const onward = {
  ...{ actors: [tool], subjects: { issuers: ALL }, subjectToken: { audiences: ["self"] }, ...asked },
  scopes: ["stays.read"],
};
const secretly = { method: "client_secret_basic", secrets: [SECRET] };

const configuration = (keys: (name: IssuerName) => object, clientKey: object): object => ({
  trustedIssuers: Object.fromEntries(
    NAMES.map((name) => [issuerOf(name), { keys: keys(name), ...ISSUERS[name] }]),
  ),
  clients: {
    ...{ hotel: secretly, other: secretly, careful: secretly, invited: secretly, desk: secretly },
    /** Two rules give them two targets: one has a default. */
    ...{ porter: secretly, lobby: { ...secretly, defaultTarget: "stays-tool" } },
    holder: secretly,
    elsewhere: { ...secretly, grantTypes: ["client_credentials"] },
    keyed: { method: "private_key_jwt", jwks: { keys: [clientKey] } },
    vouched: {
      method: "private_key_jwt",
      vouchedBy: [{ issuer: issuerOf("both"), claims: { sub: "job-1" } }],
    },
  },
  targets: [
    { names: [STAYS, "stays"], scopes: SCOPES },
    { names: ["stays-tool"], owners: [tool], scopes: SCOPES },
    { names: [ROOMS], scopes: SCOPES },
    { names: [SAFE], scopes: SCOPES, binding: "dpop" },
    { kind: "partner", issuer: FAR, scopes: SCOPES, clients: { [tool]: "tool-there" } },
  ],
  policies: [
    {
      ...{ id: "guests", ...guests, targets: [STAYS], maxChainDepth: 3 },
      clients: ["hotel", "other", "lobby", "porter", "keyed", "vouched"],
    },
    { id: "to-the-safe", ...guests, clients: ["holder"], targets: [SAFE] },
    { id: "to-the-tool", ...guests, clients: ["lobby", "porter"], targets: ["stays-tool"] },
    { id: "workloads", ...guests, actors: [booking], targets: ["stays-tool"] },
    {
      ...{ id: "careful", ...guests, clients: ["careful"], targets: [STAYS] },
      ...{ consent: "record", acknowledge: undefined },
    },
    {
      ...{ id: "invited", ...guests, clients: ["invited"], targets: [STAYS] },
      ...{ consent: "may_act", acknowledge: undefined },
    },
    { id: "onward", allow: "delegation", ...onward, targets: [ROOMS] },
    { id: "unseen", allow: "impersonation", ...onward, targets: [ROOMS] },
    { id: "abroad", allow: "delegation", issues: "grant", ...onward, targets: [FAR] },
    {
      ...{ id: "desk", allow: "client_credentials", clients: ["desk"], targets: [`${ISSUER}/api`] },
      scopes: ["policy:explain", "consent:manage"],
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
});

// --- what a test does ---------------------------------------------------------------------------------------------

export type Kind = "plain" | "id-jag";
export const KINDS: Kind[] = ["plain", "id-jag"];
export const TYP = { plain: "authz-grant+jwt", "id-jag": "oauth-id-jag+jwt" };
export const aGrant = (kind: Kind): string => (kind === "plain" ? "a plain grant" : "an ID-JAG");

export type Guests = {
  world: Service;
  foreign: Record<IssuerName, Foreign>;
  /** Of the client `keyed`, under the name `k-1`. */
  clientKey: CryptoKey;
  /** Another server with the same configuration. */
  another(postgres: string): Promise<World>;
  /** A good one of the partner's for the client `hotel`, but for what is said. */
  grant(claims?: Claims, kind?: Kind, header?: Claims): Promise<string>;
  redeem(assertion: string, form?: Form, by?: string): Promise<Answer>;
  /** With an administrator's token for our own endpoints. */
  call(method: string, path: string, body: object): Promise<Answer>;
  eventOf(answer: Answer): Promise<Event | undefined>;
  /** What a redemption is refused with, and why; of a replay by the type that it has in the trail. */
  assertRefused(answer: Answer, reason: string, error?: string): Promise<void>;
  stop(): Promise<void>;
};

export async function openToGuests(): Promise<Guests> {
  const documents = await startDocumentServer();
  const foreign = Object.fromEntries(
    await Promise.all(NAMES.map(async (name) => [name, await makeForeign(issuerOf(name))])),
  ) as Record<IssuerName, Foreign>;
  for (const name of NAMES) documents.documents.set(`/${name}`, foreign[name].jwks);
  const at = { ca: { file: "issuers.pem" }, privateNetworks: LOOPBACK };
  const pair = await generateKeyPair("ES256", { extractable: true });
  const extra = configuration((name) => ({ url: `${documents.origin}/${name}`, ...at }), {
    ...(await exportJWK(pair.publicKey)),
    kid: "k-1",
  });
  const files = { "issuers.pem": documents.ca };
  const world = await makeService(extra, { files }).catch(async (fault) => {
    await documents.stop();
    throw fault;
  });
  const clientCredentials = { grant_type: "client_credentials" };
  const desk = await world.token(clientCredentials, { authorization: basic("desk", SECRET) });
  assert.equal(desk.status, 200, desk.text);

  const eventOf = async (answer: Answer): Promise<Event | undefined> => {
    const id = answer.headers["x-request-id"];
    const isIt = ({ request }: Event) => (request as { id?: string } | undefined)?.id === id;
    return (await world.events()).find(isIt);
  };
  return {
    ...{ world, foreign, clientKey: pair.privateKey, eventOf },
    another: (postgres) => makeWorld(extra, { postgres, files }),
    grant: (claims = {}, kind = "plain", header = {}) =>
      foreign.partner.grant(
        { client_id: "hotel", scope: SCOPES.join(" "), ...claims },
        { typ: TYP[kind], ...header },
      ),
    redeem: (assertion, form = {}, by = "hotel") =>
      world.token({ grant_type: JWT_BEARER, assertion, ...form }, { authorization: basic(by, SECRET) }),
    call: (method, path, body) =>
      world.get(path, {
        method,
        headers: {
          authorization: `Bearer ${desk.body.access_token}`,
          "content-type": "application/json",
        },
        body: JSON.stringify(body),
      }),
    async assertRefused(answer, reason, error = "invalid_grant") {
      assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
      assert.equal(answer.body.access_token, undefined);
      const event = await eventOf(answer);
      const type = reason === "grant_replayed" ? "replay.detected" : "grant.denied";
      assert.deepEqual([event?.type, event?.outcome, event?.reason], [type, "deny", reason]);
    },
    async stop() {
      await world.stop();
      await documents.stop();
    },
  };
}

/** The claims of the access token in this answer. */
export function tokenOf(answer: Answer): Record<string, unknown> {
  assert.deepEqual([answer.status, answer.body.token_type], [200, "Bearer"], answer.text);
  return claimsOf(answer.body.access_token);
}

export const hop = (sub: string, act?: object, iss?: string): object => ({
  sub,
  ...(iss !== undefined && { iss }),
  ...(act !== undefined && { act }),
});
