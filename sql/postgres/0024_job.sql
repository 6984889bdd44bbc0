-- Jobs: pieces of work that are approved, bounded and ended as one. A row is never changed but for "issued", which counts
-- the tokens of a job that has a bound for them and is null for others. "asked" is the digest of what was asked for.
create table job (
  id text collate "C" primary key,
  origin_iss text not null,
  origin_sub text not null,
  client_id text not null,
  actor text not null,
  asked text,
  created_at bigint not null,
  not_after bigint not null,
  issued bigint,
  ending_keys json not null,
  body text not null
);

create index job_by_origin on job (origin_iss, origin_sub, created_at, id);
create index job_by_actor on job (actor, created_at, id);
create index job_by_asked on job (asked) where asked is not null;
create index job_by_time on job (created_at, id);
create index job_by_end on job (not_after);

-- What was issued for a job; of another server's, with its issuer and its end.
alter table token add column job_id text;
alter table token add column job_iss text;
alter table token add column job_ends_at bigint;
create index token_by_job on token (job_id) where job_id is not null;

alter table refresh_family add column job_id text;
create index refresh_family_by_job on refresh_family (job_id) where job_id is not null;

alter table consent add column job_id text;
create index consent_by_job on consent (job_id) where job_id is not null;
