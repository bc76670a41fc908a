package ledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

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
	m := marks{each: make([]marked, len(in)), first: make(map[marked]int, len(in)), keep: make(map[marked]time.Duration, len(in))}
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
	channels, hashes, keep := make([]string, len(m.list)), make([][]byte, len(m.list)), make([]int64, len(m.list))
	for i, at := range m.list {
		channels[i], hashes[i], keep[i] = at.channel, at.mark[:], int64(m.keep[at].Seconds())
	}
	return []any{channels, hashes, keep}
}
