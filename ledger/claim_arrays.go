package ledger

import (
	"cmp"
	"encoding/json"
	"slices"

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

// idArrays are the parameters of insertIDs.
func idArrays(messages []Message, order []int, day Day) []any {
	ids := make([]string, len(order))
	for i, at := range order {
		ids[i] = messages[at].ID
	}
	return []any{ids, day.first()}
}

// recipients are the parameter of selectOptedOut.
func recipients(messages []Message, order []int) []int64 {
	list := make([]int64, len(order))
	for i, at := range order {
		list[i] = messages[at].Recipient
	}
	return list
}

// messageArrays are the parameters of insertMessages, and payloadArrays those of insertPayloads,
// for new messages.
func messageArrays(seen *Seen, each []Decision, which []int) []any {
	n := len(which)
	seq, partition, offset, numbers, envelopes := make([]int64, n), make([]int32, n),
		make([]int64, n), make([]int64, n), make([]int64, n)
	id, lane, tenant, topic, sender, state := make([]string, n), make([]string, n),
		make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	country, attempts, expires := make([]int16, n), make([]int16, n),
		make([]pgtype.Timestamptz, n)
	// null unless a row has one
	var reason, detail, state2, waitsFor, waits []string
	var next []pgtype.Timestamptz
	var newRound []bool
	plans := newPlanArrays(n)
	for i, at := range which {
		m, d := &seen.Messages[at], &each[at]
		seq[i], id[i], lane[i], tenant[i], topic[i] = m.Seq, m.ID, m.Lane, m.Tenant, m.Origin.Topic
		partition[i], offset[i], expires[i] = m.Origin.Partition, m.Origin.Offset,
			instant(m.ExpiresAt)
		numbers[i], envelopes[i], country[i] = m.NumberHMAC, m.EnvelopeHMAC, m.CallingCode
		sender[i] = m.Sender
		becomes, why, when, plan := m.State, m.Reason, m.NextAt, &m.Plan
		if d.State != "" {
			becomes, why, when = d.State, d.Reason, d.NextAt
			if d.Plan.Version > 0 {
				plan = &d.Plan
			}
		}
		state[i] = string(becomes)
		if becomes == Sending {
			attempts[i] = int16(d.Attempt.Number) //nolint:gosec // The column is a smallint.
		}
		if !when.IsZero() {
			next = room(next, n)
			next[i] = instant(when)
		}
		if d.NewRound {
			newRound = room(newRound, n)
			newRound[i] = true
		}
		put(&reason, i, n, why)
		put(&detail, i, n, storable(m.Detail))
		put(&state2, i, n, string(d.Seen))
		put(&waitsFor, i, n, d.WaitsFor)
		put(&waits, i, n, encodeWaits(d.Waits))
		plans.set(i, plan)
	}
	return append(append([]any{
		seq, id, brief(lane), brief(tenant), brief(topic), partition, offset, numbers,
		envelopes, brief(country), brief(sender), brief(state), reason, detail, next, expires,
		brief(attempts), newRound, state2, waitsFor,
		waits,
	}, plans.brief()...), seen.Now)
}

func payloadArrays(seen *Seen, which []int) []any {
	n := len(which)
	numbers, envelope := make([]int64, 3*n), make([][]byte, n)
	seq, digest, recipient := numbers[:n:n], numbers[n:2*n:2*n], numbers[2*n:]
	for i, at := range which {
		m := &seen.Messages[at]
		seq[i], digest[i], recipient[i], envelope[i] = m.Seq, m.Digest, m.Recipient,
			present(m.Envelope)
	}
	return []any{seq, digest, recipient, envelope}
}

// put sets an element of a column that is null unless a row has one.
func put(column *[]string, i, n int, text string) {
	if text != "" {
		*column = room(*column, n)
		(*column)[i] = text
	}
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

// split lists the new messages, those that get an attempt, and those that came due and are not left
// as they are; all ascending by seq.
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

// attemptArrays are the parameters of insertAttempts.
func attemptArrays(seen *Seen, each []Decision, which []int, instance int64) []any {
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
		brief(currency), ranking, seen.Now, instance, tickets, leaves,
	}
}

// ticketArrays are the parameters of freeAttempts.
func ticketArrays(seen *Seen, which []int) []any {
	seq, number := make([]int64, len(which)), make([]int16, len(which))
	for i, at := range which {
		seq[i] = seen.Messages[at].Seq
		number[i] = int16(seen.Messages[at].Attempts) //nolint:gosec // The column is a smallint.
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
		case Accepted:
			next[i] = instant(d.NextAt)
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
