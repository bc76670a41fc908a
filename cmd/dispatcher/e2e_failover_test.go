package main

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
)

// TestSlowDatabaseKeepsTheLimits: every statement takes 200 ms longer, half on the way there and
// half on the way back. Then one process waits on the way there and the other on the way back, so
// that neither can know the database's clock: what they take for the middle of a statement is 200
// ms apart. Nothing is sent without a slot, nothing leaves in another second than its own, and all
// arrives. It runs before the stories that run side by side, as TestThreeProcessesPaceAsOne does.
func TestSlowDatabaseKeepsTheLimits(t *testing.T) {
	tier.LongOnly(t)
	const half, whole = 100 * time.Millisecond, 200 * time.Millisecond
	for name, ways := range map[string][]distance{
		"even ways":   {{there: half, back: half}, {there: half, back: half}},
		"uneven ways": {{there: whole}, {back: whole}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // with the other, and with no other story
			keepsLimitsFromAfar(t, ways...)
		})
	}
}

// keepsLimitsFromAfar has a process work over each distance, and checks what arrives in each second
// at a carrier that is 15 ms away: with such a database many submits leave as late as they may.
func keepsLimitsFromAfar(t *testing.T, ways ...distance) {
	t.Helper()
	const perSecond = 50
	const seconds = 8
	server := ledgertest.Server(t, nil)
	s := newStage(t, plot{
		postgres: server.URL(),
		channels: []channel{
			{
				name: "a", weight: "1", behaviour: quick(), document: limitPerSecond(perSecond),
				away: distance{there: 15 * time.Millisecond},
			},
		},
	})
	processes := make([]*process, len(ways))
	for i := range ways {
		far := ways[i].open(t, hostOf(t, server.URL()))
		processes[i] = s.runWith(fmt.Sprintf("dispatcher %d", i+1),
			map[string]string{"POSTGRES_URL": withHost(t, server.URL(), far)})
	}
	for _, p := range processes {
		p.says(t, "dispatcher is running")
	}
	s.joined(len(processes))
	stalls := watchStalls(t)
	n := perSecond * seconds
	ids := s.publish("bulk", short("slow", n))
	s.settled(n)

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	times := s.arrived("a")
	took := times[len(times)-1].Sub(times[0])
	t.Logf("%d submits in %s, at most %d in a second", len(times), took.Round(100*time.Millisecond),
		mostInASecond(times))
	if most := mostInASecond(times); most > perSecond+int(perSecond*stalls()/time.Second) {
		t.Errorf("%d submits in one second, the limit is %d", most, perSecond)
	}
	for _, p := range processes {
		if !p.running() {
			t.Errorf("%s did not survive", p.name)
		}
	}
}

// TestSlowStatementsKeepTheLimits: the database itself is slow, 200 ms for each statement that
// writes, so that a claim holds its locks for a second. What is sent keeps its second, most slots
// are not taken in vain, and the work is done. It runs alone, as above.
func TestSlowStatementsKeepTheLimits(t *testing.T) {
	tier.LongOnly(t)
	const perSecond = 40
	const seconds = 6
	s := newStage(t, plot{
		channels: []channel{
			{name: "a", weight: "1", behaviour: quick(), document: limitPerSecond(perSecond)},
		},
		settings: map[string]string{"SEND_TIMEOUT": "10s", "DEAD_AFTER": "6s"},
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	s.execute(`create function public.slow() returns trigger language plpgsql
		as 'begin perform pg_sleep(0.2); return null; end'`)
	stalls := watchStalls(t)
	for _, table := range []string{"messages", "attempts", "limits", "channels", "outbox"} {
		s.execute(`create trigger slow after insert or update on dispatcher.` + table +
			` for each statement execute function public.slow()`)
	}
	n := perSecond * seconds
	ids := s.publish("bulk", short("statements", n))
	s.settled(n)

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	times := s.arrived("a")
	took := times[len(times)-1].Sub(times[0])
	late := s.count(`select count(*) from audit.attempts where provider_code = 'late'`)
	t.Logf("%d submits in %s, at most %d in a second, %d attempts late", len(times),
		took.Round(100*time.Millisecond), mostInASecond(times), late)
	if most := mostInASecond(times); most > perSecond+int(perSecond*stalls()/time.Second) {
		t.Errorf("%d submits in one second, the limit is %d", most, perSecond)
	}
	if late > int64(n)/2+2*perSecond { // the first claims do not know yet how slow it is
		t.Errorf("%d attempts took a slot in vain for %d messages", late, n)
	}
	if slowest := time.Duration(10*seconds) * time.Second; took > slowest {
		t.Errorf("it took %s, a tenth of the limit would take %s", took, slowest)
	}
}

// TestDatabaseFailsOver: all sessions are cut and the server takes no writes for a while, as a
// standby does before it is promoted. Nothing is claimed meanwhile, and the work goes on by itself.
func TestDatabaseFailsOver(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n, outage = 2_000, 6 * time.Second
	server := ledgertest.Server(t, nil)
	s := newStage(t, plot{
		postgres: server.URL(),
		channels: threeChannels(limitPerSecond(n/40), limitPerSecond(n/60), limitPerSecond(n/16)),
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", messages("failover", n))
	eventually(t, stepTimeout, "a quarter of the messages are submitted", func() bool {
		return s.submitted() > n/4
	})

	s.execute(`alter system set default_transaction_read_only = on`, `select pg_reload_conf()`,
		cutOthers)
	begun := s.now()
	await(t.Context(), outage)
	ended := s.now()
	s.execute(`set default_transaction_read_only = off`,
		`alter system reset default_transaction_read_only`, `select pg_reload_conf()`, cutOthers)
	claimed := s.count(`
		select count(*) from audit.attempts where claimed_at > $1 and claimed_at < $2`,
		begun.Add(500*time.Millisecond), ended)
	if claimed > 0 {
		t.Errorf("%d attempts were claimed while the database took no writes", claimed)
	}

	s.settled(n)
	s.committed("bulk")
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	s.checkLimits()
	s.checkStatuses()
}

// cutOthers ends all sessions of this database but the one that asks.
const cutOthers = `
	select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
	and pid <> pg_backend_pid()`

// execute runs statements on one connection.
func (s *stage) execute(statements ...string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.postgres)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(s.t.Context()) //nolint:errcheck // Nothing depends on a clean goodbye.
	for _, sql := range statements {
		if _, err := conn.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatal(fmt.Errorf("%s: %w", sql, err))
		}
	}
}

// distance lies between two ends of a connection: what is sent there, or back, arrives so much
// later.
type distance struct {
	there, back time.Duration
	grows       *atomic.Int64 // nanoseconds on top each way, from when they are set; nil for none
}

// way is the delay of one way as it is now.
func (d distance) way(fixed time.Duration) func() time.Duration {
	return func() time.Duration {
		if d.grows == nil {
			return fixed
		}
		return fixed + time.Duration(d.grows.Load())
	}
}

// open passes connections on to target until the end of the test, and returns the address to call.
// Who uses it must have been started after it.
func (d distance) open(t testing.TB, target string) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { d.pass(in, target) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	return listener.Addr().String()
}

// pass carries one connection until either side ends it.
func (d distance) pass(in net.Conn, target string) {
	defer in.Close() //nolint:errcheck // The other side has gone.
	out, err := (&net.Dialer{}).Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close() //nolint:errcheck // As above.
	var back sync.WaitGroup
	back.Go(func() {
		carry(in, out, d.way(d.back))
		_ = in.Close()
	})
	carry(out, in, d.way(d.there))
	_ = out.Close()
	back.Wait()
}

// parcel is what was read at once.
type parcel struct {
	at    time.Time
	bytes []byte
}

// carry passes on what it reads, each parcel so much later, until from ends. Parcels do not wait
// for each other.
func carry(to io.Writer, from io.Reader, delay func() time.Duration) {
	parcels := make(chan parcel, 1024)
	go func() {
		defer close(parcels)
		for {
			buffer := make([]byte, 64<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				parcels <- parcel{time.Now(), buffer[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range parcels {
		time.Sleep(time.Until(p.at.Add(delay())))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	for range parcels { // whoever reads must not hang
	}
}
