package smpp

import (
	"context"
	"errors"
	"time"

	"dispatcher/provider"
	"dispatcher/provider/smpp/pdu"
)

// Send implements provider.Sender. It takes slots of the least loaded bind, waiting while no window
// has them for the whole message. It returns when every part has its answer, its timeout or the
// loss of its connection, or when ctx ends. All parts of a message use the same bind and are sent
// together. If a message has more parts than a window, the rest follows one by one, each after all
// earlier parts were accepted and while the deadline has not passed.
//
// Text in message_payload is one part whatever its length.
func (c *Client) Send(ctx context.Context, s provider.Submission) provider.Result {
	if ctx.Err() != nil {
		return refused(whyCancelled)
	}
	now := time.Now()
	if why := s.Withheld(now); why != "" {
		return refused(why)
	}
	plan, err := c.cfg.plan(s, now)
	switch {
	case err != nil:
		return cannotSend(err)
	case plan.parts() == 1:
		return c.sendOne(ctx, &plan, s.Begins())
	}
	return c.sendParts(ctx, &plan, s.Begins())
}

// sendOne sends a plan of one PDU, which may be one segment of a longer message.
func (c *Client) sendOne(ctx context.Context, p *plan, latest time.Time) provider.Result {
	one := c.calls.get()
	defer c.calls.put(one)
	one.submissionKey, one.source, one.expires = p.key, p.source, p.expires
	if err := p.encode(one, 0); err != nil {
		return rejected(err)
	}
	s, why := c.pool.acquire(ctx, 1, latest)
	if s == nil {
		return refused(one.late(why, time.Now()))
	}
	defer c.pool.done()
	if !s.submit(latest, one) {
		return refused(whyUnbound)
	}
	s.wait(ctx, one)
	if p.segments != nil {
		return c.summary(p, []*call{one})
	}
	part := one.part(&c.cfg, 0)
	c.awaitReceipt(p, &part)
	return provider.Result{
		Outcome: part.Outcome, Unfit: one.unfit(&c.cfg), Code: part.Code, Reference: part.Reference,
		Receipts: 1, Err: one.explain(part.Outcome),
	}
}

// sendParts sends a plan of several PDUs through one session.
func (c *Client) sendParts(ctx context.Context, p *plan, latest time.Time) provider.Result {
	parts := make([]*call, p.parts())
	for i := range parts {
		parts[i] = c.calls.get()
		defer c.calls.put(parts[i])
		parts[i].submissionKey, parts[i].source, parts[i].expires = p.key, p.source, p.expires
		if err := p.encode(parts[i], i); err != nil {
			return rejected(err)
		}
	}
	together := min(len(parts), c.cfg.Window)
	s, why := c.pool.acquire(ctx, together, latest)
	if s == nil {
		return refused(parts[0].late(why, time.Now()))
	}
	defer c.pool.done()
	if !s.submit(latest, parts[:together]...) {
		return refused(whyUnbound)
	}
	for _, part := range parts[:together] {
		s.wait(ctx, part)
	}
	c.submitRest(ctx, s, parts, together)
	r := c.summary(p, parts)
	if r.Outcome == provider.Rejected && c.cfg.Cancel {
		c.cancelParts(ctx, s, p, r.Parts)
	}
	return r
}

// submitRest submits the parts from next on, one by one. If an earlier part was not accepted, or no
// slot is free in time, the rest is unsent.
func (c *Client) submitRest(ctx context.Context, s *session, parts []*call, next int) {
	for i, part := range parts[next:] {
		if why := c.submitNext(ctx, s, parts[:next+i], part); why != "" {
			for _, rest := range parts[next+i:] {
				rest.end(unsent, why)
			}
			return
		}
		s.wait(ctx, part)
	}
}

// submitNext submits a part if those before it were accepted; otherwise it returns why not.
func (c *Client) submitNext(
	ctx context.Context, s *session, before []*call, part *call,
) (why string) {
	for _, earlier := range before {
		if !earlier.accepted(&c.cfg) {
			return whySkipped
		}
	}
	if part.expired(time.Now()) {
		return whyExpired
	}
	if _, why := c.pool.acquireOn(ctx, s, part.expires); why != "" {
		return part.late(why, time.Now())
	}
	if !s.submit(part.expires, part) {
		return whyUnbound
	}
	return ""
}

// summary combines the parts of one message. Code and Err are those of the first part that decided
// the outcome.
func (c *Client) summary(p *plan, calls []*call) provider.Result {
	r := provider.Result{Parts: make([]provider.Part, len(calls))}
	for i, one := range calls {
		r.Parts[i] = one.part(&c.cfg, p.indices[i])
		c.awaitReceipt(p, &r.Parts[i])
	}
	if r.Outcome = provider.Combine(r.Parts); r.Outcome != provider.Accepted {
		r.Cut = p.fingerprint(&c.cfg)
	}
	r.Unfit = r.Outcome == provider.Refused && c.allUnfit(calls)
	for i, part := range r.Parts {
		if part.Outcome == r.Outcome {
			r.Code, r.Err = part.Code, calls[i].explain(part.Outcome)
			break
		}
	}
	return r
}

// allUnfit reports whether every refusal was about the part itself. A skipped part does not count.
func (c *Client) allUnfit(calls []*call) bool {
	some := false
	for _, one := range calls {
		switch {
		case one.unfit(&c.cfg):
			some = true
		case one.accepted(&c.cfg), one.outcome == unsent && one.why == whySkipped:
		default:
			return false
		}
	}
	return some
}

// awaitReceipt schedules a query for an accepted part, if the channel has receipt queries.
func (c *Client) awaitReceipt(p *plan, part *provider.Part) {
	if c.queries != nil && part.Outcome == provider.Accepted {
		c.queries.expect(part.Reference, p.common.Source, time.Now())
	}
}

func refused(why string) provider.Result {
	return provider.Result{Outcome: provider.Refused, Code: why, Err: codeError(why)}
}

// cannotSend is the result of a submission that this channel cannot write. Another channel may send
// it if the cause is a sender that this one cannot encode, a validity that ends before its
// schedule, or parts that it would split differently.
func cannotSend(err error) provider.Result {
	switch {
	case errors.Is(err, faultSource), errors.Is(err, faultExpired), errors.Is(err, faultCut):
		return provider.Result{Outcome: provider.Refused, Code: provider.Uncomposed, Err: err}
	}
	return rejected(err)
}

// rejected ends a message that no channel can encode.
func rejected(err error) provider.Result {
	return provider.Result{Outcome: provider.Rejected, Code: codeOf(err), Err: err}
}

// cancelParts sends cancel_sm for the accepted parts of a message if another part was rejected: the
// message ends there, and a fragment is useless to the recipient. It is safe here because nothing
// else happens to those parts. The result does not depend on it: a part that can no longer be
// cancelled was sent.
func (c *Client) cancelParts(ctx context.Context, s *session, p *plan, parts []provider.Part) {
	for i := range parts {
		if parts[i].Outcome != provider.Accepted || parts[i].Reference == "" {
			continue
		}
		if ok, _ := c.pool.acquireOn(ctx, s, time.Time{}); !ok {
			return
		}
		_, err := s.ask(ctx, &pdu.CancelSM{
			ServiceType: c.cfg.ServiceType, MessageID: parts[i].Reference, Source: p.common.Source,
			Dest: p.common.Dest,
		})
		c.pool.release(s, 1)
		if err != nil {
			return // the SMSC does not answer, and the sender has waited long enough
		}
	}
}
