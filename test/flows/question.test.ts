/**
 * A question about a token request is the request without its proofs: both are read into one order, refused for one
 * reason, and decided alike. Seeded random requests of every grant, with real signatures, against the embedded store.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { describeExplanation, type Explanation, explain } from "../../src/flows/explain.ts";
import type { Order } from "../../src/flows/order/order.ts";
import { readQuestion } from "../../src/flows/order/question.ts";
import { readRedemption } from "../../src/flows/redeem-grant.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { readExchange } from "../../src/flows/token-exchange.ts";
import { readRequest, type TokenRequest } from "../../src/flows/token-request.ts";
import { CLAIMS_DEPTH_MAX } from "../../src/limits/input.ts";
import { parseQuestion, type Question } from "../../src/policy/question.ts";
import { DRAFT as ID_JAG_DRAFT, ID_JAG_TYP } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT, GRANT_TYP } from "../../src/spec/identity-chaining.ts";
import { CLIENT_CREDENTIALS } from "../../src/spec/rfc6749.ts";
import { JWT_BEARER_GRANT } from "../../src/spec/rfc7523.ts";
import { parseJson } from "../../src/spec/rfc8259.ts";
import { ID_JAG, ID_TOKEN } from "../../src/spec/rfc8693.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { AT_TOKEN, type Flow, formOf, openFlow } from "../support/flow.ts";
import { type Claims, type Foreign, makeForeign } from "../support/foreign.ts";
import { prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  TRUST_DOMAIN,
  workload,
} from "../support/world.ts";

const ROUNDS = rounds(200);
const API = "https://api.example";
const STAYS = "urn:example:stays";
const PARTNER = "https://as.partner.example";
const ROOMS = "https://rooms.partner.example";
const [planner, booking, clerk] = [workload("agents/planner"), workload("agents/booking"), workload("clerk")];
const SCOPES = ["trips.read", "trips.book", "trips.pay"];
const secretly = { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] };

const asked = { consent: "implied", acknowledge: "subjects-not-asked" };
const users = { subjects: { issuers: [IDP, PARTNER, ISSUER] }, scopes: SCOPES.slice(0, 2) };
const exchanged = { ...users, subjectToken: { audiences: [ISSUER, "self", "desk", "app"] }, ...asked };
const here = [API, STAYS, "booking-agent"];

const CONFIGURATION = {
  trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
  trustedIssuers: {
    [IDP]: {
      keys: { url: `${IDP}/jwks` },
      subjects: "keep",
      acceptAs: ["jwt", "id_token"],
      maxAgeSeconds: 900,
    },
    [PARTNER]: {
      keys: { url: `${PARTNER}/jwks` },
      subjects: { prefix: "p:" },
      acceptAs: ["id_token"],
      grants: { scopes: ["trips.read"], requireClientId: false },
      disabledSubjects: ["gone"],
    },
  },
  clients: {
    desk: { ...secretly, defaultTarget: API },
    app: { ...secretly, workload: workload("apps/app") },
    only: { ...secretly, grantTypes: [CLIENT_CREDENTIALS] },
  },
  targets: [
    { names: [API, "api"], scopes: SCOPES },
    { names: [STAYS], scopes: ["trips.read"], alg: "EdDSA" },
    { names: ["booking-agent"], owners: [booking], scopes: SCOPES },
    {
      kind: "partner",
      issuer: PARTNER,
      aliases: ["partner"],
      scopes: SCOPES,
      clients: { app: "app-there", [booking]: "booking-there" },
      claims: ["acr"],
      resources: [ROOMS],
    },
  ],
  policies: [
    { id: "own", allow: CLIENT_CREDENTIALS, clients: ["desk", "only"], targets: here, scopes: SCOPES },
    { id: "own-agents", allow: CLIENT_CREDENTIALS, actors: [planner], targets: [STAYS], scopes: SCOPES },
    {
      id: "to-booking",
      allow: "delegation",
      actors: [planner, workload("apps/app")],
      targets: ["booking-agent", API],
      ...exchanged,
    },
    { id: "onward", allow: "delegation", actors: [booking], targets: here, maxChainDepth: 2, ...exchanged },
    {
      id: "abroad",
      allow: "delegation",
      issues: "grant",
      actors: [booking],
      targets: [PARTNER],
      idJagSubjects: ["jwt", "id_token", "access_token"],
      ...exchanged,
    },
    { id: "as-user", allow: "impersonation", clients: ["desk", "app"], targets: here, ...exchanged },
    {
      id: "as-user-there",
      allow: "impersonation",
      issues: "grant",
      clients: ["desk", "app"],
      targets: [PARTNER],
      ...exchanged,
    },
    {
      id: "on-record",
      allow: "impersonation",
      actors: [clerk],
      targets: [API],
      ...exchanged,
      consent: "record",
      acknowledge: undefined,
    },
    {
      id: "guests",
      allow: "redemption",
      clients: ["desk", "app"],
      targets: [API, STAYS],
      ...users,
      ...asked,
    },
    {
      id: "guest-agents",
      allow: "redemption",
      actors: [planner, booking],
      targets: [API],
      ...users,
      ...asked,
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
};

type Parts = { form: Record<string, string | string[]>; question: Record<string, unknown> };
type Held = { compact: string; origin: { iss: string; sub: string } };

const random = prng(20260728);
const { pick, below } = random;
const some = <T>(from: readonly T[]): T[] => from.filter(() => below(2) === 0);
/** A good value, and one time in ten another. */
const mostly = <T>(good: T, ...others: T[]): T => (below(10) > 0 ? good : pick(others));
const CLIENTS = [planner, planner, booking, booking, clerk, "desk", "app", "app", "only"];

class Requests {
  readonly flow: Flow;
  readonly signers: Record<typeof IDP | typeof PARTNER | typeof TRUST_DOMAIN, Foreign>;
  /** Tokens of ours, for the exchanges to come. */
  readonly held: Held[] = [];

  constructor(flow: Flow, signers: Requests["signers"]) {
    this.flow = flow;
    this.signers = signers;
  }

  async next(client: string): Promise<Parts> {
    const parts = await pick([
      () => this.ownParts(),
      () => this.exchangeParts(client),
      () => this.exchangeParts(client),
      () => this.exchangeParts(client),
      () => this.exchangeParts(client),
      () => this.grantParts(client),
      () => this.grantParts(client),
    ])();
    const scope = pick([undefined, undefined, "trips.read", "trips.read trips.book", "trips.pay other"]);
    if (scope === undefined) return parts;
    return { form: { ...parts.form, scope }, question: { ...parts.question, scope } };
  }

  async ownParts(): Promise<Parts> {
    return at({ grant_type: CLIENT_CREDENTIALS }, {}, this.target());
  }

  async exchangeParts(client: string): Promise<Parts> {
    const { form, question } = await this.subject(client);
    const parts: Parts = { form: { grant_type: EXCHANGE, ...form }, question };
    const isWorkload = client !== clerk && client.startsWith("spiffe://");
    if (below(8) > 0 === isWorkload) {
      const acts = isWorkload ? mostly(client, planner, booking) : booking;
      const { nowSeconds } = this.flow;
      const svid = { sub: acts, aud: ISSUER, iat: nowSeconds, exp: nowSeconds + 300 };
      parts.form.actor_token = await this.signers[TRUST_DOMAIN].sign(svid, { typ: "JWT" });
      parts.form.actor_token_type = JWT;
      parts.question.actor = acts;
    }
    const issues = pick(["", "", "", "", "", "access_token", "jwt", "id-jag"] as const);
    if (issues !== "") {
      parts.form.requested_token_type = { access_token: ACCESS_TOKEN, jwt: JWT, "id-jag": ID_JAG }[issues];
      parts.question.issues = issues;
    }
    if (issues === "id-jag") {
      const resources = pick([[], [ROOMS], [ROOMS, "urn:example:other"], ["no absolute URI"]]);
      parts.form.resource = resources;
      parts.question.resources = resources;
    }
    const abroad = issues === "jwt" || issues === "id-jag";
    const target = abroad ? mostly<string | undefined>("partner", API, undefined) : this.target();
    return at(parts.form, parts.question, target);
  }

  target(): string | undefined {
    return mostly<string | undefined>(pick([...here, "api"]), PARTNER, "nowhere", undefined);
  }

  async subject(client: string): Promise<Parts> {
    if (this.held.length > 0 && below(3) === 0) {
      const { compact, origin } = pick(this.held);
      return {
        form: { subject_token: compact, subject_token_type: ACCESS_TOKEN },
        question: { subjectClaims: claimsOf(compact), origin },
      };
    }
    const iss = mostly(IDP, PARTNER, "https://unknown.example");
    const type = pick(["jwt", "jwt", "id_token"]);
    const claims = {
      ...this.claims(iss),
      aud: mostly<string | string[]>(ISSUER, [ISSUER, client], client, "booking-agent", "other"),
      acr: "urn:example:strong",
      azp: mostly<string | undefined>(undefined, client, "other"),
      may_act: mostly<object | string | undefined>(undefined, { sub: client }, { sub: "other" }, "other"),
    };
    const signer = iss === PARTNER ? this.signers[PARTNER] : this.signers[IDP];
    const subject_token = await signer.sign(claims, { typ: "JWT" });
    return {
      form: { subject_token, subject_token_type: type === "id_token" ? ID_TOKEN : JWT },
      question: { subjectClaims: claimsOf(subject_token), subjectTokenType: type },
    };
  }

  async grantParts(client: string): Promise<Parts> {
    const iss = mostly(PARTNER, IDP, ISSUER);
    const profile = pick(["jwt", "id-jag"]);
    const claims = {
      ...this.claims(iss),
      exp: this.flow.nowSeconds + mostly(60, -60),
      aud: mostly(ISSUER, "other"),
      jti: randomUUID(),
      client_id: mostly<string | undefined>(client, undefined, "other"),
      resource: pick([undefined, API, API, [API, STAYS], "partner", []]),
    };
    const signer = iss === IDP ? this.signers[IDP] : this.signers[PARTNER];
    const assertion = await signer.sign(claims, { typ: profile === "jwt" ? GRANT_TYP : ID_JAG_TYP });
    const form = { grant_type: JWT_BEARER_GRANT, assertion };
    const question = { grantClaims: claimsOf(assertion), grantProfile: profile };
    return at(form, question, mostly<string | undefined>(undefined, "api", STAYS, "partner"));
  }

  claims(iss: string): Claims {
    const { nowSeconds } = this.flow;
    return {
      iss,
      sub: mostly("u-1", "u-2", "gone", "https://u.example"),
      iat: nowSeconds - mostly(0, 1200),
      exp: nowSeconds + mostly(600, 3, -60),
      scope: mostly<unknown>(SCOPES.join(" "), "trips.read", some(SCOPES).join(" "), undefined, 7),
      act: mostly<object | undefined>(
        undefined,
        { sub: booking, iss: ISSUER },
        { sub: "bot", act: { sub: "first" } },
        { iss: IDP },
      ),
    };
  }
}

const at = (form: Parts["form"], question: Parts["question"], target: string | undefined): Parts =>
  target === undefined
    ? { form, question }
    : { form: { ...form, audience: target }, question: { ...question, target } };

/** What the endpoint makes of a form before anything is decided; undefined where the grant type is not for it. */
function readAny({ ports }: Flow, request: TokenRequest) {
  const { client, form } = request;
  if (client.grantTypes?.includes(form.grant_type ?? "") === false) return undefined;
  if (form.grant_type === EXCHANGE) return readExchange(ports, request);
  if (form.grant_type === JWT_BEARER_GRANT) return readRedemption(ports, request);
  return readRequest(ports, request, { mode: "client_credentials" });
}

const plain = (json: unknown): unknown => JSON.parse(JSON.stringify(json ?? null));

/** All of an order but what only a token has: its row, its use, its fingerprint. */
/** Nor the keys, which a question assumes to be proven. */
function withoutTokens({ parties: _, ground: __, spends: ___, access, ...order }: Order): unknown {
  const { keys: ____, ...asked } = access;
  return plain({ ...order, access: asked });
}

function questionOf(client: string, parts: Parts): Question {
  const json = parseJson(JSON.stringify({ client, ...parts.question }), CLAIMS_DEPTH_MAX);
  assert.ok(json.ok);
  const question = parseQuestion(json.value);
  assert.ok(question.ok, question.ok ? "" : question.error.join());
  return question.value;
}

test("PROD-2.6-1 a question that does not say the type of its subject token means the one that its issuer is trusted for, and one about a token of ours asks whether its user may still be named", async (t) => {
  const signers = { [IDP]: await makeForeign(IDP), [PARTNER]: await makeForeign(PARTNER) };
  const { ports, nowSeconds } = await openFlow(t, CONFIGURATION, signers);
  const subject = {
    sub: "u-1",
    aud: ISSUER,
    iat: nowSeconds,
    exp: nowSeconds + 300,
    scope: SCOPES.join(" "),
  };
  const read = (claims: object, type?: string) =>
    readQuestion(
      ports,
      questionOf("desk", { form: {}, question: { subjectClaims: claims, subjectTokenType: type } }),
    );
  for (const [iss, alone, other] of [
    [PARTNER, "id_token", "jwt"],
    [IDP, "jwt", "id_token"],
  ] as const) {
    const claims = { iss, ...subject };
    const untyped = await read(claims);
    assert.deepEqual(untyped, await read(claims, alone));
    assert.notDeepEqual(untyped, await read(claims, other));
  }
  const ours = { subjectClaims: { iss: ISSUER, ...subject }, origin: { iss: PARTNER, sub: "gone" } };
  const refused = await readQuestion(ports, questionOf("desk", { form: {}, question: ours }));
  assert.equal(refused.ok ? "" : refused.error.reason, "subject_subject_disabled");
});

test("IDJAG-9.4-1 a question about a grant of ours is refused as that grant is", async (t) => {
  const { ports } = await openFlow(t, CONFIGURATION, {});
  for (const grantProfile of ["jwt", "id-jag"]) {
    const question = { grantClaims: { iss: ISSUER }, grantProfile };
    const refused = await readQuestion(ports, questionOf("desk", { form: {}, question }));
    assert.equal(refused.ok ? "" : refused.error.reason, "grant_self_issued");
  }
});

test("PROD-2.6-1 an explanation is recorded with the user that the question names, by whichever of its claims", async (t) => {
  const { ports } = await openFlow(t, CONFIGURATION, {});
  const user = { iss: PARTNER, sub: "u-1" };
  for (const named of [{ subjectClaims: user }, { grantClaims: user }]) {
    const question = questionOf("desk", { form: {}, question: named });
    const { iss, sub } = describeExplanation(question, await explain(ports, question));
    assert.deepEqual({ iss, sub }, user);
  }
});

test("PROD-2.6-1 a question is read as the request that it asks about, decided alike and refused alike", async (t) => {
  const signers = {
    [IDP]: await makeForeign(IDP),
    [PARTNER]: await makeForeign(PARTNER),
    [TRUST_DOMAIN]: await makeForeign(TRUST_DOMAIN),
  };
  const flow = await openFlow(t, CONFIGURATION, signers);
  const { ports, people } = flow;
  for (const sub of ["u-1", "u-2"]) {
    await flow.consent({ origin: { iss: IDP, sub }, actor: clerk, targets: [API], scopes: ["trips.read"] });
  }
  const requests = new Requests(flow, signers);
  const seen = { allowed: new Map<string, number>(), reasons: new Set<string>() };

  for (let round = 0; round < ROUNDS; round++) {
    const clientId = pick(CLIENTS);
    const parts = await requests.next(clientId);
    const question = questionOf(clientId, parts);
    const request: TokenRequest = {
      client: flow.client(clientId),
      form: formOf(parts.form),
      request: { id: `${round}`, endpoint: "/token", source_ip: "192.0.2.1" },
    };
    const shown = `round ${round}: ${JSON.stringify(question)}`;

    const fromForm = await readAny(flow, request);
    const fromQuestion = await readQuestion(ports, question);
    if (fromForm?.ok) {
      assert.ok(fromQuestion.ok, shown);
      assert.deepEqual(withoutTokens(fromQuestion.value), withoutTokens(fromForm.value), shown);
    } else if (fromForm !== undefined) {
      assert.deepEqual(fromQuestion, { ok: false, error: fromForm.error.failure }, shown);
    }

    const explained: Explanation = await explain(ports, question);
    const answer = await answerTokenRequest(ports, request, AT_TOKEN, people);
    if (!answer.ok) {
      // What the log tells besides stands in the trace and in `meant` of the explanation.
      const { lacks: _, meant: __, ...failure } = answer.error.failure;
      assert.deepEqual(explained.failure, failure, shown);
      seen.reasons.add(failure.reason);
      continue;
    }
    const { jti, ...claims } = claimsOf(answer.value.access_token);
    assert.deepEqual(plain(explained.issued?.claims), claims, shown);
    seen.allowed.set(explained.mode, (seen.allowed.get(explained.mode) ?? 0) + 1);
    if (answer.value.token_type === "Bearer") {
      const row = await ports.facts.token(String(jti));
      assert.ok(row !== undefined, shown);
      requests.held.push({ compact: answer.value.access_token, origin: row.record.origin });
    }
  }
  const enough = ["client_credentials", "delegation", "impersonation", "redemption"] as const;
  for (const mode of enough)
    assert.ok((seen.allowed.get(mode) ?? 0) > 3, `${mode}: ${seen.allowed.get(mode)}`);
  assert.ok(seen.reasons.size > 20, [...seen.reasons].sort().join());
});
