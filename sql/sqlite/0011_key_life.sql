-- The life of a signing key: when it came into its state (null: when it was created), when the operator ordered that
-- another key replaces it, and when an instance last had it in use.
alter table signing_key add column since integer;
alter table signing_key add column replace_at integer;
alter table signing_key add column used_at integer;

-- Instances that announce a successor at the same time: only one insertion succeeds.
create unique index signing_key_announced on signing_key (purpose, alg) where state = 'announced';
