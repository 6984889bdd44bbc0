/** The account page: what a user reads of themselves, what they take back, and what they learn of others. */
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, test } from "node:test";
import { type Answer, encodeForm } from "../../../scripts/http-client.ts";
import { ACCOUNT_CONSENTS, ACCOUNT_EVENTS, ACCOUNT_STRETCH } from "../../../src/limits/people.ts";
import { parseMarkup, shownBy, withoutId } from "../../support/markup.ts";
import {
  type Asked,
  Browser,
  files,
  forPeople,
  LOOPBACK_REDIRECT,
  locationOf,
  NOTES,
  PRIVATE,
  PUBLIC,
  redeem,
  request,
  SCOPES,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { ACCESS_TOKEN, type Event, EXCHANGE, ISSUER, type Service, workload } from "../../support/world.ts";

const DESK = "https://desk.example";
const OF_PUBLIC = { client_id: PUBLIC, redirect_uri: LOOPBACK_REDIRECT };
let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  const exchange = {
    allow: "delegation",
    subjects: { issuers: [provider.issuer] },
    targets: [DESK],
    scopes: SCOPES,
    consent: "implied",
    acknowledge: "subjects-not-asked",
  };
  const [notes = assert.fail()] = base.targets;
  service = await makeService(
    {
      ...base,
      targets: [
        { ...notes, owners: [workload("agents/sorting")] },
        { ...notes, names: [DESK], title: "Desk", owners: [workload("agents/filing")] },
      ],
      policies: [
        ...base.policies,
        ...base.policies.map((rule) => ({ ...rule, id: "app-goes-on", clients: [PUBLIC], refresh: true })),
        {
          id: "admin",
          allow: "client_credentials",
          actors: [workload("ops/admin")],
          targets: [`${ISSUER}/api`],
          scopes: ["consent:manage", "token:revoke"],
        },
        {
          ...exchange,
          id: "sorts",
          actors: [workload("agents/sorting")],
          subjectToken: { audiences: ["self"] },
        },
        {
          ...exchange,
          id: "files",
          actors: [workload("agents/filing")],
          subjectToken: { audiences: ["self"] },
          lifetimeSeconds: 900,
        },
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

/** A browser at its account page, after the sign-in. */
async function account(user: string): Promise<{ browser: Browser; page: Answer }> {
  const browser = new Browser(service, provider);
  const page = await browser.signIn(await browser.get("/account"), user);
  assert.equal(page.status, 200, page.text);
  return { browser, page };
}

/** The user allows the client, which gets a token; `scope` is what they tick. */
async function allow(
  user: string,
  browser = new Browser(service, provider),
  form: Asked = {},
): Promise<string> {
  const verifier = verifierOf();
  const code = await browser.codeFor(request(verifier), user, form);
  const token = await redeem(service, code, verifier);
  assert.equal(token.status, 200, token.text);
  return String(token.body.access_token);
}

async function exchange(path: string, subject_token: string, target = DESK): Promise<Answer> {
  const svid = await service.svid(path);
  return service.token({
    ...service.as(svid),
    grant_type: EXCHANGE,
    subject_token,
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: "urn:ietf:params:oauth:token-type:jwt",
    audience: target,
  });
}

type AccountForm = { consent?: string; all?: string; token: string };

/** The forms by which something is taken back, in the order of the page. */
const formsOf = ({ text }: Answer): AccountForm[] =>
  [...text.matchAll(/<form method="post" action="[^"]*\/account\/withdraw">([\s\S]*?)<\/form>/g)].map(
    ([, inner = ""]) =>
      Object.fromEntries(
        [...inner.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name, value]) => [
          name,
          value,
        ]),
      ),
  );

const last = async (type: string): Promise<Event> =>
  (await service.events()).findLast((event) => event.type === type) ?? assert.fail(`no ${type}`);

const isActive = async (token: string): Promise<boolean> => {
  const svid = await service.svid("agents/sorting");
  const answer = await service.get("/introspect", {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ ...(service.as(svid) as Record<string, string>), token }).toString(),
  });
  return answer.body.active === true;
};

// --- what is shown --------------------------------------------------------------------------------------------------

test("HTTP-D-62, HTTP-D-56, PAGE-D-15 a user reads what they allowed to whom, since when, until when, and when it was used last", async () => {
  const browser = new Browser(service, provider);
  await allow("alice", browser);
  const page = await browser.get("/account");
  const shown = shownBy(page.text);
  const today = new Intl.DateTimeFormat("en", { dateStyle: "long", timeZone: "UTC" }).format(Date.now());
  for (const part of [
    "Signed in as alice (alice of the company)",
    "Web app ID: web-app At Notes (notes.example) it may read your notes change your notes",
    `Allowed since ${today}`,
    "Lasts until ",
    "Last used: today, ",
    "These may act for you without asking spiffe://td.example/agents/sorting",
    // The longest lifetime of a rule.
    "up to 15 minutes later",
  ]) {
    assert.ok(shown.includes(part), `${part}: ${shown}`);
  }
});

const AGENT = workload("agents/asking");

/** Records a consent of the provider's user by the API, as an administrator. */
async function record(sub: string, id: string, extra: object = {}): Promise<void> {
  const body = {
    subject: { iss: provider.issuer, sub },
    actor: AGENT,
    targets: [NOTES],
    scope: "notes.read",
    ...extra,
  };
  const answer = await api("PUT", `/consents/${encodeURIComponent(id)}`, body);
  assert.equal(answer.status, 201, answer.text);
}

async function api(method: string, path: string, body: object): Promise<Answer> {
  const svid = await service.svid("ops/admin");
  const token = await service.token({
    ...service.as(svid),
    grant_type: "client_credentials",
    resource: `${ISSUER}/api`,
    scope: "consent:manage token:revoke",
  });
  const headers = { authorization: `Bearer ${token.body.access_token}`, "content-type": "application/json" };
  return service.get(path, { method, headers, body: JSON.stringify(body) });
}

test("HTTP-D-55, PAGE-D-15, PROD-2.6-4 a consent that an administrator recorded is shown and taken back like one of the page", async () => {
  await record("paula", "by-admin");
  // The same name at another issuer is another user.
  await service.consent("paula", "agents/other", NOTES, ["notes.read"]);
  const { browser, page } = await account("paula");
  const shown = shownBy(page.text);
  assert.ok(
    shown.includes(
      `${AGENT} At Notes (notes.example) it may read your notes Lasts until you take it back. No use on record.`,
    ),
    shown,
  );
  assert.ok(
    /spiffe:\/\/td\.example\/agents\/asking Allowed \d\d:\d\d UTC read your notes · Notes \(notes\.example\) An administrator gave it permission in your name\./u.test(
      shown,
    ),
    shown,
  );
  assert.doesNotMatch(page.text, /agents\/other/);
  const [form = assert.fail()] = formsOf(page);
  assert.equal(form.consent, "by-admin");
  assert.equal((await browser.post("/account/withdraw", form)).status, 303);
  const { reason, subject } = await last("consent.withdrawn");
  assert.deepEqual([reason, (subject as { sub: string }).sub], ["by_subject", "paula"]);
  const after = shownBy((await browser.get("/account")).text);
  assert.ok(after.includes("You allow nothing to any agent at present."), after);
  assert.ok(
    /spiffe:\/\/td\.example\/agents\/asking Ended \d\d:\d\d UTC read your notes · Notes \(notes\.example\) You took back its permission\./u.test(
      after,
    ),
    after,
  );
});

test("HTTP-D-59, PAGE-D-15, PAGE-D-31 what was done in the name of a user is shown with the chain of agents, and to that user alone", async () => {
  const { browser } = await account("nadia");
  const token = await allow("nadia", browser);
  const first = await exchange("agents/sorting", token);
  const second = await exchange("agents/filing", String(first.body.access_token));
  assert.equal(second.status, 200, second.text);
  const refused = await exchange("agents/filing", token, NOTES);
  assert.equal(refused.status, 400);
  const { text } = await browser.get("/account");
  const shown = shownBy(text);
  const [sorting, filing] = [workload("agents/sorting"), workload("agents/filing")];
  const order = [
    // By agent, and of each the newest first.
    `${filing} Refused`,
    `Notes (notes.example) The rules of this service do not permit it. Web app passed this to filing (td.example). Details`,
    `read your notes; change your notes · Desk (desk.example) sorting (td.example) passed this to filing (td.example). Details`,
    `${sorting} Access`,
    `read your notes; change your notes · Desk (desk.example) Web app passed this to sorting (td.example). Details`,
    "Web app ID: web-app Access",
    "read your notes; change your notes · Notes (notes.example) Allowed",
    "You gave it permission.",
    "Yourself Sign-in",
    "You signed in here.",
  ];
  let at = 0;
  for (const part of order) {
    const found = shown.indexOf(part, at);
    assert.ok(found >= 0, `${part}: ${shown.slice(at)}`);
    at = found;
  }
  // No token, jti or secret: of the whole trail, neither the ids of tokens nor the digests of cookies.
  for (const { granted, subject } of await service.events()) {
    const { jti, fingerprint } = (subject as { token?: { jti?: string; fingerprint?: string } })?.token ?? {};
    for (const secret of [granted?.jti, jti, fingerprint]) assert.ok(!secret || !text.includes(secret));
  }
  const other = await account("oscar");
  assert.doesNotMatch(shownBy(other.page.text), /[Aa]cted|[Rr]eceived|permission\.|nadia/);
});

test("PAGE-D-15 a user who acts for others under their own name reads nothing of them", async () => {
  // A client whose id is the name of a user: only the subject of an event counts.
  const { browser, page } = await account(PRIVATE);
  assert.doesNotMatch(shownBy(page.text), /[Rr]eceived|permission\./);
  assert.equal((await browser.get("/account")).status, 200);
});

test("HTTP-D-60, PAGE-D-15, AUDIT-D-6 reading is on record, with the range, before anything is shown", async () => {
  const { browser } = await account("rita");
  await browser.get("/account?from=2026-01-01&to=2026-01-31");
  const { type, reason, subject, detail } = await last("admin.access");
  assert.deepEqual([type, reason, (subject as { sub: string }).sub], ["admin.access", "by_subject", "rita"]);
  assert.deepEqual(detail, {
    query: { fromMs: Date.UTC(2026, 0, 1), toMs: Date.UTC(2026, 1, 1) },
    continued: false,
  });
});

test("HTTP-D-60, PAGE-D-15 the events of a user are shown by page and by range", async () => {
  const { browser } = await account("tess");
  const count = ACCOUNT_EVENTS + 3;
  for (let index = 0; index < count; index++) await record("tess", `tess-${index}`);
  const entries = ({ text }: Answer): number =>
    [...text.matchAll(/<span class="time">(.*?)(?: \((\d+) entries\))?<\/span>/g)].reduce(
      (sum, [, times = "", count = times.split("<time").length - 1]) => sum + Number(count),
      0,
    );
  const first = await browser.get("/account");
  assert.equal(entries(first), ACCOUNT_EVENTS);
  const older = wayTo(first, "Older entries");
  const next = await browser.get(older);
  // The sign-in is one of them.
  assert.equal(entries(next), 4);
  assert.match(shownBy(next.text), /You signed in here/);
  assert.equal(wayTo(next, "Newest entries"), `${ISSUER}/account?`);
  // The consents have pages too.
  assert.equal(formsOf(first).length, ACCOUNT_CONSENTS + 1);
  const more = await browser.get(wayTo(first, "More of what you allowed"));
  const ids = [first, more].flatMap((page) => formsOf(page).flatMap(({ consent }) => consent ?? []));
  assert.equal(new Set(ids).size, count);
  assert.equal(wayTo(more, "What you allowed, from the start"), `${ISSUER}/account?`);
  // A link that leads behind the last one does not make it seem that nothing is allowed.
  assert.equal(formsOf(await browser.get("/account?after=zzzz")).length, ACCOUNT_CONSENTS + 1);
  const today = new Date().toISOString().slice(0, 10);
  assert.equal(entries(await browser.get(`/account?from=${today}&to=${today}`)), ACCOUNT_EVENTS);
  const before = await browser.get("/account?to=2026-01-01");
  assert.equal(entries(before), 0);
  assert.match(before.text, /type="date" name="to" value="2026-01-01"/);
  // A cursor of another user, another range, or with a changed seal, is refused.
  const cursor = new URL(older).searchParams.get("before") ?? "";
  const other = await account("ute");
  for (const [who, query] of [
    [other.browser, `before=${cursor}`],
    [browser, `before=${cursor}&from=${today}`],
    [browser, `before=x${cursor}`],
    [browser, `before=${cursor.split(".")[0]}`],
  ] as const) {
    assert.equal((await who.get(`/account?${query}`)).status, 403, query);
  }
});

test("HTTP-D-59, PAGE-D-15 what a user does not read of the trail hides nothing behind it", async () => {
  const { browser } = await account("olga");
  await record("olga", "of-olga");
  // Each look at the page is an event that it does not list.
  for (let look = 0; look <= ACCOUNT_STRETCH; look++) await browser.get("/account");
  const { text } = await browser.get("/account");
  assert.match(shownBy(text), /An administrator gave it permission .* You signed in here/);
  assert.doesNotMatch(text, /Older entries/);
});

const wayTo = ({ text }: Answer, words: string): string =>
  new RegExp(`href="([^"]*)">${words}`).exec(text)?.[1]?.replaceAll("&#38;", "&") ??
  assert.fail(`no ${words}: ${text}`);

test("PAGE-D-30 a user reads times in the zone of their account, with UTC in the title, and asks for days of that zone", async () => {
  provider.lies = { claims: (claims) => ({ ...claims, zoneinfo: "Pacific/Kiritimati" }) };
  const { browser, page } = await account("kiri");
  provider.lies = {};
  assert.match(shownBy(page.text), /Times are those of Pacific\/Kiritimati\./);
  // Fourteen hours ahead, so that the two are never the same hour.
  const [, title = "", hour] =
    /title="([^"]*)">(\d\d):\d\d<\/time><\/span><div>\s*<p class="hint">You signed in here/.exec(page.text) ??
    [];
  assert.match(title, /^\d{4}-\d\d-\d\dT.*Z$/);
  assert.equal(Number(hour), (new Date(title).getUTCHours() + 14) % 24);
  await browser.get("/account?from=2026-01-01&to=2026-01-01");
  const [fromMs, toMs] = [Date.UTC(2025, 11, 31, 10), Date.UTC(2026, 0, 1, 10)];
  assert.deepEqual((await last("admin.access")).detail, { query: { fromMs, toMs }, continued: false });
});

for (const zoneinfo of ["Mars/Olympus", "+01:00", "<b>", "A".repeat(65), 1, ["Europe/Berlin"]]) {
  test(`PAGE-D-30 the zone ${JSON.stringify(zoneinfo).slice(0, 20)} of an account is none, and times are UTC`, async () => {
    provider.lies = { claims: (claims) => ({ ...claims, zoneinfo }) };
    const { page } = await account("zoe");
    provider.lies = {};
    assert.match(shownBy(page.text), /Times are UTC/);
  });
}

const UNREAD = /Filter by date A day is not valid\. Write each day as in 2027-01-31/;
const TURNED = /Filter by date The first day is after the last\. Choose an earlier first day/;
for (const [days, want] of [
  ["from=tomorrow", UNREAD],
  ["to=2026-02-30", UNREAD],
  ["from=2026-02-02&to=2026-02-01", TURNED],
  ["from=<b>", UNREAD],
] as const) {
  test(`WCAG-3.3.1-1 the days ${days} are refused at their fields with what to do, and show no events`, async () => {
    const { browser } = await account("vera");
    const page = await browser.get(`/account?${days.replace("<", "%3C")}`);
    assert.equal(page.status, 400);
    const shown = shownBy(page.text);
    assert.match(shown, want);
    assert.doesNotMatch(shown, /You signed in here/);
    assert.doesNotMatch(page.text, /value="(?!\d{4}-\d\d-\d\d")[^"]*(?:tomorrow|02-30|b&#62;)/);
    parseMarkup(page.text);
  });
}

test("HTTP-D-57, PAGE-D-15, REFRESH-D-7, REFRESH-D-15 a client that goes on while the user is away is shown with its end, what ended by a second use with a note, and all ends with the consent", async () => {
  const { browser } = await account("rhea");
  const start = async (): Promise<string> => {
    const verifier = verifierOf();
    const asked = { ...OF_PUBLIC, scope: "notes.read offline_access" };
    const code = await browser.codeFor(request(verifier, asked));
    return tokenOf(await redeem(service, code, verifier, OF_PUBLIC, {}));
  };
  const refresh = (refresh_token: string): Promise<Answer> =>
    service.token({ grant_type: "refresh_token", refresh_token, client_id: PUBLIC });
  const tokenOf = ({ status, text, body }: Answer): string => {
    assert.equal(status, 200, text);
    return String(body.refresh_token);
  };
  const shown = async (): Promise<string> => shownBy((await browser.get("/account")).text);
  const day = (days: number): string =>
    new Intl.DateTimeFormat("en", { dateStyle: "long", timeZone: "UTC" }).format(
      Date.now() + days * 86_400_000,
    );

  const first = await start();
  const goesOn = `Goes on while you are away Since ${day(0)}, last used on ${day(0)}, until ${day(30)}. Without use it ends on ${day(7)}.`;
  assert.ok((await shown()).includes(goesOn), await shown());
  const second = tokenOf(await refresh(first));
  const third = tokenOf(await refresh(second));
  const agent = new Agent({ localAddress: "127.0.0.2" });
  const elsewhere = await service.get("/token", {
    agent,
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm({ grant_type: "refresh_token", refresh_token: first, client_id: PUBLIC }),
  });
  assert.equal(elsewhere.status, 400);
  const after = await shown();
  assert.ok(after.includes(`On ${day(0)} this agent was signed out`), after);
  assert.ok(!after.includes("Goes on while you are away"), after);
  assert.equal((await refresh(third)).status, 400);

  const again = await start();
  const page = await browser.get("/account");
  assert.ok(shownBy(page.text).includes(goesOn));
  for (const token of [first, second, third, again]) assert.ok(!page.text.includes(token));
  const [form = assert.fail()] = formsOf(page);
  assert.equal((await browser.post("/account/withdraw", form)).status, 303);
  assert.equal((await refresh(again)).status, 400);
  assert.ok((await shown()).includes("You allow nothing"));
});

// --- what is taken back ---------------------------------------------------------------------------------------------

test("PAGE-D-16, PAGE-D-12, WCAG-3.3.4-1 what is taken back ends with every token beneath it, before the answer, and can be given again", async () => {
  const { browser } = await account("alma");
  const token = await allow("alma", browser);
  const beneath = String((await exchange("agents/sorting", token)).body.access_token);
  assert.deepEqual([await isActive(token), (await exchange("agents/filing", beneath)).status], [true, 200]);
  const [form = assert.fail()] = formsOf(await browser.get("/account"));
  const { version } = (await last("consent.recorded")).detail as { version: number };
  const answer = await browser.post("/account/withdraw", form);
  assert.deepEqual([answer.status, locationOf(answer)], [303, `${ISSUER}/account`]);
  assert.equal(version, 1);
  assert.deepEqual([await isActive(token), (await exchange("agents/filing", beneath)).status], [false, 400]);
  assert.equal((await exchange("agents/sorting", token)).status, 400);
  assert.ok(await isActive(await allow("alma", browser)));
});

test("HTTP-D-61, PAGE-D-16 all is taken back at once, on however many pages it is, and of no other user", async () => {
  const { browser } = await account("ben");
  const token = await allow("ben", browser);
  for (let index = 0; index <= ACCOUNT_CONSENTS; index++) await record("ben", `ben-${index}`);
  await record("bea", "bea-1");
  const all = formsOf(await browser.get("/account")).find(({ all: is }) => is === "1") ?? assert.fail();
  const without = await browser.post("/account/withdraw", all);
  assert.equal(without.status, 400);
  assert.match(shownBy(without.text), /One box is missing\. Tick “Yes, everything that I allowed/);
  assert.ok(await isActive(token));
  const answer = await browser.post("/account/withdraw", { ...all, confirm: "1" });
  assert.equal(answer.status, 303, answer.text);
  assert.ok(shownBy((await browser.get("/account")).text).includes("You allow nothing"));
  assert.equal(await isActive(token), false);
  assert.equal(formsOf((await account("bea")).page).length, 2);
});

// --- forms that are refused -------------------------------------------------------------------------------------------

/** What a refused form changed: nothing. */
async function stands(id: string, sub: string): Promise<boolean> {
  return formsOf((await account(sub)).page).some(({ consent }) => consent === id);
}

test("PAGE-D-5, PAGE-D-15 a form for the consent of another user is refused like one for a consent that does not exist", async () => {
  await record("carl", "of-carl");
  await record("dana", "of-dana");
  const { browser, page } = await account("dana");
  const [own = assert.fail()] = formsOf(page);
  const [carls = assert.fail()] = formsOf((await account("carl")).page);
  const answers = await Promise.all([
    browser.post("/account/withdraw", { ...own, consent: "of-carl" }),
    browser.post("/account/withdraw", { ...own, consent: "of-none" }),
    browser.post("/account/withdraw", carls),
    browser.post("/account/withdraw", { ...carls, token: own.token }),
  ]);
  const [first = assert.fail()] = answers;
  for (const { status, text } of answers) {
    assert.deepEqual([status, withoutId(text)], [403, withoutId(first.text)]);
  }
  assert.deepEqual([await stands("of-carl", "carl"), await stands("of-dana", "dana")], [true, true]);
});

const forged = [
  ["no token", { token: "" }],
  ["a token of our form", { token: "x".repeat(43) }],
  ["the token of all", "all"],
  ["the token of a sign-out", "signout"],
] as const;
for (const [name, change] of forged) {
  test(`PAGE-D-5 a form with ${name} takes nothing back`, async () => {
    const id = `eve-${name.replaceAll(" ", "-")}`;
    await record("eve", id);
    const { browser, page } = await account("eve");
    const form = formsOf(page).find(({ consent }) => consent === id) ?? assert.fail();
    const all = formsOf(page).find(({ all: is }) => is === "1") ?? assert.fail();
    const out = /signout">\s*<input type="hidden" name="token" value="([^"]*)"/.exec(page.text)?.[1] ?? "";
    const token = change === "all" ? all.token : change === "signout" ? out : change.token;
    assert.equal((await browser.post("/account/withdraw", { ...form, token })).status, 403);
    assert.equal(
      (await browser.post("/account/withdraw", { all: "1", confirm: "1", token: form.token })).status,
      403,
    );
    assert.ok(await stands(id, "eve"));
  });
}

test("PAGE-D-5 a form that is sent twice is told that it was done before, and recorded", async () => {
  await record("fay", "of-fay");
  const { browser, page } = await account("fay");
  const [form = assert.fail()] = formsOf(page);
  const both = await Promise.all([
    browser.post("/account/withdraw", form),
    browser.post("/account/withdraw", form),
  ]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [303, 409]);
  const { outcome, reason } = await last("admin.access");
  assert.deepEqual([outcome, reason], ["deny", "not_found"]);
  assert.equal(
    (await service.events()).filter(
      ({ type, policy }) =>
        type === "consent.withdrawn" && (policy as { consent: string }).consent === "of-fay",
    ).length,
    1,
  );
});

test("PAGE-D-5, COOKIE-8.6-1 a form after the session, or without one, changes nothing and leads to a sign-in", async () => {
  await record("gus", "of-gus");
  const { browser, page } = await account("gus");
  const [form = assert.fail()] = formsOf(page);
  const before = browser.cookies.get("__Host-mandate-s") ?? "";
  const out = /signout">\s*<input type="hidden" name="token" value="([^"]*)"/.exec(page.text)?.[1] ?? "";
  assert.equal((await browser.post("/signout", { token: out })).status, 303);
  for (const cookie of ["", before]) {
    browser.cookies.set("__Host-mandate-s", cookie);
    const answer = await browser.post("/account/withdraw", form);
    assert.equal(answer.status, 403);
    assert.match(shownBy(answer.text), /^.*You are no longer signed in/);
    assert.match(answer.text, /href="https:\/\/as\.example\/account"/);
    assert.equal(locationOf(await browser.get("/account")), `${ISSUER}/signin`);
  }
  // A new session needs a new form.
  const again = await browser.signIn(await browser.get("/account"), "gus");
  assert.equal(again.status, 200);
  assert.equal((await browser.post("/account/withdraw", form)).status, 403);
  assert.ok(await stands("of-gus", "gus"));
});

test("FETCHMD-2-1, PAGE-D-5 a form of another site, of another type, or too large takes nothing back", async () => {
  await record("hal", "of-hal");
  const { browser, page } = await account("hal");
  const [form = assert.fail()] = formsOf(page);
  const sent = [
    await browser.post("/account/withdraw", form, { origin: "https://evil.example" }),
    await browser.post("/account/withdraw", form, { "sec-fetch-site": "cross-site" }),
    await browser.post("/account/withdraw", form, { "content-type": "text/plain" }),
    await browser.post("/account/withdraw", { ...form, more: "x".repeat(100_000) }),
  ];
  assert.deepEqual(
    sent.map(({ status }) => status),
    [403, 403, 403, 403],
  );
  assert.equal((await browser.get("/account", { "sec-fetch-dest": "iframe" })).status, 403);
  assert.ok(await stands("of-hal", "hal"));
});

test("PAGE-D-14 an ending of the user ends the sign-in too: the account page asks for another one", async () => {
  const { browser } = await account("ida");
  const ended = await api("POST", "/revocations", { subject: { iss: provider.issuer, sub: "ida" } });
  assert.equal(ended.status, 200, ended.text);
  assert.equal(locationOf(await browser.get("/account")), `${ISSUER}/signin`);
});

test("PAGE-D-15 the account page is cut off from a window that opened it, and is kept in no cache", async () => {
  const { page } = await account("jan");
  assert.equal(page.headers["cross-origin-opener-policy"], "same-origin");
  assert.equal(page.headers["cache-control"], "no-store");
  assert.match(page.headers["content-security-policy"] ?? "", /form-action 'self'/);
  const consent = await new Browser(service, provider).review(request(verifierOf(), { client_id: PRIVATE }));
  assert.equal(consent.headers["cross-origin-opener-policy"], undefined);
});

test("PAGE-D-15 what another server, a client or a scope is called stays text", async () => {
  await record("kim", "of-kim", { actor: "client<b>\"'&" });
  const { page } = await account("kim");
  assert.doesNotMatch(page.text, /<b>/);
  parseMarkup(page.text);
  assert.ok(shownBy(page.text).includes("client<b>\"'&"), shownBy(page.text));
});
