-- The index of the audit trail in blocks of successive events of one log. It is derived from the
-- events, and a search reads the events that no block covers.
create table event_block (
  log text collate "C" not null,
  from_seq bigint not null,
  to_seq bigint not null,
  from_ms bigint not null,
  to_ms bigint not null,
  primary key (log, from_seq)
);

-- The key begins with the part, because a search reads one part of many blocks.
create table event_block_part (
  part smallint not null,
  log text collate "C" not null,
  from_seq bigint not null,
  entries bytea not null,
  primary key (part, log, from_seq)
);

-- Takes the place of event_term, which stays only because the version before this one writes and reads it. Older events
-- get blocks in the background; then the rows of event_term are removed, and a search of that version by a filter finds
-- only what it wrote since.
