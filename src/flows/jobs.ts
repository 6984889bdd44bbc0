/** Jobs as they are told of: what one is, what there is of it, and what its end leaves (JOB-D-20 to JOB-D-23). */
import { TOKEN_SECONDS_MIN } from "../limits/tokens.ts";
import type { Consent } from "../policy/access.ts";
import { buildClosure, type Closure, unaskedRules } from "../policy/closure.ts";
import type { EndingSelector } from "../policy/endings.ts";
import { type Job, jobKey } from "../policy/jobs.ts";
import type { SubjectRule } from "../policy/rules.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { JobHoldings } from "../ports-store.ts";
import type { FamilyFacts, Guard, JobFacts } from "../records.ts";
import { defined } from "../result.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import {
  countEnded,
  type Ended,
  type EndingEvent,
  type EndingPorts,
  type EndingWritten,
  endingEntry,
} from "./endings.ts";

export type JobPorts = Pick<Ports, "settings" | "clock" | "clients" | "jobs" | "facts" | "families">;
type StopPorts = BasePorts & Pick<Ports, "journal" | "jobs">;
type StoppedJob = {
  selector: EndingSelector;
  recorded: EndingWritten;
  acceptedUntilSeconds: number | undefined;
};

/** A job, and what is left of it by now. */
export type JobStatus = JobFacts &
  Omit<Closure, "state"> & {
    state: Closure["state"] | "living";
    asOfSeconds: number;
    held: JobHoldings;
    outside: Outside;
  };

/**
 * JOB-D-23: what the agent holds of the same user beyond the job, each with a stop of its own. `rules` need no consent, so
 * that an operator alone stops them.
 */
export type Outside = {
  consents: readonly string[];
  grants: readonly string[];
  rules: readonly Pick<SubjectRule, "id" | "targets" | "scopes">[];
};

export async function readStatus(ports: JobPorts, facts: JobFacts): Promise<JobStatus> {
  const nowSeconds = ports.clock.nowSeconds();
  const [{ state, ...closure }, outside] = await Promise.all([
    readClosure(ports, facts, nowSeconds),
    readOutside(ports, facts, nowSeconds),
  ]);
  const isLiving = facts.ended === undefined && facts.job.bounds.notAfterSeconds > nowSeconds;
  return { ...facts, ...closure, state: isLiving ? "living" : state, asOfSeconds: nowSeconds, outside };
}

async function readClosure(
  { clock, jobs, settings }: Pick<JobPorts, "clock" | "jobs" | "settings">,
  { job, ended }: JobFacts,
  nowSeconds: number,
): Promise<Closure & { held: JobHoldings }> {
  const { policy, streams, issuer } = settings();
  const remains = defined<Parameters<typeof jobs.remains>[1]>({
    nowSeconds,
    codeIssuer: codeIssuerOf(issuer),
    ended,
  });
  const { tokens, events, held } = await jobs.remains(job.id, remains);
  const closure = buildClosure(
    policy,
    defined<Parameters<typeof buildClosure>[1]>({
      job: job.bounds,
      endedMs: ended?.atMs,
      living: tokens,
      streams: [...streams.values()].map(({ name, targets }) => ({
        targets,
        // One that has nothing of it yet is still to be told.
        isWaiting: events.get(name) !== 0,
      })),
      nowMs: clock.nowMs(),
    }),
  );
  return { ...closure, held };
}

/**
 * JOB-D-22: the one moment until which a server that learns nothing may accept what there is of the job: in the event of its
 * stop, in the answers, and as the last of those of the account page. Undefined where there is nothing.
 */
export const acceptedUntil = ({ open, partners }: Pick<Closure, "open" | "partners">): number | undefined =>
  [...open, ...partners]
    .map(({ untilSeconds }) => untilSeconds)
    .toSorted((a, b) => a - b)
    .at(-1);

async function readOutside(ports: JobPorts, { job }: JobFacts, nowSeconds: number): Promise<Outside> {
  const { facts, families, settings } = ports;
  const { origin, actor, clientId } = job;
  if (origin.iss === settings().issuer) return { consents: [], grants: [], rules: [] };
  const [standing, given, rules] = await Promise.all([
    facts.consents(origin, actor, nowSeconds),
    families.list(origin),
    rulesBeside(ports, job),
  ]);
  const goesOn = ({ family, ended }: FamilyFacts): boolean =>
    family.clientId === clientId && family.jobId === undefined && ended === undefined;
  return {
    consents: standing.filter(({ jobId }) => jobId === undefined).map(({ id }) => id),
    grants: given
      .filter((one) => goesOn(one) && one.family.endsAtSeconds > nowSeconds)
      .map(({ family }) => family.id),
    rules,
  };
}

/** The rules by which the agent of the job goes on without it, and without its user being asked. */
export async function rulesBeside(
  { clients, settings }: Pick<Ports, "clients" | "settings">,
  { origin, actor, clientId }: JobFacts["job"],
): Promise<readonly SubjectRule[]> {
  const { registrationClass, workload = isWorkloadName(actor) ? actor : undefined } =
    (await clients.find(clientId)) ?? {};
  const caller = defined<Parameters<typeof unaskedRules>[2]>({ clientId, workload, registrationClass });
  return unaskedRules(settings().policy, origin, caller);
}

/** JOB-D-10: why nothing is given for the job any more; what would live for less than the shortest token is not issued. */
export function jobOver(
  { clock }: Pick<Ports, "clock">,
  found: (Pick<JobFacts, "ended"> & { job: Pick<Job, "bounds"> }) | undefined,
): "job_unknown" | "job_ended" | "job_expired" | undefined {
  if (found === undefined) return "job_unknown";
  if (found.ended !== undefined) return "job_ended";
  return found.job.bounds.notAfterSeconds - clock.nowSeconds() < TOKEN_SECONDS_MIN
    ? "job_expired"
    : undefined;
}

/** JOB-D-6: why a consent that counts in a job alone gives nothing any more; another server tells this one of an end. */
export async function jobOverFor(
  ports: Pick<Ports, "clock" | "jobs" | "endings" | "hash">,
  { jobId, jobIssuer }: Pick<Consent, "jobId" | "jobIssuer">,
): Promise<ReturnType<typeof jobOver>> {
  if (jobId === undefined) return undefined;
  if (jobIssuer === undefined) return jobOver(ports, await ports.jobs.find(jobId));
  const isEnded = await ports.endings.isEnded([jobKey(ports.hash.sha256, jobIssuer, jobId)]);
  return isEnded ? "job_ended" : undefined;
}

/** Codes that were used are on record under this name. */
export const codeIssuerOf = (us: string): string => `${us}/code`;

/**
 * JOB-D-14, JOB-D-27: one entry, by which its user and its agent find it too, however often it is stopped at the same time,
 * on whatever instances; undefined where it had ended before.
 */
export async function stopJob(
  ports: StopPorts,
  facts: JobFacts,
  by: EndingEvent,
): Promise<StoppedJob | undefined> {
  const { job, ended } = facts;
  if (ended !== undefined) return undefined;
  const { clock, hash, journal } = ports;
  const { issuer: iss } = ports.settings();
  const { id, origin, actor, clientId, title } = job;
  const acceptedUntilSeconds = acceptedUntil(await readClosure(ports, facts, clock.nowSeconds()));
  const selector = { by: "job", iss, id } as const;
  const detail = { ...by.detail, ...origin, actor, client_id: clientId, title };
  const event: EndingEvent = { ...by, type: "job.ended", detail };
  const entry = endingEntry({ hash, clock }, selector, event, {
    acceptedUntilMs: acceptedUntilSeconds && 1000 * acceptedUntilSeconds,
  });
  const { ending } = entry;
  const once: Guard = {
    kind: "jti_fresh",
    issuer: `${iss}/job`,
    jti: id,
    expiresAtSeconds: ending.expiresAtSeconds,
  };
  const recorded = await journal.record({ ...entry, guards: [once] });
  if (!recorded.ok) return undefined;
  const { eventId } = recorded.value;
  return { selector, recorded: { ending, eventId }, acceptedUntilSeconds };
}

/** The same, with the number of the tokens that it ended. */
export async function stopAndCount(
  ports: StopPorts & EndingPorts,
  facts: JobFacts,
  by: EndingEvent,
): Promise<Ended | undefined> {
  const stopped = await stopJob(ports, facts, by);
  if (stopped === undefined) return undefined;
  const { selector, recorded, acceptedUntilSeconds } = stopped;
  return defined<Ended>({ ...(await countEnded(ports, selector, recorded)), acceptedUntilSeconds });
}
