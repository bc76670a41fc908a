// Package statushook sends status events to services over HTTP, signed by Standard Webhooks
// (standardwebhooks.com).
//
// It consumes the status topic as any other consumer does, so it cannot slow down the sending of
// messages. Each webhook has its own consumer group, so a receiver that is down stops only its own
// events. An event is delivered at least once, and the events of one message in order; events older
// than the webhook's MaxAge are dropped. Webhooks that providers call are in package receive.
package statushook

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config"
	"dispatcher/provider/web"
)

// Config is what a Sender needs.
type Config struct {
	Webhooks []config.StatusWebhook // in force at the start
	// Read returns the webhooks to use from now on. It is called every ReadEvery; 0 is 10 s. With
	// nil, Webhooks stay in force.
	Read      func() ([]config.StatusWebhook, error)
	ReadEvery time.Duration
	Client    []kgo.Opt // how to connect to the brokers
	// Group is the prefix of the consumer groups, and Topic the topic of the status events.
	Group, Topic string
	Registry     prometheus.Registerer
	Log          zerolog.Logger
	// Timeout bounds a call; 0 is 10 s. Pause is the wait before the first repetition of a call; 0 is
	// a second. It doubles up to longestPause. GiveUp is how long a receiver may answer 500 to an
	// event, while it takes others, before the event is dropped; 0 is a quarter of an hour.
	Timeout, Pause, GiveUp time.Duration
}

const (
	defaultTimeout = 10 * time.Second
	defaultPause   = time.Second
	defaultGiveUp  = 15 * time.Minute
	// defaultReadEvery is how long a change of the file takes to be in force.
	defaultReadEvery = 10 * time.Second
	longestPause     = 5 * time.Minute
	// connections bounds the connections to one receiver, and so its concurrent calls.
	connections = 16
	// batch is how many events are read at once.
	batch = 200
)

// Sender sends the events of all webhooks.
type Sender struct {
	cfg     Config
	metrics *metrics
	running map[string]*running // by name; owned by Run
	told    string              // the last error that was logged; owned by Run
}

// running is a webhook whose events are being sent.
type running struct {
	hook  *hook
	end   context.CancelFunc
	ended chan struct{}
}

// New returns a Sender. It opens no connection.
func New(cfg Config) *Sender {
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Pause = cmp.Or(cfg.Pause, defaultPause)
	cfg.GiveUp = cmp.Or(cfg.GiveUp, defaultGiveUp)
	cfg.ReadEvery = cmp.Or(cfg.ReadEvery, defaultReadEvery)
	return &Sender{
		cfg: cfg, metrics: newMetrics(cfg.Registry), running: map[string]*running{},
	}
}

// Run sends until ctx ends, always for the webhooks that Read returned last.
func (s *Sender) Run(ctx context.Context) error {
	ticker := time.NewTicker(s.cfg.ReadEvery)
	defer ticker.Stop()
	for hooks := s.cfg.Webhooks; ; hooks = s.read(hooks) {
		s.apply(ctx, hooks)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.stop(slices.Collect(maps.Keys(s.running)))
			return nil
		}
	}
}

// read returns the webhooks to use. If the file is invalid, it returns the previous ones, because a
// typing error in the entry of one service must not stop the events of all.
func (s *Sender) read(before []config.StatusWebhook) []config.StatusWebhook {
	if s.cfg.Read == nil {
		return before
	}
	hooks, err := s.cfg.Read()
	if err != nil {
		if err.Error() != s.told {
			s.told = err.Error()
			s.cfg.Log.Error().Err(err).Msg("the file of status webhooks cannot be used: correct it; " +
				"until then the webhooks stay as they were")
		}
		return before
	}
	s.told = ""
	return hooks
}

// apply stops the running webhooks that are not in the list or differ from it, and starts those
// that do not run. One that cannot be started is tried again the next time.
func (s *Sender) apply(ctx context.Context, list []config.StatusWebhook) {
	wanted, own := map[string]*hook{}, map[string]bool{} // tenants with a webhook of their own
	for i := range list {
		own[list[i].Tenant] = true
	}
	for i := range list {
		wanted[list[i].Name] = s.newHook(&list[i], own)
	}
	var over []string
	for name, r := range s.running {
		if next := wanted[name]; next == nil || !r.hook.same(next) {
			over = append(over, name)
		}
	}
	s.stop(over)
	for _, name := range over {
		if wanted[name] == nil {
			s.metrics.forget(name)
		}
	}
	started := 0
	for name, h := range wanted {
		if s.running[name] != nil {
			continue
		}
		if err := s.start(ctx, h); err != nil {
			h.tell(zerolog.ErrorLevel, err, "a status webhook cannot be started; trying again")
			continue
		}
		started++
	}
	if len(over)+started > 0 {
		s.cfg.Log.Info().Strs("webhooks", slices.Sorted(maps.Keys(s.running))).
			Msg("status webhooks in force")
	}
}

func (s *Sender) newHook(of *config.StatusWebhook, own map[string]bool) *hook {
	return &hook{
		StatusWebhook: *of, own: own, pause: s.cfg.Pause, giveUp: s.cfg.GiveUp, log: s.cfg.Log,
		metrics: s.metrics,
		client: &http.Client{
			Timeout: s.cfg.Timeout, CheckRedirect: web.NoRedirect,
			Transport: web.NewTransport(&web.Config{
				AllowPrivate: of.AllowPrivate, ConnectTimeout: s.cfg.Timeout, Connections: connections,
			}),
		},
	}
}

func (s *Sender) start(ctx context.Context, h *hook) error {
	r, err := newReader(&s.cfg, h)
	if err != nil {
		return err
	}
	s.metrics.start(h.Name)
	ctx, end := context.WithCancel(ctx)
	now := &running{h, end, make(chan struct{})}
	s.running[h.Name] = now
	go func() {
		defer close(now.ended)
		r.run(ctx)
	}()
	return nil
}

// stop ends the deliveries of webhooks, and waits until they have ended. Events that were not
// delivered are delivered later, here or in another process.
func (s *Sender) stop(names []string) {
	for _, name := range names {
		s.running[name].end()
	}
	for _, name := range names {
		<-s.running[name].ended
		delete(s.running, name)
	}
}

// Group is the consumer group of a webhook. It never equals that of a lane, because the name of a
// lane has no dot.
func Group(prefix, webhook string) string { return fmt.Sprintf("%s.webhook.%s", prefix, webhook) }
