package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/provider"
)

// Messages reads what is recorded about messages, to explain and to derive choices again.
type Messages struct {
	*db
	routing     *Routing
	ambiguities *Ambiguities
}

// ErrNoMessage means that the ledger holds no message of that id.
var ErrNoMessage = errors.New("the ledger has no message with this id")

// Record is everything that the ledger knows of one message.
type Record struct {
	Message Message
	// FinishedAt is zero while more may happen to the message.
	FinishedAt time.Time
	// Seen is the state, JSON, that the last wait was decided on; nil if it never waited.
	Seen []byte
	// Attempts are in their order.
	Attempts []AttemptRecord
	// Ambiguities are about attempts that nobody answered, by attempt.
	Ambiguities []AmbiguityRecord
	// Routing is the version that the message was planned under; nil when it was not.
	Routing *RoutingVersion
}

// AttemptRecord is an attempt and what came of it.
type AttemptRecord struct {
	Attempt
	// Outcome is a word of audit.attempts.outcome, empty while the answer is pending.
	Outcome string
	// Unfit is Settlement.Unfit, as long as nobody has found out that it was taken.
	Unfit bool
	// Code and Reference are the provider's own words.
	Code, Reference string
	ClaimedAt       time.Time
	SettledAt       time.Time // zero while pending
	DeliveredAt     time.Time // zero unless it was delivered
	// Receipt is what its receipts come to: Delivered, Undelivered or NoReceipt; empty while that
	// is open. Cause and ReceiptCode say why, and ReceiptAt when the last of them came.
	Receipt     State
	Cause       provider.Cause
	ReceiptCode string
	ReceiptAt   time.Time
	// ContradictedAt is when a receipt first said that it was delivered although the provider had
	// not taken it; zero for never.
	ContradictedAt time.Time
	// OtherIDs are ids by which receipts with our key name it, and its answer does not. Only Record
	// reads them.
	OtherIDs []string
	Instance int64
	// Answers is how many outcomes were written so far: 2 when a late truth replaced unknown.
	Answers int
}

// Record reads one message with its attempts and its routing. It returns ErrNoMessage
// for an id that was never stored.
func (s *Messages) Record(ctx context.Context, id string) (Record, error) {
	r, err := s.read(ctx, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Record{}, ErrNoMessage
	}
	if err != nil {
		return Record{}, wrap("read record", err)
	}
	r.Attempts, err = rows(ctx, s.db, scanAttempt, `
		select `+attemptColumns+` from dispatcher.attempts a where a.message_seq = $1 order by a.attempt`, r.Message.Seq)
	if err != nil {
		return Record{}, wrap("read attempts", err)
	}
	others, err := s.ambiguities.otherIDs(ctx, r.Message.Seq)
	if err != nil {
		return Record{}, wrap("read receipts", err)
	}
	for i := range r.Attempts {
		r.Attempts[i].OtherIDs = others[r.Attempts[i].Number]
	}
	if r.Ambiguities, err = s.ambiguities.of(ctx, r.Message.Seq); err != nil {
		return Record{}, wrap("read ambiguities", err)
	}
	if r.Message.Plan.Version == 0 {
		return r, nil
	}
	v, err := s.routing.Version(ctx, r.Message.Plan.Version)
	if err != nil {
		return Record{}, err
	}
	r.Routing = &v
	return r, nil
}

func (s *Messages) read(ctx context.Context, id string) (Record, error) {
	var r recordRow
	err := s.reports.QueryRow(ctx, `select `+recordColumns+` from dispatcher.messages m where m.id = $1`, id).Scan(r.targets()...)
	return r.record(), err
}

func scanAttempt(row pgx.CollectableRow) (AttemptRecord, error) {
	var r attemptRow
	err := row.Scan(r.targets()...)
	return r.attempt(), err
}
