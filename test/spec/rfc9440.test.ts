import assert from "node:assert/strict";
import { test } from "node:test";
import { CERTIFICATE_BYTES_MAX } from "../../src/limits/input.ts";
import { parseCertificate } from "../../src/spec/rfc5280.ts";
import { type ClientCertFields, parseClientCert } from "../../src/spec/rfc9440.ts";
import { build, hex } from "../fixtures/x509/build.ts";
import { mutate, prng } from "../support/prng.ts";

const field = (bytes: Uint8Array): string => `:${bytes.toBase64()}:`;
const A = field(hex("01"));
const B = field(hex("0202"));
const C = field(hex("030303"));

const read = (clientCert: string[], chain: string[] = []): unknown => {
  const lines = (all: string[]) => (all.length === 0 ? undefined : all.join(", "));
  const fields: ClientCertFields = { clientCert: lines(clientCert), chain: lines(chain) };
  const got = parseClientCert(fields);
  if (!got.ok) return got.error.kind;
  return got.value && [got.value.leaf.toHex(), ...got.value.chain.map((bytes) => bytes.toHex())];
};

const large = (length: number) => field(new Uint8Array(length).fill(7));

const cases: readonly (readonly [string, string[], string[], unknown])[] = [
  ["RFC9440-2.4-3 an absent field is treated as no certificate", [], [], undefined],
  ["RFC9440-2.2-1 one certificate is accepted", [A], [], ["01"]],
  ["RFC9440-2.3-1 a certificate without a chain is accepted", [B], [], ["0202"]],
  ["RFC9440-2.2-3 two field lines are refused", [A, A], [], "client_cert_repeated"],
  ["RFC9440-2.2-3 a list is refused", [`${A}, ${B}`], [], "client_cert_repeated"],
  ["RFC9440-2.2-3 a list of one with a trailing comma is refused", [`${A},`], [], "client_cert_repeated"],
  ["RFC9440-2.2-3 a list in another form is told as malformed", ["MIIB,MIIC"], [], "client_cert_malformed"],
  ["RFC9440-2.3-4 a chain alone is refused", [], [A], "client_cert_missing"],
  ["RFC9440-2.3-4 an empty chain alone is refused", [], [""], "client_cert_missing"],
  ["RFC9440-2.3-3, RFC9440-2.3-5 the order is kept", [A], [`${C}, ${B}`], ["01", "030303", "0202"]],
  ["RFC9440-2.3-7 field lines are joined", [A], [C, B], ["01", "030303", "0202"]],
  ["RFC9440-2.3-7 lists are joined", [A], [`${C},${B}`, B], ["01", "030303", "0202", "0202"]],
  [
    "RFC9440-2.3-2 blanks and tabs around commas are accepted",
    [A],
    [` ${C} \t,\t ${B} `],
    ["01", "030303", "0202"],
  ],
  ["RFC9440-2.3-2 an empty list is accepted", [A], [""], ["01"]],
  ["RFC9440-2.3-2 a trailing comma is refused", [A], [`${B},`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 a leading comma is refused", [A], [`,${B}`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 an empty line among others is refused", [A], [B, "", C], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 a token is refused", [A], ["abc"], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 a string is refused", [A], [`"${B}"`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 an inner list is refused", [A], [`(${B} ${C})`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 parameters are refused", [A], [`${B};a=1`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 missing commas are refused", [A], [`${B} ${C}`], "client_cert_chain_malformed"],
  [
    "RFC9440-2.3-2 a chain of nine is accepted",
    [A],
    [Array(9).fill(B).join()],
    ["01", ...Array(9).fill("0202")],
  ],
  ["RFC9440-2.3-2 a chain of ten is refused", [A], [Array(10).fill(B).join()], "client_cert_chain_too_long"],
  [
    "RFC9440-2.3-2 a chain of ten field lines is refused",
    [A],
    Array(10).fill(B),
    "client_cert_chain_too_long",
  ],
  ["RFC9440-2.1-1 surrounding blanks are accepted", [` ${A} `], [], ["01"]],
  ["RFC9440-2.1-1 a leading tab is refused", [`\t${A}`], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 parameters are refused", [`${A};a=1`], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 an empty field is refused", [""], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 a colon is refused", [":"], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 an empty byte sequence is refused", ["::"], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 base64 without colons is refused", ["AQ=="], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 one colon is refused", [":AQ=="], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 PEM is refused", ["-----BEGIN CERTIFICATE-----"], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 percent-encoding is refused", [":AQ%3D%3D:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 + and / are accepted", [":+/+/:"], [], ["fbffbf"]],
  ["RFC8941-4.2.7-1 the URL alphabet is refused", [":-_-_:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 a line feed is refused", [":AQID\nAQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 a trailing line feed is refused", [":AQID\n:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 a blank inside is refused", [":AQID AQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 a colon inside is refused", [":AQID:AQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 padding in the middle is refused", [":AQ==AQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 padding alone is refused", [":=:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 incomplete padding is refused", [":AQ=:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 superfluous padding is refused", [":AQID=:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 a leftover character is refused", [":AQIDA:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-2 missing padding is accepted", [":AQ:"], [], ["01"]],
  ["RFC8941-4.2.7-2 non-zero pad bits are accepted", [":AR==:"], [], ["01"]],
  [
    "RFC8941-3.3.5-1 16384 bytes are accepted",
    [large(CERTIFICATE_BYTES_MAX)],
    [],
    ["07".repeat(CERTIFICATE_BYTES_MAX)],
  ],
  [
    "RFC8941-3.3.5-1 a larger certificate is refused",
    [large(CERTIFICATE_BYTES_MAX + 1)],
    [],
    "client_cert_too_large",
  ],
  [
    "RFC8941-3.3.5-1 a larger certificate in the chain is refused",
    [A],
    [large(CERTIFICATE_BYTES_MAX + 1)],
    "client_cert_too_large",
  ],
];

for (const [name, clientCert, chain, want] of cases) {
  test(name, () => assert.deepEqual(read(clientCert, chain), want));
}

test("RFC9440-2.1-1 the bytes are exactly one certificate", () => {
  const certificate = build();
  const got = parseClientCert({ clientCert: field(certificate), chain: undefined });
  assert(got.ok && got.value);
  assert.ok(parseCertificate(got.value.leaf).ok);
  const longer = parseClientCert({ clientCert: field(hex(`${certificate.toHex()}00`)), chain: undefined });
  assert(longer.ok && longer.value);
  assert.ok(!parseCertificate(longer.value.leaf).ok);
});

test("RFC8941-4.2.7-1 parsing random text never throws", () => {
  const random = prng(9440);
  const alphabet = [":", "=", ",", " ", "\t", "\n", "A", "/", "+", "-", ";", '"', "ü", "\0"];
  let accepted = 0;
  for (let round = 0; round < 5000; round++) {
    const got = parseClientCert({
      clientCert: mutate(random, ":AQIDBA==:", alphabet),
      chain: mutate(random, ":AQID:, :AQI=:", alphabet),
    });
    if (got.ok) accepted++;
  }
  assert.ok(accepted > 10 && accepted < 2500, `${accepted}`);
});
