import assert from "node:assert/strict";
import { test } from "node:test";
import { hasMediaType, readText } from "../../src/http/body.ts";

const texts = [
  ["RFC6749-B-2 UTF-8 is read", Buffer.from("grün €"), { ok: true, value: "grün €" }],
  ["RFC6749-B-2 a missing body is read as an empty one", undefined, { ok: true, value: "" }],
  ["RFC6749-B-2 a byte order mark is kept", Buffer.from("\ufeffa"), { ok: true, value: "\ufeffa" }],
  [
    "RFC6749-B-2 a truncated sequence is refused",
    Buffer.from([0x61, 0xc3]),
    { ok: false, error: { kind: "body_not_utf8" } },
  ],
  [
    "RFC6749-B-2 an overlong sequence is refused",
    Buffer.from([0xc0, 0xaf]),
    { ok: false, error: { kind: "body_not_utf8" } },
  ],
  [
    "PROD-8.4-2 a body at the limit is accepted",
    Buffer.from("a".repeat(16)),
    { ok: true, value: "a".repeat(16) },
  ],
  [
    "PROD-8.4-2 a body over the limit is refused",
    Buffer.from("a".repeat(17)),
    { ok: false, error: { kind: "body_too_large" } },
  ],
] as const;
for (const [name, bytes, want] of texts) {
  test(name, async () => {
    const body = bytes === undefined ? {} : { body: new Uint8Array(bytes) };
    const request = new Request("https://as.example/", { method: "POST", ...body });
    assert.deepEqual(await readText(request, 16), want);
  });
}

const JSON_TYPE = "application/json";
const types = [
  ["the type alone", JSON_TYPE, true],
  ["in other letters", "Application/JSON", true],
  ["with its charset", 'application/json\t; Charset="UTF-8"', true],
  ["with a parameter that means nothing", 'application/json; x="a;charset=latin1"', true],
  ["with another charset", "application/json;charset=latin1", false],
  ["with a charset that is no UTF-8 after quotes", 'application/json; x="a\\"";charset=latin1', false],
  ["with a byte that is no blank at its end", "application/json\xa0", false],
  ["two fields, as the platform joins them", "application/json; x=1, text/plain", false],
  ["another type", "application/jsonp", false],
  ["none", "", false],
] as const;
for (const [name, type, want] of types) {
  test(`PROD-4.2-3 a media type, ${name}: ${want ? "is accepted" : "is refused"}`, () => {
    const headers = { get: () => type };
    assert.equal(
      hasMediaType({ method: "POST", url: "", headers, bytes: () => new Uint8Array() }, JSON_TYPE),
      want,
    );
  });
}
