/** RFC 8725 over the wire: keys, algorithms and subjects of each issuer, and malicious values of `kid`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { calculateJwkThumbprint, compactVerify, createLocalJWKSet, type JSONWebKeySet } from "jose";
import { publicJwk } from "../../scripts/dev-keys.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { forge, type Key, keyOf, makeKey, seconds } from "../support/forge.ts";
import { reload } from "../support/reload.ts";
import { stop } from "../support/stop.ts";
import { LOOPBACK, startDocumentServer } from "../support/web.ts";
import { claimsOf, EXCHANGE, IDP, ISSUER, JWT, makeWorld, type World, workload } from "../support/world.ts";

const API = "https://api.example";
const SECRET = "a-secret-of-thirty-two-characters";
const JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const CC = { grant_type: "client_credentials" };
/** An issuer whose subjects are mapped by a table; one subject of the first issuer is disabled. */
const SECOND = "https://second.example";
const NASTY = [
  "' OR '1'='1",
  "../../../../etc/passwd",
  "a\u0000b",
  "%00%2e%2e/",
  "$(id)",
  "__proto__",
  "#{7*7}",
];

const k1 = makeKey("ES256", "k1");
const k2 = makeKey("ES256", "k1");
const nasty = NASTY.map((kid) => makeKey("ES256", kid));
const second = makeKey("ES256", "s1");
let idpKey: Key;

let world: World;
let documents: Awaited<ReturnType<typeof startDocumentServer>>;

const rule = (id: string, rest: object) => ({ id, targets: [API], scopes: ["read"], ...rest });

before(async () => {
  documents = await startDocumentServer();
  documents.documents.set("/second", { keys: [second.jwk] });
  world = await makeWorld(
    {
      clients: {
        one: { method: "private_key_jwt", jwks: { keys: [k1.jwk, ...nasty.map(({ jwk }) => jwk)] } },
        two: { method: "private_key_jwt", jwks: { keys: [k2.jwk] } },
        secret: { method: "client_secret_basic", secrets: [SECRET] },
      },
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [
        rule("clients", { allow: "client_credentials", clients: ["one", "two", "secret"] }),
        rule("delegates", {
          allow: "delegation",
          actors: [workload("*")],
          subjects: { issuers: [IDP, SECOND] },
          subjectToken: { audiences: [ISSUER] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
        }),
      ],
      limits: { failuresPerMinuteBySource: 100_000, failuresPerMinuteByClient: 100_000 },
    },
    {
      idp: { disabledSubjects: ["u-9"], scopes: ["read"] },
      files: { "second.pem": documents.ca },
      skipsLooks: true,
    },
  );
  const pem = readFileSync(join(world.folder, "idp/key.pem"), "utf8");
  idpKey = keyOf(pem, await calculateJwkThumbprint(publicJwk(pem)));
  const keys = { url: `${documents.origin}/second`, ca: { file: "second.pem" }, privateNetworks: LOOPBACK };
  const subjects = { table: { "7f3a": "anna" } };
  await reload(world, ({ trustedIssuers }) => ({
    trustedIssuers: { ...Object(trustedIssuers), [SECOND]: { keys, subjects, scopes: ["read"] } },
  }));
});

after(() => stop(world, documents));

let jtis = 0;
const times = () => ({ iat: seconds(), exp: seconds() + 60, jti: `j-${++jtis}` });
const ofClient = (id: string) => ({ iss: id, sub: id, aud: ISSUER, ...times() });
const ofUser = (claims = {}) => ({ iss: IDP, sub: "u-1", aud: ISSUER, ...times(), ...claims });
const assertion = (compact: string): Promise<Answer> =>
  world.token({ ...CC, audience: API, client_assertion_type: JWT_BEARER, client_assertion: compact });
const bySecret = (form = {}): Promise<Answer> =>
  world.token({ ...CC, ...form }, { authorization: basic("secret", SECRET) });

async function exchange(subjectToken: string): Promise<Answer> {
  const svid = await world.svid("agents/planner");
  return world.token({
    grant_type: EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: JWT,
    audience: API,
    actor_token: svid,
    actor_token_type: JWT,
    ...world.as(svid),
  });
}

function subOf(answer: Answer): unknown {
  assert.equal(answer.status, 200, answer.text);
  return claimsOf(answer.body.access_token).sub;
}

const assertRefused = (answer: Answer, error = "invalid_client"): void =>
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);

// --- issuers, subjects and their keys (3.8) -----------------------------------------------------------------------

test("RFC8725-3.8-v1, RFC8725-3.8-v2 the keys of one issuer or client are not accepted for another, even with the same kid", async () => {
  assert.equal(subOf(await assertion(forge(k1, ofClient("one")))), "one");
  assert.equal(subOf(await assertion(forge(k2, ofClient("two")))), "two");
  assertRefused(await assertion(forge(k2, ofClient("one"))));
  assertRefused(await assertion(forge(k1, ofClient("two"))));
  assert.equal(subOf(await exchange(forge(idpKey, ofUser()))), "u-1");
  assert.equal(subOf(await exchange(forge(second, ofUser({ iss: SECOND, sub: "7f3a" })))), "anna");
  assertRefused(await exchange(forge(second, ofUser())), "invalid_request");
  assertRefused(await exchange(forge(idpKey, ofUser({ iss: SECOND, sub: "7f3a" }))), "invalid_request");
  assertRefused(await exchange(forge(idpKey, ofUser({ iss: "https://third.example" }))), "invalid_request");
});

const subjects: readonly [string, string, unknown, boolean][] = [
  ["RFC8725-3.8-v3 a user of the issuer", IDP, "u-2", true],
  ["RFC8725-3.8-v3 a subject in the table", SECOND, "7f3a", true],
  ["RFC8725-3.8-v4 a subject that the table lacks", SECOND, "u-2", false],
  ["RFC8725-3.8-v4 a mapped name of the table", SECOND, "anna", false],
  ["RFC8725-3.8-v4 a mapped name of the other issuer", IDP, "anna", false],
  ["RFC8725-3.8-v4 no subject", IDP, undefined, false],
  ["RFC8725-3.8-v4 an empty subject", IDP, "", false],
  ["RFC8725-3.8-v4 a number", IDP, 7, false],
  ["RFC8725-3.8-v4 a list of subjects", IDP, ["u-2"], false],
  ["RFC8725-3.8-v4 a disabled subject", IDP, "u-9", false],
  ["RFC8725-3.8-v4, B8725-3.8-1 a client", IDP, "secret", false],
  ["RFC8725-3.8-v4, B8725-3.8-1 a workload", IDP, workload("agents/planner"), false],
  ["RFC8725-3.8-v4, B8725-3.8-1 a URL", IDP, "https://client.example/metadata", false],
];
for (const [name, iss, sub, taken] of subjects) {
  test(`${name} is ${taken ? "accepted" : "refused"} as a subject`, async () => {
    const answer = await exchange(forge(iss === IDP ? idpKey : second, ofUser({ iss, sub })));
    if (taken) assert.equal(answer.status, 200, answer.text);
    else assertRefused(answer, "invalid_request");
  });
}

test("RFC8725-3.8-v4 a client can only assert itself", async () => {
  assertRefused(await assertion(forge(k1, { ...ofClient("one"), sub: "two" })));
  assertRefused(await assertion(forge(k1, { ...ofClient("one"), iss: "two" })));
});

// --- algorithms (3.1, 3.2) ----------------------------------------------------------------------------------------

test("B8725-3.1-1 only the configured algorithms of an issuer are accepted", async () => {
  const set = (algorithms: string[]) =>
    reload(world, ({ trustedIssuers }) => {
      const all = Object(trustedIssuers);
      return { trustedIssuers: { ...all, [IDP]: { ...all[IDP], algorithms } } };
    });
  assert.equal(subOf(await exchange(forge(idpKey, ofUser()))), "u-1");
  await set(["EdDSA", "RS256"]);
  assertRefused(await exchange(forge(idpKey, ofUser())), "invalid_request");
  assert.equal(subOf(await exchange(forge(second, ofUser({ iss: SECOND, sub: "7f3a" })))), "anna");
  await set(["EdDSA", "ES256"]);
  assert.equal(subOf(await exchange(forge(idpKey, ofUser()))), "u-1");
});

test("RFC8725-3.2-v3 the algorithm of a target can change by a reload, and earlier tokens still verify", async () => {
  const tokens: string[] = [];
  for (const alg of ["ES256", "EdDSA", "RS256", "ES256"]) {
    await reload(world, () => ({ targets: [{ names: [API], scopes: ["read"], alg }] }));
    tokens.push(String((await bySecret({ audience: API })).body.access_token));
  }
  const keys = createLocalJWKSet((await world.get("/jwks")).body as unknown as JSONWebKeySet);
  const algorithms = await Promise.all(
    tokens.map(async (token) => (await compactVerify(token, keys)).protectedHeader.alg),
  );
  assert.deepEqual(algorithms, ["ES256", "EdDSA", "RS256", "ES256"]);
  const [, payload = ""] = String(tokens[0]).split(".");
  const changed = String(tokens[0]).replace(payload, `${payload.slice(0, -4)}AAAA`);
  await assert.rejects(compactVerify(changed, keys));
});

// --- audience (3.9) -----------------------------------------------------------------------------------------------

test("RFC8725-3.9-v1, B8725-3.9-1 every token has an audience, requested or not", async () => {
  const answers = [
    await bySecret({ audience: API }),
    await bySecret(),
    await exchange(forge(idpKey, ofUser())),
    await assertion(forge(k1, ofClient("one"))),
  ];
  for (const answer of answers) assert.equal(claimsOf(answer.body.access_token).aud, API, answer.text);
});

// --- kid (3.10) ---------------------------------------------------------------------------------------------------

for (const [index, kid] of NASTY.entries()) {
  test(`B8725-3.10-1 the kid ${JSON.stringify(kid)} is compared like any other`, async () => {
    const key = nasty[index] ?? k1;
    assert.equal(subOf(await assertion(forge(key, ofClient("one")))), "one");
    assertRefused(await assertion(forge(k1, ofClient("one"), { header: { kid } })));
    assertRefused(await assertion(forge(k2, ofClient("two"), { header: { kid } })));
    assertRefused(await exchange(forge(idpKey, ofUser(), { header: { kid } })), "invalid_request");
    const svid = keyOf(world.trustDomain.jwt.keyPem, kid);
    const claims = { sub: workload("agents/planner"), aud: ISSUER, ...times() };
    assertRefused(await world.token({ ...CC, ...world.as(forge(svid, claims)) }));
    assert.equal(subOf(await exchange(forge(idpKey, ofUser()))), "u-1");
  });
}
