/** The catalogue of all text on our pages, by key and language (PAGE-D-17). A key that a language lacks does not compile. */

import type { OwnEventKind } from "../audit/own-events.ts";
import type { NoticeKind } from "../flows/outcome.ts";
import type { Html } from "./html.ts";

/** Names and hosts come in as markup, inside `bdi`; a title is plain text. */
export type Texts = {
  /** The tag for `lang` and for dates. */
  language: string;
  consentTitle: (client: string) => string;
  consentHeading: (client: Html) => Html;
  /** The words in place of a name, where the client has none that was checked. */
  selfRegisteredClient: string;
  claimedName: (name: Html) => Html;
  reasonGiven: (words: Html) => Html;
  answeredForBy: (owner: string, contact: string | undefined) => string;
  askHeading: (agent: Html) => Html;
  askWhy: string;
  agentIdentity: string;
  worksFor: string;
  you: string;
  thisAgent: string;
  beforeYouGoOn: string;
  selfRegistered: (date: string) => string;
  loopback: string;
  onlyIfYou: string;
  redirectDiffers: (redirect: Html, client: Html) => Html;
  confirm: string;
  unconfirmedTitle: string;
  unconfirmed: string;
  signedInAs: string;
  notYou: string;
  answerGoesTo: string;
  onThisComputer: string;
  lastsUntil: string;
  /** For how long the client goes on without the user. */
  goesOnFor: string;
  hours: (count: number) => string;
  goOnWithoutMe: (times: { days: number; idleDays: number; hours: number }) => string;
  timeLeft: string;
  minutes: (count: number) => string;
  moreTime: string;
  asksTo: (target: Html) => Html;
  tickHint: string;
  everything: string;
  agents: string;
  refuse: string;
  allow: string;
  signInTitle: string;
  signInHint: string;
  goOn: string;
  signOut: string;
  signOutAt: (provider: Html) => Html;
  backTo: (host: Html) => Html;
  /** `account`: the link to the account page. */
  takenBackAt: (account: Html) => Html;
  accountTitle: string;
  allowedHeading: string;
  nothingAllowed: string;
  /** How long, in minutes, a service may still take a token that it checks by itself. */
  takeBackHint: (minutes: number) => string;
  mayAt: (target: Html) => Html;
  allowedSince: string;
  allowedUntil: string;
  untilTakenBack: string;
  lastUsed: string;
  noUse: string;
  noUseSince: (date: string) => string;
  goesOn: string;
  goesOnUntil: (since: string, used: string, until: string) => string;
  goesOnIdle: (date: string) => string;
  reused: (date: string) => string;
  renewedElsewhere: string;
  takeBack: string;
  takeAllHeading: string;
  takeAllConfirm: string;
  takeAll: string;
  takeAllUnconfirmed: string;
  moreAllowed: string;
  firstAllowed: string;
  doneHeading: string;
  doneHint: string;
  nothingDone: string;
  daysLegend: string;
  firstDay: string;
  lastDay: string;
  showDays: string;
  dayWrongTitle: string;
  dayWrong: string;
  older: string;
  newest: string;
  wayOfAgents: string;
  toldBy: (issuer: Html) => Html;
  doneAt: (target: Html) => Html;
  /** `agent` is the one that acted last. */
  done: Record<OwnEventKind, (agent: Html) => Html>;
  notices: Record<NoticeKind | "signed_out" | "fault", { title: string; text: string }>;
};
