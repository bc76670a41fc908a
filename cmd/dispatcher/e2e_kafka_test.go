package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config/tier"
)

// partitions is the number of partitions of each topic.
const partitions = 12

// realKafka is the variable with the host:port of the broker that all stories use. If it is not
// set, each story has a broker in the test process.
const realKafka = "E2E_KAFKA"

// kafkaAddress returns a broker for this test.
func kafkaAddress(t testing.TB) string {
	t.Helper()
	if address := os.Getenv(realKafka); address != "" {
		return address
	}
	kafka, err := embedded.StartKafka(t.Context(), embedded.KafkaConfig{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kafka.Close(); err != nil {
			t.Error(err)
		}
	})
	return kafka.Address()
}

// kafkaClient returns a client that is closed at the end of the test.
func kafkaClient(t testing.TB, address string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(address),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.UnknownTopicRetries(-1))...) // the topic may have been created just now
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// createTopics creates topics with unique names. It tries again while the controller has no live
// broker, which happens on a machine that stalls.
func createTopics(t testing.TB, client *kgo.Client, topics ...string) {
	t.Helper()
	tier.Within(t, stepTimeout, "the topics are created", func() bool {
		answers, err := kadm.NewClient(client).CreateTopics(t.Context(), partitions, 1, nil,
			topics...)
		if err != nil {
			t.Fatalf("create topics: %v", err)
		}
		for _, answer := range answers {
			switch {
			case errors.Is(answer.Err, kerr.InvalidReplicationFactor):
				return false
			case answer.Err != nil && !errors.Is(answer.Err, kerr.TopicAlreadyExists):
				t.Fatalf("create topic %s: %v", answer.Topic, answer.Err)
			}
		}
		return true
	})
}

// readTopic reads a topic from its start until enough returns true.
func readTopic(t testing.TB, address, topic string, enough func(*kgo.Record) bool) {
	t.Helper()
	client := kafkaClient(t, address, kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	for done := false; !done; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("topic %s lacks expected records after %s", topic, stepTimeout)
		}
		fetches.EachRecord(func(r *kgo.Record) { done = enough(r) || done })
	}
}

// readAll reads all records that the topic has now.
func (s *stage) readAll(topic string, use func(*kgo.Record)) {
	s.t.Helper()
	left := int64(0)
	s.ends(topic).Each(func(end kadm.ListedOffset) { left += end.Offset })
	if left == 0 {
		return
	}
	readTopic(s.t, s.kafka, topic, func(r *kgo.Record) bool {
		use(r)
		left--
		return left == 0
	})
}

// ends are the ends of a topic's partitions. A broker that is short of CPU time elects leaders
// anew, and for that moment it knows none.
func (s *stage) ends(topic string) (ends kadm.ListedOffsets) {
	s.t.Helper()
	tier.Within(s.t, stepTimeout, "every partition has a leader", func() (ok bool) {
		var err error
		ends, err = kadm.NewClient(s.client).ListEndOffsets(s.t.Context(), topic)
		return err == nil && ends.Error() == nil
	})
	return ends
}

// committed waits until the group has committed all records of a lane's topic.
func (s *stage) committed(lane string) {
	s.t.Helper()
	tier.Within(s.t, stepTimeout, "all offsets are committed", func() bool {
		return s.lag(lane) == 0
	})
}

// lag returns how many records of a lane's topic the group has not committed.
func (s *stage) lag(lane string) (lag int64) {
	s.t.Helper()
	ends := s.ends(s.topic(lane))
	committed, err := kadm.NewClient(s.client).FetchOffsets(s.t.Context(), s.group(lane))
	if err != nil {
		s.t.Fatal(err)
	}
	ends.Each(func(end kadm.ListedOffset) {
		at := int64(0)
		if c, ok := committed.Lookup(s.topic(lane), end.Partition); ok {
			at = c.At
		}
		lag += end.Offset - at
	})
	return lag
}

// group is the consumer group of a lane.
func (s *stage) group(lane string) string { return kafka.Group(s.prefix, lane) }

// joined waits until the group of the bulk lane has this many members, all with partitions.
func (s *stage) joined(members int) {
	s.t.Helper()
	group := s.group("bulk")
	admin := kadm.NewClient(s.client)
	tier.Within(s.t, stepTimeout, "every process has partitions", func() bool {
		groups, err := admin.DescribeGroups(s.t.Context(), group)
		if err != nil {
			return false
		}
		busy := 0
		for _, member := range groups[group].Members {
			if assigned, ok := member.Assigned.AsConsumer(); ok && len(assigned.Topics) > 0 {
				busy++
			}
		}
		return busy == members
	})
}

// event is a status record.
type event struct {
	ID       string            `json:"id"`
	State    string            `json:"state"`
	Seq      int64             `json:"seq"`
	At       time.Time         `json:"at"`
	Channel  string            `json:"channel"`
	Attempt  int               `json:"attempt"`
	Reason   string            `json:"reason"`
	Cause    string            `json:"cause"`
	Metadata map[string]string `json:"metadata"`

	// Of a dead record.
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// statuses reads the status topic until the last event of each message has the state that the
// ledger has. It returns all events by message, in order. Delivery is at least once, so it drops
// repeated events, which have the same seq. Within one message, seq must rise and at must not
// decrease.
func (s *stage) statuses(want map[string]string) map[string][]event {
	s.t.Helper()
	events, seen := map[string][]event{}, map[string]map[int64]bool{}
	open := maps.Clone(want)
	readTopic(s.t, s.kafka, s.topic("status"), func(r *kgo.Record) bool {
		var e event
		if err := json.Unmarshal(r.Value, &e); err != nil {
			s.t.Fatalf("status event is not JSON: %v", err)
		}
		if e.ID == "" && e.State == "dead" { // the record had no id
			position := fmt.Sprintf("%s/%d/%d", e.Topic, e.Partition, e.Offset)
			if string(r.Key) != position {
				s.t.Errorf("event of the record at %s: got key %q", position, r.Key)
			}
			return len(open) == 0
		}
		if seen[e.ID][e.Seq] {
			return false
		}
		if seen[e.ID] == nil {
			seen[e.ID] = map[int64]bool{}
		}
		seen[e.ID][e.Seq] = true
		if n := len(events[e.ID]); n > 0 {
			if last := events[e.ID][n-1]; e.Seq <= last.Seq || e.At.Before(last.At) {
				s.t.Errorf("%s: event %s (seq %d, %s) came after %s (seq %d, %s)", e.ID, e.State,
					e.Seq, e.At, last.State, last.Seq, last.At)
			}
		}
		if string(r.Key) != e.ID {
			s.t.Errorf("event of %s: got key %q", e.ID, r.Key)
		}
		events[e.ID] = append(events[e.ID], e)
		if want[e.ID] == e.State {
			delete(open, e.ID)
		}
		return len(open) == 0
	})
	return events
}

// checkStatuses compares the status topic with the ledger: every message has events, each state may
// follow the one before, and the last is the state in the ledger.
func (s *stage) checkStatuses() {
	s.t.Helper()
	want := s.states()
	events := s.statuses(want)
	legal := map[[2]string]bool{}
	for id, list := range events {
		states := make([]string, len(list))
		for i, e := range list {
			states[i] = e.State
			if i > 0 {
				legal[[2]string{states[i-1], states[i]}] = true
			}
		}
		if last := states[len(states)-1]; last != want[id] {
			s.t.Errorf("%s: the last event of %v is not the ledger's state %s", id, states,
				want[id])
		}
	}
	for pair := range legal {
		if !queryOne[bool](s.t, s.postgres, `select dispatcher.legal($1, $2)`, pair[0], pair[1]) {
			s.t.Errorf("got an event %s after %s", pair[1], pair[0])
		}
	}
	if len(events) != len(want) {
		s.t.Errorf("got events of %d messages, want those of %d", len(events), len(want))
	}
}

// record returns a Kafka record that asks for a message.
func record(topic, id string, value []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: []byte(id), Value: value}
}
