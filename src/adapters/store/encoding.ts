/** The fixed-length keys under which text from outside is indexed. */
import { hash } from "node:crypto";
import type { AuditEvent } from "../../audit/event.ts";
import { type Term, termsOf } from "../../audit/terms.ts";
import { TERM_KEYS_MAX } from "../../limits/audit.ts";
import type { Guard } from "../../records.ts";
import { isJsonObject, type Json } from "../../spec/rfc8259.ts";

/** Whether the guard uses up a `jti` of the issuer that it names. */
export const isFreshGuard = (guard: Guard): guard is Extract<Guard, { issuer: string }> => "issuer" in guard;

/**
 * RFC7523-3-14: the digest of a `jti`, which is compared exactly; it has a fixed length, because the issuer chooses the
 * length of the text.
 */
export function spentJti(jti: string): string {
  return hash("sha256", JSON.stringify(jti), "base64url");
}

/** The search terms of a stored event. A text that is no JSON object has none; the journal writes no such text. */
export function termsOfBody(body: string): readonly Term[] {
  try {
    const event: unknown = JSON.parse(body);
    return isJsonObject(event as Json) ? termsOf(event as AuditEvent) : [];
  } catch {
    return [];
  }
}

/** The key under which a segment of the index lists the times of its events. */
export const TIMES = -1;

/** The key of a term in the index: 31 bits of a digest, because peers choose length and characters of values. */
export function termKey({ name, value }: Term): number {
  // The digest is read as text, because a buffer costs more time than the digest itself.
  return Number.parseInt(hash("sha256", JSON.stringify([name, value]), "hex").slice(0, 8), 16) >>> 1;
}

/** Whether the index notes for a term which segments list it, so that a search needs no look at the others. */
export const isSubject = (term: Term | undefined): boolean => term?.name === "subject";

/** Terms whose values hardly come again: to remember their keys would only take memory. */
const ONCE: readonly Term["name"][] = ["request", "granted", "presented"];

/** Makes a function that keys terms and remembers the keys, because the others of a segment come again. */
export function termKeys(): (terms: readonly Term[]) => readonly number[] {
  const known = new Map<string, number>();
  return (terms) =>
    terms.map((term) => {
      if (ONCE.includes(term.name)) return termKey(term);
      const text = `${term.name} ${term.value}`;
      const remembered = known.get(text);
      if (remembered !== undefined) return remembered;
      const key = termKey(term);
      if (known.size === TERM_KEYS_MAX) known.clear();
      known.set(text, key);
      return key;
    });
}
