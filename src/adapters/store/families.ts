/** Families of refresh tokens, in both stores; the journal starts and uses them. */
import type { FamilyFacts, FamilyRotation, PresentedFamily } from "../../records.ts";
import { defined } from "../../result.ts";
import { fromRow, pairsOf, type RowOf } from "./columns.ts";
import { type Engine, sweepOf } from "./engine.ts";
import { type EndedRow, endedOf, firstEnded } from "./rows.ts";
import type { FamilyRows } from "./store.ts";
import { FAMILY, RECHECK } from "./tables.ts";

type FoundFamily = RowOf<typeof FAMILY.columns> & EndedRow & { elsewhere: number };

type Rotated = NonNullable<PresentedFamily["rotated"]>;

type FoundByToken = FoundFamily & {
  presented: number;
  now_ms: number;
  rotated_ms: number | null;
  sealed: string | null;
  rotated_by: string | null;
  /** A row as JSON. */
  recheck: string | null;
};

export function familyRows(engine: Engine): FamilyRows {
  const { rows, change, selected, some, object } = engine;
  const found = `${selected(FAMILY, "f.")}, f.elsewhere, (${firstEnded(engine, "f.ending_keys")}) as ended`;
  return {
    find: async (digest) => {
      const [row] = await rows<FoundByToken>(
        `select ${found}, t.generation as presented, now_ms() as now_ms, f.rotated_ms, f.sealed, f.rotated_by,
           (select ${object(pairsOf(RECHECK, "r."))} from recheck r
             where r.origin_iss = f.origin_iss and r.origin_sub = f.origin_sub) as recheck
         from refresh_token t join refresh_family f on f.id = t.family_id where t.digest = :digest`,
        { digest },
      );
      if (row === undefined) return undefined;
      const recheck = row.recheck === null ? undefined : fromRow(RECHECK, JSON.parse(row.recheck));
      return defined<PresentedFamily>({
        ...factsOf(row),
        presented: row.presented,
        ...rotatedOf(row),
        recheck,
      });
    },
    list: async ({ iss, sub }) => {
      const all = await rows<FoundFamily>(
        `select ${found} from refresh_family f
         where f.origin_iss = :iss and f.origin_sub = :sub order by f.used_at desc, f.id`,
        { iss, sub },
      );
      return all.map(factsOf);
    },
    sweep: sweepOfFamilies(engine),
    forgetSuccessors: async (windowMs, limit) => {
      const old = `sealed is not null and rotated_ms < (select now_ms() - cast(:windowMs as bigint))`;
      const forget = "update refresh_family as t set sealed = null, rotated_by = null";
      return change(some(forget, "refresh_family", ["id"], old), { windowMs, limit });
    },
  };
}

function sweepOfFamilies(engine: Engine): FamilyRows["sweep"] {
  const over = "ends_at < :before";
  const theirs = engine.among("family_id", `select id from refresh_family where ${over} limit :limit`);
  const bare = "(select true from refresh_token t where t.family_id = s.id limit 1) is null";
  const tokens = sweepOf(engine, "refresh_token", ["digest"], theirs);
  const families = sweepOf(engine, "refresh_family", ["id"], over, bare);
  return async (before, limit) => (await tokens(before, limit)) + (await families(before, limit));
}

function factsOf(row: FoundFamily): FamilyFacts {
  return defined<FamilyFacts>({
    family: fromRow(FAMILY, row),
    ended: endedOf(row),
    retriedElsewhere: row.elsewhere > 0 ? true : undefined,
  });
}

const ROTATION_PARTS = 3;

/** The rotations as one text: the source of the last one, then generation, source and time of each before it. */
export const textOfRotations = ({
  by,
  earlier,
}: {
  by: string;
  earlier: readonly FamilyRotation[];
}): string => [by, ...earlier.flatMap((one) => [one.generation, one.by ?? "", one.atMs])].join(" ");

function rotatedOf({ generation, now_ms: nowMs, rotated_ms: atMs, sealed, rotated_by }: FoundByToken) {
  if (atMs === null) return {};
  // The sources are forgotten with what they can open.
  const [by, ...rest] = rotated_by?.split(" ") ?? [];
  const latest = [defined<FamilyRotation>({ generation: generation - 1, atMs, by })];
  for (let at = 0; at < rest.length; at += ROTATION_PARTS) {
    const [earlier, source, ms] = rest.slice(at, at + ROTATION_PARTS);
    latest.push(
      defined<FamilyRotation>({ generation: Number(earlier), by: source || undefined, atMs: Number(ms) }),
    );
  }
  return { rotated: defined<Rotated>({ latest, nowMs, sealed: sealed ?? undefined }) };
}
