/** Keys and JWTs, by Node's own cryptography: what is sent can be wrong in any one place, and nothing checks it here. */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from "node:crypto";

export type Json = { [member: string]: unknown };

export type Key = { alg: string; kid: string; privateKey: KeyObject; jwk: Json };

const HASHES: Record<string, string> = { ES256: "sha256", ES384: "sha384", RS256: "sha256", PS256: "sha256" };

/** A new key; its public JWK has `kid`, `alg` and `use`. */
export function makeKey(kid: string, alg: "ES256" | "RS256" | "EdDSA" = "ES256"): Key {
  const { privateKey } =
    alg === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : alg === "RS256"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ed25519");
  return { alg, kid, privateKey, jwk: { ...bareJwk(privateKey), kid, alg, use: "sig" } };
}

export const bareJwk = (key: KeyObject): Json => createPublicKey(key).export({ format: "jwk" }) as Json;

export const base64url = (data: string | Uint8Array): string => Buffer.from(data).toString("base64url");
export const sha256 = (data: string | Uint8Array): string =>
  createHash("sha256").update(data).digest("base64url");
export const seconds = (): number => Math.floor(Date.now() / 1000);
/** Times of a JWT that has expired, and is not so old that a limit of age alone would refuse it. */
export const expired = (): Json => ({ iat: seconds() - 260, exp: seconds() - 200 });
export const randomId = (): string => randomBytes(16).toString("base64url");

/** RFC 7638. */
export function thumbprint(jwk: Json): string {
  const members = { EC: ["crv", "kty", "x", "y"], RSA: ["e", "kty", "n"], OKP: ["crv", "kty", "x"] };
  const names = members[jwk.kty as keyof typeof members];
  return sha256(JSON.stringify(Object.fromEntries(names.map((name) => [name, jwk[name]]))));
}

/** A compact JWS; a member of header or claims that is `undefined` is left out. */
export function makeJwt(key: Key, claims: Json, header: Json = {}): string {
  const { alg, kid, privateKey } = key;
  const head = { alg, kid, typ: "JWT", ...header };
  const input = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify(claims))}`;
  return `${input}.${head.alg === "none" ? "" : base64url(signed(alg, input, privateKey))}`;
}

function signed(alg: string, input: string, key: KeyObject): Buffer {
  const data = Buffer.from(input);
  if (alg === "EdDSA") return sign(null, data, key);
  return sign(HASHES[alg], data, alg.startsWith("ES") ? { key, dsaEncoding: "ieee-p1363" } : key);
}

/** A JWT with one bit of its signature changed. */
export function withBadSignature(jwt: string): string {
  const [header, claims, signature = ""] = jwt.split(".");
  const bytes = Buffer.from(signature, "base64url");
  bytes[7] = (bytes[7] ?? 0) ^ 1;
  return `${header}.${claims}.${bytes.toString("base64url")}`;
}

const partOf = (jwt: unknown, part: number): Json | undefined => {
  try {
    const read = JSON.parse(Buffer.from(String(jwt).split(".")[part] ?? "", "base64url").toString("utf8"));
    return typeof read === "object" && read !== null ? read : undefined;
  } catch {
    return undefined;
  }
};

/** Empty for what is no JWT, such as an opaque token. */
export const claimsOf = (jwt: unknown): Json => partOf(jwt, 1) ?? {};
export const headerOf = (jwt: unknown): Json => partOf(jwt, 0) ?? {};
export const isJwt = (token: unknown): boolean =>
  String(token).split(".").length === 3 && partOf(token, 0) !== undefined && partOf(token, 1) !== undefined;

/** Whether one of these public keys made the signature. */
export function isSignedBy(jwt: string, keys: readonly Json[]): boolean {
  const [header = "", claims = "", signature = ""] = jwt.split(".");
  const { alg, kid } = headerOf(jwt) as { alg?: string; kid?: string };
  const data = Buffer.from(`${header}.${claims}`);
  return keys.some((jwk) => {
    if (kid !== undefined && jwk.kid !== kid) return false;
    try {
      const key = createPublicKey({ key: jwk, format: "jwk" });
      const bytes = Buffer.from(signature, "base64url");
      if (alg === "EdDSA" || alg === "Ed25519") return verify(null, data, key, bytes);
      const asIs = alg?.startsWith("ES") ? ({ key, dsaEncoding: "ieee-p1363" } as const) : key;
      return verify(HASHES[alg ?? ""], data, asIs, bytes);
    } catch {
      return false;
    }
  });
}
