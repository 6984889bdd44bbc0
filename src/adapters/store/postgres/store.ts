/**
 * The shared store on PostgreSQL. Each unit of work is one statement, because the driver throws outside of any promise
 * when a connection dies in a transaction. append.ts writes, clients.ts and audit.ts read their parts, pool.ts
 * connects.
 */
import { MIGRATION_TIMEOUT_MS, SLICE_MS, STORE_CONNECTIONS_MAX } from "../../../limits/store.ts";
import type { Consent } from "../../../policy/ask.ts";
import type { StorePlace } from "../../../settings/settings.ts";
import { isEncodable } from "../columns.ts";
import type {
  ConsentRow,
  EventRow,
  PolledDocumentRow,
  StandingConsentRow,
  StoredConsentRow,
} from "../rows.ts";
import {
  fromConsentRow,
  fromEventRow,
  fromPolledRow,
  fromStandingConsentRow,
  fromStoredConsentRow,
  toPolledRow,
} from "../rows.ts";
import type { Head, OpenOptions, Store } from "../store.ts";
import { appendBatch } from "./append.ts";
import { makeAttempts } from "./attempts.ts";
import { logNames, postgresAuditRows } from "./audit.ts";
import { postgresClientRows } from "./clients.ts";
import { postgresFamilies } from "./families.ts";
import { postgresKeys } from "./keys.ts";
import { migrate, scriptsToCome } from "./migrate.ts";
import { nowMs, postgresNames } from "./names.ts";
import { postgresPendingConsents } from "./pending-consents.ts";
import type { Call, DatabaseOptions, Sql } from "./pool.ts";
import { openConnections } from "./pool.ts";
import { refuseSharedSessions } from "./pooler.ts";
import { postgresRestored } from "./restored.ts";
import { postgresShortLived } from "./short-lived.ts";
import { postgresTokenRows } from "./tokens.ts";

type PostgresPlace = Extract<StorePlace, { postgres: string }>;

/** `postgres`: a URL as `postgres://user:password@host:port/database`, of one host. */
export async function openPostgres(
  place: PostgresPlace,
  { timeoutMs, mustExist, mustBeCurrent }: OpenOptions,
): Promise<Store> {
  const server = serverOf(place);
  await onTables(server, (call) => migrate(call, { mustExist, mustBeCurrent }));
  const { connections: connectionsMax = STORE_CONNECTIONS_MAX } = place;
  const database = openConnections({ ...server, timeoutMs, connectionsMax });
  const { call } = database;
  const { token, endings } = postgresTokenRows(call);

  return {
    connections: database.state,
    log: {
      head: (log) =>
        call(async (sql) => {
          const [head] = await sql<Head[]>`
            select seq, hash from event where log = ${log} order by seq desc limit 1`;
          return head;
        }),
      append: (batch) => call((sql) => appendBatch(sql, batch)),
      read: ({ log, afterSeq = -1, limit }) =>
        call(async (sql) => {
          const rows = await sql<EventRow[]>`
            select log, seq, id, time_ms, type, body, prev, hash from event
            where log = ${log} and seq > ${afterSeq} order by seq limit ${limit}`;
          return rows.map(fromEventRow);
        }),
      logs: () =>
        call(async (sql) => {
          const rows = await sql<{ log: string }[]>`
            with recursive ${logNames(sql, "event")} select log from name where log is not null`;
          return rows.map(({ log }) => log);
        }),
    },
    audit: postgresAuditRows(call),
    facts: {
      token,
      consents: async ({ iss, sub }, actor, nowSeconds) => {
        if (![iss, sub, actor].every(isEncodable)) return [];
        const rows = await call(
          (sql) => sql<ConsentRow[]>`
            ${consentsOf(sql, { iss, sub }, actor)} select ${consentColumns(sql)} from theirs
            where withdrawn_at is null and (expires_at is null or expires_at > ${Math.floor(nowSeconds)})
            order by id`,
        );
        return rows.map(fromConsentRow);
      },
    },
    consents: {
      find: async (id) => {
        if (!isEncodable(id)) return undefined;
        const [row] = await call(
          (sql) => sql<StoredConsentRow[]>`
            select ${consentColumns(sql)}, withdrawn_at from consent where id = ${id}`,
        );
        return row && fromStoredConsentRow(row);
      },
      list: async (origin, page) => {
        if (origin && !(isEncodable(origin.iss) && isEncodable(origin.sub))) return [];
        const rows = await call((sql) => {
          const theirs = origin ? consentsOf(sql, origin) : sql``;
          const some = page ? sql`limit ${page.limit}` : sql``;
          return sql<StoredConsentRow[]>`
            ${theirs} select ${consentColumns(sql)}, withdrawn_at from ${sql(origin ? "theirs" : "consent")}
            where id > ${page?.afterId ?? ""} order by id ${some}`;
        });
        return rows.map(fromStoredConsentRow);
      },
      standing: async (origin, { nowSeconds, afterId = "", limit }) => {
        if (![origin.iss, origin.sub, afterId].every(isEncodable)) return [];
        const rows = await call(
          (sql) => sql<StandingConsentRow[]>`
            ${consentsOf(sql, origin)} select ${consentColumns(sql)}, given_at from theirs
            where withdrawn_at is null and (expires_at is null or expires_at > ${Math.floor(nowSeconds)})
              and id > ${afterId} order by id limit ${limit}`,
        );
        return rows.map(fromStandingConsentRow);
      },
    },
    endings,
    ...postgresClientRows(call),
    shortLived: postgresShortLived(call),
    keys: postgresKeys(call),
    families: postgresFamilies(call),
    pendingConsents: postgresPendingConsents(call),
    restored: postgresRestored(call),
    nowMs: async () => {
      const [row] = await call((sql) => sql<{ nowMs: number }[]>`select ${nowMs(sql)} as "nowMs"`);
      return row?.nowMs ?? Number.NaN;
    },
    polled: {
      find: async (kind, name) => {
        const [row] = await call(
          (sql) => sql<PolledDocumentRow[]>`
            select kind, name, location, body, sequence, loaded_at from kept_document
            where kind = ${kind} and name = ${name}`,
        );
        return row && fromPolledRow(row);
      },
      save: async (document) => {
        const { kind, name, location, body, sequence, loaded_at } = toPolledRow(document);
        await call(
          (sql) => sql`
            insert into kept_document as k (kind, name, location, body, sequence, loaded_at)
            values (${kind}, ${name}, ${location}, ${body}, ${sequence}, ${loaded_at})
            on conflict (kind, name) do update
            set location = excluded.location, body = excluded.body, sequence = excluded.sequence,
              loaded_at = excluded.loaded_at
            where k.location <> excluded.location or coalesce(excluded.sequence >= k.sequence, true)`,
        );
      },
      redate: async (kind, name, fromSeconds, toSeconds) => {
        await call(
          (sql) => sql`
            update kept_document set loaded_at = ${toSeconds}
            where kind = ${kind} and name = ${name} and loaded_at = ${fromSeconds}`,
        );
      },
      retain: async (kind, names) => {
        await call(
          (sql) => sql`
            delete from kept_document where kind = ${kind}
              and name not in (select json_array_elements_text(${JSON.stringify(names)}::text::json))`,
        );
      },
    },
    names: postgresNames(call),
    sliceMs: SLICE_MS.postgres,
    close: database.close,
  };
}

/** Those of one subject, gathered before they are sorted: in the order of the key every consent would be read. */
const consentsOf = (sql: Sql, { iss, sub }: Consent["origin"], actor?: string) => sql`
  with theirs as materialized (
    select * from consent where origin_iss = ${iss} and origin_sub = ${sub}
      ${actor === undefined ? sql`` : sql`and actor = ${actor}`}
  )`;

function consentColumns(sql: Sql) {
  return sql`id, version, origin_iss, origin_sub, actor, targets::text as targets, scopes::text as scopes,
    expires_at`;
}

type Server = Omit<DatabaseOptions, "timeoutMs" | "connectionsMax">;

const serverOf = ({ postgres: url, socketFolder, tls }: PostgresPlace): Server => ({
  url,
  socketFolder,
  tls,
  attempts: makeAttempts(),
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
