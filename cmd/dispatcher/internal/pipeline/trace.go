package pipeline

import (
	"context"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/tracing"
	"dispatcher/ledger"
)

// traceClaim begins the span of a claim if some of its jobs are traced. The traces of due rows are
// not known yet.
func (d *Dispatcher) traceClaim(
	ctx context.Context, c *claim,
) (context.Context, *tracing.Span) {
	if d.cfg.Tracer == nil {
		return ctx, nil
	}
	var of []string
	for i := range c.plan.Jobs {
		if text := c.plan.Jobs[i].Message.Traceparent; text != "" {
			of = append(of, text)
		}
	}
	return d.cfg.Tracer.Claim(ctx, laneOf(c.plan.Jobs), of)
}

// intakes are the words for what the ledger made of a record.
var intakes = map[ledger.Intake]string{
	ledger.Fresh: "fresh", ledger.Duplicate: "duplicate", ledger.Conflict: "conflict",
}

// traceDecisions records what a committed claim decided about traced messages.
func (d *Dispatcher) traceDecisions(cl *claim, batch *tracing.Span, began time.Time) {
	if d.cfg.Tracer == nil {
		return
	}
	ended := time.Now()
	for i := range cl.decided.Tasks {
		t, decision := &cl.decided.Tasks[i], &cl.decided.Decisions[i]
		text := t.Traceparent()
		if text == "" {
			continue
		}
		c := tracing.Claimed{
			Traceparent: text, Lane: t.Row.Lane, Route: t.Row.Plan.Route,
			State: string(decision.State), Reason: decision.Reason,
			Intake: intakes[cl.decided.Intakes[i]], RoutingVersion: cl.plan.Routing.Version,
			Began: began, Ended: ended,
		}
		if decision.State == ledger.Sending {
			c.Channel, c.Attempt = decision.Attempt.Channel, decision.Attempt.Number
			c.Reason = string(decision.Attempt.Reason)
		}
		d.cfg.Tracer.Claimed(&c, batch)
	}
}

// trace records the settlements of traced messages, without those that the ledger refused or that a
// stop cut off.
func (s *settler) trace(
	batch []answered, settlements []ledger.Settlement, refused []int64, began time.Time,
) {
	if s.d.cfg.Tracer == nil || s.ctx.Err() != nil {
		return
	}
	for i := range batch {
		a, done := batch[i].attempt.Attempt, &settlements[i]
		if slices.Contains(refused, done.Seq) {
			continue
		}
		s.d.cfg.Tracer.Settled(a.Traceparent, a.Channel, batch[i].result.Outcome.String(),
			string(done.State), done.Attempt, began)
	}
}
