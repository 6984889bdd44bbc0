/** What clients are told at their redirect URI. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DENIED, errorOf, SCOPE_DENIED, TOLD, type ToldReason } from "../../../src/people/flows/told.ts";

test("HTTP-D-42, RFC6749-4.1.2.1-3 every description is printable ASCII without quotation marks and backslashes", () => {
  const told = [...(Object.keys(TOLD) as ToldReason[]).map(errorOf), DENIED, SCOPE_DENIED];
  for (const { error, error_description } of told) {
    assert.match(error_description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/, error);
  }
});

test("RFC6749-4.1.2.1-2, PAGE-D-3 one text says that nothing was given, whether the user or the policy refused", () => {
  assert.deepEqual(DENIED, { error: "access_denied", error_description: "the request was not allowed" });
});
