package pipeline

import (
	"sync/atomic"
	"time"
)

// answersLately counts the latest answers of a connection, without those to overdue submissions.
// Times are since the worker began.
type answersLately struct {
	last   atomic.Int64 // when the last one came
	missed atomic.Int64 // late or missing answers since last
	// spans counts answers by the span in which they came. The lower half of each number is the count,
	// the upper half the number of the span.
	spans [64]atomic.Int64
}

// answerSpan is the resolution: 64 spans are longer than latestOverdue.
const answerSpan = 50 * time.Millisecond

// add counts an answer.
func (l *answersLately) add(since time.Duration) {
	raise(&l.last, int64(since))
	l.missed.Store(0)
	span := int64(since / answerSpan)
	at := &l.spans[span%int64(len(l.spans))]
	for {
		before := at.Load()
		next := span<<32 | 1
		if before>>32 == span {
			next = before + 1
		}
		if at.CompareAndSwap(before, next) {
			return
		}
	}
}

// count is how many answers came within a time before since. It may include up to one span more.
func (l *answersLately) count(since, within time.Duration) (n int) {
	newest, oldest := int64(since/answerSpan), int64(max(since-within, 0)/answerSpan)
	for i := range l.spans {
		if v := l.spans[i].Load(); v>>32 >= oldest && v>>32 <= newest {
			n += int(v & (1<<32 - 1))
		}
	}
	return n
}
