/** An issuer that is not ours: its key, and JWTs of any shape signed with it. */
import { randomUUID } from "node:crypto";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { ISSUER } from "./world.ts";

export type Claims = { [name: string]: unknown };

export type Foreign = {
  issuer: string;
  /** What it publishes. */
  jwks: { keys: object[] };
  /** `undefined` leaves a claim or a header member out. */
  sign(claims: Claims, header?: Claims): Promise<string>;
  /** A plain grant for us, good for a minute; `claims` are others than the usual. */
  grant(claims?: Claims, header?: Claims): Promise<string>;
};

export async function makeForeign(issuer: string, kid = "f-1"): Promise<Foreign> {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const sign = (claims: Claims, header: Claims = {}): Promise<string> =>
    new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid, ...header }).sign(privateKey);
  return {
    issuer,
    jwks: { keys: [{ ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" }] },
    sign,
    grant(claims = {}, header = {}) {
      const now = Math.floor(Date.now() / 1000);
      const usual = { iss: issuer, sub: "u-77", aud: ISSUER, iat: now, exp: now + 60, jti: randomUUID() };
      return sign({ ...usual, ...claims }, { typ: "authz-grant+jwt", ...header });
    },
  };
}
