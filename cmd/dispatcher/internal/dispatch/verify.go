package dispatch

import (
	"fmt"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Mismatch is one thing that the record of a message says and that cannot be derived again.
// It holds neither number nor text.
type Mismatch struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"` // 0 for what was planned before the first attempt, and for a wait
	// What names the part of the choice: one of the words below.
	What    string `json:"what"`
	Stored  string `json:"stored"`
	Derived string `json:"derived"`
}

// Parts of a choice that are derived again.
const (
	whatEnvelope    = "envelope" // it cannot be read any more
	whatRoute       = "route"
	whatSegments    = "segments"
	whatAlphabet    = "alphabet"
	whatDrawKey     = "draw_key" // not in the key file: the draw cannot be repeated
	whatDraw        = "draw"
	whatSize        = "size"
	whatFirstChoice = "first_choice"
	whatNumber      = "attempt"
	whatReason      = "reason"
	whatChannel     = "channel"
	whatPrice       = "price"
	whatCurrency    = "currency"
	whatRanking     = "ranking"    // there is none, or it cannot be read
	whatBy          = "ranked_by"  // another ranker than the route's
	whatCandidates  = "candidates" // others than the route's members
	whatOrder       = "order"
	whatScore       = "score"
	whatScoring     = "scoring"
	whatCursor      = "cursor"
	whatObstacle    = "passed_over" // why a candidate was passed over, where the version alone tells
)

// Verifier derives stored choices again, with the very functions that made them: routing
// version, envelope, draw key and stored ranking in, what had to be decided out. It does no I/O
// but what its routings need, and keeps scratch space: one goroutine at a time.
type Verifier struct {
	keys     *drawers
	routings func(version int64) (*Routing, error)
	known    map[int64]*assigner // by version; see under
}

// NewVerifier returns a verifier that draws under keys, in any order, and gets the compiled
// routing of a version from routings, each version once.
func NewVerifier(keys []selector.Key, routings func(version int64) (*Routing, error)) *Verifier {
	return &Verifier{keys: newDrawers(keys), routings: routings, known: map[int64]*assigner{}}
}

// Verify lists what in the record differs from what is derived. The error is that of reading a
// routing version.
func (v *Verifier) Verify(r *ledger.Record) ([]Mismatch, error) {
	msg, problem := envelope.Decode(r.Message.Envelope, true)
	c := &check{v: v, record: r, msg: msg}
	if problem != nil {
		c.differs(0, whatEnvelope, "readable", string(problem.Code))
		return c.found, nil
	}
	if err := c.plan(); err != nil {
		return nil, err
	}
	for i := range r.Attempts {
		if err := c.attempt(i); err != nil {
			return nil, err
		}
	}
	if err := c.waited(); err != nil {
		return nil, err
	}
	return c.found, nil
}

// under gives an assigner over the routing of a version in which every channel has room and is
// ready: what it finds in a message's way is what the version alone puts there.
func (v *Verifier) under(version int64) (*assigner, error) {
	if a := v.known[version]; a != nil {
		return a, nil
	}
	routing, err := v.routings(version)
	if err != nil {
		return nil, err
	}
	idle := &ledger.Seen{Channels: make([]ledger.ChannelState, len(routing.Channels))}
	for i := range routing.Channels {
		idle.Channels[i].Name = routing.Channels[i].Name
	}
	a := newAssigner(routing, v.keys, idle, make([]string, len(routing.Channels)))
	v.known[version] = a
	return a, nil
}

// check is the verification of one record.
type check struct {
	v      *Verifier
	record *ledger.Record
	msg    envelope.Message
	found  []Mismatch
}

func (c *check) differs(attempt int, what, stored, derived string) {
	c.found = append(c.found, Mismatch{ID: c.record.Message.ID, Attempt: attempt, What: what, Stored: stored, Derived: derived})
}

// same notes a difference between two texts.
func (c *check) same(attempt int, what, stored, derived string) {
	if stored != derived {
		c.differs(attempt, what, stored, derived)
	}
}

// sameNumber is same for numbers.
func (c *check) sameNumber(attempt int, what string, stored, derived int64) {
	if stored != derived {
		c.differs(attempt, what, strconv.FormatInt(stored, 10), strconv.FormatInt(derived, 10))
	}
}

// task plans the message again under a version. Its route is nil when none takes it.
func (c *check) task(a *assigner) *task {
	row := &c.record.Message
	t := &task{msg: c.msg, lane: a.routing.lane(row.Lane), first: -1}
	t.row = ledger.Message{
		ID: row.ID, Lane: row.Lane, ReceivedAt: row.ReceivedAt, ExpiresAt: row.ReceivedAt.Add(time.Hour),
		Plan: ledger.Plan{KeyID: row.Plan.KeyID},
	}
	p := &planner{routing: a.routing, keys: c.v.keys} // its clock stands before every deadline
	if p.choose(t) != nil {
		t.route = nil
	}
	return t
}

// plan checks what was fixed before any shared state was seen.
func (c *check) plan() error {
	stored := &c.record.Message.Plan
	a, err := c.v.under(stored.Version)
	if err != nil {
		return err
	}
	t := c.task(a)
	if t.route == nil {
		c.differs(0, whatRoute, stored.Route, "none under version "+strconv.FormatInt(stored.Version, 10))
		return nil
	}
	derived := &t.row.Plan
	c.same(0, whatRoute, stored.Route, derived.Route)
	c.sameNumber(0, whatSegments, int64(stored.Segments), int64(derived.Segments))
	c.same(0, whatAlphabet, stored.Alphabet, derived.Alphabet)
	if !t.route.draws() {
		c.sameNumber(0, whatSize, stored.Size, 0)
		c.same(0, whatFirstChoice, stored.FirstChoice, c.firstAttempt())
		return nil
	}
	if !c.v.keys.has(stored.KeyID) {
		c.differs(0, whatDrawKey, stored.KeyID, "not in the key file")
		return nil
	}
	c.sameNumber(0, whatSize, stored.Size, derived.Size)
	c.sameNumber(0, whatDraw, stored.Draw, derived.Draw)
	c.same(0, whatFirstChoice, stored.FirstChoice, derived.FirstChoice)
	return nil
}

// firstAttempt is the channel of the first attempt, which is the first choice of a route that
// does not draw.
func (c *check) firstAttempt() string {
	if len(c.record.Attempts) == 0 {
		return ""
	}
	return c.record.Attempts[0].Channel
}

// attempt checks why an attempt went to its channel and what it was to cost.
func (c *check) attempt(i int) error {
	stored := &c.record.Attempts[i]
	c.sameNumber(stored.Number, whatNumber, int64(stored.Number), int64(i+1))
	version := c.record.Message.Plan.Version
	ranking := c.read(stored.Number, stored.Ranking)
	if ranking != nil {
		version = ranking.Version
	}
	a, err := c.v.under(version)
	if err != nil {
		return err
	}
	t := c.task(a)
	if t.route == nil {
		c.differs(stored.Number, whatRoute, c.record.Message.Plan.Route, "none under version "+strconv.FormatInt(version, 10))
		return nil
	}
	if ranking != nil {
		c.ranking(a, t, &choice{
			ranking: ranking, attempt: stored.Number, before: i, channel: stored.Channel, at: stored.ClaimedAt,
		})
	} else if stored.Ranking == nil {
		c.withoutRanking(a, t, i)
	}
	c.reason(i)
	c.price(a, t, i)
	return nil
}

// withoutRanking: only a first choice that was drawn and went through needs no record of others.
func (c *check) withoutRanking(a *assigner, t *task, i int) {
	stored := &c.record.Attempts[i]
	if i > 0 || !t.route.draws() {
		c.differs(stored.Number, whatRanking, "none", "one of route "+t.route.Name)
		return
	}
	c.same(stored.Number, whatChannel, stored.Channel, c.record.Message.Plan.FirstChoice)
	if place := a.routing.place(t.route, stored.Channel); place >= 0 {
		wishes, _ := c.wishes(stored.ClaimedAt)
		c.same(stored.Number, whatObstacle, "", a.obstacle(t, wishes, t.route.Members[place]))
	}
}

// reason checks the word that tells first choices from fallbacks and retries.
func (c *check) reason(i int) {
	stored := &c.record.Attempts[i]
	first := stored.Channel == c.record.Message.Plan.FirstChoice
	fits := false
	switch stored.Reason {
	case ledger.ByFirstChoice:
		fits = i == 0 && first
	case ledger.ByFallback:
		fits = !first
	case ledger.ByRetry, ledger.ByResend: // what it was pinned to, or whether it was doubted, is not kept
		fits = i > 0
	}
	if !fits {
		c.differs(stored.Number, whatReason, string(stored.Reason), fmt.Sprintf("not that, on attempt %d to %s after first choice %s",
			i+1, stored.Channel, c.record.Message.Plan.FirstChoice))
	}
}

// price checks what was billed: the price of the version for so many segments, of which there
// are at most as many as the text has on that channel.
func (c *check) price(a *assigner, t *task, i int) {
	stored := &c.record.Attempts[i]
	place := a.routing.place(t.route, stored.Channel)
	if place < 0 {
		c.differs(stored.Number, whatChannel, stored.Channel, "a member of route "+t.route.Name)
		return
	}
	ch := &a.routing.Channels[t.route.Members[place]]
	c.sameNumber(stored.Number, whatPrice, stored.PriceMicros, int64(stored.Segments)*ch.Price.Segment(c.msg.To))
	c.same(stored.Number, whatCurrency, stored.Currency, ch.Price.Currency)
	if most := t.segments(ch); stored.Segments > most {
		c.sameNumber(stored.Number, whatSegments, int64(stored.Segments), int64(most))
	}
}
