package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// TestLimitsAreExactAcrossProcesses: three processes share the limits of four channels, one for
// each policy. Some processes are killed, others are stopped for a while, and nine in ten messages
// arrive at one of them. At all times more messages wait than the limits allow. In the long tier
// there are eight processes, with clocks up to a minute apart.
//
// The check is SQL: no window of any channel holds more than its limit, neither by its counter nor
// by its attempts. In the long tier, no whole minute of the exact channel has an unused slot, and
// hardly any slot was taken by an attempt that then missed its release time.
func TestLimitsAreExactAcrossProcesses(t *testing.T) {
	t.Parallel()
	minutes, n := tier.Size(0, 1), tier.Size(700, 8_000)
	limits := tier.Size("limits: [{window: 1s, max: 10}]",
		"limits: [{window: 1s, max: 40}, {window: 1m, max: 400, unit: segments}]")
	s := newStage(t, stageConfig{
		channels: []channel{
			{name: "a", weight: "40", behaviour: quick(), document: limits},
			{
				name: "b", weight: "20", behaviour: quick(),
				document: limits + ", admission: counter",
			},
			{name: "c", weight: "20", behaviour: quick(), document: limits + ", admission: even"},
			{
				name: "d", weight: "20", behaviour: quick(),
				document: limits + ", admission: {policy: curve, curve_factor: 0.2}",
			},
		},
		lanes: "  bulk: {topics: [%s.bulk], ttl: 24h, max_waiting: 100000}\n",
		settings: map[string]string{
			"SEND_TIMEOUT": hasty, "DEAD_AFTER": "4s", "MAX_UNSETTLED": "60", "BATCH": "60",
		},
	})
	stalls := watchStalls(t)
	c := newChaos(s, tier.Size(3, 8))
	s.publishSkewed(messages("exact", n))
	begun := s.now()
	end := begun.Add(4 * time.Second)
	if minutes > 0 {
		end = begun.Truncate(time.Minute).Add(time.Duration(minutes+1) * time.Minute)
	}
	tier.Within(t, time.Until(end)+stepTimeout, "the chaos has lasted, killed and stopped",
		func() bool {
			return s.now().After(end.Add(time.Second)) && c.killed.Load() > 0 && c.stopped.Load() > 0
		})
	c.end()
	if s.count(`select count(*) from audit.messages where state in ('waiting', 'retry')`) == 0 {
		t.Error("nothing waited at the end: the test proves nothing")
	}

	s.checkNoneTwice()
	s.checkWindows()
	windows := query(t, s.postgres, pgx.RowToStructByPos[window], `
		select channel, window_start, max, granted from audit.limit_windows
		where channel = 'a' and scope = 'channel' and window_seconds = 60 and window_start >= $1
		and window_start < $2`,
		begun.Truncate(time.Minute).Add(time.Minute), end)
	if len(windows) != minutes {
		t.Errorf("got %d whole minutes, want %d", len(windows), minutes)
	}
	for _, w := range windows {
		t.Logf("minute of %s: %d of %d segments", w.Start.Format(time.TimeOnly), w.Granted, w.Max)
		if unused := w.Max - w.Granted; unused >= largest {
			t.Errorf("%d segments of the minute from %s were not used while messages waited",
				unused, w.Start)
		}
	}
	attempts, late := s.count(`select count(*) from audit.attempts`),
		s.count(`select count(*) from audit.attempts where provider_code = 'late'`)
	t.Logf("%d killed, %d stopped; of %d attempts %d late, %d unknown", c.killed.Load(),
		c.stopped.Load(), attempts, late,
		s.count(`select count(*) from audit.attempts where outcome = 'unknown'`))
	most := attempts / 10 // those of a stopped process
	if stalls() > 200*time.Millisecond {
		most = attempts / 3 // and of a busy machine
	}
	if minutes > 0 && late > most {
		t.Errorf("%d of %d attempts took a slot and were not sent", late, attempts)
	}
	for _, policy := range []string{"b", "c", "d"} {
		if s.count(`select count(*) from audit.attempts where channel = $1`, policy) == 0 {
			t.Errorf("nothing was sent over channel %s", policy)
		}
	}
}

// largest is the number of segments of the largest message: fewer slots than that may be unused.
const largest = 2

type window struct {
	Channel      string
	Start        time.Time
	Max, Granted int64
}

// checkWindows reports each window that holds more than its limit, by its counter and by the
// attempts that were claimed in it or have their release time in it.
func (s *stage) checkWindows() {
	s.t.Helper()
	if n := s.count(`select count(*) from audit.limit_windows where granted > max`); n > 0 {
		s.t.Errorf("%d windows granted more than their limit", n)
	}
	type excess struct {
		Channel string
		Seconds int
		Start   time.Time
		Unit    string
		Max     int64
		Claimed int64
		Granted int64
	}
	for _, e := range query(s.t, s.postgres, pgx.RowToStructByPos[excess], `
		with claimed as (
		  select w.channel, w.window_seconds, w.window_start, w.unit, w.max, w.granted,
		    coalesce(sum(case w.unit when 'segments' then m.segments else 1 end)
		      filter (where a.message_id is not null), 0)::bigint as units
		  from audit.limit_windows w
		  left join lateral (
		    select *, case w.window_seconds when 1 then counted_at else claimed_at end as at
		    from audit.attempts where channel = w.channel
		  ) a on a.at >= w.window_start
		    and a.at < w.window_start + w.window_seconds * interval '1 second'
		  left join audit.messages m on m.id = a.message_id
		  where w.scope = 'channel' and w.unit in ('messages', 'segments')
		  group by 1, 2, 3, 4, 5, 6
		)
		select channel, window_seconds, window_start, unit, max, units, granted from claimed
		where units > max or units <> granted`) {
		s.t.Errorf("channel %s, %d s from %s: %d %s claimed, %d granted, limit %d",
			e.Channel, e.Seconds, e.Start.Format(time.TimeOnly), e.Claimed, e.Unit, e.Granted,
			e.Max)
	}
}

// publishSkewed sends nine in ten messages to one partition, and so to one process.
func (s *stage) publishSkewed(all []envelope.Message) {
	s.t.Helper()
	client := kafkaClient(s.t, s.kafka, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	records := make([]*kgo.Record, len(all))
	for i := range all {
		records[i] = record(s.topic("bulk"), all[i].ID, all[i].Append(nil))
		if i%10 == 0 {
			records[i].Partition = int32(i / 10 % partitions)
		}
	}
	if err := client.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// chaos keeps some processes running and kills or stops them at random.
type chaos struct {
	s         *stage
	processes []*process
	started   int
	killed    atomic.Int32
	stopped   atomic.Int32
	stop      chan struct{}
	done      sync.WaitGroup
}

// clocks are the errors of the processes' clocks, in seconds.
var clocks = []int{-60, 60, -20, 20}

// newChaos starts n processes in two regions, with clocks from a minute slow to a minute fast. When
// all are up, it begins to disturb them.
func newChaos(s *stage, n int) *chaos {
	c := &chaos{s: s, stop: make(chan struct{})}
	for range n {
		c.processes = append(c.processes, c.start())
	}
	for _, p := range c.processes {
		p.awaitOutput(s.t, "dispatcher is running")
	}
	s.joined(n)
	c.done.Go(c.run)
	s.t.Cleanup(c.end)
	return c
}

func (c *chaos) start() *process {
	i := c.started
	c.started++
	return c.s.runSkewed("dispatcher "+strconv.Itoa(i+1), []string{"eu", "us"}[i%2],
		tier.Size(0, clocks[i%len(clocks)]))
}

// run kills or stops a process about every two seconds, or every second in the fast tier; the first
// one is killed, the next one stopped. A killed process is replaced.
func (c *chaos) run() {
	random := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-c.stop:
			return
		case <-time.After(time.Duration(tier.Size(500, 1000)+random.IntN(tier.Size(1000, 2000))) *
			time.Millisecond):
		}
		at := random.IntN(len(c.processes))
		p := c.processes[at]
		if c.killed.Load() == 0 || c.stopped.Load() > 0 && random.IntN(4) == 0 {
			p.signal(c.s.t, syscall.SIGKILL)
			<-p.done
			c.killed.Add(1)
			c.processes[at] = c.start()
			continue
		}
		c.stopped.Add(1)
		p.signal(c.s.t, syscall.SIGSTOP)
		select {
		case <-c.stop:
		case <-time.After(time.Duration(200+random.IntN(tier.Size(2000, 6000))) * time.Millisecond):
		}
		p.signal(c.s.t, syscall.SIGCONT)
	}
}

// end stops disturbing the processes. It may be called again.
func (c *chaos) end() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.done.Wait()
}

// TestSlotsOfAKilledProcessComeBack: a process is killed while its attempts hold all active slots
// of the only channel, with default settings. The waiting messages are sent within ten seconds.
func TestSlotsOfAKilledProcessComeBack(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const slots = 10
	release := make(chan struct{})
	defer close(release)
	var holding atomic.Bool
	holding.Store(true)
	s := newStage(t, stageConfig{
		channels: []channel{{
			name: "a", weight: "1", settings: patient,
			document: fmt.Sprintf("active: {max: %d}", slots), behaviour: smpptest.Behaviour{
				Decide: func(smpptest.Submit) smpptest.Answer {
					if holding.Load() {
						return smpptest.Answer{Hold: release}
					}
					return smpptest.Answer{}
				},
			},
		}},
		settings: map[string]string{"SEND_TIMEOUT": "1m", "DEAD_AFTER": "6s"},
	})
	holder := s.run("holder")
	holder.awaitOutput(t, "dispatcher is running")
	s.joined(1)
	s.publish("bulk", messages("killed", 3*slots))
	tier.Within(t, stepTimeout, "every slot is taken and the rest waits", func() bool {
		return s.count(`select active from audit.active`) == slots &&
			s.count(`select count(*) from audit.messages where state = 'waiting'`) == 2*slots
	})
	other := s.run("other")
	other.awaitOutput(t, `"phase":"bound"`)
	stalls := watchStalls(t)
	holding.Store(false)
	holder.kill(t)
	killed := time.Now()
	tier.Within(t, stepTimeout, "what waited is sent", func() bool {
		return s.count(`select count(*) from audit.attempts where outcome = 'accepted'`) > 0
	})
	took := time.Since(killed)
	t.Logf("the first slot was back after %s", took.Round(100*time.Millisecond))
	if took > 10*time.Second+20*stalls() {
		t.Errorf("the slots of a killed process came back after %s", took)
	}
	tier.Within(t, stepTimeout, "all that waited is sent", func() bool {
		return s.count(`select count(*) from audit.attempts where outcome = 'accepted'`) == 2*slots
	})
	tier.Within(t, stepTimeout, "the attempts of the killed process are closed", func() bool {
		return s.count(`select count(*) from audit.attempts where outcome = 'unknown'`) == slots
	})
	if active := s.count(`select active from audit.active`); active != 0 {
		t.Errorf("%d attempts still count as active: a slot was given back twice or never", active)
	}
}
