// Package lookup reads the data for explanations of messages and for reports of days from the
// ledger. Package report turns them into text.
package lookup

import (
	"context"
	"errors"
	"time"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Explain reads a message and explains its route, channels and waits. Keys are the keys of the
// draws; without them the explanation leaves out second draws. The error is ledger.ErrNoMessage
// when no message has the id, and a *Pending if it was cancelled before it came. With notes it
// shows what operators wrote when they settled an ambiguous attempt: that may hold a number, so it
// is for operators alone.
func Explain(
	ctx context.Context, l *ledger.Ledger, keys []selector.Key, id string, notes bool,
) (*report.Explanation, error) {
	record, err := l.Messages.Record(ctx, id)
	if errors.Is(err, ledger.ErrNoMessage) {
		return nil, absent(ctx, l, id)
	}
	if err != nil {
		return nil, err
	}
	for i := range record.Ambiguities {
		if !notes {
			record.Ambiguities[i].Note = ""
		}
	}
	source, err := explainSource(ctx, l, &record)
	if err != nil {
		return nil, err
	}
	if source.Ahead, err = beginsAhead(ctx, l, &record.Message); err != nil {
		return nil, err
	}
	source.Keys = keys
	explanation, err := report.Explain(source)
	if err != nil {
		return nil, err
	}
	return &explanation, nil
}

// Pending is the error for a message that is not in the ledger, and whose cancellation is pending.
// It is a ledger.ErrNoMessage.
type Pending struct{ *ledger.PendingCancellation }

func (p *Pending) Error() string {
	return "message " + report.Quoted(p.ID) + " is not in the ledger yet: " + p.Author +
		" cancelled it at " + p.At.Format(time.DateTime) + " UTC, and it ends if it comes, without " +
		"being sent"
}

// Is makes it a ledger.ErrNoMessage.
func (p *Pending) Is(target error) bool { return target == ledger.ErrNoMessage }

// absent is the error for a message that is not in the ledger.
func absent(ctx context.Context, l *ledger.Ledger, id string) error {
	pending, err := l.Cancellations.Pending(ctx, id)
	switch {
	case err != nil:
		return err
	case pending != nil:
		return &Pending{pending}
	}
	return ledger.ErrNoMessage
}

// explainSource reads what the explanation of a record needs besides the record. The clock is read
// after the record, so that no wait in the record begins after Source.Now.
func explainSource(
	ctx context.Context, l *ledger.Ledger, record *ledger.Record,
) (*report.Source, error) {
	source := &report.Source{Record: record}
	var err error
	if source.Now, err = l.Clock(ctx); err != nil {
		return nil, err
	}
	if source.Zone, err = zoneInForce(ctx, l); err != nil {
		return nil, err
	}
	if record.Routing != nil {
		if source.Doc, err = control.StoredRouting(record.Routing); err != nil {
			return nil, err
		}
	}
	seen, err := decide.ReadRanking(record.Seen)
	switch {
	case err != nil || seen == nil:
		return source, err
	case record.Routing != nil && seen.Version == record.Routing.Version:
		source.WaitDoc = source.Doc
		return source, nil
	}
	stored, err := l.Routing.Version(ctx, seen.Version)
	if errors.Is(err, ledger.ErrNoRouting) {
		return source, nil // the explanation does without the limits of that version
	}
	if err == nil {
		source.WaitDoc, err = control.StoredRouting(&stored)
	}
	return source, err
}

// zoneInForce is the business time zone of the current routing; nil when there is no routing. All
// messages are explained in it, also those planned under another zone.
func zoneInForce(ctx context.Context, l *ledger.Ledger) (*time.Location, error) {
	stored, err := l.Routing.Current(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		return nil, nil //nolint:nilnil // There is none.
	}
	if err != nil {
		return nil, err
	}
	doc, err := control.StoredRouting(&stored)
	if err != nil {
		return nil, err
	}
	return doc.Timezone, nil
}

// beginsAhead is the start of the running window of the limit that a message waits for, if that is
// in the future; zero otherwise.
func beginsAhead(ctx context.Context, l *ledger.Ledger, m *ledger.Message) (time.Time, error) {
	channel, key, ok := admission.ParseOn(m.WaitsFor)
	if !ok || m.State != ledger.Waiting {
		return time.Time{}, nil
	}
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return time.Time{}, err
	}
	c := (&status.Counters{Present: &present, Zone: time.UTC}).Stored(channel, key)
	if c == nil || !c.Ahead(present.Now) {
		return time.Time{}, nil
	}
	return c.Start, nil
}
