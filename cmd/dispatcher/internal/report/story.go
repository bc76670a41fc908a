package report

import (
	"cmp"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/dispatch"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Story is why a message went where it went: as data, and as a paragraph that an
// operator can send to a customer. It never holds a phone number or a text.
type Story struct {
	ID     string `json:"id,omitempty"`
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"` // why it is in that state, one bounded word
	Detail string `json:"detail,omitempty"` // why it is dead, in a sentence

	// Country is that of the number, ISO 3166 in lower case; empty when it has none that is known, and nil when the number
	// is not known.
	Country *string `json:"country,omitempty"`

	Route          string `json:"route"`
	RoutingVersion int64  `json:"routing_version,omitempty"`
	Mode           string `json:"mode"`
	// Draw and Size are nil for a route that does not draw.
	Draw        *int64 `json:"draw"`
	Size        *int64 `json:"size"`
	DrawKeyID   string `json:"draw_key_id,omitempty"`
	FirstChoice string `json:"first_choice"`
	// Chosen is the channel of the latest attempt; nil when there is none.
	Chosen *string `json:"chosen"`
	// Candidates are the channels that the latest choice looked at, in that order, and Basis is
	// what the order went by.
	Candidates []Candidate `json:"candidates"`
	Basis
	Attempts          []Attempt `json:"attempts,omitzero"`
	PossibleDuplicate bool      `json:"possible_duplicate,omitempty"`
	// PartsAccepted is how many parts of a message that was not taken whole its provider has accepted: they are billed.
	PartsAccepted int `json:"parts_accepted,omitempty"`
	// DueAmbiguities are about attempts that nobody answered.
	Doubts []Doubt `json:"doubts,omitempty"`
	// Waits are what the message waited for, in the order in which it first did, with that under way.
	Waits []Wait `json:"waits,omitzero"`
	// Limit names the limit that the message waits for now, as admission.Key.On, and Until is when that has room again at
	// the earliest: nil when nobody knows, or never.
	Limit string     `json:"limit,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// HeldUntil is when a message that waits for its first choice may go to others too: nil for one that does not, and where
	// that is not before its deadline.
	HeldUntil *time.Time `json:"held_until,omitempty"`
	// Deadline is when the message is given up if nobody has taken it.
	Deadline *time.Time `json:"deadline,omitempty"`
	Text     string     `json:"text"`
}

// Basis is what an order of candidates went by.
type Basis struct {
	RankedBy string `json:"ranked_by,omitempty"` // load_ratio, best_worker, round_robin, redraw, or wait: nobody was ranked
	// RankedVersion is the routing version that the candidates come from.
	RankedVersion int64 `json:"ranked_version,omitempty"`
	// Cursor had the turn before, for round robin.
	Cursor string `json:"cursor,omitempty"`
	// RedrawKeyID names the key of a redraw.
	RedrawKeyID string `json:"redraw_key_id,omitempty"`
	// Scoring is expression or function; empty for the default scoring.
	Scoring string `json:"scoring,omitempty"`
	// Trouble is why the route's own scoring did not count.
	Trouble string `json:"trouble,omitempty"`
	// More is how many candidates behind those listed are not.
	More int `json:"more,omitempty"`
}

// Candidate is one channel that a choice looked at.
type Candidate struct {
	Channel string `json:"channel"`
	// Score is nil unless best worker ranked.
	Score *float64 `json:"score"`
	// LoadRatio is nil where nobody looked at the load: for a drawn first choice that went through, and
	// where turn, draw or a score that does not go by it made the order.
	LoadRatio *float64 `json:"load_ratio"`
	// Eligible is nil for one behind the chosen one that nobody looked at: whether it could have
	// taken the message is not known, unless the routing version alone forbids it.
	Eligible *bool `json:"eligible"`
	// Reason says why it was passed over or could not have taken the message, or that it was outranked
	// and nobody looked at it. It is empty when Eligible is true.
	Reason string `json:"reason"`
	// Segments is how many billed parts the message has on the channel, and CostMicros what they cost, in Currency; nil
	// and empty where they were not worked out, as for a record.
	Segments   *int   `json:"segments,omitempty"`
	CostMicros *int64 `json:"cost_micros,omitempty"`
	Currency   string `json:"currency,omitempty"`
	// SenderReplaced is set where the channel puts a sender of its own in the place of the message's.
	SenderReplaced bool `json:"sender_replaced,omitempty"`
	// Limit names a limit that never has room for the message, as admission.Key.On, and Never says why; both are empty
	// when it is not known that one is in the way for good.
	Limit string `json:"limit,omitempty"`
	Never string `json:"never,omitempty"` // closed: it is 0; too_small: it is less than the message takes
	// Redraw is the draw that picked it, for a redraw; nil for others.
	Redraw *Redraw `json:"redraw,omitempty"`
	// LastAssigned breaks ties: when it was last given a message; nil if never, or not known.
	LastAssigned *time.Time `json:"last_assigned,omitempty"`
}

// outranked is the reason of candidates behind the chosen one.
const outranked = "outranked"

// Attempt is one submit, intended or made.
type Attempt struct {
	Attempt    int         `json:"attempt"`
	Channel    string      `json:"channel"`
	Reason     string      `json:"reason"`          // first_choice, fallback, retry or resend
	Outcome    string      `json:"outcome"`         // empty while the answer is pending
	Unfit      bool        `json:"unfit,omitempty"` // it was refused for what is wrong with this one message
	Code       string      `json:"provider_code"`
	Reference  string      `json:"provider_reference"`
	Segments   int         `json:"segments"`
	CostMicros int64       `json:"cost_micros"`
	Currency   string      `json:"currency"`
	ClaimedAt  time.Time   `json:"claimed_at"`
	SettledAt  *time.Time  `json:"settled_at"`
	Candidates []Candidate `json:"candidates,omitempty"` // of the ranking that led here
	Basis
	// What its receipts came to, in the words of audit.attempts; left out while they are open.
	Receipt      string     `json:"receipt_state,omitempty"`
	ReceiptCause string     `json:"receipt_cause,omitempty"`
	ReceiptCode  string     `json:"receipt_code,omitempty"`
	ReceiptAt    *time.Time `json:"receipt_at,omitempty"`
	// ContradictedAt is when a receipt said that it was delivered, although the provider had answered that it did not take it.
	ContradictedAt *time.Time `json:"contradicted_at,omitempty"`
	// ReceiptReferences are ids by which receipts name it, and the provider's answer does not.
	ReceiptReferences []string `json:"receipt_references,omitempty"`
}

// Source is what the story of a message is told from.
type Source struct {
	Record *ledger.Record
	// Doc is the routing document of the version that the message was planned under; nil when it was planned under none.
	Doc *config.Routing
	// WaitDoc is that of the version that its last wait went by; nil when that is not known.
	WaitDoc *config.Routing
	// Zone is the business time zone in force, in which all times are told; nil is that of Doc, or UTC.
	Zone *time.Location
	// Now is the database's clock. Without it nothing is told of how long the wait under way has lasted.
	Now time.Time
	// Ahead is when the window of the limit begins that the message waits for, if that is in the future: the database's clock
	// was ahead when it was opened. Zero otherwise.
	Ahead time.Time
	// Keys are those that drew: with them second draws are told as well, without them only their intervals.
	Keys []selector.Key
}

// NewStory tells a message's record.
func NewStory(src *Source) (Story, error) {
	r, doc := src.Record, src.Doc
	m := &r.Message
	waits := allWaits(m, src.Now)
	s := Story{
		ID: m.ID, State: string(m.State), Reason: m.Reason, Detail: m.Detail, Country: countryOf(m, numbers.NewCountries()), Route: m.Plan.Route, RoutingVersion: m.Plan.Version,
		DrawKeyID: m.Plan.KeyID, FirstChoice: m.Plan.FirstChoice, Candidates: []Candidate{},
		Attempts: []Attempt{}, PossibleDuplicate: m.PossibleDuplicate, Waits: waitsAsData(waits),
	}
	s.Draw, s.Size = drawOf(&m.Plan)
	if route := routeNamed(doc, s.Route); route != nil {
		s.Mode = route.Mode
	}
	l := newLookback(m, doc, src.Keys)
	for i := range r.Attempts {
		a, err := newAttempt(&r.Attempts[i])
		if err != nil {
			return Story{}, err
		}
		l.look(a.Candidates, &a.Basis, a.ClaimedAt)
		s.Attempts = append(s.Attempts, a)
	}
	s.PartsAccepted = partsAccepted(r)
	s.Doubts = newDoubts(r.Ambiguities)
	seen, err := newSeen(src)
	if err != nil {
		return Story{}, err
	}
	s.latestChoice(seen)
	limit := newLimited(m, src.WaitDoc, zoneOf(doc), seen.candidates)
	limit.ahead(src.Ahead, zoneOf(doc))
	s.waitsUntil(m, limit)
	s.HeldUntil = heldUntil(src, &seen)
	s.Text = (&teller{record: r, story: &s, doc: doc, zone: cmp.Or(src.Zone, zoneOf(doc)), now: src.Now, waits: waits, seen: seen, limit: limit}).paragraph()
	return s, nil
}

// partsAccepted is how many parts of a message that was not taken whole its provider has accepted; 0 when it was, or may have been.
func partsAccepted(r *ledger.Record) (n int) {
	for i := range r.Attempts {
		switch a := &r.Attempts[i]; a.Outcome {
		case outcomeAccepted, outcomeUnknown:
			return 0
		case "": // it is under way
		default:
			n += a.Segments
		}
	}
	return n
}

// waitsUntil fills in what ends the wait of a message.
func (s *Story) waitsUntil(m *ledger.Message, limit *limited) {
	if !m.ExpiresAt.IsZero() {
		s.Deadline = &m.ExpiresAt
	}
	if limit == nil {
		return
	}
	s.Limit = limit.on
	if !limit.until.IsZero() {
		s.Until = &limit.until
	}
}

// seen is what the last wait was decided on; the zero value when the message never waited, or when that looked at nobody.
type seen struct {
	known      bool
	candidates []Candidate
	basis      Basis
}

// held reports whether the message was last held for its first choice, and nobody else was looked at.
func (s *seen) held() bool { return s.basis.RankedBy == "wait" }

func newSeen(src *Source) (seen, error) {
	ranking, err := dispatch.ReadRanking(src.Record.Seen)
	if err != nil || ranking == nil {
		return seen{}, err
	}
	s := seen{known: true, candidates: candidates(ranking), basis: basisOf(ranking)}
	newLookback(&src.Record.Message, src.WaitDoc, nil).bars(s.candidates)
	return s, nil
}

// heldUntil is when a message that waits for its first choice is to go to others too, by the document that its wait went by.
// Once that is over nothing is left to tell but that it is looked at again.
func heldUntil(src *Source, seen *seen) *time.Time {
	m := &src.Record.Message
	route := routeNamed(src.WaitDoc, m.Plan.Route)
	if m.State != ledger.Waiting || !seen.held() || route == nil || route.Wait == 0 {
		return nil
	}
	end := m.ReceivedAt.Add(route.Wait)
	if !end.Before(m.ExpiresAt) || !src.Now.IsZero() && !end.After(src.Now) {
		return nil
	}
	return &end
}

// drawOf is the draw of a plan and the number of possible ones; nil when nothing was drawn.
func drawOf(p *ledger.Plan) (draw, size *int64) {
	if p.Size == 0 {
		return nil, nil
	}
	return &p.Draw, &p.Size
}

func zoneOf(doc *config.Routing) *time.Location {
	if doc == nil {
		return time.UTC
	}
	return doc.Timezone
}

// latestChoice fills in what the latest choice looked at: that of the last attempt, or of the wait
// of a message that has not been attempted.
func (s *Story) latestChoice(waited seen) {
	if n := len(s.Attempts); n > 0 {
		last := &s.Attempts[n-1]
		s.Chosen, s.Candidates, s.Basis = &last.Channel, last.Candidates, last.Basis
		if last.Candidates == nil {
			s.Candidates = []Candidate{{Channel: last.Channel, Eligible: new(true)}}
		}
		return
	}
	s.Candidates, s.Basis = append(s.Candidates, waited.candidates...), waited.basis
}

func newAttempt(a *ledger.AttemptRecord) (Attempt, error) {
	ranking, err := dispatch.ReadRanking(a.Ranking)
	if err != nil {
		return Attempt{}, err
	}
	out := Attempt{
		Attempt: a.Number, Channel: a.Channel, Reason: string(a.Reason), Outcome: a.Outcome, Unfit: a.Unfit, Code: a.Code, Reference: a.Reference,
		Segments: a.Segments, CostMicros: a.PriceMicros, Currency: a.Currency, ClaimedAt: a.ClaimedAt, Candidates: candidates(ranking),
		Basis: basisOf(ranking), Receipt: string(a.Receipt), ReceiptCause: string(a.Cause), ReceiptCode: a.ReceiptCode,
		ReceiptReferences: a.OtherIDs,
	}
	if !a.ContradictedAt.IsZero() {
		out.ContradictedAt = &a.ContradictedAt
	}
	if !a.SettledAt.IsZero() {
		out.SettledAt = &a.SettledAt
	}
	if !a.ReceiptAt.IsZero() {
		out.ReceiptAt = &a.ReceiptAt
	}
	return out, nil
}

func basisOf(r *dispatch.Ranking) Basis {
	if r == nil {
		return Basis{}
	}
	return Basis{RankedBy: r.By, RankedVersion: r.Version, Cursor: r.Cursor, RedrawKeyID: r.KeyID, Scoring: r.Scoring, Trouble: r.Trouble, More: r.More}
}

func candidates(r *dispatch.Ranking) []Candidate {
	if r == nil {
		return nil
	}
	out := make([]Candidate, len(r.Candidates))
	chosen := r.Chosen()
	for i, c := range r.Candidates {
		out[i] = Candidate{Channel: c.Channel, Score: c.Score, Eligible: new(c.Reason == ""), Reason: c.Reason}
		if c.LastAssigned != 0 {
			last := c.LastAssigned.Time()
			out[i].LastAssigned = &last
		}
		if c.Reason == "" && i > chosen {
			out[i].Eligible, out[i].Reason = nil, outranked
		}
		if c.Capacity > 0 {
			ratio := float64(c.Active) / float64(c.Capacity)
			out[i].LoadRatio = &ratio
		}
	}
	return out
}

// passedOver are the candidates that were looked at before the chosen one; all, when none was.
func passedOver(all []Candidate) []Candidate {
	if at := slices.IndexFunc(all, func(c Candidate) bool { return c.can() }); at >= 0 {
		return all[:at]
	}
	return all
}

// can reports whether the candidate is known to have been able to take the message.
func (c *Candidate) can() bool { return c.Eligible != nil && *c.Eligible }

// cannot reports whether it is known not to have been.
func (c *Candidate) cannot() bool { return c.Eligible != nil && !*c.Eligible }
