/** Checks signatures that others made, and our own, with the platform's synchronous primitives. */
import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import {
  PARSED_REMEMBERED_CHARS_MAX,
  PARSED_REMEMBERED_MAX,
  SIGNED_REMEMBERED_MAX,
} from "../../limits/input.ts";
import type { Verifier } from "../../ports.ts";
import { ok } from "../../result.ts";
import { type Jws, parseJws } from "../../spec/rfc7515.ts";
import { algorithmsOf, type Jwk, RSA_ALGORITHMS } from "../../spec/rfc7517.ts";
import { makeLruCache } from "../lru-cache.ts";
import { makeRecentValues, type RecentValues } from "../recent-values.ts";
import { primitiveOf } from "./primitives.ts";

function isSigned({ header: { alg }, signingInput, signature }: Jws, jwk: Jwk): boolean {
  // RFC8725-3.1-v2: only the algorithm of the header is used, and only with a key for it.
  if (!algorithmsOf(jwk, RSA_ALGORITHMS).includes(alg)) return false;
  try {
    // RFC8725-3.3-v1, RFC7519-7.2-v1: the signature is verified; the digest inside a PKCS #1 signature is that of `alg`
    // (RFC7515-10.6-v1).
    const { digest, options } = primitiveOf(alg);
    return verify(digest, Buffer.from(signingInput), { key: imported(jwk), ...options }, signature);
  } catch (error) {
    // RFC8725-3.3-1, RFC7521-3-1: a failure is an invalid signature. So is a key that cannot be imported, for instance
    // because it is not on its curve (RFC8725-3.4-v1).
    if (isRefusal(error)) return false;
    throw error;
  }
}

export const verifier: Verifier = {
  verify: isSigned,
  verifyRepeated(jws, jwk) {
    if (signedBy.get(jws) === jwk) return true;
    const known = signed.getOrInsertComputed(jwk, () => makeRecentValues<true>(SIGNED_REMEMBERED_MAX));
    // The digest is of the whole token, of which the parser takes one spelling only, so that algorithm and signature
    // are part of it.
    const digest = hash("sha256", jws.compact, "base64url");
    const again = known.find(digest) === true;
    if (!again && !isSigned(jws, jwk)) return false;
    if (!again) known.keep(digest, true);
    if (again && parsedHere.has(jws)) keepParsed(jws, jwk);
    return true;
  },
  parse(compact) {
    const known = parsed.find(compact);
    if (known !== undefined) return ok(known.jws);
    const read = parseJws(compact);
    if (read.ok) parsedHere.add(read.value);
    return read;
  },
};

/** Tokens that came again are kept by their text. Most tokens come once, and would only drive out the others. */
const parsed = makeLruCache<{ jws: Jws; bytes: number }>(PARSED_REMEMBERED_MAX, PARSED_REMEMBERED_CHARS_MAX);

/** What `parse` made anew: a text that was read in another way is not kept. */
const parsedHere = new WeakSet<Jws>();

/** The key that a kept token is signed with. */
const signedBy = new WeakMap<Jws, Jwk>();

/**
 * The objects are frozen, because every request with this text gets the same one, and what was verified must be what is
 * read.
 */
function keepParsed(jws: Jws, jwk: Jwk): void {
  const kept = parseJws(jws.compact);
  if (!kept.ok) return;
  freeze(kept.value);
  signedBy.set(kept.value, jwk);
  parsed.keep(jws.compact, { jws: kept.value, bytes: jws.compact.length });
}

function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return;
  for (const member of Object.values(Object.freeze(value))) freeze(member);
}

/**
 * Digests of the tokens that were found to be signed with a key, by key object: when its source no longer hands out
 * the key, nothing finds them any more.
 */
const signed = new WeakMap<Jwk, RecentValues<true>>();

/**
 * A key is imported once for each key object, because key sources hand out the same object for as long as they keep the
 * key.
 */
const keys = new WeakMap<Jwk, KeyObject>();

const imported = (jwk: Jwk): KeyObject =>
  keys.getOrInsertComputed(jwk, () => createPublicKey({ key: jwk, format: "jwk" }));

/** The platform's word for a key or signature that OpenSSL does not take; anything else is a fault of ours. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error && "code" in error && /^ERR_(OSSL|CRYPTO)_/.test(String(error.code));
