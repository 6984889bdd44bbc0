import assert from "node:assert/strict";
import { test } from "node:test";
import { parseForm } from "../../src/spec/rfc6749.ts";
import { parseTokenForm } from "../../src/spec/rfc7009.ts";

const cases = [
  ["RFC7009-2.1-2, RFC7662-2.1-2 a token is accepted", "token=abc", "abc"],
  ["RFC7009-2.1-3, RFC7009-2.2-3, RFC7662-2.1-5 the hint is ignored", "token=abc&token_type_hint=x", "abc"],
  [
    "RFC7009-2.1-2, RFC7662-2.1-2 a form without a token is refused",
    "token_type_hint=access_token",
    "token_missing",
  ],
  ["RFC7009-2.1-2, RFC6749-3.2-5 a token without a value is refused", "token=", "token_missing"],
] as const;

for (const [name, body, want] of cases) {
  test(name, () => {
    const form = parseForm(body);
    assert.ok(form.ok);
    const got = parseTokenForm(form.value);
    assert.equal(got.ok ? got.value : got.error.kind, want);
  });
}

test("RFC6749-3.2-7 a second token or a second hint is refused", () => {
  for (const body of ["token=a&token=b", "token=a&token_type_hint=x&token_type_hint=x"]) {
    assert.equal(parseForm(body).ok, false, body);
  }
});
