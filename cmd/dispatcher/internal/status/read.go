// Package status says how the dispatcher does at one moment: channels, lanes, limits, queues and
// instances, from what the routing document says, what the ledger counts and what instances report.
// The commands, the API and the console show the same. Only read.go reads the database.
package status

import (
	"context"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Within is how far back a status looks.
const Within = 5 * time.Minute

// tripsOf is how far back it looks for what guards found.
const tripsOf = 24 * time.Hour

// Read puts together how the dispatcher does now under the routing in force. Instances whose last
// heartbeat is older than deadAfter do not count.
func Read(
	ctx context.Context, l *ledger.Ledger, deadAfter time.Duration, version int64,
	doc *config.Routing,
) (*Now, error) {
	f := facts{version: version, doc: doc, within: Within}
	var err error
	if f.present, err = l.Limits.Present(ctx); err != nil {
		return nil, err
	}
	if f.recent, err = l.Reports.Recent(ctx, Within); err != nil {
		return nil, err
	}
	if f.instances, _, err = l.Instances.List(ctx, deadAfter); err != nil {
		return nil, err
	}
	if f.trips, err = l.Guards.Trips(ctx, f.present.Now.Add(-tripsOf)); err != nil {
		return nil, err
	}
	return newNow(&f), nil
}

// ReadLimits says what the limits of the routing in force leave now, of the named channels or,
// where none is named, of all with the limits over all.
func ReadLimits(
	ctx context.Context, l *ledger.Ledger, version int64, doc *config.Routing, named []string,
) (*Limits, error) {
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	return NewLimits(version, doc, &present, named), nil
}

// ReadBudgets reads them.
func ReadBudgets(
	ctx context.Context, l *ledger.Ledger, version int64, doc *config.Routing,
) (*Budgets, error) {
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	return NewBudgets(version, doc, &present), nil
}

// ReadChannels lists the channels of the routing in force with what they carry and how they do.
func ReadChannels(
	ctx context.Context, l *ledger.Ledger, deadAfter time.Duration, version int64,
	doc *config.Routing,
) ([]Detail, error) {
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	now, err := Read(ctx, l, deadAfter, version, doc)
	if err != nil {
		return nil, err
	}
	details := make([]Detail, len(doc.Channels))
	for i := range doc.Channels {
		details[i] = NewDetail(doc, &doc.Channels[i], &present)
		details[i].Take(&now.Channels[i])
	}
	return details, nil
}
