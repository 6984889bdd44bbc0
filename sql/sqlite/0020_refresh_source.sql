-- Where a family of refresh tokens was rotated last, as a digest that the token before it opens alone, and whether that token
-- was sent again from elsewhere in the life of the family.
alter table refresh_family add column rotated_by text;
alter table refresh_family add column elsewhere integer not null default 0;
