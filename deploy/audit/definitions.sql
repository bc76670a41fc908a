-- Names the views, functions and row policies of the ledger, each with a hash of its definition. On
-- a new database that was made by "dispatcher migrate" with the same version of PostgreSQL, it lists
-- what they should be. Any login may run it.
--
--   psql "$DISPATCHER_POSTGRES_URL" -qAtf definitions.sql > theirs.txt
--   psql "$NEW_DATABASE_URL" -qAtf definitions.sql | diff - theirs.txt

set search_path = pg_catalog; -- so that definitions name all schemas

select n.nspname || '.' || c.relname as name, md5(pg_get_viewdef(c.oid)) as definition
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('dispatcher', 'audit', 'facts') and c.relkind = 'v'
union all
select n.nspname || '.' || p.proname || '()', md5(pg_get_functiondef(p.oid))
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('dispatcher', 'audit', 'facts')
union all
select n.nspname || '.' || c.relname || ' policy ' || p.polname,
  md5(concat(pg_get_expr(p.polqual, p.polrelid), ' ', pg_get_expr(p.polwithcheck, p.polrelid)))
from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('dispatcher', 'audit', 'facts')
order by 1, 2;
