/** Jobs: who sees one and stops it, by API, by command and by its own client, and what stands then. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { basic } from "../../scripts/http-client.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import type { Service as StartedService } from "../../src/start/service.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  type Service,
  workload,
} from "../support/world.ts";

const SECRET = "jobs-jobs-jobs-jobs-jobs-1234567890";
const API = `${ISSUER}/api`;
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read"];
const TRIP = "https://trips.example/rar/trip";
const trip = { governs: scopes, fields: { place: { is: "string", narrows: "equal" } } };

let service: Service & Pick<StartedService, "ports">;
before(async () => {
  const client = { method: "client_secret_basic", secrets: [SECRET] };
  service = await makeService(
    {
      clients: { desk: client, report: client, other: client, gate: client },
      targets: [
        { names: ["planner"], owners: [planner], introspectors: ["gate"], scopes, details: { [TRIP]: trip } },
        { names: ["booking"], owners: [booking], introspectors: ["gate"], checks: "introspection", scopes },
      ],
      policies: [
        {
          ...{ id: "desk", allow: "client_credentials", clients: ["desk"], targets: [API] },
          scopes: ["job:manage", "token:revoke", "audit:read"],
        },
        {
          ...{ id: "own", allow: "client_credentials", clients: ["report", "other"] },
          ...{ targets: ["planner"], scopes },
        },
        {
          ...{ id: "planner", allow: "delegation", actors: [planner], subjects: { issuers: [ISSUER] } },
          ...{ subjectToken: { audiences: ["self"] }, targets: ["booking"], scopes },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
        {
          ...{ id: "unasked", allow: "delegation", actors: [planner] },
          ...{ subjects: { issuers: [IDP], subs: ["bob"] }, subjectToken: { audiences: ["self"] } },
          ...{ targets: ["booking"], scopes, consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
    },
    { inFile: true },
  );
});
after(() => stop(service));

const admin = (...words: string[]): Promise<HostRun> =>
  runCommandLine(["--config", service.configFile, ...words]);

async function own(client: string, form: Record<string, string> = {}) {
  return service.token(
    { grant_type: "client_credentials", audience: "planner", ...form },
    { authorization: basic(client, SECRET) },
  );
}

async function asDesk(method: string, path: string, scope: string, body?: object) {
  const { body: issued } = await own("desk", { audience: API, scope });
  const headers = { authorization: `Bearer ${issued.access_token}`, "content-type": "application/json" };
  return service.get(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

async function jobOf(client: string, title = "The report"): Promise<string> {
  const made = await asDesk("POST", "/jobs", "job:manage", { client, title });
  assert.equal(made.status, 201, made.text);
  return String(made.body.id);
}

/** A token of the job, and the one that planner exchanged it for. */
async function twoHops(job: string): Promise<[string, string]> {
  const first = await own("report", { mandate_job: job });
  assert.deepEqual([first.status, first.body.mandate_job_id], [200, job], first.text);
  const svid = await service.svid("agents/planner");
  const second = await service.token({
    ...{ grant_type: EXCHANGE, subject_token: String(first.body.access_token) },
    ...{ subject_token_type: ACCESS_TOKEN, actor_token: svid, actor_token_type: JWT, audience: "booking" },
    ...service.as(svid),
  });
  assert.deepEqual([second.status, second.body.mandate_job_id], [200, job], second.text);
  return [String(first.body.access_token), String(second.body.access_token)];
}

async function isActive(token: string): Promise<boolean> {
  const { body } = await service.get("/introspect", {
    ...{ method: "POST", body: `token=${token}` },
    headers: { authorization: basic("gate", SECRET), "content-type": "application/x-www-form-urlencoded" },
  });
  return body.active === true;
}

const revoke = (client: string, id: string) =>
  service.get("/revoke", {
    ...{ method: "POST", body: `token=${id}` },
    headers: { authorization: basic(client, SECRET), "content-type": "application/x-www-form-urlencoded" },
  });

test("JOB-D-13, JOB-D-14 the client of a job ends it at /revoke, with all that came of it, and no other job", async () => {
  const [job, another] = [await jobOf("report"), await jobOf("report")];
  const [first, second] = await twoHops(job);
  const [stays] = await twoHops(another);
  assert.equal((await revoke("report", job)).status, 200);
  assert.deepEqual(
    [await isActive(first), await isActive(second), await isActive(stays)],
    [false, false, true],
  );
  const again = await own("report", { mandate_job: job });
  assert.deepEqual([again.status, again.body.error], [400, "invalid_request"], again.text);
  assert.equal((await own("report", { mandate_job: another })).status, 200);
  const ended = (await service.events()).findLast(({ type }) => type === "job.ended");
  assert.equal(ended?.reason, "by_client");
});

test("JOB-D-13 a client that knows the id of another's job, or invents one, ends nothing and is answered alike", async () => {
  const job = await jobOf("report");
  const [first] = await twoHops(job);
  const answers = [await revoke("other", job), await revoke("other", `job_${"x".repeat(22)}`)];
  assert.deepEqual(
    answers.map(({ status, text }) => [status, text]),
    [
      [200, "{}"],
      [200, "{}"],
    ],
  );
  assert.equal(await isActive(first), true);
  const denied = (await service.events()).filter(({ type }) => type === "token.revocation_denied").slice(-2);
  assert.deepEqual(
    denied.map(({ reason }) => reason),
    ["job_unknown", "job_unknown"],
  );
});

test("JOB-D-13, JOB-D-20 an administrator reads jobs page by page, and no other token is taken for it", async () => {
  const job = await jobOf("other", "Only this one");
  const one = await asDesk("GET", `/jobs/${job}`, "job:manage");
  assert.deepEqual(
    [one.status, one.body.id, one.body.title, one.body.state, one.body.approved_by, one.body.open],
    [200, job, "Only this one", "living", "api", []],
  );
  const query = `iss=${encodeURIComponent(ISSUER)}&sub=other`;
  const listed = await asDesk("GET", `/jobs?${query}`, "job:manage");
  const ids = (listed.body.jobs as { id: string }[]).map(({ id }) => id);
  assert.deepEqual([listed.status, ids.includes(job)], [200, true]);
  const rest = await asDesk("GET", `/jobs?${query}&after=${job}`, "job:manage");
  assert.equal(
    (rest.body.jobs as { id: string }[]).some(({ id }) => id === job),
    false,
  );
  for (const [path, status] of [
    ["/jobs/job_of-nobody", 404],
    ["/jobs?after=job_of-nobody", 404],
    ["/jobs?iss=x", 400],
    ["/jobs?limit=1", 400],
  ] as const)
    assert.equal((await asDesk("GET", path, "job:manage")).status, status, path);
  assert.equal((await asDesk("GET", `/jobs/${job}`, "audit:read")).status, 403);
  const { body } = await own("report");
  const headers = { authorization: `Bearer ${body.access_token}` };
  assert.equal((await service.get(`/jobs/${job}`, { headers })).status, 401);
});

test("JOB-D-20, JOB-D-21, JOB-D-22 an operator sees the tree of a job, is told before the stop what it leaves, and stops it", async () => {
  const job = await jobOf("report", 'Say "hello"\\');
  const [first, second] = await twoHops(job);
  // As a user's click records it.
  const consent = {
    id: randomUUID(),
    version: 1,
    origin: { iss: IDP, sub: "alice" },
    actor: planner,
    jobId: job,
  };
  const add = { ...consent, targets: ["booking"], scopes };
  const event = { type: "consent.recorded", outcome: "allow", reason: "by_subject" } as const;
  assert.ok((await service.ports.journal.record({ event, consent: { add } })).ok);
  const shown = await admin("jobs", "show", job);
  assert.deepEqual([shown.code, shown.err], [0, ""]);
  const [line = "", parent = "", child = "", ...closure] = shown.out.trimEnd().split("\n");
  assert.match(
    line,
    new RegExp(
      `^${job} living title="Say .*" .* living=2 codes=0 families=0 consents=1 questions=0 deferrals=0$`,
    ),
  );
  assert.ok(parent.startsWith(`  ${claimsOf(first).jti} `), parent);
  assert.ok(child.startsWith(`    ${claimsOf(second).jti} `), child);
  assert.match(
    closure.join("\n"),
    /^At booking: 1 token, until \S+; it asks at each use\.\nAt planner: 1 token, until \S+; nothing tells it\./,
  );

  const dry = await admin("jobs", "end", job, "--dry-run");
  assert.match(
    dry.out,
    /^Would stop the job \S+: 2 tokens valid until now\. Nothing was stopped\.\nEnds with it: consents 1\.\n/,
  );
  assert.equal(await isActive(second), true);
  const ended = await admin("jobs", "end", job);
  assert.match(ended.out, /^Stopped the job \S+: 2 tokens valid until now, refused from now on/);
  assert.match(ended.out, /\nEnds with it: consents 1\.\n/);
  assert.match(ended.out, /\nNot closed yet: what stands above may still be accepted\.\n$/);
  assert.deepEqual([await isActive(first), await isActive(second)], [false, false]);
  const report = JSON.parse((await admin("jobs", "show", job, "--json")).out);
  assert.deepEqual(
    [report.state, report.settled, report.reason, report.open.map(({ told }: { told: string }) => told)],
    ["partial", false, "by_operator", ["introspects", "never"]],
  );
  const listed = await admin("jobs", "list", "--issuer", ISSUER, "--subject", "report");
  assert.ok(listed.out.includes(`${job} partial `), listed.out);
  const trail = await admin("audit", "--log", "admin");
  for (const part of ["jobs show", "jobs end --dry-run", "jobs list", "job.ended allow by_operator"])
    assert.ok(trail.out.includes(part), part);
});

/** What the events of its stop say. */
const stopsOf = async (job: string): Promise<JsonObject[]> =>
  (await service.events()).flatMap(({ type, detail }) => {
    const said = detail as JsonObject & { ends: JsonObject };
    return type === "job.ended" && said.ends.id === job ? [said] : [];
  });

test("JOB-D-22, JOB-D-27 a job is stopped once: by API, by its client and by command the second stop makes no event and says so", async () => {
  const job = await jobOf("report");
  await twoHops(job);
  const first = await asDesk("POST", "/revocations", "token:revoke", { job });
  assert.deepEqual([first.status, first.body.ended, first.body.already_ended], [200, 2, undefined]);
  assert.ok(Number.isInteger(first.body.accepted_until), first.text);
  const second = await asDesk("POST", "/revocations", "token:revoke", { job });
  assert.deepEqual([second.status, second.body.ended, second.body.already_ended], [200, 0, true]);
  assert.equal((second.body.job as JsonObject).event, first.body.event);
  assert.equal(second.body.accepted_until, first.body.accepted_until);
  assert.equal((await revoke("report", job)).status, 200);
  const shown = await admin("jobs", "end", job);
  assert.match(shown.out, /^The job \S+ had ended before, at \S+: by_administrator\.\n/);
  const read = JSON.parse((await admin("jobs", "end", job, "--json")).out);
  assert.deepEqual([read.ended, read.already_ended], [0, true]);
  const stops = await stopsOf(job);
  assert.equal(stops.length, 1);
  // JOB-D-22: the event, the answer and the report tell one moment, which is that of the tokens.
  const { open } = first.body.job as { open: { until: number }[] };
  assert.deepEqual(
    [stops[0]?.accepted_until_ms, Math.max(...open.map((one) => one.until))],
    [1000 * Number(first.body.accepted_until), first.body.accepted_until],
  );
});

test("JOB-D-22 the event of a stop with nothing left names no moment until when it may be accepted", async () => {
  const job = await jobOf("report");
  const { body } = await asDesk("POST", "/revocations", "token:revoke", { job });
  assert.deepEqual([body.ended, body.accepted_until], [0, undefined]);
  const [stopped] = await stopsOf(job);
  assert.ok(stopped !== undefined && !("accepted_until_ms" in stopped));
});

test("JOB-D-27 the stop of a job that ended with its user makes no event and says so", async () => {
  const subject = { iss: IDP, sub: "zed" };
  const made = await asDesk("POST", "/jobs", "job:manage", { client: planner, subject, title: "Zed's" });
  assert.equal(made.status, 201, made.text);
  await asDesk("POST", "/revocations", "token:revoke", { subject });
  const job = String(made.body.id);
  const late = await asDesk("POST", "/revocations", "token:revoke", { job });
  assert.deepEqual([late.body.ended, late.body.already_ended], [0, true], late.text);
  assert.equal((await stopsOf(job)).length, 0);
});

test("JOB-D-23 the report names what the same agent holds of the user beside the job, with the way to stop it", async () => {
  const add = (actor: string) =>
    admin(
      ...["consents", "add", "--issuer", IDP, "--subject", "alice", "--actor", actor],
      ...["--target", "booking", "--scope", "trips.read"],
    );
  const consent = (await add(planner)).out.trim();
  await add(booking);
  const order = { client: planner, subject: { iss: IDP, sub: "alice" }, title: "Book a trip" };
  const made = await asDesk("POST", "/jobs", "job:manage", order);
  assert.equal(made.status, 201, made.text);
  const ended = await asDesk("POST", "/revocations", "token:revoke", { job: made.body.id });
  assert.deepEqual((ended.body.job as { outside: object }).outside, {
    consents: [consent],
    grants: [],
    rules: [],
  });
  const shown = await admin("jobs", "show", String(made.body.id));
  assert.ok(shown.out.includes(`Beside the job: consent ${consent} (mandate consents withdraw ${consent}).`));
});

test("JOB-D-23 the report names the rule by which the same agent goes on without a consent, and what ends it", async () => {
  const made = await create(
    ...["--client", planner, "--issuer", IDP, "--subject", "bob", "--title", "Book a trip"],
  );
  const id = made.out.trim();
  const shown = await admin("jobs", "show", id);
  assert.ok(
    shown.out.includes(
      'Beside the job: the rule unasked for booking, which asks no user (remove it, or let it demand "jobs": "required").',
    ),
    shown.out,
  );
  const ended = await asDesk("POST", "/revocations", "token:revoke", { job: id, dryRun: true });
  assert.deepEqual((ended.body.job as { outside: object }).outside, {
    ...{ consents: [], grants: [], rules: [{ id: "unasked", targets: ["booking"], scope: "trips.read" }] },
  });
});

test("a job that is not on record is refused by the commands, and so is half a subject", async () => {
  const unknown = await admin("jobs", "end", "job_of-nobody");
  assert.deepEqual([unknown.code, unknown.out], [1, ""]);
  assert.match(unknown.err, /^There is no record of a job job_of-nobody: see "jobs list"\.\n$/);
  assert.equal((await admin("jobs", "show", "job_of-nobody")).code, 1);
  assert.equal((await admin("jobs", "list", "--subject", "alice")).code, 2);
});

// --- made by command --------------------------------------------------------------------------------------------

const create = (...options: string[]): Promise<HostRun> => admin("jobs", "create", ...options);

/** The last event of an operator that these options of `audit` find. */
async function byCommand(...filters: string[]): Promise<{ reason: string; detail: JsonObject }[]> {
  const { out } = await admin("audit", "--log", "admin", "--limit", "1", "--json", ...filters);
  return out.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

/** Beside the configuration, which names it. */
function fileOf(name: string, content: string): string {
  const file = join(dirname(service.configFile), name);
  writeFileSync(file, content);
  return file;
}

test("JOB-D-2, JOB-D-4 an operator makes a job with every bound, and its client works in it until they are used up", async () => {
  const details = [{ type: TRIP, place: "Rome" }];
  const made = await create(
    ...["--client", "report", "--title", 'Say "hello" to Rome', "--target", "planner", "--target", "booking"],
    ...["--scope", "trips.read", "--details", fileOf("trip.json", JSON.stringify(details))],
    ...["--agents", "report", "--agents", planner, "--max-tokens", "1", "--max-depth", "2"],
    ...["--not-after", new Date(Date.now() + 3_600_000).toISOString()],
  );
  assert.deepEqual([made.code, made.err], [0, ""]);
  const id = made.out.trim();
  const { created_at, not_after, as_of, ...shown } = JSON.parse(
    (await admin("jobs", "show", id, "--json")).out,
  );
  assert.ok(Math.abs(not_after - created_at - 3600) <= 2, `${not_after} ${created_at} ${as_of}`);
  const { title, subject, client_id, agent, approved_by, state } = shown;
  assert.deepEqual(
    { title, subject, client_id, agent, approved_by, state },
    {
      ...{ title: 'Say "hello" to Rome', subject: { iss: ISSUER, sub: "report" }, client_id: "report" },
      ...{ agent: "report", approved_by: "operator", state: "living" },
    },
  );
  const { targets, scope, authorization_details, agents, max_tokens, max_depth, issued } = shown;
  assert.deepEqual(
    { targets, scope, authorization_details, agents, max_tokens, max_depth, issued },
    {
      ...{ targets: ["planner", "booking"], scope: "trips.read", authorization_details: details },
      ...{ agents: ["report", planner], max_tokens: 1, max_depth: 2, issued: 0 },
    },
  );
  const first = await own("report", { mandate_job: id });
  assert.deepEqual([first.status, first.body.mandate_job_id], [200, id], first.text);
  assert.deepEqual(claimsOf(first.body.access_token).authorization_details, details);
  const second = await own("report", { mandate_job: id });
  assert.deepEqual([second.status, second.body.error], [400, "invalid_request"], second.text);
  const [approved] = await byCommand("--type", "job.approved");
  const { uid, approved_by: by } = approved?.detail ?? {};
  assert.deepEqual([approved?.reason, uid, by], ["by_operator", process.getuid?.(), "operator"]);
});

test("JOB-D-4 an operator makes a job of an agent for a user, which is printed whole with --json", async () => {
  const made = await create(
    ...["--client", "report", "--actor", planner, "--issuer", IDP, "--subject", "alice"],
    ...["--title", "Book a trip", "--json"],
  );
  assert.deepEqual([made.code, made.err], [0, ""]);
  const { id, subject, agent, client_id, state } = JSON.parse(made.out);
  assert.match(id, /^job_[\w-]{22}$/);
  assert.deepEqual(
    { subject, agent, client_id, state },
    { subject: { iss: IDP, sub: "alice" }, agent: planner, client_id: "report", state: "living" },
  );
  assert.ok((await admin("jobs", "list", "--actor", planner)).out.includes(id));
});

const REFUSED: Readonly<Record<string, readonly [options: readonly string[], says: string]>> = {
  "of an unknown client": [["--client", "reprot"], "client: reprot is no client, workload or document"],
  "for a subject of an unknown issuer": [
    ["--issuer", "https://idp.example/", "--subject", "alice"],
    "subject: https://idp.example/ is neither in trustedIssuers nor this server's issuer",
  ],
  "for an unknown target": [["--target", "plannner"], "targets: plannner is not a name in targets"],
  "of a client whose name reorders text": [
    ["--client", "a\u202eb"],
    "client: has a character that is not shown",
  ],
  "for a subject with an invisible character": [
    ["--issuer", IDP, "--subject", "ali\u200bce"],
    "subject.sub: has a character that is not shown",
  ],
  "that is over": [["--not-after", "2026-01-01T00:00:00Z"], "notAfter: is past, or more than 30 days away"],
  "that lasts for years": [["--not-after", "2099-01-01T00:00:00Z"], "notAfter: is past, or more than 30"],
  "with a title that reorders text": [["--title", "a\u202eb"], "title: "],
  "with too many tokens": [["--max-tokens", "999999999"], "maxTokens: is more than "],
  "with what is no scope": [["--scope", 'a"b'], "scopes.0: is not a scope"],
};
for (const [what, [options, says]] of Object.entries(REFUSED)) {
  test(`JOB-D-2, JOB-D-4, NAME-D-8 the command for a job ${what} says what is wrong, and makes none: it is refused`, async () => {
    const has = (name: string): boolean => options.includes(name);
    const run = await create(
      ...(has("--client") ? [] : ["--client", "report"]),
      ...(has("--title") ? [] : ["--title", "Refused"]),
      ...options,
    );
    assert.deepEqual([run.code, run.out], [1, ""], run.err);
    assert.ok(run.err.includes(says), run.err);
    assert.ok(!(await admin("jobs", "list")).out.includes("Refused"));
    const [denied] = await byCommand("--type", "admin.access", "--outcome", "deny");
    assert.equal(denied?.detail.uid, process.getuid?.());
  });
}

test("RAR-D-1 details of a job that are no objects of a declared type, and a file that is no JSON, are refused", async () => {
  const job = ["--client", "report", "--title", "Refused", "--details"];
  for (const [content, code, says] of [
    ['[{"type":"other"}]', 1, "details: "],
    [`[{"type":"${TRIP}","place":7}]`, 1, "details: "],
    ["{}", 1, "details: "],
    ["[", 2, "is not valid JSON"],
  ] as const) {
    const run = await create(...job, fileOf("wrong.json", content));
    assert.deepEqual([run.code, run.out], [code, ""], run.err);
    assert.ok(run.err.includes(says), run.err);
  }
  assert.equal((await create(...job, "/nowhere.json")).code, 2);
});

test("a command line that leaves out client or title, halves the subject or misspells a bound is refused", async () => {
  const [client, title] = [
    ["--client", "report"],
    ["--title", "Refused"],
  ];
  for (const options of [
    client,
    title,
    [...client, ...title, "--subject", "alice"],
    [...client, ...title, "--not-after", "tomorrow"],
    [...client, ...title, "--max-tokens", "0"],
    [...client, ...title, "--max-depth", "2.5"],
    [...client, ...title, "--max-uses", "1"],
  ])
    assert.equal((await create(...options)).code, 2, options.join(" "));
  assert.match((await create("--help")).out, /mandate jobs create --client CLIENT_ID --title TEXT/);
});

test("JOB-D-2 an administrator who bounds a job to an unknown target is told so, and no job is made", async () => {
  const made = await asDesk("POST", "/jobs", "job:manage", { client: "report", title: "x", targets: ["no"] });
  assert.deepEqual([made.status, made.text.includes("a target is not known")], [400, true], made.text);
});
