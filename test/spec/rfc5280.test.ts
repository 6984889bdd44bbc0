import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { derOf } from "../../scripts/dev-keys.ts";
import { makeTrustDomain, mintX509Svid } from "../../scripts/dev-pki.ts";
import { CERTIFICATE_BYTES_MAX, CERTIFICATE_PATH_MAX } from "../../src/limits/input.ts";
import { type Certificate, parseCertificate } from "../../src/spec/rfc5280.ts";
import { checkPath } from "../../src/spec/rfc5280-path.ts";
import {
  altNames,
  attribute,
  type Bytes,
  basicConstraints,
  bits,
  build,
  CLIENT_AUTH,
  type Content,
  commonName,
  DIGITAL_SIGNATURE,
  directoryName,
  dns,
  ECDSA_SHA1,
  ECDSA_SHA256,
  EMPTY_NAME,
  email,
  extendedKeyUsage,
  extension,
  generalizedTime,
  hex,
  int,
  ip,
  keyUsage,
  makeKey,
  NOW,
  NULL,
  name,
  nameConstraints,
  octets,
  oid,
  SERVER_AUTH,
  SIGNS_CERTIFICATES,
  seq,
  TRUE,
  tlv,
  UNKNOWN_CRITICAL,
  uri,
  utcTime,
} from "../fixtures/x509/build.ts";
import { prng } from "../support/prng.ts";
import { rounds } from "../support/rounds.ts";

const FIXTURES = join(import.meta.dirname, "../fixtures/x509");
const fixture = (file: string): Bytes => derOf(readFileSync(join(FIXTURES, `${file}.pem`), "utf8"));

const judge = (bytes: Bytes): string => {
  const got = parseCertificate(bytes);
  return got.ok ? "ok" : got.error.kind;
};

function certificate(content: Content = {}): Certificate {
  const got = parseCertificate(build(content));
  assert(got.ok, JSON.stringify(got));
  return got.value;
}

// --- a certificate ------------------------------------------------------------------------------------------

const spki = (algorithm: Bytes, key: Bytes) => seq(algorithm, bits(key));
const rsa = (modulus: string, exponent: string, parameters: Bytes[] = [NULL]) =>
  spki(
    seq(oid("1.2.840.113549.1.1.1"), ...parameters),
    seq(tlv(0x02, hex(modulus)), tlv(0x02, hex(exponent))),
  );
/** The modulus of a real key; nothing here uses its factors. */
const MODULUS = readModulus();
function readModulus(): string {
  const got = parseCertificate(fixture("rsa-2048"));
  assert(got.ok && got.value.publicKey.kty === "RSA");
  return `00${Uint8Array.fromBase64(got.value.publicKey.n, { alphabet: "base64url" }).toHex()}`;
}
const P256 = makeKey().spki;
const offCurve = P256.with(-1, (P256.at(-1) ?? 0) ^ 1);
const ec = (curve: string, point: Bytes) => spki(seq(oid("1.2.840.10045.2.1"), oid(curve)), point);
const PRIME256 = "1.2.840.10045.3.1.7";
const ed25519 = (length: number, parameters: Bytes[] = []) =>
  spki(seq(oid("1.3.101.112"), ...parameters), new Uint8Array(length).fill(7));
const pssWith = (parameters: string) => seq(oid("1.2.840.113549.1.1.10"), hex(parameters));
const sha256 = "300d06096086480165030402010500";
const sha512 = "300d06096086480165030402030500";
const mgf = (hash: string) => `301a06092a864886f70d010108${hash}`;
const validity = (from: Bytes, to: Bytes, ...more: Bytes[]) => seq(from, to, ...more);

const contents: readonly (readonly [string, Content, string])[] = [
  ["version 3 is accepted", {}, "ok"],
  ["version 2 is refused", { version: tlv(0xa0, int(1)) }, "certificate_version_refused"],
  ["version 4 is refused", { version: tlv(0xa0, int(3)) }, "certificate_version_refused"],
  [
    "version 1, which is encoded by omission, is refused",
    { version: hex("") },
    "certificate_version_refused",
  ],
  ["a second version is refused", { version: tlv(0xa0, int(2), int(2)) }, "certificate_version_refused"],
  ["the serial number zero is accepted", { serial: int(0) }, "ok"],
  ["a serial number of 20 octets is accepted", { serial: tlv(0x02, hex("7f".repeat(20))) }, "ok"],
  ["160 bits of serial number are accepted", { serial: tlv(0x02, hex(`00${"ff".repeat(20)}`)) }, "ok"],
  [
    "a serial number of 161 bits is refused",
    { serial: tlv(0x02, hex(`01${"ff".repeat(20)}`)) },
    "certificate_malformed",
  ],
  ["a negative serial number is refused", { serial: hex("0201ff") }, "certificate_malformed"],
  ["a serial number that is a string is refused", { serial: hex("0c0131") }, "certificate_malformed"],
  [
    "inner and outer algorithms that differ are refused",
    { outerAlgorithm: ECDSA_SHA1 },
    "certificate_algorithms_differ",
  ],
  ["SHA-1 with ECDSA is refused", { algorithm: ECDSA_SHA1 }, "certificate_signature_weak"],
  [
    "SHA-1 with RSA is refused",
    { algorithm: seq(oid("1.2.840.113549.1.1.5"), NULL) },
    "certificate_signature_weak",
  ],
  [
    "MD5 with RSA is refused",
    { algorithm: seq(oid("1.2.840.113549.1.1.4"), NULL) },
    "certificate_signature_weak",
  ],
  ["DSA with SHA-1 is refused", { algorithm: seq(oid("1.2.840.10040.4.3")) }, "certificate_signature_weak"],
  [
    "PSS with its default hash, SHA-1, is refused",
    { algorithm: pssWith("3000") },
    "certificate_signature_weak",
  ],
  ["SHA-224 is refused", { algorithm: seq(oid("1.2.840.10045.4.3.1")) }, "certificate_signature_unknown"],
  ["Ed448 is refused", { algorithm: seq(oid("1.3.101.113")) }, "certificate_signature_unknown"],
  ["an empty algorithm is refused", { algorithm: seq() }, "certificate_signature_unknown"],
  [
    "ECDSA with parameters is refused",
    { algorithm: seq(oid("1.2.840.10045.4.3.2"), NULL) },
    "certificate_signature_unknown",
  ],
  [
    "RSA without parameters is refused",
    { algorithm: seq(oid("1.2.840.113549.1.1.11")) },
    "certificate_signature_unknown",
  ],
  ["Ed25519 is accepted", { algorithm: seq(oid("1.3.101.112")) }, "ok"],
  ["RSA with SHA-512 is accepted", { algorithm: seq(oid("1.2.840.113549.1.1.13"), NULL) }, "ok"],
  [
    "PSS with SHA-256 is accepted",
    { algorithm: pssWith(`3034a00f${sha256}a11c${mgf(sha256)}a203020120`) },
    "ok",
  ],
  [
    "PSS with SHA-512 is accepted",
    { algorithm: pssWith(`3034a00f${sha512}a11c${mgf(sha512)}a203020140`) },
    "ok",
  ],
  [
    "PSS with two hashes is refused",
    { algorithm: pssWith(`3034a00f${sha256}a11c${mgf(sha512)}a203020120`) },
    "certificate_signature_unknown",
  ],
  [
    "PSS with another salt length is refused",
    { algorithm: pssWith(`3034a00f${sha256}a11c${mgf(sha256)}a203020114`) },
    "certificate_signature_unknown",
  ],
  [
    "PSS with a trailer field is refused",
    { algorithm: pssWith(`3039a00f${sha256}a11c${mgf(sha256)}a203020120a303020101`) },
    "certificate_signature_unknown",
  ],
  ["an empty issuer name is refused", { issuer: EMPTY_NAME }, "certificate_malformed"],
  ["an empty subject name is accepted", { subject: EMPTY_NAME }, "ok"],
  ["a subject that is not a name is refused", { subject: NULL }, "certificate_malformed"],
  ["a name with an empty part is refused", { subject: seq(tlv(0x31)) }, "certificate_malformed"],
  [
    "an attribute without a value is refused",
    { subject: name([seq(oid("2.5.4.3"))]) },
    "certificate_malformed",
  ],
  [
    "an attribute without a type is refused",
    { subject: name([seq(int(1), int(1))]) },
    "certificate_malformed",
  ],
  ["GeneralizedTime is accepted", { validity: validity(utcTime(NOW), generalizedTime(NOW + 9e9)) }, "ok"],
  ["a validity with one time is refused", { validity: seq(utcTime(NOW)) }, "certificate_malformed"],
  [
    "a validity with three times is refused",
    { validity: validity(utcTime(NOW), utcTime(NOW), utcTime(NOW)) },
    "certificate_malformed",
  ],
  [
    "a date that is a number is refused",
    { validity: validity(int(1), utcTime(NOW)) },
    "certificate_malformed",
  ],
  [
    "a time without seconds is refused",
    { validity: validity(tlv(0x17, hex("323630313031303030305a")), utcTime(NOW)) },
    "certificate_not_der",
  ],
  ["unique identifiers are refused", { more: [hex("81020001")] }, "certificate_malformed"],
  ["RSA of 2048 bits is accepted", { spki: rsa(MODULUS, "010001") }, "ok"],
  ["an exponent of 32 bits is accepted", { spki: rsa(MODULUS, "00ffffffff") }, "ok"],
  ["the exponent 3 is refused", { spki: rsa(MODULUS, "03") }, "certificate_key_refused"],
  ["an even exponent is refused", { spki: rsa(MODULUS, "010002") }, "certificate_key_refused"],
  ["an exponent of 33 bits is refused", { spki: rsa(MODULUS, "0100000001") }, "certificate_key_refused"],
  ["an exponent of 32 bits with its sign octet is accepted", { spki: rsa(MODULUS, "00ff000001") }, "ok"],
  ["a negative exponent is refused", { spki: rsa(MODULUS, "ff000001") }, "certificate_key_refused"],
  [
    "a negative modulus is refused",
    { spki: rsa(`80${MODULUS.slice(4)}`, "010001") },
    "certificate_key_refused",
  ],
  [
    "an even modulus is refused",
    { spki: rsa(`${MODULUS.slice(0, -2)}fe`, "010001") },
    "certificate_key_refused",
  ],
  [
    "RSA of 2047 bits is refused",
    { spki: rsa(`7f${MODULUS.slice(4)}`, "010001") },
    "certificate_key_refused",
  ],
  [
    "RSA of 8192 bits is refused",
    { spki: rsa(`00${MODULUS.slice(2).repeat(4)}`, "010001") },
    "certificate_key_refused",
  ],
  ["RSA without its NULL is refused", { spki: rsa(MODULUS, "010001", []) }, "certificate_key_refused"],
  [
    "an RSA key restricted to PSS is refused",
    { spki: spki(seq(oid("1.2.840.113549.1.1.10")), seq(tlv(0x02, hex(MODULUS)), int(3))) },
    "certificate_key_refused",
  ],
  [
    "octets after an RSA key are refused",
    {
      spki: spki(
        seq(oid("1.2.840.113549.1.1.1"), NULL),
        hex(`${seq(tlv(0x02, hex(MODULUS)), tlv(0x02, hex("010001"))).toHex()}0500`),
      ),
    },
    "certificate_key_refused",
  ],
  ["P-384 is accepted", { spki: makeKey("P-384").spki }, "ok"],
  ["P-521 is accepted", { spki: makeKey("P-521").spki }, "ok"],
  ["P-224 is refused", { spki: makeKey("P-224").spki }, "certificate_key_refused"],
  ["secp256k1 is refused", { spki: makeKey("secp256k1").spki }, "certificate_key_refused"],
  ["a point that is not on its curve is refused", { spki: offCurve }, "certificate_key_refused"],
  [
    "a compressed point is refused",
    { spki: ec(PRIME256, hex(`02${"11".repeat(32)}`)) },
    "certificate_key_refused",
  ],
  ["the point at infinity is refused", { spki: ec(PRIME256, hex("00")) }, "certificate_key_refused"],
  [
    "a truncated point is refused",
    { spki: ec(PRIME256, hex(`04${"11".repeat(33)}`)) },
    "certificate_key_refused",
  ],
  ["a key without octets is refused", { spki: ec(PRIME256, hex("")) }, "certificate_key_refused"],
  [
    "explicit curve parameters are refused",
    { spki: spki(seq(oid("1.2.840.10045.2.1"), seq(int(1))), hex("04")) },
    "certificate_key_refused",
  ],
  ["an Ed25519 key is accepted", { spki: ed25519(32) }, "ok"],
  ["an Ed25519 key of 31 octets is refused", { spki: ed25519(31) }, "certificate_key_refused"],
  ["an Ed25519 key with parameters is refused", { spki: ed25519(32, [NULL]) }, "certificate_key_refused"],
  ["DSA is refused", { spki: spki(seq(oid("1.2.840.10040.4.1")), int(3)) }, "certificate_key_refused"],
  [
    "a key with unused bits is refused",
    { spki: seq(seq(oid("1.3.101.112")), bits(hex(`${"07".repeat(31)}08`), 3)) },
    "certificate_key_refused",
  ],
  ["a number as key is refused", { spki: int(1) }, "certificate_key_refused"],
  [
    "a key with a third element is refused",
    { spki: seq(seq(oid("1.3.101.112")), bits(new Uint8Array(32).fill(7)), NULL) },
    "certificate_key_refused",
  ],
  [
    "parameters after the curve are refused",
    { spki: spki(seq(oid("1.2.840.10045.2.1"), oid(PRIME256), NULL), P256.subarray(-65)) },
    "certificate_key_refused",
  ],
  [
    "the same curve and point without parameters are accepted",
    { spki: ec(PRIME256, P256.subarray(-65)) },
    "ok",
  ],
];

for (const [what, content, want] of contents) {
  test(`X5S-5.1-1 ${what}`, () => assert.equal(judge(build(content)), want));
}

const frames: readonly (readonly [string, Bytes, string])[] = [
  ["an empty string is refused", hex(""), "certificate_not_der"],
  ["an empty sequence is refused", seq(), "certificate_malformed"],
  ["octets after the certificate are refused", hex(`${build().toHex()}00`), "certificate_not_der"],
  ["a fourth element is refused", seq(seq(), seq(), bits(hex("00")), NULL), "certificate_malformed"],
  ["PEM is refused", new TextEncoder().encode("-----BEGIN CERTIFICATE-----"), "certificate_not_der"],
  [
    "a signature with unused bits is refused",
    seq(seq(), ECDSA_SHA256, bits(hex("80"), 7)),
    "certificate_malformed",
  ],
  ["a certificate of the largest size is accepted", sized(CERTIFICATE_BYTES_MAX), "ok"],
  ["a certificate one octet larger is refused", sized(CERTIFICATE_BYTES_MAX + 1), "certificate_too_large"],
];
function sized(length: number): Bytes {
  const padded = (size: number) => build({ extensions: [extension("1.2.3", octets(new Uint8Array(size)))] });
  return padded(length - (padded(length).length - length));
}

for (const [what, bytes, want] of frames) {
  test(`X5S-5.1-1 ${what}`, () => assert.equal(judge(bytes), want));
}

const SAN = "2.5.29.17";
const extensions: readonly (readonly [string, Bytes[], string])[] = [
  ["an empty list is accepted", [], "ok"],
  ["an unknown one is accepted", [extension("1.2.3", NULL)], "ok"],
  ["an unknown one that is not DER is accepted", [extension("1.2.3", hex("ff"))], "ok"],
  ["an unknown critical one, which checkPath refuses, is accepted", [UNKNOWN_CRITICAL], "ok"],
  ["a repeated one is refused", [DIGITAL_SIGNATURE, DIGITAL_SIGNATURE], "certificate_extension_repeated"],
  [
    "a repeated unknown one is refused, even if only one of the two is critical",
    [extension("1.2.3", NULL), extension("1.2.3", NULL, true)],
    "certificate_extension_repeated",
  ],
  ["an explicit FALSE is refused", [seq(oid("1.2.3"), hex("010100"), octets(NULL))], "certificate_malformed"],
  ["a value that is not an OCTET STRING is refused", [seq(oid("1.2.3"), NULL)], "certificate_malformed"],
  [
    "a second critical flag is refused",
    [seq(oid("1.2.3"), TRUE, TRUE, octets(NULL))],
    "certificate_malformed",
  ],
  ["one without an identifier is refused", [seq(TRUE, octets(NULL))], "certificate_malformed"],
  ["one without a value is refused", [seq(oid("1.2.3"))], "certificate_malformed"],
  ["an element that is not an extension is refused", [NULL], "certificate_malformed"],
  [
    "a known one that is not DER is refused",
    [extension("2.5.29.14", hex("0401"))],
    "certificate_extension_malformed",
  ],
  ["basic constraints of a leaf are accepted", [basicConstraints(false)], "ok"],
  ["basic constraints of a CA are accepted", [basicConstraints(true, 0)], "ok"],
  [
    "basic constraints with an explicit FALSE are refused",
    [extension("2.5.29.19", seq(hex("010100")))],
    "certificate_extension_malformed",
  ],
  [
    "a path length without the CA flag is refused",
    [basicConstraints(false, 1)],
    "certificate_extension_malformed",
  ],
  [
    "a negative path length is refused",
    [extension("2.5.29.19", seq(TRUE, hex("0201ff")))],
    "certificate_extension_malformed",
  ],
  [
    "basic constraints with a third member are refused",
    [extension("2.5.29.19", seq(TRUE, int(1), int(1)))],
    "certificate_extension_malformed",
  ],
  [
    "basic constraints that are a boolean are refused",
    [extension("2.5.29.19", TRUE)],
    "certificate_extension_malformed",
  ],
  ["key usage of nine bits is accepted", [keyUsage("8080", 7)], "ok"],
  ["key usage of ten bits is refused", [keyUsage("8040", 6)], "certificate_extension_malformed"],
  ["empty key usage is refused", [keyUsage("", 0)], "certificate_extension_malformed"],
  ["key usage with no bit set is refused", [keyUsage("00", 0)], "certificate_extension_malformed"],
  ["key usage with trailing zero bits is refused", [keyUsage("80", 0)], "certificate_extension_malformed"],
  [
    "key usage that is a number is refused",
    [extension("2.5.29.15", int(1))],
    "certificate_extension_malformed",
  ],
  ["empty extended key usage is refused", [extendedKeyUsage()], "certificate_extension_malformed"],
  [
    "extended key usage that is a string is refused",
    [extension("2.5.29.37", seq(hex("0c0141")))],
    "certificate_extension_malformed",
  ],
  ["a subject key id is accepted", [extension("2.5.29.14", octets(hex("01")))], "ok"],
  [
    "a subject key id that is a number is refused",
    [extension("2.5.29.14", int(1))],
    "certificate_extension_malformed",
  ],
  ["an authority key id is accepted", [extension("2.5.29.35", seq(tlv(0x80, hex("01"))))], "ok"],
  ["an empty authority key id is accepted", [extension("2.5.29.35", seq())], "ok"],
  [
    "an authority key id that is a number is refused",
    [extension("2.5.29.35", int(1))],
    "certificate_extension_malformed",
  ],
  [
    "alternative names of every kind it reads are accepted",
    [altNames([uri("a:b"), dns("a"), email("a@b"), ip(1, 2, 3, 4)])],
    "ok",
  ],
  [
    "alternative names of kinds it does not read are accepted",
    [altNames([directoryName(commonName("a")), tlv(0x88, hex("2a")), tlv(0xa0, oid("1.2.3"))])],
    "ok",
  ],
  ["an empty list of alternative names is refused", [altNames([])], "certificate_extension_malformed"],
  [
    "an undefined kind of name is refused",
    [altNames([tlv(0x89, hex("00"))])],
    "certificate_extension_malformed",
  ],
  [
    "a URI in a constructed form is refused",
    [altNames([tlv(0xa6, hex("0500"))])],
    "certificate_extension_malformed",
  ],
  ["a NUL in a URI is refused", [altNames([tlv(0x86, hex("61003a"))])], "certificate_extension_malformed"],
  [
    "non-ASCII octets in a URI are refused",
    [altNames([tlv(0x86, hex("c3bc"))])],
    "certificate_extension_malformed",
  ],
  [
    "a line feed in a DNS name is refused",
    [altNames([tlv(0x82, hex("610a62"))])],
    "certificate_extension_malformed",
  ],
  [
    "an address of five octets is refused",
    [altNames([ip(1, 2, 3, 4, 5)])],
    "certificate_extension_malformed",
  ],
  [
    "alternative names in a SET are refused",
    [extension(SAN, tlv(0x31, uri("a:b")))],
    "certificate_extension_malformed",
  ],
  [
    "octets after the alternative names are refused",
    [extension(SAN, hex(`${seq(uri("a:b")).toHex()}00`))],
    "certificate_extension_malformed",
  ],
];

for (const [what, list, want] of extensions) {
  test(`X5S-5.1-1 extensions: ${what}`, () => assert.equal(judge(build({ extensions: list })), want));
}

const bases: readonly (readonly [string, Bytes, string])[] = [
  [
    "hosts, domains and the empty base are accepted",
    nameConstraints([uri("a"), uri(".a"), uri(""), dns("a.b"), dns("")]),
    "ok",
  ],
  [
    "mailboxes, mail hosts and mail domains are accepted",
    nameConstraints([email("a@b"), email("b"), email(".b")]),
    "ok",
  ],
  ["networks are accepted", nameConstraints([ip(10, 0, 0, 0, 255, 0, 0, 0), ip(...Array(32).fill(0))]), "ok"],
  ["excluded subtrees alone are accepted", nameConstraints([], [dns("a")]), "ok"],
  [
    "kinds that it does not compare, which checkPath refuses, are accepted",
    nameConstraints([directoryName(EMPTY_NAME)]),
    "ok",
  ],
  ["constraints without subtrees are refused", nameConstraints([]), "certificate_extension_malformed"],
  ["an empty list is refused", extension("2.5.29.30", seq(tlv(0xa0))), "certificate_extension_malformed"],
  [
    "lists in the wrong order are refused",
    extension("2.5.29.30", seq(tlv(0xa1, seq(dns("a"))), tlv(0xa0, seq(dns("a"))))),
    "certificate_extension_malformed",
  ],
  [
    "a list twice is refused",
    extension("2.5.29.30", seq(tlv(0xa0, seq(dns("a"))), tlv(0xa0, seq(dns("a"))))),
    "certificate_extension_malformed",
  ],
  [
    "a third list is refused",
    extension("2.5.29.30", seq(tlv(0xa2, seq(dns("a"))))),
    "certificate_extension_malformed",
  ],
  [
    "a minimum is refused",
    extension("2.5.29.30", seq(tlv(0xa0, seq(dns("a"), hex("800101"))))),
    "certificate_extension_malformed",
  ],
  [
    "an empty subtree is refused",
    extension("2.5.29.30", seq(tlv(0xa0, seq()))),
    "certificate_extension_malformed",
  ],
  [
    "a DNS name with a leading dot is refused",
    nameConstraints([dns(".a")]),
    "certificate_extension_malformed",
  ],
  ["a whole URI as base is refused", nameConstraints([uri("spiffe://a")]), "certificate_extension_malformed"],
  ["a mailbox without a host is refused", nameConstraints([email("a@")]), "certificate_extension_malformed"],
  ["a mailbox at no host is refused", nameConstraints([email("a@b c")]), "certificate_extension_malformed"],
  [
    "a mailbox without a local part is refused",
    nameConstraints([email("@b")]),
    "certificate_extension_malformed",
  ],
  [
    "a mailbox after other text is refused",
    nameConstraints([email("(a@b")]),
    "certificate_extension_malformed",
  ],
  [
    "a mailbox before other text is refused",
    nameConstraints([email("a@b@c")]),
    "certificate_extension_malformed",
  ],
  [
    "an address without mask is refused",
    nameConstraints([ip(10, 0, 0, 0)]),
    "certificate_extension_malformed",
  ],
  [
    "a mask that is not contiguous is refused",
    nameConstraints([ip(10, 0, 0, 0, 255, 0, 255, 0)]),
    "certificate_extension_malformed",
  ],
  ["a NUL is refused", nameConstraints([tlv(0x82, hex("6100"))]), "certificate_extension_malformed"],
  [
    "an undefined kind of name is refused",
    nameConstraints([tlv(0x89, hex("00"))]),
    "certificate_extension_malformed",
  ],
];

for (const [what, value, want] of bases) {
  test(`X5S-4.2-1 name constraints: ${what}`, () =>
    assert.equal(judge(build({ extensions: [value] })), want));
}

test("X5S-5.1-1 every field of a certificate is read", () => {
  const key = makeKey("P-384");
  const bytes = build({
    serial: tlv(0x02, hex("00c0ffee")),
    subject: name(
      [attribute("2.5.4.10", "Bö")],
      [attribute("2.5.4.3", "a", 0x13), attribute("2.5.4.11", "b", 0x14)],
    ),
    spki: key.spki,
    extensions: [
      basicConstraints(true, 3),
      keyUsage("8480", 7),
      extendedKeyUsage(SERVER_AUTH, CLIENT_AUTH),
      altNames(
        [uri("a:b"), dns("D"), email("e@f"), ip(1, 2, 3, 4), directoryName(EMPTY_NAME), uri("c:d")],
        true,
      ),
      extension("2.5.29.14", octets(hex("0a"))),
      extension("2.5.29.35", seq(tlv(0x80, hex("0b")), tlv(0x82, hex("01")))),
      UNKNOWN_CRITICAL,
      nameConstraints([uri("A")], [ip(10, 0, 0, 0, 255, 0, 0, 0)]),
    ],
  });
  const got = parseCertificate(bytes);
  assert(got.ok);
  const { subject, publicKey, ...read } = got.value;
  assert.deepEqual(
    subject.rdns.map((rdn) => rdn.map(({ type, text }) => [type, text])),
    [
      [["2.5.4.10", "Bö"]],
      [
        ["2.5.4.3", "a"],
        ["2.5.4.11", undefined],
      ],
    ],
  );
  assert.deepEqual([publicKey.kty, "crv" in publicKey && publicKey.crv], ["EC", "P-384"]);
  assert.deepEqual(read.der, bytes);
  assert.deepEqual(read.spki, key.spki);
  assert.equal(read.serial, "c0ffee");
  assert.deepEqual(read.signatureAlgorithm, { kty: "EC", hash: "sha256" });
  assert.deepEqual([read.notBeforeSeconds, read.notAfterSeconds], [NOW - 1800, NOW + 1800]);
  assert.deepEqual(read.basicConstraints, { ca: true, pathLength: 3 });
  assert.deepEqual(read.keyUsage, {
    critical: true,
    usages: new Set(["digitalSignature", "keyCertSign", "decipherOnly"]),
  });
  assert.deepEqual(read.extendedKeyUsage, [SERVER_AUTH, CLIENT_AUTH]);
  assert.deepEqual(read.subjectAltNames, {
    critical: true,
    uris: ["a:b", "c:d"],
    dnsNames: ["D"],
    emails: ["e@f"],
    ipAddresses: [Uint8Array.of(1, 2, 3, 4)],
    others: 1,
  });
  assert.deepEqual([read.subjectKeyId, read.authorityKeyId], [hex("0a"), hex("0b")]);
  assert.deepEqual(read.unhandledCritical, ["1.3.6.1.4.1.99999.1"]);
  assert.deepEqual(read.nameConstraints, {
    permitted: [{ type: "uri", host: "a" }],
    excluded: [{ type: "ip", bytes: Uint8Array.of(10, 0, 0, 0, 255, 0, 0, 0) }],
    unjudged: false,
  });
});

test("X5S-5.1-1 a copy of the input is kept, so that later changes to it have no effect", () => {
  const bytes = build();
  const got = parseCertificate(bytes);
  assert(got.ok);
  bytes.fill(0);
  assert.deepEqual(got.value.der.subarray(0, 1), hex("30"));
});

const REFUSED: ReadonlyMap<string, string> = new Map([
  ["ec-P-224", "certificate_key_refused"],
  ["ec-secp256k1", "certificate_key_refused"],
  ["rsa-1024", "certificate_key_refused"],
  ["leaf-md5", "certificate_signature_weak"],
  ["leaf-sha1", "certificate_signature_weak"],
  ["leaf-ecdsa-sha1", "certificate_signature_weak"],
  ["leaf-pss-sha1", "certificate_signature_weak"],
  ["leaf-sha224", "certificate_signature_unknown"],
  ["leaf-pss-mixed", "certificate_signature_unknown"],
  ["leaf-pss-odd-salt", "certificate_signature_unknown"],
]);

for (const file of readdirSync(FIXTURES).filter((entry) => entry.endsWith(".pem"))) {
  const stem = file.replace(".pem", "");
  const want = REFUSED.get(stem) ?? "ok";
  test(`X5S-5.1-1 OpenSSL's ${stem} is ${want === "ok" ? "read as Node reads it" : "refused"}`, () => {
    const bytes = fixture(stem);
    assert.equal(judge(bytes), want);
    const got = parseCertificate(bytes);
    if (!got.ok) return;
    const {
      serial,
      notBeforeSeconds,
      notAfterSeconds,
      basicConstraints: basic,
      extendedKeyUsage: extended,
    } = got.value;
    const node = new X509Certificate(bytes);
    assert.equal(BigInt(`0x${serial}`), BigInt(`0x${node.serialNumber}`));
    assert.equal(notBeforeSeconds * 1000, node.validFromDate.getTime());
    assert.equal(notAfterSeconds * 1000, node.validToDate.getTime());
    assert.equal(basic?.ca ?? false, node.ca);
    assert.deepEqual(extended, node.keyUsage);
  });
}

test("RFC8705-2.1.2-3 a URI inside a DNS name is read as part of the DNS name", () => {
  const spoof = "a, URI:spiffe://td.example/admin";
  const { subjectAltNames } = certificate({ extensions: [altNames([dns(spoof)])] });
  assert.deepEqual([subjectAltNames?.uris, subjectAltNames?.dnsNames], [[], [spoof]]);
});

// --- a path -------------------------------------------------------------------------------------------------

const LEAF: Content = { issuer: commonName("i1"), extensions: [basicConstraints(false), DIGITAL_SIGNATURE] };
const signer = (subject: string, issuer: string, more: Content = {}): Content => ({
  subject: commonName(subject),
  issuer: commonName(issuer),
  ...more,
  extensions: [basicConstraints(true), SIGNS_CERTIFICATES, ...(more.extensions ?? [])],
});
const I1 = signer("i1", "root");
const ROOT = signer("root", "root");

const bare = (subject: string, issuer: string, list: Bytes[]): Content => ({
  subject: commonName(subject),
  issuer: commonName(issuer),
  extensions: list,
});
const withPathLength = (subject: string, issuer: string, length: number): Content =>
  bare(subject, issuer, [basicConstraints(true, length), SIGNS_CERTIFICATES]);
const I2 = signer("i2", "i1");
const BELOW_I2: Content = { ...LEAF, issuer: commonName("i2") };
const SELF_ISSUED = signer("i1", "i1");
const past = { notBefore: NOW - 7200, notAfter: NOW - 3600 };
const future = { notBefore: NOW + 3600, notAfter: NOW + 7200 };

const paths: readonly (readonly [string, Content[], string])[] = [
  ["X5S-5.1-1 leaf, intermediate and anchor are accepted", [LEAF, I1, ROOT], "ok"],
  ["X5S-5.1-1 an anchor that is not self-signed is accepted", [LEAF, I1], "ok"],
  ["X5S-3.2-3 a leaf alone is refused", [LEAF], "path_without_anchor"],
  ["X5S-5.1-1 an empty path is refused", [], "path_without_anchor"],
  ["X5S-5.1-1 an expired leaf is refused", [{ ...LEAF, ...past }, I1, ROOT], "certificate_expired at 0"],
  [
    "X5S-5.1-1 an expired intermediate is refused",
    [LEAF, { ...I1, ...past }, ROOT],
    "certificate_expired at 1",
  ],
  ["X5S-5.1-1 an expired anchor is refused", [LEAF, I1, { ...ROOT, ...past }], "certificate_expired at 2"],
  [
    "X5S-5.1-1 a leaf that is not yet valid is refused",
    [{ ...LEAF, ...future }, I1, ROOT],
    "certificate_not_yet_valid at 0",
  ],
  [
    "X5S-5.1-1 an intermediate that is not yet valid is refused",
    [LEAF, { ...I1, ...future }, ROOT],
    "certificate_not_yet_valid at 1",
  ],
  [
    "X5S-5.1-1 an anchor that is not yet valid is refused",
    [LEAF, I1, { ...ROOT, ...future }],
    "certificate_not_yet_valid at 2",
  ],
  ["X5S-5.1-1 a leaf in its first second is accepted", [{ ...LEAF, notBefore: NOW }, I1, ROOT], "ok"],
  ["X5S-5.1-1 a leaf in its last second is accepted", [{ ...LEAF, notAfter: NOW }, I1, ROOT], "ok"],
  [
    "X5S-5.1-1 a leaf one second before is refused",
    [{ ...LEAF, notBefore: NOW + 1 }, I1, ROOT],
    "certificate_not_yet_valid at 0",
  ],
  [
    "X5S-5.1-1 a leaf one second after is refused",
    [{ ...LEAF, notAfter: NOW - 1 }, I1, ROOT],
    "certificate_expired at 0",
  ],
  ["X5S-5.1-1 an issuer with another name is refused", [LEAF, ROOT], "issuer_differs at 1"],
  ["X5S-5.1-1 an anchor with another name is refused", [LEAF, I1, I1], "issuer_differs at 2"],
  [
    "X5S-5.1-1 an issuer name that differs only in case is refused",
    [{ ...LEAF, issuer: commonName("I1") }, I1, ROOT],
    "issuer_differs at 1",
  ],
  [
    "X5S-5.1-1 an issuer name in another string type is refused",
    [{ ...LEAF, issuer: name([attribute("2.5.4.3", "i1", 0x13)]) }, I1, ROOT],
    "issuer_differs at 1",
  ],
  [
    "X5S-4.1-1 an intermediate that is not a CA is refused",
    [LEAF, bare("i1", "root", [basicConstraints(false), SIGNS_CERTIFICATES]), ROOT],
    "signer_not_ca at 1",
  ],
  [
    "X5S-4.1-1 an intermediate without basic constraints is refused",
    [LEAF, bare("i1", "root", [SIGNS_CERTIFICATES]), ROOT],
    "signer_not_ca at 1",
  ],
  [
    "X5S-4.1-1 an anchor that is not a CA is refused",
    [LEAF, I1, bare("root", "root", [SIGNS_CERTIFICATES])],
    "signer_not_ca at 2",
  ],
  [
    "X5S-4.3-2 an intermediate that may not sign certificates is refused",
    [LEAF, bare("i1", "root", [basicConstraints(true), DIGITAL_SIGNATURE]), ROOT],
    "signer_may_not_sign at 1",
  ],
  [
    "X5S-4.3-2 an intermediate without key usage is refused",
    [LEAF, bare("i1", "root", [basicConstraints(true)]), ROOT],
    "signer_may_not_sign at 1",
  ],
  [
    "X5S-4.3-2 an anchor that may sign only revocation lists is refused",
    [LEAF, I1, bare("root", "root", [basicConstraints(true), keyUsage("02", 1)])],
    "signer_may_not_sign at 2",
  ],
  [
    "X5S-5.1-1 path length 0 next to the leaf is accepted",
    [LEAF, withPathLength("i1", "root", 0), ROOT],
    "ok",
  ],
  [
    "X5S-5.1-1 path length 1 above one intermediate is accepted",
    [LEAF, I1, withPathLength("root", "root", 1)],
    "ok",
  ],
  [
    "X5S-5.1-1 path length 0 above one intermediate is refused",
    [LEAF, I1, withPathLength("root", "root", 0)],
    "path_length_exceeded at 2",
  ],
  [
    "X5S-5.1-1 path length 0 of an intermediate is refused",
    [BELOW_I2, I2, withPathLength("i1", "root", 0), ROOT],
    "path_length_exceeded at 2",
  ],
  [
    "X5S-5.1-1 a self-issued intermediate is not counted",
    [LEAF, SELF_ISSUED, withPathLength("i1", "root", 0)],
    "ok",
  ],
  [
    "X5S-5.1-1 every other intermediate is counted",
    [BELOW_I2, I2, SELF_ISSUED, withPathLength("i1", "root", 0)],
    "path_length_exceeded at 3",
  ],
  [
    "X5S-5.1-1 an unknown critical extension in the leaf is refused",
    [{ ...LEAF, extensions: [UNKNOWN_CRITICAL] }, I1, ROOT],
    "critical_extension_unknown at 0",
  ],
  [
    "X5S-5.1-1 an unknown critical extension in an intermediate is refused",
    [LEAF, signer("i1", "root", { extensions: [UNKNOWN_CRITICAL] }), ROOT],
    "critical_extension_unknown at 1",
  ],
  [
    "X5S-5.1-1 an unknown critical extension in the anchor is refused",
    [LEAF, I1, signer("root", "root", { extensions: [UNKNOWN_CRITICAL] })],
    "critical_extension_unknown at 2",
  ],
  [
    "X5S-5.1-1 critical certificate policies are refused",
    [{ ...LEAF, extensions: [extension("2.5.29.32", seq(seq(oid("2.5.29.32.0"))), true)] }, I1, ROOT],
    "critical_extension_unknown at 0",
  ],
  [
    "X5S-5.1-1 policies that are not critical are accepted",
    [{ ...LEAF, extensions: [extension("2.5.29.32", seq(seq(oid("2.5.29.32.0"))))] }, I1, ROOT],
    "ok",
  ],
  ["X5S-5.1-1 a path of the largest length is accepted", chain(CERTIFICATE_PATH_MAX), "ok"],
  ["X5S-5.1-1 a path one certificate longer is refused", chain(CERTIFICATE_PATH_MAX + 1), "path_too_long"],
];

function chain(length: number): Content[] {
  const signers = Array.from({ length: length - 1 }, (_, index) => signer(`i${index + 1}`, `i${index + 2}`));
  return [LEAF, ...signers];
}

const verdict = (path: readonly Certificate[], nowSeconds = NOW): string => {
  const got = checkPath(path, { nowSeconds });
  if (got.ok) return "ok";
  return "at" in got.error ? `${got.error.kind} at ${got.error.at}` : got.error.kind;
};

for (const [what, path, want] of paths) {
  test(what, () => assert.equal(verdict(path.map(certificate)), want));
}

test("X5S-5.1-1 a path is refused if the current time is not a number", () => {
  assert.notEqual(verdict([LEAF, I1, ROOT].map(certificate), Number.NaN), "ok");
});

// --- name constraints ---------------------------------------------------------------------------------------

const EMAIL_ATTRIBUTE = "1.2.840.113549.1.9.1";
const denied = "name_not_permitted at 0";
const excluded = "name_excluded at 0";
const constrained: readonly (readonly [string, Bytes, Content, string])[] = [
  ["a URI on the host", nameConstraints([uri("td.example")]), names(uri("spiffe://td.example/a")), "ok"],
  [
    "a URI on another host",
    nameConstraints([uri("td.example")]),
    names(uri("spiffe://other.example/a")),
    denied,
  ],
  [
    "a URI on a subdomain",
    nameConstraints([uri("td.example")]),
    names(uri("spiffe://a.td.example/a")),
    denied,
  ],
  ["a URI in the domain", nameConstraints([uri(".td.example")]), names(uri("spiffe://a.td.example/a")), "ok"],
  [
    "a URI on the domain itself",
    nameConstraints([uri(".td.example")]),
    names(uri("spiffe://td.example/a")),
    denied,
  ],
  [
    "a URI whose host only ends in the same letters",
    nameConstraints([uri(".td.example")]),
    names(uri("spiffe://atd.example/a")),
    denied,
  ],
  ["a URI in capitals", nameConstraints([uri("TD.example")]), names(uri("https://td.EXAMPLE")), "ok"],
  [
    "a URI with user and port",
    nameConstraints([uri("td.example")]),
    names(uri("https://u:p@td.example:443?x")),
    "ok",
  ],
  [
    "a URI with the host as user name",
    nameConstraints([uri("td.example")]),
    names(uri("https://td.example@evil.example")),
    denied,
  ],
  [
    "a URI with two at signs",
    nameConstraints([uri("td.example")]),
    names(uri("https://a@b@td.example/")),
    denied,
  ],
  ["a URI without a host", nameConstraints([uri("td.example")]), names(uri("urn:td.example")), denied],
  [
    "a URI with an invalid host",
    nameConstraints([uri("td.example")]),
    names(uri("https://td.example%00/")),
    denied,
  ],
  ["a URI with IPv6", nameConstraints([uri("td.example")]), names(uri("https://[::1]/")), denied],
  [
    "an excluded URI",
    nameConstraints([], [uri("td.example")]),
    names(uri("spiffe://td.example/a")),
    excluded,
  ],
  [
    "an excluded URI in capitals",
    nameConstraints([], [uri("td.example")]),
    names(uri("https://TD.example")),
    excluded,
  ],
  [
    "a URI that is not excluded",
    nameConstraints([], [uri("td.example")]),
    names(uri("spiffe://b.example/a")),
    "ok",
  ],
  [
    "a URI if every URI is excluded",
    nameConstraints([], [uri("")]),
    names(uri("spiffe://b.example/a")),
    excluded,
  ],
  [
    "a URI without a host if one host is excluded",
    nameConstraints([], [uri("td.example")]),
    names(uri("urn:a:b")),
    denied,
  ],
  [
    "a DNS name that differs only in case",
    nameConstraints([dns("td.example")]),
    names(dns("TD.example")),
    "ok",
  ],
  ["a DNS name in the domain", nameConstraints([dns("td.example")]), names(dns("a.b.td.example")), "ok"],
  [
    "a DNS name that only ends in the same letters",
    nameConstraints([dns("td.example")]),
    names(dns("atd.example")),
    denied,
  ],
  ["the parent of the DNS name", nameConstraints([dns("a.td.example")]), names(dns("td.example")), denied],
  [
    "a DNS name with a trailing dot",
    nameConstraints([], [dns("td.example")]),
    names(dns("td.example.")),
    denied,
  ],
  [
    "a DNS name with a trailing blank",
    nameConstraints([], [dns("td.example")]),
    names(dns("td.example ")),
    denied,
  ],
  [
    "an excluded DNS name",
    nameConstraints([dns("")], [dns("b.td.example")]),
    names(dns("a.b.td.example")),
    excluded,
  ],
  [
    "two DNS names of which one is not permitted",
    nameConstraints([dns("td.example")]),
    names(dns("td.example"), dns("b.example")),
    denied,
  ],
  ["an address inside", nameConstraints([ip(10, 0, 0, 0, 255, 0, 0, 0)]), names(ip(10, 9, 8, 7)), "ok"],
  ["an address outside", nameConstraints([ip(10, 0, 0, 0, 255, 0, 0, 0)]), names(ip(11, 9, 8, 7)), denied],
  [
    "an address of the other family",
    nameConstraints([ip(0, 0, 0, 0, 0, 0, 0, 0)]),
    names(ip(...Array(16).fill(0))),
    denied,
  ],
  [
    "an excluded address",
    nameConstraints([], [ip(10, 9, 0, 0, 255, 255, 0, 0)]),
    names(ip(10, 9, 8, 7)),
    excluded,
  ],
  [
    "an address in a network with host bits",
    nameConstraints([ip(10, 1, 1, 1, 255, 0, 0, 0)]),
    names(ip(10, 2, 2, 2)),
    "ok",
  ],
  ["mail at the host", nameConstraints([email("td.example")]), names(email("a@TD.example")), "ok"],
  ["mail at a subdomain", nameConstraints([email("td.example")]), names(email("a@b.td.example")), denied],
  ["mail in the domain", nameConstraints([email(".td.example")]), names(email("a@b.td.example")), "ok"],
  ["the permitted mailbox", nameConstraints([email("a@td.example")]), names(email("a@td.example")), "ok"],
  ["another mailbox", nameConstraints([email("a@td.example")]), names(email("A@td.example")), denied],
  [
    "an excluded mailbox",
    nameConstraints([], [email("a@td.example")]),
    names(email("a@TD.example")),
    excluded,
  ],
  ["a quoted mailbox", nameConstraints([], [email("a@td.example")]), names(email('"a"@td.example')), denied],
  ["mail without a host", nameConstraints([], [email("a@td.example")]), names(email("a")), denied],
  ["mail at no host", nameConstraints([], [email("td.example")]), names(email("a@td example")), denied],
  [
    "a mail address in the subject that is not permitted",
    nameConstraints([email("td.example")]),
    { subject: name([attribute(EMAIL_ATTRIBUTE, "a@evil.example", 0x16)]) },
    denied,
  ],
  [
    "a mail address in the subject in an unreadable string type",
    nameConstraints([email("td.example")]),
    { subject: name([attribute(EMAIL_ATTRIBUTE, "a@td.example", 0x14)]) },
    denied,
  ],
  [
    "a permitted mail address in the subject",
    nameConstraints([email("td.example")]),
    { subject: name([attribute(EMAIL_ATTRIBUTE, "a@td.example", 0x16)]) },
    "ok",
  ],
  [
    "a kind of name without constraints",
    nameConstraints([uri("td.example")]),
    names(dns("b.example"), email("odd")),
    "ok",
  ],
  ["a leaf without names", nameConstraints([uri("td.example")]), {}, "ok"],
  [
    "a name outside constraints that are not critical",
    nameConstraints([uri("a")], [], false),
    names(uri("spiffe://b/c")),
    denied,
  ],
  [
    "constraints on directory names",
    nameConstraints([directoryName(EMPTY_NAME)]),
    {},
    "name_constraint_unjudged at 1",
  ],
  [
    "constraints on directory names that are not critical",
    nameConstraints([], [directoryName(EMPTY_NAME)], false),
    {},
    "name_constraint_unjudged at 1",
  ],
];

function names(...list: Bytes[]): Content {
  return { extensions: [altNames(list)] };
}

for (const [what, constraint, content, want] of constrained) {
  test(`X5S-4.2-1 ${what}: ${want === "ok" ? "accepted" : "refused"}`, () => {
    const leaf = certificate({ ...LEAF, ...content });
    const above = certificate(signer("i1", "root", { extensions: [constraint] }));
    assert.equal(verdict([leaf, above, certificate(ROOT)]), want);
  });
}

const TD_ONLY = nameConstraints([uri("td.example")]);
const OTHER = altNames([uri("spiffe://other.example")]);
const bounded: readonly (readonly [string, Content[], string])[] = [
  [
    "the anchor's constraints",
    [{ ...LEAF, extensions: [OTHER] }, I1, signer("root", "root", { extensions: [TD_ONLY] })],
    denied,
  ],
  [
    "an intermediate's names",
    [LEAF, signer("i1", "root", { extensions: [OTHER] }), signer("root", "root", { extensions: [TD_ONLY] })],
    "name_not_permitted at 1",
  ],
  [
    "both of two constraints",
    [
      { ...LEAF, extensions: [altNames([uri("spiffe://td.example/a")])] },
      signer("i1", "root", { extensions: [TD_ONLY] }),
      signer("root", "root", { extensions: [nameConstraints([uri("other.example")])] }),
    ],
    denied,
  ],
  [
    "more comparisons than the limit",
    [
      { ...LEAF, extensions: [altNames(Array(101).fill(dns("a")))] },
      signer("i1", "root", { extensions: [nameConstraints(Array(100).fill(dns("a")))] }),
      ROOT,
    ],
    "name_constraints_too_many",
  ],
  [
    "more comparisons of both kinds than the limit",
    [
      { ...LEAF, extensions: [altNames(Array(101).fill(dns("a")))] },
      signer("i1", "root", {
        extensions: [nameConstraints(Array(60).fill(dns("a")), Array(60).fill(dns("b")))],
      }),
      ROOT,
    ],
    "name_constraints_too_many",
  ],
];

for (const [what, path, want] of bounded) {
  test(`X5S-4.2-1 a path is refused because of ${what}`, () =>
    assert.equal(verdict(path.map(certificate)), want));
}

test("X5S-4.2-1 as many comparisons as the limit are accepted", () => {
  const leaf = { ...LEAF, extensions: [altNames(Array(100).fill(dns("a")))] };
  const above = signer("i1", "root", { extensions: [nameConstraints(Array(100).fill(dns("a")))] });
  assert.equal(verdict([leaf, above, ROOT].map(certificate)), "ok");
});

test("X5S-4.2-1 a self-issued intermediate is not constrained, and a self-issued leaf is", () => {
  const above = signer("i1", "i1", { extensions: [TD_ONLY] });
  const between = signer("i1", "i1", { extensions: [OTHER] });
  assert.equal(verdict([LEAF, between, above].map(certificate)), "ok");
  assert.equal(
    verdict([{ ...LEAF, subject: commonName("i1"), extensions: [OTHER] }, above].map(certificate)),
    denied,
  );
});

// --- random input -------------------------------------------------------------------------------------------

test("X5S-5.1-1 parsing a randomly changed certificate never throws", async () => {
  const domain = await makeTrustDomain("td.example");
  const svid = await mintX509Svid(domain, "spiffe://td.example/a");
  const originals = [derOf(svid.certPem), fixture("client"), fixture("bounded"), fixture("leaf-pss-sha256")];
  const random = prng(5280);
  const seen = new Map<string, number>();
  for (let round = 0; round < rounds(1_600); round++) {
    let bytes = Array.from(random.pick(originals));
    for (let changes = 1 + random.below(3); changes > 0; changes--) {
      const at = random.below(bytes.length);
      if (random.below(4) > 0)
        bytes[at] = random.below(3) > 0 ? random.below(256) : (bytes[at] ?? 0) ^ (1 << random.below(8));
      else if (random.below(2) > 0) bytes = bytes.toSpliced(at, 1 + random.below(3));
      else bytes = bytes.toSpliced(at, 0, ...bytes.slice(at, at + random.below(8)));
    }
    const kind = judge(Uint8Array.from(bytes));
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
  }
  for (const kind of [
    "ok",
    "certificate_not_der",
    "certificate_extension_malformed",
    "certificate_key_refused",
  ]) {
    assert.ok((seen.get(kind) ?? 0) > 4, `${kind}: ${seen.get(kind)}`);
  }
});
