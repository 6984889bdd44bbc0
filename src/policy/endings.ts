/**
 * Endings: the names under which an issued token can be ended, and the record that ends what carries one of them. A
 * token is never changed by an ending. It carries the keys of its own names and of the tokens behind it, each with the
 * time since which what it names exists, and is ended when one of them is on record with a later cut-off.
 */
import { ACCESS_TOKEN_SECONDS_MAX, ENDING_KEPT_SECONDS, ENDING_REACH_MS } from "../limits.ts";
import type { Chain } from "../spec/rfc8693.ts";
import { parseSpiffeId } from "../spec/spiffe/id.ts";
import type { Origin } from "./ask.ts";

/** What is ended: one thing, with all that was issued to it, for it, through it or below it. */
export type EndingSelector =
  | { by: "token"; jti: string }
  /** The subject at the issuer that first vouched for it; `iss` is ours for a client that acted for itself. */
  | { by: "subject"; iss: string; sub: string }
  /** A workload in any hop that this server authenticated. */
  | { by: "actor"; spiffeId: string }
  | { by: "client"; clientId: string }
  /** Every workload of it. */
  | { by: "trust_domain"; name: string }
  /** Every subject of it. */
  | { by: "issuer"; issuer: string }
  | { by: "rule"; id: string }
  | { by: "consent"; id: string }
  /** What was issued up to a time, in milliseconds; without one, up to now. */
  | { by: "everything"; upToMs?: number };

/** A name under which a token can be ended, as a digest, and since when what it names exists. */
export type EndingKey = { key: string; sinceMs: number };

export type Ending = {
  key: string;
  /** Ends what exists since then or earlier. */
  cutOffMs: number;
  atMs: number;
  /** When nothing is left that the key can end, so that the record may be removed. */
  expiresAtSeconds: number;
};

/** SHA-256 of a text, base64url. */
export type TextDigest = (text: string) => string;

/** 128 bits of the digest: the row of a token holds many keys, and names may be long. */
const KEY_CHARS = 22;

export const selectorKey = (sha256: TextDigest, selector: EndingSelector): string =>
  sha256(JSON.stringify([selector.by, ...valuesOf(selector)])).slice(0, KEY_CHARS);

function valuesOf(selector: EndingSelector): readonly string[] {
  switch (selector.by) {
    case "token":
      return [selector.jti];
    case "subject":
      return [selector.iss, selector.sub];
    case "actor":
      return [selector.spiffeId];
    case "client":
      return [selector.clientId];
    case "trust_domain":
      return [selector.name];
    case "issuer":
      return [selector.issuer];
    case "rule":
    case "consent":
      return [selector.id];
    case "everything":
      return [];
  }
}

// --- what a token carries ---------------------------------------------------------------------------------------

/** What of an issued token can be named. */
export type Endable = {
  jti: string;
  clientId: string;
  workload?: string;
  origin: Origin;
  chain: Chain;
  ruleId: string;
  consentId?: string;
  issuedAtSeconds: number;
};

/** What a token comes from: a token of ours, by its keys, or a foreign one, by the time at which it was issued. */
export type Root = { keys: readonly EndingKey[] } | { issuedAtSeconds: number };

/**
 * The keys of a token: its own since it was written, the subject's since the foreign token was issued, and those of the
 * tokens behind it as they were, so that one look-up tells whether it is ended, whatever the depth. Without a root it is
 * its own. `us` is our issuer, the `iss` of the hops that we authenticated; without it, all workloads count as such.
 */
export function endingKeys(
  sha256: TextDigest,
  us: string | undefined,
  issued: Endable,
  root: Root = issued,
): readonly EndingKey[] {
  const writtenMs = issued.issuedAtSeconds * 1000;
  const since = new Map<string, number>();
  const carry = (key: string, sinceMs: number): void =>
    void since.set(key, Math.min(sinceMs, since.get(key) ?? sinceMs));
  const add = (selector: EndingSelector, sinceMs: number): void =>
    carry(selectorKey(sha256, selector), sinceMs);

  const { jti, clientId, workload, ruleId, consentId } = issued;
  add({ by: "token", jti }, writtenMs);
  add({ by: "client", clientId }, writtenMs);
  add({ by: "rule", id: ruleId }, writtenMs);
  if (consentId !== undefined) add({ by: "consent", id: consentId }, writtenMs);
  const addWorkload = (id: string, sinceMs: number): void => {
    const parsed = parseSpiffeId(id);
    if (!parsed.ok) return;
    add({ by: "actor", spiffeId: id }, sinceMs);
    add({ by: "trust_domain", name: parsed.value.trustDomain }, sinceMs);
  };
  addWorkload(workload ?? clientId, writtenMs);
  if ("keys" in root) {
    for (const { key, sinceMs } of root.keys) carry(key, sinceMs);
  } else {
    const { iss, sub } = issued.origin;
    const rootMs = Math.min(root.issuedAtSeconds * 1000, writtenMs);
    add({ by: "everything" }, rootMs);
    add({ by: "subject", iss, sub }, rootMs);
    add({ by: "issuer", issuer: iss }, rootMs);
    // Hops that we authenticated come back in a foreign token; the first hop of a delegation is that of this request.
    const [current] = issued.chain;
    const isNew = current !== undefined && current.iss === us && current.sub === workload;
    for (const { iss: by, sub: id } of issued.chain.slice(isNew ? 1 : 0)) {
      if (by === (us ?? by)) addWorkload(id, rootMs);
    }
  }
  return [...since].map(([key, sinceMs]) => ({ key, sinceMs }));
}

// --- the record -------------------------------------------------------------------------------------------------

/** Ends all that is or was, whatever its time: nothing is written again under the same name. */
const ALWAYS_MS = Number.MAX_SAFE_INTEGER;

/**
 * The record that ends what the selector names. A token and a consent end for good; anything else ends up to a cut-off.
 * It reaches the time of one write into the future, because what another instance writes at this moment may not see the
 * record yet; what is issued within that time is ended too.
 */
export function buildEnding(sha256: TextDigest, selector: EndingSelector, nowMs: number): Ending {
  return {
    key: selectorKey(sha256, selector),
    cutOffMs: cutOffOf(selector, nowMs),
    atMs: nowMs,
    expiresAtSeconds: Math.ceil(nowMs / 1000) + keptSeconds(selector),
  };
}

function cutOffOf(selector: EndingSelector, nowMs: number): number {
  if (selector.by === "token" || selector.by === "consent") return ALWAYS_MS;
  const reachMs = nowMs + ENDING_REACH_MS;
  const upToMs = selector.by === "everything" ? selector.upToMs : undefined;
  return Math.min(upToMs ?? reachMs, reachMs);
}

/** Names of our own end our own tokens only; the others also end foreign tokens, whose lifetime is not ours. */
function keptSeconds({ by }: EndingSelector): number {
  const ours = by === "token" || by === "consent" || by === "client" || by === "rule";
  return ours ? ACCESS_TOKEN_SECONDS_MAX : ENDING_KEPT_SECONDS;
}

/** The cut-off that an operator is told; undefined for what ends whatever its time. */
export const cutOffShown = ({ cutOffMs }: Ending): number | undefined =>
  cutOffMs === ALWAYS_MS ? undefined : cutOffMs;
