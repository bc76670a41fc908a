package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Words of facts.payload_evidence for payloads that are not intact.
const (
	PayloadGone      = "gone"
	PayloadUnhashed  = "unhashed"
	PayloadChanged   = "changed"
	PayloadRecipient = "recipient"
	PayloadNoSalt    = "no_salt"
)

// ComparedPayloads counts the messages of a range by the state of their payloads.
type ComparedPayloads struct {
	// Compared have a payload and its hash.
	Compared int64 `json:"compared"`
	// Gone have no payload any more.
	Gone int64 `json:"gone"`
	// Unhashed were stored by an earlier release, without a salt, so that their hash can be checked
	// only with the draw key. Only their recipients were compared.
	Unhashed int64 `json:"unhashed"`
}

// ChangedPayload is a payload that is not the one that was received.
type ChangedPayload struct {
	ID string
	// What is PayloadChanged, PayloadRecipient or PayloadNoSalt.
	What string
}

// payloadPiece is how many payloads one statement compares: about half a second.
const payloadPiece = 50_000

// comparePayloads counts messages by word, and names each whose payload was changed. Without
// "offset 0" the planner would have each payload hashed twice.
const comparePayloads = `
	select payload, coalesce(changed, ''), count(*), min(seq)
	from (
	  select seq, id, payload from facts.payload_evidence
	  where seq > @low and seq < @high and received_at >= @from and received_at < @to offset 0) p
	cross join lateral (
	  select case when payload in ('changed', 'recipient', 'no_salt') then id end as changed) c
	group by payload, changed order by 4`

// Payloads compares the payloads of messages received in [from, to) with the hashes that their
// messages have. It calls each with those that were changed, in the order in which they came. It
// reads only views that finance may read, some messages at a time.
func (s *Sealed) Payloads(
	ctx context.Context, from, to time.Time, each func([]ChangedPayload),
) (c ComparedPayloads, err error) {
	const what = "compare payloads with messages"
	low, high, err := s.seekRange(ctx, from, to)
	if err != nil {
		return c, wrap(what, err)
	}
	for {
		var last *int64
		if err := s.reports.QueryRow(ctx, lastOfPiece, low, high, payloadPiece).
			Scan(&last); err != nil {
			return c, wrap(what, err)
		}
		if last == nil {
			return c, nil
		}
		changed, err := s.comparePayloads(ctx, &c, pgx.NamedArgs{
			"from": from, "to": to, "low": low, "high": *last + 1,
		})
		if err != nil {
			return c, wrap(what, err)
		}
		each(changed)
		low = *last
	}
}

// comparePayloads compares a piece, adds to c, and returns those that were changed.
func (s *Sealed) comparePayloads(
	ctx context.Context, c *ComparedPayloads, piece pgx.NamedArgs,
) (changed []ChangedPayload, err error) {
	found, err := s.reports.Query(ctx, comparePayloads, piece)
	if err != nil {
		return nil, err
	}
	var word, id string
	var n, first int64
	_, err = pgx.ForEachRow(found, []any{&word, &id, &n, &first}, func() error {
		switch word {
		case PayloadGone:
			c.Gone += n
			return nil
		case PayloadUnhashed:
			c.Unhashed += n
			return nil
		}
		c.Compared += n
		if id != "" {
			changed = append(changed, ChangedPayload{id, word})
		}
		return nil
	})
	return changed, err
}
