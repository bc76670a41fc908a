package kafka

import (
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

// record turns a notice into a record of its topic; a status event gets its number and its time. A
// value over maxValue is cut, and the header original_bytes has its original length.
func (p *Publisher) record(n *ledger.Notice) *kgo.Record {
	r := &kgo.Record{Topic: p.cfg.StatusTopic, Value: n.Value}
	switch n.Kind {
	case ledger.Status:
		event := make([]byte, 0, len(n.Value)+stamped)
		r.Value = envelope.Stamp(event, n.Value, n.Seq, n.At)
	case ledger.Letter:
		r.Topic = p.cfg.DeadTopic
	case ledger.Heard:
		r.Topic = p.cfg.InboundTopic
	}
	if n.Key != "" {
		r.Key = []byte(n.Key)
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
	return r
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

// waves splits a round such that no wave contains two notices of one key whose order matters. The
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
