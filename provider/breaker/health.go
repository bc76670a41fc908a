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

// health counts how the submits since the last change of state ended, and decides whether the
// channel is broken. Outcomes are ordered by their submits, not by their arrival. Answers arrive
// within milliseconds, while lost ones time out together seconds later: ordered by arrival, a
// channel that loses few answers would look dead for a moment. See
// TestAChannelThatAnswersMostSubmitsStaysClosed. It is safe for concurrent use.
type health struct {
	failures uint64 // Config.Failures
	percent  uint64
	sample   uint64
	period   time.Duration
	origin   time.Time

	mu    sync.Mutex
	next  uint64   // the number of the next submit
	first uint64   // submits before it belong to another state and do not count
	good  uint64   // one more than the latest submit with a good answer
	row   row      // of failures
	share []period // a ring by period number
	// the period of the latest failure, or of the latest good answer while there is none
	last int64

	codes  [maxCodes]string // of failures, a ring
	failed int              // failures since the last change of state
}

// row counts failures in a row. A good answer to a submit later than all of them ends it.
type row struct {
	failures    uint64
	first, last uint64 // the earliest and the latest of their submits
	excluded    uint64 // outcomes since then that do not count
}

// span is how many submits the row covers, without those that were excluded.
func (r *row) span() uint64 {
	if r.failures == 0 {
		return 0
	}
	n := r.last - r.first + 1
	return max(r.failures, n-min(n, r.excluded))
}

// add counts the failure of a submit.
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

// submit is a submit in flight: its number and its period.
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

// begin counts a submit.
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

// end counts how a submit ended: nil for a good answer, errExcluded for a result that says nothing
// about the channel, anything else for a failure with its code.
func (h *health) end(s submit, class error, code string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.n < h.first {
		return
	}
	p := h.at(s.period)
	switch {
	case class == nil:
		h.good = max(h.good, s.n+1)
		if s.n > h.row.last { // answers to earlier submits do not show whether the channel still works
			h.row = row{}
		}
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

// at is the counter of a period; nil if the ring has moved on. mu is held.
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

// broken reports, after a failure, whether to stop sending. Either there are as many failures in a
// row as configured, with no good answer to a later submit, and at least half of the row has
// failed, because submits in flight may still succeed. Or the share of failures in the window that
// ends with the failed submit is too high.
func (h *health) broken() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := &h.row; r.failures >= h.failures && r.failures*100 >= h.percent*r.span() {
		return true
	}
	w := h.window()
	return w.good+w.failures >= h.sample && w.failures*100 >= h.percent*w.submits
}

// window sums the window that ends with the period of the latest failure; mu is held.
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

// restart clears all counts after a change of state, and returns them. Submits in flight do not
// count for the new state.
func (h *health) restart() (f Stats) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.window()
	f = Stats{Failures: int(w.failures), Submits: int(w.submits)} //nolint:gosec // Of some seconds.
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

// maxUnfit is how many messages in a row a channel may refuse as unfit. Beyond that the channel
// itself is at fault, whatever the provider says: it may have lost its only sender or the only
// country it serves. It would answer faster than any other channel and attract messages.
const maxUnfit = 100

// unfitRow holds the messages refused as unfit since the last answer that shows a working channel.
// A message that is tried again counts once. Messages are kept as hashes, so that no message is
// kept in memory for its id. Use newUnfitRow.
type unfitRow struct {
	seed maphash.Seed
	any  atomic.Bool // whether seen has entries; if not, an accepted message takes no lock

	mu   sync.Mutex
	seen []uint64 // guarded by mu; hashes of ids, one more than maxUnfit at most
}

func newUnfitRow() *unfitRow {
	return &unfitRow{seed: maphash.MakeSeed(), seen: make([]uint64, 0, maxUnfit+1)}
}

// add counts a message and reports whether there are more than maxUnfit.
func (r *unfitRow) add(id string) bool {
	h := maphash.String(r.seed, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(true)
	if len(r.seen) <= maxUnfit && !slices.Contains(r.seen, h) {
		r.seen = append(r.seen, h)
	}
	return len(r.seen) > maxUnfit
}

// end starts a new row.
func (r *unfitRow) end() {
	if !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(false)
	r.seen = r.seen[:0]
}
