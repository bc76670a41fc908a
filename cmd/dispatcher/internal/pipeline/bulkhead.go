package pipeline

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// Sizes of the bulkheads: how much of what this process may have under way one channel may hold.
const (
	// mostOfRest is the part, three of four, of what the late channels leave that one channel may
	// hold. It bounds a channel that stops answering before anything shows that it has: a quarter
	// is left for the others, and three quarters of that quarter when the next one fails.
	mostOfRest, restParts = 3, 4
	// leastShare is the share of a late channel in a routing of many: one in so many.
	leastShare = 8
	// lateParts is the part, one in so many, of a channel's share or of its senders that overdue
	// submissions hold when the channel counts as late. One lost answer says nothing of a channel
	// that answers all others.
	lateParts = 4
)

// Times after which a submission counts as overdue.
const (
	overdueTimes    = 4 // as many times the channel's usual answer time
	soonestOverdue  = 500 * time.Millisecond
	latestOverdue   = 2 * time.Second       // longer answers count as this long in the usual answer time
	slowAnswers     = time.Second           // a usual answer time from which on the channel counts as late
	longestQueue    = 2 * time.Second       // what a channel may hold, it answers within this time
	quickestAnswer  = time.Millisecond      // a usual answer time counts as this long at least
	firstGuess      = 20 * time.Millisecond // the least usual answer time before answersRecalled answers
	answersRecalled = 32                    // how many answers make the usual answer time, about
)

// underWay is what this process has under way on one channel.
type underWay struct {
	held    int           // attempts claimed and not answered
	overdue int           // of these, submissions that have been out for longer than the channel usually takes
	senders int           // submissions that may be out at once
	usual   time.Duration // answer time
	closed  bool          // whether operators have switched the channel off
}

// late reports whether a channel takes so long, or leaves so many submissions unanswered, that it
// must not hold more than its share.
func (u *underWay) late(share int) bool {
	return u.usual >= slowAnswers || u.overdue > 0 && u.overdue*lateParts >= min(share, u.senders)
}

// clears is how many attempts the channel can hold so that the last of them, which waits for a
// sender, leaves within longestQueue.
func (u *underWay) clears() int {
	return u.senders + int(int64(u.senders)*int64(longestQueue)/int64(max(u.usual, quickestAnswer)))
}

// rooms divides total, which all channels together may have under way, among them:
//
//	late channel    its share of total, no more than it has senders, and what the last line says
//	narrow channel  what its senders submit within longestQueue, and what the last line says
//	other channel   three quarters of total less what the other late and narrow channels hold
//
// So no channel takes everything, whatever happens to it, while one that answers promptly and has
// enough senders is bounded by little else than total. A narrow channel is treated as a late one,
// because what waits for its few senders keeps slots from the others just as long. A single
// channel takes nothing from others and has no bound.
func rooms(channels []underWay, total int) []decide.Room {
	open := 0
	for i := range channels {
		if !channels[i].closed {
			open++
		}
	}
	out := make([]decide.Room, len(channels))
	share := max(total/max(open, 1), total/leastShare, 1)
	most, heldLate := make([]int, len(channels)), 0
	for i := range channels {
		u := &channels[i]
		switch {
		case open <= 1:
			most[i] = total
			continue
		case u.late(share):
			most[i], out[i].Late = min(share, u.senders), true
		default:
			most[i] = u.clears()
			out[i].Late = most[i] < total*mostOfRest/restParts
		}
		if out[i].Late {
			heldLate += u.held
		}
	}
	for i := range channels {
		u, bound := &channels[i], most[i]
		if open > 1 {
			rest := total - heldLate
			if out[i].Late {
				rest += u.held
			}
			bound = min(bound, rest*mostOfRest/restParts)
		}
		bound = max(bound, 1)
		out[i].Kept = bound / expressShare
		out[i].Left = bound - out[i].Kept - u.held
	}
	return out
}

// stuck is how much of the total will not come free soon: what the late channels hold, and overdue
// submissions on the others. No claim waits for that.
func stuck(channels []underWay, rooms []decide.Room) (n int) {
	for i := range rooms {
		if rooms[i].Late {
			n += channels[i].held
		} else {
			n += channels[i].overdue
		}
	}
	return n
}
