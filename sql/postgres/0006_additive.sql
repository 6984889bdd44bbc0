-- From here on a migration is additive: the version before it serves on beside the new one, and does not know the new
-- tables, columns (nullable or with a default) and indexes. One that is not has a line that begins with "-- Not additive:"
-- and says why; older versions refuse the database then.
alter table migration add column additive boolean not null default true;
