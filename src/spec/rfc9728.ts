/**
 * RFC 9728, OAuth 2.0 Protected Resource Metadata: https://www.rfc-editor.org/rfc/rfc9728.html
 * Covers 2 metadata, 3 where they are, of our own protected endpoints; documents of other resources are never read.
 * Elsewhere: 3.3 http/discovery.ts, policy/own-target.ts; 5.1 http/bearer.ts, spec/rfc6750.ts; 7.10 http/discovery.ts.
 */
import { defined } from "../result.ts";

export type ProtectedResource = {
  /** The audience of its tokens, byte for byte (PRM-D-1). */
  resource: string;
  /** The issuers whose tokens it accepts. */
  authorizationServers: readonly string[];
  scopes: readonly string[];
  /** The algorithms of DPoP proofs; empty: DPoP is off. */
  proofAlgorithms: readonly string[];
  name: string;
};

/** The JSON document; RFC9728-3.2-1, RFC9728-3.2-3: values are arrays, and empty ones are left out. */
export function buildResourceMetadata(offer: ProtectedResource): object {
  return defined({
    resource: offer.resource,
    authorization_servers: listed(offer.authorizationServers),
    scopes_supported: listed(offer.scopes),
    // Without this member a reader could not tell that tokens in a query or a body are refused.
    bearer_methods_supported: ["header"],
    dpop_signing_alg_values_supported: listed(offer.proofAlgorithms),
    resource_name: offer.name,
  });
}

const listed = (values: readonly string[]): string[] | undefined =>
  values.length > 0 ? [...values] : undefined;

/** RFC9728-3-1, RFC9728-3.1-1: the path of the document of a resource: the well-known part, then the resource's path. */
export const resourceMetadataPath = (resource: string): string =>
  `/.well-known/oauth-protected-resource${new URL(resource).pathname}`;

export const resourceMetadataUrl = (resource: string): string =>
  new URL(resource).origin + resourceMetadataPath(resource);
