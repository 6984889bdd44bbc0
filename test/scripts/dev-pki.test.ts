import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { get } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, createServer, type TLSSocket } from "node:tls";
import { createLocalJWKSet, importJWK, jwtVerify } from "jose";
import {
  type Authority,
  bundle,
  loadTrustDomain,
  mintJwtSvid,
  saveTrustDomain,
  type TrustDomain,
} from "../../scripts/dev-keys.ts";
import {
  issueServerCertificate,
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  type SvidOptions,
  x509,
} from "../../scripts/dev-pki.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadIdp, startIdp } from "../../scripts/idp.ts";

const ID = "spiffe://dev.example/agents/planner";
const AUDIENCE = "https://as.example";
const { KeyUsageFlags, ExtendedKeyUsage } = x509;

let folder: string;
let domain: TrustDomain;
let other: TrustDomain;
let authority: Authority;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "mandate pki "));
  domain = await makeTrustDomain("dev.example");
  other = await makeTrustDomain("other.example");
  authority = await makeAuthority("Test authority");
});
after(() => rmSync(folder, { recursive: true }));

/** The parts of a certificate that the rules of X509-SVID constrain. */
function shapeOf(certPem: string) {
  const certificate = new x509.X509Certificate(certPem);
  const names = certificate.getExtension(x509.SubjectAlternativeNameExtension);
  const basic = certificate.getExtension(x509.BasicConstraintsExtension);
  const extended = certificate.getExtension(x509.ExtendedKeyUsageExtension);
  const usage = certificate.getExtension(x509.KeyUsagesExtension);
  return {
    subject: certificate.subject,
    uris: (names?.names.items ?? []).filter(({ type }) => type === "url").map(({ value }) => value),
    namesCritical: names?.critical,
    ca: basic?.ca,
    usages: usage?.usages,
    usageCritical: usage?.critical,
    extended: extended && [...extended.usages],
  };
}

test("X5S-3.2-1 a trust domain's authority has its SPIFFE ID without a path", () => {
  assert.deepEqual(shapeOf(domain.x509.certPem).uris, ["spiffe://dev.example"]);
});

test("X5S-4.3-2 a trust domain's authority may sign certificates, by a critical extension", () => {
  const { ca, usages = 0, usageCritical } = shapeOf(domain.x509.certPem);
  assert.deepEqual(
    [ca, usages & KeyUsageFlags.keyCertSign, usageCritical],
    [true, KeyUsageFlags.keyCertSign, true],
  );
});

const twoUris: SvidOptions["names"] = [
  { type: "url", value: ID },
  { type: "url", value: "https://dev.example" },
];
const leaves: [string, SvidOptions, Partial<ReturnType<typeof shapeOf>>][] = [
  ["X5S-2-1 one URI is minted", {}, { uris: [ID] }],
  ["X5S-2-2 two URIs can be minted", { names: twoUris }, { uris: [ID, "https://dev.example"] }],
  ["X5S-3.1-3 critical names are minted without a subject", {}, { subject: "", namesCritical: true }],
  [
    "X5S-3.1-3 plain names are minted with a subject",
    { subject: "planner" },
    { subject: "CN=planner", namesCritical: false },
  ],
  ["X5S-4.1-1 a certificate that is not an authority is minted", {}, { ca: false }],
  ["X5S-5.2-1 a leaf that is an authority can be minted", { ca: true }, { ca: true }],
  [
    "X5S-4.3-3 digitalSignature is minted alone",
    {},
    { usages: KeyUsageFlags.digitalSignature, usageCritical: true },
  ],
  ["X5S-4.3-1 key usage can be omitted", { keyUsage: null }, { usages: undefined }],
  [
    "X5S-5.2-2 a leaf that signs certificates can be minted",
    { keyUsage: KeyUsageFlags.keyCertSign },
    { usages: KeyUsageFlags.keyCertSign },
  ],
  [
    "X5S-4.4-2 both extended usages are minted",
    {},
    { extended: [ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth] },
  ],
  ["X5S-4.4-1 extended key usage can be omitted", { extendedKeyUsage: null }, { extended: null }],
];

for (const [name, options, want] of leaves) {
  test(name, async () => {
    const shape = shapeOf((await mintX509Svid(domain, ID, options)).certPem);
    const seen = Object.fromEntries(Object.keys(want).map((key) => [key, shape[key as keyof typeof shape]]));
    assert.deepEqual(seen, want);
  });
}

/** Whether client and server accept each other's certificate, by Node's validation in a real TLS handshake. */
async function handshake(
  server: { key: string; cert: string; ca: string },
  client: { key?: string; cert?: string; ca: string },
) {
  const listener = createServer({ ...server, requestCert: true, rejectUnauthorized: false });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const accepted = once(listener, "secureConnection");
  const socket = connect({
    ...client,
    port,
    host: "127.0.0.1",
    servername: "localhost",
    rejectUnauthorized: false,
  });
  await once(socket, "secureConnect");
  const [peer]: TLSSocket[] = await accepted;
  const verdict = { server: socket.authorized, client: peer?.authorized };
  socket.destroy();
  listener.close();
  await once(listener, "close");
  return verdict;
}

const chains: [string, () => Promise<{ keyPem: string; chainPem: string }>, boolean][] = [
  ["X5S-5.1-1 an SVID verifies with its trust domain", () => mintX509Svid(domain, ID), true],
  ["X5S-5.1-1 an SVID below two intermediates verifies with its trust domain", svidBelowTwo, true],
  ["X5S-5.1-1 an SVID of another trust domain does not", () => mintX509Svid(other, ID), false],
  ["X5S-5.1-1 an expired SVID does not", () => mintX509Svid(domain, ID, { expSeconds: -1 }), false],
];

async function svidBelowTwo() {
  const upper = await makeIntermediate(domain.x509, "upper");
  const issuer = await makeIntermediate(upper, "lower");
  return mintX509Svid(domain, ID, { issuer });
}

for (const [name, mint, want] of chains) {
  test(name, async () => {
    const own = await issueServerCertificate(authority, ["localhost"]);
    const svid = await mint();
    const verdict = await handshake(
      { key: own.keyPem, cert: own.certPem, ca: domain.x509.certPem },
      { key: svid.keyPem, cert: svid.chainPem, ca: authority.certPem },
    );
    assert.equal(verdict.client, want);
  });
}

for (const [names, want] of [
  [["localhost", "127.0.0.1", "::1"], true],
  [["elsewhere.example"], false],
] as const) {
  test(`dev-pki: a server certificate for ${names} is ${want ? "" : "not "}one for localhost`, async () => {
    const own = await issueServerCertificate(authority, [...names]);
    const ca = authority.certPem;
    assert.equal((await handshake({ key: own.keyPem, cert: own.certPem, ca }, { ca })).server, want);
  });
}

test("X5S-6.1-1, X5S-6.1-2, X5S-6.1-3 a bundle contains the authority's certificate once, without a kid", () => {
  const [entry] = bundle(domain).keys;
  const der = Buffer.from(new x509.X509Certificate(domain.x509.certPem).rawData);
  assert.deepEqual([entry?.use, entry?.x5c, entry?.kid], ["x509-svid", [der.toString("base64")], undefined]);
  const authority = new X509Certificate(der);
  assert.ok(authority.ca && authority.checkIssued(authority) && authority.verify(authority.publicKey));
});

test("RFC7517-9.2-1 a bundle contains no private key", () => {
  for (const key of bundle(domain).keys) assert.equal("d" in key, false);
});

test("SBN-4.1.1-1 a bundle's sequence and refresh hint are whole numbers", () => {
  const { spiffe_sequence: sequence, spiffe_refresh_hint: hint } = bundle(domain);
  assert.deepEqual([sequence, Number.isInteger(hint)], [1, true]);
});

async function verifySvid(token: string, trustDomain: TrustDomain) {
  const jwk = bundle(trustDomain).keys.find(({ use }) => use === "jwt-svid");
  return jwtVerify(token, await importJWK(jwk ?? {}, "ES256"), { audience: AUDIENCE });
}

test("JSV-2-1 a JWT-SVID verifies with its bundle and has only alg, kid and typ in its header", async () => {
  const { protectedHeader } = await verifySvid(await mintJwtSvid(domain, { sub: ID, aud: AUDIENCE }), domain);
  assert.deepEqual(protectedHeader, { alg: "ES256", kid: domain.jwt.kid, typ: "JWT" });
});

test("JSV-6.2-1 a JWT-SVID does not verify with another bundle", async () => {
  const token = await mintJwtSvid(domain, { sub: ID, aud: AUDIENCE });
  await assert.rejects(verifySvid(token, other), { code: "ERR_JWS_SIGNATURE_VERIFICATION_FAILED" });
});

test("JSV-A-1 a JWT-SVID can be minted expired", async () => {
  const token = await mintJwtSvid(domain, { sub: ID, aud: AUDIENCE, expSeconds: -1 });
  await assert.rejects(verifySvid(token, domain), { code: "ERR_JWT_EXPIRED" });
});

test("JSV-3.3-1 a JWT-SVID can be minted with other claims and header members", async () => {
  const claims = { exp: undefined, extra: 1 };
  const token = await mintJwtSvid(domain, { sub: ID, aud: AUDIENCE, header: { typ: "at+jwt" }, claims });
  const { payload, protectedHeader } = await verifySvid(token, domain);
  assert.deepEqual([payload.exp, payload.extra, protectedHeader.typ], [undefined, 1, "at+jwt"]);
});

test("RFC7517-7-1 a saved trust domain is readable by its owner only and loads unchanged", () => {
  const file = join(folder, "authority.json");
  saveTrustDomain(domain, file);
  saveTrustDomain(other, file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(loadTrustDomain(file), other);
});

async function freePort(): Promise<number> {
  const listener = createTcpServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return port;
}

async function fetchJson(url: string, ca: string): Promise<{ status: number | undefined; body: string }> {
  const [response] = await once(get(url, { ca, agent: false }), "response");
  return { status: response.statusCode, body: Buffer.concat(await response.toArray()).toString() };
}

test("RFC7517-7-1 a profile is readable by its owner only", async () => {
  const profile = join(folder, "modes");
  await makeProfile(profile);
  const entries = readdirSync(profile, { recursive: true, withFileTypes: true });
  assert.ok(entries.length > 10);
  for (const entry of entries) {
    const { mode } = statSync(join(entry.parentPath, entry.name));
    assert.equal(mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, entry.name);
  }
});

test("dev-profile: an existing folder stays unchanged, and no unfinished profile is left", async () => {
  const profile = join(folder, "twice");
  await makeProfile(profile);
  const before = readFileSync(join(profile, "trust-domain", "authority.json"), "utf8");
  await assert.rejects(makeProfile(profile), { code: "ENOTEMPTY" });
  assert.equal(readFileSync(join(profile, "trust-domain", "authority.json"), "utf8"), before);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.includes("tmp")),
    [],
  );
});

test("idp: serves its metadata and the keys of its tokens, and nothing else", async () => {
  const profile = join(folder, "idp");
  const { idpIssuer } = await makeProfile(profile, { idpPort: await freePort() });
  const ca = readFileSync(join(profile, "tls", "ca.pem"), "utf8");
  const idp = await startIdp(profile);
  try {
    const { status, body } = await fetchJson(`${idpIssuer}/jwks`, ca);
    assert.equal(status, 200);
    assert.equal(body.includes('"d"'), false);
    const metadata = await fetchJson(`${idpIssuer}/.well-known/openid-configuration`, ca);
    assert.equal(JSON.parse(metadata.body).jwks_uri, `${idpIssuer}/jwks`);
    assert.equal((await fetchJson(`${idpIssuer}/other`, ca)).status, 404);

    const token = await (await loadIdp(profile)).mintUserToken({
      sub: "u-1",
      aud: AUDIENCE,
      scope: "trips.read",
    });
    const expected = {
      issuer: idpIssuer,
      audience: AUDIENCE,
      typ: "JWT",
      requiredClaims: ["exp", "iat", "jti"],
    };
    const { payload } = await jwtVerify(token, createLocalJWKSet(JSON.parse(body)), expected);
    assert.deepEqual([payload.sub, payload.scope], ["u-1", "trips.read"]);
  } finally {
    await idp.close();
  }
  await assert.rejects(fetchJson(`${idpIssuer}/jwks`, ca), { code: "ECONNREFUSED" });
});
