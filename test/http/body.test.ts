import assert from "node:assert/strict";
import { test } from "node:test";
import { readText } from "../../src/http/body.ts";

const texts = [
  ["RFC6749-B-2 reads UTF-8", Buffer.from("grün €"), { ok: true, value: "grün €" }],
  ["RFC6749-B-2 reads a missing body as an empty one", undefined, { ok: true, value: "" }],
  ["RFC6749-B-2 keeps a byte order mark", Buffer.from("\ufeffa"), { ok: true, value: "\ufeffa" }],
  [
    "RFC6749-B-2 refuses a truncated sequence",
    Buffer.from([0x61, 0xc3]),
    { ok: false, error: { kind: "body_not_utf8" } },
  ],
  [
    "RFC6749-B-2 refuses an overlong sequence",
    Buffer.from([0xc0, 0xaf]),
    { ok: false, error: { kind: "body_not_utf8" } },
  ],
  [
    "PROD-8.4-2 accepts a body at the limit",
    Buffer.from("a".repeat(16)),
    { ok: true, value: "a".repeat(16) },
  ],
  [
    "PROD-8.4-2 refuses a body over the limit",
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
