package pages

import (
	"net/http"
	"slices"
	"strings"

	"dispatcher/config"
)

// pausesPage shows what is paused, and what can be paused.
type pausesPage struct {
	Version int64
	Items   []pauseItem
	Cancel  cancelForm
}

// cancelForm has the fields of a sent form that cancels many messages, and the result.
type cancelForm struct {
	Kind, Name, Since, Until, Reason string

	Said string // what was counted or cancelled; empty before
	// Rest cancels the rest; nil if there is none.
	Rest *cancelRest
}

// cancelRest is a form that continues after the last message that was tried. It keeps the time
// bounds of the first form, so that it ends although new messages come.
type cancelRest struct {
	Since, Until string
	After, Done  int64 // Done were cancelled before
}

// pauseItem is a lane, a route, a tenant or a prefix of numbers.
type pauseItem struct {
	Kind, Name string
	Paused     bool
}

func (s *Server) pauses(w http.ResponseWriter, r *request) error {
	return s.showPauses(w, r, http.StatusOK, &cancelForm{})
}

func (s *Server) showPauses(
	w http.ResponseWriter, r *request, status int, form *cancelForm,
) error {
	now, err := s.facts.read(r.Context())
	if err != nil {
		return err
	}
	p := &pausesPage{Version: now.version.Version, Cancel: *form}
	p.Items = append(p.Items, pauseItem{"all", "everything", now.doc.Paused.All})
	for _, name := range now.doc.LaneNames() {
		p.Items = append(p.Items, pauseItem{"lane", name, slices.Contains(now.doc.Paused.Lanes, name)})
	}
	for _, name := range now.doc.RouteNames() {
		p.Items = append(p.Items,
			pauseItem{"route", name, slices.Contains(now.doc.Paused.Routes, name)})
	}
	for _, name := range now.doc.Paused.Tenants {
		p.Items = append(p.Items, pauseItem{"tenant", name, true})
	}
	for _, prefix := range now.doc.Paused.Prefixes {
		p.Items = append(p.Items, pauseItem{"prefix", prefix, true})
	}
	s.render(w, r, status, "pauses", "Pauses", p)
	return nil
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
