/** Makes a job: of the approval of a user, or as an operator or a client with the scope for it says (JOB-D-4). */
import type { AuditEvent } from "../audit/event.ts";
import { REASONS } from "../audit/reasons.ts";
import { JOBS_PER_AGENT_AND_SUBJECT_MAX, JOBS_PER_AGENT_MAX } from "../limits/jobs.ts";
import type { JobBounds, Origin } from "../policy/access.ts";
import { checkConforms } from "../policy/details.ts";
import {
  boundsFrom,
  buildJobId,
  type Job,
  jobKeys,
  type ProposalFailure,
  readJobOrder,
  writtenBounds,
} from "../policy/jobs.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { JobCaps, JobRecord } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { isDocumentUrl } from "../spec/cimd.ts";
import type { Json, JsonObject } from "../spec/rfc8259.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import { describeDetails } from "./audit-fields.ts";
import { notDisabled } from "./endings.ts";
import { checkOrigin } from "./still-covers.ts";

type NewJob = Omit<Job, "id" | "salt" | "createdAtSeconds">;

/** The record of a new job, with all that ends it. */
export function buildJob({ settings, random, hash, clock }: BasePorts, values: NewJob): JobRecord {
  const createdAtSeconds = clock.nowSeconds();
  const job = { ...values, id: buildJobId(random.id()), salt: random.id(), createdAtSeconds };
  const issued = job.bounds.maxTokens === undefined ? undefined : 0;
  return defined<JobRecord>({ ...job, issued, endingKeys: jobKeys(hash.sha256, settings().issuer, job) });
}

/** JOB-D-24 */
export const JOB_CAPS: JobCaps = {
  ofPairMax: JOBS_PER_AGENT_AND_SUBJECT_MAX,
  ofActorMax: JOBS_PER_AGENT_MAX,
};

/** Whether one more would be refused when it is written, so that no user is asked about it. */
export async function hasTooMany(
  { jobs, clock }: Pick<Ports, "jobs" | "clock">,
  origin: Origin,
  actor: string,
): Promise<boolean> {
  const { ofPair, ofActor } = await jobs.living(origin, actor, clock.nowSeconds(), JOB_CAPS);
  return ofPair >= JOB_CAPS.ofPairMax || ofActor >= JOB_CAPS.ofActorMax;
}

/** JOB-D-5: the event has the bounds whole; `more` has a digest of what the user was shown. */
export function approvalOf(
  { settings, hash }: BasePorts,
  { id, origin, clientId, actor, title, bounds, approvedBy }: JobRecord,
  more: JsonObject = {},
): Pick<AuditEvent, "type" | "outcome" | "job"> & { detail: JsonObject } {
  const { details } = bounds;
  // RAR-D-13: the trail has no private value, here as in the event of a token.
  const described = details && describeDetails(hash, settings().policy.details, details);
  const shown = defined<JobBounds>({ ...bounds, details: described });
  const detail = { ...origin, client_id: clientId, actor, title, bounds: writtenBounds(shown) };
  return {
    type: "job.approved",
    outcome: "allow",
    job: { id },
    detail: { ...detail, approved_by: approvedBy, ...more },
  };
}

// --- by an operator or a client ---------------------------------------------------------------------------------

export type JobFailure = Pick<ProposalFailure, "problems"> & {
  kind:
    | ProposalFailure["kind"]
    | "job_target_unknown"
    | "job_party_unknown"
    | "subject_disabled"
    | "jobs_too_many";
};

export type CreatePorts = BasePorts & Pick<Ports, "clients" | "jobs" | "journal">;

/**
 * JOB-D-4: such a job brings no consent, so that whatever its rules demand of its user is demanded in it too.
 */
export async function createJob(
  ports: CreatePorts,
  json: Json,
  by: Pick<AuditEvent, "reason" | "request" | "client" | "detail"> & { as: Job["approvedBy"] },
): Promise<Result<JobRecord, JobFailure>> {
  const { policy } = ports.settings();
  const { as: approvedBy, ...event } = by;
  const refuse = async (kind: JobFailure["kind"], ...problems: readonly string[]) => {
    const refused = { type: "admin.access", outcome: "deny", reason: kind } as const;
    await ports.journal.record({ event: { ...event, ...refused, policy: { digest: policy.digest } } });
    return err({ kind, problems });
  };
  const ordered = readJobOrder(json, ports.clock.nowSeconds());
  if (!ordered.ok) return refuse(ordered.error.kind, ...ordered.error.problems);
  const { client: clientId, agent, subject, title, ...written } = ordered.value;
  const client = await ports.clients.find(clientId);
  if (client === undefined && !isWorkloadName(clientId) && !isDocumentUrl(clientId))
    return refuse(
      "job_party_unknown",
      `client: ${clientId} is no client, workload or document that is known here`,
    );
  const origin = subject ?? { iss: ports.settings().issuer, sub: clientId };
  const disabled = () => refuse("subject_disabled", `subject: ${REASONS.subject_disabled}`);
  const stands = checkOrigin(ports.settings(), origin);
  if (!stands.ok) {
    if (stands.error === "subject_disabled") return disabled();
    return refuse(
      "job_party_unknown",
      stands.error === "origin_not_trusted"
        ? `subject: ${origin.iss} is neither in trustedIssuers nor this server's issuer`
        : `subject: ${origin.sub} is no workload that its platform is registered for here`,
    );
  }
  const actor = agent ?? client?.workload ?? clientId;
  const bounds = boundsFrom(written, ports.clock.nowSeconds());
  const unknown = bounds.targets?.find((name) => !policy.targets.has(name));
  if (unknown !== undefined)
    return refuse("job_target_unknown", `targets: ${unknown} is not a name in targets`);
  const conforms = checkConforms(policy.details, bounds.details ?? []);
  if (!conforms.ok) return refuse("job_request_malformed", `details: ${REASONS[conforms.error.kind]}`);
  const job = buildJob(ports, { origin, clientId, actor, title, bounds, approvedBy });
  const recorded = await ports.journal.record({
    event: { ...event, ...approvalOf(ports, job, event.detail), policy: { digest: policy.digest } },
    job: { add: job, consents: [], most: JOB_CAPS },
    guards: [notDisabled(ports, origin)],
  });
  if (recorded.ok) return ok(job);
  return recorded.error.includes("not_ended")
    ? disabled()
    : refuse("jobs_too_many", `agent: ${REASONS.jobs_too_many}`);
}
