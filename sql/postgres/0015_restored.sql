-- Has a row in a copy of a database: the first start on it ends what was issued, because it lacks what was recorded later.
create table restored (
  id smallint primary key check (id = 1),
  marked_at_ms bigint not null
);
