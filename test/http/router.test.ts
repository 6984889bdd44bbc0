import assert from "node:assert/strict";
import https from "node:https";
import { test } from "node:test";
import type { HttpResponse } from "../../src/http/handler.ts";
import { route } from "../../src/http/router.ts";
import { serve } from "../../src/http/serve.ts";
import { createAuthority } from "../support/tls.ts";

const authority = await createAuthority();
const identity = await authority.issueServer();
const plain = (body: string): HttpResponse => ({ status: 200, headers: {}, body });
const handler = route({
  "/token": { POST: () => plain("token") },
  "/jwks": { GET: () => plain("keys") },
  "/things/*": { GET: ({ url }) => plain(new URL(url).pathname.slice(8)) },
  "/things/known": { PUT: () => plain("known") },
  "/register": { GET: () => plain("read"), PUT: () => plain("replaced") },
});

type Answer = {
  status: number | undefined;
  allow: string | undefined;
  type: string | undefined;
  body: string;
};

/** Sends the path unchanged. */
function ask(port: number, method: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", servername: "localhost", ca: authority.cert, agent: false };
    const request = https.request({ ...options, method, path }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text) => {
        body += text;
      });
      response.on("end", () => {
        const { allow, "content-type": type } = response.headers;
        resolve({ status: response.statusCode, allow, type, body });
      });
    });
    request.on("error", reject).end();
  });
}

const cases = [
  ["RFC6749-3.2-4 POST at the token endpoint is accepted", "POST", "/token", 200, "token"],
  ["RFC6749-3.2-4 GET at the token endpoint is refused", "GET", "/token", 405, "POST"],
  ["RFC6749-3.2-4 HEAD at the token endpoint is refused", "HEAD", "/token", 405, "POST"],
  ["PROD-4.1-31 OPTIONS at the token endpoint is refused", "OPTIONS", "/token", 405, "POST"],
  ["PROD-4.1-31 HEAD in Allow is listed if there is GET", "DELETE", "/register", 405, "GET, HEAD, PUT"],
  ["PROD-4.1-31 one of two methods is accepted", "PUT", "/register", 200, "replaced"],
  ["RFC6749-10.14-1 a path with a query is accepted", "GET", "/jwks?a=/token", 200, "keys"],
  ["RFC6749-10.14-1 HEAD is answered through GET", "HEAD", "/jwks", 200, ""],
  ["RFC6749-10.14-1 another path is answered with 404", "GET", "/other", 404],
  ["RFC6749-10.14-1 a trailing slash is answered with 404", "GET", "/jwks/", 404],
  ["RFC6749-10.14-1 a path in capitals is answered with 404", "GET", "/JWKS", 404],
  ["RFC6749-10.14-1 dot segments are not resolved", "GET", "/token/../jwks", 404],
  ["RFC6749-10.14-1 a single dot is not resolved", "GET", "/./jwks", 404],
  ["RFC6749-10.14-1 escaped dot segments are not resolved", "GET", "/token/%2e%2e/jwks", 404],
  ["RFC6749-10.14-1 a backslash is not treated as a slash", "GET", "/token\\..\\jwks", 404],
  ["RFC6749-10.14-1 percent escapes are not decoded", "POST", "/%74oken", 404],
  [
    "RFC6749-10.14-1 any last segment is accepted if the route ends in one",
    "GET",
    "/things/a-1?b=/c",
    200,
    "a-1",
  ],
  ["RFC6749-10.14-1 an empty last segment is answered with 404", "GET", "/things/", 404],
  ["RFC6749-10.14-1 a segment after the last is answered with 404", "GET", "/things/a/b", 404],
  ["RFC6749-10.14-1 a segment after another path is answered with 404", "GET", "/jwks/a", 404],
  ["PROD-4.1-31 another method at any last segment is refused", "POST", "/things/a", 405, "GET, HEAD"],
  ["PROD-4.1-31 the exact path is preferred", "PUT", "/things/known", 200, "known"],
  ["RFC6749-10.14-1 an inherited property is not treated as a path", "GET", "/constructor", 404],
] as const;

for (const [name, method, path, status, want] of cases) {
  test(name, async (t) => {
    const options = { host: "127.0.0.1", port: 0, origin: "https://as.example", log: () => undefined };
    const server = await serve({ ...options, key: identity.key, cert: identity.cert }, handler);
    t.after(() => server.shutdown());
    const answer = await ask(server.port, method, path);
    assert.equal(answer.status, status);
    if (status === 200) {
      assert.equal(answer.body, want);
      return;
    }
    assert.equal(answer.allow, want);
    assert.equal(answer.type, "application/json");
    if (method !== "HEAD") assert.equal(JSON.parse(answer.body).error, "invalid_request");
  });
}

test("RFC6749-10.14-1 an inherited property is not treated as a method", async () => {
  const request = new Request("https://as.example/jwks", { method: "constructor" });
  const deadline = new AbortController().signal;
  const answer = await handler(request, { address: "", requestId: "", certificates: [], deadline });
  assert.equal(answer.status, 405);
});
