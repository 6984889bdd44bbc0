-- The report of an ending asks which events tell of it.
create index signal_at on signal (at_ms);
