/** Clients by the metadata that they bring themselves, in a registration (RFC 7591) or in a document at their URL. */

import type { Result } from "../result.ts";
import { defined, err, ok } from "../result.ts";
import type { ClientDocument, DocumentUrl } from "../spec/cimd.ts";
import { checkKeysOrigin, documentParser } from "../spec/cimd.ts";
import type { FetchUrl } from "../spec/rfc3986.ts";
import { parseFetchUrl } from "../spec/rfc3986.ts";
import type { Ceiling, ClientMetadata, Registration } from "../spec/rfc7591.ts";
import {
  grantedScopes,
  grantedTypes,
  metadataParser,
  registerMetadata,
  SERVED_GRANT_TYPES,
} from "../spec/rfc7591.ts";
import type { MetadataFailure } from "../spec/rfc7591-errors.ts";
import { metadataInvalid } from "../spec/rfc7591-errors.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { fitsBundle } from "../spec/spiffe/client-auth.ts";
import type { AuthMethod, ClientSource } from "./authentication-methods.ts";
import { isRegistrable, methodsFrom } from "./authentication-methods.ts";
import type { CredentialFailure, Credentials, KnownClient } from "./client.ts";
import { makeClient } from "./client.ts";
import type { BroughtDocument, Client, Reach, SecretDigest, Settings } from "./settings.ts";

export const parseClientMetadata = metadataParser(methodsFrom("registration"));
export const parseClientDocument = documentParser(methodsFrom("metadata_document"));

/** A client as its checked metadata describe it, and what was added to that here. */
export type DescribedClient = {
  clientId: string;
  source: ClientSource;
  metadata: ClientMetadata & { method: AuthMethod };
  /** What it was granted of what its metadata ask for. */
  grantTypes: readonly string[];
  scopes?: readonly string[] | undefined;
  registrationClass?: string;
  secrets?: readonly SecretDigest[];
  /** DER of the authorities that vouch for clients of `tls_client_auth`. */
  anchors?: readonly Uint8Array[] | undefined;
  /** What the operator opened, by origin. */
  origins: ReadonlyMap<string, Reach>;
};

export function toClient(described: DescribedClient): Result<Client, CredentialFailure> {
  const { clientId, source, metadata, grantTypes, scopes, registrationClass, secrets, anchors } = described;
  const { method, jwks, jwksUri, signingAlg, spiffeId, members: subject } = metadata;
  const keySet = jwksUri === undefined ? ok(undefined) : readKeysPlace(jwksUri, described.origins);
  if (!keySet.ok) return keySet;
  const credentials = { secrets, jwks, keySet: keySet.value, signingAlg, spiffeId, subject, anchors };
  return makeClient(
    defined<KnownClient>({
      clientId,
      source,
      grantTypes,
      scopes,
      registrationClass,
      method,
      credentials: defined<Credentials>(credentials),
    }),
  );
}

function readKeysPlace(
  jwksUri: string,
  origins: ReadonlyMap<string, Reach>,
): Result<BroughtDocument, CredentialFailure> {
  const parsed = parseFetchUrl(jwksUri);
  return parsed.ok
    ? ok(reachable(jwksUri, parsed.value, origins))
    : err({ kind: "keys_unusable", cause: parsed.error.kind });
}

const OPEN_INTERNET: Reach = { privateNetworks: [] };

/** CIMD-8.6-1: public addresses, and those that the operator opened for the origin of this very URL. */
function reachable(url: string, parsed: FetchUrl, origins: ReadonlyMap<string, Reach>): BroughtDocument {
  return { url, parsed, ...(origins.get(parsed.origin) ?? OPEN_INTERNET) };
}

// --- registrations --------------------------------------------------------------------------------------------

/** RFC7591-3.1-2: what is recorded of these metadata under this ceiling, or why they are refused. */
export function judgeRegistration(
  json: JsonObject,
  ceiling: Ceiling,
  settings: Pick<Settings, "trustDomains" | "registration">,
): Result<Registration<AuthMethod>, MetadataFailure> {
  const metadata = parseClientMetadata(json);
  if (!metadata.ok) return metadata;
  if (!fitsBundle(metadata.value, settings.trustDomains)) {
    return metadataInvalid("spiffe_bundle_endpoint_refused");
  }
  const registration = registerMetadata(metadata.value, ceiling);
  if (!registration.ok) return registration;
  // Refused rather than replaced, so that no client gets a weaker method than it asked for.
  return isRegistrable(registration.value.method, settings)
    ? registration
    : metadataInvalid("token_endpoint_auth_method_refused");
}

type RegistrationRecord = {
  clientId: string;
  metadata: JsonObject;
  registrationClass: string;
  ceiling: Ceiling;
  secrets: readonly SecretDigest[];
};

/** Undefined where the record fits no more, because rules became stricter or an authority was taken away. */
export function clientOfRegistration(
  { clientId, metadata: members, registrationClass, ceiling, secrets }: RegistrationRecord,
  { clientOrigins: origins, registration }: Pick<Settings, "clientOrigins" | "registration">,
): Client | undefined {
  const metadata = parseClientMetadata(members);
  if (!metadata.ok) return undefined;
  const { method, grantTypes = [], scope } = metadata.value;
  const scopes = grantedScopes(scope, ceiling);
  if (method === undefined || !scopes.ok) return undefined;
  const client = toClient({
    clientId,
    source: "registration",
    metadata: { ...metadata.value, method },
    grantTypes,
    scopes: scopes.value,
    registrationClass,
    secrets,
    anchors: registration.tlsAnchors,
    origins,
  });
  return client.ok ? client.value : undefined;
}

// --- documents ------------------------------------------------------------------------------------------------

/** What decides which documents count, where they may be, and which workloads they may speak for. */
export type DocumentSettings = Pick<Settings, "clientDocuments" | "clientOrigins" | "trustDomains">;

/** CIMD-5-1, PROD-2.1-4: where the document of this `client_id` is, at exactly this URL, if documents from there count. */
export function documentPlace(
  url: DocumentUrl,
  { clientDocuments, clientOrigins }: Pick<DocumentSettings, "clientDocuments" | "clientOrigins">,
): Result<BroughtDocument, { reason: string }> {
  if (clientDocuments === undefined) return err({ reason: "documents_off" });
  // CIMD-8.9-1
  if (clientDocuments.origins?.has(url.parsed.origin) === false) {
    return err({ reason: "document_origin_refused" });
  }
  return ok(reachable(url.text, url.parsed, clientOrigins));
}

export function clientOfDocument(
  url: DocumentUrl,
  metadata: ClientDocument<AuthMethod>,
  { clientDocuments, clientOrigins: origins, trustDomains }: DocumentSettings,
): Result<Client, { reason: string }> {
  const { jwksUri, scope: scopes } = metadata;
  if (jwksUri !== undefined && !clientDocuments?.foreignKeys) {
    const same = checkKeysOrigin(url.parsed, jwksUri);
    if (!same.ok) return err({ reason: same.error.kind });
  }
  if (!fitsBundle(metadata, trustDomains)) return err({ reason: "document_bundle_endpoint_differs" });
  const granted = grantedTypes(metadata.grantTypes, { grantTypes: SERVED_GRANT_TYPES });
  if (!granted.ok) return err({ reason: `document_${granted.error.reason}` });
  // CIMD-3-8, CIMD-7.1-2
  const client = toClient({
    clientId: url.text,
    source: "metadata_document",
    metadata,
    grantTypes: granted.value,
    scopes,
    origins,
  });
  return client.ok ? client : err({ reason: `document_${client.error.kind}` });
}
