-- For the closed days that a person has settled something of since: they are closed again.
create index ambiguous_by_people on dispatcher.ambiguous (closed_at) where author <> '';
