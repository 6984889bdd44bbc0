-- The process that has the name of each instance. Its lease lapses by the clock of this database unless it is renewed;
-- "holder" tells a process from another one that takes the name later.
create table instance (
  log text collate "C" primary key,
  holder text not null,
  host text not null,
  pid bigint not null,
  since_ms bigint not null,
  lapses_at_ms bigint not null
);
