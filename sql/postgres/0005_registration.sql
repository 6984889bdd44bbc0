-- Registered clients are in the same table as those that the operator created. The row of a removed client stays for a
-- while without metadata and secrets, because it ends the tokens that were issued to the client.
alter table client add column source text not null default 'operator'
  check (source in ('operator', 'registration'));
alter table client add column metadata json;
alter table client add column registration_class text;
alter table client add column ceiling json;
alter table client add column token_generation bigint;
-- Updated at most once an hour.
alter table client add column last_token_at bigint;

-- For the number of clients of each class, and for the search for idle clients.
create index client_by_class on client (registration_class)
  where source = 'registration' and disabled_at is null;
create index client_registered on client (coalesce(last_token_at, created_at))
  where source = 'registration' and disabled_at is null;
create index client_removed on client (disabled_at)
  where source = 'registration' and disabled_at is not null;

-- RFC7591-3-3: initial access tokens. Only the SHA-256 of a token is stored.
create table initial_token (
  id text collate "C" primary key,
  digest text collate "C" not null unique,
  registration_class text not null,
  ceiling json not null,
  uses bigint not null,
  uses_max bigint not null check (uses <= uses_max),
  created_at bigint not null,
  expires_at bigint not null,
  revoked_at bigint
);

-- Grants for other servers have signing keys of their own.
alter table signing_key drop constraint signing_key_purpose_check;
alter table signing_key add constraint signing_key_purpose_check
  check (purpose in ('token', 'checkpoint', 'grant'));
