-- Consents that an agent lacks and for which its user may be asked, by a random id. "asked" is the digest of user, agent,
-- target and scopes, of which there is one row at a time; "subject" is the digest of the user.
create table pending_consent (
  asked text collate "C" primary key,
  id text collate "C" not null unique,
  version bigint not null,
  actor text collate "C" not null,
  subject text collate "C" not null,
  body text not null,
  expires_at bigint not null
);

create index pending_consent_by_actor on pending_consent (actor, subject, expires_at);
create index pending_consent_by_subject on pending_consent (subject, expires_at);
create index pending_consent_by_expiry on pending_consent (expires_at);
