package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/console"
	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider/smpp/smpptest"
)

// journal is the log of a process.
type journal struct {
	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(p)
}

// lines returns the lines of a level, except the warnings about the durability of the test's
// database.
func (j *journal) lines(level string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.out.String()) {
		if strings.Contains(line, `"level":"`+level+`"`) &&
			!strings.Contains(line, "commits of PostgreSQL may be lost") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// holds reports whether a line of a level contains a text.
func (j *journal) holds(level, text string) bool {
	return strings.Contains(strings.Join(j.lines(level), "\n"), text)
}

// warned checks that the log has one warning, and that it contains these texts.
func (j *journal) warned(t *testing.T, texts ...string) {
	t.Helper()
	warnings := append(j.lines("warn"), j.lines("error")...)
	if len(warnings) != 1 {
		t.Fatalf("%d warnings, want one:\n%s", len(warnings), strings.Join(warnings, "\n"))
	}
	for _, text := range texts {
		if !strings.Contains(warnings[0], text) {
			t.Errorf("got\n%s\nwithout %s", warnings[0], text)
		}
	}
}

// page returns the answer to a request of the admin server.
func (s *stage) page(path string) (status int, body readyzBody) {
	s.t.Helper()
	return pageOf(s.t, s.app.URL()+path)
}

func pageOf(t *testing.T, url string) (status int, body readyzBody) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read to its end.
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// readyzBody is the JSON of /readyz.
type readyzBody struct {
	Ready  bool            `json:"ready"`
	Status string          `json:"status"`
	Checks []console.Check `json:"checks"`
}

// failing returns the conditions that are not met, by name.
func (b *readyzBody) failing() map[string]console.Check {
	out := map[string]console.Check{}
	for _, c := range b.Checks {
		if !c.OK {
			out[c.Name] = c
		}
	}
	return out
}

// ready waits until /readyz answers with 200.
func (s *stage) ready() {
	s.t.Helper()
	s.until(
		"the process to be ready",
		func() bool {
			status, body := s.page("/readyz")
			return status == http.StatusOK && body.Ready
		},
	)
}

// unready waits until /readyz reports an unmet condition with the time since when and what to do,
// and checks that /healthz still answers with 200.
func (s *stage) unready(name, detail, fix string) {
	s.t.Helper()
	began := time.Now()
	s.until(name+" to be told", func() bool {
		status, body := s.page("/readyz")
		_, ok := body.failing()[name]
		return status == http.StatusServiceUnavailable && ok
	})
	_, body := s.page("/readyz")
	c := body.failing()[name]
	if body.Ready || !c.Vital || !strings.Contains(c.Detail, detail) ||
		!strings.Contains(c.Fix, fix) {
		s.t.Errorf("got %+v", c)
	}
	if c.Since == nil || c.Since.Before(began.Add(-time.Minute)) || c.Since.After(time.Now()) {
		s.t.Errorf("%s is not met since %v", name, c.Since)
	}
	if status, body := s.page("/healthz"); status != http.StatusOK || body.Status != "alive" {
		s.t.Errorf("/healthz answers %d %q", status, body.Status)
	}
}

// readyAgain is ready after a refusal of PostgreSQL. In the fast tier, each refusal counts as long
// past as it lasts.
func (s *stage) readyAgain() {
	s.t.Helper()
	s.until("the process to be ready again", func() bool {
		r := &s.app.readiness.refused
		if last := r.Load(); last != nil && !tier.Long() {
			r.CompareAndSwap(last, &refusal{last.err, last.at.Add(-refusalLasts)})
		}
		status, body := s.page("/readyz")
		return status == http.StatusOK && body.Ready
	})
}

// showsReady waits until the page of metrics shows whether a condition of /readyz is met, and
// checks the other vital ones.
func (s *stage) showsReady(check string, want float64) {
	s.t.Helper()
	const name = `dispatcher_ready{check="`
	s.until("the metrics to tell it", func() bool {
		_, values := s.scraped()
		got, ok := values[name+check+`"}`]
		return ok && got == want
	})
	_, values := s.scraped()
	for _, other := range []string{"database", "routing", "kafka", "channels"} {
		if got, ok := values[name+other+`"}`]; !ok || other != check && got != 1 {
			s.t.Errorf("%s is %v, %v", other, got, ok)
		}
	}
}

// troubles returns how many operations have failed and are retried.
func (s *stage) troubles() (n float64) {
	s.t.Helper()
	families, err := prometheus.Gatherers{s.app.registry}.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "dispatcher_dispatch_trouble_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

const slowTimeoutChannel = `
channels: {a: {{ONE}}}
routes: [{name: default, weights: {a: 1}}]
`

// TestADatabaseThatIsAwayIsOneWarningAndWorkResumes stops and starts a real PostgreSQL while the
// process has messages to send.
func TestADatabaseThatIsAwayIsOneWarningAndWorkResumes(t *testing.T) {
	t.Parallel()
	server, log := ledgertest.Server(t, nil), &journal{}
	s := newStageWith(t, slowTimeoutChannel, func(o *Options) {
		o.Settings.PostgresURL, o.Log = server.URL(), zerolog.New(log).Level(zerolog.InfoLevel)
	}, nil)
	s.publish(20)
	s.settled()
	s.ready()
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.publish(20)
	s.unready("database", "PostgreSQL ", "start it")
	s.showsReady("database", 0)
	s.until("many operations to have failed", func() bool { return s.troubles() > 20 })
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.until("that it is back",
		func() bool { return log.holds("info", "PostgreSQL is back after ") })
	s.settled()
	s.ready()
	s.showsReady("database", 1)
	log.warned(t, `"what":"PostgreSQL"`, "start it", "Kafka keeps the messages")
	if log.holds("warn", "dial tcp") {
		t.Error("the driver's text is in a warning")
	}
}

// TestAStartOutlastsADatabaseThatIsSlow: the first heartbeat gets no answer in time.
func TestAStartOutlastsADatabaseThatIsSlow(t *testing.T) {
	t.Parallel()
	url, log := ledgertest.Fresh(t), &journal{}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	for _, sql := range []string{
		`create sequence public.beats`,
		`create function public.slow() returns trigger language plpgsql security definer as $$ begin
			if nextval('public.beats') = 1 then perform pg_sleep(60); end if; return new; end $$`,
		`create trigger slow before update on dispatcher.instances
			for each row execute function public.slow()`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	s := newStageWith(t, slowTimeoutChannel, func(o *Options) {
		o.Settings.PostgresURL, o.Log = url, zerolog.New(log)
	}, nil)
	s.ready()
	if !log.holds("warn", "PostgreSQL (DISPATCHER_POSTGRES_URL) cannot be used yet, trying again") {
		t.Error("no warning that the start waits")
	}
}

// TestADatabaseThatIsReadOnlyIsNotReady, although it answers: nothing can be stored.
func TestADatabaseThatIsReadOnlyIsNotReady(t *testing.T) {
	t.Parallel()
	server := ledgertest.Server(t, nil)
	s := newStageWith(t, slowTimeoutChannel,
		func(o *Options) { o.Settings.PostgresURL = server.URL() }, nil)
	s.ready()
	db, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // Nothing is left to do with it.
	readOnly := func(value string) {
		t.Helper()
		for _, sql := range []string{
			"set default_transaction_read_only = off",
			"alter system set default_transaction_read_only = " + value, "select pg_reload_conf()",
		} {
			if _, err := db.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	readOnly("on")
	s.unready("database", "PostgreSQL is read-only", "default_transaction_read_only")
	s.showsReady("database", 0)
	readOnly("off")
	s.readyAgain()
	s.showsReady("database", 1)
}

// TestADatabaseWithoutSpaceIsNotReady. A real full disk needs a file system of its own, so the
// refusal is reported as a claim does.
func TestADatabaseWithoutSpaceIsNotReady(t *testing.T) {
	t.Parallel()
	s := newStage(t, slowTimeoutChannel)
	s.ready()
	s.app.trouble("claim", fmt.Errorf("claim: %w", &pgconn.PgError{
		Code: "53100", Message: "could not extend file: No space left on device",
	}))
	// A busy machine may take longer for the two looks than a refusal lasts.
	refused := &s.app.readiness.refused
	last := refused.Load()
	refused.Store(&refusal{err: last.err, at: last.at.Add(tier.LongestWait)})
	s.unready("database", "the disk of PostgreSQL is full", "give it space")
	s.showsReady("database", 0)
	refused.Store(last)
	s.readyAgain()
}

// TestWhoUsesATableIsNamed to who waits for the migration.
func TestWhoUsesATableIsNamed(t *testing.T) {
	t.Parallel()
	const user = "session 7 of ann (pg_dump)"
	err := PostgresTrouble(&config.Settings{}, fmt.Errorf("035_next.sql: %w; in use by %s",
		&pgconn.PgError{Code: "55P03", Message: "canceling statement due to lock timeout"}, user))
	if !strings.Contains(err.Error(), user) {
		t.Error(err)
	}
}

// TestBrokersThatAreAwayAreOneWarning: three lanes and both flows of the publisher fail, with one
// warning.
func TestBrokersThatAreAwayAreOneWarning(t *testing.T) {
	t.Parallel()
	folder, log := t.TempDir(), &journal{}
	kept := []kfake.Opt{
		kfake.DataDir(folder), kfake.SyncWrites(), kfake.Ports(tier.FreePort(t)),
	}
	s := newStageWith(t, slowTimeoutChannel,
		func(o *Options) { o.Log = zerolog.New(log).Level(zerolog.InfoLevel) }, kept)
	s.publish(20)
	s.settled()
	s.ready()
	s.broker.Close()
	s.unready("kafka", "no Kafka broker answers", "DISPATCHER_KAFKA_BROKERS")
	s.showsReady("kafka", 0)
	s.startBroker(kept...)
	s.until("that they are back", func() bool { return log.holds("info", "Kafka is back after ") })
	s.publish(20)
	s.settled()
	s.ready()
	s.showsReady("kafka", 1)
	log.warned(t, `"what":"Kafka"`, "no Kafka broker", "DISPATCHER_KAFKA_BROKERS")
}

// TestAProviderThatIsAwayIsOneWarning: the bind ends, and the next submits open the breaker.
func TestAProviderThatIsAwayIsOneWarning(t *testing.T) {
	t.Parallel()
	log := &journal{}
	document := strings.ReplaceAll(
		slowTimeoutChannel,
		"{{ONE}}",
		`{provider: smpp, settings: {address: "ADDRESS", system_id: me, reconnect_min: 50ms, `+
			`reconnect_max: 100ms}}`,
	)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(tier.FreePort(t)))
	carrier, err := smpptest.Start(smpptest.Config{Log: -1, Addr: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(carrier.Close)
	s := newStageWith(t, strings.ReplaceAll(document, "ADDRESS", address),
		func(o *Options) { o.Log = zerolog.New(log).Level(zerolog.InfoLevel) }, nil)
	s.ready()
	carrier.Close()
	s.unready("channels", "no enabled channel can send", "conditions of the channels")
	_, body := s.page("/readyz")
	if c := body.failing()["channel a"]; c.Vital || c.Detail != "unbound" ||
		!strings.Contains(c.Fix, "made again by itself") {
		t.Errorf("got %+v", c)
	}
	s.publish(5)
	again, err := smpptest.Start(smpptest.Config{Log: -1, Addr: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	s.carriers["ONE"] = again
	s.until("that it is back", func() bool { return log.holds("info", "channel a is back after ") })
	s.settled()
	s.ready()
	log.warned(t, `"what":"channel a"`, "no SMPP bind that takes messages")
}

// TestAProcessIsAliveWhileItWaitsForItsDatabase: a liveness probe must not kill it while it starts.
func TestAProcessIsAliveWhileItWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	log := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Start(ctx, Options{Settings: config.Settings{
			PostgresURL: "postgres://me@127.0.0.1:1/none", PostgresMaxConns: 2,
			Listen: "127.0.0.1:0", ShutdownTimeout: time.Second,
		}, Log: zerolog.New(log)})
		ended <- err
	}()
	var url []string
	s := &stage{t: t}
	s.until("the admin server to listen and the database to be missed", func() bool {
		url = regexp.MustCompile(`"url":"([^"]+)","message":"admin server is listening"`).
			FindStringSubmatch(strings.Join(log.lines("info"), ""))
		return url != nil && len(log.lines("debug")) >= 3
	})
	if status, body := pageOf(t, url[1]+"/healthz"); status != http.StatusOK ||
		body.Status != "alive" {
		t.Errorf("/healthz answers %d %q", status, body.Status)
	}
	status, body := pageOf(t, url[1]+"/readyz")
	failing := body.failing()
	for name, detail := range map[string]string{
		"database": "has not been connected to yet", "routing": "no routing is loaded yet",
		"kafka": "not read yet", "channels": "no channel is connected yet",
	} {
		if c := failing[name]; !strings.Contains(c.Detail, detail) || c.Fix == "" ||
			c.Since == nil {
			t.Errorf("%s: got %+v", name, c)
		}
	}
	if status != http.StatusServiceUnavailable || body.Ready {
		t.Errorf("/readyz answers %d", status)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the process started without its database")
	}
	log.warned(
		t,
		"PostgreSQL (DISPATCHER_POSTGRES_URL) cannot be used yet, trying again: PostgreSQL at "+
			"127.0.0.1:1",
		"connection refused",
	)
}

// TestAKafkaClientLogsOnlyAtDebugLevel: whatever level the client gives its lines.
func TestAKafkaClientLogsOnlyAtDebugLevel(t *testing.T) {
	t.Parallel()
	for level, want := range map[zerolog.Level]int{zerolog.DebugLevel: 1, zerolog.InfoLevel: 0} {
		log := &journal{}
		l := kafkaLog{zerolog.New(log).Level(level)}
		if l.Level() >= kgo.LogLevelError {
			l.Log(kgo.LogLevelError, "unable to dial", "addr", "127.0.0.1:9092", "err",
				errors.New("refused"))
		}
		if got := log.lines("debug"); len(got) != want ||
			want > 0 &&
				!strings.Contains(
					got[0],
					`"addr":"127.0.0.1:9092","err":"refused","message":"unable to dial"`,
				) {
			t.Errorf("level %v: %v", level, got)
		}
		if n := len(log.lines("warn")) + len(log.lines("error")); n > 0 {
			t.Errorf("%d lines above", n)
		}
	}
}
