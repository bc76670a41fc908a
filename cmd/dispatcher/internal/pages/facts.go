package pages

import (
	"context"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/lookup"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	// factsLife is how long a snapshot is reused, so that many browsers cost the database no more
	// than one.
	factsLife = time.Second
	// factsTimeout bounds the reading of a snapshot.
	factsTimeout = 10 * time.Second
	// chartWithin is the period of the throughput chart, chartInterval that of one point.
	chartWithin   = 10 * time.Minute
	chartInterval = 10 * time.Second
	// late is the longest time from claim to answer of an attempt in these figures.
	late = time.Minute
)

// snapshot is what the pages show of the dispatcher at one moment.
type snapshot struct {
	version    ledger.RoutingVersion
	doc        *config.Routing // in force
	status     *status.Now
	channels   []status.Detail
	limits     *status.Limits
	throughput []ledger.Throughput
	ramps      []ledger.Ramp
	carried    map[string][]ledger.Carried // by route
}

// facts caches the latest snapshot for all requests.
type facts struct {
	server *Server

	mu   sync.Mutex // also held while the database is read: others wait for that snapshot
	last *snapshot
	at   time.Time
}

// read returns a snapshot that is at most factsLife old. After a change, call forget first.
func (f *facts) read(ctx context.Context) (*snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && time.Since(f.at) < factsLife {
		return f.last, nil
	}
	// Other requests wait for this snapshot too, so reading does not end with this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), factsTimeout)
	defer cancel()
	next, err := f.server.readSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	f.last, f.at = next, time.Now()
	return next, nil
}

// forget drops the snapshot, so that the next read queries the database.
func (f *facts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = nil
}

func (s *Server) readSnapshot(ctx context.Context) (*snapshot, error) {
	l := s.cfg.Ledger
	var out snapshot
	var err error
	if out.version, out.doc, err = control.InForce(ctx, l); err != nil {
		return nil, err
	}
	if out.status, err = lookup.Status(ctx, l, s.cfg.DeadAfter, out.version.Version,
		out.doc); err != nil {
		return nil, err
	}
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	out.limits = status.NewLimits(out.version.Version, out.doc, &present, nil)
	out.channels = out.status.Details(out.doc, &present)
	if out.throughput, err = l.Messages.Throughput(ctx, chartWithin, chartInterval); err != nil {
		return nil, err
	}
	if out.ramps, err = l.Ramps.List(ctx, false); err != nil {
		return nil, err
	}
	out.carried, err = s.carried(ctx, &out)
	return &out, err
}

// since is the beginning of the status, or the time at which the version in force was applied if
// that is later: shares over two versions would match the weights of neither.
func (now *snapshot) since() time.Time {
	if applied := now.version.CreatedAt; applied.After(now.status.Since) {
		return applied
	}
	return now.status.Since
}

// carried reads what the routes drew and carried since snapshot.since.
func (s *Server) carried(
	ctx context.Context, now *snapshot,
) (map[string][]ledger.Carried, error) {
	all, err := s.cfg.Ledger.Reports.Carried(ctx, "", now.since(), late, now.version.Version)
	out := map[string][]ledger.Carried{}
	for i := range all {
		out[all[i].Route] = append(out[all[i].Route], all[i])
	}
	return out, err
}
