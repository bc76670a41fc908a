package ledger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// Inbox records messages of subscribers.
type Inbox struct{ *db }

// Inbound is a message that a subscriber sent, or a part of one, as a channel received it. Its
// texts are UTF-8 without zero bytes.
type Inbound struct {
	// ID is unique. A message takes the ID of its first part. A caller that records the same part
	// again after an error uses the same ID.
	ID      string
	Channel string
	// Reference is the provider's id; empty when it has none.
	Reference string
	// From is the subscriber and To our number.
	From, To string
	Text     string
	// Part is the number of this part, from 0, and Parts how many there are; Parts below 2 means a
	// message that was not split. Group is the same for all parts of one message. Their texts are
	// joined by sms.JoinParts.
	Group       uint16
	Part, Parts int
	At          time.Time // when it first arrived, by this machine's clock
	// SentAt is when it was sent, by the clock of the channel's provider; zero when not known.
	SentAt time.Time
}

// Subscribed is a message of a subscriber after its parts were joined.
type Subscribed struct {
	ID, Channel, From, To, Text string
	// Parts is how many parts it was sent in, at least 1. Missing are the numbers, from 0, of parts
	// that have not come.
	Parts   int
	Missing []int
	At      time.Time // when its first part arrived
	// SentAt is Inbound.SentAt of a message that was not split; zero otherwise.
	SentAt time.Time
}

// Reaction is what to do with a message of a subscriber.
type Reaction struct {
	// Key and Value make the record that is published. Records keep the order of the messages.
	Key   string
	Value []byte
	// Change is how the message changes the opt-out list of Tenant.
	Change Change
	Tenant string
}

// Change is how a message changes an opt-out list.
type Change uint8

// Changes of an opt-out list.
const (
	NoChange Change = iota
	OptOut          // puts the sender on the list
	OptIn           // takes the sender off the list, unless the sender's latest OptOut is newer
)

// InboxResult counts what a write did.
type InboxResult struct {
	Whole     int // messages that were complete, and were published
	Waiting   int // parts that wait for others
	Repeated  int // messages and parts that had been recorded before
	OptedOut  int // recipients that were put on an opt-out list and were not on it
	OptedIn   int // recipients that were taken off one
	Abandoned int // messages that were published without some of their parts
}

// How long a recorded message or part is remembered, so that it is not recorded again. It is
// recognised by its reference, or by its content when a part has no reference.
const (
	rememberReference = 7 * 24 * time.Hour
	rememberContent   = 10 * time.Minute
)

// maxInbound is how many messages and parts one transaction records at most.
const maxInbound = 500

// errTooMany is a bug of the caller.
var errTooMany = errors.New("a write has more than 500 messages")

// Record stores what subscribers sent, up to 500 messages and parts, in one transaction of two
// round trips. Messages that are complete go to the outbox; other parts wait. When it returns nil,
// everything is durable. After an error it may be, and the caller can repeat the call: nothing is
// recorded twice.
//
// The parts of a message are joined whichever processes receive them, in any order, and also when
// some come more than once. When a sender uses the same group for two messages at a time, the first
// copies of each part are one message and the second ones the other.
//
// react is called for each message in order, inside the transaction. It must have no side effects.
func (s *Inbox) Record(
	ctx context.Context, in []Inbound, react func(*Subscribed) Reaction,
) (InboxResult, error) {
	if len(in) == 0 {
		return InboxResult{}, nil
	}
	if len(in) > maxInbound {
		return InboxResult{}, wrap("record inbound messages", errTooMany)
	}
	t := &inboundTx{request: in, react: react}
	err := s.run(ctx, t.open, t)
	return t.result, wrap("record inbound messages", err)
}

// RecordIncomplete publishes messages whose oldest part has waited longer than after, without the
// missing parts, up to about limit parts. Any process may call it at any time.
func (s *Inbox) RecordIncomplete(
	ctx context.Context, after time.Duration, limit int, react func(*Subscribed) Reaction,
) (InboxResult, error) {
	t := &inboundTx{after: after, limit: limit, react: react}
	err := s.run(ctx, t.openOverdue, t)
	return t.result, wrap("record incomplete inbound messages", err)
}

// Forget deletes the marks of messages that no longer have to be remembered. It returns how many it
// deleted, also with an error.
func (s *Inbox) Forget(ctx context.Context) (dropped int64, err error) {
	for n := int64(dropBatch); n == dropBatch; dropped += n {
		tag, err := s.reports.Exec(ctx, dropMarks, dropBatch)
		if err != nil {
			return dropped, wrap("forget inbound messages", err)
		}
		n = tag.RowsAffected()
	}
	return dropped, nil
}

// mark identifies a message or part when it comes again.
type mark [16]byte

// mark is a hash of the provider's reference, which is the same when the provider sends the message
// again, and of the place of a part, because some providers give all parts one reference. A part
// without a reference is identified by its content and its place. A message without a reference
// cannot be told from another one with the same text, so it is identified by ID: it is recognised
// only when the same caller records it again after an error.
func (in *Inbound) mark() (m mark, keep time.Duration) {
	var text []byte
	add := func(fields ...string) {
		for _, f := range fields {
			text = append(binary.AppendUvarint(text, uint64(len(f))), f...)
		}
	}
	keep = rememberContent
	switch {
	case in.Reference != "":
		add("reference", in.Reference)
		keep = rememberReference
	case in.split():
		add("part", in.From, in.To, in.Text)
	default:
		add("id", in.ID)
	}
	if in.split() {
		text = binary.BigEndian.AppendUint16(text, in.Group)
		text = append(text, byte(in.Part), byte(in.Parts))
	}
	sum := sha256.Sum256(text)
	copy(m[:], sum[:])
	return m, keep
}

// marked is a mark with its channel.
type marked struct {
	channel string
	mark    mark
}

// marks are the marks of what is to be recorded, and how long to remember each.
type marks struct {
	each  []marked       // one for each element of the request, in its order
	first map[marked]int // the first element of the request with that mark
	list  []marked       // each mark once, ascending
	keep  map[marked]time.Duration
}

func newMarks(in []Inbound) marks {
	m := marks{
		each: make([]marked, len(in)), first: make(map[marked]int, len(in)),
		keep: make(map[marked]time.Duration, len(in)),
	}
	for i := range in {
		one, keep := in[i].mark()
		at := marked{in[i].Channel, one}
		m.each[i] = at
		if _, twice := m.first[at]; !twice {
			m.first[at], m.keep[at] = i, keep
			m.list = append(m.list, at)
		}
	}
	slices.SortFunc(m.list, func(a, b marked) int {
		return cmp.Or(cmp.Compare(a.channel, b.channel), bytes.Compare(a.mark[:], b.mark[:]))
	})
	return m
}

// arguments are the parameters of claimMarks.
func (m *marks) arguments() []any {
	channels, hashes, keep := make([]string, len(m.list)), make([][]byte, len(m.list)),
		make([]int64, len(m.list))
	for i, at := range m.list {
		channels[i], hashes[i], keep[i] = at.channel, at.mark[:], int64(m.keep[at].Seconds())
	}
	return []any{channels, hashes, keep}
}
