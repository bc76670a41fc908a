package kafka

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/ledger"
)

// maxValue is the longest value that is published. Brokers refuse records over 1 MB by default,
// headers included, and a dead letter has more headers than its record. A record that can never be
// published would block all that follow.
const maxValue = 900 << 10

// maxBatch is how many bytes of records fit one batch of a producer (1 000 012 bytes by default) in
// any partition. overhead is what the format adds to each record.
const (
	maxBatch = 980_000
	overhead = 40
)

// stamped is the most bytes that Stamp adds to an event.
const stamped = len(`,"seq":`) + 20

// records turns notices into records of their topics; a status event gets its number and its time.
// A value over maxValue is cut, and the header original_bytes has its original length. All records,
// and all bytes that they need, are allocated together: there are three or four events per message.
func (p *Publisher) records(notices []*ledger.Notice) []*kgo.Record {
	size := 0
	for _, n := range notices {
		size += len(n.Key)
		if n.Kind == ledger.Status { // others are published as they are
			size += len(n.Value) + stamped
		}
	}
	room, all := make([]byte, 0, size), make([]kgo.Record, len(notices))
	records := make([]*kgo.Record, len(notices))
	for i, n := range notices {
		records[i] = &all[i]
		room = p.fill(records[i], n, room)
	}
	return records
}

// fill makes r the record of a notice. It appends the key and the stamped event to room and returns
// room.
func (p *Publisher) fill(r *kgo.Record, n *ledger.Notice, room []byte) []byte {
	r.Topic, r.Value = p.cfg.StatusTopic, n.Value
	switch n.Kind {
	case ledger.Status:
		begin := len(room)
		room = envelope.Stamp(room, n.Value, n.Seq, n.At)
		r.Value = slices.Clip(room[begin:])
	case ledger.Letter:
		r.Topic = p.cfg.DeadTopic
	case ledger.InboundNotice:
		r.Topic = p.cfg.InboundTopic
	}
	if n.Key != "" {
		begin := len(room)
		room = append(room, n.Key...)
		r.Key = slices.Clip(room[begin:])
	}
	for _, h := range n.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: []byte(h.Value)})
	}
	if whole := len(r.Value); whole > maxValue {
		r.Value = r.Value[:maxValue]
		r.Headers = append(r.Headers, kgo.RecordHeader{
			Key: "original_bytes", Value: strconv.AppendInt(nil, int64(whole), 10),
		})
	}
	return room
}

// fit is how many of the records, at least one, fit into one batch.
func fit(records []*kgo.Record) int {
	size := 0
	for n, r := range records {
		size += overhead + len(r.Key) + len(r.Value)
		for _, h := range r.Headers {
			size += overhead + len(h.Key) + len(h.Value)
		}
		if size > maxBatch && n > 0 {
			return n
		}
	}
	return len(records)
}

// waves splits a round so that no wave contains two notices of one key whose order matters. The
// records of one wave may then arrive in any order, however the client splits it and whichever of
// them the brokers refuse. There are as many waves as the most frequent key has such notices: two
// or three for a round of status events. Only the order among different keys changes.
func waves(notices []ledger.Notice) [][]*ledger.Notice {
	var parts [][]*ledger.Notice
	seen := make(map[string]int, len(notices)) // notices by key so far
	for i := range notices {
		n, wave := &notices[i], 0
		if ordered(n) {
			wave = seen[n.Key]
			seen[n.Key]++
		}
		if wave == len(parts) {
			parts = append(parts, nil)
		}
		parts[wave] = append(parts[wave], n)
	}
	return parts
}

// ordered reports whether a notice must not overtake those of its key. Dead letters may: otherwise
// a producer that gives thousands of records the same id would delay all other status events by a
// wave for each.
func ordered(n *ledger.Notice) bool { return n.Kind != ledger.Letter && n.Key != "" }
