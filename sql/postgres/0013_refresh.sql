-- What a user gave to a client by one click, for as long as refresh tokens of it may be used. A family is ended by look-up
-- of its ending keys and by its times, never by a change of its row.
create table refresh_family (
  id text collate "C" primary key,
  client_id text collate "C" not null,
  origin_iss text collate "C" not null,
  origin_sub text collate "C" not null,
  -- The number of its current token.
  generation bigint not null,
  -- Of the last rotation: its time by the clock of this store, how often the token before it was sent again, and the token
  -- that came of it, encrypted with a key that only the token before it gives.
  rotated_ms bigint,
  retries bigint not null default 0,
  sealed text,
  used_at bigint not null,
  idle_ends_at bigint,
  ends_at bigint not null,
  ending_keys json not null,
  body text not null
);

create index refresh_family_by_origin on refresh_family (origin_iss, origin_sub);
create index refresh_family_by_end on refresh_family (ends_at);
create index refresh_family_sealed on refresh_family (rotated_ms) where sealed is not null;

-- All tokens of a family, the used ones too, by their SHA-256. A generation has one token.
create table refresh_token (
  digest text collate "C" primary key,
  family_id text collate "C" not null,
  generation bigint not null
);

create unique index refresh_token_by_family on refresh_token (family_id, generation);
