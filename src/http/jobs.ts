/**
 * POST and GET /jobs, GET /jobs/{id}: an administrator makes jobs, sees what there is of each, and whether its end is known
 * everywhere.
 */
import { type ApiCaller, describeCaller } from "../flows/authorize-api.ts";
import { type CreatePorts, createJob, type JobFailure } from "../flows/create-job.ts";
import { type JobPorts, readStatus } from "../flows/jobs.ts";
import { jobJson } from "../flows/record-json.ts";
import { JOBS_LISTED } from "../limits/jobs.ts";
import { defined } from "../result.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { type HttpRefusal, httpError, notFound, privateJson } from "./answers.ts";
import { type AdmitPorts, type Admitted, admit } from "./bearer.ts";
import { readJson } from "./body.ts";
import { type Handler, type HttpRequest, type HttpResponse, pathOf } from "./handler.ts";

export type JobsPorts = AdmitPorts & JobPorts;

export function jobsEndpoint(ports: JobsPorts): Handler {
  return onJobs(ports, async (admitted, request) => {
    const query = readQuery(new URL(request.url).searchParams);
    if (query === undefined) return httpError({ status: 400, description: "the query is malformed" });
    const { after, ...of } = query;
    const before = after === undefined ? undefined : await ports.jobs.find(after);
    if (after !== undefined && before === undefined) return notFound();
    await recordReading(ports, admitted, { ...of.origin });
    const found = await ports.jobs.list(defined<JobList>({ ...of, before: before?.job }));
    const jobs = await Promise.all(found.map((facts) => readStatus(ports, facts)));
    const next = found.length === JOBS_LISTED ? found.at(-1)?.job.id : undefined;
    return privateJson(200, defined<JsonObject>({ jobs: jobs.map(jobJson), next }));
  });
}

export function jobEndpoint(ports: JobsPorts): Handler {
  return onJobs(ports, async (admitted, request) => {
    const id = pathOf(request).split("/").at(-1) ?? "";
    await recordReading(ports, admitted, { job: id });
    const facts = await ports.jobs.find(id);
    return facts === undefined ? notFound() : privateJson(200, jobJson(await readStatus(ports, facts)));
  });
}

export function createJobEndpoint(ports: JobsPorts & CreatePorts): Handler {
  return onJobs(ports, async ({ caller, audited }, request) => {
    const json = await readJson(request);
    if (!json.ok) return httpError(json.error);
    const by = { reason: "by_administrator", request: audited, client: describeCaller(caller) } as const;
    const made = await createJob(ports, json.value, { ...by, as: "api" });
    if (!made.ok) return httpError(REFUSED[made.error.kind]);
    return privateJson(201, jobJson(await readStatus(ports, { job: made.value })));
  });
}

/** POLICY-D-23: who makes jobs by API does not learn of a user that they are disabled. */
const PARTY_UNKNOWN: HttpRefusal = { status: 400, description: "client or subject is not known" };

const REFUSED: Record<JobFailure["kind"], HttpRefusal> = {
  job_request_malformed: { status: 400, description: "the job is malformed" },
  job_request_time_refused: { status: 400, description: "notAfter is past or too far away" },
  job_target_unknown: { status: 400, description: "a target is not known" },
  job_party_unknown: PARTY_UNKNOWN,
  subject_disabled: PARTY_UNKNOWN,
  jobs_too_many: { status: 409, description: "too many jobs of this agent live" },
};

type JobList = NonNullable<Parameters<JobPorts["jobs"]["list"]>[0]>;
type Serve = (admitted: Admitted<ApiCaller>, request: HttpRequest) => Promise<HttpResponse>;

function onJobs(ports: JobsPorts, serve: Serve): Handler {
  return async (request, peer) => {
    const admitted = await admit(ports, request, peer, "/jobs");
    return admitted.ok ? serve(admitted.value, request) : admitted.error;
  };
}

/** AUDIT-D-6: the reading is recorded before it is answered. */
async function recordReading(
  ports: JobsPorts,
  { caller, audited }: Admitted<ApiCaller>,
  detail: JsonObject,
): Promise<void> {
  const { digest } = ports.settings().policy;
  await ports.journal.record({
    event: {
      type: "admin.access",
      outcome: "allow",
      reason: "by_administrator",
      request: audited,
      client: describeCaller(caller),
      policy: { digest },
      detail,
    },
  });
}

const PARAMETERS = ["iss", "sub", "agent", "after"];

/** `after` is the last job of the page before. */
function readQuery(
  query: URLSearchParams,
): (Pick<JobList, "origin" | "actor"> & { after?: string }) | undefined {
  const names = [...query.keys()];
  if (new Set(names).size < names.length || names.some((name) => !PARAMETERS.includes(name)))
    return undefined;
  const [iss, sub, actor, after] = PARAMETERS.map((name) => query.get(name) ?? undefined);
  if ((iss === undefined) !== (sub === undefined)) return undefined;
  const origin = iss === undefined || sub === undefined ? undefined : { iss, sub };
  return defined<ReturnType<typeof readQuery> & object>({ origin, actor, after });
}
