/** Token exchange: types of tokens, several names of a target, long chains and their limits. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const SECRET = "exchange-exchange-exchange-12345";
const API = "https://api.example";
const HOPS = ["one", "two", "three", "four", "five", "six"];
const portal = workload("apps/portal");
const hop = (name: string): string => workload(`hops/${name}`);

const forUsers = {
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
};
const scopes = ["read", "write"];

const CONFIGURATION = {
  clients: {
    portal: {
      method: "client_secret_basic",
      secrets: [SECRET],
      workload: portal,
      actorAccessToken: true,
    },
    kiosk: { method: "client_secret_basic", secrets: [SECRET], workload: portal },
    twin: {
      method: "client_secret_basic",
      secrets: [SECRET],
      workload: portal,
      actorAccessToken: true,
    },
  },
  targets: [
    ...HOPS.map((name) => ({ names: [`desk-${name}`], owners: [hop(name)], scopes })),
    { names: [API, "api", "urn:example:api"], scopes },
    { names: ["https://other.example"], scopes },
    { names: ["https://slashed.example/"], scopes },
  ],
  policies: [
    {
      id: "relay",
      allow: "delegation",
      actors: [workload("hops/*")],
      ...forUsers,
      maxChainDepth: 5,
      targets: HOPS.map((name) => `desk-${name}`),
      scopes,
    },
    {
      id: "long",
      allow: "delegation",
      actors: [hop("one")],
      ...forUsers,
      targets: [API, "https://slashed.example/"],
      scopes,
    },
    { id: "portal", allow: "delegation", actors: [portal], ...forUsers, targets: [API], scopes },
    {
      id: "machines",
      allow: "client_credentials",
      clients: ["portal", "twin", "kiosk"],
      targets: [API, `${ISSUER}/api`],
      scopes: ["read", "policy:explain"],
    },
    {
      id: "desk-as-user",
      allow: "impersonation",
      clients: ["portal"],
      ...forUsers,
      targets: ["https://other.example"],
      scopes,
    },
    {
      id: "by-invitation",
      allow: "delegation",
      actors: [hop("one"), hop("two")],
      ...forUsers,
      consent: "may_act",
      acknowledge: undefined,
      targets: ["https://other.example"],
      scopes,
    },
  ],
};

let world: World;

before(async () => {
  world = await makeWorld(CONFIGURATION);
});

after(() => stop(world));

const user = (input = {}): Promise<string> =>
  world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "read write", ...input });

/** A delegation, by the first workload unless given. */
async function delegate(extra: Form = {}, name = "one"): Promise<Answer> {
  const svid = await world.svid(`hops/${name}`);
  return world.token({
    grant_type: EXCHANGE,
    subject_token: await user(),
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    ...("audience" in extra || "resource" in extra ? {} : { audience: API }),
    ...extra,
  });
}

async function assertRefused(answer: Answer, error: string, reason: string): Promise<void> {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  const id = answer.headers["x-request-id"];
  const event = (await world.events()).find(
    ({ request }) => (request as { id?: string } | undefined)?.id === id,
  );
  assert.equal(event?.reason, reason);
}

// --- types of tokens ----------------------------------------------------------------------------------------------

test("RFC6749-4.5-1, RFC8693-2.2-1, RFC8693-2.2.1-1, RFC8693-2.2.1-2, RFC8693-2.2.1-6, RFC8693-2.2.1-7 the complete response", async () => {
  const answer = await delegate({ scope: "read unknown" });
  assert.equal(answer.status, 200, answer.text);
  const { access_token: token, expires_in: expires, ...rest } = answer.body;
  assert.deepEqual(rest, { issued_token_type: ACCESS_TOKEN, token_type: "Bearer", scope: "read" });
  assert.equal(Number(claimsOf(token).exp) - Number(claimsOf(token).iat), expires);
  assert.equal(answer.headers["content-type"], "application/json");
  assert.deepEqual([answer.headers["cache-control"], answer.headers.pragma], ["no-store", "no-cache"]);
});

for (const [name, form] of [
  ["RFC8693-2.1-14 no requested type", {}],
  ["RFC8693-2.1-14, RFC8693-3-5 a requested access token", { requested_token_type: ACCESS_TOKEN }],
  ["RFC8693-3-4 an ID token", { subject_token_type: ID_TOKEN }],
] as const) {
  test(`${name} gives an access token`, async () => {
    const answer = await delegate(form);
    assert.deepEqual([answer.status, answer.body.issued_token_type], [200, ACCESS_TOKEN], answer.text);
  });
}

test("RFC8693-2.1-14, PROD-4.1v7-4 a requested JWT for a resource server is the access token, and named as one", async () => {
  const answer = await delegate({ requested_token_type: JWT });
  assert.deepEqual([answer.status, answer.body.issued_token_type], [200, ACCESS_TOKEN], answer.text);
});

for (const type of [
  ID_TOKEN,
  "urn:ietf:params:oauth:token-type:refresh_token",
  "urn:ietf:params:oauth:token-type:saml2",
  "access_token",
  `${ACCESS_TOKEN} `,
  ACCESS_TOKEN.toUpperCase(),
]) {
  test(`RFC8693-3-1, RFC8693-2.2.2-1, RFC8693-2.2.2-2, PROD-9.2-5 the requested type ${JSON.stringify(type)} is refused`, async () => {
    await assertRefused(
      await delegate({ requested_token_type: type }),
      "invalid_request",
      "requested_token_type_unsupported",
    );
  });
}

test("RFC8693-3-3, RFC8693-2.1-20 a token is verified only as the type that is declared", async () => {
  const foreign = await delegate({ subject_token_type: ACCESS_TOKEN });
  await assertRefused(foreign, "invalid_request", "subject_jwt_type_refused");
  const own = await delegate({ audience: "desk-two" });
  const subject = { subject_token: String(own.body.access_token), subject_token_type: ID_TOKEN };
  await assertRefused(await delegate(subject, "two"), "invalid_request", "subject_issuer_unknown");
});

for (const [name, type] of [
  ["an access token", ACCESS_TOKEN],
  ["a JWT", JWT],
] as const) {
  test(`RFC8693-D-1 our own access token that is called ${name} is exchanged by the same checks`, async () => {
    const own = await delegate({ audience: "desk-two" });
    const subject = { subject_token: String(own.body.access_token), subject_token_type: type };
    const answer = await delegate({ ...subject, audience: "desk-three" }, "two");
    assert.equal(answer.status, 200, answer.text);
    const claims = claimsOf(answer.body.access_token);
    assert.deepEqual([claims.sub, claims.act], ["u-1", { sub: hop("two"), act: { sub: hop("one") } }]);
    const event = (await world.events()).find(({ granted }) => granted?.jti === claims.jti);
    const recorded = event?.subject as { token: { type: string; jti: string } } | undefined;
    assert.deepEqual(
      [recorded?.token.type, recorded?.token.jti],
      ["access_token", claimsOf(own.body.access_token).jti],
    );
    const stolen = await delegate({ ...subject, audience: "desk-four" }, "three");
    await assertRefused(stolen, "invalid_request", "not_meant_for_caller");
    const forOwn = await machineToken("portal", { audience: `${ISSUER}/api`, scope: "policy:explain" });
    await assertRefused(
      await delegate({ ...subject, subject_token: forOwn }, "two"),
      "invalid_request",
      "subject_token_for_own_endpoints",
    );
  });
}

test("RFC8693-2.1-20 a JWT-SVID is refused as a subject token", async () => {
  const svid = await world.svid("hops/two");
  for (const type of [JWT, ID_TOKEN, ACCESS_TOKEN]) {
    const answer = await delegate({ subject_token: svid, subject_token_type: type });
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"]);
  }
});

test("CONF-D-13 a JWT-SVID that is sent again, as assertion and actor token at once, is accepted", async () => {
  const svid = await world.svid("hops/one");
  for (const times of [1, 2]) {
    const answer = await delegate({ actor_token: svid, ...world.as(svid) });
    assert.equal(answer.status, 200, `${times}: ${answer.text}`);
  }
});

test("RFC8693-2.1-22 a subject token can be exchanged repeatedly", async () => {
  const subject = { subject_token: await user() };
  const [first, second] = [await delegate(subject), await delegate(subject)];
  assert.deepEqual([first.status, second.status], [200, 200]);
  assert.notEqual(claimsOf(first.body.access_token).jti, claimsOf(second.body.access_token).jti);
});

// --- the client's own access token as actor token -------------------------------------------------------------------

const machineToken = async (client: string, form: Form = {}): Promise<string> => {
  const authorization = basic(client, SECRET);
  const wish = { grant_type: "client_credentials", audience: API, scope: "read", ...form };
  const answer = await world.token(wish, { authorization });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
};

async function actAs(client: string, actorToken: string, type = ACCESS_TOKEN): Promise<Answer> {
  const form = {
    grant_type: EXCHANGE,
    subject_token: await user(),
    subject_token_type: JWT,
    actor_token: actorToken,
    actor_token_type: type,
    audience: API,
  };
  return world.token(form, { authorization: basic(client, SECRET) });
}

test("RFC8693-2.1-21, PROD-4.1-28 a client's own access token is accepted as its actor token where the configuration permits it", async () => {
  const token = await machineToken("portal");
  const answer = await actAs("portal", token);
  assert.equal(answer.status, 200, answer.text);
  const claims = claimsOf(answer.body.access_token);
  assert.deepEqual([claims.sub, claims.act, claims.client_id], ["u-1", { sub: portal }, "portal"]);
  const event = (await world.events()).find(({ granted }) => granted?.jti === claims.jti);
  const actor = event?.actor as { sub: string; token: { type: string; jti: string } } | undefined;
  assert.deepEqual(
    [actor?.sub, actor?.token.type, actor?.token.jti],
    [portal, "access_token", claimsOf(token).jti],
  );
});

test("RFC8693-2.1-21 by default an access token is refused as an actor token, also for a client with a workload", async () => {
  const answer = await actAs("kiosk", await machineToken("kiosk"));
  await assertRefused(answer, "invalid_request", "actor_access_token_not_allowed");
});

test("RFC8693-2.1-21 a workload that authenticates with an SVID cannot use an access token as its actor token", async () => {
  const answer = await delegate({
    actor_token: await machineToken("portal"),
    actor_token_type: ACCESS_TOKEN,
  });
  await assertRefused(answer, "invalid_request", "actor_access_token_not_allowed");
});

test("RFC8693-2.1-21 only the client's own access token from its own credentials is accepted", async () => {
  const impersonated = await world.token(
    {
      grant_type: EXCHANGE,
      subject_token: await user(),
      subject_token_type: JWT,
      audience: "https://other.example",
    },
    { authorization: basic("portal", SECRET) },
  );
  assert.equal(impersonated.status, 200, impersonated.text);
  const cases: [string, string][] = [
    ["not_the_caller", await machineToken("twin")],
    ["not_the_caller", String(impersonated.body.access_token)],
    [
      "token_for_own_endpoints",
      await machineToken("portal", { audience: `${ISSUER}/api`, scope: "policy:explain" }),
    ],
    ["jwt_type_refused", await user()],
    ["jwt_type_refused", await world.svid("apps/portal")],
    ["jws_not_compact", "abc"],
  ];
  for (const [reason, token] of cases) {
    await assertRefused(await actAs("portal", token), "invalid_request", `actor_${reason}`);
  }
});

test("RFC8693-D-1 a client's own access token that is called a JWT is its actor token where the configuration permits it, and passes the same checks", async () => {
  const answer = await actAs("portal", await machineToken("portal"), JWT);
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(claimsOf(answer.body.access_token).act, { sub: portal });
  const cases: [string, string, string][] = [
    ["kiosk", await machineToken("kiosk"), "access_token_not_allowed"],
    ["portal", await machineToken("twin"), "not_the_caller"],
    [
      "portal",
      await machineToken("portal", { audience: `${ISSUER}/api`, scope: "policy:explain" }),
      "token_for_own_endpoints",
    ],
  ];
  for (const [client, token, reason] of cases) {
    await assertRefused(await actAs(client, token, JWT), "invalid_request", `actor_${reason}`);
  }
});

// --- may_act --------------------------------------------------------------------------------------------------------

test("RFC8693-4.4-1, RFC8693-4.4-2, RFC8693-4.4-3 may_act permits only the actor that it names, and is carried over", async () => {
  const named = { sub: hop("one"), exp: 1, aud: "another" };
  const subject_token = await user({ claims: { may_act: named } });
  const target = { audience: "https://other.example" };
  const answer = await delegate({ subject_token, ...target });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(claimsOf(answer.body.access_token).may_act, named);
  await assertRefused(
    await delegate({ subject_token, ...target }, "two"),
    "invalid_request",
    "may_act_names_another",
  );
  await assertRefused(await delegate(target), "invalid_request", "consent_missing");
});

test("RFC8693-4.4-1 a may_act that is not an object is malformed", async () => {
  for (const mayAct of ["x", [{ sub: hop("one") }], null, true]) {
    const subject_token = await user({ claims: { may_act: mayAct } });
    await assertRefused(await delegate({ subject_token }), "invalid_request", "subject_may_act_malformed");
  }
});

// --- targets --------------------------------------------------------------------------------------------------------

const several: [string, Form, string][] = [
  [
    "RFC9068-3-3, RFC8693-2.1-12 audience and resource of one target",
    { audience: "api", resource: API },
    "api",
  ],
  ["RFC8707-D-1 an origin with a final slash that its name lacks", { resource: `${API}/` }, API],
  [
    "RFC8707-D-1 an origin without the final slash of its name",
    { resource: "https://slashed.example" },
    "https://slashed.example/",
  ],
  ["RFC8707-D-1 an origin in both forms", { resource: [API, `${API}/`] }, API],
  ["RFC8693-2.1-12 a duplicate audience", { audience: ["api", "api"] }, "api"],
  [
    "RFC8693-2.1-9, RFC8707-2-5 two resources of one target",
    { resource: ["urn:example:api", API] },
    "urn:example:api",
  ],
  ["RFC8707-2-7, RFC8707-2.2-1, RFC8693-2.1-6 a resource alone", { resource: API }, API],
  ["RFC8693-2.1-10 an audience alone", { audience: "api" }, "api"],
];
for (const [name, form, aud] of several) {
  test(`${name}: the audience of the token is the configured name that was requested, byte for byte`, async () => {
    const answer = await delegate(form);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(claimsOf(answer.body.access_token).aud, aud);
  });
}

const wrong: [string, Form, string][] = [
  [
    "RFC8693-2.1.1-2, RFC8707-3-2 two targets",
    { audience: ["api", "https://other.example"] },
    "targets_several",
  ],
  [
    "RFC9068-3-3, RFC8693-2.1.1-2 audience and resource of two targets",
    { audience: "api", resource: "https://other.example" },
    "targets_several",
  ],
  ["RFC8693-2.1-8, RFC8707-2-3 a fragment", { resource: `${API}#x` }, "resource_malformed"],
  ["RFC8693-2.1-8, RFC8707-2-3 an empty fragment", { resource: `${API}#` }, "resource_malformed"],
  ["RFC8693-2.1-6, RFC8707-2-2 a relative resource", { resource: "/api" }, "resource_malformed"],
  ["RFC8693-2.1-7 a query that no target name has", { resource: `${API}?x=1` }, "target_unknown"],
  ["RFC8693-2.2.2-3 another spelling", { audience: `${API}/` }, "target_unknown"],
  ["RFC8707-D-1 a path with a final slash", { resource: `${API}/v1/` }, "target_unknown"],
  ["RFC8707-D-1 an origin with a slash and a query", { resource: `${API}/?` }, "target_unknown"],
  ["RFC8707-D-1 another scheme", { resource: "http://api.example/" }, "target_unknown"],
  ["RFC8693-2.2.2-3 no target", { audience: "" }, "target_missing"],
];
for (const [name, form, reason] of wrong) {
  test(`${name}: invalid_target`, async () => {
    await assertRefused(await delegate(form), "invalid_target", reason);
  });
}

// --- chains ---------------------------------------------------------------------------------------------------------

test("RFC8693-4.1-5, RFC8693-4.1-1, PROD-4.1v6-6 five hops are issued, and a sixth is refused by the rule", async () => {
  let token = "";
  const lineage: unknown[] = [];
  for (const [index, name] of HOPS.entries()) {
    const extra = index === 0 ? {} : { subject_token: token, subject_token_type: ACCESS_TOKEN };
    const audience = `desk-${HOPS[index + 1] ?? "one"}`;
    const answer = await delegate({ ...extra, audience }, name);
    if (index === 5) {
      await assertRefused(answer, "invalid_request", "chain_too_deep");
      break;
    }
    assert.equal(answer.status, 200, answer.text);
    token = String(answer.body.access_token);
    const { act, jti, sub } = claimsOf(token);
    const actors: unknown[] = [];
    for (
      let level = act as { sub: string; act?: object } | undefined;
      level;
      level = level.act as typeof level
    ) {
      actors.push(level.sub);
    }
    assert.deepEqual(
      actors,
      HOPS.slice(0, index + 1)
        .toReversed()
        .map(hop),
    );
    assert.equal(sub, "u-1");
    const event = (await world.events()).find(({ granted }) => granted?.jti === jti);
    assert.deepEqual(event?.granted?.parent_jti, lineage);
    lineage.unshift(jti);
  }
});

/** An `act` with this number of actors of the identity provider, the current one first. */
const actOf = (count: number, length = 3): object =>
  Array.from({ length: count }).reduce<object>(
    (act, _, index) => ({ sub: `${"b".repeat(length)}${index}`, ...(index > 0 && { act }) }),
    {},
  );

test("PROD-4.1v6-6, RFC8693-4.1-2 the eighth hop is the last, and actors of another issuer keep it", async () => {
  const subject_token = await user({ claims: { act: actOf(7) } });
  const answer = await delegate({ subject_token });
  assert.equal(answer.status, 200, answer.text);
  const { act } = claimsOf(answer.body.access_token) as {
    act: { sub: string; act: { sub: string; iss: string } };
  };
  assert.deepEqual([act.sub, act.act.sub, act.act.iss], [hop("one"), "bbb6", IDP]);
  const full = await user({ claims: { act: actOf(8) } });
  await assertRefused(await delegate({ subject_token: full }), "invalid_request", "chain_too_deep");
});

const tooMuch: [string, object, string][] = [
  ["nine hops on entry", actOf(9), "subject_act_too_deep"],
  ["more than 8 KiB on entry", actOf(2, 5000), "subject_act_too_large"],
  ["more than 8 KiB with the new hop", actOf(2, 4030), "chain_too_deep"],
  ["a hop without a name", { act: { sub: "b" } }, "subject_act_malformed"],
  ["a hop that is a string", { sub: "b", act: "c" }, "subject_act_malformed"],
];
for (const [name, act, reason] of tooMuch) {
  test(`PROD-4.1v6-6 ${name} is refused`, async () => {
    const subject_token = await user({ claims: { act } });
    await assertRefused(await delegate({ subject_token }), "invalid_request", reason);
  });
}

test("PROD-4.1v6-6 a token of more than 12 KiB is refused at issue", async () => {
  const claims = { act: actOf(3, 2600), may_act: { sub: hop("one"), note: "n".repeat(800) } };
  const answer = await delegate({ subject_token: await user({ claims }) });
  await assertRefused(answer, "invalid_request", "token_too_large");
});

test("RFC8693-4.1-3, RFC8693-4.1-4 other members of a hop are ignored and dropped", async () => {
  const act = {
    sub: "bot",
    exp: 1,
    aud: "another",
    scope: "admin",
    act: { sub: "first", nbf: 4_000_000_000 },
  };
  const answer = await delegate({ subject_token: await user({ claims: { act } }) });
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(claimsOf(answer.body.access_token).act, {
    sub: hop("one"),
    act: { sub: "bot", iss: IDP, act: { sub: "first", iss: IDP } },
  });
});
