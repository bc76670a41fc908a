package control

import (
	"context"
	"errors"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// Settlement says what happened to an ambiguous submission, as an operator has learned it from the
// provider.
type Settlement struct {
	As        string // one of Resolutions
	Reference string // the provider's id of the message, if the provider took it
	By        By
}

// Resolutions are the values of Settlement.As.
var Resolutions = []string{"taken", "not_taken", "final"}

var resolvedAs = map[string]ledger.ResolvedAs{
	"taken": ledger.Taken, "not_taken": ledger.NotTaken, "final": ledger.Unresolved,
}

// Settle settles an ambiguous attempt of a message: that with the number, or the latest when it is
// 0. If that is impossible, why says so: the rest of a sentence that begins with "message ID ...".
func Settle(
	ctx context.Context, l *ledger.Ledger, id string, number int, s *Settlement,
) (attempt ledger.Attempt, why string, err error) {
	if err := CheckReason(s.By.Reason); err != nil {
		return attempt, "", err
	}
	open, err := l.Ambiguities.Of(ctx, id, number)
	if errors.Is(err, ledger.ErrNotAmbiguous) {
		if _, err := l.Messages.Record(ctx, id); errors.Is(err, ledger.ErrNoMessage) {
			return attempt, "", unknownf("message %s is not in the ledger: no message has this id; "+
				`"dispatcher ambiguous list" has those that are ambiguous`, id)
		}
		return attempt, `is not ambiguous: "dispatcher explain" tells what became of it`, nil
	}
	if err != nil {
		return attempt, "", err
	}
	if resolvedAs[s.As] == ledger.NotTaken && open.Partly {
		return attempt, "is known to have been taken in part: settle it as taken, or as final", nil
	}
	now, err := l.Clock(ctx)
	if err != nil {
		return attempt, "", err
	}
	if resolvedAs[s.As] == ledger.NotTaken && open.Message.Envelope == nil &&
		open.Message.ExpiresAt.After(now) {
		return attempt, "cannot be sent again, because its number and text are not kept any " +
			"more: settle it as taken, or as final", nil
	}
	resolution := decide.Resolve(&open, resolvedAs[s.As], decide.CodeOperator, s.Reference, now)
	resolution.Author, resolution.Via, resolution.Note = s.By.Author, s.By.Via, s.By.Reason
	ended, err := l.Ambiguities.Resolve(ctx, resolution)
	if err == nil && !ended {
		why = "has been settled meanwhile, or is being submitted again just now: look at it once " +
			"more in a few seconds"
	}
	return open.Attempt, why, err
}

// CountAmbiguous is how many submissions a filter finds. If it finds none and names a channel or a
// lane that the routing in force does not have, the error is an Unknown.
func CountAmbiguous(
	ctx context.Context, l *ledger.Ledger, f *ledger.AmbiguousFilter,
) (int64, error) {
	n, err := l.Ambiguities.Count(ctx, f)
	if err != nil || n > 0 {
		return n, err
	}
	_, doc, err := InForce(ctx, l)
	if err != nil {
		return 0, nil //nolint:nilerr // Submissions can be settled under any routing.
	}
	return 0, knownNames(
		names{"channel", given(f.Channel), doc.ChannelNames()},
		names{"lane", given(f.Lane), doc.LaneNames()},
	)
}

// SettlePage settles the oldest submissions that a filter finds after a given one, up to size of
// them, each in its own transaction. tried is called after each. After an error, earlier ones stay
// settled, done counts them, and Last is the latest of them.
func SettlePage(
	ctx context.Context, l *ledger.Ledger, f *ledger.AmbiguousFilter, behind *ledger.AmbiguityRecord,
	size int, s *Settlement, tried func(),
) (done Page[ledger.AmbiguityRecord], err error) {
	page, err := l.Ambiguities.After(ctx, f, behind, size+1)
	if err != nil {
		return done, err
	}
	if done.More = len(page) > size; done.More {
		page = page[:size]
	}
	for i := range page {
		_, why, err := Settle(ctx, l, page[i].ID, page[i].Last, s)
		switch {
		case err != nil:
			done.More = true
			return done, err
		case why != "":
			done.Left = append(done.Left, Left{page[i].ID, why})
		default:
			done.Done++
		}
		done.Last = page[i]
		tried()
	}
	return done, nil
}
