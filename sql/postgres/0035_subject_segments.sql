-- The segments that list a subject, by the term of the subject (src/adapters/audit/indexing.ts), so that a search for one
-- user does not look at the segments of others. The key begins with the subject, under which segments follow each other.
-- A vacuum as often as of the events, where the engine has one.
create table event_segment_subject (
  subject integer not null,
  segment integer not null,
  primary key (subject, segment)
);

do $$ begin
  alter table event_segment_subject
    set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01);
exception when feature_not_supported or invalid_parameter_value then null;
end $$;

-- Of each log the events whose segments have these rows: every segment from the one that begins with `from_seq` to the one
-- that ends with `to_seq`. Those of the version before get theirs in the background, the newest first.
create table event_subject_range (
  log text collate "C" primary key,
  from_seq bigint not null,
  to_seq bigint not null
);
