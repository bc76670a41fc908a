package pages

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"dispatcher/config"
	"dispatcher/ledger"
)

// routesPage lists the routes with their figures.
type routesPage struct {
	Version ledger.RoutingVersion
	Routes  []routeNow
}

// routePage is one route with the forms to change it.
type routePage struct {
	routeNow
	Version int64
	Draws   bool        // it has weights, which can be changed
	Preview *effectPage // of the weights in force
	Past    []rampNow
}

// rampNow is a ramp as the pages show it.
type rampNow struct {
	ID                         int64
	State, Why, Author, Reason string
	Step, Steps                int
	Part                       float64
	Every                      string
	NextAt, ChangedAt          time.Time
	Targets                    []rampTarget
	Runs, Held                 bool
}

type rampTarget struct{ Channel, From, To string }

func newRampNow(r *ledger.Ramp) *rampNow {
	out := &rampNow{
		ID: r.ID, State: string(r.State), Why: r.Held, Author: r.Author, Reason: r.Reason,
		Step: r.Step, Steps: r.Steps, Part: float64(r.Step) / float64(max(r.Steps, 1)),
		Every: duration(r.Every), NextAt: r.NextAt, ChangedAt: r.ChangedAt,
		Runs: r.State == ledger.RampRunning, Held: r.State == ledger.RampHeld,
	}
	for _, channel := range slices.Sorted(maps.Keys(r.To)) {
		if r.From[channel] != r.To[channel] {
			out.Targets = append(out.Targets, rampTarget{channel, r.From[channel], r.To[channel]})
		}
	}
	return out
}

func (s *Server) routesNow(r *request) (any, error) {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return nil, err
	}
	return &routesPage{now.version, routesOf(now)}, nil
}

func (s *Server) route(w http.ResponseWriter, r *request) error {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return err
	}
	route, err := routeNamed(now.doc, r.PathValue("route"))
	if err != nil {
		return err
	}
	p := &routePage{
		routeNow: routeOf(now, route), Version: now.version.Version, Draws: route.Weights != nil,
	}
	if p.Draws {
		p.Preview, err = effectOf(now, route, route)
		if err != nil {
			return err
		}
	}
	past, err := s.cfg.Ledger.Ramps.List(r.Context(), true)
	if err != nil {
		return err
	}
	for i := range past {
		if past[i].Route == route.Name && past[i].State.Final() && len(p.Past) < 5 {
			p.Past = append(p.Past, *newRampNow(&past[i]))
		}
	}
	return s.show(w, r, "route", "Route "+route.Name, p)
}

func routeNamed(doc *config.Routing, name string) (*config.Route, error) {
	route := doc.Route(name)
	if route == nil {
		return nil, notFound{fmt.Sprintf("There is no route %q. The page of routes "+
			"lists them.", name)}
	}
	return route, nil
}
