/** Clients, registrations and initial access tokens on node:sqlite: look-ups, and removal of expired rows. */
import type { DatabaseSync } from "node:sqlite";
import type { ClientRow, InitialTokenRow } from "../client-rows.ts";
import { fromClientRow, fromInitialTokenRow, fromStoredClientRow } from "../client-rows.ts";
import { isEncodable } from "../columns.ts";
import type { Store } from "../store.ts";
import type { Database } from "./database.ts";

export function sqliteClientRows({ db, run, remove }: Database): Pick<Store, "clients" | "registrations"> {
  const statements = prepareAll(db);
  const find: Store["clients"]["find"] = async (clientId) => {
    if (!isEncodable(clientId)) return undefined;
    const row = (await run(() => statements.selectClient.get(clientId))) as ClientRow | undefined;
    return row && row.disabled_at === null ? fromClientRow(row) : undefined;
  };
  return {
    clients: {
      find,
      list: async (clientId) => {
        if (clientId !== undefined && !isEncodable(clientId)) return [];
        const { selectClient, selectAllClients } = statements;
        const rows = await run(() =>
          clientId === undefined ? selectAllClients.all() : selectClient.all(clientId),
        );
        return (rows as ClientRow[]).map(fromStoredClientRow);
      },
    },
    registrations: {
      client: async (clientId) => {
        const found = await find(clientId);
        return found && "metadata" in found ? found : undefined;
      },
      initialToken: async (digest) => {
        if (!isEncodable(digest)) return undefined;
        const row = (await run(() => statements.selectInitialToken.get(digest))) as
          | InitialTokenRow
          | undefined;
        return row && fromInitialTokenRow(row);
      },
      initialTokens: async () => {
        const rows = (await run(() => statements.selectInitialTokens.all())) as InitialTokenRow[];
        return rows.map(fromInitialTokenRow);
      },
      idle: async ({ open, ...since }) => {
        const rows = await run(() => statements.selectIdle.all({ ...since, ...open }));
        return rows.map((row) => ({
          clientId: String(row.client_id),
          hadToken: row.had_token === 1,
          isOpen: row.is_open === 1,
        }));
      },
      withUnaskedGrants: async (grantType, limit) => {
        const rows = await run(() => statements.selectUnasked.all({ grantType, limit }));
        return { count: Number(rows[0]?.count ?? 0), clientIds: rows.map((row) => String(row.client_id)) };
      },
      keepCeiling: (name, ceiling) =>
        run(() => void statements.keepCeiling.run(name, JSON.stringify(ceiling))),
      sweep: (beforeSeconds, limit) =>
        remove(() => {
          const { selectRemoved, deleteSecrets, deleteClient, sweepInitialTokens } = statements;
          const removed = selectRemoved.all(beforeSeconds, limit).map((row) => String(row.client_id));
          for (const clientId of removed) {
            deleteSecrets.run(clientId);
            deleteClient.run(clientId);
          }
          const swept = sweepInitialTokens.run({ before: beforeSeconds, limit });
          return removed.length + Number(swept.changes);
        }),
    },
  };
}

const CLIENT = `
  select c.*, (
    select json_group_array(
      json_object('digest', s.digest, 'created_at', s.created_at, 'expires_at', s.expires_at)
      order by s.created_at, s.digest)
    from client_secret s where s.client_id = c.client_id
  ) as secrets, k.ceiling as class_ceiling
  from client c left join class_ceiling k on k.registration_class = c.registration_class`;

function prepareAll(db: DatabaseSync) {
  return {
    selectClient: db.prepare(`${CLIENT} where c.client_id = ?`),
    selectAllClients: db.prepare(`${CLIENT} order by c.client_id`),
    selectInitialToken: db.prepare("select * from initial_token where digest = ?"),
    selectInitialTokens: db.prepare("select * from initial_token order by created_at, id"),
    selectIdle: db.prepare(
      `select client_id, had_token, is_open from (
         select client_id, created_at, last_token_at, last_token_at is not null as had_token,
           registration_class = :registrationClass
             and :grantType in (select value from json_each(grant_types)) as is_open
         from client where source = 'registration' and disabled_at is null
       )
       where (not had_token and created_at <= iif(is_open, :unusedOpenSince, :unusedSince))
         or last_token_at <= :idleSince
       order by coalesce(last_token_at, created_at), client_id limit :limit`,
    ),
    selectUnasked: db.prepare(
      `select client_id, count(*) over () as count from client
       where source = 'registration' and disabled_at is null
         and json_array_length(metadata, '$.redirect_uris') > 0
         and :grantType not in (select value from json_each(grant_types))
       order by created_at, client_id limit :limit`,
    ),
    keepCeiling: db.prepare(
      `insert into class_ceiling (registration_class, ceiling) values (?, ?)
       on conflict (registration_class) do update set ceiling = excluded.ceiling`,
    ),
    selectRemoved: db.prepare(
      `select client_id from client
       where source = 'registration' and disabled_at is not null and disabled_at < ? limit ?`,
    ),
    deleteSecrets: db.prepare("delete from client_secret where client_id = ?"),
    deleteClient: db.prepare("delete from client where client_id = ?"),
    sweepInitialTokens: db.prepare(
      `delete from initial_token where id in
         (select id from initial_token where expires_at < :before or revoked_at < :before limit :limit)`,
    ),
  };
}
