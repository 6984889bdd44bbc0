/** Jobs: what is presented or asked for finds one, which bounds the decision and ends with it what is issued in it. */
import type { JobInForce } from "../../policy/access.ts";
import type { PolicyDecision } from "../../policy/decision.ts";
import { type JobClaim, jobIdAt } from "../../policy/jobs.ts";
import type { Ports } from "../../ports.ts";
import type { Guard } from "../../records.ts";
import { defined } from "../../result.ts";
import { failureOf, findJob } from "../order/find-job.ts";
import type { Order } from "../order/order.ts";
import type { Failure } from "../refusal.ts";
import type { Part, TokenOption } from "./option.ts";

export const jobsOption: TokenOption = {
  find: (ports, { form }, order) => findJob(ports, form, order),
  known({ access, job }) {
    const { id, iss } = access.job ?? job?.presented ?? {};
    return id === undefined ? {} : { job: defined({ id, iss }) };
  },
  claims(ports, { access: { job } }, decision) {
    const id = idAt(ports, job, decision);
    if (job === undefined || id === undefined) return {};
    // JOB-D-17: a partner is told whose job it is.
    const { iss = decision.product.kind === "grant" ? ports.settings().issuer : undefined } = job;
    return { job: defined<JobClaim>({ id, exp: job.bounds.notAfterSeconds, iss }) };
  },
  ends: ({ job }) => defined({ jobKeys: job?.keys }),
  grant(ports, { access: { job }, job: { isAgents } = {} }, { allowed }) {
    if (job === undefined) return {};
    const { maxTokens: most, notAfterSeconds } = job.bounds;
    // JOB-D-15: who only holds a token of the job is told no more of it than the target sees.
    const id = isAgents ? job.id : idAt(ports, job, allowed);
    const guards: readonly Guard[] = most === undefined ? [] : [{ kind: "job_below", id: job.id, most }];
    return defined<Part>({
      row: rowOf(job),
      guards,
      answer: id === undefined ? undefined : { mandate_job_id: id, mandate_job_expires_at: notAfterSeconds },
    });
  },
};

/** JOB-D-11: a second decision would not lower the count. */
export const jobExhausted = (order: Order): Failure => failureOf(order, "job_exhausted");

/** JOB-D-15: the job as the target sees it. */
const idAt = ({ hash }: Pick<Ports, "hash">, job: JobInForce | undefined, { target }: PolicyDecision) =>
  job && jobIdAt(hash.sha256, target, job);

/** JOB-D-8: the row has the id itself, whatever the target sees of it. */
const rowOf = ({ id, iss, bounds }: JobInForce): Part["row"] =>
  iss === undefined ? { jobId: id } : { jobId: id, jobIssuer: iss, jobEndsAtSeconds: bounds.notAfterSeconds };
