-- What was ended, one row each. "key" is the digest of a name under which tokens can be ended; a row ends every token
-- that carries the key with a time up to "cut_off" (milliseconds). Tokens are never changed.
create table ending (
  key text collate "C" not null,
  cut_off bigint not null,
  event_id text collate "C" not null,
  at_ms bigint not null,
  expires_at bigint not null,
  primary key (key, cut_off, event_id)
);

create index ending_by_expiry on ending (expires_at);

alter table token add column workload text;
-- The keys of the token and of those behind it, each with the time since which what it names exists, as one JSON object;
-- null in rows of the version before, whose keys follow from the other columns.
alter table token add column ending_keys json;

-- For the version before, while it serves on beside this one, which reads the table instead.
create or replace view live_token as
  select t.jti
  from token t left join consent c on c.id = t.consent_id
  where t.revoked_at is null
    and (t.consent_id is null or (c.id is not null and c.withdrawn_at is null))
    and (select k.disabled_at from client k where k.client_id = t.client_id) is null
    and not exists (
      select from json_each_text(t.ending_keys) k
      where (select true from ending e where e.key = k.key and e.cut_off >= k.value::bigint limit 1)
    );
