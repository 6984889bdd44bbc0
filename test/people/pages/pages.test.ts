/** Every page in every language, without a browser: how it is built, and that nothing from outside changes that. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { shownDetail } from "../../../src/people/http/known-as.ts";
import type { EventView } from "../../../src/people/pages/account-events.ts";
import { accountPage } from "../../../src/people/pages/account-page.ts";
import { weekOf } from "../../../src/people/pages/account-week.ts";
import { type AskView, askPage } from "../../../src/people/pages/ask-page.ts";
import { type ConsentView, consentPage } from "../../../src/people/pages/consent-page.ts";
import { LANGUAGES } from "../../../src/people/pages/language.ts";
import { noticePage } from "../../../src/people/pages/notice-page.ts";
import type { Page } from "../../../src/people/pages/page.ts";
import {
  idBeneath,
  initialsOf,
  partyHeading,
  partyLines,
  partyName,
  type ShownParty,
} from "../../../src/people/pages/parties.ts";
import { signInPage } from "../../../src/people/pages/sign-in-page.ts";
import { DISCS, styleOf } from "../../../src/people/pages/style.ts";
import type { DetailField, DetailType } from "../../../src/policy/details.ts";
import type { Target } from "../../../src/policy/rules.ts";
import { defined } from "../../../src/result.ts";
import { ACCENT, contrast, GROUNDS, isReadable, TONES } from "../../../src/settings/colours.ts";
import type { Detail } from "../../../src/spec/rfc9396.ts";
import { type Element, elementsOf, parseMarkup, shapeOf, shownBy, textOf } from "../../support/markup.ts";
import { prng } from "../../support/prng.ts";
import { rounds } from "../../support/rounds.ts";
import { ACCOUNT, ASK, CONSENT, LOOPBACK, OPERATOR, SAMPLES, writtenIn } from "../../support/sample-pages.ts";

const [en = assert.fail()] = LANGUAGES;
const english = (page: Page): string => writtenIn(en, page);
const attributesOf = (elements: readonly Element[], name: string): string[] =>
  elements.flatMap(({ attributes }) => attributes.get(name) ?? []);

const ELEMENTS = new Set(
  "html head meta title style body header main h1 h2 h3 h4 p strong bdi code a ul ol li dl div dt dd details summary section form fieldset legend label input span button footer time".split(
    " ",
  ),
);
const ATTRIBUTES = new Set(
  "lang charset name content class href method action autocomplete type value id for required checked role aria-describedby aria-invalid aria-hidden formnovalidate open datetime title".split(
    " ",
  ),
);

for (const texts of LANGUAGES) {
  for (const [name, page] of Object.entries(SAMPLES)) {
    describe(`${name} in ${texts.language}`, () => {
      const root = parseMarkup(writtenIn(texts, page));
      const elements = elementsOf(root);
      const named = (...names: string[]): Element[] => elements.filter((one) => names.includes(one.name));

      test("CSP-6.1.3-1, PAGE-D-19 there is no script, no image, no frame, and nothing is loaded", () => {
        for (const element of elements) {
          assert.ok(ELEMENTS.has(element.name), element.name);
          for (const attribute of element.attributes.keys()) assert.ok(ATTRIBUTES.has(attribute), attribute);
        }
        assert.equal(named("style").length, 1);
        assert.doesNotMatch(textOfStyle(root), /url\(|@import|@font-face|expression/i);
      });

      test("WCAG-3.3.8-1 nothing is asked for but a choice", () => {
        for (const { attributes } of named("input")) {
          assert.match(attributes.get("type") ?? "text", /^(?:hidden|checkbox|date)$/);
        }
      });

      test("PAGE-D-13, CSP-6.4.1-1 forms are sent to this server, and links lead there or to where the view says", () => {
        for (const action of attributesOf(elements, "action"))
          assert.match(action, /^https:\/\/as\.example\//);
        const known = [
          "https://as.example/",
          "https://app.example/cb?",
          "https://idp.example/end",
          "https://idp.example/login?",
        ];
        for (const href of attributesOf(elements, "href")) {
          assert.ok(
            known.some((start) => href.startsWith(start)),
            href,
          );
        }
      });

      test("WCAG-3.1.1-1, WCAG-2.4.2-1 the page says its language and has a title that begins with what it is about", () => {
        assert.equal(root.attributes.get("lang"), texts.language);
        const [title = assert.fail()] = named("title").map(textOf);
        assert.ok(title.endsWith(` – ${OPERATOR}`));
        assert.ok(title.length > OPERATOR.length + 5);
      });

      test("WCAG-1.3.1-1, WCAG-3.3.1-1 headings, labels and groups are those of HTML", () => {
        assert.equal(named("h1").length, 1);
        assert.equal(named("main").length, 1);
        const [first] = named("h1", "h2");
        assert.equal(first?.name, "h1");
        const labelled = named("label").flatMap(elementsOf);
        for (const input of named("input")) {
          assert.ok(input.attributes.get("type") === "hidden" || labelled.includes(input));
        }
        for (const label of named("label", "button", "a", "legend", "dt", "dd", "li")) {
          assert.notEqual(textOf(label), "");
        }
        for (const group of named("fieldset")) assert.equal((group.children[0] as Element).name, "legend");
        for (const { children } of named("dl").flatMap(({ children }) => children.filter(isElement))) {
          assert.deepEqual(
            children.filter(isElement).map(({ name }) => name),
            ["dt", "dd"],
          );
        }
      });

      test("WCAG-1.3.1-1 every id stands once, and what refers to one finds it", () => {
        const ids = attributesOf(elements, "id");
        assert.equal(new Set(ids).size, ids.length);
        for (const to of attributesOf(elements, "aria-describedby")) assert.ok(ids.includes(to), to);
      });

      test("WCAG-2.1.1-1, PAGE-D-10 nothing takes the focus or leaves the order, and nothing that gives is ticked", () => {
        for (const attribute of ["autofocus", "tabindex", "accesskey", "disabled", "hidden"]) {
          assert.deepEqual(attributesOf(elements, attribute), []);
        }
        assert.deepEqual(attributesOf(elements, "checked"), []);
      });
    });
  }
}

const isElement = (child: Element | string): child is Element => typeof child === "object";

const textOfStyle = (root: Element): string =>
  elementsOf(root)
    .filter(({ name }) => name === "style")
    .flatMap(({ children }) => children.filter((child) => typeof child === "string"))
    .join("");

const named = (id: string, title: string): ShownParty => ({ id, naming: { given: { title } } });

// --- the page of an agent ---------------------------------------------------------------------------------------

test("PAGE-D-25 the page says which agent asks, who works for whom, at what, until when, and whom it asks", () => {
  const shown = shownBy(english(askPage(ASK)));
  for (const part of [
    "Booking agent asks to act for you",
    "asks to act for you ID: spiffe://td.example/agents/booking",
    "Example Corporation says: Books what you chose. ",
    "Who answers for it Travel desk, travel@example.com",
    "planner (td.example) passed this to of-a-long-name-0123456789 (partner.example) (according to as.partner.example), then to Booking agent. ",
    "Who works for whom, by id spiffe://td.example/agents/planner spiffe://partner.example/teams/research/agents/of-a-long-name-0123456789 (according to as.partner.example) Booking agent (spiffe://td.example/agents/booking)",
    "Signed in as alice@company.example (Alice Example) Not you?",
    "At Trips (api.example) it asks to",
    "book trips for you, which your company pays",
    "Lasts until February 19, 2027 . Take it back in your account at any time. ",
    "Only what you tick is allowed.",
    "“Allow” also means: S sorting (td.example) ID: spiffe://td.example/agents/sorting Example Corporation lets it do what you tick, without asking you again.",
    "These may act for you without asking spiffe://td.example/agents/sorting",
  ]) {
    assert.ok(shown.includes(part), `${part}: ${shown}`);
  }
});

test("PAGE-D-7, PAGE-D-25 names of agents cannot change the page around them", () => {
  const hostile = '"><script>x</script>\u202e\u2066';
  const usual = parseMarkup(english(askPage(ASK)));
  const view: AskView = {
    ...ASK,
    agent: {
      id: hostile,
      naming: { given: { title: hostile, purpose: hostile, owner: hostile, contact: hostile } },
    },
    before: ASK.before.map(({ toldBy }) => defined({ id: hostile, toldBy: toldBy && { id: hostile } })),
    user: { id: hostile, name: `${hostile}x` },
    at: ASK.at.map((one) => ({ ...one, target: { title: hostile, host: hostile } })),
    agents: [{ id: `spiffe://${hostile}` }],
  };
  const document = english(askPage(view));
  assert.deepEqual(shapeOf(parseMarkup(document)), shapeOf(usual));
  assert.doesNotMatch(shownBy(document), /[\u202e\u2066]/u);
});

for (const [place, inIt] of [
  ["a list", partyName],
  ["lines of their own", partyLines],
  ["what stands beneath a heading", idBeneath],
  ["what stands beneath a heading of the account", (party, texts) => partyHeading(party, texts).beneath],
] as const satisfies readonly [string, (...of: Parameters<typeof partyName>) => unknown][]) {
  test(`NAME-D-1 the id stands beside a title in ${place}, and only once where there is no title`, () => {
    const texts = LANGUAGES[0] ?? assert.fail();
    const id = "spiffe://td.example/agents/booking";
    const shown = (party: ShownParty) => String(inIt(party, texts) ?? "").split(id).length - 1;
    assert.equal(shown(named(id, "Booking")), 1);
    assert.equal(shown({ id }), 1);
  });
}

test("NAME-D-5 what the operator wrote in several languages is shown in that of the page", () => {
  const shown = LANGUAGES.map((texts) =>
    ["sign-in", "notice-further", "ask"].map((name) =>
      shownBy(writtenIn(texts, SAMPLES[name] ?? assert.fail(name))),
    ),
  );
  for (const [index, words] of [
    ["Example Corporation", "Example Corporation", "Books what you chose."],
    ["Beispiel AG", "Beispiel AG", "Bucht, was Sie ausgesucht haben."],
  ].entries()) {
    for (const [at, part] of words.entries()) assert.ok(shown[index]?.[at]?.includes(part), part);
  }
});

test("WCAG-1.4.1-1 a notice of a fault has a sign beside its words, what was allowed another, and what was done before none", () => {
  const markOf = (kind: "fault" | "ask_allowed" | "request_decided", status: number): string | undefined =>
    /<span class="disc (\w+)" aria-hidden="true">/.exec(english(noticePage({ kind, status })))?.[1];
  assert.equal(markOf("fault", 500), "mark");
  assert.equal(markOf("ask_allowed", 200), "done");
  assert.equal(markOf("request_decided", 409), undefined);
});

// --- the consent page -------------------------------------------------------------------------------------------

const consent = (extra: Partial<ConsentView> = {}): string =>
  shownBy(english(consentPage({ ...CONSENT, ...extra })));

test("PAGE-D-6 the page says who asks, by what it is known, where the answer goes, at what, until when, and who is asked", () => {
  const shown = consent();
  for (const part of [
    "claude.ai asks for access",
    "It calls itself “Claude”.",
    "Signed in as alice@company.example (Alice Example) Not you?",
    "The answer goes to claude.ai",
    "At Notes (notes.example) it asks to",
    "read your notes",
    "Lasts until February 19, 2027",
  ]) {
    assert.ok(shown.includes(part), `${part}: ${shown}`);
  }
});

const headings = [
  ["the host of its document", { client: { id: "claude.ai", isHost: true } }, "claude.ai asks for access"],
  [
    "the name that the operator gave it, and its id",
    { client: named("web-app", "Web app") },
    "Web app asks for access ID: web-app",
  ],
  [
    "when it registered itself",
    { client: { id: "c_a", registeredAtSeconds: 0 } },
    "It registered itself on January 1, 1970, and its name was not checked.",
  ],
] as const;
for (const [name, view, part] of headings) {
  test(`PAGE-D-6 a client is known by ${name}`, () => assert.ok(consent(view).includes(part), consent(view)));
}

test("PAGE-D-7 without a name that can be shown the host stands alone", () => {
  for (const claimed of ["", "\u200b\u202e", " "]) {
    assert.doesNotMatch(consent({ client: { id: "claude.ai", naming: { claimed } } }), /calls itself|“/);
  }
});

test("PAGE-D-7 names and hosts are set apart from the text around them", () => {
  const elements = elementsOf(parseMarkup(english(consentPage(LOOPBACK))));
  const apart = elements.filter(({ name }) => name === "bdi").map(textOf);
  for (const part of [
    "Desk app",
    "127.0.0.1:49152",
    "Notes",
    "notes.example",
    "Alice Example",
    ...LOOPBACK.agents.map(({ id }) => id),
  ]) {
    assert.ok(apart.includes(part), part);
  }
});

test("PAGE-D-8, WCAG-1.4.1-1 a loopback client is warned of in words, and needs a box of its own", () => {
  const shown = consent(LOOPBACK);
  assert.match(shown, /The answer goes to this computer, where any program could receive it\./);
  assert.match(shown, /I started this myself just now/);
  assert.match(shown, /127\.0\.0\.1:49152 \(on this computer\)/);
  assert.doesNotMatch(consent(CONSENT), /on this computer/);
  const [box = assert.fail()] = boxesOf(consentPage(LOOPBACK)).filter((one) => one.get("name") === "confirm");
  assert.ok(box.has("required"));
  assert.equal(boxesOf(consentPage(CONSENT)).filter((one) => one.get("name") === "confirm").length, 0);
});

test("HTTP-D-45, PAGE-D-8, PAGE-D-10 a user who refuses needs no box", () => {
  const buttons = elementsOf(parseMarkup(english(consentPage(LOOPBACK)))).filter(
    ({ name }) => name === "button",
  );
  const refuse = buttons.find(({ attributes }) => attributes.get("value") === "refuse");
  assert.ok(refuse?.attributes.has("formnovalidate"));
});

test("PAGE-D-9, WCAG-1.4.1-1 an answer to another host is said in words", () => {
  const shown = consent({ differs: true, redirectHost: "other.example" });
  assert.match(shown, /The answer goes to other\.example, not to claude\.ai\./);
  assert.doesNotMatch(consent(), /, not to/);
});

test("PAGE-D-10 two buttons, refusal first, one box for each scope and one for all", () => {
  const elements = elementsOf(parseMarkup(english(consentPage(CONSENT))));
  const buttons = elements.filter(({ name, attributes }) => name === "button" && attributes.has("value"));
  assert.deepEqual(
    buttons.map(({ attributes }) => [
      attributes.get("name"),
      attributes.get("value"),
      attributes.get("class"),
    ]),
    [
      ["decision", "refuse", undefined],
      ["decision", "allow", undefined],
    ],
  );
  assert.deepEqual(
    boxesOf(consentPage(CONSENT)).map((box) => [box.get("name"), box.get("value")]),
    [
      ["scope", "notes.read"],
      ["scope", "notes.write"],
      ["all", "1"],
    ],
  );
});

const boxesOf = (page: Page): Element["attributes"][] =>
  elementsOf(parseMarkup(english(page)))
    .map(({ attributes }) => attributes)
    .filter((attributes) => attributes.get("type") === "checkbox");

test("WCAG-3.3.1-1, WCAG-2.4.2-1 a missing box is named, in the title too, with what to do", () => {
  const page = consentPage({ ...LOOPBACK, problem: "unconfirmed" });
  assert.equal(page.status, 400);
  const elements = elementsOf(parseMarkup(english(page)));
  const alert = elements.find(({ attributes }) => attributes.get("role") === "alert") ?? assert.fail();
  assert.match(
    textOf(alert),
    /One box is missing\. Nothing is decided yet\. Tick “I started this myself just now”/,
  );
  assert.match(textOf(elements.find(({ name }) => name === "title") ?? assert.fail()), /^One box is missing/);
  const box = boxesOf(page).find((one) => one.get("name") === "confirm");
  assert.equal(box?.get("aria-invalid"), "true");
  assert.equal(box?.get("aria-describedby"), "problem");
});

test("WCAG-2.2.1-1 the time is told, and more of it is a link while there is more", () => {
  assert.match(consent(), /9 minutes left to decide\. More time/);
  assert.match(consent({ minutesLeft: 1, renewable: false }), /1 minute left to decide\. (?!More)/);
});

// --- details ------------------------------------------------------------------------------------------------------

const PAYMENT = {
  details: new Map<string, DetailType>([
    [
      "payment",
      {
        title: { en: "Payments", de: "Zahlungen" },
        ...{ governs: ["pay"], needs: [], pushed: false },
        fields: new Map<string, DetailField>([
          ["most", { is: "decimal", narrows: "max", unit: "currency", label: { en: "up to", de: "bis" } }],
          ["least", { is: "decimal", narrows: "min", unit: "currency" }],
          ["currency", { is: "string", narrows: "equal" }],
          ["nights", { is: "integer", narrows: "max" }],
        ]),
      },
    ],
  ]),
} as unknown as Target;

/** How an object is told in each language, with blanks of any width as one. */
const toldIn = (fields: Omit<Detail, "type">): readonly string[] =>
  LANGUAGES.map((texts) => {
    const detail = shownDetail(PAYMENT, { ...fields, type: "payment" });
    const page = askPage({
      ...ASK,
      at: [
        {
          target: { title: "x" },
          permissions: [],
          limits: [{ box: "0", type: "payment", governs: [], detail }],
        },
      ],
    });
    return (
      /(?:Payments|Zahlungen):.*?(?= “Allow”| „Erlauben“)/.exec(
        shownBy(writtenIn(texts, page)).replace(/\s/g, " "),
      )?.[0] ?? ""
    );
  });

const amounts = [
  [{ most: "500", currency: "EUR" }, "Payments: only up to EUR 500.00", "Zahlungen: nur bis 500,00 EUR"],
  [
    { most: "12000.5", currency: "JPY" },
    "Payments: only up to JPY 12,000.5",
    "Zahlungen: nur bis 12.000,5 JPY",
  ],
  [
    { most: "0.123456789012345678", currency: "EUR" },
    "Payments: only up to EUR 0.123456789012345678",
    "Zahlungen: nur bis 0,123456789012345678 EUR",
  ],
  [
    { least: "5", currency: "EUR" },
    "Payments: only least at least EUR 5.00",
    "Zahlungen: nur least mindestens 5,00 EUR",
  ],
  [{ nights: 1200 }, "Payments: only nights up to 1,200", "Zahlungen: nur nights bis 1.200"],
  [
    { most: "5", currency: "EUR, approved" },
    "Payments: only up to 5 “EUR, approved”",
    "Zahlungen: nur bis 5 „EUR, approved“",
  ],
  [{ currency: "EUR" }, "Payments: only currency “EUR”", "Zahlungen: nur currency „EUR“"],
] as const;
for (const [fields, ...want] of amounts) {
  test(`RAR-D-9 ${JSON.stringify(fields)} is told as people write it in each language, with every digit, and a unit that is no currency as the asker's word`, () =>
    assert.deepEqual(toldIn(fields), want));
}

const legendsOf = (name: string): string => shownBy(english(SAMPLES[name] ?? assert.fail()));

test("RAR-D-9, PAGE-D-10 the only object of a type stands in the box of the permission that it limits, and has none itself; of several each has one, without a tick", () => {
  const boxes = boxesOf(SAMPLES["ask-bounded"] ?? assert.fail());
  assert.deepEqual(
    boxes.map((box) => [box.get("name"), box.get("value"), box.has("checked")]),
    [
      ["scope", "trips.read", false],
      ["scope", "trips.book", false],
      ["detail", "1", false],
      ["detail", "2", false],
      ["all", "1", false],
    ],
  );
  assert.match(
    english(SAMPLES["ask-bounded"] ?? assert.fail()),
    /<input type="hidden" name="detail" value="0">/,
  );
  const shown = legendsOf("ask-bounded").replace(/\s/g, " ");
  assert.match(shown, /which your company pays Payments: only up to EUR 500\.00, only to “TAP/);
  assert.match(shown, /“Rome\\u\{202e\}\\u\{201d\} <b>x<\/b>” \(contains unusual characters\)/);
});

test("RAR-D-9 an object that limits several permissions, or none that is shown, stands beneath them", () => {
  const [own = assert.fail()] = ASK.at;
  const detail = { title: "Budget", fields: [] };
  for (const governs of [["trips.read", "trips.book"], [], ["trips.other"]]) {
    const at = [{ ...own, limits: [{ box: "0", type: "budget", governs, detail }] }];
    const shown = shownBy(english(askPage({ ...ASK, at })));
    assert.match(shown, /which your company pays Budget Tick all: 2 permissions /);
  }
});

test("PAGE-D-35 at a target of whose permissions the one that asks gets a part, the page says which, and that the rest is for others", () => {
  const job = { title: "x", participants: [], without: [], beside: [], unasked: [], goOn: [] };
  const own = ASK.at.map(({ target, permissions }) => ({
    target,
    sentences: permissions.slice(0, 1).map(({ sentence }) => sentence),
  }));
  const shown = shownBy(english(askPage({ ...ASK, job: { ...job, own } })));
  assert.match(shown, /it asks to For itself it asks only to: read your trips\. The rest is for agents/);
});

test("PAGE-D-6, PAGE-D-45 agents that may act further are named in plain sight, three at most, and counted where names are long", () => {
  const told = (agents: readonly ShownParty[], language = 0): string =>
    /(?<=<div class="also">.*?<li>).*?(?=<\/li>)/
      .exec(writtenIn(LANGUAGES[language] ?? assert.fail(), askPage({ ...ASK, agents })))?.[0]
      .replaceAll(/<[^>]*>/g, "") ?? "";
  const of = (...titles: string[]) => titles.map((title) => named(`id-${title}`, title));
  const lets = (them: string) =>
    `Example Corporation lets ${them} do what you tick, without asking you again.`;
  assert.equal(told(of("Crew")), `CCrewID: id-Crew${lets("it")}`);
  assert.equal(
    told(of("A", "B", "C", "D")),
    `AAID: id-ABBID: id-BCCID: id-C${lets("them and 1 other agent")}`,
  );
  assert.equal(
    told(of("A", "B"), 1),
    "AAID: id-ABBID: id-BExample Corporation lässt sie ohne Rückfrage tun, was Sie ankreuzen.",
  );
  const long = { id: `spiffe://${"td.".repeat(80)}example/agent` };
  assert.equal(told([long, long]), lets("2 agents"));
  assert.equal(
    told([{ id: "spiffe://td.example/crew/*" }]),
    `Ccrew/* (td.example)ID: spiffe://td.example/crew/*${lets("it")}`,
  );
});

test("JOB-D-16, PAGE-D-27, PAGE-D-35 all that the click brings without a tick stands in one box beneath the boxes to tick, each in a sentence, before the bounds of the job", () => {
  const shown = legendsOf("consent-bounded").replaceAll(/\s+/g, " ");
  assert.match(
    shown,
    /“Plan the trip to Rome” Permissions You allow what you tick, and what is listed beneath it\. /,
  );
  assert.match(
    shown,
    /Tick all: 4 permissions, 1 agent, 1 extra permission “Allow” also means: It also gets: read the weather, at Weather \(weather\.example\)\. Only for this job, until today, 03:05 \(in 2 h 5 min\) \. Take it back in your account at any time, but Trips \(api\.example\) may go on after that\. All agents together: at most 50 access keys to these services\. It may be passed on through at most 3 agents in a row\. Even without this job it may act at Notes \(notes\.example\), Archive \(archive\.example\) .* Refuse Allow/,
  );
});

test("PAGE-D-35 the share of an agent says by which tick it gets it, and what it gets beside that is said to be extra", () => {
  const shown = legendsOf("ask-job-three").replaceAll(/\s+/g, " ");
  assert.match(shown, /booking May do all that you tick above\. /);
  assert.match(
    shown,
    /sorting May do only this, if ticked above: read your trips, at Trips \(api\.example\)\. TD/,
  );
  assert.match(
    shown,
    /desk Extra permission, with this tick: read your notes, at Notes \(notes\.example\)\. Tick all/,
  );
  assert.match(
    legendsOf("consent-bounded").replaceAll(/\s+/g, " "),
    /read your trips, at Trips \(api\.example\)\. Extra permission, with this tick: read your notes, at Notes \(notes\.example\)\. /,
  );
});

// --- the account page -------------------------------------------------------------------------------------------

test("PAGE-D-30, PAGE-D-31 what was done is told by the days of the user's zone, newest first, and in a day by agent", () => {
  const [planner, crew] = [named("planner", "Planner"), { id: "crew" }];
  const at = (day: number, hour: number, party: ShownParty): EventView => ({
    kind: "acted",
    atMs: Date.UTC(2026, 10, day, hour),
    parties: [party],
    permissions: [],
  });
  const events = [at(22, 1, planner), at(21, 23, crew), at(21, 22, planner), at(21, 20, crew)];
  const shown = shownBy(english(accountPage({ ...ACCOUNT, events })));
  const part = shown.slice(shown.indexOf("November 22, 2026"), shown.indexOf("Newest entries"));
  assert.equal(
    part.replaceAll("\u202f", " "),
    "November 22, 2026 Planner ID: planner Access 02:00 Got access in your name. crew Access 00:00 Got access in your name. " +
      "November 21, 2026 Planner ID: planner Access 23:00 Got access in your name. crew Access 21:00 Got access in your name. ",
  );
});

test("JOB-D-3, PAGE-D-34 a line about a job has its title in quotation marks, and is a sentence without one; to receive is no gift", () => {
  const told = (kind: EventView["kind"], title?: string): string => {
    const event = defined<EventView>({ kind, atMs: 0, parties: [], permissions: [], title });
    const shown = shownBy(english(accountPage({ ...ACCOUNT, zone: "UTC", events: [event] })));
    return shown.slice(shown.indexOf("Yourself") + 9, shown.indexOf(" Newest"));
  };
  assert.equal(told("job_approved", "Trip"), "Allowed 00:00 You approved a job: “Trip”");
  assert.equal(told("job_stopped"), "Ended 00:00 You stopped a job.");
  assert.equal(told("token_given"), "Access 00:00 Got access in your name.");
});

test("PAGE-D-36 the bars of a day, one of accesses beneath one of refusals, are as high as both, to a twenty-fourth of the highest day", () => {
  const days = [0, 1, 12, 23, 24].map((acts) => ({ atSeconds: 0, acts, refusals: acts }));
  const shown = english(accountPage({ ...ACCOUNT, week: { days, agents: 1, isCut: false } }));
  const bars = [...shown.matchAll(/class="bar ((?:no|yes) b\d+)"/g)].map(([, bar]) => bar);
  assert.deepEqual(bars, [
    ...["yes b0", "no b1", "yes b1", "no b6", "yes b6"],
    ...["no b12", "yes b12", "no b12", "yes b12"],
  ]);
  assert.match(styleOf(ACCENT), /\.b23\{height:2\.875rem\}/);
});

test("PAGE-D-31, WCAG-1.4.1-1 accesses, gifts, refusals and endings have each a word and a colour", () => {
  const elements = elementsOf(parseMarkup(english(accountPage(ACCOUNT))));
  const signs = elements.filter(({ attributes }) => attributes.get("class")?.startsWith("sign "));
  const forms = new Map(signs.map((one) => [one.attributes.get("class"), textOf(one)]));
  assert.equal(forms.size, 5);
  assert.equal(new Set(forms.values()).size, 5);
});

test("PAGE-D-32, PAGE-D-30 the account page tells the end of a job and of a consent, and the last use, as times of a near day", () => {
  const { nowSeconds } = ACCOUNT;
  const jobs = ACCOUNT.jobs.map((job) => ({ ...job, untilSeconds: nowSeconds + 7200 }));
  const allowed = ACCOUNT.allowed.slice(0, 1).map((one) => ({
    ...{ ...one, untilSeconds: nowSeconds + 20 * 3600, lastUse: { atMs: (nowSeconds - 60) * 1000 } },
  }));
  const shown = shownBy(english(accountPage({ ...ACCOUNT, jobs, allowed }))).replaceAll(" .", ".");
  assert.match(shown, /Ends by itself: today, 12:00 \(in 2 h\)\./);
  assert.match(shown, /Lasts until tomorrow, 06:00 \(in 20 h\)\. Last used: today, 09:59\./);
});

test("PAGE-D-36 what one agent has, jobs too, stands in one card, with those that led to it", () => {
  const [job = assert.fail()] = ACCOUNT.jobs;
  const [given = assert.fail()] = ACCOUNT.allowed;
  const { agent, party, way } = job;
  const allowed = [1, 2].map((number) => ({ ...given, id: String(number), agent, party, way }));
  const other = { ...given, id: "3", agent: "other", party: named("other", "Other") };
  const page = english(accountPage({ ...ACCOUNT, questions: [], stopped: [], allowed: [...allowed, other] }));
  const cards = elementsOf(parseMarkup(page)).filter((one) => one.attributes.get("class") === "party");
  assert.equal(cards.length, 2);
  const shown = shownBy(page);
  assert.match(
    shown,
    /P Planner ID: spiffe:\S+planner Job “Book the trip to Lisbon” .*Agents that may help Booking agent .*Stop this job.*Who works for whom, by id Web app \(web-app\) Planner \(spiffe/,
  );
  const consents = (text: string): number => text.split('name="consent"').length - 1;
  const [first = "", second = ""] = page.split("<bdi>Other</bdi>");
  assert.deepEqual([consents(first), consents(second)], [2, 1]);
  assert.ok(!second.includes('name="job"'));
});

test("JOB-D-23, PAGE-D-36 the card of a job says where its agents may act beside it, and says nothing where they may not", () => {
  const shown = legendsOf("account-story").replaceAll(/\s+/g, " ");
  assert.match(
    shown,
    /At Weather \(weather\.example\) it may, also without this job read the weather where you are Only Example Corporation can end this\. Agents that may help .* When the job ends, Booking agent keeps its own permission at Trips \(api\.example\), below\. Stop this job/,
  );
  assert.match(shown, /BA Booking agent ID: spiffe:\S+ Last refused: today, 09:27 ?\./);
  const left = /can end: Planner: Weather \(weather\.example\)\./;
  assert.match(legendsOf("account-story"), left);
  const jobs = ACCOUNT.jobs.map((job) => ({ ...job, beside: [] }));
  const without = shownBy(english(accountPage({ ...ACCOUNT, jobs, allowed: [] })));
  assert.doesNotMatch(without, /When the job ends|can end/);
});

test("PAGE-D-36 refusals of one agent on a day are one line that opens, and a single one is told as it is; what is alike is one line with its times", () => {
  const at = (hour: number, kind: EventView["kind"]): EventView => ({
    kind,
    atMs: Date.UTC(2026, 10, 22, hour),
    parties: [named("planner", "Planner")],
    permissions: [],
    ...(kind === "refused" && { refusedFor: "not_allowed" }),
  });
  const told = (events: readonly EventView[]): string =>
    shownBy(english(accountPage({ ...ACCOUNT, zone: "UTC", events }))).replace(
      /^.* Planner ID: planner (?=Refused|Access)/,
      "",
    );
  assert.match(
    told([at(9, "refused"), at(8, "acted"), at(7, "refused")]),
    /^Refused 07:00 – 09:00 2 times\. You have not allowed that\. Details Refused 09:00 , 07:00 Wanted .* Access 08:00 Got/,
  );
  assert.match(
    told([at(8, "acted"), at(7, "refused")]),
    /^Access 08:00 Got access in your name\. Refused 07:00 Wanted/,
  );
});

test("PAGE-D-36 a week counts accesses and refusals by the days of the reader, also across a change of the clocks", () => {
  const at = (iso: string, kind: EventView["kind"], id = "a") => ({
    kind,
    timeMs: Date.parse(iso),
    agents: [{ id }],
    targets: [],
    scopes: [],
  });
  const events = [
    // In Berlin the 25th of October has 25 hours, and ends at 23:00 UTC.
    at("2026-10-26T08:00:00Z", "acted"),
    at("2026-10-25T22:59:00Z", "token_given", "b"),
    at("2026-10-24T22:00:00Z", "acted"),
    at("2026-10-24T21:59:00Z", "refused"),
    at("2026-10-24T21:58:00Z", "allowed"),
    at("2026-10-19T22:00:00Z", "acted_as_you"),
    at("2026-10-19T21:59:00Z", "acted", "before"),
  ];
  const { days, agents } = weekOf(events, false, Date.parse("2026-10-26T09:00:00Z") / 1000, "Europe/Berlin");
  assert.deepEqual(
    days.map(({ acts, refusals }) => [acts, refusals]),
    [
      [1, 0],
      [0, 0],
      [0, 0],
      [0, 0],
      [0, 1],
      [2, 0],
      [1, 0],
    ],
  );
  assert.equal(agents, 2);
});

const discs = [
  ["Booking agent", "BA"],
  ["planner", "P"],
  ["  the «Crew» of Lisbon ", "TL"],
  ["épargne", "É"],
  ["中文 代理", "中代"],
  ["…", "?"],
  ["", "?"],
] as const;
for (const [name, letters] of discs) {
  test(`PAGE-D-37 the initials of ${JSON.stringify(name)} are ${letters}`, () =>
    assert.equal(initialsOf(name), letters));
}

test("PAGE-D-37 a party that was not checked has a question mark, and letters are readable on every disc", () => {
  const parties = english(accountPage(ACCOUNT)).matchAll(
    /aria-hidden="true">([^<]*)<\/span><div><h3[^>]*>(?:<span[^>]*>)?<bdi>([^<]*)/g,
  );
  const found = new Map([...parties].map(([, letters, name]) => [name, letters]));
  assert.equal(found.get("An unverified program"), "?");
  assert.equal(found.get("claude.ai"), "C");
  assert.equal(found.get("sorting (td.example)"), "S");
  assert.equal(new Set(DISCS).size, 12);
  for (const ground of DISCS) assert.ok(contrast("#ffffff", ground) >= 4.5, ground);
});

test("PAGE-D-35 at a target of which the one that asks gets nothing, the permissions are asked for further agents", () => {
  const shown = english(SAMPLES["ask-job-bounded"] ?? assert.fail());
  const legends = [...shown.matchAll(/<legend>(.*?)<\/legend>/g)].map(([, legend = ""]) =>
    legend.replaceAll(/<[^>]*>/g, ""),
  );
  assert.ok(legends.includes("At Trips (api.example) it asks to"), legends.join());
  assert.ok(legends.includes("For agents that help it, at Notes (notes.example)"), legends.join());
});

test("PAGE-D-35 the box that takes all says that it takes the further agents too", () => {
  const wordsOf = (name: string): string | undefined =>
    /<label class="every">.*?<span>(.*?)<\/span>/.exec(english(SAMPLES[name] ?? assert.fail()))?.[1];
  assert.equal(wordsOf("ask-job-three"), "Tick all: 3 permissions, 3 agents, 1 extra permission");
  assert.equal(wordsOf("ask"), "Tick all: 2 permissions");
});

test("DTR-D-13, PAGE-D-32 a question on the account page says what it asks, until when the answer would last, and leads to its own page", () => {
  const page = english(accountPage(ACCOUNT));
  assert.match(
    shownBy(page),
    /At Notes \(notes\.example\) it asks to read your notes change your notes, which your team can read Lasts until February 19, 2027 \. 42 minutes left to decide\. Look at it and decide/,
  );
  assert.match(page, /<a href="https:\/\/as\.example\/ask\?r=question" aria-describedby="asked-0">/);
  assert.doesNotMatch(page, /name="decision"/);
});

test("REFRESH-D-7 what may have been stolen stands before all else that is allowed", () => {
  const [{ reusedAtMs: _, renewedElsewhere: __, ...first } = assert.fail()] = ACCOUNT.allowed;
  const of = (id: string) => ({ ...first, id, agent: id, party: { id } });
  const allowed = [of("safe"), { ...of("stolen"), reusedAtMs: ACCOUNT.nowSeconds * 1000 }];
  const shown = english(accountPage({ ...ACCOUNT, jobs: [], allowed }));
  const headings = [...shown.matchAll(/<h3 id="agent-\d+">(?:<span[^>]*>)?<bdi>([^<]*)/g)].map(
    ([, id]) => id,
  );
  assert.deepEqual(headings, ["stolen", "safe"]);
});

test("JOB-D-5 what the agent may do without the job is told, folded, since the click gives none of it", () => {
  const shown = english(SAMPLES["consent-bounded"] ?? assert.fail());
  const [folded = ""] = /<details><summary>Even without this job.*?<\/details>/s.exec(shown) ?? [];
  assert.match(folded, /read your notes.*without asking you:/s);
  assert.match(shown.replace(folded, ""), /It also gets: read the weather/s);
});

test("PAGE-D-31 days that are turned are told at their fields, and nothing about what is on record", () => {
  assert.match(legendsOf("account-day"), /first day is after the last/i);
  assert.doesNotMatch(legendsOf("account-day"), /Nothing is on record/);
  assert.match(legendsOf("account-empty"), /Nothing is on record/);
});

test("PAGE-D-41 the operator's logo of an agent stands in place of its disc, and no word of another server brings one", () => {
  const naming = { given: { title: "Booking agent", logo: "/logo/booking" } };
  const shown = (agent: ShownParty): string => english(askPage({ ...ASK, agent, before: [] }));
  assert.match(
    shown({ id: "agent", naming }),
    /<div class="party"><img class="disc" src="\/logo\/booking" alt=""><div><h1>/,
  );
  assert.doesNotMatch(shown({ id: "agent", naming: { claimed: "Booking agent" } }), /<img/);
  assert.doesNotMatch(shown({ id: "agent", toldBy: { id: "https://as.partner.example", naming } }), /<img/);
});

test("PAGE-D-37 an agent has the same disc where it asks, where it would take part and on the account page", () => {
  const discsIn = (page: Page | undefined): readonly string[] =>
    [
      ...english(page ?? assert.fail()).matchAll(/<span class="(disc d\d+)" aria-hidden="true">([^<]*)</g),
    ].map(([, look, letters]) => `${look} ${letters}`);
  const [own = assert.fail()] = discsIn(askPage(ASK));
  assert.match(own, /^disc d\d+ BA$/);
  assert.deepEqual(discsIn(SAMPLES["ask-job"])[1], own);
  assert.ok(discsIn(accountPage(ACCOUNT)).some((one) => one.endsWith(" C")));
  assert.deepEqual(discsIn(consentPage(CONSENT)), [
    discsIn(accountPage(ACCOUNT)).find((one) => one.endsWith(" C")),
  ]);
  assert.match(discsIn(consentPage(LOOPBACK))[0] ?? "", / \?$/);
});

test("PAGE-D-17 a small number of accesses is spelled out in German, in the singular and the plural", () => {
  const [, german = assert.fail()] = LANGUAGES;
  assert.deepEqual(
    [1, 3, 20].map((most) => german.jobTokens(most)),
    ["ein", "drei", "20"].map(
      (most) => `Alle Agenten zusammen: höchstens ${most} Zugangsschlüssel zu diesen Diensten.`,
    ),
  );
});

// --- what comes from outside --------------------------------------------------------------------------------------

const NASTY = [
  ..."<>&\"'`=/\\ \n\t\u0000\u202e\u200b“”-:;#%{}()$",
  "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "' autofocus onfocus='x",
  "</style><style>*{display:none}</style>",
  "</title><h1>",
  "<!--",
  "]]>",
  "&#60;b&#62;",
  "&lt;b",
  "$&$`$'",
  "javascript:alert(1)",
  "<style></style>",
  "é",
  "中",
  "🙂",
];

/** The view with each string in it replaced by what `change` makes of it. */
function withStrings<T>(view: T, change: (text: string) => string, kept: readonly string[] = []): T {
  if (typeof view === "string") return change(view) as T;
  if (Array.isArray(view)) return view.map((one) => withStrings(one, change, kept)) as T;
  if (typeof view !== "object" || view === null) return view;
  const members = Object.entries(view).map(([key, value]) => [
    key,
    kept.includes(key) ? value : withStrings(value, change, kept),
  ]);
  return Object.fromEntries(members);
}

const subjects = [
  ["consent", (change: (text: string) => string) => consentPage(withStrings(CONSENT, change))],
  ["consent of a loopback client", (change) => consentPage(withStrings(LOOPBACK, change))],
  [
    "consent with an operator's name",
    (change) => consentPage(withStrings({ ...CONSENT, client: named("x", "y"), differs: true }, change)),
  ],
  [
    "account",
    (change) =>
      accountPage(
        withStrings(ACCOUNT, change, [
          "kind",
          "zone",
          "lastUse",
          "older",
          "newest",
          "moreAllowed",
          "firstAllowed",
        ]),
      ),
  ],
  [
    "notice",
    (change) => {
      const way = { href: "https://app.example/", host: "app.example" };
      return noticePage(
        withStrings(
          { kind: "busy", status: 503, back: way, further: way, onwards: "https://a.example/" },
          change,
          ["kind"],
        ),
      );
    },
  ],
  [
    "sign-in",
    (change) => signInPage(withStrings({ providers: [{ title: "x", href: "https://a.example/" }] }, change)),
  ],
] as const satisfies readonly [string, (change: (text: string) => string) => Page][];

for (const [name, build] of subjects) {
  test(`PAGE-D-6 whatever stands in a view of ${name}, the markup around it is the same`, () => {
    // A visible letter in front keeps a name from counting as none, and a scheme from being another one.
    const plain = shapeOf(parseMarkup(english(build((text) => text))));
    for (const [seed, texts] of LANGUAGES.entries()) {
      const random = prng(seed + 1);
      // A chain of longer names is counted, and not written out.
      const most = name === "account" ? 1 : 5;
      const nasty = (): string =>
        Array.from({ length: 1 + random.below(most) }, () => random.pick(NASTY)).join("");
      for (let round = 0; round < rounds(12); round++) {
        // One text stays one, since what was done is grouped by who did it.
        const ends = new Map<string, string>();
        const page = build((text) => `${text}${ends.getOrInsertComputed(text, nasty)}`);
        const root = parseMarkup(writtenIn(texts, page));
        assert.deepEqual(shapeOf(root), plain);
        assert.equal(textOfStyle(root), styleOf(ACCENT));
      }
    }
  });
}

// --- colours ------------------------------------------------------------------------------------------------------

for (const scheme of ["light", "dark"] as const) {
  test(`WCAG-1.4.3-1 in the ${scheme} scheme all text can be read where it stands`, () => {
    const { ink, quiet, notice, edge } = TONES[scheme];
    const grounds = [...GROUNDS[scheme], notice];
    for (const ground of grounds) assert.ok(contrast(ink, ground) >= 7, `ink on ${ground}`);
    for (const ground of GROUNDS[scheme]) assert.ok(contrast(quiet, ground) >= 4.5, `quiet on ${ground}`);
    assert.ok(isReadable(ACCENT[scheme], scheme));
    assert.ok(contrast(edge, GROUNDS[scheme][0] ?? "") >= 3);
  });
}

test("PAGE-D-17, JOB-D-5 how many agents may act one for another is told in both languages, for one too", () => {
  const told = LANGUAGES.map((texts) => [1, 2].map((most) => texts.jobDepth(most)));
  assert.deepEqual(told, [
    ["It may not be passed on.", "It may be passed on through at most 2 agents in a row."],
    [
      "Er darf nicht weitergegeben werden.",
      "Er darf über höchstens zwei Agenten hintereinander weitergegeben werden.",
    ],
  ]);
});
