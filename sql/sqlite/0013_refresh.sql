-- What a user gave to a client by one click, for as long as refresh tokens of it may be used. A family is ended by look-up
-- of its ending keys and by its times, never by a change of its row.
create table refresh_family (
  id text primary key,
  client_id text not null,
  origin_iss text not null,
  origin_sub text not null,
  -- The number of its current token.
  generation integer not null,
  -- Of the last rotation: its time by the clock of this store, how often the token before it was sent again, and the token
  -- that came of it, encrypted with a key that only the token before it gives.
  rotated_ms integer,
  retries integer not null default 0,
  sealed text,
  used_at integer not null,
  idle_ends_at integer,
  ends_at integer not null,
  ending_keys text not null,
  body text not null
) strict;

create index refresh_family_by_origin on refresh_family (origin_iss, origin_sub);
create index refresh_family_by_end on refresh_family (ends_at);
create index refresh_family_sealed on refresh_family (rotated_ms) where sealed is not null;

-- All tokens of a family, the used ones too, by their SHA-256. A generation has one token.
create table refresh_token (
  digest text primary key,
  family_id text not null,
  generation integer not null
) strict, without rowid;

create unique index refresh_token_by_family on refresh_token (family_id, generation);
