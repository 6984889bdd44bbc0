import assert from "node:assert/strict";
import { test } from "node:test";
import { CERTIFICATE_BYTES_MAX } from "../../src/limits/input.ts";
import { parseCertificate } from "../../src/spec/rfc5280.ts";
import type { ClientCertFields } from "../../src/spec/rfc9440.ts";
import { parseClientCert } from "../../src/spec/rfc9440.ts";
import { build, hex } from "../fixtures/x509/build.ts";
import { mutate, prng } from "../support/prng.ts";

const field = (bytes: Uint8Array): string => `:${bytes.toBase64()}:`;
const A = field(hex("01"));
const B = field(hex("0202"));
const C = field(hex("030303"));

const read = (clientCert: string[], chain: string[] = []): unknown => {
  const fields: ClientCertFields = { clientCert, chain };
  const got = parseClientCert(fields);
  if (!got.ok) return got.error.kind;
  return got.value && [got.value.leaf.toHex(), ...got.value.chain.map((bytes) => bytes.toHex())];
};

const large = (length: number) => field(new Uint8Array(length).fill(7));

const cases: readonly (readonly [string, string[], string[], unknown])[] = [
  ["RFC9440-2.4-3 treats an absent field as no certificate", [], [], undefined],
  ["RFC9440-2.2-1 accepts one certificate", [A], [], ["01"]],
  ["RFC9440-2.3-1 accepts a certificate without a chain", [B], [], ["0202"]],
  ["RFC9440-2.2-3 refuses two field lines", [A, A], [], "client_cert_repeated"],
  ["RFC9440-2.2-3 refuses a list", [`${A}, ${B}`], [], "client_cert_malformed"],
  ["RFC9440-2.2-3 refuses a list of one with a trailing comma", [`${A},`], [], "client_cert_malformed"],
  ["RFC9440-2.3-4 refuses a chain alone", [], [A], "client_cert_missing"],
  ["RFC9440-2.3-4 refuses an empty chain alone", [], [""], "client_cert_missing"],
  ["RFC9440-2.3-3, RFC9440-2.3-5 keeps the order", [A], [`${C}, ${B}`], ["01", "030303", "0202"]],
  ["RFC9440-2.3-7 joins field lines", [A], [C, B], ["01", "030303", "0202"]],
  ["RFC9440-2.3-7 joins lists", [A], [`${C},${B}`, B], ["01", "030303", "0202", "0202"]],
  [
    "RFC9440-2.3-2 accepts blanks and tabs around commas",
    [A],
    [` ${C} \t,\t ${B} `],
    ["01", "030303", "0202"],
  ],
  ["RFC9440-2.3-2 accepts an empty list", [A], [""], ["01"]],
  ["RFC9440-2.3-2 refuses a trailing comma", [A], [`${B},`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses a leading comma", [A], [`,${B}`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses an empty line among others", [A], [B, "", C], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses a token", [A], ["abc"], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses a string", [A], [`"${B}"`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses an inner list", [A], [`(${B} ${C})`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses parameters", [A], [`${B};a=1`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 refuses missing commas", [A], [`${B} ${C}`], "client_cert_chain_malformed"],
  ["RFC9440-2.3-2 accepts a chain of nine", [A], [Array(9).fill(B).join()], ["01", ...Array(9).fill("0202")]],
  ["RFC9440-2.3-2 refuses a chain of ten", [A], [Array(10).fill(B).join()], "client_cert_chain_too_long"],
  ["RFC9440-2.3-2 refuses a chain of ten field lines", [A], Array(10).fill(B), "client_cert_chain_too_long"],
  ["RFC9440-2.1-1 accepts surrounding blanks", [` ${A} `], [], ["01"]],
  ["RFC9440-2.1-1 refuses a leading tab", [`\t${A}`], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses parameters", [`${A};a=1`], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses an empty field", [""], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses a colon", [":"], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses an empty byte sequence", ["::"], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses base64 without colons", ["AQ=="], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses one colon", [":AQ=="], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses PEM", ["-----BEGIN CERTIFICATE-----"], [], "client_cert_malformed"],
  ["RFC9440-2.1-1 refuses percent-encoding", [":AQ%3D%3D:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 accepts + and /", [":+/+/:"], [], ["fbffbf"]],
  ["RFC8941-4.2.7-1 refuses the URL alphabet", [":-_-_:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses a line feed", [":AQID\nAQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses a trailing line feed", [":AQID\n:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses a blank inside", [":AQID AQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses a colon inside", [":AQID:AQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses padding in the middle", [":AQ==AQID:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses padding alone", [":=:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses incomplete padding", [":AQ=:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses superfluous padding", [":AQID=:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-1 refuses a leftover character", [":AQIDA:"], [], "client_cert_malformed"],
  ["RFC8941-4.2.7-2 accepts missing padding", [":AQ:"], [], ["01"]],
  ["RFC8941-4.2.7-2 accepts non-zero pad bits", [":AR==:"], [], ["01"]],
  [
    "RFC8941-3.3.5-1 accepts 16384 bytes",
    [large(CERTIFICATE_BYTES_MAX)],
    [],
    ["07".repeat(CERTIFICATE_BYTES_MAX)],
  ],
  [
    "RFC8941-3.3.5-1 refuses a larger certificate",
    [large(CERTIFICATE_BYTES_MAX + 1)],
    [],
    "client_cert_too_large",
  ],
  [
    "RFC8941-3.3.5-1 refuses a larger certificate in the chain",
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
  const got = parseClientCert({ clientCert: [field(certificate)], chain: [] });
  assert(got.ok && got.value);
  assert.ok(parseCertificate(got.value.leaf).ok);
  const longer = parseClientCert({ clientCert: [field(hex(`${certificate.toHex()}00`))], chain: [] });
  assert(longer.ok && longer.value);
  assert.ok(!parseCertificate(longer.value.leaf).ok);
});

test("RFC8941-4.2.7-1 parsing random text never throws", () => {
  const random = prng(9440);
  const alphabet = [":", "=", ",", " ", "\t", "\n", "A", "/", "+", "-", ";", '"', "ü", "\0"];
  let accepted = 0;
  for (let round = 0; round < 5000; round++) {
    const got = parseClientCert({
      clientCert: [mutate(random, ":AQIDBA==:", alphabet)],
      chain: [mutate(random, ":AQID:, :AQI=:", alphabet)],
    });
    if (got.ok) accepted++;
  }
  assert.ok(accepted > 10 && accepted < 2500, `${accepted}`);
});
