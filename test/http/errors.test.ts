import assert from "node:assert/strict";
import { test } from "node:test";
import { REASONS, type Reason } from "../../src/audit/reasons.ts";
import type { Failure } from "../../src/flows/refusal.ts";
import { REFUSALS } from "../../src/http/answers.ts";
import { describeFailure, toOAuthError } from "../../src/http/errors.ts";
import type { ErrorCode } from "../../src/spec/rfc6749.ts";

/** Every kind of failure: a new one must be added here to compile. */
const ANSWERS: Record<Failure["kind"], [status: number, error: ErrorCode]> = {
  request_malformed: [400, "invalid_request"],
  client_refused: [400, "invalid_client"],
  client_gone: [401, "invalid_client"],
  client_unreachable: [503, "temporarily_unavailable"],
  keys_unreachable: [503, "temporarily_unavailable"],
  client_unauthorized: [400, "unauthorized_client"],
  grant_type_unsupported: [400, "unsupported_grant_type"],
  token_refused: [400, "invalid_request"],
  grant_refused: [400, "invalid_grant"],
  platform_refused: [400, "invalid_grant"],
  workload_not_admitted: [400, "invalid_grant"],
  exchange_platform_refused: [400, "invalid_request"],
  exchange_not_admitted: [400, "invalid_request"],
  token_of_another: [400, "invalid_grant"],
  token_type_unsupported: [400, "unsupported_token_type"],
  policy_denied: [400, "invalid_request"],
  target_refused: [400, "invalid_target"],
  details_refused: [400, "invalid_authorization_details"],
  scope_refused: [400, "invalid_scope"],
  binding_refused: [400, "invalid_request"],
  proof_refused: [400, "invalid_dpop_proof"],
  nonce_demanded: [400, "use_dpop_nonce"],
  interaction_required: [400, "interaction_required"],
  polled_too_soon: [400, "slow_down"],
  deferral_ended: [400, "access_denied"],
  deferral_expired: [400, "expired_token"],
  throttled: [429, "temporarily_unavailable"],
  provider_unreachable: [503, "temporarily_unavailable"],
  overloaded: [503, "temporarily_unavailable"],
};

/** RFC 6749 appendix A.7 and A.8. */
const TEXT = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/;

for (const [kind, want] of Object.entries(ANSWERS)) {
  test(`RFC6749-5.2-10, RFC6749-5.2-11 ${kind} has its status and code, and a description in plain ASCII`, () => {
    const { status, error, description } = toOAuthError(kind as Failure["kind"]);
    assert.deepEqual([status, error], want);
    assert.match(error, TEXT);
    assert.match(description, TEXT);
  });
}

test("PROD-7.4-3, RFC6749-5.2-11 what the claims of a token or a look-up show is not told, whatever the reason: it is refused with its fixed text", () => {
  const told: Record<string, number> = {};
  for (const kind of Object.keys(ANSWERS) as Failure["kind"][]) {
    for (const reason of Object.keys(REASONS) as Reason[]) {
      const description = describeFailure({ kind, reason, parameter: "other" });
      assert.match(description, TEXT, reason);
      if (description !== toOAuthError(kind).description) told[kind] = (told[kind] ?? 0) + 1;
    }
  }
  const all = Object.keys(REASONS).length;
  assert.deepEqual(told, {
    request_malformed: all,
    client_refused: 7,
    target_refused: 5,
    scope_refused: 2,
    // A code that its own client has used.
    grant_refused: 1,
    policy_denied: 1,
  });
});

test("RFC8693-2.2.2-2 a refused token and a denial by policy have the same answer, invalid_request", () => {
  assert.equal(toOAuthError("token_refused").error, "invalid_request");
  assert.deepEqual(toOAuthError("token_refused"), toOAuthError("policy_denied"));
});

for (const [name, { description }] of Object.entries(REFUSALS)) {
  test(`RFC6749-5.2-11 the description of ${name} is plain ASCII`, () => {
    assert.match(description, TEXT);
  });
}
