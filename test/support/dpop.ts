/** DPoP proofs by hand, and the key behind them; thumbprint and hash are made by other code than that under test. */
import { createHash, randomUUID } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { type Forgery, forge, type Key, makeKey, seconds } from "./forge.ts";

export type Prover = {
  key: Key;
  /** The public key as the header of a proof holds it. */
  jwk: Record<string, unknown>;
  jkt: string;
  /** A good proof for `POST` at this URL, but for what is changed. */
  prove(htu: string, changes?: Forgery): string;
};

export async function makeProver(alg = "ES256"): Promise<Prover> {
  const key = { ...makeKey(alg, "none"), typ: "dpop+jwt" };
  const { kid: _, ...jwk } = key.jwk;
  return {
    key,
    jwk,
    jkt: await calculateJwkThumbprint(jwk, "sha256"),
    prove(htu, { header = {}, ...changes } = {}) {
      const good = { jti: randomUUID(), htm: "POST", htu, iat: seconds() };
      const isObject = typeof header === "object" && !(header instanceof Uint8Array);
      return forge(key, good, { header: isObject ? { kid: undefined, jwk, ...header } : header, ...changes });
    },
  };
}

/** RFC 9449 4.2: `ath` of this token. */
export const athOf = (token: string): string => createHash("sha256").update(token).digest("base64url");
