package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"dispatcher/cmd/dispatcher/internal/access"
	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// auditPage lists who changed what, newest first.
type auditPage struct {
	Entries []auditEntry
	Kind    string
	Kinds   []string
	Older   string // link to the next page; empty on the last one
}

// auditEntry is one change that somebody made.
type auditEntry struct {
	At                         time.Time
	Kind, Author, What, Reason string
	Link                       string
	version                    int64 // of a routing version
}

// auditKinds are the kinds of entries that the page can filter by.
var auditKinds = []string{"routing", "ramp", "window", "message"}

// auditPosition is where a page of the audit log begins. The zero value is the newest entry.
type auditPosition struct {
	// Until is the time of the last entry of the previous page, Skip how many entries of that time
	// other than versions were on it.
	Until time.Time
	Skip  int
	// Version is the lowest routing version of all previous pages; 0 for none.
	Version int64
}

func auditPositionOf(r *request) (*auditPosition, error) {
	at, err := readCursor(r.URL.Query().Get("cursor"), 3)
	if err != nil || at == nil {
		return &auditPosition{}, err
	}
	return &auditPosition{time.UnixMicro(at[0]), int(min(max(at[1], 0), 10_000)), at[2]}, nil
}

func (s *Server) audit(w http.ResponseWriter, r *request) error {
	p := &auditPage{Kind: r.URL.Query().Get("kind"), Kinds: auditKinds}
	from, err := auditPositionOf(r)
	if err != nil {
		return err
	}
	entries, err := s.audited(r.Context(), p.Kind, from)
	if err != nil {
		return err
	}
	if len(entries) > pageRows {
		entries = entries[:pageRows]
		next := from.after(entries)
		p.Older = linkTo(r.URL, "cursor", cursorOf(next.Until.UnixMicro(), int64(next.Skip),
			next.Version))
	}
	if !r.may(access.Operate) { // reasons of operators may have numbers
		for i := range entries {
			if entries[i].Kind == "message" {
				entries[i].Reason = ""
			}
		}
	}
	p.Entries = entries
	return s.show(w, r, "audit", "Audit log", p)
}

// audited reads the entries of one kind, or of all for any other word, from a position on: at least
// one more than a page has, if there are as many.
func (s *Server) audited(
	ctx context.Context, kind string, from *auditPosition,
) ([]auditEntry, error) {
	var versions, others []auditEntry
	for name, read := range map[string]func(context.Context, *auditPosition) ([]auditEntry, error){
		"routing": s.auditedVersions, "ramp": s.auditedRamps, "window": s.auditedWindows,
		"message": s.auditedActions,
	} {
		if slices.Contains(auditKinds, kind) && kind != name {
			continue
		}
		entries, err := read(ctx, from)
		switch {
		case err != nil:
			return nil, err
		case name == "routing":
			versions = entries
		default:
			others = append(others, entries...)
		}
	}
	others = slices.DeleteFunc(others, func(e auditEntry) bool {
		return !from.Until.IsZero() && e.At.After(from.Until)
	})
	slices.SortStableFunc(others, newestFirst) // the order is the same for each page
	others = others[min(from.Skip, len(others)):]
	entries := append(versions, others...)
	slices.SortStableFunc(entries, newestFirst)
	return entries, nil
}

// newestFirst orders entries by time. Those of one time stay in the order in which they are read,
// unless they are of different kinds.
func newestFirst(a, b auditEntry) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Kind, b.Kind))
}

// after is the position behind the entries of a page.
func (p *auditPosition) after(page []auditEntry) *auditPosition {
	next := &auditPosition{Until: p.Until, Skip: p.Skip, Version: p.Version}
	for i := range page {
		e := &page[i]
		switch {
		case e.version > 0:
			next.Version = e.version
		case e.At.Equal(next.Until):
			next.Skip++
		default:
			next.Until, next.Skip = e.At, 1
		}
	}
	return next
}

func (s *Server) auditedVersions(
	ctx context.Context, from *auditPosition,
) ([]auditEntry, error) {
	var first ledger.RoutingVersion
	var err error
	switch from.Version {
	case 0:
		first, err = s.cfg.Ledger.Routing.Current(ctx)
	case 1:
		return nil, nil
	default:
		first, err = s.cfg.Ledger.Routing.Version(ctx, from.Version-1)
		if errors.Is(err, ledger.ErrNoRouting) {
			return nil, notFound{"No page has this cursor."}
		}
	}
	if err != nil {
		return nil, err
	}
	lines, err := s.versionLines(ctx, first, pageRows+1)
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
			fmt.Sprintf("/routing/%d", l.Version), l.Version,
		}
	}
	return out, nil
}

// auditedRamps reads the moves of the newest ramps. Each ramp has at least one, so no more ramps are
// needed than a page has rows.
func (s *Server) auditedRamps(ctx context.Context, from *auditPosition) ([]auditEntry, error) {
	ramps, err := s.cfg.Ledger.Ramps.List(ctx, true)
	if err != nil {
		return nil, err
	}
	ramps = slices.DeleteFunc(ramps, func(r ledger.Ramp) bool {
		return !from.Until.IsZero() && r.CreatedAt.After(from.Until)
	})
	var out []auditEntry
	for i := range ramps[:min(len(ramps), pageRows+1)] {
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
				routePath(ramps[i].Route), 0,
			})
		}
	}
	return out, nil
}

func (s *Server) auditedWindows(
	ctx context.Context, _ *auditPosition,
) ([]auditEntry, error) {
	all, err := s.cfg.Ledger.Limits.Restarts(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]auditEntry, len(all))
	for i, w := range all {
		out[i] = auditEntry{
			w.At, "window", w.Author, "window of " + w.Key.On(w.Channel) + " started again", w.Reason, "", 0,
		}
	}
	return out, nil
}

// auditedActions lists the actions of operators on messages.
func (s *Server) auditedActions(
	ctx context.Context, from *auditPosition,
) ([]auditEntry, error) {
	all, err := s.cfg.Ledger.Audits.Actions(ctx, &ledger.ActionFilter{Until: from.Until},
		from.Skip+pageRows+1)
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
