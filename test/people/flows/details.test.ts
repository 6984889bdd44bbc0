/** RFC 9396 where users are asked: what the page shows of `authorization_details`, and what a click, a code and a family keep. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, encodeForm } from "../../../scripts/http-client.ts";
import { asOperator, exchange, linkIn, PLANNER } from "../../support/asking-agents.ts";
import { forDeferral, outcome, poll, waitFor } from "../../support/deferral.ts";
import { shownBy } from "../../support/markup.ts";
import {
  AS_WEB,
  type Asked,
  Browser,
  files,
  formOf,
  locationOf,
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
import { claimsOf, type Event, type Form, ISSUER } from "../../support/world.ts";

const NOTEBOOK = "notebook";
const SECRET_NOTE = "secret-note";
const TRIP = "trip";

const notebookType = {
  title: { en: "Notebooks", de: "Notizbücher" },
  governs: ["notes.read", "notes.write"],
  fields: {
    path: { is: "string", narrows: "prefix", label: { en: "under", de: "unter" } },
    name: { is: "string", narrows: "equal", label: "called" },
    most: { is: "integer", narrows: "max" },
    until: { is: "seconds", narrows: "not-after", label: "until" },
  },
};
const secretType = {
  governs: ["notes.read"],
  pushed: true,
  fields: { id: { is: "string", narrows: "equal" } },
};
const tripType = {
  governs: ["trips.book"],
  fields: {
    city: { is: "string", narrows: "equal" },
    most: { is: "decimal", narrows: "max", unit: "currency" },
    currency: { is: "string", narrows: "equal" },
  },
};

let provider: TestProvider;
let service: Awaited<ReturnType<typeof makeService>>;

before(async () => {
  provider = await startProvider();
  const base = forDeferral(provider);
  const [apps] = base.policies;
  service = await makeService(
    {
      ...base,
      targets: base.targets.map((target) =>
        target.names.includes(NOTES)
          ? { ...target, details: { [NOTEBOOK]: notebookType, [SECRET_NOTE]: secretType } }
          : { ...target, details: { [TRIP]: tripType } },
      ),
      policies: [
        { ...apps, refresh: true, details: [{ type: NOTEBOOK, path: "/team" }] },
        ...base.policies.slice(1),
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const browse = (): Browser => new Browser(service, provider);
type Detail = Record<string, unknown>;
const plan = (fields: object): Detail => ({ type: NOTEBOOK, ...fields });
const asking = (verifier: string, details: readonly Detail[] | string, extra: Asked = {}): Asked =>
  request(verifier, {
    authorization_details: typeof details === "string" ? details : JSON.stringify(details),
    ...extra,
  });

const refresh = (refresh_token: unknown, more: Form = {}): Promise<Answer> =>
  service.token({ grant_type: "refresh_token", refresh_token: String(refresh_token), ...more }, AS_WEB);
const of = (answer: Answer): unknown => {
  assert.equal(answer.status, 200, answer.text);
  const { authorization_details: told } = answer.body as { authorization_details?: unknown };
  assert.deepEqual(claimsOf(answer.body.access_token).authorization_details, told);
  return told;
};
const written = (...details: readonly Detail[]): Record<string, string> => ({
  authorization_details: JSON.stringify(details),
});
const WRONG = "invalid_authorization_details";
const lastOf = async (type: string): Promise<Event | undefined> =>
  (await service.events()).filter((one) => one.type === type).at(-1);

/** A form with the objects at these places, and all scopes; the box for everything takes all objects too. */
const picked = (page: Answer, detail: readonly string[]): Asked => ({
  all: "",
  scope: formOf(page).scopes,
  detail,
});

/** The code of a user who allowed the objects at these places, and all scopes. */
async function codeFor(
  details: readonly Detail[],
  ticked: readonly string[],
  user: string,
): Promise<{ code: string; verifier: string }> {
  const [browser, verifier] = [browse(), verifierOf()];
  const page = await browser.review(asking(verifier, details), user);
  const { code = "" } = parametersOf(await browser.decide(page, picked(page, ticked)));
  return { code, verifier };
}

test("RFC9396-3-1, RFC9396-3.1-2, RAR-D-9 the page shows every object with each field by the operator's label, in the language of the page", async () => {
  const details = [
    plan({ path: "/team/a", name: "Plan", most: 5, until: 1_800_000_000 }),
    plan({ path: "/home" }),
  ];
  const [browser, verifier] = [browse(), verifierOf()];
  const page = await browser.review(asking(verifier, details), "alice");
  const shown = shownBy(page.text);
  assert.match(
    shown,
    /Notebooks: only under “\/team\/a”, only called “Plan”, only most up to 5, only until January 15, 2027/,
  );
  // What the rule does not have is not offered.
  assert.doesNotMatch(shown, /\/home/);
  const german = await browser.get(locationOf(await browser.authorize(asking(verifier, details))), {
    "accept-language": "de",
  });
  assert.match(shownBy(german.text), /Notizbücher: nur unter „\/team\/a“, nur called „Plan“/);
});

test("RFC9396-12-1, RAR-D-9 a value that plays the page is shown whole, as text in quotation marks with codes", async () => {
  const name = "” and </span><b>all</b> of \u202eit\u0000 \\ \u200b";
  const browser = browse();
  const page = await browser.review(asking(verifierOf(), [plan({ path: "/team", name })]), "alice");
  assert.doesNotMatch(page.text, /<b>|\u202e|\u200b|\0/);
  assert.ok(
    shownBy(page.text).includes("“\\u{201d} and </span><b>all</b> of \\u{202e}it\\u{0} \\u{5c} \\u{200b}”"),
    shownBy(page.text),
  );
});

test("RFC9396-3-2, RFC9396-7-1, RAR-D-10 the user takes one object away, and consent and token have the others", async () => {
  const details = [plan({ path: "/team/a" }), plan({ path: "/team/b" })];
  const { code, verifier } = await codeFor(details, ["1"], "alice");
  const answer = await redeem(service, code, verifier);
  assert.deepEqual(of(answer), [plan({ path: "/team/b" })]);
  const consent = await lastOf("consent.recorded");
  assert.deepEqual(Object(consent?.detail).authorization_details, [plan({ path: "/team/b" })]);
});

test("RAR-D-3, RAR-D-9, PAGE-D-11 without any object of a type nothing is given, whatever scopes are ticked: the page asks for a limit", async () => {
  for (const ticked of [[], ["2"], ["-1"], ["x"], ["0.5"]]) {
    const browser = browse();
    const page = await browser.review(asking(verifierOf(), [plan({ path: "/team/a" })]), "alice");
    const answer = await browser.decide(page, picked(page, ticked));
    assert.deepEqual([answer.status, locationOf(answer)], [400, ""], ticked.join());
    assert.match(shownBy(answer.text), /A limit is missing/);
  }
});

test("RFC9396-6.1-2, RFC9396-11.2-1 a token may have less than the user gave, and the family keeps all of it", async () => {
  const given = plan({ path: "/team/a" });
  const { code, verifier } = await codeFor([given], ["0"], "bob");
  const narrower = plan({ path: "/team/a/b" });
  const first = await redeem(service, code, verifier, written(narrower));
  assert.deepEqual(of(first), [narrower]);
  const token = first.body.refresh_token;
  assert.deepEqual(of(await refresh(token)), [given]);
  assert.deepEqual(of(await refresh(token, written(plan({ path: "/team/a/c", most: 1 })))), [
    plan({ path: "/team/a/c", most: 1 }),
  ]);
  for (const wider of [plan({ path: "/team" }), plan({ path: "/team/ab" }), plan({})]) {
    const answer = await refresh(token, written(wider));
    assert.deepEqual([answer.status, answer.body.error], [400, WRONG]);
  }
});

test("RAR-D-3 a code that is redeemed for more than the user gave gives nothing, and is used up", async () => {
  const { code, verifier } = await codeFor([plan({ path: "/team/a" })], ["0"], "bob");
  const wider = await redeem(service, code, verifier, written(plan({ path: "/team" })));
  assert.deepEqual([wider.status, wider.body.error], [400, WRONG]);
});

test("RAR-D-10 consents to other objects stand beside each other, and one without objects widens none", async () => {
  const consents = async (): Promise<Detail[]> => {
    const query = new URLSearchParams({ iss: provider.issuer, sub: "carol" });
    return (await asOperator(service, `/consents?${query}`)).body.consents as unknown as Detail[];
  };
  const [a, b] = [plan({ path: "/team/a" }), plan({ path: "/team/b" })];
  const first = await codeFor([a], ["0"], "carol");
  const second = await codeFor([b], ["0"], "carol");
  const limits = (await consents()).map((one) => JSON.stringify(one.authorization_details));
  assert.deepEqual(limits.sort(), [JSON.stringify([a]), JSON.stringify([b])]);
  assert.deepEqual(of(await redeem(service, first.code, first.verifier)), [a]);
  assert.deepEqual(of(await redeem(service, second.code, second.verifier)), [b]);
  // The same object once more is the next version of its consent.
  await codeFor([a], ["0"], "carol");
  assert.deepEqual((await consents()).map(({ version }) => version).sort(), [1, 2]);
});

const TOLD: readonly (readonly [string, string])[] = [
  ["RFC9396-5-1 an unknown type", '[{"type":"unknown"}]'],
  ["RFC9396-5-1 a type of another target", `[{"type":"${TRIP}","city":"Rome"}]`],
  ["RFC9396-5-2 an unknown field", `[{"type":"${NOTEBOOK}","x":1}]`],
  ["RFC9396-5-2 a path that climbs", `[{"type":"${NOTEBOOK}","path":"/team/../home"}]`],
  ["RAR-D-12 an empty array", "[]"],
  ["RAR-D-12 a deep one", `${"[".repeat(2_000)}`],
];
for (const [name, text] of TOLD) {
  test(`${name} is refused at /authorize and at /par, before a user sees it`, async () => {
    const query = asking(verifierOf(), text);
    const answer = await browse().authorize(query);
    assert.equal(parametersOf(answer).error, WRONG, answer.text);
    const pushed = await service.get("/par", {
      method: "POST",
      headers: {
        ...AS_WEB,
        "content-type": "application/x-www-form-urlencoded",
      },
      body: encodeForm(query),
    });
    assert.deepEqual([pushed.status, pushed.body.error], [400, WRONG]);
  });
}

test("RFC9396-12-3 an object of a type that has to be pushed is refused in the browser, and asked for when pushed", async () => {
  const details = [{ type: SECRET_NOTE, id: "n-1" }, plan({ path: "/team" })];
  const browser = browse();
  const open = await browser.review(asking(verifierOf(), details), "alice");
  assert.equal(parametersOf(open).error, "access_denied");
  assert.equal((await lastOf("authorization.denied"))?.reason, "request_not_pushed");
  const verifier = verifierOf();
  const pushed = await service.get("/par", {
    method: "POST",
    headers: {
      ...AS_WEB,
      "content-type": "application/x-www-form-urlencoded",
    },
    body: encodeForm(asking(verifier, details)),
  });
  assert.equal(pushed.status, 201, pushed.text);
  const reference = { client_id: PRIVATE, request_uri: String(pushed.body.request_uri) };
  const page = await browser.review(reference, "alice");
  const { code = "" } = parametersOf(await browser.decide(page, { detail: ["0", "1"] }));
  assert.deepEqual(of(await redeem(service, code, verifier)), details);
});

test("RFC9396-13-2 no URL of a page has the details, and no page is loaded with a referrer", async () => {
  const browser = browse();
  const answer = await browser.authorize(asking(verifierOf(), [plan({ path: "/team/payroll" })]));
  assert.doesNotMatch(locationOf(answer), /payroll|notebook/);
  const page = await browser.signIn(answer, "alice");
  assert.equal(page.headers["referrer-policy"], "no-referrer");
  assert.match(page.text, /payroll/);
});

// --- ask your user ----------------------------------------------------------------------------------------------

const trip = (fields: object): Detail => ({ type: TRIP, ...fields });

test("RAR-D-10 an agent's question is about these objects: another object is another link, and the same one the same", async () => {
  const ask = (details: Detail): Promise<Answer> =>
    exchange(service, provider, { user: "dora", scope: "trips.book", form: written(details) });
  const [first, again, other] = [
    await ask(trip({ city: "Rome" })),
    await ask(trip({ city: "Rome" })),
    await ask(trip({ city: "Oslo" })),
  ];
  assert.equal(linkIn(first), linkIn(again));
  assert.notEqual(linkIn(first), linkIn(other));
  const browser = browse();
  const page = await browser.signIn(await browser.get(linkIn(first)), "dora");
  // RAR-D-9: an amount that could be limited and is not is told.
  assert.match(shownBy(page.text), /trip: only city “Rome” No limit named for the amount\./);
  const bounded = await ask(trip({ city: "Bern", most: "5", currency: "EUR" }));
  const shown = shownBy((await browser.get(linkIn(bounded))).text);
  assert.match(shown, /trip: only city “Bern”, only most up to EUR 5\.00/);
  assert.doesNotMatch(shown, /No limit named/);
  const done = await browser.decide(page, { detail: "0" });
  assert.equal(done.status, 200, done.text);
  assert.deepEqual(of(await ask(trip({ city: "Rome" }))), [trip({ city: "Rome" })]);
  // The consent to one city is none to another, which may be asked for.
  assert.notEqual(linkIn(await ask(trip({ city: "Oslo" }))), undefined);
});

test("DTR-D-2, DTR-D-13, RAR-D-10 an agent waits for objects, which are allowed on the page of the question alone, and a poll gives no other", async () => {
  const asked = { user: "gerd", scope: "trips.book", form: written(trip({ city: "Rome" })) };
  const waiting = await waitFor(service, provider, asked);
  const browser = browse();
  const account = await browser.signIn(await browser.get("/account"), "gerd");
  assert.match(shownBy(account.text), /What you are asked/);
  assert.doesNotMatch(account.text, /name="decision"/);
  const [, own = ""] = /href="([^"]*\/ask\?r=[^"]*)"/.exec(account.text) ?? [];
  const page = await browser.get(own);
  assert.match(shownBy(page.text), /trip: only city “Rome”/);
  const wider = await poll(service, waiting, { form: written(trip({ city: "Oslo" })) });
  assert.equal(outcome(wider), "invalid_request");
  assert.equal((await browser.decide(page, { detail: "0" })).status, 200);
  assert.deepEqual(of(await poll(service, waiting)), [trip({ city: "Rome" })]);
});

test("RAR-D-10 a consent that is recorded by API has details of its targets alone, and a change is its next version", async () => {
  const consent = {
    ...{ subject: { iss: provider.issuer, sub: "emil" }, actor: PLANNER, targets: ["booking-agent"] },
    scope: "trips.book",
  };
  const put = (authorization_details: unknown) =>
    asOperator(service, "/consents/by-api", { ...consent, authorization_details }, "PUT");
  for (const wrong of [
    [],
    {},
    "x",
    null,
    [plan({ path: "/a" })],
    [trip({ city: 1 })],
    [trip({ most: "5" })],
  ]) {
    assert.equal((await put(wrong)).status, 400, JSON.stringify(wrong));
  }
  const details = [trip({ city: "Rome" })];
  assert.equal((await put(details)).status, 201);
  const found = (await asOperator(service, "/consents/by-api")).body;
  assert.deepEqual([found.version, found.authorization_details], [1, details]);
  const answer = await exchange(service, provider, { user: "emil", scope: "trips.book" });
  assert.deepEqual(of(answer), details);
  assert.equal((await put([trip({ city: "Oslo" })])).body.version, 2);
});

// --- jobs -------------------------------------------------------------------------------------------------------

test("RAR-D-2, JOB-D-10 what a job is limited to limits all that comes of it, and its trace says so", async () => {
  const origin = { iss: provider.issuer, sub: "fritz" };
  const consent = { subject: origin, actor: PLANNER, targets: ["booking-agent"], scope: "trips.book" };
  assert.equal((await asOperator(service, "/consents/fritz", consent, "PUT")).status, 201);
  const order = { title: "One trip", client: PLANNER, subject: origin };
  const make = (details: unknown) => asOperator(service, "/jobs", { ...order, details });
  for (const wrong of [
    [],
    [{ type: "unknown" }],
    [trip({ city: 5 })],
    "x",
    [trip({ most: "1e3", currency: "EUR" })],
  ]) {
    const answer = await make(wrong);
    assert.equal(answer.status, 400, JSON.stringify(wrong));
  }
  const made = await make([trip({ city: "Rome" })]);
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(made.body.authorization_details, [trip({ city: "Rome" })]);
  const job = String(made.body.id);
  const inJob = (...details: readonly Detail[]): Promise<Answer> =>
    exchange(service, provider, {
      ...{ user: "fritz", scope: "trips.book" },
      form: { mandate_job: job, ...(details.length > 0 ? written(...details) : {}) },
    });
  assert.deepEqual(of(await inJob()), [trip({ city: "Rome" })]);
  assert.deepEqual(of(await inJob(trip({ most: "90", currency: "EUR" }))), [
    trip({ city: "Rome", most: "90", currency: "EUR" }),
  ]);
  const other = await inJob(trip({ city: "Oslo" }));
  assert.deepEqual([other.status, other.body.error], [400, WRONG]);
  const denied = await lastOf("token_exchange.denied");
  assert.equal(denied?.reason, "details_empty");
  assert.match(
    JSON.stringify(denied?.policy),
    /"type":"trip","index":0,"at":"job"|"at":"job","index":0,"type":"trip"/,
  );
  const explained = await asOperator(service, "/policy/explain", {
    ...{ client: PLANNER, actor: PLANNER, target: "booking-agent", scope: "trips.book" },
    subjectClaims: { ...origin, aud: ISSUER, scope: "trips.book", exp: 4_000_000_000, iat: 1 },
    ...{ details: [trip({ city: "Oslo" })], job: { details: [trip({ city: "Rome" })] } },
  });
  assert.deepEqual(
    [explained.body.reason, explained.body.details],
    ["details_empty", [{ type: TRIP, index: 0, fell: "job" }]],
    explained.text,
  );
});

test("RAR-D-9 a job that a user approves is limited to the objects that they left ticked", async () => {
  const asked = {
    user: "gerda",
    scope: "trips.book",
    form: {
      ...written(trip({ city: "Rome" }), trip({ city: "Oslo" })),
      mandate_job_request: JSON.stringify({ title: "Two trips" }),
    },
  };
  const refused = await exchange(service, provider, asked);
  const browser = browse();
  const page = await browser.signIn(await browser.get(linkIn(refused)), "gerda");
  assert.match(shownBy(page.text), /trip: city “Rome”.*trip: city “Oslo”/s);
  await browser.decide(page, picked(page, ["1"]));
  const approved = await lastOf("job.approved");
  assert.deepEqual(Object(approved?.detail).bounds.details, [trip({ city: "Oslo" })]);
  const answer = await exchange(service, provider, asked);
  assert.deepEqual(of(answer), [trip({ city: "Oslo" })]);
  assert.equal(typeof answer.body.mandate_job_id, "string");
});

test("JOB-D-4, RAR-D-12 a request for a job with details that fill more than half of what may wait is asked, bounded by them", async () => {
  const details = Array.from({ length: 4 }, (_, index) =>
    plan({ path: "/team", name: `${index}`.repeat(400) }),
  );
  const asked = { mandate_job_request: JSON.stringify({ title: "Long names" }) };
  const [browser, verifier] = [browse(), verifierOf()];
  const page = await browser.review(asking(verifier, details, asked), "jobst");
  assert.equal(page.status, 200, page.text);
  const { code = "" } = parametersOf(await browser.decide(page, picked(page, ["0", "2"])));
  const answer = await redeem(service, code, verifier);
  assert.deepEqual(of(answer), [details[0], details[2]]);
  const { title, bounds } = ((await lastOf("job.approved"))?.detail ?? {}) as Record<string, unknown>;
  assert.equal(title, "Long names");
  assert.deepEqual((bounds as { details: unknown }).details, of(answer));
});

test("RAR-D-9 a mandate_job_request with details of its own, which no page would show, is refused", async () => {
  const mandate_job_request = JSON.stringify({ title: "Trips", details: [trip({ city: "Rome" })] });
  const answer = await exchange(service, provider, {
    user: "hans",
    scope: "trips.book",
    form: { mandate_job_request },
  });
  assert.equal(answer.status, 400);
  assert.equal((await lastOf("token_exchange.denied"))?.reason, "job_request_malformed");
});
