/**
 * A new word of an issuer about the claims of a user: it is kept in one step with the end of what it no longer lets, so that
 * receivers of endings are told; the look-up of what is kept refuses that as well.
 */
import { REFRESH_DAYS_MAX, SESSION_SECONDS_MAX } from "../limits/people.ts";
import type { Origin } from "../policy/access.ts";
import { type ClaimsWord, textOfDemands, unmetDemands } from "../policy/claims.ts";
import { buildEnding, selectorKey } from "../policy/endings.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { Entry, SubjectWord } from "../records.ts";
import { type EndingEvent, endingEntry } from "./endings.ts";
import { claimsSelector, demandsOf } from "./subject-claims.ts";

export type WordPorts = BasePorts & Pick<Ports, "facts" | "endings">;

/** For as long as what the user gives in a session may last. */
const KEPT_SECONDS = SESSION_SECONDS_MAX + REFRESH_DAYS_MAX * 24 * 3600;

export const keptWord = ({ clock }: WordPorts, origin: Origin, word: ClaimsWord): SubjectWord => ({
  ...word,
  origin,
  expiresAtSeconds: clock.nowSeconds() + KEPT_SECONDS,
});

/**
 * PCL-D-9: the entry that keeps the word and ends what rests on the demands that it does not meet; undefined where nothing
 * does. They are those that the word before met, and those of what the user has.
 */
export async function lossEntry(
  ports: WordPorts,
  origin: Origin,
  word: ClaimsWord,
  isUnmet: (demands: string) => boolean,
  by: EndingEvent,
): Promise<(Entry & { claims: SubjectWord }) | undefined> {
  const { sha256 } = ports.hash;
  const lost = [...(await demandsHeld(ports, origin, word))].filter(isUnmet);
  const [first, ...others] = lost.map((one) => claimsSelector(sha256, origin, one));
  if (first === undefined) return undefined;
  const detail = others.length === 0 ? (by.detail ?? {}) : { ...by.detail, also_ends: others };
  const also = others.map((one) => buildEnding(sha256, one, ports.clock.nowMs()));
  return { ...endingEntry(ports, first, { ...by, detail }), also, claims: keptWord(ports, origin, word) };
}

async function demandsHeld(
  { settings, facts, endings, clock, hash }: WordPorts,
  origin: Origin,
  { atSeconds }: ClaimsWord,
): Promise<ReadonlySet<string>> {
  const { claims, rules } = settings().policy;
  const wanted = claims.get(origin.iss);
  const before = await facts.claims(origin);
  if (wanted === undefined || (before !== undefined && before.atSeconds > atSeconds)) return new Set();
  const unmetBefore = unmetDemands(wanted, before ?? { values: {} });
  const held = new Set([...wanted.demands.keys()].filter((one) => !unmetBefore.has(one)));
  const key = selectorKey(hash.sha256, { by: "subject", ...origin });
  const found = await endings.next({ key, cutOffMs: clock.nowMs(), nowSeconds: clock.nowSeconds() });
  for (const { record } of found.tokens) {
    const demands = demandsOf(rules.get(record.ruleId));
    if (demands !== undefined) held.add(textOfDemands(demands));
  }
  return held;
}
