/**
 * Trusted issuers: key sets that are discovered by the issuer's metadata, and issuers and subjects that are no longer
 * trusted, which takes effect at once in every role, also for tokens that were issued before.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../scripts/command-line.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { type Publisher, startPublisher } from "../support/documents.ts";
import { type Claims, type Foreign, makeForeign } from "../support/foreign.ts";
import { stop } from "../support/stop.ts";
import { LOOPBACK } from "../support/web.ts";
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

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const SECRET = "the-secret-of-all-clients-12345678";
const API = "https://api.example";
const FIRST = "https://first.example";
const SECOND = "https://second.example";
const planner = workload("agents/planner");
const scopes = ["read"];
const drafts = [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT];

const asked = { consent: "implied", acknowledge: "subjects-not-asked" };
const everybody = (issuers: readonly string[]) => ({ subjects: { issuers }, ...asked, scopes });

let publisher: Publisher;

before(async () => {
  publisher = await startPublisher();
  await openMany();
  await openWorld();
});

after(() => stop(many, world, publisher));

const page = (path: string, body: object | string, status = 200): unknown =>
  publisher.pages.set(path, { status, body: typeof body === "string" ? body : JSON.stringify(body) });

const ca = { file: "publisher.pem" };
const reach = { ca, privateNetworks: LOOPBACK };

async function eventOf(world: World, answer: Answer) {
  const id = answer.headers["x-request-id"];
  return (await world.events()).find(({ request }) => (request as { id?: string } | undefined)?.id === id);
}

// --- discovered keys ----------------------------------------------------------------------------------------------

const WELL_KNOWN = "/.well-known";
const OAUTH = `${WELL_KNOWN}/oauth-authorization-server`;
const OPENID = `${WELL_KNOWN}/openid-configuration`;

/**
 * For an issuer with this path: the documents by path, each a text or the differences from valid metadata of the
 * issuer, and whether its keys are found.
 */
type Found = [
  name: string,
  path: string,
  places: Record<string, string | object>,
  isFound: boolean | "later",
];

const good = {};
const another = { issuer: "https://other.example" };
const keysAt = (path: string, jwks_uri: unknown) => ({ [OAUTH + path]: { jwks_uri } });

const discoveries: Found[] = [
  ["RFC8414-3-1, RFC8414-3.3-1, RFC8414-2.1-4 an issuer without a path", "", { [OAUTH]: good }, true],
  ["RFC8414-3-1 an issuer with a path, after the well-known path", "/t1", { [`${OAUTH}/t1`]: good }, true],
  ["RFC8414-3.1-2 an issuer with a final slash", "/t2/", { [`${OAUTH}/t2`]: good }, true],
  ["RFC8414-3-3 an OpenID provider", "/t3", { [`${OPENID}/t3`]: good }, true],
  [
    "RFC8414-3-3 an OpenID provider with the well-known path after its own",
    "/t4",
    { [`/t4${OPENID}`]: good },
    true,
  ],
  ["RFC8414-3-1 no metadata", "/t5", {}, false],
  ["RFC8414-3-1 metadata at the path of another issuer", "/t6", { [`${OAUTH}/t6/x`]: good }, false],
  [
    "RFC8414-3.3-2, WAG-6.1-1 metadata of another issuer",
    "/t7",
    { [`${OAUTH}/t7`]: another, [`${OPENID}/t7`]: good },
    false,
  ],
  ["RFC8414-3.2-1 metadata that are not an object", "/t8", { [`${OAUTH}/t8`]: "[]" }, false],
  ["RFC8414-3.2-1 metadata that are not JSON", "/t9", { [`${OAUTH}/t9`]: "<html>" }, false],
  ["RFC8414-2-4 no jwks_uri", "/k1", keysAt("/k1", undefined), false],
  ["RFC8414-2-4, EMA-7.3-1 a jwks_uri without TLS", "/k2", keysAt("/k2", "http://localhost/jwks"), false],
  ["RFC8414-2-4 a list as jwks_uri", "/k3", keysAt("/k3", ["https://localhost/jwks"]), false],
  [
    "EMA-7.4.1-3 a jwks_uri at which no server listens",
    "/k4",
    keysAt("/k4", "https://localhost:1/jwks"),
    "later",
  ],
  ["EMA-7.4.1-3 a private network that is not permitted", "/closed", { [`${OAUTH}/closed`]: good }, false],
  [
    "RFC8414-6.1-2, EMA-7.3-1, WIF-S-2 a server with a certificate of another authority",
    "/unproven",
    { [`${OAUTH}/unproven`]: good },
    false,
  ],
];

/** For an issuer with this path: the options of its connection, if they differ from those of the others. */
const reaches: Record<string, object> = {
  "/closed": { ca },
  "/unproven": { ca: { file: "tls/ca.pem" }, privateNetworks: LOOPBACK },
};

let many: World;
let issuers: Record<string, Foreign>;

async function openMany(): Promise<void> {
  const own = (path: string): object => ({
    issuer: publisher.origin + path,
    jwks_uri: `${publisher.origin}/jwks`,
    // RFC8414-2.1-4: ignored.
    signed_metadata: "x",
  });
  issuers = {};
  const signer = await makeForeign(publisher.origin);
  page("/jwks", signer.jwks);
  for (const [, path, places] of discoveries) {
    issuers[path] = { ...signer, issuer: publisher.origin + path };
    for (const [place, content] of Object.entries(places)) {
      page(place, typeof content === "string" ? content : { ...own(path), ...content });
    }
  }
  const names = Object.values(issuers).map(({ issuer }) => issuer);
  many = await makeWorld(
    {
      trustedIssuers: Object.fromEntries(
        Object.entries(issuers).map(([path, { issuer }]) => [
          issuer,
          {
            keys: { discover: true, ...(reaches[path] ?? reach) },
            subjects: { prefix: `${path.replaceAll("/", ".")}:` },
          },
        ]),
      ),
      targets: [{ names: [API], scopes }],
      policies: [
        {
          id: "all",
          allow: "delegation",
          actors: [planner],
          ...everybody(names),
          subjectToken: { audiences: [ISSUER] },
          targets: [API],
        },
      ],
    },
    { files: { "publisher.pem": publisher.ca } },
  );
}

async function exchangeOf(path: string): Promise<Answer> {
  const signer = issuers[path] ?? assert.fail(path);
  const svid = await many.svid("agents/planner");
  return many.token({
    grant_type: EXCHANGE,
    audience: API,
    actor_token: svid,
    actor_token_type: JWT,
    ...many.as(svid),
    subject_token: await signer.grant({ iss: signer.issuer, scope: "read" }, { typ: "JWT" }),
    subject_token_type: JWT,
  });
}

async function assertFound(path: string, isFound: boolean | "later"): Promise<void> {
  const answer = await exchangeOf(path);
  if (isFound === "later") return assert.equal(answer.status, 503, answer.text);
  if (isFound) return assert.equal(answer.status, 200, answer.text);
  assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], answer.text);
  assert.equal((await eventOf(many, answer))?.reason, "subject_issuer_source_unavailable");
}

for (const [name, path, , isFound] of discoveries) {
  test(`${name}: its keys are ${isFound === true ? "found" : "not used"}`, () => assertFound(path, isFound));
}

test("EMA-7.4.1-3, RFC8414-3.3-2 nothing is fetched from a network that is not permitted, nor after invalid metadata", () => {
  const countOf = (place: string): number => publisher.requests(place).length;
  assert.equal(countOf(`${OAUTH}/closed`), 0);
  assert.ok(countOf(`${OAUTH}/t7`) > 0);
  assert.equal(countOf(`${OPENID}/t7`), 0);
});

test("PROD-5r2-1, PROD-1.7-2, RFC8414-3-1 the issuer alone is sufficient to redeem grants of another instance", async (t) => {
  const [port = 0] = await freePorts(1);
  const host = `localhost:${port}`;
  const listen = {
    host: "127.0.0.1",
    port,
    tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
  };
  const here = await makeWorld(
    {
      listen,
      targets: [{ kind: "partner", issuer: ISSUER, scopes, clients: { [planner]: "guest" } }],
      policies: [
        {
          id: "abroad",
          allow: "delegation",
          issues: "grant",
          actors: [planner],
          ...everybody([IDP]),
          subjectToken: { audiences: [`https://${host}`] },
          targets: [ISSUER],
        },
      ],
      drafts,
    },
    { host },
  );
  t.after(() => here.stop());
  const there = await makeWorld(
    {
      trustedIssuers: {
        [`https://${host}`]: {
          keys: { discover: true, ca: { file: "here.pem" }, privateNetworks: LOOPBACK },
          acceptAs: [],
          subjects: "keep",
          grants: {},
        },
      },
      clients: { guest: { method: "client_secret_basic", secrets: [SECRET] } },
      targets: [{ names: [API], scopes }],
      policies: [
        {
          id: "guests",
          allow: "redemption",
          clients: ["guest"],
          ...everybody([`https://${host}`]),
          targets: [API],
        },
      ],
      drafts,
    },
    { files: { "here.pem": here.ca } },
  );
  t.after(() => there.stop());
  const svid = await here.svid("agents/planner", { aud: `https://${host}` });
  const granted = await here.token({
    grant_type: EXCHANGE,
    audience: ISSUER,
    actor_token: svid,
    actor_token_type: JWT,
    ...here.as(svid),
    subject_token: await here.idp.mintUserToken({ sub: "u-1", aud: `https://${host}`, scope: "read" }),
    subject_token_type: JWT,
  });
  assert.equal(granted.status, 200, granted.text);
  const form = { grant_type: JWT_BEARER, assertion: String(granted.body.access_token) };
  const answer = await there.token(form, { authorization: basic("guest", SECRET) });
  assert.equal(answer.status, 200, answer.text);
  const { sub, act } = claimsOf(answer.body.access_token);
  assert.deepEqual([sub, act], ["u-1", { sub: planner, iss: `https://${host}` }]);
});

// --- trust that is removed ----------------------------------------------------------------------------------------

/** Everything that an issuer can be trusted for. */
const trusted = (name: string, subjects: unknown): object => ({
  keys: { url: `${publisher.origin}/${name}`, ...reach },
  acceptAs: ["jwt", "id_token"],
  subjects,
  grants: {},
  statements: true,
  vouches: {},
});

const vouched = (issuer: string): object => ({
  method: "private_key_jwt",
  vouchedBy: ["u-1", "u-2"].map((sub) => ({ issuer, claims: { sub } })),
});

let world: World;
let first: Foreign;
let second: Foreign;
let desk: string;

async function openWorld(): Promise<void> {
  [first, second] = await Promise.all([makeForeign(FIRST), makeForeign(SECOND)]);
  page("/first", first.jwks);
  page("/second", second.jwks);
  world = await makeWorld(
    {
      trustedIssuers: { [FIRST]: trusted("first", "keep"), [SECOND]: trusted("second", { prefix: "s:" }) },
      consents: { issuers: { [FIRST]: { clients: ["page"] }, [SECOND]: { clients: ["page"] } } },
      clients: {
        "job-of-first": vouched(FIRST),
        "job-of-second": vouched(SECOND),
        desk: { method: "client_secret_basic", secrets: [SECRET] },
      },
      registration: { mode: "open", open: { scopes } },
      targets: [
        { names: ["planner-agent"], owners: [planner], scopes },
        { names: [API], scopes },
      ],
      policies: [
        {
          id: "exchange",
          allow: "delegation",
          actors: [planner],
          ...everybody([FIRST, SECOND]),
          subjectToken: { audiences: [ISSUER, "self"] },
          targets: ["planner-agent", API],
        },
        {
          id: "as-user",
          allow: "impersonation",
          actors: [planner],
          ...everybody([FIRST, SECOND]),
          subjectToken: { audiences: [ISSUER] },
          targets: [`${ISSUER}/api`],
          scopes: ["policy:explain"],
        },
        {
          id: "guests",
          allow: "redemption",
          actors: [planner],
          ...everybody([FIRST, SECOND]),
          targets: ["planner-agent"],
        },
        {
          id: "jobs",
          allow: "client_credentials",
          clients: ["job-of-first", "job-of-second"],
          targets: [API],
          scopes,
        },
        {
          id: "desk",
          allow: "client_credentials",
          clients: ["desk"],
          targets: [`${ISSUER}/api`],
          scopes: ["policy:explain"],
        },
      ],
      drafts,
    },
    { files: { "publisher.pem": publisher.ca } },
  );
  const authorization = basic("desk", SECRET);
  const answer = await world.token({ grant_type: "client_credentials" }, { authorization });
  desk = String(answer.body.access_token);
}

/** Reloads the server with other settings of the first issuer, or without it. */
async function reload(change: object | undefined): Promise<void> {
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  config.trustedIssuers[FIRST] = change && { ...trusted("first", "keep"), ...change };
  config.consents.issuers[FIRST] = change && { clients: ["page"] };
  config.clients["job-of-first"] = change && vouched(FIRST);
  writeFileSync(world.configFile, JSON.stringify(config));
  assert.deepEqual(await world.server.reload(), []);
}

async function byPlanner(form: Form): Promise<Answer> {
  const svid = await world.svid("agents/planner");
  const actor = form.grant_type === EXCHANGE && { actor_token: svid, actor_token_type: JWT };
  return world.token({ ...actor, ...form, ...world.as(svid) });
}

const usual = (sub: string): Claims => ({ sub, scope: "read policy:explain" });
const subjectToken = (from: Foreign, sub: string, claims: Claims = {}): Promise<string> =>
  from.grant({ ...usual(sub), ...claims }, { typ: "JWT" });

const exchange = (subject_token: string, subject_token_type: string, audience = API): Promise<Answer> =>
  byPlanner({ grant_type: EXCHANGE, subject_token, subject_token_type, audience });

const byVoucher = (client_assertion: string): Promise<Answer> => {
  const client = { client_assertion_type: BY_ASSERTION, client_assertion };
  return world.token({ grant_type: "client_credentials", ...client });
};

const redeem = async (from: Foreign, sub: string): Promise<Answer> =>
  byPlanner({ grant_type: JWT_BEARER, assertion: await from.grant({ ...usual(sub), client_id: planner }) });

const bearer = (path: string, token: string, body?: object): Promise<Answer> =>
  world.get(path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const tokenOf = ({ status, body, text }: Answer): string => {
  assert.equal(status, 200, text);
  return String(body.access_token);
};

/** Every role in which a token about a subject can be accepted, and whether it is. */
async function tryAll(from: Foreign, sub: string): Promise<Record<string, boolean>> {
  const isGood = ({ status }: Answer): boolean => status === 200;
  const subjectClaims = claimsOf(await subjectToken(from, sub));
  const question = { client: planner, actor: planner, target: API, subjectClaims };
  return {
    "a subject token": isGood(await exchange(await subjectToken(from, sub), JWT)),
    "an ID token": isGood(await exchange(await subjectToken(from, sub), ID_TOKEN)),
    "a grant": isGood(await redeem(from, sub)),
    "a client that it vouches for": isGood(await byVoucher(await subjectToken(from, sub))),
    "a user at the consent endpoint": isGood(
      await bearer("/consents", await subjectToken(from, sub, { aud: `${ISSUER}/consents`, azp: "page" })),
    ),
    "an explanation": (await bearer("/policy/explain", desk, question)).body.decision === "allow",
  };
}

/** The role that does not depend on a subject. */
async function tryStatement(from: Foreign): Promise<Record<string, boolean>> {
  const software = { software_id: "job", grant_types: ["client_credentials"], scope: "read" };
  const software_statement = await from.sign({ iss: from.issuer, ...software }, { typ: "JWT" });
  const registered = await world.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ software_statement }),
  });
  return { "a statement": registered.status === 201 };
}

/** The explanation for a token of ours whose subject has this origin. */
async function explainOwn(token: string, origin: object): Promise<Record<string, unknown>> {
  const question = { client: planner, actor: planner, target: API, subjectClaims: claimsOf(token), origin };
  return (await bearer("/policy/explain", desk, question)).body;
}

/** Issues tokens for tokens of this issuer; returns a function that tells which are still accepted. */
async function makeTokens(from: Foreign, sub: string): Promise<() => Promise<Record<string, boolean>>> {
  const exchanged = tokenOf(await exchange(await subjectToken(from, sub), JWT, "planner-agent"));
  const twice = tokenOf(await exchange(exchanged, ACCESS_TOKEN, "planner-agent"));
  const redeemed = tokenOf(await redeem(from, sub));
  const svid = await world.svid("agents/planner");
  const forUs = tokenOf(
    await world.token({
      grant_type: EXCHANGE,
      subject_token: await subjectToken(from, sub),
      subject_token_type: JWT,
      audience: `${ISSUER}/api`,
      ...world.as(svid),
    }),
  );
  const isGood = async (token: string): Promise<boolean> =>
    (await exchange(token, ACCESS_TOKEN)).status === 200;
  const origin = { iss: from.issuer, sub };
  return async () => ({
    "an exchanged token": await isGood(exchanged),
    "a token exchanged from that": await isGood(twice),
    "a token for a grant": await isGood(redeemed),
    "an explanation of an exchanged token": (await explainOwn(exchanged, origin)).decision === "allow",
    // 400 for an empty question means that the token was accepted.
    "a token for our own endpoints": (await bearer("/policy/explain", forUs, {})).status === 400,
  });
}

const all = (outcomes: Record<string, boolean>, want: boolean): Record<string, boolean> =>
  Object.fromEntries(Object.keys(outcomes).map((name) => [name, want]));

async function assertAll(outcomes: Promise<Record<string, boolean>>, want: boolean): Promise<void> {
  const seen = await outcomes;
  assert.deepEqual(seen, all(seen, want));
}

for (const [how, change] of [
  ["disabled", { disabled: true }],
  ["removed", undefined],
] as const) {
  test(`PROD-2.3-16, RFC7523-5-1 an issuer that is ${how} is refused in every role at once, and so are tokens issued for it; other issuers are not`, async () => {
    const ofFirst = await makeTokens(first, "u-1");
    const ofSecond = await makeTokens(second, "u-1");
    for (const from of [first, second]) {
      await assertAll(tryAll(from, "u-1"), true);
      await assertAll(tryStatement(from), true);
    }
    await assertAll(ofFirst(), true);

    await reload(change);
    await assertAll(tryAll(first, "u-1"), false);
    await assertAll(tryStatement(first), false);
    await assertAll(ofFirst(), false);
    await assertAll(tryAll(second, "u-1"), true);
    await assertAll(tryStatement(second), true);
    await assertAll(ofSecond(), true);

    await reload({});
    await assertAll(tryAll(first, "u-1"), true);
    await assertAll(tryStatement(first), true);
    await assertAll(ofFirst(), true);
  });
}

test("PROD-2.3-16, RFC7523-5-1 a disabled subject is refused in every role at once, and so are tokens issued for it; other subjects are not", async () => {
  const ofOne = await makeTokens(first, "u-1");
  const ofTwo = await makeTokens(first, "u-2");
  const ofNamesake = await makeTokens(second, "u-1");
  await assertAll(tryAll(first, "u-1"), true);
  await assertAll(ofOne(), true);

  await reload({ disabledSubjects: ["u-1"] });
  await assertAll(tryAll(first, "u-1"), false);
  await assertAll(ofOne(), false);
  await assertAll(tryAll(first, "u-2"), true);
  await assertAll(ofTwo(), true);
  // The subject with the same name of another issuer is not affected.
  await assertAll(tryAll(second, "u-1"), true);
  await assertAll(ofNamesake(), true);

  await reload({});
  await assertAll(tryAll(first, "u-1"), true);
  await assertAll(ofOne(), true);
});

test("RFC7523-5-1, PROD-2.6-1 the audit trail and the explanation give the same reason", async () => {
  const exchanged = tokenOf(await exchange(await subjectToken(first, "u-1"), JWT, "planner-agent"));
  const reasonOf = async (answer: Answer) => (await eventOf(world, answer))?.reason;
  const reasons = async (): Promise<unknown[]> => [
    await reasonOf(await exchange(await subjectToken(first, "u-1"), JWT)),
    await reasonOf(await redeem(first, "u-1")),
    await reasonOf(await exchange(exchanged, ACCESS_TOKEN)),
    (await explainOwn(exchanged, { iss: FIRST, sub: "u-1" })).reason,
  ];
  await reload({ disabledSubjects: ["u-1"] });
  assert.deepEqual(await reasons(), [
    "subject_subject_disabled",
    "subject_disabled",
    "subject_subject_disabled",
    "subject_subject_disabled",
  ]);
  await reload({ disabled: true });
  assert.deepEqual(await reasons(), [
    "subject_issuer_unknown",
    "issuer_not_trusted_for_grants",
    "subject_origin_not_trusted",
    "subject_origin_not_trusted",
  ]);
  await reload({});
});

/** An explanation is one of the policy, and looks at no ending. */
async function apart(outcomes: Promise<Record<string, boolean>>): Promise<Record<string, boolean>> {
  return Object.fromEntries(Object.entries(await outcomes).filter(([name]) => !name.includes("explanation")));
}

test("POLICY-D-20 a subject that is disabled by command is refused in every role at once, and so are tokens issued for it; other subjects are not", async () => {
  const ofTwo = await makeTokens(first, "u-2");
  await assertAll(tryAll(first, "u-2"), true);
  await assertAll(ofTwo(), true);
  const command = ["tokens", "end", "--issuer", FIRST, "--subject", "u-2", "--disable"];
  const run = await runCommandLine(["--config", world.configFile, ...command]);
  assert.equal(run.code, 0, run.err);
  await assertAll(apart(tryAll(first, "u-2")), false);
  await assertAll(apart(ofTwo()), false);
  await assertAll(tryAll(first, "u-1"), true);
  await assertAll(tryAll(second, "u-2"), true);
});

test("IDC-2.4.2-4, IDJAG-7.2-1, PROD-4.4-12 without an issuer of grants redemption is disabled, and no longer in the metadata", async () => {
  const told = async () => (await world.get("/.well-known/oauth-authorization-server")).body;
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  config.trustedIssuers[SECOND].grants = undefined;
  writeFileSync(world.configFile, JSON.stringify(config));
  await reload({ grants: { profiles: ["jwt"] } });
  assert.ok(((await told()).grant_types_supported as string[]).includes(JWT_BEARER));
  // IDJAG-7.2-1: only profiles that are redeemed are published.
  assert.equal((await told()).authorization_grant_profiles_supported, undefined);
  assert.equal((await redeem(first, "u-1")).status, 200);

  await reload({ grants: { profiles: ["jwt"] }, disabled: true });
  assert.ok(!((await told()).grant_types_supported as string[]).includes(JWT_BEARER));
  const answer = await redeem(first, "u-1");
  assert.deepEqual([answer.status, answer.body.error], [400, "unsupported_grant_type"]);
  await reload({});
});

test("EMA-7.4.1-3 keys that an issuer removed are refused after its trust was removed and restored", async () => {
  const old = first;
  assert.equal((await redeem(old, "u-1")).status, 200);
  first = await makeForeign(FIRST, "f-2");
  page("/first", first.jwks);
  // Removing the issuer discards its cached keys.
  await reload({ disabled: true });
  await reload({});
  assert.equal((await redeem(first, "u-1")).status, 200);
  const answer = await redeem(old, "u-1");
  assert.equal(answer.body.error, "invalid_grant");
  assert.equal((await eventOf(world, answer))?.reason, "issuer_key_unknown");
});
