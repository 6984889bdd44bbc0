/** Clients by the metadata that they supply, in a registration (RFC 7591) or in a document at their `client_id`. */

import type { Reason } from "../audit/reasons.ts";
import { MACHINE_GRANT_TYPES, USER_GRANT_TYPES } from "../modes.ts";
import type { Worded } from "../policy/worded.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { type ClientDocument, checkKeysOrigin, type DocumentUrl, documentParser } from "../spec/cimd.ts";
import { type FetchUrl, parseFetchUrl } from "../spec/rfc3986.ts";
import { AUTHORIZATION_CODE } from "../spec/rfc6749.ts";
import {
  type Ceiling,
  type ClientMetadata,
  grantedScopes,
  metadataParser,
  OWN_CLASSES,
  type Registration,
  registerMetadata,
  servedTypes,
} from "../spec/rfc7591.ts";
import { type MetadataFailure, metadataInvalid } from "../spec/rfc7591-errors.ts";
import { isAccepted } from "../spec/rfc8252.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { fitsBundle } from "../spec/spiffe/client-auth.ts";
import {
  type AuthMethod,
  type ClientSource,
  hasCredential,
  isServed,
  methodsFrom,
  methodsWith,
  registrableMethods,
} from "./authentication-methods.ts";
import {
  bindsBy,
  type CredentialFailure,
  detailTypes,
  type KnownClient,
  type KnownCredentials,
  makeClient,
} from "./client.ts";
import type { Client, Reach, SecretDigest, Settings, SuppliedDocument } from "./settings.ts";

export const parseClientMetadata = metadataParser(methodsFrom("registration"));
export const parseClientDocument = documentParser(methodsFrom("metadata_document"));

/** A client as its checked metadata describe it, with what this server adds. */
export type DescribedClient = {
  clientId: string;
  source: ClientSource;
  metadata: ClientMetadata & { method: AuthMethod };
  /** The grant types that the client may use, of those that its metadata ask for. */
  grantTypes: readonly string[];
  scopes?: readonly string[] | undefined;
  registrationClass?: string;
  registeredAtSeconds?: number;
  secrets?: readonly SecretDigest[];
  /** DER of the authorities for clients of `tls_client_auth`. */
  anchors?: readonly Uint8Array[] | undefined;
  /** What the operator permits for URLs of each origin. */
  origins: ReadonlyMap<string, Reach>;
};

export function toClient(described: DescribedClient): Result<Client, CredentialFailure> {
  const { clientId, source, metadata, grantTypes, scopes, secrets, anchors } = described;
  const { registrationClass, registeredAtSeconds } = described;
  const { method, jwks, jwksUri, signingAlg, spiffeId, members: subject, redirectUris } = metadata;
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
      registeredAtSeconds,
      bindsBy: bindsBy(subject),
      detailTypes: detailTypes(subject),
      redirectUris: redirectUris.length > 0 ? redirectUris : undefined,
      claimedName: claimedName(subject),
      method,
      credentials: defined<KnownCredentials>(credentials),
    }),
  );
}

/** RFC7591-2.2-1: the name in each language that it came in; one without a tag is for readers of any other. */
export function claimedName(members: JsonObject): Worded | undefined {
  const { client_name: plain } = members;
  const tagged = Object.entries(members).flatMap(([member, name]) =>
    member.startsWith(TAGGED_NAME) ? [[member.slice(TAGGED_NAME.length), name] as const] : [],
  );
  if (tagged.length === 0) return typeof plain === "string" ? plain : undefined;
  const untagged = plain === undefined ? [] : [["und", plain] as const];
  return Object.fromEntries([...untagged, ...tagged]) as Worded; // the members were checked to be text
}

const TAGGED_NAME = "client_name#";

function readKeysPlace(
  jwksUri: string,
  origins: ReadonlyMap<string, Reach>,
): Result<SuppliedDocument, CredentialFailure> {
  const parsed = parseFetchUrl(jwksUri);
  return parsed.ok
    ? ok(reachable(jwksUri, parsed.value, origins))
    : err({ kind: "keys_unusable", cause: parsed.error.kind });
}

const PUBLIC_ADDRESSES: Reach = { privateNetworks: [] };

/** CIMD-8.6-1: public addresses, and the networks that the operator permits for the origin of this URL. */
function reachable(url: string, parsed: FetchUrl, origins: ReadonlyMap<string, Reach>): SuppliedDocument {
  return { url, parsed, ...(origins.get(parsed.origin) ?? PUBLIC_ADDRESSES) };
}

// --- registrations --------------------------------------------------------------------------------------------

/** How a registration was admitted; `fromPage` says that a page in a browser sent it. */
export type AdmittedBy = { registrationClass: string; ceiling: Ceiling; fromPage?: boolean };

/** RFC7591-3.1-2: decides what is recorded of these metadata under this ceiling, or why they are refused. */
export function judgeRegistration(
  json: JsonObject,
  { registrationClass, ceiling, fromPage = false }: AdmittedBy,
  settings: Pick<
    Settings,
    "trustDomains" | "registration" | "dpop" | "signIn" | "takesCertificates" | "redirects"
  >,
): Result<Registration<AuthMethod>, MetadataFailure> {
  const registrable = registrableMethods(settings);
  const parsed = parseClientMetadata(json);
  if (!parsed.ok) return parsed.error.reason === METHOD_REFUSED ? methodRefused(json, registrable) : parsed;
  const metadata = keepAcceptedUris(parsed.value, settings);
  if (!metadata.ok) return metadata;
  if (!fitsBundle(metadata.value, settings.trustDomains)) {
    return metadataInvalid("spiffe_bundle_endpoint_refused");
  }
  // RFC8705-3.4-2: where no certificate is taken, a client whose tokens need one could get none.
  const { tls_client_certificate_bound_access_tokens: isBound } = metadata.value.members;
  if (isBound === true && !settings.takesCertificates) {
    return metadataInvalid("tls_client_certificate_bound_access_tokens_refused");
  }
  // RFC9449-5.2-1: without DPoP such a client could get no token.
  if (metadata.value.members.dpop_bound_access_tokens === true && settings.dpop.algorithms.length === 0) {
    return metadataInvalid("dpop_bound_access_tokens_refused");
  }
  const byAnybody = registrationClass === OWN_CLASSES.anybody;
  const registration =
    byAnybody && settings.signIn !== undefined && asksUsers(metadata.value)
      ? registerOpenly(metadata.value, ceiling, fromPage)
      : registerMetadata(metadata.value, ceiling, MACHINE_GRANT_TYPES);
  if (!registration.ok) return registration;
  const { method } = registration.value;
  // RFC10017-6.3-3, RFC6749-10.1-1: a program in a page cannot keep a secret; for other programs the operator answers.
  const isShown = byAnybody && fromPage;
  const kept = registrable.filter((one) => !(isShown && hasCredential(one, "secrets")));
  // A method is refused and not replaced, so that no client gets a weaker one than it asked for.
  return kept.includes(method) ? registration : methodRefused(json, kept);
}

const METHOD_REFUSED = "token_endpoint_auth_method_refused";

/** RFC7591-3.2.2-2: the client is told what it could ask for instead. */
function methodRefused(
  { token_endpoint_auth_method: refused }: JsonObject,
  methods: readonly AuthMethod[],
): Result<never, MetadataFailure> {
  const accepted = methods.filter((method) => method !== refused);
  return err({ kind: "client_metadata_invalid", reason: METHOD_REFUSED, accepted });
}

type Metadata = ClientMetadata<AuthMethod>;

/** MCPC-D-4: redirect URIs that no code would be sent to are left out, and the answer shows what was registered. */
function keepAcceptedUris(
  metadata: Metadata,
  { redirects }: Pick<Settings, "redirects">,
): Result<Metadata, MetadataFailure> {
  const { redirectUris: named, members } = metadata;
  const redirectUris = named.filter((uri) => isAccepted(uri, redirects));
  if (redirectUris.length === named.length) return ok(metadata);
  return redirectUris.length === 0
    ? err({ kind: "redirect_uri_invalid", reason: "redirect_uris_unavailable" })
    : ok({ ...metadata, redirectUris, members: { ...members, redirect_uris: redirectUris } });
}

const asksUsers = ({ grantTypes, redirectUris }: Metadata): boolean =>
  grantTypes?.includes(AUTHORIZATION_CODE) ?? redirectUris.length > 0;

/**
 * MCPC-D-10: without an initial access token a client of people gets the consent page and no more, so the grant types
 * of machines are left out. A secret is given only to a program that can keep it, which is neither one on the user's
 * computer nor a page: the first is registered as a public client, whatever it asked for, and the answer says so.
 */
function registerOpenly(
  metadata: Metadata,
  ceiling: Ceiling,
  fromPage: boolean,
): Result<Registration<AuthMethod>, MetadataFailure> {
  const isLocal = metadata.redirectUris.some((uri) => !uri.startsWith("https:"));
  const isSite = !fromPage && !isLocal;
  const { method: named } = metadata;
  // RFC6749-10.1-1: a secret that ships with a program proves nothing, so that `none` is no weaker. This stands in place of
  // RFC7591-2-4 and of its default, as RFC7591-3.1-2 and RFC7591-3.2.1-9 permit.
  const replaced = named === undefined ? !isSite : isLocal && hasCredential(named, "secrets");
  const method = replaced ? "none" : named;
  const admitted: readonly AuthMethod[] = ["none", ...(isSite ? methodsWith("secrets", "registration") : [])];
  if (method !== undefined && !admitted.includes(method)) return methodRefused(metadata.members, admitted);
  const described = defined<Metadata>({ ...metadata, method });
  return registerMetadata(described, { ...ceiling, grantTypes: [] }, MACHINE_GRANT_TYPES);
}

type RegistrationRecord = {
  clientId: string;
  metadata: JsonObject;
  registrationClass: string;
  ceiling: Ceiling;
  classCeiling?: Ceiling;
  secrets: readonly SecretDigest[];
  issuedAtSeconds: number;
};

/**
 * Reads a stored record; undefined if it is no longer valid, because a rule became stricter or an authority was
 * removed.
 */
export function clientOfRegistration(
  record: RegistrationRecord,
  { clientOrigins: origins, registration }: Pick<Settings, "clientOrigins" | "registration">,
): Client | undefined {
  const { clientId, registrationClass, ceiling, secrets, issuedAtSeconds } = record;
  const metadata = parseClientMetadata(record.metadata);
  if (!metadata.ok) return undefined;
  const { method, scope } = metadata.value;
  const scopes = grantedScopes(scope, ceiling);
  if (method === undefined || !scopes.ok) return undefined;
  const grantTypes = servedTypes(metadata.value, MACHINE_GRANT_TYPES);
  const granted: Ceiling = defined({ grantTypes, scopes: scopes.value });
  const permitted = narrow(granted, ceilingNow(record, registration));
  const client = toClient({
    clientId,
    source: "registration",
    metadata: { ...metadata.value, method },
    ...permitted,
    registrationClass,
    registeredAtSeconds: issuedAtSeconds,
    secrets,
    anchors: registration.tlsAnchors,
    origins,
  });
  return client.ok ? client.value : undefined;
}

/**
 * RFC7591-5-7: a class that was narrowed holds at the next request; a wider one adds nothing to the registration. Without
 * `registration.open` the last one stands, so that closing registration widens no client.
 */
export function ceilingNow(
  {
    registrationClass,
    ceiling,
    classCeiling,
  }: Pick<RegistrationRecord, "registrationClass" | "ceiling" | "classCeiling">,
  { open = classCeiling }: { open?: Ceiling | undefined },
): Ceiling {
  const isOpen = registrationClass === OWN_CLASSES.anybody && open !== undefined;
  return isOpen ? narrow(ceiling, open) : ceiling;
}

const narrow = ({ grantTypes, scopes }: Ceiling, by: Ceiling): Ceiling =>
  defined<Ceiling>({
    // What users give needs no permission of the class: a rule and the user's consent decide about it.
    grantTypes: grantTypes.filter((type) => USER_GRANT_TYPES.includes(type) || by.grantTypes.includes(type)),
    scopes:
      by.scopes === undefined ? scopes : (scopes?.filter((one) => by.scopes?.includes(one)) ?? by.scopes),
  });

// --- documents ------------------------------------------------------------------------------------------------

/** The settings that decide which documents are accepted, and for which workloads. */
export type DocumentSettings = Pick<
  Settings,
  "clientDocuments" | "clientOrigins" | "trustDomains" | "signIn" | "takesCertificates"
>;

/** CIMD-5-1, PROD-2.1-4: the document of a `client_id` is fetched from exactly this URL, if its origin is accepted. */
export function documentPlace(
  url: DocumentUrl,
  { clientDocuments, clientOrigins }: Pick<DocumentSettings, "clientDocuments" | "clientOrigins">,
): Result<SuppliedDocument, { reason: Reason }> {
  if (clientDocuments === undefined) return err({ reason: "documents_off" });
  // CIMD-8.9-1: the operator may accept documents of certain origins only.
  if (clientDocuments.origins?.has(url.parsed.origin) === false) {
    return err({ reason: "document_origin_refused" });
  }
  return ok(reachable(url.text, url.parsed, clientOrigins));
}

export function clientOfDocument(
  url: DocumentUrl,
  metadata: ClientDocument<AuthMethod>,
  { clientDocuments, clientOrigins: origins, ...serving }: DocumentSettings,
): Result<Client, { reason: Reason }> {
  const { jwksUri, scope: scopes } = metadata;
  // CIMD-8.2-4, PROD-4.4-12: without sign-in there is nothing that a client without a credential could get.
  if (!isServed(metadata.method, serving)) {
    return err({ reason: metadata.method === "none" ? "document_public" : "document_method_unsupported" });
  }
  if (jwksUri !== undefined && !clientDocuments?.foreignKeys) {
    const same = checkKeysOrigin(url.parsed, jwksUri);
    if (!same.ok) return err({ reason: same.error.kind });
  }
  if (!fitsBundle(metadata, serving.trustDomains)) return err({ reason: "document_bundle_endpoint_differs" });
  // CIMD-3-8, CIMD-7.1-2: the URL is the `client_id` exactly as it was sent, and the source is kept with the client.
  const client = toClient({
    clientId: url.text,
    source: "metadata_document",
    metadata,
    grantTypes: servedTypes(metadata, MACHINE_GRANT_TYPES),
    scopes,
    origins,
  });
  return client.ok ? client : err({ reason: `document_${client.error.kind}` });
}
