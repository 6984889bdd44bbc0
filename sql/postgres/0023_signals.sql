-- Security events have signing keys of their own.
alter table signing_key drop constraint signing_key_purpose_check;
alter table signing_key add constraint signing_key_purpose_check
  check (purpose in ('token', 'checkpoint', 'grant', 'signal'));

-- Security events for receivers, each by its stream and its id, which is a digest of what it tells; `sent` is when it was
-- delivered or refused for good. It stays until it expires, so that it is not made again.
create table signal (
  stream text not null,
  jti text not null,
  body text not null,
  at_ms bigint not null,
  expires_at bigint not null,
  due bigint not null default 0,
  sent bigint,
  primary key (stream, jti)
);
create index signal_due on signal (stream, due) where sent is null;
create index signal_expires on signal (expires_at);

-- Endings of the last hour are looked through for what their receivers are told.
create index ending_at on ending (at_ms);
