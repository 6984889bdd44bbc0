import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { CERTIFICATE_BYTES_MAX } from "../../src/limits/input.ts";
import { type ProxyForm, readForwarded, whyNotField } from "../../src/settings/proxy-forms.ts";

const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("base64url");
const A = Uint8Array.fromHex("30820a01fbff");
const B = Uint8Array.fromHex("3082020202");
const pem = (bytes: Uint8Array, lf = "\n"): string =>
  `-----BEGIN CERTIFICATE-----${lf}${bytes.toBase64()}${lf}-----END CERTIFICATE-----${lf}`;
const nginx = (bytes: Uint8Array): string => encodeURIComponent(pem(bytes));
const ENVOY: Record<string, string> = { "\n": "%0A", " ": "%20", "+": "%2B", "/": "%2F", "=": "%3D" };
const envoy = (...all: Uint8Array[]): string =>
  all
    .map((one) => pem(one))
    .join("")
    .replaceAll(/[\n +/=]/g, (sign) => ENVOY[sign] ?? "");
const hash = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const read = (form: ProxyForm, value?: string, chain?: string): unknown => {
  const got = readForwarded(form, [value, chain], sha256);
  if (!got.ok) return got.error.kind;
  return got.value && [got.value.leaf, ...got.value.chain].map((bytes) => bytes.toHex());
};
const ONE = [A.toHex()];
const TWO = [A.toHex(), B.toHex()];
const large = new Uint8Array(CERTIFICATE_BYTES_MAX + 1);
const raw = pem(A).replaceAll("\n", "\n\t").trimEnd();

const cases: readonly (readonly [string, ProxyForm, string, unknown])[] = [
  ["PXC-D-6 nginx's escaped PEM", "escaped-pem", nginx(A), ONE],
  ["PXC-D-6 CRLF", "escaped-pem", encodeURIComponent(pem(A, "\r\n")), ONE],
  ["PXC-D-6 no last line feed", "escaped-pem", nginx(A).replace(/%0A$/, ""), ONE],
  ["PXC-D-5 a plus in clear is a plus", "escaped-pem", nginx(A).replaceAll("%2B", "+"), ONE],
  ["PXC-D-5 encoded twice", "escaped-pem", encodeURIComponent(nginx(A)), "client_cert_malformed"],
  ["PXC-D-5 a half escape", "escaped-pem", nginx(A).replace("%0A", "%0"), "client_cert_malformed"],
  ["PXC-D-5 no hex digits", "escaped-pem", nginx(A).replace("%0A", "%zz"), "client_cert_malformed"],
  ["PXC-D-5 a NUL", "escaped-pem", `${nginx(A)}%00`, "client_cert_malformed"],
  ["PXC-D-5 beyond ASCII", "escaped-pem", `${nginx(A)}é`, "client_cert_malformed"],
  ["PXC-D-6 two blocks", "escaped-pem", nginx(A) + nginx(B), "client_cert_repeated"],
  ["PXC-D-4 two lines", "escaped-pem", `${nginx(A)}, ${nginx(A)}`, "client_cert_repeated"],
  ["PXC-D-6 text before", "escaped-pem", `%0A${nginx(A)}`, "client_cert_malformed"],
  ["PXC-D-6 text behind", "escaped-pem", `${nginx(A)}%0A`, "client_cert_malformed"],
  [
    "PXC-D-6 another label",
    "escaped-pem",
    nginx(A).replaceAll("CERTIFICATE", "PKCS7"),
    "client_cert_malformed",
  ],
  ["PXC-D-6 nginx's old variable", "escaped-pem", raw, "client_cert_form_differs"],
  ["PXC-D-7 a large certificate", "escaped-pem", nginx(large), "client_cert_too_large"],
  ["PXC-D-1 base64", "escaped-pem", A.toBase64().replace(/^..../, "MIIB"), "client_cert_form_differs"],
  ["PXC-D-11 (null)", "escaped-pem", "(null)", "client_cert_malformed"],
  ["PXC-D-11 NONE", "base64-list", "NONE", "client_cert_malformed"],
  ["PXC-D-11 a hyphen", "xfcc", "-", "client_cert_malformed"],
  [
    "PXC-D-8 Envoy's Cert, with a subject that has all signs",
    "xfcc",
    `By=spiffe://a.example/gw;Hash=${hash(A)};Cert="${envoy(A)}";Subject="CN=\\",\\\\;Cert=\\"x";URI=spiffe://a.example/w;DNS=a;DNS=b`,
    ONE,
  ],
  ["PXC-D-8 Envoy's Chain", "xfcc", `hash=${hash(A).toUpperCase()};CHAIN="${envoy(A, B)}"`, TWO],
  ["PXC-D-8 both", "xfcc", `Cert="${envoy(A)}";Chain="${envoy(A, B)}"`, TWO],
  [
    "PXC-D-8 both, that differ",
    "xfcc",
    `Cert="${envoy(A)}";Chain="${envoy(B, A)}"`,
    "client_cert_contradicts",
  ],
  ["PXC-D-8 another Hash", "xfcc", `Hash=${hash(B)};Cert="${envoy(A)}"`, "client_cert_contradicts"],
  ["PXC-D-8 a Hash that is none", "xfcc", `Hash=;Cert="${envoy(A)}"`, "client_cert_contradicts"],
  ["PXC-D-8 Hash and URI alone", "xfcc", `Hash=${hash(A)};URI=spiffe://a.example/w`, "client_cert_left_out"],
  ["PXC-D-8 Cert without quotes", "xfcc", `Cert=${envoy(A)}`, "client_cert_malformed"],
  ["PXC-D-8 Cert in other letters than quotes", "xfcc", `Cert=x${envoy(A)}x`, "client_cert_malformed"],
  ["PXC-D-6 two blocks in Cert", "xfcc", `Cert="${envoy(A, B)}"`, "client_cert_repeated"],
  ["PXC-D-4 a second element", "xfcc", `Cert="${envoy(B)}",Cert="${envoy(A)}"`, "client_cert_repeated"],
  ["PXC-D-4 a second line", "xfcc", `By=a;Cert="${envoy(B)}", Cert="${envoy(A)}"`, "client_cert_repeated"],
  ["PXC-D-4 a second Cert", "xfcc", `Cert="${envoy(B)}";cert="${envoy(A)}"`, "client_cert_repeated"],
  ["PXC-D-8 a quote that is not closed", "xfcc", `Cert="${envoy(A)}";Subject="CN=a`, "client_cert_malformed"],
  ["PXC-D-8 a stray quote", "xfcc", `Cert="${envoy(A)}";Subject="CN="a"`, "client_cert_malformed"],
  ["PXC-D-9 JSON", "xfcc", `[{"cert":"${envoy(A)}"}]`, "client_cert_form_differs"],
  ["PXC-D-10 Traefik's list", "base64-list", `${A.toBase64()},${B.toBase64()}`, TWO],
  ["PXC-D-10 HAProxy's base64", "base64-list", A.toBase64(), ONE],
  ["PXC-D-4 two lines of Traefik", "base64-list", `${A.toBase64()}, ${A.toBase64()}`, "client_cert_repeated"],
  ["PXC-D-10 no padding", "base64-list", B.toBase64().replace("=", ""), "client_cert_malformed"],
  [
    "PXC-D-10 the URL-safe alphabet",
    "base64-list",
    A.toBase64({ alphabet: "base64url" }),
    "client_cert_malformed",
  ],
  ["PXC-D-10 an escape", "base64-list", encodeURIComponent(A.toBase64()), "client_cert_malformed"],
  ["PXC-D-10 an empty member", "base64-list", `${A.toBase64()},`, "client_cert_malformed"],
  [
    "PXC-D-7 eleven certificates",
    "base64-list",
    Array(11).fill(A.toBase64()).join(","),
    "client_cert_chain_too_long",
  ],
  ["PXC-D-1 RFC 9440 in another form", "base64-list", `:${A.toBase64()}:`, "client_cert_form_differs"],
  ["PXC-D-1 a PEM in place of RFC 9440", "rfc9440", nginx(A), "client_cert_form_differs"],
];
for (const [name, form, value, expected] of cases) {
  test(`${name} in ${form}`, () => assert.deepEqual(read(form, value), expected));
}

test("PXC-D-11 no field, an empty one and colons alone are no certificate, and a chain without one is refused", () => {
  for (const form of ["rfc9440", "escaped-pem", "xfcc", "base64-list"] as const) {
    for (const value of [undefined, "", "::"]) assert.equal(read(form, value), undefined);
  }
  assert.equal(read("rfc9440", "::", `:${B.toBase64()}:`), "client_cert_missing");
});

test("PXC-D-1, PXC-D-3, PXC-D-4 a field with less than a certificate, with another meaning, of a balancer or of other characters is none", () => {
  const refused = [
    ["X-Forwarded-Tls-Client-Cert-Info", /less than a certificate/],
    ["X-SSL-Client-S-DN", /less than a certificate/],
    ["X-SSL-Client-CN", /less than a certificate/],
    ["X-Client-Cert-Fingerprint", /less than a certificate/],
    ["X-Amzn-Mtls-Clientcert", /no certificate of its own/],
    ["Authorization", /another meaning/],
    ["DPoP", /another meaning/],
    ["Content-Type", /another meaning/],
    ["ssl_client_cert", /letters, digits and hyphens/],
  ] as const;
  for (const [field, why] of refused) assert.match(whyNotField(field) ?? "", why, field);
  for (const field of ["Client-Cert", "X-Client-Cert", "ssl-client-cert"])
    assert.equal(whyNotField(field), undefined);
});
