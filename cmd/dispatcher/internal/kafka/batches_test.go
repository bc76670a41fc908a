package kafka_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/embedded/kafkatest"
	"dispatcher/ledger"
)

// grouped returns n events for each of the keys, those of one key in a row, as with a fast carrier.
func grouped(keys, n int) []ledger.Notice {
	var notices []ledger.Notice
	for k := range keys {
		for i := range n {
			notices = append(
				notices,
				ledger.Notice{
					Kind:  ledger.Status,
					Key:   fmt.Sprintf("m%d", k),
					Value: fmt.Append(nil, i),
				},
			)
		}
	}
	return notices
}

// haltingHook lets the client send the first records of the status topic to one broker, and none to
// the others until a record has failed. This happens with a slow client: records that waited for
// the partitions of a topic are sent while others are still being partitioned.
type haltingHook struct {
	want    int           // records of the status topic
	taken   chan struct{} // closed when the client has accepted them all
	refused chan struct{} // closed when one has been refused

	mu     sync.Mutex
	leader int32 // guarded by mu: of the first record; -1 before
	have   int   // guarded by mu: records that the client has accepted
	shared int   // guarded by mu: records that have been handed to a broker
	late   int   // guarded by mu: records not handed over when the first was refused
}

func newHaltingHook(want int) *haltingHook {
	return &haltingHook{
		want:    want,
		leader:  -1,
		taken:   make(chan struct{}),
		refused: make(chan struct{}),
	}
}

func (h *haltingHook) OnProduceRecordBuffered(r *kgo.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Topic != "sms.status" {
		return
	}
	if h.have++; h.have == h.want {
		close(h.taken)
	}
}

// OnProduceRecordPartitioned delays the client, which partitions the records one after the other.
func (h *haltingHook) OnProduceRecordPartitioned(r *kgo.Record, leader int32) {
	if r.Topic != "sms.status" {
		return
	}
	h.mu.Lock()
	h.shared++
	if h.leader < 0 {
		h.leader = leader
	}
	first := h.leader
	h.mu.Unlock()
	if leader == first {
		return
	}
	select {
	case <-h.refused:
	case <-time.After(150 * time.Millisecond): // the flush has not begun: wait at a later record
	}
}

func (h *haltingHook) OnProduceRecordUnbuffered(_ *kgo.Record, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.refused:
	default:
		if err != nil {
			h.late = h.want - h.shared
			close(h.refused)
		}
	}
}

// TestARefusedBatchIsNotOvertaken: the first records of a round are refused for good before the
// others have been sent to the same partitions.
func TestARefusedBatchIsNotOvertaken(t *testing.T) {
	t.Parallel()
	const keys, events = 60, 5
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(12, "sms.dead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	hook := newHaltingHook(keys)
	o := newOutbox(ledger.Notice{Kind: ledger.Letter}) // lets the client become a producer
	runPublisher(t, o, nil, append(seeds(c), kgo.WithHooks(hook))...)
	o.awaitEmpty(t)
	fault := kafkatest.Refuse(c, kmsg.Produce, 1, kerr.UnknownServerError)
	o.add(history(keys, events)...)
	<-hook.taken
	create(t, c, "sms.status")
	o.awaitEmpty(t)
	if fault.Hits() != 1 || hook.late < keys/2 {
		t.Errorf("%d refusals, at the first of which %d records had not left", fault.Hits(),
			hook.late)
	}
	checkOrder(t, c, keys, events)
}

// TestARoundLeavesInFewBatches: the order of events costs one wave for each event of a message in
// the round, not one request for each event.
func TestARoundLeavesInFewBatches(t *testing.T) {
	t.Parallel()
	const keys, events = 1000, 3
	c := cluster(t, kfake.NumBrokers(3))
	var mu sync.Mutex
	batches := 0
	kafkatest.Observe(c, kmsg.Produce, func(req kmsg.Request) {
		mu.Lock()
		defer mu.Unlock()
		for _, topic := range req.(*kmsg.ProduceRequest).Topics {
			batches += len(topic.Partitions)
		}
	})
	o := newOutbox(grouped(keys, events)...)
	runPublisher(t, o, nil, seeds(c)...)
	o.awaitEmpty(t)
	mu.Lock()
	defer mu.Unlock()
	// A wave is 12 batches, one per partition, and some more when the client splits it.
	if most := 4 * 12 * events; batches > most {
		t.Errorf("%d events left in %d batches, want at most %d", keys*events, batches, most)
	}
	checkOrder(t, c, keys, events)
}

// buffered counts the bytes of the values that a client has accepted and not delivered.
type buffered struct {
	mu        sync.Mutex
	now, most int // guarded by mu
}

func (b *buffered) OnProduceRecordBuffered(r *kgo.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += len(r.Value)
	b.most = max(b.most, b.now)
}

func (b *buffered) OnProduceRecordUnbuffered(r *kgo.Record, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now -= len(r.Value)
}

// TestNoMoreThanABatchIsInFlight: the bytes in flight are bounded, however large the dead letters
// are.
func TestNoMoreThanABatchIsInFlight(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	o := newOutbox()
	for range 40 {
		o.add(ledger.Notice{Kind: ledger.Letter, Value: bytes.Repeat([]byte("x"), 64<<10)})
	}
	var b buffered
	runPublisher(t, o, nil, append(seeds(c), kgo.WithHooks(&b))...)
	o.awaitEmpty(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most > 1_000_000 || b.most < 500_000 {
		t.Errorf("got %d bytes in flight at once", b.most)
	}
}
