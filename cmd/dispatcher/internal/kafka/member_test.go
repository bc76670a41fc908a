package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config/tier"
)

// cable is the network of one process. Cut, it looks to the brokers like a killed process: every
// connection ends at once, and no further request is sent.
type cable struct {
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	isCut bool       // guarded by mu
}

func (c *cable) dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, host)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return nil, errors.Join(errors.New("this process was killed"), conn.Close())
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// foreverTimeout is a session timeout that is longer than any test.
const foreverTimeout = 5 * time.Minute

// member is the configuration of a process with this instance id, and its network.
func member(c *kfake.Cluster, s *store, instance string) (kafka.ConsumerConfig, *cable) {
	network := &cable{}
	s.gaps = true // another process may have handled and committed the records before
	cfg := config(c, s)
	cfg.Instance = instance
	cfg.Client = append(cfg.Client, kgo.SessionTimeout(foreverTimeout), kgo.Dialer(network.dial))
	return cfg, network
}

// assigned returns which partitions of a lane's group each instance has.
func assigned(t *testing.T, admin *kadm.Client, lane string) map[string][]int32 {
	t.Helper()
	name := kafka.Group(group, lane)
	groups, err := admin.DescribeGroups(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int32{}
	for _, m := range groups[name].Members {
		instance := m.MemberID
		if m.InstanceID != nil {
			instance = *m.InstanceID
		}
		out[instance] = nil
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, topic := range a.Topics {
				out[instance] = append(out[instance], topic.Partitions...)
			}
		}
		slices.Sort(out[instance])
	}
	return out
}

// awaitAssigned waits until this many members share a lane's only topic evenly.
func awaitAssigned(t *testing.T, admin *kadm.Client, lane string, members int) map[string][]int32 {
	t.Helper()
	var now map[string][]int32
	await(t, fmt.Sprintf("%d members share the topic", members), func() bool {
		now = assigned(t, admin, lane)
		even := len(now) == members
		for _, partitionsOf := range now {
			even = even && len(partitionsOf) == partitions/members
		}
		return even
	}, func() any { return now })
	return now
}

// TestAProcessThatIsKilledAgainAndAgainLeavesTheOthersAlone: one of three processes is killed and
// started five times. Each time it reads its partitions without waiting for the old session to end,
// and the other two keep theirs.
func TestAProcessThatIsKilledAgainAndAgainLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	admin := kadm.NewClient(client(t, c))
	for _, instance := range []string{"one", "two"} {
		cfg, _ := member(c, newStore(), instance)
		runConsumer(t, cfg)
	}
	cfg, network := member(c, newStore(), "three")
	p := runConsumer(t, cfg)
	before := awaitAssigned(t, admin, "otp", 3)
	if before["three"] == nil {
		t.Fatalf("the processes are not static members: %v", before)
	}
	publisher := client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range 5 {
		network.cut()
		p.cancel()
		s := newStore()
		cfg, network = member(c, s, "three")
		p = runConsumer(t, cfg)
		id := fmt.Sprintf("after-%d", i)
		record := &kgo.Record{
			Topic:     "sms.otp",
			Partition: before["three"][0],
			Value:     []byte(`{"id":"` + id + `","to":"+447700900123","text":"x"}`),
		}
		if err := publisher.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		s.await(t, "a record of its own partition", func(jobs []decide.Job) bool {
			return slices.ContainsFunc(jobs,
				func(j decide.Job) bool { return j.Message.ID == id })
		})
		if diff := cmp.Diff(before, assigned(t, admin, "otp")); diff != "" {
			t.Fatalf("after restart %d partitions have moved:\n%s", i+1, diff)
		}
	}
}

// TestAStopInOrderGivesThePartitionsToOthersAtOnce: a static member leaves the group explicitly.
func TestAStopInOrderGivesThePartitionsToOthersAtOnce(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	admin := kadm.NewClient(client(t, c))
	stays, _ := member(c, newStore(), "stays")
	runConsumer(t, stays)
	leaves, _ := member(c, newStore(), "leaves")
	p := runConsumer(t, leaves)
	awaitAssigned(t, admin, "otp", 2)
	p.stop(t)
	if now := awaitAssigned(t, admin, "otp", 1); now["stays"] == nil {
		t.Errorf("got %v", now)
	}
}

// TestAProcessThatStopsWhileItJoinsLeaves: it learns its member id only from the answer.
func TestAProcessThatStopsWhileItJoinsLeaves(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	joins, answer := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(joins)
		c.SleepControl(func() { <-answer })
		return nil, nil, false
	})
	cfg, _ := member(c, newStore(), "leaves")
	cfg.Lanes = lanes[:1]
	p := runConsumer(t, cfg)
	<-joins
	p.cancel()
	time.Sleep(100 * time.Millisecond) // meanwhile it begins to leave
	close(answer)
	p.stop(t)
	if now := assigned(t, kadm.NewClient(client(t, c)), "otp"); len(now) > 0 {
		t.Errorf("the group still has %v", now)
	}
}

// TestTwoProcessesUnderOneInstanceIDBothRead: the first one continues to read without the id.
func TestTwoProcessesUnderOneInstanceIDBothRead(t *testing.T) {
	t.Parallel()
	c, log := cluster(t), &journal{}
	admin := kadm.NewClient(client(t, c))
	first, _ := member(c, newStore(), "same")
	first.Log = zerolog.New(log)
	runConsumer(t, first)
	awaitAssigned(t, admin, "otp", 1)
	second, _ := member(c, newStore(), "same")
	second.Log = zerolog.New(log)
	runConsumer(t, second)
	log.await(t, "reading on without one")
	if now := awaitAssigned(t, admin, "otp", 2); now["same"] == nil {
		t.Errorf("got %v", now)
	}
}

// TestLanesHaveGroupsOfTheirOwn: a member of one lane that does not answer delays no other lane.
func TestLanesHaveGroupsOfTheirOwn(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	cfg, first := member(c, s, "")
	runConsumer(t, cfg)
	produce(t, c, "sms.bulk", 20)
	s.awaitDistinct(t, 20)
	// A rebalance of the bulk lane begins, and the member that caused it is gone.
	gone, network := member(c, newStore(), "")
	gone.Lanes = lanes[1:]
	p := runConsumer(t, gone)
	admin := kadm.NewClient(client(t, c))
	tier.Eventually(t, "a second member of bulk",
		func() bool { return len(assigned(t, admin, "bulk")) == 2 })
	network.cut()
	p.cancel()
	another, second := member(c, newStore(), "") // this one waits for the dead member
	another.Lanes = lanes[1:]
	runConsumer(t, another)
	// Meanwhile a process joins the other lane.
	codes := newStore()
	codes.gaps = true
	joins, _ := member(c, codes, "")
	joins.Lanes = lanes[:1]
	runConsumer(t, joins)
	awaitAssigned(t, admin, "otp", 2)
	produce(t, c, "sms.otp", 200)
	codes.await(t, "codes at the second process",
		func(jobs []decide.Job) bool { return len(jobs) > 0 })
	// Otherwise both wait for the dead member when they stop.
	first.cut()
	second.cut()
}
