/** The page of ask-your-user, as a flow, while the operator changes settings between the page and the click. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { recordEnding } from "../../../src/flows/endings.ts";
import { decideAsked, openAsked } from "../../../src/people/flows/asked.ts";
import { decisionView } from "../../../src/people/http/decision-form.ts";
import type { PeoplePorts } from "../../../src/people/ports.ts";
import { NOTES, SCOPES } from "../../support/people.ts";
import { ALICE, forRefresh, LOGIN, openRefresh } from "../../support/refresh.ts";
import { ISSUER, workload } from "../../support/world.ts";

const NOTE = { id: "r-1", endpoint: "/ask", source_ip: "192.0.2.1" };
const VISITOR = { browser: "browser", session: "session" };
const ID = "link";
const ACTOR = workload("agents/planner");
const COUNTS = { renewals: 0, polls: 0, pollsRecorded: 0 };
const CAPS = { perActor: 9, perSubject: 9, perPair: 9 };

const ASKING = {
  id: "asking",
  allow: "delegation",
  actors: [ACTOR],
  subjects: { issuers: [LOGIN] },
  subjectToken: { audiences: [ISSUER] },
  consent: "record",
  askUser: true,
  targets: [NOTES],
  scopes: SCOPES,
};

const withAsking = (scopes: readonly string[], consentDays = 30, names: readonly string[] = []) =>
  forRefresh(({ policies, targets }) => ({
    authorize: { consentDays },
    targets: targets.map((target) => ({ ...target, names: [...names, ...target.names] })),
    policies: [...policies, { ...ASKING, scopes }],
  }));

/** A link that waits for alice, who is signed in; `more` is of the question, and `inJob` of what it asks. */
async function openLink(ports: PeoplePorts, more: object = {}, inJob: object = {}): Promise<void> {
  const nowSeconds = ports.clock.nowSeconds();
  const started = await ports.shortLived.find("session", VISITOR.session, nowSeconds);
  const session = { origin: ALICE, sub: "company:alice", provider: "company", startedAtSeconds: nowSeconds };
  const row = { version: 1, expiresAtSeconds: nowSeconds + 600 };
  const body = { ...row, kind: "session", key: VISITOR.session, body: session } as const;
  if (started === undefined) await ports.shortLived.add(body);
  const subject = {
    tokenType: "id_token",
    origin: ALICE,
    audiences: [ISSUER],
    scopes: SCOPES,
    expiresAtSeconds: nowSeconds + 300,
    chain: [],
    issuer: LOGIN,
  } as const;
  const asks = {
    mode: "delegation",
    clientId: ACTOR,
    workload: ACTOR,
    target: NOTES,
    scope: SCOPES,
  } as const;
  const pending = {
    ...{ ...row, id: ID, asked: "a", actor: ACTOR, subject: "s" },
    ...{ ask: { ...asks, subject, ...inJob }, startedAtSeconds: nowSeconds, ...COUNTS, ...more },
  };
  assert.ok(await ports.pendingConsents.open(pending, { ...CAPS, nowSeconds }));
}

const changes = [
  ["a scope", withAsking(SCOPES.slice(0, 1)), withAsking(SCOPES), true],
  ["a longer time", withAsking(SCOPES, 30), withAsking(SCOPES, 60), true],
  ["another first name of the target", withAsking(SCOPES), withAsking(SCOPES, 30, ["other"]), true],
  ["nothing", withAsking(SCOPES), withAsking(SCOPES), false],
] as const;
for (const [what, before, after, refused] of changes) {
  test(`PAGE-D-11, PAGE-D-23 a click gives an agent what its page showed: a reload in between adds ${what}`, async (t) => {
    const flow = await openRefresh(t, before);
    const ports: PeoplePorts = { ...flow.ports, authFailures: { note: () => undefined } };
    await openLink(ports);
    const click = async () => {
      const page = await openAsked(ports, NOTE, ID, VISITOR, false);
      assert.ok(page.next === "page", JSON.stringify(page));
      return () => {
        const ticked = { all: true, scopes: [], details: [], agents: [] };
        return decideAsked(ports, NOTE, ID, VISITOR, { ...ticked, allows: true, formToken: page.formToken });
      };
    };
    const kindOf = async (outcome: ReturnType<Awaited<ReturnType<typeof click>>>) => {
      const came = await outcome;
      return came.next === "notice" ? came.notice.kind : came.next;
    };
    const first = await click();
    flow.reload(after);
    assert.equal(await kindOf(first()), refused ? "form_refused" : "ask_allowed");
    // The link waits: the page that shows what holds now is decided as ever.
    if (refused) assert.equal(await kindOf((await click())()), "ask_allowed");
  });
}

const NOTEBOOK = { governs: ["notes.read"], fields: { size: { is: "integer", narrows: "max" } } };
/** The settings with these words, in which the agent asks within a limit, and another may act further. */
const worded = ({ title = "Notes", limit = {}, agent = "Planner", further = false }: Words) =>
  forRefresh(({ agents, targets }) => ({
    agents: { ...agents, [ACTOR]: { title: agent } },
    targets: targets.map((one) => ({ ...one, title, details: { notebook: { ...NOTEBOOK, ...limit } } })),
    policies: [ASKING, ...(further ? [FURTHER] : [])],
  }));
type Words = { title?: string; limit?: object; agent?: string; further?: boolean };
const FURTHER = {
  id: "further",
  allow: "delegation",
  actors: [workload("agents/booking")],
  subjects: { issuers: [LOGIN] },
  subjectToken: { audiences: [NOTES] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  targets: [NOTES],
  scopes: SCOPES,
};
const size = { ...NOTEBOOK.fields.size, label: "at least" };
const wordings = [
  ["another title of the target", { title: "Bank" }],
  ["another title of a limit", { limit: { title: "Refunds to you" } }],
  ["another label in a limit", { limit: { fields: { size } } }],
  ["another title of the agent", { agent: "Payroll" }],
  ["an agent that may then act without asking", { further: true }],
  ["nothing", {}],
] as const;
for (const [what, after] of wordings) {
  test(`PAGE-D-11, PAGE-D-45 a click counts for the words that its page showed: a reload in between adds ${what}`, async (t) => {
    const flow = await openRefresh(t, worded({}));
    const ports: PeoplePorts = { ...flow.ports, authFailures: { note: () => undefined } };
    await openLink(ports, {}, { details: [{ type: "notebook", size: 5 }] });
    const page = await openAsked(ports, NOTE, ID, VISITOR, false);
    assert.ok(page.next === "page", JSON.stringify(page));
    flow.reload(worded(after));
    const form = { all: true, scopes: [], details: ["0"], agents: [], formToken: page.formToken };
    const came = await decideAsked(ports, NOTE, ID, VISITOR, { ...form, allows: true });
    const kind = came.next === "notice" ? came.notice.kind : came.next;
    assert.equal(kind, what === "nothing" ? "ask_allowed" : "form_refused");
  });
}

for (const [first, then] of [
  [1, 30],
  [30, 1],
] as const) {
  test(`PAGE-D-6, PAGE-D-45 a page shows the end that is recorded, and what else ends then: ${first} days, then ${then}`, async (t) => {
    const flow = await openRefresh(t, withAsking(SCOPES, first));
    const ports: PeoplePorts = { ...flow.ports, authFailures: { note: () => undefined } };
    const [read = "", write = ""] = SCOPES;
    await openLink(ports, { id: "first", asked: "b" }, { scope: [read] });
    await openLink(ports, {}, { scope: [write] });
    const form = { all: true, scopes: [], details: [], agents: [], allows: true };
    const open = async (id: string) => {
      const page = await openAsked(ports, NOTE, id, VISITOR, false);
      assert.ok(page.next === "page", JSON.stringify(page));
      return page;
    };
    const [before, early] = [await open("first"), await open(ID)];
    const click = async (id: string, { formToken }: { formToken: string }) => {
      const came = await decideAsked(ports, NOTE, id, VISITOR, { ...form, formToken });
      return came.next === "notice" ? came.notice.kind : came.next;
    };
    assert.equal(await click("first", before), "ask_allowed");
    assert.equal(await click(ID, early), "form_refused", "what it showed ends otherwise now");
    flow.reload(withAsking(SCOPES, then));
    const page = await open(ID);
    const view = decisionView(ports, page);
    const sentences = flow.ports.settings().policy.targets.get(NOTES)?.sentences ?? {};
    const now = ports.clock.nowSeconds();
    assert.deepEqual(
      [view.untilSeconds, view.kept?.untilSeconds, view.kept?.sentences],
      [now + 86_400, now + first * 86_400, [sentences[read] ?? read]],
    );
    assert.equal(await click(ID, page), "ask_allowed");
    const recorded = await ports.consents.list(ALICE);
    assert.deepEqual(
      recorded.map(({ scopes, expiresAtSeconds }) => [scopes, expiresAtSeconds]),
      [[[read, write], view.untilSeconds]],
    );
  });
}

for (const [what, job] of [
  ["a consent", undefined],
  ["a job", { title: "t", bounds: { notAfterSeconds: 4_000_000_000 } }],
] as const) {
  test(`PAGE-D-33, POLICY-D-23 a user who is disabled while their click for ${what} is on its way gives nothing`, async (t) => {
    const flow = await openRefresh(t, withAsking(SCOPES));
    let isEnding = false;
    const facts: PeoplePorts["facts"] = {
      ...flow.ports.facts,
      token: (jti) => flow.ports.facts.token(jti),
      // What is read last before the write.
      async consents(...of) {
        const ends = { by: "subject", ...ALICE, disabled: true } as const;
        if (isEnding) await recordEnding(flow.ports, ends, { reason: "by_operator" });
        return flow.ports.facts.consents(...of);
      },
    };
    const ports: PeoplePorts = { ...flow.ports, facts, authFailures: { note: () => undefined } };
    await openLink(ports, { ...(job && { job }) });
    const page = await openAsked(ports, NOTE, ID, VISITOR, false);
    assert.ok(page.next === "page", JSON.stringify(page));
    isEnding = true;
    const ticked = { all: true, scopes: [], details: [], agents: [] };
    const form = { ...ticked, allows: true, formToken: page.formToken };
    assert.equal((await decideAsked(ports, NOTE, ID, VISITOR, form)).next, "sign_in");
    assert.deepEqual(await flow.ports.consents.list(ALICE), []);
    assert.deepEqual(await flow.ports.jobs.list({ origin: ALICE }), []);
  });
}

const LONG = { notAfterSeconds: 4_000_000_000 };
const overs = [
  ["asks for a job whose time is over", { job: { title: "t", bounds: { notAfterSeconds: 0 } } }, "job_over"],
  ["asks for a job that has time left", { job: { title: "t", bounds: LONG } }, undefined],
  ["is in a job that is not on record any more", { inJob: { id: "job_1", bounds: LONG } }, "job_over"],
  ["is in a job of another server whose time is over", { inJob: foreignJob(0) }, "job_over"],
  ["is in a job of another server that has time left", { inJob: foreignJob() }, undefined],
  ["is in a job that another server has ended", { inJob: foreignJob(), ended: true }, "job_over"],
] as const;
function foreignJob(notAfterSeconds = LONG.notAfterSeconds) {
  return { id: "job_2", iss: LOGIN, bounds: { notAfterSeconds } };
}
for (const [what, of, kind] of overs) {
  test(`PAGE-D-33, JOB-D-10, JOB-D-19 a link that ${what}: ${kind ?? "the page"}`, async (t) => {
    const flow = await openRefresh(t, withAsking(SCOPES));
    const ports: PeoplePorts = { ...flow.ports, authFailures: { note: () => undefined } };
    const { job, inJob, ended }: { job?: object; inJob?: object; ended?: true } = of;
    await openLink(ports, { ...(job && { job }) }, { ...(inJob && { job: { salt: "", ...inJob } }) });
    if (ended) await recordEnding(ports, { by: "job", iss: LOGIN, id: "job_2" }, { reason: "by_subject" });
    const page = await openAsked(ports, NOTE, ID, VISITOR, false);
    assert.equal(page.next === "notice" ? page.notice.kind : undefined, kind);
  });
}
