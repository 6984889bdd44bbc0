import assert from "node:assert/strict";
import { test } from "node:test";
import { buildRedirect } from "../../../src/people/spec/rfc9207.ts";

const ISSUER = "https://as.example";

test("RFC9207-2-1, RFC9207-2-2, RFC9700-4.4.2-1, MCPC-D-16 iss is in a response with a code and in one with an error", () => {
  const code = buildRedirect("https://app.example/cb", ISSUER, { code: "9f1c", state: "k2" });
  assert.equal(code, "https://app.example/cb?code=9f1c&state=k2&iss=https%3A%2F%2Fas.example");
  const error = buildRedirect("https://app.example/cb", ISSUER, {
    error: "access_denied",
    error_description: "not allowed",
  });
  const want = "error=access_denied&error_description=not%20allowed&iss=https%3A%2F%2Fas.example";
  assert.equal(error, `https://app.example/cb?${want}`);
});

const kept = [
  ["https://app.example/cb?tenant=%7E1", "https://app.example/cb?tenant=%7E1&code=c&"],
  ["https://app.example/cb?", "https://app.example/cb?code=c&"],
  ["https://app.example/cb?a=b&", "https://app.example/cb?a=b&code=c&"],
  ["http://127.0.0.1:33418/", "http://127.0.0.1:33418/?code=c&"],
  ["com.example.app:/cb", "com.example.app:/cb?code=c&"],
] as const;
for (const [uri, want] of kept) {
  test(`RFC6749-3.1.2-1, RFC6749-3.1-2, PAGE-D-12 parameters are appended to ${uri} as it stands`, () => {
    assert.ok(buildRedirect(uri, ISSUER, { code: "c" }).startsWith(want));
  });
}

test("RFC6749-4.1.2-6, MCPC-D-15 a state of any characters comes back the same", () => {
  const state = 'a/b+c==&code=forged#" \u{1F511}é';
  const url = new URL(buildRedirect("https://app.example/cb", ISSUER, { code: "c", state }));
  assert.equal(url.searchParams.get("state"), state);
  assert.deepEqual(url.searchParams.getAll("code"), ["c"]);
  assert.equal(url.hash, "");
});
