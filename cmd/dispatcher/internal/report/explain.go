package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/numbers"
	"dispatcher/config"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Source is the input of Explain.
type Source struct {
	Record *ledger.Record
	// Doc is the routing document of the version that the message was planned under; nil when it
	// was planned under none.
	Doc *config.Routing
	// WaitDoc is the document of the version that its last wait was decided under; nil when that is
	// not known.
	WaitDoc *config.Routing
	// Zone is the time zone in which all times are written; nil for that of Doc, or UTC.
	Zone *time.Location
	// Now is the database's clock. Without it the duration of the present wait is not known.
	Now time.Time
	// Ahead is the start of the running window of the limit that the message waits for, if that is
	// in the future, because the database's clock was ahead when the window was opened. Zero
	// otherwise.
	Ahead time.Time
	// Keys are the keys of the draws. Without them second draws are explained by intervals only.
	Keys []selector.Key
}

// Explain explains a message's record.
func Explain(src *Source) (Explanation, error) {
	m := &src.Record.Message
	e := newExplanation(m, src.Doc)
	e.State, e.Reason, e.Detail = string(m.State), m.Reason, m.Detail
	e.Country, e.PayloadGone = countryOf(m, numbers.NewCountries()), src.Record.PayloadGone
	e.PayloadHidden = src.Record.PayloadHidden
	if e.PayloadGone || e.PayloadHidden {
		e.CallingCode = int(m.CallingCode)
	}
	e.Waits, e.PossibleDuplicate = waitsOf(m, src.Now), m.PossibleDuplicate
	e.PartsAccepted, e.Ambiguities = partsAccepted(src.Record), ambiguitiesOf(src.Record)
	if !m.ExpiresAt.IsZero() {
		e.Deadline = &m.ExpiresAt
	}
	if len(m.ID) > maxID {
		e.Position = fmt.Sprintf("%s/%d/%d", m.Origin.Topic, m.Origin.Partition, m.Origin.Offset)
	}
	complete := newCompletion(m, src.Doc, src.Keys)
	for i := range src.Record.Attempts {
		a, err := newAttempt(&src.Record.Attempts[i])
		if err != nil {
			return Explanation{}, err
		}
		complete.complete(a.Candidates, &a.Basis, a.ClaimedAt)
		a.SenderReplaced = complete.senderReplaced(&a)
		a.ExpiredSelectors = decide.ExpiredSelectors(m, a.ClaimedAt)
		e.Attempts = append(e.Attempts, a)
	}
	last, err := readLastRanking(src)
	if err != nil {
		return Explanation{}, err
	}
	e.latestChoice(last)
	e.Timeline = e.timeline(src.Record)
	limit := newLimitWait(m, src.WaitDoc, zoneOf(src.Doc), last.candidates)
	limit.future(src.Ahead, zoneOf(src.Doc))
	e.waitsFor(limit)
	e.HeldUntil = heldUntil(src, last)
	e.Zone = cmp.Or(src.Zone, zoneOf(src.Doc))
	p := page{
		Explanation: &e, doc: src.Doc, ranking: last, Limit: limit, now: src.Now, zone: e.Zone,
	}
	e.Text, err = p.text("record")
	return e, err
}

// maxID is the length of the longest id that a producer may use. A record without a usable id is
// stored under a longer one.
const maxID = 64

// newExplanation explains the message and its plan. Records and forecasts share it.
func newExplanation(m *ledger.Message, doc *config.Routing) Explanation {
	p := &m.Plan
	e := Explanation{
		ID: m.ID, Lane: m.Lane, Tenant: m.Tenant, ReceivedAt: m.ReceivedAt, NextAt: m.NextAt,
		Segments: p.Segments, Alphabet: p.Alphabet, Route: p.Route, RoutingVersion: p.Version,
		DrawKeyID: p.KeyID, FirstChoice: p.FirstChoice, Candidates: []Candidate{},
		Attempts: []Attempt{},
	}
	route := doc.Route(p.Route)
	if route != nil {
		e.Mode, e.Sticky = string(route.Mode), route.Sticky
	}
	if p.Size > 0 {
		e.Draw, e.Size, e.Interval = &p.Draw, &p.Size, intervalOf(route, p.FirstChoice)
	}
	return e
}

// intervalOf is the interval of a channel; nil when it is not known.
func intervalOf(route *config.Route, channel string) *Interval {
	if route == nil || !route.Draws() {
		return nil
	}
	for _, iv := range intervalsLeft(route) {
		if iv.Name == channel {
			return &Interval{iv.Low, iv.High}
		}
	}
	return nil
}

func zoneOf(doc *config.Routing) *time.Location {
	if doc == nil {
		return time.UTC
	}
	return doc.Timezone
}

// countryOf is the country of a recorded message's number: empty when the number has none that is
// known, and nil when the record has no number.
func countryOf(m *ledger.Message, known *numbers.Countries) *string {
	to := decide.DestinationOf(m, known.Of)
	if to.Number == "" {
		return nil
	}
	return &to.Country
}

func newAttempt(a *ledger.AttemptRecord) (Attempt, error) {
	ranking, err := decide.ReadRanking(a.Ranking)
	return Attempt{
		Number: a.Number, Channel: a.Channel, Reason: string(a.Reason), Outcome: a.Outcome,
		Unfit: a.Unfit, Code: a.Code, Reference: a.Reference, Segments: a.Segments,
		CostMicros: a.PriceMicros, Currency: a.Currency, ClaimedAt: a.ClaimedAt,
		SettledAt: Moment(a.SettledAt), Candidates: candidatesOf(ranking),
		Basis:   basisOf(ranking),
		Receipt: string(a.Receipt), ReceiptCause: string(a.Cause), ReceiptCode: a.ReceiptCode,
		ReceiptAt: Moment(a.ReceiptAt), ContradictedAt: Moment(a.ContradictedAt),
		ReceiptReferences: a.OtherIDs,
	}, err
}

// senderReplaced reports whether an attempt had another sender than the message. It is known only
// of attempts decided under the document of the completion. The sender itself is not shown, because
// it may be a phone number.
func (co *completion) senderReplaced(a *Attempt) bool {
	ch := co.doc.Channel(a.Channel)
	if ch == nil || a.RankedVersion != 0 && a.RankedVersion != co.message.Plan.Version {
		return false
	}
	return decide.ReplacesSender(co.message, &ch.Senders, numbers.NewCountries().Of)
}

// Values of audit.attempts.outcome.
const (
	outcomeAccepted = "accepted"
	outcomeUnknown  = "unknown"
)

// partsAccepted is how many parts of a message the provider has accepted, if not all were; 0 if all
// were accepted or may have been.
func partsAccepted(r *ledger.Record) (n int) {
	for i := range r.Attempts {
		switch a := &r.Attempts[i]; a.Outcome {
		case outcomeAccepted, outcomeUnknown:
			return 0
		case "": // in flight
		default:
			n += a.Segments
		}
	}
	return n
}

func ambiguitiesOf(r *ledger.Record) []Ambiguity {
	out := make([]Ambiguity, len(r.Ambiguities))
	for i := range r.Ambiguities {
		d := &r.Ambiguities[i]
		out[i] = Ambiguity{
			Attempt: d.Last, Step: string(d.Step), Until: d.Until, Asked: d.Asked,
			Resolution: string(d.ResolvedAs), Author: d.Author, Note: d.Note,
		}
		out[i].Login, out[i].Via = settledBy(d)
	}
	return out
}

// settledBy is the login of the database that settled an ambiguity, and how the settlement came in.
// Both are empty when the dispatcher found out by itself. By API or console the author was
// authenticated, and the login would be the dispatcher's own, so it is left out.
func settledBy(d *ledger.AmbiguityRecord) (login, via string) {
	switch {
	case d.Author == "":
		return "", ""
	case d.Via == ledger.ViaAPI || d.Via == ledger.ViaConsole:
		return "", string(d.Via)
	}
	return d.Login, string(d.Via)
}

// waitsOf returns the waits of a message, with the present one up to now. When now is zero, the
// present one is left out.
func waitsOf(m *ledger.Message, now time.Time) []Wait {
	waits := make([]Wait, 0, len(m.Waits)+1)
	for _, w := range m.Waits {
		waits = append(waits, Wait{Reason: w.Reason, On: w.On, Seconds: w.For.Seconds()})
	}
	if m.State != ledger.Waiting || m.WaitingSince.IsZero() || now.IsZero() {
		return waits
	}
	present := max(now.Sub(m.WaitingSince), 0).Seconds()
	at := slices.IndexFunc(waits, func(w Wait) bool {
		return w.Reason == m.Reason && w.On == m.WaitsFor
	})
	if at < 0 {
		return append(waits, Wait{m.Reason, m.WaitsFor, present})
	}
	waits[at].Seconds += present
	return waits
}

// lastRanking is the ranking of the last wait. It is zero when the message never waited, or when
// that decision ranked no channel.
type lastRanking struct {
	candidates []Candidate
	basis      Basis
	doc        *config.Routing // nil when it is not known
}

// held reports whether the message was held for its first choice, so that no other channel was
// considered.
func (l *lastRanking) held() bool { return l.basis.RankedBy == "wait" }

func readLastRanking(src *Source) (*lastRanking, error) {
	ranking, err := decide.ReadRanking(src.Record.Seen)
	if err != nil || ranking == nil {
		return &lastRanking{}, err
	}
	l := &lastRanking{
		candidates: candidatesOf(ranking), basis: basisOf(ranking), doc: src.WaitDoc,
	}
	newCompletion(&src.Record.Message, src.WaitDoc, nil).closed(l.candidates)
	return l, nil
}

// latestChoice sets the candidates of the latest choice: that of the last attempt or, for a message
// without attempts, of the wait.
func (e *Explanation) latestChoice(waited *lastRanking) {
	n := len(e.Attempts)
	if n == 0 {
		e.Candidates, e.Basis = append(e.Candidates, waited.candidates...), waited.basis
		return
	}
	last := &e.Attempts[n-1]
	e.Chosen, e.Candidates, e.Basis = &last.Channel, last.Candidates, last.Basis
	if last.Candidates == nil {
		e.Candidates = []Candidate{{Channel: last.Channel, Eligible: new(true)}}
	}
}

func (e *Explanation) waitsFor(limit *limitWait) {
	if limit != nil {
		e.Limit, e.Lack, e.Until = limit.On, limit.Lack, Moment(limit.Until)
	}
}

// heldUntil is when a message that is held for its first choice may go to others too, by the
// document of its wait; nil once that time is over.
func heldUntil(src *Source, last *lastRanking) *time.Time {
	m := &src.Record.Message
	route := src.WaitDoc.Route(m.Plan.Route)
	if m.State != ledger.Waiting || !last.held() || route == nil || route.Wait == 0 {
		return nil
	}
	end := m.ReceivedAt.Add(route.Wait)
	if !end.Before(m.ExpiresAt) || !src.Now.IsZero() && !end.After(src.Now) {
		return nil
	}
	return &end
}
