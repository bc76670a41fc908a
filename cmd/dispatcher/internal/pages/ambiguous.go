package pages

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"dispatcher/cmd/dispatcher/internal/control"
	"dispatcher/ledger"
)

// mostAmbiguous is how many submissions the page lists.
const mostAmbiguous = 200

// ambiguousPage lists ambiguous submissions and dead records.
type ambiguousPage struct {
	Open           []ambiguousLine
	Total          int64
	Ended          bool // those that stayed unknown are listed too
	Contradictions []ledger.ContradictionRecord
	Version        int64
	Dead           []ledger.DeadRecord
	Replayable     bool     // at least one of Dead was not replayed
	DeadReasons    []string // of those that were not replayed
}

type ambiguousLine struct {
	ledger.AmbiguityRecord
	Settled bool
}

func (s *Server) ambiguous(w http.ResponseWriter, r *request) error {
	l := s.cfg.Ledger
	current, err := l.Routing.Current(r.Context())
	if err != nil {
		return err
	}
	p := &ambiguousPage{Version: current.Version, Ended: r.URL.Query().Get("all") == "1"}
	filter := &ledger.AmbiguousFilter{Ended: p.Ended, Channel: r.URL.Query().Get("channel")}
	found, err := l.Ambiguities.List(r.Context(), filter, mostAmbiguous)
	if err != nil {
		return err
	}
	for i := range found {
		p.Open = append(p.Open, ambiguousLine{
			AmbiguityRecord: found[i], Settled: found[i].ResolvedAs != "",
		})
	}
	if p.Total, err = l.Ambiguities.Count(r.Context(), filter); err != nil {
		return err
	}
	if p.Contradictions, err = l.Ambiguities.Contradictions(r.Context(), filter,
		mostAmbiguous); err != nil {
		return err
	}
	if p.Dead, err = l.DeadRecords.List(r.Context(), &ledger.DeadFilter{}, mostAmbiguous); err != nil {
		return err
	}
	for i := range p.Dead {
		if d := &p.Dead[i]; d.Replay == nil {
			p.Replayable = true
			if !slices.Contains(p.DeadReasons, d.Reason) {
				p.DeadReasons = append(p.DeadReasons, d.Reason)
			}
		}
	}
	return s.show(w, r, "ambiguous", "Ambiguous and dead", p)
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
	case !slices.Contains(control.Verdicts, as.As):
		return refuse("choose what became of the message")
	case as.Reference != "" && as.As != "taken":
		return refuse("only a message that has been taken has an id of the provider")
	}
	id := r.PostFormValue("id")
	attempt, why, err := control.Settle(r.Context(), s.cfg.Ledger, id, 0, as)
	switch {
	case err != nil:
		return err
	case why != "":
		return refuse("message " + control.Quoted(id) + " " + why)
	}
	return s.done(w, r, "/ambiguous", fmt.Sprintf("Attempt %d of message %s on %s is settled as %s.",
		attempt.Number, id, attempt.Channel, strings.ReplaceAll(as.As, "_", " ")))
}
