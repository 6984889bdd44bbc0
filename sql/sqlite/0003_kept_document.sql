-- The last good copy of what was fetched from others, as it came, for a start while its endpoint is away.
-- "location" says whose word it is: it counts for no other place than that.
create table kept_document (
  kind text not null,
  name text not null,
  location text not null,
  body text not null,
  sequence integer,
  loaded_at integer not null,
  primary key (kind, name)
) strict;
