package app

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// reloader keeps the pipeline's routing equal to the ledger's current version.
type reloader struct {
	ledger    *ledger.Ledger
	connector connector
	log       zerolog.Logger
	first     func() (name string, document []byte, err error)
	apply     func(*dispatch.Routing, map[string]provider.Channel) error

	mu       sync.Mutex
	version  int64           // guarded by mu
	document *config.Routing // guarded by mu after begin
}

// begin loads the current routing. When the database has none, the first document is
// applied as version 1; of several processes that start at once, one succeeds.
func (r *reloader) begin(ctx context.Context) error {
	current, err := r.ledger.CurrentRouting(ctx)
	if errors.Is(err, ledger.ErrNoRouting) {
		if err := r.applyFirst(ctx); err != nil {
			return err
		}
	} else if err != nil {
		return err
	} else {
		r.compare(current)
	}
	return r.reload(ctx)
}

// compare tells the log when the routing file is not what is in force: it counts only
// as long as the database has no routing.
func (r *reloader) compare(current ledger.RoutingVersion) {
	if r.first == nil {
		return
	}
	name, raw, err := r.first()
	if err == nil && string(raw) != current.Document {
		r.log.Warn().Str("file", name).Int64("version", current.Version).
			Msg("the routing file differs from the routing in force and is not used: it counts only on the first start over a database")
	}
}

func (r *reloader) applyFirst(ctx context.Context) error {
	if r.first == nil {
		return errors.New("the database has no routing yet: set DISPATCHER_ROUTING_FILE to the first routing document")
	}
	name, raw, err := r.first()
	if err != nil {
		return err
	}
	doc, err := config.ParseRouting(name, raw)
	if err != nil {
		return err
	}
	// What is in the ledger cannot be mended in the file any more.
	if err := r.connector.check(name, doc.Channels); err != nil {
		return err
	}
	none := int64(0)
	_, err = r.ledger.ApplyRouting(ctx, ledger.NewRouting{
		Expect: &none, Author: "dispatcher", Reason: "first start with " + name, Document: string(raw), Channels: Specs(doc),
	})
	if _, quicker := errors.AsType[*ledger.VersionConflictError](err); quicker {
		return nil // another process was quicker
	}
	return err
}

// reload makes the ledger's current routing the pipeline's, connecting channels that
// are new or have changed. It is safe for concurrent use and does nothing when the pipeline is up to date.
func (r *reloader) reload(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, err := r.ledger.CurrentRouting(ctx)
	if err != nil || current.Version == r.version {
		return err
	}
	doc, err := config.ParseRouting(fmt.Sprintf("routing version %d", current.Version), []byte(current.Document))
	if err != nil {
		return err
	}
	compiled, err := Compile(doc, current.Version)
	if err != nil {
		return err
	}
	channels, err := r.connectChanged(doc)
	if err != nil {
		return err
	}
	if err := r.apply(compiled, channels); err != nil {
		return err
	}
	if r.document != nil && !reflect.DeepEqual(r.document.Lanes, doc.Lanes) {
		r.log.Warn().Msg("the lanes have changed: their topics are read as before until this instance is started again")
	}
	r.version, r.document = current.Version, doc
	r.log.Info().Int64("version", current.Version).Int("channels", len(doc.Channels)).Int("routes", len(doc.Routes)).Msg("routing in force")
	return nil
}

// connectChanged opens the channels that are new or whose connection has changed.
func (r *reloader) connectChanged(doc *config.Routing) (map[string]provider.Channel, error) {
	before := map[string]*config.Channel{}
	if r.document != nil {
		for i := range r.document.Channels {
			before[r.document.Channels[i].Name] = &r.document.Channels[i]
		}
	}
	opened := map[string]provider.Channel{}
	for i := range doc.Channels {
		c := &doc.Channels[i]
		if old := before[c.Name]; old != nil && sameConnection(old, c) {
			continue
		}
		channel, err := r.connector.connect(c)
		if err != nil {
			return nil, errors.Join(err, closeAll(opened))
		}
		opened[c.Name] = channel
	}
	return opened, nil
}

// lanes are those of the routing in force.
func (r *reloader) lanes() []config.Lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.document.Lanes
}

// sameConnection reports whether nothing changed that a channel's connections or
// pacing depend on.
func sameConnection(a, b *config.Channel) bool {
	return a.Provider == b.Provider && reflect.DeepEqual(a.Settings, b.Settings) && reflect.DeepEqual(a.Limits, b.Limits)
}

// closePatience bounds the end of channels that never carried a message.
const closePatience = 2 * time.Second

func closeAll(channels map[string]provider.Channel) error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	var errs []error
	for _, c := range channels {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// watch reloads whenever a routing is applied. The claim's own version check is what
// guarantees that none is missed; this makes a change quick on an idle process.
func (r *reloader) watch(ctx context.Context) {
	var seen repeats
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := r.ledger.WatchRouting(ctx, func() {
			pause = firstPause
			if err := r.reload(ctx); err != nil && ctx.Err() == nil {
				r.log.Error().Err(err).Msg("the new routing cannot be used here; this instance sends nothing until it can")
			}
		})
		if ctx.Err() != nil {
			break
		}
		if skipped, ok := seen.admit(fmt.Sprint(err), time.Now()); ok {
			r.log.Warn().Err(err).Int("repeated", skipped).Msg("routing watch interrupted, trying again")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
