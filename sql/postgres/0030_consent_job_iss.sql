-- A consent that counts within a job of another server alone, which may have the id of one of ours.
alter table consent add column job_iss text collate "C";
