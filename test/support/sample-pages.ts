/** Each of our pages, in the forms that it has. */

import assert from "node:assert/strict";
import { choicePage } from "../../scripts/stand-in.ts";

import type { EventView } from "../../src/people/pages/account-events.ts";
import { type AccountView, accountPage } from "../../src/people/pages/account-page.ts";
import { weekOf } from "../../src/people/pages/account-week.ts";
import { type AskView, askPage } from "../../src/people/pages/ask-page.ts";
import { type ConsentView, consentPage } from "../../src/people/pages/consent-page.ts";
import { LANGUAGES } from "../../src/people/pages/language.ts";
import { noticePage } from "../../src/people/pages/notice-page.ts";
import { frame, type Page } from "../../src/people/pages/page.ts";
import type { ShownParty } from "../../src/people/pages/parties.ts";
import { signInPage } from "../../src/people/pages/sign-in-page.ts";
import type { Texts } from "../../src/people/pages/texts.ts";
import type { Worded } from "../../src/policy/worded.ts";
import { ACCENT } from "../../src/settings/colours.ts";
import { ISSUER } from "./world.ts";

type ViewAt = ConsentView["at"][number];

/** What is asked at one target, as it comes from scopes with their sentences. */
const asked = (
  target: ViewAt["target"],
  scopes: readonly (readonly [scope: string, sentence: Worded])[],
  limits: readonly Omit<ViewAt["limits"][number], "box">[] = [],
): ViewAt => ({
  target,
  permissions: scopes.map(([scope, sentence]) => ({ box: scope, scope, sentence })),
  limits: limits.map((one, index) => ({ box: String(index), ...one })),
});

const NOTES = { title: "Notes", host: "notes.example" };
const TRIPS = { title: "Trips", host: "api.example" };
const ARCHIVE = { title: "Archive", host: "archive.example" };
const READ_TRIPS = { en: "read your trips", de: "Ihre Reisen lesen" };
const BOOK_TRIPS = {
  en: "book trips for you, which your company pays",
  de: "Reisen für Sie buchen, die Ihre Firma bezahlt",
};
const READ_NOTES = { en: "read your notes", de: "Ihre Notizen lesen" };
const CHANGE_NOTES = {
  en: "change your notes, which your team can read",
  de: "Ihre Notizen ändern, die Ihr Team lesen kann",
};
const READ_ARCHIVE = { en: "read your archive", de: "Ihr Archiv lesen" };
const NOTES_SCOPES = [
  ["notes.read", READ_NOTES],
  ["notes.write", CHANGE_NOTES],
] as const;
const TRIPS_SCOPES = [
  ["trips.read", READ_TRIPS],
  ["trips.book", BOOK_TRIPS],
] as const;
const WEATHER_HERE = { en: "read the weather where you are", de: "das Wetter an Ihrem Ort lesen" };
const WEATHER = { en: "read the weather", de: "das Wetter lesen" };

export const CONSENT: ConsentView = {
  client: { id: "claude.ai", isHost: true, naming: { claimed: "Claude" } },
  clientId: "https://claude.ai/oauth/mcp-oauth-client-metadata",
  redirectHost: "claude.ai",
  loopback: false,
  differs: false,
  mustConfirm: false,
  at: [asked(NOTES, NOTES_SCOPES)],
  untilSeconds: Date.UTC(2027, 1, 19) / 1000,
  nowSeconds: Date.UTC(2026, 10, 21) / 1000,
  agents: [],
  user: { id: "alice@company.example", name: "Alice Example" },
  formToken: "form-token",
  signOutToken: "sign-out-token",
  request: "request-id",
  base: ISSUER,
  minutesLeft: 9,
  renewable: true,
};

const SORTING = { id: "spiffe://td.example/agents/sorting" };
const WEB_APP = { id: "web-app", naming: { given: { title: "Web app" } } };
const REGISTERED = {
  id: "c_Zm9vYmFyYmF6cXV4cXV1eA",
  registeredAtSeconds: Date.UTC(2026, 8, 21) / 1000,
  naming: { claimed: { und: "Desk app", de: "Schreibtisch" } },
};

/** A client behind which anything may be, with agents further on. */
export const LOOPBACK: ConsentView = {
  ...CONSENT,
  client: REGISTERED,
  clientId: REGISTERED.id,
  redirectHost: "127.0.0.1:49152",
  loopback: true,
  mustConfirm: true,
  agents: [SORTING, { id: "spiffe://td.example/teams/research/agents/of-a-long-name-0123456789" }],
};

const PAYMENTS: readonly Omit<ViewAt["limits"][number], "box">[] = [
  {
    type: "payment",
    governs: ["trips.book"],
    detail: {
      title: { en: "Payments", de: "Zahlungen" },
      fields: [
        { label: { en: "up to", de: "bis" }, value: { amount: "500.00", unit: "EUR" } },
        { label: { en: "to", de: "an" }, value: ["TAP Air Portugal"] },
      ],
    },
  },
];

const stay = (fields: ViewAt["limits"][number]["detail"]["fields"]): (typeof PAYMENTS)[number] => ({
  type: "stay",
  governs: ["trips.book"],
  detail: { title: { en: "Stay", de: "Aufenthalt" }, fields },
});

/** Objects with each kind of value, one alone of its type and two of another, some of which would speak for the page. */
const LIMITS: typeof PAYMENTS = [
  ...PAYMENTS,
  stay([
    { label: { en: "at", de: "in" }, value: ["Lisbon", "Porto"] },
    { label: { en: "until", de: "bis" }, value: { atSeconds: 1_800_000_000 } },
  ]),
  stay([
    { label: { en: "at", de: "in" }, value: ["Rome\u202e\u201d <b>x</b>"] },
    { label: { en: "with breakfast", de: "mit Frühstück" }, value: true },
  ]),
];

/** An agent that a long chain of others leads to. */
export const ASK: AskView = {
  ...CONSENT,
  agent: {
    id: "spiffe://td.example/agents/booking",
    naming: {
      given: {
        title: { en: "Booking agent", de: "Buchungsagent" },
        purpose: { en: "Books what you chose.", de: "Bucht, was Sie ausgesucht haben." },
        owner: "Travel desk",
        contact: "travel@example.com",
      },
    },
  },
  before: [
    { id: "spiffe://td.example/agents/planner" },
    {
      id: "spiffe://partner.example/teams/research/agents/of-a-long-name-0123456789",
      toldBy: { id: "https://as.partner.example" },
    },
  ],
  at: [asked(TRIPS, TRIPS_SCOPES)],
  agents: [SORTING],
};

const BOOKINGS = { title: { en: "Bookings", de: "Buchungen" }, host: "book.example" };
const READ_BOOKINGS = { en: "read your bookings", de: "Ihre Buchungen lesen" };

const MAIL = { id: SORTING.id, naming: { given: { title: { en: "Mail sorting", de: "Postsortierung" } } } };

/** What a target asks whose objects could limit an amount, and none of them is asked. */
const UNBOUNDED: ViewAt = {
  target: TRIPS,
  limits: [],
  permissions: TRIPS_SCOPES.map(([scope, sentence]) =>
    scope === "trips.book"
      ? { box: scope, scope, sentence, unbounded: true }
      : { box: scope, scope, sentence },
  ),
};

/** The usual case: an agent with a title, asked by one other. */
const USUAL: AskView = {
  ...ASK,
  zone: "Europe/Berlin",
  at: [UNBOUNDED],
  before: [
    {
      id: "spiffe://td.example/agents/planner",
      naming: { given: { title: { en: "Planner", de: "Planer" } } },
    },
  ],
  agents: [MAIL],
  reason: "You asked me to book the trip to Lisbon in March.",
};

/** The job of the demo. */
const DEMO_JOB = {
  ...CONSENT,
  agent: {
    id: "spiffe://example.org/crew/lee-7f3a09c1",
    naming: { given: { title: { en: "Lee of the crew", de: "Lee aus dem Team" } } },
  },
  before: [],
  zone: "Europe/Berlin",
  at: [asked(BOOKINGS, [["bookings.read", READ_BOOKINGS]])],
  nowSeconds: Date.UTC(2026, 10, 21, 13, 40) / 1000,
  untilSeconds: Date.UTC(2026, 10, 21, 15, 40) / 1000,
  job: {
    title: "Rebook the flight to Lisbon",
    participants: [{ box: ASK.agent.id, party: ASK.agent, unasked: [] }],
    maxTokens: 3,
    ...{ without: [], beside: [], unasked: [], goOn: [] },
  },
} satisfies AskView;

const THREE: NonNullable<AskView["job"]>["participants"] = [
  { box: ASK.agent.id, party: ASK.agent, unasked: [] },
  { box: SORTING.id, party: MAIL, may: [{ target: TRIPS, sentences: [READ_TRIPS] }], unasked: [] },
  {
    box: "spiffe://td.example/agents/desk",
    party: { id: "spiffe://td.example/agents/desk", naming: { given: { title: "Travel desk" } } },
    may: [],
    unasked: [{ target: NOTES, sentences: [READ_NOTES] }],
  },
];

const LONG: ConsentView = {
  ...CONSENT,
  client: { id: `${"a-long-label-of-a-host.".repeat(5)}claude.ai.example.net:8443`, isHost: true },
  differs: true,
  redirectHost: `xn--bcher-kva.${"another-label-".repeat(4)}x.example`,
};

const agent = (name: string, title: Worded): EventView["parties"][number] => ({
  id: `spiffe://td.example/agents/${name}`,
  naming: { given: { title } },
});

const [PLANNER, BOOKING] = [
  agent("planner", { en: "Planner", de: "Planer" }),
  agent("booking", { en: "Booking agent", de: "Buchungsagent" }),
];

const PLANS: ShownParty = {
  id: PLANNER.id,
  naming: {
    given: {
      title: { en: "Planner", de: "Planer" },
      purpose: { en: "Plans your trips.", de: "Plant Ihre Reisen." },
    },
  },
};

/** What each agent does, and the way that led to it; what the user does has no agent. */
const ACTORS: readonly Pick<EventView, "parties" | "permissions">[] = [
  { parties: [WEB_APP, PLANNER, BOOKING], permissions: [{ target: TRIPS, sentences: [READ_TRIPS] }] },
  { parties: [WEB_APP], permissions: [{ target: NOTES, sentences: [READ_NOTES] }] },
  {
    parties: [
      { id: "spiffe://partner.example/agents/travel", toldBy: { id: "https://as.partner.example" } },
      SORTING,
    ],
    permissions: [{ target: ARCHIVE, sentences: [] }],
  },
];

const ACTING = /^(?:acted|token_given|grant_redeemed|renewed_elsewhere)/;

/** As the server finds it in the same trail. */
function lastUseIn(events: readonly EventView[], id: string): AccountView["allowed"][number]["lastUse"] {
  const found = events.find(({ kind, parties }) => ACTING.test(kind) && parties.at(-1)?.id === id);
  return found === undefined ? "none" : { atMs: found.atMs };
}

const weekIn = (events: readonly EventView[], nowSeconds: number): ReturnType<typeof weekOf> =>
  weekOf(
    events.map(({ kind, atMs, parties }) => ({
      ...{ kind, timeMs: atMs, targets: [], scopes: [] },
      agents: parties.map(({ id }) => ({ id })),
    })),
    false,
    nowSeconds,
    "Europe/Berlin",
  );

const NOW = Date.UTC(2026, 10, 22, 9) / 1000;

/** All that may happen, one thing an hour. */
const EVENTS = Object.keys(LANGUAGES[0]?.done ?? {}).map(
  (kind, index): EventView => ({
    kind: kind as EventView["kind"],
    atMs: Date.UTC(2026, 10, 21, 20, 30) - index * 3_600_000,
    ...(kind === "refused" && { refusedFor: "rules" }),
    ...(/signed|ended/.test(kind)
      ? { parties: [], permissions: [] }
      : (ACTORS[index % ACTORS.length] ?? assert.fail())),
    ...(kind.startsWith("job_") && { title: "Book the trip to Lisbon" }),
  }),
);

/** What an agent has, where nothing is special. */
const HELD: Omit<AccountView["allowed"][number], "id" | "agent" | "party"> = {
  formToken: "form-token",
  way: [],
  details: [],
  permissions: [{ target: NOTES, sentences: [READ_NOTES, CHANGE_NOTES] }],
  agents: [],
  sinceSeconds: Date.UTC(2026, 10, 2) / 1000,
  untilSeconds: CONSENT.untilSeconds,
  lastUse: "none",
  goesOn: [],
};

/** One of each: a client of the operator, of a document, one that registered itself, and an agent; all that may happen. */
export const ACCOUNT: AccountView = {
  base: ISSUER,
  user: { id: "alice@company.example", name: "Alice Example" },
  signOutToken: "sign-out-token",
  zone: "Europe/Berlin",
  minutesAfter: 5,
  takeAllToken: "take-all-token",
  week: weekIn(EVENTS, NOW),
  jobs: [
    {
      id: "job_0123456789abcdefghijkl",
      formToken: "stop-token",
      title: "Book the trip to Lisbon",
      agent: "planner",
      way: [WEB_APP, PLANNER],
      party: PLANNER,
      participants: [BOOKING],
      permissions: [
        {
          target: TRIPS,
          sentences: [READ_TRIPS, BOOK_TRIPS],
        },
      ],
      untilSeconds: Date.UTC(2026, 10, 22, 11) / 1000,
      beside: [
        {
          target: { title: { en: "Weather", de: "Wetter" }, host: "weather.example" },
          sentences: [WEATHER_HERE],
        },
      ],
    },
  ],
  nowSeconds: NOW,
  stopped: [
    {
      title: "Plan the week",
      party: PLANNER,
      open: [
        {
          target: TRIPS,
          untilSeconds: Date.UTC(2026, 10, 22, 9, 4) / 1000,
        },
      ],
    },
  ],
  moreAllowed: `${ISSUER}/account?after=4`,
  firstAllowed: `${ISSUER}/account`,
  questions: [
    {
      id: "question",
      party: WEB_APP,
      permissions: [{ target: NOTES, sentences: [READ_NOTES, CHANGE_NOTES] }],
      minutesLeft: 42,
      untilSeconds: CONSENT.untilSeconds,
    },
    {
      id: "question-2",
      party: WEB_APP,
      permissions: [{ target: NOTES, sentences: [CHANGE_NOTES] }],
      minutesLeft: 5,
      untilSeconds: CONSENT.untilSeconds,
    },
  ],
  allowed: [
    {
      id: "1",
      formToken: "form-token",
      agent: "web-app",
      way: [],
      party: WEB_APP,
      details: [],
      permissions: [{ target: NOTES, sentences: [READ_NOTES, CHANGE_NOTES] }],
      agents: LOOPBACK.agents,
      sinceSeconds: Date.UTC(2026, 10, 2) / 1000,
      untilSeconds: CONSENT.untilSeconds,
      lastUse: lastUseIn(EVENTS, "web-app"),
      goesOn: [
        {
          sinceSeconds: Date.UTC(2026, 10, 20) / 1000,
          usedSeconds: Date.UTC(2026, 10, 21) / 1000,
          untilSeconds: Date.UTC(2026, 11, 2) / 1000,
          idleUntilSeconds: Date.UTC(2026, 10, 28) / 1000,
        },
      ],
      renewedElsewhere: true,
      reusedAtMs: Date.UTC(2026, 10, 20),
    },
    {
      id: "2",
      formToken: "form-token",
      agent: "claude",
      way: [],
      party: CONSENT.client,
      details: [],
      permissions: [{ target: NOTES, sentences: [READ_NOTES] }],
      agents: [],
      lastUse: "none",
      goesOn: [],
    },
    {
      id: "3",
      formToken: "form-token",
      agent: "registered",
      way: [],
      party: REGISTERED,
      details: [],
      permissions: [{ target: TRIPS, sentences: [READ_TRIPS] }],
      agents: [],
      lastUse: { noneSinceMs: Date.UTC(2026, 8, 30) },
      goesOn: [],
    },
    {
      id: "4",
      formToken: "form-token",
      agent: "sorting",
      way: [],
      party: SORTING,
      details: [],
      permissions: [],
      gone: [ARCHIVE],
      agents: [],
      lastUse: lastUseIn(EVENTS, SORTING.id),
      goesOn: [],
    },
  ],
  events: EVENTS,
  firstDay: "2026-11-01",
  lastDay: "2026-11-22",
  older: `${ISSUER}/account?before=1`,
  newest: `${ISSUER}/account`,
};

const EMPTY: AccountView = {
  base: ISSUER,
  user: { id: "alice@company.example", name: "Alice Example" },
  signOutToken: "sign-out-token",
  minutesAfter: 5,
  takeAllToken: "take-all-token",
  questions: [],
  jobs: [],
  stopped: [],
  nowSeconds: ACCOUNT.nowSeconds,
  allowed: [],
  events: [],
  firstDay: "",
  lastDay: "",
};

const DAY_MS = 24 * 3600 * 1000;

/** On each of three days the booking agent works for the web app, which reads notes. */
const STORY_EVENTS = [0, 1, 2].flatMap((day): readonly EventView[] => {
  const [booking = assert.fail(), web = assert.fail()] = ACTORS;
  const at = (minutes: number): number => (NOW - minutes * 60) * 1000 - day * DAY_MS;
  const { permissions } = web;
  return [
    ...[3, 13, 23].slice(day).map((minutes) => ({
      ...{ ...booking, ...{ kind: "acted" as const, parties: [PLANNER, BOOKING] } },
      atMs: at(minutes),
    })),
    ...(day === 1 ? [] : [33, 43, 53]).map((minutes) => ({
      ...{ ...booking, parties: [PLANNER, BOOKING] },
      ...{ kind: "refused" as const, refusedFor: "not_allowed" as const },
      atMs: at(minutes),
      permissions: [{ target: NOTES, sentences: [CHANGE_NOTES] }],
    })),
    { ...web, kind: "token_given", atMs: at(60) },
    ...(day === 2
      ? [{ kind: "allowed" as const, atMs: at(70), parties: [CONSENT.client], permissions }]
      : []),
  ];
});

/** A user of one company with a web app and its chain, a job, a partner's agent, and what they did in three days. */
const STORY: AccountView = {
  ...EMPTY,
  zone: "Europe/Berlin",
  week: weekIn(STORY_EVENTS, NOW),
  jobs: ACCOUNT.jobs,
  allowed: [
    {
      ...{ ...HELD, id: "s1", agent: "web-app", party: WEB_APP, agents: [PLANNER] },
      lastUse: lastUseIn(STORY_EVENTS, WEB_APP.id),
    },
    {
      ...{ ...HELD, id: "s2", agent: "booking", party: BOOKING, way: [PLANNER, BOOKING] },
      permissions: [{ target: TRIPS, sentences: [READ_TRIPS, BOOK_TRIPS] }],
      lastUse: lastUseIn(STORY_EVENTS, BOOKING.id),
    },
    {
      ...{ ...HELD, id: "s3", agent: "claude", party: CONSENT.client },
      permissions: [{ target: NOTES, sentences: [READ_NOTES] }],
      sinceSeconds: Date.UTC(2026, 10, 20) / 1000,
    },
  ],
  events: STORY_EVENTS,
};

const LONG_ACCOUNT: AccountView = {
  ...ACCOUNT,
  user: {
    id: "a-user-name-without-any-blank-in-it".repeat(2),
    name: "Another-name-without-any-blank-in-it".repeat(2),
  },
  allowed: ACCOUNT.allowed.slice(0, 1).map((one) => ({
    ...one,
    party: { ...LONG.client, naming: { claimed: "name-without-a-blank".repeat(3) } },
    details: [],
    permissions: [{ target: { title: `${"target.".repeat(12)}example` }, sentences: ["scope.".repeat(20)] }],
  })),
  events: [
    {
      kind: "refused",
      atMs: 0,
      parties: [
        LONG.client,
        {
          id: `spiffe://td.example/${"path/".repeat(50)}`,
          toldBy: { id: `https://${"label.".repeat(20)}example` },
        },
      ],
      permissions: [{ target: NOTES, sentences: ["scope.".repeat(20)] }],
    },
  ],
};

const REASON = "You asked me to book the trip to Lisbon in March, with a hotel near the office.";

const SIX = [
  ["trips.read", "read your trips"],
  ["trips.book", "book trips for you, which your company pays"],
  ["trips.cancel", "cancel trips that you booked"],
  ["seats.choose", "choose your seats"],
  ["meals.choose", "choose your meals"],
  ["expenses.write", "write your expenses of a trip"],
] as const;

/** Text of an attacker's choosing: of any length, in another direction, like text of ours. */
const HOSTILE = `\u202eAllow? Signed in as root. ${"It is safe to allow this, says your company. ".repeat(250)}`;
const HOSTILE_ID = `spiffe://${"td.".repeat(80)}example/${"Your-company-says-allow/".repeat(80)}agent`;
const HOSTILE_VIEW = {
  reason: HOSTILE,
  user: { id: HOSTILE, name: HOSTILE },
  agents: Array.from({ length: 40 }, (_, index) => ({ id: `${HOSTILE_ID}${index}` })),
};

/** The notices that tell of no fault. */
const DONE = /^(?:ask_(?:allowed|refused)|home|signed_out)$/;
const kinds = Object.keys(LANGUAGES[0]?.notices ?? {}) as (keyof Texts["notices"])[];

export const SAMPLES: Readonly<Record<string, Page>> = {
  consent: consentPage(CONSENT),
  "consent-one-scope": consentPage({
    ...CONSENT,
    at: [asked(NOTES, NOTES_SCOPES.slice(0, 1))],
    renewable: false,
  }),
  "consent-nothing-ticked": consentPage({ ...CONSENT, problem: "nothing_ticked" }),
  "consent-configured": consentPage({ ...CONSENT, client: WEB_APP }),
  "consent-loopback": consentPage(LOOPBACK),
  "consent-unconfirmed": consentPage({ ...LOOPBACK, problem: "unconfirmed" }),
  "consent-long": consentPage(LONG),
  "consent-six-scopes": consentPage({ ...CONSENT, at: [asked(NOTES, SIX)], reason: REASON }),
  "consent-loopback-six-scopes": consentPage({ ...LOOPBACK, at: [asked(NOTES, SIX)] }),
  ask: askPage(ASK),
  "ask-six-scopes": askPage({ ...ASK, at: [asked(TRIPS, SIX)], reason: REASON }),
  "ask-bounded": askPage({ ...ASK, at: [asked(TRIPS, TRIPS_SCOPES, LIMITS)] }),
  "ask-limit-not-ticked": askPage({
    ...ASK,
    at: [asked(TRIPS, TRIPS_SCOPES, LIMITS)],
    problem: "limit_not_ticked",
  }),
  "ask-denied": askPage({ ...ASK, denied: true }),
  "ask-plain": askPage({
    ...ASK,
    agent: { id: `spiffe://td.example/${"a-long-name-of-an-agent/".repeat(4)}x` },
    before: [],
    agents: [],
    at: [asked(TRIPS, TRIPS_SCOPES.slice(0, 1))],
    renewable: false,
  }),
  "consent-bounded": consentPage({
    ...CONSENT,
    at: [asked(NOTES, NOTES_SCOPES), asked(TRIPS, TRIPS_SCOPES)],
    untilSeconds: Date.UTC(2026, 10, 21, 2, 5) / 1000,
    zone: "Europe/Berlin",
    job: {
      title: "Plan the trip to Rome",
      participants: [
        {
          box: SORTING.id,
          party: SORTING,
          may: [{ target: TRIPS, sentences: [READ_TRIPS] }],
          unasked: [{ target: NOTES, sentences: [READ_NOTES] }],
        },
      ],
      maxTokens: 50,
      maxDepth: 3,
      without: [{ target: NOTES, sentences: NOTES_SCOPES.map(([, sentence]) => sentence) }],
      beside: [{ target: ARCHIVE, sentences: [READ_ARCHIVE] }],
      unasked: [
        { target: { title: { en: "Weather", de: "Wetter" }, host: "weather.example" }, sentences: [WEATHER] },
      ],
      goOn: [TRIPS],
    },
  }),
  "ask-usual": askPage(USUAL),
  "ask-job": askPage(DEMO_JOB),
  "ask-job-usual": askPage({
    ...DEMO_JOB,
    ...{ agent: PLANS, untilSeconds: DEMO_JOB.nowSeconds + 7200 },
    at: [asked(TRIPS, TRIPS_SCOPES, PAYMENTS)],
  }),
  "ask-job-three": askPage({
    ...DEMO_JOB,
    at: [DEMO_JOB.at[0] ?? assert.fail(), UNBOUNDED],
    job: { ...DEMO_JOB.job, participants: THREE, maxTokens: 20 },
  }),
  "ask-job-bounded": askPage({
    ...DEMO_JOB,
    at: [asked(TRIPS, TRIPS_SCOPES, PAYMENTS), asked(NOTES, NOTES_SCOPES)],
    job: {
      ...DEMO_JOB.job,
      own: [{ target: TRIPS, sentences: TRIPS_SCOPES.map(([, sentence]) => sentence) }],
      participants: THREE.slice(0, 1),
    },
  }),
  "ask-job-nothing-ticked": askPage({ ...DEMO_JOB, problem: "nothing_ticked" }),
  "ask-job-alone": askPage({
    ...ASK,
    agents: [],
    job: {
      ...{ title: "Look at the trip to Rome", participants: [], alone: true },
      ...{ without: [], beside: [], unasked: [], goOn: [] },
    },
  }),
  "consent-hostile": consentPage({
    ...LONG,
    ...HOSTILE_VIEW,
    clientId: HOSTILE,
    client: { ...LONG.client, naming: { claimed: HOSTILE } },
    loopback: true,
    mustConfirm: true,
  }),
  "ask-hostile": askPage({
    ...ASK,
    ...HOSTILE_VIEW,
    agent: { id: HOSTILE_ID, naming: { given: { title: HOSTILE, purpose: HOSTILE.slice(0, 200) } } },
    before: Array.from({ length: 8 }, () => ({
      id: HOSTILE_ID,
      toldBy: { id: `https://${"host.".repeat(50)}example` },
    })),
  }),
  account: accountPage(ACCOUNT),
  "account-story": accountPage(STORY),
  "account-empty": accountPage({ ...EMPTY, zone: "Europe/Berlin" }),
  "account-long": accountPage(LONG_ACCOUNT),
  "account-unconfirmed": accountPage({
    ...ACCOUNT,
    allowed: ACCOUNT.allowed.slice(0, 1),
    events: [],
    problem: "unconfirmed",
  }),
  "account-day": accountPage({
    ...EMPTY,
    firstDay: "2026-02-02",
    lastDay: "2026-02-01",
    problem: "days_turned",
  }),
  "sign-in": signInPage({
    providers: [
      { title: { en: "Example Corporation", de: "Beispiel AG" }, href: `${ISSUER}/signin?r=1&provider=a` },
      { title: "Partner of the corporation", href: `${ISSUER}/signin?r=1&provider=b` },
    ],
  }),
  "stand-in": choicePage("https://idp.example", new URLSearchParams({ state: "1" })),
  "notice-ways": noticePage({
    kind: "sign_in_failed",
    status: 400,
    onwards: `${ISSUER}/authorize/review?r=1`,
    back: { href: "https://app.example/cb?error=access_denied&state=1", host: "app.example" },
  }),
  "notice-further": noticePage({
    kind: "signed_out",
    status: 200,
    further: { href: "https://idp.example/end", host: { en: "Example Corporation", de: "Beispiel AG" } },
  }),
  ...Object.fromEntries(
    kinds.map((kind) => [`notice-${kind}`, noticePage({ kind, status: DONE.test(kind) ? 200 : 400 })]),
  ),
};

export const OPERATOR = "Example Corporation";

export const writtenIn = (texts: Texts, page: Page): string =>
  frame(page, {
    texts,
    operator: OPERATOR,
    colours: ACCENT,
    account: `${ISSUER}/account`,
    requestId: "0b7c9a52-4f0e-4d1b-9a54-6f1f4b1f2c3d",
  });
