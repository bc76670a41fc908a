// Package status is the state of the dispatcher at one moment: channels, lanes, limits, queues and
// instances. It combines the routing document, the figures of the ledger and the reports of
// instances. The commands, the API and the console show it. Only read.go reads the database.
package status

import (
	"context"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// Within is the period of the figures in a status.
const Within = 5 * time.Minute

// tripsOf is the period of the trips in a status.
const tripsOf = 24 * time.Hour

// Awaits is how long receipts of a channel are waited for; 0 when none are expected.
type Awaits func(*config.Channel) time.Duration

// Read reads the status under the routing in force. It leaves out instances whose last heartbeat is
// older than deadAfter.
func Read(
	ctx context.Context, l *ledger.Ledger, deadAfter time.Duration, version int64,
	doc *config.Routing, awaits Awaits,
) (*Now, error) {
	f := facts{version: version, doc: doc, within: Within, awaits: awaits}
	var err error
	if f.present, err = l.Limits.Present(ctx); err != nil {
		return nil, err
	}
	var applied ledger.RoutingVersion
	if version > 0 {
		if applied, err = l.Routing.Version(ctx, version); err != nil {
			return nil, err
		}
	}
	f.applied = applied.CreatedAt
	if f.recent, err = l.Reports.Recent(ctx, Within, applied.Base); err != nil {
		return nil, err
	}
	if f.instances, _, err = l.Instances.List(ctx, deadAfter); err != nil {
		return nil, err
	}
	f.deadAfter = deadAfter
	if f.trips, err = l.Guards.Trips(ctx, f.present.Now.Add(-tripsOf)); err != nil {
		return nil, err
	}
	if f.pendingCancellations, f.oldestPending, err = l.Cancellations.CountPending(ctx); err != nil {
		return nil, err
	}
	return newNow(&f), nil
}

// ReadInstances reads the instances whose last heartbeat is not older than deadAfter, by number.
// version is the version of the routing in force.
func ReadInstances(
	ctx context.Context, l *ledger.Ledger, deadAfter time.Duration, version int64,
) (*Instances, error) {
	all, _, err := l.Instances.List(ctx, deadAfter)
	if err != nil {
		return nil, err
	}
	out := &Instances{Version: version, Instances: make([]Instance, len(all))}
	for i := range all {
		out.Instances[i] = newInstance(&all[i], version)
	}
	return out, nil
}

// ReadLimits reads the limits of the named channels or, when none is named, those of all channels
// and those over all channels.
func ReadLimits(
	ctx context.Context, l *ledger.Ledger, version int64, doc *config.Routing, named []string,
) (*Limits, error) {
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	return NewLimits(version, doc, &present, named), nil
}

// ReadBudgets reads the prepaid budgets.
func ReadBudgets(
	ctx context.Context, l *ledger.Ledger, version int64, doc *config.Routing,
) (*Budgets, error) {
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	return NewBudgets(version, doc, &present), nil
}

// ReadChannels reads the channels of the routing in force with their load. now is their status.
func ReadChannels(
	ctx context.Context, l *ledger.Ledger, doc *config.Routing, now *Now,
) (*ChannelList, error) {
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	return &ChannelList{now.RoutingVersion, now.Details(doc, &present)}, nil
}
