/**
 * The clients of both MCP TypeScript SDKs go from the 401 of an MCP server to a tool call with a user's token, in each
 * of the three ways to become a client. The MCP server then exchanges that token for one of an API (RFC 8693), which
 * says who the user, the client and the agent are. Later the client refreshes its token without the user.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { UnauthorizedError as UnauthorizedErrorV1 } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as TransportV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  type Answers,
  byVersion1,
  byVersion2,
  type RunningMcpServer,
  startMcpServer,
} from "../support/mcp-server.ts";
import {
  Browser,
  files,
  forPeople,
  locationOf,
  PRIVATE,
  PRIVATE_SECRET,
  WEB_REDIRECT,
} from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { type DocumentServer, type Fetch, fetchAt, LOOPBACK, startDocumentServer } from "../support/web.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  EXCHANGE,
  ISSUER,
  JWT,
  makeWorld,
  type World,
  workload,
} from "../support/world.ts";

const SCOPE = "notes.read";
const API = "https://ledger.example";
const AGENT = "mcp/notes";
const ABOUT = { name: "desk", version: "1.0.0" };

let provider: TestProvider;
let documents: DocumentServer;
let servers: { v1: RunningMcpServer; v2: RunningMcpServer };
let world: World;

before(async () => {
  const start = (answers: Answers) => startMcpServer(answers, [SCOPE]);
  const [v1, v2] = await Promise.all([start(byVersion1), start(byVersion2)]);
  servers = { v1, v2 };
  [provider, documents] = await Promise.all([startProvider(), startDocumentServer()]);
  const targets = [v1.resource, v2.resource];
  const subjects = { issuers: [provider.issuer] };
  const rule = { allow: "authorization_code", subjects, targets, scopes: [SCOPE], refresh: true };
  const base = forPeople(provider);
  world = await makeWorld(
    {
      ...base,
      registration: { mode: "open", open: { scopes: [SCOPE] } },
      clientMetadataDocuments: {},
      clientOrigins: { [documents.origin]: { ca: { file: "documents.pem" }, privateNetworks: LOOPBACK } },
      drafts: [SPIFFE_DRAFT, DRAFT],
      targets: [
        ...targets.map((name) => ({
          names: [name],
          owners: [workload(AGENT)],
          scopes: [SCOPE],
          people: true,
          title: "Notes",
        })),
        { names: [API], scopes: [SCOPE] },
      ],
      policies: [
        { id: "configured-apps", clients: [PRIVATE], ...rule },
        { id: "apps-by-document", clients: [`${documents.origin}/*`], ...rule },
        { id: "registered-apps", classes: ["open"], ...rule },
        {
          id: "notes-for-users",
          allow: "delegation",
          actors: [workload(AGENT)],
          subjects,
          subjectToken: { audiences: ["self"] },
          consent: "implied",
          acknowledge: "subjects-not-asked",
          targets: [API],
          scopes: [SCOPE],
        },
      ],
    },
    { files: { ...files(provider), "documents.pem": documents.ca } },
  );
  for (const server of [v1, v2]) server.open(ISSUER, fetchTo(server), onward);
});
after(() => stop(world, servers?.v1, servers?.v2, documents, provider));

const fetchTo = (server: RunningMcpServer): Fetch =>
  fetchAt({ "as.example": { ca: world.ca, port: world.server.port }, localhost: { ca: server.ca } });

/** The tool: the token of the caller for one of the API, with the agent's own identity as the actor. */
async function onward(token: string): Promise<string> {
  const svid = await world.svid(AGENT);
  const answer = await world.token({
    grant_type: EXCHANGE,
    ...world.as(svid),
    subject_token: token,
    subject_token_type: ACCESS_TOKEN,
    actor_token: svid,
    actor_token_type: JWT,
    audience: API,
  });
  return answer.text;
}

// --- the client of a person ---------------------------------------------------------------------------------------

type Tokens = { access_token: string; token_type: string; refresh_token?: string | undefined };
type Information = { client_id: string; client_secret?: string; issuer: string };

/** What both SDKs ask of an application: the same object serves both. */
class Application {
  readonly clientMetadataUrl?: string;
  readonly redirectUrl: string;
  readonly #method: string;
  #information: Information | undefined;
  #tokens: Tokens | undefined;
  #verifier = "";
  #discovery: object | undefined;
  sentTo: URL | undefined;

  constructor({ redirectUrl, method, information, documentUrl }: ApplicationKind) {
    this.redirectUrl = redirectUrl;
    this.#method = method;
    this.#information = information;
    if (documentUrl !== undefined) this.clientMetadataUrl = documentUrl;
  }
  get clientMetadata() {
    return {
      client_name: "Desk",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: this.#method,
    };
  }
  state = (): string => "of/this+connection=";
  clientInformation = (): Information | undefined => this.#information;
  saveClientInformation(information: Information): void {
    this.#information = information;
  }
  tokens = () => this.#tokens;
  saveTokens(tokens: Tokens): void {
    this.#tokens = tokens;
  }
  redirectToAuthorization(url: URL): void {
    this.sentTo = url;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier = (): string => this.#verifier;
  discoveryState = () => this.#discovery as never;
  saveDiscoveryState(state: object): void {
    this.#discovery = state;
  }
}

type ApplicationKind = {
  redirectUrl: string;
  method: string;
  information?: Information;
  documentUrl?: string;
};

const NATIVE = "http://127.0.0.1:33418/callback";
const KINDS: Record<string, { ids: string; kind: () => ApplicationKind; is: (clientId: string) => boolean }> =
  {
    "a metadata document": {
      ids: "MCP-O.3-2, MCP-R.1-1, MCP-R.1-4, MCP-R.1-7",
      kind() {
        const documentUrl = `${documents.origin}/desk.json`;
        const application = new Application({ redirectUrl: NATIVE, method: "none" });
        documents.documents.set("/desk.json", { ...application.clientMetadata, client_id: documentUrl });
        return { redirectUrl: NATIVE, method: "none", documentUrl };
      },
      is: (clientId) => clientId === `${documents.origin}/desk.json`,
    },
    "dynamic registration": {
      ids: "MCP-O.3-3, RFC7591-3.2.1-8",
      kind: () => ({ redirectUrl: NATIVE, method: "none" }),
      is: (clientId) => /^[\w-]+$/.test(clientId) && clientId !== PRIVATE,
    },
    "credentials that it was given": {
      ids: "MCPC-D-13, MCPC-D-16",
      kind: () => ({
        redirectUrl: WEB_REDIRECT,
        method: "client_secret_basic",
        information: { client_id: PRIVATE, client_secret: PRIVATE_SECRET, issuer: ISSUER },
      }),
      is: (clientId) => clientId === PRIVATE,
    },
  };

/** What an application does by an SDK. */
type Sdk = {
  /** The first request is refused; the user is sent to where the application may ask, and comes back with this URL. */
  begin(application: Application, server: RunningMcpServer, userDecides: () => Promise<URL>): Promise<void>;
  /** Connects with the tokens that the application has, or can get without its user, and calls the tool. */
  call(application: Application, server: RunningMcpServer): Promise<string>;
};

const transportV1 = (authProvider: Application, server: RunningMcpServer) =>
  new TransportV1(new URL(server.resource), {
    authProvider,
    fetch: fetchTo(server) as typeof globalThis.fetch,
  });

const version1: Sdk = {
  async begin(application, server, userDecides) {
    const transport = transportV1(application, server);
    await assert.rejects(new ClientV1(ABOUT).connect(transport), UnauthorizedErrorV1);
    const back = await userDecides();
    await transport.finishAuth(back.searchParams.get("code") ?? "");
  },
  async call(application, server) {
    const client = new ClientV1(ABOUT);
    await client.connect(transportV1(application, server));
    const { content } = await client.callTool({ name: "onward" });
    await client.close();
    return textOf(content);
  },
};

const transportV2 = (authProvider: Application, server: RunningMcpServer) =>
  new StreamableHTTPClientTransport(new URL(server.resource), {
    authProvider,
    fetch: fetchTo(server) as typeof globalThis.fetch,
  });

const version2: Sdk = {
  async begin(application, server, userDecides) {
    const transport = transportV2(application, server);
    await assert.rejects(new Client(ABOUT).connect(transport), UnauthorizedError);
    // It refuses a response whose `iss` is missing or another one.
    await transport.finishAuth((await userDecides()).searchParams);
  },
  async call(application, server) {
    const client = new Client(ABOUT);
    await client.connect(transportV2(application, server));
    const { content } = await client.callTool({ name: "onward" });
    await client.close();
    return textOf(content);
  },
};

/** What the MCP server answers to this token. */
async function statusAt(server: RunningMcpServer, token = ""): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetchTo(server)(server.resource, { method: "POST", headers })).status;
}

const textOf = (content: unknown): string => (content as { text: string }[])[0]?.text ?? "";

for (const [name, sdk, version] of [
  ["version 1", version1, "v1"],
  ["version 2", version2, "v2"],
] as const) {
  for (const [way, { ids, kind, is }] of Object.entries(KINDS)) {
    test(`${ids}, MCP-O.8-1, MCP-O.9-1, RFC9728-5.1-1, MCP-S.2-2 an application with ${name} of the SDK calls a tool for a user, by ${way}`, async () => {
      const server = servers[version];
      const application = new Application(kind());
      await sdk.begin(application, server, async () => {
        const sentTo = application.sentTo ?? assert.fail("it asks no user");
        assert.ok(sentTo.href.startsWith(`${ISSUER}/authorize?`), sentTo.href);
        assert.equal(sentTo.searchParams.get("resource"), server.resource);
        const browser = new Browser(world, provider);
        const page = await browser.signIn(await browser.get(sentTo.href));
        const back = new URL(locationOf(await browser.decide(page)));
        assert.equal(back.searchParams.get("state"), application.state());
        return back;
      });
      const answer = await sdk.call(application, server);
      const ofUser = claimsOf(application.tokens()?.access_token);
      assert.deepEqual([ofUser.sub, ofUser.aud, ofUser.scope], ["company:alice", server.resource, SCOPE]);
      assert.ok(is(String(ofUser.client_id)), String(ofUser.client_id));
      assert.equal(ofUser.act, undefined);
      const other = servers[version === "v1" ? "v2" : "v1"];
      assert.equal(await statusAt(other, application.tokens()?.access_token), 401);
      const { sub, act, aud, client_id } = claimsOf(JSON.parse(answer).access_token);
      assert.deepEqual(
        { sub, act, aud, client_id },
        { sub: "company:alice", act: { sub: workload(AGENT) }, aud: API, client_id: workload(AGENT) },
      );

      // The access token is no longer accepted: the SDK gets another one by itself, and the user is not asked.
      const { refresh_token: first, ...rest } = application.tokens() ?? assert.fail("no tokens");
      assert.ok(first, "no refresh token");
      application.saveTokens({ ...rest, access_token: "ended", refresh_token: first });
      application.sentTo = undefined;
      const again = claimsOf(JSON.parse(await sdk.call(application, server)).access_token);
      assert.deepEqual([again.sub, again.act, application.sentTo], [sub, act, undefined]);
      const rotates = application.clientMetadata.token_endpoint_auth_method === "none";
      assert.equal(application.tokens()?.refresh_token !== first, rotates);
    });
  }
}

describe("the metadata of an MCP server", () => {
  for (const version of ["v1", "v2"] as const) {
    test(`RFC9728-5.1-1 ${version} names one server, ours, and itself by its one identifier`, async () => {
      const server = servers[version];
      const refused = await fetchTo(server)(server.resource, { method: "POST" });
      const challenge = refused.headers.get("www-authenticate") ?? "";
      assert.equal(refused.status, 401);
      const [, place = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
      const document = Object(await (await fetchTo(server)(place)).json());
      assert.deepEqual([document.resource, document.authorization_servers], [server.resource, [ISSUER]]);
    });
  }
});
