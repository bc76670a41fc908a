package ledger

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// ascending is the order of messages by id, as collation C sorts.
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

// brief is arguments with columns of one value cut to that.
func (a *planArrays) brief() []any {
	return []any{
		brief(a.route), brief(a.version), a.draw, brief(a.size), brief(a.keyID),
		a.firstChoice, brief(a.segments), brief(a.alphabet),
	}
}

// brief cuts a column that holds one and the same value to that value: most columns of
// a batch do, and an array costs both sides time for each element.
func brief[T comparable](column []T) []T {
	for i := 1; i < len(column); i++ {
		if column[i] != column[0] {
			return column
		}
	}
	return column[:min(1, len(column))]
}

// messageArrays are the parameters of insertMessages, in the given order.
func messageArrays(messages []Message, order []int) []any {
	n := len(order)
	id, lane, tenant, topic := make([]string, n), make([]string, n), make([]string, n),
		make([]string, n)
	partition, offset, digest, recipient := make([]int32, n), make([]int64, n), make([]int64, n),
		make([]int64, n)
	envelope, state, expires := make([][]byte, n), make([]string, n), make([]pgtype.Timestamptz, n)
	var reason []string           // null unless a row has one
	var next []pgtype.Timestamptz // null unless a row has one
	plans := newPlanArrays(n)
	for i, at := range order {
		m := &messages[at]
		id[i], lane[i], tenant[i], topic[i] = m.ID, m.Lane, m.Tenant, m.Origin.Topic
		partition[i], offset[i], digest[i] = m.Origin.Partition, m.Origin.Offset, m.Digest
		recipient[i] = m.Recipient
		envelope[i], state[i], expires[i] = present(m.Envelope), string(m.State),
			instant(m.ExpiresAt)
		if m.Reason != "" {
			reason = room(reason, n)
			reason[i] = m.Reason
		}
		if !m.NextAt.IsZero() {
			next = room(next, n)
			next[i] = instant(m.NextAt)
		}
		plans.set(i, &m.Plan)
	}
	return append(append([]any{
		id, brief(lane), brief(tenant), brief(topic), partition, offset, envelope, digest,
		brief(state), reason, next, expires,
	}, plans.brief()...), recipient)
}

// room makes the slice the first time that it is needed.
func room[T any](s []T, n int) []T {
	if s == nil {
		return make([]T, n)
	}
	return s
}

// present is an envelope that is never null.
func present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// split lists the messages that get an attempt, and those whose row must be written
// again because it was inserted with other values than were decided. fresh is the
// number of new messages at the front.
func split(seen *Seen, each []Decision, fresh int) (attempts, changes []int) {
	for i := range each {
		d := &each[i]
		if d.State == "" {
			continue
		}
		if d.State == Sending {
			attempts = append(attempts, i)
			if i < fresh && len(d.Seen) == 0 && d.Waits == nil && !d.NewRound &&
				(d.Plan.Version == 0 || d.Plan == seen.Messages[i].Plan) {
				continue // it was inserted as sending, with this plan
			}
		}
		changes = append(changes, i)
	}
	bySeq := func(a, b int) int { return cmp.Compare(seen.Messages[a].Seq, seen.Messages[b].Seq) }
	slices.SortFunc(attempts, bySeq)
	slices.SortFunc(changes, bySeq)
	return attempts, changes
}

// attemptArrays are the parameters of insertAttempts.
func attemptArrays(seen *Seen, each []Decision, which []int, now time.Time, instance int64) []any {
	n := len(which)
	seq, number, channel, reason := make([]int64, n), make([]int16, n), make([]string, n),
		make([]string, n)
	segments, price, currency := make([]int16, n), make([]int64, n), make([]string, n)
	var ranking []string                     // null unless an attempt has one
	var tickets, leaves []pgtype.Timestamptz // likewise
	for i, at := range which {
		a := &each[at].Attempt
		seq[i], number[i], channel[i], reason[i] = seen.Messages[at].Seq, int16(a.Number),
			a.Channel, string(a.Reason)
		segments[i], price[i], currency[i] = int16(a.Segments), a.PriceMicros, a.Currency
		if len(a.Ranking) > 0 {
			ranking = room(ranking, n)
			ranking[i] = string(a.Ranking)
		}
		if a.Ticket != nil {
			tickets = room(tickets, n)
			tickets[i] = instant(a.Ticket.AcceptedAt)
		}
		if !a.LeavesAt.IsZero() {
			leaves = room(leaves, n)
			leaves[i] = instant(a.LeavesAt)
		}
	}
	return []any{
		seq, brief(number), brief(channel), brief(reason), brief(segments), brief(price),
		brief(currency), ranking, now, instance, tickets, leaves,
	}
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
		case Waiting:
			next[i] = instant(d.NextAt)
			if d.WaitsFor != "" {
				waitsFor = room(waitsFor, n)
				waitsFor[i] = d.WaitsFor
			}
		}
		if d.Waits != nil {
			waits = room(waits, n)
			waits[i] = encodeWaits(d.Waits)
		}
		plans.set(i, &d.Plan)
	}
	return append(append([]any{seq, state, reason, next, attempts, newRound, state2},
		plans.arguments()...), seen.Now, waitsFor, waits)
}

// box is one row of the outbox: the notices of one kind of one transaction.
type box struct {
	kind    string
	keys    []string
	values  [][]byte
	headers *string // JSON, one list for each notice; nil when none has any
}

// pack sorts notices by kind and keeps their order.
func pack(notices []Notice) []box {
	var boxes []box
	for _, kind := range []NoticeKind{Status, Letter} {
		b := box{kind: string(kind)}
		var headers [][]Header
		for i := range notices {
			if n := &notices[i]; n.Kind == kind {
				b.keys, b.values = append(b.keys, n.Key), append(b.values, present(n.Value))
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

// encodeHeaders is nil when no list has an entry.
func encodeHeaders(lists [][]Header) *string {
	if !slices.ContainsFunc(lists, func(h []Header) bool { return len(h) > 0 }) {
		return nil
	}
	text := encodeList(lists)
	return &text
}

// encodeList is JSON.
func encodeList[T [][]Header | []Header](list T) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic("ledger: " + err.Error()) // strings always encode
	}
	return string(text)
}
