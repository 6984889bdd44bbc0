/** RFC 7517, RFC 7518 and RFC 7638 over the wire: the form of our key set, and which keys of a client are accepted. */
import assert from "node:assert/strict";
import { createHash, createPublicKey, generateKeyPairSync } from "node:crypto";
import { after, before, test } from "node:test";
import { forge, makeKey, seconds } from "../support/forge.ts";
import { stop } from "../support/stop.ts";
import { LOOPBACK, startDocumentServer } from "../support/web.ts";
import { ISSUER, makeWorld, type World } from "../support/world.ts";

const API = "https://api.example";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const ec = makeKey("ES256", "ec");
const rsa = makeKey("RS256", "rsa");
const okp = makeKey("EdDSA", "okp");
const shortPair = generateKeyPairSync("rsa", { modulusLength: 1024 });
const short = { ...rsa, ...shortPair, jwk: { ...shortPair.publicKey.export({ format: "jwk" }), kid: "rsa" } };
/** A second key that is in every set. */
const beside = makeKey("ES256", "beside");

type Members = Record<string, unknown>;

const bytesOf = (text: unknown): Buffer => Buffer.from(String(text), "base64url");
const spell = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url");

/** Each key is in a set of its own with this one change; the last member says whether it authenticates its client. */
const sets: readonly [string, typeof ec, (jwk: Members) => Members, boolean][] = [
  ["RFC7517-4.1-1, RFC7518-6.2.1-1 an EC key is accepted", ec, (jwk) => jwk, true],
  ["RFC7517-4.1-1, RFC7518-6.3.1-1, RFC7518-3.3-2 an RSA key is accepted", rsa, (jwk) => jwk, true],
  ["RFC7517-4.1-1, RFC8037-2-1 an OKP key is accepted", okp, (jwk) => jwk, true],
  ["RFC7517-4.2-1 a key for signatures is accepted", ec, (jwk) => ({ ...jwk, use: "sig" }), true],
  ["RFC7517-4.2-1 a key for encryption is skipped", ec, (jwk) => ({ ...jwk, use: "enc" }), false],
  ["RFC7517-4.2-1 a use in capital letters is skipped", ec, (jwk) => ({ ...jwk, use: "SIG" }), false],
  ["RFC7517-4.1-1 a key without kty is skipped", ec, ({ kty: _, ...jwk }) => jwk, false],
  ["RFC7517-4.1-1 kty in lower case is skipped", ec, (jwk) => ({ ...jwk, kty: "ec" }), false],
  ["RFC7518-6.2.1-1 EC without crv is skipped", ec, ({ crv: _, ...jwk }) => jwk, false],
  ["RFC7518-6.2.1-1 EC without x is skipped", ec, ({ x: _, ...jwk }) => jwk, false],
  ["RFC7518-6.2.1-1 EC without y is skipped", ec, ({ y: _, ...jwk }) => jwk, false],
  [
    "RFC7518-6.2.1-1 a coordinate with a leading zero byte is skipped",
    ec,
    (jwk) => ({ ...jwk, x: spell(Buffer.concat([Buffer.alloc(1), bytesOf(jwk.x)])) }),
    false,
  ],
  ["RFC7518-6.3.1-1 RSA without n is skipped", rsa, ({ n: _, ...jwk }) => jwk, false],
  ["RFC7518-6.3.1-1 RSA without e is skipped", rsa, ({ e: _, ...jwk }) => jwk, false],
  [
    "RFC7518-6.3.1-1 a modulus with a leading zero byte is skipped",
    rsa,
    (jwk) => ({ ...jwk, n: spell(Buffer.concat([Buffer.alloc(1), bytesOf(jwk.n)])) }),
    false,
  ],
  ["RFC7518-6.3.1-1 65537 in four bytes is skipped", rsa, (jwk) => ({ ...jwk, e: "AAEAAQ" }), false],
  ["RFC7518-3.3-2 RSA of 1024 bits is skipped", short, (jwk) => jwk, false],
  ["RFC8037-2-1 OKP without crv is skipped", okp, ({ crv: _, ...jwk }) => jwk, false],
  ["RFC8037-2-1 OKP without x is skipped", okp, ({ x: _, ...jwk }) => jwk, false],
  ["RFC8037-2-1 OKP of another kty is skipped", okp, (jwk) => ({ ...jwk, kty: "EC" }), false],
  ["RFC8037-2-1 a set with d in a key is refused", okp, (jwk) => ({ ...jwk, d: jwk.x }), false],
];
const nameOf = (index: number): string => `client-${index}`;

let world: World;
let documents: Awaited<ReturnType<typeof startDocumentServer>>;

before(async () => {
  documents = await startDocumentServer();
  const at = { ca: { file: "clients.pem" }, privateNetworks: LOOPBACK };
  const clients = sets.map(([, { jwk }, bend], index) => {
    documents.documents.set(`/${index}`, { keys: [bend(jwk), beside.jwk] });
    return [
      nameOf(index),
      { method: "private_key_jwt", jwksUri: { url: `${documents.origin}/${index}`, ...at } },
    ];
  });
  world = await makeWorld(
    {
      clients: Object.fromEntries(clients),
      targets: [
        { names: [API], scopes: ["read"] },
        { names: ["https://okp.example"], scopes: ["read"], alg: "EdDSA" },
        { names: ["https://rsa.example"], scopes: ["read"], alg: "RS256" },
      ],
      policies: [
        {
          id: "clients",
          allow: "client_credentials",
          clients: sets.map((_, index) => nameOf(index)),
          targets: [API],
          scopes: ["read"],
        },
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { files: { "clients.pem": documents.ca } },
  );
});

after(() => stop(world, documents));

let jtis = 0;

async function proves(key: typeof ec, iss: string): Promise<boolean> {
  const claims = { iss, sub: iss, aud: ISSUER, exp: seconds() + 60, jti: `j-${++jtis}` };
  const assertion = { client_assertion_type: JWT_BEARER, client_assertion: forge(key, claims) };
  const { status, body, text } = await world.token({ grant_type: "client_credentials", ...assertion });
  if (status !== 200) assert.deepEqual([status, body.error], [400, "invalid_client"], text);
  return status === 200;
}

for (const [index, [name, key, bend, taken]] of sets.entries()) {
  test(name, async () => {
    assert.equal(await proves(key, nameOf(index)), taken);
    // An unusable key does not affect the others in its set, but a published private key makes the set invalid.
    assert.equal(await proves(beside, nameOf(index)), !("d" in bend(key.jwk)));
  });
}

// --- our own keys -------------------------------------------------------------------------------------------------

async function ours(): Promise<Members[]> {
  const { status, headers, body } = await world.get("/jwks");
  assert.deepEqual([status, headers["content-type"]], [200, "application/jwk-set+json"]);
  return body.keys as Members[];
}

const MEMBERS: Record<string, string[]> = {
  EC: ["alg", "crv", "kid", "kty", "use", "x", "y"],
  OKP: ["alg", "crv", "kid", "kty", "use", "x"],
  RSA: ["alg", "e", "kid", "kty", "n", "use"],
};

test("RFC7517-4.1-1, RFC7517-4.2-1, RFC7517-4.3-3, RFC8037-2-1 each of our keys has kty and use, no key_ops and no private member", async () => {
  const keys = await ours();
  assert.deepEqual(new Set(keys.map(({ kty }) => kty)), new Set(Object.keys(MEMBERS)));
  for (const key of keys) {
    assert.deepEqual(Object.keys(key).sort(), MEMBERS[String(key.kty)]);
    assert.equal(key.use, "sig");
  }
});

test("RFC7518-6.2.1-1, RFC7518-6.3.1-1, RFC7518-3.3-2, RFC8037-2-1 our public keys have full-length members and a sufficient size", async () => {
  for (const key of await ours()) {
    if (key.kty === "RSA") {
      assert.equal(key.e, "AQAB");
      assert.notEqual(bytesOf(key.n)[0], 0);
      const { modulusLength = 0 } = createPublicKey({ key, format: "jwk" }).asymmetricKeyDetails ?? {};
      assert.ok(modulusLength >= 2048 && bytesOf(key.n).length * 8 === modulusLength);
    } else {
      assert.ok(["P-256", "Ed25519"].includes(String(key.crv)));
      assert.equal(bytesOf(key.x).length, 32);
      if (key.kty === "EC") assert.equal(bytesOf(key.y).length, 32);
    }
  }
});

test("RFC7517-4.5-v1, RFC7638-3.4-1 each of our keys has its SHA-256 thumbprint as a unique kid", async () => {
  const keys = await ours();
  for (const { kid, ...key } of keys) {
    const required = { EC: ["crv", "kty", "x", "y"], OKP: ["crv", "kty", "x"], RSA: ["e", "kty", "n"] };
    const names = required[key.kty as keyof typeof required];
    const input = JSON.stringify(Object.fromEntries(names.map((name) => [name, key[name]])));
    assert.equal(kid, createHash("sha256").update(input).digest("base64url"));
  }
  assert.equal(new Set(keys.map(({ kid }) => kid)).size, keys.length);
});
