package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
	"dispatcher/ledger"
)

// readRouting reads and checks a routing document. flag names the flag or setting of the path.
func readRouting(flag, path string) (*config.Routing, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w; correct the path", flag, err))
	}
	doc, err := config.ParseRouting(path, raw)
	if err != nil {
		return nil, usage(err)
	}
	return doc, nil
}

// checkedRouting is readRouting, and also refuses settings that a channel's adapter would refuse.
func checkedRouting(flag, path string) (*config.Routing, error) {
	doc, err := readRouting(flag, path)
	if err != nil {
		return nil, err
	}
	if err := app.CheckChannels(path, doc, nil); err != nil {
		return nil, usage(err)
	}
	return doc, nil
}

// currentVersion is the version in force.
func currentVersion(ctx context.Context, l *database) (ledger.RoutingVersion, error) {
	v, err := l.Routing.Current(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		err = usage(errNoRouting)
	}
	return v, err
}

// inForce is the current version with its document and effects, as draws use them.
func inForce(ctx context.Context, l *database) (ledger.RoutingVersion, *config.Routing, error) {
	v, doc, err := control.InForce(ctx, l.Ledger)
	return v, doc, inCommands(err)
}

// errNoRouting says how the database gets its first routing.
var errNoRouting = errors.New(`there is no routing yet: set DISPATCHER_ROUTING_FILE to a ` +
	`routing document and start "dispatcher run", or use "dispatcher routing apply FILE"`)

// currentRouting is the routing in force: that of the ledger, or before the first start that of the
// file that will be applied.
func currentRouting(ctx context.Context, l *database) (*config.Routing, error) {
	v, err := l.Routing.Current(ctx)
	switch {
	case err == nil:
		return control.StoredRouting(&v)
	case !errors.Is(err, ledger.ErrNoRouting):
		return nil, err
	case l.settings.RoutingFile != "":
		return readRouting("DISPATCHER_ROUTING_FILE", l.settings.RoutingFile)
	}
	return nil, usage(errNoRouting)
}

// lanes returns the lanes of the routing in force. A machine that only publishes may have neither
// database nor file; then they are the lanes of a document that names none.
func (c *cli) lanes(ctx context.Context, s *config.Settings) ([]config.Lane, error) {
	switch {
	case s.PostgresURL != "":
		l, err := c.openLedger(ctx, s)
		if err != nil {
			return nil, usage(fmt.Errorf("the lane's topic stands in the routing, and %w; or name "+
				"it with --topic", err))
		}
		defer l.Close()
		doc, err := currentRouting(ctx, l)
		if err != nil {
			return nil, l.sentence(err)
		}
		return doc.Lanes, nil
	case s.RoutingFile != "":
		doc, err := readRouting("DISPATCHER_ROUTING_FILE", s.RoutingFile)
		if err != nil {
			return nil, err
		}
		return doc.Lanes, nil
	}
	return config.StandardLanes(), nil
}
