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

// Inbox books messages of subscribers.
type Inbox struct{ *db }

// Inbound is a message that a subscriber sent, or a part of one, as a channel got it. Its texts are
// UTF-8 without zero bytes.
type Inbound struct {
	// ID names it for ever, and the message that it begins. Whoever books it again after an error
	// gives it the same.
	ID      string
	Channel string
	// Reference is the provider's id; empty when it has none.
	Reference string
	// From is the subscriber and To our number.
	From, To string
	Text     string
	// Part, from zero, and Parts say which of how many this is; Parts below 2 is a message that is
	// whole. Group ties the parts of one message together.
	Group       uint16
	Part, Parts int
	At          time.Time // when it first arrived, on this machine's clock
	// SentAt is when it was sent by the clock of the channel's provider; zero when that is not
	// known.
	SentAt time.Time
}

// Subscribed is a message of a subscriber that is put together.
type Subscribed struct {
	ID, Channel, From, To, Text string
	// Parts is how many it was sent in, from 1, and Missing which of them, from 0, have not come.
	Parts   int
	Missing []int
	At      time.Time // when its first part arrived
	// SentAt is that of a message that was not split.
	SentAt time.Time
}

// Reaction is what follows from a message of a subscriber.
type Reaction struct {
	// Key and Value are those of the record that is published, in the order of the messages.
	Key   string
	Value []byte
	// Change says what becomes of the sender on the opt-out list of Tenant.
	Change Change
	Tenant string
}

// Change is what a message changes about an opt-out list.
type Change uint8

// Changes of an opt-out list.
const (
	NoChange Change = iota
	OptOut          // the sender is put on it
	OptIn           // the sender is taken off it, unless his latest OptOut is newer
)

// Booked counts what a booking did.
type Booked struct {
	Whole     int // messages that were complete, and were published
	Waiting   int // parts that wait for others
	Repeated  int // what had been booked before
	OptedOut  int // put on an opt-out list; who was on it is not counted
	OptedIn   int // taken off one
	Abandoned int // messages that were published without some of their parts
}

// How long what was booked is remembered, so that it is not booked again: by its reference, or by
// its content when a part has none.
const (
	rememberReference = 7 * 24 * time.Hour
	rememberContent   = 10 * time.Minute
)

// maxBooking bounds what one transaction books.
const maxBooking = 500

// errBooking is a bug of the caller.
var errBooking = errors.New("a booking has more than 500 messages")

// Book writes down what subscribers sent, up to 500 at once, in one transaction of two round
// trips: whole messages, and those that a part completes, go to the outbox; other parts wait. When
// it returns nil, all of it is durable; after an error it may be, and the same call can be made
// again: nothing is booked twice.
//
// A message of several parts is put together whichever process gets which part. Parts of it come in
// any order, and more than once. When a sender uses the same group for two messages at a time, the
// first of each part belong together, then the second.
//
// react is called for each message in order, inside the transaction, and must be pure.
func (s *Inbox) Book(
	ctx context.Context, in []Inbound, react func(*Subscribed) Reaction,
) (Booked, error) {
	if len(in) == 0 {
		return Booked{}, nil
	}
	if len(in) > maxBooking {
		return Booked{}, wrap("book inbound messages", errBooking)
	}
	t := &inboundTx{request: in, react: react}
	err := s.book(ctx, t.open, t)
	return t.booked, wrap("book inbound messages", err)
}

// BookIncomplete publishes messages whose oldest part has waited longer than after for the others,
// without them, up to about limit parts. Any process may call it at any time.
func (s *Inbox) BookIncomplete(
	ctx context.Context, after time.Duration, limit int, react func(*Subscribed) Reaction,
) (Booked, error) {
	t := &inboundTx{after: after, limit: limit, react: react}
	err := s.book(ctx, t.openOverdue, t)
	return t.booked, wrap("book incomplete inbound messages", err)
}

// Forget drops what no longer has to be remembered about messages that were booked. It
// returns how many entries went, also with an error.
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

// mark is by what a message or part is known again.
type mark [16]byte

// mark is a hash of the provider's reference, which is the same when he sends it again. Without one
// a part is known by its content, as its group is that of the message. A message without reference
// cannot be told from another one of the same text: it is known only to whoever books it again
// after an error.
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
		text = binary.BigEndian.AppendUint16(text, in.Group)
		text = append(text, byte(in.Part), byte(in.Parts))
	default:
		add("id", in.ID)
	}
	sum := sha256.Sum256(text)
	copy(m[:], sum[:])
	return m, keep
}

// marked is a mark on its channel.
type marked struct {
	channel string
	mark    mark
}

// marks are those of what is to be booked, each once and ascending, and how long to remember each.
type marks struct {
	each  []marked // of the request, in its order
	first map[marked]int
	list  []marked
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
