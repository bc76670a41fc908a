package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// poison is an unusable record and its expected dead letter.
type poison struct {
	reason string // of the dead letter
	id     string // in the key of the dead letter; empty if the record has no usable one
	value  []byte
}

func poisons() []poison {
	envelope := func(id, rest string) []byte { return []byte(`{"id":"` + id + `",` + rest + `}`) }
	const to, text = `"to":"+99971234567"`, `"text":"Hello"`
	return []poison{
		{"too_large", "large", envelope("large", to+`,"text":"`+strings.Repeat("x", 65<<10)+`"`)},
		{"bad_json", "", []byte(`{"id":"half`)},
		{"bad_json", "", nil},
		{"bad_json", "", []byte{0xff, 0x00, 0xfe, '{'}},
		{"unknown_field", "unknown", envelope("unknown", to+`,`+text+`,"colour":"blue"`)},
		{"duplicate_field", "twice", envelope("twice", to+`,`+to+`,`+text)},
		{"bad_id", "", []byte(`{` + to + `,` + text + `}`)},
		{"bad_number", "number", envelope("number", `"to":"07700 900123",`+text)},
		{"no_text", "text", envelope("text", to+`,"text":""`)},
		{"bad_field", "field", envelope("field", to+`,`+text+`,"send_at":"tomorrow"`)},
		{
			"expired", "expired",
			envelope("expired", to+`,`+text+`,"expires_at":"2020-01-01T00:00:00Z"`),
		},
		{
			"too_many_segments", "long",
			envelope("long", to+`,"text":"`+strings.Repeat("x", 153*10+1)+`"`),
		},
		{"no_route", "nowhere", envelope("nowhere", `"to":"+447700900123",`+text)},
	}
}

// TestPoisonRecordsBecomeDeadLetters: whatever is published, later records of the partition are
// sent, and the record is published byte for byte as a dead letter with its reason and position.
func TestPoisonRecordsBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	s := newStage(t, stageConfig{match: `prefixes: ["+999"]`})
	good, bad := messages("poison", 20), poisons()
	records := []*kgo.Record{}
	add := func(value []byte) *kgo.Record {
		r := &kgo.Record{Topic: s.topic("bulk"), Key: []byte("all on one partition"), Value: value}
		records = append(records, r)
		return r
	}
	letters := map[string]poison{} // by position
	placed := map[*kgo.Record]poison{}
	for i := range good {
		if i < len(bad) {
			placed[add(bad[i].value)] = bad[i]
		}
		add(good[i].Append(nil))
	}
	again := good[0]
	add(again.Append(nil)) // the same bytes: a duplicate, dropped
	again.Text += " Or the day after."
	placed[add(again.Append(nil))] = poison{"conflict", again.ID, again.Append(nil)}
	if err := s.client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for r, p := range placed {
		letters[fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)] = p
	}
	p := s.run("dispatcher")
	s.settled(len(good) + len(bad))
	s.committed("bulk")

	s.checkLetters(letters)
	s.checkNoneTwice()
	if arrived := s.arrivals(); len(arrived) != len(good) {
		t.Errorf("%d of %d good messages arrived", len(arrived), len(good))
	}
	s.checkCounts(p, len(good), len(bad))
}

// checkLetters reads the topic of dead letters until it has one for each position.
func (s *stage) checkLetters(want map[string]poison) {
	s.t.Helper()
	schema := compiledSchema(s.t, "schema/dead.schema.json")
	readTopic(s.t, s.kafka, s.topic("dead"), func(r *kgo.Record) bool {
		h := map[string]string{}
		for _, header := range r.Headers {
			h[header.Key] = string(header.Value)
		}
		position := h["topic"] + "/" + h["partition"] + "/" + h["offset"]
		p, ok := want[position]
		if !ok {
			s.t.Errorf("unexpected dead letter of %s with reason %q", position, h["reason"])
			return false
		}
		delete(want, position)
		if err := schema.Validate(asJSON(h)); err != nil {
			s.t.Errorf("headers of the record with reason %s: %v", p.reason, err)
		}
		if h["reason"] != p.reason || h["lane"] != "bulk" || h["detail"] == "" ||
			string(r.Key) != p.id {
			s.t.Errorf("the dead letter of a record that is %s with id %q has key %q and "+
				"headers %v",
				p.reason, p.id, r.Key, h)
		}
		if !bytes.Equal(r.Value, p.value) {
			s.t.Errorf("dead letter with reason %s: want the record's %d bytes, got %d",
				p.reason, len(p.value), len(r.Value))
		}
		return len(want) == 0
	})
}

// checkCounts compares the metrics and the ledger with what was published.
func (s *stage) checkCounts(p *process, fresh, dead int) {
	s.t.Helper()
	_, metrics := p.get(s.t, "/metrics")
	for result, n := range map[string]int{
		"fresh": fresh, "dead": dead, "duplicate": 1, "conflict": 1,
	} {
		line := `dispatcher_dispatch_records_total{lane="bulk",result="` + result + `"} ` +
			strconv.Itoa(n)
		if !strings.Contains(metrics, line+"\n") {
			s.t.Errorf("the metrics have no line %s", line)
		}
	}
	if n := s.count(`select count(*) from audit.messages where state = 'dead'`); n != int64(dead) {
		s.t.Errorf("got %d dead rows, want %d", n, dead)
	}
}
