/** From what a client says of itself, checked, to the client that requests are measured by. */

import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import { documentParser } from "../spec/cimd.ts";
import type { Jwk } from "../spec/rfc7517.ts";
import { algorithmsOf, parseJwkSet } from "../spec/rfc7517.ts";
import type { ClientMetadata } from "../spec/rfc7591.ts";
import { metadataParser } from "../spec/rfc7591.ts";
import { parseRegisteredCertificate, parseSubject } from "../spec/rfc8705.ts";
import type { AuthMethod, ClientSource, MethodWith } from "./authentication-methods.ts";
import { hasCredential, methodsFrom } from "./authentication-methods.ts";
import type { Client, ClientAuth, KeySetPlace, Reach, RemoteDocument, SecretDigest } from "./settings.ts";

export const parseClientMetadata = metadataParser(methodsFrom("registration"));
export const parseClientDocument = documentParser(methodsFrom("metadata_document"));

export type KnownBy = {
  clientId: string;
  source: ClientSource;
  metadata: ClientMetadata & { method: AuthMethod };
  /** What it was granted of what its metadata ask for. */
  grantTypes: readonly string[];
  scopes?: readonly string[];
  registrationClass?: string;
  secrets?: readonly SecretDigest[];
  /** Of clients of `tls_client_auth`. */
  anchors?: readonly Uint8Array[];
  /** What the operator opened, by origin. */
  origins: ReadonlyMap<string, Reach>;
};

export type UnprovableFailure = {
  kind: "keys_unusable" | "certificates_missing" | "subject_refused" | "authorities_missing";
};

export function toClient(known: KnownBy): Result<Client, UnprovableFailure> {
  const { clientId, source, grantTypes, scopes, registrationClass } = known;
  const auth = toAuth(known);
  if (!auth.ok) return auth;
  return ok({
    ...{ clientId, source, grantTypes, auth: auth.value },
    ...(scopes !== undefined && { scopes }),
    ...(registrationClass !== undefined && { registrationClass }),
  });
}

function toAuth(known: KnownBy): Result<ClientAuth, UnprovableFailure> {
  const { metadata, secrets = [], anchors = [] } = known;
  const { method, spiffeId = "", jwks } = metadata;
  if (hasCredential(method, "secrets")) return ok({ method, secrets });
  if (hasCredential(method, "keys")) return toKeys(method, metadata, known.origins);
  if (hasCredential(method, "spiffe_id")) return ok({ method, spiffeId });
  if (hasCredential(method, "certificates")) {
    const read = (Array.isArray(jwks?.keys) ? jwks.keys : []).map(parseRegisteredCertificate);
    const certificates = read.flatMap((one) => (one.ok ? [one.value] : []));
    // RFC8705-2.2-1
    if (certificates.length < read.length || read.length === 0) return err({ kind: "certificates_missing" });
    return ok({ method, certificates });
  }
  const subject = parseSubject(metadata.members);
  if (!subject.ok) return err({ kind: "subject_refused" });
  // RFC8705-2.1-1: whoever signed it, a name in a certificate is worth what its authority is.
  if (anchors.length === 0) return err({ kind: "authorities_missing" });
  return ok({ method, subject: subject.value, anchors });
}

/** CIMD-8.2-3, PROD-2.2-14: the keys that the metadata hold, or those at the place that they name. */
function toKeys(
  method: MethodWith<{ credential: "keys" }>,
  { jwks, jwksUri, signingAlg }: ClientMetadata,
  origins: ReadonlyMap<string, Reach>,
): Result<ClientAuth, UnprovableFailure> {
  if (jwksUri !== undefined) {
    const place: KeySetPlace = {
      ...reachable(jwksUri, origins),
      ...(signingAlg !== undefined && { algorithm: signingAlg }),
    };
    return ok({ method, jwksUri: place });
  }
  const set = parseJwkSet(JSON.stringify(jwks ?? {}));
  const keys = narrowKeys(set.ok ? set.value : [], signingAlg);
  return keys.length === 0 ? err({ kind: "keys_unusable" }) : ok({ method, keys });
}

const OPEN_INTERNET: Reach = { privateNetworks: [] };

/** CIMD-8.6-1: the open Internet, and whatever the operator opened for the origin of this very URL. */
export function reachable(url: string, origins: ReadonlyMap<string, Reach>): RemoteDocument {
  return { url, ...(origins.get(new URL(url).origin) ?? OPEN_INTERNET) };
}

/** RFC8725-3.1-v1: whoever named the one algorithm of his assertions has no key for another one. */
export function narrowKeys(keys: readonly Jwk[], algorithm: string | undefined): readonly Jwk[] {
  if (algorithm === undefined) return keys;
  const fitting = keys.filter((key) => algorithmsOf(key, [algorithm]).includes(algorithm));
  return fitting.map((key) => ({ ...key, alg: algorithm }));
}
