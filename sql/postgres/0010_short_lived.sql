-- Sign-ins that are under way, sessions, authorization requests and codes, each by a random id or the digest of a secret
-- that its holder has. "browser" is the digest of a browser's cookie.
create table short_lived (
  kind text collate "C" not null,
  key text collate "C" not null,
  version bigint not null,
  browser text collate "C",
  body text not null,
  expires_at bigint not null,
  primary key (kind, key)
);

create index short_lived_by_browser on short_lived (kind, browser, expires_at);
create index short_lived_by_expiry on short_lived (kind, expires_at);
