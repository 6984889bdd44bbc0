import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { derOf } from "../../scripts/dev-keys.ts";
import { parseDistinguishedName } from "../../src/spec/rfc4514.ts";
import { type Certificate, parseCertificate } from "../../src/spec/rfc5280.ts";
import type { Json } from "../../src/spec/rfc8259.ts";
import {
  checkClientCertificate,
  checkSelfSigned,
  parseRegisteredCertificate,
  parseSubject,
} from "../../src/spec/rfc8705.ts";
import {
  ANY_USAGE,
  altNames,
  attribute,
  type Bytes,
  basicConstraints,
  build,
  CLIENT_AUTH,
  type Content,
  DIGITAL_SIGNATURE,
  dns,
  EMPTY_NAME,
  email,
  extendedKeyUsage,
  ip,
  keyUsage,
  makeKey,
  NOW,
  name,
  SERVER_AUTH,
  SIGNS_CERTIFICATES,
  uri,
} from "../fixtures/x509/build.ts";
import { mutate, prng } from "../support/prng.ts";

function certificate(bytes: Bytes): Certificate {
  const got = parseCertificate(bytes);
  assert(got.ok, JSON.stringify(got));
  return got.value;
}
const made = (content: Content) => certificate(build(content));
const CLIENT = certificate(
  derOf(readFileSync(join(import.meta.dirname, "../fixtures/x509/client.pem"), "utf8")),
);

// --- what a client registers --------------------------------------------------------------------------------

const subject = (metadata: { [name: string]: Json }): string => {
  const got = parseSubject(metadata);
  return got.ok ? got.value.parameter : got.error.kind;
};
const registered: readonly (readonly [string, { [name: string]: Json }, string])[] = [
  ["RFC8705-2.1.2-1, RFC8705-2.1-2 metadata without a subject parameter is refused", {}, "subject_missing"],
  [
    "RFC8705-2.1.2-1 an unknown subject parameter is refused",
    { tls_client_auth_san: "a" },
    "subject_missing",
  ],
  [
    "RFC8705-2.1.2-1, RFC8705-2.1-2 two subject parameters are refused",
    { tls_client_auth_san_dns: "a.example", tls_client_auth_san_uri: "urn:a:b" },
    "subject_repeated",
  ],
  [
    "RFC8705-2.1.2-1 two subject parameters of which one is null are refused",
    { tls_client_auth_san_dns: "a.example", tls_client_auth_san_uri: null },
    "subject_repeated",
  ],
  ["RFC8705-2.1.2-1 an array is refused", { tls_client_auth_san_dns: ["a.example"] }, "subject_malformed"],
  ["RFC8705-2.1.2-1 an empty name is refused", { tls_client_auth_san_dns: "" }, "subject_malformed"],
  [
    "RFC8705-2.1.2-1 a long name is refused",
    { tls_client_auth_san_dns: "a".repeat(2049) },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-1 a DNS name is accepted",
    { tls_client_auth_san_dns: "A.example" },
    "tls_client_auth_san_dns",
  ],
  ["RFC8705-2.1.2-3 a wildcard is refused", { tls_client_auth_san_dns: "*.example" }, "subject_malformed"],
  [
    "RFC8705-2.1.2-3 a trailing dot is refused",
    { tls_client_auth_san_dns: "a.example." },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-3 non-ASCII letters are refused",
    { tls_client_auth_san_dns: "ä.example" },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-1 a URI is accepted",
    { tls_client_auth_san_uri: "https://a.example/b" },
    "tls_client_auth_san_uri",
  ],
  [
    "RFC8705-2.1.2-3 a URI with a blank is refused",
    { tls_client_auth_san_uri: "urn:a b" },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-3 a URI without a scheme is refused",
    { tls_client_auth_san_uri: "a" },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-3 a SPIFFE ID is refused",
    { tls_client_auth_san_uri: "spiffe://a/b" },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-3 a SPIFFE ID in capitals is refused",
    { tls_client_auth_san_uri: "SPIFFE://a/b" },
    "subject_malformed",
  ],
  [
    "RFC8705-2.1.2-1 a mailbox is accepted",
    { tls_client_auth_san_email: "a@b.example" },
    "tls_client_auth_san_email",
  ],
  [
    "RFC8705-2.1.2-3 a mailbox without a host is refused",
    { tls_client_auth_san_email: "a@" },
    "subject_malformed",
  ],
  ["RFC8705-2.1.2-4 IPv4 is accepted", { tls_client_auth_san_ip: "192.0.2.7" }, "tls_client_auth_san_ip"],
  ["RFC8705-2.1.2-4 IPv6 is accepted", { tls_client_auth_san_ip: "2001:db8::7" }, "tls_client_auth_san_ip"],
  ["RFC8705-2.1.2-4 short IPv4 is refused", { tls_client_auth_san_ip: "192.2" }, "subject_malformed"],
  ["RFC8705-2.1.2-4 octal IPv4 is refused", { tls_client_auth_san_ip: "0300.0.2.7" }, "subject_malformed"],
  [
    "RFC8705-2.1.2-4 IPv4 as a number is refused",
    { tls_client_auth_san_ip: "3221225991" },
    "subject_malformed",
  ],
  ["RFC8705-2.1.2-4 a zone is refused", { tls_client_auth_san_ip: "fe80::1%eth0" }, "subject_malformed"],
  ["RFC8705-2.1.2-4 a network is refused", { tls_client_auth_san_ip: "192.0.2.0/24" }, "subject_malformed"],
  [
    "RFC8705-2.1.2-2 a distinguished name is accepted",
    { tls_client_auth_subject_dn: "CN=a,O=b" },
    "tls_client_auth_subject_dn",
  ],
  [
    "RFC8705-2.1.2-2 a distinguished name written with slashes is refused",
    { tls_client_auth_subject_dn: "/O=b/CN=a" },
    "subject_malformed",
  ],
];

for (const [what, metadata, want] of registered) {
  test(what, () => assert.equal(subject(metadata), want));
}

const CN = "2.5.4.3";
const O = "2.5.4.10";
const text = (type: string, value: string) => ({ type, text: value });
const distinguished: readonly (readonly [string, string, unknown])[] = [
  ["one attribute", "CN=a", [[text(CN, "a")]]],
  ["the last attribute first", "CN=a,O=b", [[text(O, "b")], [text(CN, "a")]]],
  ["several attributes in one RDN", "CN=a+O=b", [[text(CN, "a"), text(O, "b")]]],
  ["short names in any case", "cn=a,Dc=b", [[text("0.9.2342.19200300.100.1.25", "b")], [text(CN, "a")]]],
  ["a type by its OID", "2.5.4.3=a", [[text(CN, "a")]]],
  ["a value as hexadecimal", "CN=#0C0161", [[{ type: CN, hex: "0c0161" }]]],
  [
    "an unknown type as hexadecimal",
    "1.2.3=#0c0161+CN=a",
    [[{ type: "1.2.3", hex: "0c0161" }, text(CN, "a")]],
  ],
  ["ASCII letters in lower case", "CN=AbC", [[text(CN, "abc")]]],
  ["other letters unchanged", "CN=ÄK", [[text(CN, "Äk")]]],
  ["the Kelvin sign unchanged", "CN=\u212a", [[text(CN, "\u212a")]]],
  ["several blanks as one", "CN=a   b", [[text(CN, "a b")]]],
  ["escaped blanks at the ends as absent", "CN=\\ a\\ ", [[text(CN, "a")]]],
  ["escaped signs", 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h\\=i\\#j', [[text(CN, 'a,b+c"d\\e<f>g;h=i#j')]]],
  ["an equals sign in the value", "CN=a=b", [[text(CN, "a=b")]]],
  ["a hash inside", "CN=a#b", [[text(CN, "a#b")]]],
  ["octets in hexadecimal", "CN=B\\C3\\B6se", [[text(CN, "böse")]]],
  ["letters outside the BMP", "CN=\u{1d11e}", [[text(CN, "\u{1d11e}")]]],
  ["an empty string", "", undefined],
  ["a missing value", "CN", undefined],
  ["an empty value", "CN=", undefined],
  ["an empty hexadecimal value", "CN=#", undefined],
  ["a value of blanks", "CN=\\ ", undefined],
  ["half an octet", "CN=#0c016", undefined],
  ["text after hexadecimal", "CN=#0c0161x", undefined],
  ["a missing type", "=a", undefined],
  ["an unknown short name", "E=a@b", undefined],
  ["an unknown type with text", "1.2.3=a", undefined],
  ["a type with a leading zero", "2.05.4.3=a", undefined],
  ["a single number as type", "2=#0c0161", undefined],
  ["a blank before a type", "CN=a, O=b", undefined],
  ["a blank before a value", "CN= a", undefined],
  ["a blank after a value", "CN=a ", undefined],
  ["a trailing comma", "CN=a,", undefined],
  ["a trailing plus", "CN=a+", undefined],
  ["a leading comma", ",CN=a", undefined],
  ["a semicolon as separator", "CN=a;O=b", undefined],
  ["quotes", 'CN="a"', undefined],
  ["a backslash at the end", "CN=a\\", undefined],
  ["an escaped letter", "CN=\\z", undefined],
  ["octets that are not UTF-8", "CN=\\C3", undefined],
  ["a repeated type in one RDN", "CN=a+CN=b", undefined],
  ["a repeated type in one RDN, once by its OID", "CN=a+2.5.4.3=b", undefined],
];

for (const [what, value, want] of distinguished) {
  test(`RFC8705-2.1.2-2 ${what}: ${want === undefined ? "refused" : "read"}`, () => {
    assert.deepEqual(parseDistinguishedName(value), want);
  });
}

test("RFC8705-7.5-3 a name with a NUL, a line feed, an invisible character or a direction override is refused", () => {
  for (const sign of ["\0", "\\00", "\n", "\u200b", "\u202e"])
    assert.equal(parseDistinguishedName(`CN=a${sign}b`), undefined, JSON.stringify(sign));
});

test("RFC8705-2.1.2-2 parsing random text never throws", () => {
  const random = prng(4514);
  const alphabet = ["\\", ",", "+", "=", "#", '"', " ", "0", "c", "CN", "ü", "\ud800", "\0", ";", "."];
  let accepted = 0;
  for (let round = 0; round < 10_000; round++) {
    const got = parseDistinguishedName(mutate(random, "CN=a\\2Cb+OU=c,O=#0c0161", alphabet));
    if (got !== undefined) accepted++;
  }
  assert.ok(accepted > 100 && accepted < 8000, `${accepted}`);
});

// --- the certificate ----------------------------------------------------------------------------------------

function verdict(leaf: Certificate, metadata: { [name: string]: string }): string {
  const expected = parseSubject(metadata);
  assert(expected.ok, JSON.stringify(expected));
  const got = checkClientCertificate(leaf, expected.value);
  return got.ok ? "ok" : got.error.kind;
}
const differs = "client_certificate_differs";

const fixtureNames: readonly (readonly [string, { [name: string]: string }, string])[] = [
  ["RFC8705-2.1.2-3 a DNS name matches in any case", { tls_client_auth_san_dns: "billing.TD.example" }, "ok"],
  ["RFC8705-2.1.2-3 the parent of a DNS name is refused", { tls_client_auth_san_dns: "td.example" }, differs],
  [
    "RFC8705-2.1.2-3 a URI matches byte for byte",
    { tls_client_auth_san_uri: "https://td.example/Billing" },
    "ok",
  ],
  [
    "RFC8705-2.1.2-3 a URI with other capitals is refused",
    { tls_client_auth_san_uri: "https://td.example/billing" },
    differs,
  ],
  ["RFC8705-2.1.2-3 a mailbox matches", { tls_client_auth_san_email: "Billing@td.example" }, "ok"],
  [
    "RFC8705-2.1.2-3 a mailbox with other capitals is refused",
    { tls_client_auth_san_email: "billing@td.example" },
    differs,
  ],
  ["RFC8705-2.1.2-4 IPv4 matches", { tls_client_auth_san_ip: "192.0.2.7" }, "ok"],
  ["RFC8705-2.1.2-4 another address is refused", { tls_client_auth_san_ip: "192.0.2.8" }, differs],
  ["RFC8705-2.1.2-4 IPv6 matches", { tls_client_auth_san_ip: "2001:db8::7" }, "ok"],
  ["RFC8705-2.1.2-4 IPv6 matches in another spelling", { tls_client_auth_san_ip: "2001:0DB8:0::7" }, "ok"],
  ["RFC8705-2.1.2-4 IPv4 as IPv6 is refused", { tls_client_auth_san_ip: "::ffff:192.0.2.7" }, differs],
  [
    "RFC8705-2.1-3, RFC8705-2.1.2-2 the subject of a certificate made by OpenSSL matches",
    {
      tls_client_auth_subject_dn:
        "1.2.840.113549.1.9.1=#161262696c6c696e674074642e6578616d706c65,ou=payments+cn=billing agent,O=B\\C3\\B6se / Söhne\\, LTD.,dc=TD,DC=example",
    },
    "ok",
  ],
  [
    "RFC8705-2.1-3 the reverse order is refused",
    {
      tls_client_auth_subject_dn:
        "DC=example,DC=td,O=Böse / Söhne\\, Ltd.,OU=Payments+CN=Billing Agent,1.2.840.113549.1.9.1=#161262696c6c696e674074642e6578616d706c65",
    },
    differs,
  ],
  [
    "RFC8705-2.1-3 a subject with a missing attribute is refused",
    { tls_client_auth_subject_dn: "OU=Payments+CN=Billing Agent,O=Böse / Söhne\\, Ltd.,DC=td,DC=example" },
    differs,
  ],
];

for (const [what, metadata, want] of fixtureNames) {
  test(what, () => assert.equal(verdict(CLIENT, metadata), want));
}

const rdn = (...attributes: Bytes[]) => name(attributes);
const names: readonly (readonly [string, Bytes, string, string])[] = [
  ["matches UTF8String", rdn(attribute(CN, "Ab")), "CN=aB", "ok"],
  ["matches PrintableString", rdn(attribute(CN, "Ab", 0x13)), "CN=aB", "ok"],
  ["matches IA5String", rdn(attribute("0.9.2342.19200300.100.1.25", "Ab", 0x16)), "DC=aB", "ok"],
  ["T61String is refused", rdn(attribute(CN, "ab", 0x14)), "CN=ab", differs],
  ["BMPString is refused", rdn(attribute(CN, "ab", 0x1e)), "CN=ab", differs],
  ["matches any string as hexadecimal", rdn(attribute(CN, "ab", 0x14)), "CN=#14026162", "ok"],
  ["compares hexadecimal byte for byte", rdn(attribute(CN, "Ab")), "CN=#0c026162", differs],
  ["matches several blanks as one", rdn(attribute(CN, "  a   b ")), "CN=a b", "ok"],
  ["does not drop blanks", rdn(attribute(CN, "a b")), "CN=ab", differs],
  ["another type is refused", rdn(attribute(O, "ab")), "CN=ab", differs],
  ["another value is refused", rdn(attribute(CN, "abc")), "CN=ab", differs],
  ["an asterisk is refused", rdn(attribute(CN, "*")), "CN=ab", differs],
  ["text after a NUL is refused", rdn(attribute(CN, "ab\0c")), "CN=ab", differs],
  ["an invisible character is refused", rdn(attribute(CN, "a\u200bb")), "CN=ab", differs],
  ["look-alike letters are refused", rdn(attribute(CN, "\u212a")), "CN=k", differs],
  [
    "matches the attributes of an RDN in any order",
    rdn(attribute(CN, "a"), attribute(O, "b")),
    "O=b+CN=a",
    "ok",
  ],
  [
    "an RDN with an additional attribute is refused",
    rdn(attribute(CN, "a"), attribute(O, "b")),
    "CN=a",
    differs,
  ],
  ["an RDN with a missing attribute is refused", rdn(attribute(CN, "a")), "CN=a+O=b", differs],
  ["one RDN instead of two is refused", rdn(attribute(CN, "a"), attribute(O, "b")), "CN=a,O=b", differs],
  ["one value that contains a separator is refused", rdn(attribute(CN, "a,O=b")), "CN=a,O=b", differs],
  ["matches an escaped comma", rdn(attribute(CN, "a,O=b")), "CN=a\\,O=b", "ok"],
  ["a value of blanks alone is refused", rdn(attribute(CN, "  ")), "CN=x", differs],
  ["matches a value of one letter", rdn(attribute(CN, "x")), "CN=X", "ok"],
  ["an empty subject is refused", EMPTY_NAME, "CN=a", differs],
  ["a repeated attribute is refused", rdn(attribute(CN, "a"), attribute(CN, "b")), "CN=a+O=b", differs],
];

for (const [what, value, dn, want] of names) {
  test(`RFC8705-2.1-3 ${what}`, () => {
    assert.equal(verdict(made({ subject: value }), { tls_client_auth_subject_dn: dn }), want);
  });
}

const withNames = (...list: Bytes[]) => [DIGITAL_SIGNATURE, altNames(list)];
const URI = { tls_client_auth_san_uri: "urn:a:b" };
const DNS = { tls_client_auth_san_dns: "a.example" };
const leaves: readonly (readonly [string, Bytes[], { [name: string]: string }, string])[] = [
  ["RFC8705-2.1.2-3 one of several names is accepted", withNames(uri("urn:x:y"), uri("urn:a:b")), URI, "ok"],
  [
    "RFC8705-2.1.2-3 the value as another kind of name is refused",
    withNames(dns("urn:a:b"), email("urn:a:b")),
    URI,
    differs,
  ],
  ["RFC8705-2.1.2-3 a URI inside a DNS name is refused", withNames(dns("x, URI:urn:a:b")), URI, differs],
  ["RFC8705-2.1.2-3 a wildcard in the certificate is refused", withNames(dns("*.example")), DNS, differs],
  ["RFC8705-2.1.2-3 a subdomain is refused", withNames(dns("b.a.example")), DNS, differs],
  [
    "RFC8705-2.1.2-4 the address as text is refused",
    withNames(dns("192.0.2.7")),
    { tls_client_auth_san_ip: "192.0.2.7" },
    differs,
  ],
  [
    "RFC8705-2.1.2-4 one of several addresses is accepted",
    withNames(ip(1, 2, 3, 4), ip(192, 0, 2, 7)),
    { tls_client_auth_san_ip: "192.0.2.7" },
    "ok",
  ],
  ["RFC8705-2.1-1 a certificate without names is refused", [DIGITAL_SIGNATURE], URI, differs],
  [
    "RFC8705-2.1-1 a DNS name that is only in the subject is refused",
    [],
    { tls_client_auth_san_dns: "leaf" },
    differs,
  ],
  [
    "RFC8705-7.5-3 a CA certificate is refused",
    [basicConstraints(true), ...withNames(uri("urn:a:b"))],
    URI,
    "client_certificate_is_ca",
  ],
  [
    "RFC8705-7.5-3 explicit basic constraints of a leaf are accepted",
    [basicConstraints(false), ...withNames(uri("urn:a:b"))],
    URI,
    "ok",
  ],
  ["RFC8705-7.5-3 missing key usage is accepted", [altNames([uri("urn:a:b")])], URI, "ok"],
  [
    "RFC8705-7.5-3 key usage that only signs certificates is refused",
    [SIGNS_CERTIFICATES, altNames([uri("urn:a:b")])],
    URI,
    "client_certificate_may_not_sign",
  ],
  [
    "RFC8705-7.5-3 key usage for encryption is refused",
    [keyUsage("20", 5), altNames([uri("urn:a:b")])],
    URI,
    "client_certificate_may_not_sign",
  ],
  [
    "RFC8705-7.5-3 clientAuth is accepted",
    [extendedKeyUsage(CLIENT_AUTH), ...withNames(uri("urn:a:b"))],
    URI,
    "ok",
  ],
  [
    "RFC8705-7.5-3 serverAuth alone is refused",
    [extendedKeyUsage(SERVER_AUTH), ...withNames(uri("urn:a:b"))],
    URI,
    "client_certificate_not_for_clients",
  ],
  [
    "RFC8705-7.5-3 anyExtendedKeyUsage is refused",
    [extendedKeyUsage(ANY_USAGE), ...withNames(uri("urn:a:b"))],
    URI,
    "client_certificate_not_for_clients",
  ],
  [
    "RFC8705-2.1-1 an SVID is refused",
    withNames(dns("a.example"), uri("spiffe://td.example/a")),
    DNS,
    "client_certificate_is_svid",
  ],
  [
    "RFC8705-2.1-1 an SVID in capitals is refused",
    withNames(uri("urn:a:b"), uri("SPIFFE://td.example/a")),
    URI,
    "client_certificate_is_svid",
  ],
];

for (const [what, extensions, metadata, want] of leaves) {
  test(what, () => assert.equal(verdict(made({ extensions }), metadata), want));
}

test("RFC8705-2.1-5 a renewed certificate with the same name is accepted", () => {
  const extensions = withNames(uri("urn:a:b"));
  const renewed = made({ extensions, spki: makeKey().spki, notBefore: NOW, notAfter: NOW + 9 });
  assert.equal(verdict(renewed, URI), "ok");
});

// --- self-signed method -------------------------------------------------------------------------------------

const VECTOR =
  "MIIBqDCCAU+gAwIBAgIUcrT5BY92iI+wRxPFPX674227kPgwCgYIKoZIzj0EAwIwKjEQMA4GA1UECgwHRXhhbXBsZTEWMBQGA1UEAwwNYmlsbGluZy1hZ2VudDAeFw0yNjExMjEwMTEzMDdaFw0zNjExMTgwMTEzMDdaMCoxEDAOBgNVBAoMB0V4YW1wbGUxFjAUBgNVBAMMDWJpbGxpbmctYWdlbnQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAR2LlHKlnhFlsWEprUdrnu3IXHmd0LnR9hDxtmgJynL5B4EiAWTdbCp4FIQg8u0C3RJkJrOYIonR0adAE5/FluUo1MwUTAdBgNVHQ4EFgQUavVo8Zhffr88TsJJfftoWywp/3AwHwYDVR0jBBgwFoAUavVo8Zhffr88TsJJfftoWywp/3AwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBCrEjmVV/vtrkwxCsog91+4E+Jo+Z19/osfzrAkhxOQgIgSOhB2IbZ20V/vcgU8avh4lpDYLa8/7LZE/cLKztawt8=";
const SELF_SIGNED = certificate(Uint8Array.fromBase64(VECTOR));
const KEY: { [name: string]: Json } = { ...SELF_SIGNED.publicKey };
const OTHER_KEY: { [name: string]: Json } = { ...made({}).publicKey };
const P384 = made({ spki: makeKey("P-384").spki }).publicKey;

const jwks: readonly (readonly [string, Json, string])[] = [
  ["RFC8705-2.2.2-1 a key with its certificate is accepted", { ...KEY, x5c: [VECTOR] }, "ok"],
  ["RFC8705-2.2.2-1 the first certificate is used", { ...KEY, x5c: [VECTOR, "more"] }, "ok"],
  [
    "RFC8705-2.2.2-2, RFC7517-4.7-v1 kid, alg and use of the key are accepted",
    { ...KEY, kid: "k", alg: "ES256", use: "sig", x5c: [VECTOR] },
    "ok",
  ],
  ["RFC8705-2.2.2-1 a key alone is refused", KEY, "registered_certificate_missing"],
  ["RFC8705-2.2.2-1 an empty x5c is refused", { ...KEY, x5c: [] }, "registered_certificate_missing"],
  [
    "RFC8705-2.2.2-1 a certificate that is not in an array is refused",
    { ...KEY, x5c: VECTOR },
    "registered_certificate_missing",
  ],
  ["RFC8705-2.2.2-1 an array instead of an object is refused", [VECTOR], "registered_certificate_missing"],
  ["RFC8705-2.2.2-1 PEM is refused", { ...KEY, x5c: ["-----BEGIN"] }, "registered_certificate_malformed"],
  [
    "RFC8705-2.2.2-1 line feeds are refused",
    { ...KEY, x5c: [`${VECTOR}\n`] },
    "registered_certificate_malformed",
  ],
  [
    "RFC8705-2.2.2-1 missing padding is refused",
    { ...KEY, x5c: [VECTOR.slice(0, -1)] },
    "registered_certificate_malformed",
  ],
  [
    "RFC8705-2.2.2-1 bytes that are not a certificate are refused",
    { ...KEY, x5c: ["BQA="] },
    "registered_certificate_refused",
  ],
  [
    "RFC8705-2.2.2-2, RFC7517-4.7-v1 another key is refused",
    { ...OTHER_KEY, x5c: [VECTOR] },
    "registered_key_differs",
  ],
  ["RFC8705-2.2.2-2 a key of another kind is refused", { ...P384, x5c: [VECTOR] }, "registered_key_differs"],
  ["RFC8705-2.2.2-2 a missing key is refused", { x5c: [VECTOR] }, "registered_key_refused"],
  ["RFC8705-2.2.2-2 a private key is refused", { ...KEY, d: "AA", x5c: [VECTOR] }, "registered_key_refused"],
];

for (const [what, jwk, want] of jwks) {
  test(what, () => {
    const got = parseRegisteredCertificate(jwk);
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}

const VALID = SELF_SIGNED.notBeforeSeconds;
const twin = made({ spki: SELF_SIGNED.spki });
const presented: readonly (readonly [string, Certificate[], number, string])[] = [
  ["RFC8705-2.2-2, RFC8705-2.2-3 a registered certificate is accepted", [SELF_SIGNED], VALID, "ok"],
  ["RFC8705-2.2-1 one of several is accepted", [twin, SELF_SIGNED], VALID, "ok"],
  ["RFC8705-2.2-1 a certificate is refused if none is registered", [], VALID, "certificate_not_registered"],
  [
    "RFC8705-2.2-2 another certificate with the same key is refused",
    [twin],
    VALID,
    "certificate_not_registered",
  ],
  [
    "RFC8705-2.2-2 one second before the validity is refused",
    [SELF_SIGNED],
    VALID - 1,
    "certificate_not_yet_valid",
  ],
  [
    "RFC8705-2.2-2 the last second of the validity is accepted",
    [SELF_SIGNED],
    SELF_SIGNED.notAfterSeconds,
    "ok",
  ],
  [
    "RFC8705-2.2-2 one second after the validity is refused",
    [SELF_SIGNED],
    SELF_SIGNED.notAfterSeconds + 1,
    "certificate_expired",
  ],
];

for (const [what, certificates, nowSeconds, want] of presented) {
  test(what, () => {
    const got = checkSelfSigned(SELF_SIGNED, certificates, { nowSeconds });
    assert.equal(got.ok ? "ok" : got.error.kind, want);
  });
}
