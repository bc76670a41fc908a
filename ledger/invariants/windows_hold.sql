-- guarantee 3: Admitted ≤ limit
-- No window of a limit has granted more than its max.
select format('the limit of %s %s a window of %s s granted %s in the window from %s%s', w.max, w.unit,
    w.window_seconds, w.granted,
    to_char(w.window_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
    ' (channel ' || nullif(w.channel, '') || ')') as detail
from audit.limit_windows w
where w.granted > w.max and w.window_start >= :'since' and w.window_start < :'until'
