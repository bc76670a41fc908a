package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/inbound"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/provider"
)

// reloader keeps the pipeline's routing equal to the ledger's current version.
type reloader struct {
	versions *ledger.Routing
	log      zerolog.Logger
	// report gets failures that are tried again; see App.trouble.
	report func(where string, err error)
	// unusable is why the current routing cannot be used on this machine; nil when it can.
	unusable  atomic.Pointer[error]
	first     func() (name string, document []byte, err error)
	file      string // DISPATCHER_ROUTING_FILE
	apply     func(*decide.Routing, map[string]provider.Channel) error
	listeners webhookListeners
	// directory says which tenants own our numbers; nil before the first routing, when no channel is
	// connected.
	directory atomic.Pointer[inbound.Directory]

	mu          sync.Mutex
	connections connections      // guarded by mu
	tokens      map[string]error // guarded by mu: the troubles of readTokens
	version     int64            // guarded by mu
	document    *config.Routing  // guarded by mu; nil before begin
}

// begin loads the current routing. When the database has none, it applies the first document as
// version 1; if several processes start at once, one succeeds.
func (r *reloader) begin(ctx context.Context) error {
	current, err := r.versions.Current(ctx)
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

// compare logs when the routing file differs from the routing in force: the file is only used while
// the database has no routing. The built-in document of embedded mode is no file, so it is not
// compared.
func (r *reloader) compare(current ledger.RoutingVersion) {
	if r.file == "" {
		return
	}
	_, raw, err := r.first()
	if err == nil && string(raw) != current.Document {
		r.log.Warn().Str("file", r.file).Int64("version", current.Version).
			Msg("the routing file differs from the routing in force and is not used: it counts " +
				"only on the first start over a database")
	}
}

func (r *reloader) applyFirst(ctx context.Context) error {
	if r.first == nil {
		return errors.New(
			"the database has no routing yet: set DISPATCHER_ROUTING_FILE to the first routing " +
				"document",
		)
	}
	name, raw, err := r.first()
	if err != nil {
		return err
	}
	doc, err := config.ParseDocument(name, raw)
	if err != nil {
		return err
	}
	// Checked before it is applied: a fault in the ledger can no longer be corrected in the file.
	read := checkRead(r.connections.connector.secrets.Read)
	err = errors.Join(checkChannels(name, doc.Routing.Channels, read),
		checkSenders(name, doc.Routing.Channels, nil))
	if err != nil {
		return err
	}
	none := int64(0)
	first := NewRouting(doc, nil, "dispatcher", "first start with "+name, &none)
	first.Via = ledger.ViaItself
	_, err = r.versions.Apply(ctx, first)
	if _, quicker := errors.AsType[*ledger.VersionConflictError](err); quicker {
		return nil // another process was faster
	}
	return err
}

// reload gives the ledger's current routing to the pipeline and connects channels that are new or
// have changed. It is safe for concurrent use and does nothing when the pipeline is up to date.
//
// At the start of the process, a file that cannot be used is an error. Later it affects only its
// channel or route, and the new routing is still used. The channel keeps its old connection if that
// bills as the new routing says, and is not ready otherwise; a scoring function is called without
// its token. The log and /readyz report it, and every later reload tries again.
func (r *reloader) reload(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, err := r.current(ctx)
	if err != nil || current.Version == r.version && !r.troubled() {
		return err
	}
	_, doc, err := config.ParseVersion(current.Version, current.Document, current.Effects)
	if err != nil {
		return err
	}
	compiled, err := Compile(doc, current.Version)
	if err != nil {
		return err
	}
	compiled.Since = current.CreatedAt
	tokens := readTokens(doc, compiled, r.connections.connector.secrets.Read)
	directory := inbound.NewDirectory(&doc.Inbound)
	// Messages of subscribers may come as soon as the first channels are connected.
	r.directory.CompareAndSwap(nil, directory)
	next := r.connections.change(doc)
	if current.Version == r.version && len(next.opened) == 0 && len(tokens) == len(r.tokens) {
		return nil // what could not be used still cannot be
	}
	if r.document == nil {
		if err := troubles(next.troubles, tokens); err != nil {
			return errors.Join(err, next.drop())
		}
	}
	undo := r.listeners.change(next) // before messages are sent whose receipts the new listeners read
	next.unnameAccounts(compiled)
	if err := r.apply(compiled, next.opened); err != nil {
		undo()
		return errors.Join(err, next.drop())
	}
	r.connections.commit(next)
	r.directory.Store(directory)
	r.tokens = tokens
	r.tell(&current, doc)
	r.version, r.document = current.Version, doc
	return nil
}

// current reads the current routing version.
func (r *reloader) current(ctx context.Context) (ledger.RoutingVersion, error) {
	ctx, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	return r.versions.Current(ctx)
}

// longestRead bounds reading the version. Without it, a reload would wait until the TCP timeout for
// a database whose host vanished.
const longestRead = 15 * time.Second

// troubled reports whether a file of the current routing could not be used. r.mu is held.
func (r *reloader) troubled() bool { return len(r.connections.troubles)+len(r.tokens) > 0 }

// troubles joins those of channels and routes, ordered by name.
func troubles(channels, routes map[string]error) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		errs = append(errs, channels[name])
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		errs = append(errs, fmt.Errorf("route %s: %w", name, routes[name]))
	}
	return errors.Join(errs...)
}

// tell logs the new routing, what changed, and what of it cannot be used.
func (r *reloader) tell(current *ledger.RoutingVersion, doc *config.Routing) {
	event := r.log.Info().
		Int64("version", current.Version).
		Str("author", current.Author).
		Str("reason", current.Reason).
		Int("channels", len(doc.Channels)).
		Int("routes", len(doc.Routes))
	if r.document != nil {
		event = event.Strs("changes", summary(r.document, doc))
		if !reflect.DeepEqual(r.document.Lanes, doc.Lanes) {
			r.log.Warn().
				Msg("the lanes have changed: their topics are read as before until this instance " +
					"is started again")
		}
	}
	event.Msg("routing in force")
	for name, err := range r.connections.troubles {
		how := "it takes no message here"
		if r.connections.live[name] != nil {
			how = "it stays connected with its former settings"
		}
		r.log.Error().
			Err(err).
			Str("channel", name).
			Msg("the settings of a channel cannot be used on this machine: " + how +
				" until that is corrected")
	}
	for name, err := range r.tokens {
		r.log.Error().
			Err(err).
			Str("route", name).
			Msg("the token of a scoring function cannot be read on this machine: it is asked " +
				"without until that is corrected")
	}
}

// lanes returns the lanes of the current routing.
func (r *reloader) lanes() []config.Lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.document.Lanes
}

// channels returns the channels of the current routing.
func (r *reloader) channels() []config.Channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.document.Channels
}

// trouble says, by channel, why its settings cannot be used on this machine.
func (r *reloader) trouble() map[string]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.connections.troubles)
}

// hasTroubles reports whether a reload may help.
func (r *reloader) hasTroubles() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.troubled()
}

// watch reloads whenever a routing is applied, so that an idle process changes at once. A missed
// notification does no harm, because each claim compares the version.
func (r *reloader) watch(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		err := r.versions.Watch(ctx, func() error {
			err := r.reload(ctx)
			if ctx.Err() != nil || ledger.Unavailable(err) {
				return err
			}
			pause = firstPause
			if err == nil {
				r.unusable.Store(nil)
				return nil
			}
			r.unusable.Store(&err)
			r.log.Error().
				Err(err).
				Msg("the new routing cannot be used here; this instance sends nothing until it can")
			return nil
		})
		if ctx.Err() != nil {
			break
		}
		r.report("routing watch", err)
		ledger.Pause(ctx, pause)
	}
}

// retryEvery is the pause between two reloads while something cannot be used.
const retryEvery = 10 * time.Second

// retryTroubles reloads while something cannot be used: a missing file may appear without a new
// version of the routing.
func (r *reloader) retryTroubles(ctx context.Context) {
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !r.hasTroubles() {
			continue
		}
		if err := r.reload(ctx); err != nil && ctx.Err() == nil {
			r.report("routing", err)
		}
	}
}
