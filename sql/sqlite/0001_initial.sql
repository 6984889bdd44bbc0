-- The events of all logs; "body" is the exact text that was hashed into the chain.
create table event (
  log text not null,
  seq integer not null,
  id text not null unique,
  time_ms integer not null,
  type text not null,
  body text not null,
  prev text not null,
  hash text not null,
  primary key (log, seq)
) strict;

create table consent (
  id text primary key,
  version integer not null,
  origin_iss text not null,
  origin_sub text not null,
  actor text not null,
  targets text not null,
  scopes text not null,
  expires_at integer,
  withdrawn_at integer
) strict;

create index consent_by_origin on consent (origin_iss, origin_sub, actor);

create table token (
  jti text primary key,
  client_id text not null,
  subject text not null,
  origin_iss text not null,
  origin_sub text not null,
  audience text not null,
  scope text not null,
  chain text not null,
  may_act text,
  ancestors text not null,
  rule_id text not null,
  consent_id text,
  issued_at integer not null,
  expires_at integer not null,
  revoked_at integer,
  event_id text not null
) strict;

-- Tokens that are neither revoked nor based on a withdrawn or missing consent; ancestors are checked by the query.
create view live_token as
  select t.jti
  from token t left join consent c on c.id = t.consent_id
  where t.revoked_at is null
    and (t.consent_id is null or (c.id is not null and c.withdrawn_at is null));

-- The jti of assertions and grants that were used. "jti" is a SHA-256, because the issuer chooses length and
-- characters.
create table spent_jti (
  issuer text not null,
  jti text not null,
  expires_at integer not null,
  event_id text not null,
  primary key (issuer, jti)
) strict, without rowid;

create table signing_key (
  kid text primary key,
  alg text not null,
  state text not null check (state in ('announced', 'active', 'retired')),
  public_jwk text not null,
  private_jwe text not null,
  created_at integer not null
) strict;

-- Instances that start at the same time may all create a key; only one insertion succeeds.
create unique index signing_key_active on signing_key (alg) where state = 'active';
