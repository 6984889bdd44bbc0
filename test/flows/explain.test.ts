/** POST /policy/explain: its trace, and that it always agrees with the token endpoint. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { runCommandLine } from "../../scripts/command-line.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { MAIN } from "../../scripts/server-process.ts";
import { type Prng, prng } from "../support/prng.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  type Service,
  workload,
} from "../support/world.ts";

const SECRET = "explain-explain-explain-explain1";
const API = `${ISSUER}/api`;
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const clerk = workload("library/clerk");
const portal = workload("apps/portal");
const SCOPES = ["trips.read", "trips.book", "trips.pay"];
const TARGETS = ["planner-agent", "booking-agent", "https://api.example", "api", "crew-desk"];
const SUBJECTS = ["u-1", "u-2"];

const random = prng(8693);
const some = <T>(from: readonly T[], least = 1): T[] => {
  const chosen = from.filter(() => random.below(2) === 0);
  return chosen.length >= least ? chosen : [random.pick(from)];
};

function randomRule(index: number): object {
  const allow = random.pick(["delegation", "delegation", "impersonation", "client_credentials"]);
  const common = {
    id: `r${index}`,
    allow,
    targets: some(TARGETS),
    scopes: some(SCOPES),
    lifetimeSeconds: random.pick([60, 300, 900]),
  };
  const actors = some([planner, booking, workload("crew/*"), workload("agents/*"), portal]);
  const clients = some(["desk", "agent", planner]);
  const who = random.pick([{ actors }, { clients }, { actors, clients }]);
  if (allow === "client_credentials") return { ...common, ...who };
  const consent = random.pick(["record", "record", "may_act", "implied"]);
  return {
    ...common,
    ...(allow === "delegation" ? { actors } : who),
    subjects: {
      // A rule with consent may_act for our own subjects alone would be refused, because their tokens have no may_act.
      issuers: random.pick([[IDP], [IDP], consent === "may_act" ? [IDP] : [ISSUER], [IDP, ISSUER]]),
      ...(random.below(4) === 0 && { subs: ["u-1"] }),
    },
    subjectToken: random.pick([
      { audiences: [ISSUER, "self"] },
      { audiences: ["self"] },
      { audiences: TARGETS },
      { scopes: ["trips.pay"] },
      { audiences: [ISSUER, "self"], scopes: ["trips.book"] },
    ]),
    consent,
    ...(consent === "implied" && { acknowledge: "subjects-not-asked" }),
    ...(allow === "delegation" && random.below(3) === 0 && { maxChainDepth: random.pick([1, 2, 3]) }),
  };
}

/** Fixed rules with readable explanations. */
const plain = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER] },
  consent: "record",
  targets: ["reading-room"],
  scopes: ["books.read", "books.lend"],
};

const CONFIGURATION = {
  clients: {
    operator: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: API },
    desk: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: "https://api.example" },
    agent: { method: "client_secret_basic", secrets: [SECRET], workload: portal },
    only: { method: "client_secret_basic", secrets: [SECRET], grantTypes: ["client_credentials"] },
  },
  agents: { [workload("library/*")]: { title: { de: "Bücherei", en: "Library" } }, desk: { title: "Desk" } },
  limits: { requestsPerSecondByClient: 100_000 },
  targets: [
    { names: ["planner-agent"], owners: [planner], scopes: SCOPES },
    { names: ["booking-agent"], owners: [booking], scopes: ["trips.read", "trips.book"] },
    { names: ["https://api.example", "api"], scopes: SCOPES },
    { names: ["crew-desk"], owners: [workload("crew/*")], scopes: ["trips.read"] },
    { names: ["reading-room"], scopes: ["books.read"] },
  ],
  policies: [
    ...Array.from({ length: 40 }, (_, index) => randomRule(index)),
    {
      id: "operators",
      allow: "client_credentials",
      clients: ["operator"],
      targets: [API],
      scopes: ["policy:explain"],
    },
    { id: "readers", allow: "delegation", actors: [planner, clerk], ...plain },
    {
      id: "lenders",
      allow: "delegation",
      actors: [planner],
      ...plain,
      subjects: { issuers: [IDP], subs: ["other"] },
    },
  ],
};

let world: Service;
let token: string;

before(async () => {
  world = await makeService(CONFIGURATION, { inFile: true });
  const authorization = basic("operator", SECRET);
  const answer = await world.token({ grant_type: "client_credentials" }, { authorization });
  assert.equal(answer.status, 200, answer.text);
  token = String(answer.body.access_token);
  for (const sub of SUBJECTS) {
    for (const path of ["agents/planner", "agents/booking", "crew/ana", "apps/portal"]) {
      for (const target of some(TARGETS, 2)) await world.consent(sub, path, target, some(SCOPES));
    }
  }
  await world.consent("u-1", "agents/planner", "reading-room", ["books.read", "books.lend"]);
});

after(() => stop(world));

const explain = (question: object | string): Promise<Answer> =>
  world.get("/policy/explain", {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: typeof question === "string" ? question : JSON.stringify(question),
  });

const admin = async (...words: string[]): Promise<void> => {
  const run = await runCommandLine(["--config", world.configFile, ...words]);
  assert.equal(run.code, 0, run.err);
};

const reader = async (): Promise<Record<string, unknown>> => ({
  client: planner,
  actor: planner,
  subjectClaims: claimsOf(
    await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "books.read books.lend" }),
  ),
  target: "reading-room",
  scope: "books.read books.lend books.burn",
});

// --- the explanation ----------------------------------------------------------------------------------------------

test("PROD-2.6-1, PROD-5r4-1 the rules, the dropped scopes with their reasons and what would be issued are listed", async () => {
  const before = (await world.events()).length;
  const { status, body } = await explain(await reader());
  assert.equal(status, 200);
  assert.deepEqual([body.decision, body.mode, body.error], ["allow", "delegation", undefined]);
  assert.match(String(body.policy), /^sha256:/);
  assert.deepEqual(body.rules, [
    { rule: "lenders", failed: "subject" },
    {
      rule: "readers",
      fallen: [
        { scope: "books.lend", at: "target" },
        { scope: "books.burn", at: "subject_token" },
      ],
    },
  ]);
  assert.deepEqual(body.scopes, [
    { scope: "books.read" },
    { scope: "books.lend", fell: "target" },
    { scope: "books.burn", fell: "subject_token" },
  ]);
  const { rule, claims, consent } = body.would_issue as Record<string, Record<string, unknown>>;
  assert.equal(rule, "readers");
  assert.match(String(consent), /^[\w-]+$/);
  assert.deepEqual(
    { ...claims, iat: 0, exp: 0 },
    {
      iss: ISSUER,
      sub: "u-1",
      act: { sub: planner },
      aud: "reading-room",
      client_id: planner,
      scope: "books.read",
      iat: 0,
      exp: 0,
    },
  );
  assert.deepEqual(body.explanation, [
    "Rule lenders: no, it does not name this subject.",
    "Rule readers: allows this.",
    "  Scope books.lend is not granted: the target does not have it.",
    "  Scope books.burn is not granted: the subject token does not have it.",
    "Allowed by rule readers, with scope books.read.",
  ]);
  const events = (await world.events()).slice(before);
  assert.deepEqual(
    events.map(({ type, outcome, reason, granted }) => [type, outcome, reason, granted]),
    [["admin.access", "allow", "explained", undefined]],
  );
  assert.deepEqual(events[0]?.detail, {
    mode: "delegation",
    client: planner,
    actor: planner,
    decision: "allow",
    rule_id: "readers",
    iss: IDP,
    sub: "u-1",
    target: "reading-room",
    scope: "books.read books.lend books.burn",
  });
});

const denials: [string, object, string, string, object][] = [
  [
    "without consent",
    { client: clerk, actor: clerk },
    "invalid_request",
    "consent_missing",
    [
      {
        rule: "readers",
        failed: "consent",
        fallen: [
          { scope: "books.lend", at: "target" },
          { scope: "books.burn", at: "subject_token" },
        ],
      },
    ],
  ],
  [
    "without a remaining scope",
    { scope: "books.lend" },
    "invalid_scope",
    "scope_empty",
    [
      {
        rule: "lenders",
        failed: "subject",
        also: ["scope"],
        fallen: [{ scope: "books.lend", at: "target" }],
      },
      { rule: "readers", failed: "scope", fallen: [{ scope: "books.lend", at: "target" }] },
    ],
  ],
  ["at an unknown target", { target: "nowhere" }, "invalid_target", "target_unknown", []],
  ["without a target", { target: undefined }, "invalid_target", "target_missing", []],
  ["for an unknown client", { client: "unknown", actor: undefined }, "invalid_client", "client_unknown", []],
  ["for a client with a NUL", { client: "\0", actor: undefined }, "invalid_client", "client_unknown", []],
  ["with the actor token of another", { actor: booking }, "invalid_request", "actor_not_the_caller", []],
  [
    "with a client of another workload",
    { client: "agent", workload: planner },
    "invalid_client",
    "workload_not_associated",
    [],
  ],
  [
    "for a grant type that is not registered",
    { client: "only" },
    "unauthorized_client",
    "grant_type_not_registered",
    [],
  ],
  [
    "with an origin that differs from the token",
    { origin: { iss: IDP, sub: "u-2" } },
    "invalid_request",
    "subject_origin_differs",
    [],
  ],
];
for (const [name, change, error, reason, rules] of denials) {
  test(`PROD-2.6-1, AUDIT-D-2 the reason of a refusal is given: ${name}`, async () => {
    const { status, body } = await explain({ ...(await reader()), ...change });
    assert.equal(status, 200);
    assert.deepEqual(
      [body.decision, body.error, body.reason, body.would_issue],
      ["deny", error, reason, undefined],
    );
    assert.deepEqual(body.rules, rules);
    assert.ok((body.explanation as string[]).at(-1)?.includes(reason));
  });
}

test("PROD-2.6-1 a token for our own endpoints is refused as a subject token", async () => {
  const question = { ...(await reader()), subjectClaims: claimsOf(token) };
  assert.equal((await explain(question)).body.reason, "subject_token_for_own_endpoints");
});

for (const [whose, iss, sub, decision, reason] of [
  ["a trusted issuer", IDP, "u-1", "allow", undefined],
  ["a trusted issuer that calls it otherwise", IDP, "u-2", "deny", "subject_token_issuer_narrowed"],
  ["an unknown issuer", "https://idp.other", "u-1", "deny", "subject_origin_not_trusted"],
] as const) {
  test(`PROD-2.6-1 a token of ours whose subject is of ${whose} is explained: ${decision}`, async () => {
    const question = await reader();
    const subjectClaims = { ...(question.subjectClaims as object), iss: ISSUER };
    const { body } = await explain({ ...question, subjectClaims, origin: { iss, sub } });
    assert.deepEqual([body.decision, body.reason], [decision, reason]);
  });
}

test("PROD-2.6-1, POLICY-D-20 a question about a subject that is disabled is denied until it is enabled", async () => {
  await world.consent("leaver", "agents/planner", "reading-room", ["books.read"]);
  const about = async (sub: string, own = false) => {
    const question = await reader();
    const claims = { ...(question.subjectClaims as object), sub };
    const asked = own
      ? { ...question, subjectClaims: { ...claims, iss: ISSUER }, origin: { iss: IDP, sub } }
      : { ...question, subjectClaims: claims };
    const { body } = await explain(asked);
    return [body.decision, body.error, body.reason, (body.explanation as string[]).at(-1)];
  };
  const allowed = ["allow", undefined, undefined, "Allowed by rule readers, with scope books.read."];
  const subject = ["--issuer", IDP, "--subject", "leaver"];
  await admin("tokens", "end", ...subject);
  assert.deepEqual(await about("leaver"), allowed, "an ending alone disables no subject");
  await admin("tokens", "end", ...subject, "--disable");
  for (const own of [false, true]) {
    const denied = ["deny", "invalid_request", "subject_disabled", "Denied: subject_disabled."];
    assert.deepEqual(await about("leaver", own), denied);
  }
  assert.notEqual((await about("u-2"))[2], "subject_disabled");
  await admin("tokens", "enable", ...subject);
  assert.deepEqual(await about("leaver"), allowed);
});

test("PROD-2.6-1, POLICY-D-20 a question of a client that is disabled as a subject is denied", async () => {
  const reason = async () => (await explain({ client: "only", target: API })).body.reason;
  const client = ["--issuer", ISSUER, "--subject", "only"];
  assert.equal(await reason(), "no_rule");
  await admin("tokens", "end", ...client, "--disable");
  assert.equal(await reason(), "subject_disabled");
  await admin("tokens", "enable", ...client);
  assert.equal(await reason(), "no_rule");
});

test("PROD-2.6-1, PROD-4.1v6-6 a token that would be too large would not be issued", async () => {
  const question = await reader();
  const may_act = { sub: planner, note: "n".repeat(800) };
  const hop = (act?: object) => ({ sub: "b".repeat(2600), ...(act !== undefined && { act }) });
  const subjectClaims = { ...(question.subjectClaims as object), act: hop(hop(hop())), may_act };
  const { body } = await explain({ ...question, subjectClaims });
  assert.deepEqual([body.decision, body.error, body.reason], ["deny", "invalid_request", "token_too_large"]);
});

test("PROD-2.6-1 a question with unknown members is refused", async () => {
  const base = await reader();
  const wrong = [
    "{",
    "[]",
    { ...base, subject_token: "eyJ" },
    { ...base, subjectClaims: "eyJ" },
    { ...base, client: undefined },
    { ...base, scope: "a  b" },
    { ...base, scope: "" },
    { ...base, issues: "refresh_token" },
    { client: planner, actor: planner },
  ];
  for (const question of wrong) {
    const answer = await explain(question);
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], JSON.stringify(question));
  }
  const event = (await world.events()).at(-1);
  assert.deepEqual(
    [event?.type, event?.outcome, event?.reason],
    ["admin.access", "deny", "question_malformed"],
  );
});

test("NAME-D-1 the explanation says who the agents of the question are, by the operator's titles", async () => {
  const { body } = await explain({ client: "desk", workload: clerk, target: "api" });
  assert.deepEqual(body.agents, [
    { id: "desk", title: "Desk" },
    { id: clerk, title: "Library" },
  ]);
  const [first, second] = body.explanation as string[];
  assert.deepEqual([first, second], [`"Desk" is "desk".`, `"Library" is "${clerk}".`]);
  assert.deepEqual((await explain({ client: "operator", target: API })).body.agents, []);
});

test("PROD-2.6-1, AUDIT-D-6 the command on the host gives the same explanation", async () => {
  const run = async (question: object | string, ...more: string[]) => {
    const file = join(world.folder, "question.json");
    writeFileSync(file, typeof question === "string" ? question : JSON.stringify(question));
    const args = [MAIN, "--config", world.configFile, "explain", file, ...more];
    const done = await promisify(execFile)(process.execPath, args).catch((fault) => fault);
    return { code: done.code ?? 0, out: String(done.stdout), complaint: String(done.stderr) };
  };
  const question = await reader();
  const told = (await explain(question)).body;
  const allowed = await run(question);
  assert.equal(allowed.code, 0, allowed.complaint);
  assert.ok(allowed.out.startsWith((told.explanation as string[]).join("\n")));
  const asJson = JSON.parse((await run(question, "--json")).out);
  assert.deepEqual(asJson.trace, told.rules);
  const denied = await run({ ...question, scope: "books.lend" });
  assert.equal(denied.code, 1);
  assert.match(denied.out, /Denied: scope_empty\./);
  assert.equal((await run("{")).code, 2);
});

// --- agreement with the token endpoint ------------------------------------------------------------------------------

type Held = { compact: string; own: boolean; origin: { iss: string; sub: string } };

async function randomSubject(held: readonly Held[]): Promise<Held> {
  if (held.length > 0 && random.below(3) === 0) return random.pick(held);
  const sub = random.pick([...SUBJECTS, ...SUBJECTS, "u-3", "spiffe://td.example/x"]);
  const mayAct = random.pick([
    undefined,
    undefined,
    undefined,
    undefined,
    { sub: planner },
    { sub: "desk" },
    { sub: portal, iss: ISSUER },
    "desk",
  ]);
  const act = random.pick([
    undefined,
    undefined,
    undefined,
    { sub: booking, iss: ISSUER },
    { sub: "bot", act: { sub: "x" } },
    { iss: IDP },
  ]);
  const compact = await world.idp.mintUserToken({
    sub,
    aud: random.pick([ISSUER, ISSUER, [ISSUER, "planner-agent"], [ISSUER, booking], "planner-agent"]),
    scope: some([...SCOPES, "other"]).join(" "),
    expSeconds: random.pick([3, 60, 600, 600, 600, 600]),
    claims: {
      ...(mayAct !== undefined && { may_act: mayAct }),
      ...(act !== undefined && { act }),
      ...(random.below(12) === 0 && { scope: undefined }),
      ...(random.below(20) === 0 && { iss: "https://idp.other" }),
    },
  });
  return { compact, own: false, origin: { iss: IDP, sub } };
}

type Party = {
  client: string;
  workload?: string;
  form: Form;
  headers: Record<string, string>;
  svid?: string;
};

async function parties(): Promise<readonly Party[]> {
  const workloads = ["agents/planner", "agents/booking", "crew/ana"].map(async (path) => {
    const svid = await world.svid(path);
    return { client: workload(path), form: world.as(svid), headers: {}, svid };
  });
  const secret = (client: string): Party => ({
    client,
    form: {},
    headers: { authorization: basic(client, SECRET) },
  });
  const portalSvid = await world.svid("apps/portal");
  return [
    ...(await Promise.all(workloads)),
    secret("desk"),
    secret("only"),
    { ...secret("agent"), workload: portal, svid: portalSvid },
  ];
}

async function oneRound(everybody: readonly Party[], held: Held[], { pick, below }: Prng) {
  const party = pick(everybody);
  const exchange = below(5) > 0;
  const subject = exchange ? await randomSubject(held) : undefined;
  const actor = exchange && party.svid !== undefined && below(3) > 0 ? party.svid : undefined;
  const target = pick([...TARGETS, ...TARGETS, "nowhere", undefined]);
  const scope = pick([undefined, undefined, ...SCOPES, "trips.read trips.book", "trips.pay other"]);
  const answer = await world.token(
    {
      ...party.form,
      grant_type: exchange ? EXCHANGE : "client_credentials",
      ...(subject !== undefined && {
        subject_token: subject.compact,
        subject_token_type: subject.own ? ACCESS_TOKEN : JWT,
      }),
      ...(actor !== undefined && { actor_token: actor, actor_token_type: JWT }),
      ...(target !== undefined && { audience: target }),
      ...(scope !== undefined && { scope }),
    },
    party.headers,
  );
  const question = {
    client: party.client,
    ...(party.workload !== undefined && { workload: party.workload }),
    ...(subject !== undefined && { subjectClaims: claimsOf(subject.compact) }),
    ...(subject?.own && { origin: subject.origin }),
    ...(actor !== undefined && { actor: String(claimsOf(actor).sub) }),
    ...(target !== undefined && { target }),
    ...(scope !== undefined && { scope }),
  };
  return { question, answer, subject };
}

test("PROD-2.6-1, PROD-2.6-6, PROD-2.6-10 the token endpoint and the explanation always agree", async () => {
  const everybody = await parties();
  const held: Held[] = [];
  const rounds: { question: object; answer: Answer; explained: Record<string, unknown> }[] = [];
  let allowed = 0;
  for (let round = 0; round < 100; round++) {
    const { question, answer, subject } = await oneRound(everybody, held, random);
    const { status, body: explained } = await explain(question);
    const seen = JSON.stringify({ question, answer: answer.body, explained });
    assert.equal(status, 200, seen);
    assert.equal(explained.decision, answer.status === 200 ? "allow" : "deny", seen);
    assert.equal(explained.error, answer.body.error, seen);
    rounds.push({ question, answer, explained });
    if (answer.status !== 200) continue;
    allowed += 1;
    const { jti: _, iat, exp, ...claims } = claimsOf(answer.body.access_token);
    const would = (explained.would_issue as { claims: Record<string, unknown> }).claims;
    const { iat: iat2, exp: exp2, ...expected } = would;
    assert.deepEqual(claims, expected, seen);
    // The clock may advance between the two requests.
    assert.ok(Math.abs(Number(iat) - Number(iat2)) <= 2 && Math.abs(Number(exp) - Number(exp2)) <= 2, seen);
    const origin = subject?.origin ?? { iss: ISSUER, sub: String(claims.sub) };
    held.push({ compact: String(answer.body.access_token), own: true, origin });
  }
  assert.ok(allowed > 10 && allowed < 90, `${allowed} of 100 were allowed`);

  // Rule and reason must also be those in the audit trail.
  const events = new Map(
    (await world.events()).map((event) => [(event.request as { id?: string } | undefined)?.id, event]),
  );
  const reasons = new Set<unknown>();
  for (const { question, answer, explained } of rounds) {
    const event = events.get(answer.headers["x-request-id"] ?? "");
    const seen = JSON.stringify({ question, event, explained });
    reasons.add(explained.reason);
    if (explained.decision === "deny") assert.equal(explained.reason, event?.reason, seen);
    else {
      const policy = event?.policy as { rule_id: string; consent?: string } | undefined;
      const { rule, consent: named } = explained.would_issue as { rule: string; consent?: string };
      assert.deepEqual([rule, named], [policy?.rule_id, policy?.consent], seen);
    }
  }
  assert.ok(reasons.size > 5, [...reasons].join());
});
