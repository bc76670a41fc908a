-- The number and the time of a status event are those of its row in the outbox. The row is written
-- after the message was locked, so both rise from event to event of one message; now() would be the
-- beginning of the transaction, before it waited for the lock. It only adds: what the previous
-- release writes gets the same default.
alter table dispatcher.outbox alter column created_at set default clock_timestamp();
