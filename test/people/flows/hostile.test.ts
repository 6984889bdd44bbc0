/** What is tried against the pages by other sites, other users, hostile clients and providers, beside the usual flow. */
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { encodeForm } from "../../../scripts/http-client.ts";
import { shownBy } from "../../support/markup.ts";
import {
  Browser,
  challengeOf,
  files,
  formOf,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  PRIVATE,
  PUBLIC,
  parametersOf,
  request,
  SCOPES,
  verifierOf,
  WEB_REDIRECT,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { LOOPBACK } from "../../support/web.ts";
import { ISSUER, type Service, workload } from "../../support/world.ts";

let provider: TestProvider;
let other: TestProvider;
let service: Service;
before(async () => {
  [provider, other] = await Promise.all([startProvider(), startProvider()]);
  const base = forPeople(provider);
  const [rule] = base.policies;
  const keys = { url: `${other.issuer}/jwks`, ca: { file: "other.pem" }, privateNetworks: LOOPBACK };
  service = await makeService(
    {
      ...base,
      trustedIssuers: {
        ...provider.trusted(),
        ...other.trusted({ keys, subjects: { prefix: "other:" } }),
      },
      signIn: {
        providers: { company: provider.provider(), other: other.provider({ ca: { file: "other.pem" } }) },
      },
      agents: { ...base.agents, [workload("agents/planner")]: { title: TITLE } },
      registration: { mode: "open", open: { scopes: SCOPES } },
      policies: [rule, { ...rule, id: "registered-apps", clients: undefined, classes: ["open"] }],
    },
    { files: { ...files(provider), "other.pem": other.ca } },
  );
});
afterEach(() => {
  provider.lies = {};
});
after(() => stop(service, provider, other));

const browse = (): Browser => new Browser(service, provider);

/** The consent page of a request of this browser, after the sign-in of this user at the first provider. */
async function pageFor(user: string, browser: Browser, extra = {}) {
  const asked = await browser.authorize(request(verifierOf(), extra));
  const id = new URL(locationOf(asked)).searchParams.get("r") ?? "";
  const sent = await browser.get(`/signin?r=${id}&provider=company`);
  await browser.get(provider.signIn(locationOf(sent), user));
  const page = await browser.get(locationOf(asked));
  assert.equal(page.status, 200, page.text);
  return page;
}

const eventsOf = async (type: string): Promise<number> =>
  (await service.events()).filter((event) => event.type === type).length;

// --- forms --------------------------------------------------------------------------------------------------------

test("PAGE-D-5 the form of one user is nothing for the user who signed in after them in the same browser", async () => {
  const browser = browse();
  const ofAlice = await pageFor("alice", browser);
  const given = await eventsOf("consent.recorded");
  await pageFor("bob", browser);
  const answer = await browser.decide(ofAlice);
  assert.deepEqual([answer.status, answer.headers.location], [403, undefined]);
  assert.equal(await eventsOf("consent.recorded"), given);
});

test("PAGE-D-5, OIDC-D-9 the form of a user who signed out leads to a sign-in and decides nothing", async () => {
  const browser = browse();
  const page = await pageFor("alice", browser);
  const given = await eventsOf("consent.recorded");
  const token = /signout">\s*<input type="hidden" name="token" value="([^"]*)"/.exec(page.text)?.[1] ?? "";
  assert.equal((await browser.post("/signout", { token })).status, 303);
  const id = new URL(formOf(page).action).searchParams.get("r");
  assert.equal(locationOf(await browser.decide(page)), `${ISSUER}/signin?r=${id}`);
  assert.equal(await eventsOf("consent.recorded"), given);
});

test("PAGE-D-4 of a consent and a refusal at the same time one is made", async () => {
  const browser = browse();
  const page = await pageFor("alice", browser);
  const both = await Promise.all([browser.decide(page), browser.decide(page, { decision: "refuse" })]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [303, 409]);
});

test("PAGE-D-1, PAGE-D-5 a link decides nothing, whatever stands in it", async () => {
  const browser = browse();
  const page = await pageFor("alice", browser);
  const { action, token } = formOf(page);
  const link = `${action}&${encodeForm({ token, decision: "allow", all: "1", confirm: "1" })}`;
  const shown = await browser.get(link);
  assert.deepEqual([shown.status, shown.headers.location], [200, undefined]);
});

test("FETCHMD-2-1 another site can neither sign a user out nor decide for them", async () => {
  const browser = browse();
  const page = await pageFor("alice", browser);
  for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
    assert.equal((await browser.post("/signout", { token: "x" }, headers)).status, 403);
    assert.equal((await browser.post(formOf(page).action, { token: "x" }, headers)).status, 403);
  }
  assert.equal((await browser.get(formOf(page).action)).status, 200);
});

test("COOKIE-8.4-1 a session that the browser brings along is never taken up (fixation)", async () => {
  const browser = browse();
  const planted = "A".repeat(43);
  browser.cookies.set("__Host-mandate-s", planted);
  await pageFor("alice", browser);
  assert.notEqual(browser.cookies.get("__Host-mandate-s"), planted);
  const victim = browse();
  const asked = await victim.authorize(request(verifierOf()));
  victim.cookies.set("__Host-mandate-s", planted);
  assert.match(locationOf(await victim.get(locationOf(asked))), /\/signin\?r=/);
});

test("RFC9126-7.4-1 a client that was removed while its page was shown gets nothing", async () => {
  const registered = await service.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      redirect_uris: [WEB_REDIRECT],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "none",
    }),
  });
  const { client_id, registration_access_token } = registered.body;
  const browser = browse();
  const page = await pageFor("alice", browser, { client_id });
  const authorization = `Bearer ${registration_access_token}`;
  const removed = await service.get(`/register/${client_id}`, {
    method: "DELETE",
    headers: { authorization },
  });
  assert.equal(removed.status, 204, removed.text);
  const answer = await browser.decide(page);
  assert.deepEqual([answer.status, answer.headers.location], [400, undefined]);
});

// --- names --------------------------------------------------------------------------------------------------------

const TITLE = "Travel planner";
type Metadata = { [member: string]: string };

/** The page of a client that registered itself with these names, and its id. */
async function pageOfNamed(names: Metadata, locale = "en") {
  const registered = await service.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      ...names,
      redirect_uris: [WEB_REDIRECT],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "none",
    }),
  });
  assert.equal(registered.status, 201, registered.text);
  const { client_id } = registered.body;
  const browser = browse();
  const page = await pageFor("alice", browser, { client_id, ui_locales: locale });
  return { browser, page, shown: shownBy(page.text), id: String(client_id) };
}

const claims: readonly (readonly [
  what: string,
  names: Metadata,
  claim: string | undefined,
  locale?: string,
])[] = [
  ["of its own", { client_name: "Notes" }, "“Notes”"],
  ["of markup", { client_name: "</bdi><script>x</script>" }, "“</bdi><script>x</script>”"],
  ["of 256 characters", { client_name: "x".repeat(256) }, `“${"x".repeat(63)}…”`],
  ["of spaces", { client_name: " \u00a0\u3000 " }, undefined],
  ["of zero-width characters", { client_name: "\u200b\u2060\ufeff" }, undefined],
  ["under a flood of marks", { client_name: `a${"\u0301".repeat(200)}` }, "“á\u0301\u0301”"],
  ["in a language", { client_name: "Notes", "client_name#de": "Notizen" }, "„Notizen“", "de"],
  ["in a language like an inherited property", { "client_name#toString": "Notes" }, "“Notes”"],
  ["that is an agent's title", { client_name: TITLE }, undefined],
  ["that looks like an agent's title", { client_name: "Travel pIanner" }, undefined],
  ["that looks like one in another language", { client_name: "Notes", "client_name#fr": TITLE }, undefined],
  ["that has an agent's title in it", { client_name: `${TITLE} (verified)` }, undefined],
];
for (const [what, names, claim, locale] of claims) {
  test(`NAME-D-2, NAME-D-3 a name ${what} is ${claim === undefined ? "not shown" : "shown as a claim"}, and never as the client's`, async () => {
    const { page, shown, id } = await pageOfNamed(names, locale);
    assert.equal(/calls itself|nennt sich/.test(shown), claim !== undefined, shown);
    if (claim !== undefined) assert.ok(shown.includes(claim), shown);
    else assert.doesNotMatch(shown, /Travel|planner/i);
    const [, heading = ""] = /<h1>(.*?)<\/h1>/s.exec(page.text) ?? [];
    assert.doesNotMatch(heading, /Notes|Notizen|Travel|script|xxx/);
    assert.ok(shown.includes(id), shown);
  });
}

for (const [what, names] of [
  ["with a right-to-left override", { client_name: "a\u202eb" }],
  ["of 10,000 characters", { client_name: "x".repeat(10_000) }],
  ["of two lines", { client_name: "a\nb" }],
  ["in a language, with an isolate", { "client_name#de": "a\u2066b" }],
] as const) {
  test(`NAME-D-2, RFC7591-2.2-5 a registration with a name ${what} is refused`, async () => {
    const answer = await service.get("/register", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...names, redirect_uris: [WEB_REDIRECT], token_endpoint_auth_method: "none" }),
    });
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client_metadata"], answer.text);
  });
}

test("NAME-D-3 the event of a decision says which agent the client's name could be taken for", async () => {
  const { browser, page } = await pageOfNamed({ client_name: "Travel pIanner" });
  await browser.decide(page, { decision: "refuse" });
  const event = (await service.events()).findLast(({ type }) => type === "authorization.denied");
  assert.equal(Object(event?.client).name_like, "spiffe://td.example/agents/planner");
});

// --- providers ----------------------------------------------------------------------------------------------------

/** The browser on its way to this provider. */
async function atProvider(name: "company" | "other", browser = browse()) {
  const asked = await browser.authorize(request(verifierOf()));
  const id = new URL(locationOf(asked)).searchParams.get("r") ?? "";
  return { browser, location: locationOf(await browser.get(`/signin?r=${id}&provider=${name}`)) };
}

for (const [mine, theirs] of [
  ["company", "other"],
  ["other", "company"],
] as const) {
  test(`OIDC-D-1 the state of a sign-in at ${mine} is nothing at the callback of ${theirs} (mix-up)`, async () => {
    const at = { company: provider, other };
    const { browser, location } = await atProvider(mine);
    const redeemed = at[theirs].redeemed.length;
    const back = new URL(at[mine].signIn(location));
    const answer = await browser.get(`/callback/${theirs}${back.search}`);
    assert.deepEqual([answer.status, browser.cookies.has("__Host-mandate-s")], [400, false]);
    assert.equal(at[theirs].redeemed.length, redeemed, "its code was sent to the other provider");
  });
}

test("OIDC-D-1 a provider that names itself in every response is not believed without its name", async () => {
  const browser = browse();
  provider.lies = { metadata: { authorization_response_iss_parameter_supported: true } };
  const naming = await makeService(forPeople(provider), { files: files(provider) });
  try {
    const visitor = new Browser(naming, provider);
    const sent = await visitor.follow(await visitor.authorize(request(verifierOf())));
    const answer = await visitor.get(provider.signIn(locationOf(sent)));
    assert.equal(answer.status, 400);
    const { reason } = (await naming.events()).findLast(({ type }) => type === "user.signin_failed") ?? {};
    assert.equal(reason, "callback_issuer_missing");
    const again = await visitor.follow(await visitor.authorize(request(verifierOf())));
    const named = await visitor.get(`${provider.signIn(locationOf(again))}&iss=${provider.issuer}`);
    assert.match(locationOf(named), /\/authorize\/review\?r=/);
  } finally {
    await naming.stop();
  }
  assert.equal(browser.cookies.size, 0);
});

test("OIDC-3.1.2.7-1 a response with a parameter twice, or with a code beside an error, spends nothing", async () => {
  const { browser, location } = await atProvider("company");
  const back = new URL(provider.signIn(location));
  for (const more of ["&code=x", "&state=x", "&error=access_denied", "&iss=a&iss=b"]) {
    const answer = await browser.get(`/callback/company${back.search}${more}`);
    assert.deepEqual([answer.status, answer.headers["set-cookie"]], [400, undefined], more);
  }
  assert.equal((await browser.get(back.href)).status, 303);
});

// --- parameters ---------------------------------------------------------------------------------------------------

const WEB = { client_id: PRIVATE };
const APP = { client_id: PUBLIC };
const ELSEWHERE: readonly (readonly [string, { client_id: string }])[] = [
  [`${WEB_REDIRECT}#x`, WEB],
  [`${WEB_REDIRECT}?x=1`, WEB],
  [`${WEB_REDIRECT}/`, WEB],
  [`${WEB_REDIRECT}%2f..`, WEB],
  [` ${WEB_REDIRECT}`, WEB],
  ["https://APP.example/cb", WEB],
  ["https://app.example:443/cb", WEB],
  ["https://app.example./cb", WEB],
  ["https://app.example@evil.example/cb", WEB],
  ["https://app.example\\@evil.example/cb", WEB],
  ["https://app.example.evil.example/cb", WEB],
  ["http://app.example/cb", WEB],
  ["//app.example/cb", WEB],
  ["data:text/html,x", WEB],
  [LOOPBACK_REDIRECT, WEB],
  ["http://127.0.0.1:80@evil.example/callback", APP],
  ["http://127.0.0.1:80/callback#x", APP],
  ["http://127.0.0.1.evil.example/callback", APP],
  ["http://127.0.0.2/callback", APP],
  ["http://127.1/callback", APP],
  ["http://[::ffff:127.0.0.1]/callback", APP],
  ["https://127.0.0.1/callback", APP],
  ["http://127.0.0.1:/callback", APP],
  ["http://127.0.0.1:654321/callback", APP],
];
for (const [redirect_uri, client] of ELSEWHERE) {
  test(`RFC6749-3.1.2.4-1, PAGE-D-13, MCPC-D-2 the answer never goes to ${redirect_uri}`, async () => {
    const answer = await browse().authorize(request(verifierOf(), { ...client, redirect_uri }));
    assert.deepEqual([answer.status, answer.headers.location], [400, undefined]);
    assert.doesNotMatch(answer.text, /href="(?!https:\/\/as\.example\/account")/);
  });
}

const KNOWN = [
  ...["response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge"],
  ...["code_challenge_method", "response_mode", "prompt", "max_age", "acr_values", "ui_locales"],
  ...["request", "request_uri", "authorization_details", "an_unknown_one"],
];
for (const name of KNOWN) {
  test(`RFC6749-3.1-6 ${name} twice, or with a character that ends a line, leads nowhere`, async () => {
    const query = encodeForm(request(verifierOf()));
    const rest = query.split("&").filter((pair) => !pair.startsWith(`${name}=`));
    const encoded = ["%0d%0aLocation:+x", "%00", "%ff", "%zz", "%ED%A0%80"].map((text) => [
      ...rest,
      `${name}=${text}`,
    ]);
    for (const pairs of [[...rest, `${name}=a`, `${name}=a`], ...encoded]) {
      const answer = await browse().get(`/authorize?${pairs.join("&")}`);
      assert.deepEqual([answer.status, answer.headers.location], [400, undefined], pairs.join("&"));
    }
  });
}

const challenge = challengeOf(verifierOf());
const TOLD = [
  ["response_type", "code token", "unsupported_response_type"],
  ["response_type", "id_token", "unsupported_response_type"],
  ["response_type", "CODE", "unsupported_response_type"],
  ["response_mode", "form_post", "invalid_request"],
  ["code_challenge", challenge.slice(1), "invalid_request"],
  ["code_challenge", `${challenge}A`, "invalid_request"],
  ["code_challenge", `${challenge.slice(1)}=`, "invalid_request"],
  ["code_challenge_method", "s256", "invalid_request"],
  ["max_age", "-1", "invalid_request"],
  ["max_age", "1e3", "invalid_request"],
  ["prompt", "none login", "invalid_request"],
  ["ui_locales", "<b>", "invalid_request"],
  ["authorization_details", "[]", "invalid_authorization_details"],
  ["authorization_details", '[{"type":"unknown"}]', "invalid_authorization_details"],
  ["scope", '"', "invalid_scope"],
  ["resource", "not a URI", "invalid_target"],
  ["resource", "https://notes.example/mcp#x", "invalid_target"],
  ["resource", "https://notes.example/mcp/", "invalid_target"],
] as const;
for (const [name, value, want] of TOLD) {
  test(`RFC6749-4.1.2.1-2, RFC9207-2-1 ${name}=${value} is answered with ${want}, the state and our name`, async () => {
    const answer = await browse().authorize(request(verifierOf(), { [name]: value }));
    assert.ok(locationOf(answer).startsWith(`${WEB_REDIRECT}?`), answer.text);
    const { error_description: description = "", ...rest } = parametersOf(answer);
    assert.deepEqual(rest, { error: want, state: "the state", iss: ISSUER });
    assert.ok(!description.includes(value), description);
  });
}
