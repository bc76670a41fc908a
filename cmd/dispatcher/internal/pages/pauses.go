package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/config"
)

// pausesPage shows what is paused, and what can be paused.
type pausesPage struct {
	Version int64
	Paused  config.Paused
	Items   []pauseItem
}

// pauseItem is a lane, a route, a tenant or a prefix of numbers.
type pauseItem struct {
	Kind, Name string
	Paused     bool
}

func (s *Server) pauses(w http.ResponseWriter, r *request) error {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return err
	}
	p := &pausesPage{Version: now.version.Version, Paused: now.doc.Paused}
	p.Items = append(p.Items, pauseItem{"all", "everything", now.doc.Paused.All})
	for _, name := range now.doc.LaneNames() {
		p.Items = append(p.Items, pauseItem{"lane", name, slices.Contains(now.doc.Paused.Lanes, name)})
	}
	for i := range now.doc.Routes {
		name := now.doc.Routes[i].Name
		p.Items = append(p.Items,
			pauseItem{"route", name, slices.Contains(now.doc.Paused.Routes, name)})
	}
	for _, name := range now.doc.Paused.Tenants {
		p.Items = append(p.Items, pauseItem{"tenant", name, true})
	}
	for _, prefix := range now.doc.Paused.Prefixes {
		p.Items = append(p.Items, pauseItem{"prefix", prefix, true})
	}
	return s.show(w, r, "pauses", "Pauses", p)
}

// pause sets or ends one pause.
func (s *Server) pause(w http.ResponseWriter, r *request) error {
	name := strings.TrimSpace(r.PostFormValue("name"))
	which := map[string]*config.Paused{
		"all": {All: true}, "lane": {Lanes: []string{name}}, "route": {Routes: []string{name}},
		"tenant": {Tenants: []string{name}}, "prefix": {Prefixes: []string{name}},
	}[r.PostFormValue("kind")]
	if which == nil || name == "" {
		return refuse("name what is to be paused or resumed")
	}
	draft, err := s.draft(r)
	if err != nil {
		return err
	}
	change := draft.Pause
	switch r.PostFormValue("move") {
	case "pause":
	case "resume":
		change = draft.Resume
	default:
		return refuse("choose to pause or to resume")
	}
	done, err := change(r.Context(), which)
	if err != nil {
		return err
	}
	return s.changed(w, r, "/pauses", done)
}

const (
	// cancelPage is how many messages are cancelled in one transaction, and mostCancelled how many by
	// one form, so that its answer comes within a few seconds.
	cancelPage    = 500
	mostCancelled = 20 * cancelPage
)

// cancelWaiting ends the messages of a lane, a route, a tenant or a prefix that have not left.
// Unless "do" is "cancel" it only counts them.
func (s *Server) cancelWaiting(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	l := s.cfg.Ledger
	filter, err := waitingOf(r.PostFormValue("kind"), strings.TrimSpace(r.PostFormValue("name")))
	if err != nil {
		return err
	}
	if filter.Before, err = l.Clock(r.Context()); err != nil {
		return err
	}
	if r.PostFormValue("do") != "cancel" {
		n, err := control.CountUnsent(r.Context(), l, filter)
		if err != nil {
			return err
		}
		return s.done(w, r, "/pauses", plural(n, "message")+" would be cancelled.")
	}
	var ended, left int64
	page := control.CancelledPage{More: true}
	for page.More && ended+left < mostCancelled {
		page, err = control.CancelPage(r.Context(), l, filter, page.Last, cancelPage, *by)
		ended, left = ended+page.Cancelled, left+int64(len(page.Left))
		if err != nil {
			return fmt.Errorf("cancel messages after %d others: %w", ended, err)
		}
	}
	said := plural(ended, "message") + " cancelled."
	if left > 0 {
		said += " " + plural(left, "message") + " had left or was just leaving."
	}
	if page.More {
		said += " There are more: send the form again."
	}
	return s.done(w, r, "/pauses", said)
}

// waitingOf selects by one word, as a pause does.
func waitingOf(kind, name string) (*control.Unsent, error) {
	f := &control.Unsent{}
	field := map[string]*string{
		"lane": &f.Lane, "route": &f.Route, "tenant": &f.Tenant, "prefix": &f.Prefix,
	}[kind]
	if field == nil || name == "" {
		return nil, refuse("name the lane, the route, the tenant or the prefix whose messages are " +
			"to be cancelled")
	}
	*field = name
	return f, f.Check()
}
