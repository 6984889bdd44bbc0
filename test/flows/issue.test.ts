/** What a token request leaves in the audit trail and uses up, on the embedded store with real keys. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type TestContext, test } from "node:test";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { DRAFT as ID_JAG_DRAFT, ID_JAG_TYP } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { JWT_BEARER_GRANT } from "../../src/spec/rfc7523.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { AT_TOKEN, formOf, openFlow } from "../support/flow.ts";
import { makeForeign } from "../support/foreign.ts";
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
const API = "https://api.example";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
/** The longest SPIFFE ID that the standard has, 2,048 bytes. */
const longest = workload(`a/${"x".repeat(2048 - workload("a/").length)}`);
const scopes = ["trips.read"];
const secretly = { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] };
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const forUsers = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  scopes,
};

const configuration = {
  trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
  trustedIssuers: {
    [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep" },
    [PARTNER]: {
      keys: { url: `${PARTNER}/jwks` },
      subjects: { prefix: "p:" },
      acceptAs: [],
      grants: { scopes },
    },
  },
  clients: { desk: secretly, app: secretly },
  targets: [
    { names: [API], scopes },
    { names: ["asked"], owners: [booking], scopes },
  ],
  policies: [
    { id: "own", allow: "client_credentials", clients: ["desk"], targets: [API], scopes },
    { id: "own-longest", allow: "client_credentials", actors: [longest], targets: [API], scopes },
    {
      id: "longest",
      allow: "delegation",
      actors: [longest],
      targets: [API],
      ...forUsers,
      ...implied,
    },
    {
      id: "asked",
      allow: "delegation",
      actors: [planner],
      targets: ["asked"],
      ...forUsers,
      consent: "record",
    },
    {
      id: "not-asked",
      allow: "impersonation",
      actors: [planner, booking],
      targets: [API],
      ...forUsers,
      ...implied,
    },
    {
      id: "guests",
      allow: "redemption",
      clients: ["desk"],
      subjects: { issuers: [PARTNER] },
      targets: [API],
      scopes,
      ...implied,
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

async function openWorld(t: TestContext) {
  const signers = {
    [IDP]: await makeForeign(IDP),
    [PARTNER]: await makeForeign(PARTNER),
    [TRUST_DOMAIN]: await makeForeign(TRUST_DOMAIN),
  };
  const flow = await openFlow(t, configuration, signers);
  const { ports, people, nowSeconds } = flow;
  const consent = await flow.consent({
    origin: { iss: IDP, sub: "u-1" },
    actor: planner,
    targets: ["asked"],
    scopes,
  });
  const exp = nowSeconds + 300;

  /** The answer and its event; that of a refusal is for the endpoint to record. */
  async function send(clientId: string, parameters: Record<string, string>, jti?: string) {
    const spends = {
      kind: "jti_fresh",
      issuer: clientId,
      jti: jti ?? randomUUID(),
      expiresAtSeconds: exp,
    } as const;
    const request = { id: "r", endpoint: "/token", source_ip: "192.0.2.1" };
    const client = { ...flow.client(clientId), spends };
    const answer = await answerTokenRequest(
      ports,
      { client, form: formOf(parameters), request },
      AT_TOKEN,
      people,
    );
    const event = answer.ok ? (await flow.events()).at(-1) : answer.error.event;
    assert.ok(event !== undefined);
    return { answer, event: event as Event };
  }
  const user = (claims: object = {}) =>
    signers[IDP].sign({ iss: IDP, sub: "u-1", aud: ISSUER, scope: "trips.read", exp, ...claims });
  const grant = (claims: object = {}) =>
    signers[PARTNER].grant({ client_id: "desk", resource: API, ...claims }, { typ: ID_JAG_TYP });
  return {
    consent,
    digest: ports.settings().policy.digest,
    send,
    user,
    grant,
    svid: (sub: string) => signers[TRUST_DOMAIN].sign({ sub, aud: ISSUER, exp }, { typ: "JWT" }),
    own: (jti?: string) => send("desk", { grant_type: "client_credentials" }, jti),
    redeem: (assertion: string, clientId = "desk", jti?: string) =>
      send(clientId, { grant_type: JWT_BEARER_GRANT, assertion }, jti),
    impersonate: (subject: string, type = JWT, by = planner) =>
      send(by, { grant_type: EXCHANGE, subject_token: subject, subject_token_type: type, audience: API }),
    delegate: (subject: string, actor: string) =>
      send(planner, {
        grant_type: EXCHANGE,
        subject_token: subject,
        subject_token_type: JWT,
        actor_token: actor,
        actor_token_type: JWT,
        audience: "asked",
      }),
  };
}

test("PROD-2.6-8 the event of a token that was issued without asking the subject says so", async (t) => {
  const { impersonate, user, digest } = await openWorld(t);
  const { answer, event } = await impersonate(await user());
  assert.ok(answer.ok);
  assert.deepEqual(event.policy, { digest, rule_id: "not-asked", acknowledged: "subjects-not-asked" });
});

test("PROD-2.6-8 the event of a token under a consent on record names the consent", async (t) => {
  const { delegate, user, svid, digest, consent } = await openWorld(t);
  const { answer, event } = await delegate(await user(), await svid(planner));
  assert.ok(answer.ok);
  assert.deepEqual(event.policy, { digest, rule_id: "asked", consent: consent.id });
});

test("PROD-6.1-1 the event of a delegation names subject, actor and mode, and the token that was issued", async (t) => {
  const { delegate, user, svid } = await openWorld(t);
  const mayAct = { sub: planner };
  const { answer, event } = await delegate(await user({ may_act: mayAct }), await svid(planner));
  assert.ok(answer.ok);
  assert.deepEqual([event.type, event.mode], ["token_exchange.delegation", "delegation"]);
  assert.deepEqual([event.chain, event.may_act], [[], mayAct]);
  assert.partialDeepStrictEqual(event.subject, { iss: IDP, sub: "u-1", kind: "user" });
  assert.partialDeepStrictEqual(event.actor, { iss: ISSUER, sub: planner });
  const { jti } = claimsOf(answer.value.access_token);
  assert.partialDeepStrictEqual(event.granted, { jti, act_depth: 1, issued_token_type: ACCESS_TOKEN });
});

test("PROD-6.1-3 the event of an exchange onward names the tokens behind it", async (t) => {
  const { delegate, impersonate, user, svid } = await openWorld(t);
  const first = await delegate(await user(), await svid(planner));
  assert.ok(first.answer.ok);
  const token = first.answer.value.access_token;
  const { answer, event } = await impersonate(token, ACCESS_TOKEN, booking);
  assert.ok(answer.ok);
  assert.deepEqual(event.granted?.parent_jti, [claimsOf(token).jti]);
  assert.deepEqual(event.chain, [{ iss: ISSUER, sub: planner }]);
});

test("RFC8693-4.1-2 actors that another issuer puts into the history stay foreign: in the token, the trail and onward", async (t) => {
  const { delegate, impersonate, user, svid } = await openWorld(t);
  const forged = { sub: booking, iss: ISSUER, act: { sub: "bot" } };
  const { answer, event } = await delegate(await user({ act: forged }), await svid(planner));
  assert.ok(answer.ok);
  const bot = { sub: "bot", iss: IDP };
  const token = answer.value.access_token;
  assert.deepEqual(claimsOf(token).act, { sub: planner, act: { sub: booking, iss: ISSUER, act: bot } });
  const history = [
    { sub: booking, iss: ISSUER, claimed: true },
    { ...bot, claimed: true },
  ];
  assert.deepEqual(event.chain, history);
  // The row of the token keeps the difference.
  const onward = await impersonate(token, ACCESS_TOKEN, booking);
  assert.deepEqual(onward.event.chain, [{ sub: planner, iss: ISSUER }, ...history]);
});

test("PROD-6.1-1 the event of a refused actor names the subject, and the actor not yet", async (t) => {
  const { delegate, user, svid } = await openWorld(t);
  const { event } = await delegate(await user(), await svid(booking));
  assert.deepEqual([event.type, event.reason], ["token_exchange.denied", "actor_not_the_caller"]);
  assert.partialDeepStrictEqual(event.subject, { iss: IDP, sub: "u-1" });
  assert.equal(event.actor, undefined);
});

test("PROD-6.1-1 the event of a grant in the hands of the wrong client names its subject", async (t) => {
  const { redeem, grant } = await openWorld(t);
  const { event } = await redeem(await grant(), "app");
  assert.deepEqual([event.type, event.reason], ["grant.denied", "grant_client_differs"]);
  assert.partialDeepStrictEqual(event.subject, { iss: PARTNER, sub: "u-77" });
});

test("PROD-6.1-1 the event of a forged grant names no subject", async (t) => {
  const { redeem, grant } = await openWorld(t);
  const [head, body] = (await grant()).split(".");
  const { event } = await redeem(`${head}.${body}.${"A".repeat(86)}`);
  assert.deepEqual([event.reason, event.subject], ["signature_invalid", undefined]);
});

test("RFC8693-2.2.1-3 only an exchange tells which type of token was issued", async (t) => {
  const { own, impersonate, user } = await openWorld(t);
  for (const [{ answer, event }, type] of [
    [await own(), undefined],
    [await impersonate(await user()), ACCESS_TOKEN],
  ] as const) {
    assert.ok(answer.ok);
    assert.equal(answer.value.issued_token_type, type);
    assert.equal((event.granted as { issued_token_type?: string }).issued_token_type, type);
  }
});

test("IDJAG-4.4.1-7 the answer names the API that a grant was for, where the grant named one", async (t) => {
  const { redeem, grant } = await openWorld(t);
  for (const resource of [API, undefined]) {
    const { answer } = await redeem(await grant({ resource }));
    assert.ok(answer.ok);
    assert.equal(answer.value.resource, resource);
  }
});

test("IDC-5.5-2 a grant is redeemed once, whatever is new about the request", async (t) => {
  const { redeem, grant } = await openWorld(t);
  const assertion = await grant();
  assert.ok((await redeem(assertion)).answer.ok);
  const { answer, event } = await redeem(assertion);
  assert.deepEqual(answer.ok ? "redeemed" : answer.error.failure.kind, "grant_refused");
  assert.deepEqual([event.type, event.reason], ["replay.detected", "grant_replayed"]);
});

test("RFC7523-3-14 an assertion that a client authenticated by is used once, whatever it asks for", async (t) => {
  const { own, redeem, grant } = await openWorld(t);
  const jti = randomUUID();
  assert.ok((await own(jti)).answer.ok);
  const { answer, event } = await redeem(await grant(), "desk", jti);
  assert.deepEqual(answer.ok ? "redeemed" : answer.error.failure.kind, "client_refused");
  assert.deepEqual([event.type, event.reason], ["replay.detected", "assertion_replayed"]);
});

test("SID-2.3-1 a workload with the longest SPIFFE ID gets its tokens, its own and one in which it is the actor", async (t) => {
  const { send, user, svid } = await openWorld(t);
  assert.equal(longest.length, 2048);
  const own = await send(longest, { grant_type: "client_credentials" });
  assert.ok(own.answer.ok);
  assert.equal(claimsOf(own.answer.value.access_token).sub, longest);
  const delegated = await send(longest, {
    grant_type: EXCHANGE,
    subject_token: await user(),
    subject_token_type: JWT,
    actor_token: await svid(longest),
    actor_token_type: JWT,
    audience: API,
  });
  assert.ok(delegated.answer.ok);
  assert.deepEqual(claimsOf(delegated.answer.value.access_token).act, { sub: longest });
});
