/** The one statement that writes the journal on PostgreSQL: guards and writes together, all or nothing. */
import type { SecretDigest } from "../ports.ts";
import type { Sql } from "./postgres-pool.ts";
import { isUniqueViolation } from "./postgres-pool.ts";
import { toCheckpointRow, toClientRow, toConsentRow, toEventRow, toSecretRow, toTokenRow } from "./rows.ts";
import type { ClientChange, GuardFailure, StoreEntry } from "./store.ts";
import { LogConflict, spentJti, termKey } from "./store.ts";

/**
 * Guards and writes see one snapshot. What another instance commits after it was taken, a unique key catches;
 * asked once more, the guard names it.
 */
export async function appendBatch(sql: Sql, batch: readonly StoreEntry[]): Promise<readonly GuardFailure[]> {
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
