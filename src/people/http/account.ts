/** GET /account, the page of a user, and POST /account/withdraw, by which they take back what they allowed. */

import { readFormText } from "../../http/body.ts";
import type { Handler, HttpRequest } from "../../http/handler.ts";
import type { PolicySet } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import type { Family } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Agents } from "../../settings/agents.ts";
import type { OwnAgent, OwnEvent } from "../audit/own-events.ts";
import {
  type Account,
  type AccountConsent,
  type AccountPorts,
  type AccountQuery,
  openAccount,
  type TakeBack,
  takeBack,
} from "../flows/account.ts";
import type { OpenQuestion } from "../flows/asked.ts";
import { endsAt } from "../flows/decision.ts";
import { furtherAgents } from "../flows/offer.ts";
import type { OwnJob, StoppedJob } from "../flows/own-jobs.ts";
import type { EventView } from "../pages/account-events.ts";
import {
  type AccountView,
  type AllowedView,
  accountPage,
  type OwnJobView,
  type QuestionView,
  type StoppedView,
} from "../pages/account-page.ts";
import { weekOf } from "../pages/account-week.ts";
import type { ShownParty } from "../pages/parties.ts";
import { permissionsBy, permissionsIn } from "../policy/permissions.ts";
import type { PagePorts } from "../ports.ts";
import type { Session } from "../records.ts";
import { minutesUntil } from "./decision-form.ts";
import {
  permissionView,
  recordedView,
  shownDetail,
  shownParty,
  shownTarget,
  shownUser,
  toldParty,
  zoneOf,
} from "./known-as.ts";
import { digestOf, onPage, outcomeAnswer, pageAnswer } from "./page-answers.ts";

export function accountEndpoint(ports: PagePorts & AccountPorts): Handler {
  return onPage(ports, async ({ request, audited, query }) => {
    const askedBy = (session: Session) => readQuery(query, zoneOf(ports, session));
    const key = digestOf(ports, request, "session");
    const account = await openAccount(ports, audited, key, (session) => askedBy(session).query);
    if (account.next !== "page") return outcomeAnswer(ports, account);
    return pageAnswer(ports, accountPage(viewOf(ports, account, askedBy(account.session))), "account");
  });
}

export function takeBackEndpoint(ports: PagePorts & AccountPorts): Handler {
  return onPage(ports, async ({ request, audited }) => {
    const form = await readTakeBack(request);
    const taken = await takeBack(ports, audited, digestOf(ports, request, "session"), form);
    // PAGE-D-12: a GET shows what is left, and a reload sends no form again.
    if (taken.next !== "page") return outcomeAnswer(ports, taken);
    return pageAnswer(ports, accountPage(viewOf(ports, taken, NO_DAYS)), "account");
  });
}

/** Reads the form as it was sent; anything else has no form token, and is refused for that. */
async function readTakeBack(request: HttpRequest): Promise<TakeBack> {
  const body = await readFormText(request);
  const form = new URLSearchParams(body.ok ? body.value : "");
  const formToken = form.get("token") ?? "";
  const [consent, job] = [form.get("consent"), form.get("job")];
  if (job !== null) return { formToken, job };
  return consent === null
    ? { formToken, all: true, confirmed: form.get("confirm") === "1" }
    : { formToken, consent };
}

// --- what is asked for ------------------------------------------------------------------------------------------

/** `firstDay` and `lastDay` are as they were written, or empty if they are no days. */
type Asked = {
  query: AccountQuery;
  firstDay: string;
  lastDay: string;
  wrong: "day" | "days_turned" | undefined;
  turned: boolean;
};

const NO_DAYS: Asked = { query: {}, firstDay: "", lastDay: "", wrong: undefined, turned: false };

function readQuery(parameters: URLSearchParams, zone: string | undefined): Asked {
  const [firstDay, lastDay] = [parameters.get("from") ?? "", parameters.get("to") ?? ""];
  const [fromMs, toMs] = [dayMs(firstDay, 0, zone), dayMs(lastDay, 1, zone)];
  const cursor = parameters.get("before") ?? undefined;
  const afterConsent = parameters.get("after") ?? undefined;
  const turned = cursor !== undefined;
  // A range that cannot be read shows no events, so that nothing is taken for all of them.
  const isTurned = (fromMs ?? 0) >= (toMs ?? Number.MAX_VALUE);
  const wrong = Number.isNaN(fromMs) || Number.isNaN(toMs) ? "day" : isTurned ? "days_turned" : undefined;
  const query = wrong ? { toMs: 0 } : { fromMs, toMs, cursor, afterConsent };
  // The pattern of a field for a day, which takes nothing else.
  const days = {
    firstDay: Number.isNaN(fromMs) ? "" : firstDay,
    lastDay: Number.isNaN(toMs) ? "" : lastDay,
  };
  return { query: defined<AccountQuery>(query), ...days, wrong, turned };
}

/**
 * The begin of the day so many days later, in the zone of the user; undefined if none is named, and NaN for a text that
 * is no day.
 */
function dayMs(day: string, laterDays: number, zone = "UTC"): number | undefined {
  if (day === "") return undefined;
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) return Number.NaN;
  try {
    const begun = Temporal.PlainDate.from(day).add({ days: laterDays });
    return begun.toZonedDateTime(zone).epochMilliseconds;
  } catch {
    return Number.NaN;
  }
}

// --- what is shown ----------------------------------------------------------------------------------------------

function viewOf(ports: BasePorts, account: Account & { problem?: "unconfirmed" }, asked: Asked): AccountView {
  const { issuer, policy } = ports.settings();
  const { session, moreAfter, older, takeAllToken, signOutToken } = account;
  const { firstDay, lastDay, wrong, turned } = asked;
  const days = { from: firstDay || undefined, to: lastDay || undefined };
  const here = (parameters: Record<string, string | undefined>): string =>
    `${issuer}/account?${new URLSearchParams(defined<Record<string, string>>(parameters))}`;
  const seconds = [...policy.rules.values()].map(({ lifetimeSeconds }) => lifetimeSeconds);
  const { events: recent, isCut } = account.lately;
  const zone = zoneOf(ports, session);
  const nowSeconds = ports.clock.nowSeconds();
  const isFirst = Object.keys(asked.query).length === 0;
  return defined<AccountView>({
    base: issuer,
    user: shownUser(session),
    zone,
    week: isFirst ? weekOf(recent, isCut, nowSeconds, zone) : undefined,
    signOutToken,
    questions: account.questions.map((question) => questionView(ports, account, question)),
    allowed: account.consents.map((consent) => allowedView(ports, account, consent)),
    moreAllowed: moreAfter && here({ after: moreAfter }),
    firstAllowed: asked.query.afterConsent === undefined ? undefined : here({}),
    minutesAfter: Math.ceil(Math.max(0, ...seconds) / 60),
    takeAllToken,
    nowSeconds,
    jobs: account.jobs.map((job) => jobView(ports, account, job)),
    stopped: account.stopped.map((job) => stoppedView(ports, account, job)),
    events: account.events.map((event) => eventView(ports, account, event)),
    firstDay,
    lastDay,
    older: older && here({ ...days, before: older }),
    newest: turned ? here(days) : undefined,
    problem: wrong ?? account.problem,
  });
}

/** DTR-D-13 */
function questionView(
  ports: BasePorts,
  { clients }: Account,
  { id, actor, offer, expiresAtSeconds }: OpenQuestion,
): QuestionView {
  return {
    id,
    party: partyView(ports.settings().agents, clients, { id: actor }),
    permissions: offer.choice.at.map(permissionView),
    minutesLeft: minutesUntil(ports.clock, expiresAtSeconds),
    untilSeconds: endsAt(ports, offer),
  };
}

/** The agents that led to the last act of this one, if others did. */
function wayOf({ settings }: BasePorts, { clients, lately }: Account, actor: string): readonly ShownParty[] {
  const agents = lately.events.find((event) => event.agents.at(-1)?.id === actor)?.agents ?? [];
  return agents.length < 2 ? [] : agents.map((agent) => partyView(settings().agents, clients, agent));
}

function allowedView(ports: BasePorts, account: Account, consent: AccountConsent): AllowedView {
  const { settings } = ports;
  const { session, clients } = account;
  const { id, formToken, actor, targets, scopes, lastUse, families, reusedAtMs, renewedElsewhere } = consent;
  const { policy, agents } = settings();
  const further = targets.flatMap((name) => {
    const target = policy.targets.get(name);
    return target === undefined ? [] : furtherAgents(policy, target, scopes, session);
  });
  return defined<AllowedView>({
    id,
    formToken,
    agent: actor,
    way: wayOf(ports, account, actor),
    party: partyView(agents, clients, { id: actor }),
    ...shownAs(policy, consent),
    details: (consent.details ?? []).map((one) => shownDetail(policy.targets.get(targets[0] ?? ""), one)),
    agents: [...new Set(further)].filter((id) => id !== actor).map((id) => shownParty(agents, id)),
    sinceSeconds: consent.givenAtSeconds,
    untilSeconds: consent.expiresAtSeconds,
    lastUse,
    goesOn: families.map(grantView),
    reusedAtMs,
    renewedElsewhere,
  });
}

function jobView(ports: BasePorts, account: Account, job: OwnJob): OwnJobView {
  const { clients } = account;
  const { policy, agents } = ports.settings();
  const { targets = [], scopes = [], agents: taking = [], notAfterSeconds } = job.bounds;
  return {
    id: job.id,
    formToken: job.formToken,
    agent: job.actor,
    way: wayOf(ports, account, job.actor),
    title: job.title,
    party: partyView(agents, clients, { id: job.actor }),
    participants: taking.filter((id) => id !== job.actor).map((id) => partyView(agents, clients, { id })),
    ...shownAs(policy, { targets, scopes }),
    untilSeconds: notAfterSeconds,
    beside: permissionsBy(policy, job.beside).map(permissionView),
  };
}

/** PAGE-D-34: what it still gives, or for what it was. */
function shownAs(
  policy: PolicySet,
  record: Pick<AccountConsent, "targets" | "scopes">,
): Pick<AllowedView, "permissions" | "gone"> {
  const permissions = permissionsIn(policy, record).map(permissionView);
  const gone = record.targets.map((name) => shownTarget(policy.targets.get(name), name));
  return permissions.length > 0 ? { permissions } : { permissions, gone };
}

const stoppedView = (
  { settings }: BasePorts,
  { clients }: Account,
  { title, actor, open }: StoppedJob,
): StoppedView => ({
  title,
  party: partyView(settings().agents, clients, { id: actor }),
  open: open.map(({ target, untilSeconds }) => ({
    target: shownTarget(settings().policy.targets.get(target), target),
    untilSeconds,
  })),
});

const grantView = (family: Family): AllowedView["goesOn"][number] =>
  defined<AllowedView["goesOn"][number]>({
    sinceSeconds: family.startedAtSeconds,
    usedSeconds: family.usedAtSeconds,
    untilSeconds: family.endsAtSeconds,
    idleUntilSeconds: family.idleEndsAtSeconds,
  });

function eventView({ settings }: BasePorts, { clients }: Account, event: OwnEvent): EventView {
  const { policy, agents: named } = settings();
  const { kind, timeMs: atMs, agents, targets, scopes, title, refusedFor } = event;
  // The names in a refused request are its caller's: only those that the operator knows are shown.
  const shown = kind === "refused" ? targets.filter((name) => policy.targets.has(name)) : targets;
  return defined<EventView>({
    kind,
    atMs,
    title,
    refusedFor,
    parties: agents.map((agent) => partyView(named, clients, agent)),
    permissions: shown.map((name) => recordedView(policy, name, scopes)),
  });
}

const partyView = (agents: Agents, clients: Account["clients"], { id, toldBy }: OwnAgent): ShownParty =>
  toldBy === undefined ? shownParty(agents, id, clients.get(id)) : toldParty(agents, id, toldBy);
