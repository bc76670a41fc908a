package app

import (
	"context"
	"fmt"

	"dispatcher/cmd/dispatcher/internal/inbound"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
)

// startInbound begins to book the messages of subscribers, under the directory of the routing in force. It
// ends after the channels have closed.
func (a *App) startInbound(directory func() *inbound.Directory, trouble func(where string, err error)) (*inbound.Intake, error) {
	region, err := numbers.ParseRegion(a.opts.Settings.DefaultRegion)
	if err != nil {
		return nil, fmt.Errorf("%s_DEFAULT_REGION %w", config.Prefix, err)
	}
	intake, err := inbound.New(inbound.Config{Store: a.ledger, Directory: directory, E164: region.E164, Registry: a.registry, Trouble: trouble})
	if err != nil {
		return nil, err
	}
	a.own("inbound messages", func(ctx context.Context) error { intake.Run(ctx); return nil })
	return intake, nil
}
