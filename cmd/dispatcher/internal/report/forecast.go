package report

import (
	"cmp"

	"dispatcher/admission"
	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Forecast explains what would be decided for a message that does not exist. a is that decision;
// doc and keys are the routing document and the draw keys that it was made with.
func Forecast(
	id string, a *decide.Explanation, doc *config.Routing, keys ...selector.Key,
) (Explanation, error) {
	d := &a.Decision
	m := ledger.Message{
		ID: id, Plan: a.Plan, State: d.State, Reason: d.Reason, NextAt: d.NextAt,
		WaitsFor: d.WaitsFor,
	}
	m.Plan.FirstChoice = cmp.Or(a.Plan.FirstChoice, d.Plan.FirstChoice)
	e := newExplanation(&m, doc)
	e.Attempts, e.Segments, e.Alphabet, e.RoutingVersion = nil, 0, "", 0
	e.State, e.Reason, e.Country = forecastState(d.State), d.Reason, a.Country
	e.Basis = Basis{
		RankedBy: string(a.By), Cursor: a.Cursor, Scoring: a.Scoring, Trouble: a.Trouble,
	}
	if d.Attempt.Channel != "" {
		e.Chosen = &d.Attempt.Channel
	}
	for i := range a.Candidates {
		e.Candidates = append(e.Candidates, forecastCandidate(&a.Candidates[i], doc))
	}
	newCompletion(&m, doc, keys).redraw(e.Candidates, &e.Basis)
	if a.Problem != nil {
		e.State, e.Reason, e.Detail = "would_be_dead", string(a.Problem.Code), a.Problem.Detail
	}
	limit := newLimitWait(&m, doc, zoneOf(doc), e.Candidates)
	e.waitsFor(limit)
	p := page{
		Explanation: &e, doc: doc, ranking: &lastRanking{candidates: e.Candidates, doc: doc},
		Limit: limit, zone: zoneOf(doc), Forecast: true,
	}
	var err error
	e.Text, err = p.text("forecast")
	return e, err
}

// forecastCandidate converts a candidate of a forecast, which considers all channels.
func forecastCandidate(c *decide.Candidate, doc *config.Routing) Candidate {
	out := Candidate{
		Channel: c.Channel, Score: c.Score, LoadRatio: &c.LoadRatio, Eligible: new(c.Reason == ""),
		Reason: c.Reason, Segments: &c.Segments, CostMicros: &c.Micros, Currency: c.Currency,
		SenderReplaced: c.Replaced, Limit: c.Limit,
	}
	if c.Never {
		out.Never = lackClosed
		channel, key, _ := admission.ParseOn(c.Limit)
		if limit := limitOn(doc, channel, key); limit != nil && !limit.Closed() {
			out.Never = lackTooSmall
		}
	}
	return out
}

// forecastState is the state in a forecast, such as would_send for sending.
func forecastState(s ledger.State) string {
	words := map[ledger.State]string{
		ledger.Sending: "would_send", ledger.Scheduled: "would_schedule",
		ledger.Waiting: "would_wait",
		ledger.Failed:  "would_fail", ledger.Rejected: "would_reject",
	}
	return cmp.Or(words[s], string(s))
}
