/** A question is over with its subject or its job: the user is not asked, and the agent gets no link. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../../scripts/http-client.ts";
import {
  asOperator,
  type Exchanging,
  exchange,
  forAskingAgents,
  linkIn,
  PLANNER,
} from "../../support/asking-agents.ts";
import { shownBy } from "../../support/markup.ts";
import { Browser, files } from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import type { Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  service = await makeService(forAskingAgents(provider), { files: files(provider) });
});
after(() => stop(service, provider));

const ask = (asked: Exchanging): Promise<Answer> => exchange(service, provider, asked);
const revoke = async (body: object): Promise<void> => {
  const answer = await asOperator(service, "/revocations", body);
  assert.equal(answer.status, 200, answer.text);
};
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** A job of an operator, which brings no consent, so that the user is asked inside it. */
async function jobFor(sub: string, notAfter = nowSeconds() + 3600): Promise<string> {
  const subject = { iss: provider.issuer, sub };
  const targets = ["booking-agent"];
  const made = await asOperator(service, "/jobs", {
    ...{ client: PLANNER, subject, title: "Trip planner", notAfter, targets, scopes: ["trips.read"] },
  });
  assert.equal(made.status, 201, made.text);
  return String(made.body.id);
}

async function signedIn(user: string, path: string) {
  const browser = new Browser(service, provider);
  return { browser, page: await browser.signIn(await browser.get(path), user) };
}

test("PAGE-D-33, JOB-D-14 the page of a job that was stopped asks nothing, an open one gives nothing, and the account does not ask", async () => {
  const job = await jobFor("stan");
  const link = linkIn(await ask({ user: "stan", scope: "trips.read", form: { mandate_job: job } }));
  const { browser, page } = await signedIn("stan", link);
  assert.match(shownBy(page.text), /asks to act for you/);
  assert.match(shownBy((await browser.get("/account")).text), /What you are asked/);
  await revoke({ job });
  for (const over of [await browser.decide(page), await browser.get(link)]) {
    assert.match(shownBy(over.text), /This job has ended/);
    assert.equal(over.status, 409);
  }
  assert.ok(!shownBy((await browser.get("/account")).text).includes("What you are asked"));
  assert.ok(!(await service.events()).some(({ type }) => type === "consent.recorded"));
});

test("PAGE-D-33, PAGE-D-24 another user, and a visitor who has not signed in, do not learn that a job was stopped", async () => {
  const job = await jobFor("ursula");
  const link = linkIn(await ask({ user: "ursula", scope: "trips.read", form: { mandate_job: job } }));
  await revoke({ job });
  assert.equal((await new Browser(service, provider).get(link)).status, 303);
  const { page } = await signedIn("victor", link);
  assert.match(shownBy(page.text), /There is nothing to decide here/);
});

test("PAGE-D-33, POLICY-D-20 a disabled user is asked nothing, the agent gets no link, and the page says what it is after the sign-in", async () => {
  const subject = { iss: provider.issuer, sub: "wanda" };
  const before = linkIn(await ask({ user: "wanda", scope: "trips.read" }));
  const { browser, page } = await signedIn("wanda", before);
  await revoke({ subject, disabled: true });
  const mandate_job_request = JSON.stringify({ title: "a job" });
  for (const form of [{}, { mandate_job_request }] as Record<string, string>[]) {
    const refused = await ask({ user: "wanda", scope: "trips.book", form });
    assert.deepEqual(Object.keys(refused.body), ["error", "error_description"]);
    assert.equal(refused.body.error, "invalid_request");
    const denied = (await service.events()).findLast(({ type }) => type === "token_exchange.denied");
    assert.equal(denied?.reason, "subject_disabled");
    assert.ok(!JSON.stringify(denied).includes("pending"));
  }
  // The session has ended, and the way leads to the sign-in.
  const stale = await browser.decide(page);
  assert.equal(stale.status, 303);
  const told = await browser.signIn(await browser.get(before), "wanda");
  assert.equal(told.status, 403);
  assert.match(shownBy(told.text), /Your account is disabled here/);
  assert.ok(!told.text.includes("Go on"));
  const { page: others } = await signedIn("xaver", before);
  assert.match(shownBy(others.text), /There is nothing to decide here/);
});

test("POLICY-D-23 for a disabled user no job and no consent is made by the API, which answers as for an unknown one, and the events say why", async () => {
  const subject = { iss: provider.issuer, sub: "yves" };
  const stood = nowSeconds() + 3600;
  const doors = async (sub: string, id: string): Promise<readonly Answer[]> => {
    const of = { ...subject, sub };
    const job = { client: PLANNER, subject: of, title: "Trip planner", notAfter: stood };
    const consent = { subject: of, actor: PLANNER, targets: ["booking-agent"], scope: "trips.read" };
    return [
      await asOperator(service, "/jobs", job),
      await asOperator(service, `/consents/${id}`, consent, "PUT"),
    ];
  };
  const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status);
  assert.deepEqual(statuses(await doors("yves", "yves-1")), [201, 201]);
  await revoke({ subject, disabled: true });
  const unknown = { ...subject, iss: "https://unknown.example" };
  const [job, replaced, added] = [...(await doors("yves", "yves-1")), (await doors("yves", "yves-2"))[1]];
  const others = [
    await asOperator(service, "/jobs", { client: PLANNER, subject: unknown, title: "x" }),
    await asOperator(
      service,
      "/consents/yves-3",
      { subject: unknown, actor: PLANNER, targets: ["booking-agent"], scope: "trips.read" },
      "PUT",
    ),
  ];
  assert.deepEqual(
    [job, replaced, added].map((one) => [one?.status, one?.text]),
    [others[0], others[1], others[1]].map((one) => [one?.status, one?.text]),
  );
  const denied = (await service.events()).filter(
    ({ type, reason }) => type === "admin.access" && reason === "subject_disabled",
  );
  assert.equal(denied.length, 4);
  // What was recorded before may be taken back.
  assert.equal((await asOperator(service, "/consents/yves-1", undefined, "DELETE")).status, 204);
  await revoke({ subject, disabled: false });
  assert.deepEqual(statuses(await doors("yves", "yves-4")), [201, 201]);
});

test("PAGE-D-33, JOB-D-9 an agent that names a job of a disabled user is answered as for any job that ended, and the event names the user's ending", async () => {
  const subject = { iss: provider.issuer, sub: "zoe" };
  const [job, stopped] = [await jobFor("zoe"), await jobFor("zed")];
  const answers = (user: string, id: string) =>
    Promise.all(
      [{ mandate_job: id }, { mandate_job: "job_unknown" }].map((form) =>
        ask({ user, scope: "trips.read", form }),
      ),
    );
  await revoke({ job: stopped });
  await revoke({ subject, disabled: true });
  const shown = (of: readonly Answer[]) => of.map(({ status, body }) => [status, body]);
  assert.deepEqual(shown(await answers("zoe", job)), shown(await answers("zed", stopped)));
  const reasons = (await service.events())
    .filter(({ type }) => type === "token_exchange.denied")
    .slice(-4)
    .map(({ reason }) => String(reason));
  assert.deepEqual(reasons.sort(), ["job_ended", "job_unknown", "subject_disabled", "subject_disabled"]);
});

test("JOB-D-28 the page of a question inside a job names the job, its end, and that what is allowed is for it alone, and the account leads there", async () => {
  const notAfter = nowSeconds() + 3600;
  const job = await jobFor("rosa", notAfter);
  const asking = { user: "rosa", scope: "trips.read", form: { mandate_job: job } };
  const link = linkIn(await ask(asking));
  const { browser, page } = await signedIn("rosa", link);
  const shown = shownBy(page.text);
  const end = new Date(notAfter * 1000).toISOString().slice(11, 16);
  assert.match(
    shown,
    new RegExp(
      `What you allow is for this job alone, which goes on already, and ends with it: “Trip planner” Ends by itself: (today|tomorrow), ${end} .* Lasts until (today|tomorrow), ${end} `,
    ),
  );
  assert.doesNotMatch((await browser.get("/account")).text, /name="decision" value="allow"/);
  await browser.decide(page, { decision: "refuse" });
  const refused = (await service.events()).findLast(({ type }) => type === "authorization.denied");
  assert.deepEqual(refused?.job, { id: job });
  await browser.decide(await browser.get(link));
  assert.equal((await ask(asking)).status, 200);
});
