/** Tokens of platforms' workloads: what narrows, ends and covers them is what holds for any actor. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { endTokens } from "../../src/flows/endings.ts";
import { explain } from "../../src/flows/explain.ts";
import { standing } from "../../src/flows/standing.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { verifyPlatformAssertion, verifyPlatformGrant } from "../../src/flows/verify-platform.ts";
import { SKEW_SECONDS } from "../../src/limits/tokens.ts";
import type { EndingSelector } from "../../src/policy/endings.ts";
import { TOKEN_PATH } from "../../src/settings/audiences.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { AT_TOKEN, type Flow, formOf, openFlow } from "../support/flow.ts";
import { makeForeign } from "../support/foreign.ts";
import { byActor, byGrant, GRANT } from "../support/platforms.ts";
import { claimsOf, IDP, ISSUER, JWT, workload } from "../support/world.ts";

const ACME = "https://acme.example";
const API = "https://api.example";
const ID = "platform://acme/agent%2F1";
const scopes = ["read"];
const booking = workload("agents/booking");
const gateway = { method: "client_secret_basic", secrets: ["s".repeat(32)], grantTypes: [GRANT] };

const registration = { tenancy: "dedicated", subjects: ["agent/*"], claims: { "/tenant": ["t"] } };
const acme = (entry: object, more: object = {}) => ({
  [ACME]: { keys: { discover: true }, workloads: entry, ...more },
});
const idp = { [IDP]: { keys: { discover: true }, subjects: "keep" } };
const onward = {
  allow: "delegation",
  actors: [booking],
  subjects: { issuers: [IDP] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
  subjectToken: { audiences: ["self"] },
  targets: [API],
  scopes,
};
const CONFIGURATION = {
  clients: { gateway },
  trustDomains: { "td.example": { bundle: { file: "b.json" } } },
  trustedIssuers: { ...idp, ...acme({ acme: registration }) },
  targets: [
    { names: [API], scopes },
    { names: ["booking"], scopes, owners: [booking] },
  ],
  policies: [
    { id: "own", allow: "client_credentials", actors: ["platform://acme/*"], targets: [API], scopes },
    {
      id: "brought",
      allow: "client_credentials",
      clients: ["gateway"],
      actors: ["platform://acme/*"],
      targets: [API],
      scopes,
    },
    {
      ...onward,
      id: "users",
      actors: ["platform://acme/*"],
      consent: "record",
      acknowledge: undefined,
      subjectToken: { audiences: [ISSUER] },
      targets: ["booking"],
    },
    { ...onward, id: "onward" },
  ],
  drafts: [SPIFFE_DRAFT, DRAFT],
};

type Agent = Flow & {
  assertion(claims?: object): Promise<string>;
  own(claims?: object): Promise<string>;
  brought(): Promise<string>;
  acting(claims?: object): Promise<string>;
  further(token: string): Promise<string>;
  reasonOf(token: string): Promise<string>;
};

async function open(t: Parameters<typeof openFlow>[0]): Promise<Agent> {
  const platform = await makeForeign(ACME);
  const users = await makeForeign(IDP, "u-1");
  const bundle = await makeForeign("td.example", "td-1");
  const flow = await openFlow(t, CONFIGURATION, { [ACME]: platform, [IDP]: users, "td.example": bundle });
  const assertion = (claims: object = {}): Promise<string> => {
    const usual = {
      iss: ACME,
      sub: "agent/1",
      tenant: "t",
      aud: ISSUER,
      iat: flow.ports.clock.nowSeconds(),
      exp: flow.ports.clock.nowSeconds() + 60,
    };
    return platform.sign({ ...usual, jti: crypto.randomUUID(), ...claims });
  };
  const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
  const ask = async (
    client: Parameters<typeof answerTokenRequest>[1]["client"],
    form: Record<string, string>,
  ): Promise<string> => {
    const answer = await answerTokenRequest(
      flow.ports,
      { client, form: formOf(form), request },
      AT_TOKEN,
      flow.people,
    );
    assert.ok(answer.ok, JSON.stringify(answer));
    return answer.value.access_token;
  };
  return {
    ...flow,
    assertion,
    async own(claims) {
      const grant = await assertion(claims);
      const proven = await verifyPlatformGrant(flow.ports, { token: grant, use: "grant" }, undefined);
      assert.ok(proven.ok, JSON.stringify(proven));
      return ask(proven.value, byGrant(grant, { resource: API }) as Record<string, string>);
    },
    brought: async () =>
      ask(flow.client("gateway"), byGrant(await assertion(), { resource: API }) as Record<string, string>),
    async acting(claims) {
      const token = await assertion(claims);
      const presented = { by: "assertion", type: JWT, assertion: token } as const;
      const proven = await verifyPlatformAssertion(
        flow.ports,
        presented,
        { address: "192.0.2.1", certificates: [] },
        flow.ports.paths,
        TOKEN_PATH,
      );
      assert.ok(proven.ok, JSON.stringify(proven));
      const now = flow.ports.clock.nowSeconds();
      const user = await users.sign({
        iss: IDP,
        sub: "alice",
        aud: ISSUER,
        scope: "read",
        iat: now,
        exp: now + 300,
      });
      return ask(
        proven.value,
        byActor(user, token, { subject_token_type: JWT, audience: "booking" }) as Record<string, string>,
      );
    },
    async further(subject_token) {
      const now = flow.ports.clock.nowSeconds();
      const svid = await bundle.sign({ sub: booking, aud: ISSUER, iat: now, exp: now + 300 });
      const form = byActor(subject_token, svid, { resource: API }) as Record<string, string>;
      return ask(flow.client(booking), form);
    },
    async reasonOf(token) {
      const stands = await standing(flow.ports, String(claimsOf(token).jti), flow.ports.clock.nowSeconds());
      return stands.ok ? "stands" : stands.error;
    },
  };
}

const consented = (flow: Flow) =>
  flow.consent({ origin: { iss: IDP, sub: "alice" }, actor: ID, targets: ["booking"], scopes });

test("PLAT-D-6 the jti of a platform's token is remembered until its exp and the skew, within which it is accepted", async (t) => {
  const agent = await open(t);
  const exp = agent.ports.clock.nowSeconds() + 60;
  const token = await agent.assertion({ exp });
  const proven = await verifyPlatformGrant(agent.ports, { token, use: "grant" }, undefined);
  assert.ok(proven.ok, JSON.stringify(proven));
  const { spends } = proven.value.platform ?? assert.fail();
  assert.deepEqual(spends && "expiresAtSeconds" in spends && spends.expiresAtSeconds, exp + SKEW_SECONDS);
});

test("PLAT-D-6 a token is spent by its jti within its registration, and without a jti by what is signed", async (t) => {
  const agent = await open(t);
  const spentBy = async (claims: object): Promise<string> => {
    const token = await agent.assertion(claims);
    const proven = await verifyPlatformGrant(agent.ports, { token, use: "grant" }, undefined);
    assert.ok(proven.ok, JSON.stringify(proven));
    const { spends } = proven.value.platform ?? assert.fail();
    assert.ok(spends !== undefined && "jti" in spends);
    return JSON.stringify([spends.issuer, spends.jti]);
  };
  const first = await spentBy({ jti: "one", run: "a" });
  assert.equal(await spentBy({ jti: "one", run: "b" }), first, "another token with that jti");
  assert.notEqual(await spentBy({ jti: "two", run: "a" }), first, "another jti");
  const bare = await spentBy({ jti: undefined, run: "a" });
  assert.notEqual(await spentBy({ jti: undefined, run: "b" }), bare, "another content");
  agent.reload({ ...CONFIGURATION, trustedIssuers: { ...idp, ...acme({ other: registration }) } });
  assert.notEqual(await spentBy({ jti: "one", run: "a" }), first, "another registration");
});

test("PLAT-D-8, PROD-2.6-4 a workload of a platform acts under the consent that names it, and a further hop shows it", async (t) => {
  const agent = await open(t);
  await assert.rejects(agent.acting(), /consent_missing/);
  await consented(agent);
  const { act } = claimsOf(await agent.further(await agent.acting()));
  assert.deepEqual(act, { sub: booking, act: { sub: ID } });
});

test("PLAT-D-17 the event of a brought grant has the workload and its registration beside the client that brought it", async (t) => {
  const agent = await open(t);
  await agent.brought();
  const event = (await agent.events()).find(({ type }) => type === "token.issued");
  assert.ok(event);
  const { client_id, workload: acting, platform } = event.client as Record<string, unknown>;
  const { registration: name, iss, sub, claims } = platform as Record<string, unknown>;
  assert.deepEqual([client_id, acting, name, iss, sub], ["gateway", ID, "acme", ACME, "agent/1"]);
  assert.deepEqual(claims, { "/tenant": "t" });
});

type Narrowing = [what: string, change: object, reason: string];
const NARROWINGS: Narrowing[] = [
  ["a registration that is removed", acme({ other: registration }), "token_workload_gone"],
  [
    "a registration that no longer has the subject",
    acme({ acme: { ...registration, subjects: ["agent/2"] } }),
    "token_workload_gone",
  ],
  ["an issuer that is disabled", acme({ acme: registration }, { disabled: true }), "token_workload_gone"],
  ["an issuer that is removed", {}, "token_workload_gone"],
  [
    "a subject that is disabled",
    acme({ acme: registration }, { disabledSubjects: ["agent/1"] }),
    "subject_disabled",
  ],
  [
    "claims that are pinned anew end nothing that is out",
    acme({ acme: { ...registration, claims: { "/tenant": ["u"] } } }),
    "stands",
  ],
];
for (const [what, change, reason] of NARROWINGS) {
  test(`PLAT-D-16 ${what}: its own token, one that a client brought and one behind a further hop: ${reason}`, async (t) => {
    const agent = await open(t);
    await consented(agent);
    const tokens = [await agent.own(), await agent.brought(), await agent.acting()];
    tokens.push(await agent.further(tokens[2] ?? ""));
    for (const token of tokens) assert.equal(await agent.reasonOf(token), "stands");
    agent.reload({ ...CONFIGURATION, trustedIssuers: { ...idp, ...change } });
    assert.deepEqual(
      await Promise.all(tokens.map(agent.reasonOf)),
      tokens.map(() => reason),
    );
  });
}

test("PLAT-D-10, PLAT-D-16 a registration that now demands another client ends what was brought or came alone", async (t) => {
  const agent = await open(t);
  const tokens = [await agent.own(), await agent.brought()];
  agent.reload({
    ...CONFIGURATION,
    trustedIssuers: { ...idp, ...acme({ acme: { ...registration, clients: ["other"] } }) },
  });
  assert.deepEqual(await Promise.all(tokens.map(agent.reasonOf)), [
    "token_workload_gone",
    "token_workload_gone",
  ]);
});

const BY = { reason: "by_operator", policy: { digest: "d" }, detail: { operator: "o" } } as const;
const ENDINGS: [what: string, selector: EndingSelector, ends: boolean][] = [
  ["its name here", { by: "actor", spiffeId: ID }, true],
  ["the name of another", { by: "actor", spiffeId: "platform://acme/agent%2F2" }, false],
  ["its issuer", { by: "issuer", issuer: ACME }, true],
  ["its name at its issuer", { by: "subject", iss: ACME, sub: "agent/1" }, true],
  ["the same name at another issuer", { by: "subject", iss: IDP, sub: "agent/1" }, false],
];
for (const [what, selector, ends] of ENDINGS) {
  test(`PLAT-D-16 an ending by ${what} ${ends ? "reaches" : "does not reach"} its tokens and those behind a further hop`, async (t) => {
    const agent = await open(t);
    await consented(agent);
    const tokens = [await agent.own(), await agent.brought(), await agent.acting()];
    tokens.push(await agent.further(tokens[2] ?? ""));
    await endTokens(agent.ports, selector, BY);
    const want = ends ? "token_revoked" : "stands";
    assert.deepEqual(
      await Promise.all(tokens.map(agent.reasonOf)),
      tokens.map(() => want),
    );
  });
}

for (const [what, sub, ends] of [
  ["what it is named by", "t/7", true],
  ["its subject", "agent/1", true],
  ["what another one is named by", "t/8", false],
] as const) {
  test(`PLAT-D-16, FEDC-D-11 an agent that is named by claims is disabled by ${what}: its tokens ${ends ? "end" : "stand"}`, async (t) => {
    const agent = await open(t);
    const named = acme({ acme: { ...registration, name: ["/tenant", "/unit"] } });
    agent.reload({ ...CONFIGURATION, trustedIssuers: { ...idp, ...named } });
    const token = await agent.own({ unit: "7" });
    assert.equal(claimsOf(token).sub, "platform://acme/t/7");
    await endTokens(agent.ports, { by: "subject", iss: ACME, sub, disabled: true }, BY);
    assert.equal(await agent.reasonOf(token), ends ? "token_revoked" : "stands");
  });
}

test("PLAT-D-16 an assertion that was signed before its issuer was ended gives nothing, and a later one does", async (t) => {
  const agent = await open(t);
  const before = { iat: agent.nowSeconds - 10 };
  await endTokens(agent.ports, { by: "issuer", issuer: ACME }, BY);
  agent.pass(30);
  await assert.rejects(agent.own(before), /ended/);
  assert.equal(await agent.reasonOf(await agent.own()), "stands");
});

const QUESTIONS: [what: string, question: object, want: string][] = [
  ["a workload of the registration", { client: ID, target: API }, "own"],
  ["a client that brings its grant", { client: "gateway", workload: ID, target: API }, "brought"],
  ["a workload of no registration", { client: "platform://none/x", target: API }, "client_unknown"],
  [
    "a subject that the registration does not have",
    { client: "platform://acme/x", target: API },
    "client_unknown",
  ],
  ["a workload that is another's", { client: ID, workload: booking, target: API }, "workload_not_associated"],
];
for (const [what, question, want] of QUESTIONS) {
  test(`PLAT-D-8 explain answers for ${what}: ${want}`, async (t) => {
    const agent = await open(t);
    const { issued, failure } = await explain(agent.ports, question as Parameters<typeof explain>[1]);
    assert.equal(issued?.rule ?? failure?.reason, want);
  });
}

test("POLICY-D-20, PLAT-D-16 explain refuses a question of a workload whose subject at its platform is disabled", async (t) => {
  const agent = await open(t);
  const asked = async () =>
    (await explain(agent.ports, { client: ID, target: API } as Parameters<typeof explain>[1])).failure;
  assert.equal(await asked(), undefined);
  await endTokens(agent.ports, { by: "subject", iss: ACME, sub: "agent/1", disabled: true }, BY);
  assert.deepEqual(await asked(), { kind: "workload_not_admitted", reason: "subject_disabled" });
});

const byUse = acme({
  used: { ...registration, subjects: ["used/*"], uses: ["client"] },
  bound: { ...registration, subjects: ["bound/*"], clients: ["gateway"] },
  foreign: { ...registration, subjects: ["foreign/*"], clients: ["other"] },
});
const REFUSED_QUESTIONS: [what: string, question: object, want: string][] = [
  [
    "a grant that a client brings of a registration without that use",
    { client: "gateway", workload: "platform://used/used%2F1" },
    "workload_use_refused",
  ],
  [
    "a workload alone whose registration has clients",
    { client: "platform://bound/bound%2F1" },
    "workload_client_missing",
  ],
  [
    "a client that the registration does not name",
    { client: "gateway", workload: "platform://foreign/foreign%2F1" },
    "workload_client_differs",
  ],
  [
    "a client that the registration names, where no rule does",
    { client: "gateway", workload: "platform://bound/bound%2F1" },
    "no_rule",
  ],
  ["a workload of a registration for clients", { client: "platform://used/used%2F1" }, "no_rule"],
];
for (const [what, question, want] of REFUSED_QUESTIONS) {
  test(`PLAT-D-1, PLAT-D-10 explain refuses ${what}: ${want}`, async (t) => {
    const agent = await open(t);
    agent.reload({ ...CONFIGURATION, trustedIssuers: { ...idp, ...byUse } });
    const asked = { ...question, target: API } as Parameters<typeof explain>[1];
    const { failure } = await explain(agent.ports, asked);
    assert.equal(failure?.reason, want);
  });
}
