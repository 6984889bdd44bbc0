-- All tables of the first release. Later migrations only add to them.

-- --- the audit trail

-- The events of all logs; "body" is the record as one text. Ids have no index: at random places it
-- would cost each event a page.
create table event (
  log text not null,
  seq integer not null,
  id text not null,
  time_ms integer not null,
  type text not null,
  body text not null,
  prev text not null,
  hash text not null,
  primary key (log, seq)
) strict;

create index event_by_time on event (time_ms, log, seq);

-- The index of the audit trail (src/adapters/audit/indexing.ts). It is derived from the events, and a search reads the
-- events that no segment covers.
create table event_segment (
  id integer primary key,
  log text not null,
  from_seq integer not null,
  to_seq integer not null,
  from_ms integer not null,
  to_ms integer not null,
  unique (log, from_seq)
) strict;

-- The key begins with the segment, so that a new one is written in one place.
create table event_segment_term (
  segment integer not null,
  term integer not null,
  numbers text not null,
  primary key (segment, term)
) strict, without rowid;

-- The segments that list a subject, by the term of the subject, so that a search for one user does not look at the segments
-- of others. The key begins with the subject, under which segments follow each other.
create table event_segment_subject (
  subject integer not null,
  segment integer not null,
  primary key (subject, segment)
) strict, without rowid;

-- Of each log the events whose segments have these rows: every segment from the one that begins with `from_seq` to the one
-- that ends with `to_seq`.
create table event_subject_range (
  log text primary key,
  from_seq integer not null,
  to_seq integer not null
) strict, without rowid;

-- Signed checkpoints of the logs. They hold no personal data and stay when their events are removed.
create table checkpoint (
  log text not null,
  tree_size integer not null,
  time_ms integer not null,
  jws text not null,
  primary key (log, tree_size)
) strict, without rowid;

-- Hashes of the tree of each log, 256 in a row (base64): of level 0 those of its records, of each next level those of whole rows
-- of the one below. They stay when their events are removed, so that what was proven of those is still proven.
create table tree_hash (
  log text not null,
  level integer not null,
  number integer not null,
  hashes text not null,
  primary key (log, level, number)
) strict, without rowid;

-- --- instances and copies of the database

-- The process that has the name of each instance. It holds the lock of a file beside this one for as long as it lives;
-- after a crash the row stays and says nothing.
create table instance (
  log text primary key,
  host text not null,
  pid integer not null,
  since_ms integer not null
) strict, without rowid;

-- Has a row in a copy of a database: the first start on it ends what was issued, because it lacks what was recorded later.
create table restored (
  id integer primary key check (id = 1),
  marked_at_ms integer not null
) strict;

-- --- clients

-- The clients that the operator created and those that registered. A client_id is never reused: the row of one that was
-- created stays when it is disabled, and that of a removed one stays for a while without metadata and secrets, because it
-- ends the tokens that were issued to the client.
create table client (
  client_id text primary key,
  version integer not null,
  source text not null default 'operator' check (source in ('operator', 'registration')),
  method text not null,
  grant_types text not null,
  workload text,
  default_target text,
  metadata text,
  registration_class text,
  ceiling text,
  token_generation integer,
  created_at integer not null,
  disabled_at integer,
  -- Updated at most once an hour.
  last_token_at integer
) strict;

-- For the number of clients of each class, and for the search for idle clients.
create index client_by_class on client (registration_class)
  where source = 'registration' and disabled_at is null;
create index client_registered on client (coalesce(last_token_at, created_at))
  where source = 'registration' and disabled_at is null;
create index client_removed on client (disabled_at)
  where source = 'registration' and disabled_at is not null;

-- RFC6749-10.10-1: only the SHA-256 of a secret is stored. RFC7591-3.2.1-4: no two clients have the same secret.
create table client_secret (
  digest text primary key,
  client_id text not null references client,
  created_at integer not null,
  expires_at integer
) strict;

create index client_secret_by_client on client_secret (client_id);

-- RFC7591-3-3: initial access tokens. Only the SHA-256 of a token is stored.
create table initial_token (
  id text primary key,
  digest text not null unique,
  registration_class text not null,
  ceiling text not null,
  uses integer not null,
  uses_max integer not null check (uses <= uses_max),
  created_at integer not null,
  expires_at integer not null,
  revoked_at integer
) strict;

-- The last ceiling of a class of registered clients that a configuration said, for the clients that are left when the
-- configuration says none any more.
create table class_ceiling (
  registration_class text primary key,
  ceiling text not null
) strict;

-- --- tokens and their endings

-- What was issued; rows are never changed. "ending_keys" are the keys of the token and of those behind it, each with the
-- time since which what it names exists, as one JSON object. "confirmation" is the key that the token is bound to: the
-- member of its `cnf`, as JSON. "details" limit it (RFC 9396), as JSON, and so do the "claims" of its subject. A job of
-- another server comes with its issuer and its end.
create table token (
  jti text primary key,
  client_id text not null,
  workload text,
  subject text not null,
  origin_iss text not null,
  origin_sub text not null,
  audience text not null,
  scope text not null,
  details text,
  chain text not null,
  may_act text,
  ancestors text not null,
  rule_id text not null,
  consent_id text,
  job_id text,
  job_iss text,
  job_ends_at integer,
  claims text,
  confirmation text,
  issued_at integer not null,
  expires_at integer not null,
  ending_keys text not null,
  event_id text not null
) strict;

-- Living tokens are looked through in this order, by which expired ones are removed too.
create index token_by_end on token (expires_at, jti);
create index token_by_job on token (job_id) where job_id is not null;

-- What was ended, one row each. "key" is the digest of a name under which tokens can be ended; a row ends every token
-- that carries the key with a time up to "cut_off" (milliseconds). "reason" is that of the event.
create table ending (
  key text not null,
  cut_off integer not null,
  event_id text not null,
  reason text,
  at_ms integer not null,
  expires_at integer not null,
  primary key (key, cut_off, event_id)
) strict, without rowid;

-- Endings of the last hour are looked through for what their receivers are told.
create index ending_at on ending (at_ms);
create index ending_by_expiry on ending (expires_at);

-- The jti of assertions and grants that were used. "jti" is a SHA-256, because the issuer chooses length and
-- characters.
create table spent_jti (
  issuer text not null,
  jti text not null,
  expires_at integer not null,
  event_id text not null,
  primary key (issuer, jti)
) strict, without rowid;

create index spent_jti_by_expiry on spent_jti (expires_at);

-- --- signing keys and polled documents

-- The life of a signing key: when it came into its state (null: when it was created), when the operator ordered that
-- another key replaces it, and when an instance last had it in use. Tokens, checkpoints, grants and security events have
-- keys of their own.
create table signing_key (
  kid text primary key,
  alg text not null,
  purpose text not null check (purpose in ('token', 'checkpoint', 'grant', 'signal')),
  state text not null check (state in ('announced', 'active', 'retired')),
  public_jwk text not null,
  private_jwe text not null,
  created_at integer not null,
  since integer,
  replace_at integer,
  used_at integer
) strict;

-- Instances that start, or announce a successor, at the same time may all create a key: only one insertion succeeds.
create unique index signing_key_active on signing_key (purpose, alg) where state = 'active';
create unique index signing_key_announced on signing_key (purpose, alg) where state = 'announced';

-- The last good copy of each polled document (trust bundle or key set), as received, for a start while its source
-- cannot be reached. "location" identifies the source; a copy is not used for any other.
create table kept_document (
  kind text not null,
  name text not null,
  location text not null,
  body text not null,
  sequence integer,
  loaded_at integer not null,
  primary key (kind, name)
) strict;

-- The text of each policy set that decided, by its digest, and when it was last in force: kept until no event names it.
create table policy_archive (
  digest text primary key,
  body text not null,
  used_at integer not null
) strict;

-- --- users: consents, grants, jobs

-- What a subject allows an agent. "given_at" is when it was first given, for its subject to read. One that counts within a
-- job alone has the id of the job, and the issuer of another server's, which may have the id of one of ours.
create table consent (
  id text primary key,
  version integer not null,
  origin_iss text not null,
  origin_sub text not null,
  actor text not null,
  targets text not null,
  scopes text not null,
  details text,
  job_id text,
  job_iss text,
  given_at integer not null,
  expires_at integer,
  withdrawn_at integer
) strict;

create index consent_by_origin on consent (origin_iss, origin_sub, actor);
create index consent_by_job on consent (job_id) where job_id is not null;

-- Consents that an agent lacks and for which its user may be asked, by a random id. "asked" is the digest of user, agent,
-- target and scopes, of which there is one row at a time; "subject" is the digest of the user. Of the open questions of one
-- agent each has a number of its own, and so have those of one user: of two instances that count what there is at the same
-- time, one finds its number taken, and counts again. "polls" is how often it was asked again, when last, and how many of
-- these times an event of the trail tells. "decided" is 1 once its user has answered, so that it takes no room of others.
-- "job_id" is the job of ours for which it is kept.
create table pending_consent (
  asked text primary key,
  id text not null unique,
  version integer not null,
  actor text not null,
  subject text not null,
  actor_turn integer not null,
  subject_turn integer not null,
  polls integer not null default 0,
  polled_at integer,
  polls_recorded integer not null default 0,
  decided integer,
  job_id text,
  body text not null,
  expires_at integer not null
) strict, without rowid;

create unique index pending_consent_by_actor_turn on pending_consent (actor, actor_turn);
create unique index pending_consent_by_subject_turn on pending_consent (subject, subject_turn);
create index pending_consent_by_actor on pending_consent (actor, subject, expires_at) where decided is null;
create index pending_consent_by_subject on pending_consent (subject, expires_at);
create index pending_consent_by_expiry on pending_consent (expires_at);
create index pending_consent_by_job on pending_consent (job_id) where job_id is not null;

-- Sign-ins that are under way, sessions, authorization requests and codes, each by a random id or the digest of a secret
-- that its holder has. "browser" is the digest of a browser's cookie; "job_id" the job of ours for which a code or a wait
-- is kept, by which the report of the job counts them.
create table short_lived (
  kind text not null,
  key text not null,
  version integer not null,
  browser text,
  job_id text,
  body text not null,
  expires_at integer not null,
  primary key (kind, key)
) strict, without rowid;

create index short_lived_by_browser on short_lived (kind, browser, expires_at);
create index short_lived_by_expiry on short_lived (kind, expires_at);
create index short_lived_by_job on short_lived (job_id) where job_id is not null;

-- What a user gave to a client by one click, for as long as refresh tokens of it may be used. A family is ended by look-up
-- of its ending keys and by its times, never by a change of its row.
create table refresh_family (
  id text primary key,
  client_id text not null,
  origin_iss text not null,
  origin_sub text not null,
  job_id text,
  -- The number of its current token.
  generation integer not null,
  -- Of the last rotation: its time by the clock of this store; from where it came, as a digest that the token before it
  -- opens alone; the token that came of it, encrypted with a key that only the token before it gives.
  rotated_ms integer,
  rotated_by text,
  sealed text,
  -- Whether the token before the current one was sent again from elsewhere in the life of the family.
  elsewhere integer not null default 0,
  used_at integer not null,
  idle_ends_at integer,
  ends_at integer not null,
  ending_keys text not null,
  body text not null
) strict;

create index refresh_family_by_origin on refresh_family (origin_iss, origin_sub);
create index refresh_family_by_end on refresh_family (ends_at);
create index refresh_family_by_job on refresh_family (job_id) where job_id is not null;
create index refresh_family_sealed on refresh_family (rotated_ms) where sealed is not null;

-- All tokens of a family, the used ones too, by their SHA-256. A generation has one token.
create table refresh_token (
  digest text primary key,
  family_id text not null,
  generation integer not null
) strict, without rowid;

create unique index refresh_token_by_family on refresh_token (family_id, generation);

-- What the provider of a user said of them last, one row for all of their sign-ins and refresh tokens. "confirmed_at" is
-- when it stood by them, 0 once it does not; "asked_at" is when it was asked, whatever came of it. "sealed" is its own
-- refresh token of the last sign-in, encrypted with a key that comes from the key-encryption key.
create table recheck (
  origin_iss text not null,
  origin_sub text not null,
  version integer not null,
  provider text not null,
  confirmed_at integer not null,
  asked_at integer not null,
  sealed text,
  expires_at integer not null,
  primary key (origin_iss, origin_sub)
) strict, without rowid;

create index recheck_by_expiry on recheck (expires_at);

-- Which e-mail address the latest token of an issuer named for each of its users, as a digest, so that a security event
-- about the address finds them. "issued_at" is the time of that token; "expires_at" is when the user has nothing here.
create table subject_email (
  origin_iss text not null,
  origin_sub text not null,
  email text not null,
  issued_at integer not null,
  expires_at integer not null,
  primary key (origin_iss, origin_sub)
) strict, without rowid;

create index subject_email_by_email on subject_email (email, origin_sub);
create index subject_email_by_expiry on subject_email (expires_at);

-- What the issuer of a user said of them last, as far as rules demand something of it: by claim the values that rules name,
-- as JSON. "true_at" is when that was; "stale" that the issuer has said since that it changed. "expires_at" is when the user
-- has nothing here.
create table subject_claims (
  origin_iss text not null,
  origin_sub text not null,
  true_at integer not null,
  stale integer,
  said text not null,
  expires_at integer not null,
  primary key (origin_iss, origin_sub)
) strict, without rowid;

create index subject_claims_by_expiry on subject_claims (expires_at);

-- Jobs: pieces of work that are approved, bounded and ended as one. A row is never changed but for "issued", which counts
-- the tokens of a job that has a bound for them and is null for others. "asked" is the digest of what was asked for. Of the
-- jobs of one agent each has a number of its own, as the open questions have.
create table job (
  id text primary key,
  origin_iss text not null,
  origin_sub text not null,
  client_id text not null,
  actor text not null,
  turn integer not null,
  asked text,
  created_at integer not null,
  not_after integer not null,
  issued integer,
  ending_keys text not null,
  body text not null
) strict, without rowid;

create unique index job_by_turn on job (actor, turn);
create index job_by_origin on job (origin_iss, origin_sub, created_at, id);
create index job_by_actor on job (actor, created_at, id);
create index job_by_asked on job (asked) where asked is not null;
create index job_by_time on job (created_at, id);
create index job_by_end on job (not_after);

-- --- security events

-- Security events for receivers, each by its stream and its id, which is a digest of what it tells. "event_id" is the audit
-- event that recorded the ending of which it tells: two endings may be of one millisecond. "sent" is when it was delivered
-- or refused for good. It stays until it expires, so that it is not made again.
create table signal (
  stream text not null,
  jti text not null,
  body text not null,
  event_id text not null,
  at_ms integer not null,
  expires_at integer not null,
  due integer not null default 0,
  sent integer,
  primary key (stream, jti)
) strict, without rowid;

create index signal_due on signal (stream, due) where sent is null;
-- The report of an ending asks which events tell of it.
create index signal_at on signal (at_ms);
create index signal_expires on signal (expires_at);
