-- The key that a token is bound to: the member of its `cnf`, as JSON; null for one that is not bound.
alter table token add column confirmation text;
