-- Of the jobs of one agent each has a number of its own, and so have the open questions of one agent and of one user: of
-- two instances that count what there is at the same time, one finds its number taken, and counts again.
alter table job add column turn bigint;
create unique index job_by_turn on job (actor, turn);

alter table pending_consent add column actor_turn bigint;
alter table pending_consent add column subject_turn bigint;
create unique index pending_consent_by_actor_turn on pending_consent (actor, actor_turn);
create unique index pending_consent_by_subject_turn on pending_consent (subject, subject_turn);
