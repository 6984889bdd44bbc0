/** What a page of another origin may read, by each row of the table: of all endpoints, within the service. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, type Sent, send } from "../../scripts/http-client.ts";
import { app, dressAnswers } from "../../src/app.ts";
import { serve } from "../../src/http/serve.ts";
import { StoreUnavailable } from "../../src/ports.ts";
import { files, forPeople, PUBLIC, SCOPES } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { makeService } from "../support/service.ts";
import { stop } from "../support/stop.ts";
import { createAuthority } from "../support/tls.ts";
import { ISSUER, type Service } from "../support/world.ts";

const LISTED = "https://app.example";
const ON_THIS_COMPUTER = "http://localhost:6274";
const OTHERS = ["https://evil.example", "https://app.example:8443", "https://APP.example", "null"];

let provider: TestProvider;
let service: Awaited<ReturnType<typeof makeService>>;
let closed: Service;
before(async () => {
  provider = await startProvider();
  const options = { files: files(provider) };
  const people = forPeople(provider, { registration: { mode: "open", open: { scopes: SCOPES } } });
  [service, closed] = await Promise.all([
    makeService({ ...people, cors: { origins: [LISTED, ON_THIS_COMPUTER] } }, options),
    makeService(people, options),
  ]);
});
after(() => stop(service, closed, provider));

/** The fields of CORS in an answer. */
const corsOf = ({ headers }: Answer): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("access-control-")));

const preflight = (path: string, origin: string, method: string, headers: string, from: Service = service) =>
  from.get(path, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": method,
      "access-control-request-headers": headers,
    },
  });

const PUBLIC_PATHS = [
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource/api",
  "/jwks",
];
for (const path of PUBLIC_PATHS) {
  test(`PAGE-D-20, RFC9700-2.6-4 every page may read ${path}, with the header of MCP clients`, async () => {
    const origin = "https://any.example";
    const asked = await preflight(path, origin, "GET", "mcp-protocol-version");
    assert.equal(asked.status, 204);
    assert.deepEqual(corsOf(asked), {
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET",
      "access-control-allow-headers": "mcp-protocol-version",
      "access-control-max-age": "600",
    });
    const read = await service.get(path, { headers: { origin, "mcp-protocol-version": "2026-07-28" } });
    assert.deepEqual([read.status, corsOf(read)], [200, { "access-control-allow-origin": "*" }]);
  });
}

const register = (metadata: object, origin?: string): Promise<Answer> =>
  service.get("/register", {
    method: "POST",
    headers: { "content-type": "application/json", ...(origin === undefined ? {} : { origin }) },
    body: JSON.stringify({ redirect_uris: ["https://app.example/cb"], ...metadata }),
  });

test("RFC10017-6.3-3, RFC6749-10.1-1 a page that registers itself gets no secret, and one that asks for it is refused", async () => {
  const { status, body } = await register({}, LISTED);
  assert.deepEqual([status, body.token_endpoint_auth_method, body.client_secret], [201, "none", undefined]);
  for (const method of ["client_secret_basic", "client_secret_post"]) {
    const refused = await register({ token_endpoint_auth_method: method }, LISTED);
    assert.deepEqual([refused.status, refused.body.error], [400, "invalid_client_metadata"], method);
  }
  const machine = { redirect_uris: [], grant_types: ["client_credentials"] };
  assert.equal((await register(machine, LISTED)).body.error, "invalid_client_metadata");
  assert.equal((await register(machine)).status, 201);
  // What no browser sends is a site's own server.
  const site = await register({});
  assert.deepEqual(
    [site.body.token_endpoint_auth_method, typeof site.body.client_secret],
    ["client_secret_basic", "string"],
  );
});

const FOR_CLIENTS = ["/token", "/par", "/register", "/revoke"];
const post = (path: string, origin: string, from: Service = service): Promise<Answer> =>
  from.get(path, {
    method: "POST",
    headers: { origin, "content-type": "application/x-www-form-urlencoded" },
    body: `client_id=${PUBLIC}`,
  });

for (const path of FOR_CLIENTS) {
  test(`PAGE-D-21, RFC7009-2.3-1 the pages of listed origins may use ${path}`, async () => {
    for (const origin of [LISTED, ON_THIS_COMPUTER]) {
      const asked = await preflight(path, origin, "POST", "authorization,content-type,dpop");
      assert.deepEqual([asked.status, asked.headers.vary], [204, "Origin"]);
      assert.deepEqual(corsOf(asked), {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "POST",
        "access-control-allow-headers": "authorization, content-type, dpop",
        "access-control-max-age": "600",
      });
      const answer = await post(path, origin);
      assert.equal(answer.headers.vary, "Origin");
      assert.deepEqual(corsOf(answer), {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": "DPoP-Nonce, WWW-Authenticate, Retry-After",
      });
    }
  });

  test(`PAGE-D-21 the pages of other origins may not use ${path}, and caches keep the answers apart`, async () => {
    for (const origin of OTHERS) {
      const asked = await preflight(path, origin, "POST", "content-type");
      assert.deepEqual([asked.status, asked.headers.allow, corsOf(asked)], [405, "POST", {}], origin);
      const answer = await post(path, origin);
      assert.deepEqual([answer.headers.vary, corsOf(answer)], ["Origin", {}], origin);
    }
  });

  test(`PAGE-D-21, RFC10017-6.1-1 without a list no page may use ${path}`, async () => {
    const asked = await preflight(path, LISTED, "POST", "content-type", closed);
    const answer = await post(path, LISTED, closed);
    assert.deepEqual([asked.status, corsOf(asked)], [405, {}]);
    assert.deepEqual([answer.headers.vary, corsOf(answer)], [undefined, {}]);
  });
}

const FAULTS: [status: number, what: string, sent: Partial<Sent>, fault?: Error][] = [
  [503, "a lost store", {}, new StoreUnavailable("it is away")],
  [500, "a fault", {}, new Error("a bug")],
  [413, "a body that is too large", { body: "x".repeat(70_000) }],
  [415, "a content coding", { headers: { "content-encoding": "gzip" } }],
  [405, "another method", { method: "PUT" }],
];
for (const [status, what, sent, fault] of FAULTS) {
  test(`PAGE-D-21 the page of a listed origin, and no other one, reads that ${what} was answered with ${status}`, async (t) => {
    const clients = { find: async () => (fault === undefined ? undefined : Promise.reject(fault)) };
    const ports = { ...service.ports, clients };
    const authority = await createAuthority();
    const identity = await authority.issueServer();
    const at = { host: "127.0.0.1", port: 0, key: identity.key, cert: identity.cert, origin: ISSUER };
    const { people } = service;
    const dress = dressAnswers(ports, people);
    const server = await serve({ ...at, log: () => {}, dress }, app(ports, people));
    t.after(() => server.shutdown());
    const connect = { host: "127.0.0.1", port: server.port };
    for (const [origin, reader] of [
      [LISTED, LISTED],
      [OTHERS[0] ?? "", undefined],
    ] as const) {
      const answer = await send("https://localhost/token", {
        method: "POST",
        body: `grant_type=client_credentials&client_id=someone&client_secret=${"s".repeat(40)}`,
        ...sent,
        ca: authority.cert,
        connect,
        headers: { origin, "content-type": "application/x-www-form-urlencoded", ...sent.headers },
      });
      assert.equal(answer.status, status, answer.text);
      const read = [answer.headers["access-control-allow-origin"], answer.headers.vary];
      assert.deepEqual(read, [reader, "Origin"]);
      assert.equal("access-control-expose-headers" in answer.headers, reader !== undefined);
    }
  });
}

const NEVER: [string, string][] = [
  ...[
    "/authorize",
    "/authorize/review",
    "/ask",
    "/signin",
    "/callback/company",
    "/account",
    "/signed-out",
  ].map((path): [string, string] => ["GET", path]),
  ...[
    "/introspect",
    "/policy/explain",
    "/revocations",
    "/authorize/review",
    "/ask",
    "/account/withdraw",
    "/backchannel-logout/company",
    "/signout",
  ].map((path): [string, string] => ["POST", path]),
  ["GET", "/audit/events"],
  ["GET", "/consents"],
  ["GET", "/rp/jwks/company"],
  ["GET", "/register/some-client"],
];
for (const [method, path] of NEVER) {
  test(`PAGE-D-22, RFC9700-2.6-7 no page of another origin may read ${method} ${path}, listed or not`, async () => {
    for (const origin of [LISTED, ...OTHERS]) {
      const asked = await preflight(path, origin, method, "content-type, authorization");
      const answer = await service.get(path, { method, headers: { origin } });
      assert.deepEqual([asked.status, corsOf(asked), corsOf(answer)], [405, {}, {}], origin);
    }
  });
}
