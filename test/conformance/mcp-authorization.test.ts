/**
 * Model Context Protocol, authorization, revision 2026-07-28 (https://modelcontextprotocol.io/specification): its
 * requirements for token requests of programs. Its own client is tested in test/interop.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, basic, postForm } from "../../scripts/http-client.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, type Form, ISSUER, makeWorld, type World } from "../support/world.ts";

const TOOLS = "https://mcp.example/tools";
const FILES = "https://mcp.example/files";
const SECRET = "tools-tools-tools-tools-tools-12";
const AUTHORIZATION = { authorization: basic("tools", SECRET) };
const CC = { grant_type: "client_credentials" };

let world: World;

before(async () => {
  world = await makeWorld({
    clients: { tools: { method: "client_secret_basic", secrets: [SECRET] } },
    targets: [TOOLS, FILES].map((name) => ({ names: [name], scopes: ["call"] })),
    policies: [
      {
        id: "tools",
        allow: "client_credentials",
        clients: ["tools"],
        targets: [TOOLS, FILES],
        scopes: ["call"],
      },
    ],
  });
});

after(() => stop(world));

const obtain = (form: Form, headers: Record<string, string> = AUTHORIZATION): Promise<Answer> =>
  world.token({ ...CC, ...form }, headers);

function assertRefused(answer: Answer, error: string): void {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
}

test("MCP-O.8-2, MCP-O.9-1 a token is for the one requested resource, never for two", async () => {
  for (const resource of [TOOLS, FILES]) {
    const answer = await obtain({ resource });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(claimsOf(answer.body.access_token).aud, resource);
  }
  assertRefused(await obtain({ resource: [TOOLS, FILES] }), "invalid_target");
  assertRefused(await obtain({ resource: `${TOOLS}/` }), "invalid_target");
});

test("MCP-S.2-1 a token is valid for five minutes", async () => {
  const { exp, iat } = claimsOf((await obtain({ resource: TOOLS })).body.access_token);
  assert.equal(Number(exp) - Number(iat), 300);
});

// The rules of OAuth 2.1 that apply without an authorization endpoint.

test("MCP-S.0-1 the password grant and other grants that OAuth 2.1 lacks are unsupported", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.deepEqual(body.response_types_supported, []);
  assert.ok((body.grant_types_supported as string[]).includes(CC.grant_type));
  for (const grantType of ["password", "implicit", "token", "id_token"]) {
    assert.ok(!(body.grant_types_supported as string[]).includes(grantType));
    const form = { grant_type: grantType, resource: TOOLS, username: "u", password: "p" };
    assertRefused(await obtain(form), "unsupported_grant_type");
  }
});

test("MCP-S.0-1 credentials are accepted in the body or a header, and never in the query", async () => {
  const reach = { ca: world.ca, connect: { host: "127.0.0.1", port: world.server.port } };
  const query = new URLSearchParams({ client_id: "tools", client_secret: SECRET });
  const inQuery = await postForm(`${ISSUER}/token?${query}`, { ...CC, resource: TOOLS }, reach);
  assertRefused(inQuery, "invalid_request");
  assertRefused(await obtain({ resource: TOOLS }, {}), "invalid_client");
});

test("MCP-S.0-1 a response with a token is not cacheable, and names the token's type and scope", async () => {
  const { status, headers, body } = await obtain({ resource: TOOLS });
  assert.equal(status, 200);
  assert.deepEqual([headers["cache-control"], headers.pragma], ["no-store", "no-cache"]);
  assert.deepEqual([body.token_type, body.scope, body.refresh_token], ["Bearer", "call", undefined]);
});
