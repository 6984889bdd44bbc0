import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import type { AuditEvent } from "../../src/audit/event.ts";
import type { AccessRequest, Subject } from "../../src/policy/access.ts";
import { compileClaims } from "../../src/policy/claims.ts";
import type { AskedRequest } from "../../src/policy/decision.ts";
import { askedOf, factsOf } from "../../src/policy/facts.ts";
import { type DecidedEvent, decideAgain, gather } from "../../src/policy/replay.ts";
import { compilePolicy, Rule, Target } from "../../src/policy/rules.ts";
import { defined, type Loose } from "../../src/result.ts";

const US = "https://as.example";
const IDP = "https://idp.example";
const AGENT = "spiffe://td.example/agent";
const API = "https://api.example";

/** The event of an exchange as it is without its facts. */
const EVENT: AuditEvent = {
  type: "token_exchange.denied",
  outcome: "deny",
  reason: "no_rule",
  mode: "delegation",
  client: { client_id: AGENT, auth_method: "spiffe_jwt", workload: AGENT },
  subject: {
    iss: IDP,
    sub: "u",
    kind: "user",
    token: { type: "jwt", aud: [US], scope: "a b", exp: 2000, fingerprint: "f" },
  },
  chain: [],
  requested: { audience: [API], resource: [], scope: "a" },
};
const SUBJECT: Subject = {
  tokenType: "jwt",
  origin: { iss: IDP, sub: "u" },
  audiences: [US],
  scopes: ["a", "b"],
  expiresAtSeconds: 2000,
  chain: [],
  issuer: IDP,
};
const ASKED: AskedRequest = {
  mode: "delegation",
  clientId: AGENT,
  workload: AGENT,
  subject: SUBJECT,
  target: API,
  scope: ["a"],
  resources: [],
  keys: {},
  consents: [],
  nowSeconds: 1000,
  sub: "u",
};
const KEEP = <T>(one: T): T => one;
const consent = (id: string, version = 1) => ({
  ...{ id, version, origin: SUBJECT.origin, actor: AGENT, targets: [API], scopes: ["a"] },
});
const NONE = { consent: () => undefined, job: () => undefined, digest: KEEP };
const WANTED = compileClaims([
  { subjects: { issuers: [SUBJECT.origin.iss], claims: { "/groups": ["eng"], "/hd": ["a"] } } },
]);

test("REPL-D-1 of a request that its event tells whole, only the time is written", () => {
  assert.equal(JSON.stringify(factsOf(ASKED, EVENT, US, KEEP, KEEP)), '{"now":1000}');
});

type Patch = Loose<Partial<Omit<AskedRequest, "mode" | "clientId" | "nowSeconds" | "sub" | "consents">>> &
  Partial<Pick<AskedRequest, "mode" | "clientId" | "nowSeconds" | "sub" | "consents">>;

const cases: readonly [what: string, patch: Patch, event?: Partial<AuditEvent>][] = [
  ["a client that comes without its workload", { workload: undefined }],
  ["another workload", { workload: `${AGENT}/other`, forWorkload: true, endsAtSeconds: 1500 }],
  ["a class", { registrationClass: "c" }],
  ["the default target", { target: "default" }],
  ["no target", { target: undefined }],
  ["a scope that comes from elsewhere", { scope: ["a", "b", "c"] }],
  ["no scope", { scope: undefined }],
  ["a requested type", { requestedType: "jwt" }],
  ["APIs of a partner", { resources: ["https://one.example"] }],
  ["scopes of the client that take something away", { scope: ["a", "b"], clientScopes: ["b"] }],
  ["types of the client that take something away", { clientDetails: ["x"], details: [{ type: "y" }] }],
  ["how the client binds its tokens", { bindsBy: ["dpop", "certificate"] }],
  ["a certificate", { keys: { certificate: { x5t: "x", notAfterSeconds: 5 } } }],
  ["a request that was not pushed", { pushed: false }],
  ["our name of the subject", { sub: "p:u" }],
  ["no subject", { subject: undefined }],
  ["another origin and issuer", { subject: { ...SUBJECT, origin: { iss: US, sub: AGENT }, issuer: US } }],
  ["scopes of an issuer whose tokens have none", { subject: { ...SUBJECT, scopes: [] } }],
  [
    "what was not recorded of the subject",
    {
      subject: {
        ...SUBJECT,
        tokenType: "refresh_token",
        audiences: ["x"],
        expiresAtSeconds: 1,
        details: [{ type: "t" }],
        chain: [{ iss: US, sub: "x" }],
        mayAct: { sub: "x" },
        boundTo: "unknown",
        signIn: { acr: "1", authTimeSeconds: 7 },
      },
    },
  ],
  [
    "what is told and did not count",
    { subject: SUBJECT },
    {
      may_act: { sub: "x" },
      subject: {
        ...EVENT.subject,
        token: { ...EVENT.subject?.token, cnf: { jkt: "k" } },
      } as AuditEvent["subject"] & object,
    },
  ],
  [
    "another server's job",
    { job: { id: "j", iss: IDP, bounds: { notAfterSeconds: 9 } } },
    { job: { id: "j", iss: IDP } },
  ],
  [
    "claims of which rules name values",
    {
      subject: {
        ...SUBJECT,
        claims: {
          atSeconds: 900,
          untilSeconds: 1800,
          values: { "/groups": ["eng"], "/hd": "claims_absent" },
        },
      },
    },
  ],
  ["a job that is asked for", { proposes: { notAfterSeconds: 3000, targets: [API], maxTokens: 2 } }],
];
for (const [what, patch, more = {}] of cases) {
  test(`REPL-D-1 the request is made of its event again: ${what}`, () => {
    const asked = defined<AskedRequest>({ ...ASKED, ...patch });
    const event = { ...EVENT, ...more };
    const facts = JSON.parse(JSON.stringify(factsOf(asked, event, US, KEEP, KEEP)));
    const made = askedOf({ ...event, facts }, US, NONE, WANTED);
    assert.ok(made.ok, JSON.stringify(made));
    assert.deepEqual(plain(made.value), plain(asked));
  });
}

/** Without what is absent, or empty where nothing is as good as that. */
const plain = ({ subject, ...asked }: AskedRequest): object => {
  const { signIn = {}, ...rest } = subject ?? ({} as Partial<Subject>);
  return JSON.parse(JSON.stringify({ ...asked, subject: subject && { ...rest, signIn } }));
};

test("REPL-D-1 of the scopes of a client those are written that count for this request", () => {
  const scopesOf = (patch: Patch) =>
    factsOf(defined<AskedRequest>({ ...ASKED, ...patch }), EVENT, US, KEEP, KEEP).scopes;
  assert.equal(scopesOf({ clientScopes: ["a", "z"] }), undefined);
  assert.equal(scopesOf({ scope: ["a", "b"], clientScopes: ["b", "z"] }), "b");
  assert.equal(scopesOf({ scope: undefined, clientScopes: ["a", "b"] }), undefined);
  assert.equal(scopesOf({ scope: undefined, subject: undefined, clientScopes: ["a", "z"] }), "a z");
  assert.equal(scopesOf({ scope: undefined, details: [], clientScopes: ["z"] }), "z");
});

test("REPL-D-1 consents are named by id and version, the used one by its version, and too many not at all", () => {
  const event: AuditEvent = { ...EVENT, policy: { digest: "", consent: "used" } };
  const of = (consents: AccessRequest["consents"]) =>
    factsOf({ ...ASKED, consents }, event, US, KEEP, KEEP).consents;
  assert.deepEqual(of([consent("other", 3), consent("used", 2)]), [["other", 3], 2]);
  const many = of(Array.from({ length: 17 }, (_, index) => consent(String(index))));
  assert.equal(many, "many");
  const undecided = askedOf({ ...event, facts: { now: 1, consents: "many" } }, US, NONE, WANTED);
  assert.deepEqual(undecided, { ok: false, error: "consents_too_many" });
});

// --- decided again ----------------------------------------------------------------------------------------------

function makePolicy(secret: boolean) {
  const rule = v.parse(Rule, {
    id: "r",
    allow: "delegation",
    actors: [AGENT],
    subjects: { issuers: [IDP] },
    subjectToken: { audiences: [US] },
    consent: "record",
    issues: "access_token",
    targets: [API],
    scopes: ["a"],
  });
  const fields = { most: { is: "integer", narrows: "max", private: secret } };
  const target = v.parse(Target, {
    names: [API],
    scopes: ["a"],
    details: { pay: { governs: ["a"], fields } },
  });
  const set = compilePolicy([rule], [target], US, "sha256:00");
  assert.ok(set.ok, JSON.stringify(set));
  return set.value;
}

const GIVEN: AuditEvent = {
  type: "consent.recorded",
  outcome: "allow",
  reason: "by_subject",
  policy: { digest: "", consent: "c" },
  detail: { ...SUBJECT.origin, version: 2, actor: AGENT, targets: [API], scope: "a" },
};

const decide = (
  patch: Partial<DecidedEvent["facts"]>,
  told: readonly AuditEvent[] = [GIVEN],
  secret = false,
) => {
  const trail = gather(KEEP);
  for (const one of told) trail.take(one);
  const event = { ...EVENT, facts: { now: 1000, consents: [["c", 2]], ...patch } } as DecidedEvent;
  return decideAgain(makePolicy(secret), event, trail, (_, details) => details);
};

test("REPL-D-4 a request is decided again under the consent and the job that the trail tells", () => {
  const allowed = { outcome: "allow", rule: "r", scope: "a", exp: 1300 };
  assert.deepEqual(decide({}), { ok: true, value: allowed });
  assert.deepEqual(decide({ consents: [] }), {
    ok: true,
    value: { outcome: "deny", reason: "consent_missing" },
  });
  const job = { id: "job_1" };
  const approved: AuditEvent = {
    type: "job.approved",
    outcome: "allow",
    reason: "by_subject",
    job,
    detail: {
      ...SUBJECT.origin,
      bounds: { notAfter: 1100, scopes: ["a"] },
      consents: ["of-job"],
      given: [{ actor: AGENT, targets: [API], scope: "a" }],
    },
  };
  const inJob = decide({ job_id: "job_1", consents: [["of-job", 1]] }, [approved]);
  assert.deepEqual(inJob, { ok: true, value: { ...allowed, exp: 1100 } });
});

test("REPL-D-5 what the trail does not hold is not guessed", () => {
  assert.deepEqual(decide({}, []), { ok: false, error: "consent_unknown" });
  assert.deepEqual(decide({ consents: [["c", 1]] }), { ok: false, error: "consent_unknown" });
  assert.deepEqual(decide({ job_id: "job_1" }), { ok: false, error: "job_unknown" });
  const details = [{ type: "pay", most: `sha256:${"a".repeat(43)}` }];
  assert.deepEqual(decide({ details }, [GIVEN], true), { ok: false, error: "details_private" });
  assert.equal(decide({ details: [{ type: "pay", most: 5 }] }).ok, true);
});
