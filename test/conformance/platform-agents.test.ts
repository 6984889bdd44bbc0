/**
 * Workloads of platforms as clients and actors without registration, over TLS on both stores: what they get, and that
 * each hostile variant gets nothing and leaves its reason.
 */
import assert from "node:assert/strict";
import { createHmac, createPublicKey } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { type Answer, basic, type Form, postForm } from "../../scripts/http-client.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { makeProver } from "../support/dpop.ts";
import { encode, forge, makeKey, seconds } from "../support/forge.ts";
import { byActor, byClient, byGrant, GRANT, makePlatform } from "../support/platforms.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  type Event,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const NOTES = "https://notes.example";
const SECRET = "the-secret-of-the-gateway-1234567890";
const scopes = ["read", "write"];
const planner = workload("agents/planner");

const acme = makePlatform("https://acme.agents.example", { sub: "agent/7f3d" });
const beta = makePlatform("https://beta.agents.example", { sub: "agent/7f3d" });
const github = makePlatform(
  "https://token.actions.githubusercontent.com",
  {
    sub: "repo:acme@123/app@456:environment:prod",
    repository_owner_id: "123",
    environment: "prod",
    run_attempt: "1",
  },
  "RS256",
);
const cluster = makePlatform("https://cluster.example", {
  sub: "system:serviceaccount:prod:crawler",
  "kubernetes.io": { namespace: "prod", serviceaccount: { uid: "u-1" } },
});
const idp = makePlatform("https://idp.example", { sub: "alice", scope: "read write" });

const ID = "platform://acme.agents.example/agent%2F7f3d";
const fileOf = (name: string) => ({ keys: { file: `${name}.json` } });

const anyUser = {
  subjects: { issuers: [idp.issuer] },
  consent: "implied",
  acknowledge: "subjects-not-asked",
};

const TRUSTED = {
  [acme.issuer]: {
    ...fileOf("acme"),
    workloads: {
      "acme.agents.example": { tenancy: "dedicated", subjects: ["agent/*"] },
      "acme.bound": { tenancy: "dedicated", subjects: ["bound/1"], clients: ["gateway"] },
      "acme.one": { tenancy: "dedicated", subjects: ["twice/*"] },
      "acme.two": { tenancy: "dedicated", subjects: ["twice/x"] },
      "acme.client": { tenancy: "dedicated", subjects: ["client/*"], uses: ["client"] },
      "acme.subject": { tenancy: "dedicated", subjects: ["job/*"], uses: ["subject"] },
    },
    disabledSubjects: ["agent/retired"],
  },
  [beta.issuer]: { ...fileOf("beta"), workloads: { beta: { tenancy: "dedicated", subjects: ["*"] } } },
  [github.issuer]: {
    ...fileOf("github"),
    workloads: {
      github: {
        tenancy: "shared",
        subjects: ["repo:acme@123/app@456:*"],
        claims: { "/repository_owner_id": ["123"], "/environment": ["prod"] },
      },
    },
  },
  [cluster.issuer]: {
    ...fileOf("cluster"),
    workloads: {
      cluster: {
        tenancy: "dedicated",
        subjects: ["system:serviceaccount:prod:*"],
        claims: { "/kubernetes.io/namespace": ["prod"], "/kubernetes.io/serviceaccount/uid": ["u-1"] },
        maxLifeSeconds: 3600,
        maxAgeSeconds: 3600,
        reusable: true,
      },
    },
  },
  [idp.issuer]: {
    ...fileOf("idp"),
    subjects: "keep",
    acceptAs: ["jwt", "id_token"],
    grants: {},
    workloads: {
      idp: { tenancy: "dedicated", subjects: ["robot/*"] },
      tenant: { tenancy: "dedicated", subjects: ["tenant/*"], claims: { "/aud_tenant": ["acme"] } },
    },
  },
};

/** Rules that would let a token last for an hour. */
const own = { allow: "client_credentials", targets: [API], scopes, lifetimeSeconds: 3600 };
const CONFIGURATION = {
  clients: {
    gateway: { method: "client_secret_basic", secrets: [SECRET] },
    outsider: { method: "client_secret_basic", secrets: [SECRET] },
  },
  trustedIssuers: TRUSTED,
  targets: [
    { names: [API], scopes, owners: ["platform://acme.agents.example/*"] },
    { names: [NOTES], scopes },
    { names: ["planner"], scopes, owners: [planner] },
  ],
  policies: [
    { id: "acme", ...own, actors: ["platform://acme.agents.example/*"] },
    {
      id: "others",
      ...own,
      actors: ["acme.client", "github", "cluster", "idp", "tenant"].map((name) => `platform://${name}/*`),
    },
    {
      id: "gateway",
      ...own,
      clients: ["gateway"],
      actors: ["platform://acme.bound/*", "platform://acme.agents.example/*"],
    },
    { id: "gateway-alone", ...own, clients: ["gateway", "outsider"] },
    {
      id: "for-users",
      allow: "delegation",
      actors: [ID, "platform://cluster/*", planner],
      ...anyUser,
      subjectToken: { audiences: [ISSUER, "self"] },
      targets: [API, NOTES, "planner"],
      scopes,
    },
    {
      id: "for-jobs",
      allow: "delegation",
      actors: [ID],
      subjects: { issuers: [ISSUER] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      subjectToken: { audiences: [ISSUER] },
      targets: [API],
      scopes,
    },
  ],
  drafts: [
    SPIFFE_DRAFT,
    DRAFT,
    "draft-ietf-oauth-identity-chaining-17",
    "draft-ietf-oauth-identity-assertion-authz-grant-04",
  ],
  limits: {
    failuresPerMinuteBySource: 100_000,
    failuresPerMinuteByClient: 100_000,
    requestsPerSecondByClient: 10_000,
  },
};

const files = Object.fromEntries(
  Object.entries({ acme, beta, github, cluster, idp }).map(([name, { jwks }]) => [`${name}.json`, jwks]),
);

const asked = { resource: API, scope: "read" };
const asGateway = { Authorization: basic("gateway", SECRET) };

/** A token of a user for us, as the subject of an exchange. */
const user = (claims: object = {}): string => idp.token({ sub: "alice", ...claims });
const ofUser = { subject_token_type: JWT };

let database: SharedPostgres;
before(async () => {
  database = await sharePostgres();
});
after(() => stop(database));

for (const store of ["SQLite", "PostgreSQL"] as const) {
  suite(store, () => {
    let world: World;
    before(async () => {
      const place = store === "SQLite" ? {} : { postgres: await freshDatabase(database) };
      world = await makeWorld(CONFIGURATION, { ...place, files, clock: true });
    });
    after(() => stop(world));

    const given = (answer: Answer) => {
      assert.equal(answer.status, 200, answer.text);
      return claimsOf(String(answer.body.access_token));
    };
    const eventOf = async ({ headers }: Answer) =>
      (await world.events()).find((one) => (one.request as { id?: string })?.id === headers["x-request-id"]);

    /** Refused with this code, nothing given, and the reason in the event or, where nothing is proven, in the log and the count. */
    async function assertRefused(answer: Answer, error: string, reason: string, status = 400): Promise<void> {
      assert.deepEqual([answer.status, answer.body.error], [status, error], answer.text);
      assert.equal(answer.body.access_token, undefined);
      const event = await eventOf(answer);
      if (event !== undefined) return assert.deepEqual([event.outcome, event.reason], ["deny", reason]);
      const id = String(answer.headers["x-request-id"]);
      const line = () => world.server.lines.find((one) => one.includes(id));
      await until(() => line() !== undefined, "the refusal is logged");
      assert.equal(JSON.parse(line() ?? "").refused, reason);
      counted.add(reason);
    }
    const counted = new Set<string>();
    const platformOf = (event: Event | undefined): Record<string, unknown> => {
      assert.ok(event);
      return (event.client as { platform: Record<string, unknown> }).platform;
    };
    const introspect = (token: string, form: Form): Promise<Answer> =>
      postForm(
        `${ISSUER}/introspect`,
        { token, ...form },
        { ca: world.ca, connect: { host: "127.0.0.1", port: world.server.port } },
      );

    test("WAG-3-1, WAG-5-1, WAG-5-4, WIF-T-1, WIF-V-1, PLAT-D-8 an agent never seen before gets a token of its own for its grant", async () => {
      const answer = await world.token(byGrant(acme.token(), asked));
      const { sub, client_id, act, aud, scope } = given(answer);
      assert.deepEqual(
        { sub, client_id, act, aud, scope },
        { sub: ID, client_id: ID, act: undefined, aud: API, scope: "read" },
      );
      // WAG-5-4
      assert.equal(answer.body.refresh_token, undefined);
    });

    test("PLAT-D-17 the event has registration, iss, sub and the claims that matched", async () => {
      const event = await eventOf(await world.token(byGrant(github.token(), asked)));
      const platform = platformOf(event);
      const { fingerprint, ...rest } = platform;
      assert.deepEqual(rest, {
        registration: "github",
        iss: github.issuer,
        sub: "repo:acme@123/app@456:environment:prod",
        claims: { "/repository_owner_id": "123", "/environment": "prod" },
      });
      assert.equal(event?.reason, "rule_match");
    });

    const accepted: [name: string, form: () => Form, headers?: Record<string, string>][] = [
      [
        "PLAT-D-1, WAG-5.1-2 as client assertion, with the issuer as audience",
        () => byClient(acme.token(), { grant_type: "client_credentials", ...asked }),
      ],
      [
        "PLAT-D-6 as client assertion and as grant of one request",
        () => {
          const token = acme.token();
          return { ...byClient(token), ...byGrant(token, asked) };
        },
      ],
      [
        "PLAT-D-3, WAG-5.1-2, WIF-J-1 with the token endpoint as audience",
        () => byGrant(acme.token({ aud: `${ISSUER}/token` }), asked),
      ],
      [
        "PLAT-D-18 with the tenant that its registration names",
        () => byGrant(idp.token({ sub: "tenant/1", aud: ISSUER, aud_tenant: "acme" }), asked),
      ],
      ["PLAT-D-4 with the type JWT", () => byGrant(acme.token({}, { header: { typ: "JWT" } }), asked)],
      [
        "PLAT-D-9 with a client_id that has no meaning",
        () => byGrant(acme.token(), { client_id: "https://sdk.example/c.json", ...asked }),
      ],
      [
        "PLAT-D-9 with a client_id that is cut within a character",
        () => byGrant(acme.token(), { client_id: `${"a".repeat(255)}\u{1f600}`, ...asked }),
      ],
      [
        "PLAT-D-10 brought by the client of its registration",
        () => byGrant(acme.token({ sub: "bound/1" }), asked),
        asGateway,
      ],
      ["WAG-5-3 without a resource, where rules name one", () => byGrant(acme.token(), { scope: "read" })],
    ];
    for (const [name, form, headers] of accepted) {
      test(`${name} a platform's token is accepted`, async () =>
        void given(await world.token(form(), headers)));
    }

    test("PLAT-D-9 an ignored client_id stands in the event", async () => {
      const event = await eventOf(await world.token(byGrant(acme.token(), { client_id: "sdk", ...asked })));
      assert.equal(platformOf(event).ignored_client_id, "sdk");
    });

    test("PLAT-D-10 a brought grant gives a token of the agent with the client's client_id", async () => {
      const { sub, client_id } = given(await world.token(byGrant(acme.token(), asked), asGateway));
      assert.deepEqual([sub, client_id], [ID, "gateway"]);
    });

    test("PLAT-D-11, PLAT-D-17 as actor it stands in the chain by its name here", async () => {
      const answer = await world.token(byActor(user(), acme.token(), { ...ofUser, ...asked }));
      const { sub, act, client_id } = given(answer);
      assert.deepEqual([sub, act, client_id], ["alice", { sub: ID }, ID]);
    });

    test("PLAT-D-11 another token of the same agent as actor token is accepted, and spent", async () => {
      const actor = acme.token();
      const form = () => byActor(user(), acme.token(), { ...ofUser, ...asked, actor_token: actor });
      given(await world.token(form()));
      await assertRefused(await world.token(form()), "invalid_request", "grant_replayed");
    });

    test("PLAT-D-15 a workload is a subject where its registration says so", async () => {
      const job = acme.token({ sub: "job/1", scope: "read" });
      const { sub, act } = given(await world.token(byActor(job, acme.token(), { ...ofUser, ...asked })));
      assert.deepEqual([sub, act], ["platform://acme.subject/job%2F1", { sub: ID }]);
    });

    test("PLAT-D-13, WAG-5-5, WAG-5.1-3, WIF-S-1 the scope claim limits what is granted, and a token outlives the assertion by 300 s at most", async () => {
      const { scope, exp } = given(
        await world.token(byGrant(acme.token({ scope: "read", exp: seconds() + 5 }), { resource: API })),
      );
      assert.equal(scope, "read");
      assert.ok((exp as number) <= seconds() + 305);
      await assertRefused(
        await world.token(byGrant(acme.token({ scope: "read" }), { ...asked, scope: "write" })),
        "invalid_scope",
        "scope_empty",
      );
    });

    test("PLAT-D-13, PLAT-D-12 DPoP binds at once, and cnf demands its key", async () => {
      const prover = await makeProver();
      const proven = () => ({ DPoP: prover.prove(`${ISSUER}/token`) });
      const { cnf } = given(await world.token(byGrant(acme.token(), asked), proven()));
      assert.deepEqual(cnf, { jkt: prover.jkt });
      const bound = () => acme.token({ cnf: { jkt: prover.jkt } });
      given(await world.token(byGrant(bound(), asked), proven()));
      given(await world.token(byClient(bound(), { grant_type: "client_credentials", ...asked }), proven()));
      const other = await makeProver();
      const wrong = { DPoP: other.prove(`${ISSUER}/token`) };
      await assertRefused(
        await world.token(byGrant(bound(), asked), wrong),
        "invalid_grant",
        "key_not_proven",
      );
    });

    test("PLAT-D-6 a reusable token is accepted again", async () => {
      const token = cluster.token({ exp: seconds() + 3500, jti: undefined });
      for (const _ of [1, 2]) given(await world.token(byGrant(token, asked)));
    });

    test("PLAT-D-16 its own token is introspected by the client assertion of a workload that owns the target", async () => {
      const { body } = await world.token(byGrant(acme.token(), asked));
      const answer = await introspect(String(body.access_token), byClient(acme.token()));
      assert.deepEqual([answer.body.active, answer.body.sub], [true, ID], answer.text);
    });

    test("WAG-6.1-4 the same jti of two registrations is accepted once from each", async () => {
      const token = { jti: "the same" };
      given(await world.token(byGrant(acme.token(token), asked)));
      given(await world.token(byGrant(github.token(token), asked)));
      await assertRefused(
        await world.token(byGrant(github.token({ ...token, run: 2 }), asked)),
        "invalid_grant",
        "grant_replayed",
      );
    });

    test("WAG-5.1-4, WAG-5-2, PLAT-D-9 metadata list the grant type and the method none", async () => {
      const { body } = await world.get("/.well-known/oauth-authorization-server");
      assert.ok((body.grant_types_supported as string[]).includes(GRANT));
      assert.ok((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
      assert.ok(!(body.revocation_endpoint_auth_methods_supported as string[]).includes("none"));
    });

    const told: [string, () => string, string][] = [
      [
        "before the signature holds, nothing",
        () => beta.token({ iss: acme.issuer }),
        "the grant is not accepted",
      ],
      [
        "where no issuer is trusted, nothing",
        () => beta.token({ iss: "https://x.example" }),
        "the grant is not accepted",
      ],
      [
        "after it, that the platform",
        () => acme.token({ aud: API }),
        "the grant is not accepted: the platform has to issue another one",
      ],
      [
        "after it, that the administrator",
        () => acme.token({ sub: "x" }),
        "the grant is not accepted: the administrator of this server has not admitted the workload",
      ],
    ];
    for (const [what, token, text] of told) {
      test(`PLAT-D-14, WAG-7-2 ${what} has to act is told, without a link`, async () => {
        const { body } = await world.token(byGrant(token(), asked));
        assert.deepEqual(body, { error: "invalid_grant", error_description: text });
      });
    }

    test("PLAT-D-12 a bound client assertion is refused where the keys of the request are not looked at", async () => {
      const { body } = await world.token(byGrant(acme.token(), asked));
      const bound = byClient(acme.token({ cnf: { jkt: "A".repeat(43) } }));
      await assertRefused(
        await introspect(String(body.access_token), bound),
        "invalid_client",
        "key_not_proven",
        401,
      );
    });

    test("PLAT-D-14 a token that is not signed gets one answer, whether or not a registration has its subject", async () => {
      const unsigned = (sub: string) => beta.token({ iss: idp.issuer, sub });
      const answers = await Promise.all(
        ["alice", "robot/1"].map((sub) => world.token(byGrant(unsigned(sub), asked))),
      );
      for (const { status, body } of answers) {
        assert.deepEqual(
          { status, body },
          {
            status: 400,
            body: { error: "invalid_grant", error_description: "the grant is not accepted" },
          },
        );
      }
    });

    test("RFC6749-4.4-1 the grant of a user without a client is refused, also of an issuer that has workloads", async () => {
      await assertRefused(await world.token(byGrant(user(), asked)), C, "credentials_missing");
    });

    // --- hostile variants -----------------------------------------------------------------------------------------

    const B = "invalid_grant";
    const C = "invalid_client";
    const X = "invalid_request";
    const k8s = (claims: object) => cluster.token(claims);
    const hmac = (): string => {
      const input = `${encode({ alg: "HS256", kid: "p1" })}.${encode({ ...JSON.parse(Buffer.from(acme.token().split(".")[1] ?? "", "base64url").toString()) })}`;
      const pem = createPublicKey({ key: acme.key.jwk, format: "jwk" }).export({
        type: "spki",
        format: "pem",
      });
      return `${input}.${createHmac("sha256", pem).update(input).digest("base64url")}`;
    };
    const unknownKey = makeKey("ES256", "p1");
    const g =
      (token: () => string, more: Form = {}) =>
      () =>
        byGrant(token(), { ...asked, ...more });
    type Variant = [
      number: number,
      what: string,
      form: () => Form,
      error: string,
      reason: string,
      headers?: Record<string, string>,
    ];
    const variants: Variant[] = [
      [
        1,
        "PLAT-D-3 a token for another service",
        g(() => acme.token({ aud: "sts.amazonaws.com" })),
        B,
        "jwt_audience_refused",
      ],
      [
        2,
        "PLAT-D-3, WAG-5.1-2 two audiences, ours among them",
        g(() => acme.token({ aud: [ISSUER, API] })),
        B,
        "jwt_audience_several",
      ],
      [
        2,
        "PLAT-D-18 a tenant beside the audience, which the registration does not name",
        g(() => acme.token({ aud_tenant: "acme" })),
        B,
        "jwt_audience_refused",
      ],
      [
        2,
        "PLAT-D-3 our name with a slash",
        g(() => acme.token({ aud: `${ISSUER}/` })),
        B,
        "jwt_audience_refused",
      ],
      [
        2,
        "PLAT-D-3 our name in capitals",
        g(() => acme.token({ aud: ISSUER.toUpperCase() })),
        B,
        "jwt_audience_refused",
      ],
      [
        2,
        "PLAT-D-3 our name as a prefix",
        g(() => acme.token({ aud: `${ISSUER}.evil.example` })),
        B,
        "jwt_audience_refused",
      ],
      [
        3,
        "PLAT-D-2 a repository of others at the shared issuer",
        g(() => github.token({ sub: "repo:evil@9/app@9:environment:prod", repository_owner_id: "9" })),
        B,
        "workload_not_registered",
      ],
      [
        4,
        "WAG-6.1-2 an owner that got the old name",
        g(() => github.token({ repository_owner_id: "999" })),
        B,
        "workload_not_registered",
      ],
      [
        5,
        "WAG-6.1-2 a pull request of a fork",
        g(() => github.token({ sub: "repo:acme@123/app@456:pull_request", environment: undefined })),
        B,
        "workload_not_registered",
      ],
      [
        5,
        "WAG-6.1-2 an environment with the name of a branch",
        g(() =>
          github.token({
            sub: "repo:acme@123/app@456:environment:x:ref:refs/heads/main",
            environment: "x:ref:refs/heads/main",
          }),
        ),
        B,
        "workload_not_registered",
      ],
      [
        6,
        "PLAT-D-1 a namespace that begins like ours",
        g(() => k8s({ sub: "system:serviceaccount:prod-evil:x" })),
        B,
        "workload_not_registered",
      ],
      [
        6,
        "WAG-4-1 a subject in another case",
        g(() => acme.token({ sub: "Agent/7f3d" })),
        B,
        "workload_not_registered",
      ],
      [7, "WAG-4-2 the same sub of another platform", g(() => beta.token()), B, "no_rule"],
      [
        7,
        "WAG-6.3-1 another tenant under one issuer",
        g(() => k8s({ "kubernetes.io": { namespace: "prod", serviceaccount: { uid: "u-2" } } })),
        B,
        "workload_not_registered",
      ],
      [8, "PLAT-D-7 a SPIFFE ID", g(() => beta.token({ sub: planner })), B, "workload_sub_refused"],
      [8, "PLAT-D-7 a name of ours", g(() => beta.token({ sub: ID })), B, "workload_sub_refused"],
      [8, "PLAT-D-7 a URL", g(() => beta.token({ sub: "HTTPS://as.example" })), B, "workload_sub_refused"],
      [
        8,
        "PLAT-D-7 a control character",
        g(() => acme.token({ sub: "agent/7f3d\n" })),
        B,
        "workload_sub_refused",
      ],
      [
        8,
        "PLAT-D-7 a mark of direction",
        g(() => acme.token({ sub: "agent/\u202e7f3d" })),
        B,
        "workload_sub_refused",
      ],
      [
        8,
        "PLAT-D-7 a sub that is too long",
        g(() => acme.token({ sub: `agent/${"a".repeat(507)}` })),
        B,
        "workload_sub_too_long",
      ],
      [
        9,
        "WAG-6.1-3 a token in the name of another platform",
        g(() => beta.token({ iss: acme.issuer })),
        B,
        "signature_invalid",
      ],
      [
        9,
        "WAG-6.1-3 a key of its own under our platform's name for it",
        g(() => forge(unknownKey, { iss: acme.issuer, sub: "agent/7f3d", aud: ISSUER })),
        B,
        "signature_invalid",
      ],
      [
        9,
        "WAG-6.1-3 a key in the header",
        g(() =>
          forge(
            unknownKey,
            {},
            {
              header: { jwk: unknownKey.jwk },
              claims: JSON.parse(Buffer.from(acme.token().split(".")[1] ?? "", "base64url").toString()),
            },
          ),
        ),
        B,
        "jws_header_refused",
      ],
      [
        9,
        "WAG-6.1-3 the URL of a key set in the header",
        g(() =>
          forge(
            unknownKey,
            {},
            { header: { jku: "https://evil.example/jwks" }, claims: { iss: acme.issuer, sub: "agent/7f3d" } },
          ),
        ),
        B,
        "jws_header_refused",
      ],
      [
        10,
        "PLAT-D-4 none",
        g(() => acme.token({}, { header: { alg: "none" }, signature: () => Buffer.alloc(0) })),
        B,
        "jws_not_compact",
      ],
      [10, "PLAT-D-4 HMAC with the public key", g(hmac), B, "jwt_algorithm_refused"],
      [
        10,
        "PLAT-D-4 the algorithm of another key",
        g(() => github.token({}, { header: { alg: "ES256" } })),
        B,
        "issuer_key_unknown",
      ],
      [
        10,
        "PLAT-D-4 a critical header",
        g(() => acme.token({}, { header: { crit: ["x"], x: 1 } })),
        B,
        "jws_header_refused",
      ],
      [12, "PLAT-D-5 no exp", g(() => acme.token({ exp: undefined })), B, "jwt_time_missing"],
      [
        12,
        "PLAT-D-5 exp in a year",
        g(() => acme.token({ exp: seconds() + 31_000_000 })),
        B,
        "jwt_lifetime_too_long",
      ],
      [
        12,
        "PLAT-D-5 iat ahead",
        g(() => acme.token({ iat: seconds() + 3600, exp: seconds() + 3660 })),
        B,
        "jwt_issued_in_future",
      ],
      [12, "PLAT-D-5 no iat", g(() => acme.token({ iat: undefined })), B, "jwt_time_missing"],
      [
        12,
        "PLAT-D-5 an old cached token",
        g(() => k8s({ iat: seconds() - 3700, exp: seconds() - 50 + 100 })),
        B,
        "jwt_lifetime_too_long",
      ],
      [
        12,
        "PLAT-D-5 a token that is too old",
        g(() => acme.token({ iat: seconds() - 301, exp: seconds() - 5 })),
        B,
        "jwt_too_old",
      ],
      [
        13,
        "PLAT-D-15 an ID token of a user of the same issuer",
        g(() => idp.token({ sub: "robot/1", nonce: "n", aud: ISSUER })),
        B,
        "workload_token_of_another_kind",
      ],
      [
        13,
        "PLAT-D-15 a token of a user as client assertion",
        () => byClient(idp.token({ sub: "alice" }), { grant_type: "client_credentials", ...asked }),
        C,
        "workload_not_registered",
      ],
      [
        13,
        "PLAT-D-15 a workload's token as a user's subject token",
        () => byActor(idp.token({ sub: "robot/1" }), acme.token(), { ...ofUser, ...asked }),
        X,
        "subject_sub_is_workload",
      ],
      [
        13,
        "PLAT-D-15 a workload's token as a user's ID token",
        () =>
          byActor(idp.token({ sub: "robot/1" }), acme.token(), {
            subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
            ...asked,
          }),
        X,
        "subject_sub_is_workload",
      ],
      [
        13,
        "PLAT-D-15 a workload's token as subject of a registration without that use",
        () => byActor(acme.token(), acme.token(), { ...ofUser, ...asked }),
        X,
        "subject_issuer_not_accepted_as_type",
      ],
      [
        14,
        "PLAT-D-11 an actor token of another agent",
        () =>
          byActor(user(), acme.token(), {
            ...ofUser,
            ...asked,
            actor_token: acme.token({ sub: "agent/other" }),
          }),
        X,
        "actor_not_the_caller",
      ],
      [
        14,
        "PLAT-D-11 an actor token of another platform",
        () => byActor(user(), acme.token(), { ...ofUser, ...asked, actor_token: beta.token() }),
        X,
        "actor_not_the_caller",
      ],
      [
        14,
        "PLAT-D-11 a platform's token beside another client",
        () => ({
          ...byActor(user(), acme.token(), { ...ofUser, ...asked }),
          client_assertion_type: "",
          client_assertion: "",
        }),
        X,
        "actor_svid_subject_malformed",
        asGateway,
      ],
      [
        14,
        "PLAT-D-11 an actor token without its type",
        () => byActor(user(), acme.token(), { ...ofUser, ...asked, actor_token_type: "" }),
        X,
        "actor_token_type_missing",
      ],
      [
        14,
        "PLAT-D-11 an actor token as access token",
        () => byActor(user(), acme.token(), { ...ofUser, ...asked, actor_token_type: ACCESS_TOKEN }),
        X,
        "actor_access_token_not_allowed",
      ],
      ...["at+jwt", "oauth-id-jag+jwt", "secevent+jwt", "dpop+jwt"].map(
        (typ): Variant => [
          15,
          `PLAT-D-4 the type ${typ}`,
          g(() => acme.token({}, { header: { typ } })),
          B,
          "jwt_type_refused",
        ],
      ),
      [
        16,
        "PLAT-D-9 the client_id of a client that is known",
        g(() => acme.token(), { client_id: "gateway" }),
        C,
        "client_id_differs",
      ],
      [
        16,
        "PLAT-D-9 the SPIFFE ID of a workload as client_id",
        g(() => acme.token(), { client_id: planner }),
        C,
        "client_id_differs",
      ],
      [
        18,
        "WAG-6.1-2 a pinned claim as a list",
        g(() => github.token({ repository_owner_id: ["123"] })),
        B,
        "workload_not_registered",
      ],
      [
        18,
        "WAG-6.1-2 a pinned claim as a number",
        g(() => github.token({ repository_owner_id: 123 })),
        B,
        "workload_not_registered",
      ],
      [
        18,
        "WAG-6.1-2 a nested copy of a pinned claim",
        g(() => github.token({ repository_owner_id: undefined, x: { repository_owner_id: "123" } })),
        B,
        "workload_not_registered",
      ],
      [
        18,
        "PLAT-D-12 a key that is not proven",
        g(() => acme.token({ cnf: { jkt: "A".repeat(43) } })),
        B,
        "key_not_proven",
      ],
      [
        18,
        "PLAT-D-12 a key that cannot be checked",
        g(() => acme.token({ cnf: { kid: "k" } })),
        B,
        "key_not_proven",
      ],
      [18, "PLAT-D-12 act", g(() => acme.token({ act: { sub: "x" } })), B, "workload_acts_for_another"],
      [
        18,
        "PLAT-D-12 may_act",
        g(() => acme.token({ may_act: { sub: "x" } })),
        B,
        "workload_acts_for_another",
      ],
      [
        0,
        "PLAT-D-10 a grant of a registration with clients alone",
        g(() => acme.token({ sub: "bound/1" })),
        C,
        "workload_client_missing",
      ],
      [
        0,
        "PLAT-D-10 the same brought by another client",
        g(() => acme.token({ sub: "bound/1" })),
        B,
        "workload_client_differs",
        { Authorization: basic("outsider", SECRET) },
      ],
      [
        0,
        "PLAT-D-10 a client and an agent that no rule names together",
        g(() => acme.token()),
        B,
        "no_rule",
        { Authorization: basic("outsider", SECRET) },
      ],
      [
        0,
        "PLAT-D-4 two registrations that match",
        g(() => acme.token({ sub: "twice/x" })),
        B,
        "workload_ambiguous",
      ],
      [
        0,
        "PLAT-D-16 a disabled subject",
        g(() => acme.token({ sub: "agent/retired" })),
        B,
        "subject_disabled",
      ],
      [
        0,
        "PLAT-D-1 a use that the registration does not have",
        g(() => acme.token({ sub: "job/1" })),
        B,
        "workload_use_refused",
      ],
      [
        0,
        "PLAT-D-1 a client assertion that comes as grant too, and whose registration has no such use",
        () => {
          const token = acme.token({ sub: "client/1" });
          return { ...byClient(token), ...byGrant(token, asked) };
        },
        B,
        "workload_use_refused",
      ],
      [
        0,
        "WAG-7-1 an issuer that is not trusted",
        g(() => beta.token({ iss: "https://other.example" })),
        B,
        "issuer_unknown",
      ],
      [
        0,
        "WIF-V-2 the sub as client_id",
        () => byClient(acme.token(), { grant_type: "client_credentials", client_id: "agent/7f3d", ...asked }),
        C,
        "client_id_differs",
      ],
      [
        0,
        "WAG-7-1 a target that is not there",
        g(() => acme.token(), { resource: "https://none.example" }),
        "invalid_target",
        "target_unknown",
      ],
    ];
    for (const [number, what, form, error, reason, headers] of variants) {
      test(`${what}${number > 0 ? ` (hostile variant ${number})` : ""} is refused`, async () => {
        const parameters = Object.fromEntries(Object.entries(form()).filter(([, value]) => value !== ""));
        await assertRefused(await world.token(parameters, headers), error, reason);
      });
    }

    const both = (token: string): Form => byClient(token, { grant_type: "client_credentials", ...asked });
    const replays: [string, (token: string) => [Form, Form], string, string][] = [
      ["twice", (token) => [byGrant(token, asked), byGrant(token, asked)], B, "grant_replayed"],
      [
        "as grant and then as client",
        (token) => [byGrant(token, asked), both(token)],
        C,
        "assertion_replayed",
      ],
      ["as client and then as grant", (token) => [both(token), byGrant(token, asked)], B, "grant_replayed"],
    ];
    for (const jti of ["a jti", undefined]) {
      for (const [what, forms, error, reason] of replays) {
        test(`PLAT-D-6 a token with ${jti ?? "no jti"} that comes ${what} is refused (hostile variant 11)`, async () => {
          const [first, second] = forms(acme.token({ jti: jti && `${jti} ${what}`, run: what }));
          given(await world.token(first));
          await assertRefused(await world.token(second), error, reason);
        });
      }
    }

    test("PLAT-D-6 the ECDSA twin of a signature is refused (hostile variant 11)", async () => {
      const token = acme.token({ jti: undefined, run: "twin" });
      const [head, body, signature = ""] = token.split(".");
      const order = BigInt("0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
      const bytes = Buffer.from(signature, "base64url");
      const s = order - BigInt(`0x${bytes.subarray(32).toString("hex")}`);
      const twin = Buffer.concat([
        bytes.subarray(0, 32),
        Buffer.from(s.toString(16).padStart(64, "0"), "hex"),
      ]);
      given(await world.token(byGrant(token, asked)));
      await assertRefused(
        await world.token(byGrant(`${head}.${body}.${twin.toString("base64url")}`, asked)),
        B,
        "grant_replayed",
      );
    });

    test("PLAT-D-6 of many at once one gets a token (hostile variant 11)", async () => {
      const token = acme.token();
      const answers = await Promise.all(Array.from({ length: 8 }, () => world.token(byGrant(token, asked))));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(7).fill(400)]);
    });

    test("PLAT-D-6 a token at two instances at once gets one token, and after a restart none (hostile variant 11)", async () => {
      const second = await world.beside("second");
      const both = [world.server.port, second.port];
      const tokens = Array.from({ length: 4 }, () => acme.token());
      for (const token of tokens) {
        const answers = await Promise.all(
          both.map((port) => world.token(byGrant(token, asked), {}, {}, port)),
        );
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
      }
      await second.stop();
      const third = await world.beside("second");
      try {
        const again = await world.token(byGrant(tokens[0] ?? "", asked), {}, {}, third.port);
        assert.deepEqual([again.status, again.body.error], [400, B], again.text);
      } finally {
        await third.stop();
      }
    });

    test("AUDIT-D-2, WIF-S-3, PLAT-D-4 refusals of tokens that prove no client are counted with their reason and both registrations", async () => {
      world.pass(61);
      const failures = async () => (await world.events()).filter(({ type }) => type === "client.auth_failed");
      const missing = async () => {
        const events = await failures();
        return [...counted].filter((reason) => !events.some((one) => one.reason === reason));
      };
      await until(async () => (await missing()).length === 0, "each reason is counted");
      const events = await failures();
      const ambiguous = events.find(({ reason }) => reason === "workload_ambiguous");
      assert.ok(ambiguous);
      assert.deepEqual((ambiguous.detail as { registrations: string[] }).registrations, [
        "acme.one",
        "acme.two",
      ]);
    });
  });
}
