/** The names in a `job_request`, which stand on a page among the words of the operator. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Answer } from "../../../scripts/http-client.ts";
import type { JsonObject } from "../../../src/spec/rfc8259.ts";
import type { Exchanging } from "../../support/asking-agents.ts";
import { BOOKING, exchange, forAskingAgents, linkIn, PLANNER } from "../../support/asking-agents.ts";
import { Browser, files, parametersOf, request, verifierOf } from "../../support/people.ts";
import type { TestProvider } from "../../support/provider.ts";
import { startProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import type { Event, Service } from "../../support/world.ts";
import { ISSUER, workload } from "../../support/world.ts";

const LEDGER = "https://ledger.example";
const BANK = "https://bank.example";
const API = "https://api.example";
const CREW = workload("crew/kim");
const HELPER = workload("crew/lou");
/** A limit on payments, which the ledger and the bank both enforce. */
const PAYMENT = "payment";
const details = {
  [PAYMENT]: {
    title: { en: "Payments", de: "Zahlungen" },
    governs: ["pay"],
    fields: {
      most: { is: "integer", narrows: "max", label: { en: "up to", de: "bis" } },
      to: { is: "string", narrows: "equal" },
    },
  },
};

let provider: TestProvider;
let service: Service;

before(async () => {
  provider = await startProvider();
  const base = forAskingAgents(provider);
  const asking = {
    ...{ allow: "delegation", subjects: { issuers: [provider.issuer] }, consent: "record", askUser: true },
    ...{ subjectToken: { audiences: [ISSUER] }, scopes: ["pay", "api.write"] },
  };
  service = await makeService(
    {
      ...base,
      targets: [
        ...base.targets.filter(({ names }) => !names.includes(API)),
        {
          names: [LEDGER],
          title: "Ledger",
          scopes: ["pay"],
          sentences: { pay: { en: "pay invoices", de: "Rechnungen bezahlen" } },
          details,
        },
        {
          names: [BANK],
          title: "Bank",
          scopes: ["pay"],
          sentences: { pay: { en: "delete all accounts", de: "alle Konten löschen" } },
          details,
        },
        { names: [API], title: "API", scopes: ["api.write"], sentences: { "api.write": "write to the API" } },
      ],
      policies: [
        ...base.policies.filter(({ id }) => !id.startsWith("agents-")).map((rule) => ({ ...rule })),
        { ...asking, id: "pays", actors: [PLANNER, BOOKING], targets: [LEDGER, BANK, API] },
        { ...asking, id: "crew-writes", actors: [workload("crew/*")], targets: [API] },
        {
          ...{
            ...asking,
            askUser: false,
            id: "unasked",
            actors: [HELPER],
            targets: [BANK],
            jobs: "required",
          },
          ...{ consent: "implied", acknowledge: "subjects-not-asked" },
        },
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const ask = async ({ user = "alice", ...asked }: Exchanging): Promise<Answer> =>
  exchange(service, provider, {
    target: LEDGER,
    token: await provider.userToken(user, ISSUER, { scope: "pay api.write" }),
    ...asked,
  });
const asking = (job: object, asked: Exchanging): Promise<Answer> =>
  ask({ scope: "pay", ...asked, form: { ...asked.form, job_request: JSON.stringify(job) } });

const last = async (type: string): Promise<Event> =>
  (await service.events()).findLast((event) => event.type === type) ?? assert.fail(`no ${type}`);

const NAMES: Readonly<Record<string, JsonObject>> = {
  "a sentence": { agents: ["This program was checked and is safe to allow."] },
  "an agent that no rule of the target knows": { agents: [workload("agents/other")] },
  "an agent of another target": { agents: [CREW] },
  "a URL with a sentence": { agents: ["https://agents.example/ is checked"] },
  "a scope that no target has": { scopes: ["pay", "only.read.and.never.write"] },
  "a scope of another target": { scopes: ["api.write"] },
};
for (const [what, wrong] of Object.entries(NAMES)) {
  test(`JOB-D-26 a job_request that names ${what} is malformed, in an exchange and at /authorize, and no user is asked`, async () => {
    const refused = await asking({ title: "x", targets: [LEDGER], ...wrong }, { user: "hal" });
    assert.deepEqual([refused.status, refused.body.error, linkIn(refused)], [400, "invalid_request", ""]);
    assert.equal((await last("token_exchange.denied")).reason, "job_request_malformed");
    const browser = new Browser(service, provider);
    const text = JSON.stringify({ title: "x", ...wrong });
    const answer = await browser.authorize(request(verifierOf(), { job_request: text }));
    assert.equal(parametersOf(await browser.follow(answer)).error, "invalid_request");
  });
}

test("JOB-D-26 agents that a rule of a named target knows by name or by prefix, the asker and scopes of a target are taken", async () => {
  const job = {
    title: "x",
    targets: [LEDGER, API],
    agents: [PLANNER, BOOKING, CREW],
    scopes: ["pay", "api.write"],
  };
  assert.notEqual(linkIn(await asking(job, { user: "ida" })), "");
});
