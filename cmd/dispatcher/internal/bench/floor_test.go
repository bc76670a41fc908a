package bench

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider"
	"dispatcher/provider/smpp/smpptest"
)

func TestMain(m *testing.M) { ledgertest.Main(m) }

// waiting is the longest time that a test waits for something.
const waiting = time.Minute

func scalar[T any](t *testing.T, pool *pgxpool.Pool, sql string) (value T) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: got error %v", sql, err)
	}
	return value
}

func connectTo(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// runningFloor is a running floor with carriers, Kafka and an empty database, as in a run of bench.
type runningFloor struct {
	rig   *rig
	pool  *pgxpool.Pool
	stop  context.CancelFunc
	ended chan error
}

func startFloor(t *testing.T, receipts bool, behaviour smpptest.Behaviour) *runningFloor {
	t.Helper()
	r := &rig{folder: t.TempDir(), receipts: receipts, servers: &embedded.Servers{}}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	var err error
	r.servers.Kafka, err = embedded.StartKafka(t.Context(), embedded.KafkaConfig{
		Folder: r.folder, Topics: []string{"sms.status"}, Unsynced: true,
	})
	if err := errors.Join(err, r.startCarriers()); err != nil {
		t.Fatal(err)
	}
	for _, carrier := range r.carriers {
		carrier.SetBehaviour(behaviour)
	}
	url := ledgertest.Empty(t)
	s := &runningFloor{rig: r, pool: connectTo(t, url), ended: make(chan error, 1)}
	routing, err := r.routing("floor-in", "", weights{1, 1, 1}, time.Second)
	if err := errors.Join(err, r.servers.Kafka.CreateTopics(t.Context(), 12, "floor-in")); err != nil {
		t.Fatal(err)
	}
	settings := config.Settings{
		KafkaBrokers: []string{r.servers.Kafka.Address()}, KafkaGroup: "floor",
		StatusTopic: "sms.status", DeadTopic: "sms.dead", InboundTopic: "sms.inbound",
		PostgresURL: url, RoutingFile: routing, Listen: "127.0.0.1:0",
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.ended <- ServeFloor(ctx, settings, zerolog.Nop()) }()
	return s
}

// wait returns the error that ended the floor, and checks that its schema is gone.
func (s *runningFloor) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		if scalar[bool](t, s.pool, `select exists (select from pg_namespace
			where nspname in ('floor', 'dispatcher'))`) {
			t.Error("the schema still exists")
		}
		return err
	case <-time.After(waiting):
		t.Fatal("the floor did not end")
		return nil
	}
}

// events reads n status events and counts them by state.
func (s *runningFloor) events(t *testing.T, n int) map[string]int {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.rig.servers.Kafka.Address()),
		kgo.ConsumeTopics("sms.status"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), waiting)
	defer cancel()
	states := map[string]int{}
	for got := 0; got < n; {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d events: %v", got, n, states)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var event struct{ State string }
			if err := json.Unmarshal(r.Value, &event); err != nil {
				t.Error(err)
			}
			states[event.State]++
			got++
		})
	}
	return states
}

// TestTheFloorStoresEachFactOnce: each message has an id, a first decision, a payload, an outcome
// and, with receipts, a receipt. The counters and the status events add up. The ledger's tables do
// not exist, and at the end no schema does.
func TestTheFloorStoresEachFactOnce(t *testing.T) {
	t.Parallel()
	const messages = 3*floorBatch + 7
	for _, receipts := range []bool{false, true} {
		s := startFloor(t, receipts, smpptest.Behaviour{Receipts: receipts})
		if err := s.rig.produce(t.Context(), "floor-in", 0, messages, 0); err != nil {
			t.Fatal(err)
		}
		facts := map[string]int{
			"ids": messages, "messages": messages, "payloads": messages, "outcomes": messages,
			"receipts": 0,
		}
		states := map[string]int{"sending": messages, "accepted": messages}
		if receipts {
			facts["receipts"], states["delivered"] = messages, messages
		}
		if diff := cmp.Diff(states, s.events(t, messages*len(states))); diff != "" {
			t.Errorf("events with receipts %t: %s", receipts, diff)
		}
		indexes := scalar[int](t, s.pool, `select count(*) from pg_indexes
			where schemaname = 'floor' and tablename = 'outcomes'`)
		if want := map[bool]int{false: 1, true: 2}[receipts]; indexes != want {
			t.Errorf("with receipts %t: %d indexes of outcomes, want %d", receipts, indexes, want)
		}
		for table, want := range facts {
			if got := scalar[int](t, s.pool, "select count(*) from floor."+table); got != want {
				t.Errorf("with receipts %t: %d rows in %s, want %d", receipts, got, table, want)
			}
		}
		if got := scalar[string](t, s.pool, `select sum(active) || ' of ' || sum(claimed)
			from floor.channels`); got != "0 of 1507" {
			t.Errorf("counters: %s", got)
		}
		if receipts {
			tier.Eventually(t, "every receipt is acknowledged", func() bool {
				return s.rig.delivered() == messages
			})
		}
		tier.Eventually(t, "the outbox is emptied", func() bool {
			return scalar[int](t, s.pool, `select count(*) from floor.outbox`) == 0
		})
		s.stop()
		if err := s.wait(t); err != nil {
			t.Error(err)
		}
	}
}

// TestTheFloorEndsWithTheFirstError: messages that were not sent would be missing in the figures.
func TestTheFloorEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	s := startFloor(t, false, smpptest.Behaviour{Throttle: true})
	defer s.stop()
	if err := s.rig.produce(t.Context(), "floor-in", 0, 10, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t); err == nil || !strings.Contains(err.Error(), "answered throttled") {
		t.Error(err)
	}
}

// bareFloor returns a floor without carriers and Kafka; failed returns the error that ended it.
func bareFloor(t *testing.T) (f *Floor, failed func() error) {
	t.Helper()
	pool, err := openFloor(t.Context(), ledgertest.Empty(t), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ctx, fail := context.WithCancelCause(t.Context())
	f = NewFloor(pool, fail)
	t.Cleanup(func() {
		f.Close()
		fail(nil)
	})
	if err := f.Use(t.Context(), []string{"a"}, make([]provider.Channel, 1)); err != nil {
		t.Fatal(err)
	}
	return f, func() error { return context.Cause(ctx) }
}

// someJobs returns n messages with ids of one letter and a number.
func someJobs(n int) []decide.Job {
	jobs := make([]decide.Job, n)
	for i := range jobs {
		jobs[i] = decide.Job{
			Lane: "bulk", Origin: decide.Origin{Topic: "in", Offset: int64(i)},
			Produced: time.Now(), Raw: []byte("{}"),
			Message: envelope.Message{ID: string(rune('a' + i))},
		}
	}
	return jobs
}

// TestTheFloorTakesAnIDOnce: if a batch has a message that is stored already, nothing of the batch
// is stored.
func TestTheFloorTakesAnIDOnce(t *testing.T) {
	t.Parallel()
	f, _ := bareFloor(t)
	jobs := someJobs(5)
	if err := f.store(t.Context(), f.rows(jobs[:3])); err != nil {
		t.Fatal(err)
	}
	err := f.store(t.Context(), f.rows(jobs))
	if err == nil || !strings.Contains(err.Error(), "ids_pkey") {
		t.Error(err)
	}
	if got := scalar[int](t, f.pool, `select count(*) from floor.ids`); got != 3 {
		t.Errorf("%d ids", got)
	}
}

// TestAReceiptWaitsForTheOutcomeItIsAbout: it is acknowledged when it is stored, and not before.
func TestAReceiptWaitsForTheOutcomeItIsAbout(t *testing.T) {
	t.Parallel()
	f, failed := bareFloor(t)
	booking, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.StoreReceipts(booking)
	}()
	defer func() {
		stop()
		<-ended
	}()
	taken := make(chan bool, 1)
	f.Receive("a", provider.Receipt{Reference: "r1", State: provider.Delivered, At: time.Now()},
		func(ok bool) { taken <- ok })
	r := f.rows(someJobs(1))
	if err := f.store(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := f.storeBatch(t.Context(), nil); err != nil || len(taken) != 0 {
		t.Fatalf("acknowledged before the outcome was stored: %v", err)
	}
	r.results[0] = provider.Result{Outcome: provider.Accepted, Reference: "r1"}
	if err := f.settle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	select {
	case ok := <-taken:
		if got := scalar[string](t, f.pool, `select state from floor.receipts`); !ok ||
			got != "delivered" {
			t.Errorf("%t, %s", ok, got)
		}
	case <-time.After(waiting):
		t.Fatal("got no answer")
	}
	if err := failed(); err != nil {
		t.Error(err)
	}
	stranger := receipt{Receipt: provider.Receipt{At: time.Now().Add(-time.Hour)}, channel: "a"}
	if err := f.storeBatch(t.Context(), []receipt{stranger}); err == nil {
		t.Error("a receipt of no message waits without end")
	}
}

// TestReceiptsAreLookedUpByIndexFromTheFirst: the plan is made once, over tables that are known to
// be empty.
func TestReceiptsAreLookedUpByIndexFromTheFirst(t *testing.T) {
	t.Parallel()
	f, _ := bareFloor(t)
	conn, err := f.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, statement := range []string{
		`analyze floor.outcomes, floor.messages`, `prepare lookup (text[], text[]) as ` + findOutcomes,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.Query(t.Context(), `explain execute lookup ('{a}', '{r1}')`,
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if strings.Contains(plan, "Seq Scan") || strings.Count(plan, "Index Scan") != 2 {
		t.Error(plan)
	}
}
