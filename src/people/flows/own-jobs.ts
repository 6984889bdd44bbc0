/** The jobs of a user on the account page: those that go on, and how the user stops one and nothing else (JOB-D-13). */
import type { Reason } from "../../audit/reasons.ts";
import { readStatus, rulesBeside, stopJob } from "../../flows/jobs.ts";
import type { AuditedRequest } from "../../flows/refusal.ts";
import { JOBS_LISTED } from "../../limits/jobs.ts";
import { ACCESS_TOKEN_SECONDS_MAX } from "../../limits/tokens.ts";
import type { OpenTarget } from "../../policy/closure.ts";
import type { SubjectRule } from "../../policy/rules.ts";
import type { JobFacts } from "../../records.ts";
import { defined } from "../../result.ts";
import type { DecisionPorts, PeoplePorts } from "../ports.ts";
import { describeUser, type OpenSession } from "./session.ts";

/** `beside` are the rules by which its agent goes on without it (JOB-D-23). */
export type OwnJob = JobFacts["job"] & { formToken: string; beside: readonly SubjectRule[] };

export type OwnJobPorts = DecisionPorts & Pick<PeoplePorts, "jobs" | "clients">;

/** What the form token of a stop is about. */
export const stopSubject = (id: string): string => `stop-job ${id}`;

export async function livingJobs(
  ports: OwnJobPorts,
  { origin, key }: OpenSession,
): Promise<readonly OwnJob[]> {
  const { jobs, clock, formTokens } = ports;
  const livingAtSeconds = clock.nowSeconds();
  const living: OwnJob[] = [];
  for (let before: OwnJob | undefined; ; before = living.at(-1)) {
    const page = await jobs.list(defined({ origin, livingAtSeconds, before }));
    const shown = page.map(async ({ job }) => {
      const formToken = formTokens.of(key, stopSubject(job.id));
      return { ...job, formToken, beside: await rulesBeside(ports, job) };
    });
    living.push(...(await Promise.all(shown)));
    if (page.length < JOBS_LISTED) return living;
  }
}

/** A job that was stopped, as long as what it gave may still be accepted at a target. */
export type StoppedJob = JobFacts["job"] & { open: readonly Pick<OpenTarget, "target" | "untilSeconds">[] };

/** JOB-D-21: of the newest jobs, those whose stop is not closed yet. */
export async function stoppedJobs(
  ports: OwnJobPorts & Parameters<typeof readStatus>[0],
  { origin }: OpenSession,
): Promise<readonly StoppedJob[]> {
  const afterMs = ports.clock.nowMs() - ACCESS_TOKEN_SECONDS_MAX * 1000;
  const lately = (await ports.jobs.list({ origin })).filter(({ ended }) => (ended?.atMs ?? 0) > afterMs);
  const all = await Promise.all(lately.map((one) => readStatus(ports, one)));
  return all.flatMap(({ job, open, partners }) => {
    const there = partners.map(({ issuer, untilSeconds }) => ({ target: issuer, untilSeconds }));
    const still = [...open, ...there];
    return still.length > 0 ? [{ ...job, open: still }] : [];
  });
}

/** One durable write, after which every instance refuses what was issued for the job; or why nothing was written. */
export async function stopOwnJob(
  ports: OwnJobPorts,
  session: OpenSession,
  request: AuditedRequest,
  id: string,
): Promise<Reason | undefined> {
  const { policy } = ports.settings();
  const { iss, sub } = session.origin;
  const found = await ports.jobs.find(id);
  if (found === undefined || found.job.origin.iss !== iss || found.job.origin.sub !== sub)
    return "job_unknown";
  const by = {
    request,
    ...describeUser(session),
    policy: { digest: policy.digest },
    reason: "by_subject",
  } as const;
  return (await stopJob(ports, found, by)) === undefined ? "job_ended" : undefined;
}
