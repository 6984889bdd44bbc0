/** Loopback in production: the operator's URLs reach it where a network says so, and a client's URLs never do. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { bundle, mintJwtSvid } from "../../scripts/dev-keys.ts";
import { makeTrustDomain } from "../../scripts/dev-pki.ts";
import { type Form, postForm, send } from "../../scripts/http-client.ts";
import { launchServer, type ServerProcess, startServer } from "../../scripts/server-process.ts";
import { makeProduction } from "../../scripts/trials/production.ts";
import { DRAFT as DOCUMENTS } from "../../src/spec/cimd.ts";
import { bearer, type Key, makeKey } from "../support/documents.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { type DocumentServer, LOOPBACK, startDocumentServer } from "../support/web.ts";
import { JWT_SPIFFE, TRUST_DOMAIN, workload } from "../support/world.ts";

const API = "https://api.example";
const IDP = "https://idp.example";
const NOT_ALLOWED = "the name has an address that is not allowed";
const CC = { grant_type: "client_credentials", audience: API };

let beside: DocumentServer;
let key: Key;
let svid: (aud: string) => Promise<string>;

before(async () => {
  beside = await startDocumentServer();
  key = await makeKey("own");
  const made = await makeTrustDomain(TRUST_DOMAIN);
  svid = (aud) => mintJwtSvid(made, { sub: workload("agents/one"), aud });
  beside.documents.set("/bundle", bundle(made));
  for (const path of ["/client", "/issuer", "/supplied"]) beside.documents.set(path, { keys: [key.jwk] });
});

after(() => stop(beside));

type Fetch = { fetched: string; name: string; failure?: string };

const fetchesOf = ({ lines }: Pick<ServerProcess, "lines">): Fetch[] =>
  lines.map((line) => JSON.parse(line)).filter(({ event }) => event === "fetch");

/** A configuration in which a bundle, an issuer's keys and a client's keys are at URLs on this machine. */
async function configure(t: TestContext, privateNetworks: readonly string[], extra: object = {}) {
  const at = (path: string) => ({
    url: `${beside.origin}${path}`,
    ca: { file: "beside.pem" },
    privateNetworks,
  });
  const production = await makeProduction({
    trustDomains: { [TRUST_DOMAIN]: { bundle: at("/bundle") } },
    trustedIssuers: { [IDP]: { keys: at("/issuer"), subjects: "keep" } },
    clients: { keyed: { method: "private_key_jwt", jwksUri: at("/client") } },
    targets: [{ names: [API], scopes: ["read"] }],
    policies: [
      {
        id: "workloads",
        allow: "client_credentials",
        actors: [workload("agents/*")],
        targets: [API],
        scopes: ["read"],
      },
      { id: "keyed", allow: "client_credentials", clients: ["keyed"], targets: [API], scopes: ["read"] },
    ],
    drafts: ["draft-ietf-oauth-spiffe-client-auth-02"],
    ...extra,
  });
  t.after(() => production.remove());
  writeFileSync(join(production.folder, "beside.pem"), beside.ca);
  return production;
}

async function start(t: TestContext, privateNetworks: readonly string[], extra: object = {}) {
  const { folder, configFile } = await configure(t, privateNetworks, extra);
  beside.fetched.length = 0;
  const server = await startServer(configFile);
  t.after(() => server.stop());
  const { issuer } = JSON.parse(readFileSync(configFile, "utf8"));
  const ca = readFileSync(join(folder, "tls/ca.pem"), "utf8");
  const token = async (form: Form) => (await postForm(`${issuer}/token`, { ...CC, ...form }, { ca })).status;
  return { server, issuer, ca, token };
}

test("B8725-3.10-2 the operator's URLs lead to loopback in production where a network says so", async (t) => {
  const { server, issuer, token } = await start(t, LOOPBACK);
  const assertion = await svid(issuer);
  assert.equal(await token({ client_assertion_type: JWT_SPIFFE, client_assertion: assertion }), 200);
  assert.equal(await token(bearer("keyed", key, { aud: issuer })), 200);
  await until(() => fetchesOf(server).length === 3, "all are fetched");
  for (const { failure, name } of fetchesOf(server)) assert.equal(failure, undefined, name);
  assert.deepEqual(beside.fetched.toSorted(), ["/bundle", "/client", "/issuer"]);

  // SIGHUP fetches them anew, although they did not change and are not due.
  assert.deepEqual(await server.reload(), []);
  await until(() => fetchesOf(server).length === 6, "all are fetched again");
  assert.deepEqual(beside.fetched.slice(3).toSorted(), ["/bundle", "/client", "/issuer"]);
});

test("B8725-3.10-2 the operator's URLs do not lead to loopback in production where no network says so", async (t) => {
  const { server, issuer, token } = await start(t, ["10.0.0.0/8"]);
  await until(() => fetchesOf(server).length === 3, "all are tried");
  for (const { failure } of fetchesOf(server)) assert.equal(failure, NOT_ALLOWED);
  assert.notEqual(await token(bearer("keyed", key, { aud: issuer })), 200);
  assert.deepEqual(beside.fetched, []);
});

test("B8725-3.10-2 cloud metadata services are not reached, whatever a network of the operator says", async (t) => {
  const places = {
    "https://link-local.example": ["https://169.254.169.254/jwks", "168.0.0.0/5"],
    "https://carrier.example": ["https://100.100.100.200/jwks", "100.64.0.0/10"],
    "https://own.example": ["https://[fd00:ec2::254]/jwks", "fd00::/8"],
  } as const;
  const trustedIssuers = Object.fromEntries(
    Object.entries(places).map(([name, [url, network]]) => [
      name,
      { keys: { url, privateNetworks: [network, ...LOOPBACK] }, subjects: { prefix: `${name.slice(8)}:` } },
    ]),
  );
  const { server } = await start(t, LOOPBACK, { trustedIssuers });
  const tried = () => fetchesOf(server).filter(({ name }) => name in places);
  await until(() => tried().length === 3, "all are tried");
  for (const { failure, name } of tried()) assert.equal(failure, NOT_ALLOWED, name);
});

test("CONF-D-18, B8725-3.10-2 a network that holds loopback beside other addresses does not open it in production", async (t) => {
  const { configFile } = await configure(t, ["0.0.0.0/0"]);
  const { child, errors } = launchServer(configFile);
  await until(() => child.exitCode !== null, "the start ends");
  assert.equal(child.exitCode, 2);
  for (const path of [
    `trustDomains.${TRUST_DOMAIN}.bundle`,
    `trustedIssuers.${IDP}.keys`,
    "clients.keyed.jwksUri",
  ]) {
    const problem = `${path}.privateNetworks: opens loopback beside other addresses`;
    assert.ok(
      errors.some((line) => line.includes(problem)),
      problem,
    );
  }
});

test("CIMD-8.6-1, CIMD-8.6-3 no URL of a client leads to loopback in production, whatever the operator's URLs may", async (t) => {
  const { server, issuer, ca, token } = await start(t, LOOPBACK, {
    registration: { mode: "open", open: { scopes: ["read"], grantTypes: ["client_credentials"] } },
    clientMetadataDocuments: {},
    // With a network of its own the origin is resolved as this machine would, and not by DNS alone.
    clientOrigins: { [beside.origin]: { ca: { file: "beside.pem" }, privateNetworks: ["10.0.0.0/8"] } },
    policies: [
      { id: "open", allow: "client_credentials", classes: ["open"], targets: [API], scopes: ["read"] },
    ],
    drafts: ["draft-ietf-oauth-spiffe-client-auth-02", DOCUMENTS],
  });
  const jwksUri = `${beside.origin}/supplied`;
  const metadata = {
    token_endpoint_auth_method: "private_key_jwt",
    grant_types: ["client_credentials"],
    jwks_uri: jwksUri,
  };
  const body = JSON.stringify(metadata);
  const headers = { "content-type": "application/json" };
  const registered = await send(`${issuer}/register`, { method: "POST", headers, body, ca });
  assert.equal(registered.status, 201);
  assert.notEqual(await token(bearer(String(registered.body.client_id), key, { aud: issuer })), 200);

  const documentUrl = `${beside.origin}/document`;
  beside.documents.set("/document", { ...metadata, client_id: documentUrl });
  assert.notEqual(await token(bearer(documentUrl, key, { aud: issuer })), 200);
  const supplied = () => fetchesOf(server).filter(({ fetched }) => fetched === "client_url");
  await until(() => supplied().length === 2, "both are tried");
  assert.deepEqual(
    supplied().map(({ name, failure }) => [name, failure]),
    [jwksUri, documentUrl].map((url) => [url, NOT_ALLOWED]),
  );
  assert.deepEqual(beside.fetched.toSorted(), ["/bundle", "/client", "/issuer"]);
});
