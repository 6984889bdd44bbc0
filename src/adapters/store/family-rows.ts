/** Converts families of refresh tokens to rows and back, as in both stores. */
import type { EndingKey } from "../../policy/endings.ts";
import type { Family, FamilyChange, FamilyFacts, PresentedFamily } from "../../records.ts";
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

export function toFamilyRow(family: Family): FamilyRow {
  const { id, clientId, origin, generation, usedAtSeconds, idleEndsAtSeconds, endsAtSeconds } = family;
  const { endingKeys, ...body } = family;
  return {
    id,
    client_id: clientId,
    origin_iss: origin.iss,
    origin_sub: origin.sub,
    generation,
    used_at: usedAtSeconds,
    idle_ends_at: idleEndsAtSeconds ?? null,
    ends_at: endsAtSeconds,
    ending_keys: JSON.stringify(Object.fromEntries(endingKeys.map(({ key, sinceMs }) => [key, sinceMs]))),
    body: JSON.stringify(body),
  };
}

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

/** A use of a family, as the columns that it changes and the conditions for it. */
export type FamilyUseRow = {
  id: string;
  /** The generation that has to be the current one. */
  current: number;
  used_at: number;
  idle_ends_at: number | null;
  digest: string | null;
  sealed: string | null;
  /** With the generation that it replaced. */
  rotated_by: string | null;
  window_ms: number | null;
  retries_max: number | null;
  /** 1 for a retry from another source than that of the rotation. */
  elsewhere: number;
};

export function toFamilyUseRow(change: Extract<FamilyChange, { use: string }>): FamilyUseRow {
  const { use, presented, atSeconds, idleEndsAtSeconds, next, again } = change;
  return {
    id: use,
    current: again === undefined ? presented : presented + 1,
    used_at: atSeconds,
    idle_ends_at: idleEndsAtSeconds ?? null,
    digest: next?.digest ?? null,
    sealed: next?.sealed ?? null,
    rotated_by: next === undefined ? null : `${presented} ${next.by}`,
    window_ms: again?.windowMs ?? null,
    retries_max: again?.retriesMax ?? null,
    elsewhere: again?.elsewhere ? 1 : 0,
  };
}
