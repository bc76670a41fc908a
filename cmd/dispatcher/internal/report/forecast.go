package report

import (
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
		Draw: a.Plan.Draw, Size: a.Plan.Size, DrawKeyID: a.Plan.KeyID, FirstChoice: a.Plan.FirstChoice,
		Chosen: a.Decision.Attempt.Channel, Candidates: make([]Candidate, len(a.Candidates)),
	}
	if route := routeNamed(doc, s.Route); route != nil {
		s.Mode = route.Mode
	}
	for i, c := range a.Candidates {
		s.Candidates[i] = Candidate{Channel: c.Channel, LoadRatio: &a.Candidates[i].LoadRatio, Eligible: c.Reason == "", Reason: c.Reason}
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
	t.say("Route %s%s takes the message.", s.Route, t.agreed())
	t.say("Its draw is %d of 0 to %d%s, so its first choice is %s.", s.Draw, s.Size-1, t.interval(), s.FirstChoice)
	before := untilChosen(s)
	switch a.Decision.State {
	case ledger.Sending:
		if len(before) == 0 {
			t.say("It would go there.")
		} else {
			t.say("It would go to %s, the next by load, because %s.", s.Chosen, reasons(before))
		}
	case ledger.Scheduled:
		t.say("It would be sent %s, by the state of that time.", t.at(a.Decision.NextAt))
	case ledger.Waiting:
		t.say("It would wait, because %s, and be looked at again %s.", reasons(before), t.at(a.Decision.NextAt))
	default:
		t.say("It would be given up, because %s.", reasons(before))
	}
	return strings.Join(t.out, " ")
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
