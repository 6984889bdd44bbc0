/** Clients, registrations and initial access tokens on PostgreSQL: look-ups, and removal of expired rows. */
import type { ClientRow, InitialTokenRow } from "../client-rows.ts";
import { fromClientRow, fromInitialTokenRow, fromStoredClientRow } from "../client-rows.ts";
import { isEncodable } from "../columns.ts";
import type { Store } from "../store.ts";
import type { Call, Sql } from "./pool.ts";

export function postgresClientRows(call: Call): Pick<Store, "clients" | "registrations"> {
  const find: Store["clients"]["find"] = async (clientId) => {
    if (!isEncodable(clientId)) return undefined;
    const [row] = await call(
      (sql) => sql<ClientRow[]>`
        select ${clientColumns(sql)} from client c
        where c.client_id = ${clientId} and c.disabled_at is null`,
    );
    return row && fromClientRow(row);
  };
  return {
    clients: {
      find,
      list: async (clientId) => {
        if (clientId !== undefined && !isEncodable(clientId)) return [];
        const rows = await call((sql) => {
          const which = clientId === undefined ? sql`` : sql`where c.client_id = ${clientId}`;
          return sql<ClientRow[]>`select ${clientColumns(sql)} from client c ${which} order by c.client_id`;
        });
        return rows.map(fromStoredClientRow);
      },
    },
    registrations: {
      client: async (clientId) => {
        const found = await find(clientId);
        return found && "metadata" in found ? found : undefined;
      },
      initialToken: async (digest) => {
        if (!isEncodable(digest)) return undefined;
        const [row] = await call(
          (sql) => sql<InitialTokenRow[]>`
            select ${initialTokenColumns(sql)} from initial_token where digest = ${digest}`,
        );
        return row && fromInitialTokenRow(row);
      },
      initialTokens: async () => {
        const rows = await call(
          (sql) => sql<InitialTokenRow[]>`
            select ${initialTokenColumns(sql)} from initial_token order by created_at, id`,
        );
        return rows.map(fromInitialTokenRow);
      },
      idle: async ({ unusedSince, unusedOpenSince, idleSince, open, limit }) => {
        const rows = await call(
          (sql) => sql<{ client_id: string; had_token: boolean; is_open: boolean }[]>`
            select client_id, had_token, is_open from (
              select client_id, created_at, last_token_at, last_token_at is not null as had_token,
                registration_class = ${open.registrationClass}
                  and ${open.grantType} in (select json_array_elements_text(grant_types)) as is_open
              from client where source = 'registration' and disabled_at is null
                and coalesce(last_token_at, created_at) <= ${Math.max(unusedSince, unusedOpenSince, idleSince)}
            ) as registered
            where (not had_token and created_at <= case when is_open
                then ${unusedOpenSince}::bigint else ${unusedSince}::bigint end)
              or last_token_at <= ${idleSince}
            order by coalesce(last_token_at, created_at), client_id limit ${limit}`,
        );
        return rows.map((row) => ({
          clientId: row.client_id,
          hadToken: row.had_token,
          isOpen: row.is_open,
        }));
      },
      withUnaskedGrants: async (grantType, limit) => {
        const rows = await call(
          (sql) => sql<{ client_id: string; count: number }[]>`
            select client_id, (count(*) over ())::int as count from client
            where source = 'registration' and disabled_at is null
              and json_array_length(metadata -> 'redirect_uris') > 0
              and ${grantType} not in (select json_array_elements_text(grant_types))
            order by created_at, client_id limit ${limit}`,
        );
        return { count: rows[0]?.count ?? 0, clientIds: rows.map((row) => row.client_id) };
      },
      keepCeiling: async (name, ceiling) => {
        await call(
          (sql) => sql`
            insert into class_ceiling (registration_class, ceiling)
            values (${name}, ${JSON.stringify(ceiling)}::text::json)
            on conflict (registration_class) do update set ceiling = excluded.ceiling`,
        );
      },
      sweep: async (beforeSeconds, limit) => {
        // Skips locked rows, so that several instances can remove rows at the same time.
        const clients = await call(
          (sql) => sql`
            with gone as (
              select client_id from client
              where source = 'registration' and disabled_at is not null and disabled_at < ${beforeSeconds}
              limit ${limit} for update skip locked
            ),
            secrets_gone as (
              delete from client_secret where client_id = any(array(select client_id from gone))
            )
            delete from client where client_id = any(array(select client_id from gone))`,
        );
        const tokens = await call(
          (sql) => sql`
            delete from initial_token where ctid = any(array(
              select ctid from initial_token where expires_at < ${beforeSeconds} or revoked_at < ${beforeSeconds}
              limit ${limit} for update skip locked))`,
        );
        return clients.count + tokens.count;
      },
    },
  };
}

function clientColumns(sql: Sql) {
  return sql`c.client_id, c.source, c.version, c.method, c.grant_types::text as grant_types, c.workload,
    c.default_target, c.created_at, c.disabled_at, c.metadata::text as metadata, c.registration_class,
    c.ceiling::text as ceiling, c.token_generation,
    (select k.ceiling::text from class_ceiling k where k.registration_class = c.registration_class) as class_ceiling,
    (
      select coalesce(json_agg(s order by s.created_at, s.digest), '[]')::text
      from (select digest, created_at, expires_at from client_secret k where k.client_id = c.client_id) s
    ) as secrets`;
}

function initialTokenColumns(sql: Sql) {
  return sql`id, digest, registration_class, ceiling::text as ceiling, uses, uses_max, created_at, expires_at,
    revoked_at`;
}
