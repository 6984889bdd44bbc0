/** RFC 6749 4.4: a token for the client itself; like every grant it needs a rule. */
import type { Ports } from "../ports.ts";
import type { Result } from "../result.ts";
import { err } from "../result.ts";
import type { Form, TokenAnswer } from "../spec/rfc6749.ts";
import { parseScope } from "../spec/rfc6749.ts";
import { requestedTarget } from "../spec/rfc8707.ts";
import { describeClient, describeRequest } from "./audit-fields.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { askingAs, issue, spentBy } from "./issue.ts";
import type { Failure, RefusedRequest, RequestNote } from "./refusal.ts";

export async function clientCredentials(
  ports: Ports,
  client: Authenticated,
  form: Form,
  request: RequestNote,
): Promise<Result<TokenAnswer, RefusedRequest>> {
  const { policy } = ports.settings();
  const event = { request, client: describeClient(client), requested: describeRequest(form) };
  const refuse = (failure: Failure) =>
    err({
      failure,
      event: { ...event, type: "token.denied", outcome: "deny", reason: failure.reason },
    } as const);

  const target = requestedTarget(form.resource, form.audience, policy);
  if (!target.ok) return refuse({ kind: "target_refused", reason: target.error.kind });
  const scope = form.scope === undefined ? undefined : parseScope(form.scope);
  if (scope?.ok === false) return refuse({ kind: "scope_refused", reason: scope.error.kind });

  const aim = target.value ?? client.defaultTarget;
  const issued = await issue(ports, {
    ask: {
      mode: "client_credentials",
      ...askingAs(client),
      ...(aim !== undefined && { target: aim }),
      ...(scope !== undefined && { scope: scope.value }),
    },
    sub: client.clientId, // RFC9068-2.2-6
    chain: [],
    ancestors: [],
    event: { ...event, mode: "client_credentials" },
    allowedType: "token.issued",
    spends: spentBy(client),
    deniedType: "token.denied",
  });
  return issued.ok ? issued : err({ ...issued.error, failure: asUnauthorized(issued.error.failure) });
}

/** RFC6749-5.2-7: no rule lets this client have tokens of its own at all. */
export function asUnauthorized(failure: Failure): Failure {
  return failure.reason === "no_rule" ? { ...failure, kind: "client_unauthorized" } : failure;
}
