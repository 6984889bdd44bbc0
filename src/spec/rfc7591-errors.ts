/**
 * RFC 7591, OAuth 2.0 Dynamic Client Registration: https://www.rfc-editor.org/rfc/rfc7591.html
 * Covers 3.2.2 the errors of client metadata, in registrations and updates.
 */
import { err } from "../result.ts";
import { type Members, membersFor } from "./rfc7591-members.ts";

const RULES = {
  not_an_object: "the client metadata are not a JSON object",
  redirect_uri_malformed: "one of redirect_uris is malformed or too long",
  redirect_uri_fragment: "one of redirect_uris has a fragment",
  redirect_uri_wildcard: "one of redirect_uris has a wildcard",
  redirect_uri_userinfo: "one of redirect_uris has a user name or password",
  redirect_uri_dot_segment: "one of redirect_uris has dot segments",
  redirect_uri_incomplete: "one of redirect_uris has no path, or not one slash behind a private-use scheme",
  redirect_uri_not_loopback:
    "one of redirect_uris with http leads elsewhere than to 127.0.0.1, [::1] or localhost",
  redirect_uri_scheme: "one of redirect_uris has a scheme that is neither https nor that of an app",
  redirect_uris_unavailable: "none of redirect_uris is accepted by this server",
  redirect_uris_missing: "the grant type authorization_code needs redirect_uris",
  grant_types_unavailable: "none of the grant_types is available to this client",
  response_types_inconsistent: "response_types does not fit grant_types",
  scope_unavailable: "none of the scope is available to this client",
  languages_repeated: "two members differ only in the case of their language tag",
  languages_too_many: "too many members have a language tag",
  method_unsupported: "the token_endpoint_auth_method is not available here",
  keys_missing: "the token_endpoint_auth_method needs jwks or jwks_uri",
  keys_twice: "jwks and jwks_uri exclude each other",
  keys_private: "jwks holds a private or symmetric key",
  keys_unusable: "jwks holds no key that can be used",
  certificates_missing: "the token_endpoint_auth_method needs jwks with its certificate in x5c of each key",
  signing_alg_alone: "token_endpoint_auth_signing_alg goes with private_key_jwt",
  spiffe_id_missing: "the token_endpoint_auth_method needs spiffe_id",
  subject_missing: "the token_endpoint_auth_method needs a tls_client_auth member that names the subject",
  subject_repeated: "more than one tls_client_auth member names a subject",
  server_member_sent: "an update must not hold what only the server sets",
  client_id_differs: "client_id is missing or that of another client",
  client_secret_differs: "client_secret is not the current one",
} as const;

type Refused = `${keyof Members | "client_secret"}_refused`;

/** A broken rule, or a member whose type, length or value is not accepted. */
export type MetadataReason = keyof typeof RULES | Refused;

/** RFC7591-3.2.2-4, RFC7591-3.2.2-5: redirect URIs have their own error code. */
export type MetadataFailure = {
  kind: "redirect_uri_invalid" | "client_metadata_invalid";
  reason: MetadataReason;
  /** Values of that member that are accepted, where a client cannot read them elsewhere. */
  accepted?: readonly string[];
};

export const metadataInvalid = (reason: MetadataReason) =>
  err({ kind: "client_metadata_invalid", reason } satisfies MetadataFailure);

const REFUSED_MEMBERS = Object.fromEntries(
  ["client_secret", ...Object.keys(membersFor([]).entries)].map((member) => [
    `${member}_refused`,
    `${member} has a type, a length or a value that is not accepted`,
  ]),
) as Record<Refused, string>;

/** RFC7591-3.2.2-2: fixed texts in printable ASCII, which name only members that this server knows. */
export const METADATA_REASONS: Readonly<Record<MetadataReason, string>> = { ...RULES, ...REFUSED_MEMBERS };
