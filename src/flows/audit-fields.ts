/** What the audit trail says of a client and of its request. */
import type { AuditEvent, TokenSummary } from "../audit/event.ts";
import type { Ports } from "../ports.ts";
import type { Form } from "../spec/rfc6749.ts";
import type { Jws } from "../spec/rfc7515.ts";
import { audienceList } from "./ask/subject.ts";
import type { Authenticated } from "./authenticate-client.ts";

export function describeClient({
  clientId,
  method,
  source,
  workload,
  proof,
}: Authenticated): NonNullable<AuditEvent["client"]> {
  return {
    client_id: clientId,
    auth_method: method,
    ...(source !== undefined && { source }),
    ...(workload !== undefined && { workload }),
    ...proof,
  };
}

export function describeRequest(form: Form): NonNullable<AuditEvent["requested"]> {
  return {
    audience: form.audience,
    resource: form.resource,
    ...(form.scope !== undefined && { scope: form.scope }),
    ...(form.requested_token_type !== undefined && { requested_token_type: form.requested_token_type }),
  };
}

/** AUDIT-D-3: enough to find the token again, nothing that could be used as one. */
export function describeToken(
  ports: Pick<Ports, "hash">,
  { claims, signingInput }: Jws,
  type: string,
): TokenSummary {
  const { jti, iat, exp, scope, client_id: clientId } = claims;
  const aud = audienceList(claims);
  return {
    type,
    fingerprint: ports.hash.sha256(signingInput),
    ...(typeof jti === "string" && { jti }),
    ...(typeof iat === "number" && { iat }),
    ...(typeof exp === "number" && { exp }),
    ...(aud.length > 0 && { aud }),
    ...(typeof scope === "string" && { scope }),
    ...(typeof clientId === "string" && { client_id: clientId }),
  };
}
