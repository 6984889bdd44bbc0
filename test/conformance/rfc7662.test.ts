/** POST /introspect over TLS: which callers may ask about which tokens, and that nothing else is told. */
import assert from "node:assert/strict";
import { createPrivateKey, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { mintX509Svid } from "../../scripts/dev-pki.ts";
import { type Answer, basic, postForm } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE } from "../../src/spec/spiffe/client-auth.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  type Certificate,
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

const SECRET = "introspection-introspection-12345";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const API = "https://api.example";
const NARROW = "https://narrow.example";
const OTHER = "https://other.example";
const PARTNER = "https://as.partner.example";
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read", "trips.book"];
const signer = generateKeyPairSync("ec", { namedCurve: "P-256" });

const forUsers = {
  allow: "delegation",
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  consent: "record",
  scopes,
};
const CONFIGURATION = {
  clients: {
    gate: { method: "client_secret_basic", secrets: [SECRET] },
    poster: { method: "client_secret_post", secrets: [SECRET] },
    signer: {
      method: "private_key_jwt",
      jwks: { keys: [{ ...signer.publicKey.export({ format: "jwk" }), kid: "s1", alg: "ES256" }] },
    },
    watcher: { method: "client_secret_basic", secrets: [SECRET] },
    guest: { method: "client_secret_basic", secrets: [SECRET] },
    batch: { method: "client_secret_basic", secrets: [SECRET], workload: workload("api/batch") },
  },
  targets: [
    { names: ["booking-agent"], owners: [booking], scopes },
    {
      names: [API, "api"],
      owners: [workload("api/*")],
      introspectors: ["gate", "poster", "signer", "watcher"],
      scopes,
    },
    { names: [NARROW], introspectors: ["gate"], chain: "current", scopes },
    { names: [OTHER], introspectors: ["guest"], scopes },
    { kind: "partner", issuer: PARTNER, scopes, clients: { [planner]: "planner-there" } },
  ],
  policies: [
    { id: "cc", allow: "client_credentials", clients: ["guest"], targets: [API, OTHER], scopes },
    { id: "to-booking", ...forUsers, actors: [planner], targets: ["booking-agent"] },
    { id: "to-api", ...forUsers, actors: [planner, booking], targets: [API, NARROW, OTHER] },
    { id: "abroad", ...forUsers, issues: "grant", actors: [planner], targets: [PARTNER] },
  ],
  drafts: [SPIFFE, CHAINING, ID_JAG],
};

let world: World;
before(async () => {
  world = await makeWorld(CONFIGURATION, { clock: true });
  for (const target of ["booking-agent", API, NARROW, OTHER, PARTNER]) {
    await world.consent("alice", "agents/planner", target, scopes);
    await world.consent("alice", "agents/booking", target, scopes);
  }
});
after(() => stop(world));

// --- asking -------------------------------------------------------------------------------------------------------

type Asking = { headers?: Record<string, string>; certificate?: Certificate };

/** A question by whatever the form and the headers authenticate. */
const ask = (form: Form | string, { headers = {}, certificate = {} }: Asking = {}): Promise<Answer> =>
  postForm(`${ISSUER}/introspect`, form, {
    ca: world.ca,
    headers,
    ...certificate,
    connect: { host: "127.0.0.1", port: world.server.port },
  });

const by = (client: string): Asking => ({ headers: { authorization: basic(client, SECRET) } });

async function exchange(agent: string, audience: string, subject?: string): Promise<string> {
  const svid = await world.svid(agent);
  const user = () =>
    world.idp.mintUserToken({ sub: "alice", aud: ISSUER, scope: scopes.join(" "), expSeconds: 7200 });
  const answer = await world.token({
    grant_type: EXCHANGE,
    subject_token: subject ?? (await user()),
    subject_token_type: subject === undefined ? JWT : ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience,
    ...world.as(svid),
  });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

async function credentials(audience: string): Promise<string> {
  const answer = await world.token({ grant_type: "client_credentials", audience }, by("guest").headers);
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** A token of the second hop: booking acts for alice, and planner before it. */
const secondHop = async (audience: string): Promise<string> =>
  exchange("agents/booking", audience, await exchange("agents/planner", "booking-agent"));

const INACTIVE = [200, '{"active":false}', "application/json", "no-store"];
const shapeOf = ({ status, text, headers }: Answer) => [
  status,
  text,
  headers["content-type"],
  headers["cache-control"],
];

// --- what is answered ---------------------------------------------------------------------------------------------

test("RFC7662-2.2-1, RFC7662-2.2-2, RFC7662-4-14, RFC7662-4-13, RFC7662-4-15, RFC8693-4.1-8 an active token is answered with its claims, and the chain of actors as issued", async () => {
  const token = await secondHop(API);
  const answer = await ask({ token }, by("gate"));
  assert.deepEqual([answer.status, answer.headers["cache-control"]], [200, "no-store"]);
  const { jti, iat, exp } = claimsOf(token);
  assert.deepEqual(answer.body, {
    active: true,
    token_type: "Bearer",
    iss: ISSUER,
    sub: "alice",
    aud: API,
    client_id: booking,
    scope: scopes.join(" "),
    act: { sub: booking, act: { sub: planner } },
    iat,
    exp,
    jti,
  });
  assert.ok(Number.isInteger(exp) && Number.isInteger(iat));
});

test("RFC7662-5-1, RFC7662-2.2-5, RFC9701-5-5 a target that may see the current actor only learns no more by asking", async () => {
  const { body } = await ask({ token: await secondHop(NARROW) }, by("gate"));
  assert.deepEqual([body.active, body.act], [true, { sub: booking }]);
});

test("RFC7662-2.1-3, RFC7662-2.1-4, RFC7662-2.1-5 the hint has no effect, whatever it says", async () => {
  const token = await credentials(API);
  for (const token_type_hint of ["access_token", "refresh_token", "no such type"]) {
    assert.equal((await ask({ token, token_type_hint }, by("gate"))).body.active, true, token_type_hint);
  }
});

// --- who may ask --------------------------------------------------------------------------------------------------

test("RFC7662-2.1-8, RFC7662-4-7, RFC7662-4-8, RFC8705-1-1, SPCA-4-4 owners and introspectors ask with every authentication method", async () => {
  const token = await credentials("api");
  const aud = ISSUER;
  const x509 = await mintX509Svid(world.trustDomain, workload("api/two"));
  const svid = await world.svid("api/one");
  const certificate = { key: x509.keyPem, cert: x509.certPem };
  const methods: [string, Form, Asking][] = [
    ["client_secret_basic", {}, by("gate")],
    ["client_secret_post", { client_id: "poster", client_secret: SECRET }, {}],
    ["private_key_jwt", assertion({ aud }), {}],
    ["spiffe_jwt", world.as(svid), {}],
    ["spiffe_x509", {}, { certificate }],
    ["a client that the operator gave a workload", {}, by("batch")],
  ];
  for (const [name, form, asking] of methods) {
    const answer = await ask({ token, ...form }, asking);
    assert.deepEqual([answer.status, answer.body.active], [200, true], `${name}: ${answer.text}`);
  }
});

/** A client assertion of the client `signer`. */
function assertion(change: object = {}): Form {
  const seconds = Math.floor(world.nowMs() / 1000);
  const claims = {
    iss: "signer",
    sub: "signer",
    aud: ISSUER,
    iat: seconds,
    exp: seconds + 60,
    jti: randomUUID(),
  };
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const input = `${encode({ alg: "ES256", kid: "s1" })}.${encode({ ...claims, ...change })}`;
  const key = {
    key: createPrivateKey(signer.privateKey.export({ type: "pkcs8", format: "pem" })),
    dsaEncoding: "ieee-p1363",
  } as const;
  const signature = sign("sha256", Buffer.from(input), key).toString("base64url");
  return { client_assertion_type: JWT_BEARER, client_assertion: `${input}.${signature}` };
}

test("HTTP-D-15, RFC7662-2.2-6, RFC7662-4-6, RFC7662-4-8 about a token for a target of others, the answer is that it is not active", async () => {
  const [mine, others] = [await credentials(API), await credentials(OTHER)];
  const svid = await world.svid("apis/one");
  assert.deepEqual(shapeOf(await ask({ token: others }, by("gate"))), INACTIVE);
  assert.deepEqual(
    shapeOf(await ask({ token: mine }, by("guest"))),
    INACTIVE,
    "the client that it was issued to",
  );
  assert.deepEqual(
    shapeOf(await ask({ token: mine, ...world.as(svid) })),
    INACTIVE,
    "no segment of the prefix",
  );
  assert.equal((await ask({ token: others }, by("guest"))).body.active, true);
});

for (const [name, form, asking] of [
  ["without credentials", {}, {}],
  ["with a wrong secret", {}, { headers: { authorization: basic("gate", "wrong") } }],
  ["with a wrong secret in the body", { client_id: "poster", client_secret: "wrong" }, {}],
  ["with an access token", {}, { headers: { authorization: "Bearer e30.e30.AA" } }],
] as const) {
  test(`PROD-7.5-2, RFC7662-2.3-1 a caller ${name} gets 401 and a challenge`, async () => {
    const token = await credentials(API);
    const answer = await ask({ token, ...form }, asking);
    assert.deepEqual([answer.status, answer.body.error], [401, "invalid_client"]);
    assert.match(answer.headers["www-authenticate"] ?? "", /^Basic realm=/);
    assert.equal(answer.headers["cache-control"], "no-store");
  });
}

test("RFC7523-3-14 a client assertion that is valid once is spent by a question", async () => {
  const token = await credentials(API);
  const form = { token, ...assertion() };
  assert.equal((await ask(form)).body.active, true);
  const again = await ask(form);
  assert.deepEqual([again.status, again.body.error], [401, "invalid_client"]);
  const token2 = await world.token({ grant_type: "client_credentials", ...form });
  assert.equal(token2.body.error, "invalid_client");
  const types = (await world.events()).map(({ type, reason }) => `${type} ${reason}`);
  assert.ok(types.includes("client.authenticated assertion_spent"));
  assert.ok(types.includes("replay.detected assertion_replayed"));
});

for (const [id, path] of [
  ["RFC7662-4-16", "/introspect"],
  ["RFC7009-5-2", "/revoke"],
] as const) {
  test(`${id} a caller of ${path} has a rate of its own, beyond which it has to wait`, async (t) => {
    const service = await makeService({ ...CONFIGURATION, limits: { requestsPerSecondByClient: 3 } });
    t.after(() => service.stop());
    const headers = { "content-type": "application/x-www-form-urlencoded", ...by("gate").headers };
    const sent = { method: "POST", headers, body: "token=unknown" };
    const answers = await Promise.all(Array.from({ length: 12 }, () => service.get(path, sent)));
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length >= 6, String(refused.length));
    for (const { headers } of refused) assert.match(headers["retry-after"] ?? "", /^\d+$/);
  });
}

// --- what is not active -------------------------------------------------------------------------------------------

/** The same token with another header or other claims, under a signature of no key of ours. */
function altered(token: string, header: object, claims: object = {}): string {
  const [head = "", body = "", signature] = token.split(".");
  const change = (part: string, by: object): string => {
    const read = JSON.parse(Buffer.from(part, "base64url").toString());
    return Buffer.from(JSON.stringify({ ...read, ...by })).toString("base64url");
  };
  return `${change(head, header)}.${change(body, claims)}.${signature}`;
}

/** With the dot before it. */
const signatureOf = (token: string): string => token.slice(token.lastIndexOf("."));

test("RFC7662-2.2-6, RFC7662-2.3-3, RFC7662-4-1, RFC7662-4-5, RFC7662-4-12, RFC7662-2.1-7 everything that is not an active token gets the same answer", async () => {
  const token = await credentials(API);
  const user = await world.idp.mintUserToken({ sub: "alice", aud: API, scope: "trips.read" });
  const svid = await world.svid("agents/planner");
  const grant = await exchange("agents/planner", PARTNER);
  const cases: Record<string, string> = {
    "no JWT": "unknown",
    "an encrypted JWT": "e30.e30.e30.e30.e30",
    "a token of another issuer": user,
    "a JWT-SVID": svid,
    "a grant for a partner": grant,
    "another signature": altered(token, {}, { scope: "trips.book" }),
    "the signature of another token":
      token.slice(0, token.lastIndexOf(".")) + signatureOf(await credentials(API)),
    "another type": altered(token, { typ: "JWT" }),
    "an unknown key": altered(token, { kid: "unknown" }),
    "no signature": altered(token, { alg: "none" }),
    "a token that is too large": `${token.slice(0, -10)}${"A".repeat(20_000)}`,
    "a space behind it": `${token} `,
  };
  for (const [name, one] of Object.entries(cases)) {
    assert.deepEqual(shapeOf(await ask({ token: one }, by("gate"))), INACTIVE, name);
  }
  assert.equal((await ask({ token }, by("gate"))).body.active, true);
});

test("RFC7662-4-2 an expired token is not active", async () => {
  const token = await credentials(API);
  // Of 300 s; time passes on this machine too.
  world.pass(297);
  assert.equal((await ask({ token }, by("gate"))).body.active, true);
  world.pass(4);
  assert.deepEqual(shapeOf(await ask({ token }, by("gate"))), INACTIVE);
});

test("RFC7662-4-1 what a changed configuration no longer covers is not active from the reload on, and is again when it does", async () => {
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  const [mine, other] = [await credentials(API), await secondHop(API)];
  const withoutRule = config.policies.filter(({ id }: { id: string }) => id !== "cc");
  for (const [change, wants] of [
    [{ policies: withoutRule }, [false, true]],
    [{ clients: { gate: config.clients.gate } }, [false, true]],
    [{ trustDomains: {} }, [true, false]],
    [{ trustedIssuers: {} }, [true, false]],
    [{}, [true, true]],
  ] as const) {
    writeFileSync(world.configFile, JSON.stringify({ ...config, ...change }));
    assert.deepEqual(await world.server.reload(), []);
    const told = [await ask({ token: mine }, by("gate")), await ask({ token: other }, by("gate"))];
    assert.deepEqual(
      told.map(({ body }) => body.active),
      wants,
      Object.keys(change).join(),
    );
  }
});

// --- malformed questions ------------------------------------------------------------------------------------------

test("RFC7662-2.1-1, RFC7662-2.1-2, RFC7662-4-11 the question is a form in a POST with one token", async () => {
  const token = await credentials(API);
  const wrong: [string, Form | string, Asking][] = [
    ["no token", {}, by("gate")],
    ["an empty token", { token: "" }, by("gate")],
    ["two tokens", { token: [token, token] }, by("gate")],
    [
      "JSON",
      JSON.stringify({ token }),
      { headers: { ...by("gate").headers, "content-type": "application/json" } },
    ],
  ];
  for (const [name, form, asking] of wrong) {
    const { status, body } = await ask(form, asking);
    assert.deepEqual([status, body.error], [400, "invalid_request"], name);
  }
  const { status, headers } = await world.get("/introspect", by("gate"));
  assert.deepEqual([status, headers.allow], [405, "POST"]);
  const inUri = await world.get(`/introspect?token=${token}`, {
    method: "POST",
    body: `token=${token}`,
    headers: { ...by("gate").headers, "content-type": "application/x-www-form-urlencoded" },
  });
  assert.deepEqual([inUri.status, inUri.body.error], [400, "invalid_request"]);
});

// --- the audit trail ----------------------------------------------------------------------------------------------

test("HTTP-D-16, AUDIT-D-2, AUDIT-D-3, AUDIT-D-9 questions are counted by caller, target and outcome, and recorded each minute", async () => {
  const token = await credentials(API);
  const counted = async () => {
    const events = await world.events();
    return events.filter(({ type, client }) => type === "token.introspected" && isWatcher(client));
  };
  const questions = [token, token, await credentials(OTHER), "unknown"];
  const answers: Answer[] = [];
  for (const one of questions) answers.push(await ask({ token: one }, by("watcher")));
  assert.deepEqual(await counted(), [], "no event for each");
  world.pass(61);
  await until(async () => (await counted()).length === 3, "the counts of the minute");
  const client = { client_id: "watcher", auth_method: "client_secret_basic", source: "configuration" };
  const about = (target: string) => ({ audience: [target], resource: [] });
  const [first, second, third, fourth] = answers.map(({ headers }) => headers["x-request-id"]);
  assert.deepEqual(
    (await counted()).map(({ outcome, reason, count, client, requested, detail }) => {
      const { requests } = detail as { requests: unknown };
      return { outcome, reason, count, client, requested, requests };
    }),
    [
      {
        outcome: "allow",
        reason: "token_active",
        count: 2,
        client,
        requested: about(API),
        requests: [first, second],
      },
      {
        outcome: "deny",
        reason: "target_not_callers",
        count: 1,
        client,
        requested: about(OTHER),
        requests: [third],
      },
      {
        outcome: "deny",
        reason: "jws_not_compact",
        count: 1,
        client,
        requested: undefined,
        requests: [fourth],
      },
    ],
  );
  assert.ok(!JSON.stringify(await counted()).includes(token.split(".")[1] ?? ""));
});

const isWatcher = (client: unknown): boolean => (client as { client_id: string }).client_id === "watcher";
