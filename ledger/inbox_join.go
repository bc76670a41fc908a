package ledger

import (
	"hash/fnv"
	"slices"

	"dispatcher/provider/sms"
)

// piece is a part of a message of a subscriber.
type piece struct {
	Inbound
	seq     int64 // of its row; 0 for a part that has just arrived
	overdue bool  // it has waited too long for the others
}

// group is what the parts of a message have in common.
type group struct {
	channel, from, to string
	number            uint16
	parts             int
}

func (in *Inbound) group() group {
	return group{in.Channel, in.From, in.To, in.Group, in.Parts}
}

// groupLockCount bounds how many locks a write takes. The lock table of the server has room for a
// few thousand.
const groupLockCount = 64

// lock is the second key of the advisory lock of a group. Groups may share one.
func (g *group) lock() int32 {
	h := fnv.New32a()
	for _, field := range []string{g.channel, g.from, g.to} {
		_, _ = h.Write(append([]byte(field), 0)) // it never fails
	}
	return int32(h.Sum32() % groupLockCount) //nolint:gosec // Below 64.
}

// split reports whether this is a part of a message. A part whose number is too high, such as the
// fourth of three, is a message of its own: no other part would ever complete it.
func (in *Inbound) split() bool {
	return in.Parts > 1 && in.Parts <= maxParts && in.Part >= 0 && in.Part < in.Parts
}

// maxParts is the largest number in the one octet of a concatenation header (3GPP TS 23.040,
// 9.2.3.24.1).
const maxParts = 255

// reassembler joins parts to messages. It keeps a queue for each part number of a group; the first
// elements of all queues are one message.
type reassembler struct {
	waiting map[group][][]piece
	order   []group // in the order of their first parts
}

func newReassembler() *reassembler { return &reassembler{waiting: map[group][][]piece{}} }

// add takes a part, and returns the parts of the message if this completes one.
func (r *reassembler) add(p piece) (whole []piece) {
	g := p.group()
	queues := r.waiting[g]
	if queues == nil {
		queues = make([][]piece, g.parts)
		r.waiting[g], r.order = queues, append(r.order, g)
	}
	queues[p.Part] = append(queues[p.Part], p)
	if slices.ContainsFunc(queues, func(q []piece) bool { return len(q) == 0 }) {
		return nil
	}
	return r.heads(g)
}

// heads takes the first of each part number of a group, in order, and leaves out missing ones.
func (r *reassembler) heads(g group) (taken []piece) {
	queues := r.waiting[g]
	for i := range queues {
		if len(queues[i]) > 0 {
			taken, queues[i] = append(taken, queues[i][0]), queues[i][1:]
		}
	}
	return taken
}

// overdue takes the messages that have a part which has waited too long.
func (r *reassembler) overdue() (messages [][]piece) {
	for _, g := range r.order {
		for slices.ContainsFunc(r.waiting[g], func(q []piece) bool {
			return len(q) > 0 && q[0].overdue
		}) {
			messages = append(messages, r.heads(g))
		}
	}
	return messages
}

// rest lists the parts that still wait and have no row yet.
func (r *reassembler) rest() (parts []piece) {
	for _, g := range r.order {
		for _, queue := range r.waiting[g] {
			for _, p := range queue {
				if p.seq == 0 {
					parts = append(parts, p)
				}
			}
		}
	}
	return parts
}

// joined is the message of some or all of its parts, which ascend. It has the ID of the first of
// them.
func joined(parts []piece) *Subscribed {
	first := &parts[0]
	s := &Subscribed{
		ID: first.ID, Channel: first.Channel, From: first.From, To: first.To,
		Parts: max(first.Parts, 1), At: first.At,
	}
	next := 0
	for i := range parts {
		p := &parts[i]
		if next < p.Part {
			s.Text = sms.JoinParts(s.Text) // the next part is not adjacent
		}
		for ; next < p.Part; next++ {
			s.Missing = append(s.Missing, next)
		}
		next = p.Part + 1
		s.Text += p.Text
		if p.At.Before(s.At) {
			s.At = p.At
		}
	}
	for ; next < s.Parts; next++ {
		s.Missing = append(s.Missing, next)
	}
	s.Text = sms.JoinParts(s.Text)
	return s
}

// unsplit is a message that was not split.
func unsplit(in *Inbound) *Subscribed {
	return &Subscribed{
		ID: in.ID, Channel: in.Channel, From: in.From, To: in.To, Text: in.Text,
		Parts: 1, At: in.At, SentAt: in.SentAt,
	}
}
