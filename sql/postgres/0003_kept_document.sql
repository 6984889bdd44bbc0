-- The last good copy of each polled document (trust bundle or key set), as received, for a start while its source
-- cannot be reached. "location" identifies the source; a copy is not used for any other.
create table kept_document (
  kind text collate "C" not null,
  name text collate "C" not null,
  location text collate "C" not null,
  body text not null,
  sequence bigint,
  loaded_at bigint not null,
  primary key (kind, name)
);
