/**
 * RFC 8414, OAuth 2.0 Authorization Server Metadata: https://www.rfc-editor.org/rfc/rfc8414.html
 * Covers 2 metadata, 3 where ours are published, where those of others are found and when they are accepted.
 * Elsewhere: 2 adapters/crypto/key-ring.ts, policy/targets.ts, settings/authentication-methods.ts; 3
 * adapters/remote/key-sets.ts, config/issuers.ts; 3.3 adapters/remote/key-sets.ts, settings/settings.ts; 6.1
 * adapters/remote/checked-agent.ts; D http/discovery.ts.
 */

import { JSON_DEPTH_MAX, SHOWN_TEXT_CHARS_MAX } from "../limits/input.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { DEFERRAL_CODE } from "./deferred-token-response.ts";
import { EXPIRATION_TYPES } from "./refresh-token-expiration.ts";
import { parseFetchUrl } from "./rfc3986.ts";
import { isJsonObject, type Json, type JsonFailure, type JsonObject, parseJson } from "./rfc8259.ts";

// --- ours (2) ---------------------------------------------------------------------------------------------------

/** RFC7636-7.2-1, RFC9700-2.1.1-7: S256 is the only method that is published. */
export const CHALLENGE_METHODS = ["S256"] as const;

export type Offer = {
  issuer: string;
  grantTypes: readonly string[];
  authMethods: readonly string[];
  /** The algorithms of client assertions. */
  signingAlgorithms: readonly string[];
  /** The algorithms of DPoP proofs; empty: DPoP is off. */
  proofAlgorithms: readonly string[];
  /** The base URL for clients with certificates, if it is not the issuer. */
  mtlsBase?: string;
  scopes: readonly string[];
  /** The types of `authorization_details` of all targets. */
  detailTypes: readonly string[];
  /** Whether clients can register. */
  registration?: boolean;
  /** Whether metadata documents are accepted. */
  clientDocuments?: boolean;
  /** The values of `requested_token_type` for grants to other servers (IDC-3-1). */
  requestedTokenTypes: readonly string[];
  /** The profiles of grants that are redeemed here, without their issuers (IDJAG-9.5-1). */
  grantProfiles: readonly string[];
  /** Whether users sign in, so that there is an authorization endpoint. */
  authorization?: boolean;
  /** Whether clients may wait for their users. */
  deferral?: boolean;
  refreshEnds?: boolean;
  /** Whether certificates of clients are taken. */
  certificates: boolean;
  /**
   * The algorithms of what is signed here, in the document for readers of OpenID Connect Discovery 1.0, which require more
   * members.
   */
  openIdAlgorithms?: readonly string[];
};

/** PROD-4.4-12: only what is enabled is published; the caller derives the offer from what it dispatches. */
export function buildMetadata(offer: Offer): JsonObject {
  const { issuer, mtlsBase, authorization } = offer;
  const proving = offer.authMethods.filter((method) => method !== "none");
  return defined<JsonObject>({
    issuer, // RFC8414-2-1
    token_endpoint: `${issuer}/token`, // RFC8414-2-3
    jwks_uri: `${issuer}/jwks`, // RFC8414-2-4
    scopes_supported: listed(offer.scopes), // RFC8414-2-8
    authorization_details_types_supported: listed(offer.detailTypes), // RFC9396-10-1
    authorization_endpoint: authorization ? `${issuer}/authorize` : undefined, // RFC8414-2-2
    pushed_authorization_request_endpoint: authorization ? `${issuer}/par` : undefined, // RFC9126-2-2
    // Without this member readers would take it that request objects are fetched from foreign URLs (OpenID Connect
    // Discovery 3).
    request_uri_parameter_supported: authorization ? false : undefined,
    // RFC8414-2-9: the member is required, and is empty without an authorization endpoint.
    response_types_supported: authorization ? ["code"] : [],
    // RFC8414-2-10: without this member readers would take it that the fragment is supported too.
    response_modes_supported: authorization ? ["query"] : undefined,
    code_challenge_methods_supported: authorization ? [...CHALLENGE_METHODS] : undefined, // RFC9700-2.1.1-6, RFC9700-4.7.1-1
    authorization_response_iss_parameter_supported: authorization, // RFC9207-2.3-3
    grant_types_supported: [...offer.grantTypes],
    token_endpoint_auth_methods_supported: [...offer.authMethods], // RFC8414-2-12
    // RFC8414-2-13, RFC8414-2-14, RFC8414-2-15: the list is required where a method uses a JWT; it holds RS256 and not
    // "none".
    token_endpoint_auth_signing_alg_values_supported: [...offer.signingAlgorithms],
    introspection_endpoint: `${issuer}/introspect`,
    introspection_endpoint_auth_methods_supported: proving, // SPCA-4-4
    introspection_endpoint_auth_signing_alg_values_supported: [...offer.signingAlgorithms], // RFC8414-2-18
    revocation_endpoint: `${issuer}/revoke`, // RFC7009-2-3, RFC7009-2-4, RFC7009-2-8
    revocation_endpoint_auth_methods_supported: proving,
    revocation_endpoint_auth_signing_alg_values_supported: [...offer.signingAlgorithms],
    registration_endpoint: offer.registration ? `${issuer}/register` : undefined, // RFC8414-2-7, PROD-4.4-2
    client_id_metadata_document_supported: offer.clientDocuments || undefined, // PROD-4.4-1, MCP-R.1-7
    identity_chaining_requested_token_types_supported: listed(offer.requestedTokenTypes), // IDJAG-7.1-1
    authorization_grant_profiles_supported: listed(offer.grantProfiles), // IDJAG-7.2-1, EMA-6-1
    dpop_signing_alg_values_supported: listed(offer.proofAlgorithms), // RFC9449-5.1-1, MDP-3-1
    tls_client_certificate_bound_access_tokens: offer.certificates, // RFC8705-3.3-1
    // Strict readers of OpenID metadata do not start without these members; no ID token is ever issued. RFC8414-D-1: some
    // take the second one for the algorithms of all JWTs of this issuer.
    subject_types_supported: offer.openIdAlgorithms && ["public"],
    id_token_signing_alg_values_supported: offer.openIdAlgorithms && [...offer.openIdAlgorithms],
    deferred_token_response_supported: offer.deferral, // DTR-5.1-2
    revocation_endpoint_token_type_values_supported: offer.deferral ? [DEFERRAL_CODE] : undefined, // DTR-8.4-1
    refresh_token_expiration_types_supported: offer.refreshEnds ? [...EXPIRATION_TYPES] : undefined, // RTE-8-1
    // RFC8705-5-2: the aliases name every endpoint that authenticates clients.
    mtls_endpoint_aliases:
      mtlsBase === undefined
        ? undefined
        : defined<JsonObject>({
            token_endpoint: `${mtlsBase}/token`,
            introspection_endpoint: `${mtlsBase}/introspect`,
            revocation_endpoint: `${mtlsBase}/revoke`,
            pushed_authorization_request_endpoint: authorization ? `${mtlsBase}/par` : undefined,
          }),
  });
}

const listed = (values: readonly string[]): string[] | undefined =>
  values.length > 0 ? [...values] : undefined;

// --- where (3) --------------------------------------------------------------------------------------------------

const SUFFIXES = ["oauth-authorization-server", "openid-configuration"] as const;

/** RFC8414-3-1, RFC8414-3.1-2, RFC9068-4-4: the well-known part stands between host and path. */
const insertedPaths = (path: string): readonly string[] =>
  SUFFIXES.map((suffix) => `/.well-known/${suffix}${path}`);

/**
 * The same document stands at all of these paths: where RFC 8414 has it; with a final slash, for clients to which a
 * resource server names the issuer with one; and appended to the issuer, where OpenID Connect Discovery 1.0 has it.
 */
export function metadataPaths(issuer: string): readonly string[] {
  const path = new URL(issuer).pathname.replace(/\/$/, "");
  const appended = SUFFIXES.map((suffix) => `${path}/.well-known/${suffix}`);
  // For an issuer without a path, inserted and appended are the same.
  return [...new Set([...insertedPaths(path), ...insertedPaths(`${path}/`), ...appended])];
}

/**
 * The URLs of another issuer's metadata in the order in which they are tried: those of RFC 8414 first, then those of
 * OpenID Connect Discovery 1.0.
 */
export function discoveryUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const inserted = insertedPaths(path).map((place) => origin + place);
  const appended = `${origin}${path}/.well-known/openid-configuration`;
  // For an issuer without a path the last two are the same.
  return [...new Set([...inserted, appended])];
}

// --- of others (3.2, 3.3) ---------------------------------------------------------------------------------------

/** The part of the metadata that is used. */
type IssuerMetadata = { jwksUri: string };

export type OtherIssuer = { kind: "metadata_issuer_differs"; says: string };

type IssuerMetadataFailure =
  | { kind: "metadata_malformed"; cause: "not_object" | JsonFailure["kind"] }
  | OtherIssuer
  | { kind: "metadata_jwks_uri_missing" }
  | { kind: "metadata_jwks_uri_malformed" };

/** Metadata that were found at one of the URLs of `issuer`. */
export function parseIssuerMetadata(
  text: string,
  issuer: string,
): Result<IssuerMetadata, IssuerMetadataFailure> {
  const json = parseJson(text, JSON_DEPTH_MAX);
  if (!json.ok) return err({ kind: "metadata_malformed", cause: json.error.kind });
  if (!isJsonObject(json.value)) return err({ kind: "metadata_malformed", cause: "not_object" });
  // RFC8414-3.3-2, RFC8414-4-1, RFC8414-4-2: the issuer must be identical after JSON unescaping, or the document is of
  // another issuer.
  if (json.value.issuer !== issuer) return err(otherIssuer(json.value.issuer, issuer));
  const { jwks_uri: jwksUri } = json.value;
  if (jwksUri === undefined) return err({ kind: "metadata_jwks_uri_missing" });
  // RFC8414-2-4: the key set is at an https URL in the form that is fetched.
  if (typeof jwksUri !== "string" || !parseFetchUrl(jwksUri).ok) {
    return err({ kind: "metadata_jwks_uri_malformed" });
  }
  return ok({ jwksUri });
}

/** JWKS-D-4: both names, since they differ by a final slash more often than by anything else. */
export function otherIssuer(named: Json | undefined, issuer: string): OtherIssuer {
  const shown = JSON.stringify(named ?? null).slice(0, SHOWN_TEXT_CHARS_MAX);
  return { kind: "metadata_issuer_differs", says: `the document names ${shown}, not "${issuer}"` };
}
