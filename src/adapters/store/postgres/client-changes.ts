/**
 * Changes of clients, registrations and initial access tokens: their parts of the one statement that writes the journal
 * on PostgreSQL (append.ts).
 */
import type { RegistrationChange } from "../../../records.ts";
import type { SecretDigest } from "../../../settings/settings.ts";
import { toClientRow, toInitialTokenRow, toRegistrationRow, toSecretRow } from "../client-rows.ts";
import type { ClientChange, StoreEntry } from "../store.ts";
import type { Sql } from "./pool.ts";

/**
 * One list for each kind of change. Clients created by the operator: `client` (new), `altered` (rotated or disabled)
 * and `secret`. Registered clients: `registered` (new), `registration` (updated or removed) and `given` (their
 * secrets).
 * Initial access tokens: `initial` (new) and `revoked`.
 */
type Lists<T> = Record<
  "client" | "altered" | "secret" | "registered" | "registration" | "given" | "initial" | "revoked",
  T
>;

export type ChangeRows = Lists<string>;

/** Undefined without any such change: then the statement leaves these parts out, which makes it cheaper. */
export function toChangeRows(batch: readonly StoreEntry[]): ChangeRows | undefined {
  if (batch.every(({ client, registration, initialToken }) => !(client ?? registration ?? initialToken))) {
    return undefined;
  }
  const lists: Lists<object[]> = {
    client: [],
    altered: [],
    secret: [],
    registered: [],
    registration: [],
    given: [],
    initial: [],
    revoked: [],
  };
  for (const [entry, { event, client, registration, initialToken }] of batch.entries()) {
    if (client !== undefined) addClientRows(lists, entry, client);
    if (registration !== undefined) {
      addRegistrationRows(lists, entry, registration, Math.floor(event.timeMs / 1000));
    }
    if (initialToken !== undefined && "add" in initialToken) {
      lists.initial.push({ entry, ...toInitialTokenRow(initialToken.add) });
    } else if (initialToken !== undefined) {
      lists.revoked.push({ entry, id: initialToken.revoke, revoked_at: initialToken.atSeconds });
    }
  }
  return Object.fromEntries(
    Object.entries(lists).map(([name, list]) => [name, JSON.stringify(list)]),
  ) as ChangeRows;
}

function addClientRows(lists: Lists<object[]>, entry: number, change: ClientChange): void {
  const { atSeconds } = change;
  const addSecret = (clientId: string, secret: SecretDigest): void => {
    lists.secret.push({ entry, client_id: clientId, ...toSecretRow(secret, atSeconds) });
  };
  if ("add" in change) {
    lists.client.push({ entry, ...toClientRow(change) });
    for (const secret of change.add.auth.secrets) addSecret(change.add.clientId, secret);
  } else if ("rotate" in change) {
    const { rotate, version, olderEndSeconds: end } = change;
    lists.altered.push({ entry, client_id: rotate, version, older_end: end, at_seconds: atSeconds });
    addSecret(rotate, change.secret);
  } else {
    lists.altered.push({ entry, client_id: change.disable, disabled_at: atSeconds });
  }
}

function addRegistrationRows(
  lists: Lists<object[]>,
  entry: number,
  change: RegistrationChange,
  nowSeconds: number,
): void {
  if ("remove" in change) {
    const { remove, version, unusedSince, atSeconds } = change;
    const next = version === undefined ? undefined : version + 1;
    const when = { unused_since: unusedSince, disabled_at: atSeconds };
    lists.registration.push({ entry, client_id: remove, version: next, ...when });
    return;
  }
  if ("update" in change) {
    lists.registration.push({ entry, ...toRegistrationRow(change.update) });
  } else {
    const { register, initialTokenId, clientsMax } = change;
    const conditions = { initial_token_id: initialTokenId, clients_max: clientsMax, now_seconds: nowSeconds };
    lists.registered.push({ entry, ...toRegistrationRow(register), ...conditions });
  }
  const { clientId, secrets, atSeconds } =
    "update" in change
      ? { ...change.update, atSeconds: change.atSeconds }
      : { ...change.register, atSeconds: change.register.issuedAtSeconds };
  for (const secret of secrets) {
    lists.given.push({ entry, client_id: clientId, ...toSecretRow(secret, atSeconds) });
  }
}

/** The clients whose row the batch changes: a statement that updates a row twice makes only one of the updates. */
export function changedBy(batch: readonly StoreEntry[]): readonly string[] {
  return batch.flatMap(({ client = {}, registration = {} }) => [
    ...("disable" in client ? [client.disable] : []),
    ...("update" in registration ? [registration.update.clientId] : []),
    ...("remove" in registration ? [registration.remove] : []),
  ]);
}

/** The parts that read the rows of the batch and lock the records that they change. */
export function changesIn(sql: Sql, rows: ChangeRows) {
  return sql`
      client_in as (
        select * from json_to_recordset(${rows.client}::text::json) as k
          (entry int, client_id text, method text, grant_types text, workload text, default_target text,
           created_at bigint)
      ),
      altered_in as (
        select * from json_to_recordset(${rows.altered}::text::json) as a
          (entry int, client_id text, version bigint, older_end bigint, at_seconds bigint, disabled_at bigint)
      ),
      secret_in as (
        select * from json_to_recordset(${rows.secret}::text::json) as s
          (entry int, client_id text, digest text, created_at bigint, expires_at bigint)
      ),
      registered_in as (
        select * from json_to_recordset(${rows.registered}::text::json) as r
          (entry int, client_id text, version bigint, method text, grant_types text, metadata text,
           registration_class text, ceiling text, token_generation bigint, created_at bigint,
           initial_token_id text, clients_max bigint, now_seconds bigint)
      ),
      -- A row with metadata replaces the registration, one without removes it.
      registration_in as (
        select * from json_to_recordset(${rows.registration}::text::json) as r
          (entry int, client_id text, version bigint, method text, grant_types text, metadata text,
           ceiling text, token_generation bigint, unused_since bigint, disabled_at bigint)
      ),
      given_in as (
        select * from json_to_recordset(${rows.given}::text::json) as g
          (entry int, client_id text, digest text, created_at bigint, expires_at bigint)
      ),
      initial_in as (
        select * from json_to_recordset(${rows.initial}::text::json) as i
          (entry int, id text, digest text, registration_class text, ceiling text, uses bigint, uses_max bigint,
           created_at bigint, expires_at bigint, revoked_at bigint)
      ),
      revoked_in as (
        select * from json_to_recordset(${rows.revoked}::text::json) as r
          (entry int, id text, revoked_at bigint)
      ),
      -- Locked, so that a rotation concurrent with another change finds a different version.
      standing_client as (
        select k.client_id from altered_in a
        cross join lateral (
          select client_id from client
          where client.client_id = a.client_id and client.disabled_at is null
            and (a.version is null or client.version = a.version and client.source = 'operator')
          for update
        ) k
      ),
      -- Locked, so that a change concurrent with another change, a removal or a new token sees it.
      standing_registration as (
        select k.client_id from registration_in r
        cross join lateral (
          select client_id from client
          where client.client_id = r.client_id and client.source = 'registration' and client.disabled_at is null
            and (r.version is null or client.version = r.version - 1)
            and (r.unused_since is null or coalesce(client.last_token_at, client.created_at) <= r.unused_since)
          for update
        ) k
      ),
      -- RFC7591-3-3: locked, so that two concurrent registrations cannot both take the last use.
      usable_initial as (
        select i.id from registered_in r
        cross join lateral (
          select id from initial_token
          where initial_token.id = r.initial_token_id and revoked_at is null and expires_at > r.now_seconds
            and uses < uses_max
          for update
        ) i
      ),
      standing_initial as (
        select i.id from revoked_in r
        cross join lateral (
          select id from initial_token where initial_token.id = r.id and initial_token.revoked_at is null for update
        ) i
      ),`;
}

/** The parts that find the preconditions that do not hold. */
export function changesFailed(sql: Sql) {
  return sql`
        union
        select k.entry, 'client_current' from client_in k
          where (select true from client c where c.client_id = k.client_id)
        union
        select s.entry, 'client_current' from secret_in s
          where (select true from client_secret c where c.digest = s.digest)
        union
        select a.entry, 'client_current' from altered_in a
          where (select true from standing_client s where s.client_id = a.client_id) is null
        union
        select r.entry, 'registration_current' from registered_in r
          where (select true from client c where c.client_id = r.client_id)
        union
        -- RFC7591-3.2.1-4: no two clients have the same secret.
        select g.entry, 'registration_current' from given_in g
          where (select c.client_id from client_secret c where c.digest = g.digest) <> g.client_id
        union
        select r.entry, 'registration_current' from registration_in r
          where (select true from standing_registration s where s.client_id = r.client_id) is null
        union
        select r.entry, 'registrations_below' from registered_in r
          where r.clients_max <= (
            select count(*) from client
            where source = 'registration' and disabled_at is null and registration_class = r.registration_class
          )
        union
        select r.entry, 'initial_token_usable' from registered_in r
          where r.initial_token_id is not null
            and (select true from usable_initial i where i.id = r.initial_token_id) is null
        union
        select i.entry, 'initial_token_current' from initial_in i
          where exists (select from initial_token t where t.id = i.id or t.digest = i.digest)
        union
        select r.entry, 'initial_token_current' from revoked_in r
          where (select true from standing_initial s where s.id = r.id) is null`;
}

/** The parts that write, if nothing has failed. */
export function changesOut(sql: Sql) {
  return sql`
      client_out as (
        insert into client (client_id, version, method, grant_types, workload, default_target, created_at)
        select client_id, 1, method, grant_types::json, workload, default_target, created_at
        from client_in where not exists (select from failed)
      ),
      altered_out as (
        update client c set version = version + 1,
          disabled_at = (select a.disabled_at from altered_in a where a.client_id = c.client_id)
        where client_id = any(array(select client_id from altered_in)) and not exists (select from failed)
      ),
      -- Two disjoint sets: expired secrets are removed, and those that last longer than older_end are shortened.
      removed_out as (
        delete from client_secret s
        where client_id = any(array(select client_id from altered_in))
          and (
            select least(s.expires_at, a.older_end) <= a.at_seconds from altered_in a where a.client_id = s.client_id
          )
          and not exists (select from failed)
      ),
      ended_out as (
        update client_secret s
        set expires_at = (select a.older_end from altered_in a where a.client_id = s.client_id)
        where client_id = any(array(select client_id from altered_in where older_end > at_seconds))
          and (
            select s.expires_at is null or s.expires_at > a.older_end from altered_in a
            where a.client_id = s.client_id
          )
          and not exists (select from failed)
      ),
      secret_out as (
        insert into client_secret (client_id, digest, created_at, expires_at)
        select client_id, digest, created_at, expires_at from secret_in
        where not exists (select from failed)
      ),
      registered_out as (
        insert into client (source, client_id, version, method, grant_types, metadata, registration_class, ceiling,
          token_generation, created_at)
        select 'registration', client_id, version, method, grant_types::json, metadata::json, registration_class,
          ceiling::json, token_generation, created_at
        from registered_in where not exists (select from failed)
      ),
      -- RFC7592-2.2-3: an update replaces the metadata. RFC7592-5-5: a removal clears metadata and
      -- secrets; an ending, written with it, ends the tokens.
      registration_out as (
        update client c set (version, disabled_at, metadata, method, grant_types, ceiling, token_generation) = (
          select c.version + 1, r.disabled_at, r.metadata::json, coalesce(r.method, c.method),
            coalesce(r.grant_types::json, c.grant_types), r.ceiling::json, r.token_generation
          from registration_in r where r.client_id = c.client_id
        )
        where client_id = any(array(select client_id from registration_in)) and not exists (select from failed)
      ),
      -- Secrets that are not listed again are removed; the others get the new expiry.
      taken_out as (
        delete from client_secret
        where client_id = any(array(select client_id from registration_in))
          and digest <> all(array(select digest from given_in)) and not exists (select from failed)
      ),
      kept_out as (
        update client_secret s
        set expires_at = (select g.expires_at from given_in g where g.digest = s.digest)
        where digest = any(array(select digest from given_in))
          and expires_at is distinct from (select g.expires_at from given_in g where g.digest = s.digest)
          and not exists (select from failed)
      ),
      given_out as (
        insert into client_secret (client_id, digest, created_at, expires_at)
        select client_id, digest, created_at, expires_at from given_in g
        where (select true from client_secret s where s.digest = g.digest) is null
          and not exists (select from failed)
      ),
      spent_initial_out as (
        update initial_token set uses = uses + 1
        where id = any(array(select initial_token_id from registered_in)) and not exists (select from failed)
      ),
      initial_out as (
        insert into initial_token (id, digest, registration_class, ceiling, uses, uses_max, created_at, expires_at,
          revoked_at)
        select id, digest, registration_class, ceiling::json, uses, uses_max, created_at, expires_at, revoked_at
        from initial_in where not exists (select from failed)
      ),
      revoked_out as (
        update initial_token i set revoked_at = (select r.revoked_at from revoked_in r where r.id = i.id)
        where id = any(array(select id from revoked_in)) and not exists (select from failed)
      ),`;
}
