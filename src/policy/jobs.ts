/**
 * The job: one piece of work that is approved in words and bounds, and ended as one (JOB-D-1). Everything that is issued
 * for it carries its id. It only narrows: rule, consent and chain are judged as without it.
 */
import * as v from "valibot";
import {
  JOB_NAMES_MAX,
  JOB_REQUEST_BYTES_MAX,
  JOB_SECONDS,
  JOB_SECONDS_MAX,
  JOB_TITLE_CHARS_MAX,
  JOB_TOKENS_MAX,
} from "../limits/jobs.ts";
import { ACT_HOPS_MAX, TOKEN_SECONDS_MIN } from "../limits/tokens.ts";
import { MODE_NAMES } from "../modes.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { parseDocumentUrl } from "../spec/cimd.ts";
import { isScopeToken } from "../spec/rfc6749.ts";
import { fitsBytes, isJsonObject, type Json, type JsonObject, parseJson } from "../spec/rfc8259.ts";
import { detailsJson } from "../spec/rfc9396.ts";
import { isWorkloadName } from "../spec/workload-grant.ts";
import type { AccessRequest, JobBounds, JobInForce, Origin } from "./access.ts";
import { detailObjects } from "./detail-types.ts";
import { type EndingKey, foreignKeys, selectorKey, type TextDigest } from "./endings.ts";
import { describeIssue } from "./messages.ts";
import { type Caller, candidates, type PolicySet, type Target } from "./rules.ts";
import { nameText, shownText } from "./worded.ts";

/** A job of ours. It is never changed: another bound is another job. */
export type Job = Omit<JobInForce, "iss"> & {
  /** For whom the work is done; `iss` is ours for a client that works for itself. */
  origin: Origin;
  /** The client that it was made for, and its agent: its workload, or the client itself. */
  clientId: string;
  actor: string;
  /** The words of the asker, which no decision reads (JOB-D-3). */
  title: string;
  approvedBy: "user" | "operator" | "api";
  createdAtSeconds: number;
  salt: string;
  /** The digest of what was asked for, by which the asker finds the job that was made of it. */
  asked?: string;
};

/** Whether the text can name a job of ours; it is no secret, since each target sees it. */
export const isJobId = (text: string): boolean => /^job_[\w-]{22}$/.test(text);

/** The keys by which the job is ended, each with since when what it names exists. */
export function jobKeys(
  sha256: TextDigest,
  us: string,
  { id, origin, clientId, createdAtSeconds }: Pick<Job, "id" | "origin" | "clientId" | "createdAtSeconds">,
): readonly EndingKey[] {
  const ofClient = selectorKey(sha256, { by: "client", clientId });
  return [
    jobKey(sha256, us, id),
    { key: ofClient, sinceMs: createdAtSeconds * 1000 },
    ...foreignKeys(sha256, origin, createdAtSeconds),
  ];
}

/** JOB-D-12: the key holds the server whose job it is, so that no partner ends one of ours. */
export const jobKey = (sha256: TextDigest, iss: string, id: string): EndingKey => ({
  key: selectorKey(sha256, { by: "job", iss, id }),
  sinceMs: 0,
});

// --- what asks for one ------------------------------------------------------------------------------------------

const names = <const T extends v.GenericSchema<string>>(one: T) =>
  v.optional(v.pipe(v.array(one), v.minLength(1), v.maxLength(JOB_NAMES_MAX, "names too many")));
const count = (most: number) => v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(most)));

/** JOB-D-2: the bounds as a request writes them; `notAfter` is in seconds since 1970. */
export const WrittenBounds = v.strictObject({
  notAfter: count(Number.MAX_SAFE_INTEGER),
  targets: names(nameText),
  scopes: names(v.pipe(v.string(), v.check(isScopeToken, "is not a scope"))),
  details: v.optional(detailObjects),
  agents: names(nameText),
  maxTokens: count(JOB_TOKENS_MAX),
  maxDepth: count(ACT_HOPS_MAX),
});
type WrittenBounds = v.InferOutput<typeof WrittenBounds>;

const Asked = {
  /** JOB-D-3: the words of the asker, without characters that hide or reorder others. */
  title: shownText(JOB_TITLE_CHARS_MAX),
  ...WrittenBounds.entries,
};
/** A client sends details beside it, as those of the request. */
const Proposal = v.omit(v.strictObject(Asked), ["details"]);
export type JobProposal = v.InferOutput<typeof Proposal>;

/** The order of an operator: who works for whom, beside what a client would ask for. */
export const JobOrder = v.strictObject({
  /** The client that works, and its workload where that is the agent. */
  client: nameText,
  agent: v.optional(nameText),
  /** Without it the client works for itself. */
  subject: v.optional(v.strictObject({ iss: nameText, sub: nameText })),
  ...Asked,
});
type JobOrder = v.InferOutput<typeof JobOrder>;

/** The job of what is presented; of another server's, with its issuer and its end. */
export type PresentedJob = { id: string; iss?: string; endsAtSeconds?: number };

/** A job that is asked for, by the digest under which the job that is made of it is found. */
export type ProposedJob = { title: string; bounds: JobBounds; asked?: string };

/** `problems` are for the person who wrote it, each with its path. */
export type ProposalFailure = {
  kind: "job_request_malformed" | "job_request_time_refused";
  problems: readonly string[];
};

/** The parameter `mandate_job_request`. A bound that it does not know is refused, because it would be none. */
export function parseProposal(text: string, nowSeconds: number): Result<JobProposal, ProposalFailure> {
  const json = fitsBytes(text, JOB_REQUEST_BYTES_MAX) ? parseJson(text, 2) : undefined;
  return json?.ok ? readAsked(Proposal, json.value, nowSeconds) : malformed([]);
}

export const readJobOrder = (json: Json, nowSeconds: number): Result<JobOrder, ProposalFailure> =>
  readAsked(JobOrder, json, nowSeconds);

const malformed = (issues: readonly v.BaseIssue<unknown>[]): Result<never, ProposalFailure> =>
  err({
    kind: "job_request_malformed",
    problems: issues.map((issue) => describeIssue(issue, "the job")),
  });

function readAsked<S extends typeof Proposal | typeof JobOrder>(
  schema: S,
  json: Json,
  nowSeconds: number,
): Result<v.InferOutput<S>, ProposalFailure> {
  const parsed = v.safeParse(schema, json);
  if (!parsed.success) return malformed(parsed.issues);
  const { notAfter = nowSeconds + JOB_SECONDS } = parsed.output;
  const isWithin = notAfter >= nowSeconds + TOKEN_SECONDS_MIN && notAfter <= nowSeconds + JOB_SECONDS_MAX;
  if (isWithin) return ok(parsed.output);
  const most = `${JOB_SECONDS_MAX / (24 * 3600)} days`;
  return err({
    kind: "job_request_time_refused",
    problems: [`notAfter: is past, or more than ${most} away`],
  });
}

/** The bounds in force of those that are written, from a time on. */
export function boundsFrom({ notAfter, ...written }: WrittenBounds, nowSeconds: number): JobBounds {
  const { targets, scopes, details, agents, maxTokens, maxDepth } = written;
  const notAfterSeconds = notAfter ?? nowSeconds + JOB_SECONDS;
  return defined<JobBounds>({ notAfterSeconds, targets, scopes, details, agents, maxTokens, maxDepth });
}

/** The bounds as they are written, for events and answers. */
export function writtenBounds({ notAfterSeconds: notAfter, ...bounds }: JobBounds): JsonObject {
  const { targets, scopes, details, agents, maxTokens, maxDepth } = bounds;
  const lists = {
    targets: targets && [...targets],
    scopes: scopes && [...scopes],
    agents: agents && [...agents],
  };
  return defined<JsonObject>({ notAfter, ...lists, details: detailsJson(details), maxTokens, maxDepth });
}

/**
 * What a job that is asked for beside a request may do: what it does not name is bounded by the request, so that the
 * user who is asked sees all of it. The agent that asks takes part.
 */
export function proposedBounds(
  proposal: JobProposal,
  {
    target,
    scope,
    details,
    workload,
    clientId,
  }: Pick<AccessRequest, "target" | "scope" | "details" | "workload" | "clientId">,
  nowSeconds: number,
): JobBounds {
  const { agents, targets = target === undefined ? undefined : [target], scopes = scope } = proposal;
  const own = workload ?? clientId;
  return defined<JobBounds>({
    ...boundsFrom(proposal, nowSeconds),
    targets,
    scopes,
    details,
    agents: agents && [...new Set([own, ...agents])],
  });
}

/** An agent that is known by its name alone: a workload, or a client. */
export const namedAgent = (name: string): Omit<Caller, "mode"> =>
  isWorkloadName(name) ? { clientId: name, workload: name } : { clientId: name };

/**
 * JOB-D-26: each agent is the asker or a name that a rule of a named target knows, each scope one that such a target has. A
 * page shows them among the words of the operator, so that any other text would be the asker speaking there.
 */
export function knowsNames(
  policy: PolicySet,
  { agents = [], scopes = [], targets: named }: Pick<JobProposal, "agents" | "scopes" | "targets">,
  { target, workload, clientId }: Pick<AccessRequest, "target" | "workload" | "clientId">,
): boolean {
  const targets = (named ?? [target ?? ""]).flatMap((name) => policy.targets.get(name) ?? []);
  const isKnown = (name: string): boolean =>
    (!name.includes("://") || isWorkloadName(name) || parseDocumentUrl(name).ok) &&
    targets.some((one) =>
      MODE_NAMES.some((mode) => candidates(policy, { ...namedAgent(name), mode }, one).length > 0),
    );
  return (
    agents.every((name) => name === (workload ?? clientId) || isKnown(name)) &&
    scopes.every((scope) => targets.some((one) => one.scopes.includes(scope)))
  );
}

/** Stands for a job that is asked for, where the policy is asked what it would allow in it. */
export const proposedJob = (bounds: JobBounds): JobInForce => ({ id: "", bounds });

// --- what others see of one -------------------------------------------------------------------------------------

const ID_CHARS = 22;

/** 128 random bits in base64url. */
export const buildJobId = (random: string): string => `job_${random.slice(0, ID_CHARS)}`;

/**
 * JOB-D-15: the id of a job as this target sees it; undefined where it sees none. A job of another server keeps the id
 * that we know of it, which is the one that it gave us.
 */
export function jobIdAt(
  sha256: TextDigest,
  { job: shown, partner, names: [first = ""] }: Pick<Target, "job" | "partner" | "names">,
  { id, iss, salt = "" }: Pick<JobInForce, "id" | "iss" | "salt">,
): string | undefined {
  const how = shown ?? (partner === undefined ? "shown" : "pairwise");
  if (how === "hidden") return undefined;
  if (how === "shown" || iss !== undefined) return id;
  return buildJobId(sha256(JSON.stringify([salt, first])));
}

/** The claim `mandate_job` (JOB-D-17): `iss` says that it is the job of another server. */
export type JobClaim = { id: string; exp: number; iss?: string };

/** JOB-D-18: reads the claim of a token of `issuer`, which tells only of jobs of its own. */
export function readJobClaim(claim: Json, issuer: string): Result<JobInForce, { kind: "job_malformed" }> {
  const malformed = err({ kind: "job_malformed" } as const);
  if (!isJsonObject(claim)) return malformed;
  const { id, exp, iss = issuer } = claim;
  if (typeof id !== "string" || !/^[\x21-\x7e]{1,255}$/.test(id)) return malformed;
  if (typeof exp !== "number" || !Number.isSafeInteger(exp) || iss !== issuer) return malformed;
  return ok({ id, iss: issuer, bounds: { notAfterSeconds: exp } });
}
