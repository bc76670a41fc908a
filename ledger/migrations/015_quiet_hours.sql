-- What waits in a lane is counted every second. Messages that quiet hours hold are not counted, and
-- there may be very many: due_queue, which earlier releases count by, would list them too.
create index due_counted on dispatcher.due (lane)
  where state <> 'scheduled' and reason is distinct from 'paused' and reason is distinct from 'quiet_hours';
