/** What people see where no page of ours was made: a wrong method, a fault, a deadline, a body that is too large. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { httpError } from "../../../src/http/answers.ts";
import { route } from "../../../src/http/router.ts";
import { dressPages } from "../../../src/people/http/page-answers.ts";
import { openRefresh } from "../../support/refresh.ts";

const FAULT = httpError({ status: 500, description: "a fault" });
const PAGES = [
  ...["/authorize", "/authorize/review", "/ask", "/signin", "/callback/company", "/signout", "/signed-out"],
  ...["/account", "/account/withdraw"],
];

test("HTTP-D-47, PAGE-D-3, PAGE-D-28 at each path of pages a refusal or fault is a page, in the language of the browser", async (t) => {
  const { ports } = await openRefresh(t);
  const dress = dressPages(ports);
  for (const path of PAGES) {
    const answer = dress({ path, acceptLanguage: "de", origin: null, requestId: "a request" }, FAULT);
    assert.equal(answer.status, 500);
    assert.equal(answer.headers["Content-Type"], "text/html; charset=utf-8");
    assert.match(String(answer.headers["Content-Security-Policy"]), /frame-ancestors 'none'/);
    assert.match(String(answer.body), /lang="de"/);
    assert.match(String(answer.body), /<a href="https:\/\/as\.example\/account">.*<code>a request<\/code>/);
    assert.doesNotMatch(String(answer.body), /a fault|server_error/);
    assert.equal(
      dress({ path, acceptLanguage: "de", origin: null, requestId: "a request" }, { ...FAULT, status: 502 })
        .body,
      answer.body,
    );
  }
});

test("RFC6749-5.2-1 at every other path it stays JSON, also where a path only begins like a page's", async (t) => {
  const { ports } = await openRefresh(t);
  const dress = dressPages(ports);
  for (const path of ["/token", "/par", "/register", "/accounts", "/rp/jwks", "/", ""]) {
    assert.equal(
      dress({ path, acceptLanguage: null, origin: null, requestId: "a request" }, FAULT),
      FAULT,
      path,
    );
  }
});

test("PROD-4.1-31 a page says with its 405 which methods there are, and with its 503 when to come again", async (t) => {
  const { ports } = await openRefresh(t);
  const dress = dressPages(ports);
  const handler = route({ "/signout": { POST: () => FAULT } }, dress);
  const request = {
    method: "GET",
    url: "https://as.example/signout",
    headers: new Headers(),
    text: async () => "",
  };
  const answer = await handler(request as never, { requestId: "a request" } as never);
  assert.equal(answer.status, 405);
  assert.equal(answer.headers.Allow, "POST");
  assert.match(String(answer.body), /<html lang="en"/);
  const busy = { status: 503, headers: { "Retry-After": "1" }, body: "" };
  assert.equal(
    dress({ path: "/account", acceptLanguage: null, origin: null, requestId: "a request" }, busy).headers[
      "Retry-After"
    ],
    "1",
  );
});
