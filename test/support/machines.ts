/**
 * A deployment without users, where machines use what the nine variants of a token request do not: every other method of
 * authentication, bound tokens, metadata documents, registration, a proxy, and each endpoint of the operator.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:tls";
import { bundle, derOf, mintJwtSvid, publicJwk } from "../../scripts/dev-keys.ts";
import { issueClientCertificate, makeAuthority, makeTrustDomain } from "../../scripts/dev-pki.ts";
import { type Answer, basic, encodeForm, type Sent } from "../../scripts/http-client.ts";
import { DRAFT as DOCUMENTS } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT as TRANSACTIONS } from "../../src/spec/transaction-tokens.ts";
import { DRAFT as PLATFORM_GRANTS } from "../../src/spec/workload-grant.ts";
import {
  byKey,
  type Key,
  makeKey,
  openTo,
  bearer as proveBy,
  publish,
  publishKeys,
  startPublisher,
} from "./documents.ts";
import { makeProver } from "./dpop.ts";
import { type Foreign, makeForeign } from "./foreign.ts";
import { stop } from "./stop.ts";
import { until } from "./until.ts";
import { LOOPBACK } from "./web.ts";
import {
  type Certificate,
  EXCHANGE,
  type Form,
  ISSUER,
  JWT_SPIFFE,
  makeWorld,
  type World,
  type WorldOptions,
} from "./world.ts";

const SECRET = "machines-machines-machines-123456";
const API = "https://api.example";
const OWN = `${ISSUER}/api`;
const SOFTWARE = "https://software.example";
const ELSEWHERE = "elsewhere.example";
const WORKLOADS = `spiffe://${ELSEWHERE}/*`;
const PROXY = "proxy.example";
const CC = { grant_type: "client_credentials", audience: API };
const URN = "urn:ietf:params:oauth:token-type:";
const DESK = { authorization: basic("desk", SECRET) };

type Kept = Required<Certificate>;
type Identities = { billing: Kept; pinned: Kept; proxy: Kept };

export type Machines = { world: World; play(): Promise<void>; stop(): Promise<void> };

export async function openMachines(options: Pick<WorldOptions, "postgres"> = {}): Promise<Machines> {
  const [publisher, authority, elsewhere, software, key] = await Promise.all([
    startPublisher(),
    makeAuthority("Authority of the machines"),
    makeTrustDomain(ELSEWHERE),
    makeForeign(SOFTWARE),
    makeKey("k1"),
  ]);
  const identity = async (name: string): Promise<Kept> => {
    const { keyPem, certPem } = await issueClientCertificate(authority, [name]);
    return { key: keyPem, cert: certPem };
  };
  const [billing, pinned, proxy] = [
    await identity("billing"),
    await identity("pinned"),
    await identity(PROXY),
  ];
  const page = (path: string, body: object): { url: string; ca: object; privateNetworks: string[] } => {
    publisher.pages.set(path, { body: JSON.stringify(body) });
    return { url: `${publisher.origin}${path}`, ca: { file: "publisher.pem" }, privateNetworks: LOOPBACK };
  };
  const agent = publish(publisher, "/agent", byKey({ jwks_uri: publishKeys(publisher, "/keys", [key]) }));
  const { clientOrigins, files } = openTo({ publisher });
  const x5c = [derOf(pinned.cert).toString("base64")];
  const rule = (id: string, rest: object) => ({
    ...{ id, allow: "client_credentials", targets: [API], scopes: ["read"] },
    ...rest,
  });
  const world = await makeWorld(
    {
      operations: { port: 0 },
      proxy: {
        ...{ host: "127.0.0.1", port: 0, name: PROXY, clientAddress: "Forwarded" },
        tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
        ca: { file: "authority.pem" },
      },
      audit: { instance: "test", witness: { file: "witness" }, checkpoint: { events: 2 } },
      trustDomains: { [ELSEWHERE]: { bundle: page("/bundle", bundle(elsewhere)) } },
      trustedIssuers: {
        [SOFTWARE]: {
          ...{ acceptAs: ["jwt"], subjects: "keep", statements: true, signals: { name: "software" } },
          claimsFrom: ["token"],
          keys: page("/software", software.jwks),
          workloads: { robots: { tenancy: "dedicated", subjects: ["robot/*"] } },
        },
      },
      clients: {
        desk: { method: "client_secret_basic", secrets: [SECRET] },
        signer: { method: "private_key_jwt", jwksUri: page("/keys", { keys: [key.jwk] }) },
        billing: {
          ...{ method: "tls_client_auth", tls_client_auth_subject_dn: "CN=billing" },
          ca: { file: "authority.pem" },
        },
        pinned: {
          method: "self_signed_tls_client_auth",
          jwks: { keys: [{ ...publicJwk(pinned.key), x5c }] },
        },
      },
      signals: {
        streams: { api: { audience: API, targets: [API], ...page("/events", {}) } },
      },
      registration: { mode: "open", open: { scopes: ["read"] } },
      clientMetadataDocuments: {},
      clientOrigins,
      drafts: [SPIFFE, DOCUMENTS, TRANSACTIONS, PLATFORM_GRANTS],
      targets: [
        {
          ...{ names: [API], owners: [WORKLOADS], scopes: ["read"], introspectors: ["desk"] },
          details: { note: { governs: ["read"], fields: { name: { is: "string", narrows: "equal" } } } },
        },
        {
          ...{ kind: "transaction", names: [ELSEWHERE], owners: [WORKLOADS], purposes: { look: ["read"] } },
          rctx: { req_ip: { is: "string" } },
        },
      ],
      policies: [
        rule("clients", { clients: ["desk", "signer", "billing", "pinned", `${publisher.origin}/*`] }),
        rule("workloads", { actors: [WORKLOADS, "platform://robots/*"] }),
        rule("inside", {
          ...{ allow: "transaction", issues: "transaction", actors: [WORKLOADS], targets: [ELSEWHERE] },
          ...{ subjects: { issuers: [ISSUER] }, subjectToken: { audiences: ["self"] }, scopes: ["look"] },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        }),
        rule("members", {
          ...{ allow: "impersonation", clients: ["desk"], subjectToken: { scopes: ["read"] } },
          subjects: { issuers: [SOFTWARE], claims: { "/groups": ["Engineering"] } },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        }),
        rule("operators", {
          ...{ clients: ["desk"], targets: [OWN] },
          scopes: ["consent:manage", "policy:explain", "token:revoke", "audit:read", "job:manage"],
        }),
      ],
    },
    { ...options, files: { ...files, "authority.pem": authority.certPem } },
  );
  const svid = (kid = elsewhere.jwt.kid) =>
    mintJwtSvid(elsewhere, { sub: `spiffe://${ELSEWHERE}/a`, aud: ISSUER, header: { alg: "ES256", kid } });
  return {
    world,
    async play() {
      await authenticate(world, { key, agent, svid, identities: { billing, pinned, proxy } });
      await askOptions(world, software);
      await register(world, software);
      await manage(world);
      await signal(world, software);
      // What the order of the operator ended is told.
      await until(() => publisher.requests("/events").length > 0, "a security event");
      await watch(world);
    },
    stop: () => stop(world, publisher),
  };
}

function granted(answer: Answer): string {
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

async function expect(status: number, asked: Promise<Answer>): Promise<Answer> {
  const answer = await asked;
  assert.equal(answer.status, status, answer.text);
  return answer;
}

type Parties = { key: Key; agent: string; svid(kid?: string): Promise<string>; identities: Identities };

async function authenticate(world: World, { key, agent, svid, identities }: Parties): Promise<void> {
  const { billing, pinned, proxy } = identities;
  const token = (form: Form, headers = {}, certificate: Certificate = {}, port = world.server.port) =>
    world.token({ ...CC, ...form }, headers, certificate, port);
  await expect(400, token({}));
  await expect(400, token({ client_id: "desk", client_secret: "a guess" }));
  // A name that no server of names knows.
  await expect(400, token(proveBy("https://agent.invalid/agent", key)));
  await expect(200, token(proveBy("signer", key)));
  await expect(200, token(proveBy(agent, key)));
  const bySvid = async (kid?: string): Promise<Answer> =>
    token({ client_assertion_type: JWT_SPIFFE, client_assertion: await svid(kid) });
  await expect(200, bySvid());
  // What came in as the desk's own is handed on inside.
  const desks = granted(await token({}, DESK));
  await expect(
    200,
    token({
      ...{
        grant_type: EXCHANGE,
        requested_token_type: `${URN}txn_token`,
        audience: ELSEWHERE,
        scope: "look",
      },
      ...{
        subject_token: desks,
        subject_token_type: `${URN}access_token`,
        request_context: '{"req_ip":"::1"}',
      },
      ...{ client_assertion_type: JWT_SPIFFE, client_assertion: await svid() },
    }),
  );
  // For an unknown key the server looks at the bundle again.
  await expect(400, bySvid("unknown"));
  await expect(200, token({ client_id: "billing" }, {}, billing));
  await expect(200, token({ client_id: "pinned" }, {}, pinned));
  const prover = await makeProver();
  const bound = granted(await token({}, { ...DESK, dpop: prover.prove(`${ISSUER}/token`) }));
  const form = { method: "POST", headers: { ...DESK, "content-type": "application/x-www-form-urlencoded" } };
  const body = encodeForm({ token: bound });
  const { body: told } = await expect(200, world.get("/introspect", { ...form, body }));
  assert.equal(told.active, true);
  await expect(200, world.get("/revoke", { ...form, body }));
  const [behind] = world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? []);
  const forwarded = {
    "client-cert": `:${derOf(billing.cert).toString("base64")}:`,
    forwarded: "for=192.0.2.60",
  };
  await expect(200, token({ client_id: "billing" }, forwarded, proxy, Number(behind)));
}

/** The workload of a platform by its grant, a token that is limited by details, and the token of one in a group. */
async function askOptions(world: World, software: Foreign): Promise<void> {
  const assertion = await software.grant({ sub: "robot/1" }, { typ: "JWT" });
  const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
  await expect(200, world.token({ grant_type, assertion, audience: API }));
  const authorization_details = JSON.stringify([{ type: "note", name: "a" }]);
  await expect(200, world.token({ ...CC, authorization_details }, DESK));
  const subject_token = await software.grant({ scope: "read", groups: ["Engineering"] }, { typ: "JWT" });
  const shown = { subject_token, subject_token_type: `${URN}jwt` };
  await expect(200, world.token({ ...shown, grant_type: EXCHANGE, audience: API }, DESK));
}

async function register(world: World, software: Foreign): Promise<void> {
  const send = (method: string, path: string, metadata?: object, token?: unknown): Promise<Answer> => {
    const authorization: Record<string, string> =
      token === undefined ? {} : { authorization: `Bearer ${token}` };
    const headers = { "content-type": "application/json", ...authorization };
    return world.get(path, sent({ method, headers }, metadata));
  };
  const code = { grant_types: ["authorization_code"], redirect_uris: ["http://app.example/cb"] };
  const keyless = { grant_types: ["client_credentials"], token_endpoint_auth_method: "private_key_jwt" };
  for (const refused of [code, keyless]) await expect(400, send("POST", "/register", refused));
  const members = { software_id: "job", grant_types: ["client_credentials"], scope: "read" };
  const software_statement = await software.sign({ iss: SOFTWARE, ...members }, { typ: "JWT" });
  const { body: client } = await expect(201, send("POST", "/register", { software_statement }));
  const path = `/register/${client.client_id}`;
  const token = client.registration_access_token;
  await expect(200, send("GET", path, undefined, token));
  const { client_id, client_secret } = client;
  const update = { client_id, client_secret, grant_types: ["client_credentials"], scope: "read" };
  const { body: next } = await expect(200, send("PUT", path, update, token));
  await expect(204, send("DELETE", path, undefined, next.registration_access_token ?? token));
}

const sent = (rest: Partial<Sent>, body?: object): Partial<Sent> =>
  body === undefined ? rest : { ...rest, body: JSON.stringify(body) };

/** What operators and auditors ask. */
async function manage(world: World): Promise<void> {
  const scope = "consent:manage policy:explain token:revoke audit:read job:manage";
  const token = granted(await world.token({ ...CC, audience: OWN, scope }, DESK));
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const ask = (method: string, path: string, body?: object) =>
    world.get(path, sent({ method, headers }, body));
  const consent = {
    subject: { iss: SOFTWARE, sub: "u-1" },
    ...{ actor: `spiffe://${ELSEWHERE}/a`, targets: [API], scope: "read" },
  };
  await expect(201, ask("PUT", "/consents/one", consent));
  await expect(200, ask("GET", "/consents/one"));
  await expect(200, ask("GET", "/consents"));
  await expect(204, ask("DELETE", "/consents/one"));
  await expect(200, ask("POST", "/policy/explain", { client: "desk", target: API, scope: "read" }));
  const { body: job } = await expect(201, ask("POST", "/jobs", { client: "desk", title: "to be seen" }));
  await expect(200, world.token({ ...CC, mandate_job: String(job.id) }, DESK));
  await expect(200, ask("GET", "/jobs"));
  await expect(200, ask("POST", "/revocations", { client: "signer", dryRun: true }));
  await expect(200, ask("POST", "/revocations", { client: "signer" }));
  await expect(200, ask("GET", "/audit/events?client=desk"));
  const asTable = { headers: { ...headers, accept: "text/csv" } };
  await expect(200, world.get("/audit/events?client=desk", asTable));
  await expect(200, ask("GET", "/audit/checkpoints"));
  await expect(200, world.get("/audit/logs"));
  await expect(401, world.get("/audit/events"));
}

/** Events of a trusted issuer: two that end something, one that is set aside, and one that is refused (PCL-D-16). */
async function signal(world: World, software: Foreign): Promise<void> {
  const iat = Math.floor(Date.now() / 1000);
  const ended = { type: "session-revoked", said: {} };
  for (const { jti, status, sub_id, type, said } of [
    { ...ended, jti: "taken", status: 202, sub_id: { format: "iss_sub", iss: SOFTWARE, sub: "u-1" } },
    {
      ...{ jti: "left", status: 202, sub_id: { format: "iss_sub", iss: SOFTWARE, sub: "u-77" } },
      ...{ type: "token-claims-change", said: { claims: { groups: [] } } },
    },
    {
      ...ended,
      jti: "aside",
      status: 202,
      sub_id: { format: "iss_sub", iss: "https://other.example", sub: "u-1" },
    },
    { ...ended, jti: "refused", status: 400, sub_id: { format: "email", email: "u-1@software.example" } },
  ]) {
    const claims = { iss: SOFTWARE, aud: ISSUER, iat, jti, sub_id };
    const events = { [`https://schemas.openid.net/secevent/caep/event-type/${type}`]: said };
    const body = await software.sign({ ...claims, events }, { typ: "secevent+jwt" });
    const headers = { "content-type": "application/secevent+jwt" };
    await expect(status, world.get("/signals/software", { method: "POST", headers, body }));
  }
}

/** What is public, what the operator's tools ask, and what is no HTTP at all. */
async function watch(world: World): Promise<void> {
  const { server, ca } = world;
  for (const path of ["oauth-authorization-server", "oauth-protected-resource/api"])
    await expect(200, world.get(`/.well-known/${path}`));
  await expect(200, world.get("/jwks"));
  await expect(404, world.get("/nothing"));
  await expect(405, world.get("/token"));
  const [origin] = server.lines.flatMap((line) => /^Health and metrics are at (\S+)$/.exec(line)?.[1] ?? []);
  for (const path of ["/readyz", "/metrics"]) assert.equal((await fetch(`${origin}${path}`)).status, 200);
  const socket = connect({ host: "127.0.0.1", port: server.port, servername: "as.example", ca });
  socket.end("NO HTTP\r\n\r\n");
  const [answer] = await once(socket, "data");
  assert.match(String(answer), /^HTTP\/1\.1 400 /);
  assert.deepEqual(await server.reload(), []);
}
