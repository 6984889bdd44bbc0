/** What a rule demands of an authorization request: of the user's sign-in, and how the request comes. */
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { encodeForm } from "../../../scripts/http-client.ts";
import type { Rule } from "../../../src/policy/rules.ts";
import {
  AS_WEB,
  Browser,
  files,
  forPeople,
  locationOf,
  PRIVATE,
  parametersOf,
  redeem,
  request,
  verifierOf,
} from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import { claimsOf, type Service } from "../../support/world.ts";

let provider: TestProvider;
before(async () => {
  provider = await startProvider();
});
after(() => stop(provider));

async function serviceWhere(t: TestContext, demands: object, entry = {}): Promise<Service> {
  const base = forPeople(provider);
  const policies = base.policies.map((rule) => ({ ...rule, ...demands }));
  const signIn = { providers: { company: provider.provider(entry) } };
  const service = await makeService({ ...base, policies, signIn }, { files: files(provider) });
  t.after(async () => {
    provider.lies = {};
    await service.stop();
  });
  return service;
}

const saying = (said: object): void => {
  provider.lies = { claims: (claims) => ({ ...claims, ...said }) };
};
const now = (): number => Math.floor(Date.now() / 1000);

const denials = async (service: Service): Promise<unknown> =>
  (await service.events()).findLast(({ type }) => type === "authorization.denied")?.reason;

test("OIDC-D-7 a user whose sign-in has not the class that a rule names signs in anew, by what the rule names", async (t) => {
  const service = await serviceWhere(t, { acr: ["strong"] }, { acr: ["weak", "strong"] });
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  saying({ acr: "weak" });
  const again = await browser.review(request(verifier));
  const sent = parametersOf(again);
  assert.deepEqual([sent.prompt, sent.acr_values], ["login", "strong"]);
  saying({ acr: "strong" });
  const page = await browser.signIn(again);
  assert.equal(page.status, 200, page.text);
  const token = await redeem(service, parametersOf(await browser.decide(page)).code ?? "", verifier);
  assert.equal(claimsOf(token.body.access_token).acr, "strong");
});

test("OIDC-D-7 a user whose sign-in is too old for a rule signs in anew", async (t) => {
  const service = await serviceWhere(t, { signInSecondsMax: 300 });
  const browser = new Browser(service, provider);
  saying({ auth_time: now() - 1_000 });
  const again = await browser.review(request(verifierOf()));
  const sent = parametersOf(again);
  assert.deepEqual([sent.prompt, sent.max_age], ["login", "0"]);
  saying({});
  assert.equal((await browser.signIn(again)).status, 200);
});

const insufficient = [
  ["a class that the rule does not name", { acr: ["strong"] }, { acr: "weak" }],
  ["no class where the rule names one", { acr: ["strong"] }, {}],
] as const;
for (const [what, demands, said] of insufficient) {
  test(`OIDC-D-7 a sign-in anew with ${what} gives nothing, and the client learns no more`, async (t) => {
    const service = await serviceWhere(t, demands);
    const browser = new Browser(service, provider);
    saying(said);
    const again = await browser.review(request(verifierOf()));
    const refused = await browser.signIn(again);
    assert.equal(parametersOf(refused).error, "access_denied", locationOf(refused));
    assert.equal(await denials(service), "sign_in_insufficient");
  });
}

test("OIDC-D-7 a time of sign-in that the provider does not say meets no demand", async (t) => {
  const service = await serviceWhere(t, { signInSecondsMax: 300 } satisfies Partial<Rule>);
  const browser = new Browser(service, provider);
  saying({ auth_time: undefined });
  const again = await browser.review(request(verifierOf()));
  const refused = await browser.signIn(again);
  assert.equal(refused.status, 400, "the provider was asked for a time and said none");
});

test("MCPC-D-20, RFC9126-4-4 where a rule demands it, a request has to be pushed", async (t) => {
  const service = await serviceWhere(t, { pushed: true });
  const browser = new Browser(service, provider);
  const verifier = verifierOf();
  const refused = await browser.review(request(verifier));
  assert.equal(parametersOf(refused).error, "access_denied", locationOf(refused));
  assert.equal(await denials(service), "request_not_pushed");
  const pushed = await service.get("/par", {
    method: "POST",
    headers: { ...AS_WEB, "content-type": "application/x-www-form-urlencoded" },
    body: encodeForm(request(verifier)),
  });
  const { request_uri = "" } = pushed.body as { request_uri?: string };
  const page = await browser.review({ client_id: PRIVATE, request_uri });
  assert.equal(page.status, 200, page.text);
  assert.equal(
    (await redeem(service, parametersOf(await browser.decide(page)).code ?? "", verifier)).status,
    200,
  );
});
