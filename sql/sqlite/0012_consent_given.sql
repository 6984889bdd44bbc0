-- When a consent was first given, for its subject to read; null in rows of the version before.
alter table consent add column given_at integer;
