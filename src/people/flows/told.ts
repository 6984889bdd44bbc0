/** What a client is told at its redirect URI: the code of each failure, and fixed words for its developer. */
import type { Reason } from "../../audit/reasons.ts";
import { defined } from "../../result.ts";
import type { PeoplePorts } from "../ports.ts";
import { type AuthorizationError, type AuthorizationResponse, buildRedirect } from "../spec/rfc9207.ts";

const DETAILS_UNAVAILABLE = [
  "invalid_authorization_details",
  "the authorization_details are not available",
] as const;

/** RFC6749-4.1.2.1-2, RFC6749-4.1.2.1-3: the codes of a malformed request, which is refused before any user sees it. */
export const TOLD = {
  grant_type_not_registered: ["unauthorized_client", "the client is not registered for authorization_code"],
  response_type_missing: ["invalid_request", "response_type is missing"],
  response_type_unsupported: ["unsupported_response_type", "response_type has to be code"],
  response_mode_unsupported: ["invalid_request", "response_mode has to be query"],
  // RFC9126-3-1, OIDC Core 3.1.2.6: a request is taken neither by value nor by a reference that is not of our /par.
  request_object_unsupported: ["request_not_supported", "request objects are not supported"],
  request_uri_unsupported: ["request_uri_not_supported", "request_uri has to be a reference that /par gave"],
  request_uri_unknown: ["invalid_request_uri", "request_uri is unknown, used or expired"],
  // RFC9396-5-2
  details_malformed: ["invalid_authorization_details", "authorization_details are malformed"],
  details_too_large: ["invalid_authorization_details", "authorization_details are too many or too long"],
  details_type_unknown: DETAILS_UNAVAILABLE,
  details_field_unknown: DETAILS_UNAVAILABLE,
  details_field_malformed: DETAILS_UNAVAILABLE,
  details_field_missing: DETAILS_UNAVAILABLE,
  details_type_not_registered: DETAILS_UNAVAILABLE,
  // RFC7636-4.4.1-2
  challenge_missing: ["invalid_request", "code_challenge is missing"],
  challenge_method_refused: ["invalid_request", "code_challenge_method has to be S256"],
  challenge_malformed: ["invalid_request", "code_challenge is not the base64url of a SHA-256"],
  dpop_jkt_malformed: ["invalid_request", "dpop_jkt is not the base64url of a SHA-256"],
  dpop_jkt_unsupported: ["invalid_request", "DPoP is off, so dpop_jkt is not supported"],
  scope_malformed: ["invalid_scope", "scope is malformed"],
  resource_malformed: ["invalid_target", "resource is not an absolute URI"],
  target_malformed: ["invalid_target", "resource is too long"],
  targets_several: ["invalid_target", "a request is for one resource"],
  target_missing: ["invalid_target", "resource is missing, and the scope does not tell it"],
  target_unknown: ["invalid_target", "the resource is not available to users"],
  scope_empty: ["invalid_scope", "the resource has none of the scopes"],
  prompt_malformed: ["invalid_request", "prompt is malformed"],
  // PAGE-D-1: nothing is given without a click.
  prompt_none: ["interaction_required", "the user has to be asked, so prompt may not be none"],
  max_age_malformed: ["invalid_request", "max_age is not a number of seconds"],
  locales_malformed: ["invalid_request", "ui_locales is malformed"],
  job_out_of_place: [
    "invalid_request",
    "mandate_job is for an exchange, and mandate_job_request asks for a new one",
  ],
  job_request_malformed: ["invalid_request", "mandate_job_request is malformed"],
  job_request_time_refused: ["invalid_request", "notAfter of mandate_job_request is past or too far away"],
  job_target_unknown: ["invalid_request", "mandate_job_request names an unknown target"],
  request_too_long: ["invalid_request", "the request is too long"],
} as const satisfies Partial<Record<Reason, readonly [AuthorizationError["error"], string]>>;

export type ToldReason = keyof typeof TOLD;

export function errorOf(reason: ToldReason): AuthorizationError {
  const [error, error_description] = TOLD[reason];
  return { error, error_description };
}

/** RFC6749-4.1.2.1-2: there is one text for whatever the policy or the user decided; only the auditor learns why. */
export const DENIED: AuthorizationError = {
  error: "access_denied",
  error_description: "the request was not allowed",
};
export const SCOPE_DENIED: AuthorizationError = {
  error: "invalid_scope",
  error_description: "the scope is not available",
};

export const DETAILS_DENIED: AuthorizationError = {
  error: "invalid_authorization_details",
  error_description: "the authorization_details are not available",
};

/** OIDC-3.1.2.6-1: what the answer of a provider that signed no user in means to a client. */
const NOT_SIGNED_IN: AuthorizationError = {
  error: "login_required",
  error_description: "the user could not be signed in",
};
const SIGN_INS: ReadonlyMap<string, AuthorizationError> = new Map([
  ["access_denied", { error: "access_denied", error_description: "the user did not sign in" }],
  ["login_required", NOT_SIGNED_IN],
  ["interaction_required", NOT_SIGNED_IN],
  ["consent_required", NOT_SIGNED_IN],
  ["account_selection_required", NOT_SIGNED_IN],
]);

/** Undefined where the user did not give up, so that they may try again before the client is told. */
export const errorOfSignIn = (code: string | undefined): AuthorizationError | undefined =>
  SIGN_INS.get(code ?? "");

export const SIGN_IN_FAILED: AuthorizationError = {
  error: "server_error",
  error_description: "the sign-in failed",
};

/** RFC6749-4.1.2-6: the answer has the state of the request, as it was. */
export function locationAtClient(
  { settings }: Pick<PeoplePorts, "settings">,
  { redirectUri, state }: { redirectUri: string; state?: string },
  result: AuthorizationError | { code: string },
): string {
  const response = defined<AuthorizationResponse>({ ...result, state });
  return buildRedirect(redirectUri, settings().issuer, response);
}
