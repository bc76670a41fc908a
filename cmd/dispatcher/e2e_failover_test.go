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

	"dispatcher/ledger/ledgertest"
)

// TestSlowDatabaseKeepsTheLimits: every statement takes 200 ms longer, half on the way there and half on the way back. Nothing
// is sent without a slot, nothing leaves in another second than its own, and all arrives.
// It runs alone, as TestThreeProcessesPaceAsOne does.
func TestSlowDatabaseKeepsTheLimits(t *testing.T) {
	const perSecond = 50
	seconds := size(4, 10)
	server := ledgertest.Server(t, nil)
	far := newDistance(t, hostOf(t, server.URL()))
	s := newStage(t, plot{
		postgres: server.URL(),
		channels: []channel{{name: "a", weight: "1", behaviour: quick(), document: limitPerSecond(perSecond)}},
		settings: map[string]string{"POSTGRES_URL": withHost(t, server.URL(), far.address())},
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	n := perSecond * seconds
	far.delay.Store(int64(200 * time.Millisecond))
	stalls := watchStalls(t)
	ids := s.publish("bulk", short("slow", n))
	s.settled(n, 3*time.Minute)
	far.delay.Store(0)

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	times := s.arrived("a")
	took := times[len(times)-1].Sub(times[0])
	t.Logf("%d submits in %s, at most %d in a second", len(times), took.Round(100*time.Millisecond), mostInASecond(times))
	if most := mostInASecond(times); most > perSecond+int(perSecond*stalls()/time.Second) {
		t.Errorf("%d submits in one second, the limit is %d", most, perSecond)
	}
	for _, p := range processes {
		if !p.running() {
			t.Errorf("%s did not survive", p.name)
		}
	}
}

// TestSlowStatementsKeepTheLimits: the database itself is slow, 200 ms for each statement that writes, so that a claim
// holds its locks for a second. What is sent keeps its second, most slots are not taken in vain, and the work is done. It
// runs alone, as above.
func TestSlowStatementsKeepTheLimits(t *testing.T) {
	const perSecond = 40
	seconds := size(3, 8)
	s := newStage(t, plot{
		channels: []channel{{name: "a", weight: "1", behaviour: quick(), document: limitPerSecond(perSecond)}},
		settings: map[string]string{"SEND_TIMEOUT": "10s", "DEAD_AFTER": "6s"},
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	s.execute(`create function public.slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.2); return null; end'`)
	stalls := watchStalls(t)
	for _, table := range []string{"messages", "attempts", "limits", "channels", "outbox"} {
		s.execute(`create trigger slow after insert or update on dispatcher.` + table + ` for each statement execute function public.slow()`)
	}
	n := perSecond * seconds
	ids := s.publish("bulk", short("statements", n))
	s.settled(n, 4*time.Minute)

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	times := s.arrived("a")
	took := times[len(times)-1].Sub(times[0])
	late := s.count(`select count(*) from audit.attempts where provider_code = 'late'`)
	t.Logf("%d submits in %s, at most %d in a second, %d attempts late", len(times), took.Round(100*time.Millisecond), mostInASecond(times), late)
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

// TestDatabaseFailsOver: all sessions are cut and the server takes no writes for a while, as a standby
// does before it is promoted. Nothing is claimed meanwhile, and the work goes on by itself.
func TestDatabaseFailsOver(t *testing.T) {
	t.Parallel()
	n, outage := size(400, 2_000), time.Duration(size(3, 6))*time.Second
	server := ledgertest.Server(t, nil)
	s := newStage(t, plot{
		postgres: server.URL(),
		channels: threeChannels(limitPerSecond(n/40), limitPerSecond(n/60), limitPerSecond(n/16)),
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", messages("failover", n))
	eventually(t, time.Minute, "a quarter of the messages are submitted", func() bool { return s.submitted() > n/4 })

	s.execute(`alter system set default_transaction_read_only = on`, `select pg_reload_conf()`, cutOthers)
	begun := s.now()
	await(t.Context(), outage)
	ended := s.now()
	s.execute(`set default_transaction_read_only = off`, `alter system reset default_transaction_read_only`, `select pg_reload_conf()`, cutOthers)
	if claimed := s.count(`select count(*) from audit.attempts where claimed_at > $1 and claimed_at < $2`, begun.Add(500*time.Millisecond), ended); claimed > 0 {
		t.Errorf("%d attempts were claimed while the database took no writes", claimed)
	}

	s.settled(n, 3*time.Minute)
	s.committed("bulk")
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	s.checkLimits()
	s.checkStatuses()
}

// cutOthers ends all sessions of this database but the one that asks.
const cutOthers = `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`

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

// distance passes connections on and holds back what comes from either side.
type distance struct {
	listener net.Listener
	target   string
	delay    atomic.Int64 // there and back, in nanoseconds
	wg       sync.WaitGroup
}

// newDistance listens until the end of the test. Who uses it must have been started after it.
func newDistance(t testing.TB, target string) *distance {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &distance{listener: listener, target: target}
	d.wg.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			d.wg.Go(func() { d.pass(in) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		d.wg.Wait()
	})
	return d
}

func (d *distance) address() string { return d.listener.Addr().String() }

func (d *distance) pass(in net.Conn) {
	defer in.Close() //nolint:errcheck // The other side has gone.
	out, err := (&net.Dialer{}).Dial("tcp", d.target)
	if err != nil {
		return
	}
	defer out.Close() //nolint:errcheck // As above.
	d.wg.Go(func() {
		d.copy(out, in)
		_ = out.Close()
	})
	d.copy(in, out)
}

func (d *distance) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			time.Sleep(time.Duration(d.delay.Load() / 2))
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
