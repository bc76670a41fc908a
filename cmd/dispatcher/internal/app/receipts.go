package app

import (
	"context"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/receive"
)

// startReceipts begins to book receipts and to close what none came for. It ends after the channels have closed.
func (a *App) startReceipts(trouble func(where string, err error)) (*receive.Batcher, error) {
	references, err := dispatch.NewReferences(a.opts.Keys)
	if err != nil {
		return nil, err
	}
	desk, err := receive.New(receive.Config{
		Books: a.ledger, Open: references.Open, Freed: func(slots int) { a.dispatch.Freed(slots) }, Trouble: trouble, Registry: a.registry,
	})
	if err != nil {
		return nil, err
	}
	a.own("receipts", func(ctx context.Context) error { desk.Run(ctx); return nil })
	return desk, nil
}
