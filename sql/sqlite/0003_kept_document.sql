-- The last good copy of each polled document (trust bundle or key set), as received, for a start while its source
-- cannot be reached. "location" identifies the source; a copy is not used for any other.
create table kept_document (
  kind text not null,
  name text not null,
  location text not null,
  body text not null,
  sequence integer,
  loaded_at integer not null,
  primary key (kind, name)
) strict;
