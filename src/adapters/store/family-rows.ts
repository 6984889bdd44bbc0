/** Converts families of refresh tokens to rows and back, as in both stores. */
import type { EndingKey } from "../../policy/endings.ts";
import type { Family, FamilyFacts, PresentedFamily } from "../../records.ts";
import { defined } from "../../result.ts";
import type { EndedRow } from "./token-facts.ts";

/** `body` is what does not change, as JSON; `ended` is a row as JSON. */
export type FamilyRow = {
  id: string;
  client_id: string;
  origin_iss: string;
  origin_sub: string;
  generation: number;
  used_at: number;
  idle_ends_at: number | null;
  ends_at: number;
  ending_keys: string;
  body: string;
};

export type FoundFamily = FamilyRow & { ended: string | null; elsewhere: number };

export type FoundByToken = FoundFamily & {
  presented: number;
  ago_ms: number | null;
  retries: number;
  sealed: string | null;
  rotated_by: string | null;
};

export function fromFamilyRow(row: FoundFamily): FamilyFacts {
  const keys: Record<string, number> = JSON.parse(row.ending_keys);
  const ended: (EndedRow & { reason: string | null }) | null = JSON.parse(row.ended ?? "null");
  const family: Family = defined({
    ...(JSON.parse(row.body) as Family),
    generation: row.generation,
    usedAtSeconds: row.used_at,
    idleEndsAtSeconds: row.idle_ends_at ?? undefined,
    endingKeys: Object.entries(keys).map(([key, sinceMs]): EndingKey => ({ key, sinceMs })),
  });
  return defined<FamilyFacts>({
    family,
    ended:
      ended === null
        ? undefined
        : defined({ eventId: ended.event_id, atMs: ended.at_ms, reason: ended.reason ?? undefined }),
    retriedElsewhere: row.elsewhere > 0 ? true : undefined,
  });
}

export function fromFoundByToken(row: FoundByToken): PresentedFamily {
  const { presented, ago_ms: agoMs, retries, sealed } = row;
  // A version that notes no source rotates without a change of the column, which then is of an earlier rotation.
  const [generation, by] = row.rotated_by?.split(" ") ?? [];
  const isOfThis = generation === String(row.generation - 1);
  return defined<PresentedFamily>({
    ...fromFamilyRow(row),
    presented,
    rotated:
      agoMs === null
        ? undefined
        : defined({ agoMs, retries, sealed: sealed ?? undefined, by: isOfThis ? by : undefined }),
  });
}
