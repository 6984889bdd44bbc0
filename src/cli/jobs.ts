/**
 * `mandate jobs`: makes and lists jobs, shows the tree of what was issued for one, and stops one with the report of its
 * closure.
 */
import { random } from "../adapters/crypto/random.ts";
import type { CreatePorts } from "../flows/create-job.ts";
import { previewEnding } from "../flows/endings.ts";
import { type JobPorts, type JobStatus, readStatus, stopAndCount } from "../flows/jobs.ts";
import { jobJson, tokenJson } from "../flows/record-json.ts";
import { JOB_TOKENS_SHOWN, JOBS_LISTED } from "../limits/jobs.ts";
import { EXIT } from "../limits/process.ts";
import type { Origin } from "../policy/access.ts";
import type { JobFacts, TokenRecord } from "../records.ts";
import { defined, err, type Result } from "../result.ts";
import { byOperator, recordAccess } from "./admin-log.ts";
import { type Admin, type Command, onStore } from "./command.ts";
import { createByCommand, readJobOptions } from "./jobs/create.ts";
import type { CommandArguments } from "./options.ts";
import { agentText, fields, jsonLine, type Titles, time, titlesOf, word, words } from "./text.ts";
import { endingPortsOf, tokenLine } from "./tokens.ts";

export function jobsCommand(given: CommandArguments): Result<Command, string> {
  const [id = ""] = given.args;
  const json = given.has("json");
  if (given.form === "show") return onStore(given, (admin) => showJob(admin, id, json));
  if (given.form === "end") return onStore(given, (admin) => endJob(admin, id, given.has("dry-run"), json));
  const [iss, sub] = [given.one("issuer"), given.one("subject")];
  if ((iss === undefined) !== (sub === undefined)) return err("--issuer and --subject go together");
  const origin = iss === undefined || sub === undefined ? undefined : { iss, sub };
  if (given.form === "list")
    return onStore(given, (admin) => listJobs(admin, origin, given.one("actor"), json));
  const order = readJobOptions(given, origin);
  const details = given.one("details");
  return order.ok
    ? onStore(given, (admin) => createByCommand(admin, portsOf(admin), order.value, { details, json }))
    : order;
}

type JobList = NonNullable<Parameters<JobPorts["jobs"]["list"]>[0]>;

const portsOf = (admin: Admin): ReturnType<typeof endingPortsOf> & JobPorts & CreatePorts => ({
  ...endingPortsOf(admin),
  random,
  jobs: admin.store.jobs,
  families: admin.store.families,
});

async function listJobs(
  admin: Admin,
  origin: Origin | undefined,
  actor: string | undefined,
  json: boolean,
): Promise<number> {
  const ports = portsOf(admin);
  const titles = titlesOf(admin.settings);
  await recordAccess(admin, defined({ command: "jobs list", ...origin, actor }));
  for (let before: JobFacts["job"] | undefined; ; ) {
    const page = await ports.jobs.list(defined<JobList>({ origin, actor, before }));
    for (const facts of page) {
      const status = await readStatus(ports, facts);
      admin.print(json ? jsonLine(jobJson(status)) : jobLine(status, titles));
    }
    before = page.at(-1)?.job;
    if (page.length < JOBS_LISTED) return EXIT.done;
  }
}

async function showJob(admin: Admin, id: string, json: boolean): Promise<number> {
  const ports = portsOf(admin);
  await recordAccess(admin, { command: "jobs show", job: id });
  const facts = await ports.jobs.find(id);
  if (facts === undefined) return tellUnknown(admin, id);
  const status = await readStatus(ports, facts);
  const found = await ports.jobs.tokens(id, ports.clock.nowSeconds(), JOB_TOKENS_SHOWN + 1);
  const tokens = found.slice(0, JOB_TOKENS_SHOWN);
  const more = found.length > tokens.length;
  if (json) {
    admin.print(
      jsonLine(defined({ ...jobJson(status), tokens: tokens.map(tokenJson), more: more || undefined })),
    );
    return EXIT.done;
  }
  admin.print(jobLine(status, titlesOf(admin.settings)));
  for (const line of [...treeLines(tokens), ...closureLines(status)]) admin.print(line);
  if (more) admin.print(`Only the ${JOB_TOKENS_SHOWN} oldest tokens are shown.`);
  return EXIT.done;
}

async function endJob(admin: Admin, id: string, isDry: boolean, json: boolean): Promise<number> {
  const ports = portsOf(admin);
  const facts = await ports.jobs.find(id);
  if (facts === undefined) return tellUnknown(admin, id);
  const selector = { by: "job", iss: admin.settings.issuer, id } as const;
  const ended = isDry ? undefined : await stopAndCount(ports, facts, byOperator(admin.settings));
  const isOver = !isDry && ended === undefined;
  if (isDry || isOver)
    await recordAccess(admin, { command: isDry ? "jobs end --dry-run" : "jobs end", job: id });
  const { count } = ended ?? (await previewEnding(ports, selector, { limit: 0 }));
  const status = await readStatus(ports, (await ports.jobs.find(id)) ?? facts);
  if (json) {
    const was = { dry_run: isDry || undefined, already_ended: isOver || undefined };
    admin.print(jsonLine(defined({ ...jobJson(status), ended: count, ...was })));
    return EXIT.done;
  }
  if (isOver) {
    const { ended } = status;
    admin.print(
      `The job ${word(id)} had ended before${ended ? `, at ${time(ended.atMs)}: ${ended.reason}` : ""}.`,
    );
    for (const line of closureLines(status)) admin.print(line);
    return EXIT.done;
  }
  const tokens = `${count} token${count === 1 ? "" : "s"} valid until now`;
  admin.print(
    isDry
      ? `Would stop the job ${word(id)}: ${tokens}. Nothing was stopped.`
      : `Stopped the job ${word(id)}: ${tokens}, refused from now on, with all that would come of them.`,
  );
  const held = HELD.filter(([name]) => status.held[name] > 0);
  if (held.length > 0)
    admin.print(`Ends with it: ${held.map(([name, what]) => `${what} ${status.held[name]}`).join(", ")}.`);
  for (const line of closureLines(status)) admin.print(line);
  return EXIT.done;
}

function tellUnknown({ printError }: Admin, id: string): number {
  printError(`There is no record of a job ${word(id)}: see "jobs list".`);
  return EXIT.refused;
}

// --- lines --------------------------------------------------------------------------------------------------------

function jobLine({ job, ended, state, open, partners, held }: JobStatus, titles: Titles): string {
  const { notAfterSeconds, targets, scopes, agents, maxTokens, maxDepth } = job.bounds;
  const living = [...open.map(({ tokens }) => tokens), ...partners.map(({ grants }) => grants)];
  const rest = fields({
    title: word(job.title),
    issuer: word(job.origin.iss),
    subject: word(job.origin.sub),
    agent: agentText(job.actor, titles),
    client: job.clientId === job.actor ? undefined : word(job.clientId),
    created: time(job.createdAtSeconds * 1000),
    by: job.approvedBy,
    until: time(notAfterSeconds * 1000),
    target: targets && words(targets),
    scope: scopes && word(scopes.join(" ")),
    agents: agents && words(agents),
    depth: maxDepth?.toString(),
    issued: maxTokens === undefined ? undefined : `${job.issued ?? 0}/${maxTokens}`,
    living: living.reduce((sum, one) => sum + one, 0).toString(),
    ...Object.fromEntries(HELD.map(([name]) => [name, held[name].toString()])),
    ended: ended && time(ended.atMs),
    reason: ended?.reason,
  });
  return `${word(job.id)} ${state} ${rest}`;
}

/** Each token below the one that it was exchanged from. */
function treeLines(tokens: readonly TokenRecord[]): readonly string[] {
  const known = new Set(tokens.map(({ jti }) => jti));
  const below = Map.groupBy(tokens, ({ ancestors: [parent = ""] }) => (known.has(parent) ? parent : ""));
  const lines = (parent: string, depth: number): readonly string[] =>
    (below.get(parent) ?? []).flatMap((token) => [
      `${"  ".repeat(depth)}${tokenLine(token)}`,
      ...lines(token.jti, depth + 1),
    ]);
  return lines("", 1);
}

const HELD = [
  ["codes", "authorization codes"],
  ["families", "grants with refresh tokens"],
  ["consents", "consents"],
  ["questions", "open questions to the user"],
  ["deferrals", "clients that wait for an answer"],
] as const;

const TOLD = {
  acknowledged: "it was told and has confirmed that",
  sent: "it is being told",
  introspects: "it asks at each use",
  never: "nothing tells it",
} as const;

const STATES = {
  living: "The job goes on.",
  closed: "Closed: nothing of it is accepted anywhere any more.",
  partial: "Not closed yet: what stands above may still be accepted.",
  unknown: "Unknown: a partner that takes no notice of jobs may go on with what it gave.",
} as const;

/** JOB-D-21: what may still be accepted elsewhere, and until when; what the agent holds beside the job. */
function closureLines({ state, settled, open, partners, outside }: JobStatus): readonly string[] {
  const by = (seconds: number): string => `until ${time(seconds * 1000)}`;
  return [
    ...open.map(
      ({ target, tokens, untilSeconds, told }) =>
        `At ${word(target)}: ${tokens} token${tokens === 1 ? "" : "s"}, ${by(untilSeconds)}; ${TOLD[told]}.`,
    ),
    ...partners.map(
      ({ issuer, grants, untilSeconds, told }) =>
        `At ${word(issuer)}: what came of ${grants} grant${grants === 1 ? "" : "s"}, ${by(untilSeconds)}; ${TOLD[told]}.`,
    ),
    ...(settled ? [] : ["What another instance was writing at the stop is counted in a few seconds."]),
    STATES[state],
    ...outside.consents.map(
      (id) => `Beside the job: consent ${word(id)} (mandate consents withdraw ${word(id)}).`,
    ),
    ...outside.grants.map(
      (id) =>
        `Beside the job: refresh tokens of the grant ${word(id)} (mandate tokens end --grant ${word(id)}).`,
    ),
    ...outside.rules.map(
      ({ id, targets }) =>
        `Beside the job: the rule ${word(id)} for ${words(targets)}, which asks no user (remove it, or let it demand "jobs": "required").`,
    ),
  ];
}
