package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dispatcher/cmd/dispatcher/internal/seal"
	"dispatcher/config"
	"dispatcher/ledger"
)

// sealInterval is how often an instance checks for messages to seal. It varies by half.
const sealInterval = time.Minute

// sealer adds hashes of stored data to a signed log, which reveals later changes of that data.
type sealer struct {
	store   *ledger.Seals
	keys    *seal.Keys
	facts   time.Duration
	size    prometheus.Gauge
	until   prometheus.Gauge
	trouble func(where string, err error)
}

// seal starts the sealer if there is a key to sign with.
func (a *App) seal() error {
	s := &a.opts.Settings
	if s.SealKeyFile == "" {
		return nil
	}
	lines, err := config.SealKeys(s.SealKeyFile)
	if err != nil {
		return err
	}
	keys, err := seal.ParseKeys(s.SealKeyFile, lines)
	if err != nil {
		return err
	}
	if keys.Signer == nil {
		return fmt.Errorf("%s has no signer key: \"dispatcher audit key\" makes one", s.SealKeyFile)
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "dispatcher", Subsystem: "seal", Name: name, Help: help,
		})
		a.registry.MustRegister(g)
		return g
	}
	w := &sealer{
		store: a.ledger.Seals, keys: keys, facts: a.factsKept(),
		size: gauge("leaves", "How many leaves the log of hashes has."),
		until: gauge("until_timestamp_seconds",
			"Until when received messages are sealed, as a Unix time."),
		trouble: a.trouble,
	}
	a.ownLoop("seals", w.run)
	return nil
}

// run seals what is due until ctx ends.
func (s *sealer) run(ctx context.Context) {
	for {
		select {
		case <-time.After(sealInterval/2 + rand.N(sealInterval)):
			if err := s.add(ctx); err != nil && ctx.Err() == nil {
				s.trouble("seals", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *sealer) add(ctx context.Context) error {
	err := s.store.Add(ctx, s.facts, s.keys.Begin, func(added *ledger.Seal) {
		s.size.Set(float64(added.Size))
		if !added.Again {
			s.until.Set(float64(added.To.Unix()))
		}
	})
	if err != nil {
		return err
	}
	return s.store.Forget(ctx, s.facts)
}
