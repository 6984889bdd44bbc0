/**
 * Whether an access token of ours is active, for a caller that may ask about its target (RFC 7662). Time tells no more
 * than the answer: every question looks for one token, and verifies one signature, but for a token for the caller's target
 * that it verified before; such a token is looked at in the same way whether or not it stands, and one for another target
 * is not looked at.
 */
import type { Reason, TokenReason } from "../audit/reasons.ts";
import { mayIntrospect } from "../policy/judge.ts";
import type { OwnTokenPorts } from "../ports.ts";
import type { TokenFacts, TokenRecord } from "../records.ts";
import { type Awaitable, defined, err, ok, type Result, whenReady } from "../result.ts";
import { encodeBase64url, type Jws, parseJws } from "../spec/rfc7515.ts";
import { stringClaim } from "../spec/rfc7519.ts";
import { buildActiveAnswer, INACTIVE } from "../spec/rfc7662.ts";
import { isSameKey, readConfirmation } from "../spec/rfc7800.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import { isSameDetails } from "../spec/rfc9396.ts";
import type { Authenticated } from "./authenticate-client.ts";
import { standing } from "./standing.ts";
import { checkOwnTimes, findOwnKey } from "./verify-own-token.ts";

/** `answer` is all that the caller learns; `reason` and `target`, of a token that we signed, are for the audit trail. */
type Introspected = { answer: JsonObject; reason: Reason; target?: string };

export function introspect(
  ports: OwnTokenPorts,
  client: Authenticated,
  token: string,
): Awaitable<Introspected> {
  const parsed = parseJws(token);
  const { aud } = parsed.ok ? parsed.value.claims : {};
  const target = typeof aud === "string" ? aud : undefined;
  // RFC7662-4-6, RFC7662-4-8, RFC7662-5-1, RFC7662-2.1-7: a caller learns only about tokens for a target of its own.
  const mayAsk = target !== undefined && mayIntrospect(ports.settings().policy, client, target);
  const verified = parsed.ok
    ? verifySigned(ports, parsed.value, mayAsk)
    : verifyDecoy(ports, parsed.error.kind);
  return whenReady(verified, (signed) =>
    whenReady(findStanding(ports, mayAsk ? signed : err(undefined)), (found) => {
      if (!signed.ok) return { answer: INACTIVE, reason: signed.error.reason };
      const { claims } = signed.value;
      const inactive = (reason: Reason) => defined<Introspected>({ answer: INACTIVE, reason, target });
      if (target === undefined || !mayAsk) return inactive("target_not_callers");
      const times = checkOwnTimes(ports, signed.value); // RFC7662-4-2, RFC7662-4-3
      if (!times.ok) return inactive(times.error.reason);
      if (!found.ok) return inactive(found.error.reason);
      if (!isRecorded(found.value.record, claims)) return inactive("token_unknown");
      return { answer: buildActiveAnswer(claims), reason: "token_active", target };
    }),
  );
}

/**
 * RFC7662-4-5, RFC7662-4-15: finds the token, if it is an access token that we signed; it is not encrypted. HTTP-D-65: of
 * a token for the caller's own target the signature is computed once, and time may tell the caller that it was asked
 * about before; whether a token for another target is one of ours is computed each time.
 */
function verifySigned(
  ports: OwnTokenPorts,
  jws: Jws,
  mayAsk: boolean,
): Awaitable<Result<Jws, { reason: TokenReason }>> {
  const { verify, verifyRepeated } = ports.verifier;
  const key = findOwnKey(ports, jws);
  if (!key.ok) return verifyDecoy(ports, key.error.reason);
  const isSigned = mayAsk ? verifyRepeated(jws, key.value) : verify(jws, key.value);
  return isSigned ? ok(jws) : err({ reason: "signature_invalid" });
}

/** This token is verified and looked up in place of one that is none of ours, so that both take the same time. */
const DECOY = decoy({ alg: "ES256" });
const DECOY_JTI = "none";

function decoy(header: { alg: string }): Jws {
  const encode = (part: JsonObject): string =>
    encodeBase64url(new TextEncoder().encode(JSON.stringify(part)));
  const signingInput = `${encode(header)}.${encode({})}`;
  const signature = new Uint8Array(64).fill(0x55);
  const compact = `${signingInput}.${encodeBase64url(signature)}`;
  return { header: { ...header, members: header }, claims: {}, signingInput, signature, compact };
}

function verifyDecoy<R>(ports: OwnTokenPorts, reason: R): Awaitable<{ ok: false; error: { reason: R } }> {
  return whenReady(ports.signer.current(DECOY.header.alg), ({ alg, kid }) => {
    const key = ports.signer.own({ alg, kid, members: {} });
    if (key !== undefined) ports.verifier.verify(DECOY, key);
    return err({ reason });
  });
}

/** RFC7662-4-1, RFC7662-4-4: whether the token stands by its record; an unknown one is looked up like a known one. */
function findStanding(
  ports: OwnTokenPorts,
  signed: Result<Jws, unknown>,
): Awaitable<Result<TokenFacts, { reason: TokenReason }>> {
  const jti = signed.ok ? stringClaim(signed.value.claims, "jti") : signed;
  return whenReady(standing(ports, jti.ok ? jti.value : DECOY_JTI, ports.clock.nowSeconds()), (facts) =>
    facts.ok ? facts : err({ reason: facts.error }),
  );
}

/** AUDIT-D-1: a token that says something else than its record was made by another holder of our key. */
function isRecorded(record: TokenRecord, claims: JsonObject): boolean {
  const { aud, sub, client_id, scope, exp } = claims;
  const { audience, subject, clientId, expiresAtSeconds } = record;
  const sameParties = aud === audience && sub === subject && client_id === clientId;
  const sameDetails = isSameDetails(claims.authorization_details, record.details);
  const sameKey = isSameKey(readConfirmation(claims), record.confirmation);
  return sameParties && sameDetails && sameKey && scope === record.scope && exp === expiresAtSeconds;
}
