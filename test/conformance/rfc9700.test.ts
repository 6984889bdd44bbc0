/** RFC 9700 over the wire: no passwords, tokens for one target with the requested scope, distinct names of subjects. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import {
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

const API = "https://api.example";
const SECRET = "a-secret-of-thirty-two-characters";
const CC = { grant_type: "client_credentials" };
const planner = workload("agents/planner");
const scopes = ["read", "write"];

let world: World;

before(async () => {
  world = await makeWorld(
    {
      clients: {
        nightly: { method: "client_secret_basic", secrets: [SECRET] },
        auditor: { method: "client_secret_basic", secrets: [SECRET] },
      },
      registration: { mode: "open", open: { scopes } },
      targets: [
        { names: [API], scopes },
        { names: ["other"], scopes },
      ],
      policies: [
        {
          id: "machines",
          allow: "client_credentials",
          clients: ["nightly"],
          targets: [API, "other"],
          scopes,
        },
        {
          id: "delegates",
          allow: "delegation",
          actors: [planner],
          subjects: { issuers: [IDP] },
          subjectToken: { audiences: [ISSUER] },
          targets: [API],
          scopes,
          consent: "implied",
          acknowledge: "subjects-not-asked",
        },
        {
          id: "auditor",
          allow: "client_credentials",
          clients: ["auditor"],
          targets: [`${ISSUER}/api`],
          scopes: ["audit:read"],
        },
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { idp: { scopes } },
  );
});

after(() => stop(world));

const as = (client: string) => ({ authorization: basic(client, SECRET) });
const machine = (form: Form = {}): Promise<Answer> =>
  world.token({ ...CC, audience: API, ...form }, as("nightly"));

async function forUser(sub: string, form: Form = {}): Promise<Answer> {
  const subjectToken = await world.idp.mintUserToken({ sub, aud: ISSUER });
  const svid = await world.svid("agents/planner");
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: JWT,
    audience: API,
    ...form,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
  });
}

const register = (metadata: object): Promise<Answer> =>
  world.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(metadata),
  });

function tokenOf(answer: Answer): Record<string, unknown> {
  assert.equal(answer.status, 200, answer.text);
  return claimsOf(answer.body.access_token);
}

// --- passwords (2.4) ----------------------------------------------------------------------------------------------

test("RFC9700-2.4-1 the password grant is refused and not published", async () => {
  const password = { grant_type: "password", username: "u-1", password: "hunter2" };
  for (const form of [password, { ...password, audience: API, scope: "read" }]) {
    const refused = await world.token(form, as("nightly"));
    assert.deepEqual([refused.status, refused.body.error], [400, "unsupported_grant_type"]);
  }
  assert.equal(tokenOf(await machine({ username: "u-1", password: "hunter2" })).sub, "nightly");
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.ok(!(body.grant_types_supported as string[]).includes("password"));
  const registered = await register({ grant_types: ["password", "client_credentials"] });
  const got = registered.status === 201 ? (registered.body.grant_types as string[]) : [];
  assert.ok(!got.includes("password"), registered.text);
  assert.equal((await register({ grant_types: ["client_credentials"] })).status, 201);
});

// --- restricted tokens (2.3, 4.9, 4.10) ---------------------------------------------------------------------------

test("RFC9700-2.3-1, RFC9700-2.3-2, RFC9700-2.3-4, RFC9700-2.3-5 a token is for one target and has the requested scope", async () => {
  const { aud, scope } = tokenOf(await machine({ scope: "read" }));
  assert.deepEqual([aud, scope], [API, "read"]);
  const user = tokenOf(await forUser("u-1", { scope: "read" }));
  assert.deepEqual([user.aud, user.scope], [API, "read"]);
  const both = await forUser("u-1", { audience: [API, "other"] });
  assert.deepEqual([both.status, both.body.error], [400, "invalid_target"]);
});

test("RFC9700-4.10.2-1 no token is issued for an unknown target", async () => {
  const refused = await machine({ audience: "https://api.example.evil.example" });
  assert.deepEqual([refused.status, refused.body.error], [400, "invalid_target"]);
});

/** The bytes of the store's files. */
function onDisk(): string {
  const files = readdirSync(world.folder, { recursive: true, encoding: "utf8" });
  const kept = files.filter((name) => name.startsWith("mandate.sqlite"));
  assert.ok(kept.length > 0);
  return kept.map((name) => readFileSync(join(world.folder, name), "latin1")).join("\n");
}

test("RFC9700-4.9.3-2 an issued, used or refused access token is neither in the store nor in the log", async () => {
  const answer = await world.token({ ...CC, audience: `${ISSUER}/api` }, as("auditor"));
  const token = String(answer.body.access_token);
  const read = await world.get("/audit/events", { headers: { authorization: `Bearer ${token}` } });
  assert.equal(read.status, 200, read.text);
  const inUrl = await world.get(`/audit/events?access_token=${token}`);
  assert.notEqual(inUrl.status, 200);
  const user = String((await forUser("u-1")).body.access_token);
  const again = { grant_type: EXCHANGE, subject_token: user, subject_token_type: JWT };
  assert.notEqual((await world.token({ ...again, audience: API }, as("nightly"))).status, 200);
  const kept = onDisk() + world.server.lines.join("\n") + JSON.stringify(await world.events());
  // The jti is there, which shows that the right files were searched.
  for (const one of [token, user]) {
    assert.ok(kept.includes(String(claimsOf(one).jti)));
    const [, payload = "", signature = ""] = one.split(".");
    assert.ok(!kept.includes(signature) && !kept.includes(payload));
  }
});

test("RFC9700-4.9.3-2 a token is not accepted without TLS", async () => {
  const at = `http://127.0.0.1:${world.server.port}/audit/events`;
  await assert.rejects(fetch(at, { headers: { authorization: "Bearer a.b.c" } }));
  assert.equal((await world.get("/audit/events")).status, 401);
});

// --- clients and users (2.6, 4.15) --------------------------------------------------------------------------------

test("RFC9700-2.6-2, RFC9700-4.15.1-1, CIMD-7.1-1 clients cannot choose their client_id, and ours do not look like a user, a URL or a workload", async () => {
  for (const wanted of ["u-1", "https://client.example/metadata", planner, "nightly"]) {
    const { status, body, text } = await register({
      client_id: wanted,
      sub: wanted,
      grant_types: [CC.grant_type],
    });
    assert.equal(status, 201, text);
    assert.match(String(body.client_id), /^c_[A-Za-z0-9_-]{22}$/);
    assert.equal(body.sub, undefined);
  }
});

test("RFC9700-4.15.1-2 sub and client_id are equal in the token of a client, and never in that of a user", async () => {
  const own = tokenOf(await machine());
  assert.deepEqual([own.sub, own.client_id], ["nightly", "nightly"]);
  const user = tokenOf(await forUser("u-1"));
  assert.deepEqual([user.sub, user.client_id], ["u-1", planner]);
  const registered = String((await register({ grant_types: [CC.grant_type] })).body.client_id);
  for (const client of ["nightly", registered, planner, "https://client.example/metadata"]) {
    const refused = await forUser(client);
    assert.deepEqual([refused.status, refused.body.error], [400, "invalid_request"], client);
  }
});

// --- browsers (2.6) -----------------------------------------------------------------------------------------------

test("RFC9700-2.6-4 browsers may read metadata and keys, but no endpoint that accepts a credential", async () => {
  const origin = { origin: "https://app.example" };
  for (const path of ["/.well-known/oauth-authorization-server", "/jwks"]) {
    assert.equal((await world.get(path, { headers: origin })).headers["access-control-allow-origin"], "*");
  }
  const answers = [await world.token(CC, { ...as("nightly"), ...origin }), await register({})];
  for (const { headers } of answers) assert.equal(headers["access-control-allow-origin"], undefined);
});
