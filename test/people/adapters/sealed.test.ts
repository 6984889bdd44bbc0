import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { makeWaiting } from "../../../src/people/adapters/sealed.ts";
import type { PendingRequest } from "../../../src/people/records.ts";

test("PAGE-D-4 what waits in a browser opens for that browser, as what it is, until it expires, on every instance", () => {
  const [older, newer, other] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const pushed = { id: "1", expiresAtSeconds: 100 } as PendingRequest;
  const sealed = makeWaiting([older]).seal("request", "browser", pushed);
  const open = (
    keys: Parameters<typeof makeWaiting>[0],
    ...asked: ["request" | "pushed", string, number]
  ) => {
    const [kind, holder, nowSeconds] = asked;
    return makeWaiting(keys).open(kind, holder, sealed, nowSeconds);
  };
  assert.deepEqual(open([older], "request", "browser", 99), pushed);
  // While one key-encryption key replaces the other, whichever comes first.
  assert.deepEqual(open([newer, older], "request", "browser", 99), pushed);
  assert.equal(open([older], "request", "browser", 100), undefined);
  assert.equal(open([older], "request", "another", 99), undefined);
  assert.equal(open([older], "pushed", "browser", 99), undefined);
  assert.equal(open([other], "request", "browser", 99), undefined);
  assert.notEqual(makeWaiting([older]).seal("request", "browser", pushed), sealed);
});
