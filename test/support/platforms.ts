/** Platforms that sign a JWT for each of their workloads: their keys, and tokens of any shape. */
import { randomUUID } from "node:crypto";
import { type Forgery, forge, type Key, makeKey, seconds } from "./forge.ts";
import { ACCESS_TOKEN, EXCHANGE, type Form, ISSUER, JWT } from "./world.ts";

export const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const BY_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

export type Platform = {
  issuer: string;
  key: Key;
  jwks: string;
  /** A token for us, good for a minute, but for what is changed. */
  token(claims?: object, changes?: Omit<Forgery, "claims">): string;
};

export function makePlatform(issuer: string, usual: object = {}, alg = "ES256"): Platform {
  const key = makeKey(alg, "p1");
  return {
    issuer,
    key,
    jwks: JSON.stringify({ keys: [{ ...key.jwk, alg }] }),
    token(claims = {}, changes = {}) {
      const now = seconds();
      const good = { iss: issuer, aud: ISSUER, iat: now, exp: now + 60, jti: randomUUID(), ...usual };
      return forge(key, good, { claims, ...changes });
    },
  };
}

/** As a grant of its own, without client authentication. */
export const byGrant = (assertion: string, more: Form = {}): Form => ({
  grant_type: GRANT,
  assertion,
  ...more,
});

export const byClient = (client_assertion: string, more: Form = {}): Form => ({
  client_assertion_type: BY_ASSERTION,
  client_assertion,
  ...more,
});

/** The same token proves the client and is the actor token. */
export const byActor = (subject_token: string, token: string, more: Form = {}): Form => ({
  grant_type: EXCHANGE,
  ...byClient(token),
  subject_token,
  subject_token_type: ACCESS_TOKEN,
  actor_token: token,
  actor_token_type: JWT,
  ...more,
});
