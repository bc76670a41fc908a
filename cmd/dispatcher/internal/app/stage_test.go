package app

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/config"
	"dispatcher/config/tier"
	"dispatcher/ledger"
	"dispatcher/ledger/ledgertest"
	"dispatcher/provider/smpp/smpptest"
	"dispatcher/selector"
)

// stage is a whole process with a broker, a database and scripted carriers.
type stage struct {
	t        *testing.T
	app      *App
	broker   *kfake.Cluster
	producer *kgo.Client
	carriers map[string]*smpptest.Server
	sent     int
}

// newStage starts the process. {NAME} in the document stands for the address of the carrier of that
// name, which is started on its first use. At the end of the test the process is stopped, and must
// return no error. secrets is the folder of the files that the document names.
func newStage(t *testing.T, document string, secrets ...string) *stage {
	t.Helper()
	return newStageWith(t, document,
		func(o *Options) { o.Settings.SecretsDir = strings.Join(secrets, "") }, nil)
}

// newStageWith is newStage with other options of the process, which may be nil, and of its broker.
func newStageWith(t *testing.T, document string, change func(*Options), more []kfake.Opt) *stage {
	t.Helper()
	s := &stage{t: t, carriers: map[string]*smpptest.Server{}}
	broker := s.startBroker(more...)
	var err error
	t.Cleanup(func() {
		for _, c := range s.carriers {
			c.Close()
		}
	})
	if s.producer, err = kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...),
		kgo.DefaultProduceTopic("sms.transactional")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.producer.Close)
	document = s.address(document)
	options := Options{
		Settings: config.Settings{
			KafkaBrokers: broker.ListenAddrs(), KafkaGroup: "dispatcher", StatusTopic: "sms.status",
			DeadTopic: "sms.dead", InboundTopic: "sms.inbound",
			PostgresURL: ledgertest.URL(
				t,
			), PostgresMaxConns: 3, Listen: "127.0.0.1:0", ReceiptsListen: "127.0.0.1:0",
			Region:        "test",
			DefaultRegion: "GB",
			MaxUnsettled:  500, Batch: 500, SendTimeout: 10 * time.Second,
			ShutdownTimeout: 20 * time.Second, DeadAfter: 10 * time.Second,
		},
		Keys: []selector.Key{
			{1},
		}, Log: zerolog.Nop(), Version: "test", SteerEvery: 20 * time.Millisecond,
		Routing: func() (string, []byte, error) { return "test", []byte(document), nil },
	}
	if change != nil {
		change(&options)
	}
	if s.app, err = Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.app.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// startBroker starts the broker of the stage.
func (s *stage) startBroker(more ...kfake.Opt) *kfake.Cluster {
	s.t.Helper()
	broker, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(
			1,
		), kfake.SeedTopics(1, "sms.otp", "sms.transactional", "sms.bulk", "sms.status", "sms.dead",
			"sms.inbound"),
	}, more...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(broker.Close)
	s.broker = broker
	return broker
}

// sendable waits until each of these channels can send.
func (s *stage) sendable(channels ...string) {
	s.t.Helper()
	s.until("the channels can send", func() bool {
		_, values := s.scraped()
		return !slices.ContainsFunc(channels, func(name string) bool {
			return values[fmt.Sprintf(`dispatcher_dispatch_channel_ready{channel=%q}`, name)] != 1
		})
	})
}

// carrier returns the scripted SMSC with a name.
func (s *stage) carrier(name string) *smpptest.Server {
	s.t.Helper()
	if s.carriers[name] == nil {
		c, err := smpptest.Start(
			smpptest.Config{Log: -1, Behaviour: smpptest.Behaviour{Latency: 5 * time.Millisecond}},
		)
		if err != nil {
			s.t.Fatal(err)
		}
		s.carriers[name] = c
	}
	return s.carriers[name]
}

// address replaces the names of carriers by their addresses.
func (s *stage) address(document string) string {
	for _, name := range []string{"ONE", "TWO", "THREE"} {
		if strings.Contains(document, "{"+name+"}") {
			document = strings.ReplaceAll(
				document,
				"{"+name+"}",
				`provider: smpp, settings: {address: "`+s.carrier(name).
					Addr()+
					`", system_id: me, window: 20}`,
			)
		}
	}
	return document
}

// apply applies another document, as a command does.
func (s *stage) apply(document string) int64 {
	s.t.Helper()
	document = s.address(document)
	doc, err := config.ParseDocument("test", []byte(document))
	if err != nil {
		s.t.Fatal(err)
	}
	version, err := s.app.Ledger().
		Routing.Apply(s.t.Context(), NewRouting(doc, nil, "test", "test", nil))
	if err != nil {
		s.t.Fatal(err)
	}
	return version
}

// publish sends n messages.
func (s *stage) publish(n int) {
	s.t.Helper()
	var failed atomic.Pointer[error]
	for range n {
		s.sent++
		value := fmt.Sprintf(
			`{"id":"m-%05d","to":"+447700900%03d","text":"Hello [m-%05d]",`+
				`"labels":{"tier":"gold"}}`, s.sent, s.sent%1000, s.sent,
		)
		s.producer.Produce(
			s.t.Context(),
			&kgo.Record{Value: []byte(value)},
			func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
			},
		)
	}
	if err := s.producer.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if err := failed.Load(); err != nil {
		s.t.Fatal(*err)
	}
}

// until polls for at most tier.LongestWait.
func (s *stage) until(what string, reached func() bool) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() && s.app != nil {
			s.t.Logf("%+v", s.totals())
		}
	}()
	tier.Eventually(s.t, what, reached)
}

func (s *stage) totals() ledger.Totals {
	s.t.Helper()
	totals, err := s.app.Ledger().Reports.Totals(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return totals
}

// settled waits until every message sent so far was accepted, and checks in the carriers' logs that
// each was submitted once, to one of them.
func (s *stage) settled() {
	s.t.Helper()
	s.until("all messages accepted",
		func() bool { return s.totals().Messages[ledger.Accepted] == int64(s.sent) })
	seen := map[string]string{}
	for name, carrier := range s.carriers {
		for _, submit := range carrier.Submits() {
			if !submit.Accepted() {
				continue
			}
			if other, twice := seen[submit.Text]; twice {
				s.t.Errorf("message %s was submitted to %s and to %s", submit.Text, other, name)
			}
			seen[submit.Text] = name
		}
	}
	if len(seen) != s.sent {
		s.t.Errorf("%d of %d messages were submitted", len(seen), s.sent)
	}
}

// record returns the full record of a message.
func (s *stage) record(id string) ledger.Record {
	s.t.Helper()
	r, err := s.app.Ledger().Messages.Record(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}
