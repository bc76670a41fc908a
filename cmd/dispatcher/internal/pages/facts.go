package pages

import (
	"context"
	"sync"
	"time"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/status"
	"dispatcher/config"
	"dispatcher/ledger"
)

const (
	// factsLife is how long facts are shown again without a look at the database: it bounds what
	// all browsers together cost.
	factsLife = time.Second
	// factsTimeout bounds one look.
	factsTimeout = 10 * time.Second
	// chartWithin and chartInterval are what the chart of the throughput tells.
	chartWithin   = 10 * time.Minute
	chartInterval = 10 * time.Second
	// chartedRoutes is how many routes are told apart in what was drawn and carried: each is a
	// question to the database.
	chartedRoutes = 12
	// late is how long before they began attempts may have been claimed that were answered since.
	late = time.Minute
)

// snapshot is how the dispatcher does at one moment.
type snapshot struct {
	version    ledger.RoutingVersion
	doc        *config.Routing // in force
	status     *status.Now
	channels   []status.Detail
	throughput []ledger.Throughput
	ramps      []ledger.Ramp
	carried    map[string][]ledger.Carried // by route
}

// facts keep the latest snapshot for all who look.
type facts struct {
	server *Server

	mu   sync.Mutex // also held while the database is read: others wait for what comes
	last *snapshot
	at   time.Time
}

// read returns a snapshot that is a second old at most. After a change the caller wants a new one.
func (f *facts) read(ctx context.Context) (*snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && time.Since(f.at) < factsLife {
		return f.last, nil
	}
	// Others wait for this look too, so it does not end with the one request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), factsTimeout)
	defer cancel()
	next, err := f.server.look(ctx)
	if err != nil {
		return nil, err
	}
	f.last, f.at = next, time.Now()
	return next, nil
}

// forget makes the next read a new one.
func (f *facts) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = nil
}

func (s *Server) look(ctx context.Context) (*snapshot, error) {
	l := s.cfg.Ledger
	var out snapshot
	var err error
	if out.version, out.doc, err = control.InForce(ctx, l); err != nil {
		return nil, err
	}
	if out.status, err = status.Read(ctx, l, s.cfg.DeadAfter, out.version.Version,
		out.doc); err != nil {
		return nil, err
	}
	present, err := l.Limits.Present(ctx)
	if err != nil {
		return nil, err
	}
	for i := range out.doc.Channels {
		detail := status.NewDetail(out.doc, &out.doc.Channels[i], &present)
		detail.Take(&out.status.Channels[i])
		out.channels = append(out.channels, detail)
	}
	if out.throughput, err = l.Messages.Throughput(ctx, chartWithin, chartInterval); err != nil {
		return nil, err
	}
	if out.ramps, err = l.Ramps.List(ctx, false); err != nil {
		return nil, err
	}
	out.carried, err = s.carried(ctx, &out)
	return &out, err
}

// carried reads what the first weighted routes drew and carried since Since of the status, or
// since the version in force began: shares of two versions in one are those of neither.
func (s *Server) carried(
	ctx context.Context, now *snapshot,
) (map[string][]ledger.Carried, error) {
	since := now.status.Since
	if now.version.CreatedAt.After(since) {
		since = now.version.CreatedAt
	}
	out := map[string][]ledger.Carried{}
	for i := range now.doc.Routes {
		route := &now.doc.Routes[i]
		if len(out) == chartedRoutes {
			break
		}
		if route.Weights == nil {
			continue
		}
		carried, err := s.cfg.Ledger.Reports.Carried(ctx, route.Name, since, late,
			now.version.Version)
		if err != nil {
			return nil, err
		}
		out[route.Name] = carried
	}
	return out, nil
}
