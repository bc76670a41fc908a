package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config/tier"
	"dispatcher/provider/smpp/smpptest"
)

// realKafkaFolder is the variable with the folder of a real broker, fetched by ".ci/kafka/kafka.sh
// fetch". If it is set, TestBrokerKilledMidStream uses that broker.
const realKafkaFolder = "E2E_KAFKA_DIR"

// stoppableBroker is a Kafka that a test can stop without warning and start again with its data.
type stoppableBroker interface {
	address() string
	kill()
	restart()
}

// startBroker starts a real broker if one was fetched, else the embedded one.
func startBroker(t testing.TB) stoppableBroker {
	t.Helper()
	if folder := os.Getenv(realKafkaFolder); folder != "" {
		return startJavaBroker(t, folder)
	}
	b := &embeddedBroker{t: t, folder: t.TempDir(), port: tier.FreePort(t)}
	b.restart()
	t.Cleanup(b.kill)
	return b
}

// embeddedBroker runs in the test process. It cannot be killed, only closed.
type embeddedBroker struct {
	t      testing.TB
	folder string
	port   int
	kafka  *embedded.Kafka
}

func (b *embeddedBroker) address() string { return b.kafka.Address() }

func (b *embeddedBroker) kill() {
	if err := b.kafka.Close(); err != nil {
		b.t.Error(err)
	}
}

func (b *embeddedBroker) restart() {
	b.t.Helper()
	var err error
	b.kafka, err = embedded.StartKafka(b.t.Context(),
		embedded.KafkaConfig{Folder: b.folder, Port: b.port})
	if err != nil {
		b.t.Fatal(err)
	}
}

// javaBroker is a real Apache Kafka, run by .ci/kafka/kafka.sh.
type javaBroker struct {
	t      testing.TB
	folder string
	port   string
}

// startJavaBroker creates a folder for the data beside the fetched programs.
func startJavaBroker(t testing.TB, fetched string) *javaBroker {
	t.Helper()
	// In the folder of the programs, which kafka-e2e cleans up.
	folder, err := os.MkdirTemp(fetched, "e2e-") //nolint:usetesting // See above.
	if err == nil {
		err = os.Symlink(filepath.Join(fetched, "libs"), filepath.Join(folder, "libs"))
	}
	if err != nil {
		t.Fatal(err)
	}
	// The controller of a real broker uses the next port.
	b := &javaBroker{t: t, folder: folder, port: strconv.Itoa(tier.FreePort(t))}
	t.Cleanup(func() {
		b.do("kill")
		_ = os.RemoveAll(folder)
	})
	b.do("start", b.port)
	return b
}

func (b *javaBroker) address() string { return "127.0.0.1:" + b.port }
func (b *javaBroker) kill()           { b.do("kill") }
func (b *javaBroker) restart()        { b.do("restart") }

func (b *javaBroker) do(command string, args ...string) {
	b.t.Helper()
	script := filepath.Join("..", "..", ".ci", "kafka", "kafka.sh")
	out, err := exec.Command(script,
		append([]string{command, b.folder}, args...)...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s %s: %v: %s", script, command, err, out)
	}
}

// TestBrokerKilledMidStream: the broker dies without warning while messages are published and sent,
// and is started again. Every acknowledged message is sent once.
func TestBrokerKilledMidStream(t *testing.T) {
	t.Parallel()
	n := tier.Size(240, 6_000)
	b := startBroker(t)
	t.Logf("the broker is a %T", b)
	rate := n / tier.Size(4, 5)
	s := newStage(t, stageConfig{
		kafka: b.address(),
		channels: threeChannels(limitPerSecond(rate/4), limitPerSecond(rate*15/100),
			limitPerSecond(rate*60/100)),
	})
	processes := s.runAll(2)
	s.joined(len(processes))
	all := messages("broker", n)
	ids := s.publish("bulk", all[:n/2])
	tier.Within(t, stepTimeout, "a tenth of the messages is submitted", func() bool {
		return s.submitted() > n/10
	})

	b.kill()
	rest := make(chan error, 1)
	go func() { rest <- s.publishWhenAble("bulk", all[n/2:]) }()
	await(t.Context(), 2*time.Second)
	b.restart()
	if err := <-rest; err != nil {
		t.Fatal(err)
	}
	for i := range all[n/2:] {
		ids = append(ids, all[n/2+i].ID)
	}
	s.settled(n)
	s.committed("bulk")

	s.checkNoneTwice()
	s.checkAllArrived(ids)
	s.checkLimits()
	s.checkStatuses()
	if tally := s.tally(); tally["accepted"] != n {
		t.Errorf("of %d messages not all are accepted: %v", n, tally)
	}
	for _, p := range processes {
		if !p.running() {
			t.Errorf("%s ended", p.name)
		}
	}
}

// TestWhatIsStoredGoesOutWithoutKafka: the broker is away. Messages that are scheduled, wait for a
// limit or were throttled by a carrier are still sent: by the process that has lost the broker, and
// by one that starts without it. The scheduled messages become due meanwhile. The status events are
// published when the broker is back.
func TestWhatIsStoredGoesOutWithoutKafka(t *testing.T) {
	t.Parallel()
	const each = 20
	b := startBroker(t)
	s := newStage(t, stageConfig{kafka: b.address(), channels: []channel{
		{name: "good", weight: "100", behaviour: quick(), document: limitPerSecond(each / 2)},
	}})
	s.carriers["good"].SetBehaviour(smpptest.Behaviour{Throttle: true})
	p := s.run("before")
	s.joined(1)
	waiting, scheduled := messages("waiting", each), messages("scheduled", each)
	for i := range scheduled {
		scheduled[i].SendAt = time.Now().Add(time.Hour)
	}
	ids := append(s.publish("bulk", waiting), s.publish("bulk", scheduled)...)
	const throttled = `exists (select from audit.attempts a
		where a.message_id = m.id and a.outcome = 'throttled')`
	tier.Within(t, stepTimeout, "messages are scheduled, throttled and wait for the limit", func() bool {
		return s.count(`select count(*) from audit.messages where state = 'scheduled'`) == each &&
			s.count(`select count(*) from audit.messages m
				where state in ('waiting', 'retry') and `+throttled) > 0 &&
			s.count(`select count(*) from audit.messages m
				where state = 'waiting' and not `+throttled) > 0
	})

	b.kill()
	s.carriers["good"].SetBehaviour(quick())
	const release = `update dispatcher.messages set next_at = now() where seq in
		(select seq from dispatcher.messages where state = 'scheduled' order by seq limit `
	s.execute(release + strconv.Itoa(each/2) + `)`)
	tier.Within(t, stepTimeout, "the process that has lost Kafka sends", func() bool {
		return s.count(`select count(*) from audit.messages where state = 'accepted'`) == each+each/2
	})
	p.stop(t)
	s.execute(release + strconv.Itoa(each) + `)`)
	s.run("after")
	s.settled(2 * each)
	s.checkAllArrived(ids)
	s.checkNoneTwice()

	b.restart()
	s.checkStatuses()
}
