// Package statushook sends status events to services over HTTP, signed as Standard Webhooks
// (standardwebhooks.com) describes it.
//
// It reads the status topic as any other consumer does, so that nothing that it does slows the
// dispatcher down. Each webhook has a consumer group of its own: one whose receiver is away stands
// still alone. An event is delivered at least once, and those of one message in their order, while
// it is younger than the webhook's MaxAge. The webhooks that providers call are those of package
// receive.
package statushook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"dispatcher/config"
	"dispatcher/provider/web"
)

// Config is what a Sender needs.
type Config struct {
	Webhooks []config.StatusWebhook
	Client   []kgo.Opt // reaches the brokers
	// Group is the prefix of the consumer groups, and Topic that of the status events.
	Group, Topic string
	Registry     prometheus.Registerer
	Log          zerolog.Logger
	// Timeout bounds a call; 0 is 10 s. Pause is the first one before a call is made again; 0 is a
	// second. It doubles up to longestPause.
	Timeout, Pause time.Duration
}

const (
	defaultTimeout = 10 * time.Second
	defaultPause   = time.Second
	longestPause   = 5 * time.Minute
	// connections are those to one receiver, and so the calls at the same time.
	connections = 16
	// batch is how many events are read at once. A restart may deliver so many again.
	batch = 200
)

// Sender sends the events of all webhooks.
type Sender struct {
	readers []*reader
	log     zerolog.Logger
}

// New returns a Sender that has not touched the network yet.
func New(cfg Config) (*Sender, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Pause <= 0 {
		cfg.Pause = defaultPause
	}
	own := map[string]bool{} // tenants with a webhook of their own
	for i := range cfg.Webhooks {
		own[cfg.Webhooks[i].Tenant] = true
	}
	m := newMetrics(cfg.Registry)
	s := &Sender{log: cfg.Log}
	for i := range cfg.Webhooks {
		h := &hook{
			StatusWebhook: cfg.Webhooks[i], own: own, pause: cfg.Pause, log: cfg.Log, metrics: m,
		}
		h.client = &http.Client{
			Timeout: cfg.Timeout, CheckRedirect: web.NoRedirect,
			Transport: web.NewTransport(&web.Config{
				AllowPrivate: h.AllowPrivate, ConnectTimeout: cfg.Timeout, Connections: connections,
			}),
		}
		r, err := newReader(&cfg, h)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.readers = append(s.readers, r)
		m.start(h.Name)
	}
	return s, nil
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	var all errgroup.Group
	for _, r := range s.readers {
		all.Go(func() error { r.run(ctx); return nil })
	}
	return all.Wait()
}

func (s *Sender) close() error {
	for _, r := range s.readers {
		r.client.Close()
	}
	return nil
}

// Group is the consumer group of a webhook. No lane has a dot in its name.
func Group(prefix, webhook string) string { return fmt.Sprintf("%s.webhook.%s", prefix, webhook) }
