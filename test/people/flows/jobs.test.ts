/** Jobs that users approve: behind the link of an agent, and on the page of a client; what comes of them, and how it ends. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, encodeForm } from "../../../scripts/http-client.ts";
import { JOBS_PER_AGENT_AND_SUBJECT_MAX } from "../../../src/limits/jobs.ts";
import { shownIn } from "../../../src/people/flows/decision.ts";
import type { JsonObject } from "../../../src/spec/rfc8259.ts";
import {
  asOperator,
  BOOKING,
  type Exchanging,
  exchange,
  forAskingAgents,
  linkIn,
  PLANNER,
} from "../../support/asking-agents.ts";
import { shownBy } from "../../support/markup.ts";
import {
  AS_WEB,
  Browser,
  files,
  formOf,
  locationOf,
  PRIVATE,
  parametersOf,
  redeem,
  request,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, type Event, ISSUER, type Service, workload } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  const base = forAskingAgents(provider);
  service = await makeService(
    {
      ...base,
      trustedIssuers: provider.trusted({ acceptAs: ["id_token", "jwt"], jobs: true }),
      clients: {
        ...base.clients,
        [PRIVATE]: { ...base.clients[PRIVATE], grantTypes: ["authorization_code", "refresh_token"] },
      },
      policies: [
        ...base.policies.map((rule) => (rule.id === "apps-for-people" ? { ...rule, refresh: true } : rule)),
        {
          ...{ id: "unasked", allow: "delegation", actors: [workload("crew/weather")] },
          ...{ subjects: { issuers: [provider.issuer], subs: ["rita"] } },
          ...{
            subjectToken: { audiences: [ISSUER] },
            targets: ["https://api.example"],
            scopes: ["trips.read"],
          },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const ask = (asked: Exchanging): Promise<Answer> => exchange(service, provider, asked);
const asking = (job: object, asked: Exchanging = {}): Promise<Answer> =>
  ask({ ...asked, form: { ...asked.form, mandate_job_request: JSON.stringify(job) } });
const last = async (type: string): Promise<Event> =>
  (await service.events()).findLast((event) => event.type === type) ?? assert.fail(`no ${type}`);
const end = (job: unknown): Promise<Answer> => asOperator(service, "/revocations", { job });

async function pageOf(refused: Answer, user: string) {
  const browser = new Browser(service, provider);
  return { browser, page: await browser.signIn(await browser.get(linkIn(refused)), user) };
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

test("JOB-D-4, JOB-D-5, JOB-D-6 an agent asks for a job, its user sees every bound and approves it, and the same request goes on in it", async () => {
  const notAfter = nowSeconds() + 7200;
  const job = {
    title: "<b>Book</b> the trip to Rome",
    notAfter,
    targets: ["booking-agent", "https://api.example"],
    scopes: ["trips.read", "trips.book"],
    agents: [BOOKING],
    maxTokens: 20,
    maxDepth: 2,
  };
  const asked = { user: "jane", scope: "trips.read trips.book" };
  const refused = await asking(job, asked);
  assert.equal(refused.status, 400);
  assert.equal(refused.body.mandate_job_error, undefined);
  const { browser, page } = await pageOf(refused, "jane");
  assert.equal(page.status, 200, page.text);
  assert.ok(!page.text.includes("<b>Book"));
  const shown = shownBy(page.text);
  for (const part of [
    "“<b>Book</b> the trip to Rome”",
    `planner (td.example) asks to act for you ID: ${PLANNER}`,
    "At the booking agent it asks to",
    "book trips for you",
    "At https://api.example (api.example) it asks to",
    "trips.book",
    "Only for this job, until ",
    `, ${new Date(notAfter * 1000).toISOString().slice(11, 16)} UTC (in 2 h)`,
    `Agents that may help Bbooking (td.example) ID: ${BOOKING}`,
    "All agents together: at most 20 access keys to these services.",
    "It may be passed on through at most 2 agents in a row.",
  ]) {
    assert.ok(shown.includes(part), `${part}: ${shown}`);
  }
  const done = await browser.decide(page);
  assert.match(shownBy(done.text), /You have allowed it/);
  const approved = await last("job.approved");
  const { bounds, title, consents, shown: digest } = approved.detail as JsonObject;
  assert.deepEqual([title, approved.reason], [job.title, "by_subject"]);
  assert.deepEqual(bounds, {
    notAfter,
    maxTokens: 20,
    maxDepth: 2,
    scopes: job.scopes,
    targets: job.targets,
    agents: [PLANNER, BOOKING],
  });
  assert.equal((consents as unknown[]).length, 2);
  assert.match(String(digest), /^[\w-]{43}$/);

  const answer = await asking(job, asked);
  assert.equal(answer.status, 200, answer.text);
  const id = String(answer.body.mandate_job_id);
  assert.equal(answer.body.mandate_job_expires_at, notAfter);
  assert.deepEqual(claimsOf(answer.body.access_token).mandate_job, { id, exp: notAfter });
  assert.equal((approved.job as { id: string }).id, id);
  assert.ok(!JSON.stringify(claimsOf(answer.body.access_token)).includes("Rome"));
  // The next agent takes part, under the consent that came with the job.
  const next = await ask({
    path: "agents/booking",
    own: answer.body.access_token,
    target: "https://api.example",
  });
  assert.equal(next.status, 200, next.text);
  assert.equal(next.body.mandate_job_id, id);
  // What was given for the job is given for nothing else.
  assert.equal((await ask(asked)).status, 400);
  assert.equal((await asking({ ...job, title: "another job" }, asked)).status, 400);

  assert.equal((await end(id)).status, 200);
  const over = await ask({
    path: "agents/booking",
    own: answer.body.access_token,
    target: "https://api.example",
  });
  assert.deepEqual(
    [over.status, over.body.error, over.body.mandate_job_error],
    [400, "invalid_request", "ended"],
  );
  const again = await asking(job, asked);
  assert.equal(again.status, 400);
});

test("JOB-D-5 a job that was approved for one agent is not that of another agent with the same request", async () => {
  const job = { title: "one of two", scopes: ["trips.read"], agents: [PLANNER, BOOKING] };
  const asked = { user: "jules", scope: "trips.read", target: "https://api.example" };
  const { browser, page } = await pageOf(await asking(job, asked), "jules");
  await browser.decide(page);
  const own = await asking(job, asked);
  assert.equal(own.status, 200, own.text);
  const another = await asking(job, { ...asked, path: "agents/booking" });
  assert.deepEqual([another.status, another.body.mandate_job_id], [400, undefined], another.text);
  assert.notEqual(linkIn(another), "");
});

test("JOB-D-2, JOB-D-4 a job that names no targets and scopes is bounded by the request, and by what the user leaves out", async () => {
  const asked = { user: "otto", scope: "trips.read trips.book" };
  const job = { title: "look at trips" };
  const { browser, page } = await pageOf(await asking(job, asked), "otto");
  await browser.decide(page, { all: "", scope: ["trips.read"] });
  const { bounds } = (await last("job.approved")).detail as { bounds: JsonObject };
  assert.deepEqual([bounds.targets, bounds.scopes], [["booking-agent"], ["trips.read"]]);
  const answer = await asking(job, asked);
  assert.equal(answer.body.scope, "trips.read");
  const elsewhere = await ask({
    user: "otto",
    target: "https://api.example",
    form: { mandate_job: String(answer.body.mandate_job_id) },
  });
  assert.equal(elsewhere.status, 400);
});

test("JOB-D-4 a user who refuses a job gives nothing, and one link serves one job", async () => {
  const asked = { user: "ruth" };
  const [one, other] = [await asking({ title: "one" }, asked), await asking({ title: "other" }, asked)];
  assert.notEqual(linkIn(one), linkIn(other));
  assert.equal(linkIn(await asking({ title: "one" }, asked)), linkIn(one));
  assert.notEqual(linkIn(await ask(asked)), linkIn(one));
  const { browser, page } = await pageOf(one, "ruth");
  await browser.decide(page, { decision: "refuse" });
  assert.equal((await last("job.refused")).reason, "user_refused");
  assert.equal((await asking({ title: "one" }, asked)).status, 400);
});

test("JOB-D-4, JOB-D-5 the page of a job says what its agent may do without it, and is asked for although it may", async () => {
  const before = await pageOf(await ask({ user: "tess", scope: "trips.read" }), "tess");
  await before.browser.decide(before.page);
  const asked = { user: "tess", scope: "trips.book" };
  const { page } = await pageOf(await asking({ title: "book" }, asked), "tess");
  const shown = shownBy(page.text);
  assert.match(
    shown,
    /Even without this job it may act at the booking agent read your trips, at the booking agent/,
  );
  const { page: none } = await pageOf(await asking({ title: "book" }, { ...asked, user: "tom" }), "tom");
  assert.ok(!shownBy(none.text).includes("Without this job"));
  assert.notEqual(linkIn(await asking({ title: "read" }, { user: "tess", scope: "trips.read" })), "");
});

test("JOB-D-5 the event of an approval has a digest of the words, the bounds and the boxes that were shown", async () => {
  const title = "look";
  const digestOf = async (user: string, job: object, scope = "trips.read"): Promise<unknown> => {
    const { browser, page } = await pageOf(await asking({ title, ...job }, { user, scope }), user);
    await browser.decide(page);
    const { detail } = await last("job.approved");
    return (detail as JsonObject).shown;
  };
  const notAfter = nowSeconds() + 3600;
  const first = await digestOf("amy", { notAfter });
  assert.equal(await digestOf("ben", { notAfter }), first, "the same page for another user");
  const others = [
    await digestOf("cat", { notAfter, title: "look again" }),
    await digestOf("dan", { notAfter, maxTokens: 3 }),
    await digestOf("eve", { notAfter }, "trips.read trips.book"),
    await digestOf("fay", { notAfter, agents: [BOOKING] }),
  ];
  assert.equal(new Set([first, ...others]).size, 5);
});

test("JOB-D-5 that digest has which boxes each further agent may use", () => {
  const digestOf = (...may: string[]) =>
    JSON.stringify(shownIn({ at: [], agents: [{ id: BOOKING, may: new Set(may) }], unasked: [] }));
  assert.equal(new Set([digestOf(), digestOf("p0"), digestOf("p1"), digestOf("p0", "p1")]).size, 4);
});

test("JOB-D-5 that digest has what a rule gives in the job without asking, which is shown to one user alone", async () => {
  const job = {
    ...{ title: "weather", notAfter: nowSeconds() + 3600 },
    ...{ targets: ["booking-agent", "https://api.example"], scopes: ["trips.read", "trips.book"] },
  };
  const digests = new Set<unknown>();
  for (const user of ["rita", "ivo", "joe"]) {
    const asked = { user, path: "crew/weather", scope: "trips.book" };
    const { browser, page } = await pageOf(await asking(job, asked), user);
    await browser.decide(page);
    digests.add(((await last("job.approved")).detail as JsonObject).shown);
  }
  assert.equal(digests.size, 2);
});

test("JOB-D-5 the page says that no other agent may take part, and what a rule gives the asking one in the job without asking", async () => {
  const { page: alone } = await pageOf(
    await asking({ title: "a", agents: [PLANNER] }, { user: "gus" }),
    "gus",
  );
  assert.match(shownBy(alone.text), /No other agent may help/);
  const { page: open } = await pageOf(await asking({ title: "a" }, { user: "hal" }), "hal");
  assert.ok(!shownBy(open.text).includes("With no other agent"));
  const targets = ["booking-agent", "https://api.example"];
  const asked = { user: "rita", path: "crew/weather", scope: "trips.book" };
  const { page } = await pageOf(
    await asking({ title: "w", targets, scopes: ["trips.read", "trips.book"] }, asked),
    "rita",
  );
  assert.match(shownBy(page.text), /It also gets: .*trips\.read/);
});

test("JOB-D-5, JOB-D-23 page, account and report say by which rules the agent goes on without job and consent, and who ends that", async () => {
  const asked = { user: "rita", path: "crew/weather", scope: "trips.book" };
  const { browser, page } = await pageOf(await asking({ title: "Watch the weather" }, asked), "rita");
  const words =
    /What it may do without this job, without asking you: trips\.read, at .*api\.example.* The operator of this service set that up, and it does not end with the job\./;
  assert.match(shownBy(page.text), words);
  await browser.decide(page);
  assert.match(
    shownBy((await browser.get("/account")).text),
    /At .*api\.example.* it may, also without this job trips\.read Only [^.]*\S* can end this\./,
  );
  const { id } = (await last("job.approved")).job as { id: string };
  const ended = await end(id);
  assert.deepEqual(((ended.body.job as JsonObject).outside as JsonObject).rules, [
    { id: "unasked", targets: ["https://api.example"], scope: "trips.read" },
  ]);
  const goesOn = { ...asked, target: "https://api.example", scope: "trips.read" };
  assert.equal((await ask(goesOn)).status, 200);
  const { page: none } = await pageOf(await asking({ title: "x" }, { ...asked, user: "sven" }), "sven");
  assert.ok(!shownBy(none.text).includes("without asking you"));
});

test("JOB-D-6 of two clicks on one link one makes a job", async () => {
  const asked = { user: "dora" };
  const { browser, page } = await pageOf(await asking({ title: "once" }, asked), "dora");
  await Promise.all([browser.decide(page), browser.decide(page), browser.decide(page)]);
  const made = (await service.events()).filter(
    ({ type, detail }) => type === "job.approved" && (detail as JsonObject).sub === "dora",
  );
  assert.equal(made.length, 1);
});

test("JOB-D-24 where the jobs of user and agent become too many between page and click, the user is told what is full, that nothing was given and what to do, and does it", async () => {
  const subject = { iss: provider.issuer, sub: "fay" };
  const job = (agent: string) =>
    asOperator(service, "/jobs", {
      ...{ client: agent, agent, subject, title: "filling", notAfter: nowSeconds() + 3600 },
    });
  const link = linkIn(await asking({ title: "the last one" }, { user: "fay", scope: "trips.read" }));
  const browser = new Browser(service, provider);
  const page = await browser.signIn(await browser.get(link), "fay");
  const review = await browser.review(
    request(verifierOf(), { mandate_job_request: JSON.stringify({ title: "a code" }) }),
    "fay",
  );
  const made: unknown[] = [];
  for (const client of [PLANNER, PRIVATE])
    for (let index = 0; index < JOBS_PER_AGENT_AND_SUBJECT_MAX; index++)
      made.push((await job(client)).body.id);
  const before = (await service.events()).length;
  for (const [shown, german] of [
    [page, false],
    [review, false],
    [page, true],
  ] as const) {
    const { action, token } = formOf(shown);
    const form = { token, decision: "allow", all: "1", confirm: "1" };
    const full = await browser.post(action, form, german ? { "accept-language": "de" } : {});
    assert.equal(full.status, 409);
    const parts = german
      ? [/zu viele Aufträge/, /Es wurde nichts erlaubt/, /Stoppen Sie einen in Ihrem Konto/]
      : [/too many jobs/, /Nothing was allowed/, /Stop one in your account/];
    for (const part of parts) assert.match(shownBy(full.text), part);
    assert.ok(full.text.includes(`href="${action.replaceAll("&", "&#38;")}"`), full.text);
  }
  // The page itself asks nothing then, and the agent gets no link.
  for (const again of [await browser.get(link), await browser.get(formOf(review).action)])
    assert.match(shownBy(again.text), /too many jobs/);
  const types = (await service.events()).slice(before).map(({ type }) => type);
  assert.ok(!types.some((type) => ["job.approved", "consent.recorded"].includes(String(type))));
  for (const one of [made[0], made.at(-1)]) assert.equal((await end(one)).status, 200);
  assert.match(shownBy((await browser.decide(page)).text), /You have allowed it/);
  assert.ok(parametersOf(await browser.decide(review)).code);
  // The same click again is no second job, though the place is taken.
  assert.ok(parametersOf(await browser.decide(review)).code);
  assert.match(shownBy((await browser.decide(page)).text), /You have decided already/);
});

test("JOB-D-6 a consent that an agent lacks within a job counts in this job alone", async () => {
  const asked = { user: "emil", scope: "trips.read" };
  const job = {
    title: "with another agent",
    targets: ["booking-agent", "https://api.example"],
    scopes: ["trips.read"],
  };
  const first = await pageOf(await asking(job, asked), "emil");
  await first.browser.decide(first.page);
  const { access_token: token, mandate_job_expires_at: ends } = (await asking(job, asked)).body;
  const next = { path: "agents/booking", own: token, target: "https://api.example" };
  const lacks = await ask(next);
  assert.equal(lacks.status, 400);
  const second = await pageOf(lacks, "emil");
  // It ends with the job, and the page says so.
  assert.ok(second.page.text.includes(`<time datetime="${new Date(Number(ends) * 1000).toISOString()}"`));
  await second.browser.decide(second.page);
  const given = await last("consent.recorded");
  assert.ok((given.job as JsonObject).id);
  assert.equal((await ask(next)).status, 200);
  const without = await ask({
    path: "agents/booking",
    user: "emil",
    target: "https://api.example",
    scope: "trips.read",
  });
  assert.equal(without.status, 400);
});

test("JOB-D-6, JOB-D-28 a consent that an agent lacks within a job of another server counts in that job alone, and no longer than it", async () => {
  const asked = { user: "olga", scope: "trips.read" };
  const inJob = async (id: string): Promise<Exchanging> => {
    const job = { id, exp: nowSeconds() + 600 };
    return {
      ...asked,
      token: await provider.userToken("olga", ISSUER, { scope: "trips.read", mandate_job: job }),
    };
  };
  const lacks = await ask(await inJob("theirs-1"));
  assert.equal(lacks.status, 400, lacks.text);
  const { browser, page } = await pageOf(lacks, "olga");
  const shown = shownBy(page.text);
  assert.ok(shown.includes(`The job is one of this server: ${new URL(provider.issuer).host}`), shown);
  await browser.decide(page);
  const given = await last("consent.recorded");
  assert.deepEqual(given.job, { id: "theirs-1", iss: provider.issuer });
  assert.ok(Number((given.detail as JsonObject).expires_at) <= nowSeconds() + 600);
  const answer = await ask(await inJob("theirs-1"));
  assert.equal(answer.status, 200, answer.text);
  const other = await ask(await inJob("theirs-2"));
  assert.equal(other.status, 400);
  assert.notEqual(linkIn(other), linkIn(lacks));
  assert.equal((await ask(asked)).status, 400);
  const listed = await asOperator(service, `/consents?iss=${encodeURIComponent(provider.issuer)}&sub=olga`);
  assert.ok(listed.text.includes(`"job":"theirs-1","job_issuer":"${provider.issuer}"`), listed.text);
});

test("JOB-D-6, JOB-D-18 a job of another server with the id of one of ours is another question, and what is given in it counts not in ours", async () => {
  const asked = { user: "oskar", scope: "trips.read" };
  const job = { title: "ours", targets: ["booking-agent", "https://api.example"], scopes: ["trips.read"] };
  const first = await pageOf(await asking(job, asked), "oskar");
  await first.browser.decide(first.page);
  const { access_token: own, mandate_job_id: id } = (await asking(job, asked)).body;
  const next = { path: "agents/booking", target: "https://api.example", scope: "trips.read" };
  const claims = { scope: "trips.read", mandate_job: { id, exp: nowSeconds() + 600 } };
  const theirs = { ...next, token: await provider.userToken("oskar", ISSUER, claims) };
  const [inOurs, inTheirs] = [await ask({ ...next, own }), await ask(theirs)];
  assert.notEqual(linkIn(inOurs), linkIn(inTheirs));
  const second = await pageOf(inTheirs, "oskar");
  await second.browser.decide(second.page);
  assert.equal((await ask(theirs)).status, 200);
  assert.equal((await ask({ ...next, own })).status, 400);
});

// --- a client of people -----------------------------------------------------------------------------------------

const refresh = (token: unknown, extra: Record<string, string> = {}): Promise<Answer> =>
  service.token({ grant_type: "refresh_token", refresh_token: String(token), ...extra }, AS_WEB);

async function give(job: object, user: string, pushed: boolean) {
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const asked = request(verifier, { mandate_job_request: JSON.stringify(job) });
  let sent = asked;
  if (pushed) {
    const body = new URLSearchParams(asked as Record<string, string>).toString();
    const headers = { ...AS_WEB, "content-type": "application/x-www-form-urlencoded" };
    const left = await service.get("/par", { method: "POST", headers, body });
    assert.equal(left.status, 201, left.text);
    sent = { client_id: PRIVATE, request_uri: String(left.body.request_uri) };
  }
  const page = await browser.review(sent, user);
  const back = await browser.decide(page);
  const { code = "" } = parametersOf(back);
  return { page, code, verifier };
}

for (const pushed of [false, true]) {
  const how = pushed ? "a pushed request" : "a request";
  test(`JOB-D-4, JOB-D-8 ${how} of a client asks for a job, of which code, tokens and refresh tokens are from then on`, async () => {
    const notAfter = nowSeconds() + 3600;
    const user = pushed ? "pia" : "nora";
    const { page, code, verifier } = await give(
      { title: "tidy my notes", notAfter, maxTokens: 3 },
      user,
      pushed,
    );
    assert.ok(shownBy(page.text).includes("“tidy my notes”"));
    const wider = await redeem(service, code, verifier, {
      mandate_job_request: JSON.stringify({ title: "more" }),
    });
    assert.deepEqual([wider.status, wider.body.error], [400, "invalid_request"]);
    const again = await give({ title: "tidy my notes", notAfter, maxTokens: 3 }, user, pushed);
    const first = await redeem(service, again.code, again.verifier);
    assert.equal(first.status, 200, first.text);
    const id = String(first.body.mandate_job_id);
    assert.deepEqual(claimsOf(first.body.access_token).mandate_job, { id, exp: notAfter });
    const second = await refresh(first.body.refresh_token);
    assert.equal(second.body.mandate_job_id, id);
    for (const extra of [
      { mandate_job: "job_AAAAAAAAAAAAAAAAAAAAAA" },
      { mandate_job_request: JSON.stringify({ title: "wide" }) },
    ])
      assert.equal((await refresh(first.body.refresh_token, extra)).status, 400, JSON.stringify(extra));
    assert.equal((await refresh(first.body.refresh_token)).status, 200);
    const used = await refresh(first.body.refresh_token);
    assert.deepEqual(
      [used.status, used.body.error, used.body.mandate_job_error],
      [400, "invalid_grant", "exhausted"],
    );
  });
}

test("JOB-D-20 the report counts an unused code and what was given for it, before the stop and as refused after it", async () => {
  const { code, verifier } = await give({ title: "work that is counted" }, "walt", false);
  const { id } = (await last("job.approved")).job as { id: string };
  const held = async (): Promise<unknown> => (await asOperator(service, `/jobs/${id}`)).body.held;
  const all = { codes: 1, families: 0, consents: 1, questions: 0, deferrals: 0 };
  assert.deepEqual(await held(), all);
  await redeem(service, code, verifier);
  assert.deepEqual(await held(), { ...all, codes: 0, families: 1 });
  const ended = await end(id);
  assert.deepEqual((ended.body.job as JsonObject).held, { ...all, codes: 0, families: 1 });
});

test("JOB-D-13 a client that could also act as a workload ends the job that its user approved for it", async () => {
  const { code, verifier } = await give({ title: "work that is done" }, "wanda", false);
  const first = await redeem(service, code, verifier);
  const done = await service.get("/revoke", {
    method: "POST",
    headers: { ...AS_WEB, "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm({ token: String(first.body.mandate_job_id) }),
  });
  assert.equal(done.status, 200, done.text);
  const refreshed = await refresh(first.body.refresh_token);
  assert.deepEqual(
    [refreshed.status, refreshed.body.error, refreshed.body.mandate_job_error],
    [400, "invalid_grant", "ended"],
  );
});

test("JOB-D-12 a code and a refresh token of a job that has ended give nothing, and their client is told why", async () => {
  const job = { title: "short work" };
  const [one, other] = [await give(job, "vera", false), await give(job, "vera", false)];
  const first = await redeem(service, one.code, one.verifier);
  await end(first.body.mandate_job_id);
  const refreshed = await refresh(first.body.refresh_token);
  assert.deepEqual(
    [refreshed.status, refreshed.body.error, refreshed.body.mandate_job_error],
    [400, "invalid_grant", "ended"],
  );
  const approved = (await service.events())
    .filter(({ type }) => type === "job.approved")
    .map((event) => event.job);
  const { id } = approved.at(-1) as { id: string };
  await end(id);
  const redeemed = await redeem(service, other.code, other.verifier);
  assert.deepEqual(
    [redeemed.status, redeemed.body.error, redeemed.body.mandate_job_error],
    [400, "invalid_grant", "ended"],
  );
});

const WRONG: Readonly<Record<string, string>> = {
  "that is no JSON": "{",
  "with an unknown member": '{"title":"a","pause":1}',
  "that names an unknown target": '{"title":"a","targets":["nowhere"]}',
  "that is over": '{"title":"a","notAfter":1}',
};
for (const [what, text] of Object.entries(WRONG)) {
  test(`JOB-D-2 a client whose mandate_job_request is one ${what} is told so, and no user is asked`, async () => {
    const browser = new Browser(service, provider);
    const answer = await browser.authorize(request(verifierOf(), { mandate_job_request: text }));
    const { error } = parametersOf(await browser.follow(answer));
    assert.equal(error, "invalid_request", locationOf(answer));
  });
}

test("JOB-D-9 an authorization request that chooses a job is refused, because what it gave would be outside of it", async () => {
  const browser = new Browser(service, provider);
  const answer = await browser.authorize(
    request(verifierOf(), { mandate_job: "job_0123456789012345678901" }),
  );
  assert.equal(parametersOf(await browser.follow(answer)).error, "invalid_request", locationOf(answer));
});

test("JOB-D-6, JOB-D-21, JOB-D-27, PAGE-D-34 what was given for a job stands in its card alone; a stop is told with what may still be accepted, and both are in the history", async () => {
  const asked = { user: "zoe", scope: "trips.read" };
  const { browser, page } = await pageOf(await asking({ title: "Trip planner" }, asked), "zoe");
  await browser.decide(page);
  const given = await asking({ title: "Trip planner" }, asked);
  assert.equal(given.status, 200, given.text);
  const living = await browser.get("/account");
  assert.match(
    shownBy(living.text),
    /Who may act for you P .*planner Job “Trip planner” .* At .* it may .*Stop this job/,
  );
  assert.ok(!living.text.includes('name="consent"'));
  const [, token = ""] =
    /name="token" value="([^"]*)"><input type="hidden" name="job"/.exec(living.text) ?? [];
  const job = String(given.body.mandate_job_id);
  const stopped = await browser.post("/account/withdraw", { token, job });
  assert.equal(stopped.status, 303);
  // JOB-D-22
  const { detail } = await last("job.ended");
  const { accepted_until_ms: until } = detail as JsonObject;
  assert.equal(until, 1000 * Number(claimsOf(given.body.access_token).exp));
  const again = await browser.post("/account/withdraw", { token, job });
  assert.equal(again.status, 409);
  assert.match(shownBy(again.text), /This job was stopped before/);
  assert.equal(
    (await service.events()).filter(
      ({ type, detail }) => type === "job.ended" && (detail as JsonObject).title === "Trip planner",
    ).length,
    1,
  );
  const shown = shownBy((await browser.get("/account")).text);
  assert.match(shown, /You allow nothing to any agent/);
  assert.match(
    shown,
    /“Trip planner”.* It is over, and nothing more is given for it\. the booking agent may accept what it has until (today|tomorrow), \d\d:\d\d UTC ?\./,
  );
  assert.match(shown, /You stopped a job: “Trip planner”.*You approved a job: “Trip planner”/);
  const listed = await asOperator(service, `/consents?iss=${encodeURIComponent(provider.issuer)}&sub=zoe`);
  const { consents } = listed.body as { consents: { state: string }[] };
  assert.deepEqual(
    consents.map(({ state }) => state),
    ["job-ended"],
  );
  // So does the event of the stop by another party, which it names.
  const next = await pageOf(await asking({ title: "Next" }, asked), "zoe");
  await next.browser.decide(next.page);
  await end((await asking({ title: "Next" }, asked)).body.mandate_job_id);
  const after = shownBy((await browser.get("/account")).text);
  assert.match(after, /An administrator stopped a job: “Next”/);
  const own = await pageOf(await asking({ title: "Own" }, asked), "zoe");
  await own.browser.decide(own.page);
  const svid = await service.svid("agents/planner");
  const job3 = String((await asking({ title: "Own" }, asked)).body.mandate_job_id);
  const done = await service.get("/revoke", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm({ token: job3, ...service.as(svid) }),
  });
  assert.equal(done.status, 200, done.text);
  assert.match(shownBy((await browser.get("/account")).text), /The agent itself ended a job: “Own”/);
});
