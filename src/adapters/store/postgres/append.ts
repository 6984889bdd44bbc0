/** The one statement that writes the journal on PostgreSQL: guards and writes of a batch, all or nothing. */
import { LAST_TOKEN_LAG_SECONDS } from "../../../limits/clients.ts";
import { isFreshGuard, spentJti } from "../encoding.ts";
import { toCheckpointRow, toConsentRow, toEventRow, toTokenRow } from "../rows.ts";
import type { GuardFailure, StoreEntry } from "../store.ts";
import { LogConflict } from "../store.ts";
import { endingsOf, toEndingRow } from "../token-facts.ts";
import type { ChangeRows } from "./client-changes.ts";
import { changedBy, changesFailed, changesIn, changesOut, toChangeRows } from "./client-changes.ts";
import type { FamilyChangeRows } from "./families.ts";
import { familiesFailed, familiesIn, familiesOut, toFamilyChangeRows } from "./families.ts";
import { isUniqueViolation } from "./faults.ts";
import { keysFailed, keysIn, keysOut, toKeyRows } from "./keys.ts";
import type { Sql } from "./pool.ts";
import type { RowChangeRows } from "./short-lived.ts";
import { rowsFailed, rowsIn, rowsOut, toRowChangeRows } from "./short-lived.ts";

/**
 * Guards and writes see the same snapshot. A conflict with what another instance commits after it violates a unique
 * key; then the statement runs once more, and its guards name the conflict.
 */
export async function appendBatch(sql: Sql, batch: readonly StoreEntry[]): Promise<readonly GuardFailure[]> {
  const rows = toRows(batch);
  const parts: Parts = {
    changes: toChangeRows(batch),
    signingKeys: toKeyRows(batch),
    families: toFamilyChangeRows(batch),
    shortLived: toRowChangeRows(batch),
  };
  try {
    return await write(sql, rows, parts);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    if (error.constraint_name === "event_pkey") throw new LogConflict("a position in the log is taken");
    return await write(sql, rows, parts);
  }
}

type Rows = Record<
  | "event"
  | "token"
  | "fresh"
  | "keys"
  | "current"
  | "added"
  | "replaced"
  | "withdrawn"
  | "checkpoint"
  | "ending"
  | "changed",
  string
>;

function toRows(batch: readonly StoreEntry[]): Rows {
  const events: object[] = [];
  const tokens: object[] = [];
  const fresh: object[] = [];
  const keys: object[] = [];
  const current: object[] = [];
  const added: object[] = [];
  const replaced: object[] = [];
  const withdrawn: object[] = [];
  const checkpoints: object[] = [];
  const endings: object[] = [];
  for (const [entry, each] of batch.entries()) {
    const { event, token, guards = [], consent, checkpoint } = each;
    events.push(toEventRow(event));
    if (checkpoint !== undefined) checkpoints.push(toCheckpointRow(checkpoint));
    if (token !== undefined) tokens.push({ ...toTokenRow(token), event_id: event.id });
    for (const guard of guards) {
      if (isFreshGuard(guard)) {
        const { kind, issuer } = guard;
        const spent = { jti: spentJti(guard.jti), expires_at: Math.ceil(guard.expiresAtSeconds) };
        fresh.push({ entry, guard: kind, issuer, ...spent, event_id: event.id });
      } else if (guard.kind === "not_ended" || guard.kind === "key_stands") {
        for (const { key, sinceMs } of guard.keys)
          keys.push({ entry, guard: guard.kind, key, since: sinceMs });
      } else {
        const now = Math.floor(guard.nowSeconds);
        current.push({ entry, id: guard.id, version: guard.version, now_seconds: now });
      }
    }
    for (const ending of endingsOf(each)) endings.push(toEndingRow(ending, event));
    if (consent !== undefined && "add" in consent) {
      const given_at = Math.floor(event.timeMs / 1000);
      added.push({ entry, ...toConsentRow(consent.add), given_at });
    } else if (consent !== undefined && "replace" in consent) {
      replaced.push({ entry, ...toConsentRow(consent.replace) });
    } else if (consent !== undefined) {
      withdrawn.push({ entry, id: consent.withdraw, at_seconds: consent.atSeconds });
    }
  }
  const lists = {
    event: events,
    token: tokens,
    fresh,
    keys,
    current,
    added,
    replaced,
    withdrawn,
    checkpoint: checkpoints,
    ending: endings,
    changed: changedBy(batch),
  };
  return Object.fromEntries(
    Object.entries(lists).map(([name, list]) => [name, JSON.stringify(list)]),
  ) as Rows;
}

/** Of changes that few batches have: absent where this one has none. */
type Parts = {
  changes: ChangeRows | undefined;
  signingKeys: string | undefined;
  families: FamilyChangeRows | undefined;
  shortLived: RowChangeRows | undefined;
};

/**
 * Each guard is a scalar subquery, which PostgreSQL answers with a key look-up for each row, and each change names its
 * rows as `= any(array(…))`, which it answers in the same way. For a join it would choose a scan while the tables are
 * empty or not analysed, and keep that plan when they grow.
 */
async function write(
  sql: Sql,
  rows: Rows,
  { changes, signingKeys, families, shortLived }: Parts,
): Promise<readonly GuardFailure[]> {
  const found = await sql<(GuardFailure | { guard: "gap" })[]>`
    with
      event_in as (
        select * from json_to_recordset(${rows.event}::text::json) as e
          (log text, seq bigint, id text, time_ms bigint, type text, body text, prev text, hash text)
      ),
      checkpoint_in as (
        select * from json_to_recordset(${rows.checkpoint}::text::json) as c
          (log text, tree_size bigint, time_ms bigint, jws text)
      ),
      token_in as (
        select * from json_to_recordset(${rows.token}::text::json) as t
          (jti text, client_id text, workload text, subject text, origin_iss text, origin_sub text, audience text,
           scope text, chain text, may_act text, ancestors text, rule_id text, consent_id text, confirmation text,
           issued_at bigint, expires_at bigint, ending_keys text, event_id text)
      ),
      fresh_in as (
        select * from json_to_recordset(${rows.fresh}::text::json) as f
          (entry int, guard text, issuer text, jti text, expires_at bigint, event_id text)
      ),
      keys_in as (
        select * from json_to_recordset(${rows.keys}::text::json) as k (entry int, guard text, key text, since bigint)
      ),
      ending_in as (
        select * from json_to_recordset(${rows.ending}::text::json) as e
          (key text, cut_off bigint, event_id text, at_ms bigint, expires_at bigint, reason text)
      ),
      current_in as (
        select * from json_to_recordset(${rows.current}::text::json) as c
          (entry int, id text, version bigint, now_seconds bigint)
      ),
      added_in as (
        select * from json_to_recordset(${rows.added}::text::json) as a
          (entry int, id text, version bigint, origin_iss text, origin_sub text, actor text, targets text,
           scopes text, expires_at bigint, given_at bigint)
      ),
      replaced_in as (
        select * from json_to_recordset(${rows.replaced}::text::json) as r
          (entry int, id text, version bigint, targets text, scopes text, expires_at bigint)
      ),
      withdrawn_in as (
        select * from json_to_recordset(${rows.withdrawn}::text::json) as w
          (entry int, id text, at_seconds bigint)
      ),
      -- Locked, so that of two concurrent withdrawals the second finds the consent withdrawn.
      standing as (
        select c.id from withdrawn_in w
        cross join lateral (
          select id from consent where consent.id = w.id and withdrawn_at is null for update
        ) c
      ),
      -- Locked, so that a replacement concurrent with another change finds a different version.
      standing_version as (
        select c.id from replaced_in r
        cross join lateral (
          select id from consent
          where consent.id = r.id and consent.withdrawn_at is null and consent.version = r.version - 1
          for update
        ) c
      ),
      ${changes ? changesIn(sql, changes) : sql``}
      ${signingKeys ? keysIn(sql, signingKeys) : sql``}
      ${families ? familiesIn(sql, families) : sql``}
      ${shortLived ? rowsIn(sql, shortLived) : sql``}
      -- The store may have gone back: a log that continues behind records that are gone has a gap.
      failed as (
        select 0 as entry, 'gap' as guard from event_in e
          where e.seq = (select min(seq) from event_in) and e.seq > 0
            and (select true from event p where p.log = e.log and p.seq = e.seq - 1 and p.hash = e.prev) is null
        union
        select f.entry, f.guard from fresh_in f
          where (select true from spent_jti s where s.issuer = f.issuer and s.jti = f.jti)
        union
        select k.entry, k.guard from keys_in k
          where (select true from ending e where e.key = k.key and e.cut_off >= k.since limit 1)
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
        ${changes ? changesFailed(sql) : sql``}
        ${signingKeys ? keysFailed(sql) : sql``}
        ${families ? familiesFailed(sql) : sql``}
        ${shortLived ? rowsFailed(sql) : sql``}
      ),
      -- All or nothing, because the chain of events must not have gaps.
      event_out as (
        insert into event (log, seq, id, time_ms, type, body, prev, hash)
        select log, seq, id, time_ms, type, body, prev, hash from event_in
        where not exists (select from failed) order by seq
      ),
      checkpoint_out as (
        insert into checkpoint (log, tree_size, time_ms, jws)
        select log, tree_size, time_ms, jws from checkpoint_in where not exists (select from failed)
        on conflict do nothing
      ),
      token_out as (
        insert into token (jti, client_id, workload, subject, origin_iss, origin_sub, audience, scope, chain, may_act,
          ancestors, rule_id, consent_id, confirmation, issued_at, expires_at, ending_keys, event_id)
        select jti, client_id, workload, subject, origin_iss, origin_sub, audience, scope, chain::json,
          may_act::json, ancestors::json, rule_id, consent_id, confirmation, issued_at, expires_at,
          ending_keys::json, event_id
        from token_in where not exists (select from failed)
      ),
      ending_out as (
        insert into ending (key, cut_off, event_id, at_ms, expires_at, reason)
        select key, cut_off, event_id, at_ms, expires_at, reason from ending_in where not exists (select from failed)
      ),
      -- In the same order in every statement, so that two instances cannot deadlock on the same two rows.
      spent_out as (
        insert into spent_jti (issuer, jti, expires_at, event_id)
        select issuer, jti, expires_at, event_id from fresh_in
        where not exists (select from failed) order by issuer collate "C", jti collate "C"
      ),
      added_out as (
        insert into consent (id, version, origin_iss, origin_sub, actor, targets, scopes, expires_at, given_at)
        select id, version, origin_iss, origin_sub, actor, targets::json, scopes::json, expires_at, given_at
        from added_in where not exists (select from failed)
      ),
      replaced_out as (
        update consent c set (version, targets, scopes, expires_at) = (
          select r.version, r.targets::json, r.scopes::json, r.expires_at from replaced_in r where r.id = c.id
        )
        where id = any(array(select id from replaced_in)) and not exists (select from failed)
      ),
      withdrawn_out as (
        update consent c set version = version + 1,
          withdrawn_at = (select w.at_seconds from withdrawn_in w where w.id = c.id)
        where id = any(array(select id from withdrawn_in)) and not exists (select from failed)
      ),
      ${changes ? changesOut(sql) : sql``}
      ${signingKeys ? keysOut(sql) : sql``}
      ${families ? familiesOut(sql) : sql``}
      ${shortLived ? rowsOut(sql) : sql``}
      -- Skips locked rows: the transaction that holds one records a token of the same client too, or changes it.
      used as (
        select k.client_id, t.issued_at from (
          select client_id, max(issued_at) as issued_at from token_in
          where client_id not in (select json_array_elements_text(${rows.changed}::text::json))
          group by client_id
        ) t
        cross join lateral (
          select client_id from client
          where client.client_id = t.client_id and client.source = 'registration'
            and (last_token_at is null or last_token_at <= t.issued_at - ${LAST_TOKEN_LAG_SECONDS}::bigint)
          for update skip locked
        ) k
      ),
      used_out as (
        update client c set last_token_at = (select u.issued_at from used u where u.client_id = c.client_id)
        where client_id = any(array(select client_id from used)) and not exists (select from failed)
      )
    select entry, guard from failed order by entry, guard`;
  return found.map((failure) => {
    if (failure.guard === "gap") throw new LogConflict("the record before is missing");
    return { ...failure };
  });
}
