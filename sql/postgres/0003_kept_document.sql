-- The last good copy of what was fetched from others, as it came, for a start while its endpoint is away.
-- "location" says whose word it is: it counts for no other place than that.
create table kept_document (
  kind text collate "C" not null,
  name text collate "C" not null,
  location text collate "C" not null,
  body text not null,
  sequence bigint,
  loaded_at bigint not null,
  primary key (kind, name)
);
