/** The keys of which a request proves possession: by its DPoP proof, and by the certificate of its TLS handshake. */
import type { ProofReason } from "../audit/reasons.ts";
import type { ProvenKeys } from "../policy/access.ts";
import type { BasePorts, KeyProofPorts } from "../ports.ts";
import type { Guard } from "../records.ts";
import { defined, err, ok, type Result } from "../result.ts";
import type { Form } from "../spec/rfc6749.ts";
import { thumbprintInput } from "../spec/rfc7638.ts";
import { checkProof, type ProofRule, parseProof } from "../spec/rfc9449.ts";
import type { Failure } from "./refusal.ts";
import type { From } from "./verifier.ts";

/** Where a nonce may be demanded: at the token endpoint, or at our own protected endpoints. */
type ProofPlace = "token" | "api";

export type KeyEvidence = {
  place: ProofPlace;
  method: string;
  url: string;
  /** The value of the field `DPoP`; several are joined by commas. */
  proof?: string;
  leaf?: From["leaf"];
  /** The access token that the proof comes with, at our own protected endpoints. */
  token?: string;
};

/** `spends` is the guard of the proof, which is used up by what is issued or done for it. */
type Possession = { keys: ProvenKeys; spends?: Guard };

/** RFC9449-5-2, RFC9449-4-2, IDJAG-9.9-1, IDJAG-9.9-5: a proof that was sent is valid, or the request is refused, whether or not anything demands it. */
export function proveKeys(ports: KeyProofPorts, evidence: KeyEvidence): Result<Possession, Failure> {
  const proof = evidence.proof === undefined ? undefined : verifyProof(ports, evidence.proof, evidence);
  if (proof?.ok === false) return proof;
  const certificate = provenCertificate(ports, evidence.leaf);
  const { jkt, spends } = proof?.value ?? {};
  return ok(defined<Possession>({ keys: defined<ProvenKeys>({ jkt, certificate }), spends }));
}

/** RFC9449-4.1-1: the sender of a proof in a form expects a binding, which only the header field gets it. */
export const proveKeysOf = (
  ports: KeyProofPorts,
  { DPoP, dpop }: Form,
  evidence: KeyEvidence,
): Result<Possession, Failure> =>
  (DPoP ?? dpop) === undefined
    ? proveKeys(ports, evidence)
    : err({ kind: "proof_refused", reason: "proof_in_body" });

/** The thumbprint of the key that a request proved by DPoP. */
export const jktOf = (keys: ProvenKeys | "assumed" | undefined): string | undefined =>
  keys === "assumed" ? undefined : keys?.jkt;

type Verified = { jkt: string; spends: Guard };

function verifyProof(
  ports: KeyProofPorts,
  value: string,
  { place, method, url, token }: KeyEvidence,
): Result<Verified, Failure> {
  const refused = (reason: `proof_${ProofReason}`) => err({ kind: "proof_refused", reason } as const);
  const { dpop, clockSkewSeconds: skewSeconds } = ports.settings();
  // A client that sends a proof expects a bound token, so without DPoP it gets none.
  if (dpop.algorithms.length === 0) return refused("proof_unsupported");
  const parsed = parseProof(value, dpop.algorithms);
  if (!parsed.ok) {
    const { kind } = parsed.error;
    const failure: Failure = { kind: "proof_refused", reason: `proof_${kind}` };
    // RFC9449-D-1
    return err(kind === "jwt_algorithm_refused" ? { ...failure, algorithms: dpop.algorithms } : failure);
  }
  const { jws, key } = parsed.value;
  const rule = defined<ProofRule>({
    method,
    url,
    nowSeconds: ports.clock.nowSeconds(),
    skewSeconds,
    ath: token === undefined ? undefined : ports.hash.sha256(token),
    endOfNonce: dpop.nonces.includes(place) ? ports.nonces.endSeconds : undefined,
  });
  const checked = checkProof(jws, rule);
  // RFC9449-4.3-6: the proof is verified before a nonce is told, because only the holder of a key has a use for it.
  if (!ports.verifier.verify(jws, key)) return refused("proof_signature_invalid");
  if (!checked.ok) {
    const { kind } = checked.error;
    return kind === "nonce_missing" || kind === "nonce_refused"
      ? err({ kind: "nonce_demanded", reason: `proof_${kind}` })
      : refused(`proof_${kind}`);
  }
  const jkt = ports.hash.sha256(thumbprintInput(key)); // RFC9449-6.1-1
  const { jti, endSeconds } = checked.value;
  // RFC9449-11.1-2: a proof is recorded for as long as it could be accepted again, on an instance with a slow clock
  // too.
  const expiresAtSeconds = endSeconds + skewSeconds;
  return ok({ jkt, spends: { kind: "proof_fresh", issuer: `dpop ${jkt}`, jti, expiresAtSeconds } });
}

/**
 * RFC8705-6.1-3: the private key of the certificate was used in this handshake. RFC8705-1-2, RFC8705-6.2-1: any issuer
 * will do, and any authentication of the client, since only the key is proven. Outside of its validity a certificate
 * proves nothing.
 */
function provenCertificate({ clock, hash }: BasePorts, leaf: KeyEvidence["leaf"]): ProvenKeys["certificate"] {
  if (!leaf?.ok) return undefined;
  const { der, notBeforeSeconds, notAfterSeconds } = leaf.value;
  const nowSeconds = clock.nowSeconds();
  if (nowSeconds < notBeforeSeconds || nowSeconds > notAfterSeconds) return undefined;
  return { x5t: hash.sha256(der), notAfterSeconds }; // RFC8705-3.1-2
}
