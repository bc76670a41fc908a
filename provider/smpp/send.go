package smpp

import (
	"context"
	"time"

	"dispatcher/provider"
)

// Send implements provider.Sender. It takes a slot of the least loaded bind, waiting
// while every window is full, and returns when every part has its answer, its
// timeout, or the loss of its connection, or when ctx ends. All parts of a message go
// through the same bind; the first part that fails keeps later ones from starting.
//
// Text that travels as message_payload is one part whatever its length.
func (c *Client) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		return failed(provider.Refused, whyCancelled)
	}
	plan, err := c.cfg.plan(s, time.Now())
	if err != nil {
		return rejected(err)
	}
	if plan.parts() == 1 {
		return c.sendOne(ctx, &plan)
	}
	return c.sendParts(ctx, &plan)
}

// sendOne sends a plan of one PDU, which may be one segment of a longer message.
func (c *Client) sendOne(ctx context.Context, p *plan) provider.Result {
	one := c.calls.get()
	defer c.calls.put(one)
	if err := p.encode(one, 0); err != nil {
		return rejected(err)
	}
	s, why := c.pool.acquire(ctx)
	if s == nil {
		return failed(provider.Refused, why)
	}
	defer c.pool.leave()
	if !s.submit(one) {
		return failed(provider.Refused, whyUnbound)
	}
	s.wait(ctx, one)
	if p.segments != nil {
		return c.summary(p, []*call{one})
	}
	part := one.part(&c.cfg, 0)
	return provider.Result{Outcome: part.Outcome, Code: part.Code, Reference: part.Reference, Err: one.explain(part.Outcome)}
}

// sendParts sends a plan of several PDUs through one session.
func (c *Client) sendParts(ctx context.Context, p *plan) provider.Result {
	parts := make([]*call, p.parts())
	for i := range parts {
		parts[i] = c.calls.get()
		defer c.calls.put(parts[i])
		if err := p.encode(parts[i], i); err != nil {
			return rejected(err)
		}
	}
	s, why := c.pool.acquire(ctx)
	if s == nil {
		return failed(provider.Refused, why)
	}
	defer c.pool.leave()
	submitted := c.submitAll(ctx, s, parts)
	for _, part := range parts[:submitted] {
		s.wait(ctx, part)
	}
	return c.summary(p, parts)
}

// submitAll submits the parts in order as slots allow; the first slot is taken. It
// stops at the first part that is known to have failed, and returns how many it
// submitted. The others are unsent.
func (c *Client) submitAll(ctx context.Context, s *session, parts []*call) (submitted int) {
	for i, part := range parts {
		why := ""
		if i > 0 {
			why = c.nextSlot(ctx, s, parts[:i])
		}
		if why == "" && !s.submit(part) {
			why = whyUnbound
		}
		if why != "" {
			for _, rest := range parts[i:] {
				rest.end(unsent, why)
			}
			return i
		}
	}
	return len(parts)
}

// nextSlot takes a slot for one more part, unless one of those before has failed.
func (c *Client) nextSlot(ctx context.Context, s *session, before []*call) (why string) {
	if _, why := c.pool.acquireOn(ctx, s); why != "" {
		return why
	}
	if c.anyFailed(before) {
		c.pool.release(s)
		return whySkipped
	}
	return ""
}

// anyFailed looks, without waiting, for a part that was not accepted.
func (c *Client) anyFailed(parts []*call) bool {
	for _, part := range parts {
		select {
		case token := <-part.done:
			part.done <- token
			if part.part(&c.cfg, 0).Outcome != provider.Accepted {
				return true
			}
		default:
		}
	}
	return false
}

// wait returns when the call has its fate; it takes the token.
func (s *session) wait(ctx context.Context, c *call) {
	select {
	case <-c.done:
	case <-ctx.Done():
		s.abandon(c)
		<-c.done
	}
}

// summary folds the parts of one message. Code and Err are those of the first part
// that decided the outcome.
func (c *Client) summary(p *plan, calls []*call) provider.Result {
	r := provider.Result{Parts: make([]provider.Part, len(calls))}
	for i, one := range calls {
		r.Parts[i] = one.part(&c.cfg, p.indices[i])
	}
	r.Outcome = provider.Combine(r.Parts)
	for i, part := range r.Parts {
		if part.Outcome == r.Outcome {
			r.Code, r.Err = part.Code, calls[i].explain(part.Outcome)
			break
		}
	}
	return r
}

func failed(outcome provider.Outcome, why string) provider.Result {
	return provider.Result{Outcome: outcome, Code: why, Err: wordError(why)}
}

// rejected ends a message that cannot be put on the wire.
func rejected(err error) provider.Result {
	return provider.Result{Outcome: provider.Rejected, Code: codeOf(err), Err: err}
}
