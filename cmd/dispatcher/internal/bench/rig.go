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

	"dispatcher/cmd/dispatcher/internal/embedded"
	"dispatcher/cmd/dispatcher/internal/envelope"
	"dispatcher/provider/smpp/smpptest"
)

// rig is one Kafka, one PostgreSQL and three carriers, all in this process; both sides of a
// comparison use them. The measured program runs in a process of its own.
type rig struct {
	folder    string // removed by close
	servers   *embedded.Servers
	carriers  []*smpptest.Server
	receipts  bool                  // the carriers send one for each message
	processes int                   // number of dispatchers that send together
	history   bool                  // the dispatcher's runs share a ledger with history
	profiles  string                // folder for profiles; empty for none
	meter     atomic.Pointer[meter] // of the current run
}

// receiptDelay is how long after its answer a carrier sends the receipt.
const receiptDelay = 200 * time.Millisecond

// newRig starts the servers; step is called with that.
func newRig(
	ctx context.Context, receipts bool, profiles string, step func(what string),
) (*rig, error) {
	folder, err := os.MkdirTemp("", "dispatcher-bench-")
	if err != nil {
		return nil, err
	}
	step("starting a private PostgreSQL, Kafka and three carriers")
	r := &rig{folder: folder, receipts: receipts, profiles: profiles}
	if err := r.startCarriers(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.servers, err = embedded.Start(
		ctx,
		embedded.Config{
			Folder:        filepath.Join(folder, "servers"),
			Topics:        []string{"sms.status", "sms.dead"},
			UnsyncedKafka: true,
			Postgres:      postgresSettings(profiles),
		},
	)
	if err == nil {
		err = r.execute(ctx, fillWAL)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// fillWAL writes a gigabyte, so that the runs use its files again, as on a server that has been in
// use. A new server creates and fills each file of 16 MB while commits wait.
const fillWAL = `
	select pg_logical_emit_message(false, 'bench', repeat(' ', 16 * 1024 * 1024))
	from generate_series(1, 64)`

// postgresSettings keep the files that fillWAL has written. If profiles are written to a folder,
// PostgreSQL counts what each statement costs.
func postgresSettings(profiles string) map[string]string {
	settings := map[string]string{"min_wal_size": "1500MB"}
	if profiles != "" {
		settings["shared_preload_libraries"] = "pg_stat_statements"
	}
	return settings
}

// startCarriers starts three carriers, which accept everything at once.
func (r *rig) startCarriers() error {
	r.meter.Store(&meter{})
	for range 3 {
		server, err := smpptest.Start(smpptest.Config{
			Behaviour: smpptest.Behaviour{Receipts: r.receipts, ReceiptDelay: receiptDelay},
			OnSubmit:  func(s smpptest.Submit) { r.meter.Load().add(s.Text, s.At) },
		})
		if err != nil {
			return err
		}
		r.carriers = append(r.carriers, server)
	}
	return nil
}

func (r *rig) close() error {
	defer os.RemoveAll(r.folder) //nolint:errcheck // a leftover in the temporary folder is harmless
	for _, server := range r.carriers {
		server.Close()
	}
	if r.servers == nil {
		return nil
	}
	return r.servers.Stop()
}

// delivered is how many receipts the dispatcher has taken since the carriers started.
func (r *rig) delivered() int {
	taken := 0
	for _, server := range r.carriers {
		taken += int(server.Stats().ReceiptsTaken) //nolint:gosec // A count of messages.
	}
	return taken
}

// weights are the shares of the three carriers, in percent.
type weights [3]int

// routing is the document of one run: three carriers with four limits each that are never reached,
// and one topic, preceded by one of codes if codes is set. timeout is when a submit counts as
// unanswered.
func (r *rig) routing(
	topic, codes string, w weights, timeout time.Duration,
) (path string, err error) {
	var b strings.Builder
	b.WriteString("timezone: Europe/London\nchannels:\n")
	for i, server := range r.carriers {
		fmt.Fprintf(
			&b,
			"  %c:\n    provider: smpp\n    settings: {address: %q, system_id: bench, window: "+
				"200, response_timeout: %s}\n",
			'a'+i,
			server.Addr(),
			timeout,
		)
		b.WriteString("    limits: [{window: 1s, max: 1000000}, {window: 1m, max: 10000000}, " +
			"{window: 1h, max: 100000000}, {window: 1d, max: 1000000000}]\n")
		b.WriteString("    price: {currency: EUR, default: \"0.03\"}\n")
		if !r.receipts {
			b.WriteString("    receipts: none\n")
		}
	}
	fmt.Fprintf(&b,
		"routes:\n  - {name: default, weights: {a: %d, b: %d, c: %d}, fallback: load_ratio}\n",
		w[0], w[1], w[2])
	b.WriteString("lanes:\n")
	if codes != "" {
		fmt.Fprintf(&b, "  otp: {topics: [%s], ttl: 5m}\n", codes)
	}
	fmt.Fprintf(&b, "  bulk: {topics: [%s], ttl: 72h}\n", topic)
	path = filepath.Join(r.folder, topic+".yaml")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// makeDatabase makes an empty database, so that each run begins with empty tables.
func (r *rig) makeDatabase(ctx context.Context, name string) error {
	return r.execute(ctx, "create database "+pgx.Identifier{name}.Sanitize())
}

// dropDatabase drops the database of a run that is over. Otherwise autovacuum would work in it
// during later runs.
func (r *rig) dropDatabase(ctx context.Context, name string) error {
	return r.execute(ctx, "drop database if exists "+pgx.Identifier{name}.Sanitize()+" with (force)")
}

// checkpoint writes what earlier runs have left in memory, so that no run does it for another.
func (r *rig) checkpoint(ctx context.Context) error { return r.execute(ctx, "checkpoint") }

func (r *rig) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, r.servers.Postgres.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the session ends either way
	_, err = conn.Exec(ctx, statement)
	return err
}

// environment has the settings of a measured process.
func (r *rig) environment(url, routing, group string) []string {
	return []string{
		"DISPATCHER_KAFKA_BROKERS=" + r.servers.Kafka.Address(),
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

// produce writes the messages with the numbers from first to last-1 into a topic, which it creates
// with message 0. pause spreads them; 0 writes at full speed. The text of a message starts with its
// number and the time at which it was produced.
func (r *rig) produce(
	ctx context.Context, topic string, first, last int, pause time.Duration,
) error {
	if first == 0 {
		if err := r.servers.Kafka.CreateTopics(ctx, MostProcesses, topic); err != nil {
			return err
		}
	}
	began := time.Now()
	message := func(n int) (_, key string, value []byte) {
		time.Sleep(time.Until(began.Add(time.Duration(n-first) * pause)))
		m := envelope.Message{
			ID: messageID(topic, n), To: fmt.Sprintf("+4477009%05d", n%100_000), From: "BENCH",
			Text: fmt.Sprintf("%d %d is your code. It is valid for ten minutes.",
				n, time.Now().UnixNano()),
		}
		return topic, m.ID, m.Append(nil)
	}
	return r.servers.Kafka.Produce(ctx, first, last, message)
}
