package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/config/tier"
)

// crashFolder is the variable with the folder in which the child of
// TestAcknowledgedRecordsSurviveAKill runs.
const crashFolder = "EMBEDDED_TEST_CRASH_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(crashFolder); folder != "" {
		if err := serveUntilKilled(folder); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, cfg embedded.KafkaConfig) *embedded.Kafka {
	t.Helper()
	k, err := embedded.StartKafka(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func connect(t *testing.T, address string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(
		append(options, kgo.SeedBrokers(address), kgo.MetadataMinAge(100*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func produce(t *testing.T, client *kgo.Client, topic string, from, to int) {
	t.Helper()
	var records []*kgo.Record
	for i := from; i < to; i++ {
		records = append(records,
			&kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// count reads a topic from its start until it has seen n distinct values.
func count(t *testing.T, address, topic string, n int) {
	t.Helper()
	client := connect(t, address, kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	ctx, stop := context.WithTimeout(t.Context(), tier.LongestWait)
	defer stop()
	seen := map[string]bool{}
	for len(seen) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d records: %v", len(seen), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = true })
	}
}

func TestTopicsHaveFourPartitionsByDefault(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[int]embedded.KafkaConfig{
		4: {Folder: t.TempDir(), Topics: []string{"sms.otp", "sms.bulk"}},
		3: {Folder: t.TempDir(), Topics: []string{"sms.otp", "sms.bulk"}, Partitions: 3},
	} {
		k := start(t, cfg)
		topics, err := kadm.NewClient(connect(t, k.Address())).ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range cfg.Topics {
			if got := len(topics[name].Partitions); got != want {
				t.Errorf("%s has %d partitions, want %d", name, got, want)
			}
		}
	}
}

func TestRecordsTopicsAndOffsetsSurviveARestart(t *testing.T) {
	t.Parallel()
	cfg := embedded.KafkaConfig{
		Folder: t.TempDir(), Topics: []string{"sms.otp"}, Port: tier.FreePort(t),
	}
	first, err := embedded.StartKafka(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, first.Address())
	produce(t, client, "sms.otp", 0, 500)
	offsets := kadm.Offsets{}
	offsets.AddOffset("sms.otp", 0, 7, -1)
	if err := kadm.NewClient(client).CommitAllOffsets(t.Context(), "dispatcher", offsets); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	cfg.Topics = append(cfg.Topics, "sms.added")
	second := start(t, cfg)
	if second.Address() != first.Address() {
		t.Errorf("moved from %s to %s", first.Address(), second.Address())
	}
	produce(t, client, "sms.otp", 500, 600) // an existing client continues
	produce(t, client, "sms.added", 0, 1)
	count(t, second.Address(), "sms.otp", 600)
	got, err := kadm.NewClient(client).FetchOffsets(t.Context(), "dispatcher")
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := got.Lookup("sms.otp", 0); !ok || at.At != 7 {
		t.Errorf("committed offset is %+v, want 7", at)
	}
}

// TestAcknowledgedRecordsSurviveAKill runs the broker in a child process and kills it as soon as
// its records are acknowledged.
func TestAcknowledgedRecordsSurviveAKill(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashFolder+"="+folder)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(address, "127.0.0.1:") {
		t.Fatal(address)
	}
	produce(t, connect(t, strings.TrimSpace(address)), "sms.otp", 0, 2000)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // returns that it was killed

	k := start(t, embedded.KafkaConfig{Folder: folder})
	count(t, k.Address(), "sms.otp", 2000)
}

func serveUntilKilled(folder string) error {
	k, err := embedded.StartKafka(context.Background(),
		embedded.KafkaConfig{Folder: folder, Topics: []string{"sms.otp"}})
	if err != nil {
		return err
	}
	fmt.Println(k.Address())
	select {}
}

func TestTwoProcessesCannotShareAFolder(t *testing.T) {
	t.Parallel()
	cfg := embedded.KafkaConfig{Folder: t.TempDir()}
	first, err := embedded.StartKafka(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = embedded.StartKafka(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), cfg.Folder+" is in use") {
		t.Fatalf("second start: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, cfg) // the lock of the folder is released
}

func TestATakenPortIsNamed(t *testing.T) {
	t.Parallel()
	first := start(t, embedded.KafkaConfig{Folder: t.TempDir()})
	cfg := embedded.KafkaConfig{Folder: t.TempDir(), Port: port(t, first)}
	_, err := embedded.StartKafka(t.Context(), cfg)
	if err == nil ||
		!strings.Contains(
			err.Error(),
			fmt.Sprintf(
				"port %d of the embedded Kafka is taken: stop what listens there or choose "+
					"another one with --kafka-port",
				cfg.Port,
			),
		) {
		t.Fatal(err)
	}
	cfg.Port = 0
	start(t, cfg) // the failed start released the folder
}

// BenchmarkProduceToDisk waits for a thousand acknowledgements at a time.
func BenchmarkProduceToDisk(b *testing.B) {
	k, err := embedded.StartKafka(b.Context(),
		embedded.KafkaConfig{Folder: b.TempDir(), Topics: []string{"t"}})
	if err != nil {
		b.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Address()),
		kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}
	const batch = 1000
	records := make([]*kgo.Record, batch)
	for b.Loop() {
		for i := range records {
			records[i] = &kgo.Record{Topic: "t", Value: make([]byte, 300)}
		}
		if err := client.ProduceSync(b.Context(), records...).FirstErr(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "records/s")
	client.Close()
	if err := k.Close(); err != nil {
		b.Fatal(err)
	}
}

// port is where a broker listens.
func port(t *testing.T, k *embedded.Kafka) int {
	t.Helper()
	_, text, err := net.SplitHostPort(k.Address())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
