/** The schema of clients: those in the file, how others register, and which metadata documents are accepted. */
import * as v from "valibot";
import {
  CLIENT_IDLE_SECONDS,
  CLIENT_UNUSED_SECONDS,
  CLIENT_UNUSED_SECONDS_OPEN,
  CLIENTS_REGISTERED_MAX,
} from "../limits/clients.ts";
import { MACHINE_GRANT_TYPES, USER_GRANT_TYPES } from "../modes.ts";
import { methodsWith } from "../settings/authentication-methods.ts";
import { CLIENT_CREDENTIALS, isScopeToken } from "../spec/rfc6749.ts";
import type { Credential } from "../spec/rfc7591-members.ts";
import { readRedirectUri } from "../spec/rfc8252.ts";
import {
  file,
  isoTime,
  originUrl,
  reach,
  remote,
  seconds,
  text,
  workloadId,
  workloadPattern,
} from "./values.ts";

const SecretFile = v.union(
  [
    v.strictObject({ file: text, expires: v.optional(isoTime) }),
    v.strictObject({ env: text, expires: v.optional(isoTime) }),
    text,
  ],
  'is neither { "file": … } nor { "env": … }',
);

const GRANT_TYPES: readonly string[] = [...MACHINE_GRANT_TYPES, ...USER_GRANT_TYPES];

const redirectUri = v.pipe(
  v.string(),
  v.check((uri) => readRedirectUri(uri).ok, "is not a redirect URI that codes may be sent to"),
);

/** Of a client that asks users: where codes for it go, and what users are shown as its name. */
const ofPeoplesClient = {
  redirectUris: v.optional(v.array(redirectUri), []),
  title: v.optional(text),
};

const ofClient = {
  ...ofPeoplesClient,
  grantTypes: v.optional(v.array(v.picklist(GRANT_TYPES)), [...GRANT_TYPES]),
  workload: v.optional(workloadId),
  /** Whether its own access token may be its actor token, and name that workload. */
  actorAccessToken: v.optional(v.boolean(), false),
  defaultTarget: v.optional(text),
  /** RFC8705-3.4-1, RFC9449-5.2-2: what its tokens must be bound by; by DPoP in any case if both are set. */
  tls_client_certificate_bound_access_tokens: v.optional(v.boolean(), false),
  dpop_bound_access_tokens: v.optional(v.boolean(), false),
};

/** The keys in it are parsed by the specification modules. */
const jwks = v.looseObject({ keys: v.array(v.unknown()) });

const anyMethodWith = <C extends Credential>(credential: C) =>
  v.picklist(methodsWith(credential, "configuration"));

export const ClientFile = v.variant("method", [
  // MCPC-D-17, CIMD-5-3: the operator's copy of the metadata document at the URL that is the client's name.
  v.strictObject({
    method: v.literal("metadata_document"),
    document: v.looseObject({ client_id: text }),
    defaultTarget: v.optional(text),
  }),
  v.strictObject({
    method: anyMethodWith("secrets"),
    secrets: v.pipe(v.array(SecretFile), v.minLength(1, "has no secret")),
    ...ofClient,
  }),
  v.strictObject({
    method: anyMethodWith("keys"),
    jwks: v.optional(jwks),
    jwksUri: v.optional(remote),
    vouchedBy: v.optional(
      v.pipe(v.array(v.strictObject({ issuer: text, claims: v.record(text, text) })), v.minLength(1)),
    ),
    ...ofClient,
  }),
  v.strictObject({ method: anyMethodWith("spiffe_id"), spiffeId: workloadPattern, ...ofClient }),
  v.strictObject({
    method: anyMethodWith("subject"),
    ca: file,
    /** RFC8705-2.1.2-1: exactly one of these five is set. */
    tls_client_auth_subject_dn: v.optional(text),
    tls_client_auth_san_dns: v.optional(text),
    tls_client_auth_san_uri: v.optional(text),
    tls_client_auth_san_ip: v.optional(text),
    tls_client_auth_san_email: v.optional(text),
    ...ofClient,
  }),
  v.strictObject({ method: anyMethodWith("certificates"), jwks, ...ofClient }),
  // RFC6749-3.1.2.2-1, RFC6749-10.6-2: a public client without a redirect URI could be sent nothing.
  v.strictObject({
    ...ofPeoplesClient,
    method: anyMethodWith("nothing"),
    redirectUris: v.pipe(v.array(redirectUri), v.minLength(1)),
    grantTypes: v.optional(v.array(v.picklist(USER_GRANT_TYPES)), [...USER_GRANT_TYPES]),
    workload: v.optional(v.never()),
    actorAccessToken: v.optional(v.literal(false), false),
    defaultTarget: v.optional(text),
    tls_client_certificate_bound_access_tokens: v.optional(v.literal(false), false),
    dpop_bound_access_tokens: v.optional(v.boolean(), false),
  }),
]);

/** RFC 7591: how clients may register, and the limits for them. */
export const RegistrationFile = v.strictObject({
  mode: v.optional(v.picklist(["off", "initial-access-token", "open"]), "initial-access-token"),
  /** For clients that come without an initial access token. */
  open: v.optional(
    v.strictObject({
      grantTypes: v.optional(v.pipe(v.array(v.picklist(MACHINE_GRANT_TYPES)), v.minLength(1)), [
        CLIENT_CREDENTIALS,
      ]),
      scopes: v.pipe(
        v.array(v.pipe(v.string(), v.check(isScopeToken, "is not a scope token"))),
        v.minLength(1),
      ),
    }),
  ),
  /** Absent: a secret lasts until it is replaced. */
  clientSecretSeconds: v.optional(seconds),
  clientsMax: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), CLIENTS_REGISTERED_MAX),
  unusedSeconds: v.optional(seconds, CLIENT_UNUSED_SECONDS),
  /** The same for a client that asks users and registered without an initial access token. */
  unusedOpenSeconds: v.optional(seconds, CLIENT_UNUSED_SECONDS_OPEN),
  idleSeconds: v.optional(seconds, CLIENT_IDLE_SECONDS),
  /** The authorities for clients that register with `tls_client_auth`. */
  tlsAuthorities: v.optional(file),
});

/** Client ID metadata documents; the section enables them. */
export const DocumentsFile = v.strictObject({
  origins: v.optional(v.array(originUrl)),
  foreignKeys: v.optional(v.boolean(), false),
});

/** The authority and the private networks that URLs supplied by clients may use. */
export const OriginFile = v.strictObject(reach);
