package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/config/tier"
	"dispatcher/ledger/ledgertest"
	"dispatcher/ledger/migrations"
	"dispatcher/provider/smpp/smpptest"
)

// stageKey is the draw key of every stage. The key and the ids of the messages are fixed, so the
// draws are the same in every run.
const stageKey = "5d1c8f0b7a6e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0918273645f0"

// channel is a channel of a stage and the carrier behind it.
type channel struct {
	name      string
	weight    string
	behaviour smpptest.Behaviour
	document  string // further keys of the channel in the routing document
	settings  string // further settings of its connection
	down      bool   // nothing listens on its address
	away      distance
}

// Timeouts of a story in which nothing dies and no answer is lost. They are long enough for a
// machine that stalls for seconds.
const (
	patient          = "response_timeout: 2m"
	patientSend      = "2m"
	patientDeadAfter = "1m"
	patientStop      = "2m30s" // also of the others: it only bounds a stop
)

// hasty is the SEND_TIMEOUT of a story whose processes die with attempts under way, which are
// recovered after it. A story that sets one gets no patient timeouts.
const hasty = "15s"

// threeChannels returns a, b and c with the weights 25, 15 and 60, quick carriers and further keys
// of the routing document.
func threeChannels(a, b, c string) []channel {
	return []channel{
		{name: "a", weight: "25", behaviour: quick(), document: a},
		{name: "b", weight: "15", behaviour: quick(), document: b},
		{name: "c", weight: "60", behaviour: quick(), document: c},
	}
}

// stageConfig configures a stage. The zero value stands for three quick channels and a broker and a
// database of its own.
type stageConfig struct {
	channels []channel
	lanes    string            // the lanes of the routing document; %s is the topic prefix
	limits   string            // those over all channels
	match    string            // of the only route; empty for everything
	route    string            // further keys of the only route
	kafka    string            // host:port of a broker
	postgres string            // URL of a database
	settings map[string]string // of the dispatcher; see hasty
}

// patient reports whether the story has no SEND_TIMEOUT of its own.
func (p *stageConfig) patient() bool { return p.settings["SEND_TIMEOUT"] == "" }

// stage is a broker, a database, carriers, and the dispatcher processes between them.
type stage struct {
	t        testing.TB
	kafka    string
	client   *kgo.Client
	postgres string
	folder   string
	prefix   string // of topics and groups
	carriers map[string]*smpptest.Server
	settings map[string]string
}

var stages atomic.Int64

// newStage creates everything but the processes.
func newStage(t testing.TB, p stageConfig) *stage {
	t.Helper()
	tier.OneWindow(t, 24*time.Hour)
	s := &stage{
		t: t, kafka: p.kafka, postgres: p.postgres, folder: t.TempDir(),
		carriers: map[string]*smpptest.Server{},
		prefix:   fmt.Sprintf("e2e-%d-%d", os.Getpid(), stages.Add(1)),
	}
	if s.kafka == "" {
		s.kafka = kafkaAddress(t)
	}
	login := s.postgres
	if s.postgres == "" {
		s.postgres = ledgertest.URL(t)
		keepConnection(t, s.postgres)
		login = ledgertest.As(migrations.RoleApp, s.postgres) // which owns nothing
	}
	checkThroughout(t, s.postgres)
	t.Cleanup(s.showAttempts)
	if p.channels == nil {
		p.channels = threeChannels("", "", "")
	}
	if p.lanes == "" {
		p.lanes = "  bulk: {topics: [%s.bulk], ttl: 24h}\n"
	}
	s.client = kafkaClient(t, s.kafka)
	createTopics(t, s.client, s.topic("otp"), s.topic("bulk"), s.topic("status"), s.topic("dead"))
	s.write("draw.key", stageKey+"\n")
	s.write("routing.yaml", s.routing(&p))
	s.settings = map[string]string{
		"KAFKA_BROKERS": s.kafka, "KAFKA_GROUP": s.prefix,
		"STATUS_TOPIC": s.topic("status"), "DEAD_TOPIC": s.topic("dead"),
		"INBOUND_TOPIC": s.topic("inbound"),
		"POSTGRES_URL":  login, "POSTGRES_MAX_CONNS": tier.Size("2", "4"),
		"ROUTING_FILE":  s.path("routing.yaml"),
		"DRAW_KEY_FILE": s.path("draw.key"), "SECRETS_DIR": s.folder,
		"DATA_DIR": t.TempDir(),
		"LISTEN":   "127.0.0.1:0", "RECEIPTS_LISTEN": "127.0.0.1:0",
		"DEAD_AFTER": "6s", "SHUTDOWN_TIMEOUT": patientStop, "LOG_LEVEL": "debug",
	}
	if p.patient() {
		s.settings["SEND_TIMEOUT"], s.settings["DEAD_AFTER"] = patientSend, patientDeadAfter
	}
	maps.Copy(s.settings, p.settings)
	return s
}

// bound waits until each carrier has as many binds as there are processes.
func (s *stage) bound(processes uint64) {
	s.t.Helper()
	tier.Within(s.t, stepTimeout, "every carrier is bound", func() bool {
		for _, c := range s.carriers {
			if c.Stats().Binds < processes {
				return false
			}
		}
		return true
	})
}

// showAttempts logs the last attempts in the ledger if the test has failed.
func (s *stage) showAttempts() {
	if !s.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout) // the test's has ended
	defer cancel()
	conn, err := pgx.Connect(ctx, s.postgres)
	if err != nil {
		s.t.Logf("the attempts cannot be shown: %v", err)
		return
	}
	defer conn.Close(ctx) //nolint:errcheck // Nothing depends on a clean end.
	rows, err := conn.Query(ctx, `
		select concat_ws(' ', m.id, m.state, 'attempt', a.attempt, a.channel, a.reason,
			a.outcome, a.provider_code, a.claimed_at, a.settled_at)
		from audit.messages m left join audit.attempts a on a.message_id = m.id
		order by a.claimed_at desc nulls first limit 40`)
	if err != nil {
		s.t.Logf("the attempts cannot be shown: %v", err)
		return
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.t.Logf("the last attempts, last first (%v):\n%s", err, strings.Join(all, "\n"))
}

// routing starts the carriers and writes the routing document.
func (s *stage) routing(p *stageConfig) string {
	s.t.Helper()
	var channels, weights []string
	for _, c := range p.channels {
		address := s.carrier(&c)
		if p.patient() && c.settings == "" {
			c.settings = patient
		}
		channels = append(channels,
			fmt.Sprintf("  %s: {provider: smpp, settings: {address: %q, system_id: e2e, window: "+
				"100, reconnect_min: 100ms, reconnect_max: 500ms%s}, price: {currency: GBP, "+
				"default: \"0.03\"}%s}\n",
				c.name, address, prefixed(", ", c.settings), prefixed(", ", c.document)))
		weights = append(weights, c.name+": "+c.weight)
	}
	return "timezone: Europe/London\nchannels:\n" + strings.Join(channels, "") +
		"routes:\n  - {name: default, match: {" + p.match + "}, weights: {" +
		strings.Join(weights, ", ") + "}" + prefixed(", ", p.route) + "}\n" +
		strings.TrimPrefix(prefixed("limits: ", p.limits)+"\n", "\n") + "lanes:\n" +
		strings.ReplaceAll(p.lanes, "%s", s.prefix)
}

// prefixed puts a prefix before a non-empty text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// carrier starts the carrier of a channel and returns its address.
func (s *stage) carrier(c *channel) string {
	s.t.Helper()
	if c.down {
		_, address := reserve(s.t)
		return address
	}
	carrier := startCarrier(s.t, c.behaviour)
	s.carriers[c.name] = carrier
	if c.away != (distance{}) {
		return c.away.open(s.t, carrier.Addr())
	}
	return carrier.Addr()
}

// path returns the path of a file in the folder that processes run in.
func (s *stage) path(name string) string { return filepath.Join(s.folder, name) }

func (s *stage) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) read(name string) string {
	s.t.Helper()
	raw, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

func (s *stage) topic(name string) string { return s.prefix + "." + name }

// run starts a dispatcher.
func (s *stage) run(name string) *process {
	s.t.Helper()
	return s.runWith(name, nil)
}

// runWith starts a dispatcher with further settings.
func (s *stage) runWith(name string, own map[string]string) *process {
	s.t.Helper()
	settings := maps.Clone(s.settings)
	maps.Copy(settings, own)
	return launch(s.t, name, s.folder, settings, "run")
}

// runAll starts n dispatchers and waits until all are up.
func (s *stage) runAll(n int) []*process {
	s.t.Helper()
	all := make([]*process, n)
	for i := range all {
		all[i] = s.run("dispatcher " + strconv.Itoa(i+1))
	}
	for _, p := range all {
		p.awaitOutput(s.t, "dispatcher is running")
	}
	return all
}

// publish sends the messages to a lane's topic and returns their ids.
func (s *stage) publish(lane string, messages []envelope.Message) (ids []string) {
	s.t.Helper()
	if err := s.publishWhenAble(lane, messages); err != nil {
		s.t.Fatal(err)
	}
	for i := range messages {
		ids = append(ids, messages[i].ID)
	}
	return ids
}

// publishWhenAble returns when the broker has acknowledged all messages, however long it is away.
// It may be called from any goroutine.
func (s *stage) publishWhenAble(lane string, messages []envelope.Message) error {
	records := make([]*kgo.Record, len(messages))
	for i := range messages {
		records[i] = record(s.topic(lane), messages[i].ID, messages[i].Append(nil))
	}
	return s.client.ProduceSync(s.t.Context(), records...).FirstErr()
}

// messages returns n messages, always the same ones for a story. Each has a unique number under an
// unassigned country code, and its id in its text. One in twenty has two segments, and one in
// thirty is not in the GSM alphabet.
func messages(story string, n int) []envelope.Message {
	all := make([]envelope.Message, n)
	for i := range all {
		id := fmt.Sprintf("%s-%06d", story, i)
		text := "[" + id + "] Your parcel arrives tomorrow."
		switch {
		case i%20 == 7:
			text += strings.Repeat(" Terms and conditions apply.", 5)
		case i%30 == 11:
			text += " Ευχαριστούμε!"
		}
		all[i] = envelope.Message{
			ID: id, To: fmt.Sprintf("+9997%07d", i), From: "E2E", Text: text, Tenant: "shop",
		}
	}
	return all
}
