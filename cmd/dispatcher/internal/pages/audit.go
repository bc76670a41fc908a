package pages

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// mostAudited is how many entries the audit log shows.
const mostAudited = 200

// auditPage lists who changed what, newest first.
type auditPage struct {
	Entries []auditEntry
	Kind    string
	Kinds   []string
	More    bool
}

// auditEntry is one change that somebody made.
type auditEntry struct {
	At                         time.Time
	Kind, Author, What, Reason string
	Link                       string
}

// auditKinds are the kinds of entries that the page can filter by.
var auditKinds = []string{"routing", "ramp", "window", "message"}

func (s *Server) audit(w http.ResponseWriter, r *request) error {
	p := &auditPage{Kind: r.URL.Query().Get("kind"), Kinds: auditKinds}
	for _, read := range []func(context.Context) ([]auditEntry, error){
		s.auditedVersions, s.auditedRamps, s.auditedWindows, s.auditedActions,
	} {
		entries, err := read(r.Context())
		if err != nil {
			return err
		}
		p.Entries = append(p.Entries, entries...)
	}
	if !r.may(access.Operate) { // reasons of operators may have numbers
		for i := range p.Entries {
			if p.Entries[i].Kind == "message" {
				p.Entries[i].Reason = ""
			}
		}
	}
	if slices.Contains(auditKinds, p.Kind) {
		p.Entries = slices.DeleteFunc(p.Entries, func(e auditEntry) bool { return e.Kind != p.Kind })
	}
	slices.SortStableFunc(p.Entries, func(a, b auditEntry) int { return b.At.Compare(a.At) })
	if p.More = len(p.Entries) > mostAudited; p.More {
		p.Entries = p.Entries[:mostAudited]
	}
	return s.show(w, r, "audit", "Audit log", p)
}

func (s *Server) auditedVersions(ctx context.Context) ([]auditEntry, error) {
	current, err := s.cfg.Ledger.Routing.Current(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := s.versionLines(ctx, current, 50)
	if err != nil {
		return nil, err
	}
	out := make([]auditEntry, len(lines))
	for i, l := range lines {
		what := fmt.Sprintf("version %d", l.Version)
		if len(l.Changes) > 0 {
			what += ": " + control.Summary(l.Changes)
		}
		out[i] = auditEntry{
			l.CreatedAt, "routing", l.Author, what, l.Reason,
			fmt.Sprintf("/routing/%d", l.Version),
		}
	}
	return out, nil
}

func (s *Server) auditedRamps(ctx context.Context) ([]auditEntry, error) {
	ramps, err := s.cfg.Ledger.Ramps.List(ctx, true)
	if err != nil {
		return nil, err
	}
	var out []auditEntry
	for i := range ramps[:min(len(ramps), 20)] {
		moves, err := s.cfg.Ledger.Ramps.Moves(ctx, ramps[i].ID)
		if err != nil {
			return nil, err
		}
		for _, m := range moves {
			if m.Move == "step" {
				continue // the version that it made is listed
			}
			out = append(out, auditEntry{
				m.At, "ramp", m.Author, fmt.Sprintf("ramp %d of route %s %s at step %d of %d",
					ramps[i].ID, ramps[i].Route, m.Move, m.Step, ramps[i].Steps), m.Reason,
				routePath(ramps[i].Route),
			})
		}
	}
	return out, nil
}

func (s *Server) auditedWindows(ctx context.Context) ([]auditEntry, error) {
	all, err := s.cfg.Ledger.Limits.Restarts(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]auditEntry, len(all))
	for i, w := range all {
		out[i] = auditEntry{
			w.At, "window", w.Author, "window of " + w.Key.On(w.Channel) + " started again", w.Reason, "",
		}
	}
	return out, nil
}

// auditedActions lists the actions of operators on messages.
func (s *Server) auditedActions(ctx context.Context) ([]auditEntry, error) {
	all, err := s.cfg.Ledger.Audits.Actions(ctx, &ledger.ActionFilter{}, mostAudited)
	if err != nil {
		return nil, err
	}
	out := make([]auditEntry, len(all))
	for i := range all {
		a := &all[i]
		out[i] = auditEntry{
			At: a.At, Kind: "message", Author: a.Author, What: a.Name + " " + a.Subject,
			Reason: a.Reason,
		}
		if a.As != "" {
			out[i].What += " as " + strings.ReplaceAll(a.As, "_", " ")
		}
		if a.Name == "cancel" || a.Name == "settle" {
			out[i].Link = messagePath(a.Subject)
		}
	}
	return out, nil
}
