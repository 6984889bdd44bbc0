/**
 * Federation clients of clouds at the token endpoint: a token exchange whose only proof is the JWT of a platform's workload
 * as subject token, decided as the same JWT would be as a grant (the authentication is the JWT itself).
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { mintX509Svid } from "../../scripts/dev-pki.ts";
import { type Answer, basic, type Form } from "../../scripts/http-client.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { makeProver } from "../support/dpop.ts";
import { seconds } from "../support/forge.ts";
import { byGrant, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const SECRET = "the-secret-of-the-gateway-1234567890";
const ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token";
const ID = "platform://cloud/pod%2F1";

const cloud = makePlatform("https://cloud.example", { sub: "pod/1" });
const idp = makePlatform("https://idp.example", { sub: "alice", scope: "read" });
const pure = makePlatform("https://users.example", { sub: "carol", scope: "read" });

const dedicated = { tenancy: "dedicated" };
let world: World;
before(async () => {
  world = await makeWorld(
    {
      clients: { gateway: { method: "client_secret_basic", secrets: [SECRET] } },
      trustedIssuers: {
        [cloud.issuer]: {
          keys: { file: "cloud.json" },
          workloads: {
            cloud: { ...dedicated, subjects: ["pod/*"] },
            again: { ...dedicated, subjects: ["again/*"], reusable: true },
            brought: { ...dedicated, subjects: ["brought/*"], clients: ["gateway"] },
            client: { ...dedicated, subjects: ["client/*"], uses: ["client"] },
          },
        },
        [idp.issuer]: {
          keys: { file: "idp.json" },
          subjects: "keep",
          acceptAs: ["jwt", "id_token"],
          workloads: { robots: { ...dedicated, subjects: ["robot/*"] } },
        },
        [pure.issuer]: { keys: { file: "pure.json" }, subjects: { prefix: "u:" } },
      },
      targets: [{ names: [API], scopes: ["read", "write"] }],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          actors: ["platform://cloud/*", "platform://again/*", "platform://robots/*"],
          targets: [API],
          scopes: ["read", "write"],
        },
        {
          id: "gateway",
          allow: "client_credentials",
          clients: ["gateway"],
          targets: [API],
          scopes: ["read"],
        },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { files: { "cloud.json": cloud.jwks, "idp.json": idp.jwks, "pure.json": pure.jwks } },
  );
});
after(() => stop(world));

/** As google-auth sends it. */
const alone = (token: string, more: Form = {}): Form => ({
  grant_type: EXCHANGE,
  audience: API,
  scope: "read",
  requested_token_type: ACCESS_TOKEN,
  subject_token: token,
  subject_token_type: JWT,
  ...more,
});

const given = (answer: Answer) => {
  assert.equal(answer.status, 200, answer.text);
  return claimsOf(String(answer.body.access_token));
};

async function reasonOf({ headers }: Answer): Promise<unknown> {
  const id = String(headers["x-request-id"]);
  const event = (await world.events()).find((one) => (one.request as { id?: string })?.id === id);
  if (event !== undefined) return event.reason;
  const line = () => world.server.lines.find((one) => one.includes(id));
  await until(() => line() !== undefined, "the refusal is logged");
  return JSON.parse(line() ?? "").refused;
}

const NO_CLIENT = "invalid_client";
const MALFORMED = "invalid_request";

test("FEDC-D-1, FEDC-C-1, PROD-4.1r1-1 the JWT of a workload as subject token, without client authentication, gets the token that it gets as a grant", async () => {
  const exchanged = await world.token(alone(cloud.token()));
  const granted = await world.token(byGrant(cloud.token(), { audience: API, scope: "read" }));
  const of = (answer: Answer) => {
    const { sub, client_id, act, aud, scope, cnf, iss, iat, exp } = given(answer);
    return { sub, client_id, act, aud, scope, cnf, iss, lives: Number(exp) - Number(iat) };
  };
  assert.deepEqual(of(exchanged), of(granted));
  assert.deepEqual([of(exchanged).sub, of(exchanged).client_id, of(exchanged).act], [ID, ID, undefined]);
  const { issued_token_type, token_type, expires_in, scope, refresh_token } = exchanged.body;
  assert.deepEqual(
    { issued_token_type, token_type, scope, refresh_token },
    { issued_token_type: ACCESS_TOKEN, token_type: "Bearer", scope: "read", refresh_token: undefined },
  );
  assert.equal(Number.isInteger(expires_in), true);
});

test("FEDC-D-1, PLAT-D-17 its event has the workload, the mode of a grant and the type of what was issued", async () => {
  const answer = await world.token(alone(cloud.token()));
  const id = answer.headers["x-request-id"];
  const event = (await world.events()).find((one) => (one.request as { id?: string })?.id === id);
  const { mode, type, reason, client, subject, granted } = event as Record<string, Record<string, unknown>>;
  assert.deepEqual(
    [mode, type, reason, subject],
    ["client_credentials", "token.issued", "rule_match", undefined],
  );
  assert.equal((client as { platform: { registration: string } }).platform.registration, "cloud");
  assert.equal(granted?.issued_token_type, ACCESS_TOKEN);
});

const accepted: [what: string, form: () => Form][] = [
  ["without a requested type", () => alone(cloud.token(), { requested_token_type: "" })],
  ["that asks for a JWT", () => alone(cloud.token(), { requested_token_type: JWT })],
  ["as an ID token", () => alone(cloud.token(), { subject_token_type: ID_TOKEN })],
  ["with resource in place of audience", () => alone(cloud.token(), { audience: "", resource: API })],
  ["with a client_id that has no meaning", () => alone(cloud.token(), { client_id: "sdk" })],
  ["with options", () => alone(cloud.token(), { options: '{"userProject":"1"}' })],
  ["of an issuer that has users too", () => alone(idp.token({ sub: "robot/1", scope: "read" }))],
];
for (const [what, form] of accepted) {
  test(`FEDC-D-2, FEDC-C-3 an exchange ${what} is accepted`, async () =>
    void given(await world.token(sent(form()))));
}
const sent = (form: Form): Form =>
  Object.fromEntries(Object.entries(form).filter(([, value]) => value !== ""));

for (const end of ["\n", "\r\n"]) {
  test(`FEDC-D-5 a token with the line break ${JSON.stringify(end)} of its file is the token`, async () => {
    given(await world.token(alone(`${cloud.token()}${end}`)));
    given(await world.token(byGrant(`${cloud.token()}${end}`, { audience: API })));
    const token = cloud.token();
    given(await world.token(alone(`${token}${end}`)));
    const again = await world.token(alone(token));
    assert.deepEqual([again.body.error, await reasonOf(again)], [MALFORMED, "grant_replayed"]);
  });
}
for (const end of ["\n\n", " \n", "\t", "\r"]) {
  test(`FEDC-D-5 a token that ends in ${JSON.stringify(end)} is refused`, async () => {
    const { status, body } = await world.token(alone(`${cloud.token()}${end}`));
    const error = end === " \n" ? NO_CLIENT : MALFORMED;
    assert.deepEqual([status, body.error, body.access_token], [400, error, undefined]);
  });
}

test("FEDC-D-1, PLAT-D-6 a JWT is accepted once, as a grant and as a subject token, and a reusable one again", async () => {
  const token = cloud.token();
  given(await world.token(byGrant(token, { audience: API })));
  const again = await world.token(alone(token));
  assert.deepEqual([again.status, again.body.error], [400, MALFORMED], again.text);
  assert.equal(await reasonOf(again), "grant_replayed");
  const file = cloud.token({ sub: "again/1" });
  for (const _ of [1, 2]) given(await world.token(alone(file)));
});

test("PLAT-D-6, RFC8693-2.2.2-2 one that a refusal used up is refused as used, by the code of an exchange", async () => {
  const token = cloud.token();
  const first = await world.token(alone(token, { scope: "none" }));
  assert.deepEqual([first.body.error, await reasonOf(first)], ["invalid_scope", "scope_empty"]);
  const again = await world.token(alone(token, { scope: "none" }));
  assert.deepEqual([again.body.error, await reasonOf(again)], [MALFORMED, "grant_replayed"]);
});

test("PLAT-D-12, PLAT-D-13 a DPoP proof binds what is issued, and a bound JWT demands the proof of its key", async () => {
  const prover = await makeProver();
  const proven = () => ({ DPoP: prover.prove(`${ISSUER}/token`) });
  assert.deepEqual(given(await world.token(alone(cloud.token()), proven())).cnf, { jkt: prover.jkt });
  const bound = () => cloud.token({ cnf: { jkt: prover.jkt } });
  given(await world.token(alone(bound()), proven()));
  const answer = await world.token(alone(bound()));
  assert.deepEqual([answer.body.error, await reasonOf(answer)], [MALFORMED, "key_not_proven"]);
});

type Variant = [what: string, form: () => Form, error: string, reason: string];
const evil = makePlatform("https://evil.example", { sub: "pod/1" });
const refused: Variant[] = [
  [
    "a signature by another key",
    () => alone(evil.token({ iss: cloud.issuer })),
    MALFORMED,
    "signature_invalid",
  ],
  [
    "an audience of another service",
    () => alone(cloud.token({ aud: API })),
    MALFORMED,
    "jwt_audience_refused",
  ],
  [
    "a subject of no registration",
    () => alone(cloud.token({ sub: "x" })),
    MALFORMED,
    "workload_not_registered",
  ],
  [
    "a JWT that is too old",
    () => alone(cloud.token({ iat: seconds() - 400 })),
    MALFORMED,
    "jwt_lifetime_too_long",
  ],
  [
    "a registration with clients",
    () => alone(cloud.token({ sub: "brought/1" })),
    NO_CLIENT,
    "workload_client_missing",
  ],
  [
    "a registration without grant",
    () => alone(cloud.token({ sub: "client/1" })),
    MALFORMED,
    "workload_use_refused",
  ],
  [
    "the client_id of a client that is known",
    () => alone(cloud.token(), { client_id: "gateway" }),
    NO_CLIENT,
    "client_id_differs",
  ],
  [
    "the SPIFFE ID of a workload as client_id",
    () => alone(cloud.token(), { client_id: workload("x") }),
    NO_CLIENT,
    "client_id_differs",
  ],
  [
    "a request for an ID-JAG",
    () => alone(cloud.token(), { requested_token_type: "urn:ietf:params:oauth:token-type:id-jag" }),
    MALFORMED,
    "requested_token_type_unsupported",
  ],
  [
    "a target that no rule names",
    () => alone(cloud.token(), { audience: "https://none.example" }),
    "invalid_target",
    "target_unknown",
  ],
  [
    "a workload that no rule names",
    () => alone(cloud.token({ sub: "brought/1" })),
    NO_CLIENT,
    "workload_client_missing",
  ],
];
for (const [what, form, error, reason] of refused) {
  test(`FEDC-D-1, RFC8693-2.2.2-2 an exchange alone with ${what} is refused`, async () => {
    const answer = await world.token(form());
    assert.deepEqual(
      [answer.status, answer.body.error, answer.body.access_token],
      [400, error, undefined],
      answer.text,
    );
    assert.equal(await reasonOf(answer), reason);
  });
}

const others: [what: string, form: () => Form][] = [
  ["the JWT of a user of an issuer with workloads", () => alone(idp.token())],
  [
    "the ID token of a user",
    () => alone(idp.token({ aud: ISSUER, nonce: "n" }), { subject_token_type: ID_TOKEN }),
  ],
  ["the JWT of a user of another issuer", () => alone(pure.token())],
  ["the JWT of an issuer that is not trusted", () => alone(evil.token())],
  ["what is no JWT", () => alone("opaque")],
  ["the JWT of a workload as access token", () => alone(cloud.token(), { subject_token_type: ACCESS_TOKEN })],
  ["the JWT of a workload without a type", () => sent(alone(cloud.token(), { subject_token_type: "" }))],
  [
    "an actor token beside it",
    () => alone(cloud.token(), { actor_token: cloud.token(), actor_token_type: JWT }),
  ],
  ["the type of an actor token beside it", () => alone(cloud.token(), { actor_token_type: JWT })],
];
for (const [what, form] of others) {
  test(`FEDC-D-3, PROD-4.1r1-1 an exchange without client authentication and with ${what} is no client's and is refused`, async () => {
    const answer = await world.token(form());
    assert.deepEqual([answer.status, answer.body.error], [400, NO_CLIENT], answer.text);
    assert.equal(await reasonOf(answer), "credentials_missing");
  });
}

test("FEDC-D-3 beside a client that authenticates, the JWT of a workload is no subject without that use", async () => {
  const answer = await world.token(alone(cloud.token()), { Authorization: basic("gateway", SECRET) });
  assert.deepEqual(
    [answer.body.error, await reasonOf(answer)],
    [MALFORMED, "subject_issuer_not_accepted_as_type"],
  );
});

test("WAG-5-2, FEDC-D-3 a client that its certificate proves is the client of the JWT that it brings, whatever that would prove alone", async () => {
  const { keyPem: key, chainPem: cert } = await mintX509Svid(world.trustDomain, workload("agents/planner"));
  const exchange = await world.token(alone(cloud.token()), {}, { key, cert });
  assert.deepEqual(
    [exchange.body.error, await reasonOf(exchange)],
    [MALFORMED, "subject_issuer_not_accepted_as_type"],
  );
  const grant = await world.token(byGrant(cloud.token(), { audience: API }), {}, { key, cert });
  assert.deepEqual([grant.body.error, await reasonOf(grant)], ["invalid_grant", "no_rule"]);
  for (const { headers } of [exchange, grant]) {
    const event = (await world.events()).find(
      (one) => (one.request as { id?: string })?.id === headers["x-request-id"],
    );
    const { client_id } = (event ?? assert.fail()).client as Record<string, unknown>;
    assert.equal(client_id, workload("agents/planner"));
  }
});

const told: [string, () => string, string][] = [
  [
    "before the signature holds, nothing",
    () => evil.token({ iss: cloud.issuer }),
    "the request is not allowed",
  ],
  [
    "after it, that the platform",
    () => cloud.token({ aud: API }),
    "the request is not allowed: the platform has to issue another subject token",
  ],
  [
    "after it, that the administrator",
    () => cloud.token({ sub: "x" }),
    "the request is not allowed: the administrator of this server has not admitted the workload",
  ],
];
for (const [what, token, error_description] of told) {
  test(`PLAT-D-14 of an exchange alone ${what} has to act is told, without a link`, async () => {
    const { body } = await world.token(alone(token()));
    assert.deepEqual(body, { error: MALFORMED, error_description });
  });
}

test("FEDC-D-4 a JSON body is refused as no form", async () => {
  const { status, body } = await world.token(JSON.stringify(alone(cloud.token())), {
    "Content-Type": "application/json",
  });
  assert.deepEqual([status, body.error, body.access_token], [400, MALFORMED, undefined]);
});
