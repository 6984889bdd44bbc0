/** The logo of the operator: on every page of people, served by this server to its own pages alone. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, files, forPeople } from "../../support/people.ts";
import { png } from "../../support/png.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import type { Service } from "../../support/world.ts";

const LOGO = png(120, 40);
const OPERATOR = `Example & "Sons"`;
const HTML = { accept: "text/html" };
const WITH = { pages: { operator: OPERATOR, logo: { file: "logo.png" } } };

let provider: TestProvider;
let service: Service;
let plain: Service;
before(async () => {
  provider = await startProvider();
  const base = forPeople(provider);
  service = await makeService({ ...base, ...WITH }, { files: { ...files(provider), "logo.png": LOGO } });
  plain = await makeService(base, { files: files(provider) });
});
after(() => stop(service, plain, provider));

const pathIn = (text: string): string => /<header><p><img src="([^"]+)"/.exec(text)?.[1] ?? "";
const policyOf = (headers: Record<string, unknown>): string => String(headers["content-security-policy"]);

test("PAGE-D-41 each page has the logo with the operator's name as its alternative text, and lets a browser show it", async () => {
  for (const path of ["/", "/authorize", "/account", "/ask?r=unknown", "/signed-out", "/no/such"]) {
    let answer = await new Browser(service, provider).get(path, HTML);
    if (answer.status === 303) answer = await new Browser(service, provider).get("/", HTML);
    assert.match(
      answer.text,
      /<header><p><img src="\/logo\/[\w-]{43}" alt="Example &#38; &#34;Sons&#34;"><\/p>/,
      path,
    );
    assert.match(
      policyOf(answer.headers),
      /^default-src 'none'; style-src 'sha256-[^;]*; img-src 'self'; /,
      path,
    );
  }
});

test("PAGE-D-41 the logo is served byte for byte as PNG and as nothing else, to be kept, and to this origin alone", async () => {
  const path = pathIn((await new Browser(service, provider).get("/", HTML)).text);
  const { status, headers, text } = await service.get(path);
  assert.equal(status, 200);
  assert.equal(text, LOGO.toHex());
  assert.deepEqual(
    [headers["content-type"], headers["x-content-type-options"], headers["cross-origin-resource-policy"]],
    ["image/png", "nosniff", "same-origin"],
  );
  assert.equal(headers["cache-control"], "public, max-age=86400, immutable");
  // As a document of its own it runs and loads nothing, and stands in no frame.
  assert.equal(policyOf(headers), "default-src 'none'; frame-ancestors 'none'");
  assert.equal(headers["set-cookie"], undefined);
});

test("PAGE-D-41 there is nothing at any other path of logos, and nothing where none is configured", async () => {
  const path = pathIn((await new Browser(service, provider).get("/", HTML)).text);
  for (const other of [`${path}x`, "/logo/", "/logo/logo.png", "/logo"]) {
    assert.equal((await service.get(other)).status, 404, other);
  }
  assert.equal((await plain.get(path)).status, 404);
  const page = await new Browser(plain, provider).get("/", HTML);
  assert.doesNotMatch(page.text, /<img/);
  assert.doesNotMatch(policyOf(page.headers), /img-src/);
});
