/** A user who leaves a group: what rests on it is refused, by every way, and nothing of others. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Answer } from "../../scripts/http-client.ts";
import { standing } from "../../src/flows/standing.ts";
import { BOOKING, exchange, linkIn, TRIPS } from "../support/asking-agents.ts";
import { answerLink, forDeferral, poll, type Waiting, waitFor } from "../support/deferral.ts";
import { forge } from "../support/forge.ts";
import { AS_WEB, Browser, files, PRIVATE, redeem, request, verifierOf } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, ISSUER } from "../support/world.ts";

const CHANGED = "https://schemas.openid.net/secevent/caep/event-type/token-claims-change";
const BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const CHAINING = "draft-ietf-oauth-identity-chaining-17";
const ID_JAG = "draft-ietf-oauth-identity-assertion-authz-grant-04";
const claims = { "/groups": ["Engineering"] };

let provider: TestProvider;
let service: Awaited<ReturnType<typeof makeService>>;
/** The groups of a user at the provider. */
const groups = new Map<string, readonly string[]>();
/** By how many seconds the clock that dates their ID tokens is ahead. */
const ahead = new Map<string, number>();
const groupsOf = (user: string) => groups.get(user) ?? ["Engineering", "Berlin"];

before(async () => {
  provider = await startProvider();
  provider.lies = {
    claims: (said) => ({
      ...said,
      groups: groupsOf(String(said.sub)),
      iat: Number(said.iat) + (ahead.get(String(said.sub)) ?? 0),
    }),
  };
  const base = forDeferral(provider);
  const because = { en: "You are in Engineering.", de: "Du gehörst zu Engineering." };
  const narrowed = base.policies.map((rule) =>
    "subjects" in rule ? { ...rule, subjects: { ...rule.subjects, claims, because } } : rule,
  );
  const implied = {
    subjects: { issuers: [provider.issuer] },
    ...{ consent: "implied", acknowledge: "subjects-not-asked" },
  };
  service = await makeService(
    {
      ...base,
      drafts: [...base.drafts, CHAINING, ID_JAG],
      trustedIssuers: provider.trusted({
        ...{ acceptAs: ["id_token", "jwt"], grants: {}, signals: { name: "provider" } },
        ...{ claimsFrom: ["token", "sign_in"], claimsMaxSeconds: 600 },
      }),
      clients: {
        ...base.clients,
        [PRIVATE]: {
          ...base.clients[PRIVATE],
          grantTypes: ["authorization_code", "refresh_token", BEARER],
        },
      },
      policies: [
        ...narrowed.map((rule) => (rule.id === "apps-for-people" ? { ...rule, refresh: true } : rule)),
        // What rests on the group alone by the token behind it.
        {
          ...{ id: "chain", allow: "delegation", actors: [BOOKING], ...implied },
          ...{ subjectToken: { audiences: ["self"] }, targets: ["https://api.example"], scopes: TRIPS },
        },
        {
          ...{ id: "redeemed", allow: "redemption", clients: [PRIVATE], ...implied },
          ...{ subjects: { issuers: [provider.issuer], claims }, targets: ["booking-agent"], scopes: TRIPS },
        },
      ],
    },
    { files: files(provider) },
  );
});
after(() => stop(service, provider));

const outcomeOf = ({ status, body }: Answer): string => (status === 200 ? "token" : String(body.error));

const userToken = (user: string, aheadSeconds = 0) => {
  const times = { iat: nowSeconds() + aheadSeconds, exp: nowSeconds() + 300 };
  return provider.userToken(user, ISSUER, { scope: TRIPS.join(" "), groups: groupsOf(user), ...times });
};
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

async function codeOf(user: string) {
  const verifier = verifierOf();
  const code = await new Browser(service, provider).codeFor(
    request(verifier, { scope: "notes.read offline_access" }),
    user,
  );
  return () => redeem(service, code, verifier);
}

/** What the user has, and for each of it a request that goes on with it. */
async function holdingsOf(user: string) {
  const first = await (await codeOf(user))();
  assert.equal(first.status, 200, first.text);
  const code = await codeOf(user);
  const token = await userToken(user);
  const ask = (asked: Parameters<typeof exchange>[2]) =>
    exchange(service, provider, { user, token, scope: "trips.read", ...asked });
  await answerLink(service, provider, linkIn(await ask({})), "allow", user);
  const agents = await ask({});
  assert.equal(agents.status, 200, agents.text);
  const job = JSON.stringify({ title: "A trip", notAfter: Math.floor(Date.now() / 1000) + 3600 });
  const inJob = { form: { mandate_job_request: job } };
  await answerLink(service, provider, linkIn(await ask(inJob)), "allow", user);
  const ofJob = await ask(inJob);
  assert.equal(ofJob.status, 200, ofJob.text);
  const own = agents.body.access_token;
  const below = { user, path: "agents/booking", target: "https://api.example", own, scope: "trips.read" };
  const last = await exchange(service, provider, below);
  assert.equal(last.status, 200, last.text);
  const waiting: Waiting = await waitFor(service, provider, {
    ...{ user, token, scope: "trips.book", target: "https://api.example" },
  });
  await answerLink(service, provider, waiting.link, "allow", user);
  const assertion = forge(
    provider.key(),
    {
      ...{
        iss: provider.issuer,
        sub: user,
        aud: ISSUER,
        iat: nowSeconds(),
        exp: nowSeconds() + 60,
        jti: randomUUID(),
      },
      ...{ client_id: PRIVATE, scope: "trips.read", groups: groupsOf(user) },
    },
    { header: { typ: "authz-grant+jwt" } },
  );
  const refresh_token = String(first.body.refresh_token);
  const ways: Record<string, () => Promise<Answer>> = {
    code,
    refresh: () => service.token({ grant_type: "refresh_token", refresh_token }, AS_WEB),
    exchange: () => ask({}),
    "re-exchange": () => exchange(service, provider, below),
    job: () => ask({ form: { mandate_job: String(ofJob.body.mandate_job_id) } }),
    deferred: () => poll(service, waiting),
    redemption: () => service.token({ grant_type: BEARER, assertion }, AS_WEB),
  };
  const tokens = [first, agents, ofJob, last].map(({ body }) => String(claimsOf(body.access_token).jti));
  return {
    tried: async () => {
      const found: [string, string][] = [];
      for (const [way, go] of Object.entries(ways)) found.push([way, outcomeOf(await go())]);
      return Object.fromEntries(found);
    },
    living: async () => {
      const all = await Promise.all(tokens.map(async (jti) => standing(service.ports, jti, nowSeconds())));
      return all.filter(({ ok }) => ok).length;
    },
  };
}

async function changed(sub: string, said: object, iat = nowSeconds()) {
  const events = { [CHANGED]: { claims: said } };
  const subject = {
    aud: ISSUER,
    sub_id: { format: "iss_sub", iss: provider.issuer, sub },
    events,
    iat,
    exp: undefined,
  };
  const body = await provider.logoutToken(subject, { typ: "secevent+jwt" });
  const headers = { "content-type": "application/secevent+jwt" };
  return service.get("/signals/provider", { method: "POST", headers, body });
}

test("PCL-D-9, PCL-D-15 a user who left the group gets nothing more by any way, and of another user nothing ends", async () => {
  const [alice, bob] = [await holdingsOf("alice"), await holdingsOf("bob")];
  assert.deepEqual([await alice.living(), await bob.living()], [4, 4]);
  groups.set("alice", ["Berlin"]);
  assert.equal((await changed("alice", { groups: ["Berlin"] })).status, 202);
  assert.equal(await alice.living(), 0);
  assert.deepEqual(await alice.tried(), {
    ...{ code: "invalid_grant", refresh: "invalid_grant", exchange: "invalid_request" },
    ...{ "re-exchange": "invalid_request", job: "invalid_request", deferred: "access_denied" },
    redemption: "invalid_grant",
  });
  assert.equal(await bob.living(), 4);
  const all = Object.values(await bob.tried());
  assert.deepEqual(
    all,
    all.map(() => "token"),
  );
  assert.ok(!JSON.stringify(await service.events()).includes("Engineering"));
});

test("PCL-D-11 the page says why this user is asked, in the operator's words and the user's language", async () => {
  for (const [language, words] of [
    ["en", "You are in Engineering."],
    ["de", "Du gehörst zu Engineering."],
  ]) {
    const browser = new Browser(service, provider);
    await browser.review(request(verifierOf()), "carol");
    const page = await browser.review(request(verifierOf(), { ui_locales: String(language) }), "carol");
    assert.ok(page.text.includes(`${words}`), page.text);
  }
});

test("PCL-D-9, PCL-D-10 a user who was never in the group is not asked, and one who is back gets again what they consented to", async () => {
  groups.set("dave", ["Berlin"]);
  const refused = await exchange(service, provider, { user: "dave", token: await userToken("dave") });
  assert.deepEqual([refused.body.error, refused.body.error_uri], ["invalid_request", undefined]);
  groups.set("dave", ["Engineering"]);
  const token = await userToken("dave");
  const asked = await exchange(service, provider, { user: "dave", token });
  await answerLink(service, provider, linkIn(asked), "allow", "dave");
  const given = await exchange(service, provider, { user: "dave", token });
  assert.equal(given.status, 200, given.text);
  assert.deepEqual(
    [claimsOf(given.body.access_token).groups, given.text.includes("groups")],
    [undefined, false],
  );
  await changed("dave", { groups: [] });
  assert.equal((await exchange(service, provider, { user: "dave", token })).status, 400);
});

test("PCL-D-9 what an issuer dates by a clock that is ahead ends like the rest", async () => {
  const [user, aheadSeconds] = ["erin", 25];
  await answerLink(
    service,
    provider,
    linkIn(await exchange(service, provider, { user, token: await userToken(user) })),
    "allow",
    user,
  );
  const given = await exchange(service, provider, { user, token: await userToken(user, aheadSeconds) });
  assert.equal(given.status, 200, given.text);
  assert.equal((await changed(user, { groups: [] }, nowSeconds() + aheadSeconds)).status, 202);
  const { jti } = claimsOf(given.body.access_token);
  assert.equal((await standing(service.ports, String(jti), nowSeconds())).ok, false);
});

test("PCL-D-8 a sign-in that is dated by a clock that is ahead is later than a token of before it", async () => {
  const token = await userToken("frank", 10);
  groups.set("frank", ["Berlin"]);
  ahead.set("frank", 20);
  await new Browser(service, provider).review(request(verifierOf()), "frank");
  const refused = await exchange(service, provider, { user: "frank", token });
  assert.deepEqual([refused.body.error, refused.body.error_uri], ["invalid_request", undefined]);
});
