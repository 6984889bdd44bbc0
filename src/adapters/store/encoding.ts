/** Which texts both stores can hold, and the fixed-length keys under which text from outside is indexed. */
import { hash } from "node:crypto";
import type { AuditEvent } from "../../audit/event.ts";
import type { Term } from "../../audit/terms.ts";
import { termsOf } from "../../audit/terms.ts";
import type { EndingKey } from "../../policy/endings.ts";
import type { FamilyChange, Guard, RegistrationChange } from "../../records.ts";
import type { Json } from "../../spec/rfc8259.ts";
import { isJsonObject } from "../../spec/rfc8259.ts";
import { addedBy } from "./short-lived-rows.ts";
import type { ClientChange, InitialTokenChange, StoreEntry } from "./store.ts";

/** Whether both stores can hold the text: PostgreSQL refuses U+0000, and UTF-8 cannot encode a lone surrogate. */
export function isEncodable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/**
 * Throws if an entry holds a text or number that a store would not return unchanged; the caller should have refused it.
 */
export function assertEncodable(entry: Omit<StoreEntry, "event">): void {
  const { token, guards = [], consent, client, registration, initialToken, ending, family, rows } = entry;
  const held: Held[] = [];
  if (token !== undefined) {
    const { jti, clientId, workload, subject, origin, audience, scope, ruleId, consentId } = token;
    held.push(
      jti,
      clientId,
      workload,
      subject,
      origin.iss,
      origin.sub,
      audience,
      scope,
      ruleId,
      consentId,
      ...token.ancestors,
    );
    held.push(token.issuedAtSeconds, token.expiresAtSeconds, ...heldByKeys(token.endingKeys));
  }
  for (const guard of guards) {
    if (isFreshGuard(guard)) held.push(guard.issuer);
    if (guard.kind === "not_ended") held.push(...heldByKeys(guard.keys));
    if (guard.kind === "consent_current") held.push(guard.id);
  }
  if (ending !== undefined) held.push(ending.key, ending.cutOffMs, ending.expiresAtSeconds);
  if (consent !== undefined && !("withdraw" in consent)) {
    const { id, version, origin, actor, targets, scopes, expiresAtSeconds } =
      "add" in consent ? consent.add : consent.replace;
    held.push(id, version, origin.iss, origin.sub, actor, ...targets, ...scopes, expiresAtSeconds);
  } else if (consent !== undefined) {
    held.push(consent.withdraw, consent.atSeconds);
  }
  if (client !== undefined) held.push(...heldByClient(client));
  if (registration !== undefined) held.push(...heldByRegistration(registration));
  if (initialToken !== undefined) held.push(...heldByInitialToken(initialToken));
  if (family !== undefined) held.push(...heldByFamily(family));
  for (const { add } of addedBy(rows)) held.push(add.key, add.holder, add.expiresAtSeconds);
  if (held.some((one) => typeof one === "string" && !isEncodable(one))) {
    throw new Error("an audit entry holds a text that cannot be stored");
  }
  if (held.some((one) => typeof one === "number" && !Number.isSafeInteger(one))) {
    throw new Error("an audit entry holds a time or a count that is not a whole number");
  }
}

type Held = string | number | undefined;

const heldByKeys = (keys: readonly EndingKey[]): readonly Held[] =>
  keys.flatMap(({ key, sinceMs }) => [key, sinceMs]);

function heldByClient(change: ClientChange): readonly Held[] {
  if ("add" in change) {
    const { clientId, auth, grantTypes, workload, defaultTarget } = change.add;
    const secrets = auth.secrets.flatMap(({ digest, expiresAtSeconds }) => [digest, expiresAtSeconds]);
    return [change.atSeconds, clientId, ...grantTypes, workload, defaultTarget, ...secrets];
  }
  if ("disable" in change) return [change.atSeconds, change.disable];
  const { rotate, version, secret, olderEndSeconds, atSeconds } = change;
  return [atSeconds, rotate, version, secret.digest, secret.expiresAtSeconds, olderEndSeconds];
}

/** Without metadata and ceiling, which are stored as JSON, where every character can be escaped. */
function heldByRegistration(change: RegistrationChange): readonly Held[] {
  if ("remove" in change) return [change.remove, change.unusedSince, change.atSeconds];
  const rest = "register" in change ? [change.initialTokenId, change.clientsMax] : [change.atSeconds];
  const { clientId, version, registrationClass, tokenGeneration, secrets, issuedAtSeconds } =
    "register" in change ? change.register : change.update;
  const digests = secrets.flatMap(({ digest, expiresAtSeconds }) => [digest, expiresAtSeconds]);
  return [clientId, version, registrationClass, tokenGeneration, issuedAtSeconds, ...digests, ...rest];
}

function heldByInitialToken(change: InitialTokenChange): readonly Held[] {
  if ("revoke" in change) return [change.revoke, change.atSeconds];
  const { ceiling, ...rest } = change.add;
  return Object.values(rest);
}

/** Without what is stored as JSON. */
function heldByFamily(change: FamilyChange): readonly Held[] {
  if ("use" in change) return [change.use, change.presented, change.atSeconds, change.idleEndsAtSeconds];
  const { id, clientId, origin, endsAtSeconds, idleEndsAtSeconds, usedAtSeconds, endingKeys } = change.start;
  const times = [endsAtSeconds, idleEndsAtSeconds, usedAtSeconds];
  return [id, clientId, origin.iss, origin.sub, ...times, ...heldByKeys(endingKeys)];
}

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

/** The keys of the terms of stored events; a term that comes again is not hashed again. */
export function keysOfBodies(): (body: string) => readonly number[] {
  const known = new Map<string, number>();
  return (body) =>
    termsOfBody(body).map((term) => {
      const text = `${term.name} ${term.value}`;
      const key = known.get(text) ?? termKey(term);
      known.set(text, key);
      return key;
    });
}
