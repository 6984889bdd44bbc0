/** The consent page: what is shown, and what a decision gives, or does not. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../../scripts/http-client.ts";
import { shownBy } from "../../support/markup.ts";
import {
  Browser,
  files,
  formOf,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  NOTES,
  PRIVATE,
  PUBLIC,
  parametersOf,
  redeem,
  request,
  SCOPES,
  verifierOf,
  WEB_REDIRECT,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, type Event, ISSUER, type Service, workload } from "../../support/world.ts";

const NOTHING_GIVEN = {
  error: "access_denied",
  error_description: "the request was not allowed",
  state: "the state",
  iss: ISSUER,
};

let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  const [rule] = base.policies;
  const exchange = {
    allow: "delegation",
    subjects: { issuers: [provider.issuer] },
    subjectToken: { audiences: [NOTES] },
    targets: [NOTES],
    scopes: SCOPES,
  };
  service = await makeService(
    {
      ...base,
      registration: { mode: "open", open: { scopes: SCOPES } },
      policies: [
        { ...rule, subjects: { issuers: [provider.issuer], subs: ["alice", "bob", "carol"] } },
        { ...rule, id: "registered-apps", clients: undefined, classes: ["open"] },
        { ...exchange, id: "asked", actors: [workload("agents/asking")], consent: "record" },
        {
          ...exchange,
          id: "of-another",
          actors: [workload("agents/bobs")],
          subjects: { issuers: [provider.issuer], subs: ["bob"] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
        },
        {
          ...exchange,
          id: "unasked",
          actors: [workload("agents/sorting")],
          consent: "implied",
          acknowledge: "subjects-not-asked",
        },
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const last = async (type: string): Promise<Event> =>
  (await service.events()).findLast((event) => event.type === type) ?? assert.fail(`no ${type}`);

const page = (extra = {}, user = "alice", browser = new Browser(service, provider)) =>
  browser.review(request(verifierOf(), extra), user).then((answer) => ({ browser, answer }));

// --- what is shown --------------------------------------------------------------------------------------------------

test("HTTP-D-51, PAGE-D-6, PAGE-D-10, MCP-S.7.2-2, RFC6749-10.2-3 the page says who asks for what, where, until when and whom it asks", async () => {
  const { answer } = await page();
  const shown = shownBy(answer.text);
  assert.match(shown, /Web app asks for access/);
  assert.match(shown, /The answer goes to app\.example/);
  assert.match(shown, /At Notes \(notes\.example\) it asks to/);
  assert.match(shown, /read your notes/);
  assert.match(shown, /Signed in as alice \(alice of the company\)/);
  assert.match(shown, /Lasts until \w+ \d+, \d{4}/);
  assert.doesNotMatch(answer.text, / checked|autofocus/);
  // Of the agents further on those that would not ask again.
  assert.match(answer.text, /agents\/sorting/);
  assert.doesNotMatch(answer.text, /agents\/(asking|bobs)/);
  assert.match((await page({}, "bob")).answer.text, /agents\/bobs/);
});

test("NAME-D-7 the page says why a client asks, in its own words, and both decisions record it", async () => {
  const reason = "To print your <b>notes</b>.";
  const { browser, answer } = await page({ mandate_reason: reason }, "carol");
  assert.ok(shownBy(answer.text).includes(`Its reason, in its own words: “${reason}”`), answer.text);
  await browser.decide(answer);
  assert.equal(((await last("consent.recorded")).detail as { reason_given: string }).reason_given, reason);
  await browser.decide(await browser.review(request(verifierOf(), { mandate_reason: reason })), {
    decision: "refuse",
  });
  assert.equal(((await last("authorization.denied")).requested as { reason: string }).reason, reason);
  assert.doesNotMatch(shownBy((await page()).answer.text), /Its reason/);
});

test("PAGE-D-1, RFC6749-10.2-4 where a consent exists the user is asked again", async () => {
  const { browser, answer } = await page({}, "carol");
  assert.ok(locationOf(await browser.decide(answer)).includes("code="));
  const again = await browser.review(request(verifierOf()));
  assert.equal(again.status, 200);
});

test("MCP-S.8-1 one client stands for all of ours at the provider, so each of them asks the user, whose session is open", async () => {
  const { browser, answer } = await page({}, "carol");
  assert.ok(locationOf(await browser.decide(answer)).includes("code="));
  const asked = request(verifierOf(), { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT });
  const other = await browser.review(asked);
  assert.equal(other.status, 200);
  assert.match(shownBy(other.text), /Desk app asks for access/);
  await browser.decide(other);
  assert.equal(((await last("consent.recorded")).detail as { actor: string }).actor, PUBLIC);
});

// --- what a decision gives -------------------------------------------------------------------------------------------

test("PAGE-D-11, PAGE-D-12, RFC9700-4.12-1, RFC9700-4.12-2, RFC9700-2.1-3 the user gives less than is asked for, and the token has no more", async () => {
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const answer = await browser.review(request(verifier), "bob");
  const back = await browser.decide(answer, { all: "", scope: ["notes.read", "admin", "notes.unknown"] });
  assert.equal(back.status, 303);
  const token = await redeem(service, parametersOf(back).code ?? "", verifier);
  assert.equal(claimsOf(token.body.access_token).scope, "notes.read");
  const { detail, subject, reason } = await last("consent.recorded");
  assert.equal(reason, "by_subject");
  assert.deepEqual((detail as { scope: string; actor: string }).scope, "notes.read");
  assert.equal((detail as { actor: string }).actor, PRIVATE);
  assert.equal((subject as { sub: string }).sub, "bob");
});

test("HTTP-D-48, PROD-2.6-4 what is given again raises the version of one consent; what was not asked about stays", async () => {
  const given = async (extra: object, form: object) => {
    const { browser, answer } = await page(extra, "carol");
    await browser.decide(answer, { all: "", ...form });
    const { policy, detail } = await last("consent.recorded");
    const { version, scope } = detail as { version: number; scope: string };
    return { id: (policy as { consent: string }).consent, version, scope };
  };
  const first = await given({}, { scope: ["notes.read", "notes.write"] });
  const second = await given({ scope: "notes.write" }, { scope: ["notes.write"] });
  assert.deepEqual(second, { id: first.id, version: first.version + 1, scope: "notes.read notes.write" });
  const third = await given({}, { scope: ["notes.read"] });
  assert.deepEqual(third, { id: first.id, version: first.version + 2, scope: "notes.read" });
});

test("PAGE-D-10 the button that refuses is a refusal, which the client is told", async () => {
  const { browser, answer } = await page();
  const back = await browser.decide(answer, { decision: "refuse" });
  assert.deepEqual(parametersOf(back), NOTHING_GIVEN);
  assert.equal((await last("authorization.denied")).reason, "user_refused");
});

const lacking = [
  ["nothing ticked", { all: "" }],
  ["scopes that were not asked for", { all: "", scope: ["admin"] }],
] as const;
for (const [name, form] of lacking) {
  test(`PAGE-D-11 ${name} is a form error: the page asks for a tick, and the client is told nothing`, async () => {
    const { browser, answer } = await page();
    const before = (await service.events()).length;
    const again = await browser.decide(answer, form);
    assert.deepEqual([again.status, locationOf(again)], [400, ""]);
    assert.match(shownBy(again.text), /Nothing is ticked.*Tick at least one permission at Notes/);
    assert.equal((await service.events()).length, before);
    assert.notEqual(parametersOf(await browser.decide(again)).code, undefined);
  });
}

test("RFC6749-4.1.2.1-2 a user for whom no rule allows it is told by access_denied too", async () => {
  const browser = new Browser(service, provider);
  const first = await browser.authorize(request(verifierOf()));
  const back = await browser.signIn(first, "mallory");
  assert.deepEqual(parametersOf(back), NOTHING_GIVEN);
  const { reason, subject } = await last("authorization.denied");
  assert.deepEqual([reason, (subject as { sub: string }).sub], ["no_rule", "mallory"]);
});

// --- forms that are not ours -------------------------------------------------------------------------------------------

test("PAGE-D-4 the same click again has the same answer, and decides once", async () => {
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const answer = await browser.review(request(verifier));
  const before = (await service.events()).length;
  const both = await Promise.all([browser.decide(answer), browser.decide(answer)]);
  const again = await browser.decide(await browser.get(formOf(answer).action));
  const [location = ""] = both.map(locationOf);
  assert.match(location, /[?&]code=/);
  assert.deepEqual([...both, again].map(locationOf), [location, location, location]);
  // One entry: the consent, and with it what was decided and the code.
  assert.deepEqual(
    (await service.events()).slice(before).map(({ type }) => type),
    ["consent.recorded"],
  );
  // Another click is another decision, of which there is one already.
  assert.equal((await browser.decide(answer, { decision: "refuse" })).status, 409);
  assert.equal((await browser.decide(answer, { all: "", scope: "notes.read" })).status, 409);
  const given = await redeem(service, parametersOf(again).code ?? "", verifier);
  assert.equal(given.status, 200, given.text);
  // A code that was used is not given again, for with the second use all would end that it gave.
  assert.equal((await browser.decide(answer)).status, 409);
});

test("PAGE-D-4, RFC6749-4.1.2.1-2 the same refusal again has the same answer, and is no consent", async () => {
  const { browser, answer } = await page();
  const refuse = () => browser.decide(answer, { decision: "refuse" });
  const locations = [await refuse(), await refuse()].map(locationOf);
  assert.match(locations[0] ?? "", /error=access_denied/);
  assert.equal(locations[1], locations[0]);
  assert.equal((await browser.decide(answer)).status, 409);
});

test("PAGE-D-4 what was decided is told to no other session of the same user", async () => {
  const { browser, answer } = await page();
  await browser.decide(answer);
  browser.cookies.delete("__Host-mandate-s");
  assert.equal((await browser.get(formOf(answer).action)).status, 409);
  const other = await browser.review(request(verifierOf()));
  assert.equal(other.status, 200);
  assert.equal((await browser.decide(answer)).status, 409);
});

const forged = [
  ["no token", ""],
  ["a token of another form", "x".repeat(43)],
] as const;
for (const [name, token] of forged) {
  test(`PAGE-D-5, RFC6749-10.12-1 a form with ${name} gives and refuses nothing`, async () => {
    const { browser, answer } = await page();
    for (const decision of ["allow", "refuse"])
      assert.equal((await browser.decide(answer, { token, decision })).status, 403);
    assert.ok(locationOf(await browser.decide(answer)).includes("code="));
  });
}

test("PAGE-D-5 the token of one request is none for another, and none for another session", async () => {
  const { browser, answer } = await page();
  const other = await browser.review(request(verifierOf(), { scope: "notes.read" }));
  for (const decision of ["allow", "refuse"])
    assert.equal((await browser.decide(other, { token: formOf(answer).token, decision })).status, 403);
  const stranger = await page({}, "bob");
  const { action, token } = formOf(answer);
  // Another user's browser, with the whole form of the first one.
  assert.equal((await stranger.browser.post(action, { token, decision: "allow", all: "1" })).status, 400);
});

const origins = [
  ["https://evil.example", {}, 403],
  ["null", {}, 303],
  [ISSUER, { "sec-fetch-site": "same-origin" }, 303],
  ["null", { "sec-fetch-site": "cross-site" }, 403],
  ["null", { "sec-fetch-site": "same-site" }, 403],
] as const;
for (const [origin, extra, status] of origins) {
  test(`FETCHMD-2-1 a form from ${origin} ${JSON.stringify(extra)}: ${status}`, async () => {
    const { browser, answer } = await page();
    const { action, token } = formOf(answer);
    const sent = await browser.post(action, { token, decision: "allow", all: "1" }, { origin, ...extra });
    assert.equal(sent.status, status);
  });
}

test("PAGE-D-5 what is no form of ours is refused", async () => {
  const { browser, answer } = await page();
  const { action, token } = formOf(answer);
  for (const form of [{ token }, { token, decision: "maybe" }]) {
    assert.equal((await browser.post(action, form)).status, 403);
  }
  const json = await browser.post(action, {}, { "content-type": "application/json" });
  assert.equal(json.status, 403);
});

// --- clients behind which anything may be ------------------------------------------------------------------------------

test("PAGE-D-8, RFC6749-3.1.2.1-2, RFC6749-10.2-5, MCP-S.7.2-1, MCPC-D-1 a loopback client is warned of, and needs a box of its own", async () => {
  const { browser, answer } = await page({
    client_id: PUBLIC,
    redirect_uri: LOOPBACK_REDIRECT.replace("/callback", ":49152/callback"),
  });
  assert.match(answer.text, /where any program could receive it/);
  const without = await browser.decide(answer, { confirm: "" });
  assert.equal(without.status, 400);
  assert.match(without.text, /role="alert"/);
  const back = await browser.decide(without);
  assert.ok(locationOf(back).startsWith("http://127.0.0.1:49152/callback?code="));
});

test("PAGE-D-6, PAGE-D-7, PAGE-D-8 a client that registered itself is known by when it did, and its name is harmless", async () => {
  const registered = await service.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      client_name: "Notes” of the <b>company</b>",
      redirect_uris: [WEB_REDIRECT],
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code"],
    }),
  });
  assert.equal(registered.status, 201, registered.text);
  const { browser, answer } = await page({ client_id: String(registered.body.client_id) });
  const shown = shownBy(answer.text);
  const day = new Intl.DateTimeFormat("en", { dateStyle: "long", timeZone: "UTC" }).format(
    1000 * Number(registered.body.client_id_issued_at),
  );
  assert.match(shown, /^.*An unverified program asks for access/);
  assert.ok(shown.includes(`registered itself on ${day}, and its name was not checked.`), shown);
  assert.ok(shown.includes("It calls itself “Notes' of the <b>company</b>”."), shown);
  assert.equal((await browser.decide(answer, { confirm: "" })).status, 400);
  await browser.decide(answer);
  const account = shownBy((await browser.get("/account")).text);
  assert.ok(account.includes("It calls itself “Notes' of the <b>company</b>”."), account);
});

test("PAGE-D-4, PROD-2.6-4 of many clicks at once each that gives a code has recorded a consent", async () => {
  const { browser, answer } = await page();
  const pages: Answer[] = [];
  for (let count = 0; count < 6; count++) pages.push(await browser.review(request(verifierOf())));
  await browser.decide(answer);
  const recorded = async () =>
    (await service.events()).filter(({ type }) => type === "consent.recorded").length;
  const before = await recorded();
  const answers = await Promise.all(pages.map((one) => browser.decide(one)));
  const codes = answers.filter((one) => one.status === 303 && parametersOf(one).code !== undefined);
  assert.ok(codes.length > 0);
  assert.equal((await recorded()) - before, codes.length);
});

test("WCAG-2.2.1-1, PAGE-D-4 the time of a page is told and can be renewed ten times", async () => {
  const { browser, answer } = await page();
  assert.match(shownBy(answer.text), /(9|10) minutes left to decide\./);
  const more =
    /href="([^"]*renew=1)"/.exec(answer.text)?.[1]?.replaceAll("&#38;", "&") ?? assert.fail("no link");
  let next = more;
  let last = answer;
  for (let round = 1; round <= 10; round++) {
    const renewed = await browser.follow(await browser.get(next));
    last = renewed;
    const link = /href="([^"]*renew=1)"/.exec(renewed.text)?.[1]?.replaceAll("&#38;", "&");
    assert.equal(link !== undefined, round < 10, `${round}`);
    next = link ?? next;
  }
  // The eleventh time, by a link that the page does not have, the page is the one that it was.
  assert.equal((await browser.get(`${formOf(last).action}&renew=1`)).status, 200);
  // An earlier page of the same request gives no more of them.
  const first = await browser.follow(await browser.get(more));
  assert.match(first.text, /renew=1/);
});
