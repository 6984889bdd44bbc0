-- The index of the audit trail in blocks of successive events of one log. It is derived from the
-- events, and a search reads the events that no block covers.
create table event_block (
  log text not null,
  from_seq integer not null,
  to_seq integer not null,
  from_ms integer not null,
  to_ms integer not null,
  primary key (log, from_seq)
) strict, without rowid;

-- The key begins with the part, because a search reads one part of many blocks.
create table event_block_part (
  part integer not null,
  log text not null,
  from_seq integer not null,
  entries blob not null,
  primary key (part, log, from_seq)
) strict, without rowid;

-- Takes the place of event_term, which stays only because the version before this one writes and reads it. Older events
-- get blocks in the background; then the rows of event_term are removed, and a search of that version by a filter finds
-- only what it wrote since.
