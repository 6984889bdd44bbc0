/** Nonces of DPoP proofs, which are derived and not stored. */
import { NONCE_SECONDS } from "../../limits/tokens.ts";
import type { Clock, Nonces } from "../../ports.ts";
import { deriver, type EncryptionKeys } from "./encryption-keys.ts";

/**
 * RFC9449-8-3, RFC9449-9-1: a nonce is an HMAC over issuer and minute, which only the instances of this server can
 * make; RFC9449-8.1-1: it is in base64url. The one before the newest is accepted too, and, from an instance whose clock
 * is ahead, the one after it.
 */
export function makeNonces(encryptionKeys: EncryptionKeys, issuer: string, { nowSeconds }: Clock): Nonces {
  const { of, accepts } = deriver<[issuer: string, slot: number]>(encryptionKeys, "DPoP nonce");
  const slotNow = (): number => Math.floor(nowSeconds() / NONCE_SECONDS);
  return {
    current: () => of(issuer, slotNow()),
    endSeconds(nonce) {
      const newest = slotNow();
      const slot = [newest, newest - 1, newest + 1].find((one) => accepts(nonce, issuer, one));
      return slot === undefined ? undefined : (slot + 2) * NONCE_SECONDS;
    },
  };
}
