-- Clients that the operator created. A client_id is never reused: the row stays when the client is disabled.
create table client (
  client_id text collate "C" primary key,
  version bigint not null,
  method text not null,
  grant_types json not null,
  workload text,
  default_target text,
  created_at bigint not null,
  disabled_at bigint
);

-- RFC6749-10.10-1: only the SHA-256 of a secret is stored. RFC7591-3.2.1-4: no two clients have the same secret.
create table client_secret (
  digest text collate "C" primary key,
  client_id text collate "C" not null references client,
  created_at bigint not null,
  expires_at bigint
);

create index client_secret_by_client on client_secret (client_id);

-- As before, and not issued to a client that has been disabled since.
create or replace view live_token as
  select t.jti
  from token t left join consent c on c.id = t.consent_id
  where t.revoked_at is null
    and (t.consent_id is null or (c.id is not null and c.withdrawn_at is null))
    and (select k.disabled_at from client k where k.client_id = t.client_id) is null;
