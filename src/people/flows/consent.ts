/**
 * The consent record that a user's decision on our page makes, or changes: the one that the policy knows (PROD-2.6-4). Of a
 * job that the user approves there are several, and the job.
 */
import type { AuditEvent } from "../../audit/event.ts";
import { describeDetails } from "../../flows/audit-fields.ts";
import { approvalOf, buildJob, hasTooMany, JOB_CAPS } from "../../flows/create-job.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { WITHDRAWN_AT_ONCE } from "../../limits/people.ts";
import type { Consent, JobInForce, Origin } from "../../policy/access.ts";
import { signInKeys } from "../../policy/endings.ts";
import type { ProposedJob } from "../../policy/jobs.ts";
import type { Target } from "../../policy/rules.ts";
import type { BasePorts } from "../../ports.ts";
import type { Entry, Guard, JobRecord, PendingConsent, Precondition, RowChange } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { JsonObject } from "../../spec/rfc8259.ts";
import { detailsJson } from "../../spec/rfc9396.ts";
import { type Given, PAGE_CONSENT, recordOf } from "../policy/permissions.ts";
import type { PeoplePorts } from "../ports.ts";
import type { PagePlace, PeopleRow } from "../records.ts";
import { endsAt, shownIn, type Waits } from "./decision.ts";
import type { Offered } from "./offer.ts";
import { countedNotice, type Outcome } from "./outcome.ts";
import type { OpenSession } from "./session.ts";

/** The write is tried twice, in case the same consent is changed by another request at the same time. */
const ATTEMPTS_MAX = 2;

type ConsentGiven = {
  session: OpenSession;
  /** The client, or the SPIFFE ID of the agent, that the consent is for. */
  actor: string;
  target: Target;
  /** What the user was shown, the scopes of it at the target, and what the user gives. */
  offer: Offered;
  asked: readonly string[];
  given: Given;
  /** The client of the job that the user approves with it. */
  clientId: string;
  /** The job inside which alone it counts, where there is one already. */
  inJob?: JobInForce | undefined;
  /** Why the client or agent asked, in its own words. */
  reason: string | undefined;
  /** What the audit trail says beside the consent itself. */
  event: Pick<AuditEvent, "request" | "mode" | "client" | "subject"> & Required<Pick<AuditEvent, "policy">>;
  /** The question that is decided by it, in its next version. */
  question?: PendingConsent | undefined;
  /** The changes that are written with the consent, by its id. */
  rows?: (consentId: string, job?: JobRecord) => readonly RowChange<PeopleRow>[];
};

type RecordingPorts = BasePorts & Pick<PeoplePorts, "journal" | "facts">;

/**
 * Why nothing is recorded: others changed it at the same time on each try, a row is taken, or the question was changed;
 * what ends the user's sign-in was quicker; or as many jobs live as there may be.
 */
type NotRecorded = "changed" | "session_ended" | "jobs_too_many";
type Recorded = Result<undefined, NotRecorded>;

export async function recordConsent(ports: RecordingPorts, wish: ConsentGiven): Promise<Recorded> {
  const { job } = wish.offer;
  return job === undefined ? recordOne(ports, wish) : approveJob(ports, wish, job);
}

function whyNot(failed: readonly Precondition[]): NotRecorded {
  if (failed.includes("not_ended")) return "session_ended";
  return failed.every((one) => one === "jobs_below") ? "jobs_too_many" : "changed";
}

/** PAGE-D-33: the subject comes first, so that a user who is ended or disabled meanwhile gives nothing. */
const signInStands = ({ hash }: Pick<PeoplePorts, "hash">, session: OpenSession): Guard => ({
  kind: "not_ended",
  keys: signInKeys(hash.sha256, session, session.startedAtSeconds),
});

type WaitingPorts = Pick<PeoplePorts, "authFailures" | "jobs" | "clock">;

/** What a user sees whose click gave nothing; undefined where the decision of another request counts. */
export function answerToLost(
  ports: Pick<WaitingPorts, "authFailures">,
  audited: AuditedRequest,
  { place }: Pick<Waits, "place">,
  lost: NotRecorded,
): Outcome | undefined {
  if (lost === "session_ended") return { next: "sign_in", place };
  return lost === "jobs_too_many" ? tooManyJobs(ports, audited, place) : undefined;
}

/** JOB-D-24: what a user sees instead of a page about a job that could not be made. */
export async function answerToFull(
  ports: WaitingPorts,
  audited: AuditedRequest,
  { place, session }: Waits,
  actor: string,
  { job }: Offered,
): Promise<Outcome | undefined> {
  const isFull = job !== undefined && (await hasTooMany(ports, session.origin, actor));
  return isFull ? tooManyJobs(ports, audited, place) : undefined;
}

const tooManyJobs = (
  ports: Pick<WaitingPorts, "authFailures">,
  audited: AuditedRequest,
  place: PagePlace,
): Outcome => countedNotice(ports, audited, "jobs_too_many", "jobs_too_many", place);

async function recordOne(ports: RecordingPorts, giving: ConsentGiven): Promise<Recorded> {
  const { session, actor, target, offer, asked, given, inJob, question, rows = () => [] } = giving;
  const { details } = given;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const standing = await ports.facts.consents(session.origin, actor, ports.clock.nowSeconds());
    const asking = { target, scope: asked, details, job: inJob };
    const { before, scopes } = recordOf(ports.settings().policy, standing, asking, given, offer.kept);
    const consent = defined<Consent>({
      id: before?.id ?? `${PAGE_CONSENT}${ports.random.id()}`,
      version: (before?.version ?? 0) + 1,
      origin: session.origin,
      actor,
      targets: target.names.slice(0, 1),
      scopes,
      details,
      jobId: inJob?.id,
      jobIssuer: inJob?.iss,
      expiresAtSeconds: endsAt(ports, offer),
    });
    const recorded = await ports.journal.record(
      defined<Entry>({
        event: eventOf(ports, giving, consent),
        consent: before === undefined ? { add: consent } : { replace: consent },
        question,
        rows: rows(consent.id),
        guards: [signInStands(ports, session)],
      }),
    );
    if (recorded.ok) return ok(undefined);
    const lost = whyNot(recorded.error);
    if (lost !== "changed") return err(lost);
  }
  return err("changed");
}

function eventOf(
  { settings, hash }: RecordingPorts,
  { session, actor, inJob, reason, event }: ConsentGiven,
  { id, version, targets, scopes, details, expiresAtSeconds }: Consent,
): AuditEvent {
  return defined<AuditEvent>({
    ...event,
    job: inJob && defined<NonNullable<AuditEvent["job"]>>({ id: inJob.id, iss: inJob.iss }),
    type: "consent.recorded",
    outcome: "allow",
    reason: "by_subject",
    policy: { ...event.policy, consent: id },
    detail: defined({
      ...session.origin,
      version,
      actor,
      targets: [...targets],
      scope: scopes.join(" "),
      authorization_details:
        details && detailsJson(describeDetails(hash, settings().policy.details, details)),
      expires_at: expiresAtSeconds,
      reason_given: reason,
    }),
  });
}

/** JOB-D-6: job, consents, event and what the page gives are one entry. */
async function approveJob(
  ports: RecordingPorts,
  { session, actor, offer, given, clientId, reason, event, question, rows }: ConsentGiven,
  { title, bounds: proposed, asked: digest }: ProposedJob,
): Promise<Recorded> {
  const { origin } = session;
  // JOB-D-2: no longer than the page says that what is given lasts.
  const bounds = { ...(given.bounds ?? proposed), notAfterSeconds: endsAt(ports, offer) };
  const values = { origin, clientId, actor, title, bounds, asked: digest, approvedBy: "user" } as const;
  const job = buildJob(ports, defined<Parameters<typeof buildJob>[1]>(values));
  const consents = given.consents.map((one) =>
    defined<Consent>({
      ...one,
      id: `${PAGE_CONSENT}${ports.random.id()}`,
      version: 1,
      origin,
      expiresAtSeconds: bounds.notAfterSeconds,
      jobId: job.id,
    }),
  );
  const [own] = consents;
  const { details: types } = ports.settings().policy;
  const more = defined<JsonObject>({
    consents: consents.map(({ id }) => id),
    // REPL-D-1: what is in each of them, by which the job is decided later.
    given: consents.map(({ actor: agent, targets, scopes, details }) =>
      defined<JsonObject>({
        actor: agent,
        targets: [...targets],
        scope: scopes.join(" "),
        authorization_details: details && detailsJson(describeDetails(ports.hash, types, details)),
      }),
    ),
    // JOB-D-5
    shown: ports.hash.sha256(JSON.stringify([title, proposed, shownIn(offer.choice)])),
    reason_given: reason,
  });
  const policy = defined<ConsentGiven["event"]["policy"]>({ ...event.policy, consent: own?.id });
  const recorded = await ports.journal.record(
    defined<Entry>({
      event: { ...event, ...approvalOf(ports, job, more), reason: "by_subject", policy },
      job: { add: job, consents, most: JOB_CAPS },
      question,
      rows: rows?.(own?.id ?? "", job) ?? [],
      guards: [signInStands(ports, session)],
    }),
  );
  return recorded.ok ? ok(undefined) : err(whyNot(recorded.error));
}

type StandingPage = Parameters<PeoplePorts["consents"]["standing"]>[1];

/**
 * Withdraws all consents of a user, in stretches, each durable before the next; one that is withdrawn elsewhere meanwhile
 * needs nothing more.
 */
export async function eachStanding(
  { consents, clock }: Pick<PeoplePorts, "consents" | "clock">,
  origin: Origin,
  withdraw: (id: string) => Promise<unknown>,
): Promise<void> {
  let afterId: string | undefined;
  do {
    const page = { nowSeconds: clock.nowSeconds(), afterId, limit: WITHDRAWN_AT_ONCE };
    const standing = await consents.standing(origin, defined<StandingPage>(page));
    await Promise.all(standing.map(({ id }) => withdraw(id)));
    afterId = standing.at(-1)?.id;
  } while (afterId !== undefined);
}
