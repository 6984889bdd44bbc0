/** RFC 9396 at the token endpoint: what is left of `authorization_details`, by every grant type of machines. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { type Foreign, makeForeign } from "../support/foreign.ts";
import { prng } from "../support/prng.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  workload,
} from "../support/world.ts";

const SECRET = "the-secret-of-all-clients-12345678";
const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const LEDGER = "https://ledger.example";
const BOOKS = "https://books.example";
const MAIL = "https://mail.example";
const PARTNER = "https://partner.example";
const OTHER_PARTNER = "https://other.example";
const GRANTING = "https://granting.example";
const INVOICE = "https://ledger.example/rar/invoice";
const FILE = "file";

const invoiceType = {
  governs: ["invoices.read", "invoices.pay"],
  needs: ["actions"],
  fields: {
    actions: { is: "strings", narrows: "subset", from: ["read", "pay"] },
    identifier: { is: "string", narrows: "equal" },
    max_amount: { is: "decimal", narrows: "max", unit: "currency" },
    currency: { is: "string", narrows: "equal" },
    payee: { is: "string", narrows: "equal", private: true },
  },
};
const fileType = { governs: ["files"], fields: { path: { is: "string", narrows: "prefix" } } };
const types = { [INVOICE]: invoiceType };

const front = workload("agents/front");
const back = workload("agents/back");
const scopes = ["invoices.read", "invoices.pay"];
const asked = { consent: "implied", acknowledge: "subjects-not-asked" };
const exchange = {
  allow: "delegation",
  subjects: { issuers: [IDP] },
  subjectToken: { audiences: [ISSUER, "self"] },
  scopes,
  ...asked,
};
const toGrants = { issues: "grant", idJagSubjects: ["jwt"] };
const secretly = { method: "client_secret_basic", secrets: [SECRET] };
const reading = { type: INVOICE, actions: ["read"] };
const paying = { type: INVOICE, actions: ["pay"] };
const upTo = (max_amount: string, currency = "EUR") => ({ ...paying, max_amount, currency });

const CONFIGURATION = {
  clients: {
    batch: secretly,
    wide: secretly,
    demanded: secretly,
    sole: secretly,
    registered: { ...secretly, authorization_details_types: [FILE] },
    hotel: secretly,
    desk: secretly,
  },
  targets: [
    { names: [LEDGER], owners: [front], introspectors: ["desk"], scopes, details: types },
    {
      names: [BOOKS, "books"],
      owners: [back],
      scopes: [...scopes, "files"],
      details: { ...types, [FILE]: fileType },
    },
    { names: [MAIL], scopes },
    { kind: "partner", issuer: PARTNER, scopes, details: types, clients: { [front]: "front-there" } },
    { kind: "partner", issuer: OTHER_PARTNER, scopes },
  ],
  policies: [
    {
      ...{ id: "batch", allow: "client_credentials", clients: ["batch", "registered"], targets: [BOOKS] },
      scopes: [...scopes, "files"],
      details: [reading, upTo("500.00")],
    },
    {
      ...{ id: "wide", allow: "client_credentials", clients: ["wide"], targets: [BOOKS, LEDGER] },
      scopes: [...scopes, "files"],
    },
    // Both grant as much; the one with the greater id cuts nothing of a payment.
    {
      ...{ id: "one-reads", allow: "client_credentials", clients: ["sole"], targets: [LEDGER], scopes },
      details: [{ type: INVOICE, actions: ["read", "pay"], identifier: "inv-1" }],
    },
    {
      ...{ id: "two-pays", allow: "client_credentials", clients: ["sole"], targets: [LEDGER], scopes },
      details: [{ type: INVOICE, actions: ["read", "pay"], max_amount: "900", currency: "EUR" }],
      lifetimeSeconds: 200,
    },
    {
      ...{ id: "demanding", allow: "client_credentials", clients: ["demanded"], targets: [BOOKS], scopes },
      demands: [INVOICE],
    },
    { ...exchange, id: "front", actors: [front], targets: [LEDGER, BOOKS] },
    {
      ...exchange,
      id: "front-asks",
      actors: [front],
      targets: [MAIL],
      consent: "record",
      acknowledge: undefined,
    },
    { ...exchange, id: "front-abroad", actors: [front], targets: [PARTNER, OTHER_PARTNER], ...toGrants },
    { ...exchange, id: "front-alone", allow: "impersonation", actors: [front], targets: [BOOKS] },
    { ...exchange, id: "back-lapses", actors: [back], targets: [MAIL], lapses: [INVOICE] },
    { ...exchange, id: "back", actors: [back], targets: [BOOKS], consent: "record", acknowledge: undefined },
    {
      ...{ id: "desk", allow: "client_credentials", clients: ["desk"], targets: [`${ISSUER}/api`] },
      scopes: ["policy:explain"],
    },
    {
      ...{ id: "guests", allow: "redemption", clients: ["hotel"], subjects: { issuers: [GRANTING] } },
      ...{ targets: [LEDGER], scopes, ...asked },
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

let world: Awaited<ReturnType<typeof makeService>>;
let granting: Foreign;
let idp: Foreign;

before(async () => {
  [granting, idp] = [await makeForeign(GRANTING), await makeForeign(IDP)];
  const trustedIssuers = {
    [IDP]: { keys: { file: "idp.json" }, subjects: "keep", details: [INVOICE] },
    [GRANTING]: {
      ...{ keys: { file: "granting.json" }, subjects: { prefix: "g:" }, details: [INVOICE] },
      ...{ acceptAs: [], grants: {} },
    },
  };
  const files = {
    "idp.json": JSON.stringify(idp.jwks),
    "granting.json": JSON.stringify(granting.jwks),
  };
  world = await makeService({ ...CONFIGURATION, trustedIssuers }, { files });
});

after(() => stop(world));

type Detail = Record<string, unknown>;

const written = (details: readonly Detail[] | string | undefined): Form =>
  details === undefined
    ? {}
    : { authorization_details: typeof details === "string" ? details : JSON.stringify(details) };

const alone = (client: string, details?: readonly Detail[] | string, form: Form = {}): Promise<Answer> =>
  world.token(
    { grant_type: "client_credentials", ...written(details), ...form },
    { authorization: basic(client, SECRET) },
  );

const user = (details?: unknown, input: object = {}): Promise<string> => {
  const now = Math.floor(Date.now() / 1000);
  const usual = { iss: IDP, sub: "u-1", aud: ISSUER, scope: scopes.join(" "), iat: now, exp: now + 600 };
  return idp.sign({ ...usual, jti: `${now}`, authorization_details: details, ...input });
};

async function by(agent: string, form: Form): Promise<Answer> {
  const svid = await world.svid(`agents/${agent}`);
  return world.token({
    ...world.as(svid),
    grant_type: EXCHANGE,
    actor_token: svid,
    actor_token_type: JWT,
    subject_token_type: JWT,
    ...form,
  });
}

async function alike(agent: string, form: Form): Promise<Answer> {
  const svid = await world.svid(`agents/${agent}`);
  return world.token({ ...world.as(svid), grant_type: EXCHANGE, subject_token_type: JWT, ...form });
}

const eventOf = async (answer: Answer): Promise<Event | undefined> => {
  const id = answer.headers["x-request-id"];
  return (await world.events()).find(({ request }) => (request as { id?: string } | undefined)?.id === id);
};

/** A member of what the trail has under one name. */
const inTrail = (event: Event | undefined, part: "policy" | "granted", name: string): unknown =>
  (event?.[part] as Record<string, unknown> | undefined)?.[name];

/** What the answer, the token and the audit trail say, which is the same. */
async function granted(answer: Answer): Promise<unknown> {
  assert.equal(answer.status, 200, answer.text);
  const { authorization_details: told } = answer.body as { authorization_details?: unknown };
  assert.deepEqual(claimsOf(answer.body.access_token).authorization_details, told);
  const event = await eventOf(answer);
  assert.deepEqual(inTrail(event, "granted", "authorization_details"), told);
  return told;
}

async function refused(answer: Answer, error: string, reason: string): Promise<Event | undefined> {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  assert.equal(answer.body.access_token, undefined);
  const event = await eventOf(answer);
  assert.deepEqual([event?.outcome, event?.reason], ["deny", reason]);
  return event;
}
const WRONG = "invalid_authorization_details";

// --- client credentials -----------------------------------------------------------------------------------------

test("RFC9396-3-1, RFC9396-7-1, RFC9396-9-1 details of a request within the rule are granted as they are", async () => {
  const details = [upTo("120.00")];
  assert.deepEqual(await granted(await alone("batch", details)), details);
});

test("RFC9396-7-3, RAR-D-5 a request without details gets those of its rule", async () => {
  assert.deepEqual(await granted(await alone("batch")), [reading, upTo("500.00")]);
});

test("RAR-D-3, RFC9396-7.1-1 what the rule does not have is cut away, and the answer says what is left", async () => {
  const answer = await alone("batch", [
    { type: INVOICE, actions: ["read", "pay"], max_amount: "900", currency: "EUR" },
  ]);
  assert.deepEqual(await granted(answer), [
    { ...reading, max_amount: "900", currency: "EUR" },
    upTo("500.00"),
  ]);
});

test("RAR-D-3 details of which the rule leaves nothing are refused, and no token is issued", async () => {
  const event = await refused(await alone("batch", [upTo("1", "USD")]), WRONG, "details_empty");
  assert.deepEqual(inTrail(event, "policy", "trace"), [
    { rule: "batch", failed: "details", fallenDetails: [{ type: INVOICE, index: 0, at: "rule" }] },
  ]);
});

const BAD: readonly (readonly [string, string, string])[] = [
  ["RFC9396-5-1 an unknown type", '[{"type":"payment"}]', "details_type_unknown"],
  [
    "RFC9396-5-2 an unknown field",
    `[{"type":"${INVOICE}","actions":["pay"],"x":1}]`,
    "details_field_unknown",
  ],
  ["RFC9396-5-2 a wrong value", `[{"type":"${INVOICE}","actions":"pay"}]`, "details_field_malformed"],
  ["RFC9396-5-2 a missing field", `[{"type":"${INVOICE}"}]`, "details_field_missing"],
  ["RFC9396-2-1 no type", '[{"actions":["pay"]}]', "details_malformed"],
  ["RAR-D-12 an empty array", "[]", "details_malformed"],
  ["RAR-D-12 no array", "{}", "details_malformed"],
  ["RAR-D-12 what is no JSON", "x", "details_malformed"],
  ["RAR-D-12 an object twice as long as allowed", `[{"type":"${"x".repeat(16_384)}"}]`, "details_too_large"],
];
for (const [name, text, reason] of BAD) {
  test(`RFC9396-8-1, ${name} is refused`, async () => {
    await refused(await alone("batch", text), WRONG, reason);
  });
}

test("RFC9396-3.1-1, RAR-D-4 without scope, the scopes are those that the types govern", async () => {
  const answer = await alone("wide", [{ type: FILE, path: "/a" }], { resource: BOOKS });
  assert.equal(answer.body.scope, "files");
  const both = await alone("wide", [{ type: FILE, path: "/a" }, paying], { resource: BOOKS });
  assert.deepEqual(String(both.body.scope).split(" ").sort(), ["files", ...scopes].sort());
});

test("RAR-D-4 a type of one target alone tells the target", async () => {
  const answer = await alone("wide", [{ type: FILE, path: "/a" }]);
  assert.equal(claimsOf(answer.body.access_token).aud, BOOKS);
  await refused(await alone("wide", [paying]), "invalid_target", "target_missing");
});

test("RAR-D-4 an object whose scopes are all left away is refused", async () => {
  const answer = await alone("wide", [{ type: FILE, path: "/a" }], {
    resource: BOOKS,
    scope: "invoices.pay",
  });
  const event = await refused(answer, WRONG, "details_empty");
  assert.deepEqual(inTrail(event, "policy", "trace"), [
    { rule: "wide", failed: "details", fallenDetails: [{ type: FILE, index: 0, at: "scope" }] },
  ]);
});

test("RFC9396-3.2-1 by whatever name resource has for its target, the details are the same", async () => {
  for (const resource of [BOOKS, "books"]) {
    assert.deepEqual(await granted(await alone("wide", [paying], { audience: resource })), [paying]);
  }
});

test("RAR-D-5 a rule that demands a type gives no token without it, and one with it", async () => {
  await refused(await alone("demanded"), WRONG, "details_demanded");
  assert.deepEqual(await granted(await alone("demanded", [paying])), [paying]);
});

test("RAR-D-5 of two rules with as many scopes, the one decides that cuts nothing of what was asked for", async () => {
  const one = await alone("sole", [{ ...upTo("5"), actions: ["read"] }]);
  assert.equal(inTrail(await eventOf(one), "policy", "rule_id"), "two-pays");
  const other = await alone("sole", [{ ...reading, identifier: "inv-1" }]);
  assert.equal(inTrail(await eventOf(other), "policy", "rule_id"), "one-reads");
});

test("RFC9396-10-2 a client that registered types uses no others", async () => {
  await refused(await alone("registered", [paying]), WRONG, "details_type_not_registered");
  assert.deepEqual(await granted(await alone("registered", [{ type: FILE, path: "/a" }])), [
    { type: FILE, path: "/a" },
    reading,
    upTo("500.00"),
  ]);
});

test("RAR-D-13 a private value is in the token, and in the audit trail as a digest", async () => {
  const answer = await alone("wide", [{ ...paying, payee: "DE02 1203" }], { resource: LEDGER });
  assert.deepEqual(answer.body.authorization_details, [{ ...paying, payee: "DE02 1203" }]);
  const event = JSON.stringify(await eventOf(answer));
  assert.doesNotMatch(event, /DE02/);
  assert.match(event, /"payee":"sha256:[\w-]{43}"/);
});

// --- exchange ---------------------------------------------------------------------------------------------------

test("RAR-D-7 details of a foreign subject token are taken where its issuer's entry lists their types", async () => {
  const answer = await by("front", { resource: LEDGER, subject_token: await user([upTo("500")]) });
  assert.deepEqual(await granted(answer), [upTo("500")]);
});

test("RAR-D-7 a foreign subject token with details of another type, or with malformed ones, is refused", async () => {
  for (const [details, reason] of [
    [[{ type: FILE, path: "/a" }], "subject_details_claim_refused"],
    [[paying, { type: "x" }], "subject_details_claim_refused"],
    [[], "subject_details_claim_malformed"],
    ["x", "subject_details_claim_malformed"],
    [[{ ...paying, max_amount: 1.5 }], "subject_details_claim_malformed"],
  ] as const) {
    const answer = await by("front", { resource: LEDGER, subject_token: await user(details) });
    await refused(answer, "invalid_request", reason);
  }
});

test("RFC9396-6-1, RAR-D-3 a request within the subject token narrows it, one beyond it is refused", async () => {
  const subject = await user([upTo("500"), reading]);
  const ask = (details: readonly Detail[]) =>
    by("front", { resource: LEDGER, subject_token: subject, ...written(details) });
  assert.deepEqual(await granted(await ask([{ ...upTo("120.00"), identifier: "inv-1" }])), [
    { ...upTo("120.00"), identifier: "inv-1" },
  ]);
  for (const wider of [
    [upTo("500.01")],
    [paying],
    [{ ...reading, actions: ["read", "pay"] }],
    [reading, paying],
  ]) {
    await refused(await ask(wider), WRONG, "details_exceed_subject_token");
  }
});

test("RAR-D-6 details survive each further exchange and impersonation, as its subject token had them", async () => {
  const first = await by("front", { resource: LEDGER, subject_token: await user([upTo("500")]) });
  const own = { subject_token: String(first.body.access_token), subject_token_type: ACCESS_TOKEN };
  assert.deepEqual(await granted(await by("front", { ...own, resource: BOOKS })), [upTo("500")]);
  assert.deepEqual(await granted(await alike("front", { ...own, resource: BOOKS })), [upTo("500")]);
  const wider = { ...own, resource: BOOKS, ...written([upTo("501")]) };
  await refused(await by("front", wider), WRONG, "details_exceed_subject_token");
});

test("RAR-D-6, RFC9396-13-1 a target that does not declare the type gets no token, unless the rule lets the type lapse", async () => {
  const first = await by("front", { resource: BOOKS, subject_token: await user([upTo("500")]) });
  const own = { subject_token: String(first.body.access_token), subject_token_type: ACCESS_TOKEN };
  const foreign = { resource: MAIL, subject_token: await user([upTo("500")]) };
  await world.consent("u-1", "agents/front", MAIL, scopes);
  await refused(await by("front", foreign), "invalid_target", "details_type_not_at_target");
  const lapsed = await by("back", { ...own, resource: MAIL });
  assert.equal(await granted(lapsed), undefined);
  assert.deepEqual(inTrail(await eventOf(lapsed), "policy", "lapsed"), [INVOICE]);
});

test("RAR-D-3 a consent to another object leaves nothing, and its own object is granted", async () => {
  const consent = {
    ...{ id: "c-inv-2", version: 1, origin: { iss: IDP, sub: "u-9" }, actor: back, targets: [BOOKS], scopes },
    details: [{ ...paying, identifier: "inv-2" }],
  };
  const event = { type: "consent.recorded", outcome: "allow", reason: "by_operator" } as const;
  assert.ok((await world.ports.journal.record({ event, consent: { add: consent } })).ok);
  const subject = await user(undefined, { sub: "u-9" });
  const ask = (details?: readonly Detail[]) =>
    by("back", { resource: BOOKS, subject_token: subject, ...written(details) });
  const trail = await refused(
    await ask([{ ...paying, identifier: "inv-1" }]),
    "invalid_request",
    "consent_missing",
  );
  assert.match(JSON.stringify(trail?.policy), /"at":"consent"/);
  assert.deepEqual(await granted(await ask([paying])), [{ ...paying, identifier: "inv-2" }]);
  assert.deepEqual(await granted(await ask()), [{ ...paying, identifier: "inv-2" }]);
});

// --- other domains ----------------------------------------------------------------------------------------------

test("RAR-D-8, RFC9396-9.1-1, IDJAG-4.3.3-6, IDJAG-4.3.3-7, IDJAG-4.3.4-3 a partner whose entry declares the type gets a grant with the details", async () => {
  const subject_token = await user([upTo("500")]);
  const idJag = { requested_token_type: "urn:ietf:params:oauth:token-type:id-jag" };
  for (const form of [{}, idJag]) {
    const answer = await by("front", {
      ...{ audience: PARTNER, subject_token, scope: "invoices.pay" },
      ...written([upTo("5")]),
      ...form,
    });
    assert.deepEqual(await granted(answer), [upTo("5")]);
    assert.equal(answer.body.scope, "invoices.pay");
  }
});

test("RAR-D-8 a partner whose entry does not declare the type gets no grant", async () => {
  const answer = await by("front", { audience: OTHER_PARTNER, subject_token: await user([upTo("500")]) });
  await refused(answer, "invalid_target", "details_type_not_at_target");
  const without = await by("front", { audience: OTHER_PARTNER, subject_token: await user() });
  assert.equal(without.status, 200, without.text);
});

const redeem = (assertion: string, details?: readonly Detail[]): Promise<Answer> =>
  world.token(
    { grant_type: JWT_BEARER, assertion, ...written(details) },
    { authorization: basic("hotel", SECRET) },
  );
const grant = (claims: object): Promise<string> =>
  granting.grant({ client_id: "hotel", scope: scopes.join(" "), ...claims });

test("RAR-D-7, IDJAG-4.4.1-6 details of a grant are taken where its issuer's entry lists their types, and narrowed", async () => {
  const details = [upTo("500")];
  assert.deepEqual(await granted(await redeem(await grant({ authorization_details: details }))), details);
  const narrowed = await redeem(await grant({ authorization_details: details }), [upTo("5")]);
  assert.deepEqual(await granted(narrowed), [upTo("5")]);
  const wider = await redeem(await grant({ authorization_details: details }), [upTo("501")]);
  await refused(wider, WRONG, "details_exceed_subject_token");
});

test("RAR-D-7 a grant with details of another type, or with malformed ones, is refused", async () => {
  const other = await redeem(await grant({ authorization_details: [{ type: FILE, path: "/a" }] }));
  await refused(other, "invalid_grant", "details_claim_refused");
  for (const details of [[], {}, null, "x", [{ type: INVOICE, actions: [] }]]) {
    const malformed = await redeem(await grant({ authorization_details: details }));
    await refused(malformed, "invalid_grant", "details_claim_malformed");
  }
});

test("RAR-D-7 an object of a grant that does not conform to its type leaves nothing, which is refused", async () => {
  const odd = await redeem(await grant({ authorization_details: [{ ...paying, colour: "red" }] }));
  await refused(odd, WRONG, "details_empty");
});

// --- what others are told ---------------------------------------------------------------------------------------

test("RFC9396-9.2-1 introspection has the details of the token as a member of the answer", async () => {
  const answer = await alone("wide", [upTo("5")], { resource: LEDGER });
  const introspected = await world.get("/introspect", {
    method: "POST",
    headers: {
      authorization: basic("desk", SECRET),
      "content-type": "application/x-www-form-urlencoded",
    },
    body: new URLSearchParams({ token: String(answer.body.access_token) }).toString(),
  });
  assert.equal(introspected.body.active, true, introspected.text);
  assert.deepEqual(introspected.body.authorization_details, [upTo("5")]);
});

test("RFC9396-10-1 the metadata list the types of all targets", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.deepEqual(body.authorization_details_types_supported, [FILE, INVOICE]);
});

test("RFC9396-11.3-1 a type that is a URL is fetched by nothing, and compared as a text", async () => {
  // The host of the type does not exist, and its look-alikes are other types.
  for (const type of [`${INVOICE}/`, INVOICE.toUpperCase(), INVOICE.replace("https", "http")]) {
    await refused(await alone("wide", [{ ...paying, type }]), WRONG, "details_type_unknown");
  }
});

test("RAR-D-13 an explanation agrees with the answer to the same request, whatever the details are", async () => {
  const desk = await world.token(
    { grant_type: "client_credentials" },
    { authorization: basic("desk", SECRET) },
  );
  const random = prng(9396);
  const some = (): Detail =>
    random.pick([
      reading,
      paying,
      upTo(random.pick(["5", "500", "500.01", "900"]), random.pick(["EUR", "USD"])),
      { ...reading, identifier: random.pick(["inv-1", "inv-2"]) },
      { type: FILE, path: random.pick(["/a", "/a/b", "/../a"]) },
      { type: "payment" },
    ]);
  const seen = new Set<number>();
  for (let round = 0; round < 120; round++) {
    const client = random.pick(["batch", "wide", "demanded", "sole", "registered"]);
    const details = Array.from({ length: random.below(3) }, some);
    const scope = random.pick([undefined, "invoices.pay", "files invoices.read"]);
    const question = {
      ...{ client, target: BOOKS },
      ...(details.length > 0 && { details }),
      ...(scope !== undefined && { scope }),
    };
    const told = await world.get("/policy/explain", {
      method: "POST",
      headers: { authorization: `Bearer ${desk.body.access_token}`, "content-type": "application/json" },
      body: JSON.stringify(question),
    });
    const form = { resource: BOOKS, ...(scope === undefined ? {} : { scope }) };
    const answer = await alone(client, details.length > 0 ? details : undefined, form);
    const explained = told.body as unknown as {
      error?: string;
      reason?: string;
      would_issue?: { claims: { authorization_details?: unknown } };
    };
    assert.equal(explained.error, answer.body.error, told.text);
    assert.deepEqual(
      explained.would_issue?.claims.authorization_details,
      (answer.body as { authorization_details?: unknown }).authorization_details,
    );
    if (answer.status !== 200) assert.equal(explained.reason, (await eventOf(answer))?.reason);
    seen.add(answer.status);
  }
  assert.deepEqual([...seen].sort(), [200, 400]);
});
