-- Consents that an agent lacks and for which its user may be asked, by a random id. "asked" is the digest of user, agent,
-- target and scopes, of which there is one row at a time; "subject" is the digest of the user.
create table pending_consent (
  asked text primary key,
  id text not null unique,
  version integer not null,
  actor text not null,
  subject text not null,
  body text not null,
  expires_at integer not null
) strict, without rowid;

create index pending_consent_by_actor on pending_consent (actor, subject, expires_at);
create index pending_consent_by_subject on pending_consent (subject, expires_at);
create index pending_consent_by_expiry on pending_consent (expires_at);
