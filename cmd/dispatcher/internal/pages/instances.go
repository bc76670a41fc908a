package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"dispatcher/ledger"
)

// instancesPage lists the running processes.
type instancesPage struct {
	Version   int64 // of the routing in force
	Instances []instanceNow
}

type instanceNow struct {
	ID                    int64
	Region, Host, Version string
	StartedAt             time.Time
	Routing               int64
	Behind                bool // it uses an older routing version
	Unanswered            int64
	Channels              []instanceChannel
	Lanes                 []instanceLane
}

type instanceChannel struct {
	Name string
	ledger.InstanceChannel
}

type instanceLane struct {
	Name string
	ledger.InstanceLane
}

func (s *Server) instances(w http.ResponseWriter, r *request) error {
	v, err := s.instancesNow(r)
	if err != nil {
		return err
	}
	return s.show(w, r, "instances", "Instances", v)
}

func (s *Server) instancesNow(r *request) (any, error) {
	current, err := s.cfg.Ledger.Routing.Current(r.Context())
	if err != nil {
		return nil, err
	}
	all, _, err := s.cfg.Ledger.Instances.List(r.Context(), s.cfg.DeadAfter)
	if err != nil {
		return nil, err
	}
	p := &instancesPage{Version: current.Version}
	for i := range all {
		p.Instances = append(p.Instances, newInstanceNow(&all[i], current.Version))
	}
	slices.SortFunc(p.Instances, func(a, b instanceNow) int { return cmp.Compare(a.ID, b.ID) })
	return p, nil
}

func newInstanceNow(i *ledger.Instance, version int64) instanceNow {
	out := instanceNow{
		ID: i.ID, Region: i.Region, Host: i.Host, Version: i.Version, StartedAt: i.StartedAt,
		Routing: i.State.Version,
		Behind:  i.State.Version != 0 && i.State.Version < version,
	}
	for _, name := range slices.Sorted(maps.Keys(i.State.Channels)) {
		c := i.State.Channels[name]
		out.Unanswered += c.Unanswered
		out.Channels = append(out.Channels, instanceChannel{name, c})
	}
	for _, name := range slices.Sorted(maps.Keys(i.State.Lanes)) {
		out.Lanes = append(out.Lanes, instanceLane{name, i.State.Lanes[name]})
	}
	return out
}
