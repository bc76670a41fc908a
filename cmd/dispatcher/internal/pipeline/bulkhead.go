package pipeline

import (
	"time"

	"dispatcher/cmd/dispatcher/internal/decide"
)

// Sizes of the bulkheads: how many of this process's in-flight attempts one channel may hold.
const (
	// shareDivisor sets a channel's share: 1/shareDivisor of its portion of the total. No other
	// channel may take the share. The channel may use the rest of its portion when it answers that
	// much.
	shareDivisor = 2
	// maxShares is how many times its share a channel may hold when it answers that much, even if
	// others need their portions. Draws are not even, and a claim ends at the first message without
	// room.
	maxShares = 3
	// perAnswer is how many attempts a channel may hold for each that it answered within its usual
	// answer time, or within leastLately if that is longer. By Little's law it needs one.
	perAnswer = 2
	// silentDivisor sets when a channel counts as silent: when 1/silentDivisor of its share or of its
	// senders has had no answer. A single lost answer does not make it silent.
	silentDivisor = 4
)

// Times that decide whether a channel is slow or silent.
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

// inFlight is what this process has in flight on one channel.
type inFlight struct {
	held int // attempts claimed and not answered
	// overdue are submissions that have been out for longer than twice the usual answer time, though
	// later answers have come. silent are those without an answer in time since the last answer.
	overdue, silent int
	answered        int           // answers within max(usual, leastLately), without overdue ones
	unknown         bool          // too few answers so far, or none lately and nothing out that long
	senders         int           // submissions that may be out at once
	usual           time.Duration // answer time
	quiet           time.Duration // since the last answer
	portion         float64       // of all messages, by the weights; their sum is 1
	closed          bool          // whether operators have switched the channel off
}

// share is how much of total the channel may always hold.
func (f *inFlight) share(total int) int {
	return max(min(int(float64(total)*f.portion/shareDivisor), f.sendable()), 1)
}

// fails reports whether the channel answers nothing, or so little that overdue attempts fill its
// share.
func (f *inFlight) fails(share int) bool {
	return f.overdue >= share || f.silent > 0 && f.silent*silentDivisor >= min(share, f.senders)
}

// wanted is how many attempts the channel may hold if no other channel needs the room. Overdue
// submissions are added as long as the channel answers others.
func (f *inFlight) wanted(total int) int {
	share := f.share(total)
	most := share
	if !f.fails(share) {
		most = max(share, perAnswer*f.answered) + f.overdue
		if f.unknown {
			most = total
		}
	}
	return max(min(most, f.sendable()), share)
}

// entitled is how much of wanted is within the channel's portion.
func (f *inFlight) entitled(total int) int {
	if f.unknown {
		return f.share(total)
	}
	return min(f.wanted(total), shareDivisor*f.share(total))
}

// sendable is how many attempts the channel can hold if the last of them is to get a sender within
// longestQueue.
func (f *inFlight) sendable() int {
	return f.senders + int(int64(f.senders)*int64(longestQueue)/int64(max(f.usual, quickestAnswer)))
}

// rooms divides total, the bound for all channels together, among them. A channel may hold twice as
// many attempts as it answered lately (see perAnswer):
//
//	its share      half of its portion by the weights, always
//	its portion    when it answers that much, and half as much again for draws that are not even
//	more           when it answers that much and the others do not need it
//
// So a channel that falls silent keeps little more than it needed, and gets no more than its share
// from then on. A channel that answers may have all that is in no other channel's share and that no
// other channel needs. So may a channel about which nothing is known yet, until its first answers
// are due. A channel with few senders holds no more than these submit within longestQueue. A single
// channel takes nothing from others and has no bound.
func rooms(channels []inFlight, total int) []decide.Room {
	out, open := make([]decide.Room, len(channels)), 0
	left := &decide.Spare{Unshared: total, Unentitled: total}
	for i := range channels {
		f := &channels[i]
		if f.closed {
			left.Unshared, left.Unentitled = left.Unshared-f.held, left.Unentitled-f.held
			continue
		}
		open++
		left.Unshared -= max(f.share(total), f.held)
		left.Unentitled -= max(f.entitled(total), f.held)
	}
	for i := range channels {
		f, r := &channels[i], &out[i]
		share, entitled, wants := f.share(total), f.entitled(total), f.wanted(total)
		if open <= 1 {
			share, entitled, wants = total, total, total
		}
		r.PassOver = open > 1 && (f.fails(share) || f.sendable() < total)
		r.NoWait = f.usual >= slowAnswers || f.quiet >= quietAfter
		r.Spare = left
		own := entitled
		if !f.unknown {
			own = max(own, min(wants, maxShares*share))
		}
		r.AnsweredLeft = max(own-max(share, f.held), 0)
		r.BorrowLeft = max(wants-max(own, f.held), 0)
		r.FirstLaneLeft = share / firstLaneShare
		r.ShareLeft = share - r.FirstLaneLeft - f.held
	}
	return out
}

// stuck is how much of the total will not come free soon, so that no claim should wait for it:
// everything on channels that fail or need longer than two gatherTimes to answer, and the overdue
// submissions on the others.
func stuck(channels []inFlight, rooms []decide.Room) (n int) {
	for i := range rooms {
		if rooms[i].PassOver || channels[i].usual >= 2*gatherTime {
			n += channels[i].held
		} else {
			n += channels[i].overdue
		}
	}
	return n
}
