package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/config"
	"dispatcher/ledger"
)

// Story is why a message went where it went: as data, and as a paragraph that an
// operator can send to a customer. It never holds a phone number or a text.
type Story struct {
	ID     string `json:"id,omitempty"`
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"` // why it is in that state, one bounded word

	Route          string `json:"route"`
	RoutingVersion int64  `json:"routing_version,omitempty"`
	Mode           string `json:"mode"`
	Draw           int64  `json:"draw"`
	Size           int64  `json:"size"`
	DrawKeyID      string `json:"draw_key_id,omitempty"`
	FirstChoice    string `json:"first_choice"`
	// Chosen is the channel of the latest attempt; empty when there is none.
	Chosen string `json:"chosen"`
	// Candidates are the channels that the latest choice looked at, in that order.
	Candidates        []Candidate `json:"candidates"`
	Attempts          []Attempt   `json:"attempts,omitzero"`
	PossibleDuplicate bool        `json:"possible_duplicate,omitempty"`
	Text              string      `json:"text"`
}

// Candidate is one channel that a choice looked at.
type Candidate struct {
	Channel string `json:"channel"`
	// Score is nil: the rankings by load ratio do not score.
	Score *float64 `json:"score"`
	// LoadRatio is nil for a first choice that went through: its load was not looked at.
	LoadRatio *float64 `json:"load_ratio"`
	Eligible  bool     `json:"eligible"`
	Reason    string   `json:"reason"` // why it was passed over; empty when eligible
}

// Attempt is one submit, intended or made.
type Attempt struct {
	Attempt    int         `json:"attempt"`
	Channel    string      `json:"channel"`
	Reason     string      `json:"reason"`  // first_choice, fallback, retry or resend
	Outcome    string      `json:"outcome"` // empty while the answer is pending
	Code       string      `json:"provider_code"`
	Reference  string      `json:"provider_reference"`
	Segments   int         `json:"segments"`
	CostMicros int64       `json:"cost_micros"`
	Currency   string      `json:"currency"`
	ClaimedAt  time.Time   `json:"claimed_at"`
	SettledAt  *time.Time  `json:"settled_at"`
	Candidates []Candidate `json:"candidates,omitempty"` // of the ranking that led here
}

// NewStory tells a message's record. doc is the routing document of the version that
// it was planned under, nil when it was planned under none.
func NewStory(r *ledger.Record, doc *config.Routing) (Story, error) {
	m := &r.Message
	s := Story{
		ID: m.ID, State: string(m.State), Reason: m.Reason, Route: m.Plan.Route, RoutingVersion: m.Plan.Version,
		Draw: m.Plan.Draw, Size: m.Plan.Size, DrawKeyID: m.Plan.KeyID, FirstChoice: m.Plan.FirstChoice,
		Candidates: []Candidate{}, Attempts: []Attempt{}, PossibleDuplicate: m.PossibleDuplicate,
	}
	if route := routeNamed(doc, s.Route); route != nil {
		s.Mode = route.Mode
	}
	for i := range r.Attempts {
		a, err := newAttempt(&r.Attempts[i])
		if err != nil {
			return Story{}, err
		}
		s.Attempts = append(s.Attempts, a)
	}
	if err := s.latestChoice(r); err != nil {
		return Story{}, err
	}
	s.Text = (&teller{record: r, story: &s, doc: doc, zone: zoneOf(doc)}).paragraph()
	return s, nil
}

func zoneOf(doc *config.Routing) *time.Location {
	if doc == nil {
		return time.UTC
	}
	return doc.Timezone
}

// latestChoice fills in what the latest choice looked at: that of the last attempt, or of the wait
// of a message that has not been attempted.
func (s *Story) latestChoice(r *ledger.Record) error {
	if n := len(s.Attempts); n > 0 {
		last := &s.Attempts[n-1]
		s.Chosen, s.Candidates = last.Channel, last.Candidates
		if last.Candidates == nil {
			s.Candidates = []Candidate{{Channel: last.Channel, Eligible: true}}
		}
		return nil
	}
	ranking, err := readRanking(r.Seen)
	if err != nil {
		return err
	}
	s.Candidates = append(s.Candidates, candidates(ranking)...)
	return nil
}

func newAttempt(a *ledger.AttemptRecord) (Attempt, error) {
	ranking, err := readRanking(a.Ranking)
	if err != nil {
		return Attempt{}, err
	}
	out := Attempt{
		Attempt: a.Number, Channel: a.Channel, Reason: string(a.Reason), Outcome: a.Outcome, Code: a.Code, Reference: a.Reference,
		Segments: a.Segments, CostMicros: a.PriceMicros, Currency: a.Currency, ClaimedAt: a.ClaimedAt, Candidates: candidates(ranking),
	}
	if !a.SettledAt.IsZero() {
		out.SettledAt = &a.SettledAt
	}
	return out, nil
}

// readRanking reads the state that was stored with a fallback or a wait; nil without one.
func readRanking(raw []byte) (*dispatch.Ranking, error) {
	if raw == nil {
		return nil, nil
	}
	var r dispatch.Ranking
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("read the stored ranking: %w", err)
	}
	return &r, nil
}

func candidates(r *dispatch.Ranking) []Candidate {
	if r == nil {
		return nil
	}
	out := make([]Candidate, len(r.Candidates))
	for i, c := range r.Candidates {
		out[i] = Candidate{Channel: c.Channel, Eligible: c.Reason == "", Reason: c.Reason}
		if c.Capacity > 0 {
			ratio := float64(c.Active) / float64(c.Capacity)
			out[i].LoadRatio = &ratio
		}
	}
	return out
}

// passedOver are the candidates that were not eligible.
func passedOver(all []Candidate) []Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return c.Eligible })
}
