/** Jobs, in both stores; the journal adds them, and counts the tokens of those that have a bound for them. */
import { JOB_KEPT_SECONDS, JOB_SECONDS_MAX, JOBS_LISTED } from "../../limits/jobs.ts";
import { CODE_KEPT_SECONDS, CODE_SECONDS, DEFERRAL_KEPT_SECONDS } from "../../limits/people.ts";
import { EXPIRED_GRACE_SECONDS } from "../../limits/store.ts";
import type { JobHoldings } from "../../ports-store.ts";
import type { JobFacts } from "../../records.ts";
import { defined, whenReady } from "../../result.ts";
import { fromRow, type RowOf } from "./columns.ts";
import { spentJti } from "./encoding.ts";
import { type Engine, readRecords, sweepOf } from "./engine.ts";
import { countOfLiving, type EndedRow, endedOf, firstEnded } from "./rows.ts";
import type { JobRows } from "./store.ts";
import { JOB, TOKEN } from "./tables.ts";

/** A job of another server may have the same id. */
const OF_JOB = "job_id = :id and job_iss is null";

type FoundJob = RowOf<typeof JOB.columns> & EndedRow;

const heldFor = (name: Exclude<keyof JobHoldings, "codes">, table: string, where: string): string =>
  `(select count(*) from ${table} h where h.job_id = :id and ${where}) as ${name}`;

export function jobRows(engine: Engine): JobRows {
  const { rows, selected, firstEnding } = engine;
  const removeOver = sweepOf(engine, "job", ["id"], "not_after < :before");
  const lives = `j.created_at >= :oldest and j.not_after > :now and (select 1 ${firstEnding("j.ending_keys")}) is null`;
  const found = `select ${selected(JOB, "j.")}, (${firstEnded(engine, "j.ending_keys")}) as ended from job j`;
  return {
    find: (id) =>
      whenReady(rows<FoundJob>(`${found} where j.id = :id`, { id }), ([row]) => row && factsOf(row)),
    made: async (asked, now) => {
      const [row] = await rows<FoundJob>(
        `${found} where j.asked = :asked and j.not_after > :now order by j.created_at desc, j.id desc limit 1`,
        { asked, now },
      );
      return row && factsOf(row);
    },
    list: async ({ origin, actor, livingAtSeconds: now = 0, before } = {}) => {
      const those = [
        ...(origin === undefined ? [] : ["j.origin_iss = :iss and j.origin_sub = :sub"]),
        ...(actor === undefined ? [] : ["j.actor = :actor"]),
        ...(now === 0 ? [] : [lives]),
        ...(before === undefined ? [] : ["(j.created_at, j.id) < (cast(:at as bigint), :id)"]),
      ];
      // The limit is a constant, by which PostgreSQL plans.
      const all = await rows<FoundJob>(
        `${found} where ${those.join(" and ") || "true"}
         order by j.created_at desc, j.id desc limit ${JOBS_LISTED}`,
        {
          ...origin,
          actor: actor ?? null,
          now,
          oldest: now - JOB_SECONDS_MAX,
          at: before?.createdAtSeconds ?? null,
          id: before?.id ?? null,
        },
      );
      return all.map(factsOf);
    },
    living: async ({ iss, sub }, actor, now, { ofPairMax, ofActorMax }) => {
      const ofPair = countOfLiving("j.origin_iss = :iss and j.origin_sub = :sub and", ":now", ":pairs");
      const [row] = await rows<{ pair: number; actor: number }>(
        `select ${ofPair} as pair, ${countOfLiving("", ":now", ":actors")} as actor`,
        { iss, sub, actor, now, pairs: ofPairMax, actors: ofActorMax },
      );
      return { ofPair: row?.pair ?? 0, ofActor: row?.actor ?? 0 };
    },
    tokens: async (id, now, limit) =>
      readRecords(engine)(
        TOKEN,
        `from token where ${OF_JOB} and expires_at > :now order by issued_at, jti limit :limit`,
        {
          id,
          now,
          limit,
        },
      ),
    remains: remainsOf(engine),
    sweep: (before, limit) => removeOver(before - JOB_KEPT_SECONDS, limit),
  };
}

/** What a job still holds, and what was given for it. */
function remainsOf(engine: Engine): JobRows["remains"] {
  const { rows, firstEnding } = engine;
  const endedFirst = `(select e.event_id ${firstEnding("h.ending_keys")})`;
  const held = `select ${[
    // One that ended before the job did is not there any more.
    heldFor(
      "families",
      "refresh_family",
      `h.ends_at > :now and coalesce(h.idle_ends_at, h.ends_at) > :now
       and coalesce(${endedFirst}, :event, '') = coalesce(:event, '')`,
    ),
    heldFor(
      "consents",
      "consent",
      "h.job_iss is null and h.withdrawn_at is null and (h.expires_at is null or h.expires_at > :now)",
    ),
    heldFor("questions", "pending_consent", "h.expires_at > :now"),
    heldFor("deferrals", "short_lived", "h.kind = 'deferral' and h.expires_at > :waiting"),
  ].join(", ")}`;
  return async (id, { nowSeconds: now, codeIssuer, ended }) => {
    const event = ended?.eventId ?? null;
    const [codes, tokens, [holdings], events] = await Promise.all([
      unusedCodes(engine, id, codeIssuer, now),
      rows<{ audience: string; count: number; recent: number; until: number }>(
        `select audience, sum(case when expires_at > :now then 1 else 0 end) as count, count(*) as recent,
           max(expires_at) as until
         from token where ${OF_JOB} and expires_at > :since group by audience order by audience`,
        // A token of a partner lives no longer than its grant is on record.
        { id, now, since: now - EXPIRED_GRACE_SECONDS },
      ),
      rows<Omit<JobHoldings, "codes">>(held, { id, now, event, waiting: now + DEFERRAL_KEPT_SECONDS }),
      rows<{ stream: string; waiting: number }>(
        // The time finds them by its index.
        `select stream, count(*) - count(nullif(sent, 0)) as waiting from signal
         where at_ms = cast(:at as bigint) and event_id = :event group by stream`,
        { at: ended?.atMs ?? null, event },
      ),
    ]);
    return {
      tokens: tokens.map(({ audience, count, recent, until }) => ({
        audience,
        count: Number(count),
        recent: Number(recent),
        untilSeconds: until,
      })),
      held: {
        codes,
        families: Number(holdings?.families ?? 0),
        consents: Number(holdings?.consents ?? 0),
        questions: Number(holdings?.questions ?? 0),
        deferrals: Number(holdings?.deferrals ?? 0),
      },
      events: new Map(events.map(({ stream, waiting }) => [stream, Number(waiting)])),
    };
  };
}

async function unusedCodes(
  { rows, among }: Engine,
  id: string,
  issuer: string,
  now: number,
): Promise<number> {
  const codes = await rows<{ key: string }>(
    "select key from short_lived where job_id = :id and kind = 'code' and expires_at > :unused",
    { id, unused: now + CODE_KEPT_SECONDS - CODE_SECONDS },
  );
  if (codes.length === 0) return 0;
  const used = await rows(
    `select jti from spent_jti where issuer = :issuer and ${among("jti", "texts_of(:jtis)")}`,
    { issuer, jtis: JSON.stringify(codes.map(({ key }) => spentJti(key))) },
  );
  return codes.length - used.length;
}

const factsOf = (row: FoundJob): JobFacts =>
  defined<JobFacts>({ job: fromRow(JOB, row), ended: endedOf(row) });
