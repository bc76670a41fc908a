package report

import (
	"time"
)

// Explanation says why a message went to its channel: as data, and as a paragraph that an operator
// can send to a customer. It holds no phone number and no text.
type Explanation struct {
	ID string `json:"id,omitempty"`
	// Position is the position of the record in Kafka, if it has no usable id.
	Position string `json:"position,omitempty"`
	State    string `json:"state,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it is in that state, a word of a closed list
	Detail   string `json:"detail,omitempty"` // why it is dead, in a sentence

	// Country is the country of the number, ISO 3166 in lower case; empty when the number has no
	// known country, and nil when the number is not known.
	Country *string `json:"country,omitempty"`
	// PayloadGone is set when number and text were deleted. Then the country, and all that depends
	// on number and text, is not known.
	PayloadGone bool `json:"payload_gone,omitempty"`
	// PayloadHidden is set when the login of the database may not read number and text. It is not
	// known then whether they were deleted.
	PayloadHidden bool `json:"payload_hidden,omitempty"`
	// CallingCode is all that is known of such a number, 44 for +44; 0 when it is not known.
	CallingCode int `json:"calling_code,omitempty"`

	// A forecast leaves out what it does not have.
	Lane       string    `json:"lane,omitempty"`
	Tenant     string    `json:"tenant,omitempty"`
	ReceivedAt time.Time `json:"received_at,omitzero"`
	// when a message that has not ended is due next
	NextAt   time.Time `json:"next_at,omitzero"`
	Segments int       `json:"segments,omitempty"`
	Alphabet string    `json:"alphabet,omitempty"`

	Route          string `json:"route"`
	RoutingVersion int64  `json:"routing_version,omitempty"`
	Mode           string `json:"mode"`
	// Sticky says that the draw is of the recipient's number and not of the id.
	Sticky bool `json:"sticky,omitempty"`
	// Draw and Size are nil for a route that does not draw.
	Draw *int64 `json:"draw"`
	Size *int64 `json:"size"`
	// Interval is the interval of draws that pick the first choice; nil when it is not known.
	Interval    *Interval `json:"interval,omitempty"`
	DrawKeyID   string    `json:"draw_key_id,omitempty"`
	FirstChoice string    `json:"first_choice"`
	// Chosen is the channel of the latest attempt; nil when there is none.
	Chosen *string `json:"chosen"`
	// Candidates are the channels of the latest choice, in ranked order. Basis is what the order
	// depended on.
	Candidates []Candidate `json:"candidates"`
	Basis
	Attempts          []Attempt `json:"attempts,omitzero"`
	PossibleDuplicate bool      `json:"possible_duplicate,omitempty"`
	// PartsAccepted is how many parts of the message the provider has accepted and bills, if not all
	// were accepted.
	PartsAccepted int `json:"parts_accepted,omitempty"`
	// Ambiguities are about attempts that got no answer.
	Ambiguities []Ambiguity `json:"ambiguities,omitempty"`
	// Waits are what the message waited for, in the order in which it first did, with the present
	// wait.
	Waits []Wait `json:"waits,omitzero"`
	// Timeline is what happened to the message, in order of time.
	Timeline []Event `json:"timeline,omitempty"`
	// Limit names the limit that the message waits for now, as admission.Key.On. Lack is why it does
	// not admit the message. Until is the earliest time at which it can; nil when that is not known,
	// or never.
	Limit string     `json:"limit,omitempty"`
	Lack  string     `json:"lack,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	// HeldUntil is when a message that is held for its first choice may go to others too. It is nil
	// for a message that is not held, and for one whose deadline is earlier.
	HeldUntil *time.Time `json:"held_until,omitempty"`
	// Deadline is when the message fails if no channel has taken it.
	Deadline *time.Time `json:"deadline,omitempty"`
	Text     string     `json:"text"`

	// Zone is the time zone of Text; nil for a forecast.
	Zone *time.Location `json:"-"`
}

// Interval is a closed range of draws.
type Interval struct {
	Low  uint64 `json:"low"`
	High uint64 `json:"high"`
}

// Basis is what an order of candidates depended on.
type Basis struct {
	// RankedBy is load_ratio, best_worker, round_robin, redraw or order; or wait, when nothing was
	// ranked.
	RankedBy string `json:"ranked_by,omitempty"`
	// RankedVersion is the routing version that the candidates come from.
	RankedVersion int64 `json:"ranked_version,omitempty"`
	// Cursor is the channel of the previous turn, for round robin.
	Cursor string `json:"cursor,omitempty"`
	// RedrawKeyID names the key of a redraw.
	RedrawKeyID string `json:"redraw_key_id,omitempty"`
	// Scoring is expression or function; empty for the default scoring.
	Scoring string `json:"scoring,omitempty"`
	// Trouble is why the route's own scoring was not used.
	Trouble string `json:"trouble,omitempty"`
	// More is how many further candidates are not listed.
	More int `json:"more,omitempty"`
}

// Candidate is one channel in a ranking.
type Candidate struct {
	Channel string `json:"channel"`
	// Score is nil unless best worker ranked.
	Score *float64 `json:"score"`
	// LoadRatio is nil when the load was not needed: for a drawn first choice without an exclusion,
	// and where the order depends on turns, draws or scores alone.
	LoadRatio *float64 `json:"load_ratio"`
	// Eligible is whether it could take the message. It is nil for a candidate after the chosen one
	// that was not considered, unless the routing version alone excludes it.
	Eligible *bool `json:"eligible"`
	// Reason is its exclusion reason, or outranked if it was not considered. It is empty when
	// Eligible is true.
	Reason string `json:"reason"`
	// Segments is how many billed parts the message has on the channel, and CostMicros what they
	// cost, in Currency; nil and empty for a record.
	Segments   *int   `json:"segments,omitempty"`
	CostMicros *int64 `json:"cost_micros,omitempty"`
	Currency   string `json:"currency,omitempty"`
	// SenderReplaced is set where the channel replaces the message's sender by its own.
	SenderReplaced bool `json:"sender_replaced,omitempty"`
	// Limit names the limit without a free slot, as admission.Key.On. Never says why it can never
	// admit the message; it is empty if it can, or that is not known.
	Limit string `json:"limit,omitempty"`
	Never string `json:"never,omitempty"` // closed: it is 0; too_small: the message takes more
	// Redraw is the draw that picked it, for a redraw; nil for others.
	Redraw *Redraw `json:"redraw,omitempty"`
	// LastAssigned is when it last got a message, which breaks ties; nil if never, or not known.
	LastAssigned *time.Time `json:"last_assigned,omitempty"`
}

// outranked is the reason of candidates after the chosen one.
const outranked = "outranked"

// can reports whether it is known that the candidate could take the message.
func (c *Candidate) can() bool { return c.Eligible != nil && *c.Eligible }

// cannot reports whether it is known that the candidate could not take the message.
func (c *Candidate) cannot() bool { return c.Eligible != nil && !*c.Eligible }

// Redraw is one of the draws without replacement by which a redraw orders candidates. It is made
// over the channels not drawn yet. Size is the sum of their weights; Low to High, inclusive, is the
// interval of the candidate that it picked.
type Redraw struct {
	// Number is 2 for the first redraw of a message, 3 for the next and so on; draw 1 picked its
	// first choice.
	Number int `json:"number"`
	// Draw is nil when the key of the draw is not known, or when the candidate was the only one left.
	Draw *uint64 `json:"draw"`
	Size uint64  `json:"size"`
	Low  uint64  `json:"low"`
	High uint64  `json:"high"`
}

// Attempt is one attempt of a message.
type Attempt struct {
	Number  int    `json:"attempt"`
	Channel string `json:"channel"`
	Reason  string `json:"reason"`  // first_choice, fallback, retry, resend or no_receipt
	Outcome string `json:"outcome"` // empty while the answer is pending
	// Unfit is set when it was refused because of this message, and not because of the channel.
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
	// ExpiredSelectors are the keys of the selectors that had expired when the channel was chosen.
	ExpiredSelectors []string    `json:"expired_selectors,omitempty"`
	Candidates       []Candidate `json:"candidates,omitempty"` // of the ranking that led here
	Basis
	// The result of its receipts, in the words of audit.attempts; left out while they are open.
	Receipt      string     `json:"receipt_state,omitempty"`
	ReceiptCause string     `json:"receipt_cause,omitempty"`
	ReceiptCode  string     `json:"receipt_code,omitempty"`
	ReceiptAt    *time.Time `json:"receipt_at,omitempty"`
	// ContradictedAt is when a receipt said delivered although the provider had answered that it did
	// not take the attempt.
	ContradictedAt *time.Time `json:"contradicted_at,omitempty"`
	// ReceiptReferences are ids that receipts have for it and the provider's answer does not.
	ReceiptReferences []string `json:"receipt_references,omitempty"`
}

// Ambiguity is the search for the outcome of an attempt that got no answer.
type Ambiguity struct {
	Attempt int       `json:"attempt"` // the latest under its key
	Step    string    `json:"step"`    // same_key, lookup, receipt or none
	Until   time.Time `json:"until"`
	Asked   int       `json:"asked"`
	// Resolution is taken, not_taken, resent or final; empty while it is open.
	Resolution string `json:"resolution"`
	Author     string `json:"author"` // empty for the dispatcher itself
	// Login is the login of the database that settled it, beside the author that was stated; empty if
	// the dispatcher settled it, or by API or console.
	Login string `json:"login,omitempty"`
	// Via is command, where the author was only claimed, or api or console, where the author was
	// authenticated; empty where it was not recorded.
	Via  string `json:"via,omitempty"`
	Note string `json:"note"`
}

// Wait is the total time that a message waited for one thing.
type Wait struct {
	// Reason is an exclusion reason, or why the message does not wait for a channel.
	Reason string `json:"reason"`
	// On is a channel, or a limit as admission.Key.On names it: "alpha 1s messages",
	// "tenant:shop 1d money"; empty for nothing in particular.
	On      string  `json:"on"`
	Seconds float64 `json:"seconds"`
}
