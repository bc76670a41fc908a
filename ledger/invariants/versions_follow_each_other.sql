-- guarantee 5: A change of routing is atomic and live
-- Routing versions are numbered without a gap, in the order of time, and each has its document.
select format('routing version %s %s', v.version, case
    when v.before is null then 'is not version 1, and no version comes before it'
    when v.version <> v.before + 1 then format('follows version %s', v.before)
    when v.created_at < v.created_before then format('came before version %s', v.before)
    else format('is based on version %s, which has another document', v.base) end) as detail
from (
  select version, created_at, base, document,
    lag(version) over (order by version) as before,
    lag(created_at) over (order by version) as created_before
  from dispatcher.routing_versions
) v
left join dispatcher.routing_versions b on b.version = v.base
where v.version <> coalesce(v.before, 0) + 1
  or v.created_at < v.created_before
  or v.base is not null and b.document is distinct from v.document
