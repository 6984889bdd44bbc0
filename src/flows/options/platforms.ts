/** Workloads of platforms, whose tokens prove a party of the request: what is issued ends with each of them. */
import type { TokenReason } from "../../audit/reasons.ts";
import type { ForeignTokenPorts } from "../../ports.ts";
import { type Awaitable, defined, err, ok, type Result, whenOk, whenReady } from "../../result.ts";
import type { Exchange } from "../../spec/rfc8693.ts";
import { describeRequest } from "../audit-fields.ts";
import type { Order, ResolvedActor } from "../order/order.ts";
import type { RefusedRequest } from "../refusal.ts";
import { type Known, readRequest, refuseRequest, type TokenRequest } from "../token-request.ts";
import type { PlatformProof } from "../verifier.ts";
import { keyNotProven, provesKey, verifyPlatformTokenOf } from "../verify-platform.ts";
import type { TokenOption } from "./option.ts";

export const platformsOption: TokenOption = {
  prove(_ports, request) {
    const { platform, keys } = request.client;
    return platform === undefined || provesKey(platform, keys) ? ok(request) : err(keyNotProven(platform));
  },
  /** PLAT-D-10, PLAT-D-17: events have the workload whose grant the client brought. */
  tell({ client, ...request }, { access: { forWorkload, workload }, ground: { platforms } }) {
    const [platform] = platforms;
    const told = forWorkload ? { ...client, workload, platform } : client;
    return { ...request, client: defined<TokenRequest["client"]>(told) };
  },
  ends: ({ ground: { platforms } }) => ({ platforms }),
};

// --- requests with the token of a platform ----------------------------------------------------------------------

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
