package ledger

// These statements store, as a revision, the differences between the new figures of a day, whose
// dayRows are in table fresh, and the stored ones. The first revision holds all figures.

// closeChoices stores the rows of DayFigures.Choices, by hour, tenant, calling code and sender as
// well.
const closeChoices = `
	insert into dispatcher.choice_figures (day, revision, hour, tenant, calling_code, sender,
	  routing_version, route, channel, cause, messages, rejected, failed, unknown, open, segments)
	select @day::date, @revision::integer, hour, tenant, calling_code, sender, routing_version,
	  route, channel, cause, sum(messages), sum(rejected), sum(failed), sum(unknown), sum(open),
	  sum(segments)
	from (
	  select received_hour as hour, tenant, calling_code, sender, routing_version, route,
	    first_choice as channel, ended as cause, drawn as messages, drawn_rejected as rejected,
	    drawn_failed as failed, drawn_unknown as unknown, drawn_open as open,
	    drawn_segments as segments
	  from fresh where drawn > 0
	  union all
	  select hour, tenant, calling_code, sender, routing_version, route, channel, cause,
	    -messages, -rejected, -failed, -unknown, -open, -segments
	  from audit.choice_figures where day = @day) n
	group by hour, tenant, calling_code, sender, routing_version, route, channel, cause
	having 0 <> any (array[sum(messages), sum(rejected), sum(failed), sum(unknown), sum(open),
	  sum(segments)])`

// closeAttempts stores the rows of DayFigures.Rows, by hour, version, reason, tenant, calling code
// and sender as well.
const closeAttempts = `
	insert into dispatcher.attempt_figures (day, revision, hour, tenant, calling_code, sender,
	  routing_version, route, channel, reason, currency, attempts, submitted, accepted, rejected,
	  refused, throttled, unknown, unsent, pending, delivered, undelivered, no_receipt, segments,
	  cost_micros, unknown_segments, unknown_micros, delivered_segments, delivered_micros)
	select @day::date, @revision::integer, hour, tenant, calling_code, sender, routing_version,
	  route, channel, reason, currency, sum(attempts), sum(submitted), sum(accepted),
	  sum(rejected), sum(refused), sum(throttled), sum(unknown), sum(unsent), sum(pending),
	  sum(delivered), sum(undelivered), sum(no_receipt), sum(segments), sum(cost_micros),
	  sum(unknown_segments), sum(unknown_micros), sum(delivered_segments), sum(delivered_micros)
	from (
	  select claimed_hour as hour, tenant, calling_code, sender, routing_version, route, channel,
	    reason, currency, attempts, submitted, accepted, rejected, refused, throttled, unknown,
	    unsent, pending, delivered, undelivered, no_receipt, segments, cost_micros,
	    unknown_segments, unknown_micros, delivered_segments, delivered_micros
	  from fresh where attempts > 0
	  union all
	  select hour, tenant, calling_code, sender, routing_version, route, channel, reason,
	    currency, -attempts, -submitted, -accepted, -rejected, -refused, -throttled, -unknown,
	    -unsent, -pending, -delivered, -undelivered, -no_receipt, -segments, -cost_micros,
	    -unknown_segments, -unknown_micros, -delivered_segments, -delivered_micros
	  from audit.attempt_figures where day = @day) n
	group by hour, tenant, calling_code, sender, routing_version, route, channel, reason,
	  currency
	having 0 <> any (array[sum(attempts), sum(submitted), sum(accepted), sum(rejected),
	  sum(refused), sum(throttled), sum(unknown), sum(unsent), sum(pending), sum(delivered),
	  sum(undelivered), sum(no_receipt), sum(segments), sum(cost_micros), sum(unknown_segments),
	  sum(unknown_micros), sum(delivered_segments), sum(delivered_micros)])`

// closeCarried stores the rows of DayFigures.Carried, by hour, tenant, calling code and sender as
// well.
const closeCarried = `
	insert into dispatcher.carried_figures (day, revision, hour, tenant, calling_code, sender,
	  routing_version, route, first_choice, channel, cause, currency, messages, segments,
	  cost_micros, text_segments)
	select @day::date, @revision::integer, hour, tenant, calling_code, sender, routing_version,
	  route, first_choice, channel, cause, currency, sum(messages), sum(segments),
	  sum(cost_micros), sum(text_segments)
	from (
	  select claimed_hour as hour, tenant, calling_code, sender, routing_version, route,
	    first_choice, channel, cause, currency, carried as messages,
	    carried_segments as segments, carried_micros as cost_micros, carried_text as text_segments
	  from fresh where carried > 0 or carried_segments > 0
	  union all
	  select hour, tenant, calling_code, sender, routing_version, route, first_choice, channel,
	    cause, currency, -messages, -segments, -cost_micros, -text_segments
	  from audit.carried_figures where day = @day) n
	group by hour, tenant, calling_code, sender, routing_version, route, first_choice, channel,
	  cause, currency
	having 0 <> any (array[sum(messages), sum(segments), sum(cost_micros), sum(text_segments)])`
