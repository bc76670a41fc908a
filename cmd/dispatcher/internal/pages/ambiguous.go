package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/cmd/dispatcher/internal/report"
	"dispatcher/ledger"
)

// ambiguousPage lists ambiguous submissions and dead records.
type ambiguousPage struct {
	Open           []ambiguousLine
	Total          int64
	Ended          bool   // those that stayed unknown are listed too
	Later          string // link to the next page of Open; empty on the last one
	Contradictions []ledger.ContradictionRecord
	Dead           []ledger.DeadRecord
	Older          string   // link to the next page of Dead; empty on the last one
	DeadReasons    []string // of those that were not replayed
}

type ambiguousLine struct {
	ledger.AmbiguityRecord
	Settled bool
}

func (s *Server) ambiguous(w http.ResponseWriter, r *request) error {
	p := &ambiguousPage{Ended: r.URL.Query().Get("all") == "1"}
	if err := s.listAmbiguous(r, p); err != nil {
		return err
	}
	if err := s.listDead(r, p); err != nil {
		return err
	}
	return s.show(w, r, "ambiguous", "Ambiguous and dead", p)
}

// listAmbiguous reads one page of ambiguous submissions, the oldest first.
func (s *Server) listAmbiguous(r *request, p *ambiguousPage) error {
	l := s.cfg.Ledger
	filter := &ledger.AmbiguousFilter{Ended: p.Ended, Channel: r.URL.Query().Get("channel")}
	last, err := control.AmbiguousAt(r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	found, err := l.Ambiguities.After(r.Context(), filter, last, pageRows+1)
	if err != nil {
		return err
	}
	if len(found) > pageRows {
		found = found[:pageRows]
		p.Later = linkTo(r.URL, "after", control.AmbiguousCursor(&found[pageRows-1]))
	}
	for i := range found {
		p.Open = append(p.Open, ambiguousLine{
			AmbiguityRecord: found[i], Settled: found[i].ResolvedAs != "",
		})
	}
	if p.Total, err = l.Ambiguities.Count(r.Context(), filter); err != nil {
		return err
	}
	p.Contradictions, err = l.Ambiguities.Contradictions(r.Context(), filter, pageRows)
	return err
}

// listDead reads one page of dead records, the newest first, and the reasons of the newest ones
// that were not replayed.
func (s *Server) listDead(r *request, p *ambiguousPage) error {
	records := s.cfg.Ledger.DeadRecords
	filter := &ledger.DeadFilter{}
	if below := r.URL.Query().Get("below"); below != "" {
		at, err := control.ReadCursor(below, 1)
		if err != nil {
			return err
		}
		filter.Below = at[0]
	}
	var err error
	if p.Dead, err = records.List(r.Context(), filter, pageRows+1); err != nil {
		return err
	}
	if len(p.Dead) > pageRows {
		p.Dead = p.Dead[:pageRows]
		p.Older = linkTo(r.URL, "below", control.Cursor(p.Dead[pageRows-1].Seq))
	}
	open, err := records.List(r.Context(), &ledger.DeadFilter{Open: true}, mostReplayed)
	for i := range open {
		if !slices.Contains(p.DeadReasons, open[i].Reason) {
			p.DeadReasons = append(p.DeadReasons, open[i].Reason)
		}
	}
	return err
}

// settle settles an ambiguous submission, as the form says.
func (s *Server) settle(w http.ResponseWriter, r *request) error {
	by, err := byOf(r)
	if err != nil {
		return err
	}
	as := &control.Settlement{
		As: r.PostFormValue("as"), Reference: strings.TrimSpace(r.PostFormValue("reference")), By: *by,
	}
	switch {
	case !slices.Contains(control.Resolutions, as.As):
		return refuse("choose what became of the message")
	case as.Reference != "" && as.As != "taken":
		return refuse("only a message that has been taken has an id of the provider: leave the id " +
			"empty")
	}
	id := r.PostFormValue("id")
	attempt, why, err := control.Settle(r.Context(), s.cfg.Ledger, id, 0, as)
	switch {
	case err != nil:
		return err
	case why != "":
		return refuse("message " + report.Quoted(id) + " " + why)
	}
	return s.done(w, r, "/ambiguous", fmt.Sprintf("Attempt %d of message %s on %s is settled as %s.",
		attempt.Number, id, attempt.Channel, strings.ReplaceAll(as.As, "_", " ")))
}
