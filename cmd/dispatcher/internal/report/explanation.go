package report

import (
	"time"
)

// Explanation is why a message went where it went: as data, and as a paragraph that an operator can
// send to a customer. It never holds a phone number or a text.
type Explanation struct {
	ID string `json:"id,omitempty"`
	// Position is that of the record in Kafka when it has no usable id.
	Position string `json:"position,omitempty"`
	State    string `json:"state,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it is in that state, one bounded word
	Detail   string `json:"detail,omitempty"` // why it is dead, in a sentence

	// Country is that of the number, ISO 3166 in lower case; empty when its country is not known,
	// and nil when the number is not.
	Country *string `json:"country,omitempty"`
	// PayloadGone is set when number and text are not kept any more: neither the country nor what
	// depended on them is known.
	PayloadGone bool `json:"payload_gone,omitempty"`
	// PayloadHidden is set when the login of the database may not read them: nor is it known then
	// whether they are kept.
	PayloadHidden bool `json:"payload_hidden,omitempty"`
	// CallingCode is what is known of the number then, 44 for one of +44; 0 where that is not known.
	CallingCode int `json:"calling_code,omitempty"`

	// What a forecast does not have is left out there.
	Lane       string    `json:"lane,omitempty"`
	Tenant     string    `json:"tenant,omitempty"`
	ReceivedAt time.Time `json:"received_at,omitzero"`
	// when a message that is not finished is due next
	NextAt   time.Time `json:"next_at,omitzero"`
	Segments int       `json:"segments,omitempty"`
	Alphabet string    `json:"alphabet,omitempty"`

	Route          string `json:"route"`
	RoutingVersion int64  `json:"routing_version,omitempty"`
	Mode           string `json:"mode"`
	// Sticky says that the draw was made of the recipient's number, not of the id.
	Sticky bool `json:"sticky,omitempty"`
	// Draw and Size are nil for a route that does not draw.
	Draw *int64 `json:"draw"`
	Size *int64 `json:"size"`
	// Interval holds the draws that pick the first choice; nil when it is not known.
	Interval    *Interval `json:"interval,omitempty"`
	DrawKeyID   string    `json:"draw_key_id,omitempty"`
	FirstChoice string    `json:"first_choice"`
	// Chosen is the channel of the latest attempt; nil when there is none.
	Chosen *string `json:"chosen"`
	// Candidates are the channels that the latest choice looked at, in that order, and Basis is
	// what the order depended on.
	Candidates []Candidate `json:"candidates"`
	Basis
	Attempts          []Attempt `json:"attempts,omitzero"`
	PossibleDuplicate bool      `json:"possible_duplicate,omitempty"`
	// PartsAccepted is how many parts of a message that was not taken whole its provider has
	// accepted: they are billed.
	PartsAccepted int `json:"parts_accepted,omitempty"`
	// Ambiguities are about attempts that got no answer.
	Ambiguities []Ambiguity `json:"ambiguities,omitempty"`
	// Waits are what the message waited for, in the order in which it first did. The present wait
	// is among them.
	Waits []Wait `json:"waits,omitzero"`
	// Limit names the limit that the message waits for now, as admission.Key.On. Lack is why that
	// does not let it pass, and Until when it has room again at the earliest: nil when that is not
	// known, or never.
	Limit string     `json:"limit,omitempty"`
	Lack  string     `json:"lack,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// HeldUntil is when a message that waits for its first choice may go to others too: nil for one
	// that does not, and where that is not before its deadline.
	HeldUntil *time.Time `json:"held_until,omitempty"`
	// Deadline is when the message is given up if nobody has taken it.
	Deadline *time.Time `json:"deadline,omitempty"`
	Text     string     `json:"text"`
}

// Interval is a range of draws, both ends included.
type Interval struct {
	Low  uint64 `json:"low"`
	High uint64 `json:"high"`
}

// Basis is what an order of candidates depended on.
type Basis struct {
	// RankedBy is load_ratio, best_worker, round_robin, redraw, order, or wait: nobody was ranked.
	RankedBy string `json:"ranked_by,omitempty"`
	// RankedVersion is the routing version that the candidates come from.
	RankedVersion int64 `json:"ranked_version,omitempty"`
	// Cursor is the channel that had the turn before, for round robin.
	Cursor string `json:"cursor,omitempty"`
	// RedrawKeyID names the key of a redraw.
	RedrawKeyID string `json:"redraw_key_id,omitempty"`
	// Scoring is expression or function; empty for the default scoring.
	Scoring string `json:"scoring,omitempty"`
	// Trouble is why the route's own scoring did not count.
	Trouble string `json:"trouble,omitempty"`
	// More is how many candidates follow that are not listed.
	More int `json:"more,omitempty"`
}

// Candidate is one channel that a choice looked at.
type Candidate struct {
	Channel string `json:"channel"`
	// Score is nil unless best worker ranked.
	Score *float64 `json:"score"`
	// LoadRatio is nil where nobody looked at the load: for a drawn first choice that went through,
	// and where the order depended on turns, draws or scores alone.
	LoadRatio *float64 `json:"load_ratio"`
	// Eligible is nil for one behind the chosen one that nobody looked at: whether it could have
	// taken the message is not known, unless the routing version alone forbids it.
	Eligible *bool `json:"eligible"`
	// Reason says why it was passed over or could not have taken the message, or that it was
	// outranked and nobody looked at it. It is empty when Eligible is true.
	Reason string `json:"reason"`
	// Segments is how many billed parts the message has on the channel, and CostMicros what they
	// cost, in Currency; nil and empty for a record.
	Segments   *int   `json:"segments,omitempty"`
	CostMicros *int64 `json:"cost_micros,omitempty"`
	Currency   string `json:"currency,omitempty"`
	// SenderReplaced is set where the channel replaces the message's sender by its own.
	SenderReplaced bool `json:"sender_replaced,omitempty"`
	// Limit names a limit that never has room for the message, as admission.Key.On, and Never says
	// why. Both are empty when no such limit is known.
	Limit string `json:"limit,omitempty"`
	Never string `json:"never,omitempty"` // closed: it is 0; too_small: the message takes more
	// Redraw is the draw that picked it, for a redraw; nil for others.
	Redraw *Redraw `json:"redraw,omitempty"`
	// LastAssigned breaks ties: when it was last given a message; nil if never, or not known.
	LastAssigned *time.Time `json:"last_assigned,omitempty"`
}

// outranked is the reason of candidates behind the chosen one.
const outranked = "outranked"

// can reports whether the candidate is known to have been able to take the message.
func (c *Candidate) can() bool { return c.Eligible != nil && *c.Eligible }

// cannot reports whether it is known not to have been.
func (c *Candidate) cannot() bool { return c.Eligible != nil && !*c.Eligible }

// Redraw is one of the draws without replacement by which a redraw orders candidates. It is
// made over the weights that are left: Size is their sum, and Low to High, inclusive, is the
// interval of the candidate that it picked.
type Redraw struct {
	// Number is 2 for the first redraw of a message, 3 for the next and so on; draw 1 is that of
	// its first choice.
	Number int `json:"number"`
	// Draw is nil when the key that drew is not at hand, or the candidate was the only one left.
	Draw *uint64 `json:"draw"`
	Size uint64  `json:"size"`
	Low  uint64  `json:"low"`
	High uint64  `json:"high"`
}

// Attempt is one submit, intended or made.
type Attempt struct {
	Number  int    `json:"attempt"`
	Channel string `json:"channel"`
	Reason  string `json:"reason"`  // first_choice, fallback, retry or resend
	Outcome string `json:"outcome"` // empty while the answer is pending
	// Unfit is set when it was refused for what is wrong with this one message.
	Unfit      bool       `json:"unfit,omitempty"`
	Code       string     `json:"provider_code"`
	Reference  string     `json:"provider_reference"`
	Segments   int        `json:"segments"`
	CostMicros int64      `json:"cost_micros"`
	Currency   string     `json:"currency"`
	ClaimedAt  time.Time  `json:"claimed_at"`
	SettledAt  *time.Time `json:"settled_at"`
	// SenderReplaced is set where the channel replaced the message's sender by its own.
	SenderReplaced bool `json:"sender_replaced,omitempty"`
	// ExpiredSelectors are the keys of those that no longer counted when the channel was chosen.
	ExpiredSelectors []string    `json:"expired_selectors,omitempty"`
	Candidates       []Candidate `json:"candidates,omitempty"` // of the ranking that led here
	Basis
	// What its receipts came to, in the words of audit.attempts; left out while they are open.
	Receipt      string     `json:"receipt_state,omitempty"`
	ReceiptCause string     `json:"receipt_cause,omitempty"`
	ReceiptCode  string     `json:"receipt_code,omitempty"`
	ReceiptAt    *time.Time `json:"receipt_at,omitempty"`
	// ContradictedAt is when a receipt said that it was delivered, although the provider had
	// answered that it did not take it.
	ContradictedAt *time.Time `json:"contradicted_at,omitempty"`
	// ReceiptReferences are ids by which receipts name it, and the provider's answer does not.
	ReceiptReferences []string `json:"receipt_references,omitempty"`
}

// Ambiguity is how it was tried to find out what became of an attempt that got no answer.
type Ambiguity struct {
	Attempt int       `json:"attempt"` // the latest under its key
	Step    string    `json:"step"`    // same_key, lookup, receipt or none
	Until   time.Time `json:"until"`
	Asked   int       `json:"asked"`
	// Resolution is taken, not_taken, resent or final; empty while it is open.
	Resolution string `json:"resolution"`
	Author     string `json:"author"` // empty for the dispatcher itself
	Note       string `json:"note"`
}

// Wait is for how long a message waited for one and the same thing, in all.
type Wait struct {
	// Reason is one that candidates have, or why a message waits for no channel.
	Reason string `json:"reason"`
	// On is the channel, or its limit as admission.Key.On names it: "alpha 1s messages",
	// "tenant:shop 1d money"; empty for nothing in particular.
	On      string  `json:"on"`
	Seconds float64 `json:"seconds"`
}
