/** Requests with the token of a platform: by its workload alone, brought by a client, or as the actor token of one. */
import type { TokenReason } from "../audit/reasons.ts";
import type { ForeignTokenPorts } from "../ports.ts";
import { type Awaitable, defined, ok, type Result, whenOk, whenReady } from "../result.ts";
import type { Exchange } from "../spec/rfc8693.ts";
import { describeRequest } from "./audit-fields.ts";
import type { Order, ResolvedActor } from "./order/order.ts";
import type { RefusedRequest } from "./refusal.ts";
import { type Known, readRequest, refuseRequest, type TokenRequest } from "./token-request.ts";
import type { PlatformProof } from "./verifier.ts";
import { verifyPlatformTokenOf } from "./verify-platform.ts";

/** PLAT-D-8: a workload that proved itself by its grant asks for a token of its own. */
const OF_WORKLOAD = { mode: "client_credentials", sentAs: "grant" } as const;

/** PLAT-D-1: what proved the client as its assertion is a grant too only where the registration says so. */
export function readOwnGrant(
  ports: ForeignTokenPorts,
  request: TokenRequest,
  { registration }: PlatformProof,
): Awaitable<Result<Order, RefusedRequest>> {
  if (registration.uses.includes("grant")) {
    return readRequest(ports, request, OF_WORKLOAD);
  }
  const failure = { kind: "workload_not_admitted", reason: "workload_use_refused" } as const;
  return refuseRequest(request, failure, {
    mode: OF_WORKLOAD.mode,
    requested: describeRequest(request.form),
  });
}

/** PLAT-D-10: the grant of a workload that an authenticated client brings; a rule names both. */
export function readBroughtGrant(
  ports: ForeignTokenPorts,
  request: TokenRequest,
  assertion: string,
): Awaitable<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  return whenReady(verifyPlatformTokenOf(ports, assertion, "grant", client.keys), (verified) => {
    const known = { mode: OF_WORKLOAD.mode, requested: describeRequest(form) };
    if (!verified.ok) {
      const { as: kind, reason, registrations } = verified.error;
      const detail = registrations && { registrations: [...registrations] };
      return refuseRequest(request, { kind, reason }, defined<Known>({ ...known, detail }));
    }
    const platform = verified.value;
    const { scopes = client.scopes } = platform;
    const brought: TokenRequest["client"] = defined<TokenRequest["client"]>({
      ...client,
      platform,
      workload: platform.id,
      forWorkload: true,
      scopes: scopes?.filter((one) => client.scopes?.includes(one) ?? true),
    });
    if (platform.registration.clients?.includes(client.clientId) === false) {
      const failure = { kind: "workload_not_admitted", reason: "workload_client_differs" } as const;
      return refuseRequest({ ...request, client: brought }, failure, known);
    }
    return readRequest(ports, { ...request, client: brought }, OF_WORKLOAD);
  });
}

/**
 * FEDC-D-1, FEDC-D-2: the subject token proved its workload, which asks for a token of its own as it would by a grant. A
 * JWT is what it gets, and an ID-JAG needs a user.
 */
export function readWorkloadExchange(
  ports: ForeignTokenPorts,
  request: TokenRequest,
  requestedType: Exchange["requestedType"],
): Awaitable<Result<Order, RefusedRequest>> {
  const mode = "client_credentials";
  // TXN-D-3: neither is a trust domain given a token of a workload that speaks for itself.
  const isToken = requestedType !== "id-jag" && requestedType !== "txn_token";
  if (isToken) return readRequest(ports, request, { mode, sentAs: "exchange" });
  const failure = { kind: "request_malformed", reason: "requested_token_type_unsupported" } as const;
  return refuseRequest(request, failure, { mode, requested: describeRequest(request.form) });
}

/** PLAT-D-11: the same workload as the client assertion proved; a platform's token alone authenticates no actor. */
export function actorByPlatform(
  ports: ForeignTokenPorts,
  { platform, keys }: TokenRequest["client"],
  token: string,
): Awaitable<Result<ResolvedActor, { reason: TokenReason }>> {
  return whenOk(verifyPlatformTokenOf(ports, token, "actor", keys), (actor) => {
    const same = actor.compact === platform?.compact;
    const audited = { fingerprint: actor.fingerprint, type: "jwt" };
    return ok(defined<ResolvedActor>({ sub: actor.id, token: audited, platform: same ? undefined : actor }));
  });
}
