package main

import (
	"context"
	"time"

	"dispatcher/admission"
	"dispatcher/ledger"
)

// beginsAhead is when the window of the limit begins that a message waits for, if that is in the future;
// zero otherwise.
func beginsAhead(ctx context.Context, l *ledger.Ledger, m *ledger.Message) (time.Time, error) {
	channel, key, ok := admission.ParseOn(m.WaitsFor)
	if !ok || m.State != ledger.Waiting {
		return time.Time{}, nil
	}
	present, err := l.Present(ctx)
	if err != nil {
		return time.Time{}, err
	}
	c := (&countersNow{&present, time.UTC}).stored(channel, key)
	if c == nil || !c.Ahead(present.Now) {
		return time.Time{}, nil
	}
	return c.Start, nil
}
