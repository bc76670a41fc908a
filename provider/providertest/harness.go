// Package providertest is the conformance suite of provider.Channel: the behaviour that the
// dispatcher relies on with any protocol. Every adapter's tests call Run with a Harness that starts
// a scripted peer on loopback.
// The suite trusts only the peer's log about what was sent. Protocol-specific behaviour (command
// codes, signatures, reconnect timing) and goleak are left to the adapter's own tests.
package providertest

import (
	"testing"
	"time"

	"dispatcher/provider"
)

// NoListener is an address at which nothing listens. The port of a peer that was closed will not
// do: another test may get it.
const NoListener = "127.0.0.1:1"

// Harness tells the suite how to start one adapter.
type Harness struct {
	// Start starts a peer that follows the script and a channel that uses it. It need not wait
	// until the channel is ready. With a nil script nothing listens at the peer's address. Both are
	// released by t.Cleanup.
	Start func(t testing.TB, script Script) Instance
	// Segments is true if the adapter cuts a long text and submits each segment itself.
	Segments bool
	// RetryAfter is true when the protocol can say how long to wait after Throttled.
	RetryAfter bool
	// Connectionless is true when the adapter is ready without having reached its peer.
	Connectionless bool
	// Secrets are the passwords and tokens that Start configures; none may appear in a result.
	Secrets []string
	// Timeout is how long the suite waits for what must happen; 20s if zero. It must be well above
	// Deadline.
	Timeout time.Duration
	// Deadline is how long a channel may wait for an answer that never comes; 1s when
	// zero. It must be enough to put a message on the wire on a busy machine.
	Deadline time.Duration
}

// Instance is one channel with its peer.
type Instance struct {
	Channel provider.Channel
	// Submits returns the peer's log: everything it received so far, in order, including submits it
	// never answered. It may be called after Close.
	Submits func() []Submit
}

// Submit is one entry of the peer's log.
type Submit struct {
	// To is the recipient as an E.164 number with its plus.
	To string
	// Part is the segment's position from zero; 0 for a message of one.
	Part int
	// Group is the concatenation reference of a segment, its low byte if that is all
	// the protocol carries; 0 for a message of one.
	Group uint16
	// Reference is the message id in the peer's answer; empty when it gave none.
	Reference string
}

// Script decides how the peer answers submit number n, counted from 0 over all connections. The
// peer logs the submit before it asks. Script is called from several goroutines.
type Script func(n int, s Submit) Answer

// Answer is one decision of a Script.
type Answer struct {
	Reply Reply
	// RetryAfter goes with Throttle where the protocol has it.
	RetryAfter time.Duration
	// Reference, when set, is the id that the peer gives with Accept.
	Reference string
	// Hold, when set, delays the answer until it is closed. It must not delay the
	// answers to other submits.
	Hold <-chan struct{}
}

// Reply is what the peer does with a submit.
type Reply uint8

const (
	// Accept gives a reference that the peer gave to nobody else.
	Accept Reply = iota
	// Reject says that the message is at fault, for instance an invalid destination.
	Reject
	// Refuse says that the provider is at fault and did not take the message.
	Refuse
	// Throttle asks to slow down.
	Throttle
	// Lose takes the submit and never answers; the connection stays up.
	Lose
	// Cut takes the submit and drops the connection.
	Cut
)

// Always is the script that gives every submit the same reply.
func Always(v Reply) Script {
	return func(int, Submit) Answer { return Answer{Reply: v} }
}

// Run runs the whole suite as parallel subtests.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range checks(h) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// check is one claim of the suite.
type check struct {
	name string
	run  func(t testing.TB, h Harness)
}

// checks lists what applies to the adapter.
func checks(h Harness) []check {
	list := []check{
		{"AcceptGivesTheReferenceOfThePeer", acceptGivesReference},
		{"LongestReferenceIsTakenAndNoLongerOne", longReference},
		{"RejectIsRejected", classifies(Reject, provider.Rejected)},
		{"RefuseIsRefused", classifies(Refuse, provider.Refused)},
		{"ThrottleIsThrottledWithRetryAfter", throttleIsThrottled},
		{"LostReplyIsUnknownAndSentOnce", lostReplyIsUnknown},
		{"CancelInFlightIsUnknown", cancelInFlightIsUnknown},
		{"CutIsUnknownAndTheChannelComesBack", cutIsUnknown},
		{"DownPeerIsRefused", downPeerIsRefused},
		{"EndedContextSendsNothing", endedContextSendsNothing},
		{"PassedLatestLeavesNoByteAndIsRefusedLate", passedLatestLeavesNoByte},
		{"PassedDeadlineLeavesNoByteAndIsRefusedExpired", passedDeadlineLeavesNoByte},
		{"DeadlineThatPassesWhileItWaitsLeavesNoByte", waitingPastDeadlineLeavesNoByte},
		{"ConcurrentSendsKeepTheirReferences", concurrentSends},
		{"LateAnswerBelongsToNobodyElse", lateAnswer},
		{"CloseWaitsForSendsUnderWay", closeWaits},
		{"CloseEndsWithItsContext", closeIsBounded},
		{"CloseTwiceAndSendAfterClose", closeTwice},
	}
	if h.Segments {
		list = append(list,
			check{"EverySegmentIsSentOnceWithItsReference", segmentsAreSentOnce},
			check{"OnlyMissingPartsAreSentAgain", missingPartsOnly},
			check{"PartsOfAnotherCutAreRefused", foreignCutIsRefused},
			check{"LostReplyOfOnePartIsUnknown", lostPartIsUnknown},
			check{"PassedLatestLeavesNoSegment", passedLatestLeavesNoSegment},
			check{"BegunMessageIsFinishedAfterItsLatest", begunMessageIsFinished},
			check{"PassedDeadlineLeavesNoSegment", passedDeadlineLeavesNoSegment},
		)
	}
	return list
}
