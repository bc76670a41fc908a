package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"dispatcher/cmd/dispatcher/internal/app"
	"dispatcher/cmd/dispatcher/internal/consume"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider/smpp/smpptest"
)

// rig is what both sides of a comparison run against: one Kafka, one PostgreSQL and
// three carriers, all in the measuring process. What is measured runs in a process of its own.
type rig struct {
	folder   string // removed by close
	private  *app.Private
	carriers []*smpptest.Server
	meter    atomic.Pointer[meter] // of the run under way
}

// newRig starts the servers; step is told so.
func newRig(ctx context.Context, step func(what string)) (*rig, error) {
	folder, err := os.MkdirTemp("", "dispatcher-bench-")
	if err != nil {
		return nil, err
	}
	step("starting a private PostgreSQL, Kafka and three carriers")
	r := &rig{folder: folder}
	r.meter.Store(&meter{})
	for range 3 {
		server, err := smpptest.Start(smpptest.Config{OnSubmit: func(s smpptest.Submit) { r.meter.Load().add(s.Text, s.At) }})
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.carriers = append(r.carriers, server)
	}
	r.private, err = app.StartPrivate(ctx, app.PrivateConfig{Folder: filepath.Join(folder, "servers"), Topics: []string{"sms.status", "sms.dead"}, UnsyncedKafka: true})
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rig) close() error {
	defer os.RemoveAll(r.folder) //nolint:errcheck // a leftover in the temporary folder is harmless
	for _, server := range r.carriers {
		server.Close()
	}
	if r.private == nil {
		return nil
	}
	return r.private.Stop()
}

// weights are the shares of the three carriers, in percent.
type weights [3]int

// routing is the document of one run: three carriers under four limits each, none of which is ever
// reached, reading a topic of its own. timeout is after how long a submit counts as unanswered.
func (r *rig) routing(topic string, w weights, timeout time.Duration) (path string, err error) {
	var b strings.Builder
	b.WriteString("timezone: Europe/London\nchannels:\n")
	for i, server := range r.carriers {
		fmt.Fprintf(&b, "  %c:\n    provider: smpp\n    settings: {address: %q, system_id: bench, window: 200, response_timeout: %s}\n", 'a'+i, server.Addr(), timeout)
		b.WriteString("    limits: [{window: 1s, max: 1000000}, {window: 1m, max: 10000000}, {window: 1h, max: 100000000}, {window: 1d, max: 1000000000}]\n")
		b.WriteString("    price: {currency: EUR, default: \"0.03\"}\n    receipts: none\n") // the floor writes none either
	}
	fmt.Fprintf(&b, "routes:\n  - {name: default, weights: {a: %d, b: %d, c: %d}, fallback: load_ratio}\n", w[0], w[1], w[2])
	fmt.Fprintf(&b, "lanes:\n  bulk: {topics: [%s], ttl: 72h}\n", topic)
	path = filepath.Join(r.folder, topic+".yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// database makes an empty database, so that each run begins with empty tables.
func (r *rig) database(ctx context.Context, name string) (url string, err error) {
	conn, err := pgx.Connect(ctx, r.private.Postgres.URL())
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	return r.private.Postgres.URLOf(name), nil
}

// environment is what a measured process is told.
func (r *rig) environment(url, routing, group string) []string {
	return []string{
		"DISPATCHER_KAFKA_BROKERS=" + r.private.Kafka.Address(),
		"DISPATCHER_KAFKA_GROUP=" + group,
		"DISPATCHER_POSTGRES_URL=" + url,
		"DISPATCHER_ROUTING_FILE=" + routing,
		"DISPATCHER_DRAW_KEY_FILE=" + filepath.Join(r.folder, "servers", "draw.key"),
		"DISPATCHER_LISTEN=127.0.0.1:0", "DISPATCHER_RECEIPTS_LISTEN=127.0.0.1:0",
		"DISPATCHER_LOG_LEVEL=warn",
		"DISPATCHER_LOG_FORMAT=json",
	}
}

// messageID is the id of a message by its topic and number.
func messageID(topic string, number int) string { return topic + "-" + strconv.Itoa(number) }

// produce writes the messages with the numbers from from to below to into a topic, which it makes with the first one; pause spreads
// them, 0 writes at full speed. The text of a message is its number and the time it was produced.
func (r *rig) produce(ctx context.Context, topic string, from, to int, pause time.Duration) error {
	options, err := consume.Connection{Brokers: []string{r.private.Kafka.Address()}}.Options()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(options, kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0))...)
	if err != nil {
		return err
	}
	defer client.Close()
	if from == 0 {
		if _, err := kadm.NewClient(client).CreateTopic(ctx, 12, 1, nil, topic); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	var failed atomic.Pointer[error]
	began := time.Now()
	for i := from; i < to; i++ {
		if pause > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(i-from) * pause)))
		}
		m := envelope.Message{
			ID: messageID(topic, i), To: fmt.Sprintf("+4477009%05d", i%100_000), From: "BENCH",
			Text: strconv.Itoa(i) + " " + strconv.FormatInt(time.Now().UnixNano(), 10) + " is your code. It is valid for ten minutes.",
		}
		client.Produce(ctx, &kgo.Record{Key: []byte(m.ID), Value: m.Append(nil)}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("produce: %w", *err)
	}
	return nil
}
