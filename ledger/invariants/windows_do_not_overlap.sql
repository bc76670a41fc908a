-- guarantee 3: Admitted ≤ limit
-- The running window of a limit begins after its past windows, so that none is granted twice.
select format('the %s limit of channel %s (%s, %s s) counts in the window from %s, which is over '
    'already', l.unit, l.channel, l.scope, l.window_seconds,
    to_char(l.window_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')) as detail
from dispatcher.limits l
join dispatcher.limit_history h using (channel, scope, window_seconds, unit)
where l.window_start > 'epoch' and h.window_start >= l.window_start
  and h.currency is not distinct from l.currency
