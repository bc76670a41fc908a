package report

import (
	"slices"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// AttemptPages are the data of the template of attempts.
func (p *page) AttemptPages() []attemptPage {
	out := make([]attemptPage, len(p.Attempts))
	expired := 0
	for i := range p.Attempts {
		a := &p.Attempts[i]
		out[i] = attemptPage{Attempt: a, Page: p}
		if len(a.ExpiredSelectors) != expired {
			out[i].ExpiredNow = a.ExpiredSelectors
		}
		expired = len(a.ExpiredSelectors)
	}
	return out
}

// attemptPage is one attempt, and the page that it is on.
type attemptPage struct {
	*Attempt
	Page *page
	// ExpiredNow are the expired selectors, if there are more than at the previous attempt.
	ExpiredNow []string
}

// Excluded says why each channel before the chosen one was excluded.
func (a *attemptPage) Excluded() string {
	doc := a.Page.doc
	if a.RankedVersion != a.Page.RoutingVersion {
		doc = nil
	}
	return excluded(passedOver(a.Candidates), doc)
}

// Took is the time until the answer; 0 when it is not known.
func (a *attemptPage) Took() time.Duration {
	if a.SettledAt == nil {
		return 0
	}
	return a.SettledAt.Sub(a.ClaimedAt)
}

// Unreceipted is the time from the last accepting answer before this attempt to this attempt; 0
// when it is not known.
func (a *attemptPage) Unreceipted() (since time.Duration) {
	for i := range a.Page.Attempts {
		b := &a.Page.Attempts[i]
		if b.Number < a.Number && b.Outcome == outcomeAccepted && b.SettledAt != nil {
			since = max(a.ClaimedAt.Sub(*b.SettledAt), 0)
		}
	}
	return since
}

// AnsweredBy says where the outcome comes from, if not from the provider's answer.
func (a *attemptPage) AnsweredBy() string { return answeredWords[a.Code] }

// Ambiguities are the ambiguities of this attempt.
func (a *attemptPage) Ambiguities() []Ambiguity {
	return slices.DeleteFunc(slices.Clone(a.Page.Ambiguities), func(one Ambiguity) bool {
		return one.Attempt != a.Number
	})
}

// rank is why the chosen candidate came before the others.
type rank struct {
	Basis
	Candidate
	Next        bool   // candidates before it were excluded
	OfTheOthers string // " of the others" if the first choice is not part of the ranking
	Lowest      bool   // the lowest score comes first
	// Tie is the next candidate with an equal measure, if it is not known to be excluded. The chosen
	// one comes before it because its last message, or else its place in the route, is earlier.
	Tie       string
	TieByTime bool
}

// Rank is why the channel of the attempt came first; nil when it is not known.
func (a *attemptPage) Rank() *rank {
	p := a.Page
	apart := p.Draw != nil && len(a.Candidates) > 0 && a.Candidates[0].Channel == p.FirstChoice
	at := slices.IndexFunc(a.Candidates, func(c Candidate) bool {
		return c.Channel == a.Channel && c.can()
	})
	return p.rank(a.Candidates, &a.Basis, at, apart)
}

// Rank is why the channel of a forecast comes first.
func (p *page) Rank() *rank {
	r := p.rank(p.Candidates, &p.Basis, len(passedOver(p.Candidates)), p.Draw != nil)
	if r != nil {
		r.Tie = "" // a forecast does not know when channels got their last message
	}
	return r
}

// rank is the rank of the candidate at a place. apart says that candidate 0 is the first choice,
// which is not part of the ranking.
func (p *page) rank(candidates []Candidate, b *Basis, at int, apart bool) *rank {
	if at < 0 || at >= len(candidates) {
		return nil
	}
	r := &rank{Basis: *b, Candidate: candidates[at], Next: at > 0}
	if apart {
		r.Next, r.OfTheOthers = at > 1, " of the others"
	}
	var measure func(*Candidate) *float64
	switch decide.Ranker(b.RankedBy) {
	case decide.LoadRatio:
		measure = func(c *Candidate) *float64 { return c.LoadRatio }
	case decide.BestWorker:
		measure = func(c *Candidate) *float64 { return c.Score }
		route := p.doc.Route(p.Route)
		r.Lowest = route != nil && route.Scoring.Ascending && b.Trouble == ""
	case decide.RoundRobin, decide.Redraw, decide.InOrder:
		return r
	default:
		return nil
	}
	if measure(&r.Candidate) == nil {
		return nil
	}
	r.tie(candidates[at+1:], measure)
	return r
}

// tie sets Tie to the first following candidate that is equal and not known to be excluded.
func (r *rank) tie(following []Candidate, measure func(*Candidate) *float64) {
	for i := range following {
		c := &following[i]
		if m := measure(c); m == nil || *m != *measure(&r.Candidate) {
			return
		}
		if !c.cannot() {
			r.Tie, r.TieByTime = c.Channel, r.LastAssigned != nil || c.LastAssigned != nil
			return
		}
	}
}

// OnlyOneLeft reports whether the redraw had only one channel left.
func (r *rank) OnlyOneLeft() bool {
	return r.Redraw != nil && r.Redraw.High-r.Redraw.Low+1 == r.Redraw.Size
}

// Last is the largest possible draw.
func (r *Redraw) Last() uint64 { return r.Size - 1 }
