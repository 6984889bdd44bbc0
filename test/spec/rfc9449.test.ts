import assert from "node:assert/strict";
import { test } from "node:test";
import { verifier } from "../../src/adapters/crypto/verifier.ts";
import type { JsonObject } from "../../src/spec/rfc8259.ts";
import { PROOF_ALGORITHMS } from "../../src/spec/rfc8725.ts";
import {
  checkProof,
  hasDpopScheme,
  type ProofRule,
  parseDpopCredentials,
  parseProof,
} from "../../src/spec/rfc9449.ts";
import { makeProver } from "../support/dpop.ts";
import { forge, makeKey } from "../support/forge.ts";
import { mutate, prng } from "../support/prng.ts";

const NOW = 1_790_000_000;
const URL_HERE = "https://as.example/token";
const prover = await makeProver();
const rsa = await makeProver("RS256");
const claims = { jti: "x9-3fQ2kTn0aLw7b", htm: "POST", htu: URL_HERE, iat: NOW };
const rule: ProofRule = { method: "POST", url: URL_HERE, nowSeconds: NOW, skewSeconds: 30 };

/** Parsed, its signature verified, and checked. */
async function judge(proof: string, by: Partial<ProofRule> = {}): Promise<string> {
  const parsed = parseProof(proof, PROOF_ALGORITHMS);
  if (!parsed.ok) return parsed.error.kind;
  const { jws, key } = parsed.value;
  if (!(await verifier.verify(jws, key))) return "signature_invalid";
  const checked = checkProof(jws, { ...rule, ...by });
  return checked.ok ? "ok" : checked.error.kind;
}

// The proof of an example that was made with another implementation.
const EXAMPLE =
  "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwiY3J2IjoiUC0yNTYiLCJ4IjoiUWx0aFRYLWR6Y0llTmpUQUMySlNjTllKMjV4em9xU3hxckNnbGJKZnE0dyIsInkiOiJkTGhwbDg2Qk8xWThDV1NERmxiTEFPNjVQOU1CWWlWbHVpNmlNc2V0d013In19.eyJqdGkiOiJ4OS0zZlEya1RuMGFMdzdiIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vYXMuZXhhbXBsZS90b2tlbiIsImlhdCI6MTc5MDAwMDAwMH0.KV_DVC75CHBAxw2rbztH_O_WzX5htD5yL4daN-2ungNK8alSKzZS90MU6ts_hnLGjYD4p6UDa2BvYAzh_pp73g";

test("RFC9449-4.3-6 a proof that another implementation made is accepted", async () => {
  assert.equal(await judge(EXAMPLE), "ok");
});

const symmetric = { kty: "oct", k: "AAAA" };
const headers: readonly (readonly [string, JsonObject, string])[] = [
  ["RFC9449-4.2-1 dpop+jwt is accepted", {}, "ok"],
  ["RFC9449-4.2-8 unknown members are ignored", { "x-new": { a: 1 }, kid: "k" }, "ok"],
  [
    "RFC9449-4.2-8 an extension that has to be understood is refused",
    { crit: ["x-new"], "x-new": 1 },
    "jws_header_refused",
  ],
  ["RFC9449-11.5-1 a JWT without type is refused", { typ: undefined as never }, "jwt_type_refused"],
  ...["JWT", "at+jwt", "dpop", "dpop+jwt2", "client-authentication+jwt"].map(
    (typ) =>
      [`RFC9449-4.3-4, RFC9449-11.5-1 the type ${typ} is refused`, { typ }, "jwt_type_refused"] as const,
  ),
  ...["none", "HS256", "es256", "RS256", "ES512", "PS512", "ES256K", ""].map(
    (alg) =>
      [
        `RFC9449-4.3-5, RFC9449-4.2-2, RFC9449-11.6-1, RFC9449-11.6-2 the algorithm ${alg || "without a name"} is refused`,
        { alg },
        "jwt_algorithm_refused",
      ] as const,
  ),
  ["RFC9449-4.3-6 an algorithm that is not the key's is refused", { alg: "EdDSA" }, "signature_invalid"],
  ["RFC9449-4.3-6 a proof without key is refused", { jwk: undefined as never }, "jwk_unusable"],
  ...[null, "x", [], {}, { kty: "EC" }].map(
    (jwk) =>
      [
        `RFC9449-4.3-6 ${JSON.stringify(jwk)} as key is refused`,
        { jwk } as JsonObject,
        "jwk_unusable",
      ] as const,
  ),
  ...["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"].map(
    (name) =>
      [
        `RFC9449-4.3-7, RFC9449-4.2-3 a key with ${name} is refused`,
        { jwk: { ...prover.jwk, [name]: "AA" } } as JsonObject,
        "jwk_private",
      ] as const,
  ),
  ["RFC9449-4.3-7 a symmetric key is refused", { jwk: symmetric }, "jwk_private"],
  [
    "RFC9449-4.3-6 a key of another purpose is refused",
    { jwk: { ...prover.jwk, use: "enc" } as JsonObject },
    "jwk_unusable",
  ],
  [
    "RFC9449-4.3-6 a point beside the curve is refused",
    { jwk: { ...prover.jwk, x: prover.jwk.y } as JsonObject },
    "jwk_unusable",
  ],
  [
    "RFC9449-4.3-6 another key than the one that signed is refused",
    { jwk: (await makeProver()).jwk as JsonObject },
    "signature_invalid",
  ],
];
for (const [name, header, want] of headers) {
  test(name, async () => assert.equal(await judge(prover.prove(URL_HERE, { header, claims })), want));
}

for (const alg of ["ES256", "EdDSA"]) {
  test(`RFC9449-4.3-5 the algorithm ${alg} is accepted`, async () => {
    const one = await makeProver(alg);
    assert.equal(await judge(one.prove(URL_HERE, { claims })), "ok");
  });
}

test("RFC9449-4.3-5 PS256 and, where the operator adds it, RS256 are accepted", async () => {
  const ps = { ...rsa.key, alg: "PS256" };
  const header = { kid: undefined, jwk: rsa.jwk };
  assert.equal(await judge(forge(ps, claims, { header })), "ok");
  const proof = rsa.prove(URL_HERE, { claims });
  assert.equal(await judge(proof), "jwt_algorithm_refused");
  const parsed = parseProof(proof, [...PROOF_ALGORITHMS, "RS256"]);
  assert.ok(parsed.ok && (await verifier.verify(parsed.value.jws, parsed.value.key)));
});

const bodies: readonly (readonly [string, object, string, Partial<ProofRule>?])[] = [
  ["RFC9449-4.2-8 unknown claims are ignored", { color: "red", ath: 7 }, "ok"],
  ...["jti", "htm", "htu"].flatMap((name) => [
    [
      `RFC9449-4.3-3, RFC9449-4.2-4 a proof without ${name} is refused`,
      { [name]: undefined },
      "jwt_claim_missing",
    ] as const,
    [`RFC9449-4.3-3 a number as ${name} is refused`, { [name]: 7 }, "jwt_claim_malformed"] as const,
    [`RFC9449-4.3-3 an empty ${name} is refused`, { [name]: "" }, "jwt_claim_malformed"] as const,
  ]),
  ["RFC9449-4.3-3, RFC9449-4.2-4 a proof without iat is refused", { iat: undefined }, "jwt_time_missing"],
  ["RFC9449-4.3-3 a text as iat is refused", { iat: String(NOW) }, "jwt_time_malformed"],
  ["RFC9449-11.1-3 a jti of 256 characters is accepted", { jti: "a".repeat(256) }, "ok"],
  ["RFC9449-11.1-3 a longer jti is refused", { jti: "a".repeat(257) }, "jti_too_long"],
  ["RFC9449-4.3-8 another method is refused", { htm: "GET" }, "method_differs"],
  ["RFC9449-4.3-8 the method in other letters is refused", { htm: "post" }, "method_differs"],
  ["RFC9449-4.3-11 an iat a minute ago is accepted", { iat: NOW - 60 }, "ok"],
  ["RFC9449-4.3-11, RFC9449-11.1-1 an older one is refused", { iat: NOW - 61 }, "jwt_too_old"],
  ["RFC9449-11.1-4 a clock that is ahead by the skew is accepted", { iat: NOW + 30 }, "ok"],
  ["RFC9449-4.3-11 one that is ahead by more is refused", { iat: NOW + 31 }, "jwt_issued_in_future"],
  ["RFC9449-4.3-12 the hash of the token is accepted", { ath: "h" }, "ok", { ath: "h" }],
  ["RFC9449-4.3-12, RFC9449-4.2-6 a proof without it is refused", {}, "jwt_claim_missing", { ath: "h" }],
  ["RFC9449-4.3-12 the hash of another token is refused", { ath: "H" }, "token_differs", { ath: "h" }],
];
for (const [name, change, want, by] of bodies) {
  test(name, async () => {
    assert.equal(await judge(prover.prove(URL_HERE, { claims: { ...claims, ...change } }), by), want);
  });
}

const SAME = [
  "https://as.example/token",
  "HTTPS://AS.EXAMPLE/token",
  "https://as.example:443/token",
  "https://as.example/token?a=b",
  "https://as.example/token#there",
  "https://as.example/x/../token",
  "https://as.example/./token",
  "https://as.example/%74oken",
  "https://as.example/%2E/token",
];
for (const htu of SAME) {
  test(`RFC9449-4.3-9, RFC9449-4.3-13 ${htu} is accepted`, async () => {
    assert.equal(await judge(prover.prove(htu, { claims: { ...claims, htu } })), "ok");
  });
}
const OTHERS = [
  "https://as.example/token/",
  "https://as.example/Token",
  "https://as.example/",
  "https://as.example",
  "https://as.example//token",
  "https://as.example/token%2F",
  "https://as.example:8443/token",
  "https://as.example./token",
  "https://mtls.as.example/token",
  "https://user@as.example/token",
  "https://as.example@evil.example/token",
  "http://as.example/token",
  "https:/as.example/token",
  "https:as.example/token",
  "https:\\\\as.example\\token",
  " https://as.example/token",
  "https://as.example/tok\ten",
  "//as.example/token",
  "/token",
  "https://as.example/%zz",
  "https://as.exämple/token",
];
for (const htu of OTHERS) {
  test(`RFC9449-4.3-9 ${JSON.stringify(htu)} is refused`, async () => {
    assert.equal(await judge(prover.prove(htu, { claims: { ...claims, htu } })), "url_differs");
  });
}

const endOfNonce = (nonce: string): number | undefined => (nonce === "ours" ? NOW + 90 : undefined);
const nonces: readonly (readonly [string, object, string])[] = [
  ["RFC9449-4.3-10 a nonce of ours is accepted", { nonce: "ours" }, "ok"],
  ["RFC9449-11.1-5 whose time replaces that of iat", { nonce: "ours", iat: NOW - 3600 }, "ok"],
  ["RFC9449-4.3-3 iat is required beside it", { nonce: "ours", iat: "now" }, "jwt_time_malformed"],
  ["RFC9449-11.3-1, RFC9449-4.2-7 a nonce is demanded", {}, "nonce_missing"],
  ["RFC9449-8-5, RFC9449-9-1 another is refused", { nonce: "ours " }, "nonce_refused"],
  ["RFC9449-8-5 a list is refused", { nonce: ["ours"] }, "nonce_refused"],
];
for (const [name, change, want] of nonces) {
  test(`${name}`, async () => {
    assert.equal(
      await judge(prover.prove(URL_HERE, { claims: { ...claims, ...change } }), { endOfNonce }),
      want,
    );
  });
}

test("RFC9449-2-1 a proof for a URL of plain HTTP is refused, wherever it came in", async () => {
  const htu = "http://as.example/token";
  const proof = prover.prove(htu, { claims: { ...claims, htu } });
  assert.equal(await judge(proof), "url_differs");
  assert.equal(await judge(proof, { url: htu }), "url_differs");
});

test("RFC9449-11.1-2 a proof is remembered for as long as it could be accepted", () => {
  const parsed = parseProof(EXAMPLE, PROOF_ALGORITHMS);
  assert.ok(parsed.ok);
  const checked = checkProof(parsed.value.jws, rule);
  assert.ok(checked.ok);
  const { endSeconds } = checked.value;
  assert.ok(checkProof(parsed.value.jws, { ...rule, nowSeconds: endSeconds - 1 }).ok);
  assert.ok(!checkProof(parsed.value.jws, { ...rule, nowSeconds: endSeconds }).ok);
});

const good = prover.prove(URL_HERE, { claims });
const values: readonly (readonly [string, string, string])[] = [
  ["RFC9449-4.3-1 two of them is refused", `${good}, ${good}`, "repeated"],
  ["RFC9449-4.3-1 one beside an empty field is refused", `, ${good}`, "repeated"],
  ["RFC9449-4.1-1, RFC9449-4.3-2 an empty field is refused", "", "jws_not_compact"],
  ["RFC9449-4.3-2 one JWT is accepted", good, "ok"],
  ["RFC9449-4.3-2 two with a space between is refused", `${good} ${good}`, "jws_encrypted"],
  ["RFC9449-4.3-2 a text is refused", "proof", "jws_not_compact"],
  ["RFC9449-4.3-2 one in quotes is refused", `"${good}"`, "jws_not_compact"],
  [
    "RFC9449-4.3-2 one without signature is refused",
    good.slice(0, good.lastIndexOf(".") + 1),
    "jws_not_compact",
  ],
];
for (const [name, value, want] of values) {
  test(name, async () => assert.equal(await judge(value), want));
}

test("RFC9449-4.1-1 a proof in other letters is another proof", async () => {
  assert.notEqual(await judge(good.toLowerCase()), "ok");
});

test("RFC9449-4.3-6 a proof that was changed anywhere is refused", async () => {
  const random = prng(9449);
  for (let round = 0; round < 300; round++) {
    const text = mutate(random, good, ["A", "B", ".", "_", "-", "=", "e"]);
    if (text !== good) assert.notEqual(await judge(text), "ok", text);
  }
});

test("RFC9449-7.1-1 the scheme is known in any case, and takes one token", () => {
  const none = new Set<string>();
  for (const one of ["DPoP a.b", "dpop a.b", "DPOP   a.b"]) {
    assert.ok(hasDpopScheme(one));
    assert.deepEqual(parseDpopCredentials(one, none), { ok: true, value: "a.b" });
  }
  for (const one of ["DPoP", "DPoP ", "DPoP a b", 'DPoP "a"', "DPoP a,b"]) {
    assert.ok(hasDpopScheme(one));
    assert.ok(!parseDpopCredentials(one, none).ok, one);
  }
  for (const one of ["Bearer a", "DPoPa b", "", " DPoP a"]) assert.ok(!hasDpopScheme(one), one);
  assert.ok(!parseDpopCredentials("DPoP a", new Set(["access_token"])).ok);
});

test("RFC9449-4.3-6 a key of the client that is not in the header has no say", async () => {
  const other = makeKey("ES256", "k1");
  const header = { typ: "dpop+jwt", jwk: prover.jwk };
  assert.equal(await judge(forge(other, claims, { header })), "signature_invalid");
});
