package control

import (
	"context"
	"errors"
	"strings"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Cancel ends a message that has not left, and returns the state that it was in.
func Cancel(ctx context.Context, l *ledger.Ledger, id string, by By) (ledger.State, error) {
	if err := CheckReason(by.Reason); err != nil {
		return "", err
	}
	done, err := pipeline.CancelID(ctx, l, id, by.canceller())
	switch {
	case errors.Is(err, ledger.ErrNoMessage):
		return "", unknownf("message %s is not in the ledger: no message has this id, or it is "+
			"still in Kafka", report.Quoted(id))
	case err != nil:
		return "", err
	case done.Why != "":
		return "", impossiblef("message %s %s", report.Quoted(id), done.Why)
	}
	return done.Was, nil
}

func (by By) canceller() ledger.Canceller {
	return ledger.Canceller{Author: by.Author, Reason: by.Reason, Via: by.Via}
}

// Unsent selects messages that have not left.
type Unsent struct {
	ledger.UnsentFilter
	Prefix string // of the number, plus included; empty means any
}

// Check refuses a filter that selects everything, and a prefix that no number has.
func (f *Unsent) Check() error {
	if *f == (Unsent{}) {
		return refusef("give at least one of lane, route, tenant, prefix, since and before")
	}
	if f.Prefix != "" && !config.IsPrefix(f.Prefix) {
		return refusef("the prefix does not begin a number: write a plus and digits, such as +44")
	}
	return nil
}

// unsentPage are the messages of a page that match. last is the Seq with which the page ends, and
// more says that others may follow.
type unsentPage struct {
	seqs []int64
	last int64
	more bool
}

// page reads up to size messages after one of them, and selects those with the prefix.
func (f *Unsent) page(
	ctx context.Context, l *ledger.Ledger, after int64, size int,
) (p unsentPage, err error) {
	found, err := l.Cancellations.Unsent(ctx, &f.UnsentFilter, after, size+1, f.Prefix != "")
	if err != nil {
		return p, err
	}
	if p.more = len(found) > size; p.more {
		found = found[:size]
	}
	for i := range found {
		m := &found[i]
		p.last = m.Seq
		if f.Prefix == "" ||
			strings.HasPrefix(decide.Recipient(&ledger.Message{Envelope: m.Envelope}), f.Prefix) {
			p.seqs = append(p.seqs, m.Seq)
		}
	}
	return p, nil
}

// countPage is how many messages CountUnsent reads at once.
const countPage = 5000

// CountUnsent is how many messages a filter selects.
func CountUnsent(ctx context.Context, l *ledger.Ledger, f *Unsent) (n int64, err error) {
	p := unsentPage{more: true}
	for p.more {
		if p, err = f.page(ctx, l, p.last, countPage); err != nil {
			return n, err
		}
		n += int64(len(p.seqs))
	}
	return n, nil
}

// CancelledPage is the result of CancelPage.
type CancelledPage struct {
	Cancelled int64
	Left      []Left
	// Last is the Seq with which the page ends. More says that others may follow.
	Last int64
	More bool
}

// CancelPage ends the messages that a filter selects among the next size after one of them. Those
// that cannot be cancelled are left. After an error some may have been cancelled; to cancel them
// again changes nothing.
func CancelPage(
	ctx context.Context, l *ledger.Ledger, f *Unsent, after int64, size int, by By,
) (done CancelledPage, err error) {
	if err := CheckReason(by.Reason); err != nil {
		return done, err
	}
	p, err := f.page(ctx, l, after, size)
	if err != nil {
		return done, err
	}
	all, err := pipeline.Cancel(ctx, l, p.seqs, by.canceller())
	for _, m := range all {
		if m.Why == "" {
			done.Cancelled++
		} else {
			done.Left = append(done.Left, Left{m.ID, m.Why})
		}
	}
	done.Last, done.More = p.last, p.more
	return done, err
}
