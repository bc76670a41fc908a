package report

import (
	"cmp"
	"fmt"
	"strings"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// NewForecast tells what would be decided for a message that nobody has sent, in the
// form of a Story. doc is the routing document that was asked, keys are those that it was asked with.
func NewForecast(id string, a *dispatch.Answer, doc *config.Routing, keys ...selector.Key) Story {
	s := Story{
		ID: id, State: forecastState(a.Decision.State), Reason: a.Decision.Reason, Country: a.Country, Route: a.Plan.Route,
		DrawKeyID: a.Plan.KeyID, FirstChoice: cmp.Or(a.Plan.FirstChoice, a.Decision.Plan.FirstChoice),
		Chosen: channelOrNil(a.Decision.Attempt.Channel), Candidates: make([]Candidate, len(a.Candidates)),
		Basis: Basis{RankedBy: string(a.By), Cursor: a.Cursor, Scoring: a.Scoring, Trouble: a.Trouble},
	}
	s.Draw, s.Size = drawOf(&a.Plan)
	if route := routeNamed(doc, s.Route); route != nil {
		s.Mode = route.Mode
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		s.Candidates[i] = Candidate{
			Channel: c.Channel, Score: c.Score, LoadRatio: &c.LoadRatio, Eligible: new(c.Reason == ""), Reason: c.Reason,
			Segments: &c.Segments, CostMicros: &c.Micros, Currency: c.Currency, SenderReplaced: c.Replaced,
		}
		if c.Never {
			s.Candidates[i].Limit, s.Candidates[i].Never = c.Limit, neverOf(doc, c.Limit)
		}
	}
	newLookback(&ledger.Message{ID: id, Plan: a.Plan}, doc, keys).redraw(s.Candidates, &s.Basis)
	if a.Problem != nil {
		s.State, s.Reason = "would_be_dead", string(a.Problem.Code)
		s.Text = fmt.Sprintf("The message could not be used: %s.", a.Problem.Detail)
		return s
	}
	if a.Decision.State == ledger.Rejected {
		s.Text = fmt.Sprintf("The message would be rejected, because %s. %s", because(rejectedWords, a.Decision.Reason), countrySentence(&s, doc))
		s.Text = strings.TrimSpace(s.Text)
		return s
	}
	s.Text = forecastText(&s, a, doc)
	return s
}

// neverOf is why a limit that never has room for the message has none.
func neverOf(doc *config.Routing, on string) string {
	channel, key, _ := admission.ParseOn(on)
	if limit := limitOn(doc, channel, key); limit != nil && limit.Max > 0 {
		return neverSmall
	}
	return neverOpen
}

// forecastState says that nothing has happened: what would be under way is would_send, what would wait
// would_wait and so on.
func forecastState(s ledger.State) string {
	words := map[ledger.State]string{
		ledger.Sending: "would_send", ledger.Scheduled: "would_schedule", ledger.Waiting: "would_wait", ledger.Failed: "would_fail",
		ledger.Rejected: "would_reject",
	}
	return cmp.Or(words[s], string(s))
}

func channelOrNil(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

func forecastText(s *Story, a *dispatch.Answer, doc *config.Routing) string {
	d := &a.Decision
	m := ledger.Message{Plan: a.Plan, State: d.State, Reason: d.Reason, NextAt: d.NextAt, WaitsFor: d.WaitsFor}
	t := &teller{record: &ledger.Record{Message: m}, story: s, doc: doc, zone: zoneOf(doc)}
	t.seen = seen{known: true, candidates: s.Candidates}
	if t.limit = newLimited(&m, doc, t.zone, s.Candidates); t.limit != nil {
		s.Limit = t.limit.on
	}
	t.country()
	t.say("Route %s%s takes the message.", s.Route, t.manner())
	if s.Draw != nil {
		t.drawn("is")
	}
	if s.Trouble != "" {
		t.say("The channels are scored by how they match the message, because %s.", because(troubleWords, s.Trouble))
	}
	before := passedOver(s.Candidates)
	switch a.Decision.State {
	case ledger.Sending:
		t.destination(s, before)
		t.bill(s)
	case ledger.Scheduled:
		t.say("It would be sent %s, by the state of that time.", t.at(a.Decision.NextAt))
	case ledger.Waiting:
		t.wouldWait(before)
		t.wouldBeKept(s, before)
	default:
		t.say("It would be given up, because %s.", reasons(before))
	}
	return strings.Join(t.out, " ")
}

// bill says what the message would cost where it goes, and whether under another sender.
func (t *teller) bill(s *Story) {
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if s.Chosen == nil || c.Channel != *s.Chosen || c.Segments == nil {
			continue
		}
		if c.Currency != "" {
			t.say("It would cost %s for %s.", Money(*c.CostMicros)+" "+c.Currency, plural(*c.Segments, "segment"))
		}
		if c.SenderReplaced {
			t.say("Its sender would be replaced by the one that the channel has for the country.")
		}
	}
}

// wouldWait says what the message would wait for, and until when.
func (t *teller) wouldWait(before []Candidate) {
	next := t.record.Message.NextAt
	if t.limit == nil {
		t.say("It would wait, because %s, and be looked at again %s.", reasons(before), t.at(next))
		return
	}
	t.say("%s.", t.limit.sentence("It would wait", t.when))
	if others := t.others(); len(others) > 0 {
		t.say("Besides, %s.", reasons(others))
	}
	t.say("It would be looked at again %s.", t.at(next))
}

// wouldBeKept says how long the message would wait for its first choice, where another channel could take it at once.
func (t *teller) wouldBeKept(s *Story, before []Candidate) {
	if route := routeNamed(t.doc, s.Route); route != nil && route.Wait > 0 && len(before) < len(s.Candidates) {
		t.say("It would be kept for %s for %s, then others might have it.", s.FirstChoice, span(route.Wait))
	}
}

// destination says where the message would go, and what for.
func (t *teller) destination(s *Story, before []Candidate) {
	o := order{Basis: s.Basis, candidates: s.Candidates, ascending: t.ascending(), others: s.Draw != nil, forecast: true}
	switch {
	case len(before) == 0 && s.Draw != nil:
		t.say("It would go there.")
	case len(before) == 0:
		t.say("It would go to %s%s.", *s.Chosen, o.merit(0))
	default:
		t.say("It would go to %s%s, because %s.", *s.Chosen, o.merit(len(before)), reasons(before))
	}
}
