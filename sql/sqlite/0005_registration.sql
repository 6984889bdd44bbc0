-- Registered clients are in the same table as those that the operator created. The row of a removed client stays for a
-- while without metadata and secrets, because it ends the tokens that were issued to the client.
alter table client add column source text not null default 'operator'
  check (source in ('operator', 'registration'));
alter table client add column metadata text;
alter table client add column registration_class text;
alter table client add column ceiling text;
alter table client add column token_generation integer;
-- Updated at most once an hour.
alter table client add column last_token_at integer;

-- For the number of clients of each class, and for the search for idle clients.
create index client_by_class on client (registration_class)
  where source = 'registration' and disabled_at is null;
create index client_registered on client (coalesce(last_token_at, created_at))
  where source = 'registration' and disabled_at is null;
create index client_removed on client (disabled_at)
  where source = 'registration' and disabled_at is not null;

-- RFC7591-3-3: initial access tokens. Only the SHA-256 of a token is stored.
create table initial_token (
  id text primary key,
  digest text not null unique,
  registration_class text not null,
  ceiling text not null,
  uses integer not null,
  uses_max integer not null check (uses <= uses_max),
  created_at integer not null,
  expires_at integer not null,
  revoked_at integer
) strict;

-- Grants for other servers have signing keys of their own.
alter table signing_key rename to signing_key_before;
create table signing_key (
  kid text primary key,
  alg text not null,
  purpose text not null check (purpose in ('token', 'checkpoint', 'grant')),
  state text not null check (state in ('announced', 'active', 'retired')),
  public_jwk text not null,
  private_jwe text not null,
  created_at integer not null
) strict;
insert into signing_key (kid, alg, purpose, state, public_jwk, private_jwe, created_at)
  select kid, alg, purpose, state, public_jwk, private_jwe, created_at from signing_key_before;
drop table signing_key_before;
create unique index signing_key_active on signing_key (purpose, alg) where state = 'active';
