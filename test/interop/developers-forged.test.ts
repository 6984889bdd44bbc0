/**
 * The APIs of src/http/developers-apis.md, as printed there, behind a hostile issuer: it signs tokens that this server never
 * would, each wrong in one place, and its introspection says what a test wants.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { send } from "../../scripts/http-client.ts";
import { freePorts } from "../../scripts/server-process.ts";
import { layPrograms, NO_PYTHON, type Programs } from "../support/developers.ts";
import { athOf, makeProver } from "../support/dpop.ts";
import { type Forgery, flipped, forge, makeKey, seconds } from "../support/forge.ts";
import { stop } from "../support/stop.ts";
import { startWebServer, type WebServer } from "../support/web.ts";

const parent = mkdtempSync(join(tmpdir(), "mandate-developers-"));
const key = { ...makeKey("ES256", "k1"), typ: "at+jwt" };
const other = { ...makeKey("EdDSA", "k2"), typ: "at+jwt" };
/** Those that the server lists by default for proofs. */
const ALGORITHMS = ["ES256", "ES384", "PS256", "EdDSA", "Ed25519"];
let issuer: WebServer;
let api: { ca: string; ts: string; py: string };
let page: Programs;
/** What introspection answers; undefined for a fault. */
let told: object | undefined;

before(async () => {
  issuer = await startWebServer((request) => {
    if (request.url.endsWith("/.well-known/openid-configuration"))
      return Response.json({ dpop_signing_alg_values_supported: ALGORITHMS });
    if (request.url.endsWith("/jwks")) return Response.json({ keys: [key.jwk, other.jwk] });
    return told === undefined ? new Response("{}", { status: 500 }) : Response.json(told);
  });
  const authority = await makeAuthority("Authority of the APIs");
  const { keyPem, certPem } = await issueServerCertificate(authority, ["localhost"]);
  const files = { "ca.pem": issuer.ca, "key.pem": keyPem, "cert.pem": certPem, "svid.jwt": "an SVID" };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(parent, name), text);
  page = layPrograms(join(parent, "programs"));
  const [ts = 0, py = 0] = await freePorts(2);
  api = { ca: authority.certPem, ts: `https://localhost:${ts}`, py: `https://localhost:${py}` };
  const environment = (origin: string) => ({
    ISSUER: issuer.origin,
    AUDIENCE: origin,
    PORT: new URL(origin).port,
    SVID_FILE: join(parent, "svid.jwt"),
    NODE_EXTRA_CA_CERTS: join(parent, "ca.pem"),
    SSL_CERT_FILE: join(parent, "ca.pem"),
    TLS_KEY: join(parent, "key.pem"),
    TLS_CERT: join(parent, "cert.pem"),
  });
  await page.serve("api.ts", environment(api.ts));
  if (NO_PYTHON === false) await page.serve("api.py", environment(api.py));
});
after(() => stop(page, issuer, () => rmSync(parent, { recursive: true, force: true })));

const good = (origin: string) => ({
  iss: issuer.origin,
  aud: origin,
  sub: "alice",
  client_id: "spiffe://td.example/a",
  scope: "trips.read",
  act: { sub: "spiffe://td.example/a" },
  iat: seconds(),
  exp: seconds() + 60,
});

const answerOf = (origin: string, token: string) =>
  send(`${origin}/trips`, { ca: api.ca, headers: { authorization: `Bearer ${token}` } });

const chainOf = (hops: number): object => ({ sub: "a", ...(hops > 1 && { act: chainOf(hops - 1) }) });

const forgeries: readonly (readonly [string, () => Forgery, typeof key?])[] = [
  ["of another type", () => ({ header: { typ: "JWT" } })],
  ["without a type", () => ({ header: { typ: undefined } })],
  ["of another issuer", () => ({ claims: { iss: "https://other.example" } })],
  ["for another audience", () => ({ claims: { aud: "https://other.example" } })],
  ["that has expired", () => ({ claims: { exp: seconds() - 60 } })],
  ["without an end", () => ({ claims: { exp: undefined } })],
  ["without a subject", () => ({ claims: { sub: undefined } })],
  ["with another signature", () => ({ signature: flipped })],
  ["by another algorithm", () => ({}), other],
  ["bound to a key in a way that is not known", () => ({ claims: { cnf: { other: "x" } } })],
  ["bound to a key that the request does not prove", () => ({ claims: { cnf: { jkt: "x" } } })],
  ["bound to a certificate that the request does not show", () => ({ claims: { cnf: { "x5t#S256": "x" } } })],
  ["with a chain of nine", () => ({ claims: { act: chainOf(9) } })],
  ["with an actor without a name", () => ({ claims: { act: { sub: "a", act: {} } } })],
  ["with an actor that is a text", () => ({ claims: { act: "a" } })],
];

test("the API in TypeScript takes a good token of the issuer, with a chain of eight", async () => {
  told = { active: true };
  const answer = await answerOf(api.ts, forge(key, good(api.ts), { claims: { act: chainOf(8) } }));
  assert.equal(answer.status, 200, answer.text);
});

for (const [what, change, by = key] of forgeries) {
  test(`the API in TypeScript is sent a token ${what}, which is refused`, async () => {
    told = { active: true };
    const answer = await answerOf(api.ts, forge(by, good(api.ts), change()));
    assert.equal(answer.status, 401, answer.text);
  });
}

test("the API in TypeScript is told by introspection that the token has ended, or nothing: it is refused", async () => {
  for (told of [{ active: false }, { active: "true" }, {}, undefined]) {
    const answer = await answerOf(api.ts, forge(key, good(api.ts)));
    assert.equal(answer.status, 401, answer.text);
  }
});

// --- proofs (RFC 9449) -------------------------------------------------------------------------------------------

type Proven = { htu?: string; claims?: object; target?: string; alg?: string; scheme?: string };

/** GET of this request target, byte for byte, with a bound token and a proof that is good but for what is changed. */
async function proven(changes: Proven = {}) {
  told = { active: true };
  const { alg = "ES256", target = "/trips", scheme = "DPoP" } = changes;
  const prover = await makeProver(alg);
  const token = forge(key, good(api.ts), { claims: { cnf: { jkt: prover.jkt } } });
  const claims = { htm: "GET", ath: athOf(token), ...changes.claims };
  const dpop = prover.prove(changes.htu ?? `${api.ts}/trips`, { claims });
  const { hostname, port } = new URL(api.ts);
  const headers = { authorization: `${scheme} ${token}`, dpop };
  const sent = request({ hostname, port, path: target, headers, ca: api.ca, agent: false }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  return { status: answer.statusCode, challenge: String(answer.headers["www-authenticate"]) };
}

const otherHost = "https://other.example/trips";
const wrongProofs: readonly (readonly [string, () => Proven])[] = [
  ["for another server, at the absolute form of its URL", () => ({ htu: otherHost, target: otherHost })],
  [
    "for another server, at a target of two slashes",
    () => ({ htu: otherHost, target: "//other.example/trips" }),
  ],
  [
    "for another server, at a target of a slash and a backslash",
    () => ({ htu: otherHost, target: "/\\other.example/trips" }),
  ],
  ["for another path", () => ({ htu: `${api.ts}/other` })],
  ["for another host", () => ({ htu: otherHost })],
  ["for http", () => ({ htu: `${api.ts}/trips`.replace("https", "http") })],
  ["with a user name in its URL", () => ({ htu: `${api.ts}/trips`.replace("://", "://a@") })],
  ["for another method", () => ({ claims: { htm: "POST" } })],
  ["of an algorithm that the metadata do not list", () => ({ alg: "RS256" })],
  ["that is older than a minute", () => ({ claims: { iat: seconds() - 65 } })],
  ["that is further ahead than 30 s", () => ({ claims: { iat: seconds() + 60 } })],
  ["whose time is a text", () => ({ claims: { iat: String(seconds()) } })],
  ["without a time", () => ({ claims: { iat: undefined } })],
  ["without an id", () => ({ claims: { jti: undefined } })],
  ["with an id of 300 characters", () => ({ claims: { jti: "x".repeat(300) } })],
  ["for another token", () => ({ claims: { ath: athOf("another") } })],
];

for (const [what, wrong] of wrongProofs) {
  test(`RFC9449-7.1-2, RFC9449-4.3-9 the API in TypeScript is sent a proof ${what}, which is refused with the challenge of DPoP`, async () => {
    const { status, challenge } = await proven(wrong());
    assert.deepEqual(
      [status, challenge],
      [
        401,
        `Bearer realm="api", DPoP realm="api", algs="${ALGORITHMS.join(" ")}", error="invalid_dpop_proof"`,
      ],
    );
  });
}

const goodProofs: readonly (readonly [string, () => Proven])[] = [
  ...ALGORITHMS.map((alg) => [`of ${alg}`, () => ({ alg })] as const),
  ["of a clock that is 3 s ahead", () => ({ claims: { iat: seconds() + 3 } })],
  ["of a clock that is 25 s ahead", () => ({ claims: { iat: seconds() + 25 } })],
  ["whose URL has the query", () => ({ htu: `${api.ts}/trips?day=1`, target: "/trips?day=1" })],
  ["whose URL has a query that is ignored", () => ({ htu: `${api.ts}/trips?day=2#x` })],
  [
    "whose URL has the host in capitals",
    () => ({ htu: `${api.ts}/trips`.replace("localhost", "LOCALHOST") }),
  ],
  ["whose URL has a letter in percent-encoding", () => ({ htu: `${api.ts}/%74rips` })],
  ["whose URL has a dot segment", () => ({ htu: `${api.ts}/a/../trips` })],
];

for (const [what, right] of goodProofs) {
  test(`RFC9449-4.3-13, RFC9449-11.1-4 the API in TypeScript is sent a proof ${what}, which is taken`, async () => {
    const { status, challenge } = await proven(right());
    assert.equal(status, 200, challenge);
  });
}

test("RFC9449-7.2-1, RFC9449-7.2-3 the API in TypeScript is sent a bound token as Bearer, which is refused in that scheme", async () => {
  const { status, challenge } = await proven({ scheme: "Bearer" });
  assert.equal(status, 401);
  assert.match(challenge, /^Bearer realm="api", error="invalid_token", DPoP realm="api", algs="[^"]+"$/);
});

test("RFC6750-3.1-5 a request without a token gets no error code from the API in TypeScript", async () => {
  const { status, headers } = await send(`${api.ts}/trips`, { ca: api.ca });
  assert.equal(status, 401);
  assert.doesNotMatch(String(headers["www-authenticate"]), /error/);
});

// --- introspection ----------------------------------------------------------------------------------------------

const introspected: readonly (readonly [string, number, object])[] = [
  ["an active token for it, which is taken", 200, {}],
  ["a token that is not active, which is refused", 401, { active: false }],
  ["a token for another audience, which is refused", 401, { aud: "https://other.example" }],
  ["a token of another issuer, which is refused", 401, { iss: "https://other.example" }],
  ["a token that is bound to a key, which is refused", 401, { cnf: { jkt: "x" } }],
  ["a token without the scope, which is refused", 403, { scope: "trips.book trips.readme" }],
];

for (const [what, status, change] of introspected) {
  test(`the API in Python is told of ${what}`, { skip: NO_PYTHON }, async () => {
    told = { active: true, ...good(api.py), ...change };
    assert.equal((await answerOf(api.py, "token")).status, status);
  });
}
