/** What of sign-in is a setting: the claim that names a user, how this server proves itself, how often pages are asked for. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, type TestContext, test } from "node:test";
import { basic, encodeForm } from "../../../scripts/http-client.ts";
import { CODES_PER_USER_MAX, SESSIONS_PER_USER_MAX } from "../../../src/limits/people.ts";
import {
  type Asked,
  Browser,
  files,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  PRIVATE,
  PRIVATE_SECRET,
  PUBLIC,
  parametersOf,
  request,
  verifierOf,
} from "../../support/people.ts";
import { CLIENT_AT_PROVIDER, startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, ISSUER, type Service } from "../../support/world.ts";

let provider: TestProvider;
before(async () => {
  provider = await startProvider();
});
after(() => stop(provider));

async function serviceWith(
  t: TestContext,
  extra: Record<string, unknown>,
  more = {},
  inFile = false,
): Promise<Service> {
  const given = { ...files(provider), ...more };
  const service = await makeService(forPeople(provider, extra), { files: given, inFile });
  t.after(() => service.stop());
  return service;
}

test("OIDC-5.7-1, OIDC-D-3 a provider whose sub differs from client to client has a claim that does not", async (t) => {
  const service = await serviceWith(t, { trustedIssuers: provider.trusted({ subjectClaim: "oid" }) });
  t.after(() => {
    provider.lies = {};
  });
  provider.lies = {
    claims: (claims) => ({ ...claims, sub: "pairwise", oid: "user-1", email: "a@b.example" }),
  };
  // No rule names this user.
  await new Browser(service, provider).review(request(verifierOf()));
  const signedIn = (await service.events()).findLast(({ type }) => type === "user.signed_in");
  assert.equal((signedIn as { subject?: { sub: string } } | undefined)?.subject?.sub, "user-1");
  // Without the claim nothing else stands in for it.
  provider.lies = {};
  await new Browser(service, provider).review(request(verifierOf()), "bob");
  const failed = (await service.events()).findLast(({ type }) => type === "user.signin_failed");
  assert.equal(failed?.reason, "jwt_claim_missing");
});

const secret = "a secret/of +the provider: %é, long enough";
const methods = [
  ["client_secret_basic", (form: URLSearchParams) => form.get("client_secret") === null],
  ["client_secret_post", (form: URLSearchParams) => form.get("client_secret") === secret],
] as const;
for (const [method, fits] of methods) {
  test(`OIDC-3.1.3.1-1, RFC6749-B-1 this server proves itself by ${method}, in UTF-8`, async (t) => {
    const company = provider.provider({ method, clientSecret: { file: "provider-secret" } });
    const service = await serviceWith(
      t,
      { signIn: { providers: { company } } },
      { "provider-secret": secret },
    );
    const page = await new Browser(service, provider).review(request(verifierOf()));
    assert.equal(page.status, 200);
    const { form, authorization } = provider.redeemed.at(-1) ?? assert.fail("nothing redeemed");
    assert.ok(fits(form));
    assert.equal(form.get("client_assertion"), null);
    if (method === "client_secret_post") return assert.equal(authorization, undefined);
    const halves = Buffer.from(authorization?.slice("Basic ".length) ?? "", "base64")
      .toString()
      .split(":");
    const decoded = halves.map((half) => new URLSearchParams(`h=${half}`).get("h"));
    assert.deepEqual(decoded, [CLIENT_AT_PROVIDER, secret]);
  });
}

const audiences = [
  ["the issuer, unless the operator says otherwise", {}, ""],
  ["the token endpoint that the operator pinned", { assertionAudience: "token-endpoint" }, "/token"],
] as const;
for (const [what, extra, path] of audiences) {
  test(`OIDC-9-2 an assertion of this server is for ${what}`, async (t) => {
    const pinned = path === "" ? {} : { tokenEndpoint: `${provider.issuer}${path}` };
    // Metadata that name another place change nothing about a pinned one.
    provider.lies = path === "" ? {} : { metadata: { token_endpoint: "https://evil.example/token" } };
    t.after(() => {
      provider.lies = {};
    });
    const company = provider.provider({ ...extra, ...pinned });
    const service = await serviceWith(t, { signIn: { providers: { company } } });
    const page = await new Browser(service, provider).review(request(verifierOf()));
    assert.equal(page.status, 200, page.text);
    const { form } = provider.redeemed.at(-1) ?? assert.fail("nothing redeemed");
    const { aud } = claimsOf(form.get("client_assertion") ?? "");
    assert.equal(aud, `${provider.issuer}${path}`);
  });
}

test("OIDC-10.1.1-1, RFC8725-3.10-v1 a key with which the provider signs from now on is looked for when it is first used", async (t) => {
  const service = await serviceWith(t, {});
  const sign = async () => (await new Browser(service, provider).review(request(verifierOf()))).status;
  assert.equal(await sign(), 200);
  await provider.rotate();
  assert.equal(await sign(), 200);
});

const operatorSecret = "an operator's secret, 0123456789 abcdef";

for (const [what, order] of [
  ["subject", () => ({ subject: { iss: provider.issuer, sub: "alice" } })],
  ["issuer", () => ({ issuer: provider.issuer })],
  ["all", () => ({ everything: {} })],
] as const) {
  test(`PAGE-D-14 an ending by ${what} ends the sign-ins before it, so that a page decides nothing`, async (t) => {
    const { clients, policies } = forPeople(provider);
    const service = await serviceWith(t, {
      clients: { ...clients, operator: { method: "client_secret_basic", secrets: [operatorSecret] } },
      policies: [
        ...policies,
        {
          id: "operator",
          allow: "client_credentials",
          clients: ["operator"],
          targets: [`${ISSUER}/api`],
          scopes: ["token:revoke"],
        },
      ],
    });
    const browser = new Browser(service, provider);
    const page = await browser.review(request(verifierOf()));
    assert.equal(page.status, 200);
    const form = { grant_type: "client_credentials", audience: `${ISSUER}/api` };
    const token = await service.token(form, { authorization: basic("operator", operatorSecret) });
    const ended = await service.get("/revocations", {
      method: "POST",
      headers: {
        authorization: `Bearer ${token.body.access_token}`,
        "content-type": "application/json",
      },
      body: JSON.stringify(order()),
    });
    assert.equal(ended.status, 200, ended.text);
    const decided = await browser.decide(page);
    assert.ok(!locationOf(decided).startsWith("https://app.example"), locationOf(decided));
    assert.ok(!(await service.events()).some(({ type }) => type === "consent.recorded"));
  });
}

/** The browsers of a test all come from one address. */
const MANY_PAGES = { pagesPerMinuteBySource: 100_000 };

async function tokenOfPublic(service: Service): Promise<string> {
  const verifier = verifierOf();
  const browser = new Browser(service, provider);
  const loopback = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
  const { code = "" } = parametersOf(await browser.decide(await browser.review(request(verifier, loopback))));
  const form = { grant_type: "authorization_code", ...loopback, code, code_verifier: verifier };
  return String((await service.token(form)).body.access_token);
}

test("PAGE-D-18 one source asks for so many pages, and is told to wait", async (t) => {
  const service = await serviceWith(t, { limits: { pagesPerMinuteBySource: 3 } });
  const browser = new Browser(service, provider);
  for (let round = 0; round < 3; round++) assert.equal((await browser.get("/signed-out")).status, 200);
  const answer = await browser.get("/signed-out");
  assert.equal(answer.status, 429);
  assert.match(String(answer.headers["retry-after"]), /^[0-9]+$/);
  assert.match(String(answer.headers["content-type"]), /^text\/html/);
});

test("PAGE-D-18 one source leaves so many requests of public clients, whose name is no proof", async (t) => {
  const service = await serviceWith(t, { limits: { pagesPerMinuteBySource: 2 } });
  const push = () =>
    service.get("/par", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: encodeForm(request(verifierOf(), { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT })),
    });
  const statuses = [(await push()).status, (await push()).status, (await push()).status];
  assert.deepEqual(statuses, [201, 201, 429]);
});

test("RFC7009-5-2 what a public client ends in vain is told to wait after so many, and its users end what they have", async (t) => {
  const service = await serviceWith(t, { limits: { ...MANY_PAGES, failuresPerMinuteByClient: 2 } });
  const revoke = (token: string) =>
    service.get("/revoke", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: encodeForm({ token, client_id: PUBLIC }),
    });
  const token = await tokenOfPublic(service);
  const statuses: number[] = [];
  for (let guess = 0; guess < 4; guess++) statuses.push((await revoke(`guess-${guess}`)).status);
  assert.deepEqual(statuses, [200, 200, 429, 429]);
  assert.equal((await revoke(token)).status, 200);
  assert.equal((await service.events()).at(-1)?.type, "token.revoked");
});

test("HTTP-D-52, RFC6749-2.3.1-8, PROD-8.3-1 a public client's name is known to all: requests with it shut out none of its users", async (t) => {
  const rates = { requestsPerSecondByClient: 1, failuresPerMinuteByClient: 2 };
  const service = await serviceWith(t, { limits: { ...MANY_PAGES, ...rates } });
  const verifier = verifierOf();
  const browser = new Browser(service, provider);
  const loopback = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
  const page = await browser.review(request(verifier, loopback));
  const { code = "" } = parametersOf(await browser.decide(page));
  const guess = { grant_type: "authorization_code", client_id: PUBLIC, code_verifier: verifierOf() };
  const refused: unknown[] = [];
  for (let times = 0; times < 20; times++) {
    const answer = await service.token({ ...guess, code: `guess-${times}` });
    refused.push(answer.body.error);
  }
  // What failed is charged to this client at this source, and nothing else is.
  assert.deepEqual(refused.slice(0, 2), ["invalid_grant", "invalid_grant"]);
  assert.deepEqual(new Set(refused.slice(2)), new Set(["temporarily_unavailable"]));
  const answer = await service.token({ ...guess, ...loopback, code, code_verifier: verifier });
  assert.equal(answer.status, 200, answer.text);
});

test("PAGE-D-18, PAGE-D-4 what comes before a sign-in leaves no row, and shuts no one out", async (t) => {
  const service = await serviceWith(t, {}, {}, true);
  const browser = new Browser(service, provider);
  const loopback = request(verifierOf(), { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT });
  const push = (form: Asked, headers = {}) =>
    service.get("/par", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: encodeForm(form),
    });
  for (let round = 0; round < 20; round++) {
    const asked = await browser.authorize(request(verifierOf()));
    const id = new URL(locationOf(asked)).searchParams.get("r") ?? "";
    const sent = await browser.get(`/signin?r=${id}`);
    const state = new URL(locationOf(sent)).searchParams.get("state") ?? "";
    await browser.get(`/callback/company?error=access_denied&state=${state}`);
    assert.equal((await push(loopback)).status, 201);
  }
  using db = new DatabaseSync(join(service.folder, "mandate.sqlite"));
  const count = () => db.prepare("select count(*) as rows from short_lived").get()?.rows;
  assert.equal(count(), 0);
  // Those of clients that proved themselves, and of users who signed in, are their own.
  const authorization = basic(PRIVATE, PRIVATE_SECRET);
  assert.equal((await push(request(verifierOf()), { authorization })).status, 201);
  await browser.review(request(verifierOf()));
  assert.equal(count(), 3);
});

test("PAGE-D-18 of one user the oldest sessions and codes fall beyond so many, and of no other user", async (t) => {
  const service = await serviceWith(t, {}, {}, true);
  const browsers = Array.from({ length: SESSIONS_PER_USER_MAX + 1 }, () => new Browser(service, provider));
  const bob = new Browser(service, provider);
  await bob.review(request(verifierOf()), "bob");
  for (const browser of browsers) await browser.review(request(verifierOf()));
  using db = new DatabaseSync(join(service.folder, "mandate.sqlite"));
  const count = (kind: string) =>
    db.prepare("select count(*) as rows from short_lived where kind = ?").get(kind)?.rows;
  assert.equal(count("session"), SESSIONS_PER_USER_MAX + 1);
  assert.equal((await bob.review(request(verifierOf()))).status, 200);
  const last = browsers.at(-1) ?? assert.fail("no browser");
  for (let given = 0; given <= CODES_PER_USER_MAX; given++) {
    await last.decide(await last.review(request(verifierOf())));
  }
  assert.equal(count("code"), CODES_PER_USER_MAX);
});

test("PAGE-D-4 many tabs of one browser wait for their user at the same time", async (t) => {
  const service = await serviceWith(t, {});
  const browser = new Browser(service, provider);
  const open = (tab: number) => browser.authorize(request(verifierOf(), { state: `tab ${tab}` }));
  // The first one tells the browser its cookie.
  const asked = [
    await open(0),
    ...(await Promise.all(Array.from({ length: 11 }, (_, tab) => open(tab + 1)))),
  ];
  // The first tab that signs in does it for all of them.
  const [first = assert.fail("no tab"), ...others] = asked;
  const pages = [await browser.signIn(await browser.follow(first))];
  for (const tab of others) pages.push(await browser.follow(tab));
  const states = [];
  for (const page of pages) states.push(parametersOf(await browser.decide(page)).state);
  assert.deepEqual(
    states,
    Array.from({ length: 12 }, (_, tab) => `tab ${tab}`),
  );
});

test("STU-D-6 each provider finds the keys for itself alone, and no path has those of all", async (t) => {
  const [company, other] = [provider.provider({}), provider.provider({ clientId: "mandate-at-other" })];
  const service = await serviceWith(t, { signIn: { providers: { company, other } } });
  const kids = async (path: string) => {
    const { status, body } = await service.get(path);
    assert.equal(status, 200, path);
    return (body as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
  };
  await new Browser(service, provider).get("/signin?provider=company");
  const [first = [], second = []] = await Promise.all(
    ["company", "other"].map((one) => kids(`/rp/jwks/${one}`)),
  );
  assert.equal(first.length, 1);
  assert.equal(second.length, 1);
  assert.notEqual(first[0], second[0]);
  for (const path of ["/rp/jwks", "/rp/jwks/", "/rp/jwks/none"]) {
    assert.equal((await service.get(path)).status, 404, path);
  }
});

test("PROD-4.4-12 without signIn there is none of this", async (t) => {
  const { signIn: _, policies: __, clients: ___, ...without } = forPeople(provider);
  const service = await makeService(without, { files: files(provider) });
  t.after(() => service.stop());
  for (const path of [
    "/authorize",
    "/authorize/review",
    "/signin",
    "/callback/company",
    "/signed-out",
    "/rp/jwks/company",
  ]) {
    assert.equal((await service.get(path)).status, 404, path);
  }
  const form = { "content-type": "application/x-www-form-urlencoded" };
  assert.equal(
    (await service.get("/par", { method: "POST", headers: form, body: "client_id=a" })).status,
    404,
  );
  const { body } = await service.get("/.well-known/oauth-authorization-server");
  for (const member of [
    "authorization_endpoint",
    "pushed_authorization_request_endpoint",
    "code_challenge_methods_supported",
    "authorization_response_iss_parameter_supported",
  ]) {
    assert.ok(!(member in body), member);
  }
  assert.deepEqual(body.response_types_supported, []);
  assert.ok(!(body.token_endpoint_auth_methods_supported as string[]).includes("none"));
  const answer = await service.token({ grant_type: "authorization_code", code: "c", client_id: "a" });
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"]);
});
