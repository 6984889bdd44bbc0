/**
 * RFC 8414, OAuth 2.0 Authorization Server Metadata: https://www.rfc-editor.org/rfc/rfc8414.html
 * Covers 2 metadata, 3 where it is published.
 */
import type { JsonObject } from "./json.ts";

export const SUFFIXES = ["oauth-authorization-server", "openid-configuration"] as const;

export type Offer = {
  issuer: string;
  grantTypes: readonly string[];
  authMethods: readonly string[];
  /** Of client assertions. */
  signingAlgorithms: readonly string[];
  /** Where clients with certificates go, if not to the issuer's own origin. */
  mtlsBase?: string;
  scopes: readonly string[];
};

/** Only what is on is told (PROD-4.4-12): the caller derives the offer from what it dispatches. */
export function buildMetadata(offer: Offer): JsonObject {
  return {
    issuer: offer.issuer, // RFC8414-2-1
    token_endpoint: `${offer.issuer}/token`, // RFC8414-2-3
    jwks_uri: `${offer.issuer}/jwks`, // RFC8414-2-4
    ...(offer.scopes.length > 0 && { scopes_supported: [...offer.scopes] }), // RFC8414-2-8
    response_types_supported: [], // RFC8414-2-9: no authorization endpoint, and the list says so
    grant_types_supported: [...offer.grantTypes],
    token_endpoint_auth_methods_supported: [...offer.authMethods],
    // RFC8414-2-13, RFC8414-2-14, RFC8414-2-15
    token_endpoint_auth_signing_alg_values_supported: [...offer.signingAlgorithms],
    // RFC8705-5-2
    ...(offer.mtlsBase !== undefined && {
      mtls_endpoint_aliases: { token_endpoint: `${offer.mtlsBase}/token` },
    }),
  };
}

/** RFC8414-3-1, RFC8414-3.1-2: the well-known part goes between host and path of the issuer. */
export function metadataPaths(issuer: string): readonly string[] {
  const path = new URL(issuer).pathname.replace(/\/$/, "");
  return SUFFIXES.map((suffix) => `/.well-known/${suffix}${path}`);
}
