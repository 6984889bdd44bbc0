/**
 * The shared store on PostgreSQL. Each unit of work is one statement, since the driver cannot be trusted with
 * transactions when a connection dies. Nor is it trusted to wait, to reconnect or to recover: every call has our
 * own deadline, and a pool that met a fault is replaced.
 */

import type { Socket } from "node:net";
import { connect } from "node:net";
import postgres from "postgres";
import type { SecretDigest } from "../ports.ts";
import { StoreUnavailable } from "../ports.ts";
import {
  MIGRATION_TIMEOUT_MS,
  STORE_CONNECTIONS_MAX,
  STORE_RETRY_MS,
  STORE_TIMEOUT_MS,
} from "../spec/limits.ts";
import { auditRowsOn } from "./postgres-audit.ts";
import type {
  ClientChange,
  ClientRow,
  ConsentRow,
  EventRow,
  GuardFailure,
  Head,
  KeptDocumentRow,
  KeyRow,
  Store,
  StoredConsentRow,
  StoreEntry,
  TokenRow,
} from "./store.ts";
import {
  fromClientRow,
  fromConsentRow,
  fromEventRow,
  fromKeptRow,
  fromStoredClientRow,
  fromStoredConsentRow,
  fromTokenRow,
  isStorable,
  LogConflict,
  loadMigrations,
  pendingMigrations,
  spentJti,
  termKey,
  toCheckpointRow,
  toClientRow,
  toConsentRow,
  toEventRow,
  toKeptRow,
  toSecretRow,
  toTokenRow,
} from "./store.ts";

export type PostgresOptions = {
  /** As `postgres://user:password@host:port/database?sslmode=verify-full`; one host. */
  url: string;
  timeoutMs?: number;
};

const UNIQUE_VIOLATION = "23505";

export async function openPostgres({ url, timeoutMs = STORE_TIMEOUT_MS }: PostgresOptions): Promise<Store> {
  await migrate(url);
  const database = openDatabase({ url, timeoutMs, connectionsMax: STORE_CONNECTIONS_MAX });
  const { call } = database;

  return {
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
          // From name to name along the key, since there are few logs and many events.
          const rows = await sql<{ log: string }[]>`
            with recursive name (log) as (
              select min(log) from event
              union all
              select (select min(e.log) from event e where e.log > n.log) from name n where n.log is not null
            )
            select log from name where log is not null`;
          return rows.map(({ log }) => log);
        }),
    },
    audit: auditRowsOn(call),
    facts: {
      token: async (jti) => {
        if (!isStorable(jti)) return undefined;
        // The token and its ancestors, each by the same measure; one without a row counts as dead.
        const [row] = await call(
          (sql) => sql<(TokenRow & { live: boolean })[]>`
            select t.jti, t.client_id, t.subject, t.origin_iss, t.origin_sub, t.audience, t.scope,
              t.chain::text as chain, t.may_act::text as may_act, t.ancestors::text as ancestors,
              t.rule_id, t.consent_id, t.issued_at, t.expires_at,
              not exists (
                select from (
                  select t.jti union all select a.value from json_array_elements_text(t.ancestors) a
                ) needed
                where (select true from live_token l where l.jti = needed.jti) is null
              ) as live
            from token t where t.jti = ${jti}`,
        );
        return row && { record: fromTokenRow(row), live: row.live };
      },
      consents: async ({ iss, sub }, actor, nowSeconds) => {
        if (![iss, sub, actor].every(isStorable)) return [];
        const rows = await call(
          (sql) => sql<ConsentRow[]>`
            select ${consentColumns(sql)} from consent
            where origin_iss = ${iss} and origin_sub = ${sub} and actor = ${actor}
              and withdrawn_at is null and (expires_at is null or expires_at > ${Math.floor(nowSeconds)})
            order by id`,
        );
        return rows.map(fromConsentRow);
      },
    },
    consents: {
      find: async (id) => {
        if (!isStorable(id)) return undefined;
        const [row] = await call(
          (sql) => sql<StoredConsentRow[]>`
            select ${consentColumns(sql)}, withdrawn_at from consent where id = ${id}`,
        );
        return row && fromStoredConsentRow(row);
      },
      list: async (origin, page) => {
        if (origin && !(isStorable(origin.iss) && isStorable(origin.sub))) return [];
        const rows = await call((sql) => {
          const whose = origin ? sql`and origin_iss = ${origin.iss} and origin_sub = ${origin.sub}` : sql``;
          const some = page ? sql`limit ${page.limit}` : sql``;
          return sql<StoredConsentRow[]>`
            select ${consentColumns(sql)}, withdrawn_at from consent
            where id > ${page?.afterId ?? ""} ${whose} order by id ${some}`;
        });
        return rows.map(fromStoredConsentRow);
      },
    },
    clients: {
      find: async (clientId) => {
        if (!isStorable(clientId)) return undefined;
        const [row] = await call(
          (sql) => sql<ClientRow[]>`
            select ${clientColumns(sql)} from client c
            where c.client_id = ${clientId} and c.disabled_at is null`,
        );
        return row && fromClientRow(row);
      },
      list: async (clientId) => {
        if (clientId !== undefined && !isStorable(clientId)) return [];
        const rows = await call((sql) => {
          const which = clientId === undefined ? sql`` : sql`where c.client_id = ${clientId}`;
          return sql<ClientRow[]>`select ${clientColumns(sql)} from client c ${which} order by c.client_id`;
        });
        return rows.map(fromStoredClientRow);
      },
    },
    keys: {
      list: async () => {
        const rows = await call(
          (sql) => sql<KeyRow[]>`
            select kid, alg, purpose, state, public_jwk as "publicJwk", private_jwe as "privateJwe",
              created_at as "createdAtSeconds"
            from signing_key order by created_at, kid`,
        );
        return rows.map((row) => ({ ...row }));
      },
      insertIfNone: async (key) => {
        const done = await call(
          (sql) => sql`
            insert into signing_key (kid, alg, purpose, state, public_jwk, private_jwe, created_at)
            values (${key.kid}, ${key.alg}, ${key.purpose}, ${key.state}, ${key.publicJwk}, ${key.privateJwe},
              ${key.createdAtSeconds})
            on conflict do nothing`,
        );
        return done.count === 1;
      },
    },
    kept: {
      find: async (kind, name) => {
        const [row] = await call(
          (sql) => sql<KeptDocumentRow[]>`
            select kind, name, location, body, sequence, loaded_at from kept_document
            where kind = ${kind} and name = ${name}`,
        );
        return row && fromKeptRow(row);
      },
      save: async (kept) => {
        const { kind, name, location, body, sequence, loaded_at } = toKeptRow(kept);
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
      retain: async (kind, names) => {
        await call(
          (sql) => sql`
            delete from kept_document where kind = ${kind}
              and name not in (select json_array_elements_text(${JSON.stringify(names)}::text::json))`,
        );
      },
    },
    close: database.close,
  };
}

function consentColumns(sql: Sql) {
  return sql`id, version, origin_iss, origin_sub, actor, targets::text as targets, scopes::text as scopes,
    expires_at`;
}

function clientColumns(sql: Sql) {
  return sql`c.client_id, c.version, c.method, c.grant_types::text as grant_types, c.workload, c.default_target,
    c.created_at, c.disabled_at,
    (
      select coalesce(json_agg(s order by s.created_at, s.digest), '[]')::text
      from (select digest, created_at, expires_at from client_secret k where k.client_id = c.client_id) s
    ) as secrets`;
}

// --- the one statement that writes ----------------------------------------------------------------------------

/**
 * Guards and writes see one snapshot. What another instance commits after it was taken, a unique key catches;
 * asked once more, the guard names it.
 */
async function appendBatch(sql: Sql, batch: readonly StoreEntry[]): Promise<readonly GuardFailure[]> {
  const rows = toRows(batch);
  try {
    return await write(sql, rows);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    // The terms of an event have its place in their key, and may be first to meet it.
    if (/^event(_term)?_pkey$/.test(error.constraint_name ?? "")) {
      throw new LogConflict("a place in the log is taken");
    }
    return await write(sql, rows);
  }
}

type Rows = Record<
  | "event"
  | "token"
  | "fresh"
  | "live"
  | "current"
  | "added"
  | "replaced"
  | "withdrawn"
  | "client"
  | "altered"
  | "secret"
  | "checkpoint",
  string
>;

function toRows(batch: readonly StoreEntry[]): Rows {
  const events: object[] = [];
  const tokens: object[] = [];
  const fresh: object[] = [];
  const live: object[] = [];
  const current: object[] = [];
  const added: object[] = [];
  const replaced: object[] = [];
  const withdrawn: object[] = [];
  const clients: ClientLists = { client: [], altered: [], secret: [] };
  const checkpoints: object[] = [];
  for (const [entry, each] of batch.entries()) {
    const { event, terms = [], token, guards = [], consent, client, checkpoint } = each;
    events.push({ ...toEventRow(event), terms: terms.map(termKey) });
    if (checkpoint !== undefined) checkpoints.push(toCheckpointRow(checkpoint));
    if (token !== undefined) tokens.push({ ...toTokenRow(token), event_id: event.id });
    for (const guard of guards) {
      if (guard.kind === "jti_fresh") {
        const expiresAt = Math.ceil(guard.expiresAtSeconds);
        const jti = spentJti(guard.jti);
        fresh.push({ entry, issuer: guard.issuer, jti, expires_at: expiresAt, event_id: event.id });
      } else if (guard.kind === "tokens_live") {
        for (const jti of guard.jtis) live.push({ entry, jti });
      } else {
        const now = Math.floor(guard.nowSeconds);
        current.push({ entry, id: guard.id, version: guard.version, now_seconds: now });
      }
    }
    if (consent !== undefined && "add" in consent) added.push({ entry, ...toConsentRow(consent.add) });
    else if (consent !== undefined && "replace" in consent) {
      replaced.push({ entry, ...toConsentRow(consent.replace) });
    } else if (consent !== undefined) {
      withdrawn.push({ entry, id: consent.withdraw, at_seconds: consent.atSeconds });
    }
    if (client !== undefined) addClientRows(clients, entry, client);
  }
  const lists = {
    event: events,
    token: tokens,
    fresh,
    live,
    current,
    added,
    replaced,
    withdrawn,
    ...clients,
    checkpoint: checkpoints,
  };
  return Object.fromEntries(
    Object.entries(lists).map(([name, list]) => [name, JSON.stringify(list)]),
  ) as Rows;
}

type ClientLists = Record<"client" | "altered" | "secret", object[]>;

function addClientRows(rows: ClientLists, entry: number, change: ClientChange): void {
  const { atSeconds } = change;
  const addSecret = (clientId: string, secret: SecretDigest): void => {
    rows.secret.push({ entry, client_id: clientId, ...toSecretRow(secret, atSeconds) });
  };
  if ("add" in change) {
    rows.client.push({ entry, ...toClientRow(change) });
    for (const secret of change.add.auth.secrets) addSecret(change.add.clientId, secret);
  } else if ("rotate" in change) {
    const { rotate, version, olderEndSeconds: end } = change;
    rows.altered.push({ entry, client_id: rotate, version, older_end: end, at_seconds: atSeconds });
    addSecret(rotate, change.secret);
  } else {
    rows.altered.push({ entry, client_id: change.disable, disabled_at: atSeconds });
  }
}

/**
 * Each guard asks by scalar subquery, which the planner answers row by row along the key: its estimates of
 * empty, never analysed tables would choose a scan and keep it while they fill.
 */
async function write(sql: Sql, rows: Rows): Promise<readonly GuardFailure[]> {
  const failures = await sql<GuardFailure[]>`
    with
      event_in as (
        select * from json_to_recordset(${rows.event}::text::json) as e
          (log text, seq bigint, id text, time_ms bigint, type text, body text, prev text, hash text, terms json)
      ),
      checkpoint_in as (
        select * from json_to_recordset(${rows.checkpoint}::text::json) as c
          (log text, tree_size bigint, time_ms bigint, jws text)
      ),
      token_in as (
        select * from json_to_recordset(${rows.token}::text::json) as t
          (jti text, client_id text, subject text, origin_iss text, origin_sub text, audience text, scope text,
           chain text, may_act text, ancestors text, rule_id text, consent_id text, issued_at bigint,
           expires_at bigint, event_id text)
      ),
      fresh_in as (
        select * from json_to_recordset(${rows.fresh}::text::json) as f
          (entry int, issuer text, jti text, expires_at bigint, event_id text)
      ),
      live_in as (
        select * from json_to_recordset(${rows.live}::text::json) as l (entry int, jti text)
      ),
      current_in as (
        select * from json_to_recordset(${rows.current}::text::json) as c
          (entry int, id text, version bigint, now_seconds bigint)
      ),
      added_in as (
        select * from json_to_recordset(${rows.added}::text::json) as a
          (entry int, id text, version bigint, origin_iss text, origin_sub text, actor text, targets text,
           scopes text, expires_at bigint)
      ),
      replaced_in as (
        select * from json_to_recordset(${rows.replaced}::text::json) as r
          (entry int, id text, version bigint, targets text, scopes text, expires_at bigint)
      ),
      withdrawn_in as (
        select * from json_to_recordset(${rows.withdrawn}::text::json) as w
          (entry int, id text, at_seconds bigint)
      ),
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
      -- Locked, so that of two who withdraw it at once the second finds it withdrawn.
      standing as (
        select c.id from withdrawn_in w
        cross join lateral (
          select id from consent where consent.id = w.id and withdrawn_at is null for update
        ) c
      ),
      -- Likewise: who replaces what was just replaced or withdrawn finds another version.
      standing_version as (
        select c.id from replaced_in r
        cross join lateral (
          select id from consent
          where consent.id = r.id and consent.withdrawn_at is null and consent.version = r.version - 1
          for update
        ) c
      ),
      -- Likewise: who rotates what was just rotated or disabled finds another version.
      standing_client as (
        select k.client_id from altered_in a
        cross join lateral (
          select client_id from client
          where client.client_id = a.client_id and client.disabled_at is null
            and (a.version is null or client.version = a.version)
          for update
        ) k
      ),
      failed as (
        select f.entry, 'jti_fresh' as guard from fresh_in f
          where (select true from spent_jti s where s.issuer = f.issuer and s.jti = f.jti)
        union
        select l.entry, 'tokens_live' from live_in l
          where (select true from live_token t where t.jti = l.jti) is null
        union
        select g.entry, 'consent_current' from current_in g
          where (select true from consent c where c.id = g.id and c.version = g.version
            and c.withdrawn_at is null and (c.expires_at is null or c.expires_at > g.now_seconds)) is null
        union
        select a.entry, 'consent_current' from added_in a
          where (select true from consent c where c.id = a.id)
        union
        select w.entry, 'consent_current' from withdrawn_in w
          where (select true from standing s where s.id = w.id) is null
        union
        select r.entry, 'consent_current' from replaced_in r
          where (select true from standing_version s where s.id = r.id) is null
        union
        select k.entry, 'client_current' from client_in k
          where (select true from client c where c.client_id = k.client_id)
        union
        select s.entry, 'client_current' from secret_in s
          where (select true from client_secret c where c.digest = s.digest)
        union
        select a.entry, 'client_current' from altered_in a
          where (select true from standing_client s where s.client_id = a.client_id) is null
      ),
      -- All or nothing: the chain has no room for a gap.
      event_out as (
        insert into event (log, seq, id, time_ms, type, body, prev, hash)
        select log, seq, id, time_ms, type, body, prev, hash from event_in
        where not exists (select from failed) order by seq
      ),
      term_out as (
        insert into event_term (term, time_ms, log, seq)
        select t.term, e.time_ms, e.log, e.seq
        from event_in e cross join lateral json_array_elements_text(e.terms) as t (term)
        where not exists (select from failed)
      ),
      checkpoint_out as (
        insert into checkpoint (log, tree_size, time_ms, jws)
        select log, tree_size, time_ms, jws from checkpoint_in where not exists (select from failed)
        on conflict do nothing
      ),
      token_out as (
        insert into token (jti, client_id, subject, origin_iss, origin_sub, audience, scope, chain, may_act,
          ancestors, rule_id, consent_id, issued_at, expires_at, event_id)
        select jti, client_id, subject, origin_iss, origin_sub, audience, scope, chain::json, may_act::json,
          ancestors::json, rule_id, consent_id, issued_at, expires_at, event_id
        from token_in where not exists (select from failed)
      ),
      -- In one order everywhere, or two instances with the same two would wait for each other.
      spent_out as (
        insert into spent_jti (issuer, jti, expires_at, event_id)
        select issuer, jti, expires_at, event_id from fresh_in
        where not exists (select from failed) order by issuer collate "C", jti collate "C"
      ),
      added_out as (
        insert into consent (id, version, origin_iss, origin_sub, actor, targets, scopes, expires_at)
        select id, version, origin_iss, origin_sub, actor, targets::json, scopes::json, expires_at
        from added_in where not exists (select from failed)
      ),
      replaced_out as (
        update consent c set version = r.version, targets = r.targets::json, scopes = r.scopes::json,
          expires_at = r.expires_at
        from replaced_in r where c.id = r.id and not exists (select from failed)
      ),
      withdrawn_out as (
        update consent c set withdrawn_at = w.at_seconds, version = c.version + 1
        from withdrawn_in w where c.id = w.id and not exists (select from failed)
      ),
      client_out as (
        insert into client (client_id, version, method, grant_types, workload, default_target, created_at)
        select client_id, 1, method, grant_types::json, workload, default_target, created_at
        from client_in where not exists (select from failed)
      ),
      altered_out as (
        update client c set disabled_at = a.disabled_at, version = c.version + 1
        from altered_in a where c.client_id = a.client_id and not exists (select from failed)
      ),
      -- No secret is in both: one that has ended is removed, one that lasts longer ends earlier.
      removed_out as (
        delete from client_secret s using altered_in a
        where s.client_id = a.client_id and least(s.expires_at, a.older_end) <= a.at_seconds
          and not exists (select from failed)
      ),
      ended_out as (
        update client_secret s set expires_at = a.older_end from altered_in a
        where s.client_id = a.client_id and a.older_end > a.at_seconds
          and (s.expires_at is null or s.expires_at > a.older_end) and not exists (select from failed)
      ),
      secret_out as (
        insert into client_secret (client_id, digest, created_at, expires_at)
        select client_id, digest, created_at, expires_at from secret_in
        where not exists (select from failed)
      )
    select entry, guard from failed order by entry, guard`;
  return failures.map(({ entry, guard }) => ({ entry, guard }));
}

// --- migrations -------------------------------------------------------------------------------------------------

/** Any number; the same for every instance. */
const MIGRATION_LOCK = 7_220_863;

/**
 * A text of several statements is one transaction to the server. The lock makes instances that start at once
 * take turns; who comes second meets the number of what is already done, and nothing of its text stays.
 */
async function migrate(url: string): Promise<void> {
  const migrations = loadMigrations("postgres");
  const database = openDatabase({ url, timeoutMs: MIGRATION_TIMEOUT_MS, connectionsMax: 1 });
  const lock = `select pg_advisory_xact_lock(${MIGRATION_LOCK});`;
  try {
    await database.call((sql) =>
      sql.unsafe(`${lock} create table if not exists migration (number bigint primary key)`),
    );
    const [row] = await database.call(
      (sql) => sql<{ done: number }[]>`select coalesce(max(number), 0) as done from migration`,
    );
    for (const { number, text } of pendingMigrations(migrations, row?.done ?? 0)) {
      await database.call(async (sql) => {
        try {
          await sql.unsafe(`${lock} insert into migration (number) values (${number}); ${text}`);
        } catch (error) {
          if (!isUniqueViolation(error) || error.constraint_name !== "migration_pkey") throw error;
        }
      });
    }
  } finally {
    await database.close();
  }
}

// --- connections ------------------------------------------------------------------------------------------------

export type Sql = postgres.Sql<{ bigint: number }>;

type Pool = {
  sql: Sql;
  sockets: Socket[];
  retired: boolean;
  /** It has answered once. */
  works: boolean;
};

type Database = {
  /** Runs one unit of work; throws StoreUnavailable at the deadline, whatever the driver does. */
  call<T>(work: (sql: Sql) => PromiseLike<T>): Promise<T>;
  close(): Promise<void>;
};

type DatabaseOptions = { url: string; timeoutMs: number; connectionsMax: number };

function openDatabase({ url, timeoutMs, connectionsMax }: DatabaseOptions): Database {
  const pools = new Set<Pool>();
  let current: Pool | undefined;
  let notBeforeMs = 0;
  let closed = false;

  function pool(): Pool {
    if (closed) throw new StoreUnavailable("the database connection is closed");
    if (current !== undefined) return current;
    // A server that is away is asked again at intervals, however many callers there are.
    if (performance.now() < notBeforeMs) throw new StoreUnavailable("the database was away a moment ago");
    current = openPool();
    pools.add(current);
    return current;
  }

  function openPool(): Pool {
    const options = {
      max: connectionsMax,
      // A lost connection ends its pool, so it must not be lost on purpose.
      idle_timeout: 0,
      max_lifetime: 0,
      connect_timeout: Math.ceil(timeoutMs / 1000),
      fetch_types: false,
      onnotice: () => {},
      onclose: () => retire(opened),
      // Ours, to be able to cut it, and to bound the driver's attempts: if the server hangs up during the start of
      // a connection, it would connect again without end or pause.
      socket: ({ host, port, path }: { host: string[]; port: number[]; path: string | false }) => {
        if (opened.retired || opened.sockets.length === connectionsMax) throw new Error("no more attempts");
        const name = host[0] ?? "";
        const socket = path ? connect(path) : connect({ host: name, port: port[0] ?? 0 });
        opened.sockets.push(socket);
        // Where the driver looks for the name to ask for and verify in TLS.
        return Object.assign(socket, { host: name, port: port[0] });
      },
      connection: {
        application_name: "mandate",
        statement_timeout: timeoutMs,
        // AUDIT-D-1: on disk before the answer, and each statement for itself, whatever the database's defaults.
        synchronous_commit: "on",
        default_transaction_isolation: "read committed" as const,
      },
      types: {
        // Counters and times, all within the safe integers.
        bigint: { to: 20, from: [20], serialize: (number: number) => String(number), parse: Number },
      },
    };
    const sql: Sql = postgres(url, options);
    if (sql.options.host.length > 1) throw new Error("the database URL names several hosts");
    const opened: Pool = { sql, sockets: [], retired: false, works: false };
    return opened;
  }

  /** Takes no new work; what is in flight has its own deadline, and then the connections are cut. */
  function retire(old: Pool): void {
    if (old.retired) return;
    old.retired = true;
    if (current === old) {
      current = undefined;
      if (!old.works) notBeforeMs = performance.now() + STORE_RETRY_MS;
    }
    setTimeout(cut, timeoutMs, old).unref();
  }

  function cut(old: Pool): void {
    for (const socket of old.sockets) socket.destroy();
    pools.delete(old);
  }

  return {
    async call(work) {
      const used = pool();
      const { promise: deadline, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(
        reject,
        timeoutMs,
        new StoreUnavailable("the database did not answer in time"),
      );
      try {
        const value = await Promise.race([work(used.sql), deadline]);
        used.works = true;
        return value;
      } catch (error) {
        const fault = toFault(error);
        if (fault instanceof StoreUnavailable) retire(used);
        throw fault;
      } finally {
        clearTimeout(timer);
      }
    },
    async close() {
      closed = true;
      await current?.sql.end({ timeout: timeoutMs / 1000 });
      for (const open of pools) cut(open);
    },
  };
}

/** The driver's errors hold the statement and its parameters, so only their codes go on. */
function toFault(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof LogConflict) return error;
  if (!(error instanceof postgres.PostgresError)) {
    return new StoreUnavailable(`the connection to the database failed (${codeOf(error)})`);
  }
  const { code, constraint_name: constraint = "" } = error;
  // Bad data, a broken constraint, bad SQL: our mistake, and the same tomorrow.
  if (/^(22|23|42)/.test(code)) return new Error(`the database refused a statement (${code} ${constraint})`);
  return new StoreUnavailable(`the database answered ${code}`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "no code";
}

function isUniqueViolation(error: unknown): error is postgres.PostgresError {
  return error instanceof postgres.PostgresError && error.code === UNIQUE_VIOLATION;
}
