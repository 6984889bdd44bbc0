import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { FETCHED_SECONDS, FETCHED_SECONDS_MAX, FETCHED_SECONDS_MIN } from "../../../src/limits/fetching.ts";
import { KEYS_MAX } from "../../../src/limits/input.ts";
import { RSA_ALGORITHMS, selectKey } from "../../../src/spec/rfc7517.ts";
import type { Json, JsonObject } from "../../../src/spec/rfc8259.ts";
import {
  acceptsSuccessor,
  type Bundle,
  parseBundle,
  refreshSeconds,
} from "../../../src/spec/spiffe/bundle.ts";

const publicJwk = (type: "ec" | "rsa") =>
  (type === "ec"
    ? generateKeyPairSync("ec", { namedCurve: "P-256" })
    : generateKeyPairSync("rsa", { modulusLength: 2048 })
  ).publicKey.export({ format: "jwk" }) as JsonObject;
const ec = publicJwk("ec");
const rsa = publicJwk("rsa");
const jwt = { ...ec, use: "jwt-svid", kid: "k7" };
const x509 = { ...ec, use: "x509-svid", x5c: ["MIIB"] };

const summary = (document: Json) => {
  const got = parseBundle(JSON.stringify(document));
  return got.ok ? `${got.value.jwtKeys.length} jwt ${got.value.x509Authorities.length} x509` : got.error.kind;
};

const cases: readonly (readonly [string, Json, string])[] = [
  ["SBN-4.1.3-1 both kinds of keys are accepted", { keys: [x509, jwt] }, "1 jwt 1 x509"],
  ["SBN-4.1.3-1 a document without keys is refused", { spiffe_sequence: 1 }, "jwk_set_malformed"],
  ["SBN-4.1.3-1 an array is refused", [jwt], "jwk_set_malformed"],
  ["SBN-4.1.3-3 an empty set, which revokes every key, is accepted", { keys: [] }, "0 jwt 0 x509"],
  ["SBN-4.1.3-3 a set without a usable key is accepted", { keys: [{ kty: "AKP" }] }, "0 jwt 0 x509"],
  ["SBN-4.1-1 undefined members are accepted", { keys: [jwt], next: {} }, "1 jwt 0 x509"],
  [
    "SBN-4.1.3-2 malformed keys are skipped",
    { keys: [null, 1, {}, { ...jwt, x: "AA" }, jwt] },
    "1 jwt 0 x509",
  ],
  [
    "SBN-4.2.1-1 an unknown kty is skipped",
    {
      keys: [
        { ...jwt, kty: "AKP" },
        { ...x509, kty: "AKP" },
      ],
    },
    "0 jwt 0 x509",
  ],
  ["SBN-4.2.1-1 a missing kty is skipped", { keys: [{ use: "x509-svid", x5c: ["MIIB"] }] }, "0 jwt 0 x509"],
  ["SBN-4.2.2-1 a missing use is skipped", { keys: [{ ...ec, kid: "k7", x5c: ["MIIB"] }] }, "0 jwt 0 x509"],
  [
    "SBN-4.2.2-1, JSV-6.1-1, X5S-6.1-1 an unknown use is skipped",
    {
      keys: [
        { ...jwt, use: "sig" },
        { ...jwt, use: "wit-svid" },
      ],
    },
    "0 jwt 0 x509",
  ],
  [
    "SBN-4.2.2-1 a use in capitals is skipped",
    {
      keys: [
        { ...jwt, use: "JWT-SVID" },
        { ...x509, use: "X509-SVID" },
      ],
    },
    "0 jwt 0 x509",
  ],
  ["JSV-6.1-2 a JWT key without kid is skipped", { keys: [{ ...ec, use: "jwt-svid" }] }, "0 jwt 0 x509"],
  [
    "RFC7517-4.3-v2 a JWT key that may not verify is skipped",
    { keys: [{ ...jwt, key_ops: ["sign"] }] },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1, X5S-6.2-1 an authority without certificate is skipped",
    {
      keys: [
        { ...x509, x5c: [] },
        { ...ec, use: "x509-svid" },
      ],
    },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1 a certificate in base64url is skipped",
    { keys: [{ ...x509, x5c: ["MI-_"] }] },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1 a certificate without padding is skipped",
    { keys: [{ ...x509, x5c: ["MIIBAA"] }] },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1 a certificate of impossible length is skipped",
    { keys: [{ ...x509, x5c: ["MIIBA"] }] },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1 a certificate with non-zero unused bits is skipped",
    { keys: [{ ...x509, x5c: ["MIIBAB=="] }] },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1 a certificate with a line break is skipped",
    { keys: [{ ...x509, x5c: ["MIIB\nMIIB"] }] },
    "0 jwt 0 x509",
  ],
  [
    "RFC7517-4.7-1 a certificate with padding is accepted",
    { keys: [{ ...x509, x5c: ["MIIBAA=="] }] },
    "0 jwt 1 x509",
  ],
  [
    "RFC7517-9.2-1 a bundle with a private key is refused",
    { keys: [x509, { ...jwt, d: "AA" }] },
    "jwk_set_private",
  ],
  [
    "RFC7523-3-2 too many keys are refused",
    { keys: Array.from({ length: KEYS_MAX + 1 }, () => jwt) },
    "jwk_set_too_large",
  ],
  ["SBN-4.1.1-1 a sequence is accepted", { keys: [], spiffe_sequence: 0 }, "0 jwt 0 x509"],
  [
    "SBN-4.1.1-1 the largest exact sequence is accepted",
    { keys: [], spiffe_sequence: 2 ** 53 - 1 },
    "0 jwt 0 x509",
  ],
  [
    "SBN-4.1.1-1 a sequence above the largest exact integer is refused",
    { keys: [], spiffe_sequence: 2 ** 53 },
    "bundle_sequence_malformed",
  ],
  [
    "SBN-4.1.1-1 a fractional sequence is refused",
    { keys: [], spiffe_sequence: 1.5 },
    "bundle_sequence_malformed",
  ],
  [
    "SBN-4.1.1-1 a negative sequence is refused",
    { keys: [], spiffe_sequence: -1 },
    "bundle_sequence_malformed",
  ],
  [
    "SBN-4.1.1-1 a string as sequence is refused",
    { keys: [], spiffe_sequence: "1" },
    "bundle_sequence_malformed",
  ],
  ["SBN-4.1.2-1 a refresh hint is accepted", { keys: [], spiffe_refresh_hint: 300 }, "0 jwt 0 x509"],
  [
    "SBN-4.1.2-1 a fractional refresh hint is refused",
    { keys: [], spiffe_refresh_hint: 0.5 },
    "bundle_refresh_hint_malformed",
  ],
  [
    "SBN-4.1.2-1 a string as refresh hint is refused",
    { keys: [], spiffe_refresh_hint: "300" },
    "bundle_refresh_hint_malformed",
  ],
];

for (const [name, document, want] of cases) test(name, () => assert.equal(summary(document), want));

test("JSV-6.2-1, X5S-6.2-2 the two kinds of keys are separated, and the first certificate of each authority is kept", () => {
  const document = {
    spiffe_sequence: 41,
    spiffe_refresh_hint: 60,
    keys: [jwt, { ...x509, x5c: ["MIIB", "MIIC"] }],
  };
  assert.deepEqual(parseBundle(JSON.stringify(document)), {
    ok: true,
    value: {
      sequence: 41,
      refreshHintSeconds: 60,
      jwtKeys: [{ ...ec, kid: "k7" }],
      x509Authorities: ["MIIB"],
    },
  });
});

test("JSV-2.1-1 an RSA key of a bundle is accepted for all six RSA algorithms", () => {
  const bundle = parseBundle(JSON.stringify({ keys: [{ ...rsa, use: "jwt-svid", kid: "r1" }] }));
  assert(bundle.ok);
  for (const alg of RSA_ALGORITHMS)
    assert(selectKey(bundle.value.jwtKeys, { alg, kid: "r1" }, RSA_ALGORITHMS).ok);
  assert(!selectKey(bundle.value.jwtKeys, { alg: "ES256", kid: "r1" }, RSA_ALGORITHMS).ok);
});

const bundle = (members: Partial<Bundle>): Bundle => ({ jwtKeys: [], x509Authorities: [], ...members });

const refreshes = [
  ["SFD-4.1-1, SPCA-6.1-2 the refresh hint is used", 600, 600],
  ["SBN-6.1-1 the default without a hint is used", undefined, FETCHED_SECONDS],
  ["SBN-4.1.2-1 a hint of 0 is raised to the minimum", 0, FETCHED_SECONDS_MIN],
  ["SBN-4.1.2-1 a hint of a day is lowered to the maximum", 86_400, FETCHED_SECONDS_MAX],
] as const;

for (const [name, hint, want] of refreshes) {
  test(name, () =>
    assert.equal(refreshSeconds(bundle(hint === undefined ? {} : { refreshHintSeconds: hint })), want),
  );
}

const successors = [
  ["SFD-4.2-2 a higher sequence is accepted", 41, 42, true],
  ["SFD-4.2-2 the same sequence is accepted", 41, 41, true],
  ["SFD-4.2-2 a lower sequence is refused", 41, 40, false],
  ["SFD-4.2-2 a bundle without sequence is accepted", 41, undefined, true],
  ["SFD-4.2-2 a first sequence is accepted", undefined, 1, true],
] as const;

for (const [name, old, next, want] of successors) {
  test(name, () => {
    const numbered = (sequence?: number) => bundle(sequence === undefined ? {} : { sequence });
    assert.equal(acceptsSuccessor(numbered(old), numbered(next)), want);
  });
}
