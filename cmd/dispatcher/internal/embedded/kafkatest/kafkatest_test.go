package kafkatest

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cluster(t *testing.T) (*kfake.Cluster, *kgo.Client) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"),
		kgo.RecordRetries(0), kgo.DisableIdempotentWrite())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return c, client
}

func written(c *kfake.Cluster) int64 { return c.PartitionInfo("t", 0).HighWatermark }

func produce(t *testing.T, client *kgo.Client) error {
	t.Helper()
	return client.ProduceSync(t.Context(), kgo.StringRecord("x")).FirstErr()
}

func TestWhatEachFaultDoesToAProduce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   func(*testing.T, *kfake.Cluster) *Fault
		err     error
		written int64
	}{
		"refused": {func(_ *testing.T, c *kfake.Cluster) *Fault {
			return Refuse(c, kmsg.Produce, 1, kerr.UnknownServerError)
		}, kerr.UnknownServerError, 0},
		"applied, answered with an error": {func(t *testing.T, c *kfake.Cluster) *Fault {
			return FailApplied(t, c, kmsg.Produce, 1, kerr.RequestTimedOut)
		}, kgo.ErrRecordRetries, 1},
		"cut": {
			func(_ *testing.T, c *kfake.Cluster) *Fault {
				return Cut(c, kmsg.Produce, 1)
			}, kgo.ErrRecordRetries, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, client := cluster(t)
			fault := test.fault(t, c)
			if err := produce(t, client); err == nil || !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if n := written(c); n != test.written || fault.Hits() != 1 {
				t.Errorf("%d records, want %d; %d hits", n, test.written, fault.Hits())
			}
			if err := produce(t, client); err != nil {
				t.Errorf("after the only fault: %v", err)
			}
			if n := written(c); n != test.written+1 {
				t.Errorf("%d records after the fault", n)
			}
		})
	}
}

func TestACommitAppliedDespiteItsErrorIsThere(t *testing.T) {
	t.Parallel()
	c, client := cluster(t)
	admin := kadm.NewClient(client)
	fault := FailApplied(t, c, kmsg.OffsetCommit, Always, kerr.RequestTimedOut)
	var offsets kadm.Offsets
	offsets.AddOffset("t", 0, 7, -1)
	answer, err := admin.CommitOffsets(t.Context(), "g", offsets)
	if err != nil || !errors.Is(answer.Error(), kerr.RequestTimedOut) {
		t.Errorf("got %v, %v", answer.Error(), err)
	}
	if err := fault.Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	stored, err := admin.FetchOffsets(t.Context(), "g")
	if at, ok := stored.Lookup("t", 0); err != nil || !ok || at.At != 7 {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

func TestARemovedFaultIsGoneAndObserversSeeEveryRequest(t *testing.T) {
	t.Parallel()
	c, client := cluster(t)
	var seen atomic.Int64
	Observe(c, kmsg.Produce, func(kmsg.Request) { seen.Add(1) })
	fault := Refuse(c, kmsg.Produce, Always, kerr.UnknownServerError)
	for range 2 {
		if err := produce(t, client); !errors.Is(err, kerr.UnknownServerError) {
			t.Errorf("got %v", err)
		}
	}
	fault.Remove()
	if err := produce(t, client); err != nil || fault.Hits() != 2 || seen.Load() != 3 {
		t.Errorf("%v, %d hits, %d seen", err, fault.Hits(), seen.Load())
	}
}
