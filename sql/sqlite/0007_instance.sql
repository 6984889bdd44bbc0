-- The process that has the name of each instance. It holds the lock of a file beside this one for as long as it lives;
-- after a crash the row stays and says nothing.
create table instance (
  log text primary key,
  host text not null,
  pid integer not null,
  since_ms integer not null
) strict, without rowid;
