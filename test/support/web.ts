/** What libraries that we did not write need around them: `fetch` to servers of a test, and web servers of others. */
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { send } from "../../scripts/http-client.ts";
import type { Certificate } from "./world.ts";

/** The part of `fetch` that `oauth4webapi` and the MCP SDK use; they send texts and forms. */
export type Fetch = (url: string | URL, init?: Init) => Promise<Response>;
type Init = { method?: string; headers?: ConstructorParameters<typeof Headers>[0]; body?: unknown };

/** Whom to trust there, and where the name leads if not where it says. */
export type Place = { ca: string; port?: number };

/** By host name; `certificate` is shown in every handshake. */
export function fetchAt(places: Record<string, Place>, certificate: Certificate = {}): Fetch {
  return async (url, { method = "GET", headers, body } = {}) => {
    const { hostname } = new URL(url);
    const place = places[hostname];
    if (place === undefined) throw new Error(`nobody is at ${hostname}`);
    const answer = await send(String(url), {
      ...{ method, ca: place.ca, ...certificate },
      headers: Object.fromEntries(new Headers(headers)),
      ...(place.port !== undefined && { connect: { host: "127.0.0.1", port: place.port } }),
      ...(body !== undefined && body !== null && { body: String(body) }),
    });
    return new Response(answer.text, { status: answer.status, headers: answer.headers });
  };
}

export type WebServer = {
  origin: string;
  /** PEM of its own authority. */
  ca: string;
  stop(): Promise<void>;
};

/** On loopback, over TLS; the origin has the first of its names. */
export async function startWebServer(
  answer: (request: Request) => Response | Promise<Response>,
  names = ["localhost"],
): Promise<WebServer> {
  const authority = await makeAuthority("Authority of somebody else");
  const { keyPem, certPem } = await issueServerCertificate(authority, names);
  let origin = "";
  const server = createServer({ key: keyPem, cert: certPem }, async (incoming, outgoing) => {
    const { method = "GET", url = "/" } = incoming;
    const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    const body = (await incoming.toArray()).join("");
    const request = new Request(`${origin}${url}`, { method, headers, ...(body !== "" && { body }) });
    const response = await answer(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `https://${names[0]}:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    ca: authority.certPem,
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

export type DocumentServer = WebServer & {
  /** JSON documents by path. */
  documents: Map<string, object>;
  /** The paths that were asked for. */
  fetched: string[];
};

export async function startDocumentServer(): Promise<DocumentServer> {
  const documents = new Map<string, object>();
  const fetched: string[] = [];
  const server = await startWebServer((request) => {
    const { pathname } = new URL(request.url);
    fetched.push(pathname);
    const document = documents.get(pathname);
    return document === undefined ? new Response(null, { status: 404 }) : Response.json(document);
  });
  return { ...server, documents, fetched };
}

/** In `privateNetworks`, for servers like these. */
export const LOOPBACK = ["127.0.0.0/8", "::1/128"];
