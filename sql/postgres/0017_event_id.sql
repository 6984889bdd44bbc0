-- The index of the ids of events cost each event a page at a random place, and served only to find the reason of an
-- ending. The reason now stands beside the ending; it is null in rows that the version before writes from now on.
alter table ending add column reason text;
-- An event that is no JSON was changed by hand: it has no reason, and does not stop the upgrade.
create function reason_of_event(body text) returns text language plpgsql as $$
begin
  return body::json ->> 'reason';
exception when invalid_text_representation then
  return null;
end $$;
update ending set reason = (select reason_of_event(e.body) from event e where e.id = ending.event_id);
drop function reason_of_event;

alter table event drop constraint event_id_key;
