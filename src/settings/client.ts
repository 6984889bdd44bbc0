/** Reads what is known of a client, from any source, into the client that requests are authenticated against. */

import { defined, err, ok, type Result } from "../result.ts";
import { algorithmsOf, type Jwk, parseJwkSet } from "../spec/rfc7517.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import {
  parseRegisteredCertificate,
  parseSubject,
  type SubjectMembers,
  type SubjectParameter,
} from "../spec/rfc8705.ts";
import { type AuthMethod, hasCredential, type MethodWith } from "./authentication-methods.ts";
import type {
  Client,
  ClientAuth,
  KeySetPlace,
  RemoteDocument,
  SecretDigest,
  SuppliedDocument,
  Voucher,
} from "./settings.ts";

/** Everything a source says about how a client proves itself; the method decides which member is used. */
export type KnownCredentials = {
  secrets?: readonly SecretDigest[];
  /** A JWK Set as it was sent or configured. */
  jwks?: JsonObject;
  /** The URL of its JWK Set, named by the operator. */
  jwksUri?: RemoteDocument;
  /** The URL of its JWK Set, named by the client. */
  keySet?: SuppliedDocument;
  /** The one algorithm of its assertions. */
  signingAlg?: string;
  vouchers?: readonly Voucher[];
  /** A SPIFFE ID, or a prefix of SPIFFE IDs that ends in a slash and a star. */
  spiffeId?: string;
  /** The `tls_client_auth_…` parameters, by their names. */
  subject?: SubjectMembers;
  /** DER of the authorities that vouch for the subject. */
  anchors?: readonly Uint8Array[];
};

export type KnownClient = Omit<Client, "auth"> & { method: AuthMethod; credentials: KnownCredentials };

/** RFC8705-3.4-1, RFC9449-5.2-2: a member that is absent counts as false. */
export function bindsBy({
  tls_client_certificate_bound_access_tokens: certificate = false,
  dpop_bound_access_tokens: dpop = false,
}: {
  tls_client_certificate_bound_access_tokens?: unknown;
  dpop_bound_access_tokens?: unknown;
}): Client["bindsBy"] {
  const demanded: ("certificate" | "dpop")[] = [];
  if (certificate === true) demanded.push("certificate");
  if (dpop === true) demanded.push("dpop");
  return demanded.length > 0 ? demanded : undefined;
}

/** RFC9396-10-2: the types that the client says it uses; a list that names none is no list. */
export const detailTypes = ({
  authorization_details_types: types,
}: {
  authorization_details_types?: unknown;
}): Client["detailTypes"] => (Array.isArray(types) && types.length > 0 ? types.map(String) : undefined);

/** `cause` is the more exact reason, where one is known. */
export type CredentialFailure = {
  kind: "keys_unusable" | "certificates_missing" | "subject_refused" | "authorities_missing";
  cause?: string;
  parameter?: SubjectParameter;
};

export function makeClient({
  method,
  credentials,
  ...client
}: KnownClient): Result<Client, CredentialFailure> {
  const auth = readAuth(method, credentials);
  return auth.ok ? ok({ ...client, auth: auth.value }) : auth;
}

function readAuth(method: AuthMethod, credentials: KnownCredentials): Result<ClientAuth, CredentialFailure> {
  const { secrets = [], spiffeId = "" } = credentials;
  if (hasCredential(method, "secrets")) return ok({ method, secrets });
  if (hasCredential(method, "keys")) return readKeys(method, credentials);
  if (hasCredential(method, "spiffe_id")) return ok({ method, spiffeId });
  if (hasCredential(method, "certificates")) return readCertificates(method, credentials);
  if (hasCredential(method, "nothing")) return ok({ method });
  return readSubject(method, credentials);
}

/** CIMD-8.2-3, PROD-2.2-14: a client has keys given by value, or the URL that they are fetched from. */
function readKeys(
  method: MethodWith<{ credential: "keys" }>,
  { jwks, jwksUri, keySet, signingAlg, vouchers }: KnownCredentials,
): Result<ClientAuth, CredentialFailure> {
  if (vouchers !== undefined) return ok({ method, vouchers });
  if (jwksUri !== undefined) return ok({ method, jwksUri });
  if (keySet !== undefined) {
    return ok({ method, keySet: defined<KeySetPlace>({ ...keySet, algorithm: signingAlg }) });
  }
  const set = parseJwkSet(JSON.stringify(jwks ?? {}));
  if (!set.ok) return err({ kind: "keys_unusable", cause: set.error.kind });
  const keys = narrowKeys(set.value, signingAlg);
  return keys.length === 0 ? err({ kind: "keys_unusable" }) : ok({ method, keys });
}

/** RFC8725-3.1-v1: a client that named one algorithm for its assertions has no key for any other. */
export function narrowKeys(keys: readonly Jwk[], algorithm: string | undefined): readonly Jwk[] {
  if (algorithm === undefined) return keys;
  const fitting = keys.filter((key) => algorithmsOf(key, [algorithm]).includes(algorithm));
  return fitting.map((key) => ({ ...key, alg: algorithm }));
}

/** RFC8705-2.2-1: every key must come with its certificate. */
function readCertificates(
  method: MethodWith<{ credential: "certificates" }>,
  { jwks }: KnownCredentials,
): Result<ClientAuth, CredentialFailure> {
  const read = (Array.isArray(jwks?.keys) ? jwks.keys : []).map(parseRegisteredCertificate);
  const certificates = read.flatMap((one) => (one.ok ? [one.value] : []));
  const complete = certificates.length === read.length && read.length > 0;
  return complete ? ok({ method, certificates }) : err({ kind: "certificates_missing" });
}

function readSubject(
  method: MethodWith<{ credential: "subject" }>,
  { subject = {}, anchors = [] }: KnownCredentials,
): Result<ClientAuth, CredentialFailure> {
  const expected = parseSubject(subject);
  if (!expected.ok) {
    const { kind: cause, ...where } = expected.error;
    return err({ kind: "subject_refused", cause, ...where });
  }
  // RFC8705-2.1-1: the subject in a certificate means nothing without a trusted authority that signed it.
  if (anchors.length === 0) return err({ kind: "authorities_missing" });
  return ok({ method, subject: expected.value, anchors });
}
