/**
 * The programs of src/http/developers.md and developers-apis.md, as printed there: an agent that acts for a user, APIs
 * and an MCP server, in TypeScript and in Python, against a server in the production profile, over TLS and in processes
 * of their own.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { mintX509Svid } from "../../scripts/dev-pki.ts";
import { encodeForm, send } from "../../scripts/http-client.ts";
import { freePorts, MAIN } from "../../scripts/server-process.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT as TRANSACTIONS_DRAFT } from "../../src/spec/transaction-tokens.ts";
import {
  layPrograms,
  NO_PYJWT,
  NO_PYTHON,
  type Program,
  type Programs,
  programs,
} from "../support/developers.ts";
import { athOf, makeProver } from "../support/dpop.ts";
import { Browser } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { fetchAt } from "../support/web.ts";
import { claimsOf, EXCHANGE, JWT, makeWorld, TRUST_DOMAIN, type World, workload } from "../support/world.ts";

const ROOT = join(import.meta.dirname, "../..");
const PLANNER = "agents/planner";
const SCOPES = ["trips.read", "trips.book"];
const FORM = { "content-type": "application/x-www-form-urlencoded" };

let provider: TestProvider;
let world: World;
let issuer: string;
/** The APIs and the MCP server: their origins. */
let api: { ts: string; py: string };
/** The same for the APIs that enforce details. */
let ledger: { ts: string; py: string };
let mcp: string;
/** Agents that work for other agents, before the API in TypeScript. */
let booking: { ts: string; py: string };
/** An API that takes tokens bound to a key of the caller's own alone. */
let keyed: string;
/** An API that takes tokens bound to a certificate alone, and where those are issued. */
let bound: { api: string; issuer: string };
/** An API behind which transaction tokens are used, and what is behind it. */
let gateway: string;
let inner: string;
let page: Programs;

const PAYING = ["invoices.read", "invoices.pay"];
const [INVOICE, OTHER] = ["https://ledger.example/rar/invoice", "https://ledger.example/rar/other"] as const;
const text = { is: "string", narrows: "equal" };
const invoice = {
  governs: PAYING,
  needs: ["actions"],
  fields: {
    actions: { is: "strings", narrows: "subset", from: ["read", "pay"] },
    identifier: text,
    max_amount: { is: "decimal", narrows: "max", unit: "currency" },
    currency: text,
  },
};

/** What an operator configures for the programs of the page. */
const configuration = (targets: readonly string[], mcpUrl: string) => {
  const subjects = { issuers: [provider.issuer] };
  return {
    profile: "production",
    issuer,
    trustDomains: { [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } } },
    trustedIssuers: provider.trusted({ acceptAs: ["jwt"], scopes: SCOPES }),
    signIn: { providers: { company: provider.provider() } },
    targets: [
      ...targets.map((name) => ({ names: [name], owners: [workload("api")], scopes: SCOPES })),
      { names: [mcpUrl], owners: [workload("mcp")], scopes: SCOPES },
      { names: [booking.ts, booking.py], owners: [workload("booking")], scopes: SCOPES },
      { names: [keyed], owners: [workload("api")], scopes: SCOPES, binding: "dpop" },
      {
        names: [ledger.ts, ledger.py],
        owners: [workload("api")],
        scopes: PAYING,
        details: { [INVOICE]: invoice, [OTHER]: { ...invoice } },
      },
      { names: [bound.api], owners: [workload("api")], scopes: SCOPES, binding: "certificate" },
      { names: [gateway], owners: [workload("gateway")], scopes: SCOPES },
      {
        kind: "transaction",
        names: [TRUST_DOMAIN],
        owners: [workload("gateway"), workload("inner")],
        purposes: { "look.trips": ["trips.read"], "change.trips": SCOPES },
        rctx: { req_ip: { is: "string", chars: 45 } },
        tctx: { trip: { from: "witness", workloads: [workload("gateway")], is: "string" } },
      },
    ],
    policies: [
      {
        id: "agents-for-users",
        allow: "delegation",
        actors: [workload("agents/*")],
        subjects,
        subjectToken: { audiences: [issuer] },
        consent: "record",
        askUser: true,
        targets: [...targets, mcpUrl, booking.ts, booking.py, keyed, gateway],
        scopes: SCOPES,
      },
      {
        id: "mcp-for-users",
        allow: "delegation",
        actors: [workload("mcp"), workload("booking")],
        subjects,
        subjectToken: { audiences: ["self"] },
        consent: "implied",
        acknowledge: "subjects-not-asked",
        targets,
        scopes: SCOPES,
      },
      {
        id: "gateway-inside",
        allow: "transaction",
        issues: "transaction",
        actors: [workload("gateway")],
        subjects,
        subjectToken: { audiences: ["self"] },
        consent: "implied",
        acknowledge: "subjects-not-asked",
        targets: [TRUST_DOMAIN],
        scopes: ["look.trips", "change.trips"],
      },
      {
        id: "planner-itself",
        allow: "client_credentials",
        actors: [workload(PLANNER)],
        targets: [...targets, bound.api],
        scopes: SCOPES,
      },
      {
        id: "clerk-pays",
        allow: "client_credentials",
        actors: [workload("agents/clerk")],
        targets: [ledger.ts],
        scopes: PAYING,
      },
    ],
    drafts: [SPIFFE_DRAFT, TRANSACTIONS_DRAFT],
    // So that the programs are told to wait.
    limits: { requestsPerSecondByClient: 5 },
  };
};

before(async () => {
  provider = await startProvider();
  const ports = await freePorts(13);
  const [port = 0, mtls = 0, ts = 0, py = 0, mcpPort = 0, boundPort = 0, ledgerTs = 0, ledgerPy = 0] = ports;
  const [bookingTs = 0, bookingPy = 0, keyedPort = 0, gatewayPort = 0, innerPort = 0] = ports.slice(8);
  booking = { ts: `https://localhost:${bookingTs}`, py: `https://localhost:${bookingPy}` };
  keyed = `https://localhost:${keyedPort}`;
  gateway = `https://localhost:${gatewayPort}`;
  inner = `https://localhost:${innerPort}`;
  issuer = `https://localhost:${port}`;
  api = { ts: `https://localhost:${ts}`, py: `https://localhost:${py}` };
  ledger = { ts: `https://localhost:${ledgerTs}`, py: `https://localhost:${ledgerPy}` };
  mcp = `https://localhost:${mcpPort}/mcp`;
  bound = { api: `https://localhost:${boundPort}`, issuer: `https://localhost:${mtls}` };
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  world = await makeWorld(
    {
      ...configuration([api.ts, api.py], mcp),
      listen: { host: "127.0.0.1", port, drainSeconds: 0, tls },
      mtls: { host: "127.0.0.1", port: mtls, tls, origin: bound.issuer },
    },
    { files: { "provider.pem": provider.ca } },
  );
  page = layPrograms(join(world.folder, "programs"));
  await start("api.ts", "api", { AUDIENCE: api.ts, PORT: String(ts) });
  await start("api.ts", "api", { AUDIENCE: bound.api, PORT: String(boundPort) });
  if (NO_PYTHON === false) await start("api.py", "api", { AUDIENCE: api.py, PORT: String(py) });
  await start("ledger.ts", "api", { AUDIENCE: ledger.ts, PORT: String(ledgerTs) });
  if (NO_PYTHON === false) await start("ledger.py", "api", { AUDIENCE: ledger.py, PORT: String(ledgerPy) });
  await start("api.ts", "api", { AUDIENCE: keyed, PORT: String(keyedPort) });
  for (const [name, origin] of [["booking.ts", booking.ts] as const, ["booking.py", booking.py] as const]) {
    const own = { AUDIENCE: origin, API: api.ts, PORT: new URL(origin).port };
    if (name.endsWith(".ts") || NO_PYTHON === false) await start(name, "booking", own);
  }
  await start("mcp.ts", "mcp", { AUDIENCE: mcp, API: api.ts, PORT: String(mcpPort) });
});
after(() => stop(page, world, provider));

const svidOf = (path: string): Promise<string> => world.svid(path, { aud: issuer });

/** What a program of the page has in its environment, if it is this workload. */
async function environmentOf(path: string, more: Record<string, string>): Promise<Record<string, string>> {
  const svidFile = join(page.folder, `${path.replaceAll("/", "-")}.jwt`);
  writeFileSync(svidFile, `${await svidOf(path)}\n`);
  const ca = join(world.folder, "tls/ca.pem");
  return {
    ISSUER: issuer,
    SVID_FILE: svidFile,
    NODE_EXTRA_CA_CERTS: ca,
    SSL_CERT_FILE: ca,
    TLS_KEY: join(world.folder, "tls/key.pem"),
    TLS_CERT: join(world.folder, "tls/cert.pem"),
    ...more,
  };
}

const run = async (name: string, path: string, more: Record<string, string> = {}): Promise<Program> =>
  page.run(name, await environmentOf(path, more));
const start = async (name: string, path: string, more: Record<string, string>): Promise<void> =>
  page.serve(name, await environmentOf(path, more));

const userToken = (user: string, scope = SCOPES.join(" ")): Promise<string> =>
  provider.userToken(user, issuer, { scope });

/** The browser of a user, who opens a link of this server and allows everything. */
async function allow(link: string, user: string): Promise<void> {
  const get: World["get"] = (path, options) => send(issuer + path, { ca: world.ca, ...options });
  const browser = new Browser({ get, issuer }, provider);
  const page = await browser.signIn(await browser.get(link), user);
  assert.equal((await browser.decide(page)).status, 200);
}

/** A token of an agent for the user, by hand; where the user was not asked, they are. */
async function delegated(user: string, audience: string, scope: string, path: string, proof?: string) {
  const svid = await svidOf(path);
  const body = new URLSearchParams({
    ...(world.as(svid) as Record<string, string>),
    grant_type: EXCHANGE,
    subject_token: await userToken(user),
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    audience,
    scope,
  }).toString();
  const headers = { ...FORM, ...(proof && { dpop: proof }) };
  return send(`${issuer}/token`, { method: "POST", ca: world.ca, headers, body });
}

async function tokenOf(user: string, audience: string, scope: string, path: string, proof?: () => string) {
  const refused = await delegated(user, audience, scope, path, proof?.());
  await allow(String(refused.body.error_uri), user);
  const answer = await delegated(user, audience, scope, path, proof?.());
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}

/** Uses up the rate of this workload, until a request of its program was refused for it as well. */
async function untilToldToWait(path: string): Promise<void> {
  const svid = await svidOf(path);
  const body = encodeForm({ ...world.as(svid), grant_type: "client_credentials" });
  const told = () => world.server.lines.filter((line) => line.includes('"status":429')).length;
  const before = told();
  for (let own = 0; told() - before <= own; ) {
    const { status } = await send(`${issuer}/token`, { method: "POST", ca: world.ca, headers: FORM, body });
    if (status === 429) own++;
    await sleep(20);
  }
}

const trips = (origin: string, authorization: string, more: Record<string, string> = {}) =>
  send(`${origin}/trips`, { ca: world.ca, headers: { ...(authorization && { authorization }), ...more } });

const languages = [
  ["TypeScript", "ts", false],
  ["Python", "py", NO_PYTHON],
] as const;

for (const [language, ending, skip] of languages) {
  test(`the agent in ${language} asks the user, waits where it is told to, and calls the API for them`, {
    skip,
  }, async () => {
    const user = `user-of-${ending}`;
    const environment = { API: api[ending], USER_TOKEN: await userToken(user) };
    const { next } = await run(`plan.${ending}`, `agents/${ending}`, environment);
    const link = /^Please open (\S+)$/.exec(await next())?.[1] ?? assert.fail();
    await untilToldToWait(`agents/${ending}`);
    await allow(link, user);
    const answer = JSON.parse(await next());
    assert.equal(answer.for, `company:${user}`);
    assert.deepEqual([answer.by].flat(), [workload(`agents/${ending}`)]);
    assert.ok(
      world.server.lines.some((line) => line.includes('"status":429')),
      "it was told to wait",
    );
  });

  test(`the agent in ${language} that asks for what no rule has gives up, with the id of its request: it is refused`, {
    skip,
  }, async () => {
    const { child, errors } = await run(`plan.${ending}`, "elsewhere", {
      API: api[ending],
      USER_TOKEN: await userToken("user-of-none"),
    });
    const [code] = await once(child, "close");
    assert.equal(code, 1);
    assert.match(errors.join("\n"), /invalid_request: the request is not allowed \(request [\w-]+\)/);
  });

  test(`the API in ${language} takes a token for itself with the scope; any other is refused`, {
    skip,
  }, async () => {
    const origin = api[ending];
    const user = `caller-of-${ending}`;
    const tokenFor = (audience: string, scope: string): Promise<string> =>
      tokenOf(user, audience, scope, `agents/${randomUUID()}`);
    const token = await tokenFor(origin, "trips.read");
    assert.equal((await trips(origin, `Bearer ${token}`)).status, 200);
    assert.equal((await trips(origin, `Bearer ${await tokenFor(origin, "trips.book")}`)).status, 403);
    const other = ending === "ts" ? api.py : api.ts;
    assert.equal((await trips(origin, `Bearer ${await tokenFor(other, "trips.read")}`)).status, 401);
    for (const wrong of ["", "Bearer", "Bearer abc", `Bearer ${token}x`, `DPoP ${token}`]) {
      const { status, headers } = await trips(origin, wrong);
      assert.equal(status, 401, wrong);
      const told = /error="invalid_token"/.test(headers["www-authenticate"] ?? "");
      assert.equal(told, wrong !== "", wrong);
    }
    // The user's own token is of another issuer.
    assert.equal((await trips(origin, `Bearer ${await userToken(user)}`)).status, 401);
    await end(String(claimsOf(token).jti));
    assert.equal((await trips(origin, `Bearer ${token}`)).status, 401);
  });
}

for (const [language, ending, skip] of languages) {
  const withKey = { ts: 'import "./dpop.ts"; await import("./plan.ts");', py: "import dpop, plan" }[ending];
  test(`RFC9449-5-1 the agent in ${language} with a key of its own gets a bound token, and an API that takes no other serves it`, {
    skip: ending === "py" ? NO_PYJWT : skip,
  }, async () => {
    const user = `owner-by-${ending}`;
    writeFileSync(join(page.folder, `keyed.${ending}`), withKey);
    const environment = { API: keyed, USER_TOKEN: await userToken(user) };
    const { next } = await run(`keyed.${ending}`, `agents/keyed-${ending}`, environment);
    await allow(/^Please open (\S+)$/.exec(await next())?.[1] ?? assert.fail(), user);
    assert.equal(JSON.parse(await next()).for, `company:${user}`);
  });

  test(`JOB-D-4, JOB-D-13 the agent in ${language} does a job that its user approved, and ends it with the work`, {
    skip,
  }, async () => {
    const user = `principal-of-${ending}`;
    const environment = { API: api.ts, USER_TOKEN: await userToken(user) };
    const { child, next } = await run(`job.${ending}`, `agents/job-${ending}`, environment);
    await allow(/^Please open (\S+)$/.exec(await next())?.[1] ?? assert.fail(), user);
    assert.equal(JSON.parse(await next()).for, `company:${user}`);
    if (child.exitCode === null) await once(child, "exit");
    assert.equal(child.exitCode, 0);
    const ended = (await world.events()).findLast(({ type }) => type === "job.ended");
    assert.deepEqual(
      [ended?.reason, (ended?.detail as { actor?: string } | undefined)?.actor],
      ["by_client", workload(`agents/job-${ending}`)],
    );
  });

  test(`two hops in ${language}: the agent that works for another one goes on with a token of its own, and both stand in the chain`, {
    skip,
  }, async () => {
    const user = `traveller-${ending}`;
    const environment = { API: booking[ending], USER_TOKEN: await userToken(user) };
    const { next } = await run(`plan.${ending}`, `agents/first-${ending}`, environment);
    await allow(/^Please open (\S+)$/.exec(await next())?.[1] ?? assert.fail(), user);
    assert.deepEqual(JSON.parse(await next()), {
      ...{ trips: [], for: `company:${user}`, by: workload("booking") },
      before: [workload(`agents/first-${ending}`)],
    });
    assert.equal((await trips(booking[ending], `Bearer ${await userToken(user)}`)).status, 401);
  });

  test(`RAR-D-14, PRM-D-5 the API in ${language} that enforces details names their types; a payment beyond those of the token is refused`, {
    skip,
  }, async () => {
    const origin = ledger[ending];
    const resource = await send(`${origin}/.well-known/oauth-protected-resource`, { ca: world.ca });
    assert.deepEqual(resource.body, {
      ...{ resource: origin, authorization_servers: [issuer], scopes_supported: PAYING },
      authorization_details_types_supported: [INVOICE],
    });
    const token = async (details: object[] | undefined, scope = "invoices.pay"): Promise<string> => {
      const asked = details && { authorization_details: JSON.stringify(details) };
      const own = { grant_type: "client_credentials", audience: origin, scope, ...asked };
      const body = encodeForm({ ...world.as(await svidOf("agents/clerk")), ...own });
      const answer = await send(`${issuer}/token`, { method: "POST", ca: world.ca, headers: FORM, body });
      assert.equal(answer.status, 200, answer.text);
      return String(answer.body.access_token);
    };
    const pays = async (authorization: string, payment: Record<string, string>): Promise<number> =>
      (
        await send(`${origin}/pay?${new URLSearchParams(payment)}`, {
          ca: world.ca,
          headers: { authorization: `Bearer ${authorization}` },
        })
      ).status;
    const one = {
      type: INVOICE,
      actions: ["pay"],
      identifier: "inv-1",
      max_amount: "120.10",
      currency: "EUR",
    };
    const limited = await token([one, { ...one, identifier: "inv-2", max_amount: "9" }]);
    const payment = { identifier: "inv-1", amount: "120.10", currency: "EUR" };
    for (const [asked, status] of [
      [payment, 200],
      [{ ...payment, amount: "120.100000000000000001" }, 403],
      [{ ...payment, identifier: "inv-2" }, 403],
      [{ ...payment, identifier: "inv-2", amount: "9.00" }, 200],
      [{ ...payment, identifier: "inv-3" }, 403],
      [{ ...payment, currency: "USD" }, 403],
      [{ ...payment, amount: "-1" }, 400],
      [{ ...payment, amount: "NaN" }, 400],
      [{ ...payment, amount: "" }, 400],
    ] as const)
      assert.equal(await pays(limited, asked), status, JSON.stringify(asked));
    const reading = await token([{ ...one, actions: ["read"] }]);
    assert.equal(await pays(reading, payment), 403);
    assert.equal(await pays(await token(undefined), { ...payment, amount: "99999" }), 200);
    assert.equal(await pays(await token(undefined, "invoices.read"), payment), 403);
    // The API does not know this type, though the operator declared it.
    assert.equal(await pays(await token([{ ...one, type: OTHER }]), payment), 401);
  });
}

/** An operator ends the token on the host. */
async function end(jti: string): Promise<void> {
  const command = [MAIN, "tokens", "end", "--jti", jti, "--config", world.configFile];
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...command], { cwd: ROOT });
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
}

test("RFC9449-7.1-1 a token that is bound to a key: without its proof, or with a used one, the APIs of the page refuse it", async () => {
  const prover = await makeProver();
  const token = await tokenOf("bound", api.ts, "trips.read", "agents/bound", () =>
    prover.prove(`${issuer}/token`),
  );
  const proof = () => prover.prove(`${api.ts}/trips`, { claims: { htm: "GET", ath: athOf(token) } });
  const dpop = proof();
  assert.equal((await trips(api.ts, `DPoP ${token}`, { dpop })).status, 200);
  assert.equal((await trips(api.ts, `DPoP ${token}`, { dpop })).status, 401);
  assert.equal((await trips(api.ts, `Bearer ${token}`, { dpop: proof() })).status, 401);
  assert.equal((await trips(api.ts, `DPoP ${token}`)).status, 401);
  const ofAnother = prover.prove(`${api.ts}/trips`, { claims: { htm: "GET", ath: athOf("another") } });
  assert.equal((await trips(api.ts, `DPoP ${token}`, { dpop: ofAnother })).status, 401);
  const other = await makeProver();
  const forged = other.prove(`${api.ts}/trips`, { claims: { htm: "GET", ath: athOf(token) } });
  assert.equal((await trips(api.ts, `DPoP ${token}`, { dpop: forged })).status, 401);
  const elsewhere = prover.prove(`${api.ts}/other`, { claims: { htm: "GET", ath: athOf(token) } });
  assert.equal((await trips(api.ts, `DPoP ${token}`, { dpop: elsewhere })).status, 401);
});

test("RFC8705-3-1 a token that is bound to a certificate: over a connection with another one, or with none, the API of the page refuses it", async () => {
  const certificate = async (path: string) => {
    const { keyPem: key, chainPem: cert } = await mintX509Svid(world.trustDomain, workload(path));
    return { key, cert };
  };
  const own = await certificate(PLANNER);
  const body = encodeForm({ grant_type: "client_credentials", audience: bound.api, scope: "trips.read" });
  const sent = { method: "POST", ca: world.ca, headers: FORM, body };
  const answer = await send(`${bound.issuer}/token`, { ...sent, ...own });
  const headers = { authorization: `Bearer ${answer.body.access_token}` };
  const by = async (certificate: object) =>
    (await send(`${bound.api}/trips`, { ca: world.ca, headers, ...certificate })).status;
  assert.deepEqual(
    [await by(own), await by(await certificate(PLANNER)), await by({})],
    [200, 401, 401],
    answer.text,
  );
});

test("a program gets a token for itself, in both languages", async () => {
  const programs = [
    [
      "itself.ts",
      `import { ownToken } from "./agent.ts"; console.log((await ownToken("${api.ts}", "trips.read")).scope);`,
    ],
    ["itself.py", `from agent import own_token\nprint(own_token("${api.py}", "trips.read")["scope"])`],
  ] as const;
  for (const [name, text] of NO_PYTHON === false ? programs : programs.slice(0, 1)) {
    writeFileSync(join(page.folder, name), text);
    const { next } = await run(name, PLANNER);
    assert.equal(await next(), "trips.read");
  }
});

test("a program whose token the API refused gets another one, once, and keeps it", async () => {
  const token = await tokenOf("renewing", api.ts, "trips.read", "agents/renewing");
  const text = `import { caller } from "./agent.ts";
    const tokens = ["ended", process.env.TOKEN];
    const call = caller(async () => ({ access_token: tokens.shift(), expires_in: 300, scope: "" }));
    const statuses = [];
    for (let i = 0; i < 2; i++) statuses.push((await call("${api.ts}/trips")).status);
    console.log(JSON.stringify([statuses, tokens]));`;
  writeFileSync(join(page.folder, "renewing.ts"), text);
  const { next } = await run("renewing.ts", PLANNER, { TOKEN: token });
  assert.equal(await next(), "[[200,200],[]]");
});

test("the MCP server of the page tells a client where tokens are, and goes on for its caller with a token of its own", async () => {
  const fetch = fetchAt({ localhost: { ca: world.ca } });
  const without = await fetch(mcp, { method: "POST" });
  const told = /resource_metadata="([^"]+)"/.exec(without.headers.get("www-authenticate") ?? "")?.[1] ?? "";
  assert.equal(without.status, 401);
  const metadata = (await (await fetch(told)).json()) as Record<string, unknown>;
  assert.deepEqual([metadata.resource, metadata.authorization_servers], [mcp, [issuer]]);
  const token = await tokenOf("caller-of-mcp", mcp, "trips.read", "agents/mcp");
  const headers = { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(mcp), { fetch, requestInit: { headers } });
  const client = new Client({ name: "desk", version: "1.0.0" });
  await client.connect(transport);
  const { content } = await client.callTool({ name: "trips", arguments: {} });
  await client.close();
  const [{ text = "" } = {}] = content as { text?: string }[];
  assert.deepEqual(JSON.parse(text), {
    trips: [],
    for: "company:caller-of-mcp",
    by: workload("mcp"),
    before: [workload("agents/mcp")],
  });
});

test("the offline verification in Python takes a token for this API; another audience is refused", {
  skip: NO_PYJWT,
}, async () => {
  const token = await tokenOf("offline", api.py, "trips.read", "agents/offline");
  const program = `import sys\nfrom offline import claims_of\nprint(claims_of(sys.argv[1], sys.argv[2])["sub"])`;
  writeFileSync(join(page.folder, "try.py"), program);
  const ca = join(world.folder, "tls/ca.pem");
  const verify = (...words: string[]) =>
    spawnSync("python3", ["try.py", ...words], {
      cwd: page.folder,
      encoding: "utf8",
      env: { PATH: process.env.PATH, ISSUER: issuer, SSL_CERT_FILE: ca, SVID_FILE: "none" },
    });
  assert.equal(verify(token, api.py).stdout, "company:offline\n");
  assert.match(verify(token, api.ts).stderr, /InvalidAudienceError/);
  assert.notEqual(verify(await userToken("offline"), issuer).status, 0);
});

test("each program of the page is one of these", () => {
  assert.deepEqual([...programs().keys()].sort(), [
    "agent.py",
    "agent.ts",
    "api.py",
    "api.ts",
    "booking.py",
    "booking.ts",
    "dpop.py",
    "dpop.ts",
    "gateway.ts",
    "inner.py",
    "job.py",
    "job.ts",
    "ledger.py",
    "ledger.ts",
    "mcp.ts",
    "offline.py",
    "plan.py",
    "plan.ts",
    "receipt.py",
    "receipt.ts",
    "told-api.ts",
    "told.py",
    "told.ts",
    "verify.ts",
  ]);
});

// --- transaction tokens -------------------------------------------------------------------------------------------

test("TXN-12-1, TXN-12.1-1, TXN-12.2-1, TXN-9.2-3 the gateway hands a call on with a transaction token, and what is behind it takes that and nothing else", {
  skip: NO_PYJWT,
}, async () => {
  await start("inner.py", "inner", { DOMAIN: TRUST_DOMAIN, AUDIENCE: inner, PORT: new URL(inner).port });
  const own = { DOMAIN: TRUST_DOMAIN, AUDIENCE: gateway, INNER: inner, PORT: new URL(gateway).port };
  await start("gateway.ts", "gateway", own);
  const token = await tokenOf("user-inside", gateway, "trips.read", "agents/inside");
  const get = (origin: string, path: string, headers: Record<string, string | string[]>) =>
    send(`${origin}${path}`, { ca: world.ca, headers: headers as Record<string, string> });
  const served = await get(gateway, "/trips/t-7", { authorization: `Bearer ${token}` });
  assert.equal(served.status, 200, served.text);
  const { txn, from, ...told } = JSON.parse(served.text);
  assert.deepEqual(told, { trip: "t-7", for: "company:user-inside", by: workload("gateway") });
  assert.match(`${txn} ${from}`, /^txn_\S{22} \S*127\.0\.0\.1$|^txn_\S{22} ::1$/);
  assert.equal((await get(gateway, "/trips/t-7", { authorization: `Bearer ${token}x` })).status, 401);
  // The purpose needs a scope that this one has not.
  const other = await tokenOf("user-inside", gateway, "trips.book", "agents/inside-too");
  assert.equal((await get(gateway, "/trips/t-7", { authorization: `Bearer ${other}` })).status, 403);

  const inside = await fetchInside(token, "t-7");
  assert.equal((await get(inner, "/trips/t-7", { "txn-token": inside })).status, 200);
  assert.equal((await get(inner, "/trips/t-8", { "txn-token": inside })).status, 403);
  const [header = "", payload = "", signature = ""] = inside.split(".");
  const forged = Buffer.from(JSON.stringify({ ...claimsOf(inside), tctx: { trip: "t-8" } })).toString(
    "base64url",
  );
  for (const wrong of [
    {},
    { authorization: `Bearer ${inside}` },
    { "txn-token": token },
    { "txn-token": [inside, inside] },
    { "txn-token": `${inside}, ${inside}` },
    { "txn-token": `${header}.${forged}.${signature}` },
    {
      "txn-token": `${Buffer.from('{"alg":"none","typ":"txntoken+jwt"}').toString("base64url")}.${payload}.`,
    },
    { "txn-token": await userToken("user-inside") },
  ]) {
    assert.equal((await get(inner, "/trips/t-7", wrong)).status, 401, JSON.stringify(wrong));
  }
  assert.equal((await trips(gateway, `Bearer ${inside}`)).status, 404);
  assert.equal((await get(gateway, "/trips/t-7", { authorization: `Bearer ${inside}` })).status, 401);
});

/** What the gateway asks for, by hand. */
async function fetchInside(token: string, trip: string): Promise<string> {
  const svid = await svidOf("gateway");
  const body = encodeForm({
    ...world.as(svid),
    grant_type: EXCHANGE,
    requested_token_type: "urn:ietf:params:oauth:token-type:txn_token",
    subject_token: token,
    subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
    audience: TRUST_DOMAIN,
    scope: "look.trips",
    request_details: JSON.stringify({ trip }),
  });
  const answer = await send(`${issuer}/token`, { method: "POST", ca: world.ca, headers: FORM, body });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.body.access_token);
}
