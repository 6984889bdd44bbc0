/** A token request of an authenticated client: how its form becomes an order, and how a refusal of it is told and recorded. */
import type { AuditEvent } from "../audit/event.ts";
import type { Reason } from "../audit/reasons.ts";
import { MODES, redeems } from "../modes.ts";
import type { Denied } from "../policy/access.ts";
import type { Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import { type Awaitable, defined, err, type Result, whenReady } from "../result.ts";
import { DEFERRED } from "../spec/deferred-token-response.ts";
import type { Form } from "../spec/rfc6749.ts";
import { describeClient, describeRequest } from "./audit-fields.ts";
import type { Authenticated } from "./authenticate-client.ts";
import type { Evidence, Order, Requested, RequestingClient } from "./order/order.ts";
import { readOrder } from "./order/read-order.ts";
import {
  type AuditedRequest,
  type Failure,
  type FinalFailure,
  mayPass,
  type RefusedRequest,
} from "./refusal.ts";

export type TokenRequest = {
  client: Authenticated & Pick<RequestingClient, "keys" | "forWorkload">;
  form: Form;
  request: AuditedRequest;
  /** The DPoP proof, which the issued token uses up. */
  spends?: Guard;
};

/** Reads the form by the one reader; `evidence` is verified when its turn comes. */
export function readRequest(
  ports: Pick<Ports, "settings">,
  request: TokenRequest,
  {
    mode,
    sentAs,
    requestedType,
    transaction,
  }: Pick<Requested, "mode" | "sentAs" | "requestedType" | "transaction">,
  evidence?: Evidence,
): Awaitable<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  const { audience, resource, scope, authorization_details: details } = form;
  const requested = defined<Requested>({
    mode,
    sentAs,
    audience,
    resource,
    scope,
    details,
    requestedType,
    transaction,
  });
  return whenReady(readOrder(ports, client, requested, evidence), (order) => {
    if (order.ok) return order;
    const { failure, parties } = order.error;
    return refuseRequest(request, failure, { mode, requested: describeRequest(form), ...parties });
  });
}

/** The failure that the caller is told of a decision, by the grant type that it used. */
export function toFailure(
  { access: { mode }, manner: { targetFromGrant, sentAs, refusedAs } }: Pick<Order, "access" | "manner">,
  { kind, reason }: { kind: Denied["kind"] | "token_refused"; reason: Reason },
): FinalFailure {
  if (refusedAs !== undefined) return { kind: refusedAs, reason };
  // RFC6749-5.2-7: no rule lets this client have tokens of its own at all.
  if (MODES[mode].brings === "nothing" && sentAs === undefined && reason === "no_rule")
    return { kind: "client_unauthorized", reason };
  // IDC-2.4.2-5: a denial by the policy is an invalid grant; EMA-7.6.2-1: so is a target that only the grant names.
  // IDJAG-9.9-6: so is a missing proof; a proof that the target excludes is not the grant's fault.
  const others = kind === "scope_refused" || kind === "details_refused" || reason === "binding_excluded";
  const ofGrant = kind === "target_refused" ? targetFromGrant : !others;
  // RFC6749-5.2-6: so is a code whose consent or rule is gone since it was issued.
  // WAG-7-1: and so is the grant of a workload to which no rule gives anything.
  return { kind: (redeems(mode) || sentAs === "grant") && ofGrant ? "grant_refused" : kind, reason };
}

/** What was found out about a request before it failed (PROD-6.1-1). */
export type Known = Pick<
  AuditEvent,
  "mode" | "requested" | "subject" | "actor" | "chain" | "may_act" | "policy" | "job" | "grant" | "detail"
>;

export function refuseRequest(
  { client, form, request }: TokenRequest,
  refused: Failure,
  known: Known = {},
): { ok: false; error: RefusedRequest } {
  const failure = mayPass(refused);
  const event: AuditEvent = {
    ...known,
    type: deniedType(form),
    outcome: "deny",
    reason: failure.reason,
    request,
    client: describeClient(client),
  };
  return err({ failure, event });
}

/** The type of the event is chosen by the grant type, because a malformed request has no mode. */
const deniedType = ({ grant_type }: Form): AuditEvent["type"] =>
  grant_type === DEFERRED ? "deferral.refused" : deniedOf(grant_type);

const deniedOf = (grant_type: string | undefined): AuditEvent["type"] =>
  Object.values(MODES).find(({ grantType }) => grantType === grant_type)?.denied ?? "token.denied";
