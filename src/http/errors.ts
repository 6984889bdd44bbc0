/** RFC 6749 5.2: the only place where a flow's refusal becomes a status and an error code (PROD-7.4-2, PROD-7.5-1). */
import { REASONS, type Reason } from "../audit/reasons.ts";
import type { Failure, FinalKind, PassingKind } from "../flows/refusal.ts";
import { type ErrorCode, isKnownParameter } from "../spec/rfc6749.ts";

type PassingCode = Extract<ErrorCode, "temporarily_unavailable">;
type FinalCode = Exclude<ErrorCode, PassingCode | "server_error">;

export type OAuthError = { status: number; error: ErrorCode; description: string };

/**
 * PROD-7.4-3: reasons that the parameters of a request alone decide, or those of a request that proved itself before. To
 * tell them reveals nothing of a client, a key, a token or a target. So may each reason of a malformed request. They are
 * listed by kind, because the claims of a token that is refused can have the same reason.
 */
const TOLD: Partial<Record<Failure["kind"], readonly Reason[]>> = {
  client_refused: [
    "secret_without_client_id",
    "authorization_malformed",
    "assertion_with_other_mechanism",
    "assertion_type_missing",
    "assertion_type_unsupported",
    "assertion_lives_too_long",
    "assertion_missing",
  ],
  target_refused: [
    "resource_malformed",
    "target_malformed",
    "targets_several",
    "code_target_differs",
    "refresh_target_differs",
  ],
  scope_refused: ["scope_malformed", "scope_exceeds_grant"],
  // POLICY-D-21: the client itself cancelled.
  policy_denied: ["deferrals_cancelled"],
  // DTR-6.6-3: the client that redeemed the code sent it again.
  grant_refused: ["deferral_redeemed"],
};

/** PROD-7.4-3: the text of the answer, with what is wrong with which parameter, where that may be told. */
export function describeFailure({
  kind,
  reason,
  parameter,
  algorithms,
}: Pick<Failure, "kind" | "reason" | "parameter" | "algorithms">): string {
  const { description } = toOAuthError(kind);
  // RFC9449-D-1: the metadata list them too.
  if (algorithms !== undefined) return `${description}: its algorithm is none of ${algorithms.join(", ")}`;
  if (kind !== "request_malformed" && !TOLD[kind]?.includes(reason)) return description;
  // The name of an unknown parameter is text of the request, and may be a secret in the wrong place.
  const named = parameter !== undefined && isKnownParameter(parameter) ? ` (${parameter})` : "";
  return `${description}: ${REASONS[reason]}${named}`;
}

/**
 * RFC6749-5.2-10, RFC6749-5.2-11, PROD-7.4-1: texts are fixed, in printable ASCII. None tells which check of a
 * credential or token failed; the audit trail does.
 */
const OAUTH_ERRORS: Readonly<
  Record<FinalKind, readonly [status: 400 | 401, error: FinalCode, description: string]> &
    // MCPC-D-24: the type asks for the seconds of Retry-After too.
    Record<PassingKind, readonly [status: 429 | 503, error: PassingCode, description: string]>
> = {
  request_malformed: [400, "invalid_request", "the request is malformed"], // RFC6749-5.2-2
  // RFC6749-5.2-3, RFC7521-4.2.1-1, RFC7523-3.2-1
  client_refused: [400, "invalid_client", "client authentication failed"],
  client_gone: [401, "invalid_client", "client authentication failed"], // MCPC-D-18, RFC6749-5.2-4
  client_unauthorized: [400, "unauthorized_client", "the client may not use this grant_type"], // RFC6749-5.2-7
  grant_type_unsupported: [400, "unsupported_grant_type", "the grant_type is not supported"], // RFC6749-5.2-8
  // RFC8693-2.2.2-1, RFC8693-2.2.2-2: a bad token and a policy denial share this code and its text.
  token_refused: [400, "invalid_request", "the request is not allowed"],
  policy_denied: [400, "invalid_request", "the request is not allowed"],
  grant_refused: [400, "invalid_grant", "the grant is not accepted"], // RFC7523-3.1-2, IDC-2.4.2-5
  // WAG-7-1, WAG-7-2, PLAT-D-14: the holder of a signed token is told which side has to act, and no more.
  platform_refused: [
    400,
    "invalid_grant",
    "the grant is not accepted: the platform has to issue another one",
  ],
  workload_not_admitted: [
    400,
    "invalid_grant",
    "the grant is not accepted: the administrator of this server has not admitted the workload",
  ],
  // FEDC-D-1, RFC8693-2.2.2-2: the same of a subject token, with the code of an exchange.
  exchange_platform_refused: [
    400,
    "invalid_request",
    "the request is not allowed: the platform has to issue another subject token",
  ],
  exchange_not_admitted: [
    400,
    "invalid_request",
    "the request is not allowed: the administrator of this server has not admitted the workload",
  ],
  token_of_another: [400, "invalid_grant", "the token was issued to another client"], // RFC7009-2.1-7
  // RFC7009-2.2.1-2
  token_type_unsupported: [400, "unsupported_token_type", "tokens of this kind cannot be revoked here"],
  // RFC8693-2.2.2-3, RFC8707-2-9
  target_refused: [400, "invalid_target", "the target (resource, audience) is not available"],
  // RFC9396-5-2, RFC9396-8-1
  details_refused: [400, "invalid_authorization_details", "the authorization_details are not available"],
  scope_refused: [400, "invalid_scope", "the scope is not available"], // RFC6749-5.2-9
  // RFC9449-5.2-1, RFC8705-3.4-2
  binding_refused: [
    400,
    "invalid_request",
    "the request does not prove the key by which the token has to be bound",
  ],
  proof_refused: [400, "invalid_dpop_proof", "the DPoP proof is not valid"], // RFC9449-5-3
  nonce_demanded: [400, "use_dpop_nonce", "the DPoP proof needs the nonce that is sent"], // RFC9449-8-2
  interaction_required: [400, "interaction_required", "the user has not decided"], // DTR-6.4-1, DTR-D-3
  polled_too_soon: [400, "slow_down", "the client polls too often"], // DTR-11.3-1
  // DTR-11.7-1, DTR-8.2-1, DTR-D-9: one text, whatever ended it.
  deferral_ended: [400, "access_denied", "the request is not allowed"],
  deferral_expired: [400, "expired_token", "the deferral_code has expired"], // DTR-6.4-3
  throttled: [429, "temporarily_unavailable", "too many requests"], // PROD-8.3-1
  // MCPC-D-17
  client_unreachable: [
    503,
    "temporarily_unavailable",
    "the metadata of the client cannot be fetched at present",
  ],
  // MCPC-D-24
  keys_unreachable: [
    503,
    "temporarily_unavailable",
    "keys that the request needs cannot be fetched at present",
  ],
  // RECHECK-D-3
  provider_unreachable: [
    503,
    "temporarily_unavailable",
    "the sign-in provider of the user does not answer at present",
  ],
  overloaded: [503, "temporarily_unavailable", "the server is busy"],
};

export function toOAuthError(kind: Failure["kind"]): OAuthError {
  const [status, error, description] = OAUTH_ERRORS[kind];
  return { status, error, description };
}
