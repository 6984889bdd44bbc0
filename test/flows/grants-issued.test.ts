/**
 * Grants that this server issues for partners: by which rule, for which partner, with which content; and that none of
 * them is accepted here. What is specific to an ID-JAG: id-jags-issued.test.ts.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { calculateJwkThumbprint, compactVerify, createLocalJWKSet, decodeProtectedHeader } from "jose";
import type { Answer } from "../../scripts/http-client.ts";
import { basic } from "../../scripts/http-client.ts";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ALIAS,
  API,
  booking,
  grantOf,
  ID_JAG,
  ID_TOKEN,
  LEGACY,
  NARROW,
  openToTravellers,
  PAIRWISE,
  PARTNER,
  planner,
  RULES,
  SECRET,
  SIGNED_IN,
  STAYS,
  type Travellers,
} from "../support/travellers.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  workload,
} from "../support/world.ts";

let travellers: Travellers;

before(async () => {
  travellers = await openToTravellers(makeService);
});

after(() => stop(travellers?.world));

// --- rules --------------------------------------------------------------------------------------------------------

const MODES = ["delegation", "impersonation"] as const;
const PRODUCTS = [
  ["an access token", "token", API],
  ["a grant", "grant", PARTNER],
] as const;

for (const mode of MODES) {
  for (const [product, issued, audience] of PRODUCTS) {
    for (const chained of [false, true]) {
      const own = `${mode === "delegation" ? "delegates" : "impersonates"}-${issued}`;
      const what = `${mode} with ${product}, ${chained ? "after another agent" : "for the user's own token"}`;
      test(`PROD-4.1v7-4, PROD-4.1v8-1, PROD-1.7-1, PROD-1.7-3, PROD-3-2, PROD-6.3-2 ${what}: only by the rule for it`, async () => {
        const subject = chained ? await travellers.delegated("desk") : {};
        for (const rule of Object.keys(RULES)) {
          const by = `only/${rule}`;
          const answer = await travellers.exchange(
            { ...subject, audience },
            { by, actor: mode === "delegation" },
          );
          if (rule !== own) {
            // A rule of the same mode for another target makes the target the reason.
            const elsewhere = RULES[rule as keyof typeof RULES].allow === mode;
            const [error, reason] = elsewhere
              ? ["invalid_target", "target_not_allowed"]
              : ["invalid_request", "no_rule"];
            await travellers.assertRefused(answer, reason, error);
            continue;
          }
          assert.equal(answer.status, 200, answer.text);
          const isGrant = issued === "grant";
          assert.deepEqual(
            [answer.body.token_type, answer.body.issued_token_type],
            isGrant ? ["N_A", JWT] : ["Bearer", ACCESS_TOKEN],
          );
          const token = String(answer.body.access_token);
          assert.equal(decodeProtectedHeader(token).typ, isGrant ? "authz-grant+jwt" : "at+jwt");
          const { act, aud } = claimsOf(token);
          assert.equal(aud, audience);
          // A delegation shows the whole chain, an impersonation no actor; the audit trail has the chain of the subject token.
          const earlier = chained ? { act: { sub: planner } } : {};
          assert.deepEqual(act, mode === "delegation" ? { sub: workload(by), ...earlier } : undefined);
          const event = await travellers.eventOf(answer);
          assert.deepEqual(event?.chain, chained ? [{ iss: ISSUER, sub: planner }] : []);
          assert.deepEqual([event?.type, event?.mode], [`token_exchange.${mode}`, mode]);
          assert.equal((event?.policy as { rule_id?: string } | undefined)?.rule_id, own);
          const granted: { jti: string; issued_token_type?: string } | undefined = event?.granted;
          assert.equal(granted?.jti, claimsOf(token).jti);
          assert.equal(granted?.issued_token_type, isGrant ? JWT : ACCESS_TOKEN);
        }
      });
    }
  }
}

test("PROD-6.2-1, IDJAG-9.2-2, RCPT-D-8 the event of a grant records its client, audience, resource and scope, and the digest of what is signed", async () => {
  const answer = await travellers.fromIdToken({ resource: STAYS, scope: "trips.read" });
  const { jti, exp } = claimsOf(grantOf(answer));
  const event = await travellers.eventOf(answer);
  const { kid: _, ...granted } = (event?.granted ?? {}) as Record<string, unknown>;
  assert.deepEqual(granted, {
    jti,
    exp,
    fingerprint: hash.sha256(grantOf(answer).split(".", 2).join(".")),
    sub: "u-1",
    aud: PARTNER,
    scope: "trips.read",
    act_depth: 0,
    parent_jti: [],
    token_type: "N_A",
    issued_token_type: ID_JAG,
  });
  assert.deepEqual(event?.requested, {
    audience: [PARTNER],
    resource: [STAYS],
    scope: "trips.read",
    requested_token_type: ID_JAG,
  });
  assert.equal((event?.client as { client_id?: string } | undefined)?.client_id, "app");
});

for (const [name, target] of [
  ["the issuer", PARTNER],
  ["an alias", "partner"],
  ["another alias", ALIAS],
] as const) {
  test(`PROD-2.6-4 a consent that names ${name} of a partner applies to each of its names, and to no other partner`, async () => {
    const sub = `by ${name}`;
    const subject_token = await travellers.user({ sub });
    const by = { by: "clerk" };
    const names = [PARTNER, "partner", ALIAS];
    for (const audience of names) {
      const answer = await travellers.exchange({ subject_token, audience }, by);
      await travellers.assertRefused(answer, "consent_missing");
    }
    await travellers.world.consent(sub, "clerk", target, ["trips.read"]);
    for (const audience of names) {
      const answer = await travellers.exchange({ subject_token, audience }, by);
      assert.deepEqual([claimsOf(grantOf(answer)).aud, answer.body.scope], [PARTNER, "trips.read"]);
    }
    for (const audience of [LEGACY, "legacy"]) {
      const answer = await travellers.exchange({ subject_token, audience }, by);
      // POLICY-D-21: a consent for another target does not change what lacks.
      await travellers.assertRefused(answer, "consent_missing");
    }
    const wider = await travellers.exchange({ subject_token, scope: "trips.book" }, by);
    await travellers.assertRefused(wider, "consent_missing");
  });
}

// --- partners -----------------------------------------------------------------------------------------------------

const named: [string, Form][] = [
  ["IDC-2.3.1-1, IDC-2.3.1-2 its issuer as audience", { audience: PARTNER }],
  ["IDC-2.3.1-1, IDC-2.3.1-2 its issuer as resource", { resource: PARTNER }],
  ["IDC-2.3.1-2, PROD-4.1v8-3 its logical name as audience", { audience: "partner" }],
  ["IDC-2.3.1-2 an alias that is a URI, as resource", { resource: ALIAS }],
  ["IDC-2.3.1-2 audience and resource of the same server", { audience: "partner", resource: PARTNER }],
  ["IDC-2.3.1-2 several names of the same server", { audience: ["partner", PARTNER], resource: [ALIAS] }],
];
for (const [name, form] of named) {
  for (const requested of [{}, { requested_token_type: JWT }]) {
    test(`${name} ${"requested_token_type" in requested ? "and a requested JWT" : "alone"}: a plain grant for its issuer`, async () => {
      const answer = await travellers.exchange({ ...form, ...requested });
      assert.equal(answer.body.issued_token_type, JWT);
      // IDC-2.3.3-2: the only audience is the issuer, whatever name was requested.
      assert.equal(claimsOf(grantOf(answer)).aud, PARTNER);
    });
  }
}

const unnamed: [string, Form, string][] = [
  ["neither", { audience: "" }, "target_missing"],
  ["two servers as audience", { audience: [PARTNER, LEGACY] }, "targets_several"],
  ["two servers, one as resource", { audience: PARTNER, resource: LEGACY }, "targets_several"],
  ["a server and an API behind it", { audience: PARTNER, resource: STAYS }, "targets_several"],
  ["an API behind a server alone", { resource: STAYS }, "target_unknown"],
  ["an extra slash", { audience: `${PARTNER}/` }, "target_unknown"],
  ["a missing slash", { audience: NARROW.slice(0, -1) }, "target_unknown"],
  ["another case", { audience: PARTNER.toUpperCase() }, "target_unknown"],
  ["its port", { audience: `${PARTNER}:443` }, "target_unknown"],
  ["its token endpoint", { audience: `${PARTNER}/token` }, "target_unknown"],
  ["an unknown server", { audience: "https://unknown.example" }, "target_unknown"],
  ["this server itself", { audience: ISSUER }, "target_unknown"],
  ["a logical name as resource", { resource: "partner" }, "resource_malformed"],
  ["a fragment", { resource: `${PARTNER}#` }, "resource_malformed"],
  ["a partner that no rule of the caller names", { audience: LEGACY }, "target_not_allowed"],
];
for (const [name, form, reason] of unnamed) {
  test(`IDC-2.3.1-1, IDC-2.3.2-1 names ${name} are refused with invalid_target`, async () => {
    const by = reason === "target_not_allowed" ? { by: "only/delegates-grant" } : {};
    await travellers.assertRefused(await travellers.exchange(form, by), reason, "invalid_target");
  });
}

const kinds: [string, Form, string | [string, string]][] = [
  ["PROD-4.1v7-4, RFC8693-2.1-14 no requested type at a partner", { audience: PARTNER }, JWT],
  [
    "PROD-4.1v8-3, RFC8693-3-6 a requested JWT at a partner",
    { audience: PARTNER, requested_token_type: JWT },
    JWT,
  ],
  [
    "PROD-1.7-3 a requested access token at a partner",
    { audience: PARTNER, requested_token_type: ACCESS_TOKEN },
    ["invalid_request", "token_type_not_for_target"],
  ],
  ["PROD-4.1v7-4 no requested type at a resource server", { audience: API }, ACCESS_TOKEN],
  [
    "PROD-4.1v7-4 a requested JWT at a resource server",
    { audience: API, requested_token_type: JWT },
    ACCESS_TOKEN,
  ],
  [
    "PROD-4.1-23 a requested ID-JAG at a resource server",
    { audience: API, requested_token_type: ID_JAG },
    ["invalid_request", "token_type_not_for_target"],
  ],
];
for (const [name, form, want] of kinds) {
  test(`${name}: ${Array.isArray(want) ? want[0] : want.replace(/.*:/, "")}`, async () => {
    const answer = await travellers.exchange(form);
    if (Array.isArray(want)) return travellers.assertRefused(answer, want[1], want[0]);
    assert.deepEqual([answer.status, answer.body.issued_token_type], [200, want], answer.text);
  });
}

test("PROD-1.7-3, PROD-0-6 client credentials for a partner are refused", async () => {
  const answer = await travellers.world.token(
    { grant_type: "client_credentials", audience: PARTNER },
    { authorization: basic("app", SECRET) },
  );
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_target"]);
  assert.equal((await travellers.eventOf(answer))?.reason, "target_is_partner");
});

// --- the response -------------------------------------------------------------------------------------------------

test("IDC-2.3.3-1, PROD-4.1v8-4, RFC8693-2.2.1-5, RFC8693-3-6, PROD-9.2-9 the complete response with a plain grant", async () => {
  const answer = await travellers.exchange({
    ...(await travellers.delegated()),
    scope: "trips.read trips.pay",
  });
  const { access_token: grant, ...rest } = answer.body;
  assert.deepEqual(rest, { issued_token_type: JWT, token_type: "N_A", expires_in: 60, scope: "trips.read" });
  assert.deepEqual([answer.status, answer.headers["content-type"]], [200, "application/json"]);
  assert.deepEqual([answer.headers["cache-control"], answer.headers.pragma], ["no-store", "no-cache"]);
  const { iat, jti, ...claims } = claimsOf(grant);
  assert.deepEqual(claims, {
    iss: ISSUER,
    sub: "u-1",
    aud: PARTNER,
    client_id: "booking-there",
    scope: "trips.read",
    act: { sub: booking, act: { sub: planner } },
    exp: Number(iat) + 60,
  });
  assert.match(String(jti), /^[\w-]{22,}$/);
  const { alg, typ, kid, ...header } = decodeProtectedHeader(String(grant));
  assert.deepEqual([alg, typ, header], ["ES256", "authz-grant+jwt", {}]);
  assert.match(String(kid), /^[\w-]{43}$/);
});

test("IDJAG-4.3.4-1, IDJAG-4.3.4-2, IDJAG-4.3.4-4, IDJAG-4.3.4-5, PROD-4.1-24, PROD-9.2-10 the complete response with an ID-JAG", async () => {
  const answer = await travellers.fromIdToken({ resource: STAYS, scope: "trips.read unknown" });
  const { access_token: grant, ...rest } = answer.body;
  const told = { issued_token_type: ID_JAG, token_type: "N_A", expires_in: 60, scope: "trips.read" };
  assert.deepEqual([answer.status, rest], [200, told], answer.text);
  assert.deepEqual([answer.headers["cache-control"], answer.headers.pragma], ["no-store", "no-cache"]);
  const { iat, jti, ...claims } = claimsOf(grant);
  // IDJAG-9.7-1, EMA-7.4.3-1: no other claims.
  assert.deepEqual(claims, {
    iss: ISSUER,
    sub: "u-1",
    aud: PARTNER,
    client_id: "app-there",
    scope: "trips.read",
    resource: STAYS,
    exp: Number(iat) + 60,
  });
  assert.match(String(jti), /^[\w-]{22,}$/);
  assert.equal(decodeProtectedHeader(String(grant)).typ, "oauth-id-jag+jwt");
});

test("RFC7521-5.1-4, IDJAG-3.1-6 two equal requests get grants with different jti, of 128 random bits", async () => {
  const subject = await travellers.delegated();
  const bits: string[] = [];
  for (let round = 0; round < 8; round += 1) {
    const jti = Buffer.from(String(claimsOf(grantOf(await travellers.exchange(subject))).jti), "base64url");
    assert.equal(jti.length, 16);
    bits.push([...jti].map((byte) => byte.toString(2).padStart(8, "0")).join(""));
  }
  for (const [at, one] of bits.entries()) {
    for (const other of bits.slice(at + 1)) {
      // Two values of 128 random bits differ in 64 of them, and in fewer than 24 once in 10^12 pairs.
      assert.ok([...one].filter((bit, index) => bit !== other[index]).length >= 24, `${one} ${other}`);
    }
  }
});

/** Our published keys. */
const jwks = async () => (await travellers.world.get("/jwks")).body as { keys: { kid: string }[] };

test("PROD-4.4-4, PROD-1.7-2, PROD-5r2-1, RFC7521-8.1-1 the published keys verify grants, with other keys than those of access tokens", async () => {
  const { keys } = await jwks();
  const tokens = [
    grantOf(await travellers.exchange()),
    grantOf(await travellers.fromIdToken()),
    grantOf(await travellers.exchange({ audience: NARROW })),
    String((await travellers.exchange({ audience: API })).body.access_token),
  ];
  for (const token of tokens) await compactVerify(token, createLocalJWKSet({ keys } as never));
  const [plain, idJag, byEdDsa, accessToken] = tokens.map((token) => decodeProtectedHeader(token));
  assert.equal(plain?.kid, idJag?.kid);
  assert.deepEqual([plain?.alg, byEdDsa?.alg, accessToken?.alg], ["ES256", "EdDSA", "ES256"]);
  assert.equal(new Set([plain, byEdDsa, accessToken].map((header) => header?.kid)).size, 3);
  for (const key of keys) {
    assert.equal(key.kid, await calculateJwkThumbprint(key as never));
    assert.ok(!("d" in key));
  }
});

// --- content ------------------------------------------------------------------------------------------------------

for (const [what, ask] of [
  [
    "a plain grant",
    async (): Promise<Answer> =>
      travellers.exchange({ subject_token: await travellers.user({ claims: SIGNED_IN }) }),
  ],
  [
    "an ID-JAG",
    async (): Promise<Answer> =>
      travellers.fromIdToken({
        subject_token: await travellers.user({ aud: "app", claims: { ...SIGNED_IN, nonce: "n-1" } }),
      }),
  ],
] as const) {
  test(`IDC-2.3.2-2, IDC-2.5-4 ${what} carries the claims in the partner's entry`, async () => {
    const claims = claimsOf(grantOf(await ask()));
    const { acr, amr, auth_time } = SIGNED_IN;
    assert.deepEqual([claims.acr, claims.amr, claims.auth_time], [acr, amr, auth_time]);
  });

  test(`IDC-2.5-2, EMA-7.4.3-1, EMA-7.4.3-2, RFC7521-8.4-1, RFC7523-7-1 ${what} carries no other claims, nor those whose values are not simple`, async () => {
    const claims = claimsOf(grantOf(await ask()));
    for (const name of ["address", "email", "email_verified", "name", "nonce", "azp", "tenant"]) {
      assert.ok(!(name in claims), name);
    }
  });
}

test("IDC-2.5-2 no claims are carried over without an entry", async () => {
  const answer = await travellers.exchange({
    audience: LEGACY,
    subject_token: await travellers.user({ claims: SIGNED_IN }),
  });
  const names = ["iss", "sub", "act", "aud", "scope", "iat", "exp", "jti"];
  assert.deepEqual(Object.keys(claimsOf(grantOf(answer))), names);
});

test("IDC-2.5-4 claims of the subject token do not replace those that we set", async () => {
  const claims = { resource: STAYS, client_id: "root", sub_id: { format: "email" } };
  const subject_token = await travellers.user({ claims });
  const grant = claimsOf(grantOf(await travellers.exchange({ subject_token })));
  for (const name of ["resource", "sub_id"]) assert.ok(!(name in grant), name);
  assert.equal(grant.client_id, "booking-there");
});

const names: [string, string, string, string | undefined][] = [
  ["IDC-2.5-3, PROD-3-4 its name by default is kept", PARTNER, "u-1", "u-1"],
  ["IDC-2.5-3, IDJAG-3.1-2 gets the prefix of the partner's entry", NARROW, "u-1", "as:u-1"],
  ["IDC-2.5-3, IDJAG-5-2 gets its name in the table", PAIRWISE, "u-1", "7f3a"],
  ["IDC-2.5-3, IDJAG-5-2 gets no grant if the table lacks it", PAIRWISE, "u-2", undefined],
];
for (const [name, audience, sub, want] of names) {
  test(`${name}: the subject of a grant`, async () => {
    const answer = await travellers.exchange({ audience, subject_token: await travellers.user({ sub }) });
    if (want === undefined) return travellers.assertRefused(answer, "subject_unknown_at_partner");
    assert.equal(claimsOf(grantOf(answer)).sub, want);
    const subject = (await travellers.eventOf(answer))?.subject as { iss: string; sub: string } | undefined;
    assert.deepEqual([subject?.iss, subject?.sub], [IDP, sub]);
  });
}

test("IDJAG-9.8-1, PROD-4.1v8-2 the partner's entry decides how much of the chain it sees; the audit trail has all of it", async () => {
  const subject = await travellers.delegated();
  const whole = await travellers.exchange(subject);
  assert.deepEqual(claimsOf(grantOf(whole)).act, { sub: booking, act: { sub: planner } });
  const current = await travellers.exchange({ ...subject, audience: NARROW });
  assert.deepEqual(claimsOf(grantOf(current)).act, { sub: booking });
  for (const answer of [whole, current]) {
    const event = await travellers.eventOf(answer);
    assert.deepEqual(event?.chain, [{ iss: ISSUER, sub: planner }]);
    assert.equal((event?.granted as { act_depth?: number } | undefined)?.act_depth, 2);
  }
});

test("RFC8693-1.1-1, PROD-3-10 impersonation names no actor in the grant, and the audit trail has all of them", async () => {
  const answer = await travellers.exchange(
    { ...(await travellers.delegated()), audience: NARROW },
    { actor: false },
  );
  const grant = grantOf(answer);
  assert.equal(claimsOf(grant).act, undefined);
  assert.ok(!JSON.stringify(claimsOf(grant)).includes("spiffe:"));
  assert.deepEqual((await travellers.eventOf(answer))?.chain, [{ iss: ISSUER, sub: planner }]);
});

test("RFC8693-4.4-2 a delegation carries may_act over into the grant, an impersonation does not", async () => {
  const mayAct = { sub: booking };
  const subject_token = await travellers.user({ claims: { may_act: mayAct } });
  const form = { subject_token, audience: NARROW };
  assert.deepEqual(claimsOf(grantOf(await travellers.exchange(form))).may_act, mayAct);
  assert.equal(claimsOf(grantOf(await travellers.exchange(form, { actor: false }))).may_act, undefined);
  const other = await travellers.exchange({ subject_token }, { by: "only/delegates-grant" });
  await travellers.assertRefused(other, "may_act_names_another");
});

const scoped: [string, Form, string | undefined][] = [
  ["IDC-2.3.1-3 the requested scope", { scope: "trips.read" }, "trips.read"],
  ["IDC-2.3.1-3 the whole scope without a request", {}, "trips.read trips.book"],
  ["IDC-2.5-1 no more than the subject token has", { scope: "trips.read trips.pay" }, "trips.read"],
  ["IDC-2.5-1 refused, if the subject token has none of it", { scope: "trips.pay" }, undefined],
];
for (const [name, form, want] of scoped) {
  test(`${name}: the scope of a grant`, async () => {
    const answer = await travellers.exchange(form);
    if (want === undefined) return travellers.assertRefused(answer, "scope_empty", "invalid_scope");
    assert.deepEqual([claimsOf(grantOf(answer)).scope, answer.body.scope], [want, want]);
  });
}

test("IDC-2.5-1 a partner's scopes limit the grant too", async () => {
  const answer = await travellers.exchange({ audience: NARROW });
  assert.equal(claimsOf(grantOf(answer)).scope, "trips.read");
});

// --- lifetime -----------------------------------------------------------------------------------------------------

const lifetimes: [string, Form, number, number][] = [
  ["a minute", {}, 900, 60],
  ["as long as the rule says", { audience: LEGACY }, 900, 300],
  ["never longer than its subject token", {}, 20, 20],
  ["never longer than its subject token, whatever the rule says", { audience: LEGACY }, 100, 100],
];
for (const [name, form, expSeconds, want] of lifetimes) {
  test(`IDC-5.5-1, EMA-7.4.2-1, PROD-8.4-1 a grant is valid ${name}`, async () => {
    const subject_token = await travellers.user({ expSeconds });
    const answer = await travellers.exchange({ ...form, subject_token });
    const { iat, exp } = claimsOf(grantOf(answer));
    const lifetime = Number(exp) - Number(iat);
    assert.ok(lifetime <= want && lifetime >= want - 2, `${lifetime}`);
    assert.equal(answer.body.expires_in, lifetime);
    assert.ok(Number(exp) <= Number(claimsOf(subject_token).exp));
  });
}

test("IDC-5.5-1 a subject token that expires at once gets no grant", async () => {
  const answer = await travellers.exchange({ subject_token: await travellers.user({ expSeconds: 3 }) });
  await travellers.assertRefused(answer, "subject_token_expires_too_soon");
});

// --- policy and client authentication -----------------------------------------------------------------------------

test("IDJAG-4.3.3-5, IDC-5.3-1, IDC-2.3.2-1 policy decides by client, subject, audience and scope", async () => {
  const by = { by: "agents/other" };
  await travellers.assertRefused(await travellers.exchange({}, by), "no_rule");
  const handed = await travellers.exchange(await travellers.delegated(), by);
  await travellers.assertRefused(handed, "not_meant_for_caller");
  const stolen = await travellers.exchange(await travellers.delegated(), { by: "only/delegates-grant" });
  await travellers.assertRefused(stolen, "not_meant_for_caller");
});

for (const [name, form, headers] of [
  ["no credentials", {}, {}],
  ["a client_id alone", { client_id: "app" }, {}],
  ["a wrong secret", {}, { authorization: basic("app", "wrong") }],
] as const) {
  test(`EMA-7.7-1, IDJAG-9.1-1, IDC-5.3-1 no grant is issued for ${name}`, async () => {
    const idToken = { subject_token: await travellers.user({ aud: "app" }), subject_token_type: ID_TOKEN };
    const wish = { ...idToken, requested_token_type: ID_JAG, audience: PARTNER };
    const answer = await travellers.world.token({ grant_type: EXCHANGE, ...wish, ...form }, headers);
    assert.equal(answer.body.error, "invalid_client");
    assert.equal(answer.body.access_token, undefined);
  });
}

// --- a grant of ours is accepted for nothing else -----------------------------------------------------------------

const bothKinds = async (): Promise<[string, string][]> => [
  ["a plain grant", grantOf(await travellers.exchange())],
  ["an ID-JAG", grantOf(await travellers.fromIdToken())],
];

test("RFC8725-3.12-v1, RFC9068-4-6, IDC-2-1 a grant of ours is refused as a subject token of any type", async () => {
  for (const [what, grant] of await bothKinds()) {
    for (const type of [ACCESS_TOKEN, JWT, ID_TOKEN]) {
      const answer = await travellers.exchange({
        subject_token: grant,
        subject_token_type: type,
        audience: API,
      });
      assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], `${what} ${type}`);
    }
  }
});

test("RFC8725-3.12-v1, RFC8693-2.1-21 a grant of ours is refused as an actor token", async () => {
  for (const [what, grant] of await bothKinds()) {
    for (const type of [ACCESS_TOKEN, JWT]) {
      const answer = await travellers.exchange({ actor_token: grant, actor_token_type: type });
      assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], `${what} ${type}`);
    }
  }
});

test("RFC8725-3.12-v1, RFC7523-3-1 a grant of ours is refused as a client assertion", async () => {
  for (const [what, grant] of await bothKinds()) {
    for (const type of ["jwt-bearer", "jwt-spiffe"]) {
      const client_assertion_type = `urn:ietf:params:oauth:client-assertion-type:${type}`;
      const form = { grant_type: "client_credentials", client_assertion_type, client_assertion: grant };
      for (const client_id of [undefined, "app", booking]) {
        const answer = await travellers.world.token({
          ...form,
          ...(client_id !== undefined && { client_id }),
        });
        assert.deepEqual([answer.status, answer.body.error], [400, "invalid_client"], `${what} ${type}`);
      }
    }
  }
});

test("RFC8725-3.12-v1, RFC9068-4-6 a grant of ours is refused at our own endpoints", async () => {
  for (const [what, grant] of await bothKinds()) {
    for (const [method, path] of [
      ["GET", "/audit/events"],
      ["GET", "/audit/checkpoints"],
      ["POST", "/policy/explain"],
      ["GET", "/consents"],
      ["GET", "/register/app"],
    ] as const) {
      const headers = { authorization: `Bearer ${grant}`, "content-type": "application/json" };
      const answer = await travellers.world.get(path, {
        method,
        headers,
        ...(method === "POST" ? { body: "{}" } : {}),
      });
      assert.deepEqual([answer.status, answer.body.error], [401, "invalid_token"], `${what} ${path}`);
    }
  }
});

test("IDJAG-9.4-1, PROD-4.1v9-4, RFC8725-3.12-v1 a grant of ours and an access token of ours are not redeemed here", async () => {
  const accessToken = String((await travellers.exchange({ audience: API })).body.access_token);
  const cases = (await bothKinds()).map(([what, grant]) => [what, grant, "grant_self_issued"] as const);
  for (const [what, assertion, reason] of [
    ...cases,
    ["an access token", accessToken, "jwt_type_refused"] as const,
  ]) {
    const form = { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion };
    const answer = await travellers.world.token(form, { authorization: basic("app", SECRET) });
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_grant"], what);
    assert.equal((await travellers.eventOf(answer))?.reason, reason);
  }
});

test("EMA-7.3-2 a grant or token in a URL is refused", async () => {
  const grant = grantOf(await travellers.exchange());
  for (const name of ["assertion", "subject_token", "actor_token"]) {
    const answer = await travellers.world.get(`/token?${name}=${grant}`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "grant_type=client_credentials",
    });
    assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], name);
  }
});

test("EMA-7.4.2-3, AUDIT-D-3 log and audit trail contain neither a grant nor the token that it was issued for", async (t) => {
  const { world, delegated, exchange } = await openToTravellers(makeWorld);
  t.after(() => world.stop());
  const subject = await delegated();
  const svid = await world.svid("agents/booking");
  const grant = grantOf(await exchange({ ...subject, actor_token: svid, ...world.as(svid) }));
  const written = JSON.stringify(await world.events()) + world.server.lines.join("\n");
  assert.ok(written.includes(String(claimsOf(grant).jti)));
  for (const token of [grant, String(subject.subject_token), svid]) {
    const [, , signature = ""] = token.split(".");
    assert.ok(!written.includes(signature));
  }
});

// --- metadata and explanations ------------------------------------------------------------------------------------

test("IDC-3-1, IDC-5.1-1, IDJAG-7.1-1, PROD-4.4-12 the metadata list the requestable types of grants and the authentication methods", async () => {
  const { body } = await travellers.world.get("/.well-known/oauth-authorization-server");
  assert.deepEqual(body.identity_chaining_requested_token_types_supported, [JWT, ID_JAG]);
  assert.ok((body.grant_types_supported as string[]).includes(EXCHANGE));
  const methods = body.token_endpoint_auth_methods_supported as string[];
  for (const one of ["private_key_jwt", "tls_client_auth", "spiffe_jwt"])
    assert.ok(methods.includes(one), one);
  // Nothing about partners is published.
  assert.ok(!JSON.stringify(body).includes("partner"));
});

const wishes: [string, Form, object][] = [
  ["a plain grant", {}, {}],
  ["a plain grant by an alias", { audience: ALIAS }, { target: ALIAS }],
  ["a requested JWT", { requested_token_type: JWT }, { issues: "jwt" }],
  ["an access token at a partner", { requested_token_type: ACCESS_TOKEN }, { issues: "access_token" }],
  ["an ID-JAG for a JWT", { requested_token_type: ID_JAG }, { issues: "id-jag" }],
  ["a partner that sees only the current actor", { audience: NARROW }, { target: NARROW }],
  ["a subject with a name in a table", { audience: PAIRWISE }, { target: PAIRWISE }],
  ["a longer lifetime", { audience: LEGACY }, { target: LEGACY }],
  ["an unavailable scope", { scope: "trips.pay" }, { scope: "trips.pay" }],
  ["an unknown server", { audience: "nowhere" }, { target: "nowhere" }],
];
for (const [name, form, question] of wishes) {
  for (const actor of [true, false]) {
    test(`PROD-2.6-1 the explanation of ${name} by ${actor ? "delegation" : "impersonation"} agrees with the answer`, async () => {
      const subject_token = await travellers.user({ expSeconds: 900, claims: SIGNED_IN });
      const answer = await travellers.exchange({ ...form, subject_token }, { actor });
      const subjectClaims = claimsOf(subject_token);
      const base = { client: booking, ...(actor && { actor: booking }), subjectClaims, target: PARTNER };
      await travellers.assertExplained(answer, { ...base, ...question });
    });
  }
}
