-- What the provider of a user said of them last, one row for all of their sign-ins and refresh tokens. "confirmed_at" is
-- when it stood by them, 0 once it does not; "asked_at" is when it was asked, whatever came of it. "sealed" is its own
-- refresh token of the last sign-in, encrypted with a key that comes from the key-encryption key.
create table recheck (
  origin_iss text not null,
  origin_sub text not null,
  version integer not null,
  provider text not null,
  confirmed_at integer not null,
  asked_at integer not null,
  sealed text,
  expires_at integer not null,
  primary key (origin_iss, origin_sub)
) strict, without rowid;

create index recheck_by_expiry on recheck (expires_at);
