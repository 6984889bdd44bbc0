-- By how much the clock of an instance was ahead of that of this database when it last looked, and the holder that looked:
-- where all instances agree and only the database differs, it is its clock that is wrong.
alter table instance add column ahead_ms bigint, add column ahead_by text;
