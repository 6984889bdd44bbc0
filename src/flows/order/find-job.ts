/** The job of a token request: that of what is presented, or one that the client chooses or asks for where there is none. */
import type { Reason } from "../../audit/reasons.ts";
import { MODES } from "../../modes.ts";
import type { JobInForce, Origin } from "../../policy/access.ts";
import {
  type Job,
  type JobProposal,
  jobKey,
  knowsNames,
  type PresentedJob,
  type ProposedJob,
  parseProposal,
  proposedBounds,
} from "../../policy/jobs.ts";
import type { JobFacts, JobRecord } from "../../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../../result.ts";
import type { Form } from "../../spec/rfc6749.ts";
import { hasTooMany } from "../create-job.ts";
import { jobOver } from "../jobs.ts";
import type { FindPorts, NotFound } from "../options/option.ts";
import type { Failure } from "../refusal.ts";
import { toFailure } from "../token-request.ts";
import type { JobOfOrder, Order } from "./order.ts";

type Asked = Pick<Form, "mandate_job" | "mandate_job_request">;
type Found = Awaitable<Result<Order, NotFound>>;
/** A job of ours; where it came with a token of it, without its keys, which are among those of the token. */
type OnRecord = Pick<JobFacts, "ended"> & { job: Job & Partial<JobRecord> };

/** JOB-D-8: the job is that of what is presented; only beside what has none is one chosen, or asked for. */
export function findJob(ports: FindPorts, asked: Asked, order: Order): Found {
  const { presented, proposed } = order.job ?? {};
  // An order that waited for its user asks for the job of its first request.
  if (proposed !== undefined) return findApproved(ports, proposed, order);
  return presented === undefined
    ? findBesideNone(ports, asked, order)
    : findPresented(ports, asked, order, presented);
}

/** The parameter may repeat the job, and the actor token be of it; nothing else is asked for. */
function findPresented(
  ports: FindPorts,
  { mandate_job: chosen, mandate_job_request }: Asked,
  order: Order,
  presented: PresentedJob,
): Found {
  const { ofActor, onRecord } = order.job ?? {};
  const { id, iss, endsAtSeconds = 0 } = presented;
  if (mandate_job_request !== undefined) return refused("job_request_in_job");
  if (ofActor !== undefined && !isSame(ofActor, presented)) return differs(order);
  if (chosen !== undefined && chosen !== id) return differs(order);
  if (iss !== undefined) {
    const job = { id, iss, bounds: { notAfterSeconds: endsAtSeconds } };
    if (jobOver(ports, { job }) !== undefined) return err(failureOf(order, "job_expired"));
    return ok(underJob(order, job, { keys: [jobKey(ports.hash.ofName, iss, id)] }));
  }
  return whenReady(onRecord === undefined ? ports.jobs.find(id) : { job: onRecord }, (found) => {
    const living = inJob(ports, order, found);
    return living.ok ? living : err(failureOf(order, living.error));
  });
}

const isSame = (one: PresentedJob, other: PresentedJob): boolean =>
  one.id === other.id && one.iss === other.iss;

/** JOB-D-8: tokens of two jobs are not put together. */
const differs = (order: Order) => err(toFailure(order, { kind: "token_refused", reason: "job_differs" }));

const refused = (reason: Reason) => err({ kind: "request_malformed", reason } as const);

// --- beside what has no job -------------------------------------------------------------------------------------

function findBesideNone(
  ports: FindPorts,
  { mandate_job, mandate_job_request: text }: Asked,
  order: Order,
): Found {
  const { access, job: { ofActor } = {} } = order;
  // An order that waited for its user has the choice of its first request.
  const chosen = mandate_job ?? access.job?.id;
  if (chosen !== undefined && text !== undefined) return refused("job_request_in_job");
  if (ofActor !== undefined && !isSame(ofActor, { id: chosen ?? "" })) return differs(order);
  const { brings } = MODES[access.mode];
  if (chosen !== undefined)
    return brings === "subject_token" || brings === "nothing"
      ? findChosen(ports, chosen, order)
      : err(toFailure(order, { kind: "token_refused", reason: "job_unknown" }));
  // A user is asked where an agent acts for one.
  return text === undefined || brings !== "subject_token"
    ? refused("job_request_out_of_place")
    : findProposed(ports, text, order);
}

/** JOB-D-9: an unknown job and another's: one look-up, and one answer; of its own job the agent is told why it is over. */
function findChosen(ports: FindPorts, id: string, order: Order): Found {
  return whenReady(ports.jobs.find(id), (found) => {
    const isOwn = found !== undefined && isFor(found.job, originOf(ports, order), agentOf(order));
    if (found !== undefined && !isOwn)
      return err(toFailure(order, { kind: "token_refused", reason: "job_of_another" }));
    const living = inJob(ports, order, found);
    if (living.ok) return living;
    const failure = failureOf(withJob(order, { isAgents: isOwn }), living.error);
    return err(defined<NotFound>({ ...failure, known: isOwn ? { job: { id } } : undefined }));
  });
}

const originOf = ({ settings }: FindPorts, { access, sub }: Order): Origin =>
  access.subject?.origin ?? { iss: settings().issuer, sub };

const agentOf = ({ access }: Order): string => access.workload ?? access.clientId;

const isFor = ({ origin, actor }: JobRecord, { iss, sub }: Origin, agent: string): boolean =>
  origin.iss === iss && origin.sub === sub && actor === agent;

/** JOB-D-4: the same request finds the job that its user has approved; until then it is a proposal. */
function findProposed(ports: FindPorts, text: string, order: Order): Found {
  const nowSeconds = ports.clock.nowSeconds();
  const parsed = parseProposal(text, nowSeconds);
  if (!parsed.ok) return refused(parsed.error.kind);
  const { title, targets = [] } = parsed.value;
  const { policy } = ports.settings();
  if (!targets.every((name) => policy.targets.has(name))) return refused("job_target_unknown");
  if (!knowsNames(policy, parsed.value, order.access)) return refused("job_request_malformed");
  const bounds = proposedBounds(parsed.value, order.access, nowSeconds);
  return findApproved(ports, { title, bounds, asked: digestOf(ports, parsed.value, order) }, order);
}

function findApproved(ports: FindPorts, proposed: ProposedJob, order: Order): Found {
  const { asked = "" } = proposed;
  return whenReady(ports.jobs.made(asked, ports.clock.nowSeconds()), (found): Found => {
    const living = inJob(ports, order, found);
    if (living.ok) return ok(withJob(living.value, { proposed: undefined }));
    return whenReady(hasTooMany(ports, originOf(ports, order), agentOf(order)), (isFull) =>
      isFull ? err({ kind: "policy_denied", reason: "jobs_too_many" }) : ok(withJob(order, { proposed })),
    );
  });
}

const digestOf = (ports: FindPorts, proposal: JobProposal, order: Order): string => {
  const { iss, sub } = originOf(ports, order);
  const { workload, clientId, target, scope, details } = order.access;
  return ports.hash.sha256(
    JSON.stringify([iss, sub, workload, clientId, target, scope?.toSorted(), details, proposal]),
  );
};

// --- what is found ----------------------------------------------------------------------------------------------

/** The order in this job, or why nothing is issued for the job any more. */
function inJob(
  ports: FindPorts,
  order: Order,
  found: OnRecord | undefined,
): Result<Order, NonNullable<ReturnType<typeof jobOver>>> {
  const over = jobOver(ports, found);
  if (over !== undefined || found === undefined) return err(over ?? "job_unknown");
  const { id, bounds, salt, actor, endingKeys: keys } = found.job;
  const { workload, clientId } = order.access;
  const isAgents = actor === workload || actor === clientId;
  return ok(underJob(order, { id, bounds, salt }, { keys, isAgents, onRecord: undefined }));
}

type Change = { [member in keyof JobOfOrder]?: JobOfOrder[member] | undefined };

const withJob = (order: Order, change: Change): Order => ({
  ...order,
  job: defined<JobOfOrder>({ ...order.job, ...change }),
});

const underJob = (order: Order, job: JobInForce, change: Change): Order => ({
  ...withJob(order, change),
  access: { ...order.access, job },
});

const TOLD = { job_ended: "ended", job_expired: "expired", job_exhausted: "exhausted" } as const;

/**
 * JOB-D-9: the client that presented what the job gave, and the one for which the job was made, is told why it gives
 * nothing any more; no other client is.
 */
export function failureOf(
  order: Pick<Order, "access" | "manner" | "job">,
  reason: keyof typeof TOLD | "job_unknown",
): Failure {
  const failure = toFailure(order, { kind: "token_refused", reason });
  const isTold = (order.job?.presented !== undefined || order.job?.isAgents) && reason !== "job_unknown";
  return isTold ? defined<Failure>({ ...failure, jobError: TOLD[reason] }) : failure;
}
