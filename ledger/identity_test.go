package ledger_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
)

func take(t *testing.T, l *ledger.Ledger) ledger.Identity {
	t.Helper()
	id, err := l.Instances.TakeIdentity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id.EarlyEnds == 0 && id.Pause != 0 {
		t.Errorf("a pause of %s without a crash", id.Pause)
	}
	return id
}

// crash ends a process as the database sees a crash: its sessions end without Leave. The server
// takes a moment to release their locks.
func crash(t *testing.T, db *pgx.Conn, l *ledger.Ledger) {
	t.Helper()
	const held = `select count(*) from pg_locks where locktype = 'advisory' and objsubid = 2
		and database = (select oid from pg_database where datname = current_database())`
	before := scalar[int](t, db, held)
	l.Close()
	for deadline := time.Now().Add(time.Minute); scalar[int](t, db, held) >= before; {
		if time.Now().After(deadline) {
			t.Fatal("the lock of a session that has ended is still held")
		}
	}
}

func stopInOrder(t *testing.T, db *pgx.Conn, l *ledger.Ledger) {
	t.Helper()
	if err := l.Instances.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Close()
	scalar[string](t, db, `select pg_advisory_lock(1768187246, 1)::text`)
	scalar[bool](t, db, `select pg_advisory_unlock(1768187246, 1)`)
}

func TestAProcessGetsTheNumberOfTheOneThatCrashed(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	db := raw(t, url)
	all := make([]*ledger.Ledger, 4)
	for i := range all {
		all[i] = connect(t, ledger.Config{URL: url})
		if got := take(t, all[i]); got != (ledger.Identity{Number: i + 1}) {
			t.Fatalf("process %d got %+v", i+1, got)
		}
	}
	stopInOrder(t, db, all[0])
	crash(t, db, all[2])
	if got := take(t, connect(t, ledger.Config{URL: url})); got.Number != 3 {
		t.Errorf("after a crash of 3 and an orderly stop of 1: got %+v", got)
	}
	if got := take(t, connect(t, ledger.Config{URL: url})); got.Number != 1 || got.EarlyEnds != 0 {
		t.Errorf("after an orderly stop of 1: got %+v", got)
	}
	if got := take(t, connect(t, ledger.Config{URL: url})); got.Number != 5 {
		t.Errorf("with all numbers held: got %+v", got)
	}
}

func TestACrashLoopPausesLongerEachTime(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	db := raw(t, url)
	start := func(version string) (*ledger.Ledger, ledger.Identity) {
		l := connect(t, ledger.Config{URL: url, Version: version})
		return l, take(t, l)
	}
	var pauses []time.Duration
	for range 9 {
		l, id := start("v1")
		if id.Number != 1 || id.EarlyEnds != len(pauses) {
			t.Fatalf("after %d crashes: %+v", len(pauses), id)
		}
		pauses = append(pauses, id.Pause)
		crash(t, db, l)
	}
	want := []time.Duration{
		0, 0, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		16 * time.Second, 32 * time.Second, time.Minute, time.Minute,
	}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Error(diff)
	}
	l, id := start("v2")
	if id.EarlyEnds != 0 {
		t.Errorf("another version: %+v", id)
	}
	crash(t, db, l)
	execute(t, db, `update dispatcher.identities
		set early_ends = 4, working_from = now() - interval '31 seconds'`)
	l, id = start("v2")
	if id.EarlyEnds != 0 {
		t.Errorf("after 31 s of work: %+v", id)
	}
	execute(t, db, `update dispatcher.identities set early_ends = 4`)
	stopInOrder(t, db, l)
	if _, id = start("v2"); id.EarlyEnds != 0 {
		t.Errorf("after an orderly stop: %+v", id)
	}
}

func TestOthersWorkWhileTheyLiveAndDoNotPause(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	db := raw(t, url)
	l, other := connect(t, ledger.Config{URL: url}), connect(t, ledger.Config{URL: url})
	take(t, l)
	check := func(when string, want bool) {
		t.Helper()
		if got, err := l.Instances.OthersWork(t.Context(), 10*time.Minute); err != nil ||
			got != want {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	check("alone", false)
	take(t, other)
	check("beside another", true)
	execute(t, db, `update dispatcher.identities set working_from = now() + interval '1 minute'
		where instance = $1`, other.Instances.ID())
	check("the other pauses", false)
	if err := other.Instances.BeginWork(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("the other has begun", true)
	execute(t, db, `update dispatcher.instances set last_seen = now() - interval '11 minutes'
		where id = $1`, other.Instances.ID())
	check("the other is dead", false)
}

// TestAnIdentityOutlivesItsSession: after a restart of the database a process keeps its number,
// unless another one took it.
func TestAnIdentityOutlivesItsSession(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	db := raw(t, url)
	end := func() {
		t.Helper()
		execute(t, db, `select pg_terminate_backend(pid, 10000) from pg_locks
			where locktype = 'advisory' and objsubid = 2
			and database = (select oid from pg_database where datname = current_database())`)
	}
	first := connect(t, ledger.Config{URL: url})
	take(t, first)
	end()
	first.Instances.ConfirmIdentity()
	second := connect(t, ledger.Config{URL: url})
	if got := take(t, second); got.Number != 2 {
		t.Errorf("the number of a process that runs was given away: %+v", got)
	}
	end()
	third := connect(t, ledger.Config{URL: url})
	taken := take(t, third).Number
	first.Instances.ConfirmIdentity()
	second.Instances.ConfirmIdentity()
	third.Instances.ConfirmIdentity()
	if got := take(t, connect(t, ledger.Config{URL: url})); got.Number != 3 {
		t.Errorf("1, 2 and again %d are held: got %+v", taken, got)
	}
}

// TestANumberWhoseHolderHasNoRowYetIsPassedOver: of processes that start together for the first
// time, one has locked a number and has not written its row when the others read the table.
func TestANumberWhoseHolderHasNoRowYetIsPassedOver(t *testing.T) {
	t.Parallel()
	url := ledgertest.URL(t)
	db := raw(t, url)
	for number := 1; number <= 2; number++ {
		scalar[string](t, db, `select pg_advisory_lock(1768187246, $1)::text`, number)
	}
	if got := take(t, connect(t, ledger.Config{URL: url})); got != (ledger.Identity{Number: 3}) {
		t.Errorf("%+v", got)
	}
}

// oneSided is a proxy between a ledger and PostgreSQL. When it cuts a connection, only the client
// notices: the server keeps the session, as after a network failure.
type oneSided struct {
	target string

	mu      sync.Mutex
	clients []net.Conn // guarded by mu
	servers []net.Conn // guarded by mu
}

// through returns the address of a database through a new oneSided.
func through(t *testing.T, address string) (*oneSided, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &oneSided{target: u.Host}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp4", o.target)
			if err != nil {
				_ = client.Close() // the client sees a server that is away
				continue
			}
			o.mu.Lock()
			o.clients, o.servers = append(o.clients, client), append(o.servers, server)
			o.mu.Unlock()
			serving.Go(func() { _, _ = io.Copy(server, client) }) // until one of them is closed
			serving.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // it ends the first of them
		o.cut()
		o.end()
		serving.Wait()
	})
	u.Host = listener.Addr().String()
	return o, u.String()
}

func closeAll(mu *sync.Mutex, conns *[]net.Conn) {
	mu.Lock()
	defer mu.Unlock()
	for _, c := range *conns {
		_ = c.Close() // a second time does nothing
	}
	*conns = nil
}

// cut ends all connections for the client; end ends them for the server.
func (o *oneSided) cut() { closeAll(&o.mu, &o.clients) }
func (o *oneSided) end() { closeAll(&o.mu, &o.servers) }

// TestAnIdentityOutlivesASessionThatTheServerStillHas: the connection broke, and the server has not
// noticed. The process waits until its old session has ended, and then takes its lock again.
func TestAnIdentityOutlivesASessionThatTheServerStillHas(t *testing.T) {
	t.Parallel()
	address := ledgertest.URL(t)
	db := raw(t, address)
	network, tapped := through(t, address)
	first := connect(t, ledger.Config{URL: tapped})
	take(t, first)
	const held = `select coalesce(max(pid), 0) from pg_locks where locktype = 'advisory'
		and objsubid = 2
		and database = (select oid from pg_database where datname = current_database())`
	before := scalar[int](t, db, held)
	network.mu.Lock()
	old := network.servers
	network.servers = nil
	network.mu.Unlock()
	network.cut()
	for range 2 {
		first.Instances.ConfirmIdentity()
		if now := scalar[int](t, db, held); now != before {
			t.Fatalf("session %d has the lock, not %d", now, before)
		}
	}
	var mu sync.Mutex
	closeAll(&mu, &old)
	for deadline := time.Now().Add(time.Minute); scalar[int](t, db, held) != 0; {
		if time.Now().After(deadline) {
			t.Fatal("the old session has not ended")
		}
	}
	first.Instances.ConfirmIdentity()
	if now := scalar[int](t, db, held); now == 0 {
		t.Error("the number was given up")
	}
	if got := take(t, connect(t, ledger.Config{URL: address})); got.Number != 2 {
		t.Errorf("another process got %+v", got)
	}
}

// TestANumberThatAnotherProcessTookIsGivenUp, also when that process has ended since.
func TestANumberThatAnotherProcessTookIsGivenUp(t *testing.T) {
	t.Parallel()
	address := ledgertest.URL(t)
	db := raw(t, address)
	first, second := connect(t, ledger.Config{URL: address}), connect(t, ledger.Config{URL: address})
	take(t, first)
	execute(t, db, `select pg_terminate_backend(pid, 10000) from pg_locks
		where locktype = 'advisory' and objsubid = 2
		and database = (select oid from pg_database where datname = current_database())`)
	if got := take(t, second); got.Number != 1 {
		t.Fatalf("%+v", got)
	}
	crash(t, db, second)
	first.Instances.ConfirmIdentity()
	if got := take(t, connect(t, ledger.Config{URL: address})); got.Number != 1 {
		t.Errorf("the number is held by a process that lost it: %+v", got)
	}
}
