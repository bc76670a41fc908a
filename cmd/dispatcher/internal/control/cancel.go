package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/cmd/dispatcher/internal/pipeline"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Cancel ends a message that has not left, and returns the state that it was in. The state is empty
// for a message that is not in the ledger. If pending is set, the cancellation of such a message is
// stored, and ends the message when it comes.
func Cancel(
	ctx context.Context, l *ledger.Ledger, id string, pending bool, by By,
) (ledger.State, error) {
	if err := CheckReason(by.Reason); err != nil {
		return "", err
	}
	done, err := pipeline.CancelID(ctx, l, id, by.canceller())
	switch {
	case errors.Is(err, ledger.ErrNoMessage) && pending && !envelope.IsID(id):
		return "", unknownf("no message can have the id %s: it is not 1 to 64 printable characters",
			report.Quoted(id))
	case errors.Is(err, ledger.ErrNoMessage) && pending:
		return "", l.Cancellations.Later(ctx, id, by.canceller())
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

// PendingWords says what will become of a message that was cancelled before it came.
func PendingWords(id string) string {
	return "Message " + report.Quoted(id) + " is not in the ledger yet. It is cancelled if it comes " +
		"within DISPATCHER_ID_RETENTION."
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
	if f.Prefix != "" {
		return checkPrefix(f.Prefix)
	}
	return nil
}

// checkPrefix refuses what no number begins with. The error does not repeat it, because it may be a
// number.
func checkPrefix(prefix string) error {
	if !config.IsPrefix(prefix) {
		return refusef("the prefix does not begin a number: write a plus and digits, such as +44")
	}
	return nil
}

// known refuses a lane or a route that is neither in the routing in force nor on any message that
// has not left. It is a typo, and "0 messages" would hide that.
func (f *Unsent) known(ctx context.Context, l *ledger.Ledger) error {
	_, doc, err := InForce(ctx, l)
	if err != nil {
		return nil //nolint:nilerr // Messages can be cancelled under a routing that cannot be read.
	}
	missing := knownNames(
		names{"lane", given(f.Lane), doc.LaneNames()}, names{"route", given(f.Route), doc.RouteNames()},
	)
	if missing == nil {
		return nil
	}
	old := &Unsent{UnsentFilter: ledger.UnsentFilter{Lane: f.Lane, Route: f.Route}}
	if n, err := old.count(ctx, l); err != nil || n > 0 {
		return err
	}
	return missing
}

// words describes the filter in the record of who cancelled. It leaves out a prefix that is a whole
// phone number.
func (f *Unsent) words() string {
	prefix := f.Prefix
	if numbers.In(prefix) {
		prefix = "of one number"
	}
	var words []string
	for _, part := range [][2]string{
		{"lane", f.Lane},
		{"route", f.Route},
		{"tenant", f.Tenant},
		{"prefix", prefix},
		{"since", timeWords(f.Since)},
		{"before", timeWords(f.Before)},
	} {
		if part[1] != "" {
			words = append(words, part[0]+" "+part[1])
		}
	}
	return strings.Join(words, ", ")
}

func timeWords(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// page reads up to size messages that follow the given one, and selects those with the prefix.
func (f *Unsent) page(
	ctx context.Context, l *ledger.Ledger, after int64, size int,
) (seqs []int64, p ledger.UnsentPage, err error) {
	p, err = l.Cancellations.Unsent(ctx, &f.UnsentFilter, after, size, f.Prefix != "")
	for i := range p.Messages {
		m := &p.Messages[i]
		if f.Prefix == "" ||
			strings.HasPrefix(decide.Recipient(&ledger.Message{Envelope: m.Envelope}), f.Prefix) {
			seqs = append(seqs, m.Seq)
		}
	}
	return seqs, p, err
}

// countPage is how many messages CountUnsent reads at once.
const countPage = 5000

// CountUnsent is how many messages a filter selects. The error is an Unknown when it names a lane
// or a route that does not exist.
func CountUnsent(ctx context.Context, l *ledger.Ledger, f *Unsent) (int64, error) {
	n, err := f.count(ctx, l)
	if err == nil && n == 0 {
		err = f.known(ctx, l)
	}
	return n, err
}

func (f *Unsent) count(ctx context.Context, l *ledger.Ledger) (n int64, err error) {
	for p := (ledger.UnsentPage{More: true}); p.More; {
		var seqs []int64
		if seqs, p, err = f.page(ctx, l, p.Last, countPage); err != nil {
			return n, err
		}
		n += int64(len(seqs))
	}
	return n, nil
}

// NoteCancellation records who cancels by which filter, before the first page of a cancellation.
// The error is an Unknown when the filter names a lane or a route that does not exist.
func NoteCancellation(ctx context.Context, l *ledger.Ledger, f *Unsent, by By) error {
	if err := CheckReason(by.Reason); err != nil {
		return err
	}
	if err := f.known(ctx, l); err != nil {
		return err
	}
	return l.Audits.Note(ctx, &ledger.Action{
		Author: by.Author, Reason: by.Reason, Via: by.Via, Name: "cancel_many", Subject: f.words(),
	})
}

// CancelPage takes the next size messages after the given one, and ends those that the filter
// selects. Left lists those that could not be cancelled. After an error some may have been
// cancelled, and Last is where the page began; to cancel them again changes nothing.
func CancelPage(
	ctx context.Context, l *ledger.Ledger, f *Unsent, after int64, size int, by By,
) (done Page[int64], err error) {
	if err := CheckReason(by.Reason); err != nil {
		return done, err
	}
	done.Last, done.More = after, true
	seqs, p, err := f.page(ctx, l, after, size)
	if err != nil {
		return done, err
	}
	all, err := pipeline.Cancel(ctx, l, seqs, by.canceller())
	for _, m := range all {
		if m.Why == "" {
			done.Done++
		} else {
			done.Left = append(done.Left, Left{m.ID, m.Why})
		}
	}
	if err == nil {
		done.Last, done.More = p.Last, p.More
	}
	return done, err
}
