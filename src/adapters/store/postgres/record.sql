-- Written by `npm run reference` from the sources in src/adapters/store. Change those: columns in tables.ts, lists of
-- rows in journal-rows.ts, guards and writes in journal-statements.ts.
--
-- The statement that writes the journal on PostgreSQL, whole. Its parts, with the lists that each takes and writes:
--   events: before, event
--   endings: checkpoint, ending, lifted, added, replaced, withdrawn
--   tokens: token, used, standing
--   spent ids: fresh
--   held consents: current
--   clients: client, altered, secret, registration, given, spent, initial, revoked
--   keys: key
--   families: family, refresh_token, family_use
--   jobs: job, job_room, counted, issued
--   short-lived rows: short_lived, holder, gone, recheck, subject_email, subject_claims
--   questions: question
--
-- A batch runs the first of these combinations that has the parts of its rows, or else the whole:
--   events
--   events, tokens
--   events, tokens, spent ids
--   events, tokens, spent ids, held consents
--   events, tokens, spent ids, held consents, short-lived rows, families
--   events, tokens, spent ids, held consents, endings, clients

with
before_in as (select * from json_to_recordset($1::text::json) as i
  (entry int, log text, seq bigint, hash text)),
event_in as (select * from json_to_recordset($2::text::json) as i
  (entry int, log text, seq bigint, id text, time_ms bigint, type text, body text, prev text, hash text)),
checkpoint_in as (select * from json_to_recordset($3::text::json) as i
  (entry int, log text, tree_size bigint, time_ms bigint, jws text)),
token_in as (select * from json_to_recordset($4::text::json) as i
  (entry int, jti text, client_id text, workload text, subject text, origin_iss text, origin_sub text,
   audience text, scope text, details text, chain text, may_act text, ancestors text, rule_id text,
   consent_id text, job_id text, job_iss text, job_ends_at bigint, claims text, confirmation text,
   issued_at bigint, expires_at bigint, ending_keys text, event_id text)),
used_in as (select * from json_to_recordset($5::text::json) as i
  (entry int, client_id text, issued_at bigint)),
fresh_in as (select * from json_to_recordset($6::text::json) as i
  (entry int, issuer text, jti text, expires_at bigint, event_id text, guard text)),
standing_in as (select * from json_to_recordset($7::text::json) as i
  (entry int, guard text, keys text)),
current_in as (select * from json_to_recordset($8::text::json) as i
  (entry int, id text, version bigint, now_seconds bigint)),
ending_in as (select * from json_to_recordset($9::text::json) as i
  (entry int, key text, cut_off bigint, event_id text, at_ms bigint, expires_at bigint, reason text)),
lifted_in as (select * from json_to_recordset($10::text::json) as i
  (entry int, key text, cut_off bigint, at_ms bigint, expires_at bigint)),
added_in as (select * from json_to_recordset($11::text::json) as i
  (entry int, id text, version bigint, origin_iss text, origin_sub text, actor text, targets text,
   scopes text, details text, expires_at bigint, job_id text, job_iss text, given_at bigint)),
replaced_in as (select * from json_to_recordset($12::text::json) as i
  (entry int, id text, version bigint, targets text, scopes text, expires_at bigint)),
withdrawn_in as (select * from json_to_recordset($13::text::json) as i
  (entry int, id text, at_seconds bigint)),
client_in as (select * from json_to_recordset($14::text::json) as i
  (entry int, client_id text, source text, version bigint, method text, grant_types text, workload text,
   default_target text, created_at bigint, disabled_at bigint, metadata text, registration_class text,
   ceiling text, token_generation bigint, guard text, clients_max bigint)),
altered_in as (select * from json_to_recordset($15::text::json) as i
  (entry int, client_id text, version bigint, older_end bigint, at_seconds bigint, disabled_at bigint)),
secret_in as (select * from json_to_recordset($16::text::json) as i
  (entry int, client_id text, digest text, created_at bigint, expires_at bigint)),
registration_in as (select * from json_to_recordset($17::text::json) as i
  (entry int, client_id text, metadata text, ceiling text, token_generation bigint, disabled_at bigint,
   version bigint, method text, grant_types text, unused_since bigint, digests text)),
given_in as (select * from json_to_recordset($18::text::json) as i
  (entry int, client_id text, digest text, created_at bigint, expires_at bigint)),
spent_in as (select * from json_to_recordset($19::text::json) as i
  (entry int, id text, now_seconds bigint)),
initial_in as (select * from json_to_recordset($20::text::json) as i
  (entry int, id text, digest text, registration_class text, ceiling text, uses bigint, uses_max bigint,
   created_at bigint, expires_at bigint, revoked_at bigint)),
revoked_in as (select * from json_to_recordset($21::text::json) as i
  (entry int, id text, revoked_at bigint)),
key_in as (select * from json_to_recordset($22::text::json) as i
  (entry int, kid text, since bigint, replace_at bigint, from_state text, was text, to_state text,
   private_jwe text)),
family_in as (select * from json_to_recordset($23::text::json) as i
  (entry int, body text, id text, client_id text, origin_iss text, origin_sub text, generation bigint,
   used_at bigint, idle_ends_at bigint, ends_at bigint, job_id text, ending_keys text)),
refresh_token_in as (select * from json_to_recordset($24::text::json) as i
  (entry int, digest text, family_id text, generation bigint)),
family_use_in as (select * from json_to_recordset($25::text::json) as i
  (entry int, id text, current bigint, used_at bigint, idle_ends_at bigint, rotates bigint, sealed text,
   rotated_by text, window_ms bigint, elsewhere bigint)),
job_in as (select * from json_to_recordset($26::text::json) as i
  (entry int, body text, id text, origin_iss text, origin_sub text, client_id text, actor text, asked text,
   created_at bigint, not_after bigint, issued bigint, ending_keys text)),
job_room_in as (select * from json_to_recordset($27::text::json) as i
  (entry int, origin_iss text, origin_sub text, actor text, created_at bigint, pair_max bigint,
   actor_max bigint)),
counted_in as (select * from json_to_recordset($28::text::json) as i
  (entry int, id text, nth bigint, most bigint)),
issued_in as (select * from json_to_recordset($29::text::json) as i
  (entry int, id text, count bigint)),
short_lived_in as (select * from json_to_recordset($30::text::json) as i
  (entry int, kind text, key text, version bigint, browser text, job_id text, body text, expires_at bigint)),
holder_in as (select * from json_to_recordset($31::text::json) as i
  (entry int, kind text, browser text, kept bigint)),
gone_in as (select * from json_to_recordset($32::text::json) as i
  (entry int, kind text, key text)),
recheck_in as (select * from json_to_recordset($33::text::json) as i
  (entry int, origin_iss text, origin_sub text, version bigint, provider text, confirmed_at bigint,
   asked_at bigint, sealed text, expires_at bigint)),
subject_email_in as (select * from json_to_recordset($34::text::json) as i
  (entry int, origin_iss text, origin_sub text, email text, issued_at bigint, expires_at bigint)),
subject_claims_in as (select * from json_to_recordset($35::text::json) as i
  (entry int, origin_iss text, origin_sub text, true_at bigint, stale bigint, said text, expires_at bigint)),
question_in as (select * from json_to_recordset($36::text::json) as i
  (entry int, id text, version bigint, body text, expires_at bigint, polls_recorded bigint, decided bigint)),
replaced_locked as (
  select i.entry, i.id from (select * from replaced_in order by id collate "C") i
  cross join lateral (
    select id from consent
    where id = i.id and withdrawn_at is null and version = i.version - 1
    for update
  ) r
),
withdrawn_locked as (
  select i.entry, i.id from (select * from withdrawn_in order by id collate "C") i
  cross join lateral (
    select id from consent
    where id = i.id and withdrawn_at is null
    for update
  ) r
),
altered_locked as (
  select i.entry, i.client_id from (select * from altered_in order by client_id collate "C") i
  cross join lateral (
    select client_id from client
    where client_id = i.client_id and disabled_at is null and (i.version is null or version = i.version and source = 'operator')
    for update
  ) r
),
registration_locked as (
  select i.entry, i.client_id from (select * from registration_in order by client_id collate "C") i
  cross join lateral (
    select client_id from client
    where client_id = i.client_id and source = 'registration' and disabled_at is null
      and (i.version is null or version = i.version - 1)
      and (i.unused_since is null or coalesce(last_token_at, created_at) <= i.unused_since)
    for update
  ) r
),
-- RFC7591-3-3: of two registrations one has the last use.
spent_locked as (
  select i.entry, i.id from (select * from spent_in order by id collate "C") i
  cross join lateral (
    select id from initial_token
    where id = i.id and revoked_at is null and expires_at > i.now_seconds and uses < uses_max
    for update
  ) r
),
revoked_locked as (
  select i.entry, i.id from (select * from revoked_in order by id collate "C") i
  cross join lateral (
    select id from initial_token
    where id = i.id and revoked_at is null
    for update
  ) r
),
key_locked as (
  select i.entry, i.kid from (select * from key_in order by kid collate "C") i
  cross join lateral (
    select kid from signing_key
    where kid = i.kid and state = i.from_state and (i.was is null or private_jwe = i.was)
    for update
  ) r
),
-- REFRESH-D-4: of two refreshes the second finds another generation.
family_use_locked as (
  select i.entry, i.id from (select * from family_use_in order by id collate "C") i
  cross join lateral (
    select id from refresh_family
    where id = i.id and generation = i.current and elsewhere + i.elsewhere <= 1
      and (i.window_ms is null or (extract(epoch from clock_timestamp()) * 1000)::bigint - rotated_ms <= i.window_ms)
    for update
  ) r
),
-- PAGE-D-23: of two decisions the second finds another version.
question_locked as (
  select i.entry, i.id from (select * from question_in order by id collate "C") i
  cross join lateral (
    select id from pending_consent
    where id = i.id and version = i.version - 1
    for update
  ) r
),
-- JOB-D-11: of two tokens that are issued at the same time the second finds the count of the first.
counted_locked as (
  select i.entry, i.id from (select * from counted_in order by id collate "C") i
  cross join lateral (
    select id from job
    where id = i.id and issued + i.nth <= i.most
    for update
  ) r
),
failed as (
  -- The store may have gone back: a log that continues behind records that are gone has a gap.
  select i.entry, 'gap' as guard from before_in i
    where (select true from event where log = i.log and seq = i.seq and hash = i.hash) is null
  union
  -- RFC7523-3-14, IDC-5.5-2, RFC9449-11.1-2: what was used is not used again.
  select i.entry, i.guard as guard from fresh_in i
    where (select true from spent_jti where issuer = i.issuer and jti = i.jti)
  union
  select i.entry, 'consent_current' as guard from added_in i
    where (select true from consent where id = i.id)
  union
  select i.entry, 'consent_current' as guard from replaced_in i
    where (select true from replaced_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  select i.entry, 'consent_current' as guard from withdrawn_in i
    where (select true from withdrawn_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  select i.entry, i.guard as guard from client_in i
    where (select true from client where client_id = i.client_id)
  union
  select i.entry, 'client_current' as guard from altered_in i
    where (select true from altered_locked l where l.entry = i.entry and l.client_id = i.client_id) is null
  union
  select i.entry, 'client_current' as guard from secret_in i
    where (select true from client_secret where digest = i.digest)
  union
  select i.entry, 'registration_current' as guard from registration_in i
    where (select true from registration_locked l where l.entry = i.entry and l.client_id = i.client_id) is null
  union
  select i.entry, 'initial_token_usable' as guard from spent_in i
    where (select true from spent_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  select i.entry, 'initial_token_current' as guard from revoked_in i
    where (select true from revoked_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  select i.entry, 'key_current' as guard from key_in i
    where (select true from key_locked l where l.entry = i.entry and l.kid = i.kid) is null
  union
  select i.entry, 'family_current' as guard from family_use_in i
    where (select true from family_use_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  select i.entry, 'row_new' as guard from short_lived_in i
    where (select true from short_lived where kind = i.kind and key = i.key)
  union
  select i.entry, 'question_current' as guard from question_in i
    where (select true from question_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  select i.entry, i.guard as guard from standing_in i
    where (select true from json_each_text(i.keys::json) k
      where (select true from ending where key = k.key and cut_off >= k.value::bigint limit 1) limit 1)
  union
  select i.entry, 'consent_current' as guard from current_in i
    where (select true from consent where id = i.id and version = i.version and withdrawn_at is null
      and (expires_at is null or expires_at > i.now_seconds)) is null
  union
  -- RFC7591-3.2.1-4: no two clients have the same secret.
  select i.entry, 'registration_current' as guard from given_in i
    where (select client_id from client_secret where digest = i.digest) <> i.client_id
  union
  select i.entry, 'registrations_below' as guard from client_in i
    where i.clients_max <= (select count(*) from client
        where source = 'registration' and disabled_at is null and registration_class = i.registration_class)
  union
  select i.entry, 'initial_token_current' as guard from initial_in i
    where (select true from initial_token where id = i.id or digest = i.digest limit 1)
  union
  select i.entry, 'job_below' as guard from counted_in i
    where (select true from counted_locked l where l.entry = i.entry and l.id = i.id) is null
  union
  -- JOB-D-24: two instances that count at the same time take the same turn, which only one of them gets.
  select i.entry, 'jobs_below' as guard from job_room_in i
    where i.pair_max <= (select count(*) from (select 1 from job j
      where j.origin_iss = i.origin_iss and j.origin_sub = i.origin_sub and j.actor = i.actor and j.created_at >= cast(i.created_at as bigint) - 2592000 and j.not_after > i.created_at
        and (select true from json_each_text(j.ending_keys) k
          where (select true from ending where key = k.key and cut_off >= cast(k.value as bigint) limit 1) limit 1) is null
      limit i.pair_max) c)
      or i.actor_max <= (select count(*) from (select 1 from job j
      where  j.actor = i.actor and j.created_at >= cast(i.created_at as bigint) - 2592000 and j.not_after > i.created_at
        and (select true from json_each_text(j.ending_keys) k
          where (select true from ending where key = k.key and cut_off >= cast(k.value as bigint) limit 1) limit 1) is null
      limit i.actor_max) c)
),
event_out as (
  insert into event
    (log, seq, id, time_ms, type, body, prev, hash)
  select i.log, i.seq, i.id, i.time_ms, i.type, i.body, i.prev, i.hash
  from event_in i
  where not exists (select from failed)
  order by seq
),
checkpoint_out as (
  insert into checkpoint
    (log, tree_size, time_ms, jws)
  select i.log, i.tree_size, i.time_ms, i.jws
  from checkpoint_in i
  where not exists (select from failed)
  on conflict do nothing
),
token_out as (
  insert into token
    (jti, client_id, workload, subject, origin_iss, origin_sub, audience, scope, details, chain, may_act,
     ancestors, rule_id, consent_id, job_id, job_iss, job_ends_at, claims, confirmation, issued_at,
     expires_at, ending_keys, event_id)
  select i.jti, i.client_id, i.workload, i.subject, i.origin_iss, i.origin_sub, i.audience, i.scope, i.details,
    i.chain::json, i.may_act::json, i.ancestors::json, i.rule_id, i.consent_id, i.job_id, i.job_iss,
    i.job_ends_at, i.claims, i.confirmation, i.issued_at, i.expires_at, i.ending_keys::json, i.event_id
  from token_in i
  where not exists (select from failed)
),
ending_out as (
  insert into ending
    (key, cut_off, event_id, at_ms, expires_at, reason)
  select i.key, i.cut_off, i.event_id, i.at_ms, i.expires_at, i.reason
  from ending_in i
  where not exists (select from failed)
),
lifted_out as (
  update ending t
  set (cut_off, expires_at) = (
    select i.cut_off, i.expires_at
    from lifted_in i where i.key = t.key
  )
  where t.key = any(array(select key from lifted_in))
    and (select t.cut_off = 9007199254740991 and t.at_ms <= i.at_ms
      from lifted_in i where i.key = t.key)
    and not exists (select from failed)
),
fresh_out as (
  insert into spent_jti
    (issuer, jti, expires_at, event_id)
  select i.issuer, i.jti, i.expires_at, i.event_id
  from fresh_in i
  where not exists (select from failed)
  order by issuer collate "C", jti collate "C"
),
added_out as (
  insert into consent
    (id, version, origin_iss, origin_sub, actor, targets, scopes, details, expires_at, job_id, job_iss,
     given_at)
  select i.id, i.version, i.origin_iss, i.origin_sub, i.actor, i.targets::json, i.scopes::json, i.details,
    i.expires_at, i.job_id, i.job_iss, i.given_at
  from added_in i
  where not exists (select from failed)
),
replaced_out as (
  update consent t
  set (version, targets, scopes, expires_at) = (
    select i.version, i.targets::json, i.scopes::json, i.expires_at
    from replaced_in i where i.id = t.id
  )
  where t.id = any(array(select id from replaced_in))
    and not exists (select from failed)
),
withdrawn_out as (
  update consent t
  set (version, withdrawn_at) = (
    select t.version + 1, i.at_seconds
    from withdrawn_in i where i.id = t.id
  )
  where t.id = any(array(select id from withdrawn_in))
    and not exists (select from failed)
),
client_out as (
  insert into client
    (client_id, source, version, method, grant_types, workload, default_target, created_at, disabled_at,
     metadata, registration_class, ceiling, token_generation)
  select i.client_id, i.source, i.version, i.method, i.grant_types::json, i.workload, i.default_target,
    i.created_at, i.disabled_at, i.metadata::json, i.registration_class, i.ceiling::json, i.token_generation
  from client_in i
  where not exists (select from failed)
),
altered_out as (
  update client t
  set (version, disabled_at) = (
    select t.version + 1, i.disabled_at
    from altered_in i where i.client_id = t.client_id
  )
  where t.client_id = any(array(select client_id from altered_in))
    and not exists (select from failed)
),
-- Two disjoint sets: expired secrets are removed, and those that last longer than older_end are shortened.
expired_out as (
  delete from client_secret t
  where t.client_id = any(array(select client_id from altered_in))
    and (select t.expires_at <= i.at_seconds or i.older_end <= i.at_seconds
      from altered_in i where i.client_id = t.client_id)
    and not exists (select from failed)
),
ended_out as (
  update client_secret t
  set (expires_at) = (
    select i.older_end
    from altered_in i where i.client_id = t.client_id
  )
  where t.client_id = any(array(select client_id from altered_in))
    and (select i.older_end > i.at_seconds and (t.expires_at is null or t.expires_at > i.older_end)
      from altered_in i where i.client_id = t.client_id)
    and not exists (select from failed)
),
secret_out as (
  insert into client_secret
    (client_id, digest, created_at, expires_at)
  select i.client_id, i.digest, i.created_at, i.expires_at
  from secret_in i
  where not exists (select from failed)
),
-- RFC7592-2.2-3: an update replaces the metadata. RFC7592-5-5: a removal clears metadata and secrets.
registration_out as (
  update client t
  set (version, disabled_at, metadata, ceiling, token_generation, method, grant_types) = (
    select t.version + 1, i.disabled_at, i.metadata::json, i.ceiling::json, i.token_generation,
    coalesce(i.method, t.method), coalesce(i.grant_types::json, t.grant_types)
    from registration_in i where i.client_id = t.client_id
  )
  where t.client_id = any(array(select client_id from registration_in))
    and not exists (select from failed)
),
-- Secrets that are not listed again are removed; the others get the new expiry.
taken_out as (
  delete from client_secret t
  where t.client_id = any(array(select client_id from registration_in))
    and (select t.digest not in (select json_array_elements_text(i.digests::text::json))
      from registration_in i where i.client_id = t.client_id)
    and not exists (select from failed)
),
kept_out as (
  update client_secret t
  set (expires_at) = (
    select i.expires_at
    from given_in i where i.digest = t.digest
  )
  where t.digest = any(array(select digest from given_in))
    and (select t.expires_at is distinct from i.expires_at
      from given_in i where i.digest = t.digest)
    and not exists (select from failed)
),
given_out as (
  insert into client_secret
    (client_id, digest, created_at, expires_at)
  select i.client_id, i.digest, i.created_at, i.expires_at
  from given_in i
  where (select true from client_secret where digest = i.digest) is null and not exists (select from failed)
),
spent_out as (
  update initial_token t
  set (uses) = (
    select t.uses + 1
    from spent_in i where i.id = t.id
  )
  where t.id = any(array(select id from spent_in))
    and not exists (select from failed)
),
initial_out as (
  insert into initial_token
    (id, digest, registration_class, ceiling, uses, uses_max, created_at, expires_at, revoked_at)
  select i.id, i.digest, i.registration_class, i.ceiling::json, i.uses, i.uses_max, i.created_at, i.expires_at,
    i.revoked_at
  from initial_in i
  where not exists (select from failed)
),
revoked_out as (
  update initial_token t
  set (revoked_at) = (
    select i.revoked_at
    from revoked_in i where i.id = t.id
  )
  where t.id = any(array(select id from revoked_in))
    and not exists (select from failed)
),
key_removed as (
  delete from signing_key t
  where t.kid = any(array(select kid from key_in))
    and (select i.to_state = 'removed'
      from key_in i where i.kid = t.kid)
    and not exists (select from failed)
  returning t.kid
),
key_changed as (
  update signing_key t
  set (state, since, replace_at, private_jwe) = (
    select i.to_state, coalesce(i.since, t.since), coalesce(i.replace_at, t.replace_at),
    coalesce(i.private_jwe, t.private_jwe)
    from key_in i where i.kid = t.kid
  )
  where t.kid = any(array(select kid from key_in))
    and (select i.to_state not in ('active', 'removed')
      from key_in i where i.kid = t.kid)
    and not exists (select from failed)
  returning t.kid
),
-- Written when the others are, because at most one key of a kind is active.
key_activated as (
  update signing_key t
  set (state, since, replace_at, private_jwe) = (
    select i.to_state, coalesce(i.since, t.since), coalesce(i.replace_at, t.replace_at),
    coalesce(i.private_jwe, t.private_jwe)
    from key_in i where i.kid = t.kid
  )
  where t.kid = any(array(select kid from key_in))
    and (select i.to_state = 'active'
      from key_in i where i.kid = t.kid)
    and (select count(*) from key_removed) >= 0
    and (select count(*) from key_changed) >= 0
    and not exists (select from failed)
),
family_out as (
  insert into refresh_family
    (body, id, client_id, origin_iss, origin_sub, generation, used_at, idle_ends_at, ends_at, job_id,
     ending_keys)
  select i.body, i.id, i.client_id, i.origin_iss, i.origin_sub, i.generation, i.used_at, i.idle_ends_at,
    i.ends_at, i.job_id, i.ending_keys::json
  from family_in i
  where not exists (select from failed)
),
refresh_token_out as (
  insert into refresh_token
    (digest, family_id, generation)
  select i.digest, i.family_id, i.generation
  from refresh_token_in i
  where not exists (select from failed)
),
family_use_out as (
  update refresh_family t
  set (used_at, idle_ends_at, generation, rotated_ms, elsewhere, sealed, rotated_by) = (
    select case when t.used_at > i.used_at then t.used_at else i.used_at end,
    case when i.idle_ends_at > t.idle_ends_at then i.idle_ends_at else t.idle_ends_at end,
    t.generation + i.rotates, case when i.rotates = 1 then (extract(epoch from clock_timestamp()) * 1000)::bigint else t.rotated_ms end,
    t.elsewhere + i.elsewhere, case when i.rotates = 1 then i.sealed else t.sealed end,
    case when i.rotates = 1 then i.rotated_by else t.rotated_by end
    from family_use_in i where i.id = t.id
  )
  where t.id = any(array(select id from family_use_in))
    and not exists (select from failed)
),
job_out as (
  insert into job
    (body, id, origin_iss, origin_sub, client_id, actor, asked, created_at, not_after, issued, ending_keys,
     turn)
  select i.body, i.id, i.origin_iss, i.origin_sub, i.client_id, i.actor, i.asked, i.created_at, i.not_after,
    i.issued, i.ending_keys::json, (select coalesce(max(turn), 0) + 1 from job where actor = i.actor)
  from job_in i
  where not exists (select from failed)
),
issued_out as (
  update job t
  set (issued) = (
    select t.issued + i.count
    from issued_in i where i.id = t.id
  )
  where t.id = any(array(select id from issued_in))
    and not exists (select from failed)
),
-- By the key, under which a row is found that another instance renews at the same time; no two kinds share one.
gone_out as (
  delete from short_lived t
  where t.kind = any(array(select kind from gone_in))
    and t.key = any(array(select key from gone_in))
    and not exists (select from failed)
),
-- Without rows that another instance renews, or removes for the same reason.
holder_out as (
  delete from short_lived t
  using unnest(array(select row(kind,key) from (
    select r.* from holder_in i cross join lateral (
      select kind,key from short_lived
      where kind = i.kind and browser = i.browser order by expires_at desc, key limit all offset i.kept
      for update skip locked
    ) r
  ) s)) as p (kind_of text, key_of text)
  where t.kind = p.kind_of and t.key = p.key_of
    and not exists (select from failed)
),
short_lived_out as (
  insert into short_lived
    (kind, key, version, browser, job_id, body, expires_at)
  select i.kind, i.key, i.version, i.browser, i.job_id, i.body, i.expires_at
  from short_lived_in i
  where not exists (select from failed)
),
recheck_out as (
  insert into recheck
    (origin_iss, origin_sub, version, provider, confirmed_at, asked_at, sealed, expires_at)
  select i.origin_iss, i.origin_sub, i.version, i.provider, i.confirmed_at, i.asked_at, i.sealed, i.expires_at
  from recheck_in i
  where not exists (select from failed)
  order by origin_iss collate "C", origin_sub collate "C"
  on conflict (origin_iss, origin_sub) do update
    set version = recheck.version + 1, provider = excluded.provider, confirmed_at = excluded.confirmed_at,
      asked_at = excluded.asked_at, sealed = excluded.sealed, expires_at = excluded.expires_at
),
-- PCL-D-12: the address of the latest token counts, in whatever order they come; the row stays as long as either wants.
subject_email_out as (
  insert into subject_email
    (origin_iss, origin_sub, email, issued_at, expires_at)
  select i.origin_iss, i.origin_sub, i.email, i.issued_at, i.expires_at
  from subject_email_in i
  where not exists (select from failed)
  order by origin_iss collate "C", origin_sub collate "C"
  on conflict (origin_iss, origin_sub) do update set
      email = case when excluded.issued_at < subject_email.issued_at then subject_email.email else excluded.email end,
      issued_at = case when excluded.issued_at < subject_email.issued_at then subject_email.issued_at else excluded.issued_at end,
      expires_at = case when excluded.expires_at < subject_email.expires_at then subject_email.expires_at else excluded.expires_at end
),
-- PCL-D-8: the latest word of the issuer counts, in whatever order they come.
subject_claims_out as (
  insert into subject_claims
    (origin_iss, origin_sub, true_at, stale, said, expires_at)
  select i.origin_iss, i.origin_sub, i.true_at, i.stale, i.said, i.expires_at
  from subject_claims_in i
  where not exists (select from failed)
  order by origin_iss collate "C", origin_sub collate "C"
  on conflict (origin_iss, origin_sub) do update set
      stale = case when excluded.true_at < subject_claims.true_at then subject_claims.stale else excluded.stale end,
      said = case when excluded.true_at < subject_claims.true_at then subject_claims.said else excluded.said end,
      expires_at = case when excluded.expires_at < subject_claims.expires_at then subject_claims.expires_at else excluded.expires_at end,
      true_at = case when excluded.true_at < subject_claims.true_at then subject_claims.true_at else excluded.true_at end
),
question_out as (
  update pending_consent t
  set (job_id, version, body, expires_at, polls_recorded, decided) = (
    select null, i.version, i.body, i.expires_at, i.polls_recorded, i.decided
    from question_in i where i.id = t.id
  )
  where t.id = any(array(select id from question_in))
    and not exists (select from failed)
),
-- Without locked rows: the transaction that holds one records a token of the same client too, or changes it.
used_out as (
  update client t
  set (last_token_at) = (
    select i.issued_at
    from used_in i where i.client_id = t.client_id
  )
  where t.client_id = any(array(select client_id from (
    select r.* from used_in i cross join lateral (
      select client_id from client
      where client_id = i.client_id and source = 'registration'
      and (last_token_at is null or last_token_at <= i.issued_at - 3600)
      for update skip locked
    ) r
  ) s))
    and not exists (select from failed)
)
select entry, guard from failed order by entry, guard;
