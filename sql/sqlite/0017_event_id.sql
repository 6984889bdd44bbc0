-- The index of the ids of events cost each event a page at a random place, and served only to find the reason of an
-- ending. The reason now stands beside the ending; it is null in rows that the version before writes from now on.
alter table ending add column reason text;
-- An event that is no JSON was changed by hand: it has no reason, and does not stop the upgrade.
update ending set reason =
  (select case when json_valid(e.body) then e.body ->> '$.reason' end from event e where e.id = ending.event_id);

-- SQLite cannot drop the index of a constraint, and a new table would be a second copy of the whole trail. So the
-- constraint is taken out of the text of the table, and its index becomes an ordinary one; it holds the same in both
-- cases. The index of the primary key is the first one then.
pragma writable_schema = on;
update sqlite_schema set sql = replace(sql, 'id text not null unique', 'id text not null')
  where type = 'table' and name = 'event';
update sqlite_schema set name = 'event_by_id', sql = 'create index event_by_id on event (id)'
  where type = 'index' and name = 'sqlite_autoindex_event_1';
update sqlite_schema set name = 'sqlite_autoindex_event_1'
  where type = 'index' and name = 'sqlite_autoindex_event_2';
pragma writable_schema = reset;
drop index event_by_id;
