-- Living tokens are looked through in this order, by which expired ones are removed too.
create index token_by_end on token (expires_at, jti);
