/**
 * The route table: exact paths, then those whose last segment is anything (`*`), then methods. `serve` lets a path
 * pass only as it was sent, so that no dot segment or percent escape leads to a route.
 */

import { httpError, notFound } from "./answers.ts";
import type { Handler } from "./handler.ts";
import { pathOf } from "./handler.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";
export type Routes = Readonly<Record<string, Readonly<Partial<Record<Method, Handler>>>>>;

export function route(routes: Routes): Handler {
  // Maps, so that no name inherited by an object is a path or a method.
  const table = new Map(
    Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]),
  );
  return (request, peer) => {
    const path = pathOf(request);
    const methods = table.get(path) ?? table.get(path.replace(/[^/]+$/, "*"));
    if (methods === undefined) return notFound();
    // HEAD is GET whose body serve leaves out.
    const handler = methods.get(request.method === "HEAD" ? "GET" : request.method);
    if (handler !== undefined) return handler(request, peer);
    const allowed = [...methods.keys()].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
    // PROD-4.1-31, RFC6749-3.2-4
    return httpError({
      status: 405,
      description: "the method is not supported at this path",
      headers: { Allow: allowed.join(", ") },
    });
  };
}
