/** Our own protected endpoints: which tokens they accept, and the errors for all others (RFC 6750). */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SECRET = "operator-operator-operator-12345";
const API = `${ISSUER}/api`;
const operator = workload("ops/console");

const CONFIGURATION = {
  clients: {
    operator: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: API },
    leaver: { method: "client_secret_basic", secrets: [SECRET], defaultTarget: API },
  },
  targets: [{ names: ["https://api.example"], scopes: ["trips.read", "policy:explain"] }],
  policies: [
    {
      id: "operators",
      allow: "client_credentials",
      clients: ["operator", "leaver"],
      targets: [API, "https://api.example"],
      scopes: ["policy:explain", "audit:read", "trips.read"],
    },
    {
      id: "operators-by-svid",
      allow: "client_credentials",
      actors: [operator],
      targets: [API],
      scopes: ["policy:explain"],
    },
    {
      id: "trade-in",
      allow: "impersonation",
      clients: ["operator"],
      subjects: { issuers: [ISSUER, IDP] },
      subjectToken: { audiences: [ISSUER, API], scopes: ["policy:explain"] },
      consent: "implied",
      acknowledge: "subjects-not-asked",
      targets: ["https://api.example"],
      scopes: ["policy:explain"],
    },
  ],
};

let world: World;
let token: string;

before(async () => {
  world = await makeWorld(CONFIGURATION);
  token = await obtain("operator", { scope: "policy:explain" });
});

after(() => stop(world));

async function obtain(client: string, form: Record<string, string>): Promise<string> {
  const authorization = basic(client, SECRET);
  const answer = await world.token({ grant_type: "client_credentials", ...form }, { authorization });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

const QUESTION = JSON.stringify({ client: "operator", target: API });

const ask = (headers: Record<string, string>, path = "/policy/explain"): Promise<Answer> =>
  world.get(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: QUESTION,
  });

const bearer = (value: string): Record<string, string> => ({ authorization: `Bearer ${value}` });

function assertChallenge(answer: Answer, status: number, error: string | undefined): void {
  const challenge = answer.headers["www-authenticate"] ?? "";
  assert.equal(answer.status, status, answer.text);
  assert.match(challenge, /^Bearer realm="as\.example"/);
  assert.equal(/\berror="(\w+)"/.exec(challenge)?.[1], error);
  // RFC6750-3.1-4
  assert.equal(/\bscope="([\w:]+)"/.exec(challenge)?.[1], "policy:explain");
  assert.match(
    challenge,
    /resource_metadata="https:\/\/as\.example\/\.well-known\/oauth-protected-resource\/policy\/explain"/,
  );
  assert.equal(answer.body.error, error);
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers.pragma, "no-cache");
}

test("RFC6750-2.1-1, RFC9068-4-9, PROD-5r4-1 our own endpoints accept our access token for them", async () => {
  assert.equal(claimsOf(token).aud, API);
  assert.equal((await ask(bearer(token))).status, 200);
  assert.equal((await ask({ authorization: `bearer   ${token}` })).status, 200);
});

test("PROD-5r4-1 a workload without registration gets such a token by a rule, like any client", async () => {
  const svid = await world.svid("ops/console");
  const form = { grant_type: "client_credentials", ...world.as(svid), scope: "policy:explain" };
  const answer = await world.token(form);
  assert.equal(answer.status, 200, answer.text);
  assert.equal((await ask(bearer(String(answer.body.access_token)))).status, 200);
});

test("RFC6750-3-1, RFC6750-3.1-5 a request without a token or with another scheme gets a challenge without an error code", async () => {
  for (const headers of [{}, { authorization: basic("operator", SECRET) }]) {
    assertChallenge(await ask(headers), 401, undefined);
  }
});

test("RFC6750-3.1-1, RFC6750-2.1-3 a malformed Authorization header is invalid_request", async () => {
  for (const header of ["Bearer", "Bearer a b", 'Bearer "a"']) {
    assertChallenge(await ask({ authorization: header }), 400, "invalid_request");
  }
});

test("RFC6750-2.1-2, RFC6750-2-1, RFC9700-4.3.2-1, MCP-O.9-2 a token in the query is refused, with and without a token in the header", async () => {
  const path = `/policy/explain?access_token=${token}`;
  for (const headers of [bearer(token), {}]) {
    assertChallenge(await ask(headers, path), 400, "invalid_request");
  }
});

test("RFC6750-3.1-2, RFC6750-3-6, PRM-D-3, RFC9068-4-9, RFC9068-4-15, RFC9700-2.3-3 any other token is invalid_token", async () => {
  const [header = "", payload = "", signature = ""] = token.split(".");
  const flipped = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  const foreign = await world.idp.mintUserToken({ sub: "u-1", aud: API, scope: "policy:explain" });
  const disguised = await world.idp.mintUserToken({
    sub: "u-1",
    aud: API,
    scope: "policy:explain",
    header: { typ: "at+jwt" },
    claims: { iss: ISSUER },
  });
  const bad = {
    random: "abc",
    signature: `${header}.${payload}.${flipped}`,
    svid: await world.svid("ops/console", { aud: API }),
    foreign,
    disguised,
    elsewhere: await obtain("operator", { audience: "https://api.example", scope: "policy:explain" }),
    // RFC9700-2.3-3: each endpoint of ours is an audience of its own beside the common one.
    endpoint: await obtain("operator", { resource: `${ISSUER}/audit/events`, scope: "policy:explain" }),
  };
  for (const [what, value] of Object.entries(bad)) {
    const answer = await ask(bearer(value));
    assertChallenge(answer, 401, "invalid_token");
    assert.equal(answer.body.error_description, "the token is not valid here", what);
  }
});

test("RFC6749-7.2-1, RFC6750-3.1-3, RFC6750-3.1-4, RFC6749-7-1 insufficient_scope names the required scope", async () => {
  const reader = await obtain("operator", { scope: "audit:read" });
  assertChallenge(await ask(bearer(reader)), 403, "insufficient_scope");
  const event = (await world.events()).find(({ reason }) => reason === "scope_insufficient");
  assert.equal(event?.outcome, "deny");
  assert.deepEqual(event?.client, {
    client_id: "operator",
    auth_method: "bearer",
    jti: claimsOf(reader).jti,
  });
});

test("RFC8693-2.1-20 a token for our own endpoints is refused as a subject token", async () => {
  const authorization = basic("operator", SECRET);
  const trade = (subjectToken: string, type: string) =>
    world.token(
      {
        grant_type: EXCHANGE,
        subject_token: subjectToken,
        subject_token_type: type,
        audience: "https://api.example",
      },
      { authorization },
    );
  const refused = await trade(token, ACCESS_TOKEN);
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_request"]);
  const event = (await world.events()).findLast(({ type }) => type === "token_exchange.denied");
  assert.equal(event?.reason, "subject_token_for_own_endpoints");
  const user = await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "policy:explain" });
  assert.equal((await trade(user, JWT)).status, 200);
});

test("RFC9068-4-16, RFC6750-3.1-2 the token of a client that was removed from the configuration is refused at once", async () => {
  const leaver = await obtain("leaver", { scope: "policy:explain" });
  assert.equal((await ask(bearer(leaver))).status, 200);
  const config = JSON.parse(readFileSync(world.configFile, "utf8"));
  Reflect.deleteProperty(config.clients, "leaver");
  config.policies[0].clients = ["operator"];
  writeFileSync(world.configFile, JSON.stringify(config));
  assert.deepEqual(await world.server.reload(), []);
  assertChallenge(await ask(bearer(leaver)), 401, "invalid_token");
  assert.equal((await ask(bearer(token))).status, 200);
});
