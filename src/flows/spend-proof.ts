/** Spends the assertion by which a client proved itself, at the endpoints that record no event for each request. */
import type { AuditEvent } from "../audit/event.ts";
import type { Ports } from "../ports.ts";
import type { RowChange } from "../records.ts";
import { type Awaitable, err, ok, type Result, whenReady } from "../result.ts";
import { describeClient } from "./audit-fields.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { type AuditedRequest, assertionReplayed, type RefusedRequest } from "./refusal.ts";

/**
 * RFC7523-3-14: an assertion that is valid once is spent by an event of its own, in one entry with the rows of the request;
 * other proofs need no event, and no entry is written for them.
 */
export function spendProof(
  ports: Pick<Ports, "journal">,
  client: Authenticated,
  request: AuditedRequest,
  rows: readonly RowChange[] = [],
): Awaitable<Result<undefined, RefusedRequest>> {
  if (client.spends === undefined) return ok(undefined);
  const event: AuditEvent = {
    type: "client.authenticated",
    outcome: "allow",
    reason: "assertion_spent",
    request,
    client: describeClient(client),
  };
  return whenReady(ports.journal.record({ event, guards: [client.spends], rows }), (recorded) =>
    recorded.ok ? ok(undefined) : err(assertionReplayed(event)),
  );
}
