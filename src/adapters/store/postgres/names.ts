/** Names of instances on PostgreSQL: a lease for each, which lapses by the clock of the database. */
import { randomUUID } from "node:crypto";
import { err, ok } from "../../../result.ts";
import type { Held, Holder, InstanceNames } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

type LeaseRow = { host: string; pid: number; sinceMs: number; lapsesAtMs: number };

/** Each step is one statement that tests and writes the row under its lock. */
export function postgresNames(call: Call): InstanceNames {
  const take: InstanceNames["take"] = async (name, self, leaseMs, dead = 0) => {
    const { host, pid } = self;
    const holder = randomUUID();
    const taken = await call(
      (sql) => sql`
          insert into instance as i (log, holder, host, pid, since_ms, lapses_at_ms)
          values (${name}, ${holder}, ${host}, ${pid}, ${nowMs(sql)}, ${nowMs(sql)} + ${leaseMs}::bigint)
          on conflict (log) do update
          set holder = excluded.holder, host = excluded.host, pid = excluded.pid, since_ms = excluded.since_ms,
            lapses_at_ms = excluded.lapses_at_ms
          where i.lapses_at_ms <= ${nowMs(sql)} or i.lapses_at_ms = ${dead}`,
    );
    if (taken.count === 1) return ok(leaseOf(call, name, holder, leaseMs));
    const [row] = await call(
      (sql) => sql<LeaseRow[]>`
          select host, pid, since_ms as "sinceMs", lapses_at_ms as "lapsesAtMs" from instance
          where log = ${name}`,
    );
    // Released between the two statements: it can be taken now.
    return row === undefined ? take(name, self, leaseMs, dead) : err({ ...row });
  };
  return {
    take,
    async holder(name) {
      const [row] = await call(
        (sql) => sql<Holder[]>`
          select host, pid, since_ms as "sinceMs" from instance
          where log = ${name} and lapses_at_ms > ${nowMs(sql)}`,
      );
      return row && { ...row };
    },
  };
}

function leaseOf(call: Call, name: string, holder: string, leaseMs: number): Held {
  return {
    async renew() {
      const renewed = await call(
        (sql) => sql`
          update instance set lapses_at_ms = ${nowMs(sql)} + ${leaseMs}::bigint
          where log = ${name} and holder = ${holder}`,
      );
      return renewed.count === 1;
    },
    async release() {
      await call((sql) => sql`delete from instance where log = ${name} and holder = ${holder}`);
    },
  };
}

/** Read when the row is compared, not when the statement began to wait for its lock. */
export const nowMs = (sql: Sql) => sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
