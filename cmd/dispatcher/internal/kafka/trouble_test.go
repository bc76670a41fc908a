package kafka_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"dispatcher/cmd/dispatcher/internal/decide"
	"dispatcher/cmd/dispatcher/internal/embedded/kafkatest"
	"dispatcher/cmd/dispatcher/internal/kafka"
	"dispatcher/config/tier"
)

func TestABrokerThatComesBackIsReadFromWithoutARestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	kept := []kfake.Opt{
		kfake.DataDir(folder), kfake.SyncWrites(), kfake.Ports(tier.FreePort(t)),
	}
	c, s, log := cluster(t, kept...), newStore(), &journal{}
	cfg := config(c, s)
	cfg.Log = zerolog.New(log)
	produce(t, c, "sms.otp", 200)
	p := runConsumer(t, cfg)
	s.awaitDistinct(t, 200)
	p.awaitState(t, func(lane kafka.LaneState) bool { return lane.Joined && lane.Away == "" })
	c.Close()
	log.await(t, "no Kafka broker answers")
	p.awaitState(
		t,
		func(lane kafka.LaneState) bool {
			return strings.Contains(lane.Away, "no Kafka broker answers")
		},
	)
	c = cluster(t, kept...)
	produce(t, c, "sms.otp", 300)
	s.awaitDistinct(t, 500)
	log.await(t, "Kafka is back after")
	awaitCommitted(t, c, "sms.otp", 500)
	if n := strings.Count(log.String(), `"level":"warn"`); n != 1 {
		t.Errorf("%d warnings for one outage:\n%s", n, log)
	}
}

// awaitState waits until so returns true for all lanes.
func (p *process) awaitState(t *testing.T, so func(kafka.LaneState) bool) {
	t.Helper()
	var state []kafka.LaneState
	await(t, "the state of all lanes", func() bool {
		state = p.consumer.State()
		return len(state) == len(lanes) &&
			!slices.ContainsFunc(state, func(lane kafka.LaneState) bool { return !so(lane) })
	}, func() any { return state })
}

func TestConsumerStopsWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	c, s := cluster(t), newStore()
	cfg := config(c, s)
	// Only the stop commits.
	cfg.Client = append(cfg.Client, kgo.AutoCommitInterval(testTimeout))
	produce(t, c, "sms.otp", 200)
	p := runConsumer(t, cfg)
	s.awaitDistinct(t, 200)
	c.Close()
	began := time.Now()
	p.stop(t)
	if took := time.Since(began); took > 30*time.Second { // within seconds on an idle machine
		t.Errorf("took %v", took)
	}
}

func TestAMissingTopicIsNamedAndReadOnceItIsThere(t *testing.T) {
	t.Parallel()
	c, s, log := cluster(t), newStore(), &journal{}
	cfg := config(c, s)
	cfg.Lanes = []kafka.Lane{{Name: "otp", Topics: []string{"sms.otp", "sms.late"}}}
	cfg.Log = zerolog.New(log)
	runConsumer(t, cfg)
	log.await(t, "topic sms.late does not exist; create it")
	produce(t, c, "sms.otp", 10)
	s.awaitDistinct(t, 10) // the other topic is read meanwhile
	create(t, c, "sms.late")
	produce(t, c, "sms.late", 10)
	s.awaitDistinct(t, 20)
}

func TestSASLMechanismsLetInAndAWrongPasswordIsSaid(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			c := cluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "shop", "correct-horse"))
			connection := kafka.Connection{
				Brokers:   c.ListenAddrs(),
				Mechanism: mechanism,
				User:      "shop",
				Password:  "correct-horse",
			}
			options, err := connection.Options()
			if err != nil {
				t.Fatal(err)
			}
			s := newStore()
			cfg := config(c, s)
			cfg.Client = options
			runConsumer(t, cfg)
			publish(t, client(t, c, options...), "sms.otp", 10)
			s.awaitDistinct(t, 10)

			connection.Password = "battery-staple"
			if cfg.Client, err = connection.Options(); err != nil {
				t.Fatal(err)
			}
			log := &journal{}
			cfg.Log = zerolog.New(log)
			runConsumer(t, cfg)
			log.await(
				t,
				"no Kafka broker answers; check that they run, DISPATCHER_KAFKA_BROKERS and the "+
					"TLS and SASL settings",
			)
			if strings.Contains(log.String(), connection.Password) {
				t.Error("the password is in the log")
			}
		})
	}
}

func TestConnectionRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]kafka.Connection{
		`"GSSAPI" is not one of PLAIN`:       {Mechanism: "GSSAPI", User: "u", Password: "p"},
		"SASL PLAIN needs a user and a pass": {Mechanism: "PLAIN", User: "u"},
	} {
		if _, err := c.Options(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestNothingThatIsLoggedHoldsANumberOrAText causes every log line of the package.
func TestNothingThatIsLoggedHoldsANumberOrAText(t *testing.T) {
	t.Parallel()
	c, s, log := cluster(t), newStore(), &journal{}
	kafkatest.Refuse(c, kmsg.OffsetCommit, kafkatest.Always, kerr.UnknownServerError)
	kafkatest.Cut(c, kmsg.Fetch, 3)
	cfg := config(c, s)
	cfg.Log = zerolog.New(log)
	produce(t, c, "sms.otp", 100)
	p := runConsumer(t, cfg)
	s.await(t, "jobs", func(jobs []decide.Job) bool { return len(jobs) >= 100 })
	log.await(t, "offsets not committed")
	p.stop(t)
	for _, secret := range []string{"7700900123", "hello"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is in the log:\n%s", secret, log)
		}
	}
}
