package app

import (
	"context"

	"dispatcher/cmd/dispatcher/internal/inbound"
)

// startInbound begins to book the messages of subscribers, under the directory of the routing in force. It
// ends after the channels have closed.
func (a *App) startInbound(directory func() *inbound.Directory, trouble func(where string, err error)) (*inbound.Intake, error) {
	intake, err := inbound.New(inbound.Config{Store: a.ledger, Directory: directory, Registry: a.registry, Trouble: trouble})
	if err != nil {
		return nil, err
	}
	a.own("inbound messages", func(ctx context.Context) error { intake.Run(ctx); return nil })
	return intake, nil
}
