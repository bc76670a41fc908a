package pipeline

import (
	"context"
	"errors"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// cancelTries is how often a cancellation is tried when the message changes meanwhile.
const cancelTries = 5

// ErrChanging says that a message could not be cancelled because it changed at each try.
var ErrChanging = errors.New("the message changed during each try")

// Cancel ends a message that has not left, and returns the state that it was in. by has who asks
// for it, how and why. If it cannot be cancelled, why completes the sentence "message ID ...".
// Errors are ledger.ErrNoMessage for an id that is not in the ledger, ErrChanging, and those of the
// ledger.
func Cancel(
	ctx context.Context, l *ledger.Ledger, id string, by ledger.Cancellation,
) (was ledger.State, why string, err error) {
	for range cancelTries {
		record, err := l.Messages.Record(ctx, id)
		if err != nil {
			return "", "", err
		}
		now, err := l.Clock(ctx)
		if err != nil {
			return "", "", err
		}
		cancellation, why := decide.Cancel(&record, now)
		if why != "" {
			return record.Message.State, why, nil
		}
		cancellation.Author, cancellation.Via, cancellation.Reason = by.Author, by.Via, by.Reason
		ended, err := l.Messages.Cancel(ctx, cancellation)
		if err != nil || ended {
			return record.Message.State, "", err
		}
	}
	return "", "", ErrChanging
}
