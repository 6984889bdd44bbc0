/**
 * The clients that people use today, by what they say of themselves (test/fixtures/mcp-clients), from their first
 * request to a token. The documents are those of their hosts, which no test reaches: they are read here as they would be
 * fetched, and fetching itself is tested elsewhere.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { discoverAuthorizationServerMetadata } from "@modelcontextprotocol/client";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { parseProviderMetadata } from "../../src/people/spec/oidc.ts";
import type { Ports } from "../../src/ports.ts";
import { err, ok } from "../../src/result.ts";
import { clientOfDocument, parseClientDocument } from "../../src/settings/client-metadata.ts";
import { DRAFT } from "../../src/spec/cimd.ts";
import { parseJwkSet, selectKey } from "../../src/spec/rfc7517.ts";
import {
  type Asked,
  Browser,
  challengeOf,
  files,
  forPeople,
  locationOf,
  NOTES,
  parametersOf,
  SCOPES,
  verifierOf,
} from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, type Form, ISSUER, type Service } from "../support/world.ts";

const FIXTURES = new URL("../fixtures/mcp-clients/", import.meta.url);
const read = (folder: string): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(new URL(folder, FIXTURES)).map((file) => [
      file.replace(/\.json$/, ""),
      readFileSync(new URL(`${folder}/${file}`, FIXTURES), "utf8"),
    ]),
  );
const documents = read("documents");
const registrations = read("registrations");
const idOf = (text = ""): string => JSON.parse(text).client_id;
const byUrl = new Map([...documents.values()].map((text) => [idOf(text), text]));

const CHATGPT_KEYS = "https://chatgpt.com/oauth/jwks.json";
const GONE = "https://gone.example/client.json";
const UNKNOWN = "https://unknown.example/client.json";
const CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback";

/** Documents that cannot be fetched now, at an instance that has not had them before. */
const away = new Set<string>();

let provider: TestProvider;
let service: Service;
/** Without an app among the accepted redirect URIs. */
let strict: Service;
const rsa = await generateKeyPair("RS256");
const jwks = JSON.stringify({
  keys: [{ ...(await exportJWK(rsa.publicKey)), kid: "chatgpt-1", alg: "RS256" }],
});

/** The hosts of the documents and of ChatGPT's keys. */
const hosts = ({ settings }: Ports): Partial<Ports> => ({
  clientDocuments: {
    async find(url) {
      if (away.has(url.text)) return err({ reason: "document_timeout", failed: "now" });
      if (url.text === GONE) return err({ reason: "document_status", unreachable: true });
      const text = byUrl.get(url.text);
      if (text === undefined) return err({ reason: "document_status" });
      const document = parseClientDocument(url.text, text);
      return document.ok
        ? clientOfDocument(url, document.value, settings())
        : err({ reason: document.error.kind });
    },
  },
  fetchedKeys: {
    async key({ url, algorithm }, header) {
      assert.deepEqual([url, algorithm], [CHATGPT_KEYS, "RS256"]);
      const set = parseJwkSet(jwks);
      const key = set.ok ? selectKey(set.value, header) : set;
      return key.ok ? ok(key.value) : err({ reason: "key_unknown" });
    },
  },
});

before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  const policies = base.policies.map((rule) => ({
    ...rule,
    refresh: true,
    clients: [...byUrl.keys()],
    classes: ["open"],
  }));
  const configuration = {
    ...base,
    policies,
    clientMetadataDocuments: {},
    registration: { mode: "open", open: { scopes: SCOPES } },
    authorize: { privateUse: [CURSOR] },
    limits: { ...base.limits, registrationsPerHourBySource: 1_000 },
    drafts: [...base.drafts, DRAFT],
  };
  const options = { files: files(provider), ports: hosts };
  service = await makeService(configuration, options);
  strict = await makeService({ ...configuration, authorize: {} }, options);
});
after(() => stop(service, strict, provider));

const DEFAULT: Asked = { resource: NOTES, scope: SCOPES.join(" "), state: "s" };

type Sent = { clientId: string; redirectUri: string; extra?: Asked; proof?: Form; shows: RegExp };

/** From the first request to the claims of the token. */
async function play({ clientId, redirectUri, extra = {}, proof = { client_id: clientId }, shows }: Sent) {
  const verifier = verifierOf();
  const browser = new Browser(service, provider);
  const asked: Asked = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challengeOf(verifier),
    code_challenge_method: "S256",
    ...DEFAULT,
    ...extra,
  };
  const page = await browser.review(asked);
  assert.equal(page.status, 200, page.text);
  assert.match(page.text, shows);
  const back = await browser.decide(page);
  assert.ok(
    locationOf(back).startsWith(`${redirectUri}?`),
    `${back.status} ${locationOf(back)} ${back.text}`,
  );
  const { code = "", state, iss } = parametersOf(back);
  assert.match(code, PLAIN);
  // As sent, whatever characters it has; absent stays absent.
  assert.deepEqual([state ?? "", iss], [asked.state, ISSUER]);
  const form: Form = {
    grant_type: "authorization_code",
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
    ...proof,
  };
  const answer = await service.token(form);
  assert.equal(answer.status, 200, answer.text);
  const { sub, client_id, aud, act } = claimsOf(answer.body.access_token);
  assert.deepEqual([sub, client_id, aud, act], ["company:alice", clientId, NOTES, undefined]);
  return String(answer.body.refresh_token);
}

/** MCPC-D-19: what form-encoding leaves as it is. */
const PLAIN = /^[A-Za-z0-9_-]+$/;

/** ChatGPT proves itself with the key at the `jwks_uri` of its document. */
async function chatgpt(): Promise<Form> {
  const clientId = idOf(documents.get("chatgpt"));
  const assertion = await new SignJWT({})
    .setProtectedHeader({ alg: "RS256", kid: "chatgpt-1" })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(ISSUER)
    .setIssuedAt()
    .setExpirationTime("60s")
    .setJti(randomUUID())
    .sign(rsa.privateKey);
  const type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
  return { client_id: clientId, client_assertion_type: type, client_assertion: assertion };
}

// --- by metadata document -------------------------------------------------------------------------------------------

const OFFLINE: Asked = { scope: `${SCOPES.join(" ")} offline_access`, prompt: "consent" };
const NO_RESOURCE: Asked = { resource: "" };

const byDocument: readonly (readonly [name: string, document: string, redirectUri: string, extra?: Asked])[] =
  [
    ["Claude", "claude", "https://claude.ai/api/mcp/auth_callback", OFFLINE],
    ["Claude Code", "claude-code", "http://localhost:54545/callback", OFFLINE],
    ["Claude Code by address", "claude-code", "http://127.0.0.1:54545/callback"],
    [
      "an older Claude Code, without a resource",
      "claude-code",
      "http://localhost:61000/callback",
      NO_RESOURCE,
    ],
    ["Codex", "codex", "http://127.0.0.1:43211/callback", NO_RESOURCE],
    [
      "Codex with a document for its callback",
      "codex-callback",
      "http://127.0.0.1:43211/callback/a1b2c3d4e5f6",
    ],
    ["Visual Studio Code", "vscode", "http://127.0.0.1:33418/", { state: "gXVXo0/iMD8WMolDHKxSTg+a==" }],
    ["Visual Studio Code at another port", "vscode", "http://127.0.0.1:52000/"],
    ["Visual Studio Code in a browser", "vscode", "https://vscode.dev/redirect"],
    ["Copilot CLI", "copilot-cli", "http://127.0.0.1:40404/"],
    ["Cursor", "cursor", "http://localhost:8787/callback"],
    ["Cursor's agents", "cursor", "https://www.cursor.com/agents/mcp/oauth/callback"],
    ["Goose", "goose", "http://localhost:51000", { state: "" }],
    ["OpenCode, by the path of its document", "opencode", "http://127.0.0.1:19876/callback"],
    ["Zed", "zed", "http://127.0.0.1:38211/callback"],
  ];
for (const [name, document, redirectUri, extra = {}] of byDocument) {
  test(`MCPC-D-22, MCPC-D-1, MCPC-D-5, MCPC-D-6, CIMD-8.5-1, CIMD-8.5-2 ${name} comes by its document to a token`, async () => {
    const clientId = idOf(documents.get(document));
    const shows = new RegExp(`<bdi>${new URL(clientId).host}</bdi>`);
    await play({ clientId, redirectUri, extra, shows });
  });
}

test("MCPC-D-22, MCPC-D-7, CIMD-8.2-2 ChatGPT proves itself by its key, and is nothing without it", async () => {
  const clientId = idOf(documents.get("chatgpt"));
  const redirectUri = "https://chatgpt.com/connector_platform_oauth_redirect";
  await play({ clientId, redirectUri, proof: await chatgpt(), shows: /<bdi>chatgpt\.com<\/bdi>/ });
  const bare = await service.token({ grant_type: "authorization_code", code: "c", client_id: clientId });
  assert.deepEqual([bare.status, bare.body.error], [400, "invalid_client"]);
});

const refusedRedirects = [
  ["OpenCode, with a path that it does not list", "opencode", "http://127.0.0.1:19876/mcp/oauth/callback"],
  ["Claude Code, with another path", "claude-code", "http://localhost:54545/"],
  ["Visual Studio Code, without the slash", "vscode", "http://127.0.0.1:33418"],
  ["Claude, at a host that it does not list", "claude", "https://claude.com/api/mcp/auth_callback"],
] as const;
for (const [name, document, redirect_uri] of refusedRedirects) {
  test(`MCPC-D-22, MCPC-D-2, RFC6749-10.1-3 ${name}: a page, and no way to the client`, async () => {
    const asked = {
      ...DEFAULT,
      client_id: idOf(documents.get(document)),
      redirect_uri,
      response_type: "code",
    };
    const answer = await new Browser(service, provider).authorize(asked);
    assert.equal(answer.status, 400);
    assert.equal(answer.headers.location, undefined);
    assert.match(answer.text, /The address for the answer is not registered/);
  });
}

// --- by registration ------------------------------------------------------------------------------------------------

const register = (at: Service, name: string) =>
  at.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: registrations.get(name) ?? assert.fail(name),
  });

const byRegistration: readonly (readonly [name: string, file: string, redirectUri: string])[] = [
  ["Visual Studio Code", "vscode", "http://127.0.0.1:33418/"],
  ["Visual Studio Code in a browser", "vscode", "https://vscode.dev/redirect"],
  ["Claude Code", "claude-code", "http://localhost:3118/callback"],
  ["Claude", "claude", "https://claude.ai/api/mcp/auth_callback"],
  ["Cursor", "cursor", "http://localhost:8787/callback"],
  ["Cursor before autumn", "cursor-before-autumn", CURSOR],
  ["Gemini CLI", "gemini-cli", "http://localhost:51739/oauth/callback"],
  ["Inspector", "inspector", "http://localhost:6274/oauth/callback"],
  ["Inspector, step by step", "inspector", "http://localhost:6274/oauth/callback/debug"],
];
for (const [name, file, redirectUri] of byRegistration) {
  test(`MCPC-D-22, MCPC-D-10, MCPC-D-11, MCPC-D-12, MCPC-D-19, RFC7591-5-4 ${name} registers and comes to a token`, async () => {
    const { status, body } = await register(service, file);
    assert.equal(status, 201, JSON.stringify(body));
    const { client_id: clientId, client_secret: secret, registration_access_token: token, ...rest } = body;
    const sent = JSON.parse(registrations.get(file) ?? "");
    // All that it sent is served, so all of it is in the answer.
    for (const [member, value] of Object.entries(sent)) {
      if (member !== "application_type") assert.deepEqual(rest[member], value, member);
    }
    assert.match(String(clientId), PLAIN);
    assert.match(String(token), PLAIN);
    const isSecret = sent.token_endpoint_auth_method === "client_secret_post";
    assert.equal(secret !== undefined, isSecret);
    if (isSecret) assert.match(String(secret), PLAIN);
    const named = { client_id: String(clientId) };
    const proof = isSecret ? { ...named, client_secret: String(secret) } : named;
    await play({
      clientId: String(clientId),
      redirectUri,
      // An app may be behind another program's scheme, as behind a port.
      shows: redirectUri.startsWith("https:") ? /registered itself/ : /goes to this computer/,
      proof,
    });
  });
}

test("MCPC-D-4 the scheme of an app that the operator does not list is left out, and the rest is served", async () => {
  const { status, body } = await register(strict, "cursor-before-autumn");
  assert.equal(status, 201);
  const sent = JSON.parse(registrations.get("cursor-before-autumn") ?? "");
  assert.deepEqual(body.redirect_uris, sent.redirect_uris.slice(1));
  const asked = {
    ...DEFAULT,
    client_id: String(body.client_id),
    redirect_uri: CURSOR,
    response_type: "code",
  };
  const answer = await new Browser(strict, provider).authorize(asked);
  assert.equal(answer.status, 400);
  assert.doesNotMatch(answer.text, /href="(?!https:\/\/as\.example\/account")/);
});

// --- documents that cannot be fetched -------------------------------------------------------------------------------

test("MCPC-D-17 of a document that was good and cannot be fetched a user is told so, and at /token it is 503", async () => {
  const asked = { ...DEFAULT, redirect_uri: "https://gone.example/cb", response_type: "code" };
  const browser = new Browser(service, provider);
  const gone = await browser.authorize({ ...asked, client_id: GONE });
  assert.deepEqual([gone.status, gone.headers["retry-after"], gone.headers.location], [503, "10", undefined]);
  assert.match(gone.text, /page does not answer/);
  const never = await browser.authorize({ ...asked, client_id: UNKNOWN });
  assert.equal(never.status, 400);
  assert.match(never.text, /not known here/);
  const redeem = (client_id: string) =>
    service.token({ grant_type: "authorization_code", code: "c", client_id });
  const later = await redeem(GONE);
  assert.deepEqual(
    [later.status, later.body.error, later.headers["retry-after"]],
    [503, "temporarily_unavailable", "10"],
  );
  const refused = await redeem(UNKNOWN);
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_client"]);
});

test("MCPC-D-25 a refresh token tells that the document of its client was good before: a fetch that fails now is 503", async () => {
  const clientId = idOf(documents.get("claude-code"));
  const redirectUri = "http://localhost:54545/callback";
  const token = await play({ clientId, redirectUri, extra: OFFLINE, shows: /claude/ });
  const refresh = async (refresh_token: string) => {
    const { status, body, headers } = await service.token({
      grant_type: "refresh_token",
      refresh_token,
      client_id: clientId,
    });
    return [status, body.error, headers["retry-after"]];
  };
  away.add(clientId);
  assert.deepEqual(await refresh(token), [503, "temporarily_unavailable", "10"]);
  assert.deepEqual(await refresh(`mrt_${"A".repeat(43)}`), [400, "invalid_client", undefined]);
  away.delete(clientId);
  assert.deepEqual(await refresh(token), [200, undefined, undefined]);
});

// --- metadata -------------------------------------------------------------------------------------------------------

test("RFC8414-2-2, OIDCD-3-1 a strict reader of OpenID metadata takes ours where it looks for no other", async () => {
  const looked: string[] = [];
  const found = await discoverAuthorizationServerMetadata(ISSUER, {
    fetchFn: async (url) => {
      const { pathname } = new URL(url);
      looked.push(pathname);
      if (pathname.includes("oauth-authorization-server")) return new Response(null, { status: 404 });
      const { status, text, headers } = await service.get(pathname);
      return new Response(text, { status, headers: { "content-type": String(headers["content-type"]) } });
    },
  });
  assert.equal(looked.at(-1), "/.well-known/openid-configuration");
  assert.deepEqual([found?.issuer, found?.authorization_endpoint], [ISSUER, `${ISSUER}/authorize`]);
  const text = (await service.get("/.well-known/openid-configuration")).text;
  assert.ok(parseProviderMetadata(text, ISSUER).ok, "all that OpenID Connect Discovery requires");
  assert.equal(JSON.parse(text).userinfo_endpoint, undefined);
  const asked = { ...DEFAULT, scope: "openid", client_id: idOf(documents.get("zed")), response_type: "code" };
  const challenged = { code_challenge: challengeOf(verifierOf()), code_challenge_method: "S256" };
  const redirected = { ...asked, ...challenged, redirect_uri: "http://127.0.0.1:1/callback" };
  const answer = await new Browser(service, provider).authorize(redirected);
  assert.match(answer.text, /error=invalid_scope/, "of a sign-in alone, which gives nothing here");
});
