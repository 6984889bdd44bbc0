/**
 * Which answers a page of another origin may read (CORS, https://fetch.spec.whatwg.org/#http-cors-protocol). No answer
 * allows credentials, so a browser sends no cookie.
 */
import { PREFLIGHT_SECONDS } from "../limits/connections.ts";
import type { Ports } from "../ports.ts";
import { defined, whenReady } from "../result.ts";
import type { Unanswered } from "./answers.ts";
import { documentsOf } from "./discovery.ts";
import { type Handler, type HttpResponse, pathOf } from "./handler.ts";

/** PAGE-D-21: the endpoints of clients that may run in a page. */
const FOR_CLIENTS = ["/token", "/par", "/register", "/revoke"];

type Requested = Pick<Unanswered, "path" | "origin">;

type Cors = {
  /** Answers preflights, and adds to every other answer what its reader needs. */
  serve(handler: Handler): Handler;
  /** Adds the same to an answer that no handler made, such as a fault. */
  dress(requested: Requested, answer: HttpResponse): HttpResponse;
};

export function makeCors({ settings }: Pick<Ports, "settings">): Cors {
  const { issuer } = settings();
  const base = new URL(issuer).pathname.replace(/\/$/, "");
  const documents = new Set(Object.keys(documentsOf(issuer)));
  const forClients = new Set(FOR_CLIENTS.map((path) => base + path));

  /** Says who may read: every page, or the origin that asks; any other origin gets answers as if there were no CORS. */
  function readerOf({ path, origin }: Requested): string | undefined {
    if (documents.has(path)) return "*";
    // Origins are compared byte for byte with what the operator wrote, because browsers write an origin in one way.
    return forClients.has(path) && origin !== null && settings().pageOrigins.has(origin) ? origin : undefined;
  }

  const dress: Cors["dress"] = (requested, answer) => {
    const reader = readerOf(requested);
    const differs = forClients.has(requested.path) && settings().pageOrigins.size > 0;
    const fields = defined<Record<string, string>>({
      "Access-Control-Allow-Origin": reader,
      "Access-Control-Expose-Headers": reader === undefined || reader === "*" ? undefined : EXPOSED,
      Vary: differs ? "Origin" : undefined,
    });
    return { ...answer, headers: { ...answer.headers, ...fields } };
  };

  return {
    serve: (handler) => (request, peer) => {
      const { headers, method } = request;
      const requested = { path: pathOf(request), origin: headers.get("origin") };
      const reader = method === "OPTIONS" ? readerOf(requested) : undefined;
      if (reader !== undefined) return allow(reader);
      return whenReady(handler(request, peer), (answer) => dress(requested, answer));
    },
    dress,
  };
}

const EXPOSED = "DPoP-Nonce, WWW-Authenticate, Retry-After";

/** Answers a preflight. */
const allow = (reader: string): HttpResponse => ({
  status: 204,
  headers: {
    "Access-Control-Allow-Origin": reader,
    ...(reader === "*" ? READS : SENDS),
    "Access-Control-Max-Age": String(PREFLIGHT_SECONDS),
  },
  body: "",
});

/** PAGE-D-20: the header is that of MCP clients, whose preflight would fail without it. */
const READS = {
  "Access-Control-Allow-Methods": "GET",
  "Access-Control-Allow-Headers": "mcp-protocol-version",
};

/** PAGE-D-21: `authorization` is allowed, because libraries choose HTTP Basic for a secret by themselves. */
const SENDS = {
  "Access-Control-Allow-Methods": "POST",
  "Access-Control-Allow-Headers": "authorization, content-type, dpop",
  Vary: "Origin",
};
