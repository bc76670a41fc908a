// Package audit decides recorded messages again, with the same functions of package decide, and
// names what differs from the record. It is pure and does not use the pipeline.
package audit

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
	"dispatcher/selector"
)

// Mismatch is one part of a message's record that differs from what is derived. It holds neither
// number nor text.
type Mismatch struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"` // 0 for a plan, a wait, or the message as a whole
	// What names the part of the record: one of the words below.
	What    string `json:"what"`
	Stored  string `json:"stored"`
	Derived string `json:"derived"`
}

// Parts of a record that are derived again.
const (
	whatEnvelope    = "envelope" // unreadable
	whatCallingCode = "calling_code"
	whatSender      = "sender"
	whatNumberHMAC  = "number_hmac"   // no key of the file gives it
	whatHMAC        = "envelope_hmac" // not that of the envelope and its salt
	whatSalt        = "salt"          // no key of the file gives it
	whatVersion     = "version"       // missing, unusable, or not in force
	whatRoute       = "route"
	whatSegments    = "segments"
	whatAlphabet    = "alphabet"
	whatDrawKey     = "draw_key" // not in the key file, or not the message's own
	whatDraw        = "draw"
	whatSize        = "size"
	whatFirstChoice = "first_choice"
	whatNumber      = "attempt" // the attempts' numbers, or how many there are
	whatTime        = "time"    // an attempt too early or too late; docs/audit.md lists the cases
	whatOutcome     = "outcome" // contradicts the message's state, or allows no next attempt
	whatReason      = "reason"
	whatChannel     = "channel"
	whatPrice       = "price"
	whatCurrency    = "currency"
	whatRanking     = "ranking"    // missing, needless, unreadable, or with fields of another ranker
	whatBy          = "ranked_by"  // another ranker than the route's
	whatCandidates  = "candidates" // not the route's members, or in an impossible state
	whatOrder       = "order"
	whatScore       = "score"
	whatScoring     = "scoring"
	whatCursor      = "cursor"
	whatExclusion   = "passed_over" // the exclusion reason of a candidate
)

// Edition is a routing version with the time in which it was in force.
type Edition struct {
	// Routing is nil when there is no such version, or when it does not compile any more; Trouble
	// says which.
	Routing *decide.Routing
	Trouble string
	// From is when it came into force, by the database's clock, and Until when the next one did;
	// zero for the current one.
	From, Until time.Time
	// Overlap is how long after Until claims may still have used it. It is zero when the next
	// version was written while all channels were locked.
	Overlap time.Duration
	// Bounded has the channels whose document bounds their attempts in flight, so that these can
	// exclude a message. It is nil when that is not known.
	Bounded map[string]bool
}

// clockTolerance is how far the database's clock may have been set back between two moments that
// are compared.
const clockTolerance = time.Second

// Verifier derives stored choices again, with the functions that made them, from routing version,
// envelope, draw key and stored ranking. Its only I/O is that of editions. It is not safe for
// concurrent use.
type Verifier struct {
	keys     []selector.Key
	hashes   *decide.KeyedHashes
	editions func(version int64) (Edition, error)
	known    map[int64]*edition // by version; see under
	gone     WithoutPayload
	undrawn  int // see WithoutKey
}

// WithoutPayload counts the messages whose number and text were deleted. What depends on these
// could not be checked.
type WithoutPayload struct {
	Messages int `json:"messages"`
	// Hidden counts those of them whose payloads this login of the database may not read; they may
	// exist.
	Hidden int `json:"hidden,omitempty"`
	// NotChecked counts these messages for each part of a record that could not be checked, or only
	// for whether it is possible.
	NotChecked map[string]int `json:"not_checked"`
}

// WithoutPayload counts what could not be checked so far.
func (v *Verifier) WithoutPayload() WithoutPayload {
	return WithoutPayload{v.gone.Messages, v.gone.Hidden, maps.Clone(v.gone.NotChecked)}
}

// WithoutKey counts the messages whose draws were not made again, because the verifier has no keys.
// Their draws were checked against the intervals only.
func (v *Verifier) WithoutKey() int { return v.undrawn }

// withoutKey counts this message in Verifier.WithoutKey, once.
func (c *check) withoutKey() {
	if !c.undrawn {
		c.undrawn = true
		c.v.undrawn++
	}
}

// NewVerifier returns a verifier. keys may be in any order. It calls editions once for each routing
// version. For a version that does not exist, editions must return an Edition without Routing; an
// error ends the verification.
func NewVerifier(keys []selector.Key, editions func(version int64) (Edition, error)) *Verifier {
	return &Verifier{
		keys: keys, hashes: decide.NewKeyedHashes(keys), editions: editions,
		known: map[int64]*edition{}, gone: WithoutPayload{NotChecked: map[string]int{}},
	}
}

// Verify returns what in the record differs from what is derived. Its only errors are those of
// editions.
func (v *Verifier) Verify(r *ledger.Record) ([]Mismatch, error) {
	c := &check{v: v, record: r}
	if !c.payload() {
		return c.found, nil
	}
	c.message()
	if err := c.plan(); err != nil {
		return nil, err
	}
	seen, p := c.read(0, r.Seen), &progress{known: true}
	c.seen = seen
	if seen != nil && (seen.Attempts < 0 || seen.Attempts > len(r.Attempts)) {
		c.differs(
			0, whatRanking, "a wait after "+strconv.Itoa(seen.Attempts)+" attempts",
			strconv.Itoa(len(r.Attempts))+" attempts",
		)
	}
	for i := 0; ; i++ {
		if seen != nil && seen.Attempts == i {
			if err := c.waited(seen, p); err != nil {
				return nil, err
			}
		}
		if i == len(r.Attempts) {
			return c.found, nil
		}
		if err := c.attempt(i, p); err != nil {
			return nil, err
		}
	}
}

// payload decodes the envelope, and checks the columns that are derived from it. It is false when
// the envelope exists and is unreadable.
func (c *check) payload() (readable bool) {
	row := &c.record.Message
	if row.Envelope == nil {
		c.withoutPayload = true
		c.msg = envelope.Message{ID: row.ID, Tenant: row.Tenant}
		c.v.gone.Messages++
		c.notChecked(
			whatRoute, whatSegments, whatAlphabet, whatCallingCode, whatNumberHMAC, whatExclusion,
		)
		if c.record.PayloadHidden {
			c.v.gone.Hidden++
			c.notChecked(whatSalt) // the ledger compares the hash
		} else {
			c.notChecked(whatHMAC)
		}
		return true
	}
	msg, problem := envelope.Decode(row.Envelope, true)
	if problem != nil {
		c.differs(0, whatEnvelope, "readable", string(problem.Code))
		return false
	}
	c.msg = msg
	c.sameNumber(0, whatCallingCode, int64(row.CallingCode), int64(decide.CallingCode(msg.To)))
	if row.Sender != "" { // older messages were stored without it
		c.same(0, whatSender, row.Sender, decide.SenderOf(msg.From))
	}
	if len(c.v.keys) == 0 {
		return true
	}
	match := c.v.hashes.Match(row, msg.To)
	if !match.Number {
		c.differs(0, whatNumberHMAC, "another", "that of the number")
	}
	if !match.Envelope {
		c.differs(0, whatHMAC, "another", "that of the envelope")
	}
	if !match.Salt {
		c.differs(0, whatSalt, "another, or none", "that of the id")
	}
	return true
}

// notChecked counts parts of a record without payload, each once.
func (c *check) notChecked(parts ...string) {
	for _, what := range parts {
		if !slices.Contains(c.skipped, what) {
			c.skipped = append(c.skipped, what)
			c.v.gone.NotChecked[what]++
		}
	}
}

// edition is an Edition with its replay, which is nil when it has no routing.
type edition struct {
	Edition
	*decide.Replay
}

// under returns the edition of a version; nil when it has no routing, which is a mismatch.
func (c *check) under(attempt int, version int64) (*edition, error) {
	e := c.v.known[version]
	if e == nil {
		got, err := c.v.editions(version)
		if err != nil {
			return nil, err
		}
		e = newEdition(got, c.v.keys)
		c.v.known[version] = e
	}
	if e.Replay == nil {
		stored := strconv.FormatInt(version, 10)
		if !slices.ContainsFunc(
			c.found, func(m Mismatch) bool { return m.What == whatVersion && m.Stored == stored },
		) {
			c.differs(attempt, whatVersion, stored, e.Trouble)
		}
		return nil, nil //nolint:nilnil // Nothing is there, which was noted.
	}
	return e, nil
}

func newEdition(from Edition, keys []selector.Key) *edition {
	if from.Routing == nil {
		return &edition{Edition: from}
	}
	replay := decide.NewReplay(from.Routing, keys)
	from.Routing = replay.Version()
	return &edition{from, replay}
}

// check is the verification of one record.
type check struct {
	v      *Verifier
	record *ledger.Record
	msg    envelope.Message
	// planned is the message as it was planned for its first attempt, under its own version; nil
	// when that version is unusable, or has no route for it.
	planned *decide.Task
	seen    *decide.Ranking // of the last wait; nil without one
	found   []Mismatch
	// withoutPayload says that number and text were deleted; skipped are the parts that could not be
	// checked for that reason.
	withoutPayload bool
	skipped        []string
	undrawn        bool // see withoutKey
}

func (c *check) differs(attempt int, what, stored, derived string) {
	c.found = append(
		c.found,
		Mismatch{
			ID: c.record.Message.ID, Attempt: attempt, What: what, Stored: stored, Derived: derived,
		},
	)
}

// same adds a mismatch if two texts differ.
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

// task plans the message again under a version, in the state after the attempts in p. Its route is
// nil when no route takes it, which is a mismatch. ranking is the choice to check; nil for a first
// choice.
func (c *check) task(
	attempt int, e *edition, p *progress, ranking *decide.Ranking,
) *decide.Task {
	row := &c.record.Message
	if p.attempts == 0 && c.planned != nil && e.Routing.Version == row.Plan.Version {
		return c.planned
	}
	then := &ledger.Message{
		ID: row.ID, Lane: row.Lane, Tenant: c.msg.Tenant, ReceivedAt: row.ReceivedAt,
		ExpiresAt: row.ReceivedAt.Add(time.Hour), Attempts: p.attempts,
		Plan:   ledger.Plan{KeyID: row.Plan.KeyID, FirstChoice: row.Plan.FirstChoice},
		Pinned: p.pinned, PartsLeft: p.partsLeft(), PartsCut: row.PartsCut,
		CallingCode: row.CallingCode, NumberHMAC: row.NumberHMAC,
	}
	if p.sameKey {
		then.SameKey = p.pinned // any value: the key is not recorded, and no choice depends on it
	}
	if c.withoutPayload {
		return c.taskWithout(attempt, e, then, ranking)
	}
	// A block does not stop a message that may be on its way already.
	t := e.Plan(then, &c.msg, p.ambiguous || !p.known)
	if t.Route == nil {
		version := strconv.FormatInt(e.Routing.Version, 10)
		c.differs(attempt, whatRoute, row.Plan.Route, "none under version "+version)
	}
	return t
}
