package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ApplyOverrides makes the current document with other effects the current routing, and returns its
// version. It returns ErrNoRouting when there is no document, and a VersionConflictError when
// n.Expect is not the current version any more: effects were computed for a document and for the
// effects before them.
//
// It locks no channel, so it holds up no claim: a claim reads the current version once, after its
// locks, and so is planned under the one or the other. For the same reason CreatedAt is only about
// when they came into force: between it and the commit, some milliseconds later, claims are made
// under the version before. Messages that wait are not woken, unlike by Apply: they wait for
// a slot, a ready channel or a time, and effects bring none of these. They change only which
// channel is drawn first, and a message that comes due is planned under the version that is current
// then.
func (s *Routing) ApplyOverrides(ctx context.Context, n NewOverrides) (version int64, err error) {
	err = pgx.BeginFunc(ctx, s.reports, func(tx pgx.Tx) error {
		at, err := lockRouting(ctx, tx)
		switch {
		case err != nil:
			return err
		case at.Version == 0:
			return ErrNoRouting
		case at.Version != n.Expect:
			return &VersionConflictError{Expected: n.Expect, Current: at.Version}
		}
		version = at.Version + 1
		return writeOverrides(ctx, tx, &at, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("apply effects: %w", clean(err))
	}
	return version, nil
}

// writeOverrides repeats the document, so that a version can be read by itself, also by an
// instance of a release that knows no effects.
func writeOverrides(ctx context.Context, tx pgx.Tx, at *RoutingVersion, n *NewOverrides) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		insert into dispatcher.routing_versions (version, author, reason, document, effects, base,
		  created_at)
		select version + 1, $2, $3, document, nullif($4, '')::jsonb, $5, `+comesIntoForce+`
		from dispatcher.routing_versions where version = $1`,
		at.Version, n.Author, n.Reason, string(n.Overrides), at.Base)
	batch.Queue(notify, routingChannel, at.Version+1)
	return tx.SendBatch(ctx, batch).Close()
}
