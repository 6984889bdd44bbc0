/** Authorization requests that are not in order, parameter by parameter: what the user and the client are told. */
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { after, before, type TestContext, test } from "node:test";
import { type Answer, basic, encodeForm } from "../../../scripts/http-client.ts";
import { JWT_BEARER } from "../../../src/spec/rfc7523.ts";
import { forge, makeKey, seconds } from "../../support/forge.ts";
import {
  type Asked,
  Browser,
  files,
  formOf,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  NOTES,
  PRIVATE,
  PRIVATE_SECRET,
  PUBLIC,
  parametersOf,
  request,
  verifierOf,
  WEB_REDIRECT,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { assertRandom, DRAWS } from "../../support/random.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { ISSUER, type Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;
const KEYED = "keyed-app";
const signer = makeKey("ES256", "k1");
const DIARY = "https://diary.example";
/** Of the operator, so that the style is not the one of all tests. */
const COLOUR = "#5a2d82";

before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  service = await makeService(
    {
      ...base,
      clients: {
        ...base.clients,
        [KEYED]: { method: "private_key_jwt", jwks: { keys: [signer.jwk] }, redirectUris: [WEB_REDIRECT] },
      },
      targets: [
        ...base.targets,
        { names: [DIARY], scopes: ["diary.read"], people: true },
        { names: ["https://machines.example"], scopes: ["m"] },
      ],
      registration: { mode: "open", open: { scopes: ["notes.read"] } },
      pages: { colours: { light: COLOUR } },
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const ask = (extra: Asked): Promise<Answer> =>
  new Browser(service, provider).authorize(request(verifierOf(), extra));

// --- nothing leads on ---------------------------------------------------------------------------------------------

const dead = [
  ["RFC6749-4.1.2.1-1, PAGE-D-2 without a client", { client_id: "" }],
  ["RFC6749-4.1.2.1-1, PAGE-D-2 with an unknown client", { client_id: "unknown-client" }],
  [
    "MCPC-D-1 with a client that is a text of URLs",
    { client_id: "http://127.0.0.1:33418 https://vscode.dev/redirect" },
  ],
  [
    "RFC6749-3.1.2.4-1, RFC6749-10.6-4, RFC9700-2.1-2, RFC9700-4.11.2-2, MCP-S.6-2 with another redirect URI",
    { redirect_uri: "https://evil.example/cb" },
  ],
  [
    "RFC6749-3.1.2.4-2, RFC6749-4.1.2.1-4, MCP-R.1-4, CIMD-4.2-1 with a redirect URI that only begins like the registered one",
    { redirect_uri: `${WEB_REDIRECT}.evil.example` },
  ],
  [
    "PAGE-D-2 with another redirect URI, and all else that a client is told wrong too",
    {
      redirect_uri: "https://evil.example/cb",
      response_type: "token",
      code_challenge: "",
      scope: "a\\b",
      resource: "https://unknown.example",
      prompt: "none",
    },
  ],
  [
    "RFC6749-10.2-2 with a redirect URI that a public client did not register",
    { client_id: PUBLIC, redirect_uri: "http://127.0.0.1:49152/other" },
  ],
  ["RFC6749-3.1.2.4-1 with another path", { redirect_uri: `${WEB_REDIRECT}/x` }],
  ["RFC6749-10.15-1, PAGE-D-13 with a script as redirect URI", { redirect_uri: "javascript:alert(1)" }],
  ["MCPC-D-15 with a state of more than 2 KiB", { state: "x".repeat(2049) }],
] as const;
for (const [name, extra] of dead) {
  test(`${name} the answer is a notice, and leads nowhere`, async () => {
    const answer = await ask(extra);
    assert.equal(answer.status, 400);
    assert.match(String(answer.headers["content-type"]), /^text\/html/);
    assert.equal(answer.headers.location, undefined);
    assert.doesNotMatch(
      answer.text,
      /href="(?!https:\/\/as\.example\/account")|evil\.example|alert|unknown-client|the state/,
    );
  });
}

test("RFC6749-3.1-6 a repeated parameter is a notice, whichever it is", async () => {
  for (const name of [
    "client_id",
    "redirect_uri",
    "state",
    "scope",
    "response_type",
    "code_challenge",
    "x",
  ]) {
    const query = `${encodeForm(request(verifierOf()))}&${name}=a&${name}=b`;
    const answer = await new Browser(service, provider).get(`/authorize?${query}`);
    assert.equal(answer.status, 400, name);
    assert.equal(answer.headers.location, undefined);
  }
});

// --- the client is told -------------------------------------------------------------------------------------------

const told = [
  ["RFC6749-3.1.1-3, RFC6749-4.1.2.1-3 without a response type", { response_type: "" }, "invalid_request"],
  ["RFC6749-4.2-1 for a token", { response_type: "token" }, "unsupported_response_type"],
  ["RFC7636-4.4.1-1 without a challenge", { code_challenge: "" }, "invalid_request"],
  ["RFC7636-4.3-1 without a method", { code_challenge_method: "" }, "invalid_request"],
  ["RFC7636-7.2-1 with plain", { code_challenge_method: "plain" }, "invalid_request"],
  [
    "RFC8707-2-9, RFC8707-2.1-3 for an unknown resource",
    { resource: "https://unknown.example" },
    "invalid_target",
  ],
  ["MCPC-D-14 for a resource of machines", { resource: "https://machines.example" }, "invalid_target"],
  ["MCPC-D-14 for our own endpoints", { resource: `${ISSUER}/api` }, "invalid_target"],
  ["RFC8707-3-2 for two resources", { resource: [NOTES, DIARY] }, "invalid_target"],
  [
    "MCPC-D-13 for no resource and scopes of two",
    { resource: "", scope: "notes.read diary.read" },
    "invalid_target",
  ],
  ["MCPC-D-14 for a sign-in alone", { scope: "openid" }, "invalid_scope"],
  ["RFC6749-3.3-1 for a malformed scope", { scope: "a\\b" }, "invalid_scope"],
  ["PAGE-D-4 with more than can wait in the browser", { state: '"'.repeat(1600) }, "invalid_request"],
  ["MCPC-D-15 with prompt=none", { prompt: "none" }, "interaction_required"],
  ["RFC9126-3-1 with a request object", { request: "a.b.c" }, "request_not_supported"],
  [
    "RFC9126-2.2-3 with a foreign request_uri",
    { request_uri: "https://client.example/request.jwt" },
    "request_uri_not_supported",
  ],
  ["RFC9700-2.6-6 with another response mode", { response_mode: "fragment" }, "invalid_request"],
] as const;
for (const [name, extra, want] of told) {
  test(`${name}, RFC6749-4.1.2.1-2, PAGE-D-3 a client of the operator is told ${want} at once`, async () => {
    const answer = await ask(extra);
    assert.equal(answer.status, 303, answer.text);
    assert.ok(locationOf(answer).startsWith(`${WEB_REDIRECT}?`));
    const { error_description: description = "", ...rest } = parametersOf(answer);
    assert.deepEqual(rest, { error: want, state: "state" in extra ? extra.state : "the state", iss: ISSUER });
    // RFC6749-4.1.2.1-3: fixed words, in which nothing stands that was sent.
    assert.match(description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
    assert.doesNotMatch(description, /example|diary|a\.b\.c/);
  });
}

test("PAGE-D-3, RFC9700-4.11.2-1, RFC9700-4.11.2-3 a client that registered itself is told only if the user wants", async () => {
  const registered = await service.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      client_name: "Anything",
      redirect_uris: ["https://anything.example/cb"],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "none",
    }),
  });
  assert.equal(registered.status, 201, registered.text);
  const answer = await ask({
    client_id: String(registered.body.client_id),
    redirect_uri: "https://anything.example/cb",
    response_type: "token",
  });
  assert.equal(answer.status, 400);
  assert.equal(answer.headers.location, undefined);
  const back = /href="(https:\/\/anything\.example\/cb\?[^"]*)"/.exec(answer.text)?.[1] ?? "";
  const { searchParams } = new URL(back.replaceAll("&#38;", "&"));
  assert.equal(searchParams.get("error"), "unsupported_response_type");
  assert.equal(searchParams.get("error_description"), "response_type has to be code");
  assert.match(answer.text, /Back to <bdi>anything\.example<\/bdi>/);
});

// --- what is kept -------------------------------------------------------------------------------------------------

test("MCPC-D-13 without a resource the scopes choose the target, and foreign scopes fall away", async () => {
  const browser = new Browser(service, provider);
  const page = await browser.review(request(verifierOf(), { resource: "", scope: "openid notes.read x" }));
  assert.equal(page.status, 200, page.text);
  assert.match(page.text, /At <bdi>Notes<\/bdi>/);
  assert.match(page.text, /read your notes/);
  assert.doesNotMatch(page.text, /change your notes/);
});

test("PAGE-D-4, COOKIE-4.1.3.2-1, COOKIE-4.1.2.6-1, COOKIE-4.1.2.7-1 the request waits in the browser, encrypted, with a cookie beside it", async () => {
  const answer = await ask({});
  assert.equal(answer.status, 303);
  assert.match(locationOf(answer), /^https:\/\/as\.example\/authorize\/review\?r=[A-Za-z0-9_-]{400,1200}$/);
  const waits = Buffer.from(new URL(locationOf(answer)).searchParams.get("r") ?? "", "base64url");
  for (const sent of ["the state", WEB_REDIRECT, PRIVATE]) assert.ok(!waits.includes(sent), sent);
  assert.match(
    String(answer.headers["set-cookie"]),
    /^__Host-mandate-b=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=600; Secure; HttpOnly; SameSite=Lax$/,
  );
});

test("PAGE-D-4 a request is that of the browser that brought it", async () => {
  const [mine, theirs] = [new Browser(service, provider), new Browser(service, provider)];
  const answer = await mine.authorize(request(verifierOf()));
  await theirs.authorize(request(verifierOf()));
  for (const [browser, status] of [
    [theirs, 400],
    [mine, 303],
    [new Browser(service, provider), 400],
  ] as const) {
    assert.equal((await browser.get(locationOf(answer))).status, status);
  }
});

test("PAGE-D-4 a request that was changed, cut or made elsewhere is none of ours", async () => {
  const browser = new Browser(service, provider);
  const asked = locationOf(await browser.authorize(request(verifierOf())));
  const sealed = Buffer.from(new URL(asked).searchParams.get("r") ?? "", "base64url");
  const changed = [0, 11, 12, 40, sealed.length - 1].map((at) => {
    const bytes = Buffer.from(sealed);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return bytes;
  });
  const cut = [0, 1, 12, 28, sealed.length - 1].map((length) => sealed.subarray(0, length));
  const longer = Buffer.concat([sealed, sealed]);
  for (const bytes of [...changed, ...cut, longer, randomBytes(sealed.length)]) {
    const answer = await browser.get(`/authorize/review?r=${bytes.toString("base64url")}`);
    assert.equal(answer.status, 400);
  }
  // What a state at the provider holds is no request, and the reverse.
  const sent = await browser.get(`/signin?r=${sealed.toString("base64url")}`);
  const state = new URL(locationOf(sent)).searchParams.get("state") ?? "";
  assert.equal((await browser.get(`/authorize/review?r=${state}`)).status, 400);
  const callback = `/callback/company?code=c&state=${sealed.toString("base64url")}`;
  assert.equal((await browser.get(callback)).status, 400);
  assert.equal((await browser.get(asked)).status, 303);
});

test("MCPC-D-15 a request with a state of 2 KiB waits, and one that is longer than a browser may keep is refused", async () => {
  const state = "s".repeat(2048);
  const page = await new Browser(service, provider).review(request(verifierOf(), { state }));
  assert.equal(page.status, 200);
  const answer = await ask({ state, acr_values: "a".repeat(1000) });
  assert.deepEqual(
    [parametersOf(answer).error, parametersOf(answer).error_description],
    ["invalid_request", "the request is too long"],
  );
  const pushed = await push(request(verifierOf(), { state, acr_values: "a".repeat(1000) }));
  assert.deepEqual([pushed.status, pushed.body.error], [400, "invalid_request"]);
});

test("COOKIE-8.6-1 two cookies of one name, or one of another form, count as none", async () => {
  const browser = new Browser(service, provider);
  const answer = await browser.authorize(request(verifierOf()));
  const mine = browser.cookies.get("__Host-mandate-b") ?? "";
  const visit = (cookie: string) =>
    service.get(locationOf(answer).slice(ISSUER.length), { headers: { cookie } });
  assert.equal((await visit(`__Host-mandate-b=${mine}`)).status, 303);
  assert.equal((await visit(`__Host-mandate-b=${mine}; __Host-mandate-b=${mine}`)).status, 400);
  assert.equal((await visit(`__Host-mandate-b=${mine}x`)).status, 400);
  assert.equal((await visit(`mandate-b=${mine}`)).status, 400);
});

test("FETCHMD-2-1 a page is no part of another page, and is not asked for by another site's form", async () => {
  const path = `/authorize?${encodeForm(request(verifierOf()))}`;
  for (const dest of ["iframe", "image", "empty", "script"]) {
    assert.equal((await service.get(path, { headers: { "sec-fetch-dest": dest } })).status, 403, dest);
  }
  const document = { "sec-fetch-dest": "document", "sec-fetch-site": "cross-site" };
  assert.equal((await service.get(path, { headers: document })).status, 303);
});

test("CSP-6.1.3-1, CSP-6.3.1-1, RFC9700-4.16-2, RFC9700-4.2.4-1, RFC9700-4.2.4-2 pages load nothing and tell no referrer", async () => {
  const notice = await ask({ client_id: "unknown-client" });
  const page = await new Browser(service, provider).review(request(verifierOf()));
  for (const { headers, text } of [notice, page]) {
    const policy = String(headers["content-security-policy"]);
    const style = /<style>([^<]*)<\/style>/.exec(text)?.[1] ?? assert.fail(text);
    assert.match(style, new RegExp(COLOUR));
    const digest = createHash("sha256").update(style).digest("base64");
    const allowed = `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; frame-ancestors 'none'`;
    assert.ok(policy.startsWith(allowed), policy);
    assert.equal(headers["referrer-policy"], "no-referrer");
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["access-control-allow-origin"], undefined);
  }
});

test("CSP-6.4.2-1, CSP-6.4.1-1, RFC9700-4.16-1, RFC6749-10.13-1 pages are not framed, and forms stay here", async () => {
  const notice = await ask({ client_id: "unknown-client" });
  const page = await new Browser(service, provider).review(request(verifierOf()));
  for (const { headers } of [notice, page]) {
    assert.match(String(headers["content-security-policy"]), /; frame-ancestors 'none'/);
    assert.equal(headers["x-frame-options"], "DENY");
  }
  // Browsers apply form-action to the redirect to the client too.
  assert.match(String(notice.headers["content-security-policy"]), /form-action 'self'/);
  assert.doesNotMatch(String(page.headers["content-security-policy"]), /form-action/);
});

test("RFC6749-3.1-5 the authorization endpoint takes no form", async () => {
  const answer = await new Browser(service, provider).post("/authorize", request(verifierOf()));
  assert.equal(answer.status, 405);
});

for (const [name, extra, description] of [
  ["a challenge is missing", { code_challenge: "" }, "code_challenge is missing"],
  ["the method is missing", { code_challenge_method: "" }, "code_challenge_method has to be S256"],
] as const) {
  test(`RFC7636-4.4.1-2 the client is told that ${name}`, async () => {
    assert.equal(parametersOf(await ask(extra)).error_description, description);
  });
}

// --- pushed requests ----------------------------------------------------------------------------------------------

const push = (
  form: Asked,
  headers: Record<string, string> = { authorization: basic(PRIVATE, PRIVATE_SECRET) },
) =>
  service.get("/par", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    body: encodeForm(form),
  });

test("POLICY-D-22 the event of a pushed or redeemed request has the known name that is like its unknown resource, and the client is not told", async () => {
  const resource = "https://note.example/mcp";
  const pushed = await push(request(verifierOf(), { resource }));
  assert.deepEqual(Object.keys(pushed.body), ["error", "error_description"]);
  assert.equal(pushed.body.error, "invalid_target");
  const asked = { grant_type: "client_credentials", resource };
  const refused = await service.token(asked, { authorization: basic(PRIVATE, PRIVATE_SECRET) });
  assert.equal(refused.body.error, "invalid_target", refused.text);
  for (const { text } of [pushed, refused]) assert.doesNotMatch(text, /notes\.example/);
  const denied = (await service.events()).filter(({ reason }) => reason === "target_unknown").slice(-2);
  for (const { policy } of denied)
    assert.deepEqual((policy as { meant: object }).meant, [{ asked: resource, known: NOTES }]);
  assert.deepEqual(
    denied.map(({ type }) => type),
    ["authorization.denied", "token.denied"],
  );
});

test("STU-D-1, B7523-5-1, B7523-D-5 an assertion of a pushed request names the issuer alone, and its event has type and audience", async () => {
  const ask = (aud: string) => {
    const claims = { iss: KEYED, sub: KEYED, aud, jti: randomUUID(), iat: seconds(), exp: seconds() + 60 };
    const assertion = forge(signer, claims, { header: { typ: "JWT" } });
    const proof = { client_assertion_type: JWT_BEARER, client_assertion: assertion };
    return push(request(verifierOf(), { client_id: KEYED, ...proof }), {});
  };
  for (const path of ["/token", "/par"]) {
    const { status, body } = await ask(ISSUER + path);
    assert.deepEqual([status, (body as { error?: string }).error], [400, "invalid_client"], path);
  }
  assert.equal((await ask(ISSUER)).status, 201);
  const proven = (await service.events()).map(({ client }): Partial<Record<string, unknown>> => client ?? {});
  assert.deepEqual(
    proven.filter(({ aud }) => aud !== undefined).map(({ aud, typ }) => [aud, typ]),
    [[ISSUER, "JWT"]],
  );
});

test("RFC9126-2.2-4, RFC9126-4-3, RFC9126-7.3-1, RFC9126-2.2-1, RFC9126-4-1, RFC9126-4-5 a pushed request is the same row, opened by one browser until it is decided", async () => {
  const pushed = await push(request(verifierOf()));
  assert.equal(pushed.status, 201, pushed.text);
  assert.equal(pushed.headers["cache-control"], "no-store");
  const { request_uri = "", expires_in } = pushed.body as { request_uri?: string; expires_in?: number };
  assert.match(request_uri, /^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{22}$/);
  assert.equal(expires_in, 60);
  const browser = new Browser(service, provider);
  // RFC9126-2.2-4: and nothing else of the query is looked at.
  const asked = { client_id: PRIVATE, request_uri, redirect_uri: "https://evil.example/", scope: "x" };
  const other = new Browser(service, provider);
  assert.equal((await other.authorize({ ...asked, client_id: PUBLIC })).status, 400);
  const page = await browser.review(asked);
  assert.equal(page.status, 200, page.text);
  assert.equal((await browser.authorize(asked)).status, 303);
  assert.equal((await other.authorize(asked)).status, 400);
  const back = await browser.decide(page);
  assert.ok(locationOf(back).startsWith(`${WEB_REDIRECT}?code=`));
  assert.equal((await browser.authorize(asked)).status, 400);
});

test("NAME-D-7 the reason of a pushed request is shown, and one in the query beside its reference is not", async () => {
  const pushed = await push(request(verifierOf(), { mandate_reason: "To print your notes." }));
  const request_uri = String(pushed.body.request_uri);
  const asked = { client_id: PRIVATE, request_uri, mandate_reason: "Something else." };
  const { text } = await new Browser(service, provider).review(asked);
  assert.ok(text.includes("Its reason, in its own words:</span> “<bdi>To print your notes.</bdi>”"), text);
  assert.doesNotMatch(text, /Something else/);
});

test("RFC9126-4-2 a reference that is unknown or over is a notice with a way back, which says what was wrong", async () => {
  const request_uri = "urn:ietf:params:oauth:request_uri:AAAAAAAAAAAAAAAAAAAAAA";
  const answer = await new Browser(service, provider).authorize({ client_id: PRIVATE, request_uri });
  assert.equal(answer.status, 400);
  assert.equal(answer.headers.location, undefined);
  const href = /href="(https:\/\/app\.example\/cb\?[^"]*)"/.exec(answer.text)?.[1] ?? "";
  const { searchParams } = new URL(href.replaceAll("&#38;", "&"));
  assert.equal(searchParams.get("error"), "invalid_request_uri");
  // Where the client is not known there is none.
  const unknown = await new Browser(service, provider).authorize({ client_id: "unknown", request_uri });
  assert.doesNotMatch(unknown.text, /href="(?!https:\/\/as\.example\/account")/);
});

test("RFC9126-7.1-1, RFC9126-2.2-2 a reference has 126 random bits in 21 of its characters, and two more in the last", async () => {
  const references = Array.from({ length: DRAWS }, async () => {
    const { body } = await push(request(verifierOf()));
    return String(body.request_uri).slice("urn:ietf:params:oauth:request_uri:".length);
  });
  assertRandom(await Promise.all(references), 21);
});

test("RFC9126-2.1-5 a push asks no rule, since it knows no user: where none allows it, the opened request gives no code", async () => {
  const pushed = await push(request(verifierOf(), { resource: DIARY, scope: "diary.read" }));
  assert.equal(pushed.status, 201, pushed.text);
  const asked = { client_id: PRIVATE, request_uri: String(pushed.body.request_uri) };
  const { code, error } = parametersOf(await new Browser(service, provider).review(asked));
  assert.deepEqual([code, error], [undefined, "access_denied"]);
});

test("RFC9126-2-3 what is pushed counts as at the authorization endpoint: scope, state and the user's languages", async () => {
  const extra = { scope: "notes.read", state: "pushed", ui_locales: "de" };
  const pushed = await push(request(verifierOf(), extra));
  const asked = { client_id: PRIVATE, request_uri: String(pushed.body.request_uri) };
  const browser = new Browser(service, provider);
  const page = await browser.review(asked);
  assert.deepEqual(formOf(page).scopes, ["notes.read"]);
  assert.match(page.text, /<html lang="de"/);
  assert.equal(parametersOf(await browser.decide(page)).state, "pushed");
  const silent = await push(request(verifierOf(), { prompt: "none" }));
  assert.deepEqual([silent.status, (silent.body as { error?: string }).error], [400, "interaction_required"]);
});

test("RFC9126-2.2-4, PAGE-D-18 the reference of a client that only named itself holds its request, for this client and until it is decided", async () => {
  const asked = request(verifierOf(), { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT });
  const { request_uri = "" } = (await push(asked, {})).body as { request_uri?: string };
  assert.match(request_uri, /^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{400,1200}$/);
  const browser = new Browser(service, provider);
  assert.equal((await browser.authorize({ client_id: PRIVATE, request_uri })).status, 400);
  const page = await browser.review({ client_id: PUBLIC, request_uri });
  assert.match(locationOf(await browser.decide(page)), /^http:\/\/127\.0\.0\.1\/callback\?code=/);
  assert.equal((await browser.authorize({ client_id: PUBLIC, request_uri })).status, 400);
});

const unpushed = [
  [
    "RFC9126-2.1-1, RFC9126-2.3-1 with a request_uri",
    { request_uri: "urn:ietf:params:oauth:request_uri:x" },
    400,
    "invalid_request",
  ],
  [
    "RFC9126-2.1-4 with another redirect URI",
    { redirect_uri: "https://evil.example/" },
    400,
    "invalid_request",
  ],
  ["RFC9126-2.1-4 without a challenge", { code_challenge: "" }, 400, "invalid_request"],
  ["RFC9126-3-1 with a request object", { request: "a.b.c" }, 400, "request_not_supported"],
  ["RFC9126-2.1-4 for an unknown resource", { resource: "https://unknown.example" }, 400, "invalid_target"],
  ["RFC9126-2.1-2 for another client", { client_id: PUBLIC }, 400, "invalid_request"],
] as const;
for (const [name, extra, status, error] of unpushed) {
  test(`${name}, RFC9126-2.3-1 a pushed request is refused`, async () => {
    const answer = await push(request(verifierOf(), extra));
    assert.deepEqual([answer.status, answer.body.error], [status, error], answer.text);
  });
}

test("RFC9126-2.1-3, RFC9126-2-5 a confidential client has to prove itself, a public one names itself", async () => {
  assert.equal((await push(request(verifierOf()), {})).body.error, "invalid_client");
  const wrong = await push(request(verifierOf()), { authorization: basic(PRIVATE, "wrong") });
  assert.deepEqual([wrong.status, wrong.body.error], [401, "invalid_client"]);
  const named = await push(request(verifierOf(), { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT }), {});
  assert.equal(named.status, 201, named.text);
});

test("RFC9126-2-1 only a form may be pushed, and only by POST", async () => {
  assert.equal((await service.get("/par")).status, 405);
  const json = await service.get("/par", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  assert.equal(json.status, 400);
});

test("RFC7523-3-14, RFC9126-2-5 an assertion is used up and its request left in one entry, so that no fault is between the two", async (t) => {
  const { entries, lone } = await loneService(t);
  const pushed = await lone.get("/par", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm(byAssertion()),
  });
  assert.equal(pushed.status, 201, pushed.text);
  assert.deepEqual(entries, [{ type: "client.authenticated", rows: 1 }]);
  const asked = { client_id: KEYED, request_uri: String(pushed.body.request_uri) };
  assert.equal((await new Browser(lone, provider).authorize(asked)).status, 303);
});

/** A service whose entries with rows are told. */
async function loneService(t: TestContext) {
  const entries: { type: string; rows: number }[] = [];
  const lone = await makeService(
    forPeople(provider, {
      clients: {
        [KEYED]: { method: "private_key_jwt", jwks: { keys: [signer.jwk] }, redirectUris: [WEB_REDIRECT] },
      },
    }),
    {
      files: files(provider),
      ports: ({ journal }) => ({
        journal: {
          record(entry, deadline) {
            const { event, rows = [] } = entry;
            if (rows.length > 0) entries.push({ type: event.type, rows: rows.length });
            return journal.record(entry, deadline);
          },
        },
      }),
    },
  );
  t.after(() => stop(lone));
  return { entries, lone };
}

/** A request with an assertion of its client. */
function byAssertion(): Asked {
  const assertion = forge(signer, {
    ...{ iss: KEYED, sub: KEYED, aud: ISSUER, jti: randomUUID() },
    ...{ iat: seconds(), exp: seconds() + 60 },
  });
  const proof = { client_assertion: assertion, client_assertion_type: JWT_BEARER };
  return { ...request(verifierOf()), client_id: KEYED, ...proof };
}

test("RFC7523-3-14, RFC9126-2-5 an assertion that has pushed a request is used up, and its repetition is refused", async () => {
  const proven = byAssertion();
  const first = await push(proven, {});
  assert.equal(first.status, 201, first.text);
  const second = await push(proven, {});
  assert.deepEqual([second.status, second.body.error], [400, "invalid_client"]);
});
