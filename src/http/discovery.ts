/** GET /.well-known/… and GET /jwks: public, cacheable, the same for everybody. */
import { AUTH_METHODS } from "../flows/authenticate-client.ts";
import type { Ports } from "../ports.ts";
import { PUBLISHED_SECONDS } from "../spec/limits.ts";
import { buildMetadata } from "../spec/rfc8414.ts";
import { ASSERTION_ALGORITHMS } from "../spec/rfc8725.ts";
import type { Handler } from "./serve.ts";
import { GRANTS } from "./token.ts";

/** RFC 8414 3: what is told is what is dispatched, from the same tables. */
export function metadataEndpoint(ports: Ports): Handler {
  return (request) => {
    const { issuer, mtlsOrigin, trustDomains, policy } = ports.settings();
    // SPCA-4-3, PROD-4.4-12: the SPIFFE methods are on where there is somebody to prove anything.
    const spiffe = trustDomains.size > 0;
    const scopes = new Set([...policy.targets.values()].flatMap((target) => target.scopes));
    const metadata = buildMetadata({
      issuer,
      grantTypes: [...GRANTS.keys()],
      authMethods: AUTH_METHODS.filter((method) => spiffe || !method.startsWith("spiffe_")),
      signingAlgorithms: ASSERTION_ALGORITHMS,
      ...(mtlsOrigin !== undefined && { mtlsBase: mtlsOrigin + new URL(issuer).pathname.replace(/\/$/, "") }),
      scopes: [...scopes].sort(),
    });
    return publicJson(ports, request, "application/json", metadata);
  };
}

export function jwksEndpoint(ports: Ports): Handler {
  return (request) =>
    publicJson(ports, request, "application/jwk-set+json", { keys: ports.signer.published() });
}

function publicJson(ports: Ports, request: Request, type: string, body: object): Response {
  const text = JSON.stringify(body);
  const etag = `"${ports.hash.sha256(text)}"`;
  const headers = {
    "Content-Type": type,
    "Cache-Control": `public, max-age=${PUBLISHED_SECONDS}`,
    "Access-Control-Allow-Origin": "*",
    ETag: etag,
  };
  const known = request.headers.get("if-none-match") === etag;
  return known ? new Response(null, { status: 304, headers }) : new Response(text, { headers });
}
