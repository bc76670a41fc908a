package ledger

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// ascending is the order of messages by id, as collation C sorts them.
func ascending(messages []Message) []int {
	order := make([]int, len(messages))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Compare(messages[a].ID, messages[b].ID)
	})
	return order
}

// planArrays gathers plans column by column, in the order that the statements expect.
type planArrays struct {
	route, keyID, firstChoice, alphabet []string
	version, draw, size                 []int64
	segments                            []int16
}

func newPlanArrays(n int) planArrays {
	text, numbers := make([]string, 4*n), make([]int64, 3*n)
	return planArrays{
		route: text[:n:n], keyID: text[n : 2*n : 2*n], firstChoice: text[2*n : 3*n : 3*n],
		alphabet: text[3*n:],
		version:  numbers[:n:n], draw: numbers[n : 2*n : 2*n], size: numbers[2*n:],
		segments: make([]int16, n),
	}
}

func (a *planArrays) set(i int, p *Plan) {
	a.route[i], a.keyID[i], a.firstChoice[i], a.alphabet[i] = p.Route, p.KeyID, p.FirstChoice,
		p.Alphabet
	a.version[i], a.draw[i], a.size[i], a.segments[i] = p.Version, p.Draw, p.Size, int16(p.Segments)
}

func (a *planArrays) arguments() []any {
	return []any{a.route, a.version, a.draw, a.size, a.keyID, a.firstChoice, a.segments, a.alphabet}
}

// idArrays are the parameters of insertIDs.
func (t *Tx) idArrays() []any { return []any{t.ids(), t.day.first() - t.countsFrom} }

// ids are the ids of the new messages, ascending.
func (t *Tx) ids() []string {
	ids := make([]string, len(t.order))
	for i, at := range t.order {
		ids[i] = t.request.Messages[at].ID
	}
	return ids
}

// recipients is the parameter of selectOptedOut.
func recipients(messages []Message, order []int) []int64 {
	list := make([]int64, len(order))
	for i, at := range order {
		list[i] = messages[at].Recipient
	}
	return list
}

// sized returns s, or a new slice of n elements when s is nil.
func sized[T any](s []T, n int) []T {
	if s == nil {
		return make([]T, n)
	}
	return s
}

// notNull returns b, or an empty slice in place of nil, which would be null.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// split lists the new messages, those that get an attempt, and the due ones that change; all
// ascending by seq.
func split(seen *Seen, each []Decision) (fresh, attempts, changes []int) {
	for i := range each {
		switch {
		case seen.Intakes[i] == Fresh:
			fresh = append(fresh, i)
		case each[i].State != "":
			changes = append(changes, i)
		}
		if each[i].State == Sending {
			attempts = append(attempts, i)
		}
	}
	bySeq := func(a, b int) int { return cmp.Compare(seen.Messages[a].Seq, seen.Messages[b].Seq) }
	for _, list := range [][]int{fresh, attempts, changes} {
		slices.SortFunc(list, bySeq)
	}
	return fresh, attempts, changes
}

// ticketArrays are the parameters of freeAttempts.
func ticketArrays(seen *Seen, which []int) []any {
	seq, number := make([]int64, len(which)), make([]int16, len(which))
	for i, at := range which {
		seq[i] = seen.Messages[at].Seq
		number[i] = int16(seen.Messages[at].Attempts) //nolint:gosec // A smallint.
	}
	return []any{seq, number}
}

// changeArrays are the parameters of updateMessages.
func changeArrays(seen *Seen, each []Decision, which []int) []any {
	n := len(which)
	seq, state, reason, next := make([]int64, n), make([]string, n), make([]string, n),
		make([]pgtype.Timestamptz, n)
	attempts, newRound, state2 := make([]int16, n), make([]bool, n), make([]string, n)
	var waitsFor, waits []string // null unless a row has one
	plans := newPlanArrays(n)
	for i, at := range which {
		d := &each[at]
		seq[i], state[i], reason[i] = seen.Messages[at].Seq, string(d.State), d.Reason
		attempts[i], newRound[i], state2[i] = int16(seen.Messages[at].Attempts), d.NewRound,
			string(d.Seen)
		switch d.State { //nolint:exhaustive // check has refused the others
		case Sending:
			attempts[i] = int16(d.Attempt.Number)
		case Accepted, Waiting:
			next[i] = instant(d.NextAt)
			if d.WaitsFor != "" {
				waitsFor = sized(waitsFor, n)
				waitsFor[i] = d.WaitsFor
			}
		}
		if d.Waits != nil {
			waits = sized(waits, n)
			waits[i] = encodeWaits(d.Waits)
		}
		plans.set(i, &d.Plan)
	}
	return append(append([]any{seq, state, reason, next, attempts, newRound, state2},
		plans.arguments()...), seen.Now, waitsFor, waits)
}

// box is one row of the outbox: all notices of one kind from one transaction.
type box struct {
	kind    string
	keys    []string
	values  [][]byte
	headers *string // JSON, one list for each notice; nil when none has any
}

// pack groups notices by kind and keeps their order within a kind.
func pack(notices []Notice) []box {
	var boxes []box
	for _, kind := range []NoticeKind{Status, Letter} {
		b := box{kind: string(kind)}
		var headers [][]Header
		for i := range notices {
			if n := &notices[i]; n.Kind == kind {
				b.keys = append(b.keys, n.Key)
				b.values = append(b.values, notNull(n.Value))
				headers = append(headers, n.Headers)
			}
		}
		if len(b.keys) > 0 {
			b.headers = encodeHeaders(headers)
			boxes = append(boxes, b)
		}
	}
	return boxes
}

// encodeHeaders returns nil when all lists are empty.
func encodeHeaders(lists [][]Header) *string {
	if !slices.ContainsFunc(lists, func(h []Header) bool { return len(h) > 0 }) {
		return nil
	}
	text := encodeList(lists)
	return &text
}

func encodeList[T [][]Header | []Header](list T) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic("ledger: " + err.Error()) // strings always encode
	}
	return string(text)
}
