-- The last ceiling of a class of registered clients that a configuration said, for the clients that are left when the
-- configuration says none any more.
create table class_ceiling (
  registration_class text primary key,
  ceiling text not null
) strict;
