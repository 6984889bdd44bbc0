/** The texts of the pages in English. Names and hosts come in as markup, inside `bdi`; a title is plain text. */

import { type Html, html } from "../../spec/html.ts";
import type { OwnEventKind, RefusedFor } from "../audit/own-events.ts";
import type { Problem } from "../flows/decision.ts";
import type { NoticeKind } from "../flows/outcome.ts";

const count = (number: number, unit: string): string => `${number} ${unit}${number === 1 ? "" : "s"}`;

/** A part of a time in the short form of its unit, which has no plural; none of it says nothing. */
export const timed = (number: number, unit: string): readonly string[] =>
  number === 0 ? [] : [`${number} ${unit}`];

/** How long a client goes on; `visitHours`: how often its user has to sign in here for that. */
export type ShownTimes = { days: number; idleDays: number; hours: number; visitHours?: number };

export const en = {
  /** The tag for `lang` and for dates. */
  language: "en",
  consentTitle: (client: string) => `Allow ${client}?`,
  consentHeading: (client: Html) => html`${client} <span>asks for access</span>`,
  /** The words in place of a name, where the client has none that was checked. */
  unverifiedClient: "An unverified program",
  claimedName: (name: Html) => html`It calls itself “${name}”.`,
  reasonGiven: (words: Html) => html`<span class="hint">Its reason, in its own words:</span> “${words}”`,
  /** What the operator says of it. */
  operatorSays: (operator: Html, words: Html) => html`${operator} says: ${words}`,
  technicalName: "ID:",
  notDescribed: (operator: Html) => html`${operator} has not described this agent.`,
  /** The way from the user's own agent to the one that acts. */
  passedOn: (first: Html, others: readonly Html[]) =>
    html`${first} passed this to ${others.map((one, index) => html`${index === 0 ? "" : ", then to "}${one}`)}.`,
  passedThrough: (agents: number) => html`This was passed on through ${count(agents, "agent")}.`,
  askHeading: (agent: Html) => html`${agent} <span>asks to act for you</span>`,
  askWhy: "If you do not know why it asks, refuse.",
  selfRegistered: (date: string) => `It registered itself on ${date}, and its name was not checked.`,
  loopback: "The answer goes to this computer, where any program could receive it.",
  redirectDiffers: (redirect: Html, client: Html) => html`The answer goes to ${redirect}, not to ${client}.`,
  confirm: "I started this myself just now",
  unconfirmedTitle: "One box is missing",
  /** What a form lacks; the target is that of the request. */
  problems: {
    unconfirmed: {
      title: "One box is missing",
      text: (_target: Html) =>
        html`Nothing is decided yet. Tick “I started this myself just now”, if you did.`,
    },
    nothing_ticked: {
      title: "Nothing is ticked",
      text: (target: Html) =>
        html`Nothing is decided yet. Tick at least one permission at ${target}, and then choose “Allow”, or choose “Refuse”.`,
    },
    limit_not_ticked: {
      title: "A limit is missing",
      text: (_target: Html) =>
        html`Nothing is decided yet. Tick at least one limit of each kind, and look again at what you allow.`,
    },
    agent_gets_nothing: {
      title: "An agent would get nothing",
      text: (_target: Html) =>
        html`Nothing is decided yet. You ticked an agent, but nothing of what it may have: tick that too, or leave the agent out.`,
    },
  } satisfies Record<Problem, { title: string; text: (target: Html) => Html }>,
  refusedBefore: "You have refused this. You can still allow it, as long as no agent was told of it.",
  signedInAs: "Signed in as",
  notYou: "Not you?",
  canTakeBack: "Take it back in your account at any time.",
  /** Above what the click does beside the boxes. */
  withAllow: "“Allow” also means:",
  timeLeft: (minutes: number) => `${count(minutes, "minute")} left to decide.`,
  moreTime: "More time",
  details: "Details and technical names",
  lasts: (end: Html) => html`Lasts until ${end}.`,
  keptToo: (what: Html, before: Html | undefined) =>
    html`What you have allowed it already ends then, too${before === undefined ? "" : html` (so far: ${before})`}: ${what}.`,
  /** The days that have a name, by how many they are from today. */
  nearDays: new Map([
    [-1, "yesterday"],
    [0, "today"],
    [1, "tomorrow"],
  ]),
  inDays: (days: number) => `in ${count(days, "day")}`,
  inTime: (hours: number, minutes: number) =>
    `in ${[...timed(hours, "h"), ...timed(minutes, "min")].join(" ")}`,
  /** For how long the client goes on without the user. */
  goesOnFor: "Without asking you again it goes on for",
  hours: (hours: number) => count(hours, "hour"),
  goOnWithoutMe: ({ days, idleDays, hours, visitHours }: ShownTimes) =>
    `go on without asking you again for ${count(days, "day")} instead of ${count(hours, "hour")}, as long as it is used every ${count(idleDays, "day")}${visitHours === undefined ? "" : ` and you sign in here every ${count(visitHours, "hour")}`}`,
  answerGoesTo: "The answer goes to",
  onThisComputer: "on this computer",
  clientId: "Id of the program",
  scopeNames: "Technical names of the permissions",
  answersFor: "Who answers for it",
  identities: "Who works for whom, by id",
  asksTo: (target: Html) => html`At ${target} it asks to`,
  asksForOthers: (target: Html) => html`For agents that help it, at ${target}`,
  permissions: "Permissions",
  tickHint: "Only what you tick is allowed.",
  /** Where something is given by the click alone. */
  tickHintElse: "You allow what you tick, and what is listed beneath it.",
  /** Beneath the buttons, as long as nothing is ticked. */
  tickFirst: "Tick what you allow.",
  /** Before each field of an object that limits a permission. */
  only: "only ",
  /** Where an object could limit an amount, and none was asked. */
  noAmountLimit: "No limit named for the amount.",
  limits: "Only for what you tick here",
  limitsHint: "Tick at least one of each kind.",
  /** After a value of which some characters are written by their codes. */
  unusual: "contains unusual characters",
  /** Beside an amount, where no label of the operator says it. */
  bounds: {
    max: (amount: Html) => html`up to ${amount}`,
    min: (amount: Html) => html`at least ${amount}`,
  },
  quoted: (value: Html) => html`“${value}”`,
  yes: "yes",
  no: "no",
  everything: (counted: string) => `Tick all: ${counted}`,
  /** What the box takes that takes all. */
  boxes: {
    permissions: (number: number) => count(number, "permission"),
    limits: (number: number) => count(number, "limit"),
    agents: (number: number) => count(number, "agent"),
    extra: (number: number) => count(number, "extra permission"),
  },
  /** Beneath the agents that are named, and where `others` are counted. */
  agentsFurther: (operator: Html, named: number, others: number) => {
    const counted = count(others, named === 0 ? "agent" : "other agent");
    const them =
      named === 0 ? counted : `${named === 1 ? "it" : "them"}${others === 0 ? "" : ` and ${counted}`}`;
    return html`${operator} lets ${them} do what you tick, without asking you again.`;
  },
  refuse: "Refuse",
  allow: "Allow",
  signInTitle: "Sign in",
  signInHint: "Choose where you have your account.",
  goOn: "Go on",
  signOut: "Sign out",
  signOutAt: (provider: Html) => html`Sign out at ${provider} too`,
  backTo: (host: Html) => html`Back to ${host}`,
  accountTitle: "Your account",
  /** Before the id of the request. */
  forSupport: "Number for support:",
  askedHeading: "What you are asked",
  lookAndDecide: "Look at it and decide",
  weekHeading: "The last seven days",
  weekTold: (acts: number, agents: number) =>
    `Access in your name: ${count(acts, "time")}, for ${count(agents, "agent")}.`,
  weekNone: "Access in your name: never.",
  weekRefused: (times: number) => `Refused: ${count(times, "time")}.`,
  weekCut: "Only the newest entries are counted.",
  /** In quotation marks, since the agent calls it so. */
  jobTitle: (words: Html) => html`“${words}”`,
  jobInProgress: (words: Html) => html`Job “${words}”`,
  inJob: "What you allow is for this job alone, which goes on already, and ends with it:",
  inJobElsewhere: "What you allow is for one job alone, and ends with it. The job is one of this server:",
  jobAsked: "The job, in the words of the agent:",
  jobAgents: "Agents that may help",
  jobAlone: "No other agent may help.",
  jobLasts: (end: Html) => html`Only for this job, until ${end}.`,
  jobOwn: (what: string) => `For itself it asks only to: ${what}. The rest is for agents that help it.`,
  jobPart: (what: Html) => html`May do only this, if ticked above: ${what}.`,
  jobPartAll: "May do all that you tick above.",
  jobPartNone: "May do nothing of what you tick above.",
  /** What rules that ask no user give it. */
  jobPartExtra: (what: Html) => html`<strong class="tag">Extra permission, with this tick:</strong> ${what}.`,
  jobUnasked: (what: Html) => html`It also gets: ${what}.`,
  jobGoesOn: (targets: Html) =>
    html`Take it back in your account at any time, <strong>but ${targets} may go on after that</strong>.`,
  /** What is counted are tokens; each may be used more than once. */
  jobTokens: (most: number) => `All agents together: at most ${count(most, "access key")} to these services.`,
  jobDepth: (most: number) =>
    most === 1 ? "It may not be passed on." : `It may be passed on through at most ${most} agents in a row.`,
  jobWithout: (targets: Html) => html`Even without this job it may act at ${targets}`,
  jobBeside: "What it may do without this job, without asking you",
  jobBesideEnds:
    "The operator of this service set that up, and it does not end with the job. Ask them if you want it to end.",
  jobEnds: (when: Html) => html`Ends by itself: ${when}.`,
  /** What the end of a job does not reach. */
  mayBeside: (target: Html) => html`At ${target} it may, also without this job`,
  byOperator: (operator: Html) => html`Only ${operator} can end this.`,
  keepsOwn: (agent: Html, targets: Html) =>
    html`When the job ends, ${agent} keeps its own permission at ${targets}, below.`,
  stoppedHeading: "Just stopped",
  stopped: "It is over, and nothing more is given for it.",
  stillAccepted: (target: Html, until: Html) => html`${target} may accept what it has until ${until}.`,
  stopJob: "Stop this job",
  stopJobQuestion: "Stop this job now? All that was given for it ends at once, and nothing else.",
  stopJobYes: "Yes, stop it",
  allowedHeading: "Who may act for you",
  nothingAllowed: "You allow nothing to any agent at present.",
  /** How long, in minutes, a service may still take a token that it checks by itself. */
  takeBackHint: (minutes: number) =>
    `What you take back ends here at once, with everything that was given under it. A service that checks by itself may notice it up to ${count(minutes, "minute")} later.`,
  mayAt: (target: Html) => html`At ${target} it may`,
  allowedSince: "Allowed since",
  givesNothing: (targets: Html) =>
    html`Gives nothing at present, because this is no longer offered here: ${targets}.`,
  untilTakenBack: "Lasts until you take it back.",
  lastUsed: (when: Html) => html`Last used: ${when}.`,
  lastRefused: (when: Html) => html`Last refused: ${when}.`,
  noUse: "No use on record.",
  noUseSince: (date: string) => `No use on record since ${date}.`,
  goesOn: "Goes on while you are away",
  goesOnUntil: (since: string, used: string, until: string) =>
    `Since ${since}, last used on ${used}, until ${until}.`,
  goesOnIdle: (date: string) => `Without use it ends on ${date}.`,
  reused: (date: string) =>
    `On ${date} this agent was signed out, because its access was used from two places: a copy of it may have been stolen. What you allowed it still stands. If you use it, sign in there again; if not, take back what you allowed.`,
  renewedElsewhere:
    "Two networks used the same access of this agent within seconds. You may have changed networks, or a copy was stolen: if you do not know why, take back what you allowed.",
  mayActFurther: "These may act for you without asking",
  more: "Details",
  takeBack: "Take back",
  takeBackQuestion: "Take this back now? It ends at once.",
  takeBackYes: "Yes, take it back",
  takeAllConfirm: "Yes, everything that I allowed to any agent",
  takeAll: "Take back everything and stop all jobs",
  /** Before what the operator alone ends. */
  takeAllLeaves: (operator: Html) => html`This leaves what only ${operator} can end:`,
  takeAllHint: "Takes back all permissions of all agents, and stops all jobs. Open requests stay.",
  takeAllUnconfirmed:
    "Tick “Yes, everything that I allowed to any agent”, and then choose again. Nothing was taken back.",
  moreAllowed: "More of what you allowed",
  firstAllowed: "What you allowed, from the start",
  doneHeading: "What was done in your name",
  doneHint: (zone: string | undefined) =>
    `The newest first. Times are ${zone === undefined ? "UTC" : `those of ${zone}`}.`,
  entries: (number: number) => (number === 1 ? "one entry" : `${number} entries`),
  /** After a refusal. */
  refusedFor: {
    not_allowed: "You have not allowed that.",
    over: "What you had allowed was over.",
    sign_in: "You would have to sign in again for it.",
    rules: "The rules of this service do not permit it.",
    faulty: "Its request was not in order.",
  } satisfies Record<RefusedFor, string>,
  times: (times: number) => `${count(times, "time")}.`,
  nothingDone: "Nothing is on record.",
  daysLegend: "Filter by date",
  firstDay: "First day",
  lastDay: "Last day",
  showDays: "Show",
  /** What is wrong with the days, and what to do. */
  dayProblems: {
    day: { title: "A day is not valid", text: "Write each day as in 2027-01-31, or leave it empty." },
    days_turned: {
      title: "The first day is after the last",
      text: "Choose an earlier first day or a later last day, or leave one empty.",
    },
  },
  older: "Older entries",
  newest: "Newest entries",
  /** The heading of what has no agent. */
  yourself: "Yourself",
  exactTime: "Exact time, in UTC",
  toldBy: (issuer: Html) => html`according to ${issuer}`,
  at: (target: Html) => html`at ${target}`,
  /** The word before each entry. */
  sorts: {
    access: "Access",
    gift: "Allowed",
    refusal: "Refused",
    ending: "Ended",
    session: "Sign-in",
  },
  /** What the agent did that acted last, which is named above it. */
  done: {
    token_given: "Got access in your name.",
    acted: "Got access in your name.",
    acted_as_you: "Got access as you, without being named itself.",
    grant_redeemed: "Came from another company with a grant in your name, and was let in.",
    refused: "Wanted access in your name.",
    you_refused: "You refused it.",
    allowed: "You gave it permission.",
    allowed_by_others: "An administrator gave it permission in your name.",
    taken_back: "You took back its permission.",
    taken_back_by_others: "An administrator took back its permission.",
    job_approved: "You approved a job.",
    job_approved_by_others: "An administrator made a job for you.",
    job_refused: "You were asked for a job, and nothing was given for it.",
    job_stopped: "You stopped a job.",
    job_stopped_by_operator: "An administrator stopped a job.",
    job_stopped_by_agent: "The agent itself ended a job.",
    renewed_elsewhere:
      "Used the same access from two networks within seconds. If you do not know why, take back what you allowed.",
    ended: "What agents had for you was ended.",
    signed_in: "You signed in here.",
    signed_out: "You signed out here.",
  } satisfies Record<OwnEventKind, string>,
  notices: {
    request_invalid: {
      title: "The request is not valid",
      text: "The program that sent you here made a faulty request. It received nothing. Start again there. If this page comes back, tell the makers of the program.",
    },
    client_unknown: {
      title: "This program is not known here",
      text: "The program that sent you here is not registered, or the page that describes it does not answer. It received nothing.",
    },
    client_unreachable: {
      title: "The program's page does not answer",
      text: "The page that describes the program cannot be reached at present. The program received nothing. Try again in a moment.",
    },
    redirect_refused: {
      title: "The address for the answer is not registered",
      text: "The program that sent you here asked for the answer at an address that it did not register. Nothing was sent there.",
    },
    request_gone: {
      title: "The request has ended",
      text: "It took too long, or you began it in another browser. Start again at the program that sent you here.",
    },
    request_decided: {
      title: "You have decided already",
      text: "This request is answered, and nothing more happens with it. You can close this page.",
    },
    sign_in_failed: {
      title: "The sign-in did not succeed",
      text: "The program that sent you here received nothing. You can try again.",
    },
    sign_in_used: {
      title: "This sign-in was used already",
      text: "Go on with the request, or start again at the program that sent you here.",
    },
    account_disabled: {
      title: "Your account is disabled here",
      text: "The operator of this service or your company disabled it. No program acts for you here, and nothing is asked of you. If you did not expect that, ask the support of your company, and tell them the number below.",
    },
    form_refused: {
      title: "The form was not accepted",
      text: "It did not come from our own page, or that page was out of date. Nothing was allowed.",
    },
    session_over: {
      title: "You are no longer signed in",
      text: "Nothing was changed. Sign in again and repeat what you wanted.",
    },
    taken_back_before: {
      title: "You took this back before",
      text: "It is no longer allowed. You need to do nothing more.",
    },
    job_stopped_before: {
      title: "This job was stopped before",
      text: "Nothing more is given for it. You need to do nothing more.",
    },
    provider_down: {
      title: "The sign-in page does not answer",
      text: "Your company's sign-in page cannot be reached at present. Try again in a moment.",
    },
    fault: {
      title: "Something went wrong here",
      text: "The fault is ours, not yours. No program received anything. Try again. If this page comes back, tell support the number below.",
    },
    busy: {
      title: "Too many requests",
      text: "There is too much to do at present. Try again in a moment.",
    },
    unavailable: {
      title: "This cannot be answered at present",
      text: "What you did may have been saved, or not. Do the same again in a moment: it is not done twice.",
    },
    ask_gone: {
      title: "There is nothing to decide here",
      text: "The link is for another person, or its time is over. Nothing was allowed. If you expected to be asked, let the agent try again, and sign in as the person for whom it works.",
    },
    job_over: {
      title: "This job has ended",
      text: "It was stopped, or its time is over, so nothing more can be allowed for it. Nothing was allowed here. You need to do nothing more.",
    },
    jobs_too_many: {
      title: "This agent has too many jobs",
      text: "It has as many jobs as are allowed, for you or in all. Nothing was allowed. Stop one in your account, then go on here. If none of its jobs is there, try again later.",
    },
    ask_allowed: {
      title: "You have allowed it",
      text: "The agent goes on as soon as it tries again. You can close this page.",
    },
    ask_refused: {
      title: "You have refused",
      text: "The agent received nothing. You can close this page. If you did not mean it, go on: you can still allow it, as long as no agent was told of it.",
    },
    ask_refused_before: {
      title: "You have refused this",
      text: "An agent was told so, and your answer stands. It received nothing. If you want to allow it after all, let the agent ask again in an hour.",
    },
    home: {
      title: "Permissions for programs and agents",
      text: "Here you decide which programs and agents may act for you, and see what they did. When one of them needs you, it leads you here. What you allowed is in your account.",
    },
    page_unknown: {
      title: "There is no such page",
      text: "The address leads to nothing here. It may be mistyped, or cut off where it was copied.",
    },
    signed_out: {
      title: "You are signed out",
      text: "What you allowed stays allowed. You may still be signed in at your company.",
    },
  } satisfies Record<
    NoticeKind | "home" | "page_unknown" | "signed_out" | "fault",
    { title: string; text: string }
  >,
};
