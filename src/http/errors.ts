/** RFC 6749 5.2: the only place where a flow's refusal becomes a status and an error code (PROD-7.4-2, PROD-7.5-1). */
import type { Reason } from "../audit/reasons.ts";
import { REASONS } from "../audit/reasons.ts";
import type { Failure } from "../flows/refusal.ts";
import type { ErrorCode } from "../spec/rfc6749.ts";
import { isKnownParameter } from "../spec/rfc6749.ts";

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
};

/** PROD-7.4-3: the text of the answer, with what is wrong with which parameter, where that may be told. */
export function describeFailure({ kind, reason, parameter }: Failure): string {
  const { description } = toOAuthError(kind);
  if (kind !== "request_malformed" && !TOLD[kind]?.includes(reason)) return description;
  // The name of an unknown parameter is text of the request, and may be a secret in the wrong place.
  const named = parameter !== undefined && isKnownParameter(parameter) ? ` (${parameter})` : "";
  return `${description}: ${REASONS[reason]}${named}`;
}

/**
 * RFC6749-5.2-10, RFC6749-5.2-11, PROD-7.4-1: texts are fixed, in printable ASCII. None tells which check of a
 * credential or token failed; the audit trail does.
 */
export function toOAuthError(kind: Failure["kind"]): OAuthError {
  switch (kind) {
    case "request_malformed": // RFC6749-5.2-2
      return { status: 400, error: "invalid_request", description: "the request is malformed" };
    case "client_refused": // RFC6749-5.2-3, RFC7521-4.2.1-1, RFC7523-3.2-1
      return { status: 400, error: "invalid_client", description: "client authentication failed" };
    case "client_gone": // MCPC-D-18, RFC6749-5.2-4
      return { status: 401, error: "invalid_client", description: "client authentication failed" };
    case "client_unauthorized": // RFC6749-5.2-7
      return {
        status: 400,
        error: "unauthorized_client",
        description: "the client may not use this grant_type",
      };
    case "grant_type_unsupported": // RFC6749-5.2-8
      return { status: 400, error: "unsupported_grant_type", description: "the grant_type is not supported" };
    // RFC8693-2.2.2-1, RFC8693-2.2.2-2: a bad token and a policy denial share this code and its text.
    case "token_refused":
    case "policy_denied":
      return { status: 400, error: "invalid_request", description: "the exchange is not allowed" };
    case "grant_refused": // RFC7523-3.1-2, IDC-2.4.2-5
      return { status: 400, error: "invalid_grant", description: "the grant is not accepted" };
    // WAG-7-1, WAG-7-2, PLAT-D-14: the holder of a signed token is told which side has to act, and no more.
    case "platform_refused":
      return {
        status: 400,
        error: "invalid_grant",
        description: "the grant is not accepted: the platform has to issue another one",
      };
    case "workload_not_admitted":
      return {
        status: 400,
        error: "invalid_grant",
        description:
          "the grant is not accepted: the administrator of this server has not admitted the workload",
      };
    case "token_of_another": // RFC7009-2.1-7
      return {
        status: 400,
        error: "invalid_grant",
        description: "the token was issued to another client",
      };
    case "token_type_unsupported": // RFC7009-2.2.1-2
      return {
        status: 400,
        error: "unsupported_token_type",
        description: "tokens of this kind cannot be revoked here",
      };
    case "target_refused": // RFC8693-2.2.2-3, RFC8707-2-9
      return {
        status: 400,
        error: "invalid_target",
        description: "the target (resource, audience) is not available",
      };
    case "details_refused": // RFC9396-5-2, RFC9396-8-1
      return {
        status: 400,
        error: "invalid_authorization_details",
        description: "authorization_details of no type are supported",
      };
    case "scope_refused": // RFC6749-5.2-9
      return { status: 400, error: "invalid_scope", description: "the scope is not available" };
    case "binding_refused": // RFC9449-5.2-1, RFC8705-3.4-2
      return {
        status: 400,
        error: "invalid_request",
        description: "the request does not prove the key by which the token has to be bound",
      };
    case "proof_refused": // RFC9449-5-3
      return { status: 400, error: "invalid_dpop_proof", description: "the DPoP proof is not valid" };
    case "nonce_demanded": // RFC9449-8-2
      return {
        status: 400,
        error: "use_dpop_nonce",
        description: "the DPoP proof needs the nonce that is sent",
      };
    case "throttled": // PROD-8.3-1
      return { status: 429, error: "temporarily_unavailable", description: "too many requests" };
    case "client_unreachable": // MCPC-D-17
      return {
        status: 503,
        error: "temporarily_unavailable",
        description: "the metadata of the client cannot be fetched at present",
      };
    case "provider_unreachable": // RECHECK-D-3
      return {
        status: 503,
        error: "temporarily_unavailable",
        description: "the sign-in provider of the user does not answer at present",
      };
    case "overloaded":
      return { status: 503, error: "temporarily_unavailable", description: "the server is busy" };
    default:
      return kind satisfies never;
  }
}
