/**
 * RFC 7638, JSON Web Key Thumbprint: https://www.rfc-editor.org/rfc/rfc7638.html
 * Covers 3.1 to 3.3, the text to hash; RFC 8037 section 2 for OKP. The hash is SHA-256 of its UTF-8, base64url.
 * Elsewhere: 3 adapters/crypto/seal.ts; 3.2.1 adapters/crypto/seal.ts.
 */
import type { Jwk } from "./rfc7517.ts";

/**
 * RFC7638-3-v1: the digest covers the required members only, sorted by name, without white space, so that a private key
 * has the thumbprint of its public key (RFC7638-3.2.1-v1). RFC7638-3.3-v1: no value of a parsed key needs escaping.
 */
export function thumbprintInput(key: Jwk): string {
  switch (key.kty) {
    case "EC":
      return `{"crv":"${key.crv}","kty":"EC","x":"${key.x}","y":"${key.y}"}`;
    case "OKP":
      // RFC8037-2-v2: the required members of this type.
      return `{"crv":"${key.crv}","kty":"OKP","x":"${key.x}"}`;
    case "RSA":
      return `{"e":"${key.e}","kty":"RSA","n":"${key.n}"}`;
  }
}
