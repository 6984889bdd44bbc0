/** The page behind the link of ask-user.ts: the user who is asked gives the consent that an agent lacks, or refuses. */
import { type AuditEvent, askedUntilNow } from "../../audit/event.ts";
import type { Reason } from "../../audit/reasons.ts";
import { jobOver } from "../../flows/jobs.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { REFUSED_SECONDS } from "../../limits/people.ts";
import type { JobInForce, MissingConsent, Origin } from "../../policy/access.ts";
import { decide } from "../../policy/decide.ts";
import { foreignKeys, userDigest } from "../../policy/endings.ts";
import { jobKey, proposedJob } from "../../policy/jobs.ts";
import type { BasePorts } from "../../ports.ts";
import type { PendingConsent } from "../../records.ts";
import { defined, err, ok, type Result } from "../../result.ts";
import type { Chain } from "../../spec/rfc8693.ts";
import { choiceOf } from "../policy/permissions.ts";
import type { DecisionPorts, PeoplePorts } from "../ports.ts";
import { ATTEMPTS_MAX } from "./ask-user.ts";
import { answerToFull, answerToLost, recordConsent } from "./consent.ts";
import {
  type Decision,
  type DecisionPage,
  decideOffer,
  type FormError,
  renewed,
  showOffer,
  type Visitor,
  type Waits,
  withStanding,
} from "./decision.ts";
import type { Offered } from "./offer.ts";
import { countedNotice, notice, type Outcome } from "./outcome.ts";
import { describeUser, findSession, type OpenSession } from "./session.ts";

/** What the page shows. */
export type AskedReview = DecisionPage<AskedOffer> & {
  /** The id of the agent, and of the client by which it asked. */
  actor: string;
  clientId: string;
  /** The actors before the agent; the first is the one that it works for. */
  chain: Chain;
  /** Why it asks, in its own words. */
  reason?: string;
};

/** The consent that is missing, and what of it the user chooses. */
type AskedOffer = MissingConsent & Offered;

type Found = Waits & { pending: PendingConsent; offer: AskedOffer };

export type AskedPorts = DecisionPorts & Pick<PeoplePorts, "pendingConsents" | "jobs">;

/** Whether a page is looked at or its form is sent: the link of a code ends with the code, an open page goes on. */
type Way = "look" | "form";

export async function openAsked(
  ports: AskedPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  renew: boolean,
): Promise<AskedReview | Outcome> {
  const found = await find(ports, audited, id, visitor, "look");
  if ("next" in found) return found;
  const full = await answerToFull(ports, audited, found, found.pending.actor, found.offer);
  if (full !== undefined) return full;
  const pending = renew ? await renewRow(ports, found.pending) : found.pending;
  return show(ports, { ...found, pending }, found.offer);
}

async function show(
  ports: AskedPorts,
  found: Found,
  offer: AskedOffer,
  error?: FormError,
): Promise<AskedReview> {
  const { pending } = found;
  const { actor, ask } = pending;
  return defined<AskedReview>({
    ...showOffer(ports, found, offer, pending),
    ...error,
    actor,
    clientId: ask.clientId,
    chain: ask.subject?.chain ?? [],
    reason: ask.reason,
  });
}

/** PAGE-D-24, DTR-D-4: nothing of the link is shown to another user, who learns no more than of an unknown link. */
async function find(
  ports: AskedPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  way: Way,
): Promise<Found | Outcome> {
  const nowSeconds = ports.clock.nowSeconds();
  const pending = await findQuestion(ports, id, nowSeconds, way);
  const origin = pending?.ask.subject?.origin;
  if (pending === undefined || origin === undefined)
    return countedNotice(ports, audited, "ask_gone", "ask_unknown");
  const place = { page: "ask", id } as const;
  const session = await findSession(ports, visitor.session);
  if (session === undefined) return { next: "sign_in", place };
  if (session.origin.iss !== origin.iss || session.origin.sub !== origin.sub) {
    // The record of this user has nothing of what the link asks; the digest of the link leads the auditor there.
    const asked = { ...pending, pollsRecorded: pending.polls };
    const { requested: _, detail: __, ...event } = denial(ports, audited, session, asked, "ask_of_another");
    await ports.journal.record({ event });
    return notice("ask_gone", "ask_of_another");
  }
  const over = await questionOver(ports, pending, origin);
  if (over !== undefined)
    return countedNotice(ports, audited, over === "ended" ? "ask_gone" : "job_over", over);
  // PAGE-D-23: a refusal can be taken back until an agent was told.
  if (pending.decided && !isRetractable(pending)) {
    const kind = pending.denied ? "ask_refused_before" : "request_decided";
    return countedNotice(ports, audited, kind, "request_decided");
  }
  const offer = await offerOf(ports, pending, origin);
  if (offer.ok) return { about: id, place, by: partiesOf(pending), pending, offer: offer.value, session };
  const kind = offer.error === "request_decided" ? "request_decided" : "ask_gone";
  return countedNotice(ports, audited, kind, offer.error);
}

/** PAGE-D-33: why a click would give nothing, whatever it says: the subject comes first, and then the job. */
async function questionOver(
  ports: Pick<AskedPorts, "clock" | "hash" | "endings" | "jobs">,
  { startedAtSeconds, ask, job: proposed }: PendingConsent,
  origin: Origin,
): Promise<"ended" | ReturnType<typeof jobOver>> {
  // What ends a subject also ends what was asked of it before.
  if (await ports.endings.isEnded(foreignKeys(ports.hash.sha256, origin, startedAtSeconds))) return "ended";
  const job = proposed ?? ask.job;
  if (job === undefined) return undefined;
  if (ask.job !== undefined && ask.job.iss === undefined)
    return jobOver(ports, await ports.jobs.find(ask.job.id));
  // The end of another server's job is told to this one, and a proposed job is not on record yet.
  const { iss = "", id = "" } = ask.job ?? {};
  if (await ports.endings.isEnded([jobKey(ports.hash.sha256, iss, id)])) return "job_ended";
  return jobOver(ports, { job });
}

/** DTR-D-2, DTR-6.4-6: the link of a code ends with the code; a page that is open by then may still be answered. */
async function findQuestion(
  { pendingConsents, shortLived }: Pick<PeoplePorts, "pendingConsents" | "shortLived">,
  id: string,
  nowSeconds: number,
  way: Way,
): Promise<PendingConsent | undefined> {
  const pending = await pendingConsents.find(id, nowSeconds);
  const code = pending === undefined ? await shortLived.find("deferral", id, nowSeconds) : undefined;
  const isOver = way === "look" && code !== undefined && code.body.endsAtSeconds <= nowSeconds;
  const question =
    code === undefined || isOver ? pending : await pendingConsents.find(code.body.question, nowSeconds);
  // DTR-D-14
  if (question !== undefined) return question.closed ? undefined : question;
  // PAGE-D-46: with the answer that it gave to the client the code is gone, and its link tells the user what they decided.
  const end = await shortLived.find("deferral_end", id, nowSeconds);
  const answered = end && (await pendingConsents.find(end.body.question, nowSeconds));
  return answered?.decided && !isRetractable(answered) ? answered : undefined;
}

/**
 * The request is decided anew, because policy and consents may have changed, but for the time of the request, because its
 * token may have ended since.
 */
async function offerOf(
  ports: Pick<AskedPorts, "settings" | "clock" | "facts" | "jobs">,
  pending: PendingConsent,
  origin: Origin,
): Promise<Result<AskedOffer, Reason>> {
  const consents = await ports.facts.consents(origin, pending.actor, ports.clock.nowSeconds());
  const { policy } = ports.settings();
  const { job, ask, startedAtSeconds: nowSeconds } = pending;
  // JOB-D-4: a job is approved by a click, whatever was consented to before.
  const toBeMade = job && { job: proposedJob(job.bounds), consents: [] };
  const decided = decide(policy, { ...ask, consents, nowSeconds, ...toBeMade });
  if (decided.ok) return err("request_decided");
  const { missing, reason } = decided.error;
  if (missing === undefined) return err(reason);
  const { target, scope, details } = missing;
  const asking = { target, name: target.names[0] ?? "", scope, details, bounds: job?.bounds };
  const choice = choiceOf(policy, asking, ask, origin);
  const inJob = ask.job && (await jobIn(ports, ask.job));
  const offer = defined<AskedOffer>({ ...missing, choice, job, inJob, denied: pending.denied });
  return ok(withStanding(policy, origin, ask, consents, offer, ask.job));
}

/** JOB-D-28: the title that another server gave its job is not known here. */
async function jobIn(
  { jobs }: Pick<AskedPorts, "jobs">,
  { id, iss, bounds: { notAfterSeconds: endsAtSeconds } }: JobInForce,
): Promise<NonNullable<Offered["inJob"]>> {
  if (iss !== undefined) return { issuer: iss, endsAtSeconds };
  return defined({ title: (await jobs.find(id))?.job.title, endsAtSeconds });
}

const partiesOf = ({ actor, ask }: PendingConsent): Waits["by"] =>
  [actor, ask.clientId, ...(ask.subject?.chain ?? []).flatMap(({ sub, iss }) => [sub, iss])].map((id) => ({
    id,
  }));

const isRetractable = ({ denied, told }: PendingConsent): boolean => denied === true && told !== true;

/** A question on the account page. */
export type OpenQuestion = Pick<AskedReview, "id" | "offer" | "expiresAtSeconds" | "actor">;

/** DTR-D-13: what this user is asked at present. */
export async function openQuestions(
  ports: AskedPorts,
  { origin }: OpenSession,
): Promise<readonly OpenQuestion[]> {
  const asked = await ports.pendingConsents.list(
    userDigest(ports.hash.sha256, origin),
    ports.clock.nowSeconds(),
  );
  const found = await Promise.all(
    asked.map(async (pending): Promise<readonly OpenQuestion[]> => {
      const { id, actor, expiresAtSeconds, decided, closed } = pending;
      if (decided || closed || (await questionOver(ports, pending, origin)) !== undefined) return [];
      const offer = await offerOf(ports, pending, origin);
      return offer.ok ? [{ id, actor, expiresAtSeconds, offer: offer.value }] : [];
    }),
  );
  return found.flat();
}

async function renewRow(ports: AskedPorts, pending: PendingConsent): Promise<PendingConsent> {
  const renewal = renewed(ports, { ...pending, version: pending.version + 1 });
  if (renewal === undefined) return pending;
  // Where a client waits for longer, the question lasts for as long.
  const expiresAtSeconds = Math.max(renewal.expiresAtSeconds, pending.expiresAtSeconds);
  const longer = { ...renewal, expiresAtSeconds };
  return (await ports.pendingConsents.replace(longer)) ? longer : pending;
}

// --- the decision -----------------------------------------------------------------------------------------------

export async function decideAsked(
  ports: AskedPorts,
  audited: AuditedRequest,
  id: string,
  visitor: Visitor,
  decision: Omit<Decision, "confirmed">,
): Promise<AskedReview | Outcome> {
  for (let attempt = 1; ; attempt++) {
    const found = await find(ports, audited, id, visitor, "form");
    if ("next" in found) return found;
    const outcome = await decideFound(ports, audited, found, decision);
    if (outcome !== undefined) return outcome;
    if (attempt === ATTEMPTS_MAX) return notice("unavailable", "version_differs");
  }
}

/** PAGE-D-23: one entry, so that of two decisions one is recorded; undefined where the question was changed meanwhile. */
async function decideFound(
  ports: AskedPorts,
  audited: AuditedRequest,
  found: Found,
  decision: Omit<Decision, "confirmed">,
): Promise<AskedReview | Outcome | undefined> {
  const { pending, session, place } = found;
  return decideOffer<AskedOffer, AskedReview, Outcome | undefined>(ports, audited, decision, {
    ...found,
    offer: ok(found.offer),
    confirmed: true,
    again: (offer, error) => show(ports, found, offer, error),
    async refuse(reason) {
      const refused = notice("ask_refused", reason, place);
      if (pending.denied) return refused;
      const event = denial(ports, audited, session, pending, reason);
      const question = decidedAs(ports, pending, "refused");
      return (await ports.journal.record({ event, question })).ok ? refused : undefined;
    },
    async give(offer, given) {
      const { ask } = pending;
      const { target, rule, scope } = offer;
      const recorded = await recordConsent(ports, {
        clientId: ask.clientId,
        inJob: ask.job,
        session,
        actor: pending.actor,
        target,
        offer,
        asked: scope,
        given,
        reason: pending.ask.reason,
        event: {
          request: audited,
          mode: pending.ask.mode,
          ...describeUser(session),
          policy: { ...policyOf(ports, pending), rule_id: rule.id },
        },
        question: decidedAs(ports, pending, "allowed"),
      });
      return recorded.ok
        ? notice("ask_allowed", "by_subject")
        : answerToLost(ports, audited, found, recorded.error);
    },
  });
}

/** The row remembers the decision while it lives. */
function decidedAs(
  { clock }: Pick<AskedPorts, "clock">,
  pending: PendingConsent,
  as: "allowed" | "refused",
): PendingConsent {
  const denied = as === "refused" ? true : undefined;
  // DTR-D-9: a client that waited for the answer does not get this question asked again for a while.
  const keptSeconds = denied && pending.codes ? clock.nowSeconds() + REFUSED_SECONDS : 0;
  return defined<PendingConsent>({
    ...pending,
    version: pending.version + 1,
    decided: true,
    denied,
    pollsRecorded: pending.polls,
    expiresAtSeconds: Math.max(pending.expiresAtSeconds, keptSeconds),
  });
}

/** AUDIT-D-13: what the event has that ends the question. */
const policyOf = ({ settings, hash }: BasePorts, pending: PendingConsent) => ({
  digest: settings().policy.digest,
  asked: askedUntilNow(hash.sha256(pending.id), pending),
});

function denial(
  ports: BasePorts,
  audited: AuditedRequest,
  session: OpenSession,
  pending: PendingConsent,
  reason: Reason,
): AuditEvent {
  const { mode, target = "", scope = [], reason: said, job } = pending.ask;
  return defined<AuditEvent>({
    type: pending.job === undefined ? "authorization.denied" : "job.refused",
    outcome: "deny",
    reason,
    request: audited,
    mode,
    ...describeUser(session),
    requested: defined({ audience: [target], resource: [], scope: scope.join(" "), reason: said }),
    policy: policyOf(ports, pending),
    job: job && defined<NonNullable<AuditEvent["job"]>>({ id: job.id, iss: job.iss }),
    detail: { actor: pending.actor },
  });
}
