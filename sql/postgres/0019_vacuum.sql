-- A vacuum follows when a hundredth of the trail has been removed or added, not a fifth, which of a hundred million events
-- is what months remove. Takes a lock that neither readers nor writers wait for. An engine without vacuum refuses it.
do $$ begin
  alter table event set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01);
  alter table event_block_part set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01);
exception when feature_not_supported or invalid_parameter_value then null;
end $$;
