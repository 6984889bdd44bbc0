-- The job of ours for which a code, a wait or a question is kept, by which the report of the job counts them.
alter table short_lived add column job_id text collate "C";
create index short_lived_by_job on short_lived (job_id) where job_id is not null;

alter table pending_consent add column job_id text collate "C";
create index pending_consent_by_job on pending_consent (job_id) where job_id is not null;
