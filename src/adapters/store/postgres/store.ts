/**
 * The shared store on PostgreSQL. Each unit of work is one statement, because the driver throws outside of any promise
 * when a connection dies in a transaction. append.ts writes, clients.ts and audit.ts read their parts, pool.ts
 * connects.
 */
import { MIGRATION_TIMEOUT_MS, SLICE_MS, STORE_CONNECTIONS_MAX } from "../../../limits/store.ts";
import type { StorePlace } from "../../../settings/settings.ts";
import { logRows } from "../rows.ts";
import { sharedRows } from "../shared-rows.ts";
import type { OpenOptions, Replication, Store } from "../store.ts";
import { appendBatch } from "./append.ts";
import { makeAttempts } from "./attempts.ts";
import { postgresAuditRows } from "./audit.ts";
import { BY_WRITER, postgresEngine } from "./engine.ts";
import { postgresNames } from "./instance-names.ts";
import { factsOfRole, migrate, scriptsToCome } from "./migrate.ts";
import { type Call, type DatabaseOptions, openConnections } from "./pool.ts";
import { refuseSharedSessions } from "./pooler.ts";
import { findPostgresTokens } from "./tokens.ts";

type PostgresPlace = Extract<StorePlace, { postgres: string }>;

/** `postgres`: a URL as `postgres://user:password@host:port/database`; a list of hosts stands beside it. */
export async function openPostgres(
  place: PostgresPlace,
  { timeoutMs, ...opened }: OpenOptions,
): Promise<Store> {
  const server = { ...serverOf(place), isCopy: opened.isCopy };
  await onTables(server, (call) => migrate(call, opened));
  const { connections: connectionsMax = STORE_CONNECTIONS_MAX } = place;
  const database = openConnections({ ...server, timeoutMs, connectionsMax });
  const { call } = database;
  const proof = opened.isCopy ? "true" : BY_WRITER;
  const engine = postgresEngine(call, proof);

  return {
    connections: database.state,
    log: { ...logRows(engine), append: (batch) => appendBatch(call, batch) },
    audit: postgresAuditRows(call, proof),
    ...sharedRows(engine, findPostgresTokens),
    nowMs: async () => {
      const [row] = await engine.rows<{ now: number }>("select now_ms() as now");
      return row?.now ?? Number.NaN;
    },
    names: postgresNames(engine),
    sliceMs: SLICE_MS.postgres,
    role: () => factsOfRole(call),
    replication: async () => {
      const rows = await engine.rows<Replication>(
        `select current_setting('synchronous_standby_names') as "waitsFor",
           (select count(*)::int from pg_stat_replication) as standbys`,
      );
      return rows[0];
    },
    close: database.close,
  };
}

type Server = Omit<DatabaseOptions, "timeoutMs" | "connectionsMax">;

const serverOf = ({ postgres: url, socketFolder, hosts, tls }: PostgresPlace): Server => ({
  url,
  socketFolder,
  hosts,
  tls,
  attempts: makeAttempts(hosts?.length),
});

/** Connections of their own for work on the tables, which may take longer than a call. */
async function onTables<T>(server: Server, work: (call: Call) => Promise<T>): Promise<T> {
  const database = openConnections({ ...server, timeoutMs: MIGRATION_TIMEOUT_MS, connectionsMax: 2 });
  try {
    await refuseSharedSessions(database.call);
    return await work(database.call);
  } finally {
    await database.close();
  }
}

/** The statements that would bring the tables up to this version, a text for each migration. */
export const postgresScripts = (place: PostgresPlace): Promise<readonly string[]> =>
  onTables(serverOf(place), scriptsToCome);
