/**
 * Every method of client authentication over real TLS: what is accepted and what is refused. The accepted case of a
 * table comes first, made by the same code as the forgeries after it.
 */
import assert from "node:assert/strict";
import { createPrivateKey, sign, X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { exportJWK, exportPKCS8, generateKeyPair } from "jose";
import { bundle, type TrustDomain } from "../../scripts/dev-keys.ts";
import {
  issueClientCertificate,
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  type SvidOptions,
  x509,
} from "../../scripts/dev-pki.ts";
import { type Answer, basic, encodeForm } from "../../scripts/http-client.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { reloadBundle } from "../support/reload.ts";
import { stop } from "../support/stop.ts";
import {
  type Certificate,
  type Form,
  ISSUER,
  JWT_SPIFFE,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const CLUSTER = "https://cluster.example";
const OTHER_CLUSTER = "https://other.cluster.example";
const CC = { grant_type: "client_credentials", audience: API };

async function makeKey(alg: string, kid: string) {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { pem: await exportPKCS8(pair.privateKey), jwk: { ...(await exportJWK(pair.publicKey)), kid } };
}

const own = await makeKey("ES256", "k1");
const strange = await makeKey("ES256", "k1");
const cluster = await makeKey("ES256", "c1");
const corporate = await makeAuthority("Corporate authority");
const [billing, otherBilling, pinned] = await Promise.all([
  issueClient("billing.example"),
  issueClient("other.example"),
  issueClient("pinned.example"),
]);

/** A certificate of the corporate authority, for TLS clients without a SPIFFE ID. */
async function issueClient(name: string) {
  const issued = await issueClientCertificate(corporate, [name]);
  return { ...issued, x5c: new X509Certificate(issued.certPem).raw.toString("base64") };
}

let world: World;
let database: SharedPostgres;

before(async () => {
  database = await sharePostgres();
  const url = await freshDatabase(database);
  world = await makeWorld(
    {
      clients: {
        signer: { method: "private_key_jwt", jwks: { keys: [own.jwk] } },
        careful: { method: "private_key_jwt", jwks: { keys: [own.jwk] }, assertionAudience: "issuer" },
        runner: {
          method: "private_key_jwt",
          vouchedBy: [
            { issuer: CLUSTER, claims: { sub: "system:runner" } },
            { issuer: OTHER_CLUSTER, claims: { sub: "system:other" } },
          ],
        },
        cart: { method: "spiffe_jwt", spiffeId: workload("shop/*") },
        desk: { method: "spiffe_x509", spiffeId: workload("desk") },
        billing: {
          method: "tls_client_auth",
          tls_client_auth_san_dns: "billing.example",
          ca: { file: "corporate.pem" },
        },
        pinned: {
          method: "self_signed_tls_client_auth",
          jwks: { keys: [{ ...ec(pinned.certPem), x5c: [pinned.x5c] }] },
        },
        secret: { method: "client_secret_basic", secrets: ["a-secret"] },
      },
      trustedIssuers: {
        [CLUSTER]: {
          keys: { url: "https://localhost:1/jwks", privateNetworks: ["127.0.0.0/8", "::1/128"] },
          subjects: { prefix: "cluster:" },
          acceptAs: [],
          vouches: { maxAgeSeconds: 3600, reusable: true },
        },
        [OTHER_CLUSTER]: {
          keys: { url: "https://localhost:1/other" },
          subjects: { prefix: "other:" },
          acceptAs: [],
          vouches: {},
        },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "everybody",
          allow: "client_credentials",
          clients: ["signer", "careful", "runner", "cart", "desk", "billing", "pinned", "secret"],
          targets: [API],
          scopes: ["read"],
        },
        {
          id: "workloads",
          allow: "client_credentials",
          actors: [`spiffe://${TRUST_DOMAIN}/*`],
          targets: [API],
          scopes: ["read"],
        },
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { postgres: url, files: { "corporate.pem": corporate.certPem }, skipsLooks: true },
  );
});

after(() => stop(world, database));

/** The public key of a certificate as JWK members. */
function ec(certPem: string): object {
  const { kty, crv, x, y } = new X509Certificate(certPem).publicKey.export({ format: "jwk" });
  return { kty, crv, x, y };
}

function assertRefused(answer: Answer, error = "invalid_client"): void {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  assert.equal(
    answer.body.error_description,
    error === "invalid_client" ? "client authentication failed" : answer.body.error_description,
  );
}

function assertClient(answer: Answer, clientId: string): void {
  assert.equal(answer.status, 200, answer.text);
  const claims = JSON.parse(
    Buffer.from(String(answer.body.access_token).split(".")[1] ?? "", "base64url").toString(),
  );
  assert.equal(claims.client_id, clientId);
}

const seconds = (): number => Math.floor(Date.now() / 1000);
let jtis = 0;

// --- private_key_jwt --------------------------------------------------------------------------------------------

const usual = (): Record<string, unknown> => ({
  iss: "signer",
  sub: "signer",
  aud: ISSUER,
  iat: seconds(),
  exp: seconds() + 60,
  jti: `j-${++jtis}`,
});

/** Signs any header and claims with any key; a text instead of the claims becomes the payload unchanged. */
function forge(claims: object | string, header: object = {}, pem = own.pem): string {
  const encode = (part: string): string => Buffer.from(part).toString("base64url");
  const head = JSON.stringify({ alg: "ES256", kid: "k1", ...header });
  const input = `${encode(head)}.${encode(typeof claims === "string" ? claims : JSON.stringify(claims))}`;
  const key = { key: createPrivateKey(pem), dsaEncoding: "ieee-p1363" } as const;
  return `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`;
}

const bearer = (assertion: string, form: Form = {}): Promise<Answer> =>
  world.token({ ...CC, client_assertion_type: JWT_BEARER, client_assertion: assertion, ...form });

const goodAssertions: readonly [string, () => string, Form?][] = [
  ["RFC6749-2.3.2-2, RFC7523-3-6 equal issuer, subject and client_id", () => forge(usual())],
  ["B7523-4-8 the typ of a client assertion", () => forge(usual(), { typ: "client-authentication+jwt" })],
  ["RFC7523-3-8 the token endpoint as audience", () => forge({ ...usual(), aud: `${ISSUER}/token` })],
  ["PROD-2.3-5 without jti", () => forge({ ...usual(), jti: undefined })],
  ["RFC7523-3-15 unknown claims", () => forge({ ...usual(), extra: [1] })],
  ["RFC7521-4.2-2 client_id as a parameter", () => forge(usual()), { client_id: "signer" }],
];
for (const [name, make, form = {}] of goodAssertions) {
  test(`${name}: the client is authenticated`, async () =>
    assertClient(await bearer(make(), form), "signer"));
}

test("STU-D-3 a client for which it is set names the issuer alone, and another one the token endpoint too", async () => {
  const of = (client: string, aud: string) =>
    bearer(forge({ ...usual(), iss: client, sub: client, aud }, {}), {});
  assertClient(await of("careful", ISSUER), "careful");
  assertClient(await of("signer", `${ISSUER}/token`), "signer");
  assertRefused(await of("careful", `${ISSUER}/token`));
});

const ELSEWHERE: readonly [string, (aud: string) => Promise<Form>][] = [
  [
    "an assertion",
    async (aud) => ({
      client_assertion_type: JWT_BEARER,
      client_assertion: forge({ ...usual(), aud }),
    }),
  ],
  ["a JWT-SVID", async (aud) => world.as(await world.svid("agents/planner", { aud }))],
];
for (const [what, make] of ELSEWHERE) {
  test(`STU-D-1, STU-2.1.2.3-3 ${what} names the issuer alone at /introspect and /revoke, and the token endpoint at /token`, async () => {
    const toToken = `${ISSUER}/token`;
    assert.equal((await world.token({ ...CC, ...(await make(toToken)) })).status, 200);
    for (const [path, status] of [
      ["/introspect", 401],
      ["/revoke", 400],
    ] as const) {
      const ask = async (aud: string) =>
        world.get(path, {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: encodeForm({ token: "unknown", ...(await make(aud)) }),
        });
      assert.equal((await ask(ISSUER)).status, 200, path);
      const refused = await ask(toToken);
      assert.deepEqual([refused.status, refused.body.error], [status, "invalid_client"], path);
    }
  });
}

const badAssertions: readonly [string, () => string, Form?][] = [
  [
    "RFC7521-4.2.1-1, RFC7523-3.2-1, RFC7521-3-1, RFC8725-3.3-1, RFC7523-3-16, PROD-7.2-1 another key with the same kid",
    () => forge(usual(), {}, strange.pem),
  ],
  ["RFC7523-3-3 no issuer", () => forge({ ...usual(), iss: undefined })],
  ["RFC7523-3-5 no subject", () => forge({ ...usual(), sub: undefined })],
  [
    "RFC6749-2.3.2-2, RFC8725-3.8-1, RFC7523-3-6 another client as subject",
    () => forge({ ...usual(), sub: "secret" }),
  ],
  [
    "PROD-2.3-14 a client of another method as issuer and subject",
    () => forge({ ...usual(), iss: "secret", sub: "secret" }),
  ],
  [
    "RFC7521-4.2.1-1, RFC7523-3.2-1, RFC8725-3.9-1, RFC7523-3-7, PROD-7.2-2 no audience",
    () => forge({ ...usual(), aud: undefined }),
  ],
  ["B7523-4-6 a second audience", () => forge({ ...usual(), aud: [ISSUER, `${ISSUER}/token`] })],
  [
    "B7523-D-1 the type of RFC 10070 and the token endpoint as audience",
    () => forge({ ...usual(), aud: `${ISSUER}/token` }, { typ: "client-authentication+jwt" }),
  ],
  ["B7523-4-7 an audience with an extra slash", () => forge({ ...usual(), aud: `${ISSUER}/` })],
  ["RFC7523-3-10 no exp", () => forge({ ...usual(), exp: undefined })],
  [
    "RFC7523-3-10, PROD-7.2-2 expired",
    () => forge({ ...usual(), iat: seconds() - 100, exp: seconds() - 31 }),
  ],
  ["RFC7523-3-12 not yet valid", () => forge({ ...usual(), nbf: seconds() + 60 })],
  ["RFC7523-3-13 issued in the future", () => forge({ ...usual(), iat: seconds() + 60 })],
  ["RFC7523-3-17 a jti that is not a string", () => forge({ ...usual(), jti: 1 })],
  [
    "RFC7519-4.1.4-v3 an infinite exp",
    () => forge(JSON.stringify(usual()).replace(/"exp":\d+/, '"exp":1e400')),
  ],
  ["RFC7519-4-v1 a duplicate claim", () => forge(JSON.stringify(usual()).replace("{", '{"sub":"secret",'))],
  ["RFC7521-3-1, RFC7518-3.6-1 alg none", () => forge(usual(), { alg: "none" }).replace(/[^.]+$/, "")],
  ["RFC7515-4.1.1-1 an algorithm that does not fit the key", () => forge(usual(), { alg: "RS256" })],
  ["RFC7515-4.1.11-1 crit", () => forge(usual(), { crit: ["exp"] })],
  ["RFC7797-7-v1 b64", () => forge(usual(), { b64: false, crit: ["b64"] })],
  ["RFC8725-3.10-1 a key in the header", () => forge(usual(), { jwk: strange.jwk }, strange.pem)],
  ["RFC8725-3.12-1 the type of an access token", () => forge(usual(), { typ: "at+jwt" })],
  ["RFC7515-2-v1 white space", () => ` ${forge(usual())}`],
  ["RFC7515-2-v1 padding", () => `${forge(usual())}=`],
  ["RFC7523-2.2-2 two assertions", () => `${forge(usual())},${forge(usual())}`],
  ["RFC7521-4.2-2 another client_id as a parameter", () => forge(usual()), { client_id: "secret" }],
  ["RFC7521-4.2-1 the other assertion type", () => forge(usual()), { client_assertion_type: JWT_SPIFFE }],
];
for (const [name, make, form = {}] of badAssertions) {
  test(`${name}: invalid_client`, async () => assertRefused(await bearer(make(), form)));
}

for (const [what, claims] of [
  ["too long", () => ({ exp: seconds() + 301 })],
  ["too long, without iat", () => ({ iat: undefined, exp: seconds() + 340 })],
] as const) {
  test(`RFC7523-3-11, RFC7523-D-1 a lifetime that is ${what}: invalid_client, and the holder of the key is told`, async () => {
    const { status, body } = await bearer(forge({ ...usual(), ...claims() }));
    assert.deepEqual([status, body.error], [400, "invalid_client"]);
    assert.match(String(body.error_description), /lives longer/);
  });
}

test("RFC7521-8.2-1, RFC7523-6-1, RFC7523-3-14, PROD-2.3-6, PROD-2.3-14 an assertion is accepted once on all instances, whatever the response was", async () => {
  const second = await startSecond();
  try {
    const assertion = forge(usual());
    assertClient(await bearer(assertion), "signer");
    assertRefused(await bearer(assertion));
    assertRefused(
      await second.token({ ...CC, client_assertion_type: JWT_BEARER, client_assertion: assertion }),
    );
    const inVain = forge(usual());
    assertRefused(await bearer(inVain, { scope: "write" }), "invalid_scope");
    assertRefused(await bearer(inVain));
    const replays = (await world.events()).filter(({ type }) => type === "replay.detected");
    assert.deepEqual(
      replays.map(({ reason }) => reason),
      ["assertion_replayed", "assertion_replayed"],
    );
  } finally {
    await second.stop();
  }
});

test("RFC7523-3-14 one of many concurrent uses is accepted", async () => {
  const assertion = forge(usual());
  const answers = await Promise.all(Array.from({ length: 8 }, () => bearer(assertion)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
});

/** Another instance on the same database, with a log of its own. */
async function startSecond() {
  const server = await world.beside("second");
  return { token: (form: Form) => world.token(form, {}, {}, server.port), stop: () => server.stop() };
}

// --- tokens of a vouching issuer --------------------------------------------------------------------------------

const vouched = (): Record<string, unknown> => ({
  iss: CLUSTER,
  sub: "system:runner",
  aud: ISSUER,
  iat: seconds() - 1000,
  exp: seconds() + 2000,
  jti: "the same on every request",
});

/** What makes a JWT an ID token, a security event, a logout token or the token of a delegation. */
const OF_USERS = [
  { nonce: "n" },
  { at_hash: "kZ1f0" },
  { events: { "https://schemas.openid.net/secevent/caep/event-type/session-revoked": {} } },
  { events: { "http://schemas.openid.net/event/backchannel-logout": {} } },
  { act: { sub: "system:proxy" } },
];

test("RFC8725-3.8-1, RFC8725-3.12-v1, PROD-2.3-12, PROD-2.3-16, RFC7523-5-1 a token of a vouching issuer authenticates its client repeatedly", async () => {
  const server = await serveKeys([cluster.jwk]);
  try {
    const { trustedIssuers } = JSON.parse(readFileSync(world.configFile, "utf8"));
    trustedIssuers[CLUSTER].keys = server.keys;
    await reload({ trustedIssuers });
    const assertion = forge(vouched(), { kid: "c1" }, cluster.pem);
    assertClient(await bearer(assertion), "runner");
    assertClient(await bearer(assertion, { client_id: "runner" }), "runner");
    assertRefused(await bearer(assertion, { client_id: "signer" }));
    // What the other issuer of the same client would have to say.
    assertRefused(await bearer(forge({ ...vouched(), sub: "system:other" }, { kid: "c1" }, cluster.pem)));
    assertRefused(await bearer(forge({ ...vouched(), iat: seconds() - 3700 }, { kid: "c1" }, cluster.pem)));
    assertRefused(await bearer(forge({ ...vouched(), aud: API }, { kid: "c1" }, cluster.pem)));
    assertRefused(await bearer(forge(vouched(), { kid: "c1" }, own.pem)));
    // RFC8725-3.12-v1: what the issuer signs of its users authenticates no client, although it is typed as a plain JWT.
    for (const more of OF_USERS) {
      assertRefused(await bearer(forge({ ...vouched(), ...more }, { kid: "c1", typ: "JWT" }, cluster.pem)));
    }
  } finally {
    await server.close();
  }
});

/** New settings for the running server. */
async function reload(change: object): Promise<void> {
  const before = readFileSync(world.configFile, "utf8");
  writeFileSync(world.configFile, JSON.stringify({ ...JSON.parse(before), ...change }));
  assert.deepEqual(await world.server.reload(), []);
}

/** A key set under the world's own authority. */
async function serveKeys(keys: readonly object[]) {
  const { createServer } = await import("node:https");
  const tls = {
    key: readFileSync(join(world.folder, "tls/key.pem")),
    cert: readFileSync(join(world.folder, "tls/cert.pem")),
  };
  const server = createServer(tls, (_request, response) => {
    response.writeHead(200, { "content-type": "application/jwk-set+json" }).end(JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  return {
    keys: {
      url: `https://localhost:${port}/jwks`,
      ca: { file: "tls/ca.pem" },
      privateNetworks: ["127.0.0.0/8", "::1/128"],
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

// --- spiffe_jwt for registered clients --------------------------------------------------------------------------

test("RFC6749-2.3.2-2, SPCA-3.1-10, SPCA-3.1-12 a SPIFFE ID authenticates the client that it is associated with, and no other", async () => {
  const form = { ...CC, ...world.as(await world.svid("shop/cart")) };
  assertClient(await world.token({ ...form, client_id: "cart" }), "cart");
  assertClient(await world.token(form), workload("shop/cart"));
  assertRefused(await world.token({ ...form, client_id: "desk" }));
  const shop = { ...CC, ...world.as(await world.svid("shopping")) };
  assertRefused(await world.token({ ...shop, client_id: "cart" }));
});

// --- spiffe_x509 ------------------------------------------------------------------------------------------------

const asCertificate = ({ keyPem, chainPem }: { keyPem: string; chainPem: string }): Certificate => ({
  key: keyPem,
  cert: chainPem,
});

const planner = workload("agents/planner");
const svidWith = async (options: SvidOptions = {}, id = planner, domain: TrustDomain = world.trustDomain) =>
  asCertificate(await mintX509Svid(domain, id, options));
const present = (certificate: Certificate, form: Form = {}): Promise<Answer> =>
  world.token({ ...CC, ...form }, {}, certificate);

test("X5S-5.1-1, PROD-5-13, PROD-5-10 an X.509-SVID authenticates its workload, also through an intermediate", async () => {
  assertClient(await present(await svidWith()), planner);
  const issuer = await makeIntermediate(world.trustDomain.x509, "Intermediate 4");
  assertClient(await present(await svidWith({ issuer })), planner);
});

test("RFC6749-2.3.2-2, SPCA-3.2-7, SPCA-3.2-8 an X.509-SVID authenticates the client that is registered for its SPIFFE ID, and no other", async () => {
  const certificate = await svidWith({}, workload("desk"));
  assertClient(await present(certificate, { client_id: "desk" }), "desk");
  assertRefused(await present(await svidWith(), { client_id: "desk" }));
  assertRefused(await present(certificate, { client_id: "secret" }));
});

const flags = x509.KeyUsageFlags;
const url = (value: string) => ({ type: "url", value }) as const;
const badCertificates: readonly [string, () => Promise<Certificate>][] = [
  [
    "SPCA-5-1 of an unknown trust domain",
    async () => svidWith({}, "spiffe://x.example/a", await makeTrustDomain("x.example")),
  ],
  [
    "SFD-7.3-1, SPCA-3.2-3 signed by another domain's authority",
    async () => svidWith({ issuer: (await makeTrustDomain("x.example")).x509 }),
  ],
  [
    "SFD-4.2-4 signed by an authority with the same name",
    async () => svidWith({ issuer: (await makeTrustDomain(TRUST_DOMAIN)).x509 }),
  ],
  ["X5S-5.2-1, SPCA-3.2-5 an authority", () => svidWith({ ca: true })],
  ["X5S-4.3-1 without key usage", () => svidWith({ keyUsage: null })],
  [
    "X5S-4.3-3, SPCA-3.2-6 with a key usage other than signing",
    () => svidWith({ keyUsage: flags.keyEncipherment }),
  ],
  [
    "X5S-5.2-2 with a key usage for signing certificates",
    () => svidWith({ keyUsage: flags.digitalSignature | flags.keyCertSign }),
  ],
  ["X5S-4.4-2 for servers only", () => svidWith({ extendedKeyUsage: [x509.ExtendedKeyUsage.serverAuth] })],
  [
    "X5S-2-2, SPCA-3.2-4, PROD-2.1-10, PROD-2.4-2 with two URIs",
    () => svidWith({ names: [url(planner), url("https://a.example")] }),
  ],
  ["X5S-2-1, PROD-2.1-10 without a URI", () => svidWith({ names: [{ type: "dns", value: "a.example" }] })],
  [
    "X5S-2-1 with a DNS name that looks like a URI",
    () => svidWith({ names: [{ type: "dns", value: `a.example, URI:${planner}` }] }),
  ],
  ["X5S-5.2-3 of the trust domain itself", () => svidWith({}, `spiffe://${TRUST_DOMAIN}`)],
  ["PROD-2.4-5 expired", () => svidWith({ notBefore: new Date(Date.now() - 7200_000), expSeconds: -60 })],
  ["X5S-5.1-1 not yet valid", () => svidWith({ notBefore: new Date(Date.now() + 3600_000) })],
  [
    "X5S-5.1-1 with an unknown critical extension",
    () => svidWith({ extensions: [new x509.Extension("1.2.3.4.5", true, new Uint8Array([5, 0]))] }),
  ],
  [
    "X5S-5.1-1 through an intermediate that was not sent",
    async () => {
      const issuer = await makeIntermediate(world.trustDomain.x509, "Intermediate 5");
      const { keyPem, certPem } = await mintX509Svid(world.trustDomain, planner, { issuer });
      return { key: keyPem, cert: certPem };
    },
  ],
];
for (const [name, make] of badCertificates) {
  test(`${name}: invalid_client`, async () => assertRefused(await present(await make())));
}

test("HTTP-D-1, RFC7521-4.2.1-2 a certificate beside a secret or an assertion is ignored", async () => {
  const certificate = await svidWith();
  const bySecret = await world.token(CC, { authorization: basic("secret", "a-secret") }, certificate);
  assertClient(bySecret, "secret");
  const svid = await world.svid("agents/booking");
  assertClient(await present(certificate, world.as(svid)), workload("agents/booking"));
});

test("SBN-4.1.3-3, X5S-6.2-3, SBN-3-2 an authority that was removed from the bundle is refused at once, without a restart", async () => {
  const old = world.trustDomain;
  const next = { ...(await makeTrustDomain(TRUST_DOMAIN)), sequence: old.sequence + 1 };
  const rotate = (content: object): Promise<void> => reloadBundle(world, content);
  try {
    const both = { ...bundle(next), keys: [...bundle(old).keys, ...bundle(next).keys] };
    await rotate(both);
    assertClient(await present(await svidWith()), planner);
    assertClient(await present(await svidWith({}, planner, next)), planner);
    await rotate({ ...bundle(next), spiffe_sequence: next.sequence + 1 });
    assertRefused(await present(await svidWith()));
    assertClient(await present(await svidWith({}, planner, next)), planner);
    await rotate({ keys: [], spiffe_sequence: next.sequence + 2 });
    assertRefused(await present(await svidWith({}, planner, next)));
  } finally {
    await rotate({ ...bundle(old), spiffe_sequence: next.sequence + 3 });
  }
  assertClient(await present(await svidWith()), planner);
});

// --- certificates without a SPIFFE ID ---------------------------------------------------------------------------

const plain = ({ keyPem, certPem }: { keyPem: string; certPem: string }): Certificate => ({
  key: keyPem,
  cert: certPem,
});

test("RFC6749-2.3.2-2, RFC8705-2.1-1, RFC8705-2-4, RFC8705-7.4-1 tls_client_auth accepts the one expected name below the client's own authority", async () => {
  assertClient(await present(plain(billing), { client_id: "billing" }), "billing");
  assertRefused(await present(plain(otherBilling), { client_id: "billing" }));
  assertRefused(await present(await svidWith(), { client_id: "billing" }));
  const impostor = await issueClientCertificate(await makeAuthority("Corporate authority"), [
    "billing.example",
  ]);
  assertRefused(await present(plain(impostor), { client_id: "billing" }));
});

test("RFC8705-2-3 a certificate that is not an SVID requires client_id", async () => {
  assertRefused(await present(plain(billing)));
});

test("RFC8705-2-5 a client of a certificate method without a certificate is refused", async () => {
  assertRefused(await present({}, { client_id: "billing" }));
  assertRefused(await present({}, { client_id: "pinned" }));
});

test("RFC6749-2.3.2-2, RFC8705-2.2-2, RFC8705-2.2-3 self_signed_tls_client_auth accepts the registered certificate, whatever its issuer", async () => {
  assertClient(await present(plain(pinned), { client_id: "pinned" }), "pinned");
  assertRefused(await present(plain(billing), { client_id: "pinned" }));
});

test("PROD-0-2, RFC8705-2.1.1-1, RFC8705-2.2.1-1, SPCA-4-3 one running server accepts all methods, and its metadata list them", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.deepEqual(body.token_endpoint_auth_methods_supported, [
    "client_secret_basic",
    "client_secret_post",
    "private_key_jwt",
    "spiffe_jwt",
    "spiffe_x509",
    "tls_client_auth",
    "self_signed_tls_client_auth",
  ]);
  assert.ok((body.token_endpoint_auth_signing_alg_values_supported as string[]).includes("RS256"));
});
