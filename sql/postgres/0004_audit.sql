-- The search terms of an event, one row each. A term is the digest of a name and a value, because peers choose length
-- and characters of the value. The key has the order of the trail: time, log, number.
create table event_term (
  term text collate "C" not null,
  time_ms bigint not null,
  log text collate "C" not null,
  seq bigint not null,
  primary key (term, time_ms, log, seq)
);

create index event_by_time on event (time_ms, log, seq);

-- Signed checkpoints of the logs. They hold no personal data and stay when their events are removed.
create table checkpoint (
  log text collate "C" not null,
  tree_size bigint not null,
  time_ms bigint not null,
  jws text not null,
  primary key (log, tree_size)
);

-- Checkpoints have signing keys of their own.
alter table signing_key add column purpose text not null default 'token'
  check (purpose in ('token', 'checkpoint'));
drop index signing_key_active;
create unique index signing_key_active on signing_key (purpose, alg) where state = 'active';

-- For the removal of expired rows.
create index token_by_expiry on token (expires_at);
create index spent_jti_by_expiry on spent_jti (expires_at);
