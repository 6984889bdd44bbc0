/**
 * The route table: exact paths first, then paths whose last segment is `*`, then methods. `serve` refuses a path that
 * the URL parser changes, so no dot segment or percent escape reaches a route.
 */

import { type Dress, httpError, notFound } from "./answers.ts";
import { type Handler, pathOf } from "./handler.ts";

type HttpMethod = "GET" | "POST" | "PUT" | "DELETE";
type MethodTable = Readonly<Partial<Record<HttpMethod, Handler>>>;
export type Routes = Readonly<Record<string, MethodTable>>;

/** `dress` gives its form to the answer to a method that a path does not serve; `unknown` reads any other path. */
export function route(
  routes: Routes,
  dress: Dress = (_, answer) => answer,
  unknown: Handler = () => notFound(),
): Handler {
  // These are maps, because an object would inherit names that are no path or method of ours.
  const table = new Map(
    Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]),
  );
  return (request, peer) => {
    const path = pathOf(request);
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    const methods = table.get(path) ?? (path === folder ? undefined : table.get(`${folder}*`));
    if (methods === undefined) return request.method === "GET" ? unknown(request, peer) : notFound();
    // HEAD is served as GET; node:http leaves out the body.
    const handler = methods.get(request.method === "HEAD" ? "GET" : request.method);
    if (handler !== undefined) return handler(request, peer);
    const allowed = [...methods.keys()].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
    // PROD-4.1-31, RFC6749-3.2-4: the answer names the methods that the path serves.
    const refusal = httpError({
      status: 405,
      description: "the method is not supported at this path",
      headers: { Allow: allowed.join(", ") },
    });
    const { headers } = request;
    const about = { acceptLanguage: headers.get("accept-language"), origin: headers.get("origin") };
    return dress({ requestId: peer.requestId, path, ...about }, refusal);
  };
}
