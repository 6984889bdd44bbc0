/**
 * MCP workload identity federation (SEP-1933). No package has its provider: the requests of the conformance scenario
 * auth/wif-jwt-bearer are sent as its client sends them, and the SDK's one provider for this grant type, made without a
 * secret, goes unmodified from a 401 to a tool call. Its discovery requires an authorization endpoint, so that its result
 * is supplied.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  type AuthorizationServerMetadata,
  Client,
  CrossAppAccessProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";
import { seconds } from "../support/forge.ts";
import { byVersion2, type RunningMcpServer, startMcpServer } from "../support/mcp-server.ts";
import { GRANT, makePlatform } from "../support/platforms.ts";
import { stop } from "../support/stop.ts";
import { type Fetch, fetchAt } from "../support/web.ts";
import { claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";

const SCOPE = "tools.call";
const CLIENT_ID = "conformance-wif-workload";
const ID = "platform://conformance/conformance-workload";
const idp = makePlatform("https://idp.conformance-test.local", { sub: "conformance-workload" });

/** As the scenario makes it: five minutes, and no `kid`, since there is one key. */
const jwt = (claims: object = {}): string =>
  idp.token({ exp: seconds() + 300, ...claims }, { header: { kid: undefined } });

let server: RunningMcpServer;
let world: World;
let fetchFn: Fetch;

before(async () => {
  server = await startMcpServer(byVersion2, [SCOPE]);
  world = await makeWorld(
    {
      trustedIssuers: {
        [idp.issuer]: {
          keys: { file: "idp-workloads.json" },
          workloads: { conformance: { tenancy: "dedicated", subjects: ["conformance-workload"] } },
        },
      },
      targets: [{ names: [server.resource], scopes: [SCOPE] }],
      policies: [
        {
          id: "workload",
          allow: "client_credentials",
          actors: [ID],
          targets: [server.resource],
          scopes: [SCOPE],
        },
      ],
      drafts: [SPIFFE_DRAFT, DRAFT],
    },
    { files: { "idp-workloads.json": idp.jwks } },
  );
  fetchFn = fetchAt({
    "as.example": { ca: world.ca, port: world.server.port },
    localhost: { ca: server.ca },
  });
  server.open(ISSUER, fetchFn, async (token) => String(claimsOf(token).sub));
});
after(() => stop(world, server));

test("MWF-4.3-1, MWF-4.4-1, WIF-T-1 metadata offer what the scenario's server offers", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  assert.ok((body.grant_types_supported as string[]).includes(GRANT));
  assert.ok((body.token_endpoint_auth_methods_supported as string[]).includes("none"));
});

const REQUESTS: [what: string, assertion: () => string, scope: string, want: string | undefined][] = [
  ["MWF-4.3-1, MWF-3.1-1 its valid JWT gets a token", jwt, SCOPE, undefined],
  [
    "MWF-3.2-1 a JWT for another audience is refused",
    () => jwt({ aud: "https://wrong.example" }),
    SCOPE,
    "invalid_grant",
  ],
  [
    "MWF-3.2-1 an expired JWT is refused",
    () => jwt({ iat: seconds() - 200, exp: seconds() - 60 }),
    SCOPE,
    "invalid_grant",
  ],
  ["MWF-3.2-2 a scope that is not permitted is refused", jwt, "wif.rejected", "invalid_scope"],
  [
    "MWF-3.2-2 a workload that no rule names is refused",
    () => jwt({ sub: "another" }),
    SCOPE,
    "invalid_grant",
  ],
  [
    "MWF-4.1-1 a JWT of an issuer that is not trusted is refused",
    () => jwt({ iss: "https://x.example" }),
    SCOPE,
    "invalid_grant",
  ],
];
for (const [what, assertion, scope, want] of REQUESTS) {
  test(`WIF-V-1 scenario auth/wif-jwt-bearer: ${what}`, async () => {
    const form = new URLSearchParams({
      grant_type: GRANT,
      assertion: assertion(),
      scope,
      client_id: CLIENT_ID,
    });
    form.set("resource", server.resource);
    const answer = await world.token(form.toString());
    assert.equal(answer.body.error, want, answer.text);
    if (want !== undefined) return;
    const { sub, client_id, aud } = claimsOf(String(answer.body.access_token));
    assert.deepEqual([sub, client_id, aud], [ID, ID, server.resource]);
  });
}

/** Supplies what discovery would have found if there were an authorization endpoint. */
class Workload extends CrossAppAccessProvider {
  readonly metadata: AuthorizationServerMetadata;
  constructor(metadata: AuthorizationServerMetadata, assertion: () => string) {
    // Without a secret the SDK chooses the method none, and sends its client_id.
    const clientSecret = undefined as unknown as string;
    super({
      clientId: CLIENT_ID,
      clientSecret,
      expectedIssuer: ISSUER,
      fetchFn,
      assertion: async () => assertion(),
    });
    this.metadata = metadata;
  }
  discoveryState() {
    return { authorizationServerUrl: ISSUER, authorizationServerMetadata: this.metadata };
  }
}

test("MWF-4.2-1, MWF-8-1, PLAT-D-9 the SDK's provider goes from a 401 to a tool call, and the tool sees the workload", async () => {
  const { body } = await world.get("/.well-known/oauth-authorization-server");
  const authProvider = new Workload(body as AuthorizationServerMetadata, jwt);
  const client = new Client({ name: "workload", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(server.resource), {
    authProvider,
    fetch: fetchFn,
  });
  await client.connect(transport);
  const { content } = await client.callTool({ name: "onward", arguments: {} });
  assert.deepEqual(content, [{ type: "text", text: ID }]);
  await client.close();
});
