/** Names of instances on PostgreSQL: a lease for each, which lapses by the clock of the database. */
import { randomUUID } from "node:crypto";
import { err, ok } from "../../../result.ts";
import type { Engine } from "../engine.ts";
import type { Held, Holder, InstanceClock, InstanceNames } from "../store.ts";

type LeaseRow = { host: string; pid: number; sinceMs: number; lapsesAtMs: number };

/** Each step is one statement that tests and writes the row under its lock. */
export function postgresNames(engine: Engine): InstanceNames {
  const { rows, change } = engine;
  const take: InstanceNames["take"] = async (name, self, leaseMs, dead = 0) => {
    const holder = randomUUID();
    const taken = await change(
      `insert into instance as i (log, holder, host, pid, since_ms, lapses_at_ms)
       values (:name, :holder, :host, :pid, now_ms(), now_ms() + cast(:leaseMs as bigint))
       on conflict (log) do update
       set holder = excluded.holder, host = excluded.host, pid = excluded.pid, since_ms = excluded.since_ms,
         lapses_at_ms = excluded.lapses_at_ms
       where i.lapses_at_ms <= now_ms() or i.lapses_at_ms = :dead`,
      { name, holder, ...self, leaseMs, dead },
    );
    if (taken === 1) return ok(leaseOf(engine, name, holder, leaseMs));
    const [row] = await rows<LeaseRow>(
      `select host, pid, since_ms as "sinceMs", lapses_at_ms as "lapsesAtMs" from instance where log = :name`,
      { name },
    );
    // Released between the two statements: it can be taken now.
    return row === undefined ? take(name, self, leaseMs, dead) : err({ ...row });
  };
  return {
    take,
    async holder(name) {
      const [row] = await rows<Holder>(
        `select host, pid, since_ms as "sinceMs" from instance where log = :name and lapses_at_ms > now_ms()`,
        { name },
      );
      return row && { ...row };
    },
    // A holder that has not noted its clock yet is not judged by that of the holder before it.
    clocks: async () =>
      rows<InstanceClock>(
        `select log as name, host, ahead_ms as "aheadMs" from instance
         where lapses_at_ms > now_ms() and ahead_by = holder`,
      ),
  };
}

const leaseOf = ({ change }: Engine, name: string, holder: string, leaseMs: number): Held => ({
  async renew() {
    const renewed = await change(
      `update instance set lapses_at_ms = now_ms() + cast(:leaseMs as bigint)
       where log = :name and holder = :holder`,
      { name, holder, leaseMs },
    );
    return renewed === 1;
  },
  async noteClock(aheadMs) {
    await change(
      `update instance set ahead_ms = cast(:aheadMs as bigint), ahead_by = holder
       where log = :name and holder = :holder`,
      { name, holder, aheadMs },
    );
  },
  async release() {
    await change("delete from instance where log = :name and holder = :holder", { name, holder });
  },
});
