/** What the cookies of a browser are worth, and where. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browser, files, forPeople, request, verifierOf } from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import type { Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;
before(async () => {
  provider = await startProvider();
  service = await makeService(forPeople(provider), { files: files(provider), inFile: true });
});
after(() => stop(service, provider));

test("PAGE-D-14 a cookie has 256 bits, and the store has its digest alone", async () => {
  const browser = new Browser(service, provider);
  const page = await browser.review(request(verifierOf()));
  assert.equal(page.status, 200);
  assert.match(page.headers["set-cookie"] ?? "", /^__Host-mandate-b=.*Max-Age=600/);
  const stored = readdirSync(service.folder)
    .filter((name) => name.startsWith("mandate.sqlite"))
    .map((name) => readFileSync(join(service.folder, name), "latin1"))
    .join("");
  assert.deepEqual([...browser.cookies.keys()].sort(), ["__Host-mandate-b", "__Host-mandate-s"]);
  for (const [name, value] of browser.cookies) {
    assert.equal(Buffer.from(value, "base64url").length, 32);
    assert.ok(!stored.includes(value), name);
    // Of a browser in which no client left anything the store has nothing at all.
    const digest = createHash("sha256").update(value).digest("base64url");
    assert.equal(stored.includes(digest), name === "__Host-mandate-s", name);
  }
});

test("PAGE-D-14 a cookie is no credential of an interface for programs", async () => {
  const browser = new Browser(service, provider);
  await browser.review(request(verifierOf()));
  const calls = [
    ["GET", "/consents"],
    ["GET", "/audit/events"],
    ["POST", "/policy/explain"],
    ["POST", "/revocations"],
    ["POST", "/introspect"],
    ["POST", "/token"],
  ] as const;
  for (const [method, path] of calls) {
    const sent = method === "POST" ? await browser.post(path, { a: "b" }) : await browser.get(path);
    assert.ok(sent.status === 401 || sent.status === 400, `${path}: ${sent.status} ${sent.text}`);
  }
});
