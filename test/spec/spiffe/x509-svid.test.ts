import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { TrustDomain } from "../../../scripts/dev-keys.ts";
import { derOf } from "../../../scripts/dev-keys.ts";
import type { SvidOptions } from "../../../scripts/dev-pki.ts";
import {
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  x509,
} from "../../../scripts/dev-pki.ts";
import type { Certificate } from "../../../src/spec/rfc5280.ts";
import { parseCertificate } from "../../../src/spec/rfc5280.ts";
import { checkSigners, parseX509Svid } from "../../../src/spec/spiffe/x509-svid.ts";
import type { Bytes } from "../../fixtures/x509/build.ts";
import {
  ANY_USAGE,
  altNames,
  basicConstraints,
  build,
  CLIENT_AUTH,
  commonName,
  DIGITAL_SIGNATURE,
  directoryName,
  dns,
  EMPTY_NAME,
  email,
  extendedKeyUsage,
  ip,
  keyUsage,
  SERVER_AUTH,
  SIGNS_CERTIFICATES,
  uri,
} from "../../fixtures/x509/build.ts";

const ID = "spiffe://td.example/ns/shop/sa/cart";

function certificate(bytes: Bytes): Certificate {
  const got = parseCertificate(bytes);
  assert(got.ok, JSON.stringify(got));
  return got.value;
}

const leafVerdict = (bytes: Bytes): string => {
  const got = parseX509Svid(certificate(bytes));
  return got.ok ? "ok" : got.error.kind;
};

const NOT_CA = basicConstraints(false);
const USAGES = extendedKeyUsage(SERVER_AUTH, CLIENT_AUTH);
const leaf = (...names: Bytes[]) => [NOT_CA, DIGITAL_SIGNATURE, USAGES, altNames(names)];
const withUsage = (...more: Bytes[]) => [NOT_CA, ...more, altNames([uri(ID)])];

const leaves: readonly (readonly [string, Bytes[], string])[] = [
  ["X5S-2-1, SPCA-3.2-4 accepts one URI", leaf(uri(ID)), "ok"],
  ["X5S-2-1 refuses names without a URI", leaf(dns("cart.example")), "svid_uri_missing"],
  ["X5S-2-1 refuses a certificate without names", [NOT_CA, DIGITAL_SIGNATURE], "svid_uri_missing"],
  ["X5S-2-2, X5S-5.2-4 refuses two SPIFFE IDs", leaf(uri(ID), uri(`${ID}2`)), "svid_uri_repeated"],
  ["X5S-2-2 refuses a repeated SPIFFE ID", leaf(uri(ID), uri(ID)), "svid_uri_repeated"],
  [
    "X5S-2-2 refuses another URI after the SPIFFE ID",
    leaf(uri(ID), uri("https://td.example")),
    "svid_uri_repeated",
  ],
  [
    "X5S-2-2 refuses another URI before the SPIFFE ID",
    leaf(uri("urn:a:b"), dns("a"), uri(ID)),
    "svid_uri_repeated",
  ],
  [
    "X5S-2-3 accepts names of other kinds",
    leaf(dns("a.example"), email("a@b"), ip(10, 0, 0, 1), uri(ID), directoryName(commonName("x"))),
    "ok",
  ],
  ["X5S-2-1 refuses a URI inside a DNS name", leaf(dns(`a, URI:${ID}`)), "svid_uri_missing"],
  ["X5S-2-1 refuses a SPIFFE ID as DNS name", leaf(dns(ID)), "svid_uri_missing"],
  ["X5S-2-3 ignores a URI inside a DNS name", leaf(dns("a, URI:spiffe://td.example/b"), uri(ID)), "ok"],
  ["X5S-5.2-3 refuses another scheme", leaf(uri("https://td.example/a")), "svid_id_malformed"],
  ["X5S-5.2-3 refuses the scheme in capitals", leaf(uri("SPIFFE://td.example/a")), "svid_id_malformed"],
  ["X5S-5.2-3 refuses an ID with a port", leaf(uri("spiffe://td.example:1/a")), "svid_id_malformed"],
  ["X5S-5.2-3 refuses a dot segment", leaf(uri("spiffe://td.example/a/../b")), "svid_id_malformed"],
  ["X5S-5.2-3 refuses an empty URI", leaf(uri("")), "svid_id_malformed"],
  [
    "X5S-3.1-2, X5S-5.2-3 refuses an ID without a path",
    leaf(uri("spiffe://td.example")),
    "svid_id_without_path",
  ],
  ["X5S-5.2-3 refuses the root path", leaf(uri("spiffe://td.example/")), "svid_id_malformed"],
  [
    "X5S-4.1-1, X5S-5.2-1, SPCA-3.2-5 refuses a CA certificate",
    [basicConstraints(true), DIGITAL_SIGNATURE, altNames([uri(ID)])],
    "svid_is_ca",
  ],
  ["X5S-4.1-1 accepts missing basic constraints", [DIGITAL_SIGNATURE, altNames([uri(ID)])], "ok"],
  ["X5S-4.3-1 refuses missing key usage", withUsage(USAGES), "svid_key_usage_missing"],
  [
    "X5S-4.3-1 refuses key usage that is not critical",
    withUsage(keyUsage("80", 7, false)),
    "svid_key_usage_not_critical",
  ],
  ["X5S-4.3-3, SPCA-3.2-6 accepts digitalSignature", withUsage(DIGITAL_SIGNATURE), "ok"],
  ["X5S-4.3-3, SPCA-3.2-6 refuses keyEncipherment alone", withUsage(keyUsage("20", 5)), "svid_may_not_sign"],
  ["X5S-4.3-3 accepts additional keyEncipherment and keyAgreement", withUsage(keyUsage("a8", 3)), "ok"],
  ["X5S-4.3-4, X5S-5.2-2 refuses keyCertSign", withUsage(keyUsage("84", 2)), "svid_signs_certificates"],
  ["X5S-4.3-4, X5S-5.2-2 refuses cRLSign", withUsage(keyUsage("82", 1)), "svid_signs_certificates"],
  ["X5S-4.3-3 refuses keyCertSign alone", withUsage(keyUsage("04", 2)), "svid_may_not_sign"],
  ["X5S-4.4-2 accepts missing extended key usage", withUsage(DIGITAL_SIGNATURE), "ok"],
  [
    "X5S-4.4-2 accepts clientAuth and serverAuth",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(CLIENT_AUTH, SERVER_AUTH)),
    "ok",
  ],
  [
    "X5S-4.4-2 accepts an additional extended key usage",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(CLIENT_AUTH, "1.2.3", SERVER_AUTH)),
    "ok",
  ],
  [
    "X5S-4.4-2 refuses serverAuth alone",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(SERVER_AUTH)),
    "svid_extended_key_usage_refused",
  ],
  [
    "X5S-4.4-2 refuses clientAuth alone",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(CLIENT_AUTH)),
    "svid_extended_key_usage_refused",
  ],
  [
    "X5S-4.4-2 refuses anyExtendedKeyUsage",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(ANY_USAGE)),
    "svid_extended_key_usage_refused",
  ],
];

for (const [name, extensions, want] of leaves) {
  test(name, () => assert.equal(leafVerdict(build({ extensions })), want));
}

test("X5S-3.1-3 critical names are required if the subject is empty", () => {
  const bytes = (critical: boolean, subject = EMPTY_NAME) =>
    build({ subject, extensions: [DIGITAL_SIGNATURE, altNames([uri(ID)], critical)] });
  assert.equal(leafVerdict(bytes(true)), "ok");
  assert.equal(leafVerdict(bytes(false)), "svid_names_not_critical");
  assert.equal(leafVerdict(bytes(false, commonName("cart"))), "ok");
});

test("X5S-2-1 the SPIFFE ID and its trust domain are returned", () => {
  assert.deepEqual(parseX509Svid(certificate(build({ extensions: leaf(uri(ID)) }))), {
    ok: true,
    value: { id: ID, trustDomain: "td.example", path: "/ns/shop/sa/cart" },
  });
});

// --- SVIDs that the development PKI mints ---------------------------------------------------------------------

let domain: TrustDomain;
before(async () => {
  domain = await makeTrustDomain("td.example");
});

const { KeyUsageFlags, ExtendedKeyUsage } = x509;
const minted: readonly (readonly [string, SvidOptions, string])[] = [
  ["X5S-2-1 accepts an SVID minted with defaults", {}, "ok"],
  ["X5S-3.1-3 accepts a minted SVID with a subject", { subject: "cart" }, "ok"],
  [
    "X5S-2-1 refuses minted names without a URI",
    { names: [{ type: "dns", value: "a" }] },
    "svid_uri_missing",
  ],
  [
    "X5S-2-2 refuses two minted URIs",
    {
      names: [
        { type: "url", value: ID },
        { type: "url", value: ID },
      ],
    },
    "svid_uri_repeated",
  ],
  ["X5S-5.2-1 refuses a minted CA certificate", { ca: true }, "svid_is_ca"],
  ["X5S-4.3-1 refuses a minted leaf without key usage", { keyUsage: null }, "svid_key_usage_missing"],
  [
    "X5S-4.3-3 refuses minted keyEncipherment",
    { keyUsage: KeyUsageFlags.keyEncipherment },
    "svid_may_not_sign",
  ],
  [
    "X5S-4.3-4 refuses minted keyCertSign",
    { keyUsage: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign },
    "svid_signs_certificates",
  ],
  ["X5S-4.4-2 accepts a minted leaf without extended usage", { extendedKeyUsage: null }, "ok"],
  [
    "X5S-4.4-2 refuses minted serverAuth alone",
    { extendedKeyUsage: [ExtendedKeyUsage.serverAuth] },
    "svid_extended_key_usage_refused",
  ],
];

for (const [name, options, want] of minted) {
  test(name, async () => {
    assert.equal(leafVerdict(derOf((await mintX509Svid(domain, ID, options)).certPem)), want);
  });
}

// --- signers ------------------------------------------------------------------------------------------------

const signer = (...more: Bytes[]) =>
  certificate(build({ extensions: [basicConstraints(true), SIGNS_CERTIFICATES, ...more] }));
const named = (...list: Bytes[]) => signer(altNames(list));
const LEAF = certificate(build({ extensions: leaf(uri(ID)) }));
const PLAIN = signer();

const signers: readonly (readonly [string, Certificate[], string])[] = [
  ["X5S-3.2-1 accepts signers without an ID", [PLAIN, PLAIN], "ok"],
  ["X5S-3.2-1 accepts the ID of the trust domain", [PLAIN, named(uri("spiffe://td.example"))], "ok"],
  ["X5S-3.2-1 accepts signers with other names", [named(dns("ca.example"))], "ok"],
  [
    "X5S-3.2-1 refuses an intermediate with a path",
    [named(uri("spiffe://td.example/ca")), PLAIN],
    "svid_signer_id_with_path at 1",
  ],
  [
    "X5S-3.2-1 refuses an anchor with a path",
    [PLAIN, named(uri("spiffe://td.example/ca"))],
    "svid_signer_id_with_path at 2",
  ],
  [
    "X5S-3.2-2, SID-3.1-1 refuses an intermediate of another trust domain",
    [named(uri("spiffe://other.example")), PLAIN],
    "svid_signer_of_other_domain at 1",
  ],
  [
    "X5S-3.2-2 refuses an anchor of another trust domain",
    [PLAIN, named(uri("spiffe://other.example"))],
    "svid_signer_of_other_domain at 2",
  ],
  [
    "X5S-3.2-2 refuses an intermediate of a subdomain",
    [named(uri("spiffe://ca.td.example"))],
    "svid_signer_of_other_domain at 1",
  ],
  [
    "X5S-2-2 refuses a signer with two URIs",
    [named(uri("spiffe://td.example"), uri("spiffe://td.example"))],
    "svid_signer_uri_repeated at 1",
  ],
  [
    "X5S-2-1 refuses a signer with a URI that is not a SPIFFE ID",
    [named(uri("https://td.example"))],
    "svid_signer_id_malformed at 1",
  ],
  [
    "X5S-4.3-1 refuses a signer whose key usage is not critical",
    [PLAIN, certificate(build({ extensions: [basicConstraints(true), keyUsage("04", 2, false)] }))],
    "svid_signer_key_usage_not_critical at 2",
  ],
  [
    "X5S-4.3-1 refuses a signer without key usage",
    [certificate(build({ extensions: [basicConstraints(true)] }))],
    "svid_signer_key_usage_not_critical at 1",
  ],
];

for (const [name, above, want] of signers) {
  test(name, () => {
    const got = checkSigners([LEAF, ...above], "td.example");
    assert.equal(got.ok ? "ok" : `${got.error.kind} at ${got.error.at}`, want);
  });
}

test("X5S-3.2-1 the signers of the development PKI are accepted for their trust domain only", async () => {
  const root = certificate(derOf(domain.x509.certPem));
  const below = certificate(derOf((await makeIntermediate(domain.x509, "below")).certPem));
  const foreign = certificate(
    derOf(
      (await makeIntermediate(await makeAuthority("x"), "y", [{ type: "url", value: "spiffe://x.example" }]))
        .certPem,
    ),
  );
  assert.ok(checkSigners([LEAF, below, root], "td.example").ok);
  assert.ok(!checkSigners([LEAF, below, root], "other.example").ok);
  assert.ok(!checkSigners([LEAF, foreign, root], "td.example").ok);
});
