import assert from "node:assert/strict";
import { before, test } from "node:test";
import { derOf, type TrustDomain } from "../../../scripts/dev-keys.ts";
import {
  makeAuthority,
  makeIntermediate,
  makeTrustDomain,
  mintX509Svid,
  type SvidOptions,
  x509,
} from "../../../scripts/dev-pki.ts";
import { type Certificate, parseCertificate } from "../../../src/spec/rfc5280.ts";
import { checkSigners, parseX509Svid } from "../../../src/spec/spiffe/x509-svid.ts";
import {
  ANY_USAGE,
  altNames,
  type Bytes,
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
  ["X5S-2-1, SPCA-3.2-4 one URI is accepted", leaf(uri(ID)), "ok"],
  ["X5S-2-1 names without a URI are refused", leaf(dns("cart.example")), "svid_uri_missing"],
  ["X5S-2-1 a certificate without names is refused", [NOT_CA, DIGITAL_SIGNATURE], "svid_uri_missing"],
  ["X5S-2-2, X5S-5.2-4 two SPIFFE IDs are refused", leaf(uri(ID), uri(`${ID}2`)), "svid_uri_repeated"],
  ["X5S-2-2 a repeated SPIFFE ID is refused", leaf(uri(ID), uri(ID)), "svid_uri_repeated"],
  [
    "X5S-2-2 another URI after the SPIFFE ID is refused",
    leaf(uri(ID), uri("https://td.example")),
    "svid_uri_repeated",
  ],
  [
    "X5S-2-2 another URI before the SPIFFE ID is refused",
    leaf(uri("urn:a:b"), dns("a"), uri(ID)),
    "svid_uri_repeated",
  ],
  [
    "X5S-2-3 names of other kinds are accepted",
    leaf(dns("a.example"), email("a@b"), ip(10, 0, 0, 1), uri(ID), directoryName(commonName("x"))),
    "ok",
  ],
  ["X5S-2-1 a URI inside a DNS name is refused", leaf(dns(`a, URI:${ID}`)), "svid_uri_missing"],
  ["X5S-2-1 a SPIFFE ID as DNS name is refused", leaf(dns(ID)), "svid_uri_missing"],
  ["X5S-2-3 a URI inside a DNS name is ignored", leaf(dns("a, URI:spiffe://td.example/b"), uri(ID)), "ok"],
  ["X5S-5.2-3 another scheme is refused", leaf(uri("https://td.example/a")), "svid_id_malformed"],
  ["X5S-5.2-3 the scheme in capitals is refused", leaf(uri("SPIFFE://td.example/a")), "svid_id_malformed"],
  ["X5S-5.2-3 an ID with a port is refused", leaf(uri("spiffe://td.example:1/a")), "svid_id_malformed"],
  ["X5S-5.2-3 a dot segment is refused", leaf(uri("spiffe://td.example/a/../b")), "svid_id_malformed"],
  ["X5S-5.2-3 an empty URI is refused", leaf(uri("")), "svid_id_malformed"],
  [
    "X5S-3.1-2, X5S-5.2-3 an ID without a path is refused",
    leaf(uri("spiffe://td.example")),
    "svid_id_without_path",
  ],
  ["X5S-5.2-3 the root path is refused", leaf(uri("spiffe://td.example/")), "svid_id_malformed"],
  [
    "X5S-3.1-1, X5S-3.2-3, X5S-4.1-1, X5S-5.2-1, SPCA-3.2-5 a CA certificate is refused",
    [basicConstraints(true), DIGITAL_SIGNATURE, altNames([uri(ID)])],
    "svid_is_ca",
  ],
  ["X5S-4.1-1 missing basic constraints are accepted", [DIGITAL_SIGNATURE, altNames([uri(ID)])], "ok"],
  ["X5S-4.3-1 missing key usage is refused", withUsage(USAGES), "svid_key_usage_missing"],
  [
    "X5S-4.3-1 key usage that is not critical is refused",
    withUsage(keyUsage("80", 7, false)),
    "svid_key_usage_not_critical",
  ],
  ["X5S-4.3-3, SPCA-3.2-6 digitalSignature is accepted", withUsage(DIGITAL_SIGNATURE), "ok"],
  [
    "X5S-4.3-3, SPCA-3.2-6 keyEncipherment alone is refused",
    withUsage(keyUsage("20", 5)),
    "svid_may_not_sign",
  ],
  ["X5S-4.3-3 additional keyEncipherment and keyAgreement are accepted", withUsage(keyUsage("a8", 3)), "ok"],
  ["X5S-4.3-4, X5S-5.2-2 keyCertSign is refused", withUsage(keyUsage("84", 2)), "svid_signs_certificates"],
  ["X5S-4.3-4, X5S-5.2-2 cRLSign is refused", withUsage(keyUsage("82", 1)), "svid_signs_certificates"],
  ["X5S-4.3-3 keyCertSign alone is refused", withUsage(keyUsage("04", 2)), "svid_may_not_sign"],
  ["X5S-4.4-2 missing extended key usage is accepted", withUsage(DIGITAL_SIGNATURE), "ok"],
  [
    "X5S-4.4-2 clientAuth and serverAuth are accepted",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(CLIENT_AUTH, SERVER_AUTH)),
    "ok",
  ],
  [
    "X5S-4.4-2 an additional extended key usage is accepted",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(CLIENT_AUTH, "1.2.3", SERVER_AUTH)),
    "ok",
  ],
  [
    "CONF-D-21, X5S-4.4-2 serverAuth alone is refused",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(SERVER_AUTH)),
    "svid_extended_key_usage_refused",
  ],
  [
    "CONF-D-21, X5S-4.4-2 clientAuth alone is refused",
    withUsage(DIGITAL_SIGNATURE, extendedKeyUsage(CLIENT_AUTH)),
    "svid_extended_key_usage_refused",
  ],
  [
    "X5S-4.4-2 anyExtendedKeyUsage is refused",
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
  ["X5S-2-1 an SVID minted with defaults is accepted", {}, "ok"],
  ["X5S-3.1-3 a minted SVID with a subject is accepted", { subject: "cart" }, "ok"],
  [
    "X5S-2-1 minted names without a URI are refused",
    { names: [{ type: "dns", value: "a" }] },
    "svid_uri_missing",
  ],
  [
    "X5S-2-2 two minted URIs are refused",
    {
      names: [
        { type: "url", value: ID },
        { type: "url", value: ID },
      ],
    },
    "svid_uri_repeated",
  ],
  ["X5S-5.2-1 a minted CA certificate is refused", { ca: true }, "svid_is_ca"],
  ["X5S-4.3-1 a minted leaf without key usage is refused", { keyUsage: null }, "svid_key_usage_missing"],
  [
    "X5S-4.3-3 minted keyEncipherment is refused",
    { keyUsage: KeyUsageFlags.keyEncipherment },
    "svid_may_not_sign",
  ],
  [
    "X5S-4.3-4 minted keyCertSign is refused",
    { keyUsage: KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign },
    "svid_signs_certificates",
  ],
  ["X5S-4.4-2 a minted leaf without extended usage is accepted", { extendedKeyUsage: null }, "ok"],
  [
    "X5S-4.4-2 minted serverAuth alone is refused",
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
  ["X5S-3.2-1 signers without an ID are accepted", [PLAIN, PLAIN], "ok"],
  ["X5S-3.2-1 the ID of the trust domain is accepted", [PLAIN, named(uri("spiffe://td.example"))], "ok"],
  ["X5S-3.2-1 signers with other names are accepted", [named(dns("ca.example"))], "ok"],
  [
    "X5S-3.2-1 an intermediate with a path is refused",
    [named(uri("spiffe://td.example/ca")), PLAIN],
    "svid_signer_id_with_path at 1",
  ],
  [
    "X5S-3.2-1 an anchor with a path is refused",
    [PLAIN, named(uri("spiffe://td.example/ca"))],
    "svid_signer_id_with_path at 2",
  ],
  [
    "X5S-3.2-2, SID-3.1-1 an intermediate of another trust domain is refused",
    [named(uri("spiffe://other.example")), PLAIN],
    "svid_signer_of_other_domain at 1",
  ],
  [
    "X5S-3.2-2 an anchor of another trust domain is refused",
    [PLAIN, named(uri("spiffe://other.example"))],
    "svid_signer_of_other_domain at 2",
  ],
  [
    "X5S-3.2-2 an intermediate of a subdomain is refused",
    [named(uri("spiffe://ca.td.example"))],
    "svid_signer_of_other_domain at 1",
  ],
  [
    "X5S-2-2 a signer with two URIs is refused",
    [named(uri("spiffe://td.example"), uri("spiffe://td.example"))],
    "svid_signer_uri_repeated at 1",
  ],
  [
    "X5S-2-1 a signer with a URI that is not a SPIFFE ID is refused",
    [named(uri("https://td.example"))],
    "svid_signer_id_malformed at 1",
  ],
  [
    "X5S-4.3-1 a signer whose key usage is not critical is refused",
    [PLAIN, certificate(build({ extensions: [basicConstraints(true), keyUsage("04", 2, false)] }))],
    "svid_signer_key_usage_not_critical at 2",
  ],
  [
    "X5S-4.3-1 a signer without key usage is refused",
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
