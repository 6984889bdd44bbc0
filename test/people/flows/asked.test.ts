/** Ask your user: an agent gets a link with its refusal, and exactly that user gives exactly that consent, or does not. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../../scripts/http-client.ts";
import {
  asOperator,
  type Exchanging,
  exchange,
  forAskingAgents,
  linkIn,
  PLANNER,
  TRIPS,
} from "../../support/asking-agents.ts";
import { shownBy, withoutId } from "../../support/markup.ts";
import {
  Browser,
  files,
  formOf,
  locationOf,
  NOTES,
  PRIVATE,
  parametersOf,
  redeem,
  request,
  SCOPES,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, type Event, EXCHANGE, ISSUER, type Service, workload } from "../../support/world.ts";

let provider: TestProvider;
/** Where users sign in, too; and one whose users have tokens, but no sign-in. */
let other: TestProvider;
let silent: TestProvider;
let service: Service;

before(async () => {
  [provider, other, silent] = await Promise.all([startProvider(), startProvider(), startProvider()]);
  service = await makeService(
    forAskingAgents(provider, {
      trustedIssuers: {
        ...provider.trusted(TAKEN),
        ...other.trusted({ ...TAKEN, ...prefixed(other, "other") }),
        ...silent.trusted({ ...TAKEN, ...prefixed(silent, "silent") }),
      },
      signIn: {
        providers: { company: provider.provider(), other: other.provider({ ca: { file: "other.pem" } }) },
      },
      issuers: [provider.issuer, other.issuer, silent.issuer],
    }),
    { files: { ...files(provider), "other.pem": other.ca, "silent.pem": silent.ca } },
  );
});
after(() => stop(service, provider, other, silent));

const TAKEN = { acceptAs: ["id_token", "jwt"] };
const prefixed = ({ issuer }: TestProvider, name: string) => ({
  subjects: { prefix: `${name}:` },
  keys: {
    url: `${issuer}/jwks`,
    ca: { file: `${name}.pem` },
    privateNetworks: ["127.0.0.0/8", "::1/128"],
  },
});

const ask = (asked: Exchanging): Promise<Answer> => exchange(service, provider, asked);

/** The page behind the link, for this user of a provider; each test has a user of its own. */
async function pageOf(link: string, user: string, at: "company" | "other" = "company") {
  const browser = new Browser(service, at === "company" ? provider : other);
  return { browser, page: await signInAt(at, browser, await browser.get(link), user) };
}

/** The user chooses where to sign in. */
async function signInAt(at: string, browser: Browser, answer: Answer, user: string): Promise<Answer> {
  const choice = await browser.follow(answer);
  const [, href = ""] = new RegExp(`href="([^"]*provider=${at}[^"]*)"`).exec(choice.text) ?? [];
  return browser.signIn(await browser.get(href.replaceAll("&#38;", "&")), user);
}

const last = async (type: string): Promise<Event> =>
  (await service.events()).findLast((event) => event.type === type) ?? assert.fail(`no ${type}`);
const askedOf = ({ policy }: Event) =>
  (policy as { asked?: { pending?: string; refused?: string; last?: string } }).asked;

// --- the way --------------------------------------------------------------------------------------------------------

test("RFC6749-5.2-12, PAGE-D-23, PAGE-D-25, PAGE-D-26, PROD-2.6-4 an agent is refused, its user is asked and gives a part, and the agent goes on", async () => {
  const refused = await ask({ user: "anna" });
  assert.equal(refused.status, 400);
  const link = linkIn(refused);
  assert.match(link, /^https:\/\/as\.example\/ask\?r=[\w-]{22,}$/);
  assert.match(link, /^[\x21\x23-\x5b\x5d-\x7e]+$/);
  assert.deepEqual(Object.keys(refused.body), ["error", "error_description", "error_uri"]);
  const denied = await last("token_exchange.denied");
  assert.equal(denied.reason, "consent_missing");
  // The audit trail has the digest of the link, and not the link.
  assert.ok(askedOf(denied)?.pending);
  assert.ok(!JSON.stringify(denied).includes(link.slice(-22)));

  const { browser, page } = await pageOf(link, "anna");
  assert.equal(page.status, 200, page.text);
  const shown = shownBy(page.text);
  for (const part of [
    `planner (td.example) asks to act for you ID: ${PLANNER}`,
    "Signed in as anna (anna of the company)",
    `Who works for whom, by id ${PLANNER}`,
    "At the booking agent it asks to",
    "read your trips",
    "book trips for you",
    "Lasts until",
    "minutes left",
  ]) {
    assert.ok(shown.includes(part), `${part}: ${shown}`);
  }
  assert.doesNotMatch(page.text, / checked|autofocus/);
  const done = await browser.decide(page, { all: "", scope: ["trips.read", "trips.pay", "admin"] });
  assert.equal(done.status, 200, done.text);
  assert.match(shownBy(done.text), /You have allowed it/);
  const given = await last("consent.recorded");
  assert.deepEqual(askedOf(given), askedOf(denied));
  assert.deepEqual(
    [given.reason, (given.policy as { rule_id: string }).rule_id, (given.subject as { sub: string }).sub],
    ["by_subject", "agents-ask", "anna"],
  );
  assert.equal((given.detail as { actor: string }).actor, PLANNER);
  assert.equal((given.subject as { token: { type: string } }).token.type, "session");

  const answer = await ask({ user: "anna" });
  const { sub, act, scope } = claimsOf(answer.body.access_token);
  assert.deepEqual([sub, act, scope], ["company:anna", { sub: PLANNER }, "trips.read"]);
  // For what was not given the agent may ask again, by another link.
  const more = await ask({ user: "anna", scope: "trips.book" });
  assert.deepEqual(
    [more.body.error, linkIn(more) !== link, linkIn(more) !== ""],
    ["invalid_request", true, true],
  );
});

test("PROD-2.6-4 the consent is a record like any other, which the API shows and ends", async () => {
  const { browser, page } = await pageOf(linkIn(await ask({ user: "bert" })), "bert");
  await browser.decide(page);
  const query = new URLSearchParams({ iss: provider.issuer, sub: "bert" });
  const listed = await asOperator(service, `/consents?${query}`);
  const [consent, ...others] = listed.body.consents as { id: string; actor: string; scope: string }[];
  assert.deepEqual([consent?.actor, consent?.scope, others], [PLANNER, TRIPS.join(" "), []], listed.text);
  assert.equal((await ask({ user: "bert" })).status, 200);
  const ended = await asOperator(service, `/consents/${consent?.id}`, undefined, "DELETE");
  assert.equal(ended.status, 204, ended.text);
  assert.equal((await ask({ user: "bert" })).status, 400);
});

test("HTTP-D-49, PAGE-D-25, RFC8693-4.1-5 the page names every actor between the user and the agent", async () => {
  const { browser, page } = await pageOf(linkIn(await ask({ user: "cora" })), "cora");
  await browser.decide(page);
  const own = (await ask({ user: "cora" })).body.access_token;
  const refused = await ask({ path: "agents/booking", target: "https://api.example", own });
  const next = await browser.get(linkIn(refused));
  const shown = shownBy(next.text);
  assert.ok(shown.includes("planner (td.example) passed this to "), shown);
  assert.ok(shown.includes(`by id ${PLANNER} ${workload("agents/booking")} `), shown);
  assert.match(shown, /At https:\/\/api\.example \(api\.example\) it asks to trips\.read trips\.book/);
  await browser.decide(next);
  const answer = await ask({ path: "agents/booking", target: "https://api.example", own });
  assert.deepEqual(claimsOf(answer.body.access_token).act, {
    sub: workload("agents/booking"),
    act: { sub: PLANNER },
  });
});

test("PAGE-D-25 an agent is shown by the name that the operator gave it, and never by one that it gave itself", async (t) => {
  const client = { method: "spiffe_jwt", spiffeId: workload("crew/kim") };
  const base = forAskingAgents(provider);
  const lone = await makeService(
    {
      ...base,
      clients: { ...base.clients, kim: client },
      agents: { kim: { title: "Kim of the crew" } },
      registration: { mode: "open", open: { scopes: TRIPS, grantTypes: [EXCHANGE] } },
    },
    { files: files(provider) },
  );
  t.after(() => stop(lone));
  const registered = await lone.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      client_name: "Lou of the company",
      token_endpoint_auth_method: "spiffe_jwt",
      spiffe_id: workload("crew/lou"),
      grant_types: [EXCHANGE],
    }),
  });
  assert.equal(registered.status, 201, registered.text);
  const headingFor = async (clientId: unknown, path: string): Promise<string> => {
    const refused = await exchange(lone, provider, { user: "dora", path, as: String(clientId) });
    const browser = new Browser(lone, provider);
    const page = await browser.signIn(await browser.get(linkIn(refused)), "dora");
    return shownBy(page.text);
  };
  assert.match(await headingFor("kim", "crew/kim"), /Kim of the crew asks to act for you/);
  const shown = await headingFor(registered.body.client_id, "crew/lou");
  assert.ok(shown.includes(`lou (td.example) asks to act for you ID: ${workload("crew/lou")}`), shown);
  assert.ok(!shown.includes("Lou of the company"), shown);
});

/** The last event of a type, with the members that the reason of an agent may stand in. */
async function lastOf(type: string): Promise<Record<"requested" | "detail", { [name: string]: unknown }>> {
  const event = (await service.events()).findLast((one) => one.type === type) ?? assert.fail(`no ${type}`);
  return { requested: Object(event.requested), detail: Object(event.detail) };
}

const reasons: readonly (readonly [what: string, sent: string, shown: string | undefined])[] = [
  ["a sentence", "Your flight was cancelled.", "Your flight was cancelled."],
  ["markup", "</p><script>x</script>", "</p><script>x</script>"],
  ["quotation marks", "none” “Allow this", "none' 'Allow this"],
  ["marks that reverse the line", "a\u202eb\u2066c\u200bd", "abcd"],
  ["a flood of combining marks", `a${"\u0301".repeat(100)}`, "á\u0301\u0301"],
  ["10,000 characters", "x".repeat(10_000), "x".repeat(120)],
  ["200 characters beyond 16 bits", "🙂".repeat(200), "🙂".repeat(120)],
  ["nothing that is seen", "\u200b\u2800\u3000", undefined],
];
for (const [index, [what, sent, shown]] of reasons.entries()) {
  test(`NAME-D-7 a reason of ${what} is ${shown === undefined ? "not shown" : "shown as text in quotation marks"}, and recorded as it was sent, cut`, async () => {
    const user = `reason-${index}`;
    const { page } = await pageOf(linkIn(await ask({ user, reason: sent })), user);
    const text = shownBy(page.text);
    if (shown === undefined) assert.doesNotMatch(text, /Its reason/);
    else assert.ok(text.includes(`Its reason, in its own words: “${shown}”`), text);
    const { requested } = await lastOf("token_exchange.denied");
    assert.equal(requested.reason, [...sent].slice(0, 120).join(""));
  });
}

test("NAME-D-7, RFC6749-10.14-1 a reason of two lines is refused", async () => {
  const refused = await ask({ user: "alice", reason: "one\ntwo" });
  assert.equal(refused.body.error, "invalid_request");
  assert.equal(linkIn(refused), "");
});

test("NAME-D-7 the reason of a consent is recorded with it and with a refusal, and a link keeps the one it began with", async () => {
  const agent = { user: "regina", reason: "Your flight was cancelled." };
  const link = linkIn(await ask(agent));
  assert.equal(linkIn(await ask({ ...agent, reason: "Something else." })), link);
  const { browser, page } = await pageOf(link, "regina");
  assert.match(shownBy(page.text), /Its reason, in its own words: “Your flight was cancelled\.”/);
  await browser.decide(page);
  const refusable = await browser.get(linkIn(await ask({ ...agent, path: "agents/booking" })));
  await browser.decide(refusable, { decision: "refuse" });
  assert.equal((await lastOf("consent.recorded")).detail.reason_given, agent.reason);
  assert.equal((await lastOf("authorization.denied")).requested.reason, agent.reason);
});

test("NAME-D-1, NAME-D-2 the page says the titles of actors with their ids, and none of one that another server tells of", async (t) => {
  const base = forAskingAgents(provider);
  const named = {
    [PLANNER]: { title: { de: "Reiseplaner", en: "Trip planner" } },
    [workload("agents/*")]: { title: "Agents", purpose: "Act for users.", owner: "Desk", contact: "+49 1" },
    [provider.issuer]: { title: "The company" },
  };
  const lone = await makeService({ ...base, agents: named }, { files: files(provider) });
  t.after(() => stop(lone));
  const shownTo = async (user: string, asked: Exchanging, locale = ""): Promise<string> => {
    const browser = new Browser(lone, provider);
    const link = linkIn(await exchange(lone, provider, { ...asked, user }));
    await browser.signIn(await browser.get(link), user);
    return shownBy((await browser.get(`${link}${locale}`)).text);
  };
  const told = await provider.userToken("tilda", ISSUER, { scope: TRIPS.join(" "), act: { sub: PLANNER } });
  const foreign = await shownTo("tilda", { path: "agents/booking", token: told });
  assert.ok(foreign.includes("Agents asks to act for you"), foreign);
  for (const part of [workload("agents/booking"), "Act for users.", "Desk", "+49 1", PLANNER, "The company"])
    assert.ok(foreign.includes(part), `${part}: ${foreign}`);
  assert.doesNotMatch(foreign, /Trip planner/);
  const german = await shownTo("tom", {}, "&ui_locales=de");
  assert.match(german, /Reiseplaner möchte für Sie handeln/);
  assert.ok(german.includes(PLANNER), german);
});

test("PAGE-D-15, PAGE-D-23 the account page shows what was asked, given and refused there", async () => {
  const { browser, page } = await pageOf(linkIn(await ask({ user: "tom" })), "tom");
  await browser.decide(page);
  const second = await browser.get(linkIn(await ask({ user: "tom", path: "agents/booking" })));
  await browser.decide(second, { decision: "refuse" });
  const refused = "You have not allowed that.";
  // AUDIT-D-13: what was asked is told by what the user answered.
  await ask({ user: "tom", path: "agents/booking" });
  assert.ok(!shownBy((await browser.get("/account")).text).includes(refused));
  await ask({ user: "tom", path: "agents/quiet", target: "https://api.example" });
  const account = shownBy((await browser.get("/account")).text);
  for (const part of [
    `${workload("agents/booking")} Refused`,
    "You refused it.",
    `${PLANNER} Allowed`,
    "You gave it permission.",
    refused,
    "read your trips; book trips for you · the booking agent",
  ]) {
    assert.ok(account.includes(part), `${part}: ${account}`);
  }
});

// --- which link -----------------------------------------------------------------------------------------------------

test("PAGE-D-23 the same request has the same link, and every other one its own", async () => {
  const link = linkIn(await ask({ user: "dora" }));
  assert.equal(linkIn(await ask({ user: "dora" })), link);
  assert.equal(linkIn(await ask({ user: "dora", scope: "trips.book trips.read" })), link);
  const others = [
    { user: "emil" },
    { user: "dora", scope: "trips.read" },
    { user: "dora", target: "https://api.example" },
    { user: "dora", path: "agents/booking" },
  ];
  const links = [link];
  for (const other of others) links.push(linkIn(await ask(other)));
  assert.equal(new Set(links).size, links.length);
});

const without = [
  ["by a rule that does not ask", { path: "agents/quiet" }, "consent_missing", "rule_asks_no_user"],
  ["without a rule", { path: "agents/thief" }, "no_rule"],
  ["for a scope that nothing gives", { scope: "trips.pay" }, "consent_missing", "more_than_consent_missing"],
  ["at an unknown target", { target: "nowhere" }, "target_unknown"],
  ["with a token that is no token", { own: "x.y.z" }, "subject_jws_base64url_malformed"],
] as const;
for (const [name, asked, reason, why] of without) {
  test(`PAGE-D-23, POLICY-D-21 a refusal ${name} has no link, and opens nothing`, async () => {
    const refused = await ask({ user: "fred", ...asked });
    assert.equal(refused.status, 400);
    assert.deepEqual(Object.keys(refused.body), ["error", "error_description"]);
    const denied = await last("token_exchange.denied");
    assert.deepEqual([denied.reason, denied.policy && askedOf(denied)], [reason, why && { refused: why }]);
  });
}

test("POLICY-D-22 the event of a refusal has the known name that is like an unknown one, and the caller is not told", async () => {
  const refused = await ask({ user: "fred", target: "bookin-agent", scope: "trip.read" });
  assert.deepEqual(Object.keys(refused.body), ["error", "error_description"]);
  assert.ok(!refused.text.includes("booking-agent"));
  assert.deepEqual(((await last("token_exchange.denied")).policy as { meant: object }).meant, [
    { asked: "bookin-agent", known: "booking-agent" },
    { asked: "trip.read", known: "trips.read" },
  ]);
});

test("PAGE-D-23 users who do not sign in here are not asked", async () => {
  const refused = await exchange(service, silent, { user: "fred" });
  const denied = await last("token_exchange.denied");
  assert.deepEqual([denied.reason, askedOf(denied)], ["consent_missing", { refused: "user_cannot_sign_in" }]);
  assert.equal(linkIn(refused), "");
  assert.notEqual(linkIn(await exchange(service, other, { user: "fred" })), "");
});

for (const decision of ["allow", "refuse"] as const) {
  test(`AUDIT-D-13 nine requests about an open question are one refusal, and the event of its end (${decision}) counts the others`, async () => {
    const user = `nina-${decision}`;
    const ofUser = async () =>
      (await service.events()).filter(({ subject }) => (subject as { sub?: string })?.sub === user);
    const links = [];
    for (let round = 0; round < 9; round++) links.push(linkIn(await ask({ user })));
    assert.equal(new Set(links).size, 1);
    const refused = (await ofUser()).filter(({ outcome }) => outcome === "deny");
    assert.deepEqual(
      refused.map(({ type, reason }) => [type, reason]),
      [["token_exchange.denied", "consent_missing"]],
    );
    // To look at the page ends nothing, and neither does another user.
    const stray = await pageOf(links[0] ?? "", "olga");
    assert.equal(stray.page.status, 400);
    const { pending } = askedOf(refused[0] ?? assert.fail()) ?? {};
    assert.deepEqual(askedOf(await last("authorization.denied")), { pending });
    const { browser, page } = await pageOf(links[0] ?? "", user);
    assert.equal((await browser.decide(page, { decision })).status, 200);
    const ended = askedOf(await last(decision === "allow" ? "consent.recorded" : "authorization.denied"));
    assert.deepEqual({ ...ended, last: "" }, { pending, count: 8, last: "" });
    assert.ok(Math.abs(Date.parse(ended?.last ?? "") - Date.now()) < 600_000);
    const before = (await service.events()).length;
    assert.equal((await ask({ user })).status, decision === "allow" ? 200 : 400);
    assert.equal((await service.events()).length > before, decision === "allow");
  });
}

test("AUDIT-D-13 requests after a refusal are counted, and told by the event that takes it back or by the one of the end", async () => {
  const user = "nuria";
  const link = linkIn(await ask({ user }));
  const { browser, page } = await pageOf(link, user);
  await browser.decide(page, { decision: "refuse" });
  const before = (await service.events()).length;
  for (let round = 0; round < 3; round++) assert.equal(linkIn(await ask({ user })), link);
  assert.equal((await service.events()).length, before);
  const account = shownBy((await browser.get("/account")).text);
  assert.ok(!account.includes("You have not allowed that."), account);
  await browser.decide(await browser.get(link));
  assert.partialDeepStrictEqual(askedOf(await last("consent.recorded")), { count: 3 });
});

test("PAGE-D-23 an agent that floods a user is refused without a link, and others still get one", async () => {
  const wishes = ["booking-agent", "https://api.example"].flatMap((target) =>
    ["trips.read", "trips.book", "trips.read trips.book"].map((scope) => ({ user: "gina", target, scope })),
  );
  const links: string[] = [];
  for (const wish of wishes) links.push(linkIn(await ask(wish)));
  assert.deepEqual(
    links.map((link) => link !== ""),
    [true, true, true, true, false, false],
  );
  assert.deepEqual(askedOf(await last("token_exchange.denied")), { refused: "pending_consents_too_many" });
  assert.equal(linkIn(await ask(wishes[0] ?? {})), links[0]);
  assert.notEqual(linkIn(await ask({ user: "gina", path: "agents/booking" })), "");
  assert.notEqual(linkIn(await ask({ user: "hans" })), "");
});

test("PAGE-D-23 what a user has answered takes no room: the fifth question of an agent has a link", async () => {
  const wishes = ["booking-agent", "https://api.example"].flatMap((target) =>
    ["trips.read", "trips.book", "trips.read trips.book"].map((scope) => ({ user: "gail", target, scope })),
  );
  for (const [index, wish] of wishes.entries()) {
    const link = linkIn(await ask(wish));
    assert.notEqual(link, "", `question ${index + 1}`);
    const { browser, page } = await pageOf(link, "gail");
    if (index < 4) await browser.decide(page, { decision: "refuse" });
  }
});

test("PROD-2.6-1, PROD-2.6-4 the explanation says that the user could be asked where the refusal has a link, and nowhere else", async () => {
  const asked = [
    {},
    { scope: "trips.book" },
    { scope: "trips.pay" },
    { path: "agents/quiet" },
    { path: "agents/thief" },
  ];
  for (const { path = "agents/planner", scope } of asked as Exchanging[]) {
    const refused = await ask({ user: "ines", path, ...(scope !== undefined && { scope }) });
    const iat = Math.floor(Date.now() / 1000);
    const subjectClaims = { iss: provider.issuer, sub: "ines", aud: ISSUER, iat, exp: iat + 300 };
    const question = {
      client: workload(path),
      actor: workload(path),
      target: "booking-agent",
      scope,
      subjectClaims: { ...subjectClaims, scope: TRIPS.join(" ") },
    };
    const body = await explain(question);
    assert.equal(body.error, refused.body.error);
    const couldAsk = body.could_ask as { rule: string; scope: string[] } | undefined;
    assert.equal(couldAsk !== undefined, linkIn(refused) !== "", `${path} ${scope}`);
    if (couldAsk === undefined) continue;
    assert.deepEqual(couldAsk, { rule: "agents-ask", scope: scope === undefined ? TRIPS : [scope] });
    const words = (body.explanation as string[]).at(-1);
    assert.equal(
      words,
      `The user could be asked, by rule agents-ask, for scope ${couldAsk.scope.join(" ")}.`,
    );
  }
});

async function explain(question: object): Promise<Answer["body"]> {
  const answer = await asOperator(service, "/policy/explain", question);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

test("PROD-2.6-1, PROD-3-2 a rule of people is explained as the code of its user is redeemed", async () => {
  const [browser, verifier] = [new Browser(service, provider), verifierOf()];
  const question = { client: PRIVATE, signedIn: { iss: provider.issuer, sub: "uma" }, target: NOTES };
  const before = await explain(question);
  assert.deepEqual(
    [before.decision, before.mode, before.error, before.reason],
    ["deny", "authorization_code", "invalid_grant", "consent_missing"],
  );
  assert.deepEqual(before.could_ask, { rule: "apps-for-people", scope: SCOPES });
  const page = await signInAt("company", browser, await browser.authorize(request(verifier)), "uma");
  const back = await browser.decide(page, { all: "", scope: ["notes.read"] });
  const issued = claimsOf((await redeem(service, parametersOf(back).code ?? "", verifier)).body.access_token);
  const after = await explain(question);
  const { claims } = after.would_issue as { claims: Record<string, unknown> };
  for (const name of ["iss", "sub", "aud", "client_id", "scope", "act"]) {
    assert.deepEqual(claims[name], issued[name], name);
  }
  // A code whose consent is taken back is refused, by the reason that is explained, and its client asks by no link.
  const second = verifierOf();
  const code = await browser.codeFor(request(second));
  const { policy } = await last("consent.recorded");
  const path = `/consents/${(policy as { consent: string }).consent}`;
  await asOperator(service, path, undefined, "DELETE");
  const refused = await redeem(service, code, second);
  assert.deepEqual([refused.body.error, linkIn(refused)], ["invalid_grant", ""]);
  assert.equal((await last("token.denied")).reason, (await explain(question)).reason);
});

const foreign = [
  [
    "of an issuer without a sign-in",
    () => ({ signedIn: { iss: silent.issuer, sub: "uma" } }),
    "issuer_unknown",
  ],
  ["of an unknown issuer", () => ({ signedIn: { iss: "https://x.example", sub: "uma" } }), "issuer_unknown"],
  ["whose client is no client of people", () => ({ client: "operator" }), "no_rule"],
  ["at a target that no rule names", () => ({ target: "booking-agent" }), "no_rule"],
] as const;
for (const [name, change, reason] of foreign) {
  test(`PROD-2.6-1 the explanation of a code of a user ${name} is a refusal`, async () => {
    const signedIn = { iss: provider.issuer, sub: "uma" };
    const body = await explain({ client: PRIVATE, signedIn, target: NOTES, ...change() });
    assert.deepEqual([body.decision, body.reason, body.could_ask], ["deny", reason, undefined]);
  });
}

// --- who decides ----------------------------------------------------------------------------------------------------

test("PAGE-D-24 another user sees what an unknown link shows, and nothing is given", async () => {
  const link = linkIn(await ask({ user: "jana" }));
  const { page } = await pageOf(link, "jana");
  const { browser, page: seen } = await pageOf(link, "kurt");
  const unknown = await browser.get(`/ask?r=${"A".repeat(22)}`);
  assert.deepEqual([seen.status, withoutId(seen.text)], [unknown.status, withoutId(unknown.text)]);
  assert.match(shownBy(seen.text), /^.*There is nothing to decide here/);
  assert.doesNotMatch(seen.text, /jana|planner|booking|trips/);
  const denied = await last("authorization.denied");
  assert.deepEqual(
    [denied.reason, (denied.subject as { sub: string }).sub, denied.requested, denied.detail],
    ["ask_of_another", "kurt", undefined, undefined],
  );
  assert.deepEqual(askedOf(denied), askedOf(await last("token_exchange.denied")));
  // Nor does the account page of the other user tell anything.
  assert.doesNotMatch((await browser.get("/account")).text, /jana|planner|booking|refused/);
  // The whole form of the page of the right user, in the browser of the other.
  const { action, token } = formOf(page);
  const sent = await browser.post(action, { token, decision: "allow", all: "1" });
  assert.deepEqual([sent.status, withoutId(sent.text)], [unknown.status, withoutId(unknown.text)]);
  assert.equal((await ask({ user: "jana" })).status, 400);
  assert.equal((await ask({ user: "kurt" })).status, 400);
});

test("PAGE-D-24 a user of another company with the same name is another user", async () => {
  const link = linkIn(await ask({ user: "karl" }));
  const { page } = await pageOf(link, "karl", "other");
  assert.match(shownBy(page.text), /There is nothing to decide here/);
  assert.equal((await last("authorization.denied")).reason, "ask_of_another");
  assert.match(shownBy((await pageOf(link, "karl")).page.text), /asks to act for you/);
});

test("PAGE-D-24, OIDC-5.7-1 a user is the same by the claim that the operator named for the issuer, and by no other", async (t) => {
  const own = await makeService(
    forAskingAgents(provider, { trustedIssuers: provider.trusted({ ...TAKEN, subjectClaim: "oid" }) }),
    { files: files(provider) },
  );
  t.after(async () => {
    provider.lies = {};
    await own.stop();
  });
  // The provider names the user differently to each of its clients.
  const token = await provider.userToken("pairwise-1", ISSUER, { oid: "user-1", scope: TRIPS.join(" ") });
  const link = linkIn(await exchange(own, provider, { token }));
  const signedInAs = async (sub: string, oid: string): Promise<Answer> => {
    provider.lies = { claims: (claims) => ({ ...claims, sub, oid }) };
    const browser = new Browser(own, provider);
    return browser.signIn(await browser.get(link), sub);
  };
  assert.equal((await signedInAs("pairwise-2", "user-1")).status, 200);
  assert.equal((await signedInAs("pairwise-1", "user-2")).status, 400);
});

test("PAGE-D-24 without a sign-in the link leads to the provider, and shows nothing before", async () => {
  const link = linkIn(await ask({ user: "lena" }));
  const browser = new Browser(service, provider);
  const first = await browser.get(link);
  assert.deepEqual([first.status, first.text], [303, ""]);
  assert.match(locationOf(first), /^https:\/\/as\.example\/signin\?ask=[\w-]+$/);
  assert.equal((await browser.post(link, { token: "x", decision: "allow", all: "1" })).status, 303);
  assert.equal((await ask({ user: "lena" })).status, 400);
});

test("PAGE-D-23, PAGE-D-10 a refusal is remembered while the link lives, and the agent is told no differently", async () => {
  const before = await ask({ user: "mara" });
  const { browser, page } = await pageOf(linkIn(before), "mara");
  const refused = await browser.decide(page, { decision: "refuse" });
  assert.equal(refused.status, 200);
  assert.match(shownBy(refused.text), /You have refused/);
  const { reason, policy } = await last("authorization.denied");
  assert.equal(reason, "user_refused");
  assert.ok((policy as { asked?: object }).asked);
  const after = await ask({ user: "mara" });
  assert.deepEqual([after.status, after.text], [before.status, before.text]);
  // Sent once more, it is the same refusal, and nothing more is recorded.
  const count = (await service.events()).length;
  assert.match(shownBy((await browser.decide(page, { decision: "refuse" })).text), /You have refused/);
  assert.equal((await service.events()).length, count);
});

test("HTTP-D-50 what a user gave by a link and took back is not asked for again while the link lives", async () => {
  const before = await ask({ user: "nils" });
  const { browser, page } = await pageOf(linkIn(before), "nils");
  await browser.decide(page);
  const query = new URLSearchParams({ iss: provider.issuer, sub: "nils" });
  const listed = await asOperator(service, `/consents?${query}`);
  const [consent] = listed.body.consents as { id: string }[];
  assert.equal((await ask({ user: "nils" })).status, 200);
  assert.equal((await asOperator(service, `/consents/${consent?.id}`, undefined, "DELETE")).status, 204);
  const after = await ask({ user: "nils" });
  assert.deepEqual([after.status, after.text], [before.status, before.text]);
  assert.equal((await browser.get(linkIn(after))).status, 409);
});

test("PAGE-D-23 a refusal is taken back on its page, not by the form from before, and given again it is one consent", async () => {
  const { browser, page } = await pageOf(linkIn(await ask({ user: "mia" })), "mia");
  const refused = await browser.decide(page, { decision: "refuse" });
  const [, onwards = ""] = /href="([^"]*\/ask\?r=[^"]*)"/.exec(refused.text) ?? [];
  assert.equal((await browser.decide(page)).status, 403);
  assert.equal((await ask({ user: "mia" })).status, 400);
  const again = await browser.get(onwards);
  assert.match(shownBy(again.text), /You have refused this. You can still allow it/);
  assert.match(shownBy((await browser.decide(again)).text), /You have allowed it/);
  assert.equal((await ask({ user: "mia" })).status, 200);
  assert.equal((await browser.decide(again)).status, 409);
});

test("PAGE-D-11 nothing ticked, or nothing that was asked for, is a form error on the page of an agent, and nothing is decided", async () => {
  for (const [user, form] of [
    ["nele", { all: "" }],
    ["nora", { all: "", scope: ["admin", "trips.pay"] }],
  ] as const) {
    const { browser, page } = await pageOf(linkIn(await ask({ user })), user);
    const before = (await service.events()).length;
    const again = await browser.decide(page, form);
    assert.equal(again.status, 400);
    assert.match(
      shownBy(again.text),
      /Nothing is ticked. Nothing is decided yet. Tick at least one permission at the booking agent/,
    );
    assert.equal((await service.events()).length, before);
    assert.equal((await ask({ user })).status, 400);
    // The page that asks for the box is answered like the first one.
    assert.match(shownBy((await browser.decide(again)).text), /You have allowed it/);
    assert.equal((await ask({ user })).status, 200);
  }
});

test("PAGE-D-23 a form that is sent twice decides once", async () => {
  const { browser, page } = await pageOf(linkIn(await ask({ user: "oona" })), "oona");
  const both = await Promise.all([
    browser.decide(page, { decision: "refuse" }),
    browser.decide(page, { decision: "refuse" }),
    browser.decide(page, { decision: "refuse" }),
  ]);
  assert.deepEqual(
    both.map(({ status }) => status),
    [200, 200, 200],
  );
  const refusals = (await service.events()).filter(
    ({ type, subject }) => type === "authorization.denied" && (subject as { sub?: string })?.sub === "oona",
  );
  assert.equal(refusals.length, 1);
  const allowed = await pageOf(linkIn(await ask({ user: "otto" })), "otto");
  const all = await Promise.all([1, 2, 3].map(() => allowed.browser.decide(allowed.page)));
  assert.deepEqual(all.map(({ status }) => status).sort(), [200, 409, 409]);
  const recorded = (await service.events()).filter(
    ({ type, subject }) => type === "consent.recorded" && (subject as { sub?: string })?.sub === "otto",
  );
  assert.equal(recorded.length, 1);
  // And no form of before turns the refusal into a consent.
  assert.equal((await browser.decide(page)).status, 403);
  assert.equal((await ask({ user: "oona" })).status, 400);
});

test("PAGE-D-5, RFC6749-10.12-1 a forged form gives and refuses nothing: without our token, with that of another link, or from another site", async () => {
  const link = linkIn(await ask({ user: "paul" }));
  const { browser, page } = await pageOf(link, "paul");
  const other = await browser.get(linkIn(await ask({ user: "paul", target: "https://api.example" })));
  for (const token of ["", "x".repeat(43), formOf(other).token]) {
    for (const decision of ["allow", "refuse"])
      assert.equal((await browser.decide(page, { token, decision })).status, 403);
  }
  for (const origin of ["https://evil.example", "https://as.example.evil.example"]) {
    const { action, token } = formOf(page);
    assert.equal(
      (await browser.post(action, { token, decision: "allow", all: "1" }, { origin })).status,
      403,
    );
  }
  const { action, token } = formOf(page);
  assert.equal((await browser.post(action, { token, decision: "perhaps" })).status, 403);
  assert.equal((await ask({ user: "paul" })).status, 400);
  assert.match(shownBy((await browser.decide(page)).text), /You have allowed it/);
});

test("PAGE-D-23 a consent that was given in another way meanwhile leaves nothing to decide", async () => {
  const link = linkIn(await ask({ user: "rosa" }));
  const { browser, page } = await pageOf(link, "rosa");
  const put = await asOperator(
    service,
    "/consents/by-the-operator",
    {
      subject: { iss: provider.issuer, sub: "rosa" },
      actor: PLANNER,
      targets: ["booking-agent"],
      scope: TRIPS.join(" "),
    },
    "PUT",
  );
  assert.equal(put.status, 201, put.text);
  assert.equal((await browser.decide(page, { decision: "refuse" })).status, 409);
  assert.equal((await ask({ user: "rosa" })).status, 200);
});

test("WCAG-2.2.1-1, PAGE-D-23 the time of the page is told and can be renewed ten times", async () => {
  const { browser, page } = await pageOf(linkIn(await ask({ user: "sven" })), "sven");
  assert.match(shownBy(page.text), /(9|10) minutes left to decide\./);
  const more =
    /href="([^"]*renew=1)"/.exec(page.text)?.[1]?.replaceAll("&#38;", "&") ?? assert.fail("no link");
  for (let round = 1; round <= 10; round++) {
    const renewed = await browser.get(more);
    assert.equal(/renew=1/.test(renewed.text), round < 10, `${round}`);
  }
  assert.match(shownBy((await browser.decide(page)).text), /You have allowed it/);
});
