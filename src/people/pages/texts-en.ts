/** The texts of the pages in English. */
import { html } from "./html.ts";
import type { Texts } from "./texts.ts";

const count = (number: number, unit: string): string => `${number} ${unit}${number === 1 ? "" : "s"}`;

export const en: Texts = {
  language: "en",
  consentTitle: (client) => `Allow ${client}?`,
  consentHeading: (client) => html`${client} asks for access`,
  selfRegisteredClient: "A program that registered itself",
  claimedName: (name) => html`It calls itself “${name}”.`,
  reasonGiven: (words) => html`Reason given: “${words}”`,
  answeredForBy: (owner, contact) =>
    `${owner} answers for it${contact === undefined ? "" : ` (${contact})`}.`,
  askHeading: (agent) => html`${agent} asks to act for you`,
  askWhy:
    "An agent that works for you may go on only if you allow it. If you do not know why it asks, refuse.",
  agentIdentity: "The agent",
  worksFor: "Who works for whom",
  you: "you",
  thisAgent: "this agent",
  beforeYouGoOn: "Before you go on",
  selfRegistered: (date) => `This program registered itself on ${date}. Its name was not checked.`,
  loopback:
    "The answer goes to a program on this computer. Any program on it could be the one that receives it.",
  onlyIfYou: "Go on only if you started this yourself just now.",
  redirectDiffers: (redirect, client) =>
    html`The answer goes to ${redirect}, which is another host than ${client}.`,
  confirm: "I started this myself just now",
  unconfirmedTitle: "One box is missing",
  unconfirmed:
    "Tick “I started this myself just now”, tick again what you allow, and then choose. Or refuse.",
  signedInAs: "You are signed in as",
  notYou: "Not you?",
  answerGoesTo: "The answer goes to",
  onThisComputer: "on this computer",
  lastsUntil: "What you allow lasts until",
  goesOnFor: "Without asking you again it gets on for",
  hours: (hours) => count(hours, "hour"),
  goOnWithoutMe: ({ days, idleDays, hours }) =>
    `get on without asking you again for ${count(days, "day")} in place of ${count(hours, "hour")}, as long as it is used every ${count(idleDays, "day")}`,
  timeLeft: "Time to decide",
  minutes: (count) => (count === 1 ? "1 minute" : `${count} minutes`),
  moreTime: "Give me more time",
  asksTo: (target) => html`At ${target} it asks to`,
  tickHint: "Tick what you allow. Nothing else is given. If you tick nothing, you refuse.",
  everything: "All of this",
  agents: "With what you allow, these may act further in your name without asking you again:",
  refuse: "Refuse",
  allow: "Allow",
  signInTitle: "Sign in",
  signInHint: "Choose where you have your account.",
  goOn: "Go on",
  signOut: "Sign out",
  signOutAt: (provider) => html`Sign out at ${provider} too`,
  backTo: (host) => html`Back to ${host}`,
  takenBackAt: (account) => html`What you allow can be taken back at any time: ${account}`,
  accountTitle: "Your account",
  allowedHeading: "What you allowed",
  nothingAllowed: "You allow nothing to any program at present.",
  takeBackHint: (minutes) =>
    `What you take back ends here at once, with everything that was given under it. A service that checks by itself may notice it up to ${minutes === 1 ? "1 minute" : `${minutes} minutes`} later.`,
  mayAt: (target) => html`May, at ${target}`,
  allowedSince: "Allowed since",
  allowedUntil: "Lasts until",
  untilTakenBack: "you take it back",
  lastUsed: "Last used",
  noUse: "No use on record",
  noUseSince: (date) => `No use on record since ${date}`,
  goesOn: "Goes on while you are away",
  goesOnUntil: (since, used, until) => `Since ${since}, last used on ${used}, until ${until}.`,
  goesOnIdle: (date) => `Without use it ends on ${date}.`,
  reused: (date) =>
    `On ${date} access of this program was ended, because it was used from two places: a copy of it may have been stolen. If you use the program, sign in there again.`,
  renewedElsewhere:
    "Two networks used the same access of this program within seconds. That may be your own change of network, or a stolen copy: if you do not know why, take back what you allowed.",
  takeBack: "Take back",
  takeAllHeading: "Take back everything",
  takeAllConfirm: "Yes, all that I allowed to any program",
  takeAll: "Take back everything",
  takeAllUnconfirmed:
    "Tick “Yes, all that I allowed to any program”, and then choose again. Nothing was taken back.",
  moreAllowed: "More of what you allowed",
  firstAllowed: "What you allowed, from the start",
  doneHeading: "What was done in your name",
  doneHint: "The newest first. Times are UTC.",
  nothingDone: "Nothing is on record.",
  daysLegend: "Show certain days",
  firstDay: "First day",
  lastDay: "Last day",
  showDays: "Show",
  dayWrongTitle: "A day is not valid",
  dayWrong: "Write each day as in 2027-01-31, the first not after the last, or leave it empty.",
  older: "Older entries",
  newest: "Newest entries",
  wayOfAgents: "Through, in this order",
  toldBy: (issuer) => html`as ${issuer} says`,
  doneAt: (target) => html`At ${target}`,
  done: {
    token_given: (agent) => html`${agent} received access to what you allowed.`,
    acted: (agent) => html`${agent} acted in your name.`,
    acted_as_you: (agent) => html`${agent} acted as you, without being named itself.`,
    grant_redeemed: (agent) =>
      html`${agent} came from another company with a grant in your name, and was let in.`,
    refused: (agent) => html`${agent} wanted to act in your name, and was refused.`,
    you_refused: (agent) => html`You refused ${agent}.`,
    allowed: (agent) => html`You gave permissions to ${agent}.`,
    allowed_by_others: (agent) => html`An administrator gave permissions to ${agent} in your name.`,
    taken_back: (agent) => html`You took back the permissions of ${agent}.`,
    taken_back_by_others: (agent) => html`An administrator took back the permissions of ${agent}.`,
    renewed_elsewhere: (agent) =>
      html`${agent} used the same access from two networks within seconds. If you do not know why, take back what you allowed.`,
    ended: () => html`What programs had for you was ended.`,
    signed_in: () => html`You signed in here.`,
    signed_out: () => html`You signed out here.`,
  },
  notices: {
    request_invalid: {
      title: "The request is not valid",
      text: "The program that sent you here made a request that cannot be answered. Nothing was given to it. Start again there; if this page comes back, tell its makers.",
    },
    client_unknown: {
      title: "The program is not known here",
      text: "The program that sent you here is not registered, or the page that describes it does not answer. Nothing was given to it.",
    },
    client_unreachable: {
      title: "The program's page does not answer",
      text: "The page that describes the program that sent you here cannot be reached at present. Nothing was given to it. Try again in a moment.",
    },
    redirect_refused: {
      title: "The way back is not registered",
      text: "The program that sent you here wants its answer at a place that it did not register. Nothing was sent there.",
    },
    request_gone: {
      title: "The request has ended",
      text: "It took too long, or it was begun in another browser. Start again at the program that sent you here.",
    },
    request_decided: {
      title: "You have decided already",
      text: "This request was answered before. Nothing more happens with it, and you can close this page.",
    },
    sign_in_failed: {
      title: "The sign-in did not succeed",
      text: "Nothing was given to the program that sent you here. You can try again.",
    },
    sign_in_used: {
      title: "This sign-in was used already",
      text: "Go on with the request, or start again at the program that sent you here.",
    },
    form_refused: {
      title: "The form was not accepted",
      text: "It was not sent from our own page, or that page was out of date. Nothing was given to anyone.",
    },
    session_over: {
      title: "You are no longer signed in",
      text: "Nothing was changed. Sign in again and repeat what you wanted.",
    },
    taken_back_before: {
      title: "This was taken back before",
      text: "It is no longer allowed, and nothing more needs to be done.",
    },
    provider_down: {
      title: "The sign-in page does not answer",
      text: "Your company's sign-in page cannot be reached at present. Try again in a moment.",
    },
    fault: {
      title: "Something went wrong here",
      text: "This server could not answer, and the fault is not yours. Nothing was given to any program. Try again; if this page comes back, tell those who run this server.",
    },
    busy: {
      title: "Too many requests",
      text: "There is more to do than can be done at present. Try again in a moment.",
    },
    unavailable: {
      title: "This cannot be answered at present",
      text: "Whether what you did was saved is not known. Do the same again in a moment: it is not done twice.",
    },
    ask_gone: {
      title: "There is nothing to decide here",
      text: "The link is for another person, or its time is over. Nothing was given to anyone. If you expected to be asked, let the agent try again, and sign in as the person for whom it works.",
    },
    ask_allowed: {
      title: "You have allowed it",
      text: "The agent can go on as soon as it tries again. You can close this page.",
    },
    ask_refused: {
      title: "You have refused",
      text: "The agent got nothing. You can close this page.",
    },
    signed_out: {
      title: "You are signed out",
      text: "What you allowed to programs stays allowed. You may still be signed in at your company.",
    },
  },
};
