/** The description of the endpoints, beside the endpoints themselves. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic, encodeForm, type Sent } from "../../scripts/http-client.ts";
import { routesOf } from "../../src/app.ts";
import type { Ports } from "../../src/ports.ts";
import { OPERATIONS, operationOf, undescribed } from "../support/described.ts";
import { stop } from "../support/stop.ts";
import { ISSUER, makeWorld, type World } from "../support/world.ts";

const API = `${ISSUER}/api`;
const SECRET = "s".repeat(43);
const SCOPES = [
  "audit:read",
  "client:manage",
  "consent:manage",
  "job:manage",
  "policy:explain",
  "receipt:read",
  "token:revoke",
];

let world: World;
before(async () => {
  world = await makeWorld({
    clients: { admin: { method: "client_secret_basic", secrets: [SECRET] } },
    registration: { mode: "open", open: { scopes: ["trips.read"] } },
    policies: [
      { id: "admin", allow: "client_credentials", clients: ["admin"], targets: [API], scopes: SCOPES },
    ],
  });
});
after(() => stop(world));

/** Only for its paths: no handler is called. */
const table = (issuer: string) =>
  routesOf({ settings: () => ({ issuer }) } as unknown as Ports, () => undefined);

test("HTTP-D-68 each endpoint of the table is described, and each that is described is in the table", () => {
  const served = Object.entries(table(ISSUER)).flatMap(([path, methods]) =>
    // A final slash is another spelling of the same document.
    Object.keys(methods).map((method) => `${method} ${path === "/" ? path : path.replace(/\/$/, "")}`),
  );
  const described = OPERATIONS.map((operation) => operation.replace(/\{\w+\}$/, "*"));
  assert.deepEqual([...new Set(served)].sort(), [...described].sort());
});

test("HTTP-D-68 an issuer with a path has each of its documents described at the path where it is served", async (t) => {
  const tenant = await makeWorld({ issuer: `${ISSUER}/tenant` });
  t.after(() => tenant.stop());
  const { body } = await tenant.get("/tenant/openapi.json");
  const paths = Object.keys(Object(body.paths)).map((path) =>
    path.startsWith("/.well-known/") ? path : `/tenant${path === "/" ? "" : path}`,
  );
  const served = Object.keys(table(`${ISSUER}/tenant`));
  const unserved = paths.filter((path) => !served.includes(path.replace(/\{\w+\}$/, "*")));
  assert.deepEqual(unserved, ["/tenant/favicon.ico"]);
});

test("HTTP-D-68 the description is public, and names the issuer as the place of its paths", async () => {
  const { status, headers, body } = await world.get("/openapi.json");
  assert.deepEqual([status, headers["access-control-allow-origin"]], [200, "*"]);
  assert.deepEqual([body.openapi, body.servers], ["3.1.1", [{ url: ISSUER }]]);
  const etag = headers.etag ?? assert.fail();
  assert.equal((await world.get("/openapi.json", { headers: { "if-none-match": etag } })).status, 304);
});

test("HTTP-D-68 generators of clients find a name for each operation, and no list of values that is empty", async () => {
  const { body, text } = await world.get("/openapi.json");
  const ids = Object.values(Object(body.paths)).flatMap((methods) =>
    Object.values<{ operationId: string }>(Object(methods)).map((operation) => operation.operationId),
  );
  assert.deepEqual(
    ids.filter((id) => !/^(?:get|post|put|delete)[A-Z][A-Za-z0-9]*$/.test(id)),
    [],
  );
  assert.equal(new Set(ids).size, OPERATIONS.length);
  // openapi-python-client 0.29 takes no description that has one (JSON Schema 2020-12, Validation 6.1.2).
  assert.doesNotMatch(text, /"enum": ?\[\s*\]/);
});

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "content-type": "application/json" };

test("HTTP-D-68 every operation answers as it is described, where it succeeds and where it refuses", async () => {
  const sent = new Set<string>();
  const ask = async (method: string, path: string, options: Partial<Sent> = {}): Promise<Answer> => {
    const answer = await world.get(path, { method, ...options });
    const plain = path.split("?")[0] ?? "";
    sent.add(operationOf(method, plain) ?? assert.fail(`${method} ${path} is not described`));
    assert.equal(undescribed(method, plain, answer), undefined);
    return answer;
  };
  const asAdmin = { ...FORM, authorization: basic("admin", SECRET) };
  const form = (of: Record<string, string>) => ({ headers: asAdmin, body: encodeForm(of) });

  const grant = { grant_type: "client_credentials", audience: API };
  const { body: issued } = await ask("POST", "/token", form(grant));
  const token = String(issued.access_token);
  await ask("POST", "/token", { headers: FORM, body: "grant_type=none" });
  await ask("POST", "/introspect", form({ token }));
  await ask("POST", "/introspect", { headers: FORM, body: "token=x" });
  const bearer = { authorization: `Bearer ${token}` };
  const asJson = (body: object) => ({ headers: { ...bearer, ...JSON_TYPE }, body: JSON.stringify(body) });

  const made = await ask("POST", "/jobs", asJson({ client: "admin", title: "a report", notAfter: soon() }));
  assert.equal(made.status, 201, made.text);
  await ask("POST", "/jobs", asJson({}));
  await ask("GET", "/jobs", { headers: bearer });
  await ask("GET", `/jobs/${made.body.id}`, { headers: bearer });
  await ask("GET", "/jobs/none", { headers: bearer });
  const consent = { subject: { iss: ISSUER, sub: "alice" }, actor: "spiffe://td.example/a", targets: [API] };
  const put = await ask("PUT", "/consents/one", asJson({ ...consent, scope: "audit:read" }));
  await ask("PUT", "/consents/one", asJson({}));
  await ask("GET", "/consents", { headers: bearer });
  await ask("GET", "/consents?limit=0", { headers: bearer });
  await ask("GET", "/consents/one", { headers: bearer });
  await ask("DELETE", "/consents/one", { headers: bearer });
  await ask("DELETE", "/consents/none", { headers: bearer });
  await ask("POST", "/policy/explain", asJson({ client: "admin", target: API }));
  await ask("POST", "/policy/explain", asJson({}));
  for (const path of ["/audit/events", "/audit/checkpoints"]) {
    for (const accept of ["application/json", "application/x-ndjson", "text/csv", "image/png"])
      await ask("GET", path, { headers: { ...bearer, accept } });
    await ask("GET", `${path}?limit=x`, { headers: bearer });
    await ask("GET", path);
  }
  const registered = await ask("POST", "/register", {
    headers: JSON_TYPE,
    body: JSON.stringify({
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: ["client_credentials"],
    }),
  });
  await ask("POST", "/register", { headers: JSON_TYPE, body: "[]" });
  const place = `/register/${registered.body.client_id ?? "none"}`;
  const own = { authorization: `Bearer ${registered.body.registration_access_token}` };
  await ask("GET", place, { headers: own });
  await ask("PUT", place, { headers: { ...own, ...JSON_TYPE }, body: "{}" });
  await ask("DELETE", place, { headers: own });
  await ask("GET", place);
  await ask("POST", "/revocations", asJson({ client: "admin", dryRun: true }));
  await ask("POST", "/revocations", asJson({ job: made.body.id }));
  await ask("POST", "/revocations", asJson({}));
  await ask("POST", "/revoke", form({ token }));
  await ask("POST", "/revoke", { headers: FORM, body: "token=x" });
  await ask("POST", "/signals/none", { headers: { "content-type": "application/secevent+jwt" }, body: "x" });
  for (const operation of OPERATIONS.filter((one) => !sent.has(one))) {
    const [method = "", path = ""] = operation.split(" ");
    const options = method === "POST" ? { headers: FORM, body: "a=b" } : {};
    await ask(method, path.replace(/\{\w+\}/, "none"), options);
  }
  assert.deepEqual([registered.status, put.status], [201, 201], registered.text + put.text);
  assert.deepEqual([...sent].sort(), [...OPERATIONS].sort());
});

const soon = (): number => Math.floor(Date.now() / 1000) + 600;
