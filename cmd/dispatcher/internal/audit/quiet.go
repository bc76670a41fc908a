package audit

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// quiet checks that an attempt was not claimed in the quiet hours of its route, unless it completes
// a message that was sent in part. That cannot be known after a late answer, so it checks nothing
// then.
func (c *check) quiet(e *edition, t *decide.Task, p *progress, i int) {
	stored := &c.record.Attempts[i]
	if !p.known || t.Route.Quiet == nil {
		return
	}
	if c.withoutPayload && t.Route.Quiet.ByRecipient {
		c.notChecked(whatTime)
		return
	}
	for _, around := range []time.Duration{-clockTolerance, 0, clockTolerance} {
		if e.Quiet(t, stored.ClaimedAt.Add(around)) == nil {
			return
		}
	}
	c.differs(
		stored.Number, whatTime, stored.ClaimedAt.Format(time.RFC3339Nano),
		"none: it is in the quiet hours of route "+t.Route.Name,
	)
}
