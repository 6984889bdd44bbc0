/**
 * RFC 7515, JSON Web Signature: https://www.rfc-editor.org/rfc/rfc7515.html
 * Covers 2 base64url, 4 header, 5.2 consumption, 7.1 compact serialization; refuses RFC 7797 `b64` and RFC 7516 JWE.
 * The signature itself is checked by the caller, over `signingInput`.
 * Elsewhere: 4 spec/rfc8259.ts; 4.1.11 adapters/crypto/signer.ts; 5.1 adapters/crypto/signer.ts; 5.3 spec/rfc7517.ts; 6
 * adapters/crypto/seal.ts, adapters/crypto/signer.ts, spec/rfc7517.ts; 8 adapters/remote/checked-agent.ts; 10.1
 * adapters/crypto/seal.ts; 10.3 adapters/remote/key-sets.ts; 10.6 adapters/crypto/verifier.ts; 10.9 spec/rfc7517.ts;
 * 10.12 spec/rfc8259.ts; 10.13 spec/rfc8259.ts.
 */

import { CLAIMS_DEPTH_MAX, JSON_DEPTH_MAX, JWT_BYTES_MAX, KID_CHARS_MAX } from "../limits/input.ts";
import { defined, err, ok, type Result } from "../result.ts";
import {
  decodeUtf8,
  isJsonObject,
  type JsonFailure,
  type JsonObject,
  parseJson,
  type Utf8Failure,
} from "./rfc8259.ts";

export type JwsHeader = {
  alg: string;
  kid?: string;
  typ?: string;
  /** The whole header as received. */
  members: JsonObject;
};

export type Jws = {
  header: JwsHeader;
  /** RFC7519-4-v2: unknown claims are ignored. */
  claims: JsonObject;
  /** The first two parts stay as received and are never encoded again. */
  signingInput: string;
  signature: Uint8Array<ArrayBuffer>;
  compact: string;
};

type JwsPart = "header" | "payload" | "signature";

export type JwsFailure =
  | { kind: "jws_too_large" }
  | { kind: "jws_not_compact" }
  | { kind: "jws_encrypted" }
  | { kind: "jws_base64url_malformed"; part: JwsPart }
  | { kind: "jws_part_malformed"; part: JwsPart; cause: "not_object" | (JsonFailure | Utf8Failure)["kind"] }
  | { kind: "jws_header_malformed"; member: "alg" | "kid" | "typ" | "cty" }
  | { kind: "jws_header_refused"; member: string };

const ALPHABET = /^[A-Za-z0-9_-]*$/;
/** By the length modulo 4: the last letters that leave no bit unused (RFC 4648, 3.5); one letter is no byte. */
const LAST_LETTERS = [undefined, "", "AQgw", "AEIMQUYcgkosw048"] as const;

/** RFC7515-2-v1: only canonical base64url is decoded, so that a token has one spelling; anything else is undefined. */
export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  // The platform ignores unused bits: `QQ` and `QR` decode alike.
  const last = LAST_LETTERS[text.length % 4];
  if (!ALPHABET.test(text) || (last !== undefined && !last.includes(text.slice(-1)))) return undefined;
  return Uint8Array.fromBase64(text, { alphabet: "base64url" });
}

/** RFC 7515 2: base64url without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/** RFC7515-4.1.9-v1: a type without `/` means `application/…`; ASCII case does not count. */
export function mediaType(value: string): string {
  const lower = value.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  return lower.includes("/") ? lower : `application/${lower}`;
}

const REFUSED: ReadonlySet<string> = new Set([
  // RFC8725-3.10-v2, RFC7515-4.1.3-v1: a token must not name or contain the key that verifies it; only a DPoP proof does.
  "jku",
  "jwk",
  "x5u",
  "x5c",
  "x5t",
  "x5t#S256",
  // B8725-3.15-1, B8725-3.13-1: parameters of JWE, which ask for decompression and password hashing.
  "enc",
  "zip",
  "epk",
  "apu",
  "apv",
  "iv",
  "tag",
  "p2s",
  "p2c",
  // RFC7515-4.1.11-v1 to RFC7515-4.1.11-v4, RFC7515-5.2-v4: `crit` is refused whatever it holds, because we support no
  // extension and the compact form has no header but the protected one.
  "crit",
]);

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/**
 * Parses a compact JWS and applies the rules that hold for every sender and purpose; the signature is not checked.
 * `accepted` are refused members of the header that this kind of JWT has.
 */
export function parseJws(compact: string, accepted: readonly "jwk"[] = []): Result<Jws, JwsFailure> {
  // RFC7523-3-2: this limit is our own, and is checked before any other work.
  if (compact.length > JWT_BYTES_MAX) return err({ kind: "jws_too_large" });
  const [first = "", second = "", third = "", ...rest] = compact.split(".", 6);
  // JSV-2-2, B8725-3.3-1: five parts are a JWE, whose decryption proves nothing about the sender.
  if (rest.length === 2) return err({ kind: "jws_encrypted" });
  // RFC7515-5.2-v1, B8725-3.14-1: three parts of letters, digits, `-` and `_`. RFC7518-3.6-v1: no part is empty, which
  // also refuses an unsecured JWS.
  if (!COMPACT.test(compact)) return err({ kind: "jws_not_compact" });

  const header = parsePart("header", first, JSON_DEPTH_MAX);
  if (!header.ok) return header;
  const checked = checkHeader(header.value, accepted);
  if (!checked.ok) return checked;
  const claims = parsePart("payload", second, CLAIMS_DEPTH_MAX);
  if (!claims.ok) return claims;
  const signature = decodeBase64url(third);
  if (signature === undefined) return err({ kind: "jws_base64url_malformed", part: "signature" });

  const signingInput = compact.slice(0, first.length + 1 + second.length);
  return ok({ header: checked.value, claims: claims.value, signingInput, signature, compact });
}

/** RFC7515-5.2-v3, RFC7519-7.2-1, RFC7519-7.2-v2: base64url of the UTF-8 of one JSON object. */
function parsePart(part: JwsPart, text: string, depthMax: number): Result<JsonObject, JwsFailure> {
  // RFC7515-5.2-v2: a part that is not canonical base64url makes the JWS invalid.
  const bytes = decodeBase64url(text);
  if (bytes === undefined) return err({ kind: "jws_base64url_malformed", part });
  const utf8 = decodeUtf8(bytes);
  if (!utf8.ok) return err({ kind: "jws_part_malformed", part, cause: utf8.error.kind });
  const json = parseJson(utf8.value, depthMax);
  if (!json.ok) return err({ kind: "jws_part_malformed", part, cause: json.error.kind });
  if (!isJsonObject(json.value)) return err({ kind: "jws_part_malformed", part, cause: "not_object" });
  return ok(json.value);
}

function checkHeader(members: JsonObject, accepted: readonly string[]): Result<JwsHeader, JwsFailure> {
  for (const name in members) {
    // RFC7515-4-v2: other unknown names are ignored.
    if (REFUSED.has(name) && !accepted.includes(name))
      return err({ kind: "jws_header_refused", member: name });
  }
  const { alg, kid, typ, cty, b64 } = members;
  // RFC7797-7-v1: a JWT's payload is always encoded, so `b64` may only have its default value, true.
  if (b64 !== undefined && b64 !== true) return err({ kind: "jws_header_refused", member: "b64" });
  // RFC7515-4.1.1-v1: `alg` is required.
  if (typeof alg !== "string") return err({ kind: "jws_header_malformed", member: "alg" });
  // RFC7515-4.1.4-v1: `kid` is a string. RFC8725-3.10-v1: an unauthenticated peer chooses it, so its length is limited.
  if (kid !== undefined && (typeof kid !== "string" || kid.length > KID_CHARS_MAX)) {
    return err({ kind: "jws_header_malformed", member: "kid" });
  }
  if (typ !== undefined && typeof typ !== "string")
    return err({ kind: "jws_header_malformed", member: "typ" });
  if (cty !== undefined && typeof cty !== "string")
    return err({ kind: "jws_header_malformed", member: "cty" });
  // RFC7519-5.2-v1: `cty` "JWT" announces a nested JWT, which is not supported.
  if (cty !== undefined && mediaType(cty) === "application/jwt") {
    return err({ kind: "jws_header_refused", member: "cty" });
  }
  return ok(defined<JwsHeader>({ alg, kid, typ, members }));
}
