/** The catalogue of all text on our pages, by key and language (PAGE-D-17). A key that a language lacks does not compile. */

import type { OwnEventKind } from "../audit/own-events.ts";
import type { NoticeKind } from "../flows/outcome.ts";
import type { Html } from "./html.ts";

/** What is told apart by a mark and a colour. */
export type DoneSort = "act" | "gift" | "refusal" | "ending" | "session";

/** Names and hosts come in as markup, inside `bdi`; a title is plain text. */
export type Texts = {
  /** The tag for `lang` and for dates. */
  language: string;
  /** The time zone of the reader, where it is known; no language has one. */
  zone?: string;
  consentTitle: (client: string) => string;
  consentHeading: (client: Html) => Html;
  /** The words in place of a name, where the client has none that was checked. */
  unverifiedClient: string;
  claimedName: (name: Html) => Html;
  reasonGiven: (words: Html) => Html;
  askHeading: (agent: Html) => Html;
  askWhy: string;
  /** The first of the chain of those who act for the user. */
  you: string;
  agentsBetween: (count: number) => string;
  selfRegistered: (date: string) => string;
  loopback: string;
  redirectDiffers: (redirect: Html, client: Html) => Html;
  confirm: string;
  unconfirmedTitle: string;
  unconfirmed: string;
  signedInAs: string;
  notYou: string;
  canTakeBack: string;
  timeLeft: (minutes: number) => string;
  moreTime: string;
  details: string;
  lastsUntil: string;
  /** For how long the client goes on without the user. */
  goesOnFor: string;
  hours: (count: number) => string;
  goOnWithoutMe: (times: { days: number; idleDays: number; hours: number }) => string;
  answerGoesTo: string;
  onThisComputer: string;
  clientId: string;
  scopeNames: string;
  answersFor: string;
  identities: string;
  asksTo: (target: Html) => Html;
  tickHint: string;
  everything: string;
  agentsFurther: (count: number) => string;
  refuse: string;
  allow: string;
  signInTitle: string;
  signInHint: string;
  goOn: string;
  signOut: string;
  signOutAt: (provider: Html) => Html;
  backTo: (host: Html) => Html;
  accountTitle: string;
  /** Before the id of the request. */
  forSupport: string;
  allowedHeading: string;
  nothingAllowed: string;
  /** How long, in minutes, a service may still take a token that it checks by itself. */
  takeBackHint: (minutes: number) => string;
  mayAt: (target: Html) => Html;
  allowedSince: string;
  allowedUntil: (date: string) => string;
  untilTakenBack: string;
  lastUsed: (date: string) => string;
  noUse: string;
  noUseSince: (date: string) => string;
  goesOn: string;
  goesOnUntil: (since: string, used: string, until: string) => string;
  goesOnIdle: (date: string) => string;
  reused: (date: string) => string;
  renewedElsewhere: string;
  mayActFurther: string;
  more: string;
  takeBack: string;
  takeBackQuestion: string;
  takeBackYes: string;
  takeAllHeading: string;
  takeAllConfirm: string;
  takeAll: string;
  takeAllUnconfirmed: string;
  moreAllowed: string;
  firstAllowed: string;
  doneHeading: string;
  doneHint: (zone: string | undefined) => string;
  nothingDone: string;
  daysLegend: string;
  firstDay: string;
  lastDay: string;
  showDays: string;
  dayWrongTitle: string;
  dayWrong: string;
  older: string;
  newest: string;
  /** The heading of what has no agent. */
  yourself: string;
  exactTime: string;
  toldBy: (issuer: Html) => Html;
  doneAt: (target: Html) => Html;
  /** What each mark stands for. */
  sorts: Record<DoneSort, string>;
  /** What the agent did that acted last, which is named above it. */
  done: Record<OwnEventKind, string>;
  notices: Record<NoticeKind | "home" | "signed_out" | "fault", { title: string; text: string }>;
};
