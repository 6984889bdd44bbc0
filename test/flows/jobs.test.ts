/** Token requests in a job, on the embedded store with real keys: by what is presented, by choice, within its bounds. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import type { JobRows } from "../../src/adapters/store/store.ts";
import { REASONS } from "../../src/audit/reasons.ts";
import { putConsent } from "../../src/flows/consents.ts";
import { createJob } from "../../src/flows/create-job.ts";
import { recordEnding } from "../../src/flows/endings.ts";
import { explain } from "../../src/flows/explain.ts";
import { introspect } from "../../src/flows/introspect.ts";
import { revoke } from "../../src/flows/revoke.ts";
import { standing } from "../../src/flows/standing.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { JOB_KEPT_SECONDS, JOBS_PER_AGENT_AND_SUBJECT_MAX } from "../../src/limits/jobs.ts";
import { buildEnding } from "../../src/policy/endings.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT, GRANT_TYP } from "../../src/spec/identity-chaining.ts";
import { JWT_BEARER_GRANT } from "../../src/spec/rfc7523.ts";
import type { Json, JsonObject } from "../../src/spec/rfc8259.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { AT_TOKEN, formOf, openFlow } from "../support/flow.ts";
import { makeForeign } from "../support/foreign.ts";
import { prng } from "../support/prng.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  TRUST_DOMAIN,
  workload,
} from "../support/world.ts";

const PARTNER = "https://as.partner.example";
const DEAF = "https://as.deaf.example";
const API = "https://api.example";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const clerk = workload("agents/clerk");
const scopes = ["trips.read", "trips.book"];
const secretly = { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] };
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const forUsers = {
  subjects: { issuers: [IDP, ISSUER] },
  subjectToken: { audiences: [ISSUER, "self"], scopes: ["trips.read"] },
  scopes,
  ...implied,
};
const actors = [planner, booking, clerk];

const configuration = {
  trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
  trustedIssuers: {
    [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep", acceptAs: ["jwt"] },
    [PARTNER]: {
      keys: { url: `${PARTNER}/jwks` },
      subjects: { prefix: "p:" },
      acceptAs: ["jwt"],
      grants: { scopes },
      jobs: true,
    },
    [DEAF]: {
      keys: { url: `${DEAF}/jwks` },
      subjects: { prefix: "d:" },
      acceptAs: ["jwt"],
      grants: { scopes },
    },
  },
  clients: { desk: secretly },
  targets: [
    { names: [API], scopes, introspectors: ["desk"] },
    { names: ["booking"], owners: [booking], scopes },
    { names: ["clerk"], owners: [clerk], scopes },
    { names: ["paired"], scopes, job: "pairwise" },
    { names: ["other-pair"], scopes, job: "pairwise" },
    { names: ["secret"], scopes, job: "hidden", introspectors: ["desk"] },
    { kind: "partner", issuer: PARTNER, scopes, jobs: "honours" },
    { kind: "partner", issuer: DEAF, scopes },
  ],
  policies: [
    { id: "own", allow: "client_credentials", clients: ["desk"], targets: [API], scopes },
    {
      id: "work",
      allow: "delegation",
      actors,
      targets: [API, "booking", "clerk", "paired", "other-pair", "secret"],
      ...forUsers,
    },
    { id: "as-user", allow: "impersonation", actors, targets: ["paired", "clerk"], ...forUsers },
    { id: "there", allow: "delegation", issues: "grant", actors, targets: [PARTNER, DEAF], ...forUsers },
    {
      id: "guests",
      allow: "redemption",
      clients: ["desk"],
      subjects: { issuers: [PARTNER, DEAF] },
      targets: [API],
      scopes,
      ...implied,
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

type Overrides = { policies?: (rules: typeof configuration.policies) => object[] };

async function openWorld(t: TestContext, { policies = (rules) => rules }: Overrides = {}) {
  const signers = {
    [IDP]: await makeForeign(IDP),
    [PARTNER]: await makeForeign(PARTNER),
    [DEAF]: await makeForeign(DEAF),
    [TRUST_DOMAIN]: await makeForeign(TRUST_DOMAIN),
  };
  const flow = await openFlow(t, { ...configuration, policies: policies(configuration.policies) }, signers);
  const { ports, people } = flow;
  const now = () => ports.clock.nowSeconds();
  async function send(clientId: string, parameters: Record<string, string>) {
    const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
    const client = flow.client(clientId);
    return answerTokenRequest(ports, { client, form: formOf(parameters), request }, AT_TOKEN, people);
  }
  const user = (claims: object = {}) =>
    signers[IDP].sign({
      iss: IDP,
      sub: "u-1",
      aud: ISSUER,
      scope: scopes.join(" "),
      exp: now() + 3600,
      ...claims,
    });
  const svid = (sub: string) =>
    signers[TRUST_DOMAIN].sign({ sub, aud: ISSUER, exp: now() + 300 }, { typ: "JWT" });
  /** A delegation, or without `as` an impersonation; of a token of the user, or of one of ours. */
  async function exchange(
    by: string,
    {
      token,
      target = API,
      ...more
    }: { token?: string; target?: string; [name: string]: string | undefined } = {},
    as: string | undefined = by,
  ) {
    const parameters = Object.entries(more).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    );
    return send(by, {
      grant_type: EXCHANGE,
      subject_token: token ?? (await user()),
      subject_token_type: token === undefined ? JWT : ACCESS_TOKEN,
      audience: target,
      ...(as === "" ? {} : { actor_token: await svid(as), actor_token_type: JWT }),
      ...Object.fromEntries(parameters),
    });
  }
  const given = async (answering: ReturnType<typeof exchange>) => {
    const answer = await answering;
    assert.ok(
      answer.ok,
      answer.ok ? "" : `${answer.error.failure.reason} ${JSON.stringify(answer.error.event)}`,
    );
    return { ...answer.value, claims: claimsOf(answer.value.access_token) as JsonObject };
  };
  const refused = async (answering: ReturnType<typeof exchange>) => {
    const answer = await answering;
    assert.ok(!answer.ok);
    const { kind, reason, jobError } = answer.error.failure;
    return { kind, reason, jobError, event: answer.error.event as unknown as Event };
  };
  const create = async (values: object = {}) => {
    const json = { client: planner, subject: { iss: IDP, sub: "u-1" }, title: "book a trip", ...values };
    const made = await createJob(ports, json as Json, { reason: "by_operator", as: "operator" });
    assert.ok(made.ok, made.ok ? "" : made.error.kind);
    return made.value;
  };
  const end = (id: string, iss = ISSUER) =>
    ports.journal.record({
      event: { type: "token.revoked", outcome: "allow", reason: "by_operator" },
      ending: buildEnding(ports.hash.sha256, { by: "job", iss, id }, ports.clock.nowMs()),
    });
  return { ...flow, ports, signers, send, user, svid, exchange, given, refused, create, end, now };
}

test("JOB-D-9 a job is chosen beside a token of none, by its agent and for its subject alone; all other ids get one answer", async (t) => {
  const { create, exchange, given, refused, end, user, pass } = await openWorld(t);
  const job = await create();
  const token = await given(exchange(planner, { mandate_job: job.id }));
  assert.equal(token.mandate_job_id, job.id);
  assert.equal(token.mandate_job_expires_at, job.bounds.notAfterSeconds);
  const ended = await create();
  await end(ended.id);
  const over = await create({ notAfter: Math.floor(job.createdAtSeconds) + 10 });
  const ofBob = await create({ subject: { iss: IDP, sub: "u-2" } });
  const ofOther = await create({ client: booking });
  pass(8);
  const cases = [
    ["job_AAAAAAAAAAAAAAAAAAAAAA", "job_unknown"],
    ["' or 1=1", "job_unknown"],
    ["job_\u00e9", "job_unknown"],
    [ofBob.id, "job_of_another"],
    [ofOther.id, "job_of_another"],
  ] as const;
  for (const [id, reason] of cases) {
    const got = await refused(exchange(planner, { mandate_job: id }));
    assert.deepEqual([got.kind, got.reason, got.jobError], ["token_refused", reason, undefined], id);
    assert.equal(got.event.job, undefined);
  }
  // Of its own job the agent is told why it gives nothing, and the event names the job.
  for (const [{ id }, reason, told] of [
    [ended, "job_ended", "ended"],
    [over, "job_expired", "expired"],
  ] as const) {
    const got = await refused(exchange(planner, { mandate_job: id }));
    assert.deepEqual([got.kind, got.reason, got.jobError], ["token_refused", reason, told]);
    assert.deepEqual(got.event.job, { id });
    const another = await refused(exchange(booking, { mandate_job: id }));
    assert.deepEqual([another.reason, another.jobError], ["job_of_another", undefined]);
  }
  const other = await refused(
    exchange(planner, { mandate_job: job.id, subject_token: await user({ sub: "u-2" }) }),
  );
  assert.equal(other.reason, "job_of_another");
});

test("JOB-D-8 what is exchanged from a token of a job is of that job, whatever the request says", async (t) => {
  const { create, exchange, given, refused } = await openWorld(t);
  const [job, another] = [await create(), await create()];
  const first = await given(exchange(planner, { mandate_job: job.id, target: "booking" }));
  const second = await given(exchange(booking, { token: first.access_token, target: "clerk" }));
  assert.deepEqual(second.claims.mandate_job, { id: job.id, exp: job.bounds.notAfterSeconds });
  const third = await given(exchange(clerk, { token: second.access_token, mandate_job: job.id }));
  assert.equal(third.mandate_job_id, job.id);
  for (const id of [another.id, "job_AAAAAAAAAAAAAAAAAAAAAA"]) {
    const got = await refused(
      exchange(booking, { token: first.access_token, target: "clerk", mandate_job: id }),
    );
    assert.deepEqual([got.kind, got.reason], ["token_refused", "job_differs"]);
  }
  const wider = JSON.stringify({ title: "more", notAfter: job.bounds.notAfterSeconds + 1000 });
  const got = await refused(
    exchange(booking, { token: first.access_token, target: "clerk", mandate_job_request: wider }),
  );
  assert.deepEqual([got.kind, got.reason], ["request_malformed", "job_request_in_job"]);
});

test("JOB-D-8 a token of a job is impersonated into a token of the job, also where its target sees none", async (t) => {
  const { create, exchange, given, ports, end, now } = await openWorld(t);
  const job = await create();
  const first = await given(exchange(planner, { mandate_job: job.id, target: "clerk" }, ""));
  assert.equal(first.claims.act, undefined);
  const hidden = await given(exchange(clerk, { token: first.access_token, target: "secret" }));
  assert.equal(hidden.claims.mandate_job, undefined);
  assert.equal(hidden.mandate_job_id, undefined);
  const jti = String(hidden.claims.jti);
  assert.equal((await ports.facts.token(jti))?.record.jobId, job.id);
  await end(job.id);
  assert.deepEqual(await standing(ports, jti, now()), { ok: false, error: "token_revoked" });
});

test("JOB-D-12 once a job has ended nothing is issued for it, and the holder of its token is told why", async (t) => {
  const { create, exchange, given, refused, end } = await openWorld(t);
  const [job, another] = [await create(), await create()];
  const first = await given(exchange(planner, { mandate_job: job.id, target: "booking" }));
  const other = await given(exchange(planner, { mandate_job: another.id, target: "booking" }));
  const without = await given(exchange(planner, { target: "booking" }));
  await end(job.id);
  const got = await refused(exchange(booking, { token: first.access_token }));
  assert.deepEqual([got.kind, got.reason, got.jobError], ["token_refused", "subject_token_revoked", "ended"]);
  await given(exchange(booking, { token: other.access_token }));
  await given(exchange(booking, { token: without.access_token }));
});

test("JOB-D-8 a token whose job has no row is ended", async (t) => {
  const { create, exchange, given, ports, now } = await openWorld(t);
  const job = await create();
  const { claims } = await given(exchange(planner, { mandate_job: job.id }));
  const ofJob = () => standing(ports, String(claims.jti), now());
  assert.ok((await ofJob()).ok);
  await (ports.jobs as JobRows).sweep(job.bounds.notAfterSeconds + JOB_KEPT_SECONDS + 1, 10);
  assert.deepEqual(await ofJob(), { ok: false, error: "token_job_gone" });
});

test("JOB-D-10 a token ends with its job, and none is issued in its last five seconds", async (t) => {
  const { create, exchange, given, refused, now, pass } = await openWorld(t);
  const job = await create({ notAfter: now() + 100 });
  const first = await given(exchange(planner, { mandate_job: job.id, target: "booking" }));
  assert.equal(first.claims.exp, job.bounds.notAfterSeconds);
  pass(95);
  await given(exchange(booking, { token: first.access_token }));
  pass(1);
  const got = await refused(exchange(booking, { token: first.access_token }));
  assert.deepEqual([got.kind, got.reason, got.jobError], ["token_refused", "job_expired", "expired"]);
});

test("JOB-D-10 targets, scopes, agents and the length of the chain stay within the bounds of the job", async (t) => {
  const { create, exchange, given, refused } = await openWorld(t);
  const job = await create({
    targets: ["booking", "clerk", API],
    scopes: ["trips.read"],
    agents: [planner, booking],
    maxDepth: 2,
  });
  const first = await given(exchange(planner, { mandate_job: job.id, target: "booking" }));
  assert.equal(first.scope, "trips.read");
  assert.equal(
    (await refused(exchange(planner, { mandate_job: job.id, target: "paired" }))).reason,
    "target_not_allowed",
  );
  assert.equal(
    (await refused(exchange(planner, { mandate_job: job.id, scope: "trips.book" }))).reason,
    "scope_empty",
  );
  const second = await given(exchange(booking, { token: first.access_token, target: "booking" }));
  const deep = await refused(exchange(booking, { token: second.access_token }));
  assert.equal(deep.reason, "chain_too_deep");
  const toClerk = await given(exchange(booking, { token: first.access_token, target: "clerk" }));
  const outside = await refused(exchange(clerk, { token: toClerk.access_token }));
  assert.equal(outside.reason, "job_does_not_permit");
  // A hidden chain would start anew.
  const hidden = await refused(exchange(booking, { token: first.access_token, target: "clerk" }, ""));
  assert.equal(hidden.reason, "chain_too_deep");
});

test("JOB-D-7 a rule is for requests in a job, for those in none, or for both", async (t) => {
  const with_ = (jobs: string) => ({
    policies: (rules: typeof configuration.policies) =>
      rules.map((rule) => (rule.id === "work" ? { ...rule, jobs } : rule)),
  });
  const required = await openWorld(t, with_("required"));
  assert.equal((await required.refused(required.exchange(planner))).reason, "job_required");
  await required.given(required.exchange(planner, { mandate_job: (await required.create()).id }));
  const never = await openWorld(t, with_("never"));
  await never.given(never.exchange(planner));
  const job = await never.create();
  assert.equal(
    (await never.refused(never.exchange(planner, { mandate_job: job.id }))).reason,
    "target_not_allowed",
  );
});

test("JOB-D-11 a job gives as many tokens as it may, and says to the holder of its token that it is used up", async (t) => {
  const { create, exchange, given, refused, ports } = await openWorld(t);
  const job = await create({ maxTokens: 3 });
  const first = await given(exchange(planner, { mandate_job: job.id, target: "booking" }));
  await refused(exchange(planner, { mandate_job: job.id, scope: "other" }));
  const results = await Promise.all(
    Array.from({ length: 50 }, () => exchange(booking, { token: first.access_token })),
  );
  assert.equal(results.filter(({ ok }) => ok).length, 2);
  const reasons = results.flatMap((one) => (one.ok ? [] : [one.error.failure]));
  for (const { reason, jobError } of reasons)
    assert.deepEqual([reason, jobError], ["job_exhausted", "exhausted"]);
  const chosen = await refused(exchange(planner, { mandate_job: job.id }));
  assert.deepEqual([chosen.reason, chosen.jobError], ["job_exhausted", "exhausted"]);
  assert.equal((await ports.jobs.find(job.id))?.job.issued, 3);
});

test("JOB-D-3, JOB-D-15, RFC7662-2.2-3, RFC7519-4.3-v1 a target sees the id, one of its own, or none, in the token and at introspection; no title is in any token", async (t) => {
  const { create, exchange, given, ports, client } = await openWorld(t);
  const job = await create({ title: "the words of the asker" });
  const at = async (target: string) =>
    (await given(exchange(planner, { mandate_job: job.id, target }))).claims;
  const exp = job.bounds.notAfterSeconds;
  assert.deepEqual((await at(API)).mandate_job, { id: job.id, exp });
  const [paired, again, other, secret] = [
    await at("paired"),
    await at("paired"),
    await at("other-pair"),
    await at("secret"),
  ];
  assert.deepEqual(paired.mandate_job, again.mandate_job);
  const ids = [paired, other].map(({ mandate_job: one }) => String((one as JsonObject).id));
  assert.equal(new Set([...ids, job.id]).size, 3);
  for (const id of ids) assert.match(id, /^job_[\w-]{22}$/);
  assert.ok(!JSON.stringify([paired, other, secret]).includes(job.id));
  assert.ok(!JSON.stringify([paired, secret, await at(API)]).includes("asker"));
  const shown = (await given(exchange(planner, { mandate_job: job.id }))).access_token;
  const hidden = (await given(exchange(planner, { mandate_job: job.id, target: "secret" }))).access_token;
  const answers = [
    await introspect(ports, client("desk"), shown),
    await introspect(ports, client("desk"), hidden),
  ];
  assert.deepEqual(
    answers.map(({ answer }) => [
      answer.active,
      answer.mandate_job && { ...(answer.mandate_job as JsonObject) },
    ]),
    [
      [true, { id: job.id, exp }],
      [true, undefined],
    ],
  );
});

test("JOB-D-15 an agent that only holds a token of a job is told no more of it than the next target sees", async (t) => {
  const { create, exchange, given } = await openWorld(t);
  const job = await create();
  const held = (await given(exchange(planner, { mandate_job: job.id, target: "booking" }))).access_token;
  const told = async (by: string, target: string) =>
    (await given(exchange(by, { token: held, target }))).mandate_job_id;
  assert.equal(await told(booking, API), job.id);
  const paired = await told(booking, "paired");
  assert.match(String(paired), /^job_/);
  assert.notEqual(paired, job.id);
  assert.equal(await told(booking, "secret"), undefined);
  // The agent of the job names it by this id, wherever it goes.
  assert.equal(
    (await given(exchange(planner, { mandate_job: job.id, target: "secret" }))).mandate_job_id,
    job.id,
  );
});

test("JOB-D-13 a client ends its own job, and who only knows the name of a public one and the id ends nothing", async (t) => {
  const { create, ports, client } = await openWorld(t);
  const { id } = await create({ client: "desk", subject: undefined });
  const isEnded = async () => (await ports.jobs.find(id))?.ended !== undefined;
  const request = { id: "r", endpoint: "/revoke", source_ip: "192.0.2.1" };
  const by = (method: "none" | "client_secret_basic") =>
    revoke(ports, { ...client("desk"), method }, request, formOf({ token: id }));
  assert.ok((await by("none")).ok);
  assert.equal(await isEnded(), false);
  assert.ok((await by("client_secret_basic")).ok);
  assert.equal(await isEnded(), true);
});

test("JOB-D-9 a client that works for itself chooses a job of its own, and no user's", async (t) => {
  const { create, send, given, refused } = await openWorld(t);
  const own = await create({ client: "desk", subject: undefined });
  const ask = (id: string) => send("desk", { grant_type: "client_credentials", mandate_job: id });
  const token = await given(ask(own.id));
  assert.deepEqual(token.claims.mandate_job, { id: own.id, exp: own.bounds.notAfterSeconds });
  const ofUser = await create({ client: "desk" });
  assert.equal((await refused(ask(ofUser.id))).reason, "job_of_another");
  const request = await refused(
    send("desk", {
      grant_type: "client_credentials",
      mandate_job_request: JSON.stringify({ title: "mine" }),
    }),
  );
  assert.equal(request.reason, "job_request_out_of_place");
});

test("JOB-D-24 no more jobs live for an agent and a subject than there may be, and the trail is searched by their id", async (t) => {
  const { create, ports, exchange, given, events, user } = await openWorld(t);
  for (let index = 0; index < JOBS_PER_AGENT_AND_SUBJECT_MAX; index++) await create();
  const json = { client: planner, subject: { iss: IDP, sub: "u-1" }, title: "one more" };
  const more = await createJob(ports, json, { reason: "by_operator", as: "operator" });
  assert.equal(!more.ok && more.error.kind, "jobs_too_many");
  const job = await create({ subject: { iss: IDP, sub: "u-2" } });
  await given(exchange(planner, { mandate_job: job.id, subject_token: await user({ sub: "u-2" }) }));
  const found = (await events()).filter((event) => (event.job as JsonObject | undefined)?.id === job.id);
  assert.deepEqual(
    found.map(({ type }) => type),
    ["job.approved", "token_exchange.delegation"],
  );
});

test("POLICY-D-23 a subject that is disabled while a job or a consent for it is on its way, or by its file entry, gets neither, and the command says why", async (t) => {
  const { ports, events, reload, consent } = await openWorld(t);
  const disable = (sub: string) =>
    recordEnding(ports, { by: "subject", iss: IDP, sub, disabled: true }, { reason: "by_operator" });
  const make = (sub: string, at: typeof ports = ports) =>
    createJob(
      at,
      { client: planner, subject: { iss: IDP, sub }, title: "late" },
      { reason: "by_operator", as: "operator" },
    );
  const put = (sub: string, at: typeof ports = ports) => {
    const json = { subject: { iss: IDP, sub }, actor: planner, targets: ["booking"], scope: "trips.read" };
    return putConsent(at, { by: "operator", says: {} }, undefined, { id: sub, json, expected: undefined });
  };
  // The last look before the write ends the subject.
  const clients = {
    async find(id: string) {
      await disable("u-late-job");
      return ports.clients.find(id);
    },
  };
  const consents = {
    ...ports.consents,
    async find(id: string) {
      await disable("u-late-consent");
      return ports.consents.find(id);
    },
  };
  const late = [
    await make("u-late-job", { ...ports, clients } as typeof ports),
    await put("u-late-consent", { ...ports, consents } as typeof ports),
  ];
  await consent({ origin: { iss: IDP, sub: "u-file" }, actor: planner, targets: ["booking"], scopes });
  const listed = { ...configuration.trustedIssuers[IDP], disabledSubjects: ["u-file"] };
  reload({ ...configuration, trustedIssuers: { ...configuration.trustedIssuers, [IDP]: listed } });
  const byFile = await make("u-file");
  for (const made of [...late, byFile, await put("u-file")])
    assert.equal(!made.ok && made.error.kind, "subject_disabled");
  assert.deepEqual(!byFile.ok && byFile.error.problems, [`subject: ${REASONS.subject_disabled}`]);
  const outcomes = (await events()).filter(({ outcome }) => outcome === "deny").map(({ reason }) => reason);
  assert.deepEqual(outcomes, Array(4).fill("subject_disabled"));
  assert.deepEqual(await ports.jobs.list({}), []);
});

const BAD: Readonly<Record<string, string>> = {
  "no JSON": "{",
  "no object": '"a job"',
  "no title": "{}",
  "an unknown member": '{"title":"a","pause":true}',
  "a member twice": '{"title":"a","title":"b"}',
  "a title of direction marks": '{"title":"a\\u202eb"}',
  "a title of a line end": '{"title":"a\\nb"}',
  "a title that is too long": JSON.stringify({ title: "x".repeat(201) }),
  "a target with direction marks": '{"title":"a","targets":["a\\u202eb"]}',
  "an agent with a line end": '{"title":"a","agents":["a\\nb"]}',
  "a title of spaces": '{"title":"   "}',
  "too large a text": JSON.stringify({ title: "x", targets: ["é".repeat(1500), "è".repeat(1500)] }),
  "a list in a list": '{"title":"a","targets":[["b"]]}',
  "no agents": '{"title":"a","agents":[]}',
  "a count of none": '{"title":"a","maxTokens":0}',
  "a count with a fraction": '{"title":"a","maxTokens":1.5}',
  "a count beyond what a double tells apart": '{"title":"a","maxTokens":9007199254740993}',
  "a count that is no number": '{"title":"a","maxTokens":"5"}',
  "an infinite count": '{"title":"a","maxTokens":1e999}',
  "a time that is past": '{"title":"a","notAfter":1}',
  "a time that is too far away": '{"title":"a","notAfter":9007199254740991}',
};
for (const [what, text] of Object.entries(BAD)) {
  test(`JOB-D-2, JOB-D-3, NAME-D-8 a mandate_job_request with ${what} is refused`, async (t) => {
    const { exchange, refused } = await openWorld(t);
    const { kind, reason } = await refused(exchange(planner, { mandate_job_request: text }));
    assert.equal(kind, "request_malformed");
    assert.match(reason, /^job_request_(?:malformed|time_refused)$/);
  });
}

test("JOB-D-7 a job that is asked for where no rule asks a user is refused, whatever is allowed without one", async (t) => {
  const { exchange, refused, given } = await openWorld(t);
  await given(exchange(planner));
  const got = await refused(
    exchange(planner, { mandate_job_request: JSON.stringify({ title: "book a trip" }) }),
  );
  assert.deepEqual([got.kind, got.reason], ["policy_denied", "job_not_approved"]);
});

test("JOB-D-16, JOB-D-17 a grant of a job tells a partner of it that honours jobs, and leaves for no other", async (t) => {
  const { create, exchange, given, refused } = await openWorld(t);
  const job = await create();
  const { claims } = await given(exchange(planner, { mandate_job: job.id, target: PARTNER }));
  const { id, exp, iss } = claims.mandate_job as JsonObject;
  assert.deepEqual([exp, iss], [job.bounds.notAfterSeconds, ISSUER]);
  assert.notEqual(id, job.id);
  assert.equal(
    (await refused(exchange(planner, { mandate_job: job.id, target: DEAF }))).reason,
    "target_not_allowed",
  );
  await given(exchange(planner, { target: DEAF }));
  const acknowledged = await openWorld(t, {
    policies: (rules) =>
      rules.map((rule) => (rule.id === "there" ? { ...rule, acknowledgeJob: "job-ends-here" } : rule)),
  });
  const another = await acknowledged.create();
  await acknowledged.given(acknowledged.exchange(planner, { mandate_job: another.id, target: DEAF }));
});

test("JOB-D-17, JOB-D-18 what is redeemed is of the job that the grant's issuer names, and ends with it", async (t) => {
  const { signers, send, given, refused, ports, end, now } = await openWorld(t);
  const redeem = async (job: unknown, by: keyof typeof signers = PARTNER) =>
    send("desk", {
      grant_type: JWT_BEARER_GRANT,
      assertion: await signers[by].grant(
        { client_id: "desk", jti: randomUUID(), ...(job === undefined ? {} : { mandate_job: job }) },
        { typ: GRANT_TYP },
      ),
      audience: API,
    });
  const job = { id: "job_theirs", exp: now() + 60, iss: PARTNER };
  const token = await given(redeem(job));
  assert.deepEqual(token.claims.mandate_job, { id: "job_theirs", exp: job.exp, iss: PARTNER });
  assert.equal(token.claims.exp, job.exp);
  const { record } = (await ports.facts.token(String(token.claims.jti))) ?? assert.fail();
  assert.deepEqual(
    [record.jobId, record.jobIssuer, record.jobEndsAtSeconds],
    ["job_theirs", PARTNER, job.exp],
  );
  for (const bad of [
    "engineer",
    7,
    [],
    {},
    { ...job, id: "" },
    { ...job, id: "x".repeat(256) },
    { ...job, id: "\u202e" },
    { ...job, exp: "soon" },
    { ...job, iss: ISSUER },
    { ...job, iss: DEAF },
  ]) {
    const { kind, reason } = await refused(redeem(bad));
    assert.deepEqual([kind, reason], ["grant_refused", "job_malformed"], JSON.stringify(bad));
  }
  // Of another issuer the claim is no job.
  for (const other of [job, "engineer"])
    assert.equal((await given(redeem(other, DEAF))).mandate_job_id, undefined);
  assert.equal((await refused(redeem({ ...job, exp: now() + 4 }))).reason, "job_expired");
  await end("job_theirs");
  await given(redeem(job));
  await end("job_theirs", PARTNER);
  assert.equal((await refused(redeem(job))).reason, "ended");
  assert.deepEqual(await standing(ports, String(token.claims.jti), now()), {
    ok: false,
    error: "token_revoked",
  });
});

test("JOB-D-18 a partner's claim of one of our ids makes nothing of our job", async (t) => {
  const { create, signers, send, given, end, ports, now } = await openWorld(t);
  const ours = await create({ maxTokens: 5 });
  const assertion = await signers[PARTNER].grant(
    { client_id: "desk", jti: randomUUID(), mandate_job: { id: ours.id, exp: now() + 60, iss: PARTNER } },
    { typ: GRANT_TYP },
  );
  const token = await given(send("desk", { grant_type: JWT_BEARER_GRANT, assertion, audience: API }));
  assert.equal((await ports.jobs.find(ours.id))?.job.issued, 0);
  await end(ours.id);
  assert.ok((await standing(ports, String(token.claims.jti), now())).ok);
});

test("JOB-D-10 the explanation of a request in a job agrees with what is issued, for random bounds", async (t) => {
  const { create, exchange, ports, now, user } = await openWorld(t);
  const random = prng(36);
  const token = await user();
  const some = <T>(from: readonly T[]): T[] | undefined => {
    const taken = from.filter(() => random.below(2) === 0);
    return taken.length === 0 ? undefined : taken;
  };
  let allowed = 0;
  for (let round = 0; round < 120; round++) {
    const bounds = {
      notAfter: now() + random.pick([30, 100, 1000]),
      targets: some([API, "booking", "paired", PARTNER]),
      scopes: some(scopes),
      agents: some([planner, booking]),
      maxDepth: 1 + random.below(2),
    };
    const target = random.pick([API, "booking", "paired", PARTNER, DEAF]);
    const subject = { iss: IDP, sub: `u-${round}` };
    const job = await create({ subject, ...JSON.parse(JSON.stringify(bounds)) });
    const issued = await exchange(planner, {
      target,
      mandate_job: job.id,
      subject_token: await user({ sub: subject.sub }),
    });
    const told = await explain(ports, {
      client: planner,
      actor: planner,
      target,
      subjectClaims: { ...claimsOf(token), ...subject } as JsonObject,
      job: JSON.parse(JSON.stringify(bounds)),
    });
    assert.equal(told.issued !== undefined, issued.ok, JSON.stringify({ bounds, target }));
    if (!issued.ok) {
      assert.equal(told.failure?.reason, issued.error.failure.reason);
      continue;
    }
    allowed++;
    assert.equal(told.issued?.claims.scope, issued.value.scope);
    const lives = Number(told.issued?.claims.exp) - Number(told.issued?.claims.iat);
    assert.equal(lives, issued.value.expires_in);
  }
  assert.ok(allowed > 10 && allowed < 110, `${allowed}`);
});
