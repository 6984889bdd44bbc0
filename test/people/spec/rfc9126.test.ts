import assert from "node:assert/strict";
import { test } from "node:test";
import { buildPushedAnswer, checkPushed, parseRequestUri } from "../../../src/people/spec/rfc9126.ts";

const REFERENCE = "Jq5m0k2v8yQ1rWn4Tz7sXb";

test("RFC9126-2.2-1, RFC9126-2.2-3 the reference of an answer is found in its request URI", () => {
  const { request_uri, expires_in } = buildPushedAnswer(REFERENCE, 60);
  assert.equal(request_uri, `urn:ietf:params:oauth:request_uri:${REFERENCE}`);
  assert.equal(expires_in, 60);
  assert.equal(parseRequestUri(request_uri), REFERENCE);
});

for (const foreign of [
  "https://client.example/request.jwt",
  `URN:ietf:params:oauth:request_uri:${REFERENCE}`,
  "urn:ietf:params:oauth:request_uri:",
  `urn:ietf:params:oauth:request_uri:${REFERENCE}=`,
  `urn:ietf:params:oauth:request_uri:${REFERENCE.slice(1)}/`,
]) {
  test(`RFC9126-2.2-3 ${foreign} is no request URI of ours`, () => {
    assert.equal(parseRequestUri(foreign), undefined);
  });
}

test("RFC9126-2.1-1 a pushed request refers to no other request", () => {
  const kind = (form: object) => {
    const checked = checkPushed({ resource: [], ...form });
    return checked.ok ? "ok" : checked.error.kind;
  };
  assert.equal(kind({}), "ok");
  assert.equal(kind({ request_uri: "urn:a" }), "request_uri_pushed");
});
