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

// TestSlowDatabaseKeepsTheLimits: every statement takes 200 ms longer, half each way. Then all of
// the delay is on the way to the database for one process, and on the way back for the other.
// Neither can measure the database's clock, and their estimates differ by 200 ms. Nothing is sent
// without a slot or outside its second, and all messages arrive. It runs before the stories that
// run in parallel, as TestThreeProcessesPaceAsOne does.
func TestSlowDatabaseKeepsTheLimits(t *testing.T) {
	tier.LongOnly(t)
	const half, whole = 100 * time.Millisecond, 200 * time.Millisecond
	for name, ways := range map[string][]distance{
		"even ways":   {{there: half, back: half}, {there: half, back: half}},
		"uneven ways": {{there: whole}, {back: whole}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // with the other delay, and with no other story
			checkLimitsFromAfar(t, ways...)
		})
	}
}

// checkLimitsFromAfar runs one process over each distance, and checks the submits in each second at
// a carrier that is 15 ms away. With such a database many submits leave at the last possible
// moment.
func checkLimitsFromAfar(t *testing.T, ways ...distance) {
	t.Helper()
	const perSecond = 50
	const seconds = 8
	server := ledgertest.Server(t, nil)
	s := newStage(t, stageConfig{
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
		p.awaitOutput(t, "dispatcher is running")
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
		t.Errorf("got %d submits in one second, the limit is %d", most, perSecond)
	}
	for _, p := range processes {
		if !p.running() {
			t.Errorf("%s ended", p.name)
		}
	}
}

// TestSlowStatementsKeepTheLimits: the database is slow, 200 ms for each statement that writes, so
// a claim holds its locks for a second. Submits leave in their second, most slots are used, and all
// messages are sent. It runs alone, as above.
func TestSlowStatementsKeepTheLimits(t *testing.T) {
	tier.LongOnly(t)
	const perSecond = 40
	const seconds = 6
	s := newStage(t, stageConfig{
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
	stall := stalls()
	if most := mostInASecond(times); most > perSecond+int(perSecond*stall/time.Second) {
		t.Errorf("got %d submits in one second, the limit is %d", most, perSecond)
	}
	// The first claims cannot know how slow it is, and a busy machine holds others up.
	if late > int64(n)/2+2*perSecond+int64(n)*int64(stall/(100*time.Millisecond)) {
		t.Errorf("got %d attempts with an unused slot for %d messages", late, n)
	}
	if slowest := time.Duration(10*seconds) * time.Second; took > slowest+20*stall {
		t.Errorf("it took %s, a tenth of the limit would take %s", took, slowest)
	}
}

// TestDatabaseFailsOver: all sessions are terminated, and the server is read-only for a while, as a
// standby is before its promotion. Nothing is claimed meanwhile, and work resumes by itself.
func TestDatabaseFailsOver(t *testing.T) {
	tier.LongOnly(t)
	t.Parallel()
	const n, outage = 2_000, 6 * time.Second
	server := ledgertest.Server(t, nil)
	s := newStage(t, stageConfig{
		postgres: server.URL(),
		channels: threeChannels(limitPerSecond(n/40), limitPerSecond(n/60), limitPerSecond(n/16)),
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	ids := s.publish("bulk", messages("failover", n))
	tier.Within(t, stepTimeout, "a quarter of the messages are submitted", func() bool {
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
		t.Errorf("%d attempts were claimed while the database was read-only", claimed)
	}

	s.settled(n)
	s.committed("bulk")
	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkWindows()
	s.checkLimits()
	s.checkStatuses()
}

// cutOthers terminates all sessions of this database except its own.
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

// distance delays what is sent over a connection, there and back.
type distance struct {
	there, back time.Duration
	grows       *atomic.Int64 // further nanoseconds each way, may change; nil for none
}

// way returns the current delay of one direction.
func (d distance) way(fixed time.Duration) func() time.Duration {
	return func() time.Duration {
		if d.grows == nil {
			return fixed
		}
		return fixed + time.Duration(d.grows.Load())
	}
}

// open forwards connections to target until the end of the test, and returns its address. Processes
// that use it must be started after it.
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

// pass forwards one connection until either side ends it.
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

// chunk is the data of one read.
type chunk struct {
	at    time.Time
	bytes []byte
}

// carry copies from to to, each parcel after its delay, until from ends. Parcels do not wait for
// each other.
func carry(to io.Writer, from io.Reader, delay func() time.Duration) {
	chunks := make(chan chunk, 1024)
	go func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 64<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				chunks <- chunk{time.Now(), buffer[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range chunks {
		time.Sleep(time.Until(p.at.Add(delay())))
		if _, err := to.Write(p.bytes); err != nil {
			break
		}
	}
	for range chunks { // the reader must not block
	}
}
