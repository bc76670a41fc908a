package report

import (
	"cmp"
	"fmt"
	"strings"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
)

// NewForecast tells what would be decided for a message that nobody has sent, in the
// form of a Story. doc is the routing document that was asked.
func NewForecast(id string, a *dispatch.Answer, doc *config.Routing) Story {
	s := Story{
		ID: id, State: string(a.Decision.State), Reason: a.Decision.Reason, Route: a.Plan.Route,
		DrawKeyID: a.Plan.KeyID, FirstChoice: cmp.Or(a.Plan.FirstChoice, a.Decision.Plan.FirstChoice),
		Chosen: a.Decision.Attempt.Channel, Candidates: make([]Candidate, len(a.Candidates)),
		Basis: Basis{RankedBy: string(a.By), Cursor: a.Cursor, Scoring: a.Scoring, Trouble: a.Trouble},
	}
	s.Draw, s.Size = drawOf(&a.Plan)
	if route := routeNamed(doc, s.Route); route != nil {
		s.Mode = route.Mode
	}
	behind := false
	for i := range a.Candidates {
		c := &a.Candidates[i]
		s.Candidates[i] = Candidate{Channel: c.Channel, Score: c.Score, LoadRatio: &c.LoadRatio, Eligible: c.Reason == "", Reason: c.Reason}
		if behind && c.Reason == "" {
			s.Candidates[i].Reason = outranked
		}
		behind = behind || c.Channel == s.Chosen
	}
	if a.Problem != nil {
		s.State, s.Reason = string(ledger.Dead), string(a.Problem.Code)
		s.Text = fmt.Sprintf("The message could not be used: %s.", a.Problem.Detail)
		return s
	}
	s.Text = forecastText(&s, a, doc)
	return s
}

func forecastText(s *Story, a *dispatch.Answer, doc *config.Routing) string {
	t := &teller{record: &ledger.Record{Message: ledger.Message{Plan: a.Plan}}, story: s, doc: doc, zone: zoneOf(doc)}
	t.say("Route %s%s takes the message.", s.Route, t.manner())
	if s.Draw != nil {
		t.say("Its draw is %d of 0 to %d%s, so its first choice is %s.", *s.Draw, *s.Size-1, t.interval(), s.FirstChoice)
	}
	if s.Trouble != "" {
		t.say("The channels are scored by how they match the message, because %s.", because(troubleWords, s.Trouble))
	}
	before := untilChosen(s)
	switch a.Decision.State {
	case ledger.Sending:
		t.destination(s, before)
	case ledger.Scheduled:
		t.say("It would be sent %s, by the state of that time.", t.at(a.Decision.NextAt))
	case ledger.Waiting:
		t.say("It would wait, because %s, and be looked at again %s.", reasons(before), t.at(a.Decision.NextAt))
	default:
		t.say("It would be given up, because %s.", reasons(before))
	}
	return strings.Join(t.out, " ")
}

// destination says where the message would go, and what for.
func (t *teller) destination(s *Story, before []Candidate) {
	o := order{Basis: s.Basis, candidates: s.Candidates, ascending: t.ascending(), others: s.Draw != nil, forecast: true}
	switch {
	case len(before) == 0 && s.Draw != nil:
		t.say("It would go there.")
	case len(before) == 0:
		t.say("It would go to %s%s.", s.Chosen, o.merit(0))
	default:
		t.say("It would go to %s%s, because %s.", s.Chosen, o.merit(len(before)), reasons(before))
	}
}

// untilChosen are the candidates that were passed over before the chosen one.
func untilChosen(s *Story) []Candidate {
	for i, c := range s.Candidates {
		if c.Channel == s.Chosen {
			return s.Candidates[:i]
		}
	}
	return passedOver(s.Candidates)
}
