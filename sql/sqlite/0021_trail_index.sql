-- The index of the audit trail as a table of terms (src/adapters/audit/indexing.ts). It is derived from the events, and a
-- search reads the events that no segment covers.
create table event_segment (
  id integer primary key,
  log text not null,
  from_seq integer not null,
  to_seq integer not null,
  from_ms integer not null,
  to_ms integer not null,
  unique (log, from_seq)
) strict;

-- The key begins with the segment, so that a new one is written in one place.
create table event_segment_term (
  segment integer not null,
  term integer not null,
  numbers text not null,
  primary key (segment, term)
) strict, without rowid;

-- Takes the place of event_block and event_block_part, which stay only because the version before this one writes and
-- reads them. Their events get segments in the background; once that version is gone, their rows are removed.
