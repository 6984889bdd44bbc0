/** An access token that we issued, verified from its signature to whether it still stands, wherever one is accepted. */
import type { TokenReason } from "../audit/reasons.ts";
import type { OwnKeys, OwnTokenPorts, Ports } from "../ports.ts";
import type { TokenFacts } from "../records.ts";
import { type Awaitable, err, ok, type Result, whenReady } from "../result.ts";
import type { Jws } from "../spec/rfc7515.ts";
import type { Jwk } from "../spec/rfc7517.ts";
import { checkTimes, stringClaim } from "../spec/rfc7519.ts";
import { checkType } from "../spec/rfc8725.ts";
import { AT_JWT } from "../spec/rfc9068.ts";
import { TRANSACTION_TYP } from "../spec/transaction-tokens.ts";
import { standing } from "./standing.ts";

/** `key` is that of an access token, unless another kind is looked for. */
export function verifyOwnToken(
  ports: OwnTokenPorts,
  jws: Jws,
  key = findOwnKey(ports, jws),
): Awaitable<Result<TokenFacts, { reason: TokenReason }>> {
  if (!key.ok) return key;
  if (!ports.verifier.verifyRepeated(jws, key.value)) return err({ reason: "signature_invalid" }); // RFC9068-4-10
  const times = checkOwnTimes(ports, jws);
  if (!times.ok) return times;
  const jti = stringClaim(jws.claims, "jti");
  if (!jti.ok) return err({ reason: jti.error.kind });
  return whenReady(standing(ports, jti.value, ports.clock.nowSeconds()), (found) => {
    if (!found.ok) return err({ reason: found.error });
    // RFC8693-D-1: the row tells whose token it is, so that its type is the one of that target.
    return found.value.record.audience === jws.claims.aud ? found : err({ reason: "token_unknown" });
  });
}

/** RFC8693-D-1: whether a JWT says that we issued it, so that it is judged as an access token of ours and as nothing else. */
export const isOwn = ({ settings }: Pick<Ports, "settings">, { claims }: Pick<Jws, "claims">): boolean =>
  claims.iss === settings().issuer;

/** The key of ours that must have signed this access token, if it claims to be one of ours. */
export function findOwnKey(
  { settings, signer }: Pick<OwnTokenPorts, "settings" | "signer">,
  { header, claims }: Jws,
): Result<Jwk, { reason: TokenReason }> {
  // RFC9068-4-6, RFC9068-D-1: the access tokens of a target have one type, and no other kind that we sign has a target.
  const target = typeof claims.aud === "string" ? settings().policy.targets.get(claims.aud) : undefined;
  const type = checkType(header, [target?.typ ?? AT_JWT]);
  if (!type.ok) return err({ reason: type.error.kind });
  if (!isOwn({ settings }, { claims })) return err({ reason: "issuer_not_ours" }); // RFC9068-4-8
  const key = signer.own(header);
  return key === undefined ? err({ reason: "key_unknown" }) : ok(key); // RFC9068-4-12
}

/** TXN-D-12: the key of ours that must have signed this transaction token; no other type is one. */
export function findTransactionKey(
  { settings, grantSigner }: Pick<Ports, "settings"> & { grantSigner: OwnKeys },
  jws: Jws,
): Result<Jwk, { reason: TokenReason }> {
  const type = checkType(jws.header, [TRANSACTION_TYP]);
  if (!type.ok) return err({ reason: type.error.kind });
  if (!isOwn({ settings }, jws)) return err({ reason: "issuer_not_ours" });
  const key = grantSigner.own(jws.header);
  return key === undefined ? err({ reason: "key_unknown" }) : ok(key);
}

/** RFC9068-4-13: our own clock set `exp`, so it gets no leeway. */
export function checkOwnTimes(
  ports: Pick<Ports, "settings" | "clock">,
  { claims }: Jws,
): Result<undefined, { reason: TokenReason }> {
  const { clockSkewSeconds: skewSeconds } = ports.settings();
  const nowSeconds = ports.clock.nowSeconds();
  const times = checkTimes(claims, { nowSeconds, skewSeconds, expSkewSeconds: 0 });
  return times.ok ? ok(undefined) : err({ reason: times.error.kind });
}
