/**
 * The authentication methods of clients, in one table. The published metadata, registration, metadata documents and
 * the configuration derive from it. A new method is a row here and a verifier in the flows.
 */

import { JWT_BEARER } from "../spec/rfc7523.ts";
import type { Credential, Methods } from "../spec/rfc7591-members.ts";
import { JWT_SPIFFE } from "../spec/spiffe/client-auth.ts";

/**
 * The place where a client is defined (CIMD-7.1-2); it is kept with the client, because the form of a `client_id` does
 * not tell.
 */
export type ClientSource = "configuration" | "operator" | "registration" | "metadata_document";

type Row = {
  /** How a request presents the proof: a secret by Basic, in the body or by either, an assertion of this type, or by TLS. */
  presented: "basic" | "body" | "basic_or_body" | "certificate" | "nothing" | `urn:${string}`;
  /** What the client has on record, for its proof to be verified against. */
  credential: Credential;
  /** Where clients with this method may be defined. */
  sources: readonly ClientSource[];
};

/** CIMD-4.1-1: a document may not name this method, because everyone can read the document. */
const SHARED_SECRET = ["configuration", "operator", "registration"] as const;
/**
 * RFC7591-2-5: a registration may not name this method, since no standard has the name; a client keeps the one method
 * that it asked for.
 */
const ANY_SECRET = ["configuration", "operator"] as const;
/** CIMD-8.2-1: a document may name this method too, because only the client has the private key. */
const OWN_KEY = ["configuration", "registration", "metadata_document"] as const;
/**
 * A document may not name this method, because only the operator can name the authority that the certificate must come
 * from.
 */
const NAMED_SUBJECT = ["configuration", "registration"] as const;

/** MCPC-D-9: this method is for codes alone, whose challenge stands in place of a proof of the client. */
const PUBLIC = ["configuration", "registration", "metadata_document"] as const;

/** RFC7591-2-5, PROD-2.2-12: the list leaves out methods that need readable secrets. */
export const AUTH_METHODS = {
  client_secret: { presented: "basic_or_body", credential: "secrets", sources: ANY_SECRET },
  client_secret_basic: { presented: "basic", credential: "secrets", sources: SHARED_SECRET },
  client_secret_post: { presented: "body", credential: "secrets", sources: SHARED_SECRET },
  private_key_jwt: { presented: JWT_BEARER, credential: "keys", sources: OWN_KEY },
  spiffe_jwt: { presented: JWT_SPIFFE, credential: "spiffe_id", sources: OWN_KEY },
  spiffe_x509: { presented: "certificate", credential: "spiffe_id", sources: OWN_KEY },
  tls_client_auth: { presented: "certificate", credential: "subject", sources: NAMED_SUBJECT },
  self_signed_tls_client_auth: { presented: "certificate", credential: "certificates", sources: OWN_KEY },
  none: { presented: "nothing", credential: "nothing", sources: PUBLIC },
} as const satisfies Record<string, Row>;

export type AuthMethod = keyof typeof AUTH_METHODS;

/** The methods whose row has this part. */
export type MethodWith<Part extends Partial<Row>> = {
  [M in AuthMethod]: (typeof AUTH_METHODS)[M] extends Part ? M : never;
}[AuthMethod];

/** The types of assertion that prove a client. */
export type AssertionType = Extract<(typeof AUTH_METHODS)[AuthMethod]["presented"], `urn:${string}`>;

const NAMES = Object.keys(AUTH_METHODS) as AuthMethod[];

const mayComeFrom = (method: AuthMethod, source: ClientSource): boolean =>
  AUTH_METHODS[method].sources.some((one) => one === source);

/** The methods that a client of this source may have, each with the credential that it needs. */
export function methodsFrom(source: ClientSource): Methods<AuthMethod> {
  const methods = NAMES.filter((method) => mayComeFrom(method, source));
  return Object.fromEntries(methods.map((method) => [method, AUTH_METHODS[method].credential]));
}

export const hasCredential = <C extends Credential>(
  method: AuthMethod,
  credential: C,
): method is MethodWith<{ credential: C }> => AUTH_METHODS[method].credential === credential;

/** The methods with this credential that a client of this source may have. */
export const methodsWith = <C extends Credential>(credential: C, source: ClientSource) =>
  NAMES.filter((method) => mayComeFrom(method, source)).filter((method) => hasCredential(method, credential));

type Vouching = {
  trustDomains: ReadonlyMap<string, unknown>;
  signIn?: unknown;
  takesCertificates: boolean;
  registration: { tlsAnchors?: readonly Uint8Array[] };
};

type Serving = Pick<Vouching, "trustDomains" | "signIn" | "takesCertificates">;

/**
 * SPCA-4-3, PROD-4.4-12: SPIFFE methods are served if a trust domain is configured, those by certificate if a listener
 * takes certificates, `none` if users sign in, and the others always.
 */
export function isServed(method: AuthMethod, { trustDomains, signIn, takesCertificates }: Serving): boolean {
  if (hasCredential(method, "nothing")) return signIn !== undefined;
  if (AUTH_METHODS[method].presented === "certificate" && !takesCertificates) return false;
  return !hasCredential(method, "spiffe_id") || trustDomains.size > 0;
}

/** RFC8414-2-12: methods are published by the names that clients know, which are those that a client may register. */
export const servedMethods = (settings: Serving): readonly AuthMethod[] =>
  NAMES.filter((method) => mayComeFrom(method, "registration") && isServed(method, settings));

/** PROD-4.4-12: the methods that are served; a subject also needs authorities for the certificates of clients. */
export const registrableMethods = (settings: Vouching): readonly AuthMethod[] =>
  servedMethods(settings).filter(
    (method) => !hasCredential(method, "subject") || settings.registration.tlsAnchors !== undefined,
  );
