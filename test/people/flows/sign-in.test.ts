/** Sign-in at the provider: what a hostile response, browser or provider comes to. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Answer, encodeForm } from "../../../scripts/http-client.ts";
import { shownBy } from "../../support/markup.ts";
import {
  Browser,
  challengeOf,
  files,
  formOf,
  forPeople,
  locationOf,
  parametersOf,
  request,
  SCOPES,
  verifierOf,
  WEB_REDIRECT,
} from "../../support/people.ts";
import { CLIENT_AT_PROVIDER, type Lies, startProvider, type TestProvider } from "../../support/provider.ts";
import { assertRandom, DRAWS } from "../../support/random.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, ISSUER, type Service } from "../../support/world.ts";

/** The browsers of a test all come from one address. */
const MANY_PAGES = { pagesPerMinuteBySource: 100_000 };

let provider: TestProvider;
let other: TestProvider;
let service: Service;

before(async () => {
  [provider, other] = await Promise.all([startProvider(), startProvider()]);
  const base = forPeople(provider);
  service = await makeService(
    {
      ...base,
      limits: { ...MANY_PAGES, failuresPerMinuteBySource: 100_000 },
      registration: { mode: "open", open: { scopes: SCOPES } },
      trustedIssuers: {
        ...provider.trusted({ disabledSubjects: ["gone"] }),
        [other.issuer]: {
          ...(other.trusted()[other.issuer] as object),
          keys: {
            url: `${other.issuer}/jwks`,
            ca: { file: "other.pem" },
            privateNetworks: ["127.0.0.0/8", "::1/128"],
          },
          subjects: { prefix: "other:" },
        },
      },
      signIn: {
        providers: { company: provider.provider(), other: other.provider({ ca: { file: "other.pem" } }) },
      },
    },
    { files: { ...files(provider), "other.pem": other.ca } },
  );
});
afterEach(() => {
  provider.lies = {};
  other.lies = {};
});
after(() => stop(service, provider, other));

/** The browser at the provider; `location` is where it was sent. */
async function atProvider(name = "company", browser = new Browser(service, provider)) {
  const asked = await browser.authorize(request(verifierOf()));
  const id = new URL(locationOf(asked)).searchParams.get("r") ?? "";
  const sent = await browser.get(`/signin?r=${id}&provider=${name}`);
  assert.equal(sent.status, 303, sent.text);
  return { browser, id, location: locationOf(sent) };
}

/** The reason of the last event of this type. */
async function lastReason(type: string): Promise<string | undefined> {
  return (await service.events()).findLast((event) => event.type === type)?.reason;
}

const refusedAs = async (answer: Answer, reason: string): Promise<void> => {
  assert.equal(answer.headers.location, undefined);
  assert.equal(answer.headers["set-cookie"]?.includes("__Host-mandate-s") ?? false, false);
  assert.equal(await lastReason("user.signin_failed"), reason);
};

// --- the request to the provider -----------------------------------------------------------------------------------

test("RFC7636-4.2-1 the provider is sent an S256 challenge, and the verifier of it with the code", async () => {
  const { browser, location } = await atProvider();
  const { searchParams: asked } = new URL(location);
  assert.equal(asked.get("code_challenge_method"), "S256");
  await browser.get(provider.signIn(location));
  const verifier = provider.redeemed.at(-1)?.form.get("code_verifier") ?? assert.fail("nothing redeemed");
  assert.ok(verifier !== asked.get("code_challenge"));
  assert.equal(challengeOf(verifier), asked.get("code_challenge"));
});

test("OIDC-D-8 a provider whose metadata cannot be had is told on a page, and the browser is sent nowhere", async (t) => {
  const away = await startProvider();
  away.lies = { metadata: { issuer: "https://other.example" } };
  const lone = await makeService(forPeople(away), { files: files(away) });
  t.after(() => stop(lone, away));
  const browser = new Browser(lone, away);
  const page = await browser.follow(await browser.authorize(request(verifierOf())));
  assert.equal(page.status, 503, page.text);
  assert.match(page.headers["content-type"] ?? "", /^text\/html/);
  assert.equal(page.headers.location, undefined);
});

test("OIDC-3.1.2.1-4, COOKIE-8.4-1, PAGE-D-14, PAGE-D-4, RFC6749-10.10-1 nothing that a sign-in makes can be guessed", async () => {
  const made = [];
  for (let round = 0; round < DRAWS; round++) {
    const { browser, id, location } = await atProvider();
    const { searchParams: asked } = new URL(location);
    const page = await browser.follow(await browser.get(provider.signIn(location)));
    const { code } = parametersOf(await browser.decide(page));
    made.push({
      request: id,
      state: asked.get("state"),
      nonce: asked.get("nonce"),
      browser: browser.cookies.get("__Host-mandate-b"),
      session: browser.cookies.get("__Host-mandate-s"),
      code,
    });
  }
  // 128 bits in the id of the request, 256 in each of the others.
  for (const [name, places] of Object.entries({
    request: 21,
    state: 42,
    nonce: 42,
    browser: 42,
    session: 42,
    code: 42,
  })) {
    assertRandom(
      made.map((one) => String(Object(one)[name])),
      places,
    );
  }
});

// --- the token of the provider -------------------------------------------------------------------------------------

const later = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;
const bad: readonly (readonly [name: string, Lies, reason: string])[] = [
  [
    "OIDC-3.1.3.7-2 of another issuer",
    { claims: (c) => ({ ...c, iss: "https://evil.example" }) },
    "id_token_issuer_differs",
  ],
  ["OIDC-3.1.3.7-3 for another client", { claims: (c) => ({ ...c, aud: "other" }) }, "jwt_audience_refused"],
  [
    "OIDC-3.1.3.7-3 for another client too",
    { claims: (c) => ({ ...c, aud: [CLIENT_AT_PROVIDER, "other"] }) },
    "jwt_audience_several",
  ],
  ["OIDC-3.1.3.7-4 issued to another party", { claims: (c) => ({ ...c, azp: "other" }) }, "azp_differs"],
  [
    "OIDC-3.1.3.7-5, OIDC-3.1.3.7-6 with a signature of another key",
    { foreignKey: true },
    "signature_invalid",
  ],
  ["OIDC-10.1-1 with an unknown key", { header: { kid: "unknown" } }, "issuer_key_unknown"],
  [
    "OIDC-2-2 that names its key itself",
    { header: { jku: "https://evil.example/jwks" } },
    "jws_header_refused",
  ],
  ["OIDC-3.1.3.7-9 that has expired", { claims: (c) => ({ ...c, exp: later(-60) }) }, "jwt_expired"],
  ["OIDC-3.1.3.7-10 that is old", { claims: (c) => ({ ...c, iat: later(-400) }) }, "jwt_too_old"],
  ["OIDC-3.1.3.7-11 without a nonce", { claims: ({ nonce: _, ...c }) => c }, "nonce_missing"],
  ["OIDC-3.1.3.7-11 with another nonce", { claims: (c) => ({ ...c, nonce: "other" }) }, "nonce_differs"],
  ["OIDC-2-1 of a long subject", { claims: (c) => ({ ...c, sub: "u".repeat(256) }) }, "id_token_sub_refused"],
  [
    "OIDC-2-1 of a subject in Cyrillic",
    { claims: (c) => ({ ...c, sub: "\u0430lice" }) },
    "id_token_sub_refused",
  ],
  ["OIDC-2-1 without a subject", { claims: ({ sub: _, ...c }) => c }, "jwt_claim_missing"],
  [
    "OIDC-D-3 of a subject like a workload",
    { claims: (c) => ({ ...c, sub: "spiffe://td.example/a" }) },
    "sub_looks_like_machine",
  ],
  ["OIDC-D-3 of a disabled subject", { claims: (c) => ({ ...c, sub: "gone" }) }, "subject_disabled"],
  [
    "OIDC-3.1.3.7-1 that is encrypted",
    { answer: () => ({ status: 200, body: { token_type: "Bearer", id_token: "a.b.c.d.e" } }) },
    "jws_encrypted",
  ],
  [
    "OIDC-3.1.3.3-1 that is missing",
    { answer: () => ({ status: 200, body: { token_type: "Bearer" } }) },
    "provider_answer_malformed",
  ],
  [
    "OIDC-3.1.3.1-1 in place of which there is an error",
    { answer: () => ({ status: 400, body: { error: "<b>text of the provider</b>" } }) },
    "provider_refused",
  ],
];
for (const [name, lies, reason] of bad) {
  test(`${name}, OIDC-D-8 an ID token is refused, and the trail says why`, async () => {
    const { browser, location } = await atProvider();
    provider.lies = lies;
    const answer = await browser.get(provider.signIn(location));
    assert.ok(answer.status >= 400, `${answer.status}`);
    await refusedAs(answer, reason);
    assert.match(
      answer.text,
      /<a href="https:\/\/as\.example\/[^"]*r=[\w-]+[^"]*">/,
      "no way back to the request",
    );
    assert.doesNotMatch(answer.text, /text of the provider/);
  });
}

const said = [
  [
    "a code that it refuses",
    { status: 400, body: { error: "invalid_grant", error_description: "text" } },
    { status: 400, error: "invalid_grant" },
  ],
  [
    "a secret that it refuses",
    { status: 401, body: { error: "invalid_client" } },
    { status: 401, error: "invalid_client" },
  ],
  [
    "a code of its own making",
    { status: 400, body: { error: "<b>text of the provider</b>" } },
    { status: 400 },
  ],
  ["a page in place of JSON", { status: 400, body: "<html>" }, { status: 400 }],
  ["a fault of its own", { status: 500, body: { error: "text" } }, { status: 500 }],
  ["an answer without a token", { status: 200, body: {} }, { status: 200 }],
] as const;
for (const [name, answer, detail] of said) {
  test(`OIDC-D-8 status and error code of the provider's token endpoint are on record, no text of it: ${name}`, async () => {
    const { browser, location } = await atProvider();
    provider.lies = { answer: () => answer };
    await browser.get(provider.signIn(location));
    const event = (await service.events()).findLast(({ type }) => type === "user.signin_failed");
    assert.deepEqual(event?.detail, { provider: "company", ...detail });
  });
}

for (const [error, recorded] of [
  ["login_required", { error: "login_required" }],
  ["<b>text</b>", {}],
  ["x".repeat(65), {}],
] as const) {
  test(`OIDC-D-8 the error of the provider's response is on record as a code alone: ${error.slice(0, 16)}`, async () => {
    const { browser, location } = await atProvider();
    const state = new URL(location).searchParams.get("state") ?? "";
    await browser.get(`/callback/company?${encodeForm({ error, error_description: "text", state })}`);
    const event = (await service.events()).findLast(({ type }) => type === "user.signin_failed");
    assert.deepEqual(event?.detail, { provider: "company", ...recorded });
  });
}

// --- the response ---------------------------------------------------------------------------------------------------

test("OIDC-3.1.2.1-3, OIDC-3.1.2.7-1, OIDC-D-2 a response in another browser changes nothing (login CSRF)", async () => {
  const attacker = await atProvider();
  const back = provider.signIn(attacker.location, "mallory");
  const victim = await atProvider();
  const answer = await victim.browser.get(back);
  assert.equal(answer.status, 400);
  assert.equal(victim.browser.cookies.has("__Host-mandate-s"), false);
  assert.equal((await new Browser(service, provider).get(back)).status, 400);
  // It was not spent by that.
  assert.equal((await attacker.browser.get(back)).status, 303);
});

test("OIDC-D-2 a response is good once, and says how to go on", async () => {
  const { browser, location } = await atProvider();
  const back = provider.signIn(location);
  assert.equal((await browser.get(back)).status, 303);
  const redeemed = provider.redeemed.length;
  const again = await browser.get(back);
  assert.equal(again.status, 409);
  const [, onwards = ""] = /href="([^"]*\/authorize\/review\?r=[^"]*)"/.exec(again.text) ?? [];
  assert.equal((await browser.get(onwards)).status, 200);
  assert.equal(provider.redeemed.length, redeemed, "its code is not redeemed again");
});

test("OIDC-D-2 of two responses of one sign-in at the same time one opens a session", async () => {
  const { browser, location } = await atProvider();
  const [one, two] = [provider.signIn(location), provider.signIn(location, "bob")];
  const both = await Promise.all([browser.get(one), browser.get(two)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [303, 409]);
});

test("HTTP-D-43, OIDC-D-2, PAGE-D-3 a user who gives up at the provider is sent back to a client of the operator, and may still sign in", async () => {
  const { browser, location } = await atProvider();
  const state = new URL(location).searchParams.get("state") ?? "";
  const answer = await browser.get(
    `/callback/company?${encodeForm({ error: "access_denied", error_description: "x", state })}`,
  );
  assert.equal(answer.status, 303);
  const { origin, pathname } = new URL(locationOf(answer));
  assert.equal(`${origin}${pathname}`, WEB_REDIRECT);
  assert.deepEqual(parametersOf(answer), {
    error: "access_denied",
    error_description: "the user did not sign in",
    state: "the state",
    iss: ISSUER,
  });
  assert.equal(await lastReason("user.signin_failed"), "provider_refused");
  assert.equal((await browser.get(provider.signIn(location))).status, 303);
});

for (const [error, told, back] of [
  ["login_required", "login_required", undefined],
  ["interaction_required", "login_required", undefined],
  ["temporarily_unavailable", undefined, "server_error"],
  ["invalid_scope", undefined, "server_error"],
] as const) {
  test(`PAGE-D-3, OIDC-3.1.2.6-1 of ${error} at the provider the client is told ${told ?? "by the user, who may try again"}`, async () => {
    const { browser, location } = await atProvider();
    const state = new URL(location).searchParams.get("state") ?? "";
    const answer = await browser.get(`/callback/company?${encodeForm({ error, state })}`);
    if (told !== undefined) return assert.equal(parametersOf(answer).error, told);
    assert.equal(answer.status, 400);
    assert.match(answer.text, /href="https:\/\/as\.example\/authorize\/review\?r=/);
    assert.match(answer.text, new RegExp(`href="https://app\\.example/cb\\?error=${back}&#38;`));
  });
}

test("HTTP-D-43, PAGE-D-3, RFC9700-4.11.2-1 a user who gives up at the provider is sent to no client that registered itself, but may go there", async () => {
  const redirect_uri = "https://anything.example/cb";
  const registered = await service.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      redirect_uris: [redirect_uri],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "none",
    }),
  });
  const client_id = String(registered.body.client_id);
  const browser = new Browser(service, provider);
  const asked = await browser.authorize(request(verifierOf(), { client_id, redirect_uri }));
  const id = new URL(locationOf(asked)).searchParams.get("r") ?? "";
  const sent = await browser.get(`/signin?r=${id}&provider=company`);
  const state = new URL(locationOf(sent)).searchParams.get("state") ?? "";
  const answer = await browser.get(`/callback/company?${encodeForm({ error: "access_denied", state })}`);
  assert.deepEqual([answer.status, answer.headers.location], [400, undefined]);
  assert.match(answer.text, /href="https:\/\/anything\.example\/cb\?error=access_denied&#38;/);
  assert.match(answer.text, /href="https:\/\/as\.example\/authorize\/review\?r=/);
});

test("OIDC-D-8 a failed response that comes too often is counted and fills no trail", async (t) => {
  const few = await makeService(
    forPeople(provider, { limits: { ...MANY_PAGES, failuresPerMinuteBySource: 2 } }),
    {
      files: files(provider),
    },
  );
  t.after(() => few.stop());
  const browser = new Browser(few, provider);
  const asked = await browser.authorize(request(verifierOf()));
  const id = new URL(locationOf(asked)).searchParams.get("r") ?? "";
  const sent = await browser.get(`/signin?r=${id}`);
  const state = new URL(locationOf(sent)).searchParams.get("state") ?? "";
  for (let times = 0; times < 6; times++) {
    await browser.get(`/callback/company?${encodeForm({ error: "access_denied", state })}`);
  }
  const recorded = (await few.events()).filter(({ type }) => type === "user.signin_failed");
  assert.equal(recorded.length, 2);
});

test("OIDC-D-1 a response at the callback of another provider is refused (mix-up)", async () => {
  const { browser, location } = await atProvider("other");
  const back = new URL(other.signIn(location));
  await refusedAs(await browser.get(`/callback/company${back.search}`), "attempt_of_other_provider");
  assert.equal(
    provider.redeemed.some(({ form }) => form.get("code") === back.searchParams.get("code")),
    false,
  );
});

for (const [iss, reason] of [["https://evil.example", "callback_issuer_differs"]] as const) {
  test("OIDC-D-1 a response that names another issuer is refused, and its code is not redeemed", async () => {
    const { browser, location } = await atProvider();
    const back = new URL(provider.signIn(location));
    back.searchParams.set("iss", iss);
    await refusedAs(await browser.get(back.href), reason);
    assert.equal(
      provider.redeemed.some(({ form }) => form.get("code") === back.searchParams.get("code")),
      false,
    );
  });
}

test("OIDC-3.1.3.1-1 a code of another sign-in is no use in this one (code injection)", async () => {
  const [one, two] = [await atProvider(), await atProvider()];
  const stolen = new URL(provider.signIn(one.location, "mallory")).searchParams.get("code") ?? "";
  const back = new URL(provider.signIn(two.location));
  back.searchParams.set("code", stolen);
  await refusedAs(await two.browser.get(back.href), "provider_refused");
});

test("OIDC-3.1.2.7-1 an unknown state is refused and counted", async () => {
  const { browser } = await atProvider();
  assert.equal((await browser.get("/callback/company?code=c&state=unknown")).status, 400);
  assert.equal((await browser.get("/callback/company?code=c")).status, 400);
  assert.equal((await browser.post("/callback/company", { code: "c", state: "s" })).status, 405);
});

// --- the session ----------------------------------------------------------------------------------------------------

test("OIDC-9-1, OIDC-9-2, OIDC-D-1 this server proves itself by a key of its own, which is not among those of tokens", async () => {
  const { browser, location } = await atProvider();
  assert.equal(new URL(location).searchParams.get("redirect_uri"), `${ISSUER}/callback/company`);
  await browser.get(provider.signIn(location));
  const { form } = provider.redeemed.at(-1) ?? assert.fail("nothing redeemed");
  const { iss, sub, aud } = claimsOf(form.get("client_assertion"));
  assert.deepEqual([iss, sub, aud], [CLIENT_AT_PROVIDER, CLIENT_AT_PROVIDER, provider.issuer]);
  const { kid } = JSON.parse(
    Buffer.from(form.get("client_assertion")?.split(".")[0] ?? "", "base64url").toString(),
  );
  const kids = async (path: string) =>
    ((await service.get(path)).body as { keys: { kid: string; d?: string }[] }).keys.map(
      ({ kid: one, d }) => {
        assert.equal(d, undefined);
        return one;
      },
    );
  assert.ok((await kids("/rp/jwks/company")).includes(kid));
  assert.ok(!(await kids("/jwks")).includes(kid));
});

test("COOKIE-8.4-1, OIDC-D-4 each sign-in makes another session, and the one before ends (fixation)", async () => {
  const first = await atProvider();
  await first.browser.get(provider.signIn(first.location));
  const before = first.browser.cookies.get("__Host-mandate-s") ?? "";
  const second = await atProvider("company", first.browser);
  await first.browser.get(provider.signIn(second.location, "bob"));
  const now = first.browser.cookies.get("__Host-mandate-s") ?? "";
  assert.notEqual(now, before);
  const page = await first.browser.get(`/authorize/review?r=${second.id}`);
  assert.match(page.text, /bob of the company/);
  first.browser.cookies.set("__Host-mandate-s", before);
  assert.equal((await first.browser.get(`/authorize/review?r=${second.id}`)).status, 303);
});

test("OIDC-D-5 a client that asks for a new sign-in gets one, once", async () => {
  const browser = new Browser(service, provider);
  const { location } = await atProvider("company", browser);
  await browser.get(provider.signIn(location));
  const asked = await browser.authorize(request(verifierOf(), { prompt: "login" }));
  const id = new URL(locationOf(asked)).searchParams.get("r");
  assert.equal(locationOf(await browser.get(locationOf(asked))), `${ISSUER}/signin?r=${id}`);
  const sent = await browser.get(`/signin?r=${id}&provider=company`);
  assert.deepEqual(
    ["prompt", "max_age"].map((name) => new URL(locationOf(sent)).searchParams.get(name)),
    ["login", "0"],
  );
  // OIDC-3.1.3.7-13: a provider that did not ask the user again is not believed.
  provider.lies = { claims: (c) => ({ ...c, auth_time: later(-600) }) };
  await refusedAs(await browser.get(provider.signIn(locationOf(sent))), "auth_time_too_old");
  provider.lies = {};
  const again = await browser.get(`/signin?r=${id}&provider=company`);
  const page = await browser.follow(await browser.get(provider.signIn(locationOf(again))));
  assert.equal(page.status, 200, page.text);
  assert.notEqual(formOf(page).token, "");
});

test("HTTP-D-63, OIDC-D-9, OIDC-D-8, OIDCL-R3-1 sign-out is a form of ours, ends the session, and is recorded", async () => {
  const { browser, location, id } = await atProvider();
  await browser.get(provider.signIn(location));
  assert.equal((await browser.post("/signout", { token: "forged" })).status, 403);
  assert.equal((await browser.get("/signout")).status, 405);
  const page = await browser.get(`/authorize/review?r=${id}`);
  // OIDCL-R3-1: the page after it ends nothing by itself.
  assert.equal((await browser.get("/signed-out")).status, 200);
  assert.equal((await browser.get(`/authorize/review?r=${id}`)).status, 200);
  const token = /signout">\s*<input type="hidden" name="token" value="([^"]*)"/.exec(page.text)?.[1] ?? "";
  const session = browser.cookies.get("__Host-mandate-s") ?? "";
  provider.lies = { metadata: { end_session_endpoint: `${provider.issuer}/end` } };
  const out = await browser.post("/signout", { token });
  assert.equal(out.status, 303);
  assert.equal(browser.cookies.has("__Host-mandate-s"), false);
  assert.equal(await lastReason("user.signed_out"), "signed_out");
  assert.equal((await browser.get(locationOf(out))).status, 200);
  browser.cookies.set("__Host-mandate-s", session);
  assert.equal(locationOf(await browser.get(`/authorize/review?r=${id}`)), `${ISSUER}/signin?r=${id}`);
});

test("PAGE-D-6 a user who is another one can choose their account at the provider", async () => {
  const { browser, location, id } = await atProvider();
  const page = await browser.follow(await browser.get(provider.signIn(location, "mallory")));
  const again = /href="([^"]*again=1)"/.exec(page.text)?.[1]?.replaceAll("&#38;", "&") ?? "";
  const choice = await browser.get(again);
  assert.equal(choice.status, 200);
  const sent = await browser.get(`/signin?r=${id}&provider=company&again=1`);
  assert.equal(new URL(locationOf(sent)).searchParams.get("prompt"), "select_account");
});

test("OIDC-D-6 the name of a user is text, whatever it holds", async () => {
  provider.lies = { claims: (c) => ({ ...c, name: `<img src=x onerror=alert(1)>"'` }) };
  const { browser, location } = await atProvider();
  const page = await browser.follow(await browser.get(provider.signIn(location)));
  assert.doesNotMatch(page.text, /<img/);
  assert.match(page.text, /&#60;img src=x/);
});

const mallory = { name: "alice of the company", email: "alice@company.example" };
for (const [name, claims, want] of [
  ["a name of another user", mallory, "Signed in as mallory (alice of the company) Not you?"],
  [
    "a mail address that is not verified",
    { name: "", email: mallory.email },
    "mallory (alice@company.example) Not",
  ],
  [
    "an address that is verified in words",
    { ...mallory, email_verified: "true" },
    "as mallory (alice of the",
  ],
  [
    "a verified address",
    { ...mallory, email: "m@company.example", email_verified: true },
    "as m@company.example (alice of",
  ],
  ["no name", { name: undefined }, "Signed in as mallory Not you?"],
  ["the same name", { name: "mallory" }, "Signed in as mallory Not you?"],
] as const) {
  test(`PAGE-D-26 a user with ${name}: each page shows who they are at the provider first`, async () => {
    provider.lies = { claims: (c) => ({ ...c, ...claims }) };
    const { browser, location } = await atProvider();
    const page = await browser.follow(await browser.get(provider.signIn(location, "mallory")));
    for (const { text } of [page, await browser.get("/account")]) {
      assert.ok(shownBy(text).includes(want), shownBy(text));
    }
  });
}

test("OIDC-D-8, OIDC-D-7 a sign-in is in the trail, with the user, the provider and its time", async () => {
  const { browser, location } = await atProvider();
  await browser.get(provider.signIn(location, "dora"));
  const event = (await service.events()).findLast(({ type }) => type === "user.signed_in") ?? assert.fail();
  const { iss, sub, kind, token } = event.subject as Record<string, unknown>;
  assert.deepEqual([iss, sub, kind], [provider.issuer, "dora", "user"]);
  assert.equal((token as { type: string }).type, "id_token");
  const { provider: name, auth_time } = event.detail as Record<string, unknown>;
  assert.deepEqual([name, typeof auth_time], ["company", "number"]);
});

// --- to the account page --------------------------------------------------------------------------------------------

test("PAGE-D-13, OIDC-D-2 a user signs in without a request of a client, and is led to the account page alone", async () => {
  const browser = new Browser(service, provider);
  const choice = await browser.get("/signin?to=https://evil.example&page=https://evil.example");
  const [href = ""] = /https:\/\/as\.example\/signin[^"]*company[^"]*/.exec(choice.text) ?? [];
  const sent = await browser.get(href.replaceAll("&#38;", "&"));
  const back = await browser.get(provider.signIn(locationOf(sent)));
  assert.equal(locationOf(back), `${ISSUER}/account`);
  assert.equal(browser.cookies.has("__Host-mandate-s"), true);
  // Once, and in this browser only.
  const again = await browser.get("/signin?provider=company");
  const callback = provider.signIn(locationOf(again));
  assert.equal((await new Browser(service, provider).get(callback)).status, 400);
  assert.equal((await browser.get(callback)).status, 303);
  const used = await browser.get(callback);
  assert.equal(used.status, 409);
  assert.match(used.text, /href="https:\/\/as\.example\/account"/);
});

test("PAGE-D-4 an empty or unknown id of a request is no way to the account page", async () => {
  const browser = new Browser(service, provider);
  for (const id of ["", "unknown"]) {
    assert.equal((await browser.get(`/signin?r=${id}&provider=company`)).status, 400);
  }
});
