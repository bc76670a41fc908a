package pipeline

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// Sizes of the bulkheads: how many of this process's in-flight attempts one channel may hold.
const (
	// promised sets a channel's share: 1/promised of its portion of the total. No other channel may
	// take the share. The rest of the portion is the channel's when it answers that much.
	promised = 2
	// stretch is how many times its share a channel may hold when it answers that much, even if others
	// need their portions. Draws are not even, and a claim ends at the first message without room.
	stretch = 3
	// ahead is how many attempts a channel may hold for each that it answers within its usual
	// answer time. By Little's law it needs one for each.
	ahead = 2
	// silentParts sets when a channel counts as silent: when 1/silentParts of its share or of its
	// senders has had no answer. One lost answer means nothing.
	silentParts = 4
)

// Times that tell slow and silent channels.
const (
	overdueTimes    = 2 // times the usual answer time: then a submission is overdue
	soonestOverdue  = 500 * time.Millisecond
	latestOverdue   = 2 * time.Second        // longer answers count as this long
	leastLately     = 250 * time.Millisecond // answers count for at least this long
	slowAnswers     = time.Second            // no claim waits for a channel that is this slow
	quietAfter      = 50 * time.Millisecond  // nor for one without an answer for this long
	longestQueue    = 2 * time.Second        // a channel holds no more than it answers in this time
	quickestAnswer  = time.Millisecond       // a usual answer time counts as at least this long
	firstGuess      = 20 * time.Millisecond  // least usual time before answersRecalled answers
	answersRecalled = 32                     // roughly how many answers make the usual answer time
)

// underWay is what this process has in flight on one channel.
type underWay struct {
	held int // attempts claimed and not answered
	// overdue are submissions that have been out for longer than twice the usual answer time, though
	// later answers have come. silent are those without an answer in time since the last answer.
	overdue, silent int
	answered        int           // answers within the last usual answer time, without overdue ones
	unknown         bool          // too few answers to tell, or nothing out for the usual answer time
	senders         int           // submissions that may be out at once
	usual           time.Duration // answer time
	quiet           time.Duration // since the last answer
	portion         float64       // of all messages, by the weights; those of all channels add up to 1
	closed          bool          // whether operators have switched the channel off
}

// share is what the channel may hold of total whatever the others do.
func (u *underWay) share(total int) int {
	return max(min(int(float64(total)*u.portion/promised), u.clears()), 1)
}

// fails reports whether the channel answers nothing, or so little that lost answers fill its share.
func (u *underWay) fails(share int) bool {
	return u.overdue >= share || u.silent > 0 && u.silent*silentParts >= min(share, u.senders)
}

// wants is how many attempts the channel may hold if no other needs the room. Overdue submissions
// come on top, as long as the channel answers others.
func (u *underWay) wants(total int) int {
	share := u.share(total)
	most := share
	if !u.fails(share) {
		most = max(share, ahead*u.answered) + u.overdue
		if u.unknown {
			most = total
		}
	}
	return max(min(most, u.clears()), share)
}

// entitled is how much of wants is within the channel's portion.
func (u *underWay) entitled(total int) int {
	if u.unknown {
		return u.share(total)
	}
	return min(u.wants(total), promised*u.share(total))
}

// clears is how many attempts the channel can hold such that the last of them gets a sender within
// longestQueue.
func (u *underWay) clears() int {
	return u.senders + int(int64(u.senders)*int64(longestQueue)/int64(max(u.usual, quickestAnswer)))
}

// rooms divides total, the bound for all channels together, among them. A channel may hold twice as
// many attempts as it answered within its usual answer time:
//
//	its share      half of its portion by the weights, always
//	its portion    when it answers that much, and half as much again for draws that are not even
//	more           when it answers that much and the others do not need it
//
// So a channel that falls silent keeps little more than it needed, and gets no more than its share
// from then on. A channel that answers may have everything that the others neither need nor are
// promised. So may a channel of which nothing is known yet, until it should have answered. A
// channel with few senders holds no more than these submit within longestQueue. A single channel
// takes nothing from others and has no bound.
func rooms(channels []underWay, total int) []decide.Room {
	out, left, open := make([]decide.Room, len(channels)), &decide.Pool{Spare: total, Lent: total}, 0
	for i := range channels {
		u := &channels[i]
		if u.closed {
			left.Spare, left.Lent = left.Spare-u.held, left.Lent-u.held
			continue
		}
		open++
		left.Spare -= max(u.share(total), u.held)
		left.Lent -= max(u.entitled(total), u.held)
	}
	for i := range channels {
		u, r := &channels[i], &out[i]
		share, entitled, wants := u.share(total), u.entitled(total), u.wants(total)
		if open <= 1 {
			share, entitled, wants = total, total, total
		}
		r.Late = open > 1 && (u.fails(share) || u.clears() < total)
		r.Slow = u.usual >= slowAnswers || u.quiet >= quietAfter
		r.Pool = left
		own := entitled
		if !u.unknown {
			own = max(own, min(wants, stretch*share))
		}
		r.More = max(own-max(share, u.held), 0)
		r.Loan = max(wants-max(own, u.held), 0)
		r.Kept = share / expressShare
		r.Left = share - r.Kept - u.held
	}
	return out
}

// stuck is how much of the total will not come free soon, so that no claim should wait for it:
// everything on channels that fail or need longer than two gatherTimes to answer, and the overdue
// submissions on the others.
func stuck(channels []underWay, rooms []decide.Room) (n int) {
	for i := range rooms {
		if rooms[i].Late || channels[i].usual >= 2*gatherTime {
			n += channels[i].held
		} else {
			n += channels[i].overdue
		}
	}
	return n
}
