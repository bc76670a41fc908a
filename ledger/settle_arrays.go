package ledger

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"dispatcher/provider"
)

// settledArrays are the parameters of insertSettled. All attempts are of one instance.
func settledArrays(order []settling) []any {
	a := newOpenArrays(len(order))
	at := make([]pgtype.Timestamptz, len(order))
	reference, code := make([]string, len(order)), make([]string, len(order))
	var claims []*openClaim
	var key []int64
	var claimed []pgtype.Timestamptz
	for i, s := range order {
		a.set(i, s.Seq, &s.open.attempt)
		a.segments[i], a.price[i] = int16(s.Segments), s.PriceMicros
		c := s.open.claim
		at[i] = instant(c.at)
		reference[i], code[i] = storable(cmp.Or(s.Reference, s.Denied)), storable(s.Code)
		if !slices.Contains(claims, c) {
			claims, key, claimed = append(claims, c), append(key, c.key), append(claimed, at[i])
		}
	}
	return append(a.arguments(), order[0].open.claim.instance, brief(at), reference, brief(code),
		key, claimed)
}

// slotArrays are the parameters of freeSlots.
func slotArrays(order []settling) []any {
	slots := map[string]int64{}
	for _, s := range order {
		slots[s.open.attempt.Channel]++
	}
	channels := slices.Sorted(maps.Keys(slots))
	counts := make([]int64, len(channels))
	for i, channel := range channels {
		counts[i] = slots[channel]
	}
	return []any{channels, counts}
}

// plainNotices are the status events of plain settlements.
func plainNotices(order []settling) (keys []string, values [][]byte) {
	keys, values = make([]string, 0, len(order)), make([][]byte, 0, len(order))
	for _, s := range order {
		if s.Notice != nil {
			keys, values = append(keys, s.Notice.Key), append(values, s.Notice.Value)
		}
	}
	return keys, values
}

// settlementArrays are the parameters of settle, in the order of settleNames.
func settlementArrays(order []settling) []any {
	n := len(order)
	seq, attempt, outcome := make([]int64, n), make([]int16, n), make([]string, n)
	code, reference, segments, price := make([]string, n), make([]string, n), make([]int16, n),
		make([]int64, n)
	state, reason := make([]string, n), make([]string, n)
	var next []pgtype.Timestamptz // null unless a row has one
	tried, duplicate, plain := make([]bool, n), make([]bool, n), make([]bool, n)
	pinned, left, cut := make([]string, n), make([]string, n), make([]string, n)
	hold, slow := make([]int64, n), make([]int64, n)
	unfit, denied, repeats := make([]bool, n), make([]int16, n), make([]bool, n)
	notices := newNoticeArrays(n)
	for i, s := range order {
		seq[i], attempt[i], outcome[i] = s.Seq, int16(s.Attempt), s.Outcome.String()
		code[i], reference[i] = storable(s.Code), storable(cmp.Or(s.Reference, s.Denied))
		segments[i], price[i] = int16(s.Segments), s.PriceMicros
		state[i], reason[i] = string(s.State), storable(s.Reason)
		if !s.NextAt.IsZero() {
			next = sized(next, n)
			next[i] = instant(s.NextAt)
		}
		tried[i], duplicate[i], plain[i] = s.Tried, s.PossibleDuplicate, s.plain()
		pinned[i], left[i], cut[i] = s.Pinned, arrayLiteral(s.PartsLeft), storable(s.PartsCut)
		hold[i], slow[i] = s.Hold.Microseconds(), -1
		if s.Slow != nil {
			slow[i] = max(s.Slow.RetryAfter, 0).Microseconds()
		}
		unfit[i], repeats[i] = s.Unfit, s.Repeats
		denied[i] = int16(s.DeniedParts) //nolint:gosec // Segments of a message.
		notices.set(i, s.Notice)
	}
	return slices.Concat([]any{
		seq, brief(attempt), brief(outcome), brief(code), reference, brief(segments), brief(price),
		brief(state), brief(reason), next, brief(tried), brief(pinned), brief(left), brief(cut),
		brief(duplicate), brief(plain), brief(hold), brief(slow), brief(unfit), brief(denied),
		brief(repeats),
	}, saidArrays(order), refundArrays(order), notices.arguments())
}

// refundArrays are the refunds of settlements, with the position of their settlement.
func refundArrays(order []settling) []any {
	nr, channel, scope, lane, pool := []int64{}, []string{}, []string{}, []string{}, []string{}
	seconds, micros := []int32{}, []int64{}
	for i, s := range order {
		for _, r := range s.Refunds {
			nr, channel, scope = append(nr, int64(i+1)), append(channel, r.Channel),
				append(scope, r.Scope.String())
			seconds, micros = append(seconds, int32(r.Window.Seconds())),
				append(micros, max(r.Micros, 0))
			lane, pool = append(lane, r.Tallies.Lane), append(pool, r.Tallies.Pool)
		}
	}
	return []any{nr, channel, scope, seconds, micros, lane, pool}
}

// saidArrays are what the settlements say about receipts, see settleNames.
func saidArrays(order []settling) []any {
	n := len(order)
	expected, within, telling, cut := make([]int16, n), make([]int64, n), make([]bool, n),
		make([]bool, n)
	for i, s := range order {
		if s.Receipts > 0 {
			expected[i], telling[i], within[i], cut[i] = s.said()
		}
	}
	return []any{brief(expected), brief(telling), brief(within), brief(cut)}
}

// correctedArrays are the parameters of corrected; nil when no settlement says anything about
// receipts.
func correctedArrays(order []settling) []any {
	var seq, within []int64
	var attempt, expected []int16
	var outcome []string
	var telling, cut []bool
	for _, s := range order {
		if s.Receipts <= 0 {
			continue
		}
		o, t, w, c := s.said()
		seq, attempt, outcome = append(seq, s.Seq), append(attempt, int16(s.Attempt)),
			append(outcome, s.Outcome.String())
		expected, telling, within, cut = append(expected, o), append(telling, t), append(within, w),
			append(cut, c)
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, outcome, expected, telling, within, cut}
}

// said is what a settlement with a number of Receipts says about them, see settleNames. within is
// in microseconds.
func (s *Settlement) said() (expected int16, telling bool, within int64, cut bool) {
	known := slices.Sorted(names(s.Reference))
	telling = s.Receipts != len(slices.Compact(known)) || s.CutShort ||
		s.Outcome == provider.Unknown
	return int16(s.Receipts), telling, max(s.Await, 0).Microseconds(), s.CutShort //nolint:gosec // Segments of a message.
}

// noticeArrays are the notices, at most one for each settlement; empty where there is none.
type noticeArrays struct {
	keys     []string
	values   [][]byte
	complete bool // every settlement has a notice
}

func newNoticeArrays(n int) noticeArrays {
	return noticeArrays{keys: make([]string, n), values: make([][]byte, n), complete: true}
}

func (a *noticeArrays) set(i int, n *Notice) {
	if n == nil {
		a.values[i], a.complete = []byte{}, false
		return
	}
	a.keys[i], a.values[i] = n.Key, n.Value
}

func (a *noticeArrays) arguments() []any { return []any{a.keys, a.values, a.complete} }

// storable makes a text fit for a text column, which takes neither invalid UTF-8 nor a zero byte.
// One odd answer of a provider must not keep a whole batch from being settled.
func storable(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// arrayLiteral is the text form of a PostgreSQL array of small numbers; empty for none.
func arrayLiteral(numbers []int) string {
	if len(numbers) == 0 {
		return ""
	}
	b := []byte{'{'}
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(append(b, '}'))
}

// expectArrays are the parameters of expectReceipts, or nil when no receipt is expected. There is
// one element for each part that a receipt is expected for, or for the whole attempt when its
// provider gave no reference, and one with part 0 for each id in Denied.
func expectArrays(order []settling, merge bool) []any {
	var seq, await []int64
	var attempt, part []int16
	var reference []string
	for _, s := range order {
		if s.Await <= 0 {
			continue
		}
		number := int16(0)
		add := func(name string) {
			number++
			seq, attempt, reference = append(seq, s.Seq), append(attempt, int16(s.Attempt)),
				append(reference, name)
			part, await = append(part, number), append(await, s.Await.Microseconds())
		}
		for one := range names(s.Reference) {
			add(one)
		}
		if number == 0 && s.Outcome == provider.Accepted {
			add(wholeRow("", s.Seq, s.Attempt).reference) // only a receipt with our key can find it
		}
		for one := range names(s.Denied) {
			seq, attempt, reference = append(seq, s.Seq), append(attempt, int16(s.Attempt)),
				append(reference, one) //nolint:gosec // A smallint.
			part, await = append(part, 0), append(await, s.Await.Microseconds())
		}
	}
	if seq == nil {
		return nil
	}
	return []any{seq, attempt, reference, part, await, merge}
}

// names are the references of a settlement that a receipt can be found by.
func names(reference string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for one := range strings.FieldsSeq(storable(reference)) {
			if len(one) <= maxReference && !yield(one) {
				return
			}
		}
	}
}

// brief cuts a column that holds one and the same value to that value: most columns of a batch do,
// and an array costs both sides time for each element.
func brief[T comparable](column []T) []T {
	for i := 1; i < len(column); i++ {
		if column[i] != column[0] {
			return column
		}
	}
	return column[:min(1, len(column))]
}
