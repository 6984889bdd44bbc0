/** Each of our pages, in the forms that it has. */
import type { AskView } from "../../src/http/pages/ask-page.ts";
import { askPage } from "../../src/http/pages/ask-page.ts";
import type { ConsentView } from "../../src/http/pages/consent-page.ts";
import { consentPage } from "../../src/http/pages/consent-page.ts";
import { LANGUAGES } from "../../src/http/pages/language.ts";
import { noticePage } from "../../src/http/pages/notice-page.ts";
import type { Page } from "../../src/http/pages/page.ts";
import { frame } from "../../src/http/pages/page.ts";
import { signInPage } from "../../src/http/pages/sign-in-page.ts";
import type { Texts } from "../../src/http/pages/texts.ts";
import { ACCENT } from "../../src/settings/colours.ts";
import { ISSUER } from "./world.ts";

export const CONSENT: ConsentView = {
  client: { host: "claude.ai" },
  claimedName: "Claude",
  redirectHost: "claude.ai",
  loopback: false,
  differs: false,
  mustConfirm: false,
  target: { title: "Notes", host: "notes.example" },
  scopes: [
    { value: "notes.read", sentence: "read your notes" },
    {
      value: "notes.write",
      sentence: "change your notes, and show them to others of the company who use the same notebook",
    },
  ],
  untilSeconds: Date.UTC(2027, 1, 19) / 1000,
  agents: [],
  user: "Alice Example",
  formToken: "form-token",
  signOutToken: "sign-out-token",
  request: "request-id",
  base: ISSUER,
  minutesLeft: 9,
  renewable: true,
};

/** A client behind which anything may be, with agents further on. */
export const LOOPBACK: ConsentView = {
  ...CONSENT,
  client: { registeredAtSeconds: Date.UTC(2026, 8, 21) / 1000 },
  claimedName: "Desk app",
  redirectHost: "127.0.0.1:49152",
  loopback: true,
  mustConfirm: true,
  agents: [
    "spiffe://td.example/agents/sorting",
    "spiffe://td.example/teams/research/agents/of-a-long-name-0123456789",
  ],
};

/** An agent that a long chain of others leads to. */
export const ASK: AskView = {
  ...CONSENT,
  agent: { id: "spiffe://td.example/agents/booking", title: "Booking agent" },
  before: [
    { id: "spiffe://td.example/agents/planner" },
    {
      id: "spiffe://partner.example/teams/research/agents/of-a-long-name-0123456789",
      host: "as.partner.example",
    },
  ],
  target: { title: "Trips", host: "api.example" },
  scopes: [
    { value: "trips.read", sentence: "read your trips" },
    { value: "trips.book", sentence: "book trips for you, which your company pays" },
  ],
  agents: ["spiffe://td.example/agents/sorting"],
};

const LONG: ConsentView = {
  ...CONSENT,
  client: { host: `${"a-long-label-of-a-host.".repeat(5)}claude.ai.example.net:8443` },
  differs: true,
  redirectHost: `xn--bcher-kva.${"another-label-".repeat(4)}x.example`,
};

const kinds = Object.keys(LANGUAGES[0]?.notices ?? {}) as (keyof Texts["notices"])[];

export const SAMPLES: Readonly<Record<string, Page>> = {
  consent: consentPage(CONSENT),
  "consent-one-scope": consentPage({ ...CONSENT, scopes: CONSENT.scopes.slice(0, 1), renewable: false }),
  "consent-configured": consentPage({ ...CONSENT, client: { operatorName: "Web app" } }),
  "consent-loopback": consentPage(LOOPBACK),
  "consent-unconfirmed": consentPage({ ...LOOPBACK, problem: "unconfirmed" }),
  "consent-long": consentPage(LONG),
  ask: askPage(ASK),
  "ask-plain": askPage({
    ...ASK,
    agent: { id: `spiffe://td.example/${"a-long-name-of-an-agent/".repeat(4)}x` },
    before: [],
    agents: [],
    scopes: ASK.scopes.slice(0, 1),
    renewable: false,
  }),
  "sign-in": signInPage({
    providers: [
      { title: "Example Corporation", href: `${ISSUER}/signin?r=1&provider=a` },
      { title: "Partner of the corporation", href: `${ISSUER}/signin?r=1&provider=b` },
    ],
  }),
  "notice-ways": noticePage({
    kind: "sign_in_failed",
    status: 400,
    onwards: `${ISSUER}/authorize/review?r=1`,
    back: { href: "https://app.example/cb?error=access_denied&state=1", host: "app.example" },
  }),
  "notice-further": noticePage({
    kind: "signed_out",
    status: 200,
    further: { href: "https://idp.example/end", host: "Example Corporation" },
  }),
  ...Object.fromEntries(kinds.map((kind) => [`notice-${kind}`, noticePage({ kind, status: 400 })])),
};

export const OPERATOR = "Example Corporation";

export const writtenIn = (texts: Texts, page: Page): string =>
  frame(page, { texts, operator: OPERATOR, colours: ACCENT });
