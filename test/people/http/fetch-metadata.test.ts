/** What a browser says of where a request comes from. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isForeign } from "../../../src/people/http/fetch-metadata.ts";

const OWN = "https://as.example";

const cases = [
  ["GET", {}, false],
  ["GET", { "sec-fetch-dest": "document", "sec-fetch-site": "cross-site" }, false],
  ["GET", { "sec-fetch-dest": "document", "sec-fetch-site": "none" }, false],
  ["GET", { "sec-fetch-dest": "iframe", "sec-fetch-site": "same-origin" }, true],
  ["GET", { "sec-fetch-dest": "empty", "sec-fetch-site": "same-origin" }, true],
  ["GET", { "sec-fetch-dest": "image" }, true],
  ["GET", { "sec-fetch-dest": "script" }, true],
  ["GET", { "sec-fetch-dest": "" }, true],
  ["HEAD", { "sec-fetch-dest": "image" }, true],
  ["POST", {}, false],
  ["POST", { origin: OWN }, false],
  ["POST", { origin: "null" }, false],
  ["POST", { origin: "null", "sec-fetch-site": "same-origin" }, false],
  ["POST", { "sec-fetch-site": "same-origin" }, false],
  ["POST", { "sec-fetch-site": "same-site" }, true],
  ["POST", { "sec-fetch-site": "cross-site" }, true],
  ["POST", { "sec-fetch-site": "none" }, true],
  ["POST", { "sec-fetch-site": "" }, true],
  ["POST", { origin: OWN, "sec-fetch-site": "cross-site" }, true],
  ["POST", { origin: "https://evil.example" }, true],
  ["POST", { origin: "https://as.example.evil.example", "sec-fetch-site": "same-origin" }, true],
  ["POST", { origin: "http://as.example" }, true],
  ["POST", { origin: "" }, true],
] as const;
for (const [method, headers, want] of cases) {
  test(`FETCHMD-2-1 ${method} ${JSON.stringify(headers)} ${want ? "is refused" : "passes"}`, () =>
    assert.equal(isForeign({ method, headers: new Headers(headers) }, OWN), want));
}
