package pipeline

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// Sizes of the bulkheads: how much of what this process may have under way one channel may hold.
const (
	// promised is the part, one in so many, of a channel's portion of the total that is its share:
	// nobody else may hold it. The rest is the channel's when it answers that much.
	promised = 2
	// stretch is how many times its share a channel may hold when it answers that much, though the
	// others need their portions: draws are not even, and a claim ends at the first message that
	// has no room.
	stretch = 3
	// ahead is how many times as many attempts as a channel answers within its usual answer time
	// it may hold. By Little's law it needs as many as it answers in that time.
	ahead = 2
	// silentParts is the part, one in so many, of a channel's share or of its senders that nothing
	// has answered when the channel counts as silent. One lost answer says nothing.
	silentParts = 4
)

// Times by which a channel is judged.
const (
	overdueTimes    = 2 // as many times the usual answer time make a submission overdue
	soonestOverdue  = 500 * time.Millisecond
	latestOverdue   = 2 * time.Second        // longer answers count as this long
	leastLately     = 250 * time.Millisecond // answers count at least so long
	slowAnswers     = time.Second            // no claim waits for a channel this slow or slower
	quietAfter      = 50 * time.Millisecond  // nor for one that has answered nothing for so long
	longestQueue    = 2 * time.Second        // what a channel may hold, it answers within this time
	quickestAnswer  = time.Millisecond       // a usual answer time counts as this long at least
	firstGuess      = 20 * time.Millisecond  // the least usual time before answersRecalled answers
	answersRecalled = 32                     // how many answers make the usual answer time, about
)

// underWay is what this process has under way on one channel.
type underWay struct {
	held int // attempts claimed and not answered
	// overdue are submissions that have been out for longer than twice the usual answer time,
	// though answers came since; silent are those without an answer in time since the last one.
	overdue, silent int
	answered        int           // answers within the last usual answer time, overdue ones left out
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

// wants is how many attempts the channel may hold if nobody else needs the room. Overdue
// submissions do not count where others are answered.
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

// entitled is how many of these are in the channel's portion.
func (u *underWay) entitled(total int) int {
	if u.unknown {
		return u.share(total)
	}
	return min(u.wants(total), promised*u.share(total))
}

// clears is how many attempts the channel can hold so that the last of them, which waits for a
// sender, leaves within longestQueue.
func (u *underWay) clears() int {
	return u.senders + int(int64(u.senders)*int64(longestQueue)/int64(max(u.usual, quickestAnswer)))
}

// rooms divides total, which all channels together may have under way, among them by one rule. A
// channel may hold twice as many attempts as it answered within its usual answer time:
//
//	its share      half of its portion by the weights, always
//	its portion    when it answers that much, and half as much again for draws that are not even
//	more           when it answers that much and the others do not need it
//
// So one that falls silent keeps little more than what it needed, and gets no more than its share
// from then on; one that answers may have all but what the others need or are promised. So may one
// of which nothing is known, until it should have answered. A channel with few senders holds no
// more than these submit within longestQueue. A single channel takes nothing from others and has no
// bound.
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

// stuck is how much of the total will not come free soon: what channels hold that are late or take
// longer than a claim gathers slots twice, and overdue submissions on the others. No claim waits
// for that.
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
