/** Who used what, how often and when, as events tell it: what an impact, a summary and a report count. */
import type { AuditEvent } from "./event.ts";

export type Use = { count: number; firstMs: number; lastMs: number };

/** Counted by name; beyond the most that are kept apart, all together. */
export type Uses = { readonly by: Map<string, Use>; others: number };

const NAMES_MAX = 100_000;

export const noUses = (): Uses => ({ by: new Map(), others: 0 });

export function addUse(uses: Uses, name: string, timeMs: number, count = 1): void {
  const known = uses.by.get(name);
  if (known !== undefined) {
    known.count += count;
    known.firstMs = Math.min(known.firstMs, timeMs);
    known.lastMs = Math.max(known.lastMs, timeMs);
  } else if (uses.by.size < NAMES_MAX) uses.by.set(name, { count, firstMs: timeMs, lastMs: timeMs });
  else uses.others += count;
}

/** The most used first. */
export const byUse = ({ by }: Uses): readonly (readonly [name: string, use: Use])[] =>
  [...by].sort(([a, { count: one }], [b, { count: other }]) => other - one || (a < b ? -1 : 1));

/** The target of what was issued, or else the one that was asked for. */
export const targetIn = ({ granted, facts, requested }: AuditEvent): string | undefined =>
  granted?.aud ?? facts?.target ?? requested?.audience[0] ?? requested?.resource[0];

/** The caller, by the workload that it proved where it proved one. */
export const callerIn = ({ client }: AuditEvent): string | undefined => client?.workload ?? client?.client_id;

/** One text for a subject with its issuer, which has no space. */
export const subjectName = ({ iss, sub }: { iss: string; sub: string }): string => `${iss} ${sub}`;

export function subjectIn(name: string): { iss: string; sub: string } {
  const at = name.indexOf(" ");
  return { iss: name.slice(0, at), sub: name.slice(at + 1) };
}
