/**
 * RFC 7591, OAuth 2.0 Dynamic Client Registration: https://www.rfc-editor.org/rfc/rfc7591.html
 * Covers 2 client metadata as a whole, 2.1 grant and response types, 2.2 languages, 3.1.1 software statements, 3.2.1
 * the answer. Client ID metadata documents hold the same members.
 * Elsewhere: 2 flows/register-client.ts, modes.ts, settings/authentication-methods.ts, settings/client-metadata.ts; 2.2
 * settings/client-metadata.ts; 2.3 flows/software-statement.ts, settings/settings.ts, spec/rfc8725.ts; 3
 * adapters/store/journal-statements.ts, flows/authorize-registration.ts, http/register.ts, records.ts; 3.1
 * flows/register-client.ts, settings/client-metadata.ts; 3.1.1 flows/software-statement.ts; 3.2 http/register.ts; 3.2.1
 * adapters/store/journal-statements.ts, flows/register-client.ts, http/register.ts, settings/client-metadata.ts; 3.2.2
 * flows/software-statement.ts, http/register.ts, settings/client-metadata.ts; 5 adapters/clients/idle-registrations.ts,
 * flows/register-client.ts, records.ts, settings/client-metadata.ts, spec/rfc8252.ts; 6 flows/register-client.ts.
 */
import * as v from "valibot";
import { METADATA_LIST_MAX } from "../limits/clients.ts";
import { defined, err, ok, type Result } from "../result.ts";
import { AUTHORIZATION_CODE, REFRESH_TOKEN } from "./rfc6749.ts";
import { type MetadataFailure, type MetadataReason, metadataInvalid } from "./rfc7591-errors.ts";
import {
  type Credential,
  HUMAN_READABLE,
  type Members,
  type Methods,
  membersFor,
  parseKeys,
} from "./rfc7591-members.ts";
import { readRedirectUri } from "./rfc8252.ts";
import type { Json, JsonObject } from "./rfc8259.ts";
import { parseSubject } from "./rfc8705.ts";

// --- metadata (2, 2.2, 3.1.1) -------------------------------------------------------------------------------

/** Checked client metadata; self-asserted, except for what a software statement says (RFC7591-5-7). */
export type ClientMetadata<M extends string = string> = {
  /** The members that were understood, by their wire names. */
  members: JsonObject;
  method?: M;
  /** The one algorithm of its assertions. */
  signingAlg?: string;
  /** The grant types that were asked for, unknown ones too; never empty. */
  grantTypes?: readonly string[];
  responseTypes?: readonly string[];
  redirectUris: readonly string[];
  scope?: readonly string[];
  jwksUri?: string;
  /** Public keys that the method can use. */
  jwks?: JsonObject;
  /** A SPIFFE ID, or a prefix of SPIFFE IDs that ends in a slash and a star. */
  spiffeId?: string;
  /** The URL is never fetched; it must equal the one that is configured for the trust domain. */
  bundleEndpoint?: string;
};

/**
 * RFC7591-2-22, RFC7591-3.1.1-2, RFC7591-5-11: the claims of a verified statement take precedence, and the result is
 * checked as a whole (RFC7591-5-12). JWT claims like `exp` are not metadata, and are ignored like unknown members.
 */
export const mergeStatement = (json: JsonObject, claims: JsonObject): JsonObject => ({
  ...json,
  ...Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null)),
});

/** RFC7592-2.2-4, MCPC-D-23: a member that is null, a blank text or a list of nothing else is treated as absent. */
export function isGiven(value: Json | undefined): value is Json {
  const isBlank = (one: Json | undefined): boolean => typeof one === "string" && one.trim() === "";
  return (
    value !== undefined && value !== null && !(Array.isArray(value) ? value.every(isBlank) : isBlank(value))
  );
}

/** The members of a registration or a document that say something. */
export const givenMembers = (members: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => isGiven(value)));

/**
 * Reads the metadata of clients that may use these methods. A `software_statement` is recorded unchanged
 * (RFC7591-3.2.1-11), so the caller must remove one that it has not verified.
 */
export function metadataParser<M extends string>(methods: Methods<M>) {
  const schema = membersFor(Object.keys(methods));
  return (json: JsonObject): Result<ClientMetadata<M>, MetadataFailure> =>
    parseMetadata(json, schema, methods);
}

function parseMetadata<M extends string>(
  json: JsonObject,
  schema: ReturnType<typeof membersFor>,
  methods: Methods<M>,
): Result<ClientMetadata<M>, MetadataFailure> {
  // SDKs of MCP read an empty list of redirect URIs again from the answer.
  const redirects = Array.isArray(json.redirect_uris) ? { redirect_uris: json.redirect_uris } : {};
  const sent: JsonObject = Object.assign(givenMembers(json), redirects);
  const parsed = v.safeParse(schema, sent, { abortEarly: true });
  if (!parsed.success) {
    // PROD-2.2-17: a wrong type, length or value, reported by the name of the member.
    const member = parsed.issues[0].path?.[0]?.key as keyof Members; // only declared members are checked
    const kind = member === "redirect_uris" ? "redirect_uri_invalid" : "client_metadata_invalid";
    return err({ kind, reason: `${member}_refused` });
  }
  const { redirect_uris: redirectUris = [], jwks: sentKeys, ...members } = parsed.output;
  for (const uri of redirectUris) {
    const checked = readRedirectUri(uri);
    if (!checked.ok) return err({ kind: "redirect_uri_invalid", reason: checked.error.kind });
  }
  const languages = parseLanguages(sent);
  if (!languages.ok) return languages;
  // The schema accepts only the names in `methods`.
  const method = members.token_endpoint_auth_method as M | undefined;
  const credential = method && methods[method];
  const broken = brokenRule(parsed.output, credential);
  if (broken !== undefined) return metadataInvalid(broken);
  const keys = sentKeys === undefined ? ok(undefined) : parseKeys(sentKeys, credential, members);
  if (!keys.ok) return metadataInvalid(keys.error.kind);

  const { grant_types: grantTypes, scope } = members;
  const { value: jwks } = keys;
  const understood = { ...(parsed.output as JsonObject), ...languages.value };
  return ok(
    defined<ClientMetadata<M>>({
      members: jwks === undefined ? understood : { ...understood, jwks },
      method,
      signingAlg: members.token_endpoint_auth_signing_alg,
      grantTypes,
      responseTypes: members.response_types,
      redirectUris,
      scope: scope === undefined ? undefined : [...new Set(scope.split(" "))],
      jwksUri: members.jwks_uri,
      jwks,
      spiffeId: members.spiffe_id,
      bundleEndpoint: members.spiffe_bundle_endpoint,
    }),
  );
}

const TAGGED = /^([a-z_]+)#[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,7}$/;

function parseLanguages(sent: JsonObject): Result<JsonObject, MetadataFailure> {
  const variants: JsonObject = {};
  const folded = new Set<string>();
  for (const [name, value] of Object.entries(sent)) {
    const member = TAGGED.exec(name)?.[1];
    if (member === undefined || !isHumanReadable(member)) continue;
    if (!v.is(HUMAN_READABLE[member], value)) return metadataInvalid(`${member}_refused`);
    // RFC7591-2.2-2: two texts for one language are refused, because one of them would never be shown.
    if (folded.has(name.toLowerCase())) return metadataInvalid("languages_repeated");
    folded.add(name.toLowerCase());
    variants[name] = value;
  }
  return folded.size > METADATA_LIST_MAX ? metadataInvalid("languages_too_many") : ok(variants);
}

const isHumanReadable = (member: string): member is keyof typeof HUMAN_READABLE =>
  Object.hasOwn(HUMAN_READABLE, member);

/** The rules between members, and the members that the method needs. */
function brokenRule(members: Members, credential: Credential | undefined): MetadataReason | undefined {
  const { jwks, jwks_uri: jwksUri, redirect_uris: redirectUris = [] } = members;
  // RFC6749-2-1, RFC7591-2-2, RFC7591-5-2, PROD-2.2-15: redirect URIs are required only where the grant type is named,
  // and not where it is there by default.
  if (members.grant_types?.includes(AUTHORIZATION_CODE) && redirectUris.length === 0) {
    return "redirect_uris_missing";
  }
  // RFC7591-2-17: keys by value and by URL exclude each other.
  if (jwks !== undefined && jwksUri !== undefined) return "keys_twice";
  if (members.token_endpoint_auth_signing_alg !== undefined && credential !== "keys")
    return "signing_alg_alone";
  const subject = parseSubject(members as JsonObject);
  if (!subject.ok) {
    const { error } = subject;
    if (error.kind === "subject_malformed") return `${error.parameter}_refused`;
    // RFC8705-2.1.2-1: at most one subject, and exactly one for the method that needs it.
    if (error.kind === "subject_repeated" || credential === "subject") return error.kind;
  }
  switch (credential) {
    case "keys":
      return jwks === undefined && jwksUri === undefined ? "keys_missing" : undefined;
    case "nothing":
      // RFC6749-3.1.2.2-1, RFC6749-10.2-2: codes of a client that proves nothing go to registered places alone.
      return redirectUris.length === 0 ? "token_endpoint_auth_method_refused" : undefined;
    case "certificates":
      return jwks === undefined ? "certificates_missing" : undefined;
    case "spiffe_id":
      // SPCA-5.1-1: the SPIFFE methods need a SPIFFE ID.
      return members.spiffe_id === undefined ? "spiffe_id_missing" : undefined;
    default:
      return undefined;
  }
}

/** RFC6749-2.2-1, PROD-2.1-9: the prefix of every `client_id` that the server makes, which no other one may have. */
export const CLIENT_ID_PREFIX = "c_";

// --- registration (2.1, 3.2.1) ------------------------------------------------------------------------------

/** The most that a client may be granted, by how it was admitted. */
export type Ceiling = { grantTypes: readonly string[]; scopes?: readonly string[] };

/**
 * RFC7591-2-21: the grant types that are recorded, of those that were asked for: nothing else is ever added. The ones
 * of interactive clients need no permission, because with them nothing is given that a user was not asked for.
 */
export function grantedTypes(
  { grantTypes: named, redirectUris, method }: Pick<ClientMetadata, "grantTypes" | "redirectUris" | "method">,
  { grantTypes }: Ceiling,
): Result<readonly string[], MetadataFailure> {
  // RFC7591-2-7, RFC7591-5-2: the default grant type needs redirect URIs: without them there is nothing to record.
  const requested = new Set(named ?? (redirectUris.length > 0 ? [AUTHORIZATION_CODE] : []));
  // MCPC-D-9: a public client has no other grant types, whatever others of its class may have.
  const allowed = new Set([...(method === "none" ? [] : grantTypes), ...interactiveTypes(requested)]);
  const granted = [...requested.intersection(allowed)];
  return granted.length === 0 && requested.size > 0
    ? metadataInvalid("grant_types_unavailable")
    : ok(granted);
}

const interactiveTypes = (requested: ReadonlySet<string>): readonly string[] =>
  requested.has(AUTHORIZATION_CODE) ? [AUTHORIZATION_CODE, REFRESH_TOKEN] : [];

/**
 * RFC7591-2-7, PROD-2.2-9, MCPC-D-6, REFRESH-D-1: the grant types that a client of these metadata can use. MCPC-D-9: a
 * public client proves nothing, so it has only what a user gives it.
 */
export function servedTypes(
  { grantTypes, redirectUris, method }: Pick<ClientMetadata, "grantTypes" | "redirectUris" | "method">,
  ofMachines: readonly string[],
): readonly string[] {
  const requested = new Set(grantTypes ?? (redirectUris.length > 0 ? [AUTHORIZATION_CODE] : []));
  const served = [...(method === "none" ? [] : ofMachines), ...interactiveTypes(requested)];
  return served.filter((type) => requested.has(type));
}

/** RFC7591-2-14: the ceiling where no scope was asked for; undefined if there is no ceiling either. */
export function grantedScopes(
  requested: readonly string[] | undefined,
  { scopes }: Ceiling,
): Result<readonly string[] | undefined, MetadataFailure> {
  if (requested === undefined || scopes === undefined) return ok(requested ?? scopes);
  const granted = requested.filter((scope) => scopes.includes(scope));
  return granted.length === 0 ? metadataInvalid("scope_unavailable") : ok(granted);
}

/** The classes of clients that register without an initial access token, which no such token may assign. */
export const OWN_CLASSES = { anybody: "open", administrator: "managed" } as const;

/** RFC7591-2-4: the method of a registration that names none. */
const DEFAULT_METHOD = "client_secret_basic";

export type Registration<M extends string = string> = {
  /** The metadata as they are stored and returned. */
  members: JsonObject;
  method: M | typeof DEFAULT_METHOD;
  grantTypes: readonly string[];
  scopes?: readonly string[];
};

/** RFC7591-3.1-2, RFC7591-3.2.1-9: fills in defaults, and replaces what was asked for by what is granted. */
export function registerMetadata<M extends string>(
  metadata: ClientMetadata<M>,
  ceiling: Ceiling,
  ofMachines: readonly string[],
): Result<Registration<M>, MetadataFailure> {
  const { members, method: named, grantTypes, responseTypes, scope } = metadata;
  // PROD-2.2-9, MCPC-D-23: what is not offered here is left out, as in a document, while one is left.
  const offered = new Set([...ofMachines, ...interactiveTypes(new Set(grantTypes))]);
  if (grantTypes?.some((type) => offered.has(type)) === false) return metadataInvalid("grant_types_refused");
  // RFC7591-2-9: `code` is the only response type of an authorization endpoint that we know.
  if (responseTypes?.includes("code") === false) return metadataInvalid("response_types_refused");
  // RFC7591-2.1-1: the two must be consistent where both are named; RFC7591-2-7, RFC7591-2-10: a default always is.
  if (responseTypes !== undefined && grantTypes?.includes(AUTHORIZATION_CODE) === false) {
    return metadataInvalid("response_types_inconsistent");
  }
  const types = grantedTypes(metadata, ceiling);
  if (!types.ok) return types;
  const scopes = grantedScopes(scope, ceiling);
  if (!scopes.ok) return scopes;
  // RFC7591-2-4: a method that was named stands, unless the caller decided otherwise.
  const method = named ?? DEFAULT_METHOD;
  const { value: granted = [] } = scopes;
  return ok(
    defined<Registration<M>>({
      members: defined<JsonObject>({
        ...members,
        token_endpoint_auth_method: method,
        grant_types: [...types.value],
        response_types: types.value.includes(AUTHORIZATION_CODE) ? ["code"] : [], // RFC7591-2-10, RFC7591-2.1-1
        scope: granted.length > 0 ? granted.join(" ") : members.scope,
      }),
      method,
      grantTypes: types.value,
      scopes: scopes.value,
    }),
  );
}

export type ClientInformation = {
  clientId: string;
  issuedAtSeconds: number;
  metadata: JsonObject;
  /** Only in the answer that creates it; afterwards the server has only its digest. */
  secret?: string;
  secretExpiresAtSeconds?: number;
  registrationUri: string;
  registrationToken: string;
};

/** RFC7591-3.2.1-8, RFC7591-3.2.1-10, RFC7591-3.2.1-12, RFC7592-3-3, PROD-2.7-2: the whole record, top-level members. */
export function buildClientInformation(client: ClientInformation): JsonObject {
  const { secret, secretExpiresAtSeconds = 0 } = client;
  return defined<JsonObject>({
    client_id: client.clientId, // RFC7591-3.2.1-1, PROD-4.2-5
    client_id_issued_at: client.issuedAtSeconds, // RFC7591-3.2.1-6
    client_secret: secret,
    // RFC7591-3.2.1-7: the expiry is required with a secret; 0 means that it never expires.
    client_secret_expires_at: secret === undefined ? undefined : secretExpiresAtSeconds,
    ...client.metadata,
    registration_client_uri: client.registrationUri, // RFC7592-3-1
    registration_access_token: client.registrationToken, // RFC7592-3-2
  });
}
