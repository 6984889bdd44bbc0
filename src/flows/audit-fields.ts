/** What the audit trail says of a client and of its request. */
import type { AuditEvent } from "../audit/event.ts";
import type { Form } from "../spec/rfc6749.ts";
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
