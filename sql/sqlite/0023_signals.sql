-- Security events have signing keys of their own.
alter table signing_key rename to signing_key_before;
create table signing_key (
  kid text primary key,
  alg text not null,
  purpose text not null check (purpose in ('token', 'checkpoint', 'grant', 'signal')),
  state text not null check (state in ('announced', 'active', 'retired')),
  public_jwk text not null,
  private_jwe text not null,
  created_at integer not null,
  since integer,
  replace_at integer,
  used_at integer
) strict;
insert into signing_key select
  kid, alg, purpose, state, public_jwk, private_jwe, created_at, since, replace_at, used_at from signing_key_before;
drop table signing_key_before;
create unique index signing_key_active on signing_key (purpose, alg) where state = 'active';
create unique index signing_key_announced on signing_key (purpose, alg) where state = 'announced';

-- Security events for receivers, each by its stream and its id, which is a digest of what it tells; `sent` is when it was
-- delivered or refused for good. It stays until it expires, so that it is not made again.
create table signal (
  stream text not null,
  jti text not null,
  body text not null,
  at_ms integer not null,
  expires_at integer not null,
  due integer not null default 0,
  sent integer,
  primary key (stream, jti)
) strict, without rowid;
create index signal_due on signal (stream, due) where sent is null;
create index signal_expires on signal (expires_at);

-- Endings of the last hour are looked through for what their receivers are told.
create index ending_at on ending (at_ms);
