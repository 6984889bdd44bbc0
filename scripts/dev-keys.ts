/**
 * Trust domains, keys and tokens for the demo, the benchmark and the tests, never for production. Certificates are made
 * in dev-pki.ts, whose library takes a tenth of a second to load.
 * SPIFFE JWT-SVID and Trust Domain and Bundle (1 July 2026): https://github.com/spiffe/spiffe/tree/main/standards
 * Covers X509-SVID 6.1, JWT-SVID 2, 3 and 6.1, Bundle 4.
 */
import { createPublicKey, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { calculateJwkThumbprint, exportPKCS8, importPKCS8, SignJWT } from "jose";
import * as v from "valibot";

const JWT_SVID_SECONDS = 300;
const REFRESH_HINT_SECONDS = 300;

const Authority = v.object({
  name: v.string(),
  keyPem: v.string(),
  certPem: v.string(),
  /** The certificates to send after a leaf: this one and those above it, without the root; empty for a root. */
  intermediatesPem: v.string(),
});

/** A certificate authority as plain data. */
export type Authority = v.InferOutput<typeof Authority>;

const TrustDomain = v.object({
  name: v.string(),
  sequence: v.pipe(v.number(), v.safeInteger()),
  x509: Authority,
  jwt: v.object({ kid: v.string(), keyPem: v.string() }),
});

/** A SPIFFE trust domain with its X.509 and JWT authorities, including their private keys. */
export type TrustDomain = v.InferOutput<typeof TrustDomain>;

export type JwtSvidInput = {
  sub: string;
  aud: string | string[];
  expSeconds?: number;
  header?: { alg?: string; kid?: string; typ?: string; [member: string]: unknown };
  /** Further claims, or other values of those above; `undefined` leaves one out. */
  claims?: { [name: string]: unknown };
};

/** Includes the private keys, so only the owner may read the file. It is written atomically. */
export function saveTrustDomain(trustDomain: TrustDomain, file: string): void {
  const unfinished = `${file}.${randomBytes(6).toString("hex")}`;
  writeFileSync(unfinished, `${JSON.stringify(trustDomain, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(unfinished, file);
}

export function loadTrustDomain(file: string): TrustDomain {
  return v.parse(TrustDomain, JSON.parse(readFileSync(file, "utf8")));
}

/** The SPIFFE bundle: the public keys of the trust domain. */
export function bundle(trustDomain: TrustDomain): {
  keys: Record<string, unknown>[];
  [member: string]: unknown;
} {
  const anchor = derOf(trustDomain.x509.certPem);
  return {
    // SBN-4.1.1-1: a whole number that increases with each change.
    spiffe_sequence: trustDomain.sequence,
    spiffe_refresh_hint: REFRESH_HINT_SECONDS,
    keys: [
      // X5S-6.1-1, X5S-6.1-2, X5S-6.1-3: use, no kid, exactly one certificate.
      { use: "x509-svid", ...publicJwk(trustDomain.x509.keyPem), x5c: [anchor.toString("base64")] },
      // JSV-6.1-1, JSV-6.1-2: use and kid.
      { use: "jwt-svid", kid: trustDomain.jwt.kid, ...publicJwk(trustDomain.jwt.keyPem) },
    ],
  };
}

export async function mintJwtSvid(trustDomain: TrustDomain, input: JwtSvidInput): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const { sub, aud, expSeconds = JWT_SVID_SECONDS } = input;
  // JSV-3.1-1, JSV-3.2-1, JSV-3.3-1: subject, audience and expiry are always present.
  const claims: Record<string, unknown> = { sub, aud, iat: now, exp: now + expSeconds, ...input.claims };
  // JSV-2-1: no header member beyond these three.
  const header = { alg: "ES256", kid: trustDomain.jwt.kid, typ: "JWT", ...input.header };
  const key = await importPKCS8(trustDomain.jwt.keyPem, "ES256");
  return new SignJWT(claims).setProtectedHeader(header).sign(key);
}

/** A new key of ES256. */
export async function makeKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
}

/** A new ES256 key as PKCS #8. */
export async function makeKeyPem(): Promise<string> {
  return exportPKCS8((await makeKeys()).privateKey);
}

/** The public JWK of a private key. */
export function publicJwk(keyPem: string): { kty: string; crv: string; x: string; y: string } {
  const { kty = "", crv = "", x = "", y = "" } = createPublicKey(keyPem).export({ format: "jwk" });
  return { kty, crv, x, y };
}

/** As an issuer publishes its key. */
export async function signingJwk(keyPem: string) {
  const jwk = publicJwk(keyPem);
  return { ...jwk, use: "sig", alg: "ES256", kid: await calculateJwkThumbprint(jwk) };
}

/** The DER of the first certificate of a PEM text. */
export function derOf(certPem: string): Buffer {
  return new X509Certificate(certPem).raw;
}
