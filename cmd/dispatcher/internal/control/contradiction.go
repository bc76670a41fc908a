package control

import (
	"context"
	"time"

	"dispatcher/ledger"
)

// Contradiction is an attempt that its provider denied and whose receipt says delivered. Scripts
// rely on its JSON names.
type Contradiction struct {
	ID                string    `json:"id"`
	Lane              string    `json:"lane"`
	Tenant            string    `json:"tenant"`
	Channel           string    `json:"channel"`
	Attempt           int       `json:"attempt"`
	Outcome           string    `json:"outcome" doc:"the provider's answer"`
	Code              string    `json:"code"`
	Reference         string    `json:"reference" doc:"in the receipt; may be empty"`
	ReceivedAt        time.Time `json:"received_at"`
	State             string    `json:"state" doc:"of the message"`
	PossibleDuplicate bool      `json:"possible_duplicate"`
}

// Contradictions lists those that a filter finds, the oldest first, limit at most.
func Contradictions(
	ctx context.Context, l *ledger.Ledger, f *ledger.AmbiguousFilter, limit int,
) ([]Contradiction, error) {
	found, err := l.Ambiguities.Contradictions(ctx, f, limit)
	out := make([]Contradiction, len(found))
	for i := range found {
		c := &found[i]
		out[i] = Contradiction{
			ID: c.ID, Lane: c.Lane, Tenant: c.Tenant, Channel: c.Channel, Attempt: c.Attempt,
			Outcome: c.Outcome, Code: c.Code, Reference: c.Reference, ReceivedAt: c.ReceivedAt,
			State: string(c.State), PossibleDuplicate: c.PossibleDuplicate,
		}
	}
	return out, err
}
