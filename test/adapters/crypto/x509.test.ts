import assert from "node:assert/strict";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { type Authority, derOf, type TrustDomain } from "../../../scripts/dev-keys.ts";
import { makeIntermediate, makeTrustDomain, mintX509Svid } from "../../../scripts/dev-pki.ts";
import { hash } from "../../../src/adapters/crypto/hash.ts";
import { verifyPresented } from "../../../src/adapters/crypto/x509.ts";
import {
  CERTIFICATE_PATH_MAX,
  CERTIFICATES_SENT_MAX,
  SIGNATURE_CHECKS_MAX,
} from "../../../src/limits/input.ts";
import { parseX509Svid } from "../../../src/spec/spiffe/x509-svid.ts";
import { readDer } from "../../../src/spec/x690.ts";
import {
  altNames,
  type Bytes,
  basicConstraints,
  bits,
  build,
  type Content,
  commonName,
  DIGITAL_SIGNATURE,
  ECDSA_SHA1,
  extension,
  hex,
  type Key,
  makeKey,
  NOW,
  nameConstraints,
  octets,
  oid,
  SIGNS_CERTIFICATES,
  seq,
  tlv,
  UNKNOWN_CRITICAL,
  uri,
} from "../../fixtures/x509/build.ts";
import { prng } from "../../support/prng.ts";

const ID = "spiffe://td.example/agents/planner";

const verdict = (presented: readonly Bytes[], anchors: readonly Bytes[], nowSeconds = NOW): string => {
  const got = verifyPresented(presented, anchors, nowSeconds);
  if (got.ok) return `ok ${got.value.length}`;
  return "at" in got.error ? `${got.error.kind} at ${got.error.at}` : got.error.kind;
};

// --- certificates built here, with real signatures ----------------------------------------------------------------

type Signer = { name: string; key: Key };
const KEYS = new Map<string, Key>();
/** One key for each label. */
function keyOf(label: string): Key {
  const key = KEYS.get(label) ?? makeKey();
  KEYS.set(label, key);
  return key;
}
const by = (name: string, label = name): Signer => ({ name, key: keyOf(label) });

const keyIds = (own: Key, issuer: Key) => [
  extension("2.5.29.14", octets(own.id)),
  extension("2.5.29.35", seq(tlv(0x80, issuer.id))),
];

/** `more` replaces the members that it has; its extensions are added. */
function authority(subject: Signer, issuer: Signer, { extensions = [], ...more }: Content = {}): Bytes {
  return build({
    subject: commonName(subject.name),
    issuer: commonName(issuer.name),
    spki: subject.key.spki,
    signer: issuer.key.privateKey,
    extensions: [
      basicConstraints(true),
      SIGNS_CERTIFICATES,
      ...keyIds(subject.key, issuer.key),
      ...extensions,
    ],
    ...more,
  });
}

function svid(issuer: Signer, { extensions = [], ...more }: Content = {}): Bytes {
  const own = keyOf("leaf");
  return build({
    issuer: commonName(issuer.name),
    spki: own.spki,
    signer: issuer.key.privateKey,
    extensions: [
      basicConstraints(false),
      DIGITAL_SIGNATURE,
      altNames([uri(ID)]),
      ...keyIds(own, issuer.key),
      ...extensions,
    ],
    ...more,
  });
}

const [A, I1, I2] = [by("A"), by("I1"), by("I2")];
const ROOT = authority(A, A);
const INTERMEDIATE = authority(I1, A);
const LEAF = svid(I1);

/** An authority of another trust domain: its own key with the name and the key identifier of `A`. */
const COPY = by("A", "copy of A");
const copied = { ...COPY, key: { ...COPY.key, id: A.key.id } };
const B = by("B");
const past = { notBefore: NOW - 7200, notAfter: NOW - 3600 };
const future = { notBefore: NOW + 3600, notAfter: NOW + 7200 };
const bareSigner = (...extensions: Bytes[]) =>
  build({
    subject: commonName("I1"),
    issuer: commonName("A"),
    spki: I1.key.spki,
    signer: A.key.privateKey,
    extensions,
  });

const cases: readonly (readonly [string, Bytes[], Bytes[], string])[] = [
  ["SPCA-3.2-3, X5S-5.1-1 leaf and intermediate are accepted", [LEAF, INTERMEDIATE], [ROOT], "ok 3"],
  ["X5S-5.1-1 a leaf directly below the anchor is accepted", [svid(A)], [ROOT], "ok 2"],
  ["X5S-5.1-1 an intermediate as anchor is accepted", [LEAF], [INTERMEDIATE], "ok 2"],
  ["X5S-6.2-3 any anchor of the bundle is accepted", [LEAF, INTERMEDIATE], [authority(B, B), ROOT], "ok 3"],
  ["X5S-6.2-3 every leaf is refused if the bundle is empty", [LEAF, INTERMEDIATE], [], "issuer_unknown"],
  ["X5S-5.1-1 an empty list is refused", [], [ROOT], "certificate_missing"],
  [
    "X5S-5.1-1 the anchor among the sent certificates is accepted",
    [LEAF, INTERMEDIATE, ROOT],
    [ROOT],
    "ok 3",
  ],
  [
    "X5S-5.1-1 any order and unrelated certificates are accepted",
    [LEAF, ROOT, authority(B, B), INTERMEDIATE, svid(B)],
    [ROOT],
    "ok 3",
  ],
  [
    "X5S-5.1-1 an unrelated certificate that is malformed is accepted",
    [LEAF, hex("ff"), INTERMEDIATE],
    [ROOT],
    "ok 3",
  ],
  ["X5S-5.1-1 repeated certificates are accepted", [LEAF, LEAF, INTERMEDIATE, INTERMEDIATE], [ROOT], "ok 3"],
  ["X5S-5.1-1 a leaf whose intermediate was not sent is refused", [LEAF], [ROOT], "issuer_unknown"],
  [
    "X5S-5.1-1 another intermediate than the leaf's issuer is refused",
    [svid(I2), INTERMEDIATE],
    [ROOT],
    "issuer_unknown",
  ],
  [
    "X5S-5.1-1 a leaf signed with another key is refused",
    [svid(I1, { signer: B.key.privateKey }), INTERMEDIATE],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "X5S-5.1-1 an intermediate signed with another key is refused",
    [LEAF, authority(I1, A, { signer: B.key.privateKey })],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "X5S-5.1-1 a leaf without a signature is refused",
    [svid(A, { signer: undefined })],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "SID-3-1, SPCA-3.2-3 a leaf of another trust domain's authority with our SPIFFE ID is refused",
    [svid(B), authority(B, B)],
    [ROOT],
    "issuer_unknown",
  ],
  [
    "SID-3-1, SPCA-3.2-3 another trust domain's authority with our authority's name and key identifier is refused",
    [svid(copied)],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "SID-3-1, SPCA-3.2-3 such an authority with its certificate sent along is refused",
    [svid(copied), authority(copied, copied)],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "SID-3-1 such an authority with an intermediate that copies ours is refused",
    [svid(by("I1", "copy of I1")), authority(by("I1", "copy of I1"), copied), authority(copied, copied)],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "SPCA-3.2-3 a self-signed certificate that was sent is refused",
    [svid(B), authority(B, B)],
    [],
    "issuer_unknown",
  ],
  ["X5S-5.1-1 a self-signed leaf is refused", [svid(by("leaf", "leaf"))], [ROOT], "issuer_unknown"],
  ["X5S-3.2-3 a leaf that is an anchor is refused", [ROOT], [ROOT], "leaf_is_anchor"],
  ["X5S-3.2-3 a leaf that is in the bundle is refused", [LEAF, INTERMEDIATE], [ROOT, LEAF], "leaf_is_anchor"],
  [
    "X5S-3.2-3 a leaf with the key of an anchor is refused",
    [svid(I1, { spki: A.key.spki }), INTERMEDIATE],
    [ROOT],
    "leaf_is_anchor",
  ],
  [
    "X5S-5.1-1 a leaf that a leaf signed is refused",
    [svid(by("leaf", "leaf"), { spki: B.key.spki }), LEAF, INTERMEDIATE],
    [ROOT],
    "signer_not_ca at 1",
  ],
  [
    "X5S-5.1-1 an expired leaf is refused",
    [svid(I1, past), INTERMEDIATE],
    [ROOT],
    "certificate_expired at 0",
  ],
  [
    "X5S-5.1-1 an expired intermediate is refused",
    [LEAF, authority(I1, A, past)],
    [ROOT],
    "certificate_expired at 1",
  ],
  [
    "X5S-5.1-1 an expired anchor is refused",
    [LEAF, INTERMEDIATE],
    [authority(A, A, past)],
    "certificate_expired at 2",
  ],
  [
    "X5S-5.1-1 a leaf that is not yet valid is refused",
    [svid(I1, future), INTERMEDIATE],
    [ROOT],
    "certificate_not_yet_valid at 0",
  ],
  [
    "X5S-5.1-1 an anchor that is not yet valid is refused",
    [LEAF, INTERMEDIATE],
    [authority(A, A, future)],
    "certificate_not_yet_valid at 2",
  ],
  [
    "X5S-5.1-1 an expired anchor is refused even if a valid one with the same key was sent",
    [LEAF, INTERMEDIATE, ROOT],
    [authority(A, A, past)],
    "certificate_expired at 2",
  ],
  [
    "X5S-4.1-1 an intermediate that is not a CA is refused",
    [LEAF, bareSigner(SIGNS_CERTIFICATES)],
    [ROOT],
    "signer_not_ca at 1",
  ],
  [
    "X5S-4.3-2 an intermediate that may not sign is refused",
    [LEAF, bareSigner(basicConstraints(true), DIGITAL_SIGNATURE)],
    [ROOT],
    "signer_may_not_sign at 1",
  ],
  [
    "X5S-5.1-1 a path longer than the anchor allows is refused",
    [LEAF, INTERMEDIATE],
    [
      build({
        subject: commonName("A"),
        issuer: commonName("A"),
        spki: A.key.spki,
        extensions: [basicConstraints(true, 0), SIGNS_CERTIFICATES],
      }),
    ],
    "path_length_exceeded at 2",
  ],
  [
    "X5S-4.2-1 a name outside the constraints of an intermediate is refused",
    [LEAF, authority(I1, A, { extensions: [nameConstraints([uri("other.example")])] })],
    [ROOT],
    "name_not_permitted at 0",
  ],
  [
    "X5S-4.2-1 a name within the constraints of an intermediate is accepted",
    [LEAF, authority(I1, A, { extensions: [nameConstraints([uri("td.example")])] })],
    [ROOT],
    "ok 3",
  ],
  [
    "X5S-5.1-1 an unknown critical extension in the leaf is refused",
    [svid(I1, { extensions: [UNKNOWN_CRITICAL] }), INTERMEDIATE],
    [ROOT],
    "critical_extension_unknown at 0",
  ],
  [
    "X5S-5.1-1 an unknown critical extension in an intermediate is refused",
    [LEAF, authority(I1, A, { extensions: [UNKNOWN_CRITICAL] })],
    [ROOT],
    "critical_extension_unknown at 1",
  ],
  [
    "X5S-5.1-1 an unknown critical extension in the anchor is refused",
    [LEAF, INTERMEDIATE],
    [authority(A, A, { extensions: [UNKNOWN_CRITICAL] })],
    "critical_extension_unknown at 2",
  ],
  [
    "X5S-5.1-1 a leaf signed with SHA-1 is refused",
    [svid(I1, { algorithm: ECDSA_SHA1 }), INTERMEDIATE],
    [ROOT],
    "certificate_signature_weak",
  ],
  [
    "X5S-5.1-1 an intermediate signed with SHA-1 is refused",
    [LEAF, authority(I1, A, { algorithm: ECDSA_SHA1 })],
    [ROOT],
    "certificate_signature_weak",
  ],
  [
    "X5S-5.1-1 an intermediate with a key on another curve is refused",
    [LEAF, authority({ ...I1, key: makeKey("secp256k1") }, A)],
    [ROOT],
    "certificate_key_refused",
  ],
  ["X5S-5.1-1 a malformed anchor is skipped", [LEAF, INTERMEDIATE], [hex("ff"), ROOT], "ok 3"],
  [
    "X5S-5.1-1 a leaf is refused if every anchor is malformed",
    [LEAF, INTERMEDIATE],
    [hex("ff")],
    "issuer_unknown",
  ],
  [
    "X5S-5.1-1 octets after the leaf are refused",
    [hex(`${LEAF.toHex()}00`), INTERMEDIATE],
    [ROOT],
    "certificate_not_der",
  ],
  [
    "X5S-5.1-1 an algorithm that is not for the key is refused",
    [svid(I1, { algorithm: seq(oid("1.3.101.112")) }), INTERMEDIATE],
    [ROOT],
    "issuer_signature_wrong",
  ],
  [
    "X5S-5.1-1 another hash than the signed one is refused",
    [svid(I1, { algorithm: seq(oid("1.2.840.10045.4.3.3")) }), INTERMEDIATE],
    [ROOT],
    "issuer_signature_wrong",
  ],
];

for (const [name, presented, anchors, want] of cases) {
  test(name, () => assert.equal(verdict(presented, anchors), want));
}

test("X5S-5.1-1 every authority of the same name is tried", () => {
  const [first, second] = [by("A", "first"), by("A", "second")];
  const anchors = [ROOT, authority(first, first), authority(second, second)];
  for (const anchor of [A, first, second]) assert.equal(verdict([svid(anchor)], anchors), "ok 2");
});

test("X5S-5.1-1 of two intermediates with the same name and key the valid one is found", () => {
  const old = authority(I1, A, past);
  assert.equal(verdict([LEAF, old, INTERMEDIATE], [ROOT]), "ok 3");
  assert.equal(verdict([LEAF, INTERMEDIATE, old], [ROOT]), "ok 3");
  assert.equal(verdict([LEAF, old], [ROOT]), "certificate_expired at 1");
});

test("X5S-5.1-1 the failure of the most likely path is reported", () => {
  const unmarked = (more: Content) =>
    build({
      subject: commonName("I1"),
      issuer: commonName("A"),
      spki: I1.key.spki,
      signer: A.key.privateKey,
      extensions: [basicConstraints(true), SIGNS_CERTIFICATES],
      ...more,
    });
  assert.equal(verdict([LEAF, unmarked(future), authority(I1, A, past)], [ROOT]), "certificate_expired at 1");
  assert.equal(
    verdict([LEAF, unmarked(past), authority(I1, A, future)], [ROOT]),
    "certificate_not_yet_valid at 1",
  );
});

test("X5S-5.1-1 a path that avoids an expired anchor is found", () => {
  const crossSigned = authority(A, B);
  const anchors = [authority(A, A, past), authority(B, B)];
  assert.equal(verdict([LEAF, INTERMEDIATE, crossSigned], anchors), "ok 4");
});

test("X5S-5.1-1 with authorities that signed each other the search ends", () => {
  const circle = [authority(I1, I2), authority(I2, I1), authority(I1, B), authority(B, I2), authority(B, B)];
  assert.equal(verdict([LEAF, ...circle], [ROOT]), "issuer_unknown");
  assert.equal(verdict([LEAF, ...circle, INTERMEDIATE], [ROOT]), "ok 3");
  const same = Array.from({ length: 9 }, (_, index) =>
    authority(by("X", `x${index}`), by("X", `x${(index + 1) % 9}`)),
  );
  assert.equal(verdict([svid(by("X", "x0")), ...same], [ROOT]), "signature_checks_exceeded");
});

test("X5S-5.1-1 a path at our limit is accepted, and a longer one is refused", () => {
  const chain = (length: number) => {
    const signers = Array.from({ length: length - 1 }, (_, index) => by(`S${index}`));
    const top = signers.at(-1) ?? A;
    const sent = signers.slice(0, -1).map((signer, index) => authority(signer, signers[index + 1] ?? top));
    return verdict([svid(signers[0] ?? top), ...sent], [authority(top, top)]);
  };
  assert.equal(chain(CERTIFICATE_PATH_MAX), `ok ${CERTIFICATE_PATH_MAX}`);
  assert.equal(chain(CERTIFICATE_PATH_MAX + 1), "path_too_long");
  const long = Array.from({ length: 8 }, (_, index) => authority(by(`S${index}`), by(`S${index + 1}`)));
  assert.equal(verdict([svid(by("S0")), ...long], [ROOT]), "path_too_long");
  assert.equal(verdict([svid(by("S0")), ...long.slice(0, 2)], [ROOT]), "issuer_unknown");
});

test("X5S-5.1-1 the largest number of sent certificates is accepted, and one more is refused", () => {
  const sent = (count: number) => [LEAF, INTERMEDIATE, ...Array(count - 2).fill(authority(B, B))];
  assert.equal(verdict(sent(CERTIFICATES_SENT_MAX), [ROOT]), "ok 3");
  assert.equal(verdict(sent(CERTIFICATES_SENT_MAX + 1), [ROOT]), "certificates_too_many");
});

test("X5S-5.1-1 a limited number of signatures is checked, the likely ones first", () => {
  const others = Array.from({ length: SIGNATURE_CHECKS_MAX + 1 }, (_, index) => {
    const other = by("A", `other ${index}`);
    return authority(other, other);
  });
  const unmarked = build({
    issuer: commonName("A"),
    signer: A.key.privateKey,
    extensions: [DIGITAL_SIGNATURE, altNames([uri(ID)])],
  });
  assert.equal(verdict([svid(A)], [...others, ROOT]), "ok 2");
  assert.equal(verdict([svid(A)], [ROOT, ...others]), "ok 2");
  assert.equal(verdict([unmarked], [ROOT, ...others.slice(0, SIGNATURE_CHECKS_MAX - 1)]), "ok 2");
  assert.equal(verdict([unmarked], others), "signature_checks_exceeded");
});

// --- paths that were accepted before --------------------------------------------------------------------------

test("X5S-5.1-1 an accepted path is refused once it has expired", () => {
  const presented = [svid(I1, { notAfter: NOW + 60 }), INTERMEDIATE];
  assert.equal(verdict(presented, [ROOT], NOW + 60), "ok 3");
  assert.equal(verdict(presented, [ROOT], NOW + 61), "certificate_expired at 0");
  assert.equal(verdict(presented, [ROOT], NOW), "ok 3");
});

test("X5S-6.2-3 an accepted path is refused once the anchor has left the bundle", () => {
  assert.equal(verdict([LEAF, INTERMEDIATE], [ROOT]), "ok 3");
  assert.equal(verdict([LEAF, INTERMEDIATE], [authority(B, B)]), "issuer_unknown");
  assert.equal(verdict([LEAF, INTERMEDIATE], [authority(copied, copied)]), "issuer_signature_wrong");
  assert.equal(verdict([LEAF, INTERMEDIATE, ROOT], []), "issuer_unknown");
});

test("X5S-5.1-1 a cached certificate is compared by its bytes, not by its buffer", () => {
  const [leaf, intermediate] = [svid(I1), Uint8Array.from(INTERMEDIATE)];
  assert.equal(verdict([leaf, intermediate], [ROOT]), "ok 3");
  const original = Uint8Array.from(leaf);
  leaf.set([leaf.at(-1) === 0 ? 1 : 0], leaf.length - 1);
  assert.equal(verdict([leaf, intermediate], [ROOT]), "issuer_signature_wrong");
  assert.equal(verdict([original, intermediate], [ROOT]), "ok 3");
});

// --- certificates made by OpenSSL and the development PKI ---------------------------------------------------------

const fixture = (stem: string): Bytes =>
  derOf(readFileSync(join(import.meta.dirname, `../../fixtures/x509/${stem}.pem`), "utf8"));
const ROOTS = ["rsa-2048", "rsa-4096", "ec-P-256", "ec-P-384", "ec-P-521"].map(fixture);
const SOON = new X509Certificate(fixture("client")).validFromDate.getTime() / 1000 + 3600;

const openssl: readonly (readonly [string, readonly string[], string])[] = [
  ...["rsa-sha256", "rsa-sha384", "rsa-sha512", "pss-sha256", "pss-sha384", "pss-sha512"].map(
    (algorithm) => [`accepts ${algorithm}`, [`leaf-${algorithm}`], "ok 2"] as const,
  ),
  ...["ecdsa-sha256", "ecdsa-sha384", "ecdsa-sha512"].map(
    (algorithm) => [`accepts ${algorithm}`, [`leaf-${algorithm}`], "ok 2"] as const,
  ),
  ["a leaf with an Ed25519 key is accepted", ["key-ed25519"], "ok 2"],
  ["a client certificate is accepted", ["client"], "ok 2"],
  ["Ed25519 without its root is refused", ["leaf-ed25519"], "issuer_unknown"],
  ["MD5 is refused", ["leaf-md5"], "certificate_signature_weak"],
  ["SHA-1 is refused", ["leaf-sha1"], "certificate_signature_weak"],
  ["SHA-1 with ECDSA is refused", ["leaf-ecdsa-sha1"], "certificate_signature_weak"],
  ["SHA-1 with PSS is refused", ["leaf-pss-sha1"], "certificate_signature_weak"],
  ["RSA of 1024 bits is refused", ["rsa-1024"], "certificate_key_refused"],
  ["P-224 is refused", ["ec-P-224"], "certificate_key_refused"],
  ["secp256k1 is refused", ["ec-secp256k1"], "certificate_key_refused"],
  ["names within their constraints are accepted", ["bounded-good", "bounded"], "ok 3"],
  ["a URI outside the constraints is refused", ["bounded-uri", "bounded"], "name_not_permitted at 0"],
  ["a DNS name outside the constraints is refused", ["bounded-dns", "bounded"], "name_not_permitted at 0"],
  ["an excluded DNS name is refused", ["bounded-excluded", "bounded"], "name_excluded at 0"],
  ["an address outside the constraints is refused", ["bounded-ip", "bounded"], "name_not_permitted at 0"],
  ["a mailbox outside the constraints is refused", ["bounded-email", "bounded"], "name_not_permitted at 0"],
];

for (const [what, stems, want] of openssl) {
  test(`X5S-5.1-1 OpenSSL: ${what}`, () => assert.equal(verdict(stems.map(fixture), ROOTS, SOON), want));
}

test("X5S-5.1-1 OpenSSL: accepts Ed25519 below its root", () => {
  assert.equal(verdict([fixture("leaf-ed25519")], [fixture("ed25519")], SOON), "ok 2");
});

let domain: TrustDomain;
let below: Authority;
let presented: Buffer[];
let nowSeconds: number;
before(async () => {
  domain = await makeTrustDomain("td.example");
  below = await makeIntermediate(domain.x509, "below");
  const { certPem } = await mintX509Svid(domain, ID, { issuer: below });
  presented = [derOf(certPem), derOf(below.certPem)];
  nowSeconds = Math.floor(Date.now() / 1000);
});

test("X5S-5.1-1, SPCA-3.2-3 an SVID of the development PKI is accepted only with its own bundle", async () => {
  const other = await makeTrustDomain("td.example");
  assert.equal(verdict(presented, [derOf(domain.x509.certPem)], nowSeconds), "ok 3");
  assert.equal(verdict(presented, [derOf(other.x509.certPem)], nowSeconds), "issuer_signature_wrong");
  assert.equal(
    verdict(presented, [derOf(domain.x509.certPem)], nowSeconds + 7200),
    "certificate_expired at 0",
  );
  const path = verifyPresented(presented, [derOf(domain.x509.certPem)], nowSeconds);
  assert(path.ok && path.value[0]);
  const svidOf = parseX509Svid(path.value[0]);
  assert.equal(svidOf.ok && svidOf.value.id, ID);
});

test("X5S-5.1-1 never accepts a certificate whose signed part was changed, and never throws", () => {
  const random = prng(6);
  const anchors = [derOf(domain.x509.certPem)];
  const signed = presented.map((bytes) => signedPart(bytes).toHex());
  const seen = new Map<string, number>();
  for (let round = 0; round < 3000; round++) {
    const index = random.below(2);
    let bytes = Array.from(presented[index] ?? []);
    for (let changes = 1 + random.below(2); changes > 0; changes--) {
      const at = random.below(bytes.length);
      if (random.below(8) > 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
      else bytes = bytes.toSpliced(at, random.below(2), ...bytes.slice(0, random.below(3)));
    }
    const changed = Uint8Array.from(bytes);
    const sent = presented.map((original, position) => (position === index ? changed : original));
    const got = verdict(sent, anchors, nowSeconds);
    seen.set(got, (seen.get(got) ?? 0) + 1);
    if (got.startsWith("ok")) assert.equal(signedPart(changed).toHex(), signed[index]);
  }
  for (const kind of ["issuer_signature_wrong", "certificate_not_der"])
    assert.ok((seen.get(kind) ?? 0) > 50, kind);
});

function signedPart(bytes: Uint8Array): Uint8Array {
  const read = readDer(bytes);
  assert(read.ok && read.value.children[0]);
  return read.value.children[0].bytes;
}

test("X5S-5.1-1 random octets as a certificate are refused without throwing", () => {
  const random = prng(7);
  for (const size of [0, 1, 100, 16_384, 16_385, 1_000_000]) {
    const noise = Uint8Array.from({ length: size }, () => random.below(256));
    assert.ok(!verdict([noise], [ROOT]).startsWith("ok"));
    assert.ok(!verdict([LEAF, noise], [ROOT]).startsWith("ok"));
    assert.ok(!verdict([LEAF, INTERMEDIATE], [noise]).startsWith("ok"));
  }
});

test("X5S-5.1-1 any octets as a signature are refused without throwing", () => {
  const ed = generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" });
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({
    format: "der",
    type: "spki",
  });
  const kinds: [Bytes, Bytes][] = [
    [ed, seq(oid("1.3.101.112"))],
    [rsa, seq(oid("1.2.840.113549.1.1.11"), hex("0500"))],
    [A.key.spki, seq(oid("1.2.840.10045.4.3.2"))],
  ];
  for (const [spki, algorithm] of kinds) {
    const anchor = build({
      subject: commonName("K"),
      issuer: commonName("K"),
      spki,
      extensions: [basicConstraints(true), SIGNS_CERTIFICATES],
    });
    for (const size of [0, 1, 63, 64, 65, 72, 255, 256, 257]) {
      const whole = readDer(build({ issuer: commonName("K"), algorithm }));
      assert(whole.ok);
      const [tbs, outer] = whole.value.children;
      assert(tbs && outer);
      const forged = seq(tbs.bytes, outer.bytes, bits(new Uint8Array(size).fill(1)));
      assert.equal(verdict([forged], [anchor]), "issuer_signature_wrong");
    }
  }
});

test("the thumbprint of a certificate is SHA-256 of the DER in base64url without padding", () => {
  const vector =
    "MIIBqDCCAU+gAwIBAgIUcrT5BY92iI+wRxPFPX674227kPgwCgYIKoZIzj0EAwIwKjEQMA4GA1UECgwHRXhhbXBsZTEWMBQGA1UEAwwNYmlsbGluZy1hZ2VudDAeFw0yNjExMjEwMTEzMDdaFw0zNjExMTgwMTEzMDdaMCoxEDAOBgNVBAoMB0V4YW1wbGUxFjAUBgNVBAMMDWJpbGxpbmctYWdlbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR2LlHKlnhFlsWEprUdrnu3IXHmd0LnR9hDxtmgJynL5B4EiAWTdbCp4FIQg8u0C3RJkJrOYIonR0adAE5/FluUo1MwUTAdBgNVHQ4EFgQUavVo8Zhffr88TsJJfftoWywp/3AwHwYDVR0jBBgwFoAUavVo8Zhffr88TsJJfftoWywp/3AwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBCrEjmVV/vtrkwxCsog91+4E+Jo+Z19/osfzrAkhxOQgIgSOhB2IbZ20V/vcgU8avh4lpDYLa8/7LZE/cLKztawt8=";
  const got = hash.sha256(Uint8Array.fromBase64(vector));
  assert.equal(got, "E2S90vJ6A-lhOAJGEgTBHjFVYQNtluveoW0t2ItXGyE");
  assert.match(got, /^[A-Za-z0-9_-]{43}$/);
});
