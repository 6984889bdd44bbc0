/**
 * RFC 7515 and RFC 7519 over the wire: wherever a JWT is accepted, a valid one, and for each step of its validation
 * one that fails at that step alone.
 */
import assert from "node:assert/strict";
import { constants, createHash, createHmac, createPublicKey, privateEncrypt, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { calculateJwkThumbprint } from "jose";
import { publicJwk } from "../../scripts/dev-keys.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  encode,
  type Forgery,
  flipped,
  forge,
  type Key,
  keyOf,
  makeKey,
  seconds,
  signedBy,
} from "../support/forge.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, EXCHANGE, type Form, IDP, ISSUER, JWT, type Service, workload } from "../support/world.ts";

const API = "https://api.example";
const SECRET = "a-secret-of-thirty-two-characters";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const CC = { grant_type: "client_credentials", audience: API };
const asked = { consent: "implied", acknowledge: "subjects-not-asked" };

const k1 = makeKey("ES256", "k1");
/** A key whose kid has a character outside of ASCII, in NFC. */
const accented = makeKey("ES256", "cl\u00e9");
const rsa = makeKey("RS256", "r1");
const large = makeKey("ES512", "l1");
let idpKey: Key;
let svidKey: Key;

let world: Service;

before(async () => {
  world = await makeService(
    {
      clients: {
        signer: { method: "private_key_jwt", jwks: { keys: [k1.jwk, accented.jwk] } },
        rsa: { method: "private_key_jwt", jwks: { keys: [rsa.jwk] } },
        large: { method: "private_key_jwt", jwks: { keys: [large.jwk] } },
        secret: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        {
          id: "clients",
          allow: "client_credentials",
          clients: ["signer", "rsa", "large", "secret"],
          targets: [API],
          scopes: ["read"],
        },
        {
          id: "workloads",
          allow: "client_credentials",
          actors: [workload("*")],
          targets: [API],
          scopes: ["read"],
        },
        {
          id: "delegates",
          allow: "delegation",
          actors: [workload("*")],
          subjects: { issuers: [IDP] },
          subjectToken: { audiences: [ISSUER] },
          ...asked,
          targets: [API],
          scopes: ["read"],
        },
        {
          id: "guests",
          allow: "redemption",
          clients: ["secret"],
          subjects: { issuers: [IDP] },
          ...asked,
          targets: [API],
          scopes: ["read"],
        },
      ],
      drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    { idp: { grants: {}, scopes: ["read"] } },
  );
  svidKey = keyOf(world.trustDomain.jwt.keyPem, "td-1");
  const pem = readFileSync(join(world.folder, "idp/key.pem"), "utf8");
  idpKey = keyOf(pem, await calculateJwkThumbprint(publicJwk(pem)));
});

after(() => stop(world));

// --- where JWTs are accepted --------------------------------------------------------------------------------------

let jtis = 0;
const times = () => ({ iat: seconds(), exp: seconds() + 60, jti: `j-${++jtis}` });
const ofClient = (id: string) => ({ iss: id, sub: id, aud: ISSUER, ...times() });
const ofUser = () => ({ iss: IDP, sub: "u-1", aud: ISSUER, scope: "read", ...times() });
const byBasic = { authorization: basic("secret", SECRET) };

const present = (assertion: string, form: Form = {}): Promise<Answer> =>
  world.token({ ...CC, client_assertion_type: JWT_BEARER, client_assertion: assertion, ...form });

async function exchange(subjectToken: string): Promise<Answer> {
  const svid = await world.svid("agents/planner");
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: JWT,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
    audience: API,
  });
}

type Place = {
  key: () => Key;
  good: () => object;
  send: (token: string) => Promise<Answer>;
  error: string;
};

const places: Record<string, Place> = {
  "a client assertion": {
    key: () => k1,
    good: () => ofClient("signer"),
    send: present,
    error: "invalid_client",
  },
  "a JWT-SVID": {
    key: () => svidKey,
    good: () => ({ sub: workload("agents/planner"), aud: ISSUER, ...times() }),
    send: (token) => world.token({ ...CC, ...world.as(token) }),
    error: "invalid_client",
  },
  "a subject token": { key: () => idpKey, good: ofUser, send: exchange, error: "invalid_request" },
  "a grant": {
    key: () => ({ ...idpKey, typ: "authz-grant+jwt" }),
    good: () => ({ ...ofUser(), client_id: "secret" }),
    send: (token) => world.token({ grant_type: GRANT, assertion: token, audience: API }, byBasic),
    error: "invalid_grant",
  },
};

const assertTaken = ({ status, text }: Answer): void => assert.equal(status, 200, text);
const assertRefused = (answer: Answer, error = "invalid_client"): void =>
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);

// --- every step of validation (RFC 7519 7.2, RFC 7515 5.2) --------------------------------------------------------

type Bend = Forgery | ((compact: string, place: Place) => string);
const latin = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"));

const steps: readonly [string, Bend][] = [
  ["RFC7519-7.2-v1 without a period", (compact) => compact.replaceAll(".", "")],
  ["RFC7519-7.2-v1 with a padded header", (compact) => compact.replace(".", "=.")],
  ["RFC7519-7.2-v1 with a header that is not UTF-8", { header: latin('{"alg":"ES256","kid":"\xe9"}') }],
  ["RFC7519-7.2-v1 with a header that is not an object", { header: '["ES256"]' }],
  ["RFC7519-7.2-v1 in five parts", (compact) => `${compact}.AA.AA`],
  ["RFC7519-7.2-v1 with a JWT inside", { header: { cty: "JWT" } }],
  ["RFC7519-7.2-v1 with claims that are not UTF-8", { claims: latin('{"sub":"\xe9"}') }],
  ["RFC7519-7.2-v1 with claims that are not an object", { claims: "[]" }],
  ["RFC7519-7.2-v1 without exp", { claims: { exp: undefined } }],
  ["RFC8725-3.9-v2 without audience", { claims: { aud: undefined } }],
  ["RFC8725-3.9-v2 for another audience", { claims: { aud: "https://other.example" } }],
  ["RFC8725-3.3-v1, RFC7519-7.2-v1 with one bit of the signature changed", { signature: flipped }],
  [
    "RFC8725-3.3-v1, RFC7519-11.1-v1 with one claim changed after it was signed",
    (compact) => {
      const [head = "", , signature = ""] = compact.split(".");
      return `${head}.${encode({ ...claimsOf(compact), extra: 1 })}.${signature}`;
    },
  ],
  [
    "RFC7519-11.1-v1 signed by another key with the same kid",
    (compact, { key }) => {
      const [head = "", payload = ""] = compact.split(".");
      const input = Buffer.from(`${head}.${payload}`);
      return `${input}.${signedBy(makeKey("ES256", key().kid), input).toString("base64url")}`;
    },
  ],
  ["RFC7515-5.2-v4, RFC7515-4.1.11-v2 with an extension", { header: { crit: ["x"], x: 1 } }],
  ["RFC7515-4.1.11-v2 with the name of a standard header as an extension", { header: { crit: ["alg"] } }],
  ["RFC7515-4.1.11-v2 with a duplicate extension", { header: { crit: ["x", "x"], x: 1 } }],
  ["RFC7515-4.1.11-v2 with an extension that the header lacks", { header: { crit: ["x"] } }],
  ["RFC7515-4.1.11-v2 with an empty crit", { header: { crit: [] } }],
  [
    "RFC7515-4.1.11-v4 with crit in an unprotected header",
    (compact) => {
      const [head, payload, signature] = compact.split(".");
      return JSON.stringify({ protected: head, header: { crit: ["x"], x: 1 }, payload, signature });
    },
  ],
  [
    "RFC7515-4.1.11-v4 with an unprotected header without crit",
    (compact) => {
      const [head, payload, signature] = compact.split(".");
      return JSON.stringify({ protected: head, header: {}, payload, signature });
    },
  ],
];

for (const [where, place] of Object.entries(places)) {
  const { key, good, send, error } = place;
  test(`RFC7519-7.2-v1, RFC8725-3.3-v1, RFC8725-3.9-v2 a valid JWT is accepted as ${where}`, async () => {
    assertTaken(await send(forge(key(), good())));
  });

  for (const [what, bend] of steps) {
    test(`${what}: a JWT is refused as ${where}`, async () => {
      const token =
        typeof bend === "function" ? bend(forge(key(), good()), place) : forge(key(), good(), bend);
      const answer = await send(token);
      assertRefused(answer, error);
      assert.equal(answer.body.access_token, undefined);
    });
  }

  test(`RFC7519-4-v2 unknown claims are ignored in ${where}`, async () => {
    const claims = { unheard: { of: [1] }, x5t: "AA", constructor: "x" };
    assertTaken(await send(forge(key(), good(), { claims })));
  });
}

// --- algorithms ---------------------------------------------------------------------------------------------------

test("RFC7515-5.2-v7, RFC7519-7.2-v3, RFC8725-3.2-v1 a valid signature by an algorithm that is not on the list is refused", async () => {
  const assertion = forge(large, ofClient("large"));
  const [head = "", payload = "", signature = ""] = assertion.split(".");
  const key = { key: createPublicKey(large.privateKey), dsaEncoding: "ieee-p1363" } as const;
  const input = Buffer.from(`${head}.${payload}`);
  assert.ok(verify("sha512", input, key, Buffer.from(signature, "base64url")));
  assertRefused(await present(assertion));
});

/** DigestInfo (RFC 8017 9.2) for SHA-256, and for SHA-512/256, whose digests have the same length. */
const SHA_256 = "3031300d060960864801650304020105000420";
const SHA_512_256 = "3031300d060960864801650304020605000420";

test("RFC7515-10.6-v1 the hash inside an RSA signature must be that of alg", async () => {
  const signature = (prefix: string) => (input: Buffer) => {
    const digest = createHash("sha256").update(input).digest();
    const key = { key: rsa.privateKey, padding: constants.RSA_PKCS1_PADDING };
    return privateEncrypt(key, Buffer.concat([Buffer.from(prefix, "hex"), digest]));
  };
  assertTaken(await present(forge(rsa, ofClient("rsa"), { signature: signature(SHA_256) })));
  assertRefused(await present(forge(rsa, ofClient("rsa"), { signature: signature(SHA_512_256) })));
  for (const alg of ["RS384", "RS512"]) {
    const other = (input: Buffer) => signedBy({ ...rsa, alg }, input);
    assertRefused(await present(forge(rsa, ofClient("rsa"), { signature: other })));
    assertRefused(await present(forge({ ...rsa, alg }, ofClient("rsa"))));
  }
});

test("RFC7515-10.9-v1 no JWT is verified with a secret, so that timing reveals none", async () => {
  const secrets = [SECRET, "", createPublicKey(k1.privateKey).export({ format: "pem", type: "spki" })];
  for (const client of ["signer", "secret"]) {
    for (const [alg, hash] of Object.entries({ HS256: "sha256", HS384: "sha384", HS512: "sha512" })) {
      for (const secret of secrets) {
        const signature = (input: Buffer) => createHmac(hash, secret).update(input).digest();
        assertRefused(await present(forge(k1, ofClient(client), { header: { alg }, signature })));
      }
    }
  }
});

// --- comparison (RFC 7515 5.3, RFC 7519 7.3) ----------------------------------------------------------------------

const spelled: readonly [string, Forgery, boolean][] = [
  ["RFC7515-5.3-v1 an algorithm with an escape", { header: '{"alg":"ES\\u0032\\u00356","kid":"k1"}' }, true],
  [
    "RFC7515-5.3-v1 the name of a member with an escape",
    { header: '{"\\u0061lg":"ES256","kid":"k1"}' },
    true,
  ],
  ["RFC7515-5.3-v1 an algorithm in lower case", { header: { alg: "es256" } }, false],
  ["RFC7515-5.3-v1 an algorithm in full-width letters", { header: { alg: "\uff25\uff33256" } }, false],
  ["RFC7515-5.3-v1 a kid in capital letters", { header: { kid: "K1" } }, false],
  ["RFC7515-5.3-v1 a kid with a trailing space", { header: { kid: "k1 " } }, false],
  ["RFC7515-5.3-v1 a typ in capital letters", { header: { typ: "JWT" } }, true],
  ["RFC7515-5.3-v1 a typ in lower case", { header: { typ: "jwt" } }, true],
  ["RFC7515-5.3-v1 a typ with its prefix", { header: { typ: "application/jwt" } }, true],
];
const claimed: readonly [string, (text: string) => string, boolean][] = [
  ["RFC7519-7.3-v1 an issuer with an escape", (text) => text.replace('"signer"', '"\\u0073igner"'), true],
  ["RFC7519-7.3-v1 an audience with escaped slashes", (text) => text.replaceAll("/", "\\/"), true],
  ["RFC7519-7.3-v1 the name of a claim with an escape", (text) => text.replace('"aud"', '"\\u0061ud"'), true],
  ["RFC7519-7.3-v1 a client in capital letters", (text) => text.replaceAll("signer", "SIGNER"), false],
  [
    "RFC7519-7.3-v1 a client in full-width letters",
    (text) => text.replaceAll("signer", "\uff53igner"),
    false,
  ],
  [
    "RFC7519-7.3-v1 a client with a zero-width joiner",
    (text) => text.replaceAll("signer", "sig\u200dner"),
    false,
  ],
  [
    "RFC7519-7.3-v1 an audience in capital letters",
    (text) => text.replace(ISSUER, ISSUER.toUpperCase()),
    false,
  ],
  ["RFC7519-7.3-v1 an audience with its port", (text) => text.replace(ISSUER, `${ISSUER}:443`), false],
  ["RFC7519-7.3-v1 the name of a claim in capital letters", (text) => text.replace('"aud"', '"AUD"'), false],
];
type Rewritten = [string, () => string, boolean];
const rewritten: readonly Rewritten[] = [
  ...spelled.map(([name, forgery, taken]): Rewritten => {
    return [name, () => forge(k1, ofClient("signer"), forgery), taken];
  }),
  ...claimed.map(([name, rewrite, taken]): Rewritten => {
    const make = () => forge(k1, {}, { claims: rewrite(JSON.stringify(ofClient("signer"))) });
    return [name, make, taken];
  }),
  ["RFC7515-5.3-v1 a kid beyond ASCII", () => forge(accented, ofClient("signer")), true],
  [
    "RFC7515-5.3-v1 a kid in NFD",
    () => forge(accented, ofClient("signer"), { header: { kid: "cl\u00e9".normalize("NFD") } }),
    false,
  ],
];
for (const [name, make, taken] of rewritten) {
  test(`${name} is ${taken ? "equal" : "different"}`, async () => {
    const answer = await present(make());
    if (taken) assertTaken(answer);
    else assertRefused(answer);
  });
}

// --- claims of unverified JWTs (RFC 7519 11.1) --------------------------------------------------------------------

test("RFC7519-11.1-v1, RFC7515-10.10-v1 a forged assertion does not use up its jti", async () => {
  const good = ofClient("signer");
  assertRefused(await present(forge(makeKey("ES256", "k1"), good)));
  assertRefused(await present(forge(k1, good, { signature: flipped })));
  assertTaken(await present(forge(k1, good)));
  assertRefused(await present(forge(k1, good)));
});

test("RFC7519-11.1-v1 the iss of a JWT is not believed without a signature by its key", async () => {
  const other = forge(k1, ofUser());
  assertRefused(await exchange(other), "invalid_request");
  assertRefused(await present(forge(idpKey, ofClient("signer"))));
  assertTaken(await exchange(forge(idpKey, ofUser())));
});

// --- our own tokens (RFC 7519 4.1.7, 12) --------------------------------------------------------------------------

const headerOf = (token: unknown): object =>
  JSON.parse(Buffer.from(String(token).split(".")[0] ?? "", "base64url").toString());

test("RFC7515-4.1.11-v2 our headers have typ, alg and kid only", async () => {
  for (const { good, key, send } of Object.values(places)) {
    const { body } = await send(forge(key(), good()));
    assert.deepEqual(Object.keys(headerOf(body.access_token)).sort(), ["alg", "kid", "typ"]);
  }
});

test("RFC7519-4.1.7-v1 every token has a unique jti of 128 bits", async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => world.token(CC, byBasic)));
  const ids = answers.map(({ body }) => String(claimsOf(body.access_token).jti));
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) assert.match(id, /^[A-Za-z0-9_-]{22}$/);
});

test("RFC7519-12-v1 a token has no personal claims beyond sub", async () => {
  const told = { email: "una@idp.example", name: "Una", phone_number: "+43 1", address: { country: "AT" } };
  const answer = await exchange(forge(idpKey, ofUser(), { claims: told }));
  assertTaken(answer);
  const claims = claimsOf(answer.body.access_token);
  const usual = ["act", "aud", "client_id", "exp", "iat", "iss", "jti", "scope", "sub"];
  assert.deepEqual(Object.keys(claims).sort(), usual);
  assert.equal(claims.sub, "u-1");
});
