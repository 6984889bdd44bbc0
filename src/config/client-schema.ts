/** The schema of clients: those in the file, how others register, and which metadata documents are accepted. */
import * as v from "valibot";
import { MACHINE_GRANT_TYPES, USER_GRANT_TYPES } from "../modes.ts";
import { flag, maybe, setting } from "../setting.ts";
import { methodsWith } from "../settings/authentication-methods.ts";
import { RegistrationRules } from "../settings/sections.ts";
import type { Credential } from "../spec/rfc7591-members.ts";
import { readRedirectUri } from "../spec/rfc8252.ts";
import {
  certificates,
  env,
  file,
  isoTime,
  originUrl,
  reach,
  remote,
  text,
  workloadId,
  workloadPattern,
} from "./values.ts";

const expires = maybe(isoTime, "When this secret ends, such as 2027-01-31T00:00:00Z; without it, never.");
const SecretFile = v.union(
  [v.strictObject({ ...file.entries, expires }), v.strictObject({ ...env.entries, expires }), text],
  'is neither { "file": … } nor { "env": … }',
);

const GRANT_TYPES: readonly string[] = [...MACHINE_GRANT_TYPES, ...USER_GRANT_TYPES];
const grantTypes = (some: readonly string[]) =>
  setting(
    v.optional(v.array(v.picklist(some)), [...some]),
    "The grant types that it may use; by default all.",
  );

const redirectUris = v.array(
  v.pipe(
    v.string(),
    v.check((uri) => readRedirectUri(uri).ok, "is not a redirect URI that codes may be sent to"),
  ),
);
const redirectsText = "Where authorization codes for it may be sent.";

const workloadText = "The SPIFFE ID as which it acts; rules name it by this.";
const actorText = "Whether its own access token may be its actor token; false by default.";
const certificateBoundText = "Whether its tokens must be bound to its certificate; false by default.";
const defaultTarget = maybe(text, "The target of a request that names none.");
const dpopBound = flag("Whether its tokens must be bound to a DPoP key");

const detailTypes = maybe(
  v.pipe(v.array(text), v.minLength(1)),
  "The types of `authorization_details` that it may send; without it, any that the target declares.",
);

const ofClient = {
  redirectUris: setting(v.optional(redirectUris, []), redirectsText),
  grantTypes: grantTypes(GRANT_TYPES),
  workload: maybe(workloadId, workloadText),
  actorAccessToken: setting(v.optional(v.boolean(), false), actorText),
  defaultTarget,
  /** RFC8705-3.4-1, RFC9449-5.2-2: if both are set, tokens are bound by DPoP in any case. */
  tls_client_certificate_bound_access_tokens: setting(v.optional(v.boolean(), false), certificateBoundText),
  dpop_bound_access_tokens: dpopBound,
  authorization_details_types: detailTypes,
};

/** The keys in it are parsed by the specification modules. */
const jwksFile = v.looseObject({ keys: setting(v.array(v.unknown()), "The keys of the set.") });
const jwksText = "Its public keys or certificates, as a JWK Set.";

const VouchersFile = v.pipe(
  v.array(
    v.strictObject({
      issuer: setting(text, "One of `trustedIssuers`, with `vouches`."),
      claims: setting(
        v.record(text, text),
        "The claims that its token must have, each with its exact value.",
      ),
    }),
  ),
  v.minLength(1),
);

const methodText = 'How the client authenticates; "metadata_document": as the document says.';
const anyMethodWith = <C extends Credential>(credential: C) =>
  setting(v.picklist(methodsWith(credential, "configuration")), methodText);

/** RFC8705-2.1.2-1: the entry sets exactly one of these. */
const oneSubject = (what: string) =>
  maybe(text, `The ${what} of its certificate. Exactly one of the five is set.`);

export const ClientFile = v.variant("method", [
  // MCPC-D-17, CIMD-5-3: the operator's copy of the metadata document at the URL that is the client's name.
  v.strictObject({
    method: setting(v.literal("metadata_document"), methodText),
    document: setting(
      v.looseObject({ client_id: setting(text, "The URL once more.") }),
      "The metadata document of the client whose name is its URL, for a host that does not answer this server.",
    ),
    defaultTarget,
  }),
  v.strictObject({
    method: anyMethodWith("secrets"),
    secrets: setting(
      v.pipe(v.array(SecretFile), v.minLength(1, "has no secret")),
      "Its secrets; several may be valid at once. Each has at least 32 characters.",
    ),
    ...ofClient,
  }),
  v.strictObject({
    method: anyMethodWith("keys"),
    jwks: maybe(jwksFile, jwksText),
    jwksUri: maybe(remote, "The URL of its public keys."),
    vouchedBy: maybe(VouchersFile, "The issuers that vouch for it, instead of keys of its own."),
    assertionAudience: maybe(
      v.literal("issuer"),
      'Present: its assertion names the issuer alone, also where `assertionAudience` at the top is "issuer-or-token-endpoint".',
    ),
    ...ofClient,
  }),
  v.strictObject({
    method: anyMethodWith("spiffe_id"),
    spiffeId: setting(workloadPattern, "Its SPIFFE ID, or a prefix that ends in /*."),
    ...ofClient,
  }),
  v.strictObject({
    method: anyMethodWith("subject"),
    ca: setting(certificates, "The authorities of its certificate."),
    tls_client_auth_subject_dn: oneSubject("subject"),
    tls_client_auth_san_dns: oneSubject("DNS name"),
    tls_client_auth_san_uri: oneSubject("URI"),
    tls_client_auth_san_ip: oneSubject("IP address"),
    tls_client_auth_san_email: oneSubject("email address"),
    ...ofClient,
  }),
  v.strictObject({ method: anyMethodWith("certificates"), jwks: setting(jwksFile, jwksText), ...ofClient }),
  // RFC6749-3.1.2.2-1, RFC6749-10.6-2: a public client without a redirect URI could be sent nothing.
  v.strictObject({
    redirectUris: setting(v.pipe(redirectUris, v.minLength(1)), redirectsText),
    method: anyMethodWith("nothing"),
    grantTypes: grantTypes(USER_GRANT_TYPES),
    workload: maybe(v.never(), workloadText),
    actorAccessToken: setting(v.optional(v.literal(false), false), actorText),
    defaultTarget,
    tls_client_certificate_bound_access_tokens: setting(
      v.optional(v.literal(false), false),
      certificateBoundText,
    ),
    dpop_bound_access_tokens: dpopBound,
    authorization_details_types: detailTypes,
  }),
]);

export const RegistrationFile = v.strictObject({
  ...RegistrationRules.entries,
  tlsAuthorities: maybe(certificates, "The authorities for clients that register with tls_client_auth."),
});

/** Client ID metadata documents; the section enables them. */
export const DocumentsFile = v.strictObject({
  origins: maybe(v.array(originUrl), "The only origins of such documents; without it, all."),
  foreignKeys: flag("Whether its jwks_uri may be of another origin"),
  // STU-D-2: such a client has the same name at every server, which is the half of what an injected audience needs.
  assertionAudience: maybe(
    v.literal("issuer"),
    'Present: an assertion of such a client names the issuer alone, also where `assertionAudience` at the top is "issuer-or-token-endpoint". Recommended, because such a client has one name and one key at every server.',
  ),
});

/** The authority and the private networks that URLs supplied by clients may use. */
export const OriginFile = v.strictObject(reach);
