-- What an event is found by: one row for each of its terms, each the digest of a name and a value, so that no
-- length and no character of it can hurt. Read in the order of the trail: by time, log and number.
create table event_term (
  term text not null,
  time_ms integer not null,
  log text not null,
  seq integer not null,
  primary key (term, time_ms, log, seq)
) strict, without rowid;

create index event_by_time on event (time_ms, log, seq);

-- Signed statements about the logs. They hold nothing personal and stay when their events are gone.
create table checkpoint (
  log text not null,
  tree_size integer not null,
  time_ms integer not null,
  jws text not null,
  primary key (log, tree_size)
) strict, without rowid;

-- Checkpoints are signed with keys that sign nothing else.
alter table signing_key add column purpose text not null default 'token'
  check (purpose in ('token', 'checkpoint'));
drop index signing_key_active;
create unique index signing_key_active on signing_key (purpose, alg) where state = 'active';

-- For the sweep of what has expired.
create index token_by_expiry on token (expires_at);
create index spent_jti_by_expiry on spent_jti (expires_at);
