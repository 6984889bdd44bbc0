-- How often the open question was asked again, when last, and how many of these times an event of the trail tells.
alter table pending_consent add column polls bigint not null default 0;
alter table pending_consent add column polled_at bigint;
alter table pending_consent add column polls_recorded bigint not null default 0;
