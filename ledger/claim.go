package ledger

import (
	"time"

	"dispatcher/admission"
)

// Claim is the request of Lock: the new messages to store, how many due rows to pick up, and what
// to lock and show.
type Claim struct {
	// Messages are new ones with distinct ids, in any order.
	Messages []Message
	// Due is how many due rows are picked up as well, at most (FOR UPDATE SKIP LOCKED); see Lanes.
	Due int
	// Except are the Message.Seq of due rows that are not picked up.
	Except []int64
	// Channels names the channels whose counters are locked and shown, ascending and distinct. No
	// channel means that no counter is touched.
	Channels []string
	// Scopes names the narrower limits that are locked and shown as well: those of tenants and
	// prefixes, on one channel or over all. Ascending by channel and scope text, distinct. A scope
	// without a limit is shown without counters.
	Scopes []ScopeRef
	// EachTenant is set if the routing has limits that each tenant has for itself. Lock then creates
	// the rows that tenants among Scopes do not have yet.
	EachTenant bool
	// Lanes ranks the lanes, most urgent first. When more than Due rows are due, they are picked up in
	// that order, and within a lane tenants take turns, with the oldest row of each first. Lanes that
	// are not named come last.
	Lanes []string
	// Cursors names the routes whose round-robin cursors are locked and shown, ascending and distinct.
	// A route without a cursor row makes Commit fail with a MissingCursorsError.
	Cursors []string
}

// Seen is what a Tx shows: the messages and the shared state, locked until the transaction ends.
// The caller takes slots by changing the counters, the active counts, LastAssigned and the cursors
// in place; Commit writes back what changed.
type Seen struct {
	// Now is the database's clock, read after all locks were granted.
	Now time.Time
	// Version is the current routing version.
	Version int64
	// Messages are Claim.Messages in the same order, with Seq and ReceivedAt set where Intakes says
	// Fresh, followed by the due rows.
	Messages []Message
	// Intakes has one entry per message.
	Intakes []Intake
	// OptedOut marks the messages whose recipient has opted out of what their tenant sends. It may be
	// shorter than Messages: see IsOptedOut.
	OptedOut []bool
	// CancelledBefore marks the positions of new messages that were cancelled before they came.
	// Decisions end them with ReasonCancelled.
	CancelledBefore map[int]bool
	// Channels are the named channels in the same order.
	Channels []ChannelState
	// Scoped are the narrower limits in the order of Claim.Scopes.
	Scoped []ScopeState
	// LockWait is how long the claim waited for the locks of channels and limits.
	LockWait time.Duration
	// Cursors has the cursors of the named routes in the same order. A cursor may move only to a
	// channel that gets an attempt for its route.
	Cursors []Cursor
}

// Cursor is the position of the round robin of one route, shared by all instances.
type Cursor struct {
	Route string
	// Channel had the last turn; empty before the first.
	Channel string
	// Position is the index of Channel among the route's members, -1 before the first turn. The round
	// robin continues from there when Channel is no longer a member.
	Position int
}

// Intake says what the claim found about a message.
type Intake uint8

// Intakes of a message in a claim.
const (
	Fresh     Intake = iota // new, inserted just now
	Due                     // an older row that is due
	Duplicate               // the id exists with the same content
	Conflict                // the id exists with different content
)

// ScopeRef names the limits of one scope: on a channel, or over all channels when Channel is empty.
type ScopeRef struct {
	Channel string
	Scope   admission.Scope
}

// ScopeState is the shared state of the limits of one scope.
type ScopeState struct {
	ScopeRef
	Counters []admission.Counter
}

// Wait is how long a message has waited for the same thing for the same reason.
type Wait struct {
	Reason string // a bounded word
	// On is the channel, or the limit as admission.Key.On names it; empty for none in particular.
	On  string
	For time.Duration // in all
}

// ChannelState is the shared state of one channel.
type ChannelState struct {
	Name string
	// Gate holds the counters as stored: the ledger does not roll them. When the caller rolls one into
	// a new window, Commit writes it back and keeps the old window in the history.
	Gate admission.Gate
	// LastAssigned is when an attempt was last given to this channel; zero means never.
	LastAssigned time.Time
	// Freed is how many slots were ever given back. Gate.Active.Count no longer includes them.
	Freed int64
}

// Decisions are the result of deciding on Seen: one Decision per message in the same order, and the
// notices that are published once the transaction has committed.
type Decisions struct {
	Each []Decision
	// Notices hold at most one Status about a message, because all notices of a claim have the same
	// Notice.Seq.
	Notices []Notice
}

// Decision is what to do with one message. The zero Decision leaves the row as it is.
type Decision struct {
	// State is Sending, Waiting, Failed or Rejected. It may also be Unknown for a row with attempts,
	// and Accepted for a row that is Accepted. Empty leaves the row as it is.
	State State
	// Reason is a bounded word for Waiting, Failed, Rejected and Unknown.
	Reason string
	// NextAt is set for Waiting, and for Accepted if the message may go on later.
	NextAt time.Time
	// Plan replaces the plan of the row, unless its Version is 0. Due rows are planned again.
	Plan Plan
	// Attempt is set for Sending.
	Attempt Attempt
	// Seen is the compact state, as JSON, on which a wait was decided; nil otherwise.
	Seen []byte
	// WaitsFor is set for Waiting: the channel or scope that is waited for, as Wait.On. For Accepted
	// it is set when the message waits for a limit of a further channel, see waitsForRouting.
	WaitsFor string
	// Waits replaces the waits of the row; nil keeps them.
	Waits []Wait
	// NewRound empties the row's Tried and adds one to Rounds.
	NewRound bool
	// Unlocked says that a due row is left as it is because the claim has not locked all limits that
	// count it. The next claim begins with its tenant, unless more urgent rows are due then.
	Unlocked bool
}

// AttemptReason says why an attempt went to its channel.
type AttemptReason string

// Reasons of an attempt: the words of audit.attempts.reason.
const (
	ByFirstChoice AttemptReason = "first_choice"
	ByFallback    AttemptReason = "fallback"
	ByRetry       AttemptReason = "retry"
	ByResend      AttemptReason = "resend"
	ByNoReceipt   AttemptReason = "no_receipt" // it was accepted, and no receipt came in time
)

// Attempt is one intended submit, durable before its first byte leaves.
type Attempt struct {
	Number      int // from 1
	Channel     string
	Reason      AttemptReason
	Segments    int    // parts that this attempt is going to submit
	PriceMicros int64  // for all of them
	Currency    string // ISO 4217
	// Ticket is set when the attempt uses the active slot of the attempt before: it takes no slot of
	// its own.
	Ticket *admission.Ticket
	// LeavesAt is its release time, where a limit gives one; zero for at once. In limits of a second
	// the attempt counts in the window of that time, and it may leave in the second before if that
	// has counted it too.
	LeavesAt time.Time
	// Ranking is the compact state, as JSON, on which a fallback was ranked; nil for a first choice,
	// which the plan alone explains.
	Ranking []byte
}

// Notice is a record for Kafka that is published through the outbox: at least once, and in order
// for each key.
type Notice struct {
	Kind    NoticeKind
	Key     string
	Value   []byte
	Headers []Header
	// Seq and At are set by Publish. Of two notices about one message the later one has the higher Seq
	// and no earlier At. They belong to the transaction that wrote the notice: Seq is the number of
	// its row in the outbox, At the database's clock once the message was locked. A notice that is
	// published again keeps its Seq.
	Seq int64
	At  time.Time
}

// NoticeKind names the topic that a notice goes to.
type NoticeKind string

// Kinds of notices.
const (
	Status        NoticeKind = "status"
	Letter        NoticeKind = "dead"
	InboundNotice NoticeKind = "inbound" // has its own outbox, see PublishInbound
)

// Header is a Kafka record header.
type Header struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}
