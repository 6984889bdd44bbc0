/** The account page: what a user allowed, what was done in their name, and how they take it back. */
import type { AuditEvent } from "../../audit/event.ts";
import { type AuditPosition, encodeListing, readListing } from "../../audit/query.ts";
import type { Reason } from "../../audit/reasons.ts";
import { type ConsentPorts, type Manager, withdrawConsent } from "../../flows/consents.ts";
import { jobOverFor } from "../../flows/jobs.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { ACCOUNT_CONSENTS, ACCOUNT_LATELY_DAYS, STANDING_READS_MAX } from "../../limits/people.ts";
import type { Origin } from "../../policy/access.ts";
import type { Family, FamilyFacts, StandingConsent } from "../../records.ts";
import { defined } from "../../result.ts";
import type { Client } from "../../settings/settings.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import type { OwnEvent } from "../audit/own-events.ts";
import type { PeoplePorts } from "../ports.ts";
import { type AskedPorts, type OpenQuestion, openQuestions } from "./asked.ts";
import { eachStanding } from "./consent.ts";
import { checkForm } from "./decision.ts";
import { endOf, inForce } from "./judge-refresh.ts";
import { countedNotice, notice, type Outcome } from "./outcome.ts";
import {
  livingJobs,
  type OwnJob,
  type OwnJobPorts,
  type StoppedJob,
  stopOwnJob,
  stoppedJobs,
  stopSubject,
} from "./own-jobs.ts";
import { type LastUse, type Lately, readLately, readTrail, type TrailQuery } from "./own-trail.ts";
import { findSession, type OpenSession } from "./session.ts";
import { SIGN_OUT } from "./sign-out.ts";

/** What the user looks at. `toMs` is exclusive. */
export type AccountQuery = {
  /** The id of the last consent of the page before. */
  afterConsent?: string;
  fromMs?: number;
  toMs?: number;
  /** Where the list of events continues, from a page of the same user and range. */
  cursor?: string;
};

export type AccountConsent = StandingConsent & {
  lastUse: LastUse;
  formToken: string;
  /** The refresh families that may still be used. */
  families: readonly Family[];
  /** REFRESH-D-7: when a family ended last because two parties had its token. */
  reusedAtMs?: number;
  /** REFRESH-D-21: whether a token of a family that still stands was sent again from another source. */
  renewedElsewhere: boolean;
};

export type Account = {
  next: "page";
  session: OpenSession;
  consents: readonly AccountConsent[];
  /** The id after which more consents follow. */
  moreAfter?: string;
  jobs: readonly OwnJob[];
  stopped: readonly StoppedJob[];
  /** The newest events, whatever part of them the user looks at. */
  lately: Pick<Lately, "events" | "isCut">;
  events: readonly OwnEvent[];
  /** The cursor of the older events. */
  older?: string;
  /** The clients among the parties shown, by `client_id`; others are known by their id alone. */
  clients: ReadonlyMap<string, Client>;
  /** What the user is asked at present. */
  questions: readonly OpenQuestion[];
  takeAllToken: string;
  signOutToken: string;
};

const HERE = { page: "account" } as const;

/** PAGE-D-15: the page shows what belongs to the origin of the session and nothing else. */
export type AccountPorts = AskedPorts & ConsentPorts & OwnJobPorts & Pick<PeoplePorts, "audit" | "families">;

/** The days that the user asks for are those of their zone, which the session tells. */
export async function openAccount(
  ports: AccountPorts,
  audited: AuditedRequest,
  key: string | undefined,
  queryOf: (session: OpenSession) => AccountQuery,
): Promise<Account | Outcome> {
  const session = await findSession(ports, key);
  return session === undefined
    ? { next: "sign_in", place: HERE }
    : showAccount(ports, audited, session, queryOf(session));
}

async function showAccount(
  ports: AccountPorts,
  audited: AuditedRequest,
  session: OpenSession,
  query: AccountQuery,
): Promise<Account | Outcome> {
  const { origin } = session;
  const after = query.cursor === undefined ? undefined : readCursor(ports, origin, query);
  if (query.cursor !== undefined && after === undefined)
    return countedNotice(ports, audited, "form_refused", "form_token_wrong");
  const heads = await ports.audit.heads();
  const spans = heads.map(({ log, seq }) => ({ log, afterSeq: -1, toSeq: seq }));
  // PAGE-D-15, AUDIT-D-6: the reading is recorded before anything is shown.
  await ports.journal.record({ event: readingEvent(ports, audited, session, query) });
  const nowSeconds = ports.clock.nowSeconds();
  const [{ shown, moreAfter }, families, jobs, stopped, questions, trail] = await Promise.all([
    readStanding(ports, origin, nowSeconds, query.afterConsent),
    ports.families.list(origin),
    livingJobs(ports, session),
    stoppedJobs(ports, session),
    openQuestions(ports, session),
    readTrail(ports, origin, defined<TrailQuery>({ ...timesOf(query), spans, after })),
  ]);
  const { events, last } = trail;
  const sinceMs = (nowSeconds - ACCOUNT_LATELY_DAYS * 24 * 3600) * 1000;
  const lately = await readLately(ports, origin, spans, new Set(shown.map(({ id }) => id)), sinceMs);
  const parties = [
    ...[...questions, ...shown, ...jobs, ...stopped].map(({ actor }) => actor),
    ...jobs.flatMap(({ bounds }) => bounds.agents ?? []),
    ...[...events, ...lately.events].flatMap(({ agents }) => agents.map(({ id }) => id)),
  ];
  return defined<Account>({
    next: "page",
    session,
    consents: shown.map((consent) => ({
      ...consent,
      lastUse: lately.lastUse(consent.id),
      formToken: ports.formTokens.of(session.key, takeBackSubject(consent.id)),
      ...familiesOf(ports, families, consent.id, nowSeconds),
    })),
    jobs,
    stopped,
    questions,
    moreAfter,
    lately,
    events,
    older: last && cursorAt(ports, origin, query, last),
    clients: await findClients(ports, parties),
    takeAllToken: ports.formTokens.of(session.key, TAKE_ALL),
    signOutToken: ports.formTokens.of(session.key, SIGN_OUT),
  });
}

/**
 * A page of what stands by itself: JOB-D-6, PAGE-D-34: what was given for a job of ours stands in the card of the job, and
 * what was given in one of another server goes with that. After so many reads the rest is on the next page.
 */
async function readStanding(
  ports: AccountPorts,
  origin: Origin,
  nowSeconds: number,
  afterConsent: string | undefined,
): Promise<{ shown: readonly StandingConsent[]; moreAfter?: string }> {
  const shown: StandingConsent[] = [];
  let afterId = afterConsent;
  for (let reads = 1; reads <= STANDING_READS_MAX; reads++) {
    const page = defined<StandingPage>({ nowSeconds, limit: ACCOUNT_CONSENTS, afterId });
    const read = await ports.consents.standing(origin, page);
    for (const one of read) {
      const isOfOurJob = one.jobId !== undefined && one.jobIssuer === undefined;
      if (isOfOurJob || (await jobOverFor(ports, one)) !== undefined) continue;
      // One more than a page has shows that more follow.
      if (shown.length === ACCOUNT_CONSENTS) return { shown, moreAfter: shown.at(-1)?.id ?? "" };
      shown.push(one);
    }
    const isLast = read.length < ACCOUNT_CONSENTS;
    // The list begins again where nothing follows, so that a link cannot make it seem that nothing is allowed.
    if (isLast && shown.length === 0 && afterConsent !== undefined)
      return readStanding(ports, origin, nowSeconds, undefined);
    if (isLast) return { shown };
    afterId = read.at(-1)?.id;
  }
  return defined<{ shown: StandingConsent[]; moreAfter?: string }>({ shown, moreAfter: afterId });
}

type StandingPage = Parameters<PeoplePorts["consents"]["standing"]>[1];

function readingEvent(
  { settings }: Pick<PeoplePorts, "settings">,
  audited: AuditedRequest,
  { origin, key }: OpenSession,
  query: AccountQuery,
): AuditEvent {
  const { afterConsent, cursor, ...times } = query;
  return {
    type: "admin.access",
    outcome: "allow",
    reason: "by_subject",
    request: audited,
    subject: { ...origin, kind: "user", token: { type: "session", fingerprint: key } },
    policy: { digest: settings().policy.digest },
    detail: defined<JsonObject>({ query: times, continued: (afterConsent ?? cursor) !== undefined }),
  };
}

/** REFRESH-D-13: families are shown with their ends as they are in force, since a refresh is refused after those. */
function familiesOf(
  { settings }: Pick<PeoplePorts, "settings">,
  all: readonly FamilyFacts[],
  consent: string,
  nowSeconds: number,
): Pick<AccountConsent, "families" | "reusedAtMs" | "renewedElsewhere"> {
  const given = all.filter(({ family }) => family.consentId === consent);
  const refresh = settings().signIn?.refresh;
  const usable = given.filter(
    ({ family, ended }) =>
      refresh !== undefined && ended === undefined && nowSeconds < endOf(family, refresh),
  );
  const reused = given.flatMap(({ ended }) => (ended?.reason === REUSED ? [ended.atMs] : []));
  return defined<Pick<AccountConsent, "families" | "reusedAtMs" | "renewedElsewhere">>({
    families: usable.flatMap(({ family }) => (refresh === undefined ? [] : [inForce(family, refresh)])),
    renewedElsewhere: usable.some(({ retriedElsewhere }) => retriedElsewhere),
    reusedAtMs: reused.length === 0 ? undefined : Math.max(...reused),
  });
}

const REUSED: Reason = "refresh_token_reused";

/** Names of clients are shown as they are known here; nothing is fetched for a page that may show many. */
async function findClients(
  ports: AccountPorts,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Client>> {
  const found = await Promise.all([...new Set(ids)].map((id) => ports.clients.find(id)));
  return new Map(
    found.flatMap((client) => (client === undefined ? [] : [[client.clientId, client] as const])),
  );
}

// --- events -----------------------------------------------------------------------------------------------------

const timesOf = ({ fromMs, toMs }: AccountQuery): Pick<AccountQuery, "fromMs" | "toMs"> =>
  defined<Pick<AccountQuery, "fromMs" | "toMs">>({ fromMs, toMs });

/** A cursor is good for one user and one range alone. */
const sealedIn = (
  { iss, sub }: Origin,
  { fromMs, toMs }: AccountQuery,
  place: string,
): [user: string, about: string] => [
  JSON.stringify([iss, sub]),
  `account ${fromMs ?? ""} ${toMs ?? ""} ${place}`,
];

function cursorAt(
  ports: AccountPorts,
  origin: Origin,
  query: AccountQuery,
  { timeMs, log, seq }: AuditPosition,
): string {
  const place = encodeListing({ spans: [], after: { timeMs, log, seq } });
  return `${place}.${ports.formTokens.of(...sealedIn(origin, query, place))}`;
}

function readCursor(ports: AccountPorts, origin: Origin, query: AccountQuery): AuditPosition | undefined {
  const [place = "", seal = ""] = (query.cursor ?? "").split(".");
  if (!ports.formTokens.accepts(seal, ...sealedIn(origin, query, place))) return undefined;
  const listing = readListing(new Map([["cursor", place]]));
  return listing.ok ? listing.value?.after : undefined;
}

// --- taking back ------------------------------------------------------------------------------------------------

/** What the form token of a withdrawal is about; no id of a request has a space. */
const takeBackSubject = (id: string): string => `take-back ${id}`;
const TAKE_ALL = "take-all-back";

/** The form of the account page, as it was sent: one consent or job, or all of them, which has a box of its own. */
export type TakeBack = { formToken: string } & (
  | { consent: string }
  | { job: string }
  | { all: true; confirmed: boolean }
);

function subjectOf(form: TakeBack): string {
  if ("job" in form) return stopSubject(form.job);
  return "consent" in form ? takeBackSubject(form.consent) : TAKE_ALL;
}

/** `problem` asks for the page again, because the box is not ticked. */
export async function takeBack(
  ports: AccountPorts,
  audited: AuditedRequest,
  key: string | undefined,
  form: TakeBack,
): Promise<(Account & { problem: "unconfirmed" }) | Outcome> {
  const session = await findSession(ports, key);
  if (session === undefined) return countedNotice(ports, audited, "session_over", "session_missing", HERE);
  const about = subjectOf(form);
  // The token of this consent is made for its own user alone.
  const foreign = checkForm(ports, audited, session, { formToken: form.formToken, about });
  if (foreign !== undefined) return foreign;
  const manager: Manager = {
    by: "subject",
    origin: session.origin,
    token: { type: "session", fingerprint: session.key },
  };
  if ("consent" in form) {
    // PAGE-D-16: the consent is withdrawn whatever its version is by now, because a user who takes back wants less. It
    // is durable before the answer.
    const taken = await withdrawConsent(ports, manager, audited, { id: form.consent, expected: undefined });
    if (taken.ok) return { next: "place", place: HERE };
    return notice("taken_back_before", taken.error.kind, HERE);
  }
  if ("job" in form) {
    const before = await stopOwnJob(ports, session, audited, form.job);
    return before === undefined ? { next: "place", place: HERE } : notice("job_stopped_before", before, HERE);
  }
  if (!form.confirmed) {
    const account = await showAccount(ports, audited, session, {});
    return account.next === "page" ? { ...account, problem: "unconfirmed" } : account;
  }
  await eachStanding(ports, session.origin, (id) =>
    withdrawConsent(ports, manager, audited, { id, expected: undefined }),
  );
  for (const { id } of await livingJobs(ports, session)) await stopOwnJob(ports, session, audited, id);
  return { next: "place", place: HERE };
}
