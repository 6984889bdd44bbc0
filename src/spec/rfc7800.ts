/**
 * RFC 7800, Proof-of-Possession Key Semantics for JSON Web Tokens: https://www.rfc-editor.org/rfc/rfc7800.html
 * Covers 3.1 the claim `cnf`, with the members of RFC 8705 section 3.1 and RFC 9449 section 6.1.
 * Elsewhere: 3.1 policy/binding.ts.
 */
import { isJsonObject, type JsonObject } from "./rfc8259.ts";

/** RFC7800-3.1-v1: one key, by its thumbprint (`jkt`) or by that of its certificate; SHA-256 in base64url. */
export type Confirmation = { readonly jkt: string } | { readonly "x5t#S256": string };

/** The key that a token is bound to; "unknown" if `cnf` names it in no way that is understood here. */
export type BoundTo = Confirmation | "unknown";

/** RFC8705-3.1-3, RFC8705-3.1-4: a thumbprint has 256 bits, without padding, white space or anything else. */
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;

/**
 * The key that these claims bind their token to; undefined: none. RFC7800-3.1-v2: other members are ignored, but a
 * `cnf` without a key that is understood, or with two, binds to a key that cannot be proven here.
 */
export function readConfirmation({ cnf }: JsonObject): BoundTo | undefined {
  if (cnf === undefined) return undefined;
  if (!isJsonObject(cnf)) return "unknown";
  const { jkt, "x5t#S256": x5t } = cnf;
  if (isThumbprint(jkt) && x5t === undefined) return { jkt };
  if (isThumbprint(x5t) && jkt === undefined) return { "x5t#S256": x5t };
  return "unknown";
}

/** Whether both are bound to the same key, or neither is; a key that is not understood is no other one. */
export function isSameKey(one: BoundTo | undefined, other: BoundTo | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return one !== "unknown" && JSON.stringify(one) === JSON.stringify(other);
}

const isThumbprint = (value: unknown): value is string => typeof value === "string" && THUMBPRINT.test(value);
