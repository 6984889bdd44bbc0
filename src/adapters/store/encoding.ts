/** The fixed-length keys under which text from outside is indexed. */
import { hash } from "node:crypto";
import type { AuditEvent } from "../../audit/event.ts";
import type { Term } from "../../audit/terms.ts";
import { termsOf } from "../../audit/terms.ts";
import { TERM_KEYS_MAX } from "../../limits/audit.ts";
import type { Guard } from "../../records.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { isJsonObject } from "../../spec/rfc8259.ts";

/** Whether writing the entry uses up a `jti`, among those of the issuer that the guard names. */
export const isFreshGuard = (guard: Guard): guard is Extract<Guard, { issuer: string }> => "issuer" in guard;

/**
 * RFC7523-3-14: the digest of a `jti`, compared exactly; a key of fixed length, because the issuer chooses the text.
 */
export function spentJti(jti: string): string {
  return hash("sha256", JSON.stringify(jti), "base64url");
}

/** The search terms of a stored event; none if the text is no JSON object, which the journal never writes. */
export function termsOfBody(body: string): readonly Term[] {
  try {
    const event: unknown = JSON.parse(body);
    return isJsonObject(event as Json) ? termsOf(event as AuditEvent) : [];
  } catch {
    return [];
  }
}

/** Under this, a segment of the index lists the time of each event in place of numbers. */
export const TIMES = -1;

/** Under what the index lists a term: 31 bits of a digest, because peers choose the length and the characters of values. */
export function termKey({ name, value }: Term): number {
  // As text, because a buffer costs more than the digest.
  return Number.parseInt(hash("sha256", JSON.stringify([name, value]), "hex").slice(0, 8), 16) >>> 1;
}

/** The keys of terms; one that comes again is not hashed again. */
export function termKeys(): (terms: readonly Term[]) => readonly number[] {
  const known = new Map<string, number>();
  return (terms) =>
    terms.map((term) => {
      const text = `${term.name} ${term.value}`;
      const key = known.get(text) ?? termKey(term);
      if (known.size === TERM_KEYS_MAX) known.clear();
      known.set(text, key);
      return key;
    });
}
