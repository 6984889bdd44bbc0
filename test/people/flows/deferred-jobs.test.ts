/** Agents that wait for their users in a job, for a job, and when the job ends meanwhile. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readStatus } from "../../../src/flows/jobs.ts";
import type { Ports } from "../../../src/ports.ts";
import type { Service as StartedService } from "../../../src/start/service.ts";
import { asOperator, exchange, TRIPS } from "../../support/asking-agents.ts";
import { cancel, forDeferral, outcome, pageOf, poll, waitFor } from "../../support/deferral.ts";
import { shownBy } from "../../support/markup.ts";
import { Browser, files } from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, type Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service & Pick<StartedService, "ports">;
/** What was written of deferrals that were opened. */
const kept: string[] = [];

before(async () => {
  provider = await startProvider();
  const ports = ({ journal }: Ports): Partial<Ports> => ({
    journal: {
      record(entry, deadline) {
        if (entry.event.type === "deferral.opened") kept.push(JSON.stringify(entry.rows));
        return journal.record(entry, deadline);
      },
    },
  });
  service = await makeService(forDeferral(provider), { files: files(provider), ports });
});
after(() => stop(service, provider));

const inHour = (): number => Math.floor(Date.now() / 1000) + 3600;
const end = async (job: unknown): Promise<void> =>
  assert.equal((await asOperator(service, "/revocations", { job })).status, 200);

/** The agent waits until its user approves a job, and has a token of it. */
async function approved(user: string, title: string) {
  const targets = ["booking-agent", "https://api.example"];
  const mandate_job_request = JSON.stringify({ title, notAfter: inHour(), targets, scopes: TRIPS });
  const waiting = await waitFor(service, provider, {
    user,
    scope: "trips.read",
    form: { mandate_job_request },
  });
  const { browser, page } = await pageOf(service, provider, waiting.link, user);
  assert.match(shownBy(page.text), new RegExp(`“${title}”`));
  assert.equal((await browser.decide(page)).status, 200);
  const answer = await poll(service, waiting);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

test("DTR-D-2, JOB-D-4 an agent that waits for a job gets its token in the job that its user has approved", async () => {
  const { access_token: token, mandate_job_id: job } = await approved("anna", "Book the trip to Rome");
  assert.match(String(job), /^job_/);
  const granted = (await service.events()).findLast(({ type }) => type === "deferral.granted");
  assert.deepEqual(granted?.job, { id: job });
  assert.deepEqual(claimsOf(token).scope, "trips.read");
});

test("DTR-D-2, JOB-D-4 another job is another question, whose page alone answers it", async () => {
  const user = "bert";
  const ask = (title: string) =>
    waitFor(service, provider, {
      user,
      form: { mandate_job_request: JSON.stringify({ title, notAfter: inHour() }) },
    });
  const [one, other] = [await ask("one job"), await ask("another job")];
  const browser = new Browser(service, provider);
  const account = await browser.signIn(await browser.get("/account"), user);
  assert.match(shownBy(account.text), /What you are asked/);
  assert.doesNotMatch(account.text, /name="decision"/);
  await browser.decide(await browser.get(one.link));
  assert.equal(outcome(await poll(service, one)), "token");
  assert.equal(outcome(await poll(service, other)), "interaction_required");
  await cancel(service, other);
});

test("DTR-11.7-1, DTR-D-15, JOB-D-12 the end of the job ends the wait of what is asked in it, decided or not", async () => {
  for (const decides of [false, true]) {
    const user = decides ? "cora" : "carl";
    const { access_token: own, mandate_job_id: job } = await approved(user, "A job that ends");
    const path = "agents/booking";
    const asked = { own, path, target: "https://api.example", scope: "trips.read" };
    const waiting = await waitFor(service, provider, asked);
    const found = (await service.ports.jobs.find(String(job))) ?? assert.fail();
    const row = kept.at(-1) ?? assert.fail();
    assert.ok(
      row.includes(found.job.id) && !row.includes(found.job.salt),
      "the row has the id without the salt",
    );
    if (decides) {
      const { browser, page } = await pageOf(service, provider, waiting.link, user);
      assert.equal((await browser.decide(page)).status, 200);
    }
    await end(job);
    assert.equal(outcome(await poll(service, waiting, { path })), "access_denied");
  }
});

test("JOB-D-20 the report of a job counts its open question and the client that waits, until the user has answered: then the consent", async () => {
  const { access_token: own, mandate_job_id: job } = await approved("dina", "A job that is counted");
  const held = async () =>
    (await readStatus(service.ports, (await service.ports.jobs.find(String(job))) ?? assert.fail())).held;
  const before = { codes: 0, families: 0, consents: 1, questions: 0, deferrals: 0 };
  assert.deepEqual(await held(), before);
  const path = "agents/booking";
  const asked = { own, path, target: "https://api.example", scope: "trips.read" };
  const waiting = await waitFor(service, provider, asked);
  assert.deepEqual(await held(), { ...before, questions: 1, deferrals: 1 });
  const { browser, page } = await pageOf(service, provider, waiting.link, "dina");
  await browser.decide(page);
  assert.deepEqual(await held(), { ...before, consents: 2, deferrals: 1 });
  assert.equal(outcome(await poll(service, waiting, { path })), "token");
  assert.deepEqual(await held(), { ...before, consents: 2 });
});

test("DTR-11.7-1, JOB-D-9 the end of a job that the request chose ends its wait", async () => {
  const { mandate_job_id: job } = await approved("dora", "A job that is chosen");
  const approval = (await service.events()).findLast(({ type }) => type === "job.approved");
  const { consents } = (approval ?? assert.fail()).detail as { consents: string[] };
  for (const id of consents)
    assert.equal((await asOperator(service, `/consents/${id}`, undefined, "DELETE")).status, 204);
  const waiting = await waitFor(service, provider, {
    user: "dora",
    scope: "trips.book",
    form: { mandate_job: String(job) },
  });
  await end(job);
  assert.equal(outcome(await poll(service, waiting)), "access_denied");
  const fresh = await exchange(service, provider, { user: "dora", form: { mandate_job: String(job) } });
  assert.notEqual(fresh.status, 200);
});
