-- Tokens by the ending keys that they carry; rows of older versions, which have none, by an empty one. The list of what is
-- not sorted in yet is kept short, because each search reads it, and the writer that fills it waits. Writers wait while
-- the index is made: a second for 100,000 tokens.
create index token_by_ending_key on token
  using gin (jsonb_path_query_array(coalesce(ending_keys, '{"": 0}')::jsonb, '$.keyvalue().key'))
  with (gin_pending_list_limit = 64);

-- Living tokens are looked through in this order, by which expired ones are removed too.
create index token_by_end on token (expires_at, jti);
