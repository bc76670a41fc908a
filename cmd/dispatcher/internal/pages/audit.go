package pages

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// mostAudited is how many entries one page of the audit log shows.
const mostAudited = 50

// auditPage lists who changed what, newest first.
type auditPage struct {
	Entries []auditEntry
	Kind    string
	Kinds   []string
	Next    string // address of the next page; empty on the last one
}

// auditEntry is one change that somebody made.
type auditEntry struct {
	At                                     time.Time
	Kind, Author, Login, Via, What, Reason string
	Link                                   string
}

func (s *Server) audit(w http.ResponseWriter, r *request) error {
	p := &auditPage{}
	for _, kind := range ledger.ActionKinds {
		p.Kinds = append(p.Kinds, string(kind))
	}
	asked := r.URL.Query()
	if kind := asked.Get("kind"); slices.Contains(p.Kinds, kind) {
		p.Kind = kind
	}
	actions, next, err := control.Actions(r.Context(), s.cfg.Ledger, &control.ActionsPage{
		Kind: p.Kind, Cursor: asked.Get("cursor"), Limit: mostAudited, Operator: r.may(access.Operate),
	})
	if err != nil {
		return err
	}
	if next != "" {
		p.Next = "/audit?" + url.Values{"kind": {p.Kind}, "cursor": {next}}.Encode()
	}
	changes, err := s.changesOf(r.Context(), actions)
	if err != nil {
		return err
	}
	for i := range actions {
		p.Entries = append(p.Entries, newAuditEntry(&actions[i], changes))
	}
	return s.show(w, r, "audit", "Audit log", p)
}

// newAuditEntry is an action as the page shows it. changes are what versions of the routing
// changed.
func newAuditEntry(a *control.Action, changes map[int64]string) auditEntry {
	e := auditEntry{
		At: a.At, Kind: a.Kind, Author: a.Author, Login: a.Login, Via: a.Via, Reason: a.Reason,
		What: strings.TrimSpace(strings.ReplaceAll(a.Action, "_", " ") + " " + a.Subject),
	}
	switch {
	case a.Kind == string(ledger.RoutingAction):
		e.What, e.Link = a.Subject, "/routing/"+strconv.FormatInt(a.ID, 10)
		if words := changes[a.ID]; words != "" {
			e.What += ": " + words
		}
	case a.Kind == string(ledger.RampAction):
		_, route, _ := strings.Cut(a.Subject, " of ")
		e.Link = routePath(route)
	case a.Action == "cancel" || a.Action == "cancel_pending" || a.Action == "settle":
		e.Link = messagePath(a.Subject)
	}
	if a.Action == "settle" {
		e.What += " " + strings.ReplaceAll(a.Detail, "_", " ")
	} else if a.Detail != "" {
		e.What += ", " + a.Detail
	}
	return e
}

// changesOf says in words what the versions among actions changed. They follow each other, because
// a version comes into force later than those before it.
func (s *Server) changesOf(
	ctx context.Context, actions []control.Action,
) (map[int64]string, error) {
	var newest int64
	n := 0
	for i := range actions {
		if actions[i].Kind == string(ledger.RoutingAction) {
			newest = max(newest, actions[i].ID)
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	lines, err := control.HistoryBefore(ctx, s.cfg.Ledger, newest+1, n)
	words := make(map[int64]string, n)
	for i := range lines {
		words[lines[i].Version] = control.Summary(lines[i].Changes)
	}
	return words, err
}
