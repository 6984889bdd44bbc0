/**
 * Bound tokens over real TLS, with instances that share a database: certificates at every listener (RFC 8705 3), proofs
 * in real header fields, and the clocks of servers.
 */
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { issueClientCertificate, makeAuthority, mintX509Svid } from "../../scripts/dev-pki.ts";
import { type Answer, basic, type Sent } from "../../scripts/http-client.ts";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { athOf, makeProver, type Prover } from "../support/dpop.ts";
import { seconds } from "../support/forge.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { stop } from "../support/stop.ts";
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

const API = "https://api.example";
const BY_CERTIFICATE = "https://certificates.example";
const OWN = `${ISSUER}/api`;
const MTLS = "https://mtls.as.example";
const PROXY = "proxy.example";
const SECRET = "operator-operator-operator-12345";
const CC = { grant_type: "client_credentials" };
const planner = workload("agents/planner");
const booking = workload("agents/booking");
const scopes = ["trips.read"];

const corporate = await makeAuthority("Corporate authority");
const operators = await makeAuthority("Operators' authority");
const billing = await identity("billing.example");
const renewed = await identity("billing.example");
const pinned = await identity("pinned.example");
const proxy = await identity(PROXY, operators);

let postgres: SharedPostgres;
let world: World;
let beside: ServerProcess;
let mtls: number;
let behind: number;
let prover: Prover;

async function identity(name: string, authority = corporate): Promise<Required<Certificate>> {
  const { keyPem, certPem } = await issueClientCertificate(authority, [name]);
  return { key: keyPem, cert: certPem };
}

/** RFC 8705 3.1, by other means than those of the server. */
const thumbprintOf = ({ cert }: Certificate): string =>
  createHash("sha256")
    .update(new X509Certificate(cert ?? "").raw)
    .digest("base64url");

before(async () => {
  postgres = await sharePostgres();
  prover = await makeProver();
  const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
  const listener = { host: "127.0.0.1", port: 0, tls };
  const { publicKey, raw } = new X509Certificate(pinned.cert);
  const pinnedKey = { ...publicKey.export({ format: "jwk" }), x5c: [raw.toString("base64")] };
  const bound = { tls_client_certificate_bound_access_tokens: true };
  const forUsers = {
    allow: "delegation",
    subjects: { issuers: [IDP] },
    subjectToken: { audiences: [ISSUER, "self"] },
    consent: "implied",
    acknowledge: "subjects-not-asked",
    scopes,
  };
  world = await makeWorld(
    {
      mtls: { ...listener, origin: MTLS },
      proxy: { ...listener, ca: { file: "operators.pem" }, name: PROXY },
      clients: {
        billing: {
          method: "tls_client_auth",
          tls_client_auth_san_dns: "billing.example",
          ca: { file: "corporate.pem" },
          ...bound,
        },
        pinned: { method: "self_signed_tls_client_auth", jwks: { keys: [pinnedKey] }, ...bound },
        secretly: { method: "client_secret_basic", secrets: [SECRET], ...bound },
        plain: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [
        { names: [API], scopes, introspectors: ["plain"] },
        { names: [BY_CERTIFICATE], scopes, binding: "certificate" },
        { names: ["booking-agent"], owners: [booking], scopes },
      ],
      policies: [
        {
          id: "own",
          allow: "client_credentials",
          clients: ["billing", "pinned", "secretly", "plain"],
          targets: [API, BY_CERTIFICATE],
          scopes,
        },
        {
          id: "operators",
          allow: "client_credentials",
          clients: ["billing", "plain"],
          targets: [OWN],
          scopes: ["policy:explain"],
        },
        {
          id: "workloads",
          allow: "client_credentials",
          actors: [planner],
          targets: [API, BY_CERTIFICATE],
          scopes,
        },
        { id: "planner", ...forUsers, actors: [planner], targets: ["booking-agent", BY_CERTIFICATE] },
        { id: "booking", ...forUsers, actors: [booking], targets: [BY_CERTIFICATE] },
        {
          id: "booking-received",
          ...forUsers,
          actors: [booking],
          targets: [API],
          boundSubject: "audience",
          unbound: true,
        },
      ],
      dpop: { nonces: [] },
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    {
      postgres: await freshDatabase(postgres),
      files: { "corporate.pem": corporate.certPem, "operators.pem": operators.certPem },
      clock: true,
    },
  );
  const others = world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? []);
  [mtls = 0, behind = 0] = others.map(Number);
  beside = await world.beside("beside");
});

after(() => stop(beside, world, postgres));

const secretly = (client = "secretly"): Record<string, string> => ({ authorization: basic(client, SECRET) });
const show = (certificate: Certificate, form: Form, headers: Record<string, string> = {}): Promise<Answer> =>
  world.token({ ...CC, ...form }, headers, certificate, mtls);
const svidOf = async (sub: string): Promise<Required<Certificate>> => {
  const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, sub);
  return { key: keyPem, cert: chainPem };
};

function assertBound(answer: Answer, certificate: Certificate): string {
  assert.deepEqual([answer.status, answer.body.token_type], [200, "Bearer"], answer.text);
  const { cnf } = claimsOf(answer.body.access_token) as { cnf?: Record<string, string> };
  assert.deepEqual(cnf, { "x5t#S256": thumbprintOf(certificate) });
  // RFC8705-3.1-3, RFC8705-3.1-4
  assert.match(cnf?.["x5t#S256"] ?? "", /^[A-Za-z0-9_-]{43}$/);
  return String(answer.body.access_token);
}

function assertUnbound(answer: Answer): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).cnf, undefined);
}

const assertRefused = ({ status, body, text }: Answer, error = "invalid_request"): void =>
  assert.deepEqual([status, body.error], [400, error], text);

// --- certificates at the token endpoint ---------------------------------------------------------------------------

test("RFC8705-3.1-1, RFC8705-3.1-2, RFC8705-3.1-3, RFC8705-3.1-4, RFC8705-3.4-1, RFC8705-6.1-3 the token of a client that asks for it is bound to its certificate", async () => {
  assertBound(await show(billing, { client_id: "billing", audience: API }), billing);
  assertBound(await show(renewed, { client_id: "billing", audience: API }), renewed);
  assertBound(await show(pinned, { client_id: "pinned", audience: API }), pinned);
});

test("HTTP-D-25, RFC8705-3-1 an X.509-SVID binds where the target demands it, and nowhere else", async () => {
  const svid = await svidOf(planner);
  assertBound(await show(svid, { audience: BY_CERTIFICATE }), svid);
  assertUnbound(await show(svid, { audience: API }));
});

test("HTTP-D-25, RFC8705-1-2, RFC8705-6.2-1 a certificate of any issuer binds, whichever way the client authenticates", async () => {
  const stray = await identity("stray.example", await makeAuthority("An authority that is not configured"));
  assertBound(await show(stray, { audience: API }, secretly()), stray);
  assertBound(await show(stray, { audience: BY_CERTIFICATE }, secretly("plain")), stray);
  assertUnbound(await show(stray, { audience: API }, secretly("plain")));
});

test("RFC8705-3.4-2 without a certificate there is no token that has to be bound to one", async () => {
  assertRefused(await world.token({ ...CC, audience: API }, secretly(), billing));
  assertRefused(await show({}, { audience: API }, secretly()));
  assertRefused(await show({}, { audience: BY_CERTIFICATE }, secretly("plain")));
});

test("RFC8705-3-1 a certificate that is not valid yet, or not any more, binds nothing", async () => {
  for (const [notBefore, expSeconds] of [
    [new Date(Date.now() + 3_600_000), 7_200],
    [new Date(Date.now() - 7_200_000), -3_600],
  ] as const) {
    const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, planner, { notBefore, expSeconds });
    const shown = await show(
      { key: keyPem, cert: chainPem },
      { audience: BY_CERTIFICATE },
      secretly("plain"),
    );
    assertRefused(shown);
  }
});

test("POLICY-D-15, RFC7800-3.1-v1 a proof and a certificate bind to one key, that of the proof", async () => {
  const dpop = prover.prove(`${MTLS}/token`);
  const answer = await show(billing, { client_id: "billing", audience: API }, { dpop });
  assert.deepEqual([answer.status, answer.body.token_type], [200, "DPoP"], answer.text);
  assert.deepEqual(claimsOf(answer.body.access_token).cnf, { jkt: prover.jkt });
  const excluded = prover.prove(`${MTLS}/token`);
  assertRefused(await show(billing, { client_id: "billing", audience: BY_CERTIFICATE }, { dpop: excluded }));
});

test("HTTP-D-30, RFC9449-4.3-9 a proof names the listener that it is sent to", async () => {
  const ask = (port: number, htu: string): Promise<Answer> =>
    world.token({ ...CC, audience: API }, { ...secretly("plain"), dpop: prover.prove(htu) }, {}, port);
  const { port } = world.server;
  for (const [at, htu, status] of [
    [port, `${ISSUER}/token`, 200],
    [mtls, `${MTLS}/token`, 200],
    [port, `${MTLS}/token`, 400],
    [mtls, `${ISSUER}/token`, 400],
  ] as const) {
    assert.equal((await ask(at, htu)).status, status, `${htu} at ${at}`);
  }
});

test("RFC8705-6.5-1, RFC8705-6.1-3 behind the proxy a token is bound to the certificate that the proxy forwards, never to its own", async () => {
  const forwarded = { "client-cert": `:${new X509Certificate(billing.cert).raw.toString("base64")}:` };
  const form = { ...CC, client_id: "billing", audience: API };
  assertBound(await world.token(form, forwarded, proxy, behind), billing);
  assertRefused(await world.token({ ...CC, audience: API }, secretly(), proxy, behind));
});

test("HTTP-D-25, RFC8705-6.3-1 a token ends with its certificate", async () => {
  const lived = await mintX509Svid(world.trustDomain, planner, { expSeconds: 60 });
  const certificate = { key: lived.keyPem, cert: lived.chainPem };
  const ends = Date.parse(new X509Certificate(lived.certPem).validTo) / 1000;
  const answer = await show(certificate, { audience: BY_CERTIFICATE });
  assert.equal(claimsOf(assertBound(answer, certificate)).exp, ends);
});

test("RFC8705-3.3-1 the metadata announce it", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.equal(body.tls_client_certificate_bound_access_tokens, true);
});

// --- at our own endpoints -----------------------------------------------------------------------------------------

const explain = (token: string, certificate: Certificate, port = mtls, headers = {}): Promise<Answer> =>
  world.get("/policy/explain", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify({ client: "billing", target: BY_CERTIFICATE }),
    connect: { host: "127.0.0.1", port },
    ...certificate,
  } as Partial<Sent>);

test("RFC8705-3-2, RFC8705-3-3, RFC8705-3-4, RFC8705-6.3-1, RFC9700-4.10.1-1 a bound token is accepted with its certificate alone", async () => {
  const token = assertBound(await show(billing, { client_id: "billing", audience: OWN }), billing);
  const { status, body, text } = await explain(token, billing);
  assert.equal(status, 200, text);
  assert.equal((body.would_issue as { binding?: string }).binding, "certificate");
  for (const [certificate, port] of [
    [renewed, mtls],
    [pinned, mtls],
    [{}, mtls],
    [billing, world.server.port],
  ] as const) {
    const refused = await explain(token, certificate, port);
    assert.deepEqual([refused.status, refused.body.error], [401, "invalid_token"]);
    assert.match(refused.headers["www-authenticate"] ?? "", /^Bearer .*error="invalid_token"/);
  }
  const asProof = await explain(token, billing, mtls, {
    authorization: `DPoP ${token}`,
    dpop: prover.prove(`${MTLS}/policy/explain`, { claims: { ath: athOf(token) } }),
  });
  assert.deepEqual([asProof.status, asProof.body.error], [401, "invalid_token"]);
});

test("RFC8705-3.2-1 introspection tells the certificate of a bound token", async () => {
  const token = assertBound(await show(billing, { client_id: "billing", audience: API }), billing);
  const { body } = await world.get("/introspect", {
    method: "POST",
    headers: { ...secretly("plain"), "content-type": "application/x-www-form-urlencoded" },
    body: `token=${token}`,
  });
  const cnf = { "x5t#S256": thumbprintOf(billing) };
  assert.deepEqual([body.active, body.token_type, body.cnf], [true, "Bearer", cnf]);
});

// --- bound input --------------------------------------------------------------------------------------------------

async function exchange(path: string, subject: string, type: string, form: Form, certificate: Certificate) {
  const svid = await world.svid(path);
  const parties = {
    subject_token: subject,
    subject_token_type: type,
    actor_token: svid,
    actor_token_type: JWT,
  };
  return world.token({ grant_type: EXCHANGE, ...parties, ...world.as(svid), ...form }, {}, certificate, mtls);
}

/** A user's token that its issuer bound to a key. */
const userToken = (cnf: object): Promise<string> =>
  world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "trips.read", claims: { cnf } });

test("RFC8705-3-3, RFC7800-3.1-v2, RFC8693-2.1-20 a user's token that its issuer bound is exchanged by the holder of its key", async () => {
  const own = await identity("planner.example");
  const held = await userToken({ "x5t#S256": thumbprintOf(own) });
  const to = { audience: BY_CERTIFICATE };
  assertBound(await exchange("agents/planner", held, JWT, to, own), own);
  assertRefused(await exchange("agents/planner", held, JWT, to, billing));
  assertRefused(await exchange("agents/planner", held, JWT, to, {}));
  const unknown = await userToken({ kid: "a-key" });
  assertRefused(await exchange("agents/planner", unknown, JWT, to, own));
});

test("RFC8705-3-3 an API exchanges the bound token that it received, where the rule says so, and the trail says that the new one is unbound", async () => {
  const own = await identity("planner.example");
  const held = await userToken({ "x5t#S256": thumbprintOf(own) });
  const received = await exchange("agents/planner", held, JWT, { audience: "booking-agent" }, own);
  const token = assertBound(received, own);
  // By another rule it would have to prove the planner's key, and the two rules are for different targets.
  const elsewhere = await exchange(
    "agents/booking",
    token,
    ACCESS_TOKEN,
    { audience: BY_CERTIFICATE },
    billing,
  );
  assertRefused(elsewhere, "invalid_target");
  const answer = await exchange("agents/booking", token, ACCESS_TOKEN, { audience: API }, {});
  assertUnbound(answer);
  const events = await world.events();
  const last = events.findLast(({ type }) => type === "token_exchange.delegation") as { policy?: object };
  assert.equal((last.policy as { unbound?: boolean }).unbound, true);
});

// --- proofs: real fields, other instances, the clock --------------------------------------------------------------

const prove = (
  form: Form,
  headers: Record<string, string | string[]>,
  port = world.server.port,
): Promise<Answer> =>
  world.token(
    { ...CC, audience: API, ...form },
    { ...secretly("plain"), ...headers } as Record<string, string>,
    {},
    port,
  );

test("RFC9449-4.3-1 two fields with a proof are refused, in whatever letters their names are", async () => {
  const proofs = [prover.prove(`${ISSUER}/token`), prover.prove(`${ISSUER}/token`)];
  assertRefused(await prove({}, { DPoP: proofs }), "invalid_dpop_proof");
  assertRefused(await prove({}, { dpop: [proofs[0] ?? "", ""] }), "invalid_dpop_proof");
  assert.equal((await prove({}, { dPoP: proofs[0] ?? "" })).body.token_type, "DPoP", "RFC9449-4.1-1");
});

test("RFC9449-4.1-1 the name of the field is known in any letters", async () => {
  for (const name of ["dpop", "DPOP", "DPoP"]) {
    assert.equal((await prove({}, { [name]: prover.prove(`${ISSUER}/token`) })).body.token_type, "DPoP");
  }
});

test("HTTP-D-29, RFC9449-11.1-2 a proof that one instance accepted is refused by another", async () => {
  const dpop = prover.prove(`${ISSUER}/token`);
  assert.equal((await prove({}, { dpop })).status, 200);
  assertRefused(await prove({}, { dpop }, beside.port), "invalid_dpop_proof");
  const contested = prover.prove(`${ISSUER}/token`);
  const ports = [world.server.port, beside.port, world.server.port, beside.port];
  const answers = await Promise.all(ports.map((port) => prove({}, { dpop: contested }, port)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400]);
});

test("HTTP-D-30, RFC9449-4.3-11, RFC9449-11.1-1 a proof is too old after a minute, by the clock of the server", async () => {
  const made = () => prover.prove(`${ISSUER}/token`, { claims: { iat: seconds() + world.passed() } });
  const [first, second] = [made(), made()];
  world.pass(50);
  assert.equal((await prove({}, { dpop: first })).status, 200);
  world.pass(20);
  assertRefused(await prove({}, { dpop: second }), "invalid_dpop_proof");
  // It is not remembered for ever, and is refused for its age then.
  assertRefused(await prove({}, { dpop: first }), "invalid_dpop_proof");
  assert.equal((await prove({}, { dpop: made() })).status, 200);
});

// --- nonces -------------------------------------------------------------------------------------------------------

describe("a server that demands nonces", () => {
  let noncing: World;
  before(async () => {
    noncing = await makeWorld(
      {
        clients: { plain: { method: "client_secret_basic", secrets: [SECRET] } },
        targets: [{ names: [API], scopes }],
        policies: [
          { id: "own", allow: "client_credentials", clients: ["plain"], targets: [API], scopes },
          {
            id: "operators",
            allow: "client_credentials",
            clients: ["plain"],
            targets: [OWN],
            scopes: ["policy:explain"],
          },
        ],
        dpop: { nonces: ["token", "api"] },
      },
      { clock: true },
    );
  });
  after(() => stop(noncing));

  const ask = (nonce: string | undefined, audience = API): Promise<Answer> =>
    noncing.token(
      { ...CC, audience },
      { ...secretly("plain"), dpop: prover.prove(`${ISSUER}/token`, { claims: { nonce } }) },
    );
  const nonceOf = ({ headers }: Answer): string => headers["dpop-nonce"] ?? "";

  test("RFC9449-8-4 a nonce comes in one header field, in a challenge and beside a token", async () => {
    const challenge = await ask(undefined);
    assert.equal(challenge.body.error, "use_dpop_nonce");
    const given = await ask(nonceOf(challenge), OWN);
    assert.equal(given.status, 200, given.text);
    const token = String(given.body.access_token);
    const proof = prover.prove(`${ISSUER}/policy/explain`, { claims: { ath: athOf(token) } });
    const headers = { authorization: `DPoP ${token}`, dpop: proof };
    const refused = await noncing.get("/policy/explain", { method: "POST", headers, body: "{}" });
    assert.equal(refused.body.error, "use_dpop_nonce");
    // The platform joins fields of one name by commas.
    for (const answer of [challenge, given, refused]) assert.match(nonceOf(answer), /^[A-Za-z0-9_-]{43}$/);
  });

  test("RFC9449-8.2-2 a client that keeps an older nonce is challenged with the newest, which serves", async () => {
    const older = nonceOf(await ask(undefined));
    assert.equal((await ask(older)).status, 200);
    noncing.pass(120);
    const challenge = await ask(older);
    assert.equal(challenge.body.error, "use_dpop_nonce");
    assert.notEqual(nonceOf(challenge), older);
    assert.equal((await ask(nonceOf(challenge))).status, 200);
  });
});
