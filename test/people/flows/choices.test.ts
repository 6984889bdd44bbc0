/** The pages on which users decide about several targets and agents: what is shown, and what the ticked boxes give. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../../scripts/http-client.ts";
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
import { elementsOf, parseMarkup, shownBy } from "../../support/markup.ts";
import {
  Browser,
  files,
  formOf,
  NOTES,
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

const LEDGER = "https://ledger.example";
const BANK = "https://bank.example";
const API = "https://api.example";
const MAIL = "https://mail.example";
const CREW = workload("crew/kim");
const HELPER = workload("crew/lou");
/** A limit on payments, which the ledger and the bank both enforce. */
const PAYMENT = "payment";
const details = {
  [PAYMENT]: {
    title: { en: "Payments", de: "Zahlungen" },
    governs: ["pay"],
    fields: {
      most: { is: "integer", narrows: "max", label: { en: "up to", de: "bis" } },
      to: { is: "string", narrows: "equal" },
    },
  },
};

let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  const base = forAskingAgents(provider);
  const asking = {
    ...{ allow: "delegation", subjects: { issuers: [provider.issuer] }, consent: "record", askUser: true },
    ...{ subjectToken: { audiences: [ISSUER] }, scopes: ["pay", "api.write"] },
  };
  service = await makeService(
    {
      ...base,
      targets: [
        ...base.targets.filter(({ names }) => !names.includes(API)),
        {
          names: [LEDGER],
          title: "Ledger",
          scopes: ["pay"],
          sentences: { pay: { en: "pay invoices", de: "Rechnungen bezahlen" } },
          details,
        },
        {
          names: [BANK],
          title: "Bank",
          scopes: ["pay"],
          sentences: { pay: { en: "delete all accounts", de: "alle Konten löschen" } },
          details,
        },
        { names: [MAIL], scopes: ["mail.read"] },
        { names: [API], title: "API", scopes: ["api.write"], sentences: { "api.write": "write to the API" } },
      ],
      policies: [
        ...base.policies.filter(({ id }) => !id.startsWith("agents-")).map((rule) => ({ ...rule })),
        { ...asking, id: "pays", actors: [PLANNER, BOOKING], targets: [LEDGER, BANK, API] },
        { ...asking, id: "crew-writes", actors: [workload("crew/*")], targets: [API] },
        {
          ...{ ...asking, askUser: false, id: "handed-on", actors: [workload("crew/*")], targets: [MAIL] },
          ...{ subjectToken: { audiences: [API] }, scopes: ["mail.read"] },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
        {
          ...{
            ...asking,
            askUser: false,
            id: "unasked",
            actors: [HELPER],
            targets: [BANK],
            jobs: "required",
          },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const ask = async ({ user = "alice", ...asked }: Exchanging): Promise<Answer> =>
  exchange(service, provider, {
    target: LEDGER,
    token: await provider.userToken(user, ISSUER, { scope: "pay api.write" }),
    ...asked,
  });
const asking = (job: object, asked: Exchanging): Promise<Answer> =>
  ask({ scope: "pay", ...asked, form: { ...asked.form, mandate_job_request: JSON.stringify(job) } });

async function pageOf(refused: Answer, user: string) {
  assert.notEqual(linkIn(refused), "", refused.text);
  const browser = new Browser(service, provider);
  return { browser, page: await browser.signIn(await browser.get(linkIn(refused)), user) };
}

const last = async (type: string): Promise<Event> =>
  (await service.events()).findLast((event) => event.type === type) ?? assert.fail(`no ${type}`);

/** What an exchange in the job gives the agent that asked for it, or the code of the error. */
async function givenIn(job: string, user: string, target: string, scope: string): Promise<unknown> {
  const answer = await ask({ user, target, scope, form: { mandate_job: job } });
  return answer.body.scope ?? answer.body.error;
}

async function consentsOf(user: string): Promise<readonly string[]> {
  const query = new URLSearchParams({ iss: provider.issuer, sub: user });
  const listed = (await asOperator(service, `/consents?${query}`)).body.consents as unknown as {
    actor: string;
    targets: string[];
    scope: string;
  }[];
  return listed
    .flatMap(({ actor, targets, scope }) => targets.map((one) => `${actor} ${one} ${scope}`))
    .sort();
}

const idOf = (event: Event): string => (event.job as { id: string }).id;

test("PAGE-D-35 each pair of target and scope has the sentence of its target and a box of its own, in both languages", async () => {
  const job = { title: "Pay one invoice", targets: [LEDGER, BANK] };
  const { browser, page } = await pageOf(await asking(job, { user: "ada" }), "ada");
  const shown = shownBy(page.text);
  assert.match(
    shown,
    /At Ledger \(ledger\.example\) it asks to pay invoices At Bank \(bank\.example\) it asks to delete all accounts/,
  );
  assert.ok(
    page.text.includes('name="scope" value="pay"') && page.text.includes(`name="scope" value="pay ${BANK}"`),
  );
  const german = shownBy(
    (await browser.get(`${linkIn(await asking(job, { user: "ada" }))}&ui_locales=de`)).text,
  );
  assert.match(german, /Möchte bei Ledger .*? Rechnungen bezahlen Möchte bei Bank .*? alle Konten löschen/);
  await browser.decide(page, { all: "", scope: ["pay"] });
  assert.deepEqual(await consentsOf("ada"), [`${PLANNER} ${LEDGER} pay`]);
  const id = idOf(await last("job.approved"));
  assert.equal(await givenIn(id, "ada", LEDGER, "pay"), "pay");
  assert.notEqual(await givenIn(id, "ada", BANK, "pay"), "pay");
});

test("PAGE-D-35 a scope without a tick is not given, at targets whose scopes differ", async () => {
  const job = { title: "x", targets: [LEDGER, API], scopes: ["pay", "api.write"] };
  const { browser, page } = await pageOf(await asking(job, { user: "bea" }), "bea");
  assert.match(shownBy(page.text), /write to the API/);
  await browser.decide(page, { all: "", scope: ["pay"] });
  assert.deepEqual(await consentsOf("bea"), [`${PLANNER} ${LEDGER} pay`]);
  const { bounds } = (await last("job.approved")).detail as { bounds: JsonObject };
  assert.deepEqual([bounds.targets, bounds.scopes], [[LEDGER], ["pay"]]);
});

test("PAGE-D-35, JOB-D-6 an agent that would take part has a box of its own, and gets of the permissions what its rules know", async () => {
  const job = { title: "x", targets: [LEDGER, API], scopes: ["pay", "api.write"], agents: [BOOKING, CREW] };
  for (const [user, agent, want] of [
    ["cleo", [], []],
    ["cora", [CREW], [`${CREW} ${API} api.write`]],
  ] as const) {
    const { browser, page } = await pageOf(await asking(job, { user }), user);
    assert.match(
      shownBy(page.text),
      /Agents that may help .*booking May do all that you tick above\. .*crew\/kim May do only this, if ticked above: write to the API, at API \(api\.example\)\. Tick all/,
    );
    await browser.decide(page, { all: "", scope: ["pay", `api.write ${API}`], agent });
    assert.deepEqual(await consentsOf(user), [
      ...[`${PLANNER} ${API} api.write`, `${PLANNER} ${LEDGER} pay`, ...want].sort(),
    ]);
    const { bounds } = (await last("job.approved")).detail as { bounds: JsonObject };
    assert.deepEqual(bounds.agents, [PLANNER, ...agent]);
  }
});

test("PAGE-D-11, PAGE-D-35 an agent that is ticked without anything that it may have is a form error, which decides nothing", async () => {
  const job = { title: "x", targets: [LEDGER, API], scopes: ["pay", "api.write"], agents: [BOOKING, CREW] };
  const { browser, page } = await pageOf(await asking(job, { user: "cyra" }), "cyra");
  const again = await browser.decide(page, { all: "", scope: ["pay"], agent: [CREW] });
  assert.equal(again.status, 400);
  assert.match(
    shownBy(again.text),
    /An agent would get nothing. Nothing is decided yet. You ticked an agent/,
  );
  assert.deepEqual(tickedOn(again), ["scope pay", `agent ${CREW}`]);
  assert.deepEqual(await consentsOf("cyra"), []);
  await browser.decide(again, { all: "", scope: ["pay", `api.write ${API}`], agent: [CREW] });
  assert.ok((await consentsOf("cyra")).includes(`${CREW} ${API} api.write`));
});

test("PAGE-D-35, JOB-D-5 what a rule gives in the job without asking is shown, since no box stops it", async () => {
  const job = { title: "x", targets: [LEDGER, BANK], agents: [HELPER] };
  const { page } = await pageOf(await asking(job, { user: "dana" }), "dana");
  assert.match(
    shownBy(page.text),
    /crew\/lou Extra permission, with this tick: delete all accounts, at Bank \(bank\.example\)\. Tick all/,
  );
});

test("PAGE-D-35, JOB-D-5 the page says what the asking agent itself gets, where the other that would take part gets more", async () => {
  const job = { title: "x", targets: [API, LEDGER], scopes: ["pay", "api.write"], agents: [BOOKING] };
  const asked = { user: "dora", path: "crew/kim", target: API, scope: "api.write" };
  const { browser, page } = await pageOf(await asking(job, asked), "dora");
  const shown = shownBy(page.text);
  assert.match(
    shown,
    /“x” .* Only what you tick is allowed\. At API \(api\.example\) it asks to write to the API For agents that help it, at Ledger \(ledger\.example\) pay invoices /,
  );
  assert.match(shown, /agents\/booking May do all that you tick above\. Tick all: \d+ permissions?, 1 agent/);
  await browser.decide(page, { all: "1" });
  assert.deepEqual(await consentsOf("dora"), [
    `${BOOKING} ${API} api.write`,
    `${BOOKING} ${LEDGER} pay`,
    `${CREW} ${API} api.write`,
  ]);
});

test("PAGE-D-35, JOB-D-5 a page that says that no other agent may take part names none that may act further", async () => {
  const asked = { user: "dido", path: "crew/kim", target: API, scope: "api.write" };
  const shownOf = async (job: object): Promise<string> => {
    const { page } = await pageOf(await asking({ title: "x", ...job }, asked), "dido");
    return shownBy(page.text);
  };
  const alone = await shownOf({ agents: [CREW] });
  assert.match(alone, /No other agent may help/);
  assert.doesNotMatch(alone, /may do what you tick, too/);
  assert.match(
    await shownOf({}),
    /crew\/\* \(td\.example\) ID: spiffe:\S+ \S.* lets it do what you tick, without asking you again\. .* These may act for you without asking spiffe:\/\/td\.example\/crew\/\*/,
  );
});

/** Name and value of each box that is ticked. */
const tickedOn = ({ text }: Answer): string[] =>
  elementsOf(parseMarkup(text)).flatMap(({ attributes: of }) =>
    of.has("checked") ? [`${of.get("name")} ${of.get("value")}`] : [],
  );

test("PAGE-D-43 a page that comes back for a missing box keeps what was ticked, of the boxes that it has, and a form of another page ticks nothing", async () => {
  const job = { title: "x", targets: [LEDGER, BANK, API], scopes: ["pay", "api.write"], agents: [CREW] };
  const { browser, page } = await pageOf(await asking(job, { user: "ines" }), "ines");
  const sent = {
    all: "",
    scope: [`pay ${BANK}`, '"><b>x</b>', "pay.none"],
    agent: [CREW, '"><i>y</i>'],
    detail: ["0"],
  };
  const again = await browser.decide(page, sent);
  assert.deepEqual([again.status, tickedOn(again)], [400, [`scope pay ${BANK}`, `agent ${CREW}`]]);
  assert.doesNotMatch(again.text, /<b>x|<i>y|pay\.none/);
  const forged = await browser.decide(page, { ...sent, token: "forged.form" });
  assert.equal(forged.status, 403);
  assert.deepEqual(tickedOn(forged), []);
  assert.deepEqual(tickedOn(await browser.get(formOf(page).action)), []);
});

test("PAGE-D-35, RAR-D-9, PAGE-D-43 each target has limits of its own, and what is ticked of them is in its consent and its tokens", async () => {
  const objects = [
    { type: PAYMENT, most: 100, to: "Ann" },
    { type: PAYMENT, most: 5, to: "Ben" },
  ];
  const form = { authorization_details: JSON.stringify(objects) };
  const job = { title: "x", targets: [LEDGER, BANK, API], scopes: ["pay", "api.write"] };
  const { browser, page } = await pageOf(await asking(job, { user: "elsa", form }), "elsa");
  const shown = shownBy(page.text);
  assert.match(
    shown,
    /Ledger .*? Only for what you tick here .*? up to 100, .*? Bank .*? Only for what you tick here .*? up to 100, /,
  );
  assert.match(
    shown,
    /API \(api\.example\) it asks to write to the API Tick all: 3 permissions, 4 limits “Allow” also means: .*crew\/\* \(td\.example\) .* lets it do what you tick, .* Only for this job, until/,
  );
  const scope = ["pay", `pay ${BANK}`, `api.write ${API}`];
  const lacks = await browser.decide(page, { all: "", scope, detail: ["0"] });
  assert.deepEqual([lacks.status, /A limit is missing/.test(shownBy(lacks.text))], [400, true]);
  // PAGE-D-10, PAGE-D-43: the page begins without a tick, and what was ticked is ticked, and nothing else.
  assert.deepEqual(tickedOn(page), []);
  assert.deepEqual(tickedOn(lacks), [
    ...["scope pay", "detail 0", `scope pay ${BANK}`, `scope api.write ${API}`],
  ]);
  await browser.decide(lacks, { all: "", scope, detail: ["0", `1 ${BANK}`] });
  const id = idOf(await last("job.approved"));
  const detailsAt = async (target: string): Promise<unknown> => {
    const answer = await ask({
      user: "elsa",
      target,
      scope: target === API ? "api.write" : "pay",
      form: { mandate_job: id },
    });
    assert.equal(answer.status, 200, answer.text);
    return answer.body.authorization_details;
  };
  assert.deepEqual(await detailsAt(LEDGER), [objects[0]]);
  assert.deepEqual(await detailsAt(BANK), [objects[1]]);
  assert.equal(await detailsAt(API), undefined);
});

test("PAGE-D-32, PAGE-D-35 a page tells one end, above the buttons: that of the job, as a time", async () => {
  const notAfter = Math.floor(Date.now() / 1000) + 7200;
  const { page } = await pageOf(await asking({ title: "two hours", notAfter }, { user: "fay" }), "fay");
  const ends = [...page.text.matchAll(/<time datetime="([^"]*)"/g)].map(
    ([, at = ""]) => Date.parse(at) / 1000,
  );
  assert.deepEqual(ends, [notAfter]);
  assert.match(
    shownBy(page.text),
    /Only for this job, until (today|tomorrow), \d\d:\d\d UTC \(in 2 h\) \. Take it back in your account at any time\. Refuse Allow/,
  );
  assert.ok(page.text.indexOf("<time") < page.text.indexOf('name="decision"'));
});

const NAMES: Readonly<Record<string, JsonObject>> = {
  "a sentence": { agents: ["This program was checked and is safe to allow."] },
  "an agent that no rule of the target knows": { agents: [workload("agents/other")] },
  "an agent of another target": { agents: [CREW] },
  "a URL with a sentence": { agents: ["https://agents.example/ is checked"] },
  "a scope that no target has": { scopes: ["pay", "only.read.and.never.write"] },
  "a scope of another target": { scopes: ["api.write"] },
};
for (const [what, wrong] of Object.entries(NAMES)) {
  test(`JOB-D-26 a mandate_job_request that names ${what} is malformed, in an exchange and at /authorize, and no user is asked`, async () => {
    const refused = await asking({ title: "x", targets: [LEDGER], ...wrong }, { user: "hal" });
    assert.deepEqual([refused.status, refused.body.error, linkIn(refused)], [400, "invalid_request", ""]);
    assert.equal((await last("token_exchange.denied")).reason, "job_request_malformed");
    const browser = new Browser(service, provider);
    const text = JSON.stringify({ title: "x", ...wrong });
    const answer = await browser.authorize(request(verifierOf(), { mandate_job_request: text }));
    assert.equal(parametersOf(await browser.follow(answer)).error, "invalid_request");
  });
}

test("JOB-D-26 agents that a rule of a named target knows by name or by prefix, the asker and scopes of a target are taken", async () => {
  const job = {
    title: "x",
    targets: [LEDGER, API],
    agents: [PLANNER, BOOKING, CREW],
    scopes: ["pay", "api.write"],
  };
  assert.notEqual(linkIn(await asking(job, { user: "ida" })), "");
});

test("PAGE-D-35, JOB-D-8 a client of people whose job names another target gets its code for what is ticked at its own", async () => {
  const [browser, verifier] = [new Browser(service, provider), verifierOf()];
  const job = {
    title: "tidy up",
    targets: [NOTES, LEDGER],
    agents: [PLANNER],
    scopes: ["notes.read", "pay"],
  };
  const asked = request(verifier, { scope: "notes.read", mandate_job_request: JSON.stringify(job) });
  const page = await browser.review(asked, "jo");
  assert.match(shownBy(page.text), /read your notes .*pay invoices .*Agents that may help .*agents\/planner/);
  const back = await browser.decide(page, { all: "", scope: ["notes.read"] });
  const answer = await redeem(service, parametersOf(back).code ?? "", verifier);
  assert.equal(claimsOf(answer.body.access_token).scope, "notes.read");
  assert.deepEqual(await consentsOf("jo"), [`${PRIVATE} ${NOTES} notes.read`]);
});
