/**
 * Which answers a page of another origin may read: the CORS protocol, https://fetch.spec.whatwg.org/#http-cors-protocol
 * No answer allows credentials, so a browser sends no cookie, and no preflight allows `Authorization`.
 */
import { PREFLIGHT_SECONDS } from "../limits.ts";
import type { Ports } from "../ports.ts";
import { httpError } from "./answers.ts";
import type { Handler, HttpRequest } from "./handler.ts";
import type { HttpMethod, MethodTable } from "./router.ts";

/** PAGE-D-20: public documents; the header is that of MCP clients, whose preflight would fail without it. */
export const readByAll = (get: Handler): MethodTable => ({
  GET: async (request, peer) => {
    const { headers, ...answer } = await get(request, peer);
    return { ...answer, headers: { ...headers, "Access-Control-Allow-Origin": "*" } };
  },
  OPTIONS: () => ({ status: 204, headers: preflight("*", "GET", "mcp-protocol-version"), body: "" }),
});

/**
 * PAGE-D-21: endpoints for clients without a secret, which may run in a page of an origin that the operator lists; for
 * any other origin the answers are as if there were no CORS.
 */
export const readByListed = (ports: Ports, post: Handler): MethodTable => ({
  POST: async (request, peer) => {
    const answer = await post(request, peer);
    if (ports.settings().pageOrigins.size === 0) return answer;
    const headers = { ...answer.headers, Vary: "Origin" };
    const origin = listedOrigin(ports, request);
    if (origin === undefined) return { ...answer, headers };
    const exposed = { "Access-Control-Expose-Headers": "DPoP-Nonce, WWW-Authenticate, Retry-After" };
    return { ...answer, headers: { ...headers, "Access-Control-Allow-Origin": origin, ...exposed } };
  },
  OPTIONS: (request) => {
    const origin = listedOrigin(ports, request);
    if (origin === undefined) return httpError(NO_PREFLIGHT);
    // PAGE-D-22: without `Authorization`, so that no secret is of use in a page.
    const headers = { ...preflight(origin, "POST", "content-type, dpop"), Vary: "Origin" };
    return { status: 204, headers, body: "" };
  },
});

const NO_PREFLIGHT = {
  status: 405,
  description: "the method is not supported at this path",
  headers: { Allow: "POST" },
};

/** Byte for byte as the operator wrote it, which is how browsers write an origin. */
function listedOrigin({ settings }: Ports, { headers }: HttpRequest): string | undefined {
  const origin = headers.get("origin");
  return origin !== null && settings().pageOrigins.has(origin) ? origin : undefined;
}

const preflight = (origin: string, method: HttpMethod, headers: string): Record<string, string> => ({
  "Access-Control-Allow-Origin": origin,
  "Access-Control-Allow-Methods": method,
  "Access-Control-Allow-Headers": headers,
  "Access-Control-Max-Age": String(PREFLIGHT_SECONDS),
});
