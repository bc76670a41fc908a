package pipeline

import (
	"context"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/ledger"
)

// cancelTries is how often a cancellation is tried when the message changes meanwhile.
const cancelTries = 5

// Cancelled says what became of a message that was to be cancelled.
type Cancelled struct {
	ID  string
	Was ledger.State // the state that it was in
	Why string       // why it is not cancelled, to complete "message ID ..."; empty if it is
}

// CancelID ends a message that has not left. It returns ledger.ErrNoMessage for an id that is not
// in the ledger.
func CancelID(
	ctx context.Context, l *ledger.Ledger, id string, by ledger.Canceller,
) (Cancelled, error) {
	record, err := l.Messages.Record(ctx, id)
	if err != nil {
		return Cancelled{}, err
	}
	all, err := Cancel(ctx, l, []int64{record.Message.Seq}, by)
	if len(all) == 0 && err == nil {
		err = ledger.ErrNoMessage // its day was dropped meanwhile
	}
	if err != nil {
		return Cancelled{}, err
	}
	return all[0], nil
}

// Cancel ends messages that have not left, those of a day in one transaction. by says who asks for
// it, why and how. A message that is not in the ledger is left out of the result. After an error
// some may have been cancelled; to cancel them again changes nothing.
func Cancel(
	ctx context.Context, l *ledger.Ledger, seqs []int64, by ledger.Canceller,
) (all []Cancelled, err error) {
	for try := 1; len(seqs) > 0; try++ {
		records, err := l.Messages.Records(ctx, seqs)
		if err != nil {
			return all, err
		}
		now, err := l.Clock(ctx)
		if err != nil {
			return all, err
		}
		var some []ledger.Cancellation
		var open []*ledger.Record // the records of some, in the same order
		for i := range records {
			r := &records[i]
			c, why := decide.Cancel(r, now)
			if why != "" {
				all = append(all, Cancelled{r.Message.ID, r.Message.State, why})
				continue
			}
			some, open = append(some, *c), append(open, r)
		}
		ended, err := l.Cancellations.Cancel(ctx, by, some)
		seqs = nil
		for _, r := range open {
			switch m := &r.Message; {
			case ended[m.Seq]:
				all = append(all, Cancelled{m.ID, m.State, ""})
			case try == cancelTries:
				all = append(all, Cancelled{m.ID, m.State, "changed during each try: try again"})
			default:
				seqs = append(seqs, m.Seq)
			}
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
