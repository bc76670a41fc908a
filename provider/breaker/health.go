package breaker

import (
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// periods is how many parts the window of the share has.
const periods = 10

// maxCodes is how many codes of failures are kept.
const maxCodes = 64

// health knows how the submits since the last change of state ended, and decides whether the
// channel is broken. An outcome counts where its submit stands and not when it comes: answers come
// within milliseconds and lost ones time out together seconds later, so that in the order of
// outcomes a channel that loses few answers looks like one that is dead for a moment. See
// TestAChannelThatAnswersMostSubmitsStaysClosed. It is safe for concurrent use.
type health struct {
	failures uint64 // Config.Failures
	percent  uint64
	sample   uint64
	period   time.Duration
	origin   time.Time

	mu    sync.Mutex
	next  uint64   // the number of the next submit
	first uint64   // submits before it belong to another state and say nothing
	good  uint64   // one more than the latest submit with a good answer
	row   row      // of failures after that
	share []period // a ring by period number
	// the period of the latest failure, or of the latest good answer while there is none
	last int64

	codes  [maxCodes]string // of failures, a ring
	failed int              // failures since the last change of state
}

// row is the failures since the last good answer, of submits later than each that got one.
type row struct {
	failures    uint64
	first, last uint64 // the earliest and the latest of their submits
	excluded    uint64 // outcomes since then that say nothing about the channel
}

// span is how many submits the row is among, without those that say nothing about the channel.
func (r *row) span() uint64 {
	if r.failures == 0 {
		return 0
	}
	n := r.last - r.first + 1
	return max(r.failures, n-min(n, r.excluded))
}

// add takes in the failure of a submit.
func (r *row) add(n uint64) {
	if r.failures == 0 {
		r.first, r.last = n, n
	}
	r.failures, r.first, r.last = r.failures+1, min(r.first, n), max(r.last, n)
}

// period counts the submits that began in one tenth of the window.
type period struct {
	number                  int64
	submits, failures, good uint64
}

// submit is a submit under way: its number and its period.
type submit struct {
	n      uint64
	period int64
}

func newHealth(c *Config) *health {
	size := c.Window / periods
	return &health{
		failures: uint64(c.Failures), percent: uint64(c.Percent), sample: uint64(c.Sample),
		period: size, origin: time.Now(), next: 1,
		share: make([]period, periods+int(c.AnswerWithin/size)+1),
	}
}

// begin notes a submit.
func (h *health) begin() submit {
	// reads the monotonic clock alone, half the price of time.Now
	period := int64(time.Since(h.origin) / h.period)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := submit{n: h.next, period: period}
	h.next++
	if p := h.at(s.period); p != nil {
		p.submits++
	}
	return s
}

// end notes how a submit ended: nil for a good answer, errExcluded for what says nothing about the
// channel, anything else for a failure with its code.
func (h *health) end(s submit, class error, code string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.n < h.first {
		return
	}
	p := h.at(s.period)
	switch {
	case class == nil:
		h.good, h.row = max(h.good, s.n+1), row{}
		if h.failed == 0 {
			h.last = s.period
		}
		if p != nil {
			p.good++
		}
	case errors.Is(class, errExcluded):
		if h.row.failures > 0 && s.n > h.row.first {
			h.row.excluded++
		}
		if p != nil {
			p.submits--
		}
	default:
		h.codes[h.failed%maxCodes] = code
		h.failed++
		h.last = s.period
		if s.n >= h.good {
			h.row.add(s.n)
		}
		if p != nil {
			p.failures++
		}
	}
}

// at is the count of a period; nil when it is so long ago that its place has another. mu is held.
func (h *health) at(number int64) *period {
	p := &h.share[number%int64(len(h.share))]
	switch {
	case p.number > number:
		return nil
	case p.number < number:
		*p = period{number: number}
	}
	return p
}

// broken reports, after a failure, whether the channel is to be left. Either as many failures as
// configured are in a row, and no good answer came for a later submit; submits that are still
// unanswered among them may turn out well, so that half the row must have failed. Or the share of
// failures among the submits of the window that ends with the failed one is too high.
func (h *health) broken() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := &h.row; r.failures >= h.failures && r.failures*100 >= h.percent*r.span() {
		return true
	}
	w := h.window()
	return w.good+w.failures >= h.sample && w.failures*100 >= h.percent*w.submits
}

// window sums up the window that ends with the period of the latest failure; mu is held.
func (h *health) window() (sum period) {
	for i := range h.share {
		if p := &h.share[i]; p.number <= h.last && p.number > h.last-periods {
			sum.submits += p.submits
			sum.failures += p.failures
			sum.good += p.good
		}
	}
	return sum
}

// restart forgets everything, as the state of the breaker has changed, and returns the figures that
// held until then. What is under way says nothing about the new state.
func (h *health) restart() (f Stats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.window()
	f = Stats{Failures: int(w.failures), Submits: int(w.submits)} //nolint:gosec // What one channel sends within seconds.
	if h.row.failures > w.failures {
		f = Stats{Failures: int(h.row.failures), Submits: int(h.row.span())} //nolint:gosec // A row.
	}
	f.Code, f.Coded = h.commonest(f.Failures)
	h.first, h.good, h.row, h.failed, h.last = h.next, h.next, row{}, 0, 0
	clear(h.share)
	clear(h.codes[:])
	return f
}

// commonest is the most frequent code of the latest failures; mu is held.
func (h *health) commonest(failures int) (code string, times int) {
	n := min(failures, h.failed, maxCodes)
	counts := make(map[string]int, n)
	for i := range n {
		c := h.codes[(h.failed-1-i)%maxCodes]
		if counts[c]++; counts[c] > times {
			code, times = c, counts[c]
		}
	}
	return code, times
}

// mostUnfit is how many messages, without one that is taken in between, a channel may refuse for
// what they are. Beyond that it is the channel that takes nothing, whatever its provider says: the
// one sender of all its messages is lost, or the one country that it is for. It would answer faster
// than any other and draw messages for it.
const mostUnfit = 100

// unfitRow knows the messages that were refused for what they are since the last answer that speaks
// for the channel. A message that comes again in the next round counts once: what is wrong with it
// says no more about the channel than before. Messages are known by a hash, so that no envelope is
// kept alive for its id. The zero value is not ready.
type unfitRow struct {
	seed maphash.Seed
	any  atomic.Bool // whether there are some; spares the lock of an accepted message

	mu   sync.Mutex
	seen []uint64 // guarded by mu; hashes of ids, one more than mostUnfit at most
}

func newUnfitRow() *unfitRow {
	return &unfitRow{seed: maphash.MakeSeed(), seen: make([]uint64, 0, mostUnfit+1)}
}

// add takes a message in and reports whether there are more than mostUnfit now.
func (r *unfitRow) add(id string) bool {
	h := maphash.String(r.seed, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(true)
	if len(r.seen) <= mostUnfit && !slices.Contains(r.seen, h) {
		r.seen = append(r.seen, h)
	}
	return len(r.seen) > mostUnfit
}

// end begins a new row.
func (r *unfitRow) end() {
	if !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(false)
	r.seen = r.seen[:0]
}
