/** The programs of src/http/signals.md, as printed there: APIs that verify tokens offline and are told which were ended. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { basic, send } from "../../scripts/http-client.ts";
import { freePorts } from "../../scripts/server-process.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { layPrograms, NO_PYJWT, type Programs } from "../support/developers.ts";
import { stop } from "../support/stop.ts";
import { until } from "../support/until.ts";
import { LOOPBACK, startWebServer, type WebServer } from "../support/web.ts";
import { claimsOf, makeWorld, type World, workload } from "../support/world.ts";
import { assertShort, stretch } from "../support/yardstick.ts";

const SECRET = "developers-told-developers-told-12";
/** As fast as a person would call it at once. */
const TOLD_MS = 2_000;

let world: World;
let page: Programs;
let api: string;
let issuer: string;
let environment: Record<string, string>;
/** A receiver that keeps what it gets. */
let keeper: WebServer;
const got: string[] = [];
const AUDIENCE = "https://python.example";
before(async () => {
  keeper = await startWebServer(async (request) => {
    got.push(await request.text());
    return new Response(null, { status: 202 });
  });
  const [port = 0, apiPort = 0] = await freePorts(2);
  api = `https://localhost:${apiPort}`;
  issuer = `https://localhost:${port}`;
  const client = { method: "client_secret_basic", secrets: [SECRET] };
  world = await makeWorld(
    {
      issuer,
      listen: {
        ...{ host: "127.0.0.1", port, drainSeconds: 0 },
        tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
      },
      clients: { report: client, other: client, one: client, two: client, three: client, desk: client },
      targets: [{ names: [api], owners: [workload("api")], scopes: ["trips.read"] }],
      signals: {
        streams: {
          trips: {
            ...{ audience: api, targets: [api], url: `${api}/events` },
            ...{ ca: { file: "tls/ca.pem" }, privateNetworks: LOOPBACK },
          },
          python: {
            ...{ audience: AUDIENCE, targets: [api], url: `${keeper.origin}/events` },
            ...{ ca: { file: "keeper.pem" }, privateNetworks: LOOPBACK },
          },
        },
      },
      policies: [
        {
          ...{
            id: "clients",
            allow: "client_credentials",
            clients: ["report", "other", "one", "two", "three"],
          },
          ...{ targets: [api], scopes: ["trips.read"] },
        },
        {
          ...{ id: "desk", allow: "client_credentials", clients: ["desk"] },
          ...{ targets: [`${issuer}/api`], scopes: ["token:revoke", "job:manage"] },
        },
      ],
    },
    // The programs ask of what is as old as they are, so that their clock is behind by what is tolerated.
    { files: { "keeper.pem": keeper.ca }, clock: true, wallAheadSeconds: 29 },
  );
  page = layPrograms(join(world.folder, "programs"));
  const svidFile = join(page.folder, "api.jwt");
  writeFileSync(svidFile, "none");
  const ca = join(world.folder, "tls/ca.pem");
  environment = {
    ...{ ISSUER: issuer, AUDIENCE: api, PORT: String(apiPort), SVID_FILE: svidFile },
    ...{ NODE_EXTRA_CA_CERTS: ca, SSL_CERT_FILE: ca },
    ...{ TLS_KEY: join(world.folder, "tls/key.pem"), TLS_CERT: join(world.folder, "tls/cert.pem") },
  };
  await page.serve("told-api.ts", environment);
});
after(() => stop(page, world, keeper));

async function tokenOf(client: string, audience = api, scope = "trips.read", job?: string): Promise<string> {
  const form = {
    grant_type: "client_credentials",
    audience,
    scope,
    ...(job !== undefined && { mandate_job: job }),
  };
  const body = new URLSearchParams(form).toString();
  const headers = {
    authorization: basic(client, SECRET),
    "content-type": "application/x-www-form-urlencoded",
  };
  const answer = await send(`${issuer}/token`, { method: "POST", ca: world.ca, headers, body });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

const trips = async (token: string): Promise<number> =>
  (await send(`${api}/trips`, { ca: world.ca, headers: { authorization: `Bearer ${token}` } })).status;

async function order(path: string, scope: string, body: object) {
  const token = await tokenOf("desk", `${issuer}/api`, scope);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return send(issuer + path, { method: "POST", ca: world.ca, headers, body: JSON.stringify(body) });
}

async function end(what: object): Promise<Record<string, unknown>> {
  const answer = await order("/revocations", "token:revoke", what);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

async function jobOf(client: string): Promise<string> {
  const made = await order("/jobs", "job:manage", { client, title: `The report of ${client}` });
  assert.equal(made.status, 201, made.text);
  return String(made.body.id);
}

/** Without an SVID the API can ask nothing, so that what it lets pass it knows by itself. */
const untilItIsTold = (): Promise<void> =>
  until(async () => {
    await end({ token: claimsOf(await tokenOf("other")).jti });
    return (await trips(await tokenOf("other"))) === 200;
  }, "the API relies on what it is told");

test("an API that verifies offline refuses a token that was ended, within two seconds, and asks nothing", async () => {
  await untilItIsTold();
  const [ended, stays] = [await tokenOf("report"), await tokenOf("report")];
  assert.deepEqual([await trips(ended), await trips(stays)], [200, 200]);
  await end({ token: claimsOf(ended).jti });
  const telling = stretch();
  await until(async () => (await trips(ended)) === 401, "the ended token is refused");
  assertShort(telling, TOLD_MS, "an API is told");
  assert.equal(await trips(stays), 200);
});

test("an API that verifies offline refuses every token of a subject that was ended, and none of another", async () => {
  const [ended, other] = [await tokenOf("report"), await tokenOf("other")];
  await end({ subject: { iss: issuer, sub: "report" } });
  await until(async () => (await trips(ended)) === 401, "the subject is refused");
  assert.equal(await trips(other), 200);
});

test("JOB-D-14, JOB-D-19, JOB-D-20 an API that verifies offline refuses the tokens of a job that was stopped, and none of another job of the same client", async () => {
  const [job, another] = [await jobOf("three"), await jobOf("three")];
  const [ended, stays, free] = [
    await tokenOf("three", api, "trips.read", job),
    await tokenOf("three", api, "trips.read", another),
    await tokenOf("three"),
  ];
  assert.deepEqual([await trips(ended), await trips(stays), await trips(free)], [200, 200, 200]);
  const { job: before } = await end({ job, dryRun: true });
  assert.deepEqual(
    [(before as JsonObject).state, (before as JsonObject).open],
    ["living", [{ target: api, tokens: 1, until: claimsOf(ended).exp, told: "sent" }]],
  );
  const { ended: count, job: after } = await end({ job });
  assert.deepEqual(
    [count, (after as JsonObject).state, (after as JsonObject).settled],
    [1, "partial", false],
  );
  await until(async () => (await trips(ended)) === 401, "the job is refused");
  assert.deepEqual([await trips(stays), await trips(free)], [200, 200]);
});

test("an API that is told refuses a forged event, and one that is another kind of token", async () => {
  const token = await tokenOf("other");
  const push = async (body: string) =>
    (await send(`${api}/events`, { method: "POST", ca: world.ca, body, headers: {} })).status;
  assert.deepEqual([await push(token), await push("a.b.c"), await push("x".repeat(20_000))], [400, 400, 400]);
  assert.equal(await trips(token), 200);
});

test("the receiver in Python ends the token, the subject and the job that events name, and no other", {
  skip: NO_PYJWT,
}, async () => {
  const [one, two, three] = [await tokenOf("one"), await tokenOf("two"), await tokenOf("three")];
  await end({ token: claimsOf(one).jti });
  await end({ subject: { iss: issuer, sub: "two" } });
  const ofEndings = () =>
    got.filter((set) => JSON.stringify(claimsOf(set).events).includes("session-revoked"));
  const job = await jobOf("three");
  const ofJob = await tokenOf("three", api, "trips.read", job);
  await end({ job });
  const told = [claimsOf(one).jti, "two", job];
  await until(
    () =>
      told.every((name) =>
        ofEndings().some((set) => JSON.stringify(claimsOf(set)).includes(JSON.stringify(name))),
      ),
    "all three events",
  );
  const text = `import json, os, told
told.started_at = 0
given = json.loads(os.environ["GIVEN"])
for one in given["sets"]:
    told.receive(one, given["audience"])
refused = 0
for wrong in given["wrong"]:
    try:
        told.receive(wrong, given["audience"])
    except Exception:
        refused += 1
print(json.dumps([refused, [told.is_ended("", claims) for claims in given["claims"]]]), flush=True)`;
  writeFileSync(join(page.folder, "telling.py"), text);
  const given = {
    audience: AUDIENCE,
    sets: ofEndings(),
    wrong: [one, `${got[0]}x`, "a.b.c"],
    claims: [one, two, ofJob, three].map(claimsOf),
  };
  const { next } = page.run("telling.py", { ...environment, GIVEN: JSON.stringify(given) });
  assert.deepEqual(JSON.parse(await next()), [3, [true, true, true, false]]);
});
