/** Security events that wait for their receivers, and what they are made of, in both stores. */
import type { ReachedToken } from "../../policy/signals.ts";
import { defined } from "../../result.ts";
import { beginAfter, findCarriers } from "./carriers.ts";
import { fromRow, pick, type RowOf, toRow } from "./columns.ts";
import { type Engine, readRecords } from "./engine.ts";
import type { SignalRows } from "./store.ts";
import { ENDING, SIGNAL, TOKEN } from "./tables.ts";

const KEY = ["stream", "jti"];

const RECORDED = { ...ENDING, columns: pick(ENDING, "key", "cut_off", "event_id", "at_ms", "reason") };
const REACHED = {
  ...TOKEN,
  columns: pick(TOKEN, "jti", "subject", "origin_iss", "origin_sub", "audience", "expires_at", "ending_keys"),
};

/** `job` is the row of our job that the token was issued for, as JSON. */
type FoundToken = RowOf<typeof REACHED.columns> & {
  job_id: string | null;
  job_iss: string | null;
  job: string | null;
};
const FOUND_JOB =
  "job_id, job_iss, (select j.body from job j where j.id = job_id and job_iss is null) as job";

type Waiting = Awaited<ReturnType<SignalRows["waiting"]>>;

export function signalRows(engine: Engine): SignalRows {
  return { ...madeOf(engine), ...deliveries(engine) };
}

/** What events are made of, and which of them are there. */
function madeOf(engine: Engine): Pick<SignalRows, "endings" | "tokens" | "known" | "add"> {
  const { rows, change, selected, among, carries, insertEach } = engine;
  return {
    endings: async (since, limit) =>
      readRecords(engine)(RECORDED, "from ending where at_ms >= :since order by at_ms limit :limit", {
        since,
        limit,
      }),
    tokens: async ({ keys, audiences, expireAfterSeconds, place }) => {
      const { found, ...end } = await findCarriers<FoundToken>(engine, {
        columns: `${selected(REACHED)}, ${FOUND_JOB}`,
        keys,
        after: place ?? beginAfter(expireAfterSeconds),
        goesOn: place !== undefined,
        where: `${among("audience", "texts_of(:audiences)")} and ${carries(":keys")}`,
        values: { audiences: JSON.stringify(audiences) },
      });
      return { tokens: found.map(reachedOf), ...end };
    },
    known: async (stream, jtis) => {
      const found = await rows<{ jti: string }>(
        `select jti from signal where stream = :stream and ${among("jti", "texts_of(:jtis)")}`,
        { stream, jtis: JSON.stringify(jtis) },
      );
      return new Set(found.map(({ jti }) => jti));
    },
    add: async (signals) =>
      change(`${insertEach(SIGNAL)} on conflict do nothing`, {
        rows: JSON.stringify(signals.map((one) => toRow(SIGNAL.columns, one))),
      }),
  };
}

function deliveries({
  rows,
  change,
  selected,
  some,
}: Engine): Omit<SignalRows, keyof ReturnType<typeof madeOf>> {
  const set =
    (column: "due" | "sent"): SignalRows["settle"] =>
    async ({ stream, jti }, at) => {
      await change(`update signal set ${column} = :at where stream = :stream and jti = :jti`, {
        stream,
        jti,
        at,
      });
    };
  return {
    take: async (stream, now, again, limit) => {
      const due = "stream = :stream and sent is null and due <= :now";
      const found = await rows<RowOf<typeof SIGNAL.columns>>(
        `${some("update signal as t set due = :again", "signal", KEY, due)} returning ${selected(SIGNAL)}`,
        { stream, now, again, limit },
      );
      return found.map((row) => fromRow(SIGNAL, row));
    },
    postpone: set("due"),
    settle: set("sent"),
    waiting: async (stream, limit) => {
      const [row] = await rows<{ count: number; oldest: number | null }>(
        `select count(*) as count, min(at_ms) as oldest from (
           select at_ms from signal where stream = :stream and sent is null order by due limit :limit
         ) s`,
        { stream, limit },
      );
      return defined<Waiting>({ count: Number(row?.count ?? 0), oldestMs: row?.oldest ?? undefined });
    },
    sweep: async (before, limit) => {
      const removed = await rows<{ stream: string; sent: number | null }>(
        `${some("delete from signal as t", "signal", KEY, "expires_at < :before")} returning stream, sent`,
        { before, limit },
      );
      const lost = removed.filter(({ sent }) => sent === null);
      const byStream = Map.groupBy(lost, ({ stream }) => stream);
      return {
        rows: removed.length,
        lost: new Map([...byStream].map(([stream, of]) => [stream, of.length])),
      };
    },
  };
}

function reachedOf({ job_id: id, job_iss: iss, job, ...row }: FoundToken): ReachedToken {
  const { salt }: { salt?: string } = JSON.parse(job ?? "{}");
  const of =
    id === null ? undefined : defined<NonNullable<ReachedToken["job"]>>({ id, iss: iss ?? undefined, salt });
  return defined<ReachedToken>({ ...fromRow(REACHED, row), job: of });
}
