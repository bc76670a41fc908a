package ledger

import (
	"context"
	"fmt"
	"time"
)

// Present is the shared state of the channels at one moment, for people to look at. It is
// read without locks: nothing may be decided by it.
type Present struct {
	// Now is the database's clock.
	Now time.Time
	// Channels are those of the current routing, by name. Counters are as stored: Gate.Roll brings
	// them to Now.
	Channels []ChannelState
}

// Present reads the counters of all channels.
func (l *Ledger) Present(ctx context.Context) (Present, error) {
	var p Present
	var names []string
	err := l.reports.QueryRow(ctx, `
		select now(), coalesce((select array_agg(channel order by channel) from dispatcher.channels where removed_at is null), '{}')`).
		Scan(&p.Now, &names)
	if err != nil {
		return Present{}, wrap("read channels", err)
	}
	p.Now = p.Now.UTC()
	r, err := l.reports.Query(ctx, `
		select channel, active_max, active, last_assigned from dispatcher.channels
		where channel = any($1) order by channel`, names)
	if err == nil {
		p.Channels, _, err = collectChannels(r, names)
	}
	if err != nil {
		return Present{}, wrap("read channels", err)
	}
	r, err = l.reports.Query(ctx, `
		select channel, window_seconds, unit, configured_max, max, window_start, granted from dispatcher.limits
		where channel = any($1) and scope = 'channel' order by channel, window_seconds, unit`, names)
	if err == nil {
		err = collectLimits(r, p.Channels)
	}
	if err != nil {
		return Present{}, fmt.Errorf("read limits: %w", clean(err))
	}
	return p, nil
}
