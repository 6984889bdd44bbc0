-- The events of all logs; "body" is the exact text that was hashed into the chain.
create table event (
  log text collate "C" not null,
  seq bigint not null,
  id text collate "C" not null unique,
  time_ms bigint not null,
  type text not null,
  body text not null,
  prev text not null,
  hash text not null,
  primary key (log, seq)
);

create table consent (
  id text collate "C" primary key,
  version bigint not null,
  origin_iss text collate "C" not null,
  origin_sub text collate "C" not null,
  actor text collate "C" not null,
  targets json not null,
  scopes json not null,
  expires_at bigint,
  withdrawn_at bigint
);

create index consent_by_origin on consent (origin_iss, origin_sub, actor);

create table token (
  jti text collate "C" primary key,
  client_id text not null,
  subject text not null,
  origin_iss text not null,
  origin_sub text not null,
  audience text not null,
  scope text not null,
  chain json not null,
  may_act json,
  ancestors json not null,
  rule_id text not null,
  consent_id text,
  issued_at bigint not null,
  expires_at bigint not null,
  revoked_at bigint,
  event_id text not null
);

-- Tokens that are neither revoked nor based on a withdrawn or missing consent; ancestors are checked by the query.
create view live_token as
  select t.jti
  from token t left join consent c on c.id = t.consent_id
  where t.revoked_at is null
    and (t.consent_id is null or (c.id is not null and c.withdrawn_at is null));

-- The jti of assertions and grants that were used. "jti" is a SHA-256, because the issuer chooses length and
-- characters.
create table spent_jti (
  issuer text collate "C" not null,
  jti text collate "C" not null,
  expires_at bigint not null,
  event_id text not null,
  primary key (issuer, jti)
);

create table signing_key (
  kid text collate "C" primary key,
  alg text not null,
  state text not null check (state in ('announced', 'active', 'retired')),
  public_jwk text not null,
  private_jwe text not null,
  created_at bigint not null
);

-- Instances that start at the same time may all create a key; only one insertion succeeds.
create unique index signing_key_active on signing_key (alg) where state = 'active';
