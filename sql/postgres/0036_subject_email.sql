-- Which e-mail address the latest token of an issuer named for each of its users, as a digest, so that a security event
-- about the address finds them. "issued_at" is the time of that token; "expires_at" is when the user has nothing here.
create table subject_email (
  origin_iss text collate "C" not null,
  origin_sub text collate "C" not null,
  email text collate "C" not null,
  issued_at bigint not null,
  expires_at bigint not null,
  primary key (origin_iss, origin_sub)
);

create index subject_email_by_email on subject_email (email, origin_sub);
create index subject_email_by_expiry on subject_email (expires_at);
