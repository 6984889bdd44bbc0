/** RFC 8693: delegation with an actor token, impersonation without. */
import type { TokenReason } from "../audit/reasons.ts";
import { isProven } from "../policy/binding.ts";
import { apiNames } from "../policy/own-target.ts";
import type { ForeignTokenPorts, OwnKeys, OwnTokenPorts, Ports } from "../ports.ts";
import { type Awaitable, defined, err, ok, type Result, sparse, whenOk } from "../result.ts";
import { TOKEN_PATH } from "../settings/audiences.ts";
import { ACCESS_TOKEN, type Exchange, JWT, parseExchange } from "../spec/rfc8693.ts";
import { parseTransactionRequest } from "../spec/transaction-tokens.ts";
import { describeRequest, describeToken } from "./audit-fields.ts";
import { actorByPlatform, readWorkloadExchange } from "./options/platforms.ts";
import type { Evidence, Order, Requested, ResolvedActor } from "./order/order.ts";
import type { RefusedRequest } from "./refusal.ts";
import { jobOf, verifySubject } from "./subject-token.ts";
import { readRequest, refuseRequest, type TokenRequest } from "./token-request.ts";
import type { VerifiedSvid } from "./verifier.ts";
import { isOwn, verifyOwnToken } from "./verify-own-token.ts";
import { verifySvid } from "./verify-svid.ts";

export type ExchangePorts = OwnTokenPorts &
  ForeignTokenPorts &
  Pick<Ports, "bundles"> & { grantSigner: OwnKeys };

export function readExchange(
  ports: ExchangePorts,
  request: TokenRequest,
): Awaitable<Result<Order, RefusedRequest>> {
  const { client, form } = request;
  const parsed = parseExchange(form);
  if (!parsed.ok) {
    const failure = { kind: "request_malformed", reason: parsed.error.kind } as const;
    return refuseRequest(request, failure, { requested: describeRequest(form) });
  }
  const exchange = parsed.value;
  const { actor, requestedType } = exchange;
  if (client.platform?.use === "exchange") return readWorkloadExchange(ports, request, requestedType);
  const asked = requestedType === "txn_token" ? parseTransactionRequest(form) : ok(undefined);
  if (!asked.ok) {
    const failure = { kind: "request_malformed", reason: asked.error.kind } as const;
    return refuseRequest(request, failure, { requested: describeRequest(form) });
  }
  const transaction = asked.value;
  // PROD-3-2, PROD-3-3, PROD-3-7: the request alone chooses the mode.
  const mode = transaction ? "transaction" : actor === undefined ? "impersonation" : "delegation";
  const evidence = sparse<Evidence>({
    subject: () => verifySubject(ports, exchange, client),
    actor: actor && (() => verifyActor(ports, client, actor)),
  });
  return readRequest(ports, request, defined<Wanted>({ mode, requestedType, transaction }), evidence);
}

type Wanted = Pick<Requested, "mode" | "requestedType" | "transaction">;

type Verified = Awaitable<Result<ResolvedActor, { reason: TokenReason }>>;

/**
 * RFC8693-2.1-21: the actor token is verified by the rules of its type; the reader checks that it is the caller's own.
 */
function verifyActor(
  ports: ExchangePorts,
  client: TokenRequest["client"],
  { token, type }: NonNullable<Exchange["actor"]>,
): Verified {
  const { svid, platform } = client;
  // PROD-4.1v5-5: the same JWT in both places is verified once.
  if (type === JWT && svid?.compact === token) return actorOf(ports, svid);
  const jws = ports.verifier.parse(token);
  // RFC8693-D-1: our own access token is one under either type, and a JWT of others is none.
  if (type === ACCESS_TOKEN || (jws.ok && isOwn(ports, jws.value))) {
    return actorByOwnToken(ports, client, jws);
  }
  return platform === undefined
    ? whenOk(verifySvid(ports, jws, TOKEN_PATH), (proven) => actorOf(ports, proven))
    : actorByPlatform(ports, client, token);
}

function actorOf(
  { hash }: Pick<Ports, "hash">,
  { spiffeId, jws }: VerifiedSvid,
): Result<ResolvedActor, never> {
  return ok({ sub: spiffeId, token: { fingerprint: hash.sha256(jws.signingInput), type: "jwt-svid" } });
}

/** A client without a SPIFFE ID of its own acts as the workload that the operator gave it, where that is allowed too. */
function actorByOwnToken(
  ports: OwnTokenPorts,
  { clientId, workload, actorAccessToken = false, keys = {} }: TokenRequest["client"],
  jws: ReturnType<Ports["verifier"]["parse"]>,
): Verified {
  if (!actorAccessToken || workload === undefined) return err({ reason: "access_token_not_allowed" });
  if (!jws.ok) return err({ reason: jws.error.kind });
  return whenOk(verifyOwnToken(ports, jws.value), ({ record }): Verified => {
    const { issuer } = ports.settings();
    // PROD-5r4-1: a token for our own endpoints serves there and nowhere else.
    if (apiNames(issuer).includes(record.audience)) return err({ reason: "token_for_own_endpoints" });
    // RFC9449-4.3-12, RFC8705-3-3: a bound token is of use to the holder of its key alone.
    const { confirmation } = record;
    if (confirmation !== undefined && (keys === "assumed" || !isProven(confirmation, keys))) {
      return err({ reason: "key_not_proven" });
    }
    // PROD-4.1v5-4: from its own credentials; a token for another subject does not say that its holder is this client.
    const itself =
      record.origin.iss === issuer && record.origin.sub === clientId && record.clientId === clientId;
    if (!itself || record.ancestors.length > 0) return err({ reason: "not_the_caller" });
    const audited = describeToken(ports, jws.value, "access_token");
    const { jti } = record;
    return ok(defined<ResolvedActor>({ sub: workload, token: audited, jti, job: jobOf(record) }));
  });
}
