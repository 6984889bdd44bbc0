-- What was ended, one row each. "key" is the digest of a name under which tokens can be ended; a row ends every token
-- that carries the key with a time up to "cut_off" (milliseconds). Tokens are never changed.
create table ending (
  key text not null,
  cut_off integer not null,
  event_id text not null,
  at_ms integer not null,
  expires_at integer not null,
  primary key (key, cut_off, event_id)
) strict, without rowid;

create index ending_by_expiry on ending (expires_at);

alter table token add column workload text;
-- The keys of the token and of those behind it, each with the time since which what it names exists, as one JSON object;
-- null in rows of the version before, whose keys follow from the other columns.
alter table token add column ending_keys text;
