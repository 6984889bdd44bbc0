/** Kinds of fault of a PostgreSQL, and what a store does in each: how often it connects, and when it serves again. */
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { openJournal } from "../../src/adapters/audit/journal.ts";
import { clock } from "../../src/adapters/clock.ts";
import { random } from "../../src/adapters/crypto/random.ts";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { type DatabaseServer, openTransport, type PgProxy, type Transport } from "./pg-transports.ts";
import { freshDatabase } from "./postgres.ts";

const CALLERS = 20;
const PAUSE_MS = 80;
const WARM_MS = 300;
/** It serves again when no call failed for so long. */
const CALM_MS = 1_000;
const BACK_MS_MAX = 15_000;

export type PgFaultOutcome = {
  name: string;
  /** Connection attempts in any second. */
  connectsPerSecond: number;
  /** Connections at the same time. */
  connections: number;
  /** From the end of the fault to the last failed call. */
  backMs: number;
  /** The longest time without an idle connection and without a new attempt. */
  idleMs: number;
  failed: number;
};

type Place = {
  server: DatabaseServer;
  admin: postgres.Sql;
  /** The database, and the role of the store. */
  name: string;
  proxy: PgProxy;
};

export type PgFault = {
  name: string;
  /** Hits the whole server, so that it runs alone. */
  alone?: boolean;
  /** Begins it, and resolves to what ends it. */
  begin(place: Place): Promise<() => Promise<unknown>>;
};

/** Ends every connection of the store, as an administrator does. */
const terminate = ({ admin, name }: Place) =>
  admin`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;

/** A statement of the administrator that begins the fault, and one that ends it; `anew`: new connections meet it. */
const altered =
  (begin: (name: string) => string, end: (name: string) => string, anew: boolean): PgFault["begin"] =>
  async (place) => {
    const { admin, name } = place;
    await admin.unsafe(begin(name));
    if (anew) await terminate(place);
    return () => admin.unsafe(end(name));
  };

const broken =
  (manner: PgProxy["manner"]): PgFault["begin"] =>
  async ({ proxy }) => {
    proxy.manner = manner;
    proxy.cut();
    return async () => {
      proxy.manner = "pass";
    };
  };

export const PG_FAULTS: readonly PgFault[] = [
  {
    name: "killed",
    alone: true,
    begin: async ({ server }) => {
      await server.kill();
      return server.restart;
    },
  },
  {
    name: "restarted",
    alone: true,
    begin: async ({ server }) => {
      await server.restart();
      return async () => undefined;
    },
  },
  {
    name: "suspended",
    alone: true,
    begin: async ({ server }) => {
      server.suspend();
      return async () => server.resume();
    },
  },
  {
    name: "read-only after a failover",
    begin: async (place) => {
      const { admin, name } = place;
      await admin.unsafe(`alter role ${name} set default_transaction_read_only = on`);
      await terminate(place);
      return async () => {
        await admin.unsafe(`alter role ${name} reset default_transaction_read_only`);
        // A pooler keeps the sessions that began while it was set.
        await terminate(place);
      };
    },
  },
  {
    name: "out of connections",
    begin: altered(
      (name) => `alter database ${name} connection limit 0`,
      (name) => `alter database ${name} connection limit -1`,
      true,
    ),
  },
  {
    name: "a role limit below the pool",
    begin: altered(
      (name) => `alter role ${name} connection limit 3`,
      (name) => `alter role ${name} connection limit -1`,
      true,
    ),
  },
  {
    name: "full disk",
    begin: altered(
      () => `create function full_disk() returns trigger language plpgsql as
        $$ begin raise exception 'no space left on device' using errcode = '53100'; end $$;
        create trigger full_disk before insert on event execute function full_disk()`,
      () => "drop trigger full_disk on event",
      false,
    ),
  },
  {
    name: "changed password",
    begin: altered(
      (name) => `alter role ${name} password 'another'`,
      (name) => `alter role ${name} password '${name}'`,
      true,
    ),
  },
  {
    name: "dropped table",
    begin: altered(
      () => "alter table event rename to event_gone",
      () => "alter table event_gone rename to event",
      false,
    ),
  },
  {
    name: "terminated connections",
    begin: async (place) => {
      const timer = setInterval(() => void terminate(place).catch(() => undefined), 100);
      return async () => clearInterval(timer);
    },
  },
  {
    name: "locked table",
    begin: async ({ admin }) => {
      const holder = await admin.reserve();
      await holder`begin`;
      await holder`lock table event`;
      return async () => {
        await holder`commit`;
        holder.release();
      };
    },
  },
  { name: "network closes connections", begin: broken("close") },
  { name: "network closes connections that speak", begin: broken("close after data") },
  { name: "network that is silent", begin: broken("never answer") },
];

/** Stores under load, one for each transport, meet the fault for `faultMs`. */
export async function meetPgFault(
  server: DatabaseServer,
  fault: PgFault,
  faultMs: number,
  transports: readonly Transport[],
): Promise<PgFaultOutcome[]> {
  await using stack = new AsyncDisposableStack();
  const places = await Promise.all(transports.map((transport) => openPlace(server, transport, stack)));
  await sleep(WARM_MS);
  // What hits the whole server is begun once.
  const ends = await Promise.all((fault.alone ? places.slice(0, 1) : places).map(fault.begin));
  await sleep(faultMs);
  await Promise.all(ends.map((end) => end()));
  const endedMs = performance.now();
  // Awaited here, before the stores are closed.
  return await Promise.all(
    places.map(async ({ transport, proxy, load }) => {
      const backMs = await load.backAfter(endedMs);
      await load.stop();
      return {
        name: `${fault.name} (${transport})`,
        connectsPerSecond: Math.max(...proxy.triedMs.map((fromMs) => countFrom(proxy.triedMs, fromMs))),
        connections: proxy.connectionsMax,
        backMs: Math.round(backMs),
        idleMs: Math.round(load.idleMs),
        failed: load.failed,
      };
    }),
  );
}

async function openPlace(server: DatabaseServer, transport: Transport, stack: AsyncDisposableStack) {
  const database = await freshDatabase(server);
  const name = new URL(database).pathname.slice(1);
  const admin = postgres(database, { max: 2, onnotice: () => {} });
  stack.defer(() => admin.end({ timeout: 1 }));
  await admin.unsafe(`create role ${name} login password '${name}'; grant all on schema public to ${name}`);
  const ours = new URL(database);
  Object.assign(ours, { username: name, password: name });
  const { place, proxy, end } = await openTransport(server, transport, ours.href);
  stack.defer(end);
  const store = await openStore(place);
  stack.defer(store.close);
  const load = await startLoad(store, proxy);
  stack.defer(load.stop);
  return { server, admin, name, proxy, transport, load };
}

const countFrom = (times: readonly number[], fromMs: number): number =>
  times.filter((at) => at >= fromMs && at < fromMs + 1_000).length;

/** Callers that write and read, each with a pause between two calls. */
async function startLoad({ log, facts, connections }: Store, proxy: PgProxy) {
  const journal = await openJournal({ log: "as-1", store: log, clock, random, onFatal: () => {} });
  let ended = false;
  let failedMs = 0;
  let wroteMs = 0;
  let activeMs = performance.now();
  const caller = async (work: () => Promise<unknown>): Promise<void> => {
    while (!ended) {
      try {
        await work();
      } catch {
        load.failed++;
        failedMs = performance.now();
      }
      await sleep(PAUSE_MS);
    }
  };
  const write = async (): Promise<void> => {
    await journal.record({ event: { type: "token.issued", outcome: "allow", reason: "rule_match" } });
    wroteMs = performance.now();
  };
  const watch = async (): Promise<void> => {
    const { idle = 0 } = connections?.() ?? {};
    if (idle > 0 || (proxy.triedMs.at(-1) ?? 0) > activeMs) activeMs = performance.now();
    load.idleMs = Math.max(load.idleMs, performance.now() - activeMs);
  };
  const load = {
    failed: 0,
    idleMs: 0,
    /** The time from `endMs` until the last call failed; BACK_MS_MAX if calls still fail, or nothing is written. */
    async backAfter(endMs: number): Promise<number> {
      while (performance.now() - endMs < BACK_MS_MAX) {
        const lastMs = Math.max(failedMs, endMs);
        if (wroteMs > lastMs && performance.now() - lastMs > CALM_MS) return lastMs - endMs;
        await sleep(PAUSE_MS);
      }
      return BACK_MS_MAX;
    },
    async stop(): Promise<void> {
      if (ended) return;
      ended = true;
      await Promise.all(callers);
      await journal.close();
    },
  };
  const calls = Array.from({ length: CALLERS }, (_, index) =>
    index % 2 === 0 ? write : async () => facts.token("none"),
  );
  const callers = [watch, ...calls].map(caller);
  return load;
}
