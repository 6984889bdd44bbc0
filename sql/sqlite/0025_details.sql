-- What a token and a consent are limited to by authorization_details (RFC 9396), as JSON; null for nothing.
alter table token add column details text;
alter table consent add column details text;
