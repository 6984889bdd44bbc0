-- Apart from 29, which makes the index that takes its place: a transaction that keeps writers waiting and then wants the
-- table for itself would end in a deadlock with one of them.
drop index token_by_expiry;
