/**
 * An MCP server made with the server side of an SDK: streamable HTTP over TLS, for callers with an access token of ours
 * alone. It shares no code with our server, and is the example for operators of MCP servers.
 */
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { createLocalJWKSet, jwtVerify } from "jose";
import { type Fetch, startWebServer, type WebServer } from "./web.ts";

/** What the tool `onward` does with the token of its caller; its result is the text of the tool. */
export type Tool = (token: string) => Promise<string>;

/** The MCP server of one SDK: answers a request whose token was verified. */
export type Answers = (request: Request, token: string, tool: Tool) => Promise<Response>;

const ABOUT = { name: "notes", version: "1.0.0" };
const DESCRIPTION = { description: "Asks the next API on behalf of the user." };

export const byVersion1: Answers = async (request, token, tool) => {
  // It would keep a stream open, which a client does not need.
  if (request.method !== "POST") return new Response(null, { status: 405 });
  const server = new McpServerV1(ABOUT);
  server.registerTool("onward", DESCRIPTION, async () => ({
    content: [{ type: "text", text: await tool(token) }],
  }));
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  return transport.handleRequest(request);
};

export const byVersion2: Answers = (request, token, tool) => {
  const handler = createMcpHandler(() => {
    const server = new McpServer(ABOUT);
    server.registerTool("onward", DESCRIPTION, async () => ({
      content: [{ type: "text", text: await tool(token) }],
    }));
    return server;
  });
  return handler.fetch(request);
};

export type RunningMcpServer = WebServer & {
  /** Its identifier: the URL of its endpoint, and the only audience that it accepts. */
  resource: string;
  /** From now on it accepts tokens of this issuer, whose keys it fetches from there, and has this tool. */
  open(issuer: string, fetch: Fetch, tool: Tool): void;
};

export async function startMcpServer(answers: Answers, scopes: readonly string[]): Promise<RunningMcpServer> {
  let opened: { issuer: string; fetch: Fetch; tool: Tool } | undefined;
  const PATH = "/mcp";
  const WELL_KNOWN = `/.well-known/oauth-protected-resource${PATH}`;

  const verify = async (token: string): Promise<boolean> => {
    if (opened === undefined) return false;
    const { issuer, fetch } = opened;
    const fetched = await fetch(`${issuer}/jwks`);
    const keys = createLocalJWKSet((await fetched.json()) as Parameters<typeof createLocalJWKSet>[0]);
    // The audience is the one identifier, which comes from the configuration and never from the request.
    const expected = { issuer, audience: server.resource, typ: "at+jwt" };
    return jwtVerify(token, keys, expected).then(
      () => true,
      () => false,
    );
  };

  const web = await startWebServer(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === WELL_KNOWN) {
      return Response.json({
        resource: server.resource,
        authorization_servers: [opened?.issuer],
        scopes_supported: scopes,
        bearer_methods_supported: ["header"],
      });
    }
    if (pathname !== PATH) return new Response(null, { status: 404 });
    const token = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    if (opened === undefined || token === undefined || !(await verify(token))) {
      const about = `resource_metadata="${server.origin}${WELL_KNOWN}", scope="${scopes.join(" ")}"`;
      const error = token === undefined ? "" : 'error="invalid_token", ';
      return new Response(null, {
        status: 401,
        headers: { "WWW-Authenticate": `Bearer ${error}${about}` },
      });
    }
    return answers(request, token, opened.tool);
  });
  const server: RunningMcpServer = {
    ...web,
    resource: `${web.origin}${PATH}`,
    open(issuer, fetch, tool) {
      opened = { issuer, fetch, tool };
    },
  };
  return server;
}
