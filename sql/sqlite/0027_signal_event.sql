-- Which ending an event tells of, by the audit event that recorded it: two endings may be of one millisecond. It is null
-- where the version before made it.
alter table signal add column event_id text;
