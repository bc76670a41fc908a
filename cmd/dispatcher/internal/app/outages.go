package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/outage"
	"dispatcher/ledger"
)

// postgres is the name of the database in reports of outages.
const postgres = "PostgreSQL"

// How the database is looked at when something failed on it.
const (
	pingTimeout = 3 * time.Second
	pingAgain   = 500 * time.Millisecond
)

// watchDatabase looks, whenever something failed on the database, whether that is away, and tells when it
// is back.
func (a *App) watchDatabase() {
	a.database = &outage.Probe{
		Log: a.outages, Reporter: "database", Timeout: pingTimeout, Again: pingAgain,
		Look: func(ctx context.Context) *outage.Report {
			err := a.ledger.Ping(ctx)
			if err == nil || errors.Is(err, context.Canceled) {
				return nil
			}
			return &outage.Report{What: postgres, Err: err, Sentence: PostgresTrouble(&a.opts.Settings, err).Error() +
				"; until it is back nothing is sent, and Kafka keeps the messages"}
		},
	}
	a.own("database watch", func(ctx context.Context) error { a.database.Run(ctx); return nil })
}

// trouble takes what fails on its way through the process and is tried again. What says that the
// database cannot answer now is told as an outage, or as a fault if that answers all the same.
func (a *App) trouble(where string, err error) {
	if !ofDatabase(where) || !ledger.Unavailable(err) {
		a.outages.Fault(outage.Report{What: where, Reporter: where, Err: err, Sentence: "trying again"})
		return
	}
	a.database.Suspect(outage.Report{
		What: "work of " + postgres, Reporter: where, Err: err,
		Sentence: "PostgreSQL answers, but work on it fails again and again (" + where + "): look at its locks, its disk and its load",
	})
}

// ofDatabase reports whether what fails there fails on the database: the end of a channel and calls of
// providers do not.
func ofDatabase(where string) bool {
	return where != "close" && !strings.HasPrefix(where, "callbacks of ")
}
